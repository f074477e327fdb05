"""The manual's model of commands: packets, requests, interleaving, and the shared HBM."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tcptune.errors import RuleViolation
from tcptune.model.memory import command_model
from tcptune.model.memory.command_model import DMN_STRIDE, SLICE_STRIDE, Command, Side


def example_2(packet: int, dmn_innermost: bool = True) -> Command:
    """The manual's example 2 with rows of `packet` bytes."""
    loops = [(256, 256 * packet, packet), (4, packet, 256 * packet), (32, 4 * packet, SLICE_STRIDE)]
    dmn = (2, 128 * packet, DMN_STRIDE)
    loops = [*loops, dmn] if dmn_innermost else [dmn, *loops]
    counts, read, write = zip(*loops, strict=True)
    return Command(counts, packet, Side("Hbm", 0, read), Side("Dm", 0, write))


def test_example_2_costs_66036() -> None:
    assert command_model.cost([[example_2(256)]]).total_cycles == 66_036


def test_staying_on_one_dmn_doubles_the_write() -> None:
    assert command_model.cost([[example_2(256, dmn_innermost=False)]]).total_cycles == pytest.approx(131_572, rel=1e-3)


def test_packets_of_264_bytes_need_twice_the_requests() -> None:
    assert example_2(264).requests == 2 * example_2(256).requests
    assert command_model.cost([[example_2(264)]]).total_cycles == 131_572


def test_addresses_count_in_row_major_order() -> None:
    command = Command((2, 3), 8, Side("Hbm", 100, (1000, 10)), Side("Hbm", 0, (0, 0)))
    assert command.addresses(command.read).tolist() == [100, 110, 120, 1100, 1110, 1120]


@given(st.integers(1, 20_000))
def test_stride0_is_the_largest_divisor_a_packet_may_have(run: int) -> None:
    assert command_model.stride0(run) == max(d for d in range(1, 4097) if run % d == 0)


@pytest.mark.parametrize(("length", "requests", "commands"), [(1, 1, 1), (257, 2, 1), (4_096, 16, 1), (4_099, 17, 2)])
def test_a_length_becomes_requests_and_commands(length: int, requests: int, commands: int) -> None:
    split = command_model.split_length(length, factorable=False)
    assert (split.requests, split.commands) == (requests, commands)


def test_a_packet_of_more_than_4096_bytes_is_refused() -> None:
    with pytest.raises(RuleViolation) as refusal:
        command_model.check_packet(4_104)
    assert refusal.value.rule == "DMA-022"


def test_engines_of_one_transfer_share_their_memories() -> None:
    with pytest.raises(RuleViolation) as refusal:
        command_model.check_media([("Hbm", "Dm"), ("Dm", "Dm")])
    assert refusal.value.rule == "DMA-018"


@pytest.mark.parametrize(("engines", "cycles"), [(1, 1), (2, 1), (3, 1.024), (4, 1.365333), (6, 2.048)])
def test_hbm_to_hbm_engines_share_half_of_the_bandwidth(engines: int, cycles: float) -> None:
    assert command_model.hbm_share(engines).cycles_per_request == pytest.approx(cycles, rel=1e-5)

"""HBM addresses, channels and partial writes, against the bit table written out by hand."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tcptune.errors import RuleViolation
from tcptune.model.memory import hbm

GIB = 2**30


def by_hand(address: int) -> dict[str, int]:
    """HBM-005 to HBM-007, bit by bit."""
    bit = [address >> i & 1 for i in range(36)]
    channel = [bit[9 + j] ^ bit[13 + j] ^ bit[17 + j] ^ bit[21 + j] ^ bit[25 + j] for j in range(4)]
    row = [bit[21 + j] for j in range(13)] + [bit[20] if bit[34] else bit[35]]
    return {
        "stack": bit[8],
        "channel": sum(b << j for j, b in enumerate(channel)),
        "bank_group": bit[13] | bit[19] << 1,
        "bank": bit[17] | bit[18] << 1,
        "slice": 2 if bit[34] else bit[20],
        "row": sum(b << j for j, b in enumerate(row)),
        "byte": address & 0xFF | bit[14] << 8 | bit[15] << 9 | bit[16] << 10,
    }


@given(st.integers(0, 48 * GIB - 1))
def test_decoding_follows_the_bit_table(address: int) -> None:
    fields = hbm.decode(address)
    assert {name: int(getattr(fields, name)) for name in by_hand(address)} == by_hand(address)


def test_every_place_of_a_megabyte_is_addressed_once() -> None:
    addresses = np.arange(0, 2**21, 2**8)
    fields = hbm.decode(addresses)
    places = set(
        zip(*(getattr(fields, n).tolist() for n in ("stack", "channel", "bank_group", "bank", "slice", "row", "byte")), strict=True)
    )
    assert len(places) == len(addresses)


@pytest.mark.parametrize("address", [48 * GIB, -1, 2**36])
def test_an_address_beyond_the_memory_is_refused(address: int) -> None:
    with pytest.raises(RuleViolation) as refusal:
        hbm.decode(address)
    assert refusal.value.rule == "HBM-007"


def test_consecutive_blocks_reach_every_channel_and_512_byte_steps_only_one_stack() -> None:
    assert hbm.spread(np.arange(64) * 256, 1, 40).channels_used == 32
    assert hbm.spread(np.arange(64) * 512, 1, 40).channels_used == 16


def test_a_row_switch_is_charged_from_the_second_touch_of_a_bank() -> None:
    same_bank_other_rows = np.arange(5) * 2**29
    load = hbm.spread(same_bank_other_rows, request_cycles=5, row_switch_cycles=40)
    assert (load.channels_used, load.row_switches, load.address_level_cycles) == (1, 4, 5 + 4 * 40)


@pytest.mark.parametrize(("second", "tccd"), [(0x100, None), (0x2200, 2), (0x101000, 3), (0x40, 4)])
def test_the_column_delay_depends_on_what_two_requests_share(second: int, tccd: int | None) -> None:
    assert hbm.pair_relation(0, second).tccd == tccd


@given(st.integers(0, 2_000), st.integers(1, 4_000))
def test_a_write_is_whole_blocks_and_read_modify_writes(offset: int, length: int) -> None:
    covered: dict[int, int] = {}
    for byte in range(offset, offset + length):
        covered[byte // 256] = covered.get(byte // 256, 0) + 1
    written = hbm.write_cost(offset, length)
    assert written.requests == len(covered)
    assert written.full_requests == sum(n == 256 for n in covered.values())
    assert written.relative_time == written.full_requests + 50 * written.rmw_requests

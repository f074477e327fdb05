"""contract_outer: packing, broadcasts, reads of the TRF, and what is refused."""

from __future__ import annotations

import pytest

from tcptune.errors import RuleViolation
from tcptune.ir.mappings.axes import Axes
from tcptune.ir.types import dtype
from tcptune.model.engines.contraction.outer import multipliers_per_lane, packet_elements, pair_accumulator, require_aligned_read, trf_banks
from tcptune.model.hardware import RNGD
from tests.model.chains import outer, refused, run, stream, trf

AX = Axes(M=32, N=8, K=16, L=2, B=5, O=2, A=3, C=4, D=16, Q=64)


def derived(start_time: str, packet: str, element: str, op: dict, dt: str = "bf16", lane: str = "N") -> dict:
    start = stream(AX, dt, "Collect", time=start_time, packet=packet)
    return run(start, AX, op, operands={"w": trf(AX, dt, lane, element)}).derived


def refusal(start_time: str, packet: str, element: str, op: dict, dt: str = "bf16", lane: str = "N") -> RuleViolation:
    start = stream(AX, dt, "Collect", time=start_time, packet=packet)
    return refused(start, AX, op, operands={"w": trf(AX, dt, lane, element)})


def test_the_manuals_stream_adapter_example() -> None:
    got = derived("M, L", "K", "B, L, K", outer("M, B", "L, K"))
    assert (got["pack_size"], got["time_broadcast"], got["lane_broadcast"]) == (2, 5, 8)
    assert (got["read_size"], got["packet_broadcast"], got["trf_banks"]) == (32, 1, 2)
    assert got["trf_time_entries"] == [[32, 0], [5, 32]]


def test_the_manuals_partial_read_repeats_the_read_inside_a_packet() -> None:
    got = derived("O, M, L", "K", "O, K", outer("O, M", "L, K"))
    assert (got["read_size"], got["packet_broadcast"], got["trf_banks"]) == (16, 2, 1)
    assert got["trf_time_entries"] == [[2, 16], [32, 0]]


def test_a_factor_stored_in_two_places_is_walked_by_two_entries() -> None:
    got = derived("Q", "K", "Q % 4, Q / 4, K", outer("Q", "K"))
    assert got["trf_time_entries"] == [[16, 16], [4, 256]]


def test_a_factor_stored_in_one_piece_is_one_entry_however_it_is_written() -> None:
    got = derived("Q / 4, Q % 4", "K", "Q, K", outer("Q / 4, Q % 4", "K"))
    assert got["trf_time_entries"] == [[16, 64], [4, 16]]


def test_padding_at_the_end_of_a_stored_axis_may_stay_unread() -> None:
    got = derived("A", "K", "A # 4, K", outer("A", "K"))
    assert got["trf_time_entries"] == [[3, 16]]


def test_reading_beyond_a_stored_axis_is_refused() -> None:
    assert refusal("A # 4", "K", "A, K", outer("A # 4", "K")).rule == "OUTER-019"
    assert refusal("M", "K", "O, K", outer("M, O # 8", "K")).rule == "OUTER-019"


def test_packing_takes_the_inner_end_of_time_only() -> None:
    error = refusal("L, M", "K", "L, K", outer("M", "L, K"))
    assert error.rule == "OUTER-006"
    assert str(error.expected) == "M % 2"


def test_an_odd_time_does_not_pack() -> None:
    assert refusal("A", "K", "K", outer("A", "L, K")).rule == "OUTER-006"


def test_the_flit_stays_innermost() -> None:
    assert refusal("M, L", "K", "K, L", outer("M", "K, L")).rule == "OUTER-005"


@pytest.mark.parametrize("time", ["B, M, L", "M, B, L", "L, M, B", "M, B", "M"])
def test_out_time_begins_with_the_packed_time(time: str) -> None:
    assert refusal("M, L", "K", "B, K", outer(time, "K")).rule == "OUTER-007"


@pytest.mark.parametrize("packet", ["K = 8", "L, A, K", "A, K", "M, K"])
def test_packets_of_other_sizes_are_refused(packet: str) -> None:
    assert refusal("M", "K", "K", outer("M", packet)).rule == "OUTER-004"


def test_a_stored_factor_that_nothing_reads_is_refused() -> None:
    assert refusal("M", "K", "O, K", outer("M", "K")).rule == "OUTER-019"


def test_a_packet_factor_above_the_read_must_not_be_stored() -> None:
    error = refusal("M, L", "K", "K, O", outer("M, O", "L, K"))
    assert error.rule == "OUTER-017"


def test_a_lane_of_three_is_refused_with_the_padding_that_helps() -> None:
    error = refusal("M", "K", "K", outer("M", "K"), lane="A")
    assert (error.rule, error.nearest) == ("OUTER-008", "A # 4")


def test_the_operand_has_to_be_in_the_trf() -> None:
    start = stream(AX, "bf16", "Collect", time="M", packet="K")
    assert refused(start, AX, outer("M", "K")).rule == "OUTER-001"


def test_spatial_mappings_are_compared_as_cells_not_as_text() -> None:
    axes = Axes(V=16, M=32, N=8, K=16)
    start = stream(axes, "bf16", "Collect", slice="V # 256", time="M", packet="K")
    same = trf(axes, "bf16", "N", "K", slice="[V / 4, V % 4] # 256")
    assert run(start, axes, outer("M", "K"), operands={"w": same}).final.position == "ContractOuter"
    other = trf(axes, "bf16", "N", "K", slice="M # 256")
    assert refused(start, axes, outer("M", "K"), operands={"w": other}).rule == "CE-003"


def test_one_live_copy_of_an_operand_is_told_from_a_broadcast() -> None:
    axes = Axes(M=256, N=8, K=16)
    start = stream(axes, "bf16", "Collect", slice="M", time="1", packet="K")
    error = refused(start, axes, outer("1", "K"), operands={"w": trf(axes, "bf16", "N", "K", slice="1 # 256")})
    assert error.rule == "CE-003"
    assert "1 # 256] is one live copy" in error.message and "no broadcast" in error.message
    assert "slice=[M]" in error.nearest


def test_the_sub_context_does_not_contract() -> None:
    start = stream(AX, "bf16", "Collect", time="M", packet="K")
    error = refused(start, AX, outer("M", "K"), context="sub", operands={"w": trf(AX, "bf16", "N", "K")})
    assert "CE-002" in (error.rule, *error.also)


def test_eleven_operand_pairs() -> None:
    names = ("i4", "i5", "i8", "i9", "i16", "i32", "f4e2m1", "f8e4m3", "f8e5m2", "bf16", "f32")
    accepted = {(a, b): found.name for a in names for b in names if (found := pair_accumulator(dtype(a), dtype(b)))}
    assert len(accepted) == 11
    assert accepted["i5", "i4"] == accepted["i8", "i9"] == "i32"
    assert accepted["bf16", "bf16"] == accepted["f8e5m2", "f8e5m2"] == "f32"


def test_types_without_a_multiplier_are_named() -> None:
    axes = Axes(M=4, K=8)
    start = stream(axes, "f32", "Collect", time="M", packet="K")
    error = refused(start, axes, outer("M", "K"), operands={"w": trf(axes, "f32", "1", "K")})
    assert error.rule == "OUTER-023"
    assert "CE-014" in error.also


@pytest.mark.parametrize(("name", "sizes", "multipliers"), [("i4", (64, 128), 128), ("i9", (32, 64), 64), ("bf16", (16, 32), 32)])
def test_packet_sizes_and_multipliers(name: str, sizes: tuple[int, int], multipliers: int) -> None:
    assert packet_elements(dtype(name), RNGD) == sizes
    assert multipliers_per_lane(dtype(name), RNGD) == multipliers


def test_banks_by_width_of_the_read() -> None:
    assert [trf_banks(n, RNGD) for n in (2, 32, 33, 64)] == [1, 1, 2, 2]


def test_wide_reads_are_aligned() -> None:
    require_aligned_read(64, 128, (0, 192), RNGD)
    require_aligned_read(32, 32, (32,), RNGD)
    with pytest.raises(RuleViolation) as caught:
        require_aligned_read(64, 0, (96,), RNGD)
    assert (caught.value.rule, caught.value.nearest) == ("OUTER-020", 128)


def test_utilisation_counts_live_elements_and_live_lanes() -> None:
    axes = Axes(M=4, N=3, K=10)
    start = stream(axes, "bf16", "Collect", time="M", packet="K # 16")
    got = run(start, axes, outer("M", "K # 16"), operands={"w": trf(axes, "bf16", "N # 4", "K # 16")}).derived
    assert got["mac_utilization"] == {"packet": 10 / 32, "lane": 3 / 8}


def test_padding_beside_one_stored_value_needs_no_reader() -> None:
    axes = Axes(M=4, N=8, K=16, U=1)
    start = stream(axes, "bf16", "Collect", time="M", packet="K")
    for element in ("U # 4, K", "1 # 4, K"):
        got = run(start, axes, outer("M", "K"), operands={"w": trf(axes, "bf16", "N", element)}).derived
        assert got["trf_time_entries"] == [[4, 0]]
    walked = stream(axes, "bf16", "Collect", time="U # 4", packet="K")
    got = run(walked, axes, outer("U # 4", "K"), operands={"w": trf(axes, "bf16", "N", "U # 4, K")}).derived
    assert got["trf_time_entries"] == [[4, 16]]


def test_a_stored_factor_is_walked_once() -> None:
    assert refusal("O, M, O", "K", "O, K", outer("O, M, O", "K")).rule == "OUTER-019"


@pytest.mark.parametrize("time", ["M, M", "M, M % 4", "M, K", "M, O, O", "M, O, B, O"])
def test_a_broadcast_factor_is_a_new_axis(time: str) -> None:
    error = refusal("M", "K", "K", outer(time, "K"))
    assert (error.rule, "OUTER-009" in error.also) == ("OUTER-007", True)

"""contract_packet, contract_time and contract_lane: depth, slots, folding, and what is refused."""

from __future__ import annotations

import pytest

from tcptune.errors import InputError, RuleViolation
from tcptune.ir.mappings.axes import Axes
from tcptune.ir.types import dtype
from tcptune.model.engines.contraction.reduce import cells_per_slot, drain_flits, slot_capacity, time_latency_cycles, tree_latency_cycles
from tcptune.model.hardware import RNGD
from tests.model.chains import outer, reduced, refused, run, stream, trf

AX = Axes(M=4, N=8, P=32, R=2, A=3, Q=4, T=2, K=16)


def products(time: str, packet: str, lane: str = "N", dt: str = "f32"):
    return stream(AX, dt, "ContractOuter", time=time, packet=packet, lane=lane)


def packet_op(packet: str) -> dict:
    return {"op": "contract_packet", "packet": packet}


def time_op(time: str) -> dict:
    return {"op": "contract_time", "time": time}


def lane_op(time: str, packet: str, mode: str) -> dict:
    return {"op": "contract_lane", "time": time, "packet": packet, "mode": mode}


@pytest.mark.parametrize(
    ("packet", "declared", "depth", "left"),
    [
        ("P", "1", 5, 1),
        ("P", "P", 0, 32),
        ("P", "P / 4", 2, 8),
        ("Q, N", "Q", 3, 4),
        ("1 # 16", "1", 0, 16),
        ("1 # 16", "1 # 16", 0, 16),
        ("A # 8, Q", "A # 4", 2, 8),
        ("A # 8, Q", "A # 8", 2, 8),
        ("[P] # 128", "P", 0, 128),
        ("[P, T] # 128", "P", 1, 64),
    ],
)
def test_the_tree_is_as_deep_as_the_declared_packet_demands(packet: str, declared: str, depth: int, left: int) -> None:
    got = run(products("M", packet), AX, packet_op(declared)).derived
    assert (got["tree_depth"], got["reduce_packet_size"]) == (depth, left)


@pytest.mark.parametrize("declared", ["A", "P, Q", "[P, T] = 48"])
def test_sizes_that_the_accumulator_does_not_have_are_refused(declared: str) -> None:
    assert refused(products("M", "A # 8, Q"), AX, packet_op(declared)).rule == "PACKETRED-005"


@pytest.mark.parametrize("declared", ["P % 8", "M", "N"])
def test_only_inner_positions_are_summed(declared: str) -> None:
    assert refused(products("T", "P"), AX, packet_op(declared)).rule == "PACKETRED-008"


def test_cutting_live_columns_is_refused() -> None:
    error = refused(products("M", "Q, P"), AX, packet_op("P"))
    assert error.rule == "PACKETRED-008"
    assert "PACKETRED-006" in error.also


@pytest.mark.parametrize(
    ("time", "kept", "inner", "factor"),
    [
        ("M, R", "M", 1, 2),
        ("R, M", "M", 4, 2),
        ("R, M, T, Q", "M, Q", 16, 4),
        ("M, R, Q", "M, Q", 4, 2),
        ("M, R", "M, R", 1, 1),
        ("M, R", "1", 1, 8),
        ("N", "N / 2", 1, 2),
        ("N", "N % 2", 2, 4),
        ("N / 4, M, N % 4", "M", 4, 8),
        ("R, A # 4", "A # 4", 4, 2),
        ("2, M", "M", 4, 2),
    ],
)
def test_open_sums_are_the_survivors_inside_the_outermost_summed_factor(time: str, kept: str, inner: int, factor: int) -> None:
    got = run(products(time, "1"), AX, packet_op("1"), time_op(kept)).derived
    assert (got["inner_time"], got["time_reduce_factor"]) == (inner, factor)


@pytest.mark.parametrize("kept", ["R, M", "Q", "M % 2, M / 2", "M, R, Q", "M, M"])
def test_out_time_is_an_ordered_part_of_time(kept: str) -> None:
    assert refused(products("M, R", "1"), AX, packet_op("1"), time_op(kept)).rule == "TIMERED-002"


@pytest.mark.parametrize(("time", "kept"), [("R, A # 4", "A"), ("R, A", "A # 4"), ("R, T # 8", "T"), ("R, Q # 16", "Q # 8")])
def test_survivors_keep_their_padding(time: str, kept: str) -> None:
    error = refused(products(time, "1"), AX, packet_op("1"), time_op(kept))
    assert error.rule == "TIMERED-003"
    assert "TIMERED-002" in error.also


def folded(time: str, packet: str, lane: str, kept: str, op: dict):
    return run(products(time, packet, lane), AX, packet_op(packet), time_op(kept), op)


def test_interleaved_moves_lanes_into_the_packet() -> None:
    chain = folded("M", "Q", "N", "M", lane_op("M, Q", "N", "Interleaved"))
    assert chain.derived["out_flits"] == 16


def test_sequential_moves_lanes_into_time() -> None:
    chain = folded("M", "P", "N", "M", lane_op("M, N, P / 8", "P % 8", "Sequential"))
    assert chain.derived["out_flits"] == 4 * 8 * 4


@pytest.mark.parametrize(
    ("op", "rule"),
    [
        (lane_op("Q, M", "N", "Interleaved"), "LANE-003"),
        (lane_op("M", "N", "Interleaved"), "LANE-003"),
        (lane_op("M, Q", "1 # 8", "Interleaved"), "LANE-003"),
        (lane_op("M, Q", "N", "Sequential"), "LANE-004"),
        (lane_op("N, M", "Q # 8", "Sequential"), "LANE-004"),
        (lane_op("M, N", "Q", "Sequential"), "LANE-005"),
    ],
)
def test_other_foldings_are_refused(op: dict, rule: str) -> None:
    assert refused(products("M", "Q"), AX, packet_op("Q"), time_op("M"), op).rule == rule


def test_an_unknown_mode_is_unusable_input() -> None:
    with pytest.raises(InputError, match="unknown lane mode"):
        folded("M", "1", "N", "M", lane_op("M", "N", "Zigzag"))


@pytest.mark.parametrize(("columns", "slots"), [(1, 128), (2, 64), (4, 32), (8, 16), (16, 8), (32, 4)])
def test_interleaved_slots_pay_for_eight_lanes(columns: int, slots: int) -> None:
    for lanes in (1, 2, 4, 8):
        assert slot_capacity("Interleaved", lanes, columns, RNGD) == slots
    assert cells_per_slot("Interleaved", 1, columns, RNGD) * slots == 1024


@pytest.mark.parametrize(("lanes", "slots"), [(1, 32), (2, 16), (4, 8), (8, 4)])
def test_sequential_slots_pay_for_thirty_two_columns(lanes: int, slots: int) -> None:
    for columns in (1, 8, 32):
        assert slot_capacity("Sequential", lanes, columns, RNGD) == slots


def test_slots_are_checked_where_the_mode_is_known() -> None:
    axes = Axes(M=16, P=32, R=2)
    start = stream(axes, "f32", "ContractOuter", time="R, M", packet="P", lane="1")
    before = (packet_op("P"), time_op("M"))
    assert run(start, axes, *before).derived["inner_time"] == 16
    error = refused(start, axes, *before, lane_op("M, P", "1 # 8", "Interleaved"))
    assert (error.rule, error.nearest) == ("TIMERED-006", "Sequential")
    assert run(start, axes, *before, lane_op("M, P / 8", "P % 8", "Sequential")).derived["slot_capacity"] == 32


@pytest.mark.parametrize(
    ("mode", "time", "lanes", "columns", "flits"),
    [
        ("Interleaved", 32, 8, 1, 32),
        ("Sequential", 32, 8, 1, 256),
        ("Sequential", 16, 2, 8, 32),
        ("Sequential", 4, 4, 32, 64),
        ("Interleaved", 4, 4, 32, 128),
    ],
)
def test_drain(mode: str, time: int, lanes: int, columns: int, flits: int) -> None:
    assert drain_flits(mode, time, lanes, columns, RNGD) == flits


def test_latencies() -> None:
    assert [tree_latency_cycles(dtype(n), RNGD) for n in ("i4", "i5", "i8", "f8e5m2", "bf16")] == [7, 7, 6, 6, 5]
    assert [time_latency_cycles(n) for n in (1, 2, 32)] == [0, 2, 32]


def test_stages_stand_in_one_order() -> None:
    start = stream(AX, "bf16", "Collect", time="M", packet="K")
    operands = {"w": trf(AX, "bf16", "N", "K")}
    whole = (outer("M", "K"), *reduced("1", "M", "M", "N"))
    assert run(start, AX, *whole, operands=operands).final.position == "Contract"
    for missing in range(3):
        assert refused(start, AX, *(op for i, op in enumerate(whole) if i != missing), operands=operands).rule == "CE-001"


def test_padding_that_enters_a_sum_is_marked() -> None:
    axes = Axes(M=2, K=10, N=8)
    start = stream(axes, "f32", "ContractOuter", time="M", packet="K # 16", lane="N")
    assert run(start, axes, packet_op("1")).steps[0].config.sums_padding
    full = stream(axes, "f32", "ContractOuter", time="M", packet="1 # 16", lane="N")
    assert not run(full, axes, packet_op("1")).steps[0].config.sums_padding


def test_refusals_carry_the_rule() -> None:
    with pytest.raises(RuleViolation):
        folded("M", "1", "N", "M", lane_op("M", "N = 4", "Interleaved"))


@pytest.mark.parametrize("packet", ["A, N", "P, N", "[P, Q] # 4096"])
def test_the_tree_takes_packets_of_the_datapath(packet: str) -> None:
    assert refused(products("M", packet), AX, packet_op("1")).rule == "PACKETRED-002"


def test_folding_needs_lanes() -> None:
    start = stream(AX, "f32", "ContractTime", time="M", packet="1")
    assert refused(start, AX, lane_op("M", "1 # 8", "Interleaved")).rule == "LANE-002"

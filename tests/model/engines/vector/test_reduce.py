"""Intra-slice reduction: shapes, slots, packet paths, order, and padding that is left out."""

import numpy as np
import pytest

from tcptune.ir.mappings.axes import Axes
from tcptune.model.pipeline import apply_chain
from tcptune.model.values import Values
from tests.model.chains import refused, run, stream

AXES = Axes(A=512, B=4, C=2, R=16, S=2, U=3, X=256)
TRIM = {"op": "vector_narrow_trim", "packet": "B"}


def start(time, packet="B # 8", dt="i32", **levels):
    return stream(AXES, dt, "VectorBranch", **{"slice": "X", "time": time, "packet": packet, **levels})


def reduce(time, packet="B", fn="AddSat", axis="R"):
    return {"op": "vector_intra_slice_reduce", "axis": axis, "time": time, "packet": packet, "fn": fn}


@pytest.mark.parametrize(
    ("time", "packet", "trimmed", "op", "rule"),
    [
        ("R", "B # 8", "B", reduce("R / 4"), "ISR-002"),
        ("[R, S]", "B # 8", "B", reduce("1"), "ISR-002"),
        ("[R, S, U]", "B # 8", "B", reduce("[U, S]"), "ISR-002"),
        ("S", "B # 8", "B", reduce("S"), "ISR-002"),
        ("R", "B # 8", "B", reduce("1", "1 # 4"), "ISR-002"),
        ("R / 4", "R % 4 # 8", "R % 4", reduce("1", "R % 4"), "ISR-002"),
        ("R / 2", "[R % 2, C] # 8", "[R % 2, C]", reduce("1", "1 # 4"), "ISR-002"),
        ("R / 4", "R % 4 # 8", "R % 4", reduce("1", "1 # 2"), "ISR-005"),
        ("R", "B # 8", "B", reduce("1", fn="Add"), "ISR-003"),
        ("R", "B # 8", "B", reduce("1", fn="Sum"), "ISR-003"),
        ("[R, U, U]", "B # 8", "B", reduce("[U, U]"), "ISR-004"),
        ("R", "B # 8", "B", reduce("1", axis="Q"), "ISR-002"),
    ],
)
def test_shapes_that_the_reducer_does_not_have_are_refused(time, packet, trimmed, op, rule):
    assert refused(start(time, packet), AXES, {**TRIM, "packet": trimmed}, op).rule == rule


def test_f32_has_no_saturating_add():
    assert refused(start("R", dt="f32"), AXES, TRIM, reduce("1")).rule == "ISR-003"


@pytest.mark.parametrize(("time", "slots"), [("[U, S, R]", 1), ("[R, U, S]", 6), ("[R / 4, U, R % 4, S]", 6), ("[U, R / 4, S, R % 4]", 2)])
def test_a_slot_is_needed_for_every_surviving_step_inside_the_outermost_reduced_factor(time, slots):
    rest = "[U, S]"
    derived = run(start(time), AXES, TRIM, reduce(rest)).derived
    assert (derived["inner_time_size"], derived["time_steps"]) == (slots, 16)


def test_the_first_result_waits_for_the_steps_of_its_slot():
    step = run(start("[R, S]"), AXES, TRIM, reduce("S")).steps[-1]
    assert step.derived["first_output_delay_flits"] == 32
    assert step.cost.latency_cycles == 1 + 32


def result(kind, ops, values):
    checked = run(kind, AXES, *ops)
    data = np.zeros(kind.shape, np.int32 if kind.dtype.name == "i32" else np.float32)
    data[...] = values

    return checked, apply_chain(checked, Values(data, np.ones(kind.shape, bool)))


def test_lanes_collapse_as_a_tree_of_pairs_and_flits_fold_in_time_order():
    big = 2**31 - 1
    kind = start("R / 4", "R % 4 # 8")
    values = np.zeros((4, 8), np.int32)
    values[0, :4] = [big, big, -big, -big]
    values[1, :4] = [-5, 0, 0, 0]
    _, out = result(kind, [{**TRIM, "packet": "R % 4"}, reduce("1", "1 # 4")], values)
    assert (out.data[..., 0] == -1 - 5).all()


def test_saturation_happens_at_every_step():
    big = 2**31 - 1
    values = np.zeros((16, 8), np.int32)
    values[:3, :] = np.array([big, 1, -1])[:, None]
    _, out = result(start("R"), [TRIM, reduce("1")], values)
    assert (out.data == big - 1).all()


def test_each_lane_is_accumulated_on_its_own_when_the_packet_passes():
    values = np.arange(16 * 8).reshape(16, 8)
    _, out = result(start("R"), [TRIM, reduce("1", fn="Max")], values)
    assert (out.data[0, 0, 0, 0] == values[-1, :4]).all()


def test_surviving_time_factors_keep_their_order():
    kind = start("[U, R / 4, S, R % 4]")
    values = np.arange(3 * 4 * 2 * 4)[:, None] * np.ones(8, int)
    _, out = result(kind, [TRIM, reduce("[U, S]")], values)
    want = np.arange(96).reshape(3, 4, 2, 4).sum(axis=(1, 3)).reshape(6)
    assert (out.data[0, 0, 0, :, 0] == want).all()


@pytest.mark.parametrize(("fn", "want"), [("AddSat", 12), ("Max", 1), ("Min", 1)])
def test_padding_of_the_reduced_axis_is_left_out_whatever_it_holds(fn, want):
    axes = Axes(B=4, R=12, X=256)
    kind = stream(axes, "i32", "VectorBranch", slice="X", time="R # 16", packet="B # 8")
    checked = run(kind, axes, TRIM, reduce("1", fn=fn))

    data = np.ones(kind.shape, np.int32)
    data[..., 12:, :] = -7 if fn == "Min" else 9
    defined = np.ones(kind.shape, bool)
    defined[..., 12:, :] = False
    out = apply_chain(checked, Values(data, defined))
    assert (out.data == want).all()
    assert out.defined.all()


def test_a_slice_without_a_real_element_yields_the_identity():
    axes = Axes(B=4, R=5, X=64)
    kind = stream(axes, "f32", "VectorBranch", slice="[X, R # 16 / 4]", time="R # 16 % 4", packet="B # 8")
    checked = run(kind, axes, TRIM, reduce("1", fn="Max"))

    out = apply_chain(checked, Values(np.full(kind.shape, 3.0, np.float32), np.ones(kind.shape, bool)))
    assert out.data[0, 0, :4, 0, 0].tolist() == [3.0, 3.0, -np.inf, -np.inf]


def test_an_undefined_real_element_makes_the_sum_undefined():
    kind = start("R")
    checked = run(kind, AXES, TRIM, reduce("1"))

    defined = np.ones(kind.shape, bool)
    defined[0, 0, 7, 3, 2] = False
    out = apply_chain(checked, Values(np.zeros(kind.shape, np.int32), defined))
    assert np.argwhere(~out.defined).tolist() == [[0, 0, 7, 0, 2]]

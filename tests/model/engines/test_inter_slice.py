"""Inter-Slice Reducer: its four shape rules, its fills, its functions, and what its groups hold."""

import numpy as np
import pytest

from tcptune.model.pipeline import apply_chain
from tcptune.model.values import Values
from tests.model.engines.vector.chains import AXES, FINAL, PAD, TAG, TRIM, chain, grouped, half, rule_of

EXP = {"op": "vector_fp_unary", "fn": "Exp"}


def reduce(slice_, time="1", fn="Add"):
    return {"op": "vector_inter_slice_reduce", "slice": slice_, "time": time, "fn": fn}


@pytest.mark.parametrize(
    ("levels", "op", "rule"),
    [
        ({"slice": "[R, W]"}, reduce("[1 # 4, W]"), "XSR-001"),
        ({"slice": "[W, S, I]"}, reduce("[W, 1 # 2, I]"), "XSR-001"),
        ({}, reduce("[W, R]"), "XSR-001"),
        ({}, reduce("W"), "XSR-008"),
        ({}, reduce("[W, 1 # 8]"), "XSR-008"),
        ({"packet": "C # 8"}, reduce("[W, C]"), "XSR-002"),
        ({"time": "[S, V]"}, reduce("[W, V]", "[S, V]"), "XSR-010"),
        ({"time": "[S, V]"}, reduce("[W, 1 # 4]", "S"), "XSR-010"),
        ({"time": "[S, V]"}, reduce("[W, 1 # 4]", "[V, S]"), "XSR-004"),
        ({}, reduce("[W, 1 # 4]", fn="Mul"), "XSR-006"),
    ],
)
def test_shapes_that_the_reducer_does_not_have_are_refused(levels, op, rule):
    assert rule_of(grouped(**levels), op) == rule


def test_f32_has_no_saturating_add():
    assert rule_of(grouped("f32"), reduce("[W, 1 # 4]", fn="AddSat")) == "XSR-006"


@pytest.mark.parametrize(
    ("time", "slice_", "out_time"),
    [
        ("1", "[W, 1 # 4]", "1"),
        ("1", "[W, C]", "1"),
        ("[S, V, I]", "[W, V]", "[S, I]"),
        ("[S, I]", "[W, I, S]", "1"),
        ("S", "[W, S, 1 # 2]", "1"),
    ],
)
def test_dummies_broadcasts_and_promotions_mix(time, slice_, out_time):
    start = grouped("f32", time=time)
    checked = chain(start, reduce(slice_, out_time), FINAL)
    assert checked.derived["reduction_ratio"] == 4
    coords = {n: np.zeros(()) for n in AXES}
    data = np.zeros(start.shape, np.float32)
    sizes = [m.size for m in start.time.terms()]
    names = [str(m) for m in start.time.terms()]
    for t in range(start.time.size):
        digits = dict(zip(names, np.unravel_index(t, sizes), strict=True)) if sizes else {}
        for slice_id in range(256):
            data[0, :, slice_id, t, :] = slice_id + 1_000 * digits.get("S", 0) + 5_000 * digits.get("V", 0) + 50_000 * digits.get("I", 0)
    out = apply_chain(checked, Values(data, np.ones(start.shape, bool)))
    table = checked.final.slice.table()
    times = checked.final.time.table()
    for slice_id in range(256):
        for t in range(checked.final.time.size):
            if not table.live[slice_id]:
                assert not out.defined[0, 0, slice_id, t].any()
                continue
            at = {n: int(table.coords.get(n, np.zeros(256))[slice_id]) + int(times.coords.get(n, np.zeros(99))[t]) for n in coords}
            w = at["W"]
            want = sum(4 * w + r for r in range(4))
            for name, weight in (("S", 1_000), ("V", 5_000), ("I", 50_000)):
                want += 4 * weight * at[name] * (name in names)
            assert (out.data[0, 0, slice_id, t] == want).all()


def test_all_slices_of_a_cluster_may_form_one_group():
    start = half("f32", slice="A / 8", packet="A % 8")
    checked = chain(start, reduce("1 # 256", fn="Max"), FINAL)
    values = np.zeros(start.shape, np.float32)
    values[0, 1, 17] = 4.0
    out = apply_chain(checked, Values(values, np.ones(start.shape, bool)))
    assert out.data[0, 1, 0, 0, 0] == 4.0
    assert out.defined.sum() == 2 * 8
    assert checked.derived["reduction_ratio"] == 256
    assert checked.cost.latency_cycles == 256


def test_innermost_factors_go_together_or_the_last_one_alone():
    start = grouped(slice="[W, S, I]")
    assert chain(start, reduce("[W, 1 # 4]"), FINAL).derived["reduction_ratio"] == 4
    assert chain(start, reduce("[W, S, 1 # 2]"), FINAL).derived["reduction_ratio"] == 2
    assert chain(grouped(), reduce("[W, R / 2, 1 # 2]"), FINAL).derived["reduction_ratio"] == 2


@pytest.mark.parametrize("stage", ["widen", "clip"])
def test_the_reducer_follows_the_chain_from_its_eight_way_stages(stage):
    start = half(slice="[W, R]")
    ops = [TAG, TRIM, EXP, PAD] if stage == "widen" else [TAG, {"op": "vector_clip", "fn": "Max", "operand": 0.0}]
    assert chain(start, *ops, reduce("[W, 1 # 4]"), FINAL).derived["order"] == "IntraFirst"


def test_the_reducer_does_not_follow_entry_filter_or_a_four_way_stage():
    start = half(slice="[W, R]")
    last = {"op": "vector_filter", "guard": {"group": 0}}
    for ops in ([TAG], [TAG, last], [TAG, TRIM], [TAG, TRIM, EXP], [TAG, TRIM, {"op": "vector_fp_div", "operand": 2.0}]):
        assert rule_of(start, *ops, reduce("[W, 1 # 4]")) == "VE-013"


@pytest.mark.parametrize(("fn", "want"), [("Add", -(2**31) + 5), ("AddSat", 2**31 - 1), ("Max", 2**31 - 1), ("Min", 0)])
def test_the_functions_on_i32(fn, want):
    start = grouped()
    values = np.zeros(start.shape, np.int32)
    values[0, :, 0:4] = np.array([2**31 - 1, 1, 5, 0])[:, None, None]
    checked = chain(start, reduce("[W, 1 # 4]", fn=fn), FINAL)
    assert (apply_chain(checked, Values(values, np.ones(start.shape, bool))).data[0, :, 0] == want).all()


def test_a_group_with_an_undefined_slice_is_undefined():
    start = grouped()
    defined = np.ones(start.shape, bool)
    defined[0, 0, 6] = False
    out = apply_chain(chain(start, reduce("[W, 1 # 4]"), FINAL), Values(np.zeros(start.shape, np.int32), defined))
    assert not out.defined[0, 0, 4].any()
    assert out.defined[0, 0, 0].all()

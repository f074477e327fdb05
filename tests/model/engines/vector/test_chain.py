"""The chain as a state machine: entries, stages, ways, types, conversions, stash, exits."""

import numpy as np
import pytest

from tcptune.model.pipeline import apply_chain
from tests.model.chains import refused, stream
from tests.model.engines.vector.chains import (
    AXES,
    DUMMY,
    FINAL,
    INIT,
    PAD,
    STASH,
    TAG,
    TRIM,
    chain,
    everywhere,
    flit,
    grouped,
    half,
    register,
    result_of,
    rule_of,
)

ADD = {"op": "vector_fxp", "fn": "AddFxp", "operand": 1}
MAX = {"op": "vector_clip", "fn": "Max", "operand": 0}
EXP = {"op": "vector_fp_unary", "fn": "Exp"}
DIV = {"op": "vector_fp_div", "operand": 2.0}
TO_FP = {"op": "vector_fxp_to_fp", "int_width": 31}
TO_FXP = {"op": "vector_fp_to_fxp", "int_width": 31}
REDUCE = {"op": "vector_intra_slice_reduce", "axis": "S", "time": "1", "packet": "A % 2 # 4", "fn": "Add"}
FILTER = {"op": "vector_filter", "guard": {"group": 0}}
TO_I32, TO_F32 = ({"op": "vector_reinterpret", "to": t} for t in ("i32", "f32"))


@pytest.mark.parametrize(
    ("start", "ops", "rule"),
    [
        (flit("bf16", packet="A % 8 # 16"), [], "VE-001"),
        (flit(packet="A % 8 # 16"), [], "VE-003"),
        (flit(), [ADD], "VE-005"),
        (flit(), [FINAL], "VE-005"),
        (flit(), [TAG, TAG], "VE-005"),
        (flit(), [TAG, TO_FP, ADD], "VE-011"),
        (flit("f32"), [TAG, TO_FXP, ADD], "VE-011"),
        (half(), [TAG, TRIM, DIV, EXP], "VE-011"),
        (half(time="S"), [TAG, TRIM, DIV, REDUCE], "VE-011"),
        (half(time="S"), [TAG, TRIM, REDUCE, EXP], "VE-011"),
        (flit(), [TAG, FILTER, MAX], "VE-011"),
        (half(), [TAG, EXP], "VE-012"),
        (half(), [TAG, TRIM, EXP, {**MAX, "operand": 0.0}], "VE-012"),
        (half(), [TAG, TRIM, FINAL], "VE-013"),
        (half(), [TAG, TRIM, FILTER], "VE-014"),
        (half("i32"), [TAG, TRIM, EXP], "VE-015"),
        (flit("f32"), [TAG, TO_I32, TO_F32, ADD], "VE-015"),
        (flit(), [TAG, {**TO_FP, "int_width": 32}], "VE-020"),
        (flit(), [TAG, {**TO_FP, "int_width": -1}], "VE-020"),
        (flit("f32"), [TAG, {**TO_FXP, "int_width": 32}], "VE-021"),
        (flit(), [TAG, {"op": "vector_reinterpret", "to": "u32"}], "VE-022"),
        (flit(), [{"op": "vector_reinterpret", "to": "f32"}], "VE-022"),
        (half(), [TAG, TRIM, {**EXP, "op": "vector_fp_unary_with_mode", "mode": "Mode10"}], "VE-037"),
        (half(), [TAG, TRIM, {"op": "vector_widen_pad", "packet": "A % 8"}], "VE-019"),
    ],
)
def test_what_the_stages_do_not_allow_is_refused_by_its_rule(start, ops, rule):
    assert rule_of(start, *ops) == rule


def test_vector_init_is_offered_on_collected_and_contracted_streams_only():
    assert refused(stream(AXES, "i32", "Fetch", packet="P"), AXES, INIT).rule == "VE-002"
    assert refused(stream(AXES, "i32", "Cast", packet="P"), AXES, INIT).rule == "VE-002"


def test_both_narrowings_keep_padding_and_data_apart():
    padded = chain(half(time="S"), TAG, {"op": "vector_narrow_split", "time": "[S, 1 # 2]", "packet": "A % 2 # 4"}, EXP)
    assert (padded.derived["stage"], padded.derived["way"], padded.derived["way4_flits"]) == ("Float", 4, 4)
    whole = chain(flit("f32"), TAG, {"op": "vector_narrow_split", "time": "A / 4 % 2", "packet": "A % 4"}, EXP)
    assert whole.derived["vector_steps"] == 2


def test_the_filter_may_be_last_and_a_filtered_element_is_undefined():
    tag = {"op": "vector_intra_slice_tag", "mode": {"Comparison": [["False"], ["False"], ["False"], ["Less", 0]]}}
    checked = chain(flit(), tag, FILTER, FINAL)
    values = everywhere(checked.start, 3)
    values.data[..., 0] = -3
    out = apply_chain(checked, values)
    assert not out.defined[..., 0].any()
    assert out.defined[..., 1:].all()


def test_reinterpret_in_the_four_way_part_keeps_stage_and_way():
    derived = chain(half(), TAG, TRIM, TO_I32, TO_F32, EXP, PAD, FINAL).derived
    assert derived["alus"] == ["FpExp"]


@pytest.mark.parametrize(
    ("start", "ops", "rule"),
    [
        (half("i32"), [TAG, STASH, TO_FP, {**MAX, "operand": "Stash"}], "STASH-005"),
        (half(), [TAG, STASH, TO_I32, {**MAX, "operand": "Stash"}], "STASH-005"),
        (half(), [TAG, TRIM, EXP, PAD, STASH], "STASH-002"),
        (flit(), [TAG, STASH, ADD, STASH], "STASH-003"),
        (flit(), [TAG, {**ADD, "operand": "Stash"}], "STASH-004"),
        (flit(), [TAG, STASH, {**ADD, "operand": "Stash"}, {**MAX, "operand": "Stash"}], "STASH-004"),
        (half(), [TAG, STASH, TRIM, {"op": "vector_fp_div", "operand": "Stash"}], "STASH-006"),
        (flit(), [STASH], "STASH-002"),
        (grouped(), [DUMMY, STASH], "STASH-002"),
    ],
)
def test_the_stash_is_refused_by_its_rule(start, ops, rule):
    assert rule_of(start, *ops) == rule


def test_a_stash_beside_register_operands_leaves_them_seven_kibibytes():
    fits = {"w": register("[N, A % 8]")}
    start = flit(time="N")
    read = {**ADD, "operand": "w"}
    assert chain(start, TAG, STASH, read, operands=fits).derived["alus"] == ["FxpAdd"]
    over = {"w": register("[N, A % 8] # 2048")}
    assert chain(start, TAG, read, operands=over).derived["alus"] == ["FxpAdd"]
    for ops in ([STASH, read], [read, STASH]):
        with pytest.raises(Exception, match="beside the stash") as caught:
            chain(start, TAG, *ops, operands=over)
        assert caught.value.rule == "STASH-007"


def test_a_stash_taken_in_the_float_stage_is_read_by_the_divider():
    assert result_of(half(), 3.0, TAG, TRIM, EXP, STASH, {"op": "vector_fp_div", "operand": "Stash"}, PAD, FINAL) == 1.0


def test_an_unread_stash_at_the_divider_and_a_stash_at_logic_are_fine():
    assert result_of(half(), 3.0, TAG, TRIM, DIV, STASH, PAD, FINAL) == 1.5
    logic = {"op": "vector_logic", "fn": "BitAnd", "operand": 12}
    assert result_of(flit(), 10, TAG, logic, STASH, {**ADD, "operand": "Stash"}, FINAL) == 16


def test_the_first_block_fixes_the_order_and_neither_runs_twice():
    assert chain(grouped(), DUMMY, TAG, ADD, FINAL).derived["order"] == "InterFirst"
    assert chain(grouped(), TAG, ADD, DUMMY, FINAL).derived["order"] == "IntraFirst"
    assert rule_of(grouped(), DUMMY, TAG, ADD, DUMMY) == "VE-004"
    assert rule_of(grouped(), TAG, ADD, DUMMY, TAG) == "VE-004"
    assert rule_of(grouped(), TAG, ADD, DUMMY, ADD) == "VE-005"


@pytest.mark.parametrize(("value", "width", "want"), [(0.5, 31, 1), (-0.5, 31, -1), (2.5, 31, 3), (3e9, 31, 2**31 - 1), (0.5, 0, 2**30)])
def test_the_conversion_to_fixed_rounds_ties_away_from_zero_and_clamps(value, width, want):
    assert result_of(flit("f32"), value, TAG, {**TO_FXP, "int_width": width}, FINAL) == want


def test_a_nan_becomes_the_extreme_of_its_sign():
    assert result_of(flit("f32"), np.nan, TAG, TO_FXP, FINAL) == 2**31 - 1
    assert result_of(flit("f32"), np.copysign(np.nan, -1.0), TAG, TO_FXP, FINAL) == -(2**31)


def test_the_conversion_to_float_rounds_to_nearest_even():
    assert result_of(flit(), 16_777_217, TAG, TO_FP, FINAL) == 16_777_216.0
    assert result_of(flit(), 16_777_219, TAG, TO_FP, FINAL) == 16_777_220.0
    assert result_of(flit(), 3, TAG, {**TO_FP, "int_width": 30}, FINAL) == 1.5

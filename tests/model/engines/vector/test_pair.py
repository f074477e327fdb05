"""Pair mode: entry, what it offers in each phase, operands a group, and the merge."""

import pytest

from tests.model.engines.vector.chains import FINAL, PAD, STASH, TAG, TRIM, UNZIP, branched, chain, flit, grouped, half, result_of, rule_of

SPLIT = {"op": "vector_narrow_split", "time": "1 # 2", "packet": "A % 2 # 4"}
CONCAT = {"op": "vector_widen_concat", "time": "1", "packet": "A % 2 # 8"}
ZIP = {"op": "vector_clip_zip", "fn": "AddFxp"}
FILTER = {"op": "vector_filter", "guard": {"group": 0}}
REDUCE = {"op": "vector_intra_slice_reduce", "axis": "A", "time": "1", "packet": "1 # 4", "fn": "Add"}
DUMMY = {"op": "vector_inter_slice_reduce", "slice": "[W, 1 # 4]", "time": "1", "fn": "Add"}


def per_group(name, fn, group0, group1):
    return {"op": name, "fn": fn, "group0": group0, "group1": group1}


@pytest.mark.parametrize(
    ("start", "unzip"),
    [
        (flit(time="C"), {**UNZIP, "axis": "C"}),
        (flit(time="[C, I]"), UNZIP),
        (flit(time="I", slice="A / 8"), {**UNZIP, "axis": "S"}),
        (flit(packet="[A % 4, I]", slice="A / 4 % 256"), UNZIP),
    ],
)
def test_the_grouping_axis_is_a_two_way_factor_of_time(start, unzip):
    assert rule_of(start, unzip) == "PAIR-001"


def test_unzip_directly_follows_vector_init():
    assert rule_of(flit(time="I"), TAG, UNZIP) == "PAIR-001"
    assert rule_of(grouped(time="I"), {**DUMMY, "time": "I"}, UNZIP) == "PAIR-001"


@pytest.mark.parametrize(
    ("ops", "rule"),
    [
        ([TRIM], "PAIR-005"),
        ([SPLIT, {"op": "vector_fp_unary", "fn": "Exp", "group0_apply": True, "group1_apply": True}, PAD], "PAIR-005"),
        ([FINAL], "PAIR-003"),
        ([STASH], "PAIR-011"),
        ([FILTER], "PAIR-011"),
        ([SPLIT, REDUCE], "PAIR-012"),
        ([per_group("vector_clip", "Max", "Stash", 1.0)], "PAIR-011"),
        ([per_group("vector_clip", "Max", branched(("imm", "all", 1.0)), None)], "PAIR-006"),
        ([{"op": "vector_clip", "fn": "Max", "operand": 1.0}], "PAIR-006"),
        ([SPLIT, {"op": "vector_fp_unary", "fn": "Exp"}], "PAIR-007"),
        ([{"op": "vector_clip_zip_with_mode", "fn": "Add", "mode": "Mode012"}], "PAIR-009"),
        ([{"op": "vector_fp_zip", "fn": "AddF"}], "VE-012"),
        ([SPLIT, {"op": "vector_clip_zip", "fn": "Add"}], "VE-012"),
        ([per_group("vector_clip", "Max", 1.0, None), per_group("vector_clip", "AbsMax", None, 1.0)], "ALU-001"),
        ([per_group("vector_clip", "Max", 1.0, None), {"op": "vector_clip_zip", "fn": "Max"}], "ALU-001"),
    ],
)
def test_what_a_pair_does_not_offer_is_refused_by_its_rule(ops, rule):
    assert rule_of(half(time="I"), UNZIP, *ops) == rule


@pytest.mark.parametrize(
    ("ops", "rule"),
    [
        ([STASH], "PAIR-011"),
        ([FILTER], "PAIR-011"),
        ([TRIM, REDUCE], "PAIR-012"),
        ([ZIP], "PAIR-010"),
        ([per_group("vector_clip", "Max", 1, 1)], "PAIR-006"),
    ],
)
def test_a_merged_stream_still_lacks_stash_filter_and_reduction(ops, rule):
    merge = {"op": "vector_logic_zip", "fn": "BitXor"}
    assert rule_of(half("i32", time="I"), UNZIP, merge, *ops) == rule


def test_a_zip_needs_a_pair_and_groups_need_one_too():
    assert rule_of(flit(), TAG, ZIP) == "PAIR-010"
    assert rule_of(flit(), TAG, per_group("vector_clip", "Max", 1, 1)) == "PAIR-006"
    flags = {"op": "vector_fp_unary", "fn": "Exp", "group0_apply": True, "group1_apply": False}
    assert rule_of(half(), TAG, TRIM, flags) == "PAIR-007"


def test_the_reducer_follows_the_merged_stream_only():
    start = grouped(time="I")
    assert rule_of(start, UNZIP, DUMMY) == "PAIR-013"
    assert chain(start, UNZIP, ZIP, DUMMY, FINAL).derived["reduction_ratio"] == 4
    narrow = {"op": "vector_narrow_split", "time": "P / 4", "packet": "P % 4"}
    assert rule_of(grouped("f32", time="I"), UNZIP, narrow, {"op": "vector_fp_zip", "fn": "AddF"}, {**DUMMY, "time": "P / 4"}) == "VE-013"


@pytest.mark.parametrize(("mode", "want"), [("Mode00", 0), ("Mode01", 6), ("Mode10", -6), ("Mode11", 0)])
def test_the_slots_of_a_zip_are_the_groups(mode, want):
    op = {"op": "vector_fxp_zip_with_mode", "fn": "SubFxp", "mode": mode}
    assert result_of(flit(time="I"), (10, 4), UNZIP, op, FINAL) == want


def test_groups_keep_their_own_operands_and_a_skipped_group_passes():
    pre = [per_group("vector_fxp", "AddFxp", 10, 20), per_group("vector_fxp", "MulInt", 2, None)]
    assert result_of(flit(time="I"), (1, 1), UNZIP, *pre, ZIP, FINAL) == (1 + 10) * 2 + (1 + 20)


def test_the_axis_may_stand_inside_or_outside_other_time_factors():
    for time, rest in (("[C, I]", "C"), ("[I, C]", "C"), ("[S, I, C]", "[S, C]")):
        start = flit(time=time)
        checked = chain(start, {**UNZIP, "time": rest}, ZIP, FINAL)
        assert checked.final.time.equivalent(checked.env.axes.mapping(rest))


def test_the_float_path_of_a_pair_splits_into_a_padded_second_step():
    zip_ = {"op": "vector_fp_zip", "fn": "MulF", "alu": "Mul0"}
    assert result_of(half(time="I"), (1.5, -4.0), UNZIP, SPLIT, zip_, CONCAT, FINAL) == -6.0

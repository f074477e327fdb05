"""Operands: constants, register tensors, branched slots, argument modes, tags and guards."""

import numpy as np
import pytest

from tcptune.errors import InputError, RuleViolation
from tcptune.ir.kernels.vector_operands import TagGuard, operand_from_json
from tcptune.model.pipeline import apply_chain
from tests.model.engines.vector.chains import (
    FINAL,
    PAD,
    STASH,
    TAG,
    TRIM,
    bits,
    branched,
    chain,
    comparison,
    everywhere,
    flit,
    half,
    register,
    result_of,
    rule_of,
)

ANY = "Ignore"


def add(operand, **more):
    return {"op": "vector_fxp", "fn": "AddFxp", "operand": operand, **more}


def refusal_with(operands, *ops):
    with pytest.raises(RuleViolation) as caught:
        chain(flit(time="N"), TAG, *ops, operands=operands)
    return caught.value.rule


@pytest.mark.parametrize(("dt", "operand"), [("i32", 1.5), ("i32", 2**31), ("f32", 1)])
def test_a_constant_has_the_type_of_the_stream(dt, operand):
    assert rule_of(flit(dt), TAG, {"op": "vector_clip", "fn": "Max", "operand": operand}) == "VE-030"


def test_a_missing_operand_is_named():
    assert rule_of(flit(), TAG, {"op": "vector_fxp", "fn": "AddFxp"}) == "VE-030"
    assert rule_of(half(), TAG, TRIM, {"op": "vector_fp_ternary", "fn": "FmaF", "operand": 2.0}) == "VE-036"
    with pytest.raises(InputError, match="no register tensor 'w'"):
        chain(flit(), TAG, add("w"))


@pytest.mark.parametrize(
    ("element", "levels", "rule"),
    [
        ("A % 8", {"cluster": "1 # 2"}, "VE-031"),
        ("A % 8", {"slice": "1 # 256"}, "VE-031"),
        ("[A % 8, N]", {}, "VE-032"),
        ("[N, A % 4]", {}, "VE-032"),
        ("[N, C, A % 8]", {}, "VE-033"),
        ("[N, A % 8] # 4096", {}, "VE-034"),
    ],
)
def test_a_register_tensor_that_no_access_can_read_is_refused(element, levels, rule):
    assert refusal_with({"w": register(element, **levels)}, add("w")) == rule


def test_a_register_tensor_has_the_element_type_of_the_stream():
    assert refusal_with({"w": register("A % 8", "f32")}, add("w")) == "VE-030"


@pytest.mark.parametrize("element", ["[N, A % 8]", "A % 8", "N", "1 # 8", "[N / 32, N % 32]", "[N % 32, N / 32, A % 8]"])
def test_contiguous_and_broadcast_accesses_deliver_the_cell_of_the_same_coordinates(element):
    kind = register(element)
    checked = chain(flit(time="N"), TAG, add("w"), FINAL, operands={"w": kind})
    coords = kind.element.table().coords
    held = np.zeros(kind.shape, np.int32)
    held[...] = 1_000 * coords.get("N", 0) + coords.get("A", 0)
    out = apply_chain(checked, everywhere(checked.start, 0), {"w": everywhere(kind, 0).__class__(held, np.ones(kind.shape, bool))})
    n, lane = np.ogrid[:224, :8]
    want = (1_000 * n if "N" in element else 0) + (lane if "A" in element else 0)
    assert (out.data == want).all()


def test_two_register_tensors_share_the_register_file():
    two = {"w": register("[N, A % 8]"), "v": register("[N, A % 8]")}
    assert refusal_with(two, add("w"), {"op": "vector_clip", "fn": "Max", "operand": "v"}) == "VE-034"


@pytest.mark.parametrize(("mode", "want"), [("Mode00", 0), ("Mode01", -7), ("Mode10", 7), ("Mode11", 0)])
def test_binary_argument_modes(mode, want):
    assert result_of(flit(), 3, TAG, {"op": "vector_fxp_with_mode", "fn": "SubFxp", "mode": mode, "operand": 10}, FINAL) == want


@pytest.mark.parametrize(("mode", "want"), [("012", 11), ("002", 9), ("102", 11), ("112", 14), ("020", 12), ("021", 13), ("120", 17)])
def test_ternary_argument_modes(mode, want):
    op = {"op": "vector_fp_ternary_with_mode", "fn": "FmaF", "mode": f"Mode{mode}", "operand": [3.0, 5.0]}
    assert result_of(half(), 2.0, TAG, TRIM, op, PAD, FINAL) == want


def test_unknown_argument_modes_are_refused():
    assert rule_of(flit(), TAG, {"op": "vector_fxp_with_mode", "fn": "SubFxp", "mode": "Mode02", "operand": 1}) == "VE-035"
    op = {"op": "vector_fp_ternary_with_mode", "fn": "FmaF", "mode": "Mode210", "operand": [3.0, 5.0]}
    assert rule_of(half(), TAG, TRIM, op) == "VE-036"


@pytest.mark.parametrize("count", [32, -1])
def test_constant_shift_counts_lie_in_0_to_31(count):
    assert rule_of(flit(), TAG, {"op": "vector_fxp", "fn": "LeftShift", "operand": count}) == "ALU-022"


def test_a_shift_by_a_count_out_of_range_is_undefined():
    checked = chain(flit(), TAG, {"op": "vector_fxp", "fn": "LeftShift", "operand": "w"}, FINAL, operands={"w": register("A % 8")})
    values = everywhere(register("A % 8"), 3)
    values.data[..., 0] = 32
    out = apply_chain(checked, everywhere(checked.start, 1), {"w": values})
    assert not out.defined[..., 0].any()
    assert (out.data[..., 1:] == 8).all()


# --- tags and branches ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["Vrf", "ValidCount", "Unheard"])
def test_withheld_tag_modes_are_refused(mode):
    assert rule_of(flit(), {"op": "vector_intra_slice_tag", "mode": mode}) == "TAG-002"


def test_axis_toggle_is_refused_at_lowering():
    assert rule_of(flit(), {"op": "vector_intra_slice_tag", "mode": {"AxisToggle": "A"}}) == "TAG-005"


@pytest.mark.parametrize(
    "tests",
    [
        [["Less", 0], ["True"], ["False"]],
        [["Less", 0.0], ["True"], ["False"], ["False"]],
        [["Below", 0], ["True"], ["False"], ["False"]],
        [["Less"], ["True"], ["False"], ["False"]],
        [["True", 1], ["True"], ["False"], ["False"]],
    ],
)
def test_comparisons_are_four_tests_with_boundaries_of_the_stream_type(tests):
    assert rule_of(flit(), comparison(*tests)) == "TAG-003"


def test_an_element_takes_the_first_slot_that_admits_it_and_passes_unchanged_otherwise():
    tag = comparison(["Less", 0], ["Equal", 5], ["False"], ["False"])
    slots = branched(("imm", bits("One", ANY, ANY, ANY), 1000), ("imm", bits(ANY, "One", ANY, ANY), 2000))
    for x, want in [(-3, 997), (5, 2005), (7, 7)]:
        assert result_of(flit(), x, tag, add(slots), FINAL) == want


def test_a_guarded_stash_is_read_where_its_guard_admits():
    tag = comparison(["Less", 0], ["False"], ["False"], ["False"])
    slots = branched(("imm", bits("Zero", ANY, ANY, ANY), 7), ("rf", "all", "Stash"))
    for x, want in [(-4, -8), (4, 11)]:
        assert result_of(flit(), x, tag, STASH, add(slots), FINAL) == want


@pytest.mark.parametrize(
    ("slots", "rule"),
    [
        ([("rf", "all", "Stash"), ("imm", "all", 1)], "TAG-008"),
        ([("imm", bits("One", ANY, ANY, ANY), "Stash")], "TAG-008"),
        ([("rf", bits("One", ANY, ANY, ANY), 3)], "TAG-008"),
        ([("port", "all", 3)], "TAG-008"),
        ([("imm", bits("One", ANY, ANY, ANY), i) for i in range(4)], "TAG-008"),
        ([("imm", "all", 1), ("imm", bits("One", ANY, ANY, ANY), 2)], "TAG-010"),
        ([("imm", {"not_matches": [ANY] * 4}, 1)], "TAG-010"),
        ([("imm", bits("One", ANY, ANY), 1)], "TAG-006"),
        ([("imm", bits("Two", ANY, ANY, ANY), 1)], "TAG-006"),
        ([], "TAG-008"),
    ],
)
def test_slots_that_the_machine_does_not_have_are_refused(slots, rule):
    assert rule_of(flit(), TAG, STASH, add(branched(*slots))) == rule


def test_guards_are_canonical():
    assert TagGuard.from_json(bits(ANY, ANY, ANY, ANY)) == TagGuard.from_json("all")
    assert TagGuard.from_json({"not_matches": [ANY, ANY, ANY, "One"]}) == TagGuard.group(0)
    for raw in ("all", {"group": 1}, bits("One", "Zero", ANY, ANY), {"not_matches": ["One", ANY, ANY, "One"]}):
        assert TagGuard.from_json(TagGuard.from_json(raw).to_json()) == TagGuard.from_json(raw)


@pytest.mark.parametrize("raw", [True, None, {"branched": 1, "x": 2}, [1], [1, 2, 3], {"branched": [{"slot": "imm"}]}])
def test_what_is_no_operand_is_refused_without_a_traceback(raw):
    with pytest.raises(InputError):
        operand_from_json(raw)


def test_the_tag_is_taken_at_the_entry_and_does_not_follow_the_value():
    tag = comparison(["Less", 0], ["False"], ["False"], ["False"])
    slots = branched(("imm", bits("One", ANY, ANY, ANY), 100))
    assert result_of(flit(), -5, tag, {"op": "vector_logic", "fn": "BitAnd", "operand": 7}, add(slots), FINAL) == 103


def test_tags_follow_narrow_and_widen():
    tag = comparison(["Less", 0.0], ["False"], ["False"], ["False"])
    slots = branched(("imm", bits("One", ANY, ANY, ANY), 9.0))
    split = {"op": "vector_narrow_split", "time": "A / 4 % 2", "packet": "A % 4"}
    concat = {"op": "vector_widen_concat", "time": "1", "packet": "A % 8"}
    checked = chain(flit("f32"), tag, split, concat, {"op": "vector_clip", "fn": "Add", "operand": slots}, FINAL)
    values = everywhere(checked.start, 1.0)
    values.data[..., [1, 6]] = -1.0
    out = apply_chain(checked, values).data
    assert (out[..., [1, 6]] == 8.0).all()
    assert (np.delete(out, [1, 6], axis=-1) == 1.0).all()

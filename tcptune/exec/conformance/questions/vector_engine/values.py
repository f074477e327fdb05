"""Answers the value tables of the Vector Engine chapter: arithmetic of the ALUs, argument modes, tags, guards and reductions."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from tcptune.errors import RuleViolation
from tcptune.exec.conformance.kinds.compare import expect_rows_among
from tcptune.exec.conformance.registry import Case, Mismatch, expect_equal, table, table_matching
from tcptune.ir.kernels.vector_operands import Comparison, TagGuard, TagMode
from tcptune.ir.types import dtype
from tcptune.model.engines.vector.alus import (
    FUNCTIONS,
    INTER_SLICE_REDUCTIONS,
    INTRA_SLICE_REDUCTIONS,
    AluFunction,
    Reduction,
    find_reduction,
)
from tcptune.model.engines.vector.chain import TAG_MODES, tags_of
from tcptune.model.engines.vector.operands import (
    BINARY_MODES,
    DEFAULT_BINARY_MODE,
    DEFAULT_TERNARY_MODE,
    DEFAULT_ZIP_MODE,
    TERNARY_MODES,
    ZIP_MODES,
    check_slot_sequence,
)
from tcptune.model.hardware import RNGD
from tcptune.model.numerics.elements import numpy_dtype
from tcptune.model.numerics.vector import Array, compare, fixed_to_float, float_to_fixed, fold, reinterpret, tree_of_lanes

F32_RELATIVE = 1e-6
"""Tolerance of f32 values (conventions of the corpus)."""

_SPECIAL = {"+inf": np.inf, "-inf": -np.inf, "+nan": np.nan, "-nan": np.copysign(np.nan, -1.0)}


def _array(value: Any, dtype_name: str) -> Array:
    return np.array([_SPECIAL.get(value, value)], dtype=numpy_dtype(dtype(dtype_name)))


def _function(cluster: str, row: dict[str, Any], dtype_name: str) -> AluFunction:
    return FUNCTIONS[cluster, dtype_name, row["fn"]]


@table("logic_values")
def logic_values(case: Case) -> None:
    _binary_values(case, "Logic")


@table("fxp_values")
def fxp_values(case: Case) -> None:
    _binary_values(case, "Fxp")


@table("clip_values")
def clip_values(case: Case) -> None:
    _binary_values(case, "Clip")


def _binary_values(case: Case, cluster: str) -> None:
    """f32 rows of the bitwise functions give bit patterns."""
    for row in case["rows"]:
        name = row.get("dtype", "i32")
        function = _function(cluster, row, name)
        if "a_bits" in row:
            a, b = (np.array([row[key]], np.uint32).view(np.float32) for key in ("a_bits", "b_bits"))
            got: Any = int(function.compute(a, b).view(np.uint32)[0])
        else:
            got = function.compute(_array(row["a"], name), _array(row["b"], name))[0].item()
        expect_equal(f"{row['fn']} on {name}", got, row.get("out_bits", row.get("out")))


@table("fp_unary_values")
def fp_unary_values(case: Case) -> None:
    tolerance = case.get("expect", {}).get("tolerance", {})
    for row in case["rows"]:
        got = float(_function("Float", row, "f32").compute(_array(row["x"], "f32"))[0])
        want = float(_SPECIAL.get(row["out"], row["out"]))
        close = abs(got - want) <= max(tolerance.get("rel", F32_RELATIVE) * abs(want), tolerance.get("abs", 0.0))
        if not (close or got == want or (np.isnan(got) and np.isnan(want))):
            raise Mismatch(f"{row['fn']}({row['x']}): got {got}, expected {row['out']}")


@table("fp_to_fxp_values")
def fp_to_fxp_values(case: Case) -> None:
    for row in case["rows"]:
        got = int(float_to_fixed(_array(row["x"], "f32"), row["int_width"])[0])
        expect_equal(f"i32 of {row['x']} with int_width {row['int_width']}", got, row["out"])


@table("fxp_to_fp_values")
def fxp_to_fp_values(case: Case) -> None:
    for row in case["rows"]:
        got = float(fixed_to_float(_array(row["x"], "i32"), row["int_width"])[0])
        expect_equal(f"f32 of {row['x']} with int_width {row['int_width']}", got, row["out"])


@table("reinterpret_values")
def reinterpret_values(case: Case) -> None:
    for row in case["rows"]:
        value = float(row.get("f32_text", row.get("f32")))
        expect_equal(f"bits of {value}", int(reinterpret(np.array([value], np.float32), np.int32)[0]), row["i32"])


# --- argument modes ---------------------------------------------------------------------------------------------------


@table("binary_arg_modes")
def binary_modes(case: Case) -> None:
    _modes(case, BINARY_MODES, DEFAULT_BINARY_MODE, "sub_stream3_operand10", ("Fxp", "i32", "SubFxp"), {"stream": 3, "operand": 10})


@table("ternary_arg_modes")
def ternary_modes(case: Case) -> None:
    values = {"stream": 2.0, "operand0": 3.0, "operand1": 5.0}
    _modes(case, TERNARY_MODES, DEFAULT_TERNARY_MODE, "fma_s2_a3_b5", ("Float", "f32", "FmaF"), values)


@table("zip_arg_modes")
def zip_modes(case: Case) -> None:
    _modes(case, ZIP_MODES, DEFAULT_ZIP_MODE, "sub_g0_10_g1_4", ("Float", "f32", "SubF"), {"group0": 10, "group1": 4})


def _modes(
    case: Case, modes: dict[str, tuple[str, ...]], default: str, column: str, function: tuple[str, str, str], values: dict[str, Any]
) -> None:
    compute = FUNCTIONS[function].compute
    rows = []
    for mode, slots in modes.items():
        result = compute(*(_array(values[name], function[1]) for name in slots))
        rows.append({"mode": mode, "slots": list(slots), column: result[0].item(), "default": mode == default})
    expect_rows_among(case, rows, ("mode",))


# --- tags -------------------------------------------------------------------------------------------------------------


_TEST = re.compile(r"\b(Equal|LessUnsigned|GreaterUnsigned|Less|Greater|True|False)\b(?:\(([^)]*)\))?")


@table_matching(r"tag_comparison(_\w+)?")
def tag_comparison(case: Case) -> None:
    """Tags by the four tests of the case; the element type is that of the numbers in its rows."""
    written = _tests_of(case)
    name = case.get("dtype") or _element_type([row["x"] for row in case["rows"]] + [b for _, *boundary in written for b in boundary])
    number = int if name == "i32" else float
    tests = tuple(Comparison(test, number(boundary[0]) if boundary else None) for test, *boundary in written)
    for row in case["rows"]:
        expect_equal(f"tag of {row['x']}", int(tags_of(TagMode("Comparison", tests), _array(row["x"], name))[0]), row["tag"])


def _element_type(numbers: list[Any]) -> str:
    """f32 where a number is one, or text that is no whole number; else i32."""
    whole = [isinstance(n, int) or (isinstance(n, str) and n.lstrip("+-").isdigit()) for n in numbers]
    return "i32" if all(whole) else "f32"


def _tests_of(case: Case) -> list[list[Any]]:
    """The tests of the first field of the case that has four: a list, maybe in an object, or text (``[Less(0), True, ...]``)."""
    for name, value in case.items():
        found = _tests_in(value) if name not in ("id", "rows", "expect") else []
        if len(found) == _TAG_TESTS:
            return found
    raise Mismatch("the case names no four tests")


_TAG_TESTS = 4
"""Tests of a tag, one a bit (TAG-003)."""


def _tests_in(value: Any) -> list[list[Any]]:
    if isinstance(value, dict):
        return [test for inner in value.values() for test in _tests_in(inner)]
    if isinstance(value, str):
        return [[test, boundary] if boundary else [test] for test, boundary in _TEST.findall(value)]
    if not isinstance(value, list):
        return []
    if value and isinstance(value[0], str) and _TEST.fullmatch(value[0]) and all(isinstance(v, int | float) for v in value[1:]):
        return [value] if len(value) > 1 else _tests_in(value[0])
    return [test for inner in value for test in _tests_in(inner)]


@table("compare_semantics")
def compare_semantics(case: Case) -> None:
    for row in case["rows"]:
        test, *boundary = row["cmp"]
        for text, want in row["result"].items():
            value = int(text) if row["dtype"] == "i32" else float(text)
            got = compare(test, _array(value, row["dtype"]), _array(boundary[0] if boundary else 0, row["dtype"]))
            expect_equal(f"{row['cmp']} of {text}", bool(got[0]), want)


@table("tag_modes")
def tag_modes(case: Case) -> None:
    expect_rows_among(case, [{"mode": mode, "available": available} for mode, available in TAG_MODES.items()], ("mode",))


@table("tag_guards")
def tag_guards(case: Case) -> None:
    for row in case["rows"]:
        guard = TagGuard.from_json(row["guard"])
        expect_equal(f"{row['guard']} admits", [tag for tag in range(16) if guard.admits(tag)], row["admits"])
        expect_equal(f"{row['guard']} is refused as a slot", guard.admits_nothing, row.get("rejected_as_slot", False))


@table("slot_sequences")
def slot_sequences(case: Case) -> None:
    for row in case["rows"]:
        try:
            check_slot_sequence(row["calls"], immediates=RNGD.operand_immediates, ports=RNGD.operand_register_ports)
            verdict = "accept"
        except RuleViolation:
            verdict = "reject"
        expect_equal(f"slots {row['calls']}", verdict, row["verdict"])


# --- reductions -------------------------------------------------------------------------------------------------------


@table("isr_ops")
def intra_slice_reductions(case: Case) -> None:
    _reductions(case, INTRA_SLICE_REDUCTIONS)


@table("xsr_ops")
def inter_slice_reductions(case: Case) -> None:
    _reductions(case, INTER_SLICE_REDUCTIONS)


def _reductions(case: Case, offered: tuple[Reduction, ...]) -> None:
    got = {(r.dtype, r.name): r.identity for r in offered}
    for row in case["rows"]:
        key = row["dtype"], row["fn"]
        if key not in got:
            raise Mismatch(f"there is no reduction {key}")
        if "identity" in row:
            expect_equal(f"identity of {key}", got[key], _SPECIAL.get(row["identity"], row["identity"]))


@table("isr_tree_values")
def tree_values(case: Case) -> None:
    """``out`` is the hardware's order, ``sequential`` the plain left fold over all elements."""
    for row in case["rows"]:
        reduction = find_reduction(INTRA_SLICE_REDUCTIONS, dtype(row.get("dtype", "i32")), row["fn"], "ISR-003")
        flits = np.array(row["flits"], numpy_dtype(dtype(reduction.dtype)))
        got = fold(reduction.combine, tree_of_lanes(reduction.combine, flits)[:, None], reduction.identity_value)[0].item()
        expect_equal(f"{row['fn']} of {row['flits']}", got, row["out"])
        if "sequential" in row:
            expect_equal("left fold", fold(reduction.combine, flits.reshape(-1, 1), reduction.identity_value)[0].item(), row["sequential"])


@table("isr_padding_strategies")
def padding_strategies(case: Case) -> None:
    """The identities that padding may hold instead of being counted out; the other cells are advice in words."""
    identities = {(r.dtype, r.name): r.identity for r in INTRA_SLICE_REDUCTIONS}
    row = next((r for r in case["rows"] if "Max" in r), None)
    if row is None:
        return
    limits = np.iinfo(np.int32)
    named = {"i32::MIN": limits.min, "i32::MAX": limits.max, **_SPECIAL}
    for fn in ("Max", "Min"):
        expect_equal(fn, [identities["i32", fn], identities["f32", fn]], [named[text] for text in row[fn]])
    expect_equal("AddSat, Add", [identities["i32", "AddSat"], identities["f32", "Add"]], [row["AddSat_Add"]] * 2)


@table("xsr_values")
def inter_slice_values(case: Case) -> None:
    for row in case["rows"]:
        name = row.get("dtype", "i32")
        reduction = find_reduction(INTER_SLICE_REDUCTIONS, dtype(name), row["fn"], "XSR-006")
        values = np.array(row["slices"], numpy_dtype(dtype(name))).reshape(-1, 1)
        expect_equal(f"{row['fn']} over {row['slices']}", fold(reduction.combine, values, reduction.identity_value)[0].item(), row["out"])

"""The ALUs of the Vector Engine and the functions that run on each (ALU-001 to ALU-051, ISR-003, XSR-006).

Every function belongs to a cluster (a stage of the chain), to an element type and to one ALU; an ALU runs at most once a call.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tcptune.errors import RuleViolation
from tcptune.ir.types import DType
from tcptune.model.numerics import vector as nv

POOLS: dict[str, tuple[str, ...]] = {
    "Logic": ("LogicAnd", "LogicOr", "LogicXor", "LogicLshift", "LogicRshift"),
    "Fxp": ("FxpAdd", "FxpLshift", "FxpMul", "FxpRshift"),
    "Float": ("FpFma", "FpFpu", "FpExp", "FpMul0", "FpMul1"),
    "IntraSliceReduce": ("ReduceAccTree",),
    "FpDiv": ("ReduceFpDiv",),
    "Clip": ("ClipAdd", "ClipMax", "ClipMin"),
}
"""ALUs a cluster (ALU-002); IntraSliceReduce and FpDiv have one dedicated unit each, which no call selects."""

MULTIPLIERS = {"Mul0": "FpMul0", "Mul1": "FpMul1", "Fma": "FpFma"}
"""Where MulF may run, as the call selects (ALU-031)."""


@dataclass(frozen=True, slots=True)
class AluFunction:
    """One function of an ALU: `compute` takes `arity` arrays of the element type."""

    cluster: str
    dtype: str
    name: str
    alu: str
    arity: int
    compute: Callable[..., nv.Array]
    is_shift: bool = False


def _functions() -> dict[tuple[str, str, str], AluFunction]:
    bitwise = (("BitAnd", "LogicAnd", nv.bit_and), ("BitOr", "LogicOr", nv.bit_or), ("BitXor", "LogicXor", nv.bit_xor))
    rows: list[tuple[str, str, str, str, int, Callable[..., nv.Array]]] = []
    rows += [("Logic", dtype, name, alu, 2, compute) for dtype in ("i32", "f32") for name, alu, compute in bitwise]
    rows += [
        ("Logic", "i32", "LeftShift", "LogicLshift", 2, nv.shift_left),
        ("Logic", "i32", "LogicRightShift", "LogicRshift", 2, nv.shift_right_logical),
        ("Logic", "i32", "ArithRightShift", "LogicRshift", 2, nv.shift_right_arithmetic),
        ("Fxp", "i32", "AddFxp", "FxpAdd", 2, nv.add_wrapping),
        ("Fxp", "i32", "AddFxpSat", "FxpAdd", 2, nv.add_saturating),
        ("Fxp", "i32", "SubFxp", "FxpAdd", 2, nv.subtract_wrapping),
        ("Fxp", "i32", "SubFxpSat", "FxpAdd", 2, nv.subtract_saturating),
        ("Fxp", "i32", "LeftShift", "FxpLshift", 2, nv.shift_left),
        ("Fxp", "i32", "LeftShiftSat", "FxpLshift", 2, nv.shift_left_saturating),
        ("Fxp", "i32", "MulFxp", "FxpMul", 2, nv.multiply_q31),
        ("Fxp", "i32", "MulInt", "FxpMul", 2, nv.multiply_low),
        ("Fxp", "i32", "LogicRightShift", "FxpRshift", 2, nv.shift_right_logical),
        ("Fxp", "i32", "ArithRightShift", "FxpRshift", 2, nv.shift_right_arithmetic),
        ("Fxp", "i32", "ArithRightShiftRound", "FxpRshift", 2, nv.shift_right_rounding),
        ("Float", "f32", "Exp", "FpExp", 1, nv.exponential),
        ("Float", "f32", "NegExp", "FpExp", 1, nv.negated_exponential),
        ("Float", "f32", "Sqrt", "FpFpu", 1, nv.square_root),
        ("Float", "f32", "Tanh", "FpFpu", 1, nv.hyperbolic_tangent),
        ("Float", "f32", "Sigmoid", "FpFpu", 1, nv.sigmoid),
        ("Float", "f32", "Erf", "FpFpu", 1, nv.error_function),
        ("Float", "f32", "Log", "FpFpu", 1, nv.natural_logarithm),
        ("Float", "f32", "Sin", "FpFpu", 1, nv.sine),
        ("Float", "f32", "Cos", "FpFpu", 1, nv.cosine),
        ("Float", "f32", "AddF", "FpFma", 2, nv.add_f32),
        ("Float", "f32", "SubF", "FpFma", 2, nv.subtract_f32),
        ("Float", "f32", "DivF", "FpFpu", 2, nv.divide_f32),
        *(("Float", "f32", f"MulF({select})", alu, 2, nv.multiply_f32) for select, alu in MULTIPLIERS.items()),
        ("Float", "f32", "FmaF", "FpFma", 3, nv.fused_multiply_add),
        ("FpDiv", "f32", "DivF", "ReduceFpDiv", 2, nv.divide_f32),
        ("Clip", "i32", "Min", "ClipMin", 2, nv.minimum_i32),
        ("Clip", "i32", "Max", "ClipMax", 2, nv.maximum_i32),
        ("Clip", "i32", "AbsMin", "ClipMin", 2, nv.smaller_magnitude_i32),
        ("Clip", "i32", "AbsMax", "ClipMax", 2, nv.larger_magnitude_i32),
        ("Clip", "i32", "AddFxp", "ClipAdd", 2, nv.add_wrapping),
        ("Clip", "i32", "AddFxpSat", "ClipAdd", 2, nv.add_saturating),
        ("Clip", "f32", "Min", "ClipMin", 2, nv.minimum_f32),
        ("Clip", "f32", "Max", "ClipMax", 2, nv.maximum_f32),
        ("Clip", "f32", "AbsMin", "ClipMin", 2, nv.smaller_magnitude_f32),
        ("Clip", "f32", "AbsMax", "ClipMax", 2, nv.larger_magnitude_f32),
        ("Clip", "f32", "Add", "ClipAdd", 2, nv.add_f32),
    ]
    return {(c, d, n): AluFunction(c, d, n, alu, arity, compute, n.find("Shift") >= 0) for c, d, n, alu, arity, compute in rows}


FUNCTIONS = _functions()
"""Every function by (cluster, element type, name); MulF appears once a multiplier."""

_UNKNOWN_RULE = {
    ("Logic", "i32", 2): "ALU-010",
    ("Logic", "f32", 2): "ALU-011",
    ("Fxp", "i32", 2): "ALU-020",
    ("Float", "f32", 1): "ALU-030",
    ("Float", "f32", 2): "ALU-031",
    ("Float", "f32", 3): "ALU-032",
    ("Clip", "i32", 2): "ALU-050",
    ("Clip", "f32", 2): "ALU-051",
}


def find_function(cluster: str, dtype: DType, name: str, arity: int, multiplier: str | None = None) -> AluFunction:
    """The function `name` of a cluster on elements of `dtype`.

    Args:
        multiplier: where MulF runs (``Mul0``, ``Mul1`` or ``Fma``); no other function takes one.

    Raises:
        RuleViolation: ALU-010, 011, 020, 030, 031, 032, 050 or 051 if the cluster has no such function, or MulF names no multiplier.
    """
    key = f"{name}({multiplier})" if multiplier is not None else name
    found = FUNCTIONS.get((cluster, dtype.name, key))
    if found is not None and found.arity == arity and "(" not in name:
        return found
    rule = _UNKNOWN_RULE[cluster, dtype.name, arity]
    offered = [f.name for f in FUNCTIONS.values() if (f.cluster, f.dtype, f.arity) == (cluster, dtype.name, arity)]
    raise RuleViolation(
        rule, f"the {cluster} cluster has no {_arity_word(arity)} function {key} on {dtype}", expected=", ".join(offered), got=key
    )


def _arity_word(arity: int) -> str:
    return ("unary", "binary", "ternary")[arity - 1]


@dataclass(frozen=True, slots=True)
class Reduction:
    """A reduction of a reducer on one element type, with its identity (the value that changes nothing)."""

    dtype: str
    name: str
    combine: Callable[[nv.Array, nv.Array], nv.Array]
    identity: int | float

    @property
    def identity_value(self) -> np.generic:
        """The identity as a numpy scalar of the element type."""
        return np.int32(self.identity) if self.dtype == "i32" else np.float32(self.identity)


_I32 = np.iinfo(np.int32)
_WRAPPING_ADD = Reduction("i32", "Add", nv.add_wrapping, 0)
_F32_PRODUCT = Reduction("f32", "Mul", nv.multiply_f32, 1.0)
_COMMON = (
    Reduction("i32", "AddSat", nv.add_saturating, 0),
    Reduction("i32", "Max", nv.maximum_i32, int(_I32.min)),
    Reduction("i32", "Min", nv.minimum_i32, int(_I32.max)),
    Reduction("f32", "Add", nv.add_f32, 0.0),
    Reduction("f32", "Max", nv.maximum_f32, float("-inf")),
    Reduction("f32", "Min", nv.minimum_f32, float("inf")),
)

INTRA_SLICE_REDUCTIONS = _COMMON
INTER_SLICE_REDUCTIONS = (_WRAPPING_ADD, *_COMMON, _F32_PRODUCT)


def find_reduction(offered: tuple[Reduction, ...], dtype: DType, name: str, rule: str) -> Reduction:
    """The reduction `name` on elements of `dtype`.

    Raises:
        RuleViolation: `rule` (ISR-003 or XSR-006), with the reductions the element type has.
    """
    for reduction in offered:
        if (reduction.dtype, reduction.name) == (dtype.name, name):
            return reduction
    names = ", ".join(r.name for r in offered if r.dtype == dtype.name)
    raise RuleViolation(rule, f"there is no reduction {name} on {dtype}", expected=names, got=name)

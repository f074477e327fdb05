"""Arithmetic of the Vector Engine, every operation once, on numpy arrays of i32 or f32 (ALU-010 to ALU-051, VE-020, VE-021, TAG-003).

Add, subtract, multiply, divide, fused multiply-add, square root, shifts, comparisons and both conversions are exact in the sense
of IEEE 754 and of two's complement: one rounding, to nearest even unless a rule says otherwise. The transcendental functions are
evaluated in f64 and rounded once, which keeps them within one f32 unit in the last place of the correctly rounded value (the manual
states no accuracy). Where the manual is silent the reading is the one of the catalogue's ambiguities 14 to 19.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.generic]
Binary = Callable[[Array, Array], Array]
Unary = Callable[[Array], Array]

_I32 = np.iinfo(np.int32)
_Q31_HALF = np.int64(1) << 30
"""Half a unit of the Q31 product before its 31 fraction bits are dropped (ALU-023)."""

_erf = np.frompyfunc(math.erf, 1, 1)


def _wide(a: Array) -> npt.NDArray[np.int64]:
    return a.astype(np.int64)


def _wrap(wide: npt.NDArray[np.int64]) -> npt.NDArray[np.int32]:
    """Low 32 bits as i32."""
    return wide.astype(np.uint32).astype(np.int32)


def _clamp(wide: npt.NDArray[np.int64]) -> npt.NDArray[np.int32]:
    return np.clip(wide, _I32.min, _I32.max).astype(np.int32)


def _bits(a: Array) -> npt.NDArray[np.uint32]:
    return np.ascontiguousarray(a).view(np.uint32)


# --- integers ---------------------------------------------------------------------------------------------------------


def add_wrapping(a: Array, b: Array) -> Array:
    """AddFxp: modulo 2^32 (ALU-021)."""
    return _wrap(_wide(a) + _wide(b))


def add_saturating(a: Array, b: Array) -> Array:
    """AddFxpSat, AddSat: clamped to the i32 range (ALU-021)."""
    return _clamp(_wide(a) + _wide(b))


def subtract_wrapping(a: Array, b: Array) -> Array:
    """SubFxp: modulo 2^32."""
    return _wrap(_wide(a) - _wide(b))


def subtract_saturating(a: Array, b: Array) -> Array:
    """SubFxpSat: clamped to the i32 range."""
    return _clamp(_wide(a) - _wide(b))


def multiply_low(a: Array, b: Array) -> Array:
    """MulInt: low 32 bits of the product (ALU-023)."""
    return _wrap(_wide(a) * _wide(b))


def multiply_q31(a: Array, b: Array) -> Array:
    """MulFxp: round(a * b / 2^31), ties up; MIN * MIN is MAX (ALU-023)."""
    return _clamp((_wide(a) * _wide(b) + _Q31_HALF) >> 31)


def shift_left(a: Array, b: Array) -> Array:
    """LeftShift: bits are lost at the top (ALU-022). Counts outside 0..31 are masked; callers mark them undefined."""
    return _wrap(_wide(a) << (_wide(b) & 31))


def shift_left_saturating(a: Array, b: Array) -> Array:
    """LeftShiftSat: clamp(a * 2^b)."""
    return _clamp(_wide(a) << (_wide(b) & 31))


def shift_right_logical(a: Array, b: Array) -> Array:
    """LogicRightShift: zero fill on the bit pattern."""
    return (a.astype(np.int32).view(np.uint32) >> (b.astype(np.int32).view(np.uint32) & np.uint32(31))).view(np.int32)


def shift_right_arithmetic(a: Array, b: Array) -> Array:
    """ArithRightShift: floor(a / 2^b)."""
    return (_wide(a) >> (_wide(b) & 31)).astype(np.int32)


def shift_right_rounding(a: Array, b: Array) -> Array:
    """ArithRightShiftRound: floor((a + 2^(b-1)) / 2^b), ties up (catalogue, ambiguity 15)."""
    count = _wide(b) & 31
    half = np.where(count > 0, np.int64(1) << np.maximum(count - 1, 0), np.int64(0))
    return ((_wide(a) + half) >> count).astype(np.int32)


def shift_count_is_defined(b: Array) -> npt.NDArray[np.bool_]:
    """Where a shift count lies in 0..31; elsewhere the machine defines no result (ALU-022)."""
    result: npt.NDArray[np.bool_] = (_wide(b) >= 0) & (_wide(b) <= 31)
    return result


def minimum_i32(a: Array, b: Array) -> Array:
    return np.minimum(a, b)


def maximum_i32(a: Array, b: Array) -> Array:
    return np.maximum(a, b)


def smaller_magnitude_i32(a: Array, b: Array) -> Array:
    """AbsMin: the operand of smaller magnitude with its sign, b on a tie; the magnitude of MIN is 2^31 (ALU-050)."""
    return np.where(np.abs(_wide(a)) < np.abs(_wide(b)), a, b)


def larger_magnitude_i32(a: Array, b: Array) -> Array:
    """AbsMax: the operand of larger magnitude with its sign, b on a tie."""
    return np.where(np.abs(_wide(a)) > np.abs(_wide(b)), a, b)


# --- bit patterns -----------------------------------------------------------------------------------------------------


def _bitwise(combine: Callable[[Array, Array], Array]) -> Binary:
    def apply(a: Array, b: Array) -> Array:
        return np.ascontiguousarray(combine(_bits(a), _bits(b))).view(a.dtype)

    return apply


bit_and = _bitwise(np.bitwise_and)
bit_or = _bitwise(np.bitwise_or)
bit_xor = _bitwise(np.bitwise_xor)


# --- floats -----------------------------------------------------------------------------------------------------------


def add_f32(a: Array, b: Array) -> Array:
    with np.errstate(all="ignore"):
        return np.add(a, b, dtype=np.float32)


def subtract_f32(a: Array, b: Array) -> Array:
    with np.errstate(all="ignore"):
        return np.subtract(a, b, dtype=np.float32)


def multiply_f32(a: Array, b: Array) -> Array:
    with np.errstate(all="ignore"):
        return np.multiply(a, b, dtype=np.float32)


def divide_f32(a: Array, b: Array) -> Array:
    with np.errstate(all="ignore"):
        return np.divide(a, b, dtype=np.float32)


def fused_multiply_add(a: Array, b: Array, c: Array) -> Array:
    """FmaF: a * b + c with one rounding (ALU-032).

    The product of two f32 is exact in f64. The f64 sum is forced to round to odd, so that rounding it to f32 cannot round twice.
    """
    with np.errstate(all="ignore"):
        product = a.astype(np.float64) * b.astype(np.float64)
        addend = np.broadcast_to(c.astype(np.float64), product.shape)
        total = product + addend
        virtual = total - product
        error = (product - (total - virtual)) + (addend - virtual)
        inexact = np.isfinite(total) & np.isfinite(error) & (error != 0)
        even = (np.ascontiguousarray(total).view(np.uint64) & np.uint64(1)) == 0
        odd = np.nextafter(total, np.where(error > 0, np.inf, -np.inf))
        return np.where(inexact & even, odd, total).astype(np.float32)


def minimum_f32(a: Array, b: Array) -> Array:
    """Min: a NaN operand is ignored, -0 lies below +0."""
    with np.errstate(all="ignore"):
        return np.where(a == b, np.where(np.signbit(a), a, b), np.fmin(a, b))


def maximum_f32(a: Array, b: Array) -> Array:
    """Max: a NaN operand is ignored, +0 lies above -0."""
    with np.errstate(all="ignore"):
        return np.where(a == b, np.where(np.signbit(a), b, a), np.fmax(a, b))


def smaller_magnitude_f32(a: Array, b: Array) -> Array:
    """AbsMin: the operand of smaller magnitude with its sign, b on a tie; NaN is ignored (ALU-051)."""
    with np.errstate(all="ignore"):
        return np.where((np.abs(a) < np.abs(b)) | np.isnan(b), a, b)


def larger_magnitude_f32(a: Array, b: Array) -> Array:
    """AbsMax: the operand of larger magnitude with its sign, b on a tie; NaN is ignored."""
    with np.errstate(all="ignore"):
        return np.where((np.abs(a) > np.abs(b)) | np.isnan(b), a, b)


def _in_f64(function: Callable[[npt.NDArray[np.float64]], npt.NDArray[np.float64]]) -> Unary:
    def apply(a: Array) -> Array:
        with np.errstate(all="ignore"):
            return np.asarray(function(a.astype(np.float64)), dtype=np.float64).astype(np.float32)

    return apply


exponential = _in_f64(np.exp)
negated_exponential = _in_f64(lambda x: np.exp(-x))
square_root = _in_f64(np.sqrt)
hyperbolic_tangent = _in_f64(np.tanh)
sigmoid = _in_f64(lambda x: 1.0 / (1.0 + np.exp(-x)))
error_function = _in_f64(lambda x: np.asarray(_erf(x), dtype=np.float64))
natural_logarithm = _in_f64(np.log)
sine = _in_f64(np.sin)
cosine = _in_f64(np.cos)


# --- conversions ------------------------------------------------------------------------------------------------------


def fixed_to_float(a: Array, int_width: int) -> Array:
    """vector_fxp_to_fp: x * 2^(int_width - 31), rounded to nearest even (VE-020)."""
    return (a.astype(np.float64) * 2.0 ** (int_width - 31)).astype(np.float32)


def float_to_fixed(a: Array, int_width: int) -> Array:
    """vector_fp_to_fxp: x * 2^(31 - int_width), ties away from zero, clamped; NaN gives the extreme of its sign (VE-021)."""
    with np.errstate(all="ignore"):
        scaled = a.astype(np.float64) * 2.0 ** (31 - int_width)
        rounded = np.copysign(np.floor(np.abs(scaled) + 0.5), scaled)
        extreme = np.where(np.signbit(a), float(_I32.min), float(_I32.max))
        return np.clip(np.where(np.isnan(scaled), extreme, rounded), _I32.min, _I32.max).astype(np.int32)


def reinterpret(a: Array, target: npt.DTypeLike) -> Array:
    """vector_reinterpret: the same 32 bits as another scalar (VE-022)."""
    return np.ascontiguousarray(a).view(target)


# --- tags -------------------------------------------------------------------------------------------------------------


def compare(test: str, a: Array, boundary: Array) -> npt.NDArray[np.bool_]:
    """One test of the Comparison tag mode, strict; the Unsigned pair compares raw bit patterns (TAG-003)."""
    if test in ("True", "False"):
        return np.full(a.shape, test == "True")
    if test.endswith("Unsigned"):
        a, boundary = _bits(a), _bits(boundary)
    with np.errstate(invalid="ignore"):
        if test == "Equal":
            return np.equal(a, boundary)
        return np.less(a, boundary) if test.startswith("Less") else np.greater(a, boundary)


# --- reductions -------------------------------------------------------------------------------------------------------


def tree_of_lanes(function: Binary, flits: Array) -> Array:
    """Packet path of the intra-slice reducer: op(op(p0, p1), op(p2, p3)) over the last axis (ISR-006)."""
    level = flits
    while level.shape[-1] > 1:
        level = function(level[..., 0::2], level[..., 1::2])
    return level[..., 0]


def fold(function: Binary, steps: Array, identity: np.generic) -> Array:
    """Left fold over axis 0 that starts from the identity, in time order or in ring order (ISR-011)."""
    result: Array = np.full(steps.shape[1:], identity)
    for step in steps:
        result = function(result, step)
    return result

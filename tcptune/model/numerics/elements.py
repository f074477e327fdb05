"""Bits of every element type, cast and accumulation, defined once (CE-013, CAST-008, CADAPT-017, FA-002..013).

The manual says only that elements are converted and summed. Where it is silent the recommended readings hold:

- f32 → bf16: nearest even; subnormal inputs become a zero of their sign; every NaN becomes 0x7fc0.
- f32 → f8e4m3: nearest even, gradual underflow, saturates at ±448 (infinities too); every NaN becomes 0x7f.
- f32 → f8e5m2: halves away from zero, gradual underflow, overflows to infinity; every NaN becomes 0x7e.
- i32 → i16, i8, i4: the low bits (two's complement).
- widening (integers to i32, small floats to f8, bf16, f32) is exact; NaN becomes the target's quiet NaN of the same sign.
- contraction: operands are widened, multiplied and summed in the accumulator type; i32 wraps; f32 is a balanced tree over adjacent
  elements of a packet, then one addition a packet in the order of Time, from +0.

Arrays hold one element a numpy item: i4 and i5 live sign-extended in int8, i9 in int16, small floats in their ml_dtypes type.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt

from tcptune.errors import InputError
from tcptune.ir.types import DType, dtype

Array = npt.NDArray[Any]

_NUMPY: dict[str, np.dtype[Any]] = {
    "i4": np.dtype(np.int8),
    "i5": np.dtype(np.int8),
    "i8": np.dtype(np.int8),
    "i9": np.dtype(np.int16),
    "i16": np.dtype(np.int16),
    "i32": np.dtype(np.int32),
    "f4e2m1": np.dtype(ml_dtypes.float4_e2m1fn),
    "f8e4m3": np.dtype(ml_dtypes.float8_e4m3fn),
    "f8e5m2": np.dtype(ml_dtypes.float8_e5m2),
    "bf16": np.dtype(ml_dtypes.bfloat16),
    "f16": np.dtype(np.float16),
    "f32": np.dtype(np.float32),
}

_UNSIGNED: dict[int, np.dtype[Any]] = {1: np.dtype(np.uint8), 2: np.dtype(np.uint16), 4: np.dtype(np.uint32)}

_QUIET_NAN_BITS: dict[str, int] = {"f8e4m3": 0x7F, "f8e5m2": 0x7E, "bf16": 0x7FC0, "f32": 0x7FC00000}

_LARGEST_FINITE: dict[str, float] = {"f4e2m1": 6.0, "f8e4m3": 448.0}
"""Of the types without an infinity."""

_PACKING_BITS: dict[str, int] = {"i5": 4, "i9": 8}
"""Width that counts when packets and reads are sized; the types of zero-point residuals count as their source (A-03, A-18)."""

STAGING_TYPES: frozenset[str] = frozenset(_PACKING_BITS)
"""Types of zero-point residuals: they exist between the Fetch Adapter and the multipliers only (FA-014)."""


def numpy_dtype(element: DType | str) -> np.dtype[Any]:
    """numpy type of one element in value arrays."""
    return _NUMPY[dtype(element).name]


def packing_bits(element: DType) -> int:
    """Bits an element takes in a flit or register-file read; i5 counts 4 and i9 counts 8 (OUTER-004, OUTER-016)."""
    return _PACKING_BITS.get(element.name, element.bits)


def accumulator(element: DType) -> DType | None:
    """Type in which a contraction multiplies and sums this element; None where there is no multiplier (OUTER-023, CE-014)."""
    if element.name in ("i4", "i5", "i8", "i9"):
        return dtype("i32")
    if element.name in ("f8e4m3", "f8e5m2", "bf16"):
        return dtype("f32")
    return None


def to_bits(array: Array, element: DType | str) -> Array:
    """Bit patterns, as the unsigned type of the storage; integers narrower than it are masked to their width."""
    d = dtype(element)
    raw = np.ascontiguousarray(array, dtype=numpy_dtype(d)).view(_UNSIGNED[numpy_dtype(d).itemsize])
    if d.is_float or d.bits == 8 * raw.dtype.itemsize:
        return np.asarray(raw)
    return np.asarray(raw & raw.dtype.type((1 << d.bits) - 1))


def from_bits(bits: Array, element: DType | str) -> Array:
    """Elements with these bit patterns; only the low `bits` of the type count, integers are sign-extended."""
    d = dtype(element)
    storage = numpy_dtype(d)
    if d.is_float:
        return np.asarray(np.asarray(bits).astype(_UNSIGNED[storage.itemsize]).view(storage))
    return wrap(np.asarray(bits), d)


def wrap(array: Array, element: DType | str) -> Array:
    """Integers reduced to the type's two's-complement range, as its numpy type."""
    d = dtype(element)
    wide = np.asarray(array).astype(np.int64)
    half = np.int64(1) << np.int64(d.bits - 1)
    return (((wide + half) & (2 * half - 1)) - half).astype(numpy_dtype(d))


def integer_range(element: DType | str) -> tuple[int, int]:
    """Smallest and largest value of an integer type."""
    d = dtype(element)
    return -(1 << (d.bits - 1)), (1 << (d.bits - 1)) - 1


def certain_terms(stream: DType | str, residual: int | None = None) -> int:
    """Number of products of two elements that certainly fit an i32 sum (CE-013).

    Args:
        stream: an integer operand type; both operands are taken from its family.
        residual: largest magnitude of an operand; by default that of the values that occur (i5: 15 and i9: 255 are the widest residuals).
    """
    d = dtype(stream)
    widest = residual if residual is not None else {"i5": 15, "i9": 255}.get(d.name, 1 << (d.bits - 1))
    return int(((1 << 31) - 1) // (widest * widest))


def convert(array: Array, src: DType | str, dst: DType | str) -> Array:
    """Elements of type `src` converted to `dst`, bit for bit as the machine does it.

    Raises:
        InputError: the machine has no such conversion.
    """
    source, target = dtype(src), dtype(dst)
    values = np.asarray(array, dtype=numpy_dtype(source))
    if source == target:
        return values
    rule = _conversion(source, target)
    contiguous = np.ascontiguousarray(values)
    if source.is_float and source.bits <= 8:
        return np.take(conversion_table(source, target), contiguous.view(np.uint8)).reshape(values.shape)
    with np.errstate(invalid="ignore", over="ignore"):
        return rule(contiguous).reshape(values.shape)


@cache
def conversion_table(src: DType, dst: DType) -> Array:
    """Result of every bit pattern of `src` (at most 16 bits wide), indexed by the pattern."""
    if src.bits > 16:
        raise ValueError(f"{src} has too many bit patterns for a table")
    patterns = np.arange(1 << src.bits, dtype=np.uint32)
    with np.errstate(invalid="ignore"):
        table = _conversion(src, dst)(from_bits(patterns, src))
    table.setflags(write=False)
    return table


def bf16_relu(array: Array) -> Array:
    """f32 → bf16 with ReLU (CADAPT-010, CADAPT-017): NaN stays 0x7fc0, anything else with the sign bit set becomes +0."""
    shape = np.shape(array)
    values = np.ascontiguousarray(array, dtype=np.float32)
    with np.errstate(invalid="ignore"):
        bits = _f32_to_bf16(values).view(np.uint16)
    bits[np.signbit(values) & ~np.isnan(values)] = 0
    return np.asarray(bits.view(ml_dtypes.bfloat16).reshape(shape))


def encode_host(values: Array, element: DType | str) -> Array:
    """Numbers written by the host: integers wrap, floats round to nearest even; f8e4m3 saturates because it has no infinity."""
    d = dtype(element)
    numbers = np.asarray(values)
    if not d.is_float:
        return wrap(numbers, d)
    if d.name in ("f4e2m1", "f8e4m3"):
        largest = _LARGEST_FINITE[d.name]
        numbers = np.clip(numbers.astype(np.float64), -largest, largest)
    return numbers.astype(numpy_dtype(d))


# --- accumulation -----------------------------------------------------------------------------------------------------------------


def tree_sum(products: Array, axis: int = 0) -> Array:
    """Balanced sum over adjacent elements of `axis` (a power of two long), in the array's own type; i32 wraps (PACKETRED-003)."""
    total = np.moveaxis(products, axis, 0)
    if total.shape[0] & (total.shape[0] - 1):
        raise ValueError(f"a tree adds a power of two of elements, got {total.shape[0]}")
    while total.shape[0] > 1:
        total = total[0::2] + total[1::2]
    return np.asarray(total[0])


def time_sum(terms: Array, axis: int = 0) -> Array:
    """Sum along `axis` one after the other from +0, in the array's own type; i32 wraps (TIMERED-005)."""
    steps = np.moveaxis(terms, axis, 0)
    total = np.zeros(steps.shape[1:], dtype=terms.dtype)
    for term in steps:
        total += term
    return total


# --- the conversions --------------------------------------------------------------------------------------------------------------


def _f32_to_bf16(values: Array) -> Array:
    rounded = values.astype(ml_dtypes.bfloat16).view(np.uint16)
    subnormal_or_zero = (values.view(np.uint32) & np.uint32(0x7F800000)) == 0
    if subnormal_or_zero.any():
        rounded[subnormal_or_zero] = np.where(np.signbit(values[subnormal_or_zero]), np.uint16(0x8000), np.uint16(0))
    nan = np.isnan(values)
    if nan.any():
        rounded[nan] = _QUIET_NAN_BITS["bf16"]
    return rounded.view(ml_dtypes.bfloat16)


def _bf16_to_f32(values: Array) -> Array:
    return values.astype(np.float32)


def _f32_to_f8e4m3(values: Array) -> Array:
    largest = np.float32(_LARGEST_FINITE["f8e4m3"])
    nan = np.isnan(values)
    out = np.clip(values, -largest, largest).astype(ml_dtypes.float8_e4m3fn)
    bits = out.view(np.uint8)
    bits[nan] = _QUIET_NAN_BITS["f8e4m3"]
    return bits.view(ml_dtypes.float8_e4m3fn)


def _f32_to_f8e5m2(values: Array) -> Array:
    magnitude = values.view(np.uint32) & np.uint32(0x7FFFFFFF)
    dropped_bits, rebias, infinity, smallest_normal = 21, (127 - 15) << 2, 0x7C, np.uint32((127 - 14) << 23)
    normal = ((magnitude + np.uint32(1 << (dropped_bits - 1))) >> np.uint32(dropped_bits)).astype(np.int64) - rebias
    subnormal = np.floor(np.abs(values.astype(np.float64)) * 2.0**16 + 0.5, where=magnitude < smallest_normal, out=np.zeros(values.shape))
    code = np.where(magnitude < smallest_normal, subnormal.astype(np.int64), np.minimum(normal, infinity))
    code |= np.where(np.signbit(values), 0x80, 0)
    code[np.isnan(values)] = _QUIET_NAN_BITS["f8e5m2"]
    return code.astype(np.uint8).view(ml_dtypes.float8_e5m2)


def _widen_float(target: str) -> Callable[[Array], Array]:
    """Exact widening; NaN becomes the target's quiet NaN of the same sign."""

    def widen(values: Array) -> Array:
        wide = values.astype(np.float32)
        bits = wide.astype(numpy_dtype(target)).view(_UNSIGNED[numpy_dtype(target).itemsize])
        nan = np.isnan(wide)
        sign = bits.dtype.type(1 << (8 * bits.dtype.itemsize - 1))
        bits[nan] = bits.dtype.type(_QUIET_NAN_BITS[target]) | np.where(np.signbit(wide[nan]), sign, bits.dtype.type(0))
        return np.asarray(bits.view(numpy_dtype(target)))

    return widen


def _narrow_integer(target: str) -> Callable[[Array], Array]:
    return lambda values: wrap(values, target)


def _widen_integer(target: str) -> Callable[[Array], Array]:
    return lambda values: np.asarray(values.astype(numpy_dtype(target)))


_CONVERSIONS: dict[tuple[str, str], Callable[[Array], Array]] = {
    **{(s, "i32"): _widen_integer("i32") for s in ("i4", "i5", "i8", "i9", "i16")},  # FA-007, OUTER-024
    **{("i32", t): _narrow_integer(t) for t in ("i4", "i8", "i16")},  # CAST-003
    **{("f4e2m1", t): _widen_float(t) for t in ("f8e4m3", "f8e5m2")},  # FA-002
    **{(s, t): _widen_float(t) for s in ("f8e4m3", "f8e5m2") for t in ("bf16", "f32")},  # FA-002, FA-007
    ("bf16", "f32"): _bf16_to_f32,  # FA-007, OUTER-024
    ("f32", "bf16"): _f32_to_bf16,  # FA-007, CAST-003, CADAPT-009
    ("f32", "f8e4m3"): _f32_to_f8e4m3,  # CAST-003
    ("f32", "f8e5m2"): _f32_to_f8e5m2,  # CAST-003
}


def _conversion(source: DType, target: DType) -> Callable[[Array], Array]:
    try:
        return _CONVERSIONS[source.name, target.name]
    except KeyError:
        raise InputError(f"the machine has no conversion from {source} to {target}") from None

"""Conversions and accumulations bit for bit, against the definition of the formats and against ml_dtypes."""

from __future__ import annotations

import itertools
from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest

from tcptune.errors import InputError
from tcptune.ir.types import dtype
from tcptune.model.numerics.elements import (
    accumulator,
    bf16_relu,
    certain_terms,
    conversion_table,
    convert,
    encode_host,
    from_bits,
    integer_range,
    numpy_dtype,
    packing_bits,
    time_sum,
    to_bits,
    tree_sum,
    wrap,
)
from tests.reference.numbers import FORMATS, NAN_PATTERN, narrow_f32, widen, wrapped

WIDENING = [("f4e2m1", "f8e4m3"), ("f4e2m1", "f8e5m2"), *itertools.product(("f8e4m3", "f8e5m2"), ("bf16", "f32"))]
NARROW_FLOATS = ("bf16", "f8e4m3", "f8e5m2")
LOW_HALVES = (0x0000, 0x0001, 0x7FFF, 0x8000, 0x8001, 0xC000, 0xFFFF)
"""Lower halves of f32 patterns around the bits where every narrow float rounds."""


def f32_patterns(upper_step: int = 1) -> np.ndarray:
    """f32 patterns that cover every exponent, sign and the rounding positions of all narrow floats."""
    upper = np.arange(0, 1 << 16, upper_step, dtype=np.uint32) << 16
    return (upper[:, None] | np.array(LOW_HALVES, np.uint32)).ravel()


def by_ml_dtypes(patterns: np.ndarray, target: type) -> np.ndarray:
    """Patterns that ml_dtypes rounds f32 patterns to."""
    with np.errstate(invalid="ignore"):
        rounded = patterns.view(np.float32).astype(target)
    return rounded.view(f"u{rounded.itemsize}")


def converted_bits(patterns: np.ndarray, source: str, target: str) -> np.ndarray:
    return to_bits(convert(from_bits(patterns, source), source, target), target)


@pytest.mark.parametrize(("source", "target"), WIDENING)
def test_every_pattern_of_a_small_float_widens_exactly(source: str, target: str) -> None:
    patterns = np.arange(1 << FORMATS[source].bits)
    want = [widen(int(p), source, target) for p in patterns]
    assert converted_bits(patterns, source, target).tolist() == want


def test_every_bf16_pattern_widens_to_the_upper_half_of_f32() -> None:
    patterns = np.arange(1 << 16, dtype=np.uint32)
    assert (converted_bits(patterns, "bf16", "f32") == patterns << 16).all()


@pytest.mark.parametrize("target", NARROW_FLOATS)
def test_narrowing_rounds_to_the_pattern_that_the_definition_gives(target: str) -> None:
    patterns = f32_patterns(upper_step=37)
    want = [narrow_f32(int(p), target) for p in patterns]
    assert converted_bits(patterns, "f32", target).tolist() == want


@pytest.mark.parametrize("target", NARROW_FLOATS)
def test_every_pattern_of_a_narrow_float_survives_the_way_through_f32(target: str) -> None:
    patterns = np.arange(1 << FORMATS[target].bits)
    back = converted_bits(converted_bits(patterns, target, "f32"), "f32", target)
    values = [FORMATS[target].value(int(p)) for p in patterns]
    subnormal = [target == "bf16" and p & 0x7F80 == 0 for p in patterns]
    for pattern, got, value, flushed in zip(patterns, back, values, subnormal, strict=True):
        want = NAN_PATTERN[target] if value == "nan" else pattern & 0x8000 if flushed else pattern
        assert got == want, hex(pattern)


@pytest.mark.parametrize(
    ("number", "bits"),
    [(1.0, 0x3C), (1.125, 0x3D), (1.374, 0x3D), (1.375, 0x3E), (-1.125, 0xBD), (57344, 0x7B), (61439, 0x7B), (61440, 0x7C), (2.0**-17, 1)],
)
def test_f8e5m2_rounds_halves_away_from_zero_and_overflows_to_infinity(number: float, bits: int) -> None:
    assert int(to_bits(convert(np.float32(number), "f32", "f8e5m2"), "f8e5m2").item()) == bits


@pytest.mark.parametrize(
    ("number", "bits"), [(448, 0x7E), (464, 0x7E), (1e30, 0x7E), (-np.inf, 0xFE), (np.nan, 0x7F), (1.0625, 0x38), (1.1875, 0x3A)]
)
def test_f8e4m3_rounds_to_even_and_saturates(number: float, bits: int) -> None:
    assert int(to_bits(convert(np.float32(number), "f32", "f8e4m3"), "f8e4m3").item()) == bits


def test_differences_from_ml_dtypes_when_rounding_to_bf16_are_subnormals_and_nan_patterns() -> None:
    patterns = f32_patterns()
    ours = converted_bits(patterns, "f32", "bf16")
    theirs = by_ml_dtypes(patterns, ml_dtypes.bfloat16)
    differ = patterns[ours != theirs]
    exponent, mantissa = differ >> 23 & 0xFF, differ & 0x7FFFFF
    assert (((exponent == 0) & (mantissa != 0)) | ((exponent == 0xFF) & (mantissa != 0))).all()
    assert differ.size > 0


def test_differences_from_ml_dtypes_when_rounding_to_f8e4m3_are_values_beyond_the_range_and_nan() -> None:
    patterns = f32_patterns()
    values = patterns.view(np.float32)
    theirs = by_ml_dtypes(patterns, ml_dtypes.float8_e4m3fn)
    differ = values[converted_bits(patterns, "f32", "f8e4m3") != theirs]
    assert (np.isnan(differ) | (np.abs(differ) > 464)).all()
    assert np.abs(differ[~np.isnan(differ)]).min() > 464


def test_differences_from_ml_dtypes_when_rounding_to_f8e5m2_are_ties_to_an_even_pattern_and_nan() -> None:
    patterns = f32_patterns()
    values = patterns.view(np.float32)
    ours = converted_bits(patterns, "f32", "f8e5m2")
    theirs = by_ml_dtypes(patterns, ml_dtypes.float8_e5m2)
    different = (ours != theirs) & ~np.isnan(values)
    for value, away, even in zip(values[different], ours[different], theirs[different], strict=True):
        assert int(away) == int(even) + 1
        low = Fraction(FORMATS["f8e5m2"].value(int(even) & 0x7F))  # type: ignore[arg-type]
        beyond = FORMATS["f8e5m2"].value(int(away) & 0x7F)
        high = Fraction(65536) if beyond == "inf" else Fraction(beyond)  # type: ignore[arg-type]
        assert 2 * abs(Fraction(float(value))) == low + high


@pytest.mark.parametrize("target", ["i4", "i8", "i16"])
def test_narrowing_an_integer_keeps_its_low_bits(target: str) -> None:
    bits = dtype(target).bits
    near = [s * (1 << n) + d for n in range(31) for s in (1, -1) for d in (-1, 0, 1)]
    numbers = np.array([n for n in near if -(1 << 31) <= n < 1 << 31], np.int32)
    assert convert(numbers, "i32", target).tolist() == [wrapped(int(n), bits) for n in numbers]


@pytest.mark.parametrize("source", ["i4", "i5", "i8", "i9", "i16"])
def test_integers_widen_to_themselves(source: str) -> None:
    low, high = integer_range(source)
    numbers = np.arange(low, high + 1)
    assert convert(numbers.astype(numpy_dtype(source)), source, "i32").tolist() == numbers.tolist()


@pytest.mark.parametrize("name", ["i4", "i5", "i8", "i9", "i16", "f4e2m1", "f8e4m3", "f8e5m2", "bf16"])
def test_bit_patterns_and_elements_are_one_to_one(name: str) -> None:
    patterns = np.arange(1 << dtype(name).bits)
    assert to_bits(from_bits(patterns, name), name).tolist() == patterns.tolist()


def test_integer_patterns_are_twos_complement() -> None:
    assert from_bits(np.arange(16), "i4").tolist() == [0, 1, 2, 3, 4, 5, 6, 7, -8, -7, -6, -5, -4, -3, -2, -1]
    assert wrap(np.array([8, -9, 16, 255]), "i4").tolist() == [-8, 7, 0, -1]


def test_relu_clears_everything_with_the_sign_bit_but_nan() -> None:
    numbers = np.array([-5.0, -0.1, 0.0, -0.0, 3.7, -np.inf, np.inf, np.nan, -np.nan], np.float32)
    assert to_bits(bf16_relu(numbers), "bf16").tolist() == [0, 0, 0, 0, 0x406D, 0, 0x7F80, 0x7FC0, 0x7FC0]


def test_relu_agrees_with_clamping_the_rounded_value_on_every_sign_and_exponent() -> None:
    numbers = f32_patterns().view(np.float32)
    numbers = numbers[~np.isnan(numbers)]
    plain = convert(numbers, "f32", "bf16").astype(np.float32)
    assert (bf16_relu(numbers).astype(np.float32) == np.maximum(plain, 0)).all()


def test_shapes_and_strided_views_are_kept() -> None:
    grid = np.linspace(-4, 4, 24, dtype=np.float32).reshape(2, 3, 4)
    turned = convert(grid.transpose(2, 0, 1), "f32", "bf16")
    assert turned.shape == (4, 2, 3)
    assert (turned == convert(grid, "f32", "bf16").transpose(2, 0, 1)).all()
    assert convert(np.float32(1.5), "f32", "bf16").shape == ()
    assert convert(convert(grid, "f32", "f8e4m3")[:, ::2], "f8e4m3", "f32").shape == (2, 2, 4)


def test_a_type_converts_to_itself_unchanged() -> None:
    numbers = np.array([1, -1], np.int8)
    assert convert(numbers, "i8", "i8") is numbers


@pytest.mark.parametrize(("source", "target"), [("i32", "f32"), ("f32", "i32"), ("bf16", "f8e4m3"), ("f32", "f4e2m1"), ("i8", "i16")])
def test_conversions_that_no_engine_has_are_refused(source: str, target: str) -> None:
    with pytest.raises(InputError, match="no conversion"):
        convert(np.zeros(1), source, target)


def test_a_table_is_shared_and_cannot_be_written() -> None:
    table = conversion_table(dtype("f8e4m3"), dtype("bf16"))
    assert table is conversion_table(dtype("f8e4m3"), dtype("bf16"))
    with pytest.raises(ValueError, match="read-only"):
        table[0] = 1


def test_the_host_wraps_integers_and_rounds_floats_to_even() -> None:
    assert encode_host(np.array([130, -129, 5]), "i8").tolist() == [-126, 127, 5]
    assert to_bits(encode_host(np.array([1.00390625, 1.01171875]), "bf16"), "bf16").tolist() == [0x3F80, 0x3F82]
    assert encode_host(np.array([1000.0, -1000.0]), "f8e4m3").astype(np.float32).tolist() == [448.0, -448.0]


@pytest.mark.parametrize(("name", "terms"), [("i4", 33_554_431), ("i5", 9_544_371), ("i8", 131_071), ("i9", 33_025)])
def test_terms_that_certainly_fit_an_i32_sum(name: str, terms: int) -> None:
    assert certain_terms(name) == terms


def test_residuals_are_packed_in_the_width_of_their_source() -> None:
    assert [packing_bits(dtype(n)) for n in ("i4", "i5", "i8", "i9", "bf16")] == [4, 4, 8, 8, 16]


def test_accumulators() -> None:
    assert {n: a.name if (a := accumulator(dtype(n))) else None for n in ("i4", "i9", "f8e5m2", "bf16", "i16", "f32", "f4e2m1")} == {
        "i4": "i32", "i9": "i32", "f8e5m2": "f32", "bf16": "f32", "i16": None, "f32": None, "f4e2m1": None
    }  # fmt: skip


def test_a_tree_adds_neighbours_first() -> None:
    big, small = np.float32(2**24), np.float32(1)
    assert tree_sum(np.array([big, small, small, small])) == (big + small) + (small + small)
    assert time_sum(np.array([big, small, small, small])) == big
    assert tree_sum(np.array([big, small, small, small])) == np.float32(2**24 + 2)


def test_a_tree_along_another_axis_is_the_same_tree() -> None:
    terms = np.random.default_rng(0).normal(size=(3, 8)).astype(np.float32)
    assert (tree_sum(terms, axis=1) == tree_sum(terms.T, axis=0)).all()


def test_integer_sums_wrap() -> None:
    terms = np.array([2**31 - 1, 1, 0, 0], np.int32)
    assert tree_sum(terms) == -(2**31)
    assert time_sum(terms) == -(2**31)


def test_a_sum_starts_at_plus_zero() -> None:
    assert not np.signbit(time_sum(np.array([-0.0, -0.0], np.float32)))


def test_a_tree_of_an_odd_number_is_refused() -> None:
    with pytest.raises(ValueError, match="power of two"):
        tree_sum(np.zeros(3, np.float32))

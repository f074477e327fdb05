"""Element types by their definition: bit patterns as exact fractions, and rounding by comparing with the neighbours."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cache

NAN = "nan"


@dataclass(frozen=True)
class FloatFormat:
    """A binary float: 1 sign bit, `exponent` bits with `bias`, `mantissa` bits.

    `infinities`: whether the top exponent means infinity and NaN (IEEE); otherwise only its last pattern is NaN (f8e4m3) or none (f4e2m1).
    """

    exponent: int
    mantissa: int
    bias: int
    infinities: bool
    nan_patterns: bool = True

    @property
    def bits(self) -> int:
        return 1 + self.exponent + self.mantissa

    def value(self, pattern: int) -> Fraction | str:
        """Exact value of a pattern: a fraction, ``nan``, ``inf`` or ``-inf`` (the sign of zero is lost)."""
        sign = -1 if pattern >> (self.bits - 1) else 1
        exponent = pattern >> self.mantissa & ((1 << self.exponent) - 1)
        mantissa = pattern & ((1 << self.mantissa) - 1)
        top = exponent == (1 << self.exponent) - 1
        if self.infinities and top:
            return NAN if mantissa else ("inf" if sign > 0 else "-inf")
        if self.nan_patterns and not self.infinities and top and mantissa == (1 << self.mantissa) - 1:
            return NAN
        scale = Fraction(2) ** (max(exponent, 1) - self.bias - self.mantissa)
        return sign * (mantissa + (1 << self.mantissa if exponent else 0)) * scale

    @cache  # noqa: B019
    def magnitudes(self) -> list[tuple[Fraction, int]]:
        """(value, pattern) of all finite values that are not negative, ascending."""
        found = [(self.value(p), p) for p in range(1 << (self.bits - 1))]
        return [(v, p) for v, p in found if isinstance(v, Fraction | int)]


FORMATS = {
    "f4e2m1": FloatFormat(2, 1, 1, infinities=False, nan_patterns=False),
    "f8e4m3": FloatFormat(4, 3, 7, infinities=False),
    "f8e5m2": FloatFormat(5, 2, 15, infinities=True),
    "bf16": FloatFormat(8, 7, 127, infinities=True),
    "f32": FloatFormat(8, 23, 127, infinities=True),
}

NAN_PATTERN = {"f8e4m3": 0x7F, "f8e5m2": 0x7E, "bf16": 0x7FC0}


def narrow_f32(pattern: int, target: str) -> int:
    """Pattern of `target` that the recommended readings give for an f32 pattern (CAST-008)."""
    form = FORMATS[target]
    value = FORMATS["f32"].value(pattern)
    sign = pattern >> 31 << (form.bits - 1)
    if value == NAN:
        return NAN_PATTERN[target]
    if target == "bf16" and not pattern >> 23 & 0xFF:
        return sign
    if value in ("inf", "-inf"):
        return sign | (form.magnitudes()[-1][1] if target == "f8e4m3" else form.magnitudes()[-1][1] + 1)
    assert isinstance(value, Fraction | int)
    return sign | _nearest(abs(value), target)


def _nearest(magnitude: Fraction, target: str) -> int:
    values = FORMATS[target].magnitudes()
    largest, last = values[-1]
    if magnitude >= largest:
        if target == "f8e4m3":
            return last
        beyond = largest + (largest - values[-2][0])
        half = (largest + beyond) / 2
        return last if magnitude < half else last + 1
    low, high = 0, len(values) - 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if values[middle][0] <= magnitude else (low, middle)
    below, above = magnitude - values[low][0], values[high][0] - magnitude
    if below != above:
        return values[low if below < above else high][1]
    ties_away = target == "f8e5m2"
    return values[high][1] if ties_away or values[low][1] & 1 else values[low][1]


def widen(pattern: int, source: str, target: str) -> int:
    """Pattern of the same value in a wider format; NaN becomes quiet and keeps its sign."""
    form, wide = FORMATS[source], FORMATS[target]
    value = form.value(pattern)
    sign = pattern >> (form.bits - 1) << (wide.bits - 1)
    quiet = {"f32": 0x7FC00000, **NAN_PATTERN}[target]
    if value == NAN:
        return sign | quiet
    if value in ("inf", "-inf"):
        return sign | (((1 << wide.exponent) - 1) << wide.mantissa)
    magnitude = abs(Fraction(value))  # type: ignore[arg-type]
    if magnitude == 0:
        return sign
    exponent = magnitude.numerator.bit_length() - magnitude.denominator.bit_length()
    exponent -= magnitude < Fraction(2) ** exponent
    exponent = max(exponent, 1 - wide.bias)
    mantissa = magnitude / Fraction(2) ** exponent * (1 << wide.mantissa)
    assert mantissa.denominator == 1
    return sign | (exponent + wide.bias - 1 << wide.mantissa) + mantissa.numerator


def wrapped(value: int, bits: int) -> int:
    """Two's complement of `bits` bits."""
    value &= (1 << bits) - 1
    return value - (1 << bits) if value >> (bits - 1) else value

"""Positions of a mapping as mixed-radix digits: which part of which axis every place of the position carries (VCG-002).

``[X, R # 48 / 2 % 4]`` with X = 64 has the digits X (weight 1, extent 64, place 4) and R (weight 2, extent 4, place 1): its position is
``4 * x + r`` and holds X = x and R = 2 * r. Nothing is enumerated; a mapping whose positions are no such sum has no digits. Positions that
only pad a part (the last six of ``R % 2 # 8``) belong to no digit, those that pad a whole axis (``R # 48``) do: the normal form of
`ir.mappings.normal_form` keeps both as guards, the Vector Engine tells them apart.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import lru_cache

from tcptune.ir.mappings.algebra_terms import opened_factors
from tcptune.ir.mappings.mapping import Broadcast, Mapping, Modulo, Padding, Resize, Stride, Symbol, factors, pair


@dataclass(frozen=True, slots=True)
class PlacedDigit:
    """One digit of a position.

    Attributes:
        axis: the axis it belongs to; None for equal positions (a broadcast).
        axis_size: coordinates of that axis.
        weight: coordinate step of one count.
        extent: counts, padding of the axis included.
        place: position step of one count.
    """

    axis: str | None
    axis_size: int
    weight: int
    extent: int
    place: int

    @property
    def span(self) -> int:
        """First coordinate step above the digit."""
        return self.weight * self.extent

    @property
    def is_top(self) -> bool:
        """Whether the digit reaches the end of its axis."""
        return self.span >= self.axis_size


Digits = tuple[PlacedDigit, ...]


@lru_cache(maxsize=4096)
def position_digits(m: Mapping) -> Digits | None:
    """Digits of the position, major first, without digits of extent 1; None where positions are no sum of digits."""
    found: list[PlacedDigit] = []
    place = 1
    for factor in reversed(factors(m)):
        digits = _factor_digits(factor)
        if digits is None:
            return None
        found = [replace(d, place=d.place * place) for d in digits] + found
        place *= factor.size
    return tuple(d for d in found if d.extent > 1)


def _factor_digits(m: Mapping) -> Digits | None:
    if isinstance(m, Symbol):
        return (PlacedDigit(m.name, m.size, 1, m.size, 1),)
    if isinstance(m, Broadcast):
        return (PlacedDigit(None, 1, 1, m.size, 1),)
    if isinstance(m, Padding):
        inner = position_digits(m.inner)
        if inner and len(inner) == 1 and _is_whole_axis(m.inner):
            return (replace(inner[0], extent=m.n),)
        if inner == () and isinstance(m.inner, Symbol):
            return (PlacedDigit(m.inner.name, m.inner.size, 1, m.n, 1),)
        return inner
    if isinstance(m, Resize):
        return _cut(position_digits(m.inner), 1, m.n)
    if isinstance(m, Stride):
        return _cut(position_digits(m.inner), m.n, m.inner.size)
    if isinstance(m, Modulo):
        return _cut(position_digits(m.inner), 1, m.n)
    return position_digits(m)


def _is_whole_axis(m: Mapping) -> bool:
    while isinstance(m, Padding):
        m = m.inner
    return isinstance(m, Symbol)


def _cut(digits: Digits | None, low: int, high: int) -> Digits | None:
    """The part of a position that lies at places `low` to `high`, its places counted from `low`."""
    if digits is None:
        return None
    kept = []
    for digit in digits:
        first, last = digit.place, digit.place * digit.extent
        start, end = max(first, low), min(last, high)
        if start >= end:
            continue
        if start % first or end % start:
            return None
        kept.append(replace(digit, weight=digit.weight * (start // first), extent=end // start, place=start // low))
        if start % low:
            return None
    return tuple(kept)


def joined_digits(digits: Iterable[PlacedDigit]) -> Digits:
    """Digits of which none counts on where the one before it ends: ``R / 2 % 4, R % 2`` is the one digit ``R % 8``."""
    found: list[PlacedDigit] = []
    for digit in digits:
        major = found[-1] if found else None
        if major is not None and (major.axis, major.weight, major.place) == (digit.axis, digit.span, digit.place * digit.extent):
            found[-1] = replace(digit, extent=major.extent * digit.extent)
        else:
            found.append(digit)
    return tuple(found)


def split_digits(digits: Iterable[PlacedDigit], others: Iterable[PlacedDigit]) -> Digits | None:
    """`digits` cut at every boundary that `others` have on the same axis; None where a boundary falls between two counts."""
    edges: dict[str | None, set[int]] = {}
    for other in others:
        if other.axis is not None:
            edges.setdefault(other.axis, set()).update(e for e in (other.weight, other.span) if e < other.axis_size)
    found: list[PlacedDigit] = []
    for digit in digits:
        cuts = sorted(e for e in edges.get(digit.axis, ()) if digit.weight < e < digit.span)
        pieces: list[PlacedDigit] = []
        weight, place = digit.weight, digit.place
        for edge in [*cuts, digit.span]:
            if edge % weight:
                return None
            extent = edge // weight
            pieces.append(replace(digit, weight=weight, extent=extent, place=place))
            weight, place = edge, place * extent
        found += reversed(pieces)
    return tuple(found)


def spread_factors(m: Mapping) -> tuple[Mapping, ...]:
    """Factors, major first, groups opened where digits allow, with padding of a pair moved to its outermost factor.

    ``[A, B] # 24`` with B = 6 is ``A # 4, B``, and ``[A, B] / 6, [A, B] % 6`` is ``A, B``.
    """
    found: list[Mapping] = []
    for factor in opened_factors(m):
        inner = factors(factor.inner) if isinstance(factor, Padding) else ()
        behind = pair(*inner[1:]).size if inner else 1
        if isinstance(factor, Padding) and len(inner) > 1 and factor.n % behind == 0:
            found += [*spread_factors(inner[0].pad(factor.n // behind, kind=factor.kind)), *spread_factors(pair(*inner[1:]))]
        else:
            found.append(factor)
    return tuple(found)


def without_axis(m: Mapping, axis: str) -> Mapping | None:
    """The pair list without the factors of `axis`, the others in their order; None where a factor holds another axis as well."""
    kept = []
    for factor in spread_factors(m):
        if axis not in factor.axes:
            kept.append(factor)
        elif len(factor.axes) > 1:
            return None
    return pair(*kept)

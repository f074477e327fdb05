"""Taking one axis out of a mapping: where an index mapping sits in a source, and the tile views made from it (MAP-023 to MAP-026).

All symbolic: a source is split into factors, never into positions.
"""

from __future__ import annotations

from math import prod

from tcptune.errors import RuleViolation
from tcptune.ir.mappings.mapping import Mapping, PadKind, broadcast, pair

_ALSO = ("KERNEL-022", "MAP-023")

Split = tuple[list[Mapping], list[Mapping]]
"""Factors before and after the index mapping, major first."""


def split_out(source: Mapping, index: Mapping) -> list[Split]:
    """Ways to write `source` as ``(before…, index, after…)``; an axis (or digit) of one position stands anywhere."""
    terms = source.terms()
    if index.size == 1:
        return [([], terms)] if index.axes and index.axes.keys() <= source.axes.keys() else []
    found: list[Split] = []
    for i in range(len(terms)):
        for end in range(i + 1, len(terms) + 1):
            size = positions(terms[i:end])
            if size == index.size and pair(*terms[i:end]).equivalent(index):
                found.append((terms[:i], terms[end:]))
            if size >= index.size:
                break
    for i, term in enumerate(terms):
        if term.size % index.size or term.size == index.size:
            continue
        for inner in _divisors(term.size // index.size):
            digit = term.stride(inner).modulo(index.size) if inner > 1 else term.modulo(index.size)
            if digit.equivalent(index):
                before = [*terms[:i], term.stride(inner * index.size)]
                after = [*([term.modulo(inner)] if inner > 1 else []), *terms[i + 1 :]]
                found.append((before, after))
    return found


def _divisors(n: int) -> list[int]:
    small = [d for d in range(1, int(n**0.5) + 1) if n % d == 0]
    return sorted({*small, *(n // d for d in small)})


def positions(factors: list[Mapping]) -> int:
    """Number of positions of a list of factors."""
    return prod(m.size for m in factors)


def _window(index: Mapping, length: int, kind: PadKind) -> Mapping:
    """The index mapping shortened to `length` positions, its footprint kept as padding."""
    if length == index.size:
        return index
    return (broadcast(1) if length == 1 else index.resize(length)).pad(index.size, kind)


def tile_stride(source: Mapping, index: Mapping, length: int, view: Mapping, mutable: bool) -> int:
    """Positions of `source` between neighbouring coordinates of `index`, for a legal tile.

    Raises:
        RuleViolation: MAP-023 if `index` is no part of `source` or `view` is not the split; MAP-024 for the wrong kind of hole;
            MAP-025 for a length beyond the index mapping.
    """
    ways = split_out(source, index)
    if not ways:
        raise RuleViolation("MAP-023", f"{index} is not a part of {source}", expected=f"a factor of {source}", got=index, also=_ALSO)
    if not 1 <= length <= index.size:
        raise RuleViolation("MAP-025", f"a tile of {length} positions of {index}", expected=f"1 to {index.size}", got=length, also=_ALSO)
    kind = PadKind.BOTTOM if mutable else PadKind.TOP
    others = [other for other in PadKind if other is not kind]
    expected: Mapping | None = None
    for before, after in ways:
        candidate = pair(*before, _window(index, length, kind), *after)
        if candidate.equivalent(view):
            return positions(after)
        expected = expected or candidate
        if any(pair(*before, _window(index, length, other), *after).equivalent(view) for other in others):
            wants = "Bottom (#{!}) in a mutable view" if mutable else "Top (#) in a read view"
            also = ("KERNEL-022", "COMMIT-010")
            raise RuleViolation(
                "MAP-024", f"cells outside the tile are {wants}", expected=candidate, got=view, nearest=candidate, also=also
            )
    raise RuleViolation(
        "MAP-023",
        f"the view is not {source} with {index} shortened to {length} and padded back",
        expected=expected,
        got=view,
        nearest=expected,
        also=("KERNEL-022", "MAP-026"),
    )


def check_start(index: Mapping, length: int, lowest: int, highest: int) -> None:
    """Raises:
    RuleViolation: MAP-025 if a tile of `length` positions leaves `index` for a start between `lowest` and `highest`.
    """
    if lowest < 0 or highest + length > index.size:
        worst = lowest if lowest < 0 else highest
        raise RuleViolation(
            "MAP-025",
            f"the tile of {length} positions that begins at {worst} leaves {index}",
            expected=f"a start of 0 to {index.size - length}",
            got=worst,
            also=("KERNEL-022",),
        )

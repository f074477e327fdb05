"""How a Sequencer derivation uses up its buffer, term by term (SEQ-004 to SEQ-007): what a reader sees in the workbench.

The working copy of the buffer starts as the buffer's pair list. A term takes its digits out; their place becomes a hole of the same size,
and neighbouring holes fuse, so later strides do not change.
"""

from __future__ import annotations

from dataclasses import dataclass

from tcptune.ir.mappings.algebra_terms import Term
from tcptune.ir.mappings.cells import strip_digits
from tcptune.ir.mappings.mapping import IDENTITY, Broadcast, Mapping, Padding, Pair, Resize, factors, pair
from tcptune.model.sequencer.configuration import Entry
from tcptune.model.sequencer.derivation import Derivation


@dataclass(frozen=True)
class TraceStep:
    """One term: its entries, and the working copy of the buffer after it."""

    term: Mapping
    entries: tuple[Entry, ...]
    buffer_after: Mapping


@dataclass(frozen=True)
class _Place:
    """One factor of the working copy: an untouched mapping, or (mapping None) a hole."""

    mapping: Mapping | None
    size: int


def trace(found: Derivation) -> tuple[TraceStep, ...]:
    """The steps of a derivation, in the order of Time and Packet."""
    places = [_Place(m, m.size) for m in factors(found.buffer) if m.size > 1]
    steps = []
    for term in found.terms:
        for part in _digits(term.term):
            places = _fused(_without(places, part))
        after = pair(*(IDENTITY.pad(p.size) if p.mapping is None else p.mapping for p in places))
        steps.append(TraceStep(term.term, term.entries, after))
    return tuple(steps)


def _digits(m: Mapping) -> list[Term]:
    """Digits that a term consumes: resize and padding around it do not count (SEQ-005, SEQ-007)."""
    while isinstance(m, (Padding, Resize)):
        m = m.inner
    if isinstance(m, Pair):
        return [t for f in factors(m) for t in _digits(f)]
    if isinstance(m, Broadcast):
        return []
    operand, weight = strip_digits(m)
    return [Term(operand, weight, m.size)]


def _live_digit(m: Mapping) -> Term | None:
    """The digit that a factor of the buffer holds; None for groups and broadcasts."""
    found = _digits(m)
    return found[0] if len(found) == 1 else None


def _without(places: list[_Place], part: Term) -> list[_Place]:
    out: list[_Place] = []
    low, high = part.weight, part.weight * part.extent
    for place in places:
        whole = Term(place.mapping, 1, place.size) if place.mapping is not None else None
        held = _live_digit(place.mapping) if place.mapping is not None else None
        if whole is not None and part.operand is whole.operand:
            held = whole
        if held is None or held.operand is not part.operand:
            out.append(place)
            continue
        start, end = max(low, held.weight), min(high, held.weight * held.extent)
        if start >= end or start % held.weight or end % start:
            out.append(place)
        elif start == held.weight and end == held.weight * held.extent:
            out.append(_Place(None, place.size))
        else:
            out += _split(place, held, start, end)
    return out


def _split(place: _Place, held: Term, start: int, end: int) -> list[_Place]:
    """The place in three: above the taken digits, the hole, below them."""
    assert place.mapping is not None and held.operand is not None
    inner = place.size // held.extent if place.size > held.extent else 1
    pieces: list[_Place] = []
    above = Term(held.operand, end, held.weight * held.extent // end)
    below = Term(held.operand, held.weight, start // held.weight)
    if above.extent > 1:
        upper = above.mapping()
        pieces.append(_Place(upper.pad(above.extent * inner) if inner > 1 else upper, above.extent * inner))
    pieces.append(_Place(None, end // start * (inner if above.extent == 1 else 1)))
    if below.extent > 1:
        pieces.append(_Place(below.mapping(), below.extent))
    return pieces


def _fused(places: list[_Place]) -> list[_Place]:
    out: list[_Place] = []
    for place in places:
        if out and place.mapping is None and out[-1].mapping is None:
            out[-1] = _Place(None, out[-1].size * place.size)
        else:
            out.append(place)
    return out

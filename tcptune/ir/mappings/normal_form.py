"""Normal form of mappings: every coordinate as a sum of digits of the position, and the guards that make cells padding.

A digit's value at position i is ``(i // stride) % size // place % extent``; its operand's coordinate grows by ``weight`` a value. For
most digits ``place`` is 1 and ``extent`` is ``size``; only a group whose padded size is no multiple of its inner size is read in places.
A guard is padding of its kind where its sum of digits reaches the bound; the first guard that fails decides. Operands are axes, or
composite operands of `/` and `%` whose digits do not line up with what is inside (`NormalForm.is_decoded` is False then).

The form is built from the tree alone, without looking at positions, so its cost does not grow with sizes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

from tcptune.ir.mappings.cells import next_operand, operand_key, strip_digits
from tcptune.ir.mappings.mapping import Broadcast, Mapping, Padding, PadKind, Pair, Resize, Symbol, factors


class Place(NamedTuple):
    """A digit of the position: ``(i // stride) % size // place % extent``."""

    stride: int
    size: int
    place: int
    extent: int

    def cut(self, low: int, extent: int) -> Place:
        """``self // low % extent``."""
        if self.place == 1 and self.extent == self.size and self.size % (low * extent) == 0:
            return Place(self.stride * low, extent, 1, extent)
        return Place(self.stride, self.size, self.place * low, extent)


class Digit(NamedTuple):
    """Part of a coordinate: the operand's coordinate grows by `weight` for each value of `place`. Operand None repeats data."""

    operand: Mapping | None
    weight: int
    place: Place

    def to_json(self) -> dict[str, Any]:
        out: dict[str, Any] = {"axis": None if self.operand is None else str(self.operand), "weight": self.weight}
        out.update(extent=self.place.extent, stride=self.place.stride)
        if self.place.size != self.place.extent or self.place.place != 1:
            out.update(place=self.place.place, of=self.place.size)
        return out


class Guard(NamedTuple):
    """Padding of `kind` where the sum of weight times digit reaches `bound`."""

    terms: tuple[tuple[int, Place], ...]
    bound: int
    kind: PadKind

    def to_json(self) -> dict[str, Any]:
        terms = [{"weight": w, "extent": p.extent, "stride": p.stride} for w, p in self.terms]
        return {"sum": terms, "below": self.bound, "else": self.kind.value}


@dataclass(frozen=True)
class NormalForm:
    """See the module's docstring; digits are sorted by stride, major first."""

    size: int
    digits: tuple[Digit, ...]
    guards: tuple[Guard, ...]

    @property
    def is_decoded(self) -> bool:
        """Whether every digit belongs to an axis (or repeats data)."""
        return all(d.operand is None or isinstance(d.operand, Symbol) for d in self.digits)


_Parts = list[tuple[int, Place]]
"""A position as a sum of weight times digit; weights ascend and no digit reaches the next weight."""


def normal_form(m: Mapping) -> NormalForm:
    """The normal form of `m`, cached on the node."""
    found: NormalForm | None = m._memo.get("normal_form")
    if found is None:
        builder = _Builder()
        builder.walk(m, [(1, Place(1, m.size, 1, m.size))])
        found = builder.finish(m.size)
        m._memo["normal_form"] = found
    return found


class _Builder:
    def __init__(self) -> None:
        self.digits: list[Digit] = []
        self.guards: list[Guard] = []
        self.pending: dict[Mapping, _Parts] = {}
        self.axes: dict[Symbol, _Parts] = {}

    def walk(self, m: Mapping, parts: _Parts) -> bool:
        """Records `m` at the position `parts`; False (and nothing recorded) if its digits do not line up with what is inside."""
        inside = m
        guards = []
        while isinstance(inside, (Padding, Resize)):
            if isinstance(inside, Padding) and inside.inner.size < inside.n:
                guards.append(Guard(tuple(parts), inside.inner.size, inside.kind))
            inside = inside.inner
        if isinstance(inside, Pair):
            pieces = _pieces(factors(inside), parts)
            if pieces is None:
                return False
            self.guards += guards
            for member, piece in pieces:
                if piece and not self.walk(member, piece):
                    self._record(member, 1, piece)
            return True
        self.guards += guards
        if isinstance(inside, Broadcast):
            self.digits += [Digit(None, 0, p) for _, p in parts if p.extent > 1 and not guards]
        else:
            operand, weight = strip_digits(inside)
            self._record(operand, weight, parts)
        return True

    def _record(self, operand: Mapping, weight: int, parts: _Parts) -> None:
        scaled = [(w * weight, p) for w, p in parts if p.extent > 1]
        if isinstance(operand, Symbol):
            self.axes.setdefault(operand, []).extend(scaled)
        else:
            self.pending.setdefault(operand_key(operand), []).extend(scaled)

    def finish(self, size: int) -> NormalForm:
        """Decodes the operands, adds the overshoot guards and joins digits that continue each other."""
        while self.pending:
            operand = next_operand(self.pending)
            parts = _joined_parts(self.pending.pop(operand))
            over = _reach(parts) >= operand.size
            if over:
                self.guards.append(Guard(tuple(parts), operand.size, PadKind.TOP))
            if over or not _ascending(parts) or not self.walk(operand, parts):
                self.digits += [Digit(operand, w, p) for w, p in parts]
        for axis, parts in self.axes.items():
            if _reach(parts) >= axis.size and not self._is_guarded(parts, axis.size):
                self.guards.append(Guard(tuple(parts), axis.size, PadKind.TOP))
            self.digits += [Digit(axis, w, p) for w, p in parts]
        return NormalForm(size, tuple(_joined(self.digits)), tuple(self.guards))

    def _is_guarded(self, parts: _Parts, size: int) -> bool:
        """Whether a guard on the same digits already keeps the sum below `size`."""
        for guard in self.guards:
            if [p for _, p in guard.terms] == [p for _, p in parts]:
                ratio = parts[0][0] // guard.terms[0][0]
                scaled = all(w * ratio == v for (w, _), (v, _) in zip(guard.terms, parts, strict=True))
                if scaled and (guard.bound - 1) * ratio < size:
                    return True
        return False


def _joined_parts(parts: _Parts) -> _Parts:
    """Ascending weights; parts that continue each other in weight and position become one."""
    out: _Parts = []
    for weight, high in sorted(parts):
        if out:
            low_weight, low = out[-1]
            plain = high.place == low.place == 1 and high.extent == high.size and low.extent == low.size
            if plain and weight == low_weight * low.extent and high.stride == low.stride * low.size:
                out[-1] = (low_weight, Place(low.stride, low.size * high.size, 1, low.size * high.size))
                continue
        out.append((weight, high))
    return out


def _reach(parts: _Parts) -> int:
    return sum(w * (p.extent - 1) for w, p in parts)


def _ascending(parts: _Parts) -> bool:
    """Whether no digit reaches the weight of the next."""
    reach = 0
    for weight, place in parts:
        if weight <= reach:
            return False
        reach += weight * (place.extent - 1)
    return True


def _pieces(members: list[Mapping], parts: _Parts) -> list[tuple[Mapping, _Parts]] | None:
    """The digits of each member of a pair list, major first; None if a boundary falls inside a digit that is not the only one."""
    total = _reach(parts) + 1
    out: list[tuple[Mapping, _Parts]] = []
    low = 1
    for count, member in enumerate(reversed(members)):
        last = count == len(members) - 1
        high = max(low * member.size, total) if last else low * member.size
        piece = _between(parts, low, high)
        if piece is None:
            return None
        out.append((member, piece))
        low *= member.size
    return out[::-1]


def _between(parts: _Parts, low: int, high: int) -> _Parts | None:
    """``position // low % (high // low)`` as digits."""
    if len(parts) == 1 and parts[0][0] == 1:
        place = parts[0][1]
        if low >= place.extent:
            return []
        extent = -(-min(high, place.extent) // low)
        return [(1, place.cut(low, extent))]
    out = []
    for weight, place in parts:
        start, end = max(low, weight), min(high, weight * place.extent)
        if start >= end:
            continue
        if start % low or start % weight or end % start:
            return None
        out.append((start // low, place.cut(start // weight, end // start)))
    return out if not out or _ascending(out) else None


def _joined(digits: list[Digit]) -> list[Digit]:
    """Sorted by stride, major first; plain digits that continue each other in operand and position become one."""
    out: list[Digit] = []
    for digit in sorted(digits, key=lambda d: (-d.place.stride, -d.place.place)):
        if out and out[-1].operand is digit.operand:
            high, low = out[-1].place, digit.place
            plain = high.place == low.place == 1 and high.extent == high.size and low.extent == low.size
            if plain and high.stride == low.stride * low.size and out[-1].weight == digit.weight * low.extent:
                whole = Place(low.stride, low.size * high.size, 1, low.size * high.size)
                out[-1] = Digit(digit.operand, digit.weight, whole)
                continue
        out.append(digit)
    return out

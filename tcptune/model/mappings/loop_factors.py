"""A mapping as nested loops: which part of which axis every loop walks, padding included (TIMERED-002, OUTER-019).

``[M, K # 96 / 32]`` with K = 80 is the loops M (live 0 to M-1) and K in steps of 32 (live 0 to 2, extent 3). Unlike positions the loops
cover the whole extent, so their product is the size of the mapping. Two mappings are compared after both are cut at each other's
boundaries (`refined`), so that digits of an axis match however they were written. Nothing is enumerated.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import lru_cache

from tcptune.ir.mappings.algebra_terms import opened_factors
from tcptune.ir.mappings.mapping import Broadcast, Mapping, Modulo, Padding, PadKind, Pair, Resize, Stride, Symbol, factors


@dataclass(frozen=True, slots=True)
class LoopFactor:
    """One loop.

    Attributes:
        of: axis name; None for repeated positions and bare padding; the mapping itself where it is no digit of an axis.
        weight: coordinate step of one iteration.
        live: iterations that can hold live cells.
        extent: all iterations.
        kind: what the iterations from `live` on hold; None without padding.
        axis_size: coordinates of the axis; 0 for loops that are no digit of an axis.
    """

    of: str | Mapping | None
    weight: int
    live: int
    extent: int
    kind: PadKind | None = None
    axis_size: int = 0

    @property
    def span(self) -> int:
        """First coordinate step above the loop."""
        return self.weight * self.extent

    @property
    def ends_axis(self) -> bool:
        """Whether live iterations end with the axis, so that digits cut out of the loop still know where live cells end."""
        return 0 < self.axis_size <= self.weight * self.live

    def __str__(self) -> str:
        name = "1" if self.of is None else str(self.of)
        text = name if self.weight == 1 else f"{name} / {self.weight}"
        pad = f" # {self.extent}" if self.extent != self.live else ""
        return f"{text} ({self.live}){pad}"

    def cut(self, step: int) -> tuple[LoopFactor, LoopFactor] | None:
        """The loop as an outer one and an inner one of `step` iterations; None where that is not exact."""
        if self.extent % step:
            return None
        if self.live < step:
            return replace(self, weight=self.weight * step, live=1, extent=self.extent // step), replace(self, extent=step)
        inner = replace(self, live=step, extent=step, kind=None)
        return replace(self, weight=self.weight * step, live=-(-self.live // step), extent=self.extent // step), inner


Loops = tuple[LoopFactor, ...]


@lru_cache(maxsize=4096)
def loop_factors(m: Mapping) -> Loops:
    """Loops of the mapping, major first, without loops of one iteration; the product of their extents is its size."""
    found: list[LoopFactor] = []
    for part in opened_factors(m):
        found += _part(part)
    return tuple(f for f in found if f.extent > 1)


def _part(m: Mapping) -> list[LoopFactor]:
    if isinstance(m, Symbol):
        return [LoopFactor(m.name, 1, m.size, m.size, axis_size=m.size)]
    if isinstance(m, Broadcast):
        return [LoopFactor(None, 0, m.size, m.size)]
    if isinstance(m, Pair):
        return [f for part in factors(m) for f in _part(part)]
    assert isinstance(m, (Stride, Modulo, Resize, Padding))
    inner = _part(m.inner)
    if isinstance(m, Padding):
        result = _padded(inner, m.n, m.kind)
    elif isinstance(m, Resize):
        result = _resized(inner, m.n)
    else:
        halves = _split(inner, m.n)
        result = None if halves is None else halves[isinstance(m, Modulo)]
    return [LoopFactor(m, 1, m.size, m.size)] if result is None else result


def iterations(loops: Iterable[LoopFactor]) -> int:
    """Iterations of nested loops together."""
    size = 1
    for loop in loops:
        size *= loop.extent
    return size


def _padded(loops: list[LoopFactor], n: int, kind: PadKind) -> list[LoopFactor] | None:
    """Padding widens the outermost loop, where the rest divides the new size."""
    if n == iterations(loops):
        return loops
    if not loops:
        return [LoopFactor(None, 0, 1, n, kind)]
    head, rest = loops[0], loops[1:]
    if n % iterations(rest) or (head.kind is not None and head.kind is not kind):
        return None
    return [replace(head, extent=n // iterations(rest), kind=kind), *rest]


def _resized(loops: list[LoopFactor], n: int) -> list[LoopFactor] | None:
    rest: list[LoopFactor] = []
    for loop in reversed(loops):
        below = iterations(rest)
        if n <= below * loop.extent:
            if n % below:
                return None
            extent = n // below
            live = min(loop.live, extent)
            return [replace(loop, live=live, extent=extent, kind=loop.kind if live < extent else None), *rest]
        rest.insert(0, loop)
    return rest


def _split(loops: list[LoopFactor], n: int) -> tuple[list[LoopFactor], list[LoopFactor]] | None:
    """(outer, inner) loops at `n` positions."""
    inner: list[LoopFactor] = []
    outer = list(loops)
    while iterations(inner) < n:
        loop = outer.pop()
        below = iterations(inner)
        if n % below:
            return None
        step = n // below
        if step >= loop.extent:
            inner.insert(0, loop)
            continue
        halves = loop.cut(step)
        if halves is None or (loop.live > step and loop.live % step and not loop.ends_axis):
            return None
        outer.append(halves[0])
        inner.insert(0, halves[1])
    return outer, inner


def refined(loops: Iterable[LoopFactor], others: Iterable[LoopFactor]) -> Loops:
    """`loops` cut wherever `others` begin or end on the same axis, as far as the cuts are exact.

    Where another loop ends in the padding of a loop nothing is cut: both walk the same live cells and differ in padding only.
    """
    begins: dict[str | Mapping | None, set[int]] = {}
    ends: dict[str | Mapping | None, set[int]] = {}
    for other in others:
        if other.of is not None:
            begins.setdefault(other.of, set()).add(other.weight)
            ends.setdefault(other.of, set()).add(other.span)
    found: list[LoopFactor] = []
    for loop in loops:
        live_span = loop.weight * loop.live
        edges = begins.get(loop.of, set()) | {e for e in ends.get(loop.of, ()) if e < live_span}
        pieces: list[LoopFactor] = []
        head = loop
        for edge in sorted(e for e in edges if loop.weight < e < loop.span):
            step, odd = divmod(edge, head.weight)
            halves = None if odd or step >= head.extent else head.cut(step)
            if halves is not None:
                head, low = halves
                pieces.insert(0, low)
        found += [head, *pieces]
    return tuple(found)

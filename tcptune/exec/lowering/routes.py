"""Routes of operands to their slices: replicated by the load, or spread over rings of slices and broadcast by the Switch Engine.

Slices that lie over axes an operand lacks share one block of it. A ring takes neighbouring ones of them, from the inner end of a slice
digit outwards; the load gives every slice of the ring a part of the block and replicates over the shared slices outside of it. A ring may
end inside of a digit: over idle slices as it is, over an axis by writing that axis as two (`ir.kernels.cut`), because the axes that fill a
ring must be new to the switch (SWITCH-005, SWITCH-023), while the load already replicates over the outer part.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING

from tcptune.errors import RuleViolation
from tcptune.ir.placement import Digit, positions, without

if TYPE_CHECKING:
    from tcptune.exec.lowering.layout import Layout


COPY = "copy"
"""Label of the copies of an input in digits and mappings that price its load."""


@dataclass(frozen=True, slots=True)
class Cut:
    """An axis written as several: `below` are the positions below each cut, the outermost first."""

    axis: str
    below: tuple[int, ...]

    def parts(self, size: int) -> tuple[int, ...]:
        """Positions of every part of an axis with `size` positions, the outermost first."""
        bounds = (size, *self.below, 1)
        return tuple(high // low for high, low in pairwise(bounds))


@dataclass(frozen=True, slots=True)
class Ring:
    """Neighbouring slices that share one block of an operand.

    Attributes:
        size: slices of the ring.
        over: slice digits that the ring takes, or takes a part of.
        outside, inside: slice digits outside and inside of it; of a digit that reaches beyond the ring, the outer part is outside.
        is_partial: whether the ring ends inside of a digit.
        cut: the axis that it cuts, None if it ends between digits or among idle slices.
    """

    size: int
    over: tuple[Digit, ...]
    outside: tuple[Digit, ...]
    inside: tuple[Digit, ...]
    is_partial: bool = False
    cut: Cut | None = None


@dataclass(frozen=True, slots=True)
class Route:
    """How one operand gets to the slices that need it.

    Attributes:
        load_slices: Slice level of the load (own digits, and foreign ones where the load replicates).
        spread: digits of the block that lie over the ring until the Switch Engine brings them back, outermost first.
        ring_outer, ring_inner: sizes slice1 and slice0 of the switch; `ring_outer` is 1 without a switch.
        cuts: axes that the ring, or the copies in HBM, cut.
        copies: positions of an axis that the operand lacks; the slices at each of them read another copy of the operand. None: one copy.
    """

    load_slices: tuple[Digit, ...]
    spread: tuple[Digit, ...]
    ring_outer: int
    ring_inner: int
    cuts: tuple[Cut, ...] = ()
    copies: Digit | None = None

    @property
    def copied_slices(self) -> tuple[Digit, ...]:
        """The Slice level of the load, with the copies that slices read in place of the positions over which these lie."""
        if self.copies is None:
            return self.load_slices
        found: list[Digit] = []
        for digit in self.load_slices:
            if digit.axis == self.copies.axis:
                found += [d for d in (digit.outer(digit.extent // self.copies.extent),) if d.extent > 1]
                found.append(Digit(COPY, 1, self.copies.extent))
            else:
                found.append(digit)
        return tuple(found)

    @property
    def uses_switch(self) -> bool:
        return self.ring_outer > 1


@lru_cache(maxsize=16_384)
def rings_of(slices: tuple[Digit, ...], own: tuple[str, ...], sizes: tuple[tuple[str, int], ...]) -> tuple[Ring, ...]:
    """Every ring for an operand with axes `own`, by size; of one size the innermost, whose switch passes fewest flits (SWITCH-018).

    Args:
        slices: Slice level, outermost first.
        sizes: axes that may be cut, with their sizes; an axis is cut where both parts have whole positions.
    """
    found: dict[int, Ring] = {}
    for end in range(len(slices), 0, -1):
        first, size = end, 1
        while first and slices[first - 1].axis not in own:
            first -= 1
            digit = slices[first]
            for part in _inner_parts(digit, dict(sizes)):
                cut = Cut(digit.axis, (digit.stride * part,)) if digit.axis else None
                outside = (*slices[:first], digit.outer(digit.extent // part))
                over = (digit.inner(part), *slices[first + 1 : end])
                found.setdefault(size * part, Ring(size * part, over, outside, slices[end:], True, cut))
            size *= digit.extent
            found.setdefault(size, Ring(size, slices[first:end], slices[:first], slices[end:]))
    return tuple(sorted(found.values(), key=lambda r: r.size))


def _inner_parts(digit: Digit, sizes: dict[str, int]) -> list[int]:
    """Sizes of the inner parts of a slice digit that a ring can end with."""
    halves = [1 << n for n in range(1, digit.extent.bit_length() - 1)]
    if not digit.axis:
        return halves
    size = sizes.get(digit.axis, 0)
    return [p for p in halves if size > digit.stride * p and size % (digit.stride * p) == 0]


def route_of(layout: Layout, index: int) -> Route:
    """The route that the knobs of a candidate choose.

    Raises:
        RuleViolation: SWITCH-003, there is no such ring; else as `route_over`.
    """
    size = layout.candidate.knobs.rings[index]
    copies = layout.candidate.knobs.copies[index]
    if size == 1:
        return _replicated(layout, index, copies)
    if copies > 1:
        raise RuleViolation("SWITCH-003", "an operand that is spread over a ring is loaded from one copy", expected=1, got=copies)
    ring = next((r for r in layout.rings(index) if r.size == size), None)
    if ring is None:
        own = ", ".join(layout.operand(index))
        raise RuleViolation("SWITCH-003", f"no {size} neighbouring slices share one block of the operand over {own}", got=size)
    return route_over(layout, index, ring, layout.candidate.knobs.spread[index])


def _replicated(layout: Layout, index: int, copies: int) -> Route:
    """The route of an operand whose load replicates, from so many copies: neighbours along the innermost axis it lacks read different ones.

    Raises:
        RuleViolation: SWITCH-003, no slices along one axis share so many copies evenly.
    """
    if copies == 1:
        return Route(layout.slices, (), 1, 1)
    own, workload = layout.operand(index), layout.candidate.workload
    shared = [d for d in layout.slices if d.axis and d.axis not in own]
    digit = shared[-1] if shared else Digit("", 1, 1)
    size = workload.size(digit.axis) if digit.axis else 1
    below = digit.stride * copies
    if layout.candidate.whole is not None or digit.extent % copies or size % below:
        message = f"{copies} copies do not divide the slices that share the operand"
        raise RuleViolation("SWITCH-003", message, expected=f"a divisor of {digit.extent}", got=copies)
    cuts = tuple(b for b in (below, digit.stride) if 1 < b < size)
    return Route(layout.slices, (), 1, 1, (Cut(digit.axis, cuts),) if cuts else (), digit.inner(copies))


def route_over(layout: Layout, index: int, ring: Ring, how: str) -> Route:
    """The route over one ring.

    Args:
        how: which part of the block is spread, as in `Knobs.spread`.

    Raises:
        RuleViolation: SWITCH-003, the block is too small; SWITCH-005, a stream that is fetched again meets its ring's axes in Time;
            SWITCH-007, lanes over a ring that is not innermost.
    """
    if how == "lane" and ring.inside:
        raise RuleViolation("SWITCH-007", "Broadcast01, which brings lanes back, takes the innermost slices", got=positions(ring.inside))
    spread = _spread_digits(layout, index, ring.size, how)
    return Route((*ring.outside, *spread, *ring.inside), spread, ring.size, positions(ring.inside), _ring_cuts(layout, index, ring))


def _ring_cuts(layout: Layout, index: int, ring: Ring) -> tuple[Cut, ...]:
    """Axes to cut so that what fills the ring is new to the switch: where it ends inside of one, or Time repeats another part of one.

    Raises:
        RuleViolation: SWITCH-005, Time repeats positions of an axis that cannot be cut.
    """
    below = {ring.cut.axis: ring.cut.below} if ring.cut else {}
    if index == layout.stream and layout.candidate.knobs.refetch:
        repeated = {d.axis for d in layout.stationary_outputs}
        for digit in ring.over:
            if digit.axis not in repeated:
                continue
            size = layout.candidate.workload.size(digit.axis)
            if layout.candidate.whole is not None or size % digit.stride or size <= digit.stride:
                message = f"the stream is fetched again for every position of {digit.axis} in a slice, and {digit.axis} fills the ring"
                raise RuleViolation("SWITCH-005", message, expected=f"a multiple of {digit.stride} positions", got=size)
            below[digit.axis] = (*below.get(digit.axis, ()), digit.stride)
    return tuple(Cut(axis, bounds) for axis, bounds in below.items())


def spread_choices(layout: Layout, index: int) -> list[str]:
    """Which parts of a block can be spread over a ring."""
    return ["outer", "inner", "lane"] if index == layout.stationary and layout.lane is not None else ["outer", "inner"]


def route_choices(layout: Layout, index: int) -> list[tuple[int, str]]:
    """Every route of an operand, as (ring, spread): the replicated load, then the rings by size.

    Left out are those that leave pieces too short for the DMA engine (DMA-005).
    """
    found = [(1, "outer")]
    for ring in layout.rings(index):
        for how in spread_choices(layout, index):
            try:
                route = route_over(layout, index, ring, how)
            except RuleViolation:
                continue
            if piece_bytes(layout, index, route.spread) >= layout.hw.dma_alignment_bytes:
                found.append((ring.size, how))
    return found


def copies_choices(layout: Layout, index: int) -> list[int]:
    """Numbers of copies of an operand in HBM, 1 first, that its replicated load can read."""
    found = [1]
    while found[-1] < layout.candidate.workload.hbm_copies:
        try:
            _replicated(layout, index, 2 * found[-1])
        except RuleViolation:
            break
        found.append(2 * found[-1])
    return found


def piece_bytes(layout: Layout, index: int, spread: tuple[Digit, ...]) -> int:
    """Bytes that a load of an operand brings to one slice in one piece at most, without the digits that are spread."""
    workload, axes = layout.candidate.whole or layout.candidate.workload, layout.operand(index)
    left = layout.held(index)
    for digit in spread:
        left = without(left, digit)
    run = pitch = 1
    for axis in reversed(axes):
        for digit in reversed([d for d in left if d.axis == axis]):
            if pitch * digit.stride != run:
                return run * layout.dtype.bits // 8
            run *= digit.extent
        pitch *= workload.row_elements(axes, layout.dtype) if axis == axes[-1] else workload.size(axis)
        if run < pitch:
            break
        if run > pitch:  # rows are padded in the slice: a piece may run on over that into rows that lie as far apart in HBM
            return positions(left) * layout.dtype.bits // 8
    return run * layout.dtype.bits // 8


def _spread_digits(layout: Layout, index: int, ring: int, how: str) -> tuple[Digit, ...]:
    """Digits of the operand's block, `ring` positions in all, that the load spreads over the ring."""
    packet = layout.packet if index == layout.stream else layout.staging_packet
    lane = layout.lane if index == layout.stationary else None
    taken: list[Digit] = []
    left = ring
    if how == "lane" and lane is not None:
        if left % lane.extent:
            raise RuleViolation("SWITCH-003", "the ring does not hold all lanes", expected=f"a multiple of {lane.extent}", got=ring)
        taken.append(lane)
        left //= lane.extent
    free = layout.held(index, layout.innermost(index))
    row = layout.operand(index)[-1]
    word = Digit(row, 1, min(layout.word_elements(layout.dtype), layout.in_slice(row)))
    for reserved in (packet, lane, word):
        if reserved is not None:
            free = without(free, reserved)
    for digit in free if how != "inner" else reversed(free):
        part = math.gcd(digit.extent, left)
        if part > 1:
            taken.append(digit.outer(part))
            left //= part
    if left > 1:
        raise RuleViolation("SWITCH-003", "a slice's block is too small to be spread over the ring", expected=ring // left, got=ring)
    return tuple(taken)

"""A move of a tensor as nested loops over both sides, derived from the mappings without looking at positions (DMA-002, DMA-010, DMA-013).

The destination's positions fall into boxes: independent digits whose steps move the position in the destination and the position in the
source by fixed amounts. One box is enough where the sides differ by order and splitting of axes; ragged edges and padding add a few.
Every live destination cell lies in exactly one box and takes the one source cell that holds its coordinates; cells outside the boxes are
not written. That is the proof of the move; where no source cell holds a coordinate it fails and names it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from math import prod

from tcptune.errors import RuleViolation, WorkError
from tcptune.ir.mappings.algebra_cases import Box, Form, Undecided, evaluate, explore
from tcptune.ir.mappings.mapping import Mapping, PadKind, pair
from tcptune.ir.types import TensorType

LEVELS = ("chip", "cluster", "slice", "element")
CHIP, CLUSTER, SLICE, ELEMENT = range(len(LEVELS))

Steps = tuple[int, int, int, int]
"""Position steps in chip, cluster, slice and element."""


@dataclass(frozen=True, slots=True)
class MoveDigit:
    """One loop of a move: `extent` steps, each moving the positions of both sides. `term` says in axes what it runs over."""

    extent: int
    source: Steps
    dest: Steps
    term: str


@dataclass(frozen=True)
class MoveBox:
    """Live destination cells ``dest_base + sum(digit.dest)`` and the source cells they take, in elements."""

    digits: tuple[MoveDigit, ...]
    source_base: Steps
    dest_base: Steps

    @property
    def cells(self) -> int:
        """Destination cells of the box."""
        return prod(d.extent for d in self.digits)


def joint_levels(tensor: TensorType) -> Mapping:
    """All levels of a tensor as one mapping; levels that the tier lacks have one position."""
    return pair(tensor.chip, tensor.cluster, tensor.slice, tensor.element)


@dataclass(frozen=True, slots=True)
class _HeldDigit:
    """A digit of a coordinate and how far its step moves the storage position."""

    weight: int
    extent: int
    stride: int


@dataclass(frozen=True)
class _HeldBox:
    """Live storage positions whose coordinates are mixed-radix numbers of independent digits."""

    base: int
    first: dict[str, int]
    digits: dict[str, tuple[_HeldDigit, ...]]


@lru_cache(maxsize=1024)
def _held_boxes(mapping: Mapping) -> tuple[_HeldBox, ...]:
    """Where a mapping stores which coordinates. Digits that change no coordinate (replicas) are left out: the first copy stands for all."""
    found = []
    for box, outcome in explore(mapping.size, lambda box: evaluate(box, mapping)):
        if outcome.kind is not None:
            continue
        position = box.leaves(box.position)
        first: dict[str, int] = {}
        digits: dict[str, tuple[_HeldDigit, ...]] = {}
        for axis, form in outcome.coords.items():
            leaves = box.leaves(form)
            first[axis] = leaves.const
            held = [_HeldDigit(weight, box.extents[d], position.terms[d]) for d, weight in leaves.terms.items() if d in position.terms]
            held.sort(key=lambda h: -h.weight)
            for high, low in pairwise(held):
                if high.weight < low.weight * low.extent:
                    raise WorkError(
                        f"{mapping} holds the same coordinate of {axis} in overlapping digits", hint="such a tensor cannot be moved"
                    )
            digits[axis] = tuple(held)
        found.append(_HeldBox(position.const, first, digits))
    return tuple(found)


_ZERO = Form(0, {})


def _locate(box: Box, coords: dict[str, Form], held: tuple[_HeldBox, ...]) -> Form | None:
    """Storage position of the coordinates on a whole box; None where nothing holds them.

    Raises:
        Undecided: different cells of the box lie in different places.
    """
    for candidate in held:
        position = _position_in(box, coords, candidate)
        if position is not None:
            return position
    return None


def _position_in(box: Box, coords: dict[str, Form], held: _HeldBox) -> Form | None:
    terms: dict[int, int] = {}
    const = held.base
    for axis, first in held.first.items():
        coordinate = coords.get(axis, _ZERO)
        if box.below(coordinate, first):
            return None
        rest = Form(coordinate.const - first, coordinate.terms)
        for digit in held.digits[axis]:
            count, rest = box.divide(rest, digit.weight)
            if not box.below(count, digit.extent):
                return None
            const += count.const * digit.stride
            for d, c in count.terms.items():
                terms[d] = terms.get(d, 0) + c * digit.stride
        rest = box.leaves(rest)
        if rest.const or rest.terms:
            if rest.const == 0:
                raise Undecided(next(iter(rest.terms)), 1)
            return None
    return Form(const, terms)


def _split_levels(box: Box, position: Form, tensor: TensorType) -> list[Form]:
    """The position in every level of `LEVELS`."""
    forms = []
    for name in reversed(LEVELS[1:]):
        position, inside = box.divide(position, getattr(tensor, name).size)
        forms.append(inside)
    return [position, *reversed(forms)]


class _Nowhere(Exception):
    """Nothing holds the coordinates of a cell; `coords` are those of the first such cell, `position` is where it is wanted."""

    def __init__(self, coords: dict[str, int], position: int) -> None:
        super().__init__()
        self.coords = coords
        self.position = position


def _move_box(box: Box, wanted: Mapping, held: tuple[_HeldBox, ...], source: TensorType, dest: TensorType) -> MoveBox | None:
    outcome = evaluate(box, wanted)
    if outcome.kind is not None:
        return None
    position = _locate(box, outcome.coords, held)
    if position is None:
        raise _Nowhere({axis: box.leaves(f).const for axis, f in outcome.coords.items()}, box.leaves(box.position).const)
    sides = [[box.leaves(f) for f in _split_levels(box, p, t)] for p, t in ((position, source), (box.position, dest))]
    sides = [[box.leaves(f) for f in side] for side in sides]
    coords = {axis: box.leaves(f) for axis, f in outcome.coords.items()}
    sizes = wanted.axes
    digits = []
    for digit in box.leaves(box.position).terms:
        steps = [tuple(f.terms.get(digit, 0) for f in side) for side in sides]
        term = ", ".join(_term(axis, sizes[axis], f.terms[digit], box.extents[digit]) for axis, f in coords.items() if digit in f.terms)
        digits.append(MoveDigit(box.extents[digit], _steps(steps[0]), _steps(steps[1]), term or str(box.extents[digit])))
    bases = [_steps(tuple(f.const for f in side)) for side in sides]
    digits.sort(key=lambda d: d.dest, reverse=True)
    return MoveBox(tuple(digits), bases[0], bases[1])


def _steps(values: tuple[int, ...]) -> Steps:
    chip, cluster, slice_, element = values
    return chip, cluster, slice_, element


def _term(axis: str, size: int, weight: int, extent: int) -> str:
    text = axis if weight == 1 else f"{axis} / {weight}"
    return text if weight * extent >= size else f"{text} % {extent}"


def cell_kinds(mapping: Mapping, first: int, count: int) -> set[PadKind | None]:
    """Kinds of the cells at `count` positions from `first`; None for live cells."""

    def kind(box: Box) -> PadKind | None:
        shifted = Form(box.position.const + first, box.position.terms)
        return evaluate(box, mapping, shifted).kind

    return {found for _, found in explore(count, kind)}


def _boxes(wanted: Mapping, held: tuple[_HeldBox, ...], source: TensorType, dest: TensorType) -> Iterator[MoveBox]:
    for _, found in explore(wanted.size, lambda box: _move_box(box, wanted, held, source, dest)):
        if found is not None:
            yield found


@dataclass(frozen=True)
class Move:
    """A proven move: its boxes in order of the destination."""

    source: TensorType
    dest: TensorType
    boxes: tuple[MoveBox, ...]

    @property
    def cells(self) -> int:
        """Destination cells that are written."""
        return sum(b.cells for b in self.boxes)

    @property
    def delivered_bytes(self) -> int:
        return self.dest.dtype.bytes_of(self.cells)


def move_boxes(source: TensorType, dest: TensorType) -> tuple[MoveBox, ...]:
    """Loops that fill the destination; cells of the source may stay behind (`prove_move` refuses that).

    Raises:
        RuleViolation: DMA-002, naming the first coordinate that no source cell holds.
    """
    stored, wanted = joint_levels(source), joint_levels(dest)
    try:
        return tuple(_boxes(wanted, _held_boxes(stored), source, dest))
    except _Nowhere as missing:
        carried = {a: c for a, c in missing.coords.items() if a in stored.axes}
        raise RuleViolation(
            "DMA-002",
            f"no source cell holds {_coordinate(carried)}, which destination position {missing.position} wants",
            got=_layout(source),
            expected=f"a source that holds every live coordinate of {_layout(dest)}",
            also=("SEM-008", "MOVE-003"),
        ) from None


@lru_cache(maxsize=1024)
def prove_move(source: TensorType, dest: TensorType) -> Move:
    """Proof that the destination is the same tensor as the source, and the loops that move it.

    Every live destination cell is written exactly once, from the source cell with the same coordinates (axes that the source lacks are
    broadcasts); every live source cell has a destination; padding stays undefined.

    Raises:
        RuleViolation: DMA-002, naming the first coordinate without a source, or without a destination; also for another element type.
        WorkError: the splits of the sides line up so badly that the loops cannot be listed.
    """
    if source.dtype != dest.dtype:
        raise RuleViolation("DMA-002", "a transfer keeps the element type", got=dest.dtype.name, expected=source.dtype.name)
    boxes = move_boxes(source, dest)
    stored, wanted = joint_levels(source), joint_levels(dest)
    if len(boxes) != 1 or _sources_of(boxes[0]) != _held_cells(stored):
        _check_nothing_dropped(stored, wanted, source, dest)
    return Move(source, dest, boxes)


def _held_cells(mapping: Mapping) -> int:
    """Coordinates that a mapping holds, replicas counted once."""
    return sum(prod(digit.extent for digits in box.digits.values() for digit in digits) for box in _held_boxes(mapping))


def _sources_of(box: MoveBox) -> int | None:
    """Different source cells that a box reads; None where its digits overlap, so that a product does not count them."""
    digits = sorted(((d.source, d.extent) for d in box.digits if any(d.source)), reverse=True)
    for (high, _), (low, extent) in pairwise(digits):
        if high < tuple(step * extent for step in low):
            return None
    return prod(extent for _, extent in digits)


def _check_nothing_dropped(stored: Mapping, wanted: Mapping, source: TensorType, dest: TensorType) -> None:
    lost = [axis for axis, size in stored.axes.items() if axis not in wanted.axes and size > 1 and _is_live_axis(stored, axis)]
    try:
        for _ in _boxes(stored, _held_boxes(wanted), dest, source) if not lost else ():
            pass
        reason = f"the destination lacks axis {lost[0]}: a move sums and drops nothing" if lost else ""
    except _Nowhere as missing:
        reason = f"no destination cell takes {_coordinate(missing.coords)}, which source position {missing.position} holds"
    if reason:
        raise RuleViolation(
            "DMA-002",
            reason,
            got=_layout(dest),
            expected=f"a destination for every live coordinate of {_layout(source)}",
            nearest="tile the source first",
            also=("SEM-008", "MOVE-003"),
        )


def _is_live_axis(mapping: Mapping, axis: str) -> bool:
    """Whether live cells of the mapping differ in this axis."""
    boxes = _held_boxes(mapping)
    firsts = {box.first.get(axis, 0) for box in boxes}
    return len(firsts) > 1 or any(digit.extent > 1 for box in boxes for digit in box.digits.get(axis, ()))


def _coordinate(coords: dict[str, int]) -> str:
    return ", ".join(f"{axis} = {value}" for axis, value in coords.items()) or "the only coordinate"


def _layout(tensor: TensorType) -> str:
    return f"{tensor.tier} " + ", ".join(f"{name} [{m}]" for name, m in tensor.levels)

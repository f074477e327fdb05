"""One plain function an operation: what the cells behind it hold, given the cells before it."""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Mapping as Dict
from typing import Any

import numpy as np

from tcptune.ir.types import DType, StreamType
from tcptune.model.mappings.movement import carried_digits
from tcptune.model.numerics.elements import from_bits, numpy_dtype, to_bits
from tcptune.model.pipeline import Chain
from tcptune.model.stage import Step
from tests.reference.cells import Contents, Coordinates, Kind, live_cells
from tests.reference.numbers import narrow_f32, widen, wrapped

Reference = Callable[[Contents, Step, Dict[str, Contents]], Contents]
REFERENCES: dict[str, Reference] = {}

SPATIAL = 3
"""Levels that a move inside a slice leaves alone: chip, cluster, slice."""


def reference(*names: str) -> Callable[[Reference], Reference]:
    """Registers the function of the operations with these names."""

    def add(function: Reference) -> Reference:
        REFERENCES.update(dict.fromkeys(names, function))
        return function

    return add


def run(chain: Chain, start: Contents, operands: Dict[str, Contents]) -> Contents:
    """The cells behind the last operation of a checked chain."""
    for step in chain.steps:
        start = REFERENCES[step.op.NAME](start, step, operands)
    return start


# --- moves ------------------------------------------------------------------------------------------------------------------------


def projector(kind: Kind) -> Callable[[Coordinates], tuple[int, ...]]:
    """Reads coordinates as far as `kind` carries them; digits it does not carry are ignored."""
    digits = sorted(carried_digits(tuple(m for _, m in kind.levels)).items())
    return lambda coordinates: tuple(sum(coordinates.get(a, 0) // w % e * w for w, e in parts) for a, parts in digits)


def known_cells(contents: Contents, local: int) -> dict[Any, Any]:
    """Values by (the first `local` position levels, carried coordinates); the first of equal cells counts."""
    carried = projector(contents.kind)
    found: dict[Any, Any] = {}
    for position, coordinates in contents.live():
        if position in contents.cells:
            found.setdefault((position[:local], carried(coordinates)), contents.cells[position])
    return found


@reference("fetch", "collect", "transpose", "commit_trim", "commit")
def moved(before: Contents, step: Step, operands: Dict[str, Contents]) -> Contents:
    """Within a slice every cell takes the value of the cell with its coordinates."""
    source, carried = known_cells(before, SPATIAL), projector(before.kind)
    cells = {p: source.get((p[:SPATIAL], carried(c))) for p, c in live_cells(step.after, before.slices)}
    return before.like(step.after, {p: v for p, v in cells.items() if v is not None})


# --- conversions ------------------------------------------------------------------------------------------------------------------


def converted(value: Any, source: DType, target: DType) -> Any:
    """One element in another type, by the definition of both."""
    if not source.is_float:
        return numpy_dtype(target).type(wrapped(int(value), target.bits))
    pattern = int(to_bits(np.asarray([value]), source)[0])
    made = narrow_f32(pattern, target.name) if source.name == "f32" else widen(pattern, source.name, target.name)
    return from_bits(np.asarray([made]), target)[0]


@reference("cast", "fetch_cast", "fetch_table_lookup", "commit_cast")
def cast(before: Contents, step: Step, operands: Dict[str, Contents]) -> Contents:
    """Every element keeps its position."""
    source, target = before.kind.dtype, step.after.dtype
    return before.like(step.after, {p: converted(v, source, target) for p, v in before.cells.items()})


@reference("commit_cast_relu")
def cast_relu(before: Contents, step: Step, operands: Dict[str, Contents]) -> Contents:
    """Negative values and -0 become +0 on the way; NaN stays."""
    source, target = before.kind.dtype, step.after.dtype
    zero = numpy_dtype(target).type(0)
    return before.like(
        step.after,
        {p: zero if np.signbit(v) and not np.isnan(v) else converted(v, source, target) for p, v in before.cells.items()},
    )


# --- contraction ------------------------------------------------------------------------------------------------------------------


@reference("contract_outer")
def products(before: Contents, step: Step, operands: Dict[str, Contents]) -> Contents:
    """At every joint position the widened stream value times the widened weight with the same coordinates."""
    weight = operands[step.op.trf]  # type: ignore[attr-defined]
    after = step.after
    assert isinstance(after, StreamType)
    streams, in_stream = known_cells(before, SPATIAL), projector(before.kind)
    weights, in_weight = known_cells(weight, SPATIAL + 1), projector(weight.kind)
    made = {}
    for position, coordinates in live_cells(after, before.slices):
        x = streams.get((position[:SPATIAL], in_stream(coordinates)))
        w = weights.get((position[: SPATIAL + 1], in_weight(coordinates)))
        if x is not None and w is not None:
            wide = [_widened(v, after.dtype) for v in (x, w)]
            made[position] = _exact(after.dtype, lambda a, b: a * b, *wide)
    return before.like(after, made)


def _widened(value: Any, target: DType) -> Any:
    return np.int32(int(value)) if not target.is_float else np.float32(value)


def _exact(element: DType, operation: Callable[[Any, Any], Any], a: Any, b: Any) -> Any:
    """One operation of the accumulator: f32 rounded once, i32 wrapped."""
    if element.is_float:
        return np.float32(operation(np.float32(a), np.float32(b)))
    return np.int32(wrapped(operation(int(a), int(b)), 32))


def _tree(element: DType, values: list[Any]) -> Any:
    if len(values) == 1:
        return values[0]
    half = len(values) // 2
    return _exact(element, lambda a, b: a + b, _tree(element, values[:half]), _tree(element, values[half:]))


@reference("contract_packet")
def packet_sums(before: Contents, step: Step, operands: Dict[str, Contents]) -> Contents:
    """Neighbours are added pairwise until one value is left of every run of 2^depth positions."""
    run_length = 1 << step.derived["tree_depth"]
    made = {}
    assert isinstance(step.after, StreamType)
    for position, _ in live_cells(step.after, before.slices):
        first = position[-1] * run_length
        values = [before.cells.get((*position[:-1], first + i)) for i in range(run_length)]
        if all(v is not None for v in values):
            made[position] = _tree(before.kind.dtype, values)
    return before.like(step.after, made)


@reference("contract_time")
def time_sums(before: Contents, step: Step, operands: Dict[str, Contents]) -> Contents:
    """Packets with the coordinates of a slot are added to it in the order in which they arrive."""
    assert isinstance(before.kind, StreamType) and isinstance(step.after, StreamType)
    slot_of = projector(step.after)
    zero = np.float32(0) if before.kind.dtype.is_float else np.int32(0)
    slots: dict[Any, Any] = {}
    for position, coordinates in sorted(before.live(), key=lambda cell: cell[0][4]):
        slot = (position[:4], position[5], slot_of(coordinates))
        total, value = slots.get(slot, zero), before.cells.get(position)
        slots[slot] = None if value is None or total is None else _exact(before.kind.dtype, lambda a, b: a + b, total, value)
    made = {}
    for position, coordinates in live_cells(step.after, before.slices):
        total = slots.get((position[:4], position[5], slot_of(coordinates)))
        if total is not None:
            made[position] = total
    return before.like(step.after, made)


@reference("contract_lane")
def folded(before: Contents, step: Step, operands: Dict[str, Contents]) -> Contents:
    """Lanes only move, so a cell takes the value with its coordinates."""
    return moved(before, step, operands)

"""Evaluates one cell of a chain's result by asking, stage by stage backwards, which cells it comes from.

A value is the bit pattern of one element, or None where nothing known is held. A position is (chip, cluster, slice, time, packet) in a
stream and (chip, cluster, slice, [lane,] element) in a tensor.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np

from tcptune.ir.kernels.ops import Collect, Fetch, FetchCast, FetchTableLookup, FetchZeroPointSub, Op, Switch, ToTrf, ToVrf
from tcptune.ir.mappings.cells import Index
from tcptune.ir.mappings.mapping import Mapping, pair
from tcptune.model.numerics.elements import to_bits
from tcptune.model.pipeline import Chain
from tcptune.model.stage import Step
from tcptune.model.values import Values
from tests.reference.numbers import narrow_f32, widen, wrapped

Position = tuple[int, ...]
Value = int | None
Reader = Callable[[Position], Value]
Rule = Callable[[Step, Reader, Position], Value]


def reader(chain: Chain, start: Values) -> Reader:
    """Reads one cell of the chain's result, given the contents of its start."""
    bits = to_bits(start.data, chain.start.dtype)

    def read(position: Position) -> Value:
        return int(bits[position]) if start.defined[position] else None

    for step in chain.steps:
        read = _after(step, read)
    return read


def _after(step: Step, before: Reader) -> Reader:
    rule = RULES[type(step.op)]
    return lambda position: rule(step, before, position)


def _collect(step: Step, before: Reader, position: Position) -> Value:
    """Flit f of a packet holds its elements 32 bytes at a time; beyond the packet there is padding."""
    *spatial, step_number, element = position
    per_flit = step.after.packet.size
    packet = step.before.packet.size
    flits = -(-packet // per_flit)
    old_step, flit = divmod(step_number, flits)
    at = flit * per_flit + element
    return before((*spatial, old_step, at)) if at < packet else None


def _switch(step: Step, before: Reader, position: Position) -> Value:
    """Canonical: the manual's relation table. Custom: the slice with the same coordinates, at the time step of the input time digits."""
    chip, cluster, slice_, t, element = position
    out = pair(step.after.slice, step.after.time)
    if not isinstance(cell(out, slice_ * step.after.time.size + t), Index):
        return None
    config = step.op.config
    if config.kind == "CustomBroadcast":
        source = _custom_source(step, slice_, t)
    else:
        source = relation(config.kind, config.slice1, config.slice0, config.time0 or 1, slice_, t)
    return None if source is None else before((chip, cluster, *source, element))


def relation(kind: str, slice1: int, slice0: int, time0: int, out_slice: int, t: int) -> tuple[int, int]:
    """Source (slice, step) of an output position, transcribed from the manual's relation table."""
    ring = slice1 * slice0
    base, m = ring * (out_slice // ring), out_slice % ring
    if kind == "Broadcast01":
        t, b = divmod(t, slice0)
        t, t0 = divmod(t, time0)
        t1, a = divmod(t, slice1)
        return base + a * slice0 + b, t1 * time0 + t0
    if kind == "Broadcast1":
        t, a = divmod(t, slice1)
        return base + a * slice0 + m % slice0, t
    if kind == "Transpose":
        b, a = divmod(m, slice1)
        return base + a * slice0 + b, t
    if kind == "InterTranspose":
        t, a = divmod(t, slice1)
        t2, t0 = divmod(t, time0)
        u, b = divmod(m, slice0)
        return base + a * slice0 + b, (t2 * slice1 + u) * time0 + t0
    t, b = divmod(t, slice0)
    return base + m % slice1 * slice0 + b, t


def _custom_source(step: Step, slice_: int, t: int) -> tuple[int, int] | None:
    moved = step.after.time.size // step.before.time.size
    held = coordinates(step.before.slice)
    asked = cell(pair(step.after.slice, step.after.time), slice_ * step.after.time.size + t)
    own = set(step.before.slice.axes)
    wanted = {n: c for n, c in asked.coords.items() if n in own}
    for key, q in held.items():
        if all(c == wanted.get(n, 0) for n, c in key):
            return q, t // moved
    return None


def _fetch(step: Step, before: Reader, position: Position) -> Value:
    """The element of the slice's own DM part with the same coordinates; axes that DM does not hold repeat it."""
    *spatial, t, element = position
    asked = cell(pair(step.after.time, step.after.packet), t * step.after.packet.size + element)
    if not isinstance(asked, Index):
        return None
    held = coordinates(pair(step.before.time, step.before.packet))
    own = {n for key in held for n, _ in key}
    wanted = tuple(sorted((n, c) for n, c in asked.coords.items() if n in own))
    at = held.get(wanted)
    return None if at is None else before((*spatial, *divmod(at, step.before.packet.size)))


def _lookup_or_cast(step: Step, before: Reader, position: Position) -> Value:
    value = before(position)
    if value is None:
        return None
    source, target = step.before.dtype, step.after.dtype
    if not source.is_float:
        return wrapped(value, source.bits) & ((1 << target.bits) - 1)
    if (source.name, target.name) == ("bf16", "f32"):
        return value << 16  # the upper half of f32, NaN payload and all
    return narrow_f32(value, target.name) if source.bits > target.bits else widen(value, source.name, target.name)


def _zero_point(step: Step, before: Reader, position: Position) -> Value:
    value = before(position)
    if value is None:
        return None
    return (wrapped(value, step.before.dtype.bits) - step.op.zero_point) & ((1 << step.after.dtype.bits) - 1)


def _to_trf(step: Step, before: Reader, position: Position) -> Value:
    *spatial, lane, element = position
    row, column = divmod(element, step.before.packet.size)
    return before((*spatial, lane * (step.before.time.size // step.after.lane.size) + row, column))


def _to_vrf(step: Step, before: Reader, position: Position) -> Value:
    *spatial, element = position
    return before((*spatial, *divmod(element, step.before.packet.size)))


RULES: dict[type[Op], Rule] = {
    Collect: _collect,
    Switch: _switch,
    Fetch: _fetch,
    FetchTableLookup: _lookup_or_cast,
    FetchCast: _lookup_or_cast,
    FetchZeroPointSub: _zero_point,
    ToTrf: _to_trf,
    ToVrf: _to_vrf,
}
"""What one operation does to one cell."""


@cache
def cell(mapping: Mapping, position: int):
    """One finalised cell (cached: mappings are hash-consed)."""
    return mapping.cell(position)


@cache
def coordinates(mapping: Mapping) -> dict[tuple[tuple[str, int], ...], int]:
    """First position of every live index of a mapping."""
    found: dict[tuple[tuple[str, int], ...], int] = {}
    for position in range(mapping.size):
        here = mapping.cell(position)
        if isinstance(here, Index):
            found.setdefault(tuple(sorted(here.coords.items())), position)
    return found


def sampled_positions(shape: tuple[int, ...], count: int, rng: np.random.Generator) -> list[Position]:
    """Random positions of an array, its corners first."""
    corners = [tuple(0 for _ in shape), tuple(s - 1 for s in shape)]
    return corners + [tuple(int(rng.integers(s)) for s in shape) for _ in range(count)]

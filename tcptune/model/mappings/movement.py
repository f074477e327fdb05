"""Gathers: which source position every position of a destination takes its value from when a tensor or stream is moved (SEM-003, SEM-008).

A move keeps the mathematical tensor: a destination position with coordinates t takes a source position with the same t. Digits that the
source does not carry are ignored, so their positions repeat the data (SEQ-008). Where several source positions hold t, a move inside a
slice reads its own slice (`gather_within_slice`), any other move the first one in storage order. Zero padding of the destination takes zero
padding of the source, where that has some: all of it holds zeros.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import numpy.typing as npt

from tcptune.ir.mappings.cells import KIND_CODES, CellTable, joint_table, operand_key, strip_digits
from tcptune.ir.mappings.mapping import Broadcast, Mapping, Modulo, Padding, PadKind, Resize, Stride, Symbol, factors
from tcptune.ir.types import StreamType, TensorType

Ints = npt.NDArray[np.int64]
Digits = tuple[tuple[int, int], ...]
"""Digits of an axis as (weight, extent), minor first."""

Gather = tuple[Ints, npt.NDArray[np.bool_]]
"""Flat source index of every destination position (0 where there is none), and where there is one; both in the destination's shape."""

_ZERO = KIND_CODES[PadKind.ZERO]
_CACHED_GATHERS = 16  # as many as one kernel needs; each takes 9 bytes a position
_SPATIAL = ("chip", "cluster", "slice")


@lru_cache(maxsize=_CACHED_GATHERS)
def gather_indices(source: TensorType | StreamType, destination: TensorType | StreamType) -> Gather:
    """Gather of a move that may cross slices, clusters and chips (DMA, Switch Engine)."""
    return _gather(source, destination, local=())


@lru_cache(maxsize=_CACHED_GATHERS)
def gather_within_slice(source: TensorType | StreamType, destination: TensorType | StreamType) -> Gather:
    """Gather of a move in which every slice reads itself (fetch, commit, flits of a packet).

    Raises:
        ValueError: chips, clusters or slices differ in number.
    """
    local = tuple(name for name in _SPATIAL if name in dict(source.levels) and name in dict(destination.levels))
    for name in local:
        here, there = getattr(source, name).size, getattr(destination, name).size
        if here != there:
            raise ValueError(f"{name} has {here} positions in the source, {there} in the destination")
    return _gather(source, destination, local)


def _gather(source: TensorType | StreamType, destination: TensorType | StreamType, local: tuple[str, ...]) -> Gather:
    source_levels, destination_levels = dict(source.levels), dict(destination.levels)
    held = joint_table(*source_levels.values())
    wanted = joint_table(*destination_levels.values())
    carried = carried_digits(tuple(source_levels.values()))
    axes = {**wanted_axes(destination_levels), **{n: s for m in source_levels.values() for n, s in m.axes.items()}}
    source_key, destination_key, count = _keys(held, wanted, axes, carried)
    source_place, destination_place = np.zeros((1,) * held.kind.ndim, np.int64), np.zeros((1,) * wanted.kind.ndim, np.int64)
    places = 1
    for name in local:
        size = source_levels[name].size
        source_place = source_place * size + _place(held, list(source_levels).index(name), size)
        destination_place = destination_place * size + _place(wanted, list(destination_levels).index(name), size)
        places *= size
    index, found = _look_up(
        source_key + count * source_place, held.live, destination_key + count * destination_place, wanted.live, count * places
    )
    zeros = wanted.kind == _ZERO
    if not zeros.any() or not (held.kind == _ZERO).any():
        return index, found
    zero_index, zero_found = _look_up(source_place, held.kind == _ZERO, destination_place, zeros, places)
    return _frozen(np.where(zeros, zero_index, index), found | zero_found)


def wanted_axes(levels: dict[str, Mapping]) -> dict[str, int]:
    """Sizes of all axes that the levels name."""
    return {name: size for m in levels.values() for name, size in m.axes.items()}


def _place(cells: CellTable, level: int, size: int) -> Ints:
    shape = [1] * cells.kind.ndim
    shape[level] = size
    return np.arange(size, dtype=np.int64).reshape(shape)


def _keys(held: CellTable, wanted: CellTable, axes: dict[str, int], carried: dict[str, Digits]) -> tuple[Ints, Ints, int]:
    source_key = np.zeros((1,) * held.kind.ndim, np.int64)
    destination_key = np.zeros((1,) * wanted.kind.ndim, np.int64)
    count = 1
    for name, size in axes.items():
        digits = carried.get(name, ())
        if not digits:
            continue
        if name in held.coords:
            source_key = source_key * size + held.coords[name]
        else:
            source_key = source_key * size
        if name in wanted.coords:
            destination_key = destination_key * size + _projected(wanted.coords[name], digits, size)
        else:
            destination_key = destination_key * size
        count *= size
    return source_key, destination_key, count


def _projected(coordinate: Ints, digits: Digits, size: int) -> Ints:
    if digits == ((1, size),):
        return coordinate
    kept = np.zeros((), np.int64)
    for weight, extent in digits:
        kept = kept + coordinate // weight % extent * weight
    return np.asarray(kept)


def _look_up(source_key: Ints, held: npt.NDArray[np.bool_], destination_key: Ints, wanted: npt.NDArray[np.bool_], count: int) -> Gather:
    source_flat = np.flatnonzero(held)
    keys = np.broadcast_to(source_key, held.shape).reshape(-1)[source_flat]
    if count <= 4 * (held.size + wanted.size):
        first = np.full(count, -1, np.int64)
        first[keys[::-1]] = source_flat[::-1]
        found = first[np.broadcast_to(destination_key, wanted.shape)]
    else:
        unique, at = np.unique(keys, return_index=True)
        asked = np.broadcast_to(destination_key, wanted.shape)
        place = np.minimum(np.searchsorted(unique, asked), max(len(unique) - 1, 0))
        hit = unique[place] == asked if len(unique) else np.zeros(wanted.shape, bool)
        found = np.where(hit, source_flat[at][place] if len(unique) else 0, -1)
    live = wanted & (found >= 0)
    return _frozen(np.where(live, found, 0), live)


def _frozen(index: Ints, found: npt.NDArray[np.bool_]) -> Gather:
    index.flags.writeable = False
    found.flags.writeable = False
    return index, found


@lru_cache(maxsize=1024)
def carried_digits(parts: tuple[Mapping, ...]) -> dict[str, Digits]:
    """Digits (weight, extent) of every axis that the mappings carry together, neighbours merged, minor first.

    A resized or tiled digit counts as carried in full (MAP-012): positions outside it hold nothing, they do not repeat.
    """
    found: dict[str, set[tuple[int, int]]] = {}
    stack = [f for part in parts for f in factors(part)]
    seen: set[Mapping] = set()
    while stack:
        m = stack.pop()
        while isinstance(m, (Padding, Resize)):
            m = m.inner
        extent = _extent(m)
        operand, weight = strip_digits(m)
        while isinstance(operand, (Padding, Resize)):
            operand, inner_weight = strip_digits(operand.inner)
            weight *= inner_weight
        if isinstance(operand, Symbol):
            found.setdefault(operand.name, set()).add((weight, extent))
        elif not isinstance(operand, Broadcast) and operand_key(operand) not in seen:
            seen.add(operand_key(operand))
            stack.extend(f for f in factors(operand))
    return {name: _merged(digits) for name, digits in found.items()}


def _extent(m: Mapping) -> int:
    return m.size if isinstance(m, (Stride, Modulo, Symbol)) else 1


def _merged(digits: set[tuple[int, int]]) -> Digits:
    """Union of digit ranges [weight, weight * extent) with touching or overlapping ranges joined."""
    ranges = sorted((w, w * e) for w, e in digits if e > 1)
    merged: list[tuple[int, int]] = []
    for low, high in ranges:
        if merged and low <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(high, merged[-1][1]))
        else:
            merged.append((low, high))
    return tuple((low, high // low) for low, high in merged) or ((1, 1),)

"""Gathers: which source position every position of a destination takes its value from when a tensor or stream is moved (SEM-003, SEM-008).

A move keeps the mathematical tensor: a destination position with coordinates t takes a source position with the same t. Digits that the
source does not carry are ignored, so their positions repeat the data (SEQ-008). Where several source positions hold t, a move inside a
slice reads its own slice (`gather_within_slice`), any other move the first one in storage order. Zero padding of the destination takes zero
padding of the source, where that has some: all of it holds zeros.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from tcptune.ir.array_cache import array_cache
from tcptune.ir.mappings.cells import KIND_CODES, CellTable, joint_slabs, operand_key, strip_digits
from tcptune.ir.mappings.mapping import Broadcast, Mapping, Modulo, Padding, PadKind, Resize, Stride, Symbol, factors, walk
from tcptune.ir.types import StreamType, TensorType

Ints = npt.NDArray[np.signedinteger[Any]]
Digits = tuple[tuple[int, int], ...]
"""Digits of an axis as (weight, extent), minor first."""

Gather = tuple[Ints, npt.NDArray[np.bool_]]
"""Flat source index of every destination position (0 where there is none), and where there is one; both in the destination's shape."""

_ZERO = KIND_CODES[PadKind.ZERO]
_CACHED_BYTES = 256 << 20  # for what one kernel needs: a gather takes 5 bytes a position
_SPATIAL = ("chip", "cluster", "slice")


def gather_indices(source: TensorType | StreamType, destination: TensorType | StreamType) -> Gather:
    """Gather of a move that may cross slices, clusters and chips (DMA, Switch Engine)."""
    return _gather(source, destination, ())


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


def _gather_bytes(gather: Gather) -> int:
    return sum(part.nbytes for part in gather)


@array_cache(_CACHED_BYTES, _gather_bytes)
def _gather(source: TensorType | StreamType, destination: TensorType | StreamType, local: tuple[str, ...]) -> Gather:
    source_levels, destination_levels = dict(source.levels), dict(destination.levels)
    axes = {**wanted_axes(destination_levels), **{n: s for m in source_levels.values() for n, s in m.axes.items()}}
    carried = carried_digits(tuple(source_levels.values()))
    held = _Side(source_levels, axes, carried, local, project=False)
    wanted = _Side(destination_levels, axes, carried, local, project=True)
    index, found = _look_up(held, wanted)
    if all(_has_zeros(m) for m in (source_levels, destination_levels)):
        _look_up_zeros(held, wanted, index, found)
    index, found = index.reshape(destination.shape), found.reshape(destination.shape)
    index.flags.writeable = False
    found.flags.writeable = False
    return index, found


def _has_zeros(levels: dict[str, Mapping]) -> bool:
    return any(isinstance(node, Padding) and node.kind is PadKind.ZERO for m in levels.values() for node in walk(m))


@dataclass(frozen=True)
class _Side:
    """One side of a move in slabs of storage positions; cells that hold the same thing have the same key.

    A key is the coordinates of the axes that the source carries, in mixed radix, within the places of the local levels.
    """

    levels: dict[str, Mapping]
    axes: dict[str, int]
    carried: dict[str, Digits]
    local: tuple[str, ...]
    project: bool

    @property
    def size(self) -> int:
        return prod(m.size for m in self.levels.values())

    @property
    def places(self) -> int:
        return prod(self.levels[name].size for name in self.local)

    @property
    def keys(self) -> int:
        """Keys are below this number."""
        return self.places * prod(size for name, size in self.axes.items() if self.carried.get(name))

    def slabs(self) -> Iterator[tuple[slice, CellTable, Ints, Ints]]:
        """Positions, cells, keys and local places, slab by slab."""
        sizes = [m.size for m in self.levels.values()]
        for start, cells in joint_slabs(*self.levels.values()):
            count = len(cells.kind)
            place = np.zeros(1, np.int64)
            position = np.arange(start, start + count, dtype=np.int64)
            for name in self.local:
                level = list(self.levels).index(name)
                place = place * sizes[level] + position // prod(sizes[level + 1 :]) % sizes[level]
            yield slice(start, start + count), cells, np.broadcast_to(self._keys(cells, place), (count,)), np.broadcast_to(place, (count,))

    def _keys(self, cells: CellTable, place: Ints) -> Ints:
        key = place
        for name, size in self.axes.items():
            digits = self.carried.get(name, ())
            if digits:
                key = key * size
                if name in cells.coords:
                    key = key + (_projected(cells.coords[name], digits, size) if self.project else cells.coords[name])
        return key


def wanted_axes(levels: dict[str, Mapping]) -> dict[str, int]:
    """Sizes of all axes that the levels name."""
    return {name: size for m in levels.values() for name, size in m.axes.items()}


def _projected(coordinate: Ints, digits: Digits, size: int) -> Ints:
    if digits == ((1, size),):
        return coordinate
    kept = np.zeros((), np.int64)
    for weight, extent in digits:
        kept = kept + coordinate // weight % extent * weight
    return np.asarray(kept)


def _look_up(held: _Side, wanted: _Side) -> Gather:
    """For every wanted position the first one that holds its key."""
    index, found = np.zeros(wanted.size, _index_type(held.size)), np.zeros(wanted.size, np.bool_)
    if held.keys <= 4 * (held.size + wanted.size):
        first = _first_holders(held, held.keys, ((at, keys, cells.live) for at, cells, keys, _ in held.slabs()))
        for at, cells, keys, _ in wanted.slabs():
            place = first[keys]
            found[at] = cells.live & (place >= 0)
            index[at] = np.where(found[at], place, 0)
        return index, found
    live = [(keys[cells.live], at.start + np.flatnonzero(cells.live)) for at, cells, keys, _ in held.slabs()]
    unique, place_of = np.unique(np.concatenate([keys for keys, _ in live]), return_index=True)
    holders = np.concatenate([places for _, places in live])[place_of]
    for at, cells, keys, _ in wanted.slabs():
        if len(unique):
            nearest = np.minimum(np.searchsorted(unique, keys), len(unique) - 1)
            found[at] = cells.live & (unique[nearest] == keys)
            index[at] = np.where(found[at], holders[nearest], 0)
    return index, found


def _look_up_zeros(held: _Side, wanted: _Side, index: Ints, found: npt.NDArray[np.bool_]) -> None:
    """Adds for every wanted zero the first zero of the same place."""
    first = _first_holders(held, held.places, ((at, place, cells.kind == _ZERO) for at, cells, _, place in held.slabs()))
    for at, cells, _, place in wanted.slabs():
        zero = cells.kind == _ZERO
        holder = first[place]
        index[at] = np.where(zero, np.where(holder >= 0, holder, 0), index[at])
        found[at] |= zero & (holder >= 0)


def _first_holders(held: _Side, keys: int, slabs: Iterable[tuple[slice, Ints, npt.NDArray[np.bool_]]]) -> Ints:
    """The first position among those marked that has each key, -1 where none has."""
    first = np.full(keys, -1, _index_type(held.size))
    for at, key, marked in slabs:
        places = np.flatnonzero(marked)
        places = places[first[key[places]] < 0][::-1]
        first[key[places]] = at.start + places
    return first


def _index_type(size: int) -> type[np.int32] | type[np.int64]:
    """The smallest type of indices below `size`: gathers of whole operands are kept for all runs of a kernel."""
    return np.int32 if size <= np.iinfo(np.int32).max else np.int64


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
            inner, inner_weight = strip_digits(operand.inner)
            if not isinstance(inner, Symbol) or inner.size > operand.inner.size:  # a digit was padded: counts beyond it are padding
                extent = min(extent, -(-operand.inner.size // weight))
            operand, weight = inner, weight * inner_weight
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

"""Routes of the Switch Engine: what every output slice reads at every output time step, and the snoop bitmap that follows.

A canonical configuration generates its route from its sizes alone (the relation table of the Switch chapter); CustomBroadcast synthesises
it from the mappings: for every output slice and every combination of moved digits, the input slice with the same coordinates (SWITCH-020).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from tcptune.ir.cells import joint_table
from tcptune.ir.mapping import IDENTITY, Mapping
from tcptune.ir.types import StreamType, dtype
from tcptune.model.movement import gather_indices

Ints = npt.NDArray[np.int64]

NO_SOURCE = -1
"""Marks an output position that reads nothing (padding)."""


@dataclass(frozen=True, slots=True)
class Routing:
    """Configuration of the ring for one command.

    Attributes:
        kind: name of the configuration.
        slices: positions of Slice, in and out.
        ring_size: consecutive slices that exchange data.
        in_steps, out_steps: time steps of the input and the output.
        slice1, slice0, time0: sizes of a canonical configuration; 1 where it has none.
        sources: CustomBroadcast only: input slice of every output slice (row) and combination of moved digits (column).
    """

    kind: str
    slices: int
    ring_size: int
    in_steps: int
    out_steps: int
    slice1: int = 1
    slice0: int = 1
    time0: int = 1
    sources: tuple[tuple[int, ...], ...] = ()

    @property
    def sub_rings(self) -> int:
        """Rings that run in parallel (SWITCH-004)."""
        return self.slices // self.ring_size

    @property
    def is_custom(self) -> bool:
        return bool(self.sources)

    @property
    def occupies_while_loading(self) -> tuple[str, ...]:
        """Contexts that loading the configuration holds: a custom bitmap is written to special function registers (SWITCH-022)."""
        return ("dma", "sub") if self.is_custom else ()

    def source_of(self, out_slice: int, out_step: int) -> tuple[int, int]:
        """Input slice and input time step that an output slice carries at an output time step; the slice is -1 for padding."""
        in_slice, in_step = self._sources_at(np.array(out_slice, np.int64), np.array(out_step, np.int64))
        return int(in_slice), int(in_step)

    def route(self) -> tuple[Ints, Ints]:
        """Input slice and input time step of every output position, shape ``(slices, out_steps)``."""
        return _route(self)

    def snoop_bitmap(self) -> list[list[int]]:
        """Input slices that each output slice reads at any time step, ascending."""
        return [[int(q) for q in np.unique(row) if q != NO_SOURCE] for row in self._snooped()]

    def snoop_bitmap_ring(self) -> list[list[int]]:
        """`snoop_bitmap` of the first sub-ring; the others repeat it shifted by the ring size (canonical configurations)."""
        return self.snoop_bitmap()[: self.ring_size]

    def _snooped(self) -> Ints:
        """Input slices per output slice, one column a moved combination; repeated where Time alone decides nothing new."""
        if self.is_custom:
            return np.array(self.sources, np.int64)
        return self.route()[0]

    def _sources_at(self, s: Ints, t: Ints) -> tuple[Ints, Ints]:
        if self.is_custom:
            table = np.array(self.sources, np.int64)
            moved = table.shape[1]
            return table[s, t % moved], np.asarray(t // moved + 0 * s)
        rule = _CANONICAL[self.kind]
        m = s % self.ring_size
        in_ring, in_step = rule(self, m, t)
        return np.asarray(s - m + in_ring), np.asarray(in_step + 0 * s)


@lru_cache(maxsize=64)
def _route(routing: Routing) -> tuple[Ints, Ints]:
    s = np.arange(routing.slices, dtype=np.int64)[:, None]
    t = np.arange(routing.out_steps, dtype=np.int64)[None, :]
    in_slice, in_step = routing._sources_at(s, t)
    shape = (routing.slices, routing.out_steps)
    return np.broadcast_to(in_slice, shape), np.broadcast_to(in_step, shape)


# One function a configuration: (position in the ring, output step) -> (source position in the ring, input step).


def _broadcast01(r: Routing, m: Ints, t: Ints) -> tuple[Ints, Ints]:
    b = t % r.slice0
    t0 = t // r.slice0 % r.time0
    a = t // (r.slice0 * r.time0) % r.slice1
    t1 = t // (r.slice0 * r.time0 * r.slice1)
    return a * r.slice0 + b + 0 * m, t1 * r.time0 + t0


def _broadcast1(r: Routing, m: Ints, t: Ints) -> tuple[Ints, Ints]:
    return t % r.slice1 * r.slice0 + m % r.slice0, t // r.slice1


def _transpose(r: Routing, m: Ints, t: Ints) -> tuple[Ints, Ints]:
    return m % r.slice1 * r.slice0 + m // r.slice1, t


def _inter_transpose(r: Routing, m: Ints, t: Ints) -> tuple[Ints, Ints]:
    a = t % r.slice1
    t0 = t // r.slice1 % r.time0
    t2 = t // (r.slice1 * r.time0)
    u = m // r.slice0
    return a * r.slice0 + m % r.slice0, (t2 * r.slice1 + u) * r.time0 + t0


def _transposed_broadcast1(r: Routing, m: Ints, t: Ints) -> tuple[Ints, Ints]:
    return m % r.slice1 * r.slice0 + t % r.slice0, t // r.slice0


_CANONICAL = {
    "Broadcast01": _broadcast01,
    "Broadcast1": _broadcast1,
    "Transpose": _transpose,
    "InterTranspose": _inter_transpose,
    "TransposedBroadcast1": _transposed_broadcast1,
}


@dataclass(frozen=True, slots=True)
class Synthesis:
    """Sources of a CustomBroadcast, found by coordinates.

    Attributes:
        sources: input slice of every output slice and moved combination, -1 for padding and for cells without a source.
        wanted: which of these output positions are live.
        live_inputs: which input slices are live.
    """

    sources: Ints
    wanted: npt.NDArray[np.bool_]
    live_inputs: npt.NDArray[np.bool_]

    @property
    def orphans(self) -> int:
        """Live output positions that no input slice feeds."""
        return int(np.count_nonzero(self.wanted & (self.sources == NO_SOURCE)))

    @property
    def reads(self) -> Ints:
        """How often each input slice is read."""
        found = self.sources[self.sources != NO_SOURCE]
        return np.bincount(found, minlength=len(self.live_inputs)).astype(np.int64)

    @property
    def keeps_order(self) -> bool:
        """Whether every output slice reads its sources in ascending order: a router cannot reorder (SWITCH-019, SWITCH-026)."""
        so_far = np.maximum.accumulate(self.sources, axis=1)
        return bool(np.all((self.sources == NO_SOURCE) | (self.sources == so_far)))


@lru_cache(maxsize=256)
def synthesise(in_slice: Mapping, out_slice: Mapping, moved: Mapping) -> Synthesis:
    """The source of every output slice and combination of the `moved` digits, by equal coordinates on the axes of `in_slice`."""
    source = _on_slices(in_slice, IDENTITY)
    destination = _on_slices(out_slice, moved)
    index, live = gather_indices(source, destination)
    shape = (out_slice.size, moved.size)
    sources = np.where(live, index, NO_SOURCE).reshape(shape)
    wanted = joint_table(out_slice, moved).live.reshape(shape)
    return Synthesis(sources, wanted, joint_table(in_slice).live.reshape(in_slice.size))


def _on_slices(slice_: Mapping, time: Mapping) -> StreamType:
    return StreamType("Switch", dtype("i8"), IDENTITY, IDENTITY, slice_, time, IDENTITY)

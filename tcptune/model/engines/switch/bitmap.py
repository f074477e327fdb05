"""Routes of the Switch Engine: what every output slice reads at every output time step, and the snoop bitmap that follows.

A canonical configuration is a layout of named parts (`LAYOUTS`) and generates its route from its sizes alone; CustomBroadcast synthesises
its route from the mappings: for every output slice and combination of moved digits, the input slice with the same coordinates (SWITCH-020).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from tcptune.ir.mappings.cells import joint_table
from tcptune.ir.mappings.mapping import IDENTITY, Mapping
from tcptune.ir.types import StreamType, dtype
from tcptune.model.mappings.movement import gather_indices

Ints = npt.NDArray[np.int64]

NO_SOURCE = -1
"""Marks an output position that reads nothing (padding)."""


@dataclass(frozen=True, slots=True)
class Layout:
    """A configuration as the parts of its mappings, major first; ``X(slice1)`` is a new part of the size of slice1 (SWITCH-034).

    The leading part of Time has what is left of the time steps.
    """

    in_time: tuple[str, ...]
    out_slice: tuple[str, ...]
    out_time: tuple[str, ...]
    in_slice: tuple[str, ...] = ("slice2", "slice1", "slice0")


LAYOUTS = {
    "Forwarding": Layout(("time",), ("slice2", "slice1", "slice0"), ("time",)),
    "Broadcast01": Layout(("time1", "time0"), ("slice2", "X(slice1)", "Y(slice0)"), ("time1", "slice1", "time0", "slice0")),
    "Broadcast1": Layout(("time0",), ("slice2", "X(slice1)", "slice0"), ("time0", "slice1")),
    "Transpose": Layout(("time",), ("slice2", "slice0", "slice1"), ("time",)),
    "InterTranspose": Layout(("time2", "time1", "time0"), ("slice2", "time1", "slice0"), ("time2", "time0", "slice1")),
    "TransposedBroadcast1": Layout(("time0",), ("slice2", "Y(slice0)", "slice1"), ("time0", "slice0")),
}
"""Forwarding and the five canonical configurations (SWITCH-006, 007, 009, 010, 012, 016)."""


def is_new(part: str) -> bool:
    """Whether a part of a layout is filled by something that the input does not hold."""
    return part.endswith(")")


def part_sizes(kind: str, slices: int, steps: int, slice1: int, slice0: int, time0: int) -> dict[str, int]:
    """Positions of every part of a layout; the sizes must divide slices and steps."""
    layout = LAYOUTS[kind]
    sizes = {"slice2": slices // (slice1 * slice0), "slice1": slice1, "slice0": slice0, "X(slice1)": slice1, "Y(slice0)": slice0}
    leading, *inner = layout.in_time
    left = steps
    for part in inner:
        sizes[part] = time0 if part == "time0" else slice1
        left //= sizes[part]
    return {**sizes, leading: left}


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

    @property
    def part_sizes(self) -> dict[str, int]:
        """Positions of every part of a canonical layout."""
        return part_sizes(self.kind, self.slices, self.in_steps, self.slice1, self.slice0, self.time0)

    def source_of(self, out_slice: int, out_step: int) -> tuple[int, int]:
        """Input slice and input time step that an output slice carries at an output time step; the slice is -1 for padding."""
        in_slice, in_step = self.sources_at(np.array(out_slice, np.int64), np.array(out_step, np.int64))
        return int(in_slice), int(in_step)

    def route(self) -> tuple[Ints, Ints]:
        """Input slice and input time step of every output position, shape ``(slices, out_steps)``."""
        return _route(self)

    def snoop_bitmap(self) -> list[list[int]]:
        """Input slices that each output slice reads at any time step, ascending."""
        snooped = np.array(self.sources, np.int64) if self.is_custom else self.route()[0]
        return [[int(q) for q in np.unique(row) if q != NO_SOURCE] for row in snooped]

    def snoop_bitmap_ring(self) -> list[list[int]]:
        """`snoop_bitmap` of the first sub-ring; the others repeat it shifted by the ring size (canonical configurations)."""
        return self.snoop_bitmap()[: self.ring_size]

    def sources_at(self, out_slice: Ints, out_step: Ints) -> tuple[Ints, Ints]:
        """Input slices and input time steps of output positions (arrays that broadcast)."""
        if self.is_custom:
            table = np.array(self.sources, np.int64)
            moved = table.shape[1]
            return table[out_slice, out_step % moved], out_step // moved
        layout, sizes = LAYOUTS[self.kind], self.part_sizes
        parts = {**_digits(out_slice, layout.out_slice, sizes), **_digits(out_step, layout.out_time, sizes)}
        return _compose(parts, layout.in_slice, sizes), _compose(parts, layout.in_time, sizes)


def _digits(position: Ints, parts: tuple[str, ...], sizes: dict[str, int]) -> dict[str, Ints]:
    """Value of every part of a position."""
    values = {}
    for part in reversed(parts):
        values[part] = np.asarray(position % sizes[part])
        position = np.asarray(position // sizes[part])
    return values


def _compose(values: dict[str, Ints], parts: tuple[str, ...], sizes: dict[str, int]) -> Ints:
    """The position whose parts have these values."""
    position = np.zeros((), np.int64)
    for part in parts:
        position = position * sizes[part] + values[part]
    return np.asarray(position)


@lru_cache(maxsize=64)
def _route(routing: Routing) -> tuple[Ints, Ints]:
    s = np.arange(routing.slices, dtype=np.int64)[:, None]
    t = np.arange(routing.out_steps, dtype=np.int64)[None, :]
    in_slice, in_step = routing.sources_at(s, t)
    shape = (routing.slices, routing.out_steps)
    return np.broadcast_to(in_slice, shape), np.broadcast_to(in_step, shape)


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

"""Candidates: a placement and the knobs it leaves open; enough to lower one kernel."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable
from collections.abc import Mapping as Dict
from dataclasses import dataclass
from typing import Any

from tcptune.errors import InputError
from tcptune.ir.placement import Placement
from tcptune.ir.workload import Workload

FILLER = "_"
"""Name of the idle slices in `Knobs.slice_order`."""

REPLICATED = 1


@dataclass(frozen=True, slots=True)
class Knobs:
    """What a placement leaves open. The defaults are the manual's choices.

    Attributes:
        stationary: input (0 or 1) that waits in the register file; the other is streamed.
        slice_order: axes of the Slice level, outermost first, with the idle part as ``_``.
        rings: for each input, the slices over which its block is spread and then broadcast by the Switch Engine (1: the load replicates).
        copies: for each input whose load replicates, how often the host stores it in HBM; neighbouring slices then read different copies.
        spread: for each input, ``outer`` or ``inner``: which end of the row-major order is spread over the ring first.
        relayout: for each input, the axis that a copy pass makes innermost before use, or empty.
        refetch: the stream is fetched again for every output position of the stationary operand (else the Stream Adapter repeats it).
        k_inner: summed axes run inside of the output axes in Time (else outside).
        lane_mode: ``Interleaved`` or ``Sequential``.
        transpose: the Transpose Engine makes the innermost output axis the packet.
        cast: ``engine`` or ``commit`` (where the result needs one).
        staging: context that fills the register file, ``sub`` or ``main``.
        gather: ``none``, ``exchange`` (swap slice and time digits) or ``collect`` (all to one slice of each ring), before the store.
        gather_ring: positions of the innermost output axis that one slice receives from others.
        slice_sum: how partial sums of summed axes over slices are added: ``reducer`` (Inter-Slice Reducer), ``gather`` (every slice of a
            ring receives all of them and adds), ``exchange`` (each slice of the ring adds its share of the outputs), ``transfer`` (one DMA
            brings them into one slice).
        cluster_sum: where the partial sums of two clusters are added: ``one`` (cluster 0 receives both) or ``scatter`` (half in either).
    """

    stationary: int = 1
    slice_order: tuple[str, ...] = ()
    rings: tuple[int, int] = (REPLICATED, REPLICATED)
    spread: tuple[str, str] = ("outer", "outer")
    copies: tuple[int, int] = (1, 1)
    relayout: tuple[str, str] = ("", "")
    refetch: bool = False
    k_inner: bool = True
    lane_mode: str = "Interleaved"
    transpose: bool = False
    cast: str = "engine"
    staging: str = "sub"
    gather: str = "none"
    gather_ring: int = 1
    slice_sum: str = "reducer"
    cluster_sum: str = "one"

    def to_json(self) -> dict[str, Any]:
        return {f.name: list(v) if isinstance(v := getattr(self, f.name), tuple) else v for f in dataclasses.fields(self)}

    @classmethod
    def from_json(cls, raw: Dict[str, Any]) -> Knobs:
        values: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in raw.items()}
        return cls(**values)


@dataclass(frozen=True, slots=True)
class TileLoop:
    """One loop of a nest of tiles: `count` iterations along `axis`; written out for the scheduler (`unroll`) or kept."""

    axis: str
    count: int
    unroll: bool = True


@dataclass(frozen=True)
class Tiles:
    """The loops around a body that does one tile.

    An axis may have several loops; their iterations count its tiles, the outermost loop first. An operand stays resident across every loop
    inside of the last one that cuts one of its axes; so the order of the loops decides what is loaded how often. Loops over summed axes are
    the innermost ones: the partial sums of one tile of the result wait in data memory and are added behind them.

    Attributes:
        loops: outermost first; counts of at least 2.
        lengths: (axis, positions of one tile) of every axis that is cut.
    """

    loops: tuple[TileLoop, ...] = ()
    lengths: tuple[tuple[str, int], ...] = ()

    @property
    def axes(self) -> tuple[str, ...]:
        return tuple(axis for axis, _ in self.lengths)

    @property
    def tiles(self) -> int:
        """How often the body runs."""
        return math.prod(loop.count for loop in self.loops)

    def length(self, axis: str) -> int:
        return dict(self.lengths)[axis]

    def count(self, axis: str) -> int:
        """Tiles along one axis."""
        return math.prod(loop.count for loop in self.loops if loop.axis == axis)

    def pitch(self, axis: str, size: int) -> int:
        """Positions between the starts of neighbouring tiles; tiles that are longer overlap, and compute what they share alike.

        Raises:
            InputError: the tiles do not cover the axis exactly.
        """
        length, count = self.length(axis), self.count(axis)
        pitch, rest = divmod(size - length, max(1, count - 1))
        if rest or not 0 <= pitch <= length or (count == 1 and length != size):
            raise InputError(f"{count} tiles of {length} positions do not cover axis {axis} of {size}")
        return pitch

    def depth(self, axes: Iterable[str]) -> int:
        """How many of the loops, counted from outside, must run before a tile of a tensor over `axes` is known."""
        held = set(axes)
        return max((n for n, loop in enumerate(self.loops, 1) if loop.axis in held), default=0)

    def runs(self, depth: int) -> int:
        """How often a step inside of the first `depth` loops runs."""
        return math.prod(loop.count for loop in self.loops[:depth])

    def parts(self, output: Iterable[str]) -> int:
        """Tiles of summed axes, those that the result lacks: each leaves a partial sum of every result."""
        held = set(output)
        return math.prod(loop.count for loop in self.loops if loop.axis not in held)

    def body_workload(self, workload: Workload) -> Workload:
        """What one tile computes."""
        lengths = dict(self.lengths)
        return dataclasses.replace(workload, sizes=tuple((axis, lengths.get(axis, size)) for axis, size in workload.sizes))

    def to_words(self) -> dict[str, Any]:
        """What a report says: tiles and positions of one along every axis, the loops with their iterations, and which are unrolled.

        >>> Tiles((TileLoop("i", 2, unroll=False), TileLoop("j", 4)), (("i", 512), ("j", 128))).to_words()
        {'tiles': ['i: 2 of 512', 'j: 4 of 128'], 'loops': ['i: 2', 'j: 4'], 'unroll': ['j: 4']}
        >>> Tiles().to_words()
        {'tiles': 'none'}
        """
        if not self.loops:
            return {"tiles": "none"}
        cut = [f"{axis}: {self.count(axis)} of {length}" for axis, length in self.lengths]
        unrolled = [f"{loop.axis}: {loop.count}" for loop in self.loops if loop.unroll]
        chosen = "all" if len(unrolled) == len(self.loops) else unrolled or "none"
        return {"tiles": cut, "loops": [f"{loop.axis}: {loop.count}" for loop in self.loops], "unroll": chosen}

    def to_json(self) -> dict[str, Any]:
        return {"loops": [dataclasses.asdict(loop) for loop in self.loops], "lengths": dict(self.lengths)}

    @classmethod
    def from_json(cls, raw: Dict[str, Any]) -> Tiles:
        return cls(tuple(TileLoop(**loop) for loop in raw["loops"]), tuple(raw["lengths"].items()))


@dataclass(frozen=True)
class Candidate:
    """One point of the search space; `exec.lowering.candidates` turns it into a kernel: a nest of tile loops around a one-pass body.

    Attributes:
        workload: what the kernel computes.
        placement, knobs: of one pass, which does one tile.
        tiles: the loops around it; without any the pass does all of the workload.
        whole: of a body alone (`body`), the workload of which its own is one tile.
        parts: of a body alone, the passes whose results are added: tiles of summed axes.
    """

    workload: Workload
    placement: Placement
    knobs: Knobs
    tiles: Tiles = Tiles()
    whole: Workload | None = None
    parts: int = 1

    @property
    def body(self) -> Candidate:
        """The pass inside of the loops, as a candidate for the workload of one tile."""
        parts = self.tiles.parts(self.workload.output)
        return Candidate(self.tiles.body_workload(self.workload), self.placement, self.knobs, whole=self.workload, parts=parts)

    def with_fewer_tiles(self, most: Dict[str, int]) -> Candidate:
        """The same body and order of loops over a smaller workload: at most so many tiles along each axis.

        The innermost loops of an axis keep what they can; a loop that is left with one iteration goes.
        """
        kept: list[TileLoop] = []
        left = {axis: most.get(axis, self.tiles.count(axis)) for axis in self.tiles.axes}
        for loop in reversed(self.tiles.loops):
            count = min(loop.count, left[loop.axis])
            left[loop.axis] //= count
            if count > 1:
                kept.append(dataclasses.replace(loop, count=count))
        loops = tuple(reversed(kept))
        sizes = dict(self.workload.sizes)
        for axis, length in self.tiles.lengths:
            count = math.prod(loop.count for loop in loops if loop.axis == axis)
            sizes[axis] = length + self.tiles.pitch(axis, sizes[axis]) * (count - 1)
        workload = dataclasses.replace(self.workload, sizes=tuple(sizes.items()))
        cut = {loop.axis for loop in loops}
        lengths = tuple((axis, length) for axis, length in self.tiles.lengths if axis in cut)
        return dataclasses.replace(self, workload=workload, tiles=Tiles(loops, lengths))

    def to_json(self) -> dict[str, Any]:
        out: dict[str, Any] = {"placement": self.placement.to_json(), "knobs": self.knobs.to_json()}
        return {**out, "tiles": self.tiles.to_json()} if self.tiles.loops else out

    @classmethod
    def from_json(cls, workload: Workload, raw: Dict[str, Any]) -> Candidate:
        tiles = Tiles.from_json(raw["tiles"]) if "tiles" in raw else Tiles()
        return cls(workload, Placement.from_json(raw["placement"]), Knobs.from_json(raw["knobs"]), tiles)

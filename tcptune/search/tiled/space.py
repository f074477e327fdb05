"""The space of tiled plans: tilings in the order of their bound, and for each the cheapest body of the one-pass space of its tile."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property, partial

import numpy as np
import numpy.typing as npt

from tcptune.errors import WorkError
from tcptune.ir.candidate import Candidate, Knobs, Tiles
from tcptune.ir.placement import Placement
from tcptune.ir.types import dtype
from tcptune.ir.workload import Workload
from tcptune.model.hardware import RNGD
from tcptune.model.timing.kernels import kernel_timing
from tcptune.search.deadline import Deadline
from tcptune.search.knobs import Budget, least_setting, slice_orders
from tcptune.search.space import Space
from tcptune.search.tiled.stand_in import checked_if_legal
from tcptune.search.tiled.tilings import require_room, tilings
from tcptune.solver.pricing import FixedCosts
from tcptune.solver.tables import PlacementTable
from tcptune.solver.tiled_bounds import tiles_bound
from tcptune.solver.tiled_pricing import Nest, nest_cycles

Floats = npt.NDArray[np.float64]

BODIES = 16
"""Placements of a tile that are priced, those with the least estimate."""


ORDERS = 6
"""Slice orders of a placement that are priced, those that the Inter-Slice Reducer takes first."""

ACCUMULATOR_BYTES = dtype("f32").bits // 8
"""Bytes of a partial sum, f32 or i32."""

FAR = 8
"""Bodies that cost more than so many times the estimate of their placement are not looked for."""


@dataclass(frozen=True)
class Body:
    """A priced body in its loops; `cycles` is the price of the whole kernel."""

    cycles: int
    candidate: Candidate


@dataclass(frozen=True)
class TiledSpace:
    """All tilings of a workload. Entries are numbered by bound, so the order is the same in every run."""

    workload: Workload
    profile: str = "vendor"
    deadline: Deadline = field(default=Deadline(), compare=False)

    @cached_property
    def fixed(self) -> FixedCosts:
        return FixedCosts.of(self.profile)

    @cached_property
    def _order(self) -> tuple[tuple[int, Tiles], ...]:
        """(bound, tiling) of every entry, in order."""
        found = []
        for tiles in tilings(self.workload):
            self.deadline.check()
            found.append((tiles_bound(self.workload, tiles, self.fixed, self.profile), tiles))
        return tuple(sorted(found, key=lambda entry: entry[0]))

    @property
    def entries(self) -> int:
        return len(self._order)

    def bound(self, entry: int) -> int:
        """Lower bound of every plan of one tiling, in cycles."""
        return self._order[entry][0]

    def tiles(self, entry: int) -> Tiles:
        return self._order[entry][1]

    @cached_property
    def lower_bound(self) -> int:
        """Lower bound of every tiled plan, in cycles."""
        return tiles_bound(self.workload, Tiles(), self.fixed, self.profile)

    def prepare(self) -> None:
        """Lists the tilings.

        Raises:
            TimeIsUp: the deadline is over. WorkError: all tensors together are larger than the memory of the chip.
        """
        require_room(self.workload)
        self._order  # noqa: B018 - computed once and kept

    def bodies(self, entry: int, below: int, keep: int = 1) -> list[Body]:
        """The cheapest bodies found for one tiling whose kernels cost less than `below`, at most `keep`, one for each placement of a tile.

        Raises:
            TimeIsUp: the deadline is over.
        """
        tiles = self.tiles(entry)
        space = Space(tiles.body_workload(self.workload), self.profile, self.deadline)
        try:
            space.prepare()
        except WorkError:  # the tile does not fit one pass either
            return []
        best: list[Body] = []
        for placed in _placements(space, tiles, self.fixed, below, BODIES * keep):
            self.deadline.check()
            limit = below if len(best) < keep else best[-1].cycles
            if placed.bound >= limit:
                continue
            found = self._best_body(tiles, placed, limit)
            best = sorted([*best, *([found] if found is not None else [])], key=lambda body: body.cycles)[:keep]
        return best

    def _best_body(self, tiles: Tiles, placed: _Placed, below: int) -> Body | None:
        """The cheapest setting of the knobs of one placement."""
        depths = [tiles.depth(axes) for axes in self.workload.inputs]
        stationary = placed.start.stationary
        nest = Nest(tiles, depths[stationary], depths[1 - stationary], tiles.depth(self.workload.output), placed.overlaps)
        best: Body | None = None
        below = min(below, FAR * placed.estimate)
        for order in slice_orders(placed.placement, self.workload.output)[:ORDERS]:
            whole = Candidate(self.workload, placed.placement, replace(placed.start, slice_order=order), tiles)
            cost = partial(nest_cycles, nest, profile=self.profile)
            budget = _budget(self.workload, tiles, below, placed.least_pass)
            found = least_setting(whole.body, self.fixed, self.profile, cost, below, budget, partial(_is_legal, whole))
            if found is not None:
                below = int(found[0])
                best = Body(below, replace(whole, knobs=found[1].knobs))
        return best


def _is_legal(candidate: Candidate, knobs: Knobs) -> bool:
    """Whether the kernel of a candidate with these knobs keeps every rule of the checker."""
    return checked_if_legal(replace(candidate, knobs=knobs)) is not None


def _budget(workload: Workload, tiles: Tiles, below: int, least_pass: int) -> Budget:
    """What the parts of a body may cost in a kernel of fewer than `below` cycles: Main and the DMA engine have so much time each."""
    first, second = (below / tiles.runs(tiles.depth(axes)) for axes in workload.inputs)
    return Budget((first, second), 2 * below / tiles.runs(tiles.depth(workload.output)), least_pass)


def _two_fit(workload: Workload, tiles: Tiles, table: PlacementTable) -> npt.NDArray[np.bool_]:
    """Whether two tiles fit data memory and the register file at once, for every placement; what no inner loop changes is there once."""
    innermost = len(tiles.loops)

    def times(axes: tuple[str, ...]) -> int:
        return 2 if innermost and tiles.depth(axes) == innermost else 1

    held = sum(times(axes) * table.product(axes, "in_slice") for axes in workload.inputs) * workload.dtype.bits // 8
    held = held + 2 * table.output_block() * workload.out_dtype.bits // 8 + _parts_bytes(tiles, table)
    staged = table.staged_flits() * RNGD.flit_bytes * times(workload.inputs[table.family.stationary])
    return np.asarray((held <= RNGD.dm_bytes_per_slice) & (staged <= RNGD.trf_bytes_per_slice))


def _parts_bytes(tiles: Tiles, table: PlacementTable) -> npt.NDArray[np.int64]:
    """Data memory of a slice for the partial sums of one result's tiles, for every placement."""
    parts = tiles.parts(table.family.workload.output)
    if parts == 1:
        return np.zeros(table.rows, dtype=np.int64)
    word = RNGD.stream_alignment_bytes
    return parts * np.maximum(word, table.output_block() * ACCUMULATOR_BYTES)


def _one_fits(tiles: Tiles, table: PlacementTable) -> npt.NDArray[np.bool_]:
    """Whether the partial sums fit data memory beside one tile, for every placement."""
    workload = table.family.workload
    held = sum(table.product(axes, "in_slice") for axes in workload.inputs) * workload.dtype.bits // 8
    return np.asarray(held + _parts_bytes(tiles, table) <= RNGD.dm_bytes_per_slice)


@dataclass(frozen=True, slots=True)
class _Placed:
    """A placement of a tile: estimate and bound of the whole kernel, bound of one pass, whether two tiles fit, the knobs of its family."""

    estimate: int
    bound: int
    least_pass: int
    overlaps: bool
    placement: Placement
    start: Knobs


def _placements(space: Space, tiles: Tiles, fixed: FixedCosts, below: int, most: int) -> Iterator[_Placed]:
    """The placements of least estimate whose bound is below `below`, at most `most`."""
    found: list[tuple[int, int, int, int]] = []
    for number, table in enumerate(space.tables):
        estimates, bounds = _kernel_cycles(space, number, table, tiles, fixed)
        rows = np.flatnonzero((bounds < below) & _one_fits(tiles, table))
        rows = rows[np.argsort(estimates[rows], kind="stable")[:most]]
        found += [(int(estimates[row]), number, int(row), int(bounds[row])) for row in rows]
    for estimate, number, row, bound in sorted(found)[:most]:
        table = space.tables[number]
        family = table.family
        overlaps = bool(_two_fit(family.workload, tiles, table)[row])
        least_pass = int(space.bounds[number].contraction[row])
        yield _Placed(
            estimate, bound, least_pass, overlaps, table.placement(row), Knobs(stationary=family.stationary, relayout=family.relayout)
        )


def _kernel_cycles(space: Space, number: int, table: PlacementTable, tiles: Tiles, fixed: FixedCosts) -> tuple[Floats, Floats]:
    """Estimate and lower bound of the whole kernel, for every placement of a tile.

    The bound is what the DMA engine or Main takes at least for all tiles; a pass inside of a kept loop costs less than the one-pass bound
    says (VT-046). Where two tiles do not fit the memories, the estimate adds both, as if no load ran beside a pass; some may.
    """
    bounds = space.bounds[number]
    if not tiles.loops:
        total = np.asarray(bounds.total, dtype=np.float64)
        return total, total
    workload = table.family.workload
    runs = [tiles.runs(tiles.depth(axes)) for axes in (*workload.inputs, workload.output)]
    transfers = runs[0] * bounds.loads[0] + runs[1] * bounds.loads[1] + runs[2] * bounds.store
    saved = 0.0 if all(loop.unroll for loop in tiles.loops) else kernel_timing(space.profile).loop_pass_saving.value
    passes = tiles.tiles * np.maximum(bounds.contraction - saved, 0)
    busiest = np.maximum(transfers, passes)
    added = runs[2] * _addition_cycles(tiles, table, fixed)
    likely = np.where(_two_fit(workload, tiles, table), np.maximum(transfers, passes + added), transfers + passes + added)
    ends = fixed.start + fixed.sync
    return np.asarray(ends + likely, dtype=np.float64), np.asarray(ends + busiest, dtype=np.float64)


def _addition_cycles(tiles: Tiles, table: PlacementTable, fixed: FixedCosts) -> Floats:
    """Cycles of the pass that adds the partial sums of one result's tiles, about: a 4-way packet a step (VT-005), for every placement."""
    parts = tiles.parts(table.family.workload.output)
    if parts == 1:
        return np.zeros(table.rows)
    return np.asarray(fixed.vector_pass + parts * np.ceil(table.output_block() / RNGD.vector_ways[1]), dtype=np.float64)

"""Lower bounds on the makespan of every placement of a table, vectorised; valid for every setting of the knobs.

A plan loads both operands (one DMA at a time), stages one, streams the other, perhaps gathers, stores, syncs; each part is bounded from the
bytes and pieces that its placement makes mandatory (`solver.transfer_bounds` for the DMA engine):

* a load brings its live bytes to every slice that shares them, except where the Switch Engine hands parts round. A ring of `r` slices
  divides the copies by `r` at most; a block that is one packet, or whose positions are odd, is not divided at all, so it is replicated;
* rings of both operands lie one inside of the other (they share no digit but the idle one), and the switch passes the flits of the outer
  ring once for each position of the inner one: what the inner ring saves in copies, the outer operand pays in flits;
* summed slices lie inside of such a ring, which then passes its flits once for each of them, or outside, where the Inter-Slice Reducer does
  not reach them, and a ring that gathers partial sums goes round the slices of the operand's ring too;
* the pass: packets, flits and drained flits at the best lane mode; a stream that the accumulator cannot hold is fetched again; with summed
  axes over slices or clusters, the cheapest way to add;
* an epilogue: the loads of its operands before the pass that reads them, and passes of its own;
* the store: the pieces that lie in a slice, or after a gather pass those of whole rows. A packet that is no part of the innermost output
  axis leaves single elements behind, unless a transpose regroups whole words of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from math import floor, prod

import numpy as np
import numpy.typing as npt

from tcptune.exec.lowering.fused_epilogue import operand_dtype
from tcptune.ir.candidate import Tiles
from tcptune.ir.placement import Placement
from tcptune.ir.types import DType
from tcptune.ir.workload import K, Workload
from tcptune.model.hardware import RNGD
from tcptune.model.timing.calibration import DmaTiming
from tcptune.solver.epilogue_pricing import EpiloguePart, passes_of
from tcptune.solver.fixed_costs import FixedCosts
from tcptune.solver.store_bounds import result_store_bound
from tcptune.solver.tables import Family, Ints, PlacementTable, summed_size
from tcptune.solver.transfer_bounds import Traffic, cluster_shares, load_bound, run_bytes, summed

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Bounds:
    """Bounds of one table; `total` in whole cycles."""

    loads: tuple[Floats, Floats]
    contraction: Floats
    store: Floats
    total: Ints
    epilogue: tuple[PartBounds, ...] = ()


@dataclass(frozen=True)
class PartBounds:
    """Bounds of one vector pass of an epilogue: loads of its operands, their staging, and the pass (0 inside of the contraction's)."""

    loads: tuple[Floats, ...]
    staging: int
    cycles: Floats

    def of(self, row: int) -> EpiloguePart:
        """The bounds of one row, in whole cycles."""
        return EpiloguePart(tuple((floor(load[row]), self.staging) for load in self.loads), floor(self.cycles[row]))


_LEAST_RING = 2
"""Slices of the smallest ring."""

PerInput = dict[int, Floats]
"""A value of every row for either input, by its number."""


def table_bounds(table: PlacementTable, fixed: FixedCosts, timing: DmaTiming) -> Bounds:
    """Bounds of every row of `table`: of the ways to bring both operands to their slices, the one that takes least."""
    plans = _Plans.of(table, fixed, timing)
    ways = [plans.without_rings(), *(bound for inner in plans.operands for bound in plans.with_inner_ring(inner))]
    total = np.floor(np.minimum.reduce(ways)).astype(np.int64)
    contraction = plans.sums.cheapest(plans.streaming.steps(np.ones(table.rows)))
    return Bounds((plans.least[0], plans.least[1]), contraction, plans.store, total, plans.epilogue)


@dataclass(frozen=True)
class _Plans:
    """What the plans of a table's rows consist of; its methods bound the makespans of those that load their operands in one way.

    Attributes:
        staged_flits: of the stationary operand, in a slice.
        operands, copies: what the load of either input brings, and the cycles of the pass that changes its innermost axis.
        alone, least: cycles of either load where it replicates, and with the largest ring that could be.
        store: cycles of the store, or of a gather and the store behind it.
    """

    table: PlacementTable
    fixed: FixedCosts
    timing: DmaTiming
    staged_flits: Ints
    operands: dict[int, _Operand]
    copies: PerInput
    alone: PerInput
    least: PerInput
    streaming: _Streaming
    sums: _Sums
    epilogue: tuple[PartBounds, ...]
    store: Floats

    @classmethod
    def of(cls, table: PlacementTable, fixed: FixedCosts, timing: DmaTiming) -> _Plans:
        operands = {index: _Operand.of(table, index) for index in (table.family.stationary, table.family.stream)}
        return cls(
            table,
            fixed,
            timing,
            table.staged_flits(),
            operands,
            {index: _relayout_bound(table, operand, index, fixed) for index, operand in operands.items()},
            {index: operand.load(operand.shared, timing) for index, operand in operands.items()},
            {index: operand.load(operand.fewest_copies, timing) for index, operand in operands.items()},
            _Streaming.of(table),
            _Sums.of(table, fixed, timing),
            _epilogue_bounds(table, fixed, timing),
            result_store_bound(table, fixed, timing),
        )

    def without_rings(self) -> Floats:
        """Both loads replicate."""
        return self._makespan(self.alone, self._rounds(), self.sums.cheapest)

    def with_inner_ring(self, inner: int) -> Iterator[Floats]:
        """The other operand comes by a ring; input `inner` by none, or by one of 2, 4, … slices inside of that.

        What the inner ring saves in copies, the other operand pays: the switch passes its flits once for each slice of it. Infinite where
        a block cannot be spread so far.
        """
        operand, outer = self.operands[inner], 1 - inner
        yield self._with_rings({inner: self.alone[inner], outer: self.least[outer]}, self._rounds(), (outer,), _LEAST_RING)
        ring = _LEAST_RING
        while ring <= int(operand.largest_ring.max()):
            load = operand.load(np.maximum(1, operand.shared // ring), self.timing)
            bound = self._with_rings({inner: load, outer: self.least[outer]}, self._rounds(outer, ring), (inner, outer), ring)
            yield np.where((ring <= operand.largest_ring) & (ring <= operand.shared), bound, np.inf)
            ring *= 2

    def _rounds(self, outer: int | None = None, ring: int = 1) -> PerInput:
        """How often the switch passes the flits of either input: once, those of `outer` for each slice of the ring inside of its own."""
        return {index: np.full(self.table.rows, float(ring if index == outer else 1)) for index in self.operands}

    def _with_rings(self, loads: PerInput, rounds: PerInput, ringed: tuple[int, ...], ring: int) -> Floats:
        """`ringed` operands come by rings, the inner one over `ring` slices at least; summed slices lie inside of that one or outside."""
        if not self.sums.over_slices:
            return self._makespan(loads, rounds, self.sums.inside)
        passed = {index: count * self.sums.slices if index in ringed else count for index, count in rounds.items()}
        inside = self._makespan(loads, passed, self.sums.inside)
        return np.minimum(inside, self._makespan(loads, rounds, partial(self.sums.outside, ring=ring)))

    def _makespan(self, loads: PerInput, rounds: PerInput, added: Callable[[Floats], Floats]) -> Floats:
        """Bound of the plans with these loads and rounds; `added` gives the cycles of a pass of so many steps and of what adds its sums."""
        w, x = self.table.family.stationary, self.table.family.stream
        staging = self.fixed.staging_pass + self.staged_flits * rounds[w]
        front = _front_bound(loads[w], loads[x], self.copies[w], self.copies[x], staging)
        computed = _with_epilogue(self.epilogue, front, loads[w] + loads[x], added(self.streaming.steps(rounds[x])))
        return np.asarray(self.fixed.start + computed + self.store + self.fixed.sync, dtype=np.float64)


def placement_bound(family: Family, placement: Placement, fixed: FixedCosts, timing: DmaTiming) -> int:
    """Bound of every plan of one placement, in a table or not; in cycles.

    The bounds of tables take for granted that padding leaves no slice without live positions of its own (`keeps_slices_live`); for a
    placement that pads more this is what the transfers alone take.
    """
    if not keeps_slices_live(family, placement):
        return floor(fixed.start + transfers_of(family.workload, Tiles(), timing) + fixed.sync)
    axes = family.workload.axes
    one = PlacementTable(family, axes, tuple((placement.of(a),) for a in axes), np.zeros((1, len(axes)), dtype=np.int64))
    return int(table_bounds(one, fixed, timing).total[0])


def keeps_slices_live(family: Family, placement: Placement) -> bool:
    """Whether every axis is padded below twice its positions, or beyond that in one packet and one set of lanes of a single slice only."""
    workload = family.workload
    for cut in placement.axes:
        size = summed_size(workload, cut.axis) if workload.roles()[cut.axis] == K else workload.size(cut.axis)
        if cut.padded >= 2 * size and (cut.cluster * cut.slice > 1 or cut.time > 1):
            return False
    return True


def _front_bound(load_w: Floats, load_x: Floats, copy_w: Floats, copy_x: Floats, staging: Floats) -> Floats:
    """Cycles until both operands are ready, in the better order of the loads; copies and staging at best beside one another."""
    both = load_w + load_x
    stationary_first = np.maximum(load_w + copy_w + staging, both + copy_x)
    stream_first = np.maximum(both + copy_w + staging, load_x + copy_x)
    return np.asarray(np.minimum(stationary_first, stream_first), dtype=np.float64)


def transfer_floor(moved_bytes: float, timing: DmaTiming, *, store: bool, clusters: int = RNGD.clusters_per_chip) -> float:
    """Cycles that a transfer of so many bytes takes at least: its startup, and its lines shared out evenly over all engines of so many
    clusters, at the cheapest rate (VT-021).
    """
    lines = moved_bytes / RNGD.request_bytes / (RNGD.engines_per_cluster * clusters)
    start = timing.start_store if store else timing.start_load
    return start.value + timing.issue_far.value * max(0.0, lines - 1)


def transfers_of(workload: Workload, tiles: Tiles, timing: DmaTiming) -> float:
    """Cycles of DMA that every plan with these loops takes at least, one transfer at a time (VT-042).

    Every tile of every tensor moves as often as its loops reach it, without the host's padding, which a plan may leave behind.
    """
    body, cycles = tiles.body_workload(workload), 0.0
    for axes, element, store in tensor_transfers(body):
        cycles += tiles.runs(tiles.depth(axes)) * transfer_floor(live_bytes(body, axes, element), timing, store=store)
    return cycles


def tensor_transfers(workload: Workload) -> list[tuple[tuple[str, ...], DType, bool]]:
    """Axes and element of every tensor that a plan moves between HBM and data memory, and whether it is stored."""
    return [*((axes, workload.dtype, False) for axes in workload.inputs), (workload.output, workload.out_dtype, True)]


def live_bytes(workload: Workload, axes: tuple[str, ...], element: DType) -> float:
    """Bytes of a tensor without the padding of its rows."""
    return prod(workload.size(axis) for axis in axes) * element.bits / 8


# loads


@dataclass(frozen=True)
class _Operand:
    """What the load of one operand must bring, one entry a row.

    Attributes:
        first_bytes, last_bytes: distinct live bytes of the first and the last cluster.
        own: slices among which the operand is divided.
        shared: slices that share one block of it, idle ones apart.
        largest_ring: slices, idle ones included, over which a ring may spread a block, at most (1: none).
    """

    first_bytes: Floats
    last_bytes: Floats
    run_bytes: Floats
    own: Ints
    shared: Ints
    largest_ring: Ints
    span_bytes: int

    @classmethod
    def of(cls, table: PlacementTable, index: int) -> _Operand:
        workload = table.family.workload
        axes = workload.inputs[index]
        foreign = [a for a in table.axes if a not in axes]
        own = table.product(axes, "slice")
        live = np.full(table.rows, workload.dtype.bits / 8)
        for axis in axes:
            live = live * _loaded(table, axes, axis)
        first, last = cluster_shares(table, axes)
        free = np.ones(table.rows, dtype=np.int64)
        for axis in axes:
            held = table.column(axis, "in_slice")
            rows = workload.row_elements(axes, workload.dtype) if axis == axes[-1] else 1
            free *= np.maximum(held & -held, rows & -rows)
        packet = table.column(table.family.innermost(index), "packet")
        ring = np.minimum(np.maximum(1, free // (packet & -packet)), RNGD.slices_per_cluster // own)
        return cls(
            live * first,
            live * last,
            run_bytes(table, axes, workload.dtype, gathered=False),
            own,
            table.product(foreign, "slice"),
            ring,
            workload.hbm_copies * workload.bytes_of(axes, workload.dtype),
        )

    @property
    def fewest_copies(self) -> Ints:
        return np.asarray(np.maximum(1, self.shared // self.largest_ring), dtype=np.int64)

    def load(self, copies: Ints, timing: DmaTiming) -> Floats:
        """Bound of a load that brings `copies` of every part to a cluster."""
        places = np.minimum(RNGD.slices_per_cluster, self.own * self.shared * self.largest_ring)
        span = self.span_bytes * copies.astype(np.float64)  # where copies are made, they may lie in HBM already
        return load_bound(Traffic(self.first_bytes * copies, self.last_bytes * copies, self.run_bytes, places, span), timing)


def _loaded(table: PlacementTable, axes: tuple[str, ...], axis: str) -> Ints:
    """Positions of an axis that a load brings at least: live ones, and the host's zeros behind rows that are summed in one slice."""
    workload = table.family.workload
    size = workload.size(axis)
    if axis != axes[-1] or workload.roles()[axis] != K:
        return np.full(table.rows, size, dtype=np.int64)
    whole = table.column(axis, "slice") * table.column(axis, "cluster") == 1
    return np.where(whole, workload.row_elements(axes, workload.dtype), size)


# passes


def _relayout_bound(table: PlacementTable, operand: _Operand, index: int, fixed: FixedCosts) -> Floats:
    """A copy pass reads one element a cycle; at best the operand lies once in a cluster.

    It reads a word a cycle where nothing, or only what a ring may spread, lies behind the axis that it makes innermost.
    """
    wanted = table.family.relayout[index]
    if not wanted:
        return np.zeros(table.rows)
    workload = table.family.workload
    axes, element = workload.inputs[index], workload.dtype
    cluster_bytes = workload.bytes_of(axes, element) / table.product(axes, "cluster")
    elements = cluster_bytes * 8 / element.bits / RNGD.slices_per_cluster
    behind = table.product(axes[axes.index(wanted) + 1 :], "in_slice")
    word = element.elements_in(RNGD.stream_alignment_bytes)
    return np.asarray(fixed.copy_pass + elements / np.where(behind <= operand.largest_ring, word, 1), dtype=np.float64)


@dataclass(frozen=True)
class _Streaming:
    """The contraction pass of every row: flits of a slice, and the longest of the other streams that the pass waits for."""

    flits: Ints
    others: Ints

    @classmethod
    def of(cls, table: PlacementTable) -> _Streaming:
        family = table.family
        flit = family.workload.dtype.elements_in(RNGD.flit_bytes)
        flits = table.streamed_flits()
        packet = table.column(family.packet_axis, "packet") if family.packet_axis else np.ones(table.rows, dtype=np.int64)
        lane = table.product(table.axes, "lane")
        repeated = [a for a in family.workload.output if a not in family.workload.inputs[family.stream]]
        broadcast = table.product(repeated, "in_slice") // lane
        packets = flits // np.maximum(1, packet // flit) * broadcast
        outputs = table.output_block()
        drained = outputs // lane
        if not family.sums_packet:
            drained = np.minimum(drained, outputs // packet * -(-packet // family.hw.lane_bus_elements))
        again = np.where(_must_fetch_again(table, broadcast, packet), broadcast, 1)
        return cls(flits, np.maximum.reduce([flits * again, packets, drained]))

    def steps(self, rounds: Floats) -> Floats:
        """Cycles that stream; `rounds` multiplies the switch's flits where another ring lies inside of the stream's."""
        return np.asarray(np.maximum(self.flits * rounds, self.others), dtype=np.float64)


def _must_fetch_again(table: PlacementTable, broadcast: Ints, packet: Ints) -> npt.NDArray[np.bool_]:
    """Where the Stream Adapter cannot repeat the stream: summed positions in Time lie outside of its repeats, one accumulator slot each.

    The accumulator has most slots with the lane mode that needs fewest cells a slot (TIMERED-004, TIMERED-006).
    """
    family = table.family
    summed = [a for a in table.axes if a not in family.workload.output]
    steps = table.product(summed, "in_slice")
    if family.sums_packet:
        steps = steps // packet
    lane = table.product(table.axes, "lane")
    cells = np.ones(table.rows, dtype=np.int64) if family.sums_packet else packet
    slots = np.maximum(
        RNGD.accumulator_cells // (RNGD.lanes_per_slice * cells), RNGD.accumulator_cells // (lane * RNGD.accumulator_columns)
    )
    return np.asarray((steps > 1) & (broadcast > slots))


@dataclass(frozen=True)
class _Sums:
    """Ways to add partial sums of slices and clusters, and what they cost beside a contraction of `streamed` cycles (VT-009, 011, 030).

    Either the Inter-Slice Reducer adds those of slices in the pass itself; or a pass of its own adds them, after a ring of at least as many
    slices as there are terms, or after a DMA of them all. Those of two clusters take a DMA and a pass in any case; each may add half.

    Attributes:
        slices: over which one sum lies.
        terms: of one sum, clusters included.
        flits: of the partial sums that one slice adds, for each term.
        exchanged: DMA and pass for the terms of two clusters alone.
        across, copied: DMA of all terms where clusters make it mandatory, and in any case.
        ring_wait: what the ring of all slices costs on top.
    """

    fixed: FixedCosts
    slices: Ints
    terms: Ints
    flits: Floats
    exchanged: Floats
    across: Floats
    copied: Floats
    ring_wait: Floats

    @classmethod
    def of(cls, table: PlacementTable, fixed: FixedCosts, timing: DmaTiming) -> _Sums:
        slices, clusters = summed(table, "slice"), summed(table, "cluster")
        workload, flit = table.family.workload, RNGD.vector_ways[0]
        result_bytes = prod(workload.size(a) for a in workload.output) * RNGD.flit_bytes / flit
        flits = np.maximum(1.0, table.output_block() / flit / clusters)
        rate = timing.dm_copy_bytes_per_cycle

        def copied(terms: Ints) -> Floats:
            return np.asarray(timing.start_load.value + (0.0 if rate is None else result_bytes / rate.value) * terms, dtype=np.float64)

        exchanged = np.where(clusters > 1, copied(clusters) + fixed.vector_pass + flits * clusters, 0.0)
        terms = slices * clusters
        across = np.where(clusters > 1, copied(terms), 0.0)
        ring_wait = fixed.whole_ring * (slices == RNGD.slices_per_cluster).astype(np.float64)
        return cls(fixed, slices, terms, flits, exchanged, across, copied(terms), ring_wait)

    @property
    def over_slices(self) -> bool:
        """Whether any row has a summed axis over slices."""
        return bool((self.slices > 1).any())

    def inside(self, streamed: Floats) -> Floats:
        """With summed slices innermost: the reducer, or a ring of just these slices."""
        plain = self.fixed.contraction_pass + streamed
        folded = self.fixed.reduce_pass + np.maximum(streamed, self.fixed.reduce_least) + self.fixed.reduce_per_slice * self.slices
        gathered = plain + self.fixed.vector_pass + self.flits * self.terms + self.across + self.ring_wait
        split = np.minimum(folded + self.exchanged, gathered)
        return np.asarray(np.where(self.slices > 1, split, plain + self.exchanged), dtype=np.float64)

    def outside(self, streamed: Floats, ring: int) -> Floats:
        """With `ring` other slices inside of the summed ones: a ring over all of them, or a DMA; impossible without summed slices."""
        added = self.flits * self.terms
        met = np.minimum(added * ring + self.across + self.ring_wait, added + self.copied)
        return np.asarray(np.where(self.slices > 1, self.fixed.contraction_pass + streamed + self.fixed.vector_pass + met, np.inf))

    def cheapest(self, streamed: Floats) -> Floats:
        """Whatever lies inside of the summed slices."""
        return np.minimum(self.inside(streamed), self.outside(streamed, 1))


# epilogue


def _epilogue_bounds(table: PlacementTable, fixed: FixedCosts, timing: DmaTiming) -> tuple[PartBounds, ...]:
    """Bounds of the passes of an epilogue.

    An operand comes to every live slice; a ring over one of the axes that it lacks saves the copies along that axis, at most.
    """
    workload = table.family.workload
    if not workload.epilogue:
        return ()
    inside, behind = passes_of(workload)
    flits = table.output_block() / RNGD.vector_ways[0]
    found = []
    for plan in (*inside, *behind):
        loads = tuple(_epilogue_load(table, step.axes, timing) for step in plan.operands)
        cycles = np.zeros(table.rows) if plan in inside else fixed.vector_pass + flits
        found.append(PartBounds(loads, fixed.staging_pass, np.asarray(cycles, dtype=np.float64)))
    return tuple(found)


def _epilogue_load(table: PlacementTable, axes: tuple[str, ...], timing: DmaTiming) -> Floats:
    workload = table.family.workload
    element = operand_dtype(workload)
    first, last = cluster_shares(table, axes)
    foreign = [a for a in table.axes if a not in axes]
    widest = np.maximum.reduce([np.ones(table.rows, dtype=np.int64), *(table.column(a, "slice") for a in foreign)])
    live = prod(workload.size(a) for a in axes) * element.bits / 8 * (table.product(foreign, "slice") // widest)
    places = np.full(table.rows, RNGD.slices_per_cluster, dtype=np.int64)
    run = run_bytes(table, axes, element, gathered=False)
    return load_bound(Traffic(live * first, live * last, run, places, workload.bytes_of(axes, element)), timing)


def _with_epilogue(parts: tuple[PartBounds, ...], front: Floats, loads: Floats, contraction: Floats) -> Floats:
    """End of the last pass: each waits for the one before it and for the loads of its own operands, which the DMA engine does in turn."""
    end = front
    for number, part in enumerate(parts):
        loads = loads + sum(part.loads)
        is_fused = number == 0 and not part.cycles.any()
        if is_fused:
            end = np.maximum(end, loads)
        if number == 0:
            end = end + contraction
        if not is_fused:
            end = np.maximum(end, loads) + part.cycles
    return end if parts else end + contraction

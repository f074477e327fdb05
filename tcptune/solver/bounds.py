"""Lower bounds on the makespan of every placement of a table, vectorised; valid for every setting of the knobs.

A plan loads both operands (one DMA at a time), stages one, streams the other, perhaps gathers, stores, syncs; each part is bounded from the
bytes and pieces that its placement makes mandatory:

* a load: startup and the cheapest issue rate for the lines an engine must deliver on average. A block that several slices share is either
  replicated by the load or spread and broadcast; where the shared slices are not innermost, the broadcast pays for the slices inside;
* the pass: packets, flits and drained flits at the best lane mode;
* the store: lines, or pieces where they are shorter than a line, with or without a gather before it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tcptune.ir.types import DType
from tcptune.model.hardware import RNGD
from tcptune.model.timing.calibration import DmaTiming
from tcptune.solver.pricing import FixedCosts
from tcptune.solver.tables import Ints, PlacementTable

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Bounds:
    """Bounds of one table; `total` in whole cycles."""

    loads: tuple[Floats, Floats]
    contraction: Floats
    store: Floats
    total: Ints


def table_bounds(table: PlacementTable, fixed: FixedCosts, timing: DmaTiming) -> Bounds:
    """Bounds of every row of `table`."""
    family = table.family
    w, x = family.stationary, family.stream
    store = _store_bound(table, fixed, timing)
    shared = {index: _foreign_slices(table, index) for index in (w, x)}
    distinct = {index: _load_bound(_cluster_bytes(table, index), timing) for index in (w, x)}
    replicated = {index: _load_bound(_replicated_bytes(table, index), timing) for index in (w, x)}
    plain = _pass_bound(table, fixed, np.ones(table.rows))
    staging = fixed.staging_pass + table.staged_flits().astype(np.float64)
    tail = fixed.start + store + fixed.sync + _relayout_bound(table, x, fixed)
    copies = _relayout_bound(table, w, fixed)

    def whole(load_w: Floats, load_x: Floats, wait: Floats, pass_: Floats) -> Floats:
        front = np.maximum(load_w + load_x, load_w + copies + wait)
        return tail + front + pass_

    free = whole(distinct[w], distinct[x], staging, plain)
    single = (shared[w][1] <= 1) & (shared[x][1] <= 1) & (shared[w][0] > 1) & (shared[x][0] > 1)
    options = []
    for inner in (w, x):
        other = x if inner == w else w
        loads = {inner: distinct[inner], other: replicated[other]}
        options.append(whole(loads[w], loads[x], staging, plain))
        wasted = _own_slices(table, other).astype(np.float64)
        if other == x:
            options.append(whole(distinct[w], distinct[x], staging, _pass_bound(table, fixed, wasted)))
        else:
            options.append(whole(distinct[w], distinct[x], fixed.staging_pass + table.staged_flits() * wasted, plain))
    strict = np.minimum.reduce(options)
    total = np.where(single, np.maximum(free, strict), free)
    return Bounds((distinct[0], distinct[1]), plain, store, np.floor(total).astype(np.int64))


def transfer_floor(moved_bytes: float, timing: DmaTiming, *, store: bool) -> float:
    """Cycles that a transfer of so many bytes takes at least: its startup, and its lines shared out evenly over all engines of a chip."""
    lines = moved_bytes / RNGD.request_bytes / (RNGD.engines_per_cluster * RNGD.clusters_per_chip)
    start = timing.start_store if store else timing.start_load
    return start.value + timing.issue_far.value * max(0.0, lines - 1)


def _cluster_bytes(table: PlacementTable, index: int) -> Floats:
    """Bytes of an operand that each cluster must hold at least once."""
    workload = table.family.workload
    axes = workload.inputs[index]
    return np.asarray(workload.bytes_of(axes, workload.dtype) / table.product(axes, "cluster"), dtype=np.float64)


def _replicated_bytes(table: PlacementTable, index: int) -> Floats:
    """Bytes a cluster receives when the load itself replicates the operand over the slices that share it."""
    return _cluster_bytes(table, index) * _foreign_slices(table, index)[0]


def _foreign_slices(table: PlacementTable, index: int) -> tuple[Ints, Ints]:
    """Slices that share a block of the operand (idle ones apart), and over how many axes they lie."""
    others = [a for a in table.axes if a not in table.family.workload.inputs[index]]
    count = np.zeros(table.rows, dtype=np.int64)
    for axis in others:
        count += table.column(axis, "slice") > 1
    return table.product(others, "slice"), count


def _own_slices(table: PlacementTable, index: int) -> Ints:
    return table.product(table.family.workload.inputs[index], "slice")


def _load_bound(cluster_bytes: Floats, timing: DmaTiming) -> Floats:
    lines = cluster_bytes / RNGD.request_bytes / RNGD.engines_per_cluster
    return timing.start_load.value + timing.issue_far.value * np.maximum(0, lines - 1)


def _relayout_bound(table: PlacementTable, index: int, fixed: FixedCosts) -> Floats:
    """A copy pass reads one element a cycle; at best the operand lies once in a cluster."""
    if not table.family.relayout[index]:
        return np.zeros(table.rows)
    element: DType = table.family.workload.dtype
    elements = _cluster_bytes(table, index) * 8 / element.bits / RNGD.slices_per_cluster
    return fixed.copy_pass + elements


def _pass_bound(table: PlacementTable, fixed: FixedCosts, wasted: Floats) -> Floats:
    """Contraction pass; `wasted` multiplies the switch's flits where the shared slices are not innermost."""
    family = table.family
    flit = RNGD.flit_bytes * 8 // family.workload.dtype.bits
    flits = table.streamed_flits()
    packet = table.column(family.packet_axis, "packet") if family.packet_axis else np.ones(table.rows, dtype=np.int64)
    lane = table.product(table.axes, "lane")
    others = [a for a in family.workload.output if a not in family.workload.inputs[family.stream]]
    broadcast = table.product(others, "in_slice") // lane
    packets = flits // np.maximum(1, packet // flit) * broadcast
    outputs = table.output_block()
    drained = outputs // lane
    if not family.sums_packet:
        drained = np.minimum(drained, outputs // packet * -(-packet // family.hw.lane_bus_elements))
    streamed = np.maximum.reduce([flits * wasted, packets, drained])
    groups = _reduced_slices(table)
    reduced = fixed.reduce_pass + np.maximum(streamed, fixed.reduce_least) + fixed.reduce_per_slice * groups
    return np.asarray(np.where(groups > 1, reduced, fixed.contraction_pass + streamed), dtype=np.float64)


def _reduced_slices(table: PlacementTable) -> Ints:
    """Slices whose partial sums are added (VT-009); 1 where no summed axis lies over slices."""
    return table.product([a for a in table.axes if a not in table.family.workload.output], "slice")


def _store_bound(table: PlacementTable, fixed: FixedCosts, timing: DmaTiming) -> Floats:
    workload = table.family.workload
    out = workload.output
    total_bytes = workload.bytes_of(out, workload.out_dtype) / table.live_clusters
    lines = total_bytes / RNGD.request_bytes / np.minimum(RNGD.engines_per_cluster, table.product(list(out), "slice"))
    long_pieces = timing.start_store.value + timing.issue_far.value * np.maximum(0, lines - 1)
    if not out:
        return np.asarray(long_pieces + np.zeros(table.rows))
    run = np.minimum(table.column(out[-1], "in_slice"), workload.size(out[-1])) * workload.out_dtype.bits / 8
    whole_rows = table.column(out[-1], "slice") * table.column(out[-1], "cluster") == 1
    pieces = np.maximum(0, total_bytes / run / np.minimum(RNGD.engines_per_cluster, table.product(list(out), "slice")) - 1)
    short = (run < RNGD.request_bytes) & ~whole_rows
    joined = min(timing.partial_write_join.value, timing.issue_far.value)
    direct = np.where(short, np.maximum(long_pieces, timing.start_store.value + pieces * joined), long_pieces)
    sub_word = short & (run < RNGD.dma_alignment_bytes)
    per_line = np.minimum(RNGD.request_bytes / run, total_bytes / run)
    direct = np.where(sub_word, direct + per_line * timing.sub_word_piece.value - timing.partial_write_tail.value, direct)
    flits = table.output_block() * workload.out_dtype.bits / 8 / RNGD.flit_bytes
    gathered = long_pieces + fixed.switch_pass + flits
    return np.asarray(np.minimum(direct, gathered), dtype=np.float64)

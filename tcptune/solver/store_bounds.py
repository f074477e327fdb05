"""Lower bounds of the store of the result for whole columns of placements, with or without a gather before it."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tcptune.ir.workload import Workload
from tcptune.model.hardware import RNGD
from tcptune.model.timing.calibration import DmaTiming
from tcptune.solver.fixed_costs import FixedCosts
from tcptune.solver.tables import PlacementTable
from tcptune.solver.transfer_bounds import Floats, Traffic, cluster_shares, run_bytes, shared_line_bound, store_bound, summed


def result_store_bound(table: PlacementTable, fixed: FixedCosts, timing: DmaTiming) -> Floats:
    """The store of what lies in the slices, or the gather pass and the store of longer pieces, whichever is cheaper."""
    workload = table.family.workload
    out, element = workload.output, workload.out_dtype
    total = workload.bytes_of(out, element)
    live = element.bits / 8 * np.prod([workload.size(a) for a in out], dtype=np.float64)
    first, last = cluster_shares(table, out)
    shared = summed(table, "cluster") > 1
    first, last = np.where(shared, 1 / table.live_clusters, first), np.where(shared, 0.0, last)
    slices = np.minimum(RNGD.slices_per_cluster, table.live_slices)
    ragged = _is_ragged(table)
    whole_lines = table.output_block() * element.bits // 8 % RNGD.request_bytes == 0

    of_first_slice = _first_line_bytes(table)

    def stored(run: Floats, *, gathered: bool = False) -> Floats:
        partial = ~ragged & ~whole_lines & ~shared & (summed(table, "slice") == 1) & (not gathered)
        bound = store_bound(Traffic(live * first, live * last, run, slices, total), timing, partial)
        pieces = np.where(ragged, of_first_slice, _shared_line_bytes(table, gathered=gathered)) / run
        return np.where(run < RNGD.dma_alignment_bytes, np.maximum(bound, shared_line_bound(pieces, timing)), bound)

    single = np.full(table.rows, _single_bytes(workload))
    ordered = _keeps_order(table)
    run = np.where(ordered, run_bytes(table, out, element, gathered=False, stored=True), single)
    direct = np.maximum(stored(run), _first_place_bound(table, run, timing))
    if not out:
        return direct
    parts = summed(table, "slice") * summed(table, "cluster")
    flits = table.output_block() / parts * element.bits / 8 / RNGD.flit_bytes
    # a gather's own transpose makes neighbouring slices the packet; sums may leave a slice single results of a longer block
    regrouped = ordered | (table.column(out[-1], "in_slice") == 1) | (parts > 1)
    long = stored(np.where(regrouped, run_bytes(table, out, element, gathered=True, stored=True), single), gathered=True)
    possible = (table.column(out[-1], "slice") > 1) | (summed(table, "slice") > 1)
    gathered = np.where(possible, fixed.switch_pass + 2 * flits + long, np.inf)
    return np.asarray(np.minimum(direct, gathered), dtype=np.float64)


def _single_bytes(workload: Workload) -> float:
    """Longest piece of a stored packet with one live element: the padding of its row is stored with it where the row has no other."""
    out, element = workload.output, workload.out_dtype
    stored = workload.row_elements(out, element) if out and workload.size(out[-1]) == 1 else 1
    return stored * element.bits / 8


def _first_place_bound(table: PlacementTable, run: Floats, timing: DmaTiming) -> Floats:
    """The store without a gather, from what the first slices of the first and last cluster hold: a full block, in padded tensors too.

    Where summed axes lie over slices or clusters the block may be shared out; then nothing is known.
    """
    workload = table.family.workload
    out, element = workload.output, workload.out_dtype
    held, full = np.full(table.rows, element.bits / 8), table.live_clusters > 1
    for axis in out:
        size, block = workload.size(axis), table.column(axis, "in_slice")
        part = table.column(axis, "slice") * block
        held = held * np.minimum(block, size)
        full = full & ((table.column(axis, "cluster") == 1) | (size - (table.live_clusters - 1) * part >= block))
    place = Traffic(held, np.where(full, held, 0.0), run, np.ones(table.rows, dtype=np.int64), workload.bytes_of(out, element))
    bound = store_bound(place, timing, _ends_in_a_line(table))
    return np.where((summed(table, "slice") == 1) & (summed(table, "cluster") == 1), bound, 0.0)


def _first_line_bytes(table: PlacementTable) -> Floats:
    """Bytes of the result's first line that the first slice stores in one box of a padded tensor.

    A full block is in one box; of a block that ends in padding, whole digits that are live, more than half of it.
    """
    workload = table.family.workload
    out, element = workload.output, workload.out_dtype
    if not out:
        return np.full(table.rows, element.bits / 8)
    block, size = table.column(out[-1], "in_slice"), workload.size(out[-1])
    held = np.where(block > size, -(-size // 2), block) * element.bits / 8
    parts = summed(table, "slice") * summed(table, "cluster")
    return np.where(parts == 1, np.minimum(held, RNGD.request_bytes), element.bits / 8)


def _shared_line_bytes(table: PlacementTable, *, gathered: bool) -> Floats:
    """Bytes of the first line of a result without padding that count as its pieces (`model.memory.price`).

    The price counts the pieces that loops of less than a line reach, each loop as often as its stride goes into a line. Digits in
    a slice are powers of two but for the outermost of an axis, so an axis that goes on beyond the line counts at least the power of two
    of its steps in a line, and all of them where it fits. A gather puts slices outside of a block of any length: then whole blocks count.
    """
    workload = table.family.workload
    line = RNGD.request_bytes * 8 // workload.out_dtype.bits
    counted, pitch = np.ones(table.rows, dtype=np.int64), 1
    for axis in reversed(workload.output):
        size, steps = workload.size(axis), line // pitch
        if not steps:
            break
        if size <= steps:
            counted *= size
        else:
            block = table.column(axis, "in_slice") if gathered and pitch == 1 else np.ones(table.rows, dtype=np.int64)
            odd = block // (block & -block)
            blocks = np.maximum(1, steps // odd)
            counted *= np.minimum(steps, odd * 2 ** np.floor(np.log2(blocks)).astype(np.int64))
        pitch *= size
    return np.asarray(counted * workload.out_dtype.bits / 8, dtype=np.float64)


def _ends_in_a_line(table: PlacementTable) -> npt.NDArray[np.bool_]:
    """Where a full block cannot be stored in whole lines, however rows join and whatever padding of theirs is stored too."""
    workload = table.family.workload
    out, element, line = workload.output, workload.out_dtype, RNGD.request_bytes
    if not out:
        return np.ones(table.rows, dtype=bool)
    size, block = workload.size(out[-1]), table.column(out[-1], "in_slice")
    whole = table.column(out[-1], "slice") * table.column(out[-1], "cluster") == 1
    pitch = workload.row_elements(out, element)
    shortest = np.where(whole, np.minimum(block, size), block) * element.bits // 8
    longest = np.where(whole, pitch, block) * element.bits // 8
    broken, rows = (shortest - 1) // line == longest // line, np.ones(table.rows, dtype=np.int64)
    for axis in reversed(out[:-1]):
        rows = rows * np.minimum(table.column(axis, "in_slice"), workload.size(axis))
        joined = (rows - 1) * pitch * element.bits // 8
        broken &= (joined + shortest - 1) // line == (joined + longest) // line
    return np.asarray(broken)


def _row_axis(workload: Workload) -> str:
    """The innermost axis of the result with more than one stored element, empty if there is none: neighbours in HBM differ in it."""
    out = workload.output
    if out and workload.row_elements(out, workload.out_dtype) > 1:
        return out[-1]
    return next((a for a in reversed(out[:-1]) if workload.size(a) > 1), "")


def _keeps_order(table: PlacementTable) -> npt.NDArray[np.bool_]:
    """Where a committed packet can be part of a row of the result: lanes, the stream's packet, or words that a transpose regroups."""
    family, axis = table.family, _row_axis(table.family.workload)
    if not axis:
        return np.zeros(table.rows, dtype=bool)
    element = family.workload.out_dtype
    word = max(1, RNGD.stream_alignment_bytes * 8 // element.bits)
    lanes = table.column(axis, "lane") > 1
    streamed = not family.sums_packet and family.packet_axis == axis
    regrouped = table.column(axis, "in_slice") % word == 0
    return np.asarray(lanes | streamed | regrouped)


def _is_ragged(table: PlacementTable) -> npt.NDArray[np.bool_]:
    """Where the result is padded: its transfers fall into unequal parts."""
    workload = table.family.workload
    padded_rows = bool(workload.output) and workload.row_elements(workload.output, workload.out_dtype) != workload.size(workload.output[-1])
    ragged = np.full(table.rows, padded_rows)
    for axis in workload.output:
        padded = table.column(axis, "cluster") * table.column(axis, "slice") * table.column(axis, "in_slice")
        ragged |= padded != workload.size(axis)
    return ragged

"""The manual's template mapping of a workload: the default that every search is compared with."""

from __future__ import annotations

from tcptune.ir.candidate import FILLER, Candidate, Knobs
from tcptune.ir.placement import AxisPlacement, Placement
from tcptune.ir.workload import BATCH, K, M, N, Workload
from tcptune.model.hardware import RNGD
from tcptune.solver.placement import PlacementModel
from tcptune.solver.tables import Family, axis_options, summed_size

GRID_SIDE = 16
"""The GEMM template lays 16 x 16 tiles of the result over the slices (KERNEL-016)."""

WORDS = {
    "dot": "manual template: both vectors in one slice, one lane",
    "gemv": "manual template: one row a slice, the vector replicated to all of them, results stored one by one",
    "gemm": "manual template: 16 x 16 grid of slices, both operands replicated by their loads, 8 lanes",
    "bmm": "manual template: rows (or a batch axis of both operands) over clusters and slices, the rest in time, columns in lanes",
    "product": "one operand in the register file, the other streamed, the first axis over the slices",
}


def template_words(workload: Workload) -> str:
    return WORDS.get(workload.kind(), "")


def template(workload: Workload) -> Candidate | None:
    """The template placement with the manual's knobs, or the legal placement nearest to it; None if none is legal.

    The second input waits in the register file, nothing is broadcast on chip, nothing is gathered before the store.
    """
    summed = [a for a, role in workload.roles().items() if role == K]
    relayout = ["", ""]
    if summed and workload.inputs[1][-1] not in summed:
        relayout[1] = summed[0]
    if summed and relayout[1] and workload.inputs[0][-1] != summed[0]:
        relayout[0] = summed[0]
    family = Family(workload, 1, (relayout[0], relayout[1]))
    slices = _slices(workload)
    lane_axis = next((a for a in reversed(workload.output) if a in family.lane_axes), None)
    placements = []
    for axis in workload.axes:
        if workload.roles()[axis] == K:
            options = [o for o in axis_options(family, axis) if o.padded == summed_size(workload, axis)]
            placements.append(options[0])
            continue
        cluster, count = slices.get(axis, (1, 1))
        lane = min(RNGD.lanes_per_slice, _power_above(workload.size(axis))) if axis == lane_axis else 1
        count = min(count, _power_above(-(-workload.size(axis) // (lane * cluster))))
        packet = min(o.packet for o in axis_options(family, axis)) if axis in (family.packet_axis, family.innermost(1)) else 1
        time = -(-workload.size(axis) // (cluster * count * lane * packet))
        placements.append(AxisPlacement(axis, cluster, count, lane, time, packet))
    repaired = PlacementModel(family).repair(Placement(tuple(placements)))
    if repaired is None or repaired.placement is None:
        return None
    placement = repaired.placement
    order = tuple(a.axis for a in placement.axes if a.slice > 1)
    if placement.live_slices < RNGD.slices_per_cluster:
        order = (*order, FILLER)
    lane_mode = "Interleaved" if family.sums_packet else "Sequential"
    knobs = Knobs(1, order, relayout=(relayout[0], relayout[1]), refetch=family.sums_packet, lane_mode=lane_mode)
    return Candidate(workload, placement, knobs)


def _slices(workload: Workload) -> dict[str, tuple[int, int]]:
    """(clusters, slices) of the axes that the pattern spreads."""
    roles, kind, out = workload.roles(), workload.kind(), workload.output
    whole = RNGD.slices_per_cluster
    if kind == "gemm":
        rows = next(a for a in out if roles[a] == M)
        columns = next(a for a in out if roles[a] == N)
        return {rows: (1, GRID_SIDE), columns: (1, GRID_SIDE)}
    if kind == "gemv" or kind == "product":
        return {out[0]: (1, whole)} if out else {}
    if kind == "bmm":
        batch = next((a for a in out if roles[a] == BATCH), "")
        spread = batch or next((a for a in out[1:] if roles[a] == M), out[0])  # "V placed in Time": the rows are spread, the batch streams
        return {spread: (RNGD.clusters_per_chip if workload.size(spread) > 1 else 1, whole)}
    return {}


def _power_above(n: int) -> int:
    """The smallest power of two that is at least `n`."""
    return 1 << max(0, n - 1).bit_length()

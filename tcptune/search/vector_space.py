"""The space of workloads of the Vector Engine, those of one input or of f32: clusters, slices and the order of both.

Clusters split one output axis or none, slices split every axis by a power of two, a summed axis innermost. The space is small enough to be
exhausted within the default budget.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property

from tcptune.exec.lowering.fused_epilogue import operand_dtype
from tcptune.ir.candidate import FILLER, Candidate, Knobs
from tcptune.ir.placement import AxisPlacement, Placement
from tcptune.ir.types import DType
from tcptune.ir.workload import EpilogueOp, K, Workload
from tcptune.model.hardware import RNGD
from tcptune.model.timing.calibration import DmaTiming
from tcptune.model.timing.calibration import profile as profile_named
from tcptune.search.deadline import Deadline
from tcptune.search.space import transfers_floor
from tcptune.solver.pricing import FixedCosts

MOST_PADDING = 1.5
"""Positions of an axis, padding included, over its size: placements that waste more are left out."""


@dataclass(frozen=True)
class VectorSpace:
    """Every placement of a workload, likely ones first. Enumeration may end at the deadline with `TimeIsUp`."""

    workload: Workload
    profile: str = "vendor"
    deadline: Deadline = field(default=Deadline(), compare=False)

    def prepare(self) -> None:
        """Nothing that a worker needs; the search itself enumerates."""

    @cached_property
    def candidates(self) -> list[Candidate]:
        return candidates_of(self.workload, self.deadline, self.profile)


def lower_bound(workload: Workload, profile: str) -> int:
    """Cycles that every plan takes: its transfers and one pass, which streams one input past every slice's share of it (VT-004, VT-005)."""
    fixed = FixedCosts.of(profile)
    lanes = RNGD.clusters_per_chip * RNGD.slices_per_cluster * RNGD.vector_ways[0]
    flits = min(math.prod(workload.size(axis) for axis in axes) for axes in workload.inputs) / lanes
    return transfers_floor(workload, profile) + math.floor(min(fixed.vector_pass, fixed.copy_pass) + flits)


def candidates_of(
    workload: Workload,
    deadline: Deadline = Deadline(),  # noqa: B008 - a frozen value
    profile: str = "vendor",
) -> list[Candidate]:
    """Every placement of the space, those with long stored pieces on many slices first.

    Raises:
        TimeIsUp: the deadline is over.
    """
    roles = workload.roles()
    options = [list(_axis_options(workload, axis, roles[axis] == K)) for axis in workload.axes]
    found = []
    for chosen in _combined(options, RNGD.clusters_per_chip, RNGD.slices_per_cluster):
        deadline.check()
        found += [candidate_of(workload, chosen, stationary) for stationary in _waiting(workload)]
    timing = profile_named(profile).dma
    return sorted(found, key=lambda c: _guess(workload, c.placement, timing))


def _waiting(workload: Workload) -> list[int]:
    """Inputs that may wait in the register file, the second one first: those with the stream's innermost axis innermost, or without it."""
    if len(workload.inputs) == 1:
        return [Knobs().stationary]
    found = [n for n in (1, 0) if workload.inputs[1 - n][-1] not in workload.inputs[n][:-1]]
    return found or [Knobs().stationary]


def _combined(options: list[list[AxisPlacement]], clusters: int, slices: int) -> Iterator[tuple[AxisPlacement, ...]]:
    """One option of every axis, in order, within so many clusters and slices."""
    if not options:
        yield ()
        return
    for first in options[0]:
        if first.cluster <= clusters and first.slice <= slices:
            for rest in _combined(options[1:], clusters // first.cluster, slices // first.slice):
                yield (first, *rest)


def default_candidate(workload: Workload) -> Candidate:
    """Eight values, or one row, a slice of one cluster."""
    roles, first = workload.roles(), True
    placements = []
    for axis in workload.axes:
        size = workload.size(axis)
        if roles[axis] == K or not first:
            placements.append(_placed(workload, axis, 1, 1))
            continue
        first = False
        slices = min(RNGD.slices_per_cluster, 1 << max(0, size - 1).bit_length())
        placements.append(_placed(workload, axis, 1, slices))
    return candidate_of(workload, tuple(placements), _waiting(workload)[0])


def candidate_of(workload: Workload, axes: tuple[AxisPlacement, ...], stationary: int = Knobs().stationary) -> Candidate:
    """The candidate of a placement of all axes: what is kept outermost in Slice, idle slices before summed axes, else behind all."""
    roles = workload.roles()
    live = math.prod(a.slice for a in axes)
    kept = [a.axis for a in axes if a.slice > 1 and roles[a.axis] != K]
    summed = [a.axis for a in axes if a.slice > 1 and roles[a.axis] == K]
    filler = [FILLER] if live < RNGD.slices_per_cluster else []
    order = [*filler, *kept, *summed] if summed else [*kept, *filler]
    return Candidate(workload, Placement(axes), Knobs(stationary, tuple(order)))


def _axis_options(workload: Workload, axis: str, summed: bool) -> Iterator[AxisPlacement]:
    size = workload.size(axis)
    for cluster in (1,) if summed else range(1, RNGD.clusters_per_chip + 1):
        slices = 1
        while slices <= RNGD.slices_per_cluster and cluster * slices < 2 * size:
            placed = _placed(workload, axis, cluster, slices)
            if placed.padded <= max(MOST_PADDING * size, placed.in_slice):
                yield placed
            slices *= 2


def _placed(workload: Workload, axis: str, cluster: int, slices: int) -> AxisPlacement:
    """The axis cut into equal parts; the innermost one in whole words of 8 bytes."""
    part = -(-workload.size(axis) // (cluster * slices))
    unit = _word_elements(workload) if axis in {inputs[-1] for inputs in workload.inputs} else 1
    return AxisPlacement(axis, cluster, slices, time=-(-part // unit) * unit)


def _word_elements(workload: Workload) -> int:
    def elements(element: DType) -> int:
        return max(1, RNGD.stream_alignment_bytes * 8 // element.bits)

    return max(elements(workload.dtype), elements(workload.out_dtype))


def _guess(workload: Workload, placement: Placement, timing: DmaTiming) -> float:
    """A rough makespan in cycles, to order the space: loads to slices, vector steps, and stored pieces that are short (VT-020, VT-027)."""
    live = placement.live_clusters * placement.live_slices
    held = math.prod(a.in_slice for a in placement.axes)
    ragged = any(_is_ragged(step, workload, placement) for step in workload.epilogue)
    loads = timing.issue_mid.value * live
    return loads + held / RNGD.vector_ways[1] + pieces_guess(workload, placement, timing) + (_REFUSED if ragged else 0)


def pieces_guess(workload: Workload, placement: Placement, timing: DmaTiming) -> float:
    """About the cycles that the stored pieces take, short ones by far more (VT-027)."""
    roles = workload.roles()
    piece = placement.of(workload.output[-1]).in_slice if workload.output else 1
    pieces = math.prod(a.padded for a in placement.axes if roles[a.axis] != K) / piece
    is_short = piece * workload.out_dtype.bits // 8 < RNGD.request_bytes
    return pieces * (timing.partial_write_64.value / RNGD.engines_per_cluster if is_short else 1.0)


_REFUSED = 1e9
"""Guess for what the transfer rules will refuse: it is tried last."""


def _is_ragged(step: EpilogueOp, workload: Workload, placement: Placement) -> bool:
    """Whether slices hold parts of an operand that are no whole words of 8 bytes (DMA-020)."""
    if not step.axes:
        return False
    innermost = placement.of(step.axes[-1])
    return (
        innermost.cluster * innermost.slice > 1 and innermost.in_slice * operand_dtype(workload).bits % (8 * RNGD.dma_alignment_bytes) != 0
    )

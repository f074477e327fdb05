"""What the oracle runs of a tiled plan: the plan itself, or a smaller one of the same structure where that would take too long.

The smaller plan has the same order of loops, the same knobs, and the same Cluster, Slice, Lane and Packet extents; each loop runs twice,
and the positions of axes in Time are halved until the run is affordable. Every rule of the machine is checked on the plan itself.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

from tcptune.errors import RuleViolation
from tcptune.exec.lowering.candidates import lower_candidate
from tcptune.exec.program.check import check_kernel, trip_count
from tcptune.exec.program.checked import CheckedKernel, CheckedStep
from tcptune.exec.running.oracle import most_products
from tcptune.ir.candidate import Candidate
from tcptune.ir.kernels.ops import ContractOuter, ContractPacket
from tcptune.ir.kernels.steps import Loop
from tcptune.ir.placement import Placement
from tcptune.ir.workload import K
from tcptune.model.hardware import RNGD
from tcptune.solver.tiled_bounds import packet_elements

TWICE = 2

FOUR_TERMS = 4
"""Tiles of a summed axis: two partial sums would be added by another operation than more of them."""

MOST_POSITIONS = 1 << 21
"""Positions of a tensor over all slices, or in HBM, that are run: index arrays of about 100 bytes a position are made of it."""

MOST_PRODUCTS = 1 << 25
"""Products of a contraction, over all tiles, that are run: some tenths of a second a run."""

MOST_STREAMED = 1 << 23
"""Positions of all streams between engines that are run: some tenths of a second a run, too."""


def affordable(candidate: Candidate) -> Candidate:
    """The plan that stands for `candidate` before the oracle; `candidate` itself where it is small enough."""
    if fits(candidate):
        return candidate
    output = candidate.workload.output
    small = candidate.with_fewer_tiles({axis: TWICE if axis in output else FOUR_TERMS for axis in candidate.tiles.axes})
    if checked_if_legal(small) is None:
        return candidate
    while not fits(small):
        halved = next((plan for plan in _halved(small) if checked_if_legal(plan) is not None), None)
        if halved is None:
            return small
        small = halved
    return small


def checked_if_legal(candidate: Candidate) -> CheckedKernel | None:
    """The plan's kernel; None if it breaks a rule: shorter tiles may miss what its switch rings or packets need."""
    try:
        return check_kernel(lower_candidate(candidate))
    except RuleViolation:
        return None


def _streamed(steps: Sequence[CheckedStep]) -> int:
    """Positions of all streams of these steps, padding included, without those of the products."""
    total = 0
    for step in steps:
        if isinstance(step.step, Loop):
            total += trip_count(step.step) * _streamed(step.body)
        for stage in step.chain.steps if step.chain is not None else ():
            if not isinstance(stage.op, ContractOuter | ContractPacket):
                total += math.prod(stage.after.shape)
    return total


def fits(candidate: Candidate) -> bool:
    """Whether a run of the plan is affordable."""
    workload = candidate.workload
    tensors = (*workload.inputs, workload.output)
    slices = RNGD.clusters_per_chip * RNGD.slices_per_cluster
    held = max(slices * math.prod(candidate.placement.of(axis).in_slice for axis in axes) for axes in tensors)
    stored = max(math.prod(workload.size(axis) for axis in axes) for axes in tensors)
    if max(held, stored) > MOST_POSITIONS:
        return False
    checked = checked_if_legal(candidate)
    if checked is None:
        return False
    return candidate.tiles.tiles * most_products(checked.steps) <= MOST_PRODUCTS and _streamed(checked.steps) <= MOST_STREAMED


def _halved(candidate: Candidate) -> Iterator[Candidate]:
    """The plan with half as many positions in Time of one axis, the axis that has most of them first."""
    workload, tiles = candidate.workload, candidate.tiles
    lengths = dict(tiles.lengths)
    whole = packet_elements(workload.dtype)

    def can(axis: str) -> bool:
        length, placed = lengths.get(axis, workload.size(axis)), candidate.placement.of(axis)
        exact = placed.padded == length and length % (2 * whole) == 0 and placed.time % 2 == 0
        return placed.time > 1 and length >= 2 * whole and (exact or workload.roles()[axis] != K)

    axes = [placed.axis for placed in candidate.placement.axes if can(placed.axis)]
    for axis in sorted(axes, key=lambda a: -candidate.placement.of(a).time):
        yield _with_half(candidate, axis)


def _with_half(candidate: Candidate, axis: str) -> Candidate:
    """The plan with half as many positions of one axis in Time, whole packets of them; tiles that shared positions share one packet."""
    workload, tiles = candidate.workload, candidate.tiles
    whole = packet_elements(workload.dtype)
    lengths = dict(tiles.lengths)
    shorter = replace(candidate.placement.of(axis), time=candidate.placement.of(axis).time // 2)
    size = min(_half(workload.size(axis), whole), shorter.padded)
    if axis in lengths:
        length = min(_half(lengths[axis], whole), shorter.padded)
        overlap = whole if length > whole and tiles.pitch(axis, workload.size(axis)) < lengths[axis] else 0
        size, lengths[axis] = length + (tiles.count(axis) - 1) * (length - overlap), length
    placed = tuple(shorter if p.axis == axis else p for p in candidate.placement.axes)
    return replace(
        candidate,
        workload=replace(workload, sizes=tuple((a, size if a == axis else n) for a, n in workload.sizes)),
        placement=Placement(placed),
        tiles=replace(tiles, lengths=tuple(lengths.items())),
    )


def _half(length: int, whole: int) -> int:
    """Half of a length of at least two times `whole`, rounded down to a multiple of it."""
    return length // 2 // whole * whole


def what_ran(candidate: Candidate, small: Candidate) -> str:
    """Which kernel the oracle ran, in words."""
    if small == candidate:
        return "the kernel"
    sizes = ", ".join(f"{axis} = {size}" for axis, size in small.workload.sizes)
    return f"a kernel of the same loops, placement and knobs with fewer and shorter tiles: {sizes}; the kernel itself would take too long"

"""What the oracle runs of a tiled plan: the plan itself, or a smaller one of the same structure where that would take too long.

The smaller plan has the same order of loops, the same knobs, and the same Cluster, Slice, Lane and Packet extents; each loop runs twice,
and the positions of axes in Time are halved until the run is affordable. Every rule of the machine is checked on the plan itself.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

from tcptune.errors import RuleViolation
from tcptune.exec.lowering.candidates import lower_candidate
from tcptune.exec.program.check import check_kernel
from tcptune.ir.candidate import Candidate
from tcptune.ir.placement import Placement
from tcptune.ir.workload import K
from tcptune.model.hardware import RNGD

TWICE = 2

MOST_POSITIONS = 1 << 21
"""Positions of a tensor over all slices, or in HBM, that are run: index arrays of about 100 bytes a position are made of it."""

MOST_PRODUCTS = 1 << 26
"""Products of a contraction over all tiles that are run: well under a second a run."""

EVEN = 64
"""Lengths that are multiples of it can be halved and still begin on whole words."""


def affordable(candidate: Candidate) -> Candidate:
    """The plan that stands for `candidate` before the oracle; `candidate` itself where it is small enough."""
    if fits(candidate):
        return candidate
    small = candidate.with_fewer_tiles(dict.fromkeys(candidate.tiles.axes, TWICE))
    if not _is_legal(small):
        return candidate
    while not fits(small):
        halved = next((plan for plan in _halved(small) if _is_legal(plan)), None)
        if halved is None:
            return small
        small = halved
    return small


def _is_legal(candidate: Candidate) -> bool:
    """Whether a plan keeps every rule; one with shorter tiles may miss what its switch rings or packets need."""
    try:
        check_kernel(lower_candidate(candidate))
    except RuleViolation:
        return False
    return True


def fits(candidate: Candidate) -> bool:
    """Whether a run of the plan is affordable."""
    workload = candidate.workload
    tensors = (*workload.inputs, workload.output)
    slices = RNGD.clusters_per_chip * RNGD.slices_per_cluster
    held = max(slices * math.prod(candidate.placement.of(axis).in_slice for axis in axes) for axes in tensors)
    stored = max(math.prod(workload.size(axis) for axis in axes) for axes in tensors)
    products = math.prod(size for _, size in workload.sizes)
    return max(held, stored) <= MOST_POSITIONS and products <= MOST_PRODUCTS


def _halved(candidate: Candidate) -> Iterator[Candidate]:
    """The plan with half as many positions in Time of one axis, the axis that has most of them first."""
    workload, tiles = candidate.workload, candidate.tiles
    lengths = dict(tiles.lengths)

    def can(axis: str) -> bool:
        length = lengths.get(axis, workload.size(axis))
        pitch = tiles.pitch(axis, workload.size(axis)) if axis in lengths else 0
        whole = candidate.placement.of(axis).padded == length or workload.roles()[axis] != K
        return candidate.placement.of(axis).time % 2 == 0 and length % EVEN == 0 and pitch % EVEN == 0 and whole

    axes = [placed.axis for placed in candidate.placement.axes if can(placed.axis)]
    for axis in sorted(axes, key=lambda a: -candidate.placement.of(a).time):
        yield _with_half(candidate, axis)


def _with_half(candidate: Candidate, axis: str) -> Candidate:
    """The plan with half as many positions of one axis in Time."""
    workload, tiles = candidate.workload, candidate.tiles
    lengths = dict(tiles.lengths)
    size = workload.size(axis) // 2
    if axis in lengths:
        lengths[axis] //= 2
    placed = tuple(replace(p, time=p.time // 2) if p.axis == axis else p for p in candidate.placement.axes)
    return replace(
        candidate,
        workload=replace(workload, sizes=tuple((a, size if a == axis else n) for a, n in workload.sizes)),
        placement=Placement(placed),
        tiles=replace(tiles, lengths=tuple(lengths.items())),
    )


def what_ran(candidate: Candidate, small: Candidate) -> str:
    """Which kernel the oracle ran, in words."""
    if small == candidate:
        return "the kernel"
    sizes = ", ".join(f"{axis} = {size}" for axis, size in small.workload.sizes)
    return f"a kernel of the same loops, placement and knobs with fewer and shorter tiles: {sizes}; the kernel itself would take too long"

"""What the oracle runs of a plan in one pass: the plan itself, or one with shorter Time where that would cost more than is allowed.

The smaller plan has the same knobs and the same Cluster, Slice, Lane and Packet extents; positions in Time are halved, axis by axis, and
the padding of every axis is kept where the rules allow it. What is allowed is counted in positions, never measured, so that a result does
not depend on the machine. Every rule is checked, and the schedule made, on the plan itself.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

from tcptune.errors import RuleViolation
from tcptune.exec.lowering.candidates import lower_candidate
from tcptune.exec.program.check import check_kernel
from tcptune.exec.program.checked import CheckedStep
from tcptune.ir.candidate import Candidate
from tcptune.ir.kernels.ops import ContractOuter, ContractPacket
from tcptune.ir.placement import AxisPlacement, Placement
from tcptune.model.hardware import RNGD

MOST_POSITIONS = 1 << 29
"""Positions that the oracle of one plan moves at most in a run, see `positions_moved`: some seconds for its seven runs."""

POSITIONS_A_SECOND = 1 << 25
"""Positions of a run that take about a second in seven runs on the machine of the measurements in docs/search.md."""

SHARE_OF_A_LIMIT = 8
"""An oracle is allowed this part of a time limit: the template's and the best plan's always run."""

_TENSOR_WEIGHT = 8
"""Positions of a stream that cost as much as one of a tensor, whose index arrays are made."""


def allowed_positions(time_limit: float | None) -> int:
    """Positions that one oracle run may move; a share of the time limit, if there is one, at the rate of `POSITIONS_A_SECOND`."""
    if time_limit is None:
        return MOST_POSITIONS
    return min(MOST_POSITIONS, int(time_limit * POSITIONS_A_SECOND / SHARE_OF_A_LIMIT))


def affordable(candidate: Candidate, most: int) -> Candidate:
    """The plan that stands for a legal `candidate` before the oracle: itself, or the first smaller one that moves at most `most` positions.

    Where no axis can be made shorter by the rules before that, the smallest plan found.
    """
    small = candidate
    while (moved := positions_moved(small)) is not None and moved > most:
        shorter = next((plan for plan in _shorter_plans(small) if positions_moved(plan) is not None), None)
        if shorter is None:
            break
        small = shorter
    return small


def positions_moved(candidate: Candidate) -> int | None:
    """Positions of all streams of a plan, padding included, and its tensors', weighted; None if the plan breaks a rule."""
    try:
        checked = check_kernel(lower_candidate(candidate))
    except RuleViolation:
        return None
    workload, slices = candidate.workload, RNGD.clusters_per_chip * RNGD.slices_per_cluster
    held = sum(
        slices * math.prod(candidate.placement.of(axis).in_slice for axis in axes) + math.prod(workload.size(axis) for axis in axes)
        for axes in (*workload.inputs, workload.output)
    )
    return _streamed(checked.steps) + _TENSOR_WEIGHT * held


def _streamed(steps: Sequence[CheckedStep]) -> int:
    """Positions of all streams; products are formed as matrix products and cost little."""
    stages = [stage for step in steps if step.chain is not None for stage in step.chain.steps]
    return sum(math.prod(s.after.shape) for s in stages if not isinstance(s.op, ContractOuter | ContractPacket))


def _shorter_plans(candidate: Candidate) -> Iterator[Candidate]:
    """The plan with about half as many positions of one axis in Time, the axis that has most of them first."""
    workload = candidate.workload
    for placed in sorted(candidate.placement.axes, key=lambda a: -a.time):
        for shorter in _shorter(placed):
            for size in _sizes(workload.size(placed.axis), placed.padded, shorter.padded):
                axes = tuple(shorter if a.axis == placed.axis else a for a in candidate.placement.axes)
                sizes = tuple((a, size if a == placed.axis else n) for a, n in workload.sizes)
                yield replace(candidate, workload=replace(workload, sizes=sizes), placement=Placement(axes))


def _shorter(placed: AxisPlacement) -> list[AxisPlacement]:
    """About half of an axis in Time: rounded down, its largest divisor, the power of two below it."""
    time = placed.time
    if time == 1:
        return []
    divisor = next(time // d for d in range(2, time + 1) if time % d == 0)
    return [replace(placed, time=n) for n in dict.fromkeys((time // 2, divisor, 1 << ((time - 1).bit_length() - 1)))]


def _sizes(size: int, padded: int, shorter: int) -> list[int]:
    """Sizes of an axis of which `shorter` positions are placed: with the padding that it had, without any, with as large a part of it."""
    return list(dict.fromkeys(n for n in (shorter - (padded - size), shorter, size * shorter // padded) if n > 0))


def what_ran(candidate: Candidate, small: Candidate) -> str:
    """Which kernel the oracle ran, in words."""
    if small == candidate:
        return "the kernel"
    sizes = ", ".join(f"{axis} = {size}" for axis, size in small.workload.sizes)
    return f"a kernel of the same placement and knobs with shorter Time: {sizes}; the kernel itself would take too long"

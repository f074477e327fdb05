"""The search for workloads of the Vector Engine, those of one input or of f32: every placement of a small space is compiled.

Likely ones come first; the fastest pass their oracle. Clusters split one output axis or none, slices split every axis by a power of two, a
summed axis innermost. The space is small enough to be exhausted within the default budget; then the best plan is proven within it.
"""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from tcptune.errors import RuleViolation, TcptuneError, WorkError
from tcptune.exec.compile import Compiled, compile_kernel
from tcptune.exec.lowering.float_products import lower_float
from tcptune.exec.lowering.fused_epilogue import operand_dtype
from tcptune.exec.lowering.vector import lower_vector
from tcptune.exec.running.oracle import Verification, verify
from tcptune.ir.candidate import FILLER, Candidate, Knobs
from tcptune.ir.placement import AxisPlacement, Placement
from tcptune.ir.schedule import CORE
from tcptune.ir.types import DType
from tcptune.ir.workload import EpilogueOp, K, Workload
from tcptune.model.hardware import RNGD
from tcptune.model.timing.calibration import VENDOR_DMA
from tcptune.model.timing.calibration import profile as profile_named
from tcptune.search.result import Fates, OracleSummary, Plan, SearchResult, TraceRow, kernel_hash
from tcptune.search.tuner import REPORTED, Progress, check_options
from tcptune.solver.bounds import transfer_floor
from tcptune.solver.pricing import FixedCosts

MOST_PADDING = 1.5
"""Positions of an axis, padding included, over its size: placements that waste more are left out."""

WORDS = {
    "elementwise": "manual template: eight values a slice where there are enough slices",
    "reduction": "manual template: one row a slice, results stored one by one",
}

FLOAT_WORDS = "one part of the first axis a slice, the second operand in the vector register file"
"""The default of products of two f32 inputs, for which the manual has no template."""


@dataclass(frozen=True)
class _Found:
    """A compiled candidate of the space."""

    makespan: int
    trial: int
    digest: str
    candidate: Candidate


@dataclass
class VectorTuner:
    """One search over a workload of one input; the arguments are those of `Tuner`.

    `seed`, `jobs` and `study` have no effect: the space is enumerated in a fixed order in this process.
    """

    workload: Workload
    trials: int = 200
    seed: int = 0
    jobs: int = 1
    time_limit: float | None = None
    study: Path | None = None
    profile: str = "vendor"
    progress: Callable[[Progress], None] | None = None
    command: str = ""

    def __post_init__(self) -> None:
        check_options(self.trials, self.seed, self.jobs, self.time_limit)
        self.profile = profile_named(self.profile).name
        self._floor = lower_bound(self.workload, self.profile)
        self._found: dict[str, _Found] = {}
        self._rejections: dict[str, int] = {}
        self._duplicates = 0
        self._verified: dict[str, Verification] = {}
        self._trace: list[TraceRow] = []

    def run(self) -> SearchResult:
        """Compiles candidates until the space or the budget is used up, or the user interrupts.

        Raises:
            WorkError: no legal plan.
        """
        started = time.monotonic()
        candidates = candidates_of(self.workload)
        candidates.insert(1, default_candidate(self.workload))  # early, so that no search ends behind the manual's mapping
        stopped = "proven"
        tried = 0
        try:
            for candidate in candidates:
                late = self.time_limit is not None and self._found and time.monotonic() - started >= self.time_limit
                if tried == self.trials or late:
                    stopped = "time" if late else "trials"
                    break
                tried += 1
                self._try(candidate, tried, started)
                if self.progress is not None:
                    best = min((f.makespan for f in self._found.values()), default=None)
                    self.progress(Progress(tried, tried, self.trials, best, self._floor, time.monotonic() - started))
        except KeyboardInterrupt:
            stopped = "interrupt"
        return self._result(stopped, started)

    def _try(self, candidate: Candidate, trial: int, started: float) -> None:
        try:
            compiled = self._compiled(candidate)
        except RuleViolation as refusal:
            self._refuse(refusal.rule)
            return
        except TcptuneError:
            self._refuse("unpriced")
            return
        digest = kernel_hash(compiled.kernel.to_text())
        if digest in self._found:
            self._duplicates += 1
            return
        best = min((f.makespan for f in self._found.values()), default=None)
        if best is None or compiled.makespan < best:
            if not self._passes(digest, compiled):
                self._refuse("ORACLE")
                return
            self._trace.append(TraceRow(trial, compiled.makespan, self._floor, time.monotonic() - started))
        self._found[digest] = _Found(compiled.makespan, trial, digest, candidate)

    def _refuse(self, rule: str) -> None:
        self._rejections[rule] = self._rejections.get(rule, 0) + 1

    def _compiled(self, candidate: Candidate) -> Compiled:
        lowering = lower_vector if len(self.workload.inputs) == 1 else lower_float
        return compile_kernel(lowering(candidate, self.workload.kernel_name), self.profile)

    def _passes(self, digest: str, compiled: Compiled) -> bool:
        if digest not in self._verified:
            self._verified[digest] = verify(compiled.checked)
        return self._verified[digest].passed

    # result

    def _result(self, stopped: str, started: float) -> SearchResult:
        top = self._top()
        if not top and stopped == "interrupt":
            raise KeyboardInterrupt  # nothing to report yet
        if not top:
            refused = ", ".join(f"{rule} ({count})" for rule, count in sorted(self._rejections.items())) or "nothing was tried"
            raise WorkError(f"no legal plan found for {self.workload.text}", hint=f"refused by: {refused}")
        proven = stopped == "proven" and "ORACLE" not in self._rejections
        if self._floor > top[0].makespan:
            raise WorkError(f"internal: the lower bound {self._floor} is above the makespan {top[0].makespan}")
        bound = top[0].makespan if proven else self._floor
        return SearchResult(
            workload=self.workload.to_json(),
            hardware=RNGD.name,
            profile=self.profile,
            seed=self.seed,
            trials=self.trials,
            best=top[0],
            top=tuple(top),
            lower_bound=bound,
            proven=proven,
            default=self._default(),
            what_default=WORDS.get(self.workload.kind(), FLOAT_WORDS),
            oracle=OracleSummary.of(self._verified.values()),
            fates=Fates(0, self._duplicates, sum(self._rejections.values()), len(self._found)),
            rejections=dict(self._rejections),
            trace=tuple(self._trace),
            stopped=stopped,
            wall_time_s=round(time.monotonic() - started, 3),
            command=self.command,
        )

    def _top(self) -> list[Plan]:
        plans: list[Plan] = []
        for found in sorted(self._found.values(), key=lambda f: (f.makespan, f.trial)):
            if len(plans) == REPORTED:
                break
            compiled = self._compiled(found.candidate)
            if not self._passes(found.digest, compiled):
                del self._found[found.digest]
                self._refuse("ORACLE")
                continue
            plans.append(self._plan(found.candidate, compiled))
        return plans

    def _plan(self, candidate: Candidate, compiled: Compiled) -> Plan:
        operations = [o for o in compiled.schedule.operations if CORE not in o.contexts]
        terms = {"start": min(o.begin for o in operations)}
        for operation in operations:
            terms[operation.kind] = terms.get(operation.kind, 0) + operation.end - operation.begin
        document = candidate.to_json()
        knobs = {"slice_order": document["knobs"]["slice_order"]}
        bound = min(self._floor, compiled.makespan)
        return Plan(compiled.makespan, bound, document["placement"], knobs, terms, compiled.kernel, compiled.schedule, compiled.busy)

    def _default(self) -> Plan | None:
        """The manual's mapping, where it is legal and passes its oracle."""
        candidate = default_candidate(self.workload)
        try:
            compiled = self._compiled(candidate)
        except TcptuneError:
            return None
        return self._plan(candidate, compiled) if self._passes(kernel_hash(compiled.kernel.to_text()), compiled) else None


def lower_bound(workload: Workload, profile: str) -> int:
    """Cycles that every plan takes: launch, a load of each input, one pass, a store, the closing sync.

    All lines of a transfer go out over all engines at the cheapest rate (VT-021); the pass streams one input past every slice's share
    of it (VT-004, VT-005).
    """
    fixed, timing = FixedCosts.of(profile), profile_named(profile).dma

    def values(axes: tuple[str, ...]) -> int:
        return math.prod(workload.size(axis) for axis in axes)

    loads = sum(transfer_floor(values(axes) * workload.dtype.bits / 8, timing, store=False) for axes in workload.inputs)
    store = transfer_floor(values(workload.output) * workload.out_dtype.bits / 8, timing, store=True)
    lanes = RNGD.clusters_per_chip * RNGD.slices_per_cluster * RNGD.vector_ways[0]
    flits = min(values(axes) for axes in workload.inputs) / lanes
    return math.floor(fixed.start + loads + min(fixed.vector_pass, fixed.copy_pass) + flits + store + fixed.sync)


# the space


def candidates_of(workload: Workload) -> list[Candidate]:
    """Every placement of the space, those with long stored pieces on many slices first."""
    roles = workload.roles()
    options = [list(_axis_options(workload, axis, roles[axis] == K)) for axis in workload.axes]
    found = []
    for chosen in itertools.product(*options):
        clusters, slices = math.prod(a.cluster for a in chosen), math.prod(a.slice for a in chosen)
        if clusters <= RNGD.clusters_per_chip and slices <= RNGD.slices_per_cluster:
            found.append(_candidate(workload, chosen))
    return sorted(found, key=lambda c: _guess(workload, c.placement))


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
    return _candidate(workload, tuple(placements))


def _candidate(workload: Workload, axes: tuple[AxisPlacement, ...]) -> Candidate:
    roles = workload.roles()
    live = math.prod(a.slice for a in axes)
    kept = [a.axis for a in axes if a.slice > 1 and roles[a.axis] != K]
    summed = [a.axis for a in axes if a.slice > 1 and roles[a.axis] == K]
    filler = [FILLER] if live < RNGD.slices_per_cluster else []
    order = [*filler, *kept, *summed] if summed else [*kept, *filler]
    return Candidate(workload, Placement(axes), Knobs(slice_order=tuple(order)))


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
    unit = _word_elements(workload) if axis == workload.inputs[0][-1] else 1
    return AxisPlacement(axis, cluster, slices, time=-(-part // unit) * unit)


def _word_elements(workload: Workload) -> int:
    def elements(element: DType) -> int:
        return max(1, RNGD.stream_alignment_bytes * 8 // element.bits)

    return max(elements(workload.dtype), elements(workload.out_dtype))


def _guess(workload: Workload, placement: Placement) -> float:
    """A rough makespan in cycles, to order the space: loads to slices, vector steps, and stored pieces that are short (VT-020, VT-027)."""
    roles = workload.roles()
    live = placement.live_clusters * placement.live_slices
    held = math.prod(a.in_slice for a in placement.axes)
    piece = placement.of(workload.output[-1]).in_slice if workload.output else 1
    pieces = math.prod(a.padded for a in placement.axes if roles[a.axis] != K) / piece
    is_short = piece * workload.out_dtype.bits // 8 < RNGD.request_bytes
    ragged = any(_is_ragged(step, workload, placement) for step in workload.epilogue)
    piece_cycles = VENDOR_DMA.partial_write_64.value / RNGD.engines_per_cluster if is_short else 1.0
    loads = VENDOR_DMA.issue_mid.value * live
    return loads + held / RNGD.vector_ways[1] + piece_cycles * pieces + (_REFUSED if ragged else 0)


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

"""The search in tiles of workloads of the Vector Engine, those of one input or of f32, where one pass does not hold them.

A tiling's bodies are the likeliest placements of its tile; candidates are compiled in the order of a rough estimate of the whole kernel.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property

from tcptune.errors import RuleViolation, WorkError
from tcptune.exec.lowering.candidates import lower_candidate
from tcptune.exec.program.check import check_kernel
from tcptune.ir.candidate import Candidate, Tiles
from tcptune.ir.workload import Workload
from tcptune.model.hardware import RNGD
from tcptune.model.timing.calibration import DmaTiming
from tcptune.model.timing.calibration import profile as profile_named
from tcptune.search.deadline import Deadline
from tcptune.search.frame import EXHAUSTED, PROVEN, TRIALS, Tally
from tcptune.search.options import Options
from tcptune.search.parallel import Workers
from tcptune.search.store import StepRecord
from tcptune.search.tiled.search import TiledSearch
from tcptune.search.tiled.tilings import require_room, tilings
from tcptune.search.vector_space import candidates_of, pieces_guess
from tcptune.solver.bounds import transfer_floor
from tcptune.solver.pricing import FixedCosts
from tcptune.solver.tiled_bounds import transfers_of

BODIES = 8
"""Placements of a tile that are compiled, the likeliest ones whose blocks fit the memories of a slice."""

MEMORY_RULES = ("DM-003", "VRF-004")
"""Rules that refuse what data memory or the vector register file of a slice does not hold."""

CHUNK = 8
"""Candidates of one step, for any number of jobs."""

TOO_LARGE = (
    "tiles cut axes of the result, not summed ones nor rows that the host pads; what is left must fit the data memory (DM-003) and, of an "
    "f32 operand, the vector register file (VRF-004)"
)


def fits_one_pass(candidates: Iterable[Candidate], deadline: Deadline) -> bool:
    """Whether one of these candidates in one pass keeps every rule, or is refused by another one than those of memories.

    Raises:
        TimeIsUp: the deadline is over.
    """
    other = False
    for candidate in candidates:
        deadline.check()
        if not _blocks_fit(candidate):
            continue
        try:
            check_kernel(lower_candidate(candidate))
        except RuleViolation as refusal:
            other = other or refusal.rule not in MEMORY_RULES
            continue
        return True
    return other


def _blocks_fit(candidate: Candidate) -> bool:
    """Whether a slice's part of every tensor fits data memory, and that of a waiting f32 operand the vector register file."""
    workload, placement = candidate.workload, candidate.placement

    def block_bytes(axes: tuple[str, ...], bits: int) -> int:
        return math.prod(placement.of(axis).in_slice for axis in axes) * bits // 8

    if sum(block_bytes(axes, element.bits) for axes, element in workload.tensors()) > RNGD.dm_bytes_per_slice:
        return False
    waiting = workload.inputs[candidate.knobs.stationary] if len(workload.inputs) > 1 else ()
    return not waiting or block_bytes(waiting, workload.dtype.bits) <= RNGD.vrf_bytes_per_slice


@dataclass(frozen=True)
class TiledVectorSpace:
    """Tilings with their likeliest bodies, those of the least estimate first."""

    workload: Workload
    profile: str = "vendor"
    deadline: Deadline = field(default=Deadline(), compare=False)

    def prepare(self) -> None:
        """Nothing that a worker needs; the search itself enumerates."""

    @cached_property
    def candidates(self) -> list[Candidate]:
        """Every candidate of the space.

        Raises:
            TimeIsUp: the deadline is over.
        """
        fixed = FixedCosts.of(self.profile)
        found: list[tuple[float, int, Candidate]] = []
        for tiles in tilings(self.workload):
            if not tiles.loops:
                continue
            self.deadline.check()
            timing = profile_named(self.profile).dma
            for body in self._bodies(tiles):
                transfers = _transfers(body, tiles, timing)
                found.append((_estimate(body, tiles, transfers, fixed), len(found), replace(body, workload=self.workload, tiles=tiles)))
        return [candidate for _, _, candidate in sorted(found, key=lambda entry: entry[:2])]

    def _bodies(self, tiles: Tiles) -> Iterator[Candidate]:
        workload, count = tiles.body_workload(self.workload), 0
        least = sum(workload.bytes_of(axes, element) for axes, element in workload.tensors())
        if least > RNGD.dm_bytes_per_chip:
            return
        for body in candidates_of(workload, self.deadline, self.profile):
            if count < BODIES and _blocks_fit(body):
                count += 1
                yield body


def _transfers(body: Candidate, tiles: Tiles, timing: DmaTiming) -> float:
    """About the cycles of all transfers: loads of whole lines, of which short pieces fill a part, and the stored pieces."""
    workload, placement, cycles = body.workload, body.placement, 0.0
    for axes in workload.inputs:
        piece_bytes = placement.of(axes[-1]).in_slice * workload.dtype.bits / 8
        lines_bytes = workload.bytes_of(axes, workload.dtype) * max(1.0, RNGD.request_bytes / piece_bytes)
        cycles += tiles.runs(tiles.depth(axes)) * transfer_floor(lines_bytes, timing, store=False)
    stored = transfer_floor(workload.bytes_of(workload.output, workload.out_dtype), timing, store=True)
    return cycles + tiles.tiles * (stored + pieces_guess(workload, placement, timing))


def _estimate(body: Candidate, tiles: Tiles, transfers: float, fixed: FixedCosts) -> float:
    """About the cycles of the kernel: its transfers, or its passes where they take longer, four elements a step (VT-005)."""
    workload = body.workload
    streamed = math.prod(body.placement.of(axis).in_slice for axis in workload.axes)
    passes = tiles.tiles * (fixed.vector_pass + streamed / RNGD.vector_ways[1])
    return fixed.start + max(transfers, passes) + min(transfers, passes) / tiles.tiles + fixed.sync


class TiledVectorTuner(TiledSearch[TiledVectorSpace]):
    """One search over tilings of a workload of the Vector Engine. The seed has no effect: the space is enumerated in a fixed order."""

    what_default = "none: the manual's template is one pass, which does not hold the workload"

    def __init__(self, workload: Workload, options: Options | None = None) -> None:
        chosen = options or Options()
        super().__init__(workload, chosen, TiledVectorSpace(workload, chosen.profile), Tally())
        self._floor = lower_bound(workload, chosen.profile)
        self._next = 0

    def _template(self) -> Candidate | None:
        require_room(self.workload)
        return None

    def _finished(self) -> str:
        if not self.space.candidates:
            raise WorkError(f"{self.workload.text} is too large for one pass, and so is every tile of it", hint=TOO_LARGE)
        if self._proven():
            return PROVEN
        if self._next == len(self.space.candidates):
            return EXHAUSTED
        return TRIALS if self.state.trials >= self.options.trials else ""

    def _step(self, number: int, workers: Workers) -> StepRecord:
        left = min(len(self.space.candidates) - self._next, max(1, self.options.trials - self.state.trials), CHUNK)
        entries = list(range(self._next, self._next + left))
        found = workers.evaluate([self.space.candidates[entry] for entry in entries], self.state.seen())
        return StepRecord(number, "tile", entries, [[asdict(outcome)] for outcome in found], {})

    def _account(self, record: StepRecord) -> None:
        self._next += len(record.entries)
        super()._account(record)

    def _bound(self) -> int:
        return self._floor

    def _knobs(self, candidate: Candidate) -> dict[str, object]:
        two = {"stationary": candidate.knobs.stationary} if len(self.workload.inputs) == 2 else {}
        return {**candidate.tiles.to_words(), **two, "slice_order": list(candidate.knobs.slice_order)}


def lower_bound(workload: Workload, profile: str) -> int:
    """Cycles that every plan takes, tiled or not.

    Each input is loaded and the result stored at the cheapest rate, one transfer at a time (VT-042); and products of f32 are formed four a
    cycle in every slice (VT-005), after a first load and before a last store.
    """
    fixed, timing = FixedCosts.of(profile), profile_named(profile).dma
    transfers = transfers_of(workload, Tiles(), timing)
    if len(workload.inputs) == 1:
        return math.floor(fixed.start + transfers + fixed.sync)
    multipliers = RNGD.clusters_per_chip * RNGD.slices_per_cluster * RNGD.vector_ways[1]
    passes = timing.start_load.value + math.prod(size for _, size in workload.sizes) / multipliers + timing.start_store.value
    return math.floor(fixed.start + max(transfers, passes) + fixed.sync)

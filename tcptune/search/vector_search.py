"""The search for workloads of the Vector Engine, those of one input or of f32: every placement of a small space is compiled.

Likely ones come first; once all are compiled, the best plan is proven within the space (`search.vector_space`).
"""

from __future__ import annotations

from dataclasses import asdict, replace

from tcptune.errors import InputError
from tcptune.exec.compile import Compiled
from tcptune.exec.lowering.candidates import is_contraction
from tcptune.ir.candidate import Candidate
from tcptune.ir.workload import Workload
from tcptune.search.deadline import TimeIsUp
from tcptune.search.frame import EXHAUSTED, PROVEN, TRIALS, Search, Tally, terms_by_kind
from tcptune.search.options import Options
from tcptune.search.parallel import Outcome, Workers
from tcptune.search.result import SearchResult
from tcptune.search.store import StepRecord
from tcptune.search.tiled.vector import TiledVectorTuner, fits_one_pass
from tcptune.search.vector_space import VectorSpace, candidate_of, default_candidate, lower_bound

SHARE = 4
"""Candidates of one step for each worker, where there are several."""

WORDS = {
    "elementwise": "manual template: eight values a slice where there are enough slices",
    "reduction": "manual template: one row a slice, results stored one by one",
}

FLOAT_WORDS = "one part of the first axis a slice, the second operand in the vector register file"
"""The default of products of two f32 inputs, for which the manual has no template."""


class VectorTuner(Search[VectorSpace, Tally]):
    """One search over a workload of one input, or of f32. The seed has no effect: the space is enumerated in a fixed order.

    Raises:
        InputError: the workload is for another search.
    """

    def __init__(self, workload: Workload, options: Options | None = None) -> None:
        chosen = options or Options()
        super().__init__(workload, chosen, VectorSpace(workload, chosen.profile), Tally())
        if is_contraction(workload):
            raise InputError(f"{workload.text} of {workload.dtype} is work for the Contraction Engine", hint="see `tuner_for`")
        self.what_default = WORDS.get(workload.kind(), FLOAT_WORDS)
        self._floor = lower_bound(workload, self.options.profile)
        self._next = 0

    def _template(self) -> Candidate:
        return default_candidate(self.workload)

    def _searched(self) -> SearchResult:
        """The search in one pass; in tiles, within the same time, where no placement of the space fits the memories."""
        if self._fits_one_pass():
            return super()._searched()
        tiled = TiledVectorTuner(self.workload, replace(self.options, progress=self.progress))
        tiled._begin(self._started, self.deadline)
        return tiled._searched()

    def _fits_one_pass(self) -> bool:
        """Taken for true where the time is over before that is known."""
        try:
            return fits_one_pass(self.space.candidates, self.deadline)
        except TimeIsUp:
            return True

    def _finished(self) -> str:
        if self._next == len(self.space.candidates):
            return PROVEN if self._proven() else EXHAUSTED
        return TRIALS if self.state.trials >= self.options.trials else ""

    def _step(self, number: int, workers: Workers) -> StepRecord:
        left = min(len(self.space.candidates) - self._next, self.options.trials - self.state.trials)
        share = 1 if self.options.jobs == 1 else SHARE * self.options.jobs
        entries = list(range(self._next, self._next + min(left, share)))
        found = workers.evaluate([self.space.candidates[entry] for entry in entries], self.state.seen())
        return StepRecord(number, "enumerate", entries, [[asdict(outcome)] for outcome in found], {})

    def _account(self, record: StepRecord) -> None:
        self._next += len(record.entries)
        super()._account(record)

    def _tried(self, outcome: Outcome, entry: int | None) -> None:
        """Nothing stays open: every candidate of the space has its step."""

    def _bound(self) -> int:
        makespan = self.state.makespan
        return makespan if makespan is not None and self._proven() else self._floor

    def _proven(self) -> bool:
        """Whether all of the space was compiled, no plan of it failed its oracle, and none lacks a price."""
        enumerated = "candidates" in vars(self.space) and self._next == len(self.space.candidates)
        return enumerated and "ORACLE" not in self.state.rejections and self.state.all_priced

    # result

    def _knobs(self, candidate: Candidate) -> dict[str, object]:
        two = len(self.workload.inputs) == 2
        return {**({"stationary": candidate.knobs.stationary} if two else {}), "slice_order": list(candidate.knobs.slice_order)}

    def _terms(self, candidate: Candidate, compiled: Compiled) -> dict[str, int]:
        return terms_by_kind(compiled)

    def _at_defaults(self, best: Candidate) -> dict[str, Candidate]:
        found = {}
        for axis in default_candidate(self.workload).placement.axes:
            if best.placement.of(axis.axis) != axis:
                axes = tuple(axis if own.axis == axis.axis else own for own in best.placement.axes)
                found[f"placement of {axis.axis}"] = candidate_of(self.workload, axes, best.knobs.stationary)
        return found

"""The search of contractions in tiles: every tiling, best bound first; its cheapest body is compiled if its price beats the best."""

from __future__ import annotations

from dataclasses import asdict, replace
from functools import partial
from typing import Any

from tcptune.errors import WorkError
from tcptune.exec.compile import Compiled, compile_kernel
from tcptune.exec.lowering.candidates import lower_candidate
from tcptune.exec.running.oracle import verify
from tcptune.ir.candidate import Candidate
from tcptune.ir.workload import Workload
from tcptune.search.frame import EXHAUSTED, NO_LIMIT, PROVEN, TRIALS, Search, Tally, terms_by_kind
from tcptune.search.options import Options
from tcptune.search.parallel import RETRIES, Outcome, Workers, compile_cheapest, evaluate
from tcptune.search.result import Plan, SearchResult
from tcptune.search.store import SCHEDULED, StepRecord
from tcptune.search.template import template, template_words
from tcptune.search.tiled.space import Body, TiledSpace
from tcptune.search.tiled.stand_in import affordable, what_ran

REPORTED_TILED = 3
"""Plans in the report; their oracle runs are longer than those of one pass."""

TOO_LARGE = (
    "tiles cut axes of the result, not summed ones nor rows that the host pads; what is left must fit the data memory (DM-003) and the "
    "register files (TRF-006)"
)


class TiledTuner(Search[TiledSpace, Tally]):
    """One search over the tilings of a contraction. The seed has no effect: tilings are taken in the order of their bound."""

    reported = REPORTED_TILED

    def __init__(self, workload: Workload, options: Options | None = None) -> None:
        chosen = options or Options()
        super().__init__(workload, chosen, TiledSpace(workload, chosen.profile), Tally())
        self.what_default = template_words(workload)
        self._next = 0

    def _template(self) -> Candidate | None:
        """The manual's mapping in one pass; it is refused where that does not fit."""
        self.space.require_room()
        return template(self.workload)

    # steps

    def _finished(self) -> str:
        self.space.prepare()
        if self._proven():
            return PROVEN
        if self.state.trials >= self.options.trials:
            return TRIALS
        limit = NO_LIMIT if self.state.makespan is None else self.state.makespan
        over = self._next >= self.space.entries or self.space.bound(self._next) >= limit
        if over and self.state.makespan is None and not self.state.trials:
            raise WorkError(f"{self.workload.text} is too large for one pass, and so is every tile of it", hint=TOO_LARGE)
        return EXHAUSTED if over else ""

    def _step(self, number: int, workers: Workers) -> StepRecord:
        below = self.state.makespan or NO_LIMIT
        entries = list(range(self._next, min(self._next + self.options.jobs, self.space.entries)))
        found: list[list[dict[str, Any]]] = []
        for entry, bodies in zip(entries, workers.call("bodies", [(entry, below) for entry in entries]), strict=True):
            outcomes = compile_cheapest(bodies, self._evaluated, partial(self.space.bodies, entry, below, RETRIES))
            below = min([below, *(outcome.makespan for outcome in outcomes if outcome.fate == SCHEDULED)])
            found.append([asdict(outcome) for outcome in outcomes])
        return StepRecord(number, "tile", entries, found, {})

    def _evaluated(self, body: Body) -> Outcome:
        return evaluate(body.candidate, self.options.profile, body.cycles, self.state.seen())

    def _account(self, record: StepRecord) -> None:
        self._next += len(record.entries)
        self.state.pruned += sum(1 for outcomes in record.outcomes if record.entries and not outcomes)
        super()._account(record)

    def _tried(self, outcome: Outcome, entry: int | None) -> None:
        """Nothing is kept open: the bound of the space does not depend on what was tried."""

    def _bound(self) -> int:
        return self.space.lower_bound

    def _proven(self) -> bool:
        return self.state.makespan is not None and self.state.all_priced and self.state.makespan <= self._bound()

    # oracle and result

    def _plan(self, candidate: Candidate) -> Plan:
        """The plan, its tiles also among the levels of its placement."""
        plan = super()._plan(candidate)
        counts = {axis: candidate.tiles.count(axis) for axis in candidate.tiles.axes}
        return replace(plan, placement={a: {"Tile": counts[a], **p} if a in counts else p for a, p in plan.placement.items()})

    def _passes(self, candidate: Candidate, digest: str) -> bool:
        if digest not in self.state.verifications:
            small = compile_kernel(lower_candidate(affordable(candidate)), self.options.profile)
            self.state.verifications[digest] = verify(small.checked)
        return self.state.verifications[digest].passed

    def _result(self, stopped: str) -> SearchResult:
        result = super()._result(stopped)
        best = self.state.scheduled[self.state.best][2]
        return replace(result, oracle=replace(result.oracle, what=what_ran(best, affordable(best))))

    def _knobs(self, candidate: Candidate) -> dict[str, object]:
        return {"tiles": candidate.tiles.to_json(), **candidate.knobs.to_json()}

    def _terms(self, candidate: Candidate, compiled: Compiled) -> dict[str, int]:
        return terms_by_kind(compiled)

    def _at_defaults(self, best: Candidate) -> dict[str, Candidate]:
        """The best plan with every loop kept, where the scheduler sees one tile at a time."""
        if not any(loop.unroll for loop in best.tiles.loops):
            return {}
        kept = tuple(replace(loop, unroll=False) for loop in best.tiles.loops)
        return {"unroll": replace(best, tiles=replace(best.tiles, loops=kept))}

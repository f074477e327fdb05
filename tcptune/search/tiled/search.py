"""What the searches in tiles have in common: which kernel their oracles run, and what a plan says of its tiles."""

from __future__ import annotations

from dataclasses import replace

from tcptune.exec.compile import Compiled, compile_kernel
from tcptune.exec.lowering.candidates import lower_candidate
from tcptune.exec.running.oracle import verify
from tcptune.ir.candidate import Candidate
from tcptune.search.frame import Search, Searched, Tally, terms_by_kind
from tcptune.search.parallel import Outcome
from tcptune.search.result import Plan, SearchResult
from tcptune.search.tiled.stand_in import affordable, what_ran

REPORTED_TILED = 3
"""Plans in the report; their oracle runs are longer than those of one pass."""


class TiledSearch(Search[Searched, Tally]):
    """A search whose plans are tile loops around a body; nothing of the space is ever closed but by its bound."""

    reported = REPORTED_TILED

    def _tried(self, outcome: Outcome, entry: int | None) -> None:
        """Nothing is kept open: the bound of the space does not depend on what was tried."""

    def _proven(self) -> bool:
        return self.state.makespan is not None and self.state.all_priced and self.state.makespan <= self._bound()

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

    def _terms(self, candidate: Candidate, compiled: Compiled) -> dict[str, int]:
        return terms_by_kind(compiled)

    def _at_defaults(self, best: Candidate) -> dict[str, Candidate]:
        """The best plan with every loop kept, where the scheduler sees one tile at a time."""
        if not any(loop.unroll for loop in best.tiles.loops):
            return {}
        kept = tuple(replace(loop, unroll=False) for loop in best.tiles.loops)
        return {"unroll": replace(best, tiles=replace(best.tiles, loops=kept))}

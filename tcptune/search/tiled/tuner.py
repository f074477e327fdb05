"""The search of contractions in tiles: every tiling, best bound first; its cheapest body is compiled if its price beats the best."""

from __future__ import annotations

from dataclasses import asdict
from functools import partial

from tcptune.errors import WorkError
from tcptune.ir.candidate import Candidate
from tcptune.ir.workload import Workload
from tcptune.search.frame import EXHAUSTED, NO_LIMIT, PROVEN, TRIALS, Tally
from tcptune.search.options import Options
from tcptune.search.parallel import RETRIES, Outcome, Workers, compile_cheapest, evaluate
from tcptune.search.store import StepRecord
from tcptune.search.template import template, template_words
from tcptune.search.tiled.search import TiledSearch
from tcptune.search.tiled.space import Body, TiledSpace
from tcptune.search.tiled.tilings import require_room

CHUNK, FIRST_CHUNK = 4, 2
"""Tilings that are priced side by side, with the same limit; the first ones are few, for a plan that prunes those after them."""

TOO_LARGE = (
    "tiles cut axes of the result, and summed ones into equal whole packets, but no rows that the host pads, and no summed axis before an "
    "epilogue; what is left must fit the data memory (DM-003) and the register files (TRF-006)"
)


class TiledTuner(TiledSearch[TiledSpace]):
    """One search over the tilings of a contraction. The seed has no effect: tilings are taken in the order of their bound."""

    def __init__(self, workload: Workload, options: Options | None = None) -> None:
        chosen = options or Options()
        super().__init__(workload, chosen, TiledSpace(workload, chosen.profile), Tally())
        self.what_default = template_words(workload)
        self._next = 0
        self._limit = NO_LIMIT
        self._chunk: list[tuple[int, list[Body]]] = []

    def _template(self) -> Candidate | None:
        """The manual's mapping in one pass; it is refused where that does not fit."""
        require_room(self.workload)
        return template(self.workload)

    # steps

    def _finished(self) -> str:
        self.space.prepare()
        if self._proven():
            return PROVEN
        if self.state.trials >= self.options.trials:
            return TRIALS
        over = self._next >= self.space.entries or (self._begins_chunk() and self.space.bound(self._next) >= self._least())
        if over and self.state.makespan is None and not self.state.trials:
            raise WorkError(f"{self.workload.text} is too large for one pass, and so is every tile of it", hint=TOO_LARGE)
        return EXHAUSTED if over else ""

    def _least(self) -> int:
        """Makespan of the best plan so far, in cycles."""
        return NO_LIMIT if self.state.makespan is None else self.state.makespan

    def _begins_chunk(self) -> bool:
        return self._next == 0 or (self._next >= FIRST_CHUNK and (self._next - FIRST_CHUNK) % CHUNK == 0)

    def _step(self, number: int, workers: Workers) -> StepRecord:
        """One tiling of the chunk, the one of least price first; it is compiled if its price is below the best."""
        entry, bodies = self._priced(workers)
        below = self._least()
        if bodies and bodies[0].cycles >= below:
            bodies = []
        outcomes = compile_cheapest(bodies, self._evaluated, partial(self.space.bodies, entry, below, RETRIES))
        return StepRecord(number, "tile", [entry], [[asdict(outcome) for outcome in outcomes]], {})

    def _priced(self, workers: Workers) -> tuple[int, list[Body]]:
        """The next tiling of the chunk and its cheapest body. A chunk is priced as a whole, whatever the number of jobs, so that it is the
        same for any; a study that goes on within one prices it again with the limit that it began with.
        """
        begin = 0 if self._next < FIRST_CHUNK else self._next - (self._next - FIRST_CHUNK) % CHUNK
        if self._next == begin or not self._chunk:
            end = FIRST_CHUNK if begin == 0 else begin + CHUNK
            entries = range(begin, min(end, self.space.entries))
            priced = zip(entries, workers.call("bodies", [(entry, self._limit) for entry in entries]), strict=True)
            self._chunk = sorted(priced, key=lambda item: item[1][0].cycles if item[1] else NO_LIMIT)
        return self._chunk[self._next - begin]

    def _evaluated(self, body: Body) -> Outcome:
        return evaluate(body.candidate, self.options.profile, body.cycles, self.state.seen())

    def _account(self, record: StepRecord) -> None:
        self._next += len(record.entries)
        self.state.pruned += sum(1 for outcomes in record.outcomes if record.entries and not outcomes)
        super()._account(record)
        if self._begins_chunk():
            self._limit, self._chunk = self._least(), []

    def _bound(self) -> int:
        return self.space.lower_bound

    # result

    def _knobs(self, candidate: Candidate) -> dict[str, object]:
        return {**candidate.tiles.to_words(), **candidate.knobs.to_json()}

"""The search of contractions: best bound first over placements, Optuna over the knobs of the best ones."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, replace

from tcptune.errors import InputError, WorkError
from tcptune.exec.compile import Compiled
from tcptune.exec.lowering.candidates import is_contraction
from tcptune.exec.lowering.layout import Layout
from tcptune.ir.candidate import Candidate, Knobs
from tcptune.ir.workload import Workload
from tcptune.search.deadline import TimeIsUp
from tcptune.search.frame import NO_LIMIT, PROVEN, REPORTED, TRIALS, Search, Tally
from tcptune.search.knobs import slice_orders
from tcptune.search.options import Options
from tcptune.search.parallel import Outcome, Workers
from tcptune.search.result import SearchResult
from tcptune.search.space import Space, transfers_floor
from tcptune.search.store import REJECTED, SCHEDULED, StepRecord
from tcptune.search.suggest import PLACEMENTS, Suggester
from tcptune.search.template import template, template_words
from tcptune.search.tiled.tuner import TiledTuner
from tcptune.solver.pricing import price

ENTRIES_PER_TRIAL = 3
"""Placements that are priced at most, for each trial of the budget."""

ENTRIES_FOR_A_PLAN = 512
"""Placements that are priced whatever the budget while no legal plan is known."""

CHUNK, FIRST_CHUNK = 32, 8
"""Placements that are priced before the cheapest of them is compiled; the first ones are few, for a limit that prunes those after them."""

FILL_STEPS = 40
"""Steps at most, once the best plan is proven, to fill the report: the best of further placements and suggestions in turn."""


@dataclass
class _State(Tally):
    """What the steps so far have found, and what of the space is still open."""

    entry_of: dict[str, int] = field(default_factory=dict)
    open_prices: list[int] = field(default_factory=list)  # of settings that were refused, or cost more: what else their placement could do
    explored: int = 0
    filled: int = 0
    underpriced: bool = False
    tabled: bool = False


class Tuner(Search[Space, _State]):
    """One search of a contraction or of an element-wise product in one pass; what does not fit one is handed on to the search in tiles.

    Raises:
        InputError: the workload is for another search.
    """

    def __init__(self, workload: Workload, options: Options | None = None) -> None:
        chosen = options or Options()
        super().__init__(workload, chosen, Space(workload, chosen.profile), _State())
        if not is_contraction(workload):
            raise InputError(f"{workload.text} of {workload.dtype} is no work for the Contraction Engine", hint="see `tuner_for`")
        self.what_default = template_words(workload)
        self._suggester: Suggester | None = None

    def _template(self) -> Candidate | None:
        self.space.require_room()
        return template(self.workload)

    def _searched(self) -> SearchResult:
        """The search in one pass; in tiles, within the same time, where no placement holds the workload at once."""
        if self._fits_one_pass():
            return super()._searched()
        tiled = TiledTuner(self.workload, replace(self.options, progress=self.progress))
        tiled._begin(self._started, self.deadline)
        return tiled._searched()

    def _fits_one_pass(self) -> bool:
        """Whether the space has a placement; taken for true where the time is over before that is known."""
        try:
            self.space.tables  # noqa: B018 - computed once and kept
        except TimeIsUp:
            return True
        except WorkError:
            return False
        return True

    # steps

    def _finished(self) -> str:
        state = self.state
        self.space.prepare()
        state.tabled = True
        if state.trials >= self.options.trials:
            return PROVEN if self._proven() else TRIALS
        if self._exhausted() and self._proven():
            enough = len(state.scheduled) >= REPORTED or self._suggested() + state.filled >= FILL_STEPS
            return PROVEN if enough else ""
        return ""

    def _suggested(self) -> int:
        return len(self._suggester.told) if self._suggester else 0

    def _exhausted(self) -> bool:
        """Whether no placement is left that may beat the best (or that may still be priced)."""
        makespan, budget = self.state.makespan, ENTRIES_PER_TRIAL * self.options.trials
        if makespan is None:
            return self.state.explored >= min(self.space.entries, max(budget, ENTRIES_FOR_A_PLAN))
        return self.state.explored >= min(self.space.below(makespan), budget)

    def _proven(self) -> bool:
        """Whether every placement of the space is explored or bounded by the best, and nothing cheaper was refused."""
        state, makespan = self.state, self.state.makespan
        if makespan is None or state.underpriced or not state.all_priced or not state.tabled or not self.space.complete:
            return False
        return state.explored >= self.space.below(makespan) and all(p >= makespan for p in state.open_prices)

    def _bound(self) -> int:
        """Lower bound of every plan of the space, given what was explored; before the tables are there, what the transfers take."""
        if not self.state.tabled:
            return transfers_floor(self.workload, self.options.profile)
        makespan = self.state.makespan
        if makespan is None or self.state.underpriced or not self.state.all_priced or not self.space.complete:
            return self.space.lower_bound
        open_bounds = [p for p in self.state.open_prices if p < makespan]
        if self.state.explored < self.space.below(makespan):
            open_bounds.append(self.space.bound(self.state.explored))
        return min([makespan, *open_bounds])

    def _step(self, number: int, workers: Workers) -> StepRecord:
        if not self._exhausted():
            first = self.state.explored
            makespan = self.state.makespan
            limit = self.space.entries if makespan is None else self.space.below(makespan)
            chunk = list(range(first, min(first + (CHUNK if first else FIRST_CHUNK), limit)))
            found = workers.explore(chunk, makespan or NO_LIMIT, self.state.seen())
            return StepRecord(number, "explore", chunk, [[asdict(o) for o in outcomes] for outcomes in found], {})
        if number % 2 and self.state.filled < self.space.entries:
            found = workers.explore([self.state.filled], NO_LIMIT, self.state.seen())
            return StepRecord(number, "fill", [self.state.filled], [[asdict(o) for o in found[0]]], {})
        suggester = self._the_suggester()
        params = suggester.ask(number)
        (outcome,) = workers.evaluate([suggester.candidate(params)], self.state.seen())
        return StepRecord(number, "suggest", [], [[asdict(outcome)]], params)

    def _the_suggester(self) -> Suggester:
        if self._suggester is None:
            ranked = sorted((m, t, d) for d, (m, t, _) in self.state.scheduled.items() if d in self.state.entry_of)
            entries = list(dict.fromkeys(self.state.entry_of[d] for _, _, d in ranked))[:PLACEMENTS]
            self._suggester = Suggester(self.space, entries or [0], self.options.seed)
        return self._suggester

    def _account(self, record: StepRecord) -> None:
        state = self.state
        if record.entries and max(record.entries) >= self.space.entries:
            raise InputError(f"step {record.number} of the study names entry {max(record.entries)}, the space has {self.space.entries}")
        if record.kind == "explore":
            state.explored += len(record.entries)
            state.pruned += sum(1 for outcomes in record.outcomes if not outcomes)
        if record.kind == "fill":
            state.filled += len(record.entries)
        super()._account(record)
        if record.kind == "suggest":
            makespan = record.outcomes[0][0]["makespan"] or 2 * (state.makespan or NO_LIMIT)
            self._the_suggester().tell(record.params, float(makespan))

    def _tried(self, outcome: Outcome, entry: int | None) -> None:
        state = self.state
        if outcome.fate == REJECTED:
            state.open_prices += [outcome.price] if outcome.price else []
            return
        if outcome.price and outcome.makespan < outcome.price:
            state.underpriced = True
        if outcome.makespan > outcome.price > 0:  # another setting of this placement may keep its price
            state.open_prices.append(outcome.price)
        if entry is not None and outcome.fate == SCHEDULED:
            state.entry_of[outcome.kernel_hash] = entry

    # result

    def _own_bound(self, candidate: Candidate) -> int:
        return self.space.own_bound(candidate)

    def _terms(self, candidate: Candidate, compiled: Compiled) -> dict[str, int]:
        return price(Layout(candidate), self.space.fixed, self.options.profile).to_json()

    def _at_defaults(self, best: Candidate) -> dict[str, Candidate]:
        """Slices in the workload's order of axes is the manual's; which operand waits is a matter of the placement."""
        found = {}
        plain = {**Knobs().to_json(), "slice_order": list(slice_orders(best.placement, self.workload.output)[0])}
        chosen = best.knobs.to_json()
        for name, value in chosen.items():
            if value == plain[name] or name == "stationary":
                continue
            changed = {**chosen, name: plain[name]}
            if name == "gather":
                changed["gather_ring"] = 1
            found[name] = replace(best, knobs=Knobs.from_json(changed))
        return found

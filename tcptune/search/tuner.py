"""The search: best bound first over placements, Optuna over the knobs of the best ones, an oracle run on every new best.

Steps are numbered; each is a function of the seed and the steps before it, so a killed study goes on where it was (`search.store`).
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path

from tcptune.errors import InputError, WorkError
from tcptune.exec.compile import Compiled, compile_kernel
from tcptune.exec.lowering.layout import Layout
from tcptune.exec.lowering.lower import lower
from tcptune.exec.running.oracle import Verification, verify
from tcptune.ir.candidate import Candidate, Knobs
from tcptune.ir.workload import Workload
from tcptune.model.hardware import RNGD
from tcptune.model.timing.calibration import profile as profile_named
from tcptune.search.parallel import Outcome, Workers, evaluate
from tcptune.search.result import Fates, OracleSummary, Plan, SearchResult, TraceRow
from tcptune.search.space import Space
from tcptune.search.store import DUPLICATE, REJECTED, SCHEDULED, StepRecord, Study
from tcptune.search.suggest import PLACEMENTS, Suggester
from tcptune.search.template import template, template_words
from tcptune.solver.pricing import price

REPORTED = 10
"""Plans in the report; each passes its oracle."""

ENTRIES_PER_TRIAL = 2
"""Placements that are priced at most, for each trial of the budget."""

CHUNK = 16
"""Placements that are priced before the cheapest of them is compiled."""

FILL_STEPS = 40
"""Steps at most, once the best plan is proven, to fill the report: the best of further placements and suggestions in turn."""

STUDY_VERSION = 1


def check_options(trials: int, seed: int, jobs: int, time_limit: float | None) -> None:
    """Refuses what no search can use.

    Raises:
        InputError: a number that is not whole or too small, or no positive time.
    """
    for name, value, least in (("trials", trials, 1), ("seed", seed, 0), ("jobs", jobs, 1)):
        if isinstance(value, bool) or not isinstance(value, int):
            raise InputError(f"{name} must be a whole number, got {value!r}")
        if value < least:
            raise InputError(f"{name} must be at least {least}, got {value}")
    if time_limit is not None and not time_limit > 0:  # neither is a NaN
        raise InputError(f"the time limit must be above 0 s, got {time_limit:g}")


@dataclass(frozen=True, slots=True)
class Progress:
    """State after a step, for a progress display."""

    step: int
    trials: int
    budget: int
    makespan: int | None
    bound: int
    elapsed_s: float


@dataclass
class _State:
    """What the steps so far have found."""

    scheduled: dict[str, tuple[int, int, Candidate]] = field(default_factory=dict)  # kernel hash -> (makespan, trial, candidate)
    entry_of: dict[str, int] = field(default_factory=dict)
    rejections: dict[str, int] = field(default_factory=dict)
    open_prices: list[int] = field(default_factory=list)  # of settings that were refused, or cost more: what else their placement could do
    trials: int = 0
    pruned: int = 0
    duplicates: int = 0
    rejected: int = 0
    explored: int = 0
    filled: int = 0
    underpriced: bool = False
    best: str = ""
    template_hash: str = ""
    trace: list[TraceRow] = field(default_factory=list)
    verifications: dict[str, Verification] = field(default_factory=dict)

    @property
    def makespan(self) -> int | None:
        return self.scheduled[self.best][0] if self.best else None

    def seen(self) -> dict[str, int]:
        return {digest: makespan for digest, (makespan, _, _) in self.scheduled.items()}


@dataclass
class Tuner:
    """One search. `run` does all of it; the arguments are those of `tune`."""

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
        if len(self.workload.inputs) != 2:
            raise InputError(f"{self.workload.text} has one input; the search of contractions takes two")
        self.profile = profile_named(self.profile).name
        self.space = Space(self.workload, self.profile)
        self.state = _State()
        self._started = 0.0
        self._suggester: Suggester | None = None
        self._templated = False

    def run(self) -> SearchResult:
        """Searches until the best is proven, the budget or time is used up, or the user interrupts.

        Raises:
            WorkError: no legal plan, or too large for one pass. KeyboardInterrupt: interrupted before there was a plan.
            InputError: the study file cannot be used.
        """
        self._started = time.monotonic()
        identity = {"workload": self.workload.to_json(), "seed": self.seed, "profile": self.profile, "version": STUDY_VERSION}
        stopped = "trials"
        with Study(self.study, identity) as study, Workers(self.space, self.jobs) as workers:
            entries = self.space.entries  # counted while the workers start
            try:
                stopped = self._steps(study, workers, entries)
            except KeyboardInterrupt:
                stopped = "interrupt"
            if not self.state.best and stopped == "interrupt":
                raise KeyboardInterrupt  # nothing to report yet
            if not self.state.best:
                raise WorkError(f"no legal plan found for {self.workload.text}", hint=f"refused by: {self._refusals()}")
            return self._result(stopped)

    def _refusals(self) -> str:
        return ", ".join(f"{rule} ({count})" for rule, count in sorted(self.state.rejections.items())) or "nothing was tried"

    # steps

    def _steps(self, study: Study, workers: Workers, entries: int) -> str:
        number = 0
        while True:
            reason = self._finished(entries)
            if reason:
                return reason
            known = study.records.get(number)
            record = known or self._step(number, workers)
            if known is None:
                study.record(record)
            self._account(record)
            number += 1
            if self.progress is not None:
                state = self.state
                self.progress(Progress(number, state.trials, self.trials, state.makespan, self._bound(), time.monotonic() - self._started))

    def _finished(self, entries: int) -> str:
        state = self.state
        if self.time_limit is not None and state.best and time.monotonic() - self._started >= self.time_limit:
            return "time"
        if state.trials >= self.trials:
            return "proven" if self._proven() else "trials"
        if self._templated and self._exhausted() and self._proven():
            enough = len(state.scheduled) >= REPORTED or self._suggested() + state.filled >= FILL_STEPS
            return "proven" if enough else ""
        return ""

    def _suggested(self) -> int:
        return len(self._suggester.told) if self._suggester else 0

    def _exhausted(self) -> bool:
        """Whether no placement is left that may beat the best (or that may still be priced)."""
        makespan = self.state.makespan
        limit = self.space.entries if makespan is None else self.space.below(makespan)
        return self.state.explored >= min(limit, ENTRIES_PER_TRIAL * self.trials)

    def _proven(self) -> bool:
        """Whether every placement of the space is explored or bounded by the best, and nothing cheaper was refused."""
        state, makespan = self.state, self.state.makespan
        if makespan is None or state.underpriced or not self.space.complete:
            return False
        return state.explored >= self.space.below(makespan) and all(p >= makespan for p in state.open_prices)

    def _bound(self) -> int:
        """Lower bound of every plan of the space, given what was explored."""
        makespan = self.state.makespan
        if makespan is None or self.state.underpriced or not self.space.complete:
            return self.space.lower_bound
        open_bounds = [p for p in self.state.open_prices if p < makespan]
        if self.state.explored < self.space.below(makespan):
            open_bounds.append(self.space.bound(self.state.explored))
        return min([makespan, *open_bounds])

    def _step(self, number: int, workers: Workers) -> StepRecord:
        if number == 1:  # not the first, so that the first plan need not wait for the template's oracle
            candidate = template(self.workload)
            outcomes = [] if candidate is None else [evaluate(candidate, self.profile)]
            return StepRecord(number, "template", [], [[asdict(o) for o in outcomes]], {})
        if not self._exhausted():
            first = self.state.explored
            makespan = self.state.makespan
            limit = self.space.entries if makespan is None else self.space.below(makespan)
            chunk = list(range(first, min(first + CHUNK * self.jobs, limit)))
            found = workers.explore(chunk, makespan or _NO_LIMIT, self.state.seen())
            return StepRecord(number, "explore", chunk, [[asdict(o) for o in outcomes] for outcomes in found], {})
        if number % 2 and self.state.filled < self.space.entries:
            found = workers.explore([self.state.filled], _NO_LIMIT, self.state.seen())
            return StepRecord(number, "fill", [self.state.filled], [[asdict(o) for o in found[0]]], {})
        suggester = self._the_suggester()
        params = suggester.ask(number)
        (outcome,) = workers.evaluate([suggester.candidate(params)], self.state.seen())
        return StepRecord(number, "suggest", [], [[asdict(outcome)]], params)

    def _the_suggester(self) -> Suggester:
        if self._suggester is None:
            ranked = sorted((m, t, d) for d, (m, t, _) in self.state.scheduled.items() if d in self.state.entry_of)
            entries = list(dict.fromkeys(self.state.entry_of[d] for _, _, d in ranked))[:PLACEMENTS]
            self._suggester = Suggester(self.space, entries or [0], self.seed)
        return self._suggester

    def _account(self, record: StepRecord) -> None:
        """Adds a step to the state; a new best is checked by its oracle first."""
        state = self.state
        if record.kind == "explore":
            state.explored += len(record.entries)
            state.pruned += sum(1 for outcomes in record.outcomes if not outcomes)
        if record.kind == "template":
            self._templated = True
        if record.kind == "fill":
            state.filled += len(record.entries)
        for place, outcomes in enumerate(record.outcomes):
            for raw in outcomes:
                outcome = Outcome.from_json(raw)
                entry = record.entries[place] if record.entries else None
                self._account_outcome(outcome, entry)
                if record.kind == "template" and outcome.fate == SCHEDULED:
                    state.template_hash = outcome.kernel_hash
                if record.kind == "suggest":
                    worst = 2.0 * (state.makespan or _NO_LIMIT)
                    self._the_suggester().tell(record.params, float(outcome.makespan) if outcome.makespan else worst)

    def _account_outcome(self, outcome: Outcome, entry: int | None) -> None:
        state = self.state
        state.trials += 1
        if outcome.fate == REJECTED:
            self._refuse(outcome.rule, outcome.price)
            return
        if outcome.fate == DUPLICATE or outcome.kernel_hash in state.scheduled:
            state.duplicates += 1
            return
        candidate = Candidate.from_json(self.workload, outcome.candidate)
        if outcome.price and outcome.makespan < outcome.price:
            state.underpriced = True
        if outcome.makespan > outcome.price > 0:  # another setting of this placement may keep its price
            state.open_prices.append(outcome.price)
        is_best = state.makespan is None or outcome.makespan < state.makespan
        if is_best and not self._passes(candidate, outcome.kernel_hash):
            self._refuse("ORACLE", outcome.price)
            return
        state.scheduled[outcome.kernel_hash] = (outcome.makespan, state.trials, candidate)
        if entry is not None:
            state.entry_of[outcome.kernel_hash] = entry
        if is_best:
            state.best = outcome.kernel_hash
            state.trace.append(TraceRow(state.trials, outcome.makespan, self._bound(), time.monotonic() - self._started))

    def _refuse(self, rule: str, at_price: int) -> None:
        self.state.rejected += 1
        self.state.rejections[rule] = self.state.rejections.get(rule, 0) + 1
        if at_price:
            self.state.open_prices.append(at_price)

    # oracle and result

    def _passes(self, candidate: Candidate, digest: str) -> bool:
        if digest not in self.state.verifications:
            self.state.verifications[digest] = verify(self._compiled(candidate).checked)
        return self.state.verifications[digest].passed

    def _compiled(self, candidate: Candidate, name: str = "kernel") -> Compiled:
        return compile_kernel(lower(candidate, name), self.profile)

    def _top(self) -> list[Plan]:
        """The reported plans, best first; one that fails its oracle is refused instead."""
        plans: list[Plan] = []
        for digest, (_, _, candidate) in sorted(self.state.scheduled.items(), key=lambda item: item[1][:2]):
            if len(plans) == REPORTED:
                break
            if not self._passes(candidate, digest):
                del self.state.scheduled[digest]
                self._refuse("ORACLE", 0)
                continue
            plans.append(self._plan(candidate))
        return plans

    def _plan(self, candidate: Candidate) -> Plan:
        compiled = self._compiled(candidate, self.workload.kernel_name)
        bound = min(self._bound(), compiled.makespan)
        terms = price(Layout(candidate), self.space.fixed, self.profile).to_json()
        document = candidate.to_json()
        return Plan(
            compiled.makespan, bound, document["placement"], document["knobs"], terms, compiled.kernel, compiled.schedule, compiled.busy
        )

    def _knob_worth(self, best: Candidate) -> dict[str, int | None]:
        """Makespan of the best plan with each knob set back to the manual's choice, None where that is not legal."""
        worth: dict[str, int | None] = {}
        plain = Knobs()
        for name, value in best.knobs.to_json().items():
            standard = plain.to_json()[name]
            if value == standard or name in ("slice_order", "stationary"):
                continue
            changed = {**best.knobs.to_json(), name: standard}
            if name == "gather":
                changed["gather_ring"] = 1
            outcome = evaluate(Candidate(self.workload, best.placement, Knobs.from_json(changed)), self.profile)
            worth[name] = outcome.makespan or None
        return worth

    def _result(self, stopped: str) -> SearchResult:
        state = self.state
        top = self._top()
        best = top[0]
        bound = self._bound()
        if bound > best.makespan:
            raise WorkError(f"internal: the lower bound {bound} is above the makespan {best.makespan}")
        default = state.scheduled.get(state.template_hash)
        if default is not None and not self._passes(default[2], state.template_hash):
            raise WorkError("the manual's template mapping fails its oracle", hint="the machine model is inconsistent")
        best_candidate = min(state.scheduled.values(), key=lambda s: s[:2])[2]
        return SearchResult(
            workload=self.workload.to_json(),
            hardware=RNGD.name,
            profile=self.profile,
            seed=self.seed,
            trials=self.trials,
            best=best,
            top=tuple(top),
            lower_bound=bound,
            proven=self._proven(),
            default=self._plan(default[2]) if default else None,
            what_default=template_words(self.workload),
            oracle=OracleSummary.of(self.state.verifications.values()),
            fates=Fates(state.pruned, state.duplicates, state.rejected, len(state.scheduled)),
            rejections=dict(state.rejections),
            knob_worth=self._knob_worth(best_candidate),
            trace=tuple(state.trace),
            stopped=stopped,
            wall_time_s=round(time.monotonic() - self._started, 3),
            command=self.command,
        )


_NO_LIMIT = 1 << 40
"""A makespan above every plan's, before the first plan is found; in cycles."""

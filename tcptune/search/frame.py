"""The frame of every search: numbered steps, journal, workers, budget, oracle, result; what a step tries is the business of each kind.

Step 0 measures the manual's template, beside the budget of trials. Steps are functions of the seed and the steps before them, so a killed
study goes on where it was (`search.store`). A time limit counts from the start of `run` and ends the search between two pieces of work
(tables of a family, a placement, a candidate); the template and the oracle run of a new best are always finished.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Generic, TypeVar

from tcptune.errors import InputError, WorkError
from tcptune.exec.compile import Compiled, compile_kernel
from tcptune.exec.lowering.candidates import lower_candidate
from tcptune.exec.running.oracle import verify
from tcptune.exec.running.verification import Verification
from tcptune.ir.candidate import Candidate
from tcptune.ir.schedule import CORE
from tcptune.ir.workload import Workload
from tcptune.model.hardware import RNGD
from tcptune.search.deadline import Deadline, TimeIsUp
from tcptune.search.options import Options, Progress
from tcptune.search.parallel import AnySpace, Outcome, Workers, evaluate
from tcptune.search.result import Fates, OracleSummary, Plan, SearchResult, TraceRow
from tcptune.search.stand_in import affordable, allowed_positions, what_ran
from tcptune.search.store import DUPLICATE, REJECTED, SCHEDULED, UNPRICED, StepRecord, Study, program_version

REPORTED = 10
"""Plans in the report; each passes its oracle."""

TEMPLATE, PROVEN, EXHAUSTED, TRIALS, TIME, INTERRUPT = "template", "proven", "exhausted", "trials", "time", "interrupt"
"""Why a search ends; ``exhausted``: all of its space was tried, without a proof."""

FREE_REFUSALS = 512
"""Candidates that rules may refuse before the first legal plan without a loss of trials; it bounds a search of a space without any."""

NO_LIMIT = 1 << 62
"""A makespan above every plan's, before the first plan is found; in cycles."""


@dataclass
class Tally:
    """What the steps so far have found."""

    scheduled: dict[str, tuple[int, int, Candidate]] = field(default_factory=dict)  # kernel hash -> (makespan, trial, candidate)
    rejections: dict[str, int] = field(default_factory=dict)
    verifications: dict[str, Verification] = field(default_factory=dict)
    trace: list[TraceRow] = field(default_factory=list)
    trials: int = 0
    pruned: int = 0
    duplicates: int = 0
    rejected: int = 0
    best: str = ""
    template_hash: str = ""

    @property
    def all_priced(self) -> bool:
        """Whether every candidate so far was scheduled or refused by a rule: none lacks a price, which could be any."""
        return UNPRICED not in self.rejections

    @property
    def makespan(self) -> int | None:
        return self.scheduled[self.best][0] if self.best else None

    def seen(self) -> dict[str, int]:
        return {digest: makespan for digest, (makespan, _, _) in self.scheduled.items()}


State = TypeVar("State", bound=Tally)
Searched = TypeVar("Searched", bound=AnySpace)


class Search(ABC, Generic[Searched, State]):
    """One search over a workload; `run` does all of it. A kind of search says what a step tries and what bounds the rest."""

    what_default: str
    """The manual's template in words."""

    reported = REPORTED
    """Plans in the report."""

    def __init__(self, workload: Workload, options: Options, space: Searched, state: State) -> None:
        self.workload = workload
        self.options = options
        self.space = space
        self.state = state
        self.progress = options.progress
        self.deadline = Deadline()
        self._started = 0.0
        self._stood_in: dict[str, str] = {}  # kernel hash -> the smaller kernel that its oracle ran, in words

    # what a kind of search decides

    @abstractmethod
    def _template(self) -> Candidate | None:
        """The manual's mapping; None if nothing like it is legal.

        Raises:
            WorkError: the workload is too large for any plan.
        """

    @abstractmethod
    def _finished(self) -> str:
        """Why there is no further step (``proven``, ``exhausted`` or ``trials``), or nothing.

        Raises:
            TimeIsUp: while the space was built. WorkError: the space is empty.
        """

    @abstractmethod
    def _step(self, number: int, workers: Workers) -> StepRecord:
        """The next step; a function of the seed and the steps before it.

        Raises:
            TimeIsUp: the step was not finished.
        """

    @abstractmethod
    def _bound(self) -> int:
        """Lower bound of every plan of the space, given what was tried; in cycles."""

    def _own_bound(self, candidate: Candidate) -> int:
        """Lower bound of every plan with the placement of a candidate, in cycles."""
        return self._bound()

    @abstractmethod
    def _proven(self) -> bool:
        """Whether nothing in the space beats the best."""

    @abstractmethod
    def _terms(self, candidate: Candidate, compiled: Compiled) -> dict[str, int]:
        """Cycles of the parts of a plan, in time order."""

    def _knobs(self, candidate: Candidate) -> dict[str, Any]:
        """What the placement of a plan leaves open, by name."""
        return candidate.knobs.to_json()

    @abstractmethod
    def _at_defaults(self, best: Candidate) -> dict[str, Candidate]:
        """For every choice of the best plan that is not the manual's: that plan with the manual's choice instead."""

    @abstractmethod
    def _tried(self, outcome: Outcome, entry: int | None) -> None:
        """Called for every outcome: scheduled, refused, or the kernel of an earlier one, whose price may be another."""

    # the steps

    def run(self) -> SearchResult:
        """Searches until the best is proven, the budget or time is used up, or the user interrupts.

        Raises:
            WorkError: no legal plan (in time), or too large for one pass. KeyboardInterrupt: interrupted before there was a plan.
            InputError: the study file cannot be used.
        """
        self._begin(time.monotonic(), Deadline.after(self.options.time_limit))
        return self._searched()

    def _begin(self, started: float, deadline: Deadline) -> None:
        self._started, self.deadline = started, deadline
        self.space = replace(self.space, deadline=deadline)

    def _searched(self) -> SearchResult:
        """All of the search, once its time has begun."""
        options = self.options
        identity = {"workload": self.workload.to_json(), "seed": options.seed, "profile": options.profile, "program": program_version()}
        with Study(options.study, identity) as study, Workers(self.space, options.jobs) as workers:
            try:
                stopped = self._steps(study, workers)
            except KeyboardInterrupt:
                stopped = INTERRUPT
            if not self.state.best and stopped == INTERRUPT:
                raise KeyboardInterrupt  # nothing to report yet
            if not self.state.best and stopped == TIME:
                raise WorkError(f"no plan for {self.workload.text} within {options.time_limit:g} s", hint="a longer time limit, or none")
            if not self.state.best:
                raise WorkError(f"no legal plan found for {self.workload.text}", hint=f"refused by: {self._refusals()}")
            return self._result(stopped)

    def _refusals(self) -> str:
        return ", ".join(f"{rule} ({count})" for rule, count in sorted(self.state.rejections.items())) or "nothing was tried"

    def _steps(self, study: Study, workers: Workers) -> str:
        """Takes steps until there is a reason to stop, which it returns."""
        number = 0
        try:
            while not (reason := self._reason_to_stop(number)):
                known = study.records.get(number)
                record = known or (self._measure_template() if number == 0 else self._step(number, workers))
                if known is None:
                    study.record(record)
                self._account(record)
                number += 1
                if self.progress is not None:
                    trials, makespan, elapsed_s = self.state.trials, self.state.makespan, time.monotonic() - self._started
                    self.progress(Progress(number, trials, self.options.trials, makespan, self._bound(), elapsed_s))
        except TimeIsUp:
            return TIME
        return reason

    def _reason_to_stop(self, number: int) -> str:
        if number == 0:
            return ""
        return TIME if self.deadline.passed else self._finished()

    def _measure_template(self) -> StepRecord:
        candidate = self._template()
        outcomes = [] if candidate is None else [evaluate(candidate, self.options.profile)]
        return StepRecord(0, TEMPLATE, [], [[asdict(o) for o in outcomes]], {})

    def _account(self, record: StepRecord) -> None:
        """Adds a step to the state; a new best is checked by its oracle first."""
        for place, outcomes in enumerate(record.outcomes):
            entry = record.entries[place] if record.entries else None
            for raw in outcomes:
                self._account_outcome(Outcome.from_json(raw), entry, record.kind == TEMPLATE)

    def _account_outcome(self, outcome: Outcome, entry: int | None, is_template: bool) -> None:
        """The template waits with its oracle until it is reported, so that the first good plan need not wait for it.

        Until there is a legal plan, refusals take no trials, `FREE_REFUSALS` at most.
        """
        state = self.state
        is_free = not state.best and outcome.fate == REJECTED and state.rejected < FREE_REFUSALS
        state.trials += 0 if is_template or is_free else 1
        if outcome.fate == REJECTED:
            self._refuse(outcome.rule)
            self._tried(outcome, entry)
            return
        if outcome.fate == DUPLICATE or outcome.kernel_hash in state.scheduled:
            state.duplicates += 1
            self._tried(replace(outcome, fate=DUPLICATE), entry)
            return
        candidate = Candidate.from_json(self.workload, outcome.candidate)
        is_best = state.makespan is None or outcome.makespan < state.makespan
        if is_best and not is_template and not self._passes(candidate, outcome.kernel_hash):
            self._refuse("ORACLE")
            outcome = Outcome(outcome.candidate, REJECTED, price=outcome.price, rule="ORACLE")
        self._tried(outcome, entry)
        if outcome.fate != SCHEDULED:
            return
        state.scheduled[outcome.kernel_hash] = (outcome.makespan, state.trials, candidate)
        if is_template:
            state.template_hash = outcome.kernel_hash
        if is_best:
            state.best = outcome.kernel_hash
            state.trace.append(TraceRow(state.trials, outcome.makespan, self._bound(), time.monotonic() - self._started))

    def _refuse(self, rule: str) -> None:
        self.state.rejected += 1
        self.state.rejections[rule] = self.state.rejections.get(rule, 0) + 1

    # oracle and result

    def _passes(self, candidate: Candidate, digest: str) -> bool:
        """Whether a plan passes its oracle, or a smaller one in its place where it is too large for what an oracle may cost."""
        if digest not in self.state.verifications:
            small = affordable(candidate, allowed_positions(self.options.time_limit))
            if small != candidate:
                self._stood_in[digest] = what_ran(candidate, small)
            self.state.verifications[digest] = verify(self._compiled(small).checked)
        return self.state.verifications[digest].passed

    def _what_ran(self) -> str:
        """What the oracle ran for the best plan, and for how many of the others it ran smaller ones."""
        others = len(self._stood_in.keys() - {self.state.best})
        best = self._stood_in.get(self.state.best, "the kernel")
        return best + (f"; smaller kernels ran in place of {others} other plan{'s' * (others > 1)}" if others else "")

    def _compiled(self, candidate: Candidate, name: str = "kernel") -> Compiled:
        return compile_kernel(lower_candidate(candidate, name), self.options.profile)

    def _reported(self, stopped: str) -> list[Candidate]:
        """The plans of the report, best first; one that fails its oracle is refused instead.

        A search that is to end at once runs no more oracles than its best plan needs.
        """
        found: list[Candidate] = []
        for digest, (_, _, candidate) in sorted(self.state.scheduled.items(), key=lambda item: item[1][:2]):
            if len(found) == self.reported:
                break
            ends_now = stopped in (TIME, INTERRUPT) or self.deadline.passed  # however it ended, its time may be over
            if ends_now and found and digest not in self.state.verifications:
                continue
            if self._passes(candidate, digest):
                found.append(candidate)
            else:
                del self.state.scheduled[digest]
                self._refuse("ORACLE")
        return found

    def _plan(self, candidate: Candidate) -> Plan:
        """A plan of the report, compiled anew.

        Raises:
            InputError: the journal claims another makespan of it.
        """
        compiled = self._compiled(candidate, self.workload.kernel_name)
        claimed = {makespan for makespan, _, known in self.state.scheduled.values() if known == candidate}
        if self.options.study is not None and claimed and claimed != {compiled.makespan}:
            raise InputError(
                f"{self.options.study} claims {min(claimed)} cycles for a plan that takes {compiled.makespan}",
                hint="it was edited: start with another study file",
            )
        return Plan(
            compiled.makespan,
            min(self._own_bound(candidate), compiled.makespan),
            candidate.to_json()["placement"],
            self._knobs(candidate),
            self._terms(candidate, compiled),
            compiled.kernel,
            compiled.schedule,
            compiled.busy,
        )

    def _knob_worth(self, best: Candidate) -> dict[str, int | None]:
        """Makespan of the best plan with each choice set back to the manual's, None where that is not legal."""
        return {name: evaluate(changed, self.options.profile).makespan or None for name, changed in self._at_defaults(best).items()}

    def _default(self) -> Candidate | None:
        """The template, if it was legal.

        Raises:
            WorkError: it fails its oracle.
        """
        default = self.state.scheduled.get(self.state.template_hash)
        if default is not None and not self._passes(default[2], self.state.template_hash):
            raise WorkError("the manual's template mapping fails its oracle", hint="the machine model is inconsistent")
        return default[2] if default else None

    def _result(self, stopped: str) -> SearchResult:
        state, options = self.state, self.options
        default = self._default()
        reported = self._reported(stopped)
        top: Sequence[Plan] = [self._plan(candidate) for candidate in reported]
        bound, proven = self._bound(), self._proven()
        if bound > top[0].makespan:
            raise WorkError(f"internal: the lower bound {bound} is above the makespan {top[0].makespan}")
        return SearchResult(
            workload=self.workload.to_json(),
            hardware=RNGD.name,
            profile=options.profile,
            seed=options.seed,
            trials=options.trials,
            best=top[0],
            top=tuple(top),
            lower_bound=bound,
            proven=proven,
            default=self._plan(default) if default else None,
            what_default=self.what_default,
            oracle=replace(OracleSummary.of(state.verifications.values()), what=self._what_ran()),
            fates=Fates(state.pruned, state.duplicates, state.rejected, len(state.scheduled)),
            rejections=dict(state.rejections),
            knob_worth=self._knob_worth(reported[0]),
            trace=tuple(state.trace),
            stopped=EXHAUSTED if stopped == PROVEN and not proven else stopped,
            wall_time_s=round(time.monotonic() - self._started, 3),
            command=options.command,
        )


def terms_by_kind(compiled: Compiled) -> dict[str, int]:
    """Cycles of the launch, of every kind of operation and of the closing sync; kinds may overlap in time."""
    operations = [o for o in compiled.schedule.operations if CORE not in o.contexts]
    terms = {"start": min(o.begin for o in operations)}
    for operation in operations:
        terms[operation.kind] = terms.get(operation.kind, 0) + operation.end - operation.begin
    return {**terms, "sync": compiled.makespan - max(o.end for o in operations)}

"""Evaluation of candidates: price, lower, compile; in this process or in worker processes."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Hashable, Iterator, Sequence
from collections.abc import Mapping as Dict
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, suppress
from dataclasses import Field, dataclass
from functools import partial
from multiprocessing import get_context, parent_process
from typing import Any, ClassVar, Protocol, TypeVar

from tcptune.errors import RuleViolation, WorkError
from tcptune.exec.compile import compile_kernel
from tcptune.exec.lowering.candidates import lower_candidate
from tcptune.ir.candidate import Candidate
from tcptune.ir.workload import Workload
from tcptune.model.memory.price import Unpriced
from tcptune.search.deadline import TimeIsUp
from tcptune.search.knobs import Priced
from tcptune.search.result import kernel_hash
from tcptune.search.space import Space
from tcptune.search.store import DUPLICATE, REJECTED, SCHEDULED, UNPRICED

Answer = TypeVar("Answer")
Setting = TypeVar("Setting")

_MOMENT_S = 0.02

RETRIES = 4
"""Settings of one placement that are tried when the cheapest ones are refused by a rule."""


class AnySpace(Protocol):
    """What a search and its workers need of a space (a frozen dataclass with a field `deadline`), whatever is enumerated in it."""

    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]

    @property
    def workload(self) -> Workload: ...

    @property
    def profile(self) -> str: ...

    def prepare(self) -> None:
        """Computes once what every task needs.

        Raises:
            TimeIsUp: the time limit is over.
        """


@dataclass(frozen=True)
class Outcome:
    """What became of one candidate: a makespan, or the rule that refused it. `price` is its closed-form price (0: not priced)."""

    candidate: dict[str, Any]
    fate: str
    kernel_hash: str = ""
    makespan: int = 0
    price: int = 0
    rule: str = ""

    @classmethod
    def from_json(cls, raw: dict[str, Any]) -> Outcome:
        return cls(**raw)


def evaluate(candidate: Candidate, profile: str, price: int = 0, seen: Dict[str, int] | None = None) -> Outcome:
    """Compiles one candidate; a refusal is an outcome, not an error. `seen` maps the kernels compiled before to their makespans.

    Raises:
        WorkError: the candidate cannot be lowered or compiled, for a reason that is no rule: a defect of this program.
    """
    document = candidate.to_json()
    try:
        kernel = lower_candidate(candidate)
        digest = kernel_hash(kernel.to_text())
        if seen and digest in seen:
            return Outcome(document, DUPLICATE, digest, seen[digest], price)
        compiled = compile_kernel(kernel, profile)
    except RuleViolation as refusal:
        return Outcome(document, REJECTED, price=price, rule=refusal.rule)
    except Unpriced:
        return Outcome(document, REJECTED, price=price, rule=UNPRICED)
    return Outcome(document, SCHEDULED, digest, compiled.makespan, price)


def _evaluate_priced(space: Space, entry: int, seen: Dict[str, int], priced: Priced) -> Outcome:
    return evaluate(Candidate(space.workload, space.placement(entry), priced.knobs), space.profile, priced.terms.makespan, seen)


def compile_ranked(space: Space, ranked: Dict[int, Sequence[Priced]], below: int, seen: Dict[str, int]) -> dict[int, list[Outcome]]:
    """The best plan of each of these placements that costs less than `below`, and the refusals on the way; empty where there is none.

    The cheapest price comes first: a plan found for one placement lowers the limit of those after it.

    Args:
        ranked: the cheapest settings of every placement, by entry.

    Raises:
        TimeIsUp: the time limit is over.
    """
    found: dict[int, list[Outcome]] = {entry: [] for entry in ranked}
    for entry in sorted((e for e in ranked if ranked[e]), key=lambda e: (ranked[e][0].terms.makespan, e)):
        if ranked[entry][0].terms.makespan >= below:
            break
        space.deadline.check()
        found[entry] = compile_cheapest(
            ranked[entry], partial(_evaluate_priced, space, entry, seen), partial(space.ranked, entry, below, RETRIES)
        )
        below = min([below, *(o.makespan for o in found[entry] if o.fate == SCHEDULED)])
    return found


def compile_cheapest(
    ranked: Sequence[Setting], compiled: Callable[[Setting], Outcome], ranked_again: Callable[[], Sequence[Setting]]
) -> list[Outcome]:
    """Compiles the settings of one entry that were ranked first; where a rule refuses the last of them, others of a longer ranking.

    The longer ranking may hold the first ones anywhere, or not at all: it looks at more, and its limit may be lower by then.
    """
    outcomes = [compiled(setting) for setting in ranked]
    if not outcomes or outcomes[-1].fate != REJECTED:
        return outcomes
    for setting in ranked_again():
        if setting in ranked:
            continue
        outcomes.append(compiled(setting))
        if outcomes[-1].fate != REJECTED:
            break
    return outcomes


_worker_space: AnySpace | None = None


def _end_with_the_parent() -> None:
    """Waits for the end of the process that started this worker, however it ended, and ends the worker in whatever it is doing."""
    parent = parent_process()
    if parent is not None:
        parent.join()
    os._exit(1)


def _start_worker(space: AnySpace) -> None:
    global _worker_space
    threading.Thread(target=_end_with_the_parent, name="end with the parent", daemon=True).start()
    _worker_space = space
    with suppress(TimeIsUp, WorkError):  # the search's own process meets the same and says so
        space.prepare()


def _worker_process() -> int:
    """Process id of the worker that answers, after a moment in which the others can answer too."""
    time.sleep(_MOMENT_S)
    return os.getpid()


def _evaluate_in_worker(candidate: dict[str, Any], seen: Dict[str, int]) -> Outcome:
    assert _worker_space is not None
    return evaluate(Candidate.from_json(_worker_space.workload, candidate), _worker_space.profile, seen=seen)


def _call_in_worker(method: str, arguments: tuple[Any, ...]) -> Any:
    assert _worker_space is not None
    return getattr(_worker_space, method)(*arguments)


@contextmanager
def _interrupts_ignored() -> Iterator[None]:
    """Ignores interrupts for a moment; outside the main thread they cannot arrive and nothing is changed."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


class Workers:
    """Runs `explore` and `evaluate` in `jobs` processes (1: in this one), results in the order of submission."""

    def __init__(self, space: AnySpace, jobs: int) -> None:
        self.space = space
        self.jobs = jobs
        self._pool: ProcessPoolExecutor | None = None
        if jobs > 1:
            self._pool = ProcessPoolExecutor(jobs, get_context("spawn"), _start_worker, (space,))
            with _interrupts_ignored():  # each of the first tasks starts a worker, which inherits this
                for _ in range(jobs):
                    self._pool.submit(os.getpid)

    def wait_started(self) -> None:
        """Returns when every worker has built its tables and answers."""
        answered: set[int] = set()
        while self._pool is not None and len(answered) < self.jobs:
            answered |= set(self._results(_worker_process, [()] * self.jobs))

    def explore(self, entries: Sequence[int], below: int, seen: Dict[str, int]) -> list[list[Outcome]]:
        """The best plan of each placement that costs less than `below`, and the refusals on the way; the same for any number of jobs.

        Workers price the placements, in shares that have their loads in common; what is left to compile is little, and decides what comes
        after it.

        Raises:
            TimeIsUp: the time limit is over.
        """
        space = self.space
        assert isinstance(space, Space)
        shares: dict[Hashable, list[int]] = {}
        for entry in entries:
            shares.setdefault(space.loads_key(entry), []).append(entry)
        largest_first = sorted(shares.values(), key=lambda share: -sum(map(space.slice_orders, share)))
        answers = self.call("ranked_each", [(share, below) for share in largest_first])
        ranked: dict[int, list[Priced]] = {}
        for share, answer in zip(largest_first, answers, strict=True):
            ranked.update(zip(share, answer, strict=True))
        found = compile_ranked(space, ranked, below, seen)
        return [found[entry] for entry in entries]

    def call(self, method: str, calls: Sequence[tuple[Any, ...]]) -> list[Any]:
        """What a method of the space answers to each of these argument lists.

        Raises:
            TimeIsUp: the time limit is over.
        """
        if self._pool is None or len(calls) == 1:
            return [getattr(self.space, method)(*arguments) for arguments in calls]
        return self._results(_call_in_worker, [(method, arguments) for arguments in calls])

    def evaluate(self, candidates: Sequence[Candidate], seen: Dict[str, int]) -> list[Outcome]:
        if self._pool is None or len(candidates) == 1:
            return [evaluate(c, self.space.profile, seen=seen) for c in candidates]
        return self._results(_evaluate_in_worker, [(c.to_json(), seen) for c in candidates])

    def _results(self, task: Callable[..., Answer], calls: Sequence[tuple[Any, ...]]) -> list[Answer]:
        """Answers of the workers in the order of the calls.

        Raises:
            WorkError: a worker process died.
        """
        assert self._pool is not None
        try:
            waiting = [self._pool.submit(task, *call) for call in calls]
            return [future.result() for future in waiting]
        except BrokenProcessPool as cause:
            raise WorkError("a worker process died", hint="it may have run out of memory; try fewer --jobs") from cause

    def close(self) -> None:
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)

    def __enter__(self) -> Workers:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

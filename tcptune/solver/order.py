"""CP-SAT job shop: the best possible order of a kernel's operations on its contexts, with proof; list scheduling is measured against it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import floor

from ortools.sat.python import cp_model

_DETERMINISTIC_LIMIT = 20.0


@dataclass(frozen=True, slots=True)
class Job:
    """An operation: its duration in cycles, the contexts it holds, and the jobs (by index) that must end before it begins."""

    duration_cycles: int
    contexts: tuple[str, ...]
    after: tuple[int, ...] = ()
    release: int = 0


@dataclass(frozen=True, slots=True)
class BestOrder:
    """Begins of all jobs in cycles, the end of the last one, and the proven bound of it."""

    begins: tuple[int, ...]
    makespan: int
    bound: int
    optimal: bool


def best_order(jobs: Sequence[Job], horizon: int | None = None) -> BestOrder:
    """The order with the least makespan; one job at a time on every context, precedences respected (VT-042).

    Raises:
        ValueError: a job waits for itself or for a later one.
    """
    model = cp_model.CpModel()
    latest = horizon or max((j.release for j in jobs), default=0) + sum(j.duration_cycles for j in jobs)
    begins: list[cp_model.IntVar] = []
    ends: list[cp_model.LinearExprT] = []
    by_context: dict[str, list[cp_model.IntervalVar]] = {}
    for number, job in enumerate(jobs):
        if any(before >= number for before in job.after):
            raise ValueError(f"job {number} waits for a job that is not before it")
        begin = model.new_int_var(job.release, latest, f"begin{number}")
        interval = model.new_fixed_size_interval_var(begin, job.duration_cycles, f"job{number}")
        for context in job.contexts:
            by_context.setdefault(context, []).append(interval)
        for before in job.after:
            model.add(begin >= ends[before])
        begins.append(begin)
        ends.append(begin + job.duration_cycles)
    for intervals in by_context.values():
        model.add_no_overlap(intervals)
    makespan = model.new_int_var(0, latest, "makespan")
    if ends:
        model.add_max_equality(makespan, ends)
    model.minimize(makespan)
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    solver.parameters.catch_sigint_signal = False  # an interrupt stays with Python, also after the solve
    solver.parameters.random_seed = 0
    solver.parameters.max_deterministic_time = _DETERMINISTIC_LIMIT
    status = solver.solve(model)
    return BestOrder(
        tuple(solver.value(b) for b in begins),
        round(solver.objective_value),
        floor(solver.best_objective_bound + 1e-6),
        status == cp_model.OPTIMAL,
    )

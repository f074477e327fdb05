"""When both operands of a contraction are ready where a pass holds the DMA engine: the best order of loads, copies and staging (VT-042)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import permutations

from tcptune.ir.schedule import DMA, MAIN, SUB
from tcptune.solver.epilogue_pricing import EpiloguePart
from tcptune.solver.order import Job, best_order


def operand_jobs(
    loads: tuple[int, int], copies: tuple[int, int], holds_dma: tuple[bool, bool, bool], staging: int, staging_on_main: bool
) -> tuple[list[Job], tuple[int, int]]:
    """Loads, copies and staging, and the jobs after which the stationary and the streamed operand are ready.

    Args:
        loads, copies: of the stationary and of the streamed operand; no copy where it takes 0 cycles.
        holds_dma: whether no DMA runs beside either copy, and beside staging.
    """
    jobs = [Job(loads[0], (DMA,)), Job(loads[1], (DMA,))]
    last = [0, 1]
    for n in (0, 1):
        if copies[n]:
            jobs.append(Job(copies[n], (MAIN, DMA) if holds_dma[n] else (MAIN,), (n,)))
            last[n] = len(jobs) - 1
    context = MAIN if staging_on_main else SUB
    jobs.append(Job(staging, (context, DMA) if holds_dma[2] else (context,), (last[0],)))
    return jobs, (len(jobs) - 1, last[1])


@lru_cache(maxsize=65_536)
def front_cycles(
    loads: tuple[int, int], copies: tuple[int, int], holds_dma: tuple[bool, bool, bool], staging: int, staging_on_main: bool
) -> int:
    """Cycles until both operands are ready; arguments as in `operand_jobs`. Every order is tried."""
    jobs, _ = operand_jobs(loads, copies, holds_dma, staging, staging_on_main)
    orders = permutations(range(len(jobs)))
    return min(
        _end_of(jobs, order) for order in orders if all(order.index(b) < place for place, n in enumerate(order) for b in jobs[n].after)
    )


def _end_of(jobs: Sequence[Job], order: Sequence[int]) -> int:
    """End of the last job when each begins, in this order, as soon as its contexts and what it waits for are done."""
    free = dict.fromkeys((DMA, MAIN, SUB), 0)
    ends = [0] * len(jobs)
    for n in order:
        job = jobs[n]
        ends[n] = max([0, *(free[c] for c in job.contexts), *(ends[b] for b in job.after)]) + job.duration_cycles
        free.update(dict.fromkeys(job.contexts, ends[n]))
    return max(ends)


@lru_cache(maxsize=16_384)
def result_ready_holding_dma(
    loads: tuple[int, int],
    staging: int,
    contraction: int,
    main: tuple[int, int, bool],
    holds_dma: tuple[bool, bool, bool],
    parts: tuple[EpiloguePart, ...],
) -> int:
    """As `solver.epilogue_pricing.result_ready`, where a pass holds the DMA engine; CP-SAT finds the best order."""
    jobs, ready = operand_jobs(loads, main[:2], holds_dma, staging, main[2])
    staged: list[tuple[int, ...]] = []
    for part in parts:
        first = len(jobs)
        for load, cycles in part.operands:
            jobs += [Job(load, (DMA,)), Job(cycles, (SUB,), (len(jobs),))]
        staged.append(tuple(range(first + 1, len(jobs), 2)))
    fused = staged[0] if parts and not parts[0].cycles else ()
    jobs.append(Job(contraction, (MAIN,), (*ready, *fused)))
    for part, operands in zip(parts, staged, strict=True):
        if part.cycles:
            jobs.append(Job(part.cycles, (MAIN,), (len(jobs) - 1, *operands)))
    return best_order(jobs).makespan

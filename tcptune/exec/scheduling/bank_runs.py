"""Consecutive accesses to one DM bank: how long a fetch or commit holds one, and what that does beside a DMA (SCHED-005 to 011, DM-010)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from tcptune.ir.schedule import DMA, MAIN, SUB, Program, Schedule
from tcptune.model.hardware import RNGD, Hardware
from tcptune.model.memory.dm import bank_of, max_consecutive_accesses
from tcptune.model.pipeline import Chain


def run_of_loops(loops: Sequence[tuple[int, int]], hw: Hardware = RNGD) -> int:
    """Longest run of consecutive accesses to one bank of a loop nest.

    Args:
        loops: (iterations, stride in bytes), outermost first, one access an innermost iteration.

    Loops whose stride is a multiple of a whole row of banks (or 0) stay in their bank and multiply the run. Where a loop leaves the bank,
    runs may still join across iterations; that is counted on the nest with its outer loops cut short.
    """
    nest = tuple((n, stride) for n, stride in loops if n > 1)
    return max(_staying_run(nest, hw), _counted_run(_shortened(nest), hw))


def _staying_run(nest: tuple[tuple[int, int], ...], hw: Hardware) -> int:
    row = hw.dm_word_bytes * hw.dm_banks_per_slice
    run = 1
    for iterations, stride in reversed(nest):
        if stride % row:
            return run
        run *= iterations
    return run


COUNTED_ACCESSES = 4096


def _shortened(nest: tuple[tuple[int, int], ...]) -> tuple[tuple[int, int], ...]:
    """The innermost loops as far as `COUNTED_ACCESSES` reaches; the loops outside them twice, as long as that is cheap."""
    kept: list[tuple[int, int]] = []
    total = 1
    for iterations, stride in reversed(nest):
        count = max(1, min(iterations, max(2, COUNTED_ACCESSES // total)))
        if total * count > 2 * COUNTED_ACCESSES:
            break
        kept.append((count, stride))
        total *= count
    return tuple(reversed(kept))


@lru_cache(maxsize=4096)
def _counted_run(nest: tuple[tuple[int, int], ...], hw: Hardware) -> int:
    address = np.zeros(1, dtype=np.int64)
    for iterations, stride in nest:
        address = (address[:, None] + np.arange(iterations, dtype=np.int64) * stride).reshape(-1)
    banks = bank_of(address, hw)
    changes = np.flatnonzero(np.diff(banks)) + 1
    edges = np.concatenate(([0], changes, [banks.size]))
    return int(np.diff(edges).max())


def longest_bank_run(chain: Chain, hw: Hardware = RNGD) -> int:
    """Longest run of same-bank accesses of a pass's fetch and commit, by the loops their sequencers derive; 1 where none is derived."""
    longest = 1
    for step in chain.steps:
        entries = step.derived.get("entries")
        if not entries or step.op.NAME not in ("fetch", "commit", "commit_view"):
            continue
        bits = step.before.dtype.bits
        loops = [(int(n), int(stride) * bits // 8) for n, stride in entries]
        access = int(step.derived.get("read_size", step.derived.get("write_size", 1))) * bits // 8
        longest = max(longest, run_of_loops(_per_access(loops, access), hw))
    return longest


def _per_access(loops: list[tuple[int, int]], access_bytes: int) -> list[tuple[int, int]]:
    """The loops with the bytes of one access taken out of the innermost contiguous ones."""
    left = max(access_bytes, 1)
    done: list[tuple[int, int]] = []
    for iterations, stride in reversed(loops):
        if left > stride > 0 and stride * iterations <= left:
            continue
        if 0 < stride < left and (stride * iterations) % left == 0:
            done.append((stride * iterations // left, left))
            continue
        done.append((iterations, stride))
    return done[::-1]


def starvation_notes(program: Program, schedule: Schedule, hw: Hardware = RNGD) -> tuple[str, ...]:
    """Where a main, a sub and a DMA operation run together and their runs on one bank could add up to the limit (SCHED-006, SCHED-007).

    The compiler keeps each command below the limit, not their sum; whether both hold the same bank is not known, so this is a warning.
    """
    runs = {i.id: i.bank_accesses for i in program.instructions() if i.bank_accesses > 1}
    if len(runs) < 2:
        return ()
    found = []
    held = {lane: [o for o in schedule.on(lane) if lane == DMA or o.id.partition("@")[0] in runs] for lane in (MAIN, SUB, DMA)}
    for main in held[MAIN]:
        for sub in held[SUB]:
            if sub.begin >= main.end:
                break
            total = runs[main.id.partition("@")[0]] + runs[sub.id.partition("@")[0]] + 1
            begin, end = max(main.begin, sub.begin), min(main.end, sub.end)
            beside = any(d.begin < end and begin < d.end for d in held[DMA])
            if begin < end and main.id != sub.id and beside and total > max_consecutive_accesses(hw):
                found.append(f"{main.id} and {sub.id} may hold one DM bank for {total} accesses in a row beside DMA")
    return tuple(found)

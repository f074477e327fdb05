"""Consecutive accesses to one DM bank: how long a fetch or commit holds one, and what that does beside a DMA (SCHED-005 to 011, DM-010)."""

from __future__ import annotations

from collections.abc import Sequence

from tcptune.model.hardware import RNGD, Hardware
from tcptune.model.pipeline import Chain


def bank_of(address: int, hw: Hardware = RNGD) -> int:
    """Bank of a byte address inside a slice (HW-009)."""
    return address // hw.dm_word_bytes % hw.dm_banks_per_slice


def run_of_loops(loops: Sequence[tuple[int, int]], hw: Hardware = RNGD) -> int:
    """Longest run of consecutive accesses to one bank of a loop nest.

    Args:
        loops: (iterations, stride in bytes), outermost first, one access an innermost iteration.

    A loop whose stride is a multiple of a whole row of banks (or 0) stays in its bank; an access loop that leaves the bank ends the run,
    unless the loops outside it start again in the same bank at once, which takes a bank row's worth of other accesses in between.
    """
    row = hw.dm_word_bytes * hw.dm_banks_per_slice
    run = 1
    for iterations, stride in reversed(loops):
        if iterations == 1:
            continue
        if stride % row:
            steps_in_bank = max(1, hw.dm_word_bytes // abs(stride)) if abs(stride) < hw.dm_word_bytes else 1
            return run * min(steps_in_bank, iterations)
        run *= iterations
    return run


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

"""Whether a schedule file can be that of a kernel: operations without counterpart, transfers of other bytes, passes of other lengths.

Operations are matched by name or, where the file has none of the kernel's names, by kind and duration; so any two kernels match somewhere.
What tells them apart are sizes that do not depend on how well the model fits: a transfer moves the same bytes whoever schedules it, and a
pass takes as long as its counts say (VT-001 to VT-012).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from collections.abc import Mapping as Dict
from dataclasses import dataclass
from typing import Any

from tcptune.exec.scheduling.impose import named, working_instructions, working_operations
from tcptune.ir.schedule import DMA, Instruction, Operation, Program, Repeat, Schedule
from tcptune.model.hardware import RNGD

_PASS_TOLERANCE = 0.15
"""A pass whose duration is off by more is no pass of the same counts; the model is within 7 % on every published one."""

_SHOWN = 3


@dataclass(frozen=True)
class Likeness:
    """What a schedule and a kernel have in common.

    Attributes:
        schedule_only, kernel_only: operations without counterpart, by kind.
        reasons: why they are of two different kernels; empty where they may be of one.
    """

    schedule_only: tuple[tuple[str, int], ...]
    kernel_only: tuple[tuple[str, int], ...]
    reasons: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """What the ``validation/1`` document says of it."""
        return {
            "alike": not self.reasons,
            "reasons": list(self.reasons),
            "schedule_only": dict(self.schedule_only),
            "kernel_only": dict(self.kernel_only),
        }

    def to_lines(self) -> tuple[str, ...]:
        """Lines for a person; none where every operation has its counterpart and its sizes."""
        found = [f"these are two different kernels: {'; '.join(self.reasons)}"] if self.reasons else []
        for where, left in (("schedule", self.schedule_only), ("kernel", self.kernel_only)):
            if left:
                found.append(f"in the {where} only: {', '.join(f'{count} {kind}' for kind, count in left)}")
        return tuple(found)


def likeness(schedule: Schedule, program: Program, matched: Dict[str, Operation]) -> Likeness:
    """Compares the operations of a schedule with the instructions of a kernel; `matched` has the operation of an instruction by its id."""
    ours = {i.id: i for i in working_instructions(program)}
    taken = set(matched.values())
    theirs = [o for o in working_operations(schedule) if named(o) not in matched or o in taken]  # a kept loop's first iteration
    left = [o for o in theirs if o not in taken]
    pairs = [(ours[name], operation) for name, operation in matched.items()]
    found = (_other_bytes(pairs), _other_passes(pairs), _other_number(program, len(ours), len(theirs), len(pairs)))
    return Likeness(
        _by_kind(o.kind for o in left),
        _by_kind(i.kind for name, i in ours.items() if name not in matched),
        tuple(reason for reason in found if reason),
    )


def _by_kind(kinds: Iterable[str]) -> tuple[tuple[str, int], ...]:
    return tuple(sorted(Counter(kinds).items()))


def _other_bytes(pairs: list[tuple[Instruction, Operation]]) -> str:
    """Why the transfers are others: at least half of those whose bytes the file reports move other bytes (VT-028)."""
    known = [(i, o) for i, o in pairs if DMA in i.contexts and i.moved_bytes and o.moved_bytes]
    unit = RNGD.reported_peak_bytes_per_cycle
    off = [(i, o) for i, o in known if not -unit < o.moved_bytes - i.moved_bytes <= unit]  # reported in units, rounded up
    if 2 * len(off) < max(len(known), 1):
        return ""
    shown = ", ".join(f"{i.id} about {o.moved_bytes:,} B in the schedule and {i.moved_bytes:,} B in the kernel" for i, o in off[:_SHOWN])
    return f"{len(off)} of {len(known)} transfers move other bytes ({shown})"


def _other_passes(pairs: list[tuple[Instruction, Operation]]) -> str:
    """Why the passes are others: at least half of them take another time."""
    passes = [(i, o) for i, o in pairs if i.kind in ("Main", "Sub")]
    off = [(i, o) for i, o in passes if abs(i.duration_cycles / o.duration_cycles - 1) > _PASS_TOLERANCE]
    if 2 * len(off) < max(len(passes), 1):
        return ""
    shown = ", ".join(f"{i.id} {o.duration_cycles:,} and {i.duration_cycles:,} cycles" for i, o in off[:_SHOWN])
    return f"{len(off)} of {len(passes)} passes take another time ({shown})"


def _other_number(program: Program, ours: int, theirs: int, common: int) -> str:
    """Why the operations are others: most of one side have no counterpart; a kept loop stands for any number of them."""
    if 2 * common >= max(ours, theirs) or any(isinstance(part, Repeat) for part in program.parts):
        return ""
    return f"the schedule has {theirs} operations, the kernel {ours}, and {common} of them correspond"

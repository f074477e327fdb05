"""Imposes the order of a schedule file on our own instructions (``--order FILE``).

Operations of the file are matched with instructions by the id in their description, by the name of the tensor they write, by the line of
the source that they name, and last by kind, bytes and duration; spill traffic is the compiler's own. The rank of an instruction is its
operation's place in begin order; operations that begin together share a rank.
"""

from __future__ import annotations

import re
from collections.abc import Mapping as Dict
from dataclasses import dataclass
from pathlib import PurePath

from tcptune.errors import InputError
from tcptune.ir.schedule import NOOP, Instruction, Operation, Program, Schedule
from tcptune.model.hardware import RNGD

_PLACE = re.compile(r"--> (.+?):(\d{1,9}):\d+")


@dataclass(frozen=True, slots=True)
class SourceLines:
    """The lines of a source file, both inclusive, on which the statement of a step stands."""

    path: str
    first: int
    last: int

    def hold(self, description: str) -> bool:
        """Whether the place in the description of an operation lies on them; of the path only the file's name counts."""
        place = _PLACE.match(description)
        return place is not None and PurePath(place[1]).name == PurePath(self.path).name and self.first <= int(place[2]) <= self.last


def _kind(kind: str) -> str:
    return kind if kind in ("Main", "Sub", "Core") else "Dma"


def working_instructions(program: Program) -> tuple[Instruction, ...]:
    """The instructions that a schedule file has too: transfers and passes, no bookkeeping and nothing of the core."""
    return tuple(i for i in program.instructions() if i.kind != "Core" and i.duration_cycles and i.contexts not in ((), (NOOP,)))


def working_operations(schedule: Schedule) -> tuple[Operation, ...]:
    """The operations of a file that instructions of a kernel can be; the compiler's spill traffic is none of them."""
    return tuple(o for o in schedule.operations if o.kind != "Core" and o.duration_cycles and not o.kind.startswith("Spilly"))


def named(operation: Operation) -> str:
    """The id that an operation has in its description, without the iteration of a kept loop; its own where it has none."""
    place = _PLACE.match(operation.description)
    return place.group(1).split("@")[0] if place else operation.id


def match(schedule: Schedule, program: Program, lines: Dict[str, SourceLines] | None = None) -> dict[str, Operation]:
    """Operation of the file for every instruction that has one, by instruction id.

    Args:
        lines: where the statement of a step stands in the source that the file was compiled from, by the name that the step binds.
    """
    waiting = {i.id: i for i in working_instructions(program)}
    found: dict[str, Operation] = {}
    left = []
    for operation in working_operations(schedule):
        name = named(operation)
        if name in waiting:
            found[name] = operation
            del waiting[name]
        elif name not in found:  # else another iteration of a kept loop
            left.append(operation)
    for fits in (_writes, lambda i, o: _may_be(i, o) and _stands(i, o, lines or {}), _may_be):
        later = []
        for operation in left:
            fitting = [i for i in waiting.values() if fits(i, operation)]
            if fitting:
                nearest = min(fitting, key=lambda i: _distance(i, operation))
                found[nearest.id] = operation
                del waiting[nearest.id]
            else:
                later.append(operation)
        left = later
    return found


def _writes(instruction: Instruction, operation: Operation) -> bool:
    """Whether both write a tensor of one name, by an operation of one kind."""
    same_kind = _kind(instruction.kind) == _kind(operation.kind)
    return same_kind and not {r.buffer for r in instruction.writes}.isdisjoint(operation.writes)


def _stands(instruction: Instruction, operation: Operation, lines: Dict[str, SourceLines]) -> bool:
    """Whether the place of an operation is that of the step; iterations of an unrolled loop (``name.3``) share theirs."""
    found = lines.get(instruction.step.split(".")[0])
    return found is not None and found.hold(operation.description)


def _may_be(instruction: Instruction, operation: Operation) -> bool:
    """Whether an operation without a known name can be an instruction: a load is no store, a type that no file has is any transfer."""
    named = operation.kind.startswith("Dma")
    return instruction.kind == operation.kind if named else _kind(instruction.kind) == _kind(operation.kind)


def _distance(instruction: Instruction, operation: Operation) -> tuple[bool, int]:
    """How unlike they are: other bytes first (the file reports them in units of the peak rate, rounded up), then durations."""
    known = instruction.moved_bytes and operation.moved_bytes
    other = bool(known) and abs(operation.moved_bytes - instruction.moved_bytes) > RNGD.reported_peak_bytes_per_cycle
    return other, abs(instruction.duration_cycles - operation.duration_cycles)


def ranks_of(begins: dict[str, int]) -> dict[str, int]:
    """Rank of every id by its begin; equal begins share a rank."""
    order = {begin: rank for rank, begin in enumerate(sorted(set(begins.values())))}
    return {name: order[begin] for name, begin in begins.items()}


def imposed_ranks(schedule: Schedule, program: Program, lines: Dict[str, SourceLines] | None = None) -> dict[str, int]:
    """Ranks that impose the order of `schedule` on `program`; `lines` as in `match`.

    Raises:
        InputError: nothing in the file corresponds to the kernel.
    """
    matched = match(schedule, program, lines)
    if not matched:
        raise InputError(
            "the schedule has no operation of this kernel", hint="operations are matched by id, by tensor name, by kind and duration"
        )
    return ranks_of({name: operation.begin for name, operation in matched.items()})

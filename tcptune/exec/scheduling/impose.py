"""Imposes the order of a schedule file on our own instructions (``--order FILE``).

Operations of the file are matched with instructions by the id in their description, by the name of the tensor they write, and last by
kind, bytes and duration; spill traffic is the compiler's own. The rank of an instruction is its operation's place in begin order;
operations that begin together share a rank.
"""

from __future__ import annotations

import re

from tcptune.errors import InputError
from tcptune.ir.schedule import NOOP, Instruction, Operation, Program, Schedule
from tcptune.model.hardware import RNGD

_PLACE = re.compile(r"--> (.+?):\d+:\d+")


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


def match(schedule: Schedule, program: Program) -> dict[str, Operation]:
    """Operation of the file for every instruction that has one, by instruction id."""
    waiting = {i.id: i for i in working_instructions(program)}
    operations = working_operations(schedule)
    found: dict[str, Operation] = {}

    def take(instruction: Instruction, operation: Operation) -> None:
        found[instruction.id] = operation
        del waiting[instruction.id]

    left = []
    for operation in operations:
        name = named(operation)
        if name in waiting:
            take(waiting[name], operation)
        elif name not in found:  # else another iteration of a kept loop
            left.append(operation)
    unnamed = []
    for operation in left:
        writes = set(operation.writes)
        same = [i for i in waiting.values() if _kind(i.kind) == _kind(operation.kind) and writes & {r.buffer for r in i.writes}]
        if same:
            take(same[0], operation)
        else:
            unnamed.append(operation)
    for operation in unnamed:
        alike = [i for i in waiting.values() if _may_be(i, operation)]
        if alike:
            take(min(alike, key=lambda i: _distance(i, operation)), operation)
    return found


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


def imposed_ranks(schedule: Schedule, program: Program) -> dict[str, int]:
    """Ranks that impose the order of `schedule` on `program`.

    Raises:
        InputError: nothing in the file corresponds to the kernel.
    """
    matched = match(schedule, program)
    if not matched:
        raise InputError(
            "the schedule has no operation of this kernel", hint="operations are matched by id, by tensor name, by kind and duration"
        )
    return ranks_of({name: operation.begin for name, operation in matched.items()})

"""Imposes the order of a schedule file on our own instructions (``--order FILE``).

Operations of the file are matched with instructions by the id in their description, by the name of the tensor they write, and last by
kind and duration. The rank of an instruction is its operation's place in begin order; operations that begin together share a rank.
"""

from __future__ import annotations

import re

from tcptune.errors import InputError
from tcptune.ir.schedule import Instruction, Operation, Program, Schedule

_PLACE = re.compile(r"--> (.+?):\d+:\d+")


def _kind(kind: str) -> str:
    return kind if kind in ("Main", "Sub", "Core") else "Dma"


def match(schedule: Schedule, program: Program) -> dict[str, Operation]:
    """Operation of the file for every instruction that has one, by instruction id."""
    waiting = {i.id: i for i in program.instructions() if i.contexts and i.kind != "Core"}
    operations = [o for o in schedule.operations if o.kind != "Core" and o.duration_cycles]
    found: dict[str, Operation] = {}

    def take(instruction: Instruction, operation: Operation) -> None:
        found[instruction.id] = operation
        del waiting[instruction.id]

    left = []
    for operation in operations:
        place = _PLACE.match(operation.description)
        name = place.group(1).split("@")[0] if place else operation.id
        if name in waiting:
            take(waiting[name], operation)
        else:
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
        alike = [i for i in waiting.values() if _kind(i.kind) == _kind(operation.kind)]
        if alike:
            take(min(alike, key=lambda i: abs(i.duration_cycles - operation.duration_cycles)), operation)
    return found


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

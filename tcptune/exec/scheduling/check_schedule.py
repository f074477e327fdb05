"""An independent check that a schedule is legal: brute force over all pairs, sharing no code with the scheduler or the planner.

It expands the program iteration by iteration in program order and looks at every pair of operations: order of the bytes they touch
(SCHED-014 to 016), overlap on a resource (SCHED-002, SCHED-017), explicit waits; and at every pair of live buffers: no shared byte, no
overflow (HW-003 to HW-005).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations, pairwise

from tcptune.errors import WorkError
from tcptune.ir.schedule import CORE, RESOURCES, Instruction, Lifetime, Operation, Program, Repeat, Schedule
from tcptune.model.hardware import RNGD, Hardware


def expand(parts: Sequence[Instruction | Repeat], mark: str = "") -> Iterator[tuple[str, str, Instruction]]:
    """(operation id, iteration mark, instruction) in program order, loops written out."""
    for part in parts:
        if isinstance(part, Repeat):
            for i in range(part.count):
                yield from expand(part.parts, f"@{i}{mark}")
        else:
            yield part.id + mark, mark, part


def _fail(message: str) -> None:
    raise WorkError(f"illegal schedule: {message}")


def _check_complete(program: Program, by_id: dict[str, Operation]) -> list[tuple[Instruction, str, Operation]]:
    run = []
    for name, mark, instruction in expand(program.parts):
        if name not in by_id:
            _fail(f"{name} is not scheduled")
        operation = by_id[name]
        if operation.duration_cycles != instruction.duration_cycles:
            _fail(f"{name} takes {operation.duration_cycles} cycles instead of {instruction.duration_cycles}")
        earliest = program.launch.core_begin if CORE in instruction.contexts else program.launch.first_begin
        if instruction.contexts and operation.begin < earliest:
            _fail(f"{name} begins at {operation.begin}, before the launch at {earliest}")
        run.append((instruction, mark, operation))
    return run


def _check_hazards(run: list[tuple[Instruction, str, Operation]], outer: set[str]) -> None:
    for (a, a_mark, first), (b, b_mark, second) in combinations(run, 2):
        for kind, mine, theirs in (("RAW", a.writes, b.reads), ("WAR", a.reads, b.writes), ("WAW", a.writes, b.writes)):
            for x in mine:
                for y in theirs:
                    same = x.buffer in outer or a_mark == b_mark
                    if same and x.overlaps(y) and second.begin < first.end:
                        _fail(f"{second.id} begins at {second.begin} before {first.id} ends at {first.end} ({kind} on {x.buffer})")


def _check_resources(operations: Sequence[Operation]) -> None:
    for resource in RESOURCES:
        held = sorted((o for o in operations if resource in o.contexts and o.end > o.begin), key=lambda o: o.begin)
        for a, b in pairwise(held):
            if b.begin < a.end:
                _fail(f"{a.id} and {b.id} both hold {resource} at {b.begin}")


def _check_waits(run: list[tuple[Instruction, str, Operation]]) -> None:
    latest: dict[str, Operation] = {}
    for instruction, _, operation in run:
        for lag in instruction.waits:
            if lag.after in latest:
                before = latest[lag.after]
                bound = (before.begin if lag.from_begin else before.end) + lag.cycles
                if operation.begin < bound:
                    _fail(f"{operation.id} begins at {operation.begin}, must wait until {bound} after {before.id} ({lag.why})")
        latest[instruction.id] = operation


def _check_memory(lives: Sequence[Lifetime], operations: Sequence[Operation], hw: Hardware) -> None:
    capacity = {"Sram": hw.dm_bytes_per_slice, "Trf": hw.trf_bytes_per_slice, "Vrf": hw.vrf_bytes_per_slice}
    for life in lives:
        if life.address + life.buffer.size_bytes > capacity.get(life.buffer.tier, 1 << 62):
            _fail(f"{life.buffer.name} ends beyond the {life.buffer.tier}")
    for a, b in combinations(lives, 2):
        apart = a.address + a.buffer.size_bytes <= b.address or b.address + b.buffer.size_bytes <= a.address
        if a.buffer.tier == b.buffer.tier and not apart and a.begin < b.end and b.begin < a.end:
            _fail(f"{a.buffer.name} and {b.buffer.name} share bytes of the {a.buffer.tier} from {max(a.begin, b.begin)}")
    by_name = {life.buffer.name: life for life in lives}
    for operation in operations:
        for name in (*operation.reads, *operation.writes):
            mark = operation.id.partition("@")[2]
            found = by_name.get(name) or by_name.get(f"{name}@{mark}")
            if found is not None and not (found.begin <= operation.begin and operation.end <= found.end):
                _fail(f"{operation.id} uses {name} outside its life {found.begin} to {found.end}")


def check_schedule(program: Program, schedule: Schedule, hw: Hardware = RNGD) -> None:
    """Passes if `schedule` is a legal schedule of `program`.

    Raises:
        WorkError: the first offence, with the operations and cycles.
    """
    by_id = {o.id: o for o in schedule.operations}
    if len(by_id) != len(schedule.operations):
        _fail("two operations have the same id")
    run = _check_complete(program, by_id)
    outer = {r.buffer for part in program.parts if isinstance(part, Instruction) for r in (*part.reads, *part.writes)}
    _check_hazards(run, outer)
    _check_resources(schedule.operations)
    _check_waits(run)
    _check_memory(schedule.lifetimes, schedule.operations, hw)
    last = max((o.end for _, _, o in run), default=0)
    closing = by_id.get("closing sync")
    if closing is not None and closing.begin < last:
        _fail(f"the closing sync begins at {closing.begin}, work ends at {last}")

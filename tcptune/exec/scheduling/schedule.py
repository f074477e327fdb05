"""List scheduling: gives every instruction a begin, unit by unit, under dependences, context order and shared resources.

An instruction begins at max(ends of its producers, resources free); operations touch without a gap (VT-042). A unit is the straight-line
code between loop boundaries: a kept loop is scheduled once and repeated with a barrier (TUNE-013, VT-046), an unrolled one is part of its
unit. Several priority rules are tried and the shortest schedule is kept (VT-043: the vendor's own order follows no single rule); a small
unit whose bound none of them meets is searched exactly (`exec.scheduling.active_schedules`).
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence
from collections.abc import Mapping as Dict
from dataclasses import dataclass

from tcptune.errors import InputError
from tcptune.exec.scheduling.active_schedules import shortest_begins
from tcptune.exec.scheduling.dependences import Edge, dependences
from tcptune.ir.schedule import CORE, DMA, SUB, Instruction, Operation, Program, Repeat, Schedule
from tcptune.model.timing.kernels import VENDOR_KERNEL

SMALL_UNIT = 12
"""Instructions up to which a unit that no rule schedules within its bound is searched exactly."""

ORDER = "order"
"""Why of an edge that only keeps an imposed order on a resource."""


@dataclass(frozen=True)
class _Unit:
    """A scheduling unit with its dependence graph."""

    instructions: tuple[Instruction, ...]
    edges: list[list[Edge]]
    tails: list[int]

    @classmethod
    def of(cls, instructions: Sequence[Instruction]) -> _Unit:
        edges = dependences(instructions)
        tails = [0] * len(instructions)
        for i in range(len(instructions) - 1, -1, -1):
            through = tails[i] + instructions[i].duration_cycles
            for edge in edges[i]:
                base = 0 if edge.from_begin else instructions[edge.before].duration_cycles
                reach = through + edge.lag_cycles - (instructions[edge.before].duration_cycles - base)
                tails[edge.before] = max(tails[edge.before], reach)
        return cls(tuple(instructions), edges, tails)


Priority = Callable[[_Unit, int], tuple[int, ...]]


def _critical_path(unit: _Unit, i: int) -> tuple[int, ...]:
    return (-(unit.tails[i] + unit.instructions[i].duration_cycles), i)


def _longest_tail(unit: _Unit, i: int) -> tuple[int, ...]:
    return (-unit.tails[i], unit.instructions[i].duration_cycles, i)


def _source_order(unit: _Unit, i: int) -> tuple[int, ...]:
    return (i,)


def _shortest_first(unit: _Unit, i: int) -> tuple[int, ...]:
    return (unit.instructions[i].duration_cycles, -unit.tails[i], i)


PRIORITIES: tuple[Priority, ...] = (_critical_path, _longest_tail, _source_order, _shortest_first)


@dataclass
class _Times:
    """Begin, end and cause of every instruction of a unit."""

    begins: list[int]
    ends: list[int]
    causes: list[tuple[str, str]]

    @classmethod
    def empty(cls, n: int) -> _Times:
        return cls([0] * n, [0] * n, [("start", "")] * n)

    @property
    def span_end(self) -> int:
        return max(self.ends, default=0)


@dataclass
class _Clock:
    """When each resource is free, who held it last, and the ends of earlier units' instructions."""

    free: dict[str, int]
    holder: dict[str, str]
    ended: dict[str, tuple[int, int]]

    def copy(self) -> _Clock:
        return _Clock(dict(self.free), dict(self.holder), dict(self.ended))


def _release(instruction: Instruction, clock: _Clock) -> tuple[int, tuple[str, str]]:
    """Earliest begin by waits on earlier units."""
    at, cause = 0, ("start", "")
    for lag in instruction.waits:
        if lag.after in clock.ended:
            begin, end = clock.ended[lag.after]
            bound = (begin if lag.from_begin else end) + lag.cycles
            if bound > at:
                at, cause = bound, ("wait", lag.after)
    return at, cause


def _ready(unit: _Unit, i: int, times: _Times, clock: _Clock) -> tuple[int, tuple[str, str]]:
    """Earliest begin of `i` by its dependences, all of which are placed."""
    at, cause = _release(unit.instructions[i], clock)
    for edge in unit.edges[i]:
        bound = (times.begins[edge.before] if edge.from_begin else times.ends[edge.before]) + edge.lag_cycles
        if bound > at:
            kind = "resource" if edge.why == ORDER else "wait" if edge.lag_cycles else "data"
            at, cause = bound, (kind, unit.instructions[edge.before].id)
    return at, cause


def _place(unit: _Unit, i: int, at: int, cause: tuple[str, str], times: _Times, clock: _Clock) -> None:
    """Books `i` at the later of `at` and its resources' free times."""
    instruction = unit.instructions[i]
    for context in instruction.contexts:
        if clock.free.get(context, 0) > at:
            at, cause = clock.free[context], _held_by(instruction, clock)
    end = at + instruction.duration_cycles
    times.begins[i], times.ends[i], times.causes[i] = at, end, cause
    for context in instruction.contexts:
        clock.free[context] = end
        clock.holder[context] = instruction.id


def _held_by(instruction: Instruction, clock: _Clock) -> tuple[str, str]:
    """The resource that becomes free last, as cause of a wait; the launch, if nothing held it yet."""
    last = max(instruction.contexts, key=lambda c: clock.free.get(c, 0), default="")
    return ("resource", clock.holder[last]) if last in clock.holder else ("start", "")


def _list_schedule(unit: _Unit, clock: _Clock, priority: Priority) -> _Times:
    """Event-driven greedy: whenever resources are free, the ready instruction of the best priority takes them."""
    n = len(unit.instructions)
    times = _Times.empty(n)
    waiting = [len(e) for e in unit.edges]
    users: list[list[int]] = [[] for _ in range(n)]
    for i, edges in enumerate(unit.edges):
        for edge in edges:
            users[edge.before].append(i)
    ready_at: list[tuple[int, int]] = []  # heap of (cycle, instruction) not yet released
    causes: list[tuple[str, str]] = [("start", "")] * n
    queues: dict[tuple[str, ...], list[tuple[tuple[int, ...], int, int]]] = {}
    events = sorted(set(clock.free.values()))
    heapq.heapify(events)

    def release(i: int) -> None:
        at, causes[i] = _ready(unit, i, times, clock)
        heapq.heappush(ready_at, (at, i))

    for i in range(n):
        if not waiting[i]:
            release(i)
    left, now = n, 0
    while left:
        while ready_at and ready_at[0][0] <= now:
            at, i = heapq.heappop(ready_at)
            heapq.heappush(queues.setdefault(unit.instructions[i].contexts, []), (priority(unit, i), i, at))
        open_queues = [q for contexts, q in queues.items() if q and all(clock.free.get(c, 0) <= now for c in contexts)]
        if open_queues:
            _, i, at = heapq.heappop(min(open_queues))
            _place(unit, i, now, causes[i] if at == now else _held_by(unit.instructions[i], clock), times, clock)
            heapq.heappush(events, times.ends[i])
            left -= 1
            for user in users[i]:
                waiting[user] -= 1
                if not waiting[user]:
                    release(user)
            continue
        pending = [ready_at[0][0]] if ready_at else []
        while events and events[0] <= now:
            heapq.heappop(events)
        if events:
            pending.append(events[0])
        now = min(pending)
    return times


def _least_end(unit: _Unit, clock: _Clock) -> int:
    """A cycle before which no schedule of the unit ends: its longest chain, and the work of its busiest resource."""
    work: dict[str, int] = {}
    longest = 0
    for i, instruction in enumerate(unit.instructions):
        earliest = max((clock.free.get(c, 0) for c in instruction.contexts), default=0)
        longest = max(longest, earliest + instruction.duration_cycles + unit.tails[i])
        for context in instruction.contexts:
            work[context] = work.get(context, clock.free.get(context, 0)) + instruction.duration_cycles
    return max([longest, *work.values()])


def _exact_schedule(unit: _Unit, clock: _Clock) -> _Times:
    """The shortest schedule of a small unit; books the resources of `clock`."""
    releases = [_release(instruction, clock)[0] for instruction in unit.instructions]
    begins = shortest_begins(unit.instructions, unit.edges, clock.free, releases)
    times = _Times.empty(len(begins))
    for i in sorted(range(len(begins)), key=lambda i: (begins[i], i)):
        _place(unit, i, *_ready(unit, i, times, clock), times, clock)
    return times


def _schedule_unit(instructions: Sequence[Instruction], clock: _Clock, priorities: Sequence[Priority]) -> tuple[_Times, _Clock]:
    unit = _Unit.of(instructions)
    bound = _least_end(unit, clock)
    best: tuple[_Times, _Clock] | None = None
    for priority in priorities:
        trial = clock.copy()
        times = _list_schedule(unit, trial, priority)
        if best is None or times.span_end < best[0].span_end:
            best = (times, trial)
        if best[0].span_end <= bound:
            break
    if best is None:
        raise InputError("no priority rule to schedule with")
    if best[0].span_end > bound and len(instructions) <= SMALL_UNIT:
        trial = clock.copy()
        times = _exact_schedule(unit, trial)
        if times.span_end < best[0].span_end:
            best = (times, trial)
    return best


def _topological(unit: _Unit, ranks: Dict[str, int]) -> list[int]:
    """Instructions by rank as far as dependences allow; those without a rank as early as possible."""
    users: list[list[int]] = [[] for _ in unit.instructions]
    waiting = [len(e) for e in unit.edges]
    ready: list[tuple[int, int]] = []

    def release(i: int) -> None:
        heapq.heappush(ready, (ranks.get(unit.instructions[i].id, -1), i))

    for i, edges in enumerate(unit.edges):
        for edge in edges:
            users[edge.before].append(i)
        if not edges:
            release(i)
    order = []
    while ready:
        _, i = heapq.heappop(ready)
        order.append(i)
        for user in users[i]:
            waiting[user] -= 1
            if not waiting[user]:
                release(user)
    return order


def _imposed_unit(instructions: Sequence[Instruction], clock: _Clock, ranks: Dict[str, int]) -> tuple[_Times, _Clock]:
    """Ranked instructions take each resource in the order of their ranks; equal ranks were issued together; the others fill in greedily."""
    unit = _Unit.of(instructions)
    last: dict[str, int] = {}
    last_sub: int | None = None
    delay = int(VENDOR_KERNEL.dma_beside_sub.value)  # orders that are imposed come from the vendor's schedules
    for i in _topological(unit, ranks):
        instruction = unit.instructions[i]
        if instruction.id not in ranks:
            continue
        for context in instruction.contexts:
            if context in last:
                unit.edges[i].append(Edge(last[context], ORDER))
            last[context] = i
        beside = last_sub is not None and ranks[unit.instructions[last_sub].id] < ranks[instruction.id]
        if DMA in instruction.contexts and last_sub is not None and beside:
            unit.edges[i].append(Edge(last_sub, "issued beside a Sub operation", delay, from_begin=True))
        if instruction.contexts[:1] == (SUB,):
            last_sub = i
    return _list_schedule(unit, clock, _critical_path), clock


class _Builder:
    """Walks a program's parts and collects operations."""

    def __init__(self, priorities: Sequence[Priority], ranks: Dict[str, int] | None) -> None:
        self.priorities = priorities
        self.ranks = ranks
        self.operations: list[Operation] = []

    def run(self, parts: Sequence[Instruction | Repeat], clock: _Clock, suffix: str = "") -> int:
        """Schedules `parts` from the clock's state; returns the cycle where all has ended."""
        end = 0
        straight: list[Instruction] = []
        for part in (*parts, None):
            if isinstance(part, Instruction):
                straight.append(part)
                continue
            if straight:
                end = max(end, self._straight(straight, clock, suffix))
                straight = []
            if isinstance(part, Repeat):
                end = self._repeat(part, clock, max([end, *clock.free.values()]), suffix)
        return end

    def _straight(self, instructions: list[Instruction], clock: _Clock, suffix: str) -> int:
        if self.ranks is None:
            times, after = _schedule_unit(instructions, clock, self.priorities)
        else:
            times, after = _imposed_unit(instructions, clock, self.ranks)
        clock.free, clock.holder = after.free, after.holder
        for instruction, begin, end, (cause, blocker) in zip(instructions, times.begins, times.ends, times.causes, strict=True):
            clock.ended[instruction.id] = (begin, end)
            blocker = blocker + suffix if blocker else blocker
            self.operations.append(_operation(instruction, instruction.id + suffix, begin, end, cause, blocker))
        return times.span_end

    def _repeat(self, loop: Repeat, clock: _Clock, begin: int, suffix: str) -> int:
        """A kept loop: body scheduled once from a barrier, then repeated."""
        body_clock = _Clock(dict.fromkeys(clock.free, begin), dict(clock.holder), dict(clock.ended))
        body = _Builder(self.priorities, self.ranks)
        body_end = body.run(loop.parts, body_clock)
        period = body_end - begin + loop.overhead_cycles
        for iteration in range(loop.count):
            shift = iteration * period
            mark = f"@{iteration}{suffix}"
            for o in body.operations:
                blocker = o.blocker + mark if o.blocker else ""
                self.operations.append(
                    Operation(
                        o.id + mark, o.kind, o.contexts, o.begin + shift, o.end + shift, o.description, o.reads, o.writes,
                        o.moved_bytes, o.cause, blocker,
                    )
                )  # fmt: skip
        end = begin + loop.count * period
        for context in clock.free:
            clock.free[context] = end
        last = (loop.count - 1) * period
        clock.ended.update({k: (b + last, e + last) for k, (b, e) in body_clock.ended.items() if k not in clock.ended})
        return end


def _operation(instruction: Instruction, name: str, begin: int, end: int, cause: str, blocker: str) -> Operation:
    return Operation(
        name,
        instruction.kind,
        instruction.contexts,
        begin,
        end,
        instruction.description,
        tuple(dict.fromkeys(r.buffer for r in instruction.reads)),
        tuple(dict.fromkeys(r.buffer for r in instruction.writes)),
        instruction.moved_bytes,
        cause,
        blocker,
    )


def schedule_program(
    program: Program, *, ranks: Dict[str, int] | None = None, priorities: Sequence[Priority] = PRIORITIES, closing: bool = True
) -> Schedule:
    """A legal schedule of `program` (memory lifetimes are added by `exec.scheduling.allocate`).

    Args:
        ranks: instruction id to issue rank; imposes that order (equal ranks were issued together; unnamed instructions go last).
        priorities: rules to try; the shortest result wins.
        closing: append the closing sync (VT-040).
    """
    contexts = {c for i in program.instructions() for c in i.contexts}
    launch = program.launch
    clock = _Clock({c: launch.core_begin if c == CORE else launch.first_begin for c in sorted(contexts)}, {}, {})
    builder = _Builder(priorities, ranks)
    end = builder.run(program.parts, clock)
    operations = builder.operations
    if closing:
        last = max(operations, key=lambda o: o.end, default=None)
        end = max(end, launch.core_begin)
        blocker = last.id if last else ""
        operations.append(
            Operation("result node", "Core", (CORE,), end, end, "names the stored tensor as the result", cause="data", blocker=blocker)
        )
        operations.append(
            Operation("closing sync", "Core", (CORE,), end, end + launch.sync_cycles, "closing sync", cause="data", blocker=blocker)
        )
    return Schedule(tuple(sorted(operations, key=lambda o: (o.begin, o.end))))

"""Where the cycles of a schedule go: busy and exclusive time, idle gaps with their reasons, the critical path, the memory plan.

Works on any `Schedule`, our own or one read from a file; where a schedule does not say what an operation waited for, that is inferred from
who ends when it begins. All numbers are cycles of the static schedule.
"""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass, replace
from typing import Any

from tcptune.ir.schedule import RESOURCES, Lifetime, Operation, Schedule

SCHEMA = "tcptune/schedule-analysis/1"
_UNNAMED = re.compile(r"T\d+\Z")
_PLACE = re.compile(r"--> (.+?):\d+:\d+")
_INSERTED = "ExplicitSync"
"""Ids of syncs that the vendor's compiler inserts begin so; the number behind it is the operation before."""
_SOURCE_CHARACTERS = 60
_REASONS = {
    "data": "data of {blocker}",
    "resource": "{resource} is held by {blocker}",
    "wait": "explicit wait on {blocker}",
    "start": "launch offset",
    "": "unknown",
}


@dataclass(frozen=True, slots=True)
class Gap:
    """An interval in which a resource is idle between two of its operations, before its first or after its last.

    Attributes:
        before: id of the operation that ends the gap, empty at the end of the schedule.
        reason: what that operation waited for.
    """

    resource: str
    begin: int
    end: int
    before: str
    reason: str

    @property
    def cycles(self) -> int:
        return self.end - self.begin


@dataclass(frozen=True, slots=True)
class Share:
    """Time of one resource.

    Attributes:
        busy: cycles it is held.
        exclusive: cycles in which every running operation holds it, so that nothing hides behind it.
    """

    resource: str
    operations: int
    busy: int
    exclusive: int


@dataclass(frozen=True)
class Analysis:
    """What a report shows about a schedule.

    Attributes:
        idle: cycles in which nothing runs.
        critical: operations from the start to the makespan, each beginning when the one before lets it.
        slack: per operation, cycles it could end later without delaying the one that waits for it first.
    """

    schedule: Schedule
    shares: tuple[Share, ...]
    idle: int
    gaps: tuple[Gap, ...]
    critical: tuple[Operation, ...]
    slack: dict[str, int]

    @property
    def makespan(self) -> int:
        return self.schedule.makespan

    def to_json(self) -> dict[str, Any]:
        """The ``schedule-analysis/1`` document."""
        return {
            "schema": SCHEMA,
            "makespan": self.makespan,
            "operations": [
                _operation_json(o, called.id, self.slack.get(o.id))
                for o, called in zip(self.schedule.operations, named(self.schedule).operations, strict=True)
            ],
            "busy": {s.resource: s.busy for s in self.shares},
            "exclusive": {s.resource: s.exclusive for s in self.shares},
            "idle": self.idle,
            "gaps": [asdict(gap) for gap in self.gaps],
            "critical": [o.id for o in self.critical],
            "memory": [_lifetime_json(life) for life in self.schedule.lifetimes],
        }


def _operation_json(operation: Operation, name: str, slack: int | None) -> dict[str, Any]:
    return {
        "id": operation.id,
        "name": name,
        "kind": operation.kind,
        "contexts": list(operation.contexts),
        "begin": operation.begin,
        "end": operation.end,
        "reads": list(operation.reads),
        "writes": list(operation.writes),
        "moved_bytes": operation.moved_bytes,
        "source": source_line(operation),
        "cause": operation.cause,
        "blocker": operation.blocker,
        "slack": slack,
    }


def _lifetime_json(life: Lifetime) -> dict[str, Any]:
    return {
        "name": life.buffer.name,
        "tier": life.buffer.tier,
        "address": life.address,
        "size": life.buffer.size_bytes,
        "begin": life.begin,
        "end": life.end,
    }


def named(schedule: Schedule) -> Schedule:
    """Operations called by what they write instead of by their number in a file, so that those of two schedules align."""
    taken: dict[str, int] = {}
    names: list[str] = []
    for operation in schedule.operations:
        name = _name(operation)
        taken[name] = taken.get(name, 0) + 1
        names.append(name if taken[name] == 1 else f"{name} ({taken[name]})")
    new = dict(zip((o.id for o in schedule.operations), names, strict=True))
    pairs = zip(schedule.operations, names, strict=True)
    return replace(schedule, operations=tuple(replace(o, id=name, blocker=new.get(o.blocker, "")) for o, name in pairs))


def _name(operation: Operation) -> str:
    """The id, if it is a name; else what it writes or, where that has no name (HBM in the vendor's files), its kind and what it reads."""
    place = _PLACE.match(operation.description)
    if operation.id.startswith(_INSERTED):
        return place.group(1) if place else _INSERTED
    if not operation.id.isdigit():
        return operation.id
    written, read = (next((n for n in names if not _UNNAMED.match(n)), "") for names in (operation.writes, operation.reads))
    return written or (f"{operation.kind} of {read}" if read else operation.kind)


def source_line(operation: Operation) -> str:
    """The source text of an operation in one short line: its place, where the schedule has one, and the beginning of the text."""
    place, _, text = operation.description.partition("\n")
    if place.startswith("--> "):
        return f"{place.removeprefix('--> ')} {' '.join(text.split())[:_SOURCE_CHARACTERS]}".strip()
    return " ".join(operation.description.split())[:_SOURCE_CHARACTERS]


def analyse(schedule: Schedule) -> Analysis:
    """Analyses a schedule; near linear in its operations."""
    ordered = sorted((o for o in schedule.operations if o.duration_cycles), key=lambda o: (o.begin, o.end))
    exclusive, idle = _sweep(ordered, schedule.makespan)
    shares = tuple(_share(schedule, resource, exclusive) for resource in RESOURCES if schedule.on(resource))
    by_id = {o.id: o for o in schedule.operations}
    causes = _causes(ordered, by_id)
    gaps = tuple(gap for share in shares for gap in _gaps(schedule, share.resource, causes))
    return Analysis(schedule, shares, idle, gaps, _critical(ordered, by_id), _slack(ordered, by_id, schedule.makespan))


def _share(schedule: Schedule, resource: str, exclusive: dict[str, int]) -> Share:
    operations = schedule.on(resource)
    return Share(resource, len(operations), sum(o.duration_cycles for o in operations), exclusive.get(resource, 0))


def _sweep(operations: list[Operation], makespan: int) -> tuple[dict[str, int], int]:
    """Cycles in which all running operations share a resource, per resource, and cycles in which none runs."""
    events = sorted([(o.begin, 1, o) for o in operations] + [(o.end, -1, o) for o in operations], key=lambda e: (e[0], e[1]))
    running = 0
    held: dict[str, int] = dict.fromkeys(RESOURCES, 0)
    exclusive: dict[str, int] = {}
    covered = last = 0
    for at, change, operation in events:
        if running and at > last:
            covered += at - last
            for resource, count in held.items():
                if count == running:
                    exclusive[resource] = exclusive.get(resource, 0) + at - last
        running += change
        for resource in operation.contexts:
            if resource in held:
                held[resource] += change
        last = at
    return exclusive, makespan - covered


def _causes(ordered: list[Operation], by_id: dict[str, Operation]) -> dict[str, Operation]:
    """The operations that do not say what they waited for, with the cause inferred from who ends as they begin."""
    ends: dict[int, list[Operation]] = {}
    for operation in ordered:
        ends.setdefault(operation.end, []).append(operation)
    inferred: dict[str, Operation] = {}
    for operation in by_id.values():
        if operation.cause:
            continue
        found = _predecessor(operation, by_id, ends)
        if found is not None:
            held = set(found.contexts) & set(operation.contexts) and not set(found.writes) & set(operation.reads)
            inferred[operation.id] = replace(operation, cause="resource" if held else "data", blocker=found.id)
        elif ordered and operation.begin <= ordered[0].begin:
            inferred[operation.id] = replace(operation, cause="start")
    return inferred


def _gaps(schedule: Schedule, resource: str, causes: dict[str, Operation]) -> list[Gap]:
    """Idle intervals of one resource with what ends them."""
    gaps: list[Gap] = []
    free = 0
    for operation in schedule.on(resource):
        if operation.begin > free:
            gaps.append(Gap(resource, free, operation.begin, operation.id, _reason(causes.get(operation.id, operation), resource)))
        free = max(free, operation.end)
    if free < schedule.makespan:
        gaps.append(Gap(resource, free, schedule.makespan, "", "nothing left to do"))
    return gaps


def _reason(operation: Operation, resource: str) -> str:
    template = _REASONS.get(operation.cause, operation.cause)
    if operation.cause and operation.cause != "start" and not operation.blocker:
        template = operation.cause
    return template.format(blocker=operation.blocker, resource=resource)


def _critical(ordered: list[Operation], by_id: dict[str, Operation]) -> tuple[Operation, ...]:
    """The chain of operations that makes the makespan, first one first."""
    if not ordered:
        return ()
    ends: dict[int, list[Operation]] = {}
    for operation in ordered:
        ends.setdefault(operation.end, []).append(operation)
    at: Operation | None = max(ordered, key=lambda o: (o.end, o.begin))
    path: list[Operation] = []
    while at is not None and at not in path[-1:]:
        path.append(at)
        at = _predecessor(at, by_id, ends)
    return tuple(reversed(path))


def _predecessor(operation: Operation, by_id: dict[str, Operation], ends: dict[int, list[Operation]]) -> Operation | None:
    """What an operation waited for: its blocker, else one that ends as it begins."""
    blocker = by_id.get(operation.blocker)
    if blocker is not None and blocker.begin < operation.begin:
        return blocker
    touching = [o for o in ends.get(operation.begin, []) if o is not operation and o.begin < operation.begin]
    shared = [o for o in touching if set(o.writes) & set(operation.reads)]
    found = shared or touching
    return found[0] if found else None


def _slack(ordered: list[Operation], by_id: dict[str, Operation], makespan: int) -> dict[str, int]:
    """Cycles between the end of an operation and the first begin of one that reads its result, follows on its resource or waited for it."""
    next_use: dict[str, int] = {}
    reader: dict[str, int] = {}
    waiting: dict[str, int] = {}
    slack: dict[str, int] = {}
    for operation in sorted(ordered, key=lambda o: -o.begin):
        bounds = [next_use[r] for r in operation.contexts if r in next_use]
        bounds += [reader[b] for b in operation.writes if b in reader]
        bounds += [waiting[operation.id]] if operation.id in waiting else []
        slack[operation.id] = max(0, min(bounds, default=makespan) - operation.end)
        for resource in operation.contexts:
            next_use[resource] = operation.begin
        for buffer in operation.reads:
            reader[buffer] = operation.begin
        waiting[operation.blocker] = operation.begin
    return slack

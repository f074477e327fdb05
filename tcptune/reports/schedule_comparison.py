"""Schedules side by side: makespan, resources, memory and operations aligned by the tensor they write; whether two are the same at all.

Cycles of the static schedule; memory in bytes a slice.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from collections.abc import Mapping as Dict
from dataclasses import dataclass
from typing import Any

from tcptune.ir.schedule import Lifetime, Operation, Schedule
from tcptune.reports.alignment import aligned
from tcptune.reports.schedule_analysis import Analysis, analyse, named
from tcptune.reports.tables import Column, Row, text_table

SCHEMA = "tcptune/schedule-comparison/1"
_DIGITS = 12


def schedule_hash(schedule: Schedule) -> str:
    """Digest of what runs when and on which contexts; equal digits, equal schedules. Names, source texts and addresses do not count."""
    what = sorted((o.begin, o.end, o.kind, *sorted(o.contexts)) for o in schedule.operations if o.duration_cycles)
    return hashlib.sha256(repr(what).encode()).hexdigest()[:_DIGITS]


def peak_bytes(lifetimes: tuple[Lifetime, ...]) -> dict[str, int]:
    """Most bytes a slice that are alive at once, by tier."""
    peaks: dict[str, int] = {}
    for tier in dict.fromkeys(life.buffer.tier for life in lifetimes):
        lives = [life for life in lifetimes if life.buffer.tier == tier]
        events = sorted([(x.begin, x.buffer.size_bytes) for x in lives] + [(x.end, -x.buffer.size_bytes) for x in lives])
        alive = peak = 0
        for _, change in events:  # at equal times what ends comes first
            alive += change
            peak = max(peak, alive)
        peaks[tier] = peak
    return peaks


@dataclass(frozen=True)
class Comparison:
    """Analyses by the name of their schedule, the first one is what the others are compared with."""

    analyses: Dict[str, Analysis]

    @classmethod
    def of(cls, schedules: Dict[str, Schedule]) -> Comparison:
        """Operations are called by what they write, and as in the first schedule where they are the same under another name."""
        called = {name: named(schedule) for name, schedule in schedules.items()}
        first = next(iter(called.values()), Schedule(()))
        return cls({name: analyse(schedule if schedule is first else aligned(first, schedule)) for name, schedule in called.items()})

    def hashes(self) -> dict[str, str]:
        """`schedule_hash` of every schedule."""
        return {name: schedule_hash(analysis.schedule) for name, analysis in self.analyses.items()}

    def totals(self) -> list[Row]:
        """Rows: makespan, cycles in which nothing runs, busy and exclusive cycles of each context, peaks of each memory."""
        rows = [self._row("makespan (cycles)", lambda a: a.makespan), self._row("nothing runs (cycles)", lambda a: a.idle)]
        for resource in dict.fromkeys(share.resource for a in self.analyses.values() for share in a.shares):
            shares = {name: next((s for s in a.shares if s.resource == resource), None) for name, a in self.analyses.items()}
            rows.append({"row": f"{resource} busy (cycles)", **{n: s.busy if s else 0 for n, s in shares.items()}})
            rows.append({"row": f"{resource} exclusive (cycles)", **{n: s.exclusive if s else 0 for n, s in shares.items()}})
        peaks = {name: peak_bytes(a.schedule.lifetimes) for name, a in self.analyses.items()}
        for tier in dict.fromkeys(tier for peak in peaks.values() for tier in peak):
            rows.append({"row": f"{tier} peak (bytes a slice)", **{name: peak.get(tier, 0) for name, peak in peaks.items()}})
        rows.append(self._row("moved by DMA (bytes)", lambda a: sum(o.moved_bytes for o in a.schedule.operations)))
        return rows

    def _row(self, title: str, value: Callable[[Analysis], int]) -> Row:
        return {"row": title, **{name: value(analysis) for name, analysis in self.analyses.items()}}

    def operations(self) -> list[Row]:
        """A row an operation: its cycles in every schedule that has it, in the order of the first schedule that has it."""
        found = {name: {o.id: o for o in a.schedule.operations if o.duration_cycles} for name, a in self.analyses.items()}
        rows: list[Row] = []
        for name in dict.fromkeys(name for operations in found.values() for name in operations):
            rows.append({"row": name, **{schedule: _cycles(operations.get(name)) for schedule, operations in found.items()}})
        return rows

    def to_json(self) -> dict[str, Any]:
        """The ``schedule-comparison/1`` document."""
        return {
            "schema": SCHEMA,
            "schedules": {name: {"hash": digest, "makespan": self.analyses[name].makespan} for name, digest in self.hashes().items()},
            "totals": [_with_values(row) for row in self.totals()],
            "operations": [_with_values(row) for row in self.operations()],
            "critical": {name: [o.id for o in analysis.critical] for name, analysis in self.analyses.items()},
        }

    def to_text(self) -> str:
        """Tables for a terminal; with two schedules a last column has the change from the first."""
        names = list(self.analyses)
        parts = [self._table("total", self.totals(), names), self._table("operation (cycles)", self.operations(), names)]
        paths = [f"critical path of {name}: {' → '.join(o.id for o in a.critical)}" for name, a in self.analyses.items()]
        return "\n".join([*parts, *paths, *self._equal()]) + "\n"

    def _equal(self) -> list[str]:
        """Which schedules are the same, in words."""
        by_hash: dict[str, list[str]] = {}
        for name, digest in self.hashes().items():
            by_hash.setdefault(digest, []).append(name)
        return [f"the same schedule: {', '.join(same)}" for same in by_hash.values() if len(same) > 1]

    def _table(self, title: str, rows: list[Row], names: list[str]) -> str:
        shown = [Column("row", title), *(Column(name, name, numeric=True) for name in names)]
        if len(names) != 2:
            return text_table(rows, shown)
        changes = [{**row, "change": _change(row[names[0]], row[names[1]])} for row in rows]
        return text_table(changes, [*shown, Column("change", "change", numeric=True)])


def _cycles(operation: Operation | None) -> int | None:
    return None if operation is None else operation.duration_cycles


def _change(first: int | None, second: int | None) -> str:
    if first is None or second is None:
        return "only here" if second is not None else "gone"
    return "" if first == second else f"{second - first:+,}"


def _with_values(row: Row) -> dict[str, Any]:
    return {"what": row["row"], "values": {key: value for key, value in row.items() if key != "row"}}

"""The declared space of one search: every placement of every family with its bound, cheapest bound first."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import floor

import numpy as np
import numpy.typing as npt

from tcptune.errors import WorkError
from tcptune.ir.candidate import Candidate, Knobs, Tiles
from tcptune.ir.placement import Placement
from tcptune.ir.workload import Workload
from tcptune.model.hardware import RNGD
from tcptune.model.timing.calibration import profile as profile_named
from tcptune.search.deadline import Deadline
from tcptune.search.knobs import Floor, Priced, ranked_knobs, slice_orders
from tcptune.solver.bounds import Bounds, placement_bound, table_bounds, transfers_of
from tcptune.solver.placement import PlacementModel, Solved
from tcptune.solver.pricing import FixedCosts
from tcptune.solver.tables import Family, PlacementTable, families, placement_table

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Space:
    """All placements of a workload. Entries are numbered by bound, then by family and row, so the order is the same in every run.

    Building the tables may end at the deadline with `TimeIsUp`.
    """

    workload: Workload
    profile: str = "vendor"
    deadline: Deadline = field(default=Deadline(), compare=False)

    @cached_property
    def fixed(self) -> FixedCosts:
        return FixedCosts.of(self.profile)

    @cached_property
    def tables(self) -> tuple[PlacementTable, ...]:
        """Tables with rows.

        Raises:
            WorkError: nothing fits one pass, and the message names the memory that is too small; or no placement was found.
        """
        tables = tuple(t for t in self._built if t.rows)
        if not tables and not self.complete:
            raise WorkError(f"no placement of {self.workload.text} in one pass was found within the limits of the solver")
        if not tables:
            raise WorkError(f"{self.workload.text} is too large for one pass", hint=_what_is_too_small(self.workload))
        return tables

    @cached_property
    def _built(self) -> tuple[PlacementTable, ...]:
        """The tables of all families; a truncated one that lost all its rows has the placement that CP-SAT finds, if there is one."""
        self.require_room()
        built = []
        for family in families(self.workload):
            self.deadline.check()
            table = placement_table(family)
            if not table.rows and not table.complete:
                solved = self._unlisted(table)
                table = replace(table, complete=True) if solved is None else table.with_one(solved.placement)
            built.append(table)
        return tuple(built)

    def _unlisted(self, table: PlacementTable) -> Solved | None:
        """CP-SAT's bound of a family, for what its truncated table left out; None if the family has no placement."""
        return PlacementModel(table.family).best_bound(self.fixed, profile_named(self.profile).dma)

    def require_room(self) -> None:
        """Raises:
        WorkError: an operand or the result is larger than the data memory (below that, integers of tables stay within 64 bits).
        """
        largest = max(self.workload.bytes_of(axes, element) for axes, element in self.workload.tensors())
        if largest > RNGD.dm_bytes_per_chip:
            raise WorkError(f"{self.workload.text} is too large for one pass", hint=_what_is_too_small(self.workload))

    @cached_property
    def bounds(self) -> tuple[Bounds, ...]:
        timing = profile_named(self.profile).dma
        found = []
        for table in self.tables:
            self.deadline.check()
            found.append(table_bounds(table, self.fixed, timing))
        return tuple(found)

    def prepare(self) -> None:
        """Builds tables and bounds.

        Raises:
            TimeIsUp: the deadline is over. WorkError: nothing fits one pass.
        """
        self.bounds  # noqa: B018 - computed once and kept

    @cached_property
    def _order(self) -> tuple[Ints, Ints, Ints]:
        """(bound, table, row) of every entry, in order."""
        total = np.concatenate([b.total for b in self.bounds])
        table = np.concatenate([np.full(t.rows, n) for n, t in enumerate(self.tables)])
        row = np.concatenate([np.arange(t.rows) for t in self.tables])
        order = np.argsort(total, kind="stable")
        return total[order], table[order], row[order]

    @property
    def entries(self) -> int:
        return len(self._order[0])

    def bound(self, entry: int) -> int:
        """Lower bound of every plan of one placement, in cycles."""
        return int(self._order[0][entry])

    def own_bound(self, candidate: Candidate) -> int:
        """Lower bound of every plan with the placement of a candidate and the family of its knobs, in cycles."""
        family = Family(self.workload, candidate.knobs.stationary, candidate.knobs.relayout)
        return placement_bound(family, candidate.placement, self.fixed, profile_named(self.profile).dma)

    @cached_property
    def lower_bound(self) -> int:
        """Lower bound of every plan of the space; CP-SAT bounds what a truncated table left out."""
        solved = [self._unlisted(t) for t in self._built if not t.complete]
        return min([self.bound(0), *(s.bound for s in solved if s is not None)])

    @property
    def complete(self) -> bool:
        """Whether every placement has its entry."""
        return all(t.complete for t in self._built)

    def below(self, makespan: int) -> int:
        """How many entries have a bound below `makespan`; they are the first ones."""
        return int(np.searchsorted(self._order[0], makespan, side="left"))

    def placement(self, entry: int) -> Placement:
        table: PlacementTable = self.tables[self._order[1][entry]]
        return table.placement(int(self._order[2][entry]))

    def start_knobs(self, entry: int) -> Knobs:
        """The knobs that the entry's family fixes."""
        family = self.tables[self._order[1][entry]].family
        return Knobs(stationary=family.stationary, relayout=family.relayout)

    def floor(self, entry: int) -> Floor:
        bounds, row = self.bounds[self._order[1][entry]], int(self._order[2][entry])
        loads = (float(bounds.loads[0][row]), float(bounds.loads[1][row]))
        epilogue = tuple(part.of(row) for part in bounds.epilogue)
        return Floor(loads, float(bounds.contraction[row]), float(bounds.store[row]), epilogue)

    def ranked(self, entry: int, below: int, keep: int) -> list[Priced]:
        """The cheapest knob settings of one placement that cost less than `below`, at most `keep`."""
        placement, start = self.placement(entry), self.start_knobs(entry)
        return ranked_knobs(self.workload, placement, start, self.fixed, self.profile, below, self.floor(entry), keep)

    def ranked_each(self, entries: Sequence[int], below: int) -> list[list[Priced]]:
        """The cheapest knob setting of each of these placements, where it costs less than `below`.

        Raises:
            TimeIsUp: the deadline is over.
        """
        found = []
        for entry in entries:
            self.deadline.check()
            found.append(self.ranked(entry, below, 1))
        return found

    def slice_orders(self, entry: int) -> int:
        """How many orders of the Slice level pricing a placement goes through."""
        return len(slice_orders(self.placement(entry), self.workload.output))

    def loads_key(self, entry: int) -> Hashable:
        """What decides the loads of a placement: how each axis is cut over clusters and slices, and what a slice holds of it."""
        return tuple((axis.cluster, axis.slice, axis.in_slice) for axis in self.placement(entry).axes)


def transfers_floor(workload: Workload, profile: str) -> int:
    """Cycles that every plan takes for its transfers alone: launch, a load of each input, a store, the closing sync."""
    fixed, timing = FixedCosts.of(profile), profile_named(profile).dma
    return floor(fixed.start + transfers_of(workload, Tiles(), timing) + fixed.sync)


def _what_is_too_small(workload: Workload) -> str:
    """The memory that no placement of the workload respects."""
    needed = sum(workload.bytes_of(axes, workload.dtype) for axes in workload.inputs)
    needed += 2 * workload.bytes_of(workload.output, workload.out_dtype)
    smallest = min(workload.bytes_of(axes, workload.dtype) for axes in workload.inputs)
    if needed > RNGD.dm_bytes_per_chip:
        return f"operands and result need {needed:,} B of data memory, the chip has {RNGD.dm_bytes_per_chip:,} B (DM-003)"
    return (
        f"a slice's part of the smaller operand ({smallest:,} B in all) must fit its register file of {RNGD.trf_bytes_per_slice:,} B "
        f"(TRF-006), and all operands {RNGD.dm_bytes_per_slice:,} B of data memory a slice (DM-003)"
    )

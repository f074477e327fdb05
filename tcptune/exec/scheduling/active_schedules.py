"""Shortest schedules of small straight-line units, by branch and bound over active schedules (SCHED-002 to 004, SCHED-013 to 017).

A schedule is active if nothing can begin earlier without delaying something else; one of the shortest schedules is active. Branching
follows Giffler and Thompson: of all instructions whose producers are placed, the one that could end first either runs now or waits for
one that shares a resource with it and can begin before that end.
"""

from __future__ import annotations

from collections.abc import Mapping as Dict
from collections.abc import Sequence
from dataclasses import dataclass, field

from tcptune.exec.scheduling.dependences import Edge, dependences
from tcptune.ir.schedule import Instruction

MOST_NODES = 2_000
"""Partial schedules that a search looks at before it settles for the best one so far."""


@dataclass
class _Search:
    """Depth-first search; `ends` holds the end of every placed instruction, None for the others."""

    instructions: Sequence[Instruction]
    edges: Sequence[Sequence[Edge]]
    tails: list[int]
    releases: Sequence[int]
    best: int
    begins: tuple[int, ...] | None = None
    nodes: int = 0
    ends: list[int | None] = field(default_factory=list)
    free: dict[str, int] = field(default_factory=dict)

    def earliest(self, i: int) -> int | None:
        """First cycle at which `i` could begin; None while a producer is not placed."""
        at = max((self.free.get(c, 0) for c in self.instructions[i].contexts), default=0)
        at = max(at, self.releases[i])
        for edge in self.edges[i]:
            end = self.ends[edge.before]
            if end is None:
                return None
            base = end - self.instructions[edge.before].duration_cycles if edge.from_begin else end
            at = max(at, base + edge.lag_cycles)
        return at

    def run(self) -> None:
        """Extends the partial schedule in every way that could still be the shortest."""
        self.nodes += 1
        ready = {i: at for i, end in enumerate(self.ends) if end is None and (at := self.earliest(i)) is not None}
        if not ready:
            total = max((end for end in self.ends if end is not None), default=0)
            if total < self.best or self.begins is None:
                self.best = total
                self.begins = tuple((end or 0) - i.duration_cycles for end, i in zip(self.ends, self.instructions, strict=True))
            return
        if (
            self.begins is not None
            and max(at + self.instructions[i].duration_cycles + self.tails[i] for i, at in ready.items()) >= self.best
        ):
            return
        first = min(ready, key=lambda i: (ready[i] + self.instructions[i].duration_cycles, i))
        limit = ready[first] + self.instructions[first].duration_cycles
        rivals = [i for i in ready if i == first or (ready[i] < limit and self._share(i, first))]
        for i in sorted(rivals, key=lambda i: (-self.tails[i] - self.instructions[i].duration_cycles, i)):
            if self.nodes < MOST_NODES:
                self._place(i, ready[i])

    def _share(self, i: int, j: int) -> bool:
        return bool(set(self.instructions[i].contexts) & set(self.instructions[j].contexts))

    def _place(self, i: int, at: int) -> None:
        before = dict(self.free)
        end = at + self.instructions[i].duration_cycles
        self.ends[i] = end
        self.free.update(dict.fromkeys(self.instructions[i].contexts, end))
        self.run()
        self.free = before
        self.ends[i] = None


def shortest_begins(
    instructions: Sequence[Instruction],
    edges: Sequence[Sequence[Edge]],
    free: Dict[str, int] | None = None,
    releases: Sequence[int] | None = None,
) -> list[int]:
    """First cycles of a shortest schedule of straight-line code, in program order.

    Exact while the search stays within `MOST_NODES` partial schedules (about a dozen instructions); beyond that, the best one found.

    Args:
        edges: dependences of every instruction (`exec.scheduling.dependences`).
        free: cycle from which each resource is free; 0 where it is not named.
        releases: cycle before which each instruction cannot begin.
    """
    tails = [0] * len(instructions)
    for i in range(len(instructions) - 1, -1, -1):
        for edge in edges[i]:
            if not edge.from_begin:
                tails[edge.before] = max(tails[edge.before], edge.lag_cycles + instructions[i].duration_cycles + tails[i])
    ends: list[int | None] = [None] * len(instructions)
    search = _Search(instructions, edges, tails, releases or [0] * len(instructions), best=0, ends=ends, free=dict(free or {}))
    search.run()
    return list(search.begins or ())


def is_legal(instructions: Sequence[Instruction], begins: dict[str, int]) -> bool:
    """Whether first cycles keep every dependence and let no two instructions hold one resource at a time."""
    at = [begins[i.id] for i in instructions]
    for i, edges in enumerate(dependences(instructions)):
        for edge in edges:
            base = at[edge.before] + (0 if edge.from_begin else instructions[edge.before].duration_cycles)
            if at[i] < base + edge.lag_cycles:
                return False
    for i, one in enumerate(instructions):
        for j in range(i):
            other = instructions[j]
            overlap = at[i] < at[j] + other.duration_cycles and at[j] < at[i] + one.duration_cycles
            if overlap and set(one.contexts) & set(other.contexts):
                return False
    return min(at, default=0) >= 0

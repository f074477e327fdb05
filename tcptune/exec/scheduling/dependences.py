"""Dependences between the instructions of one scheduling unit: hazards through memory regions, and explicit waits.

A read waits for the writes of its bytes (SCHED-014), a write for the reads (SCHED-015) and writes (SCHED-016) of its bytes, both in program
order; two reads are independent (SCHED-013). Cost: near linear in instructions, through one interval map a buffer.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, field

import networkx as nx

from tcptune.ir.schedule import Instruction, Region

RAW, WAR, WAW = "read after write", "write after read", "write after write"
_FAR = 1 << 62


@dataclass(frozen=True, slots=True)
class Edge:
    """Instruction `before` (index in the unit) must have ended, plus `lag_cycles`, before this one begins."""

    before: int
    why: str
    lag_cycles: int = 0
    from_begin: bool = False


@dataclass
class _Segment:
    writer: int | None = None
    readers: list[int] = field(default_factory=list)


class _IntervalMap:
    """Last writer, and readers since, of every byte of one buffer."""

    def __init__(self) -> None:
        self.starts = [0]
        self.segments = [_Segment()]

    def _split(self, at: int) -> int:
        """Index of the segment that begins at `at`."""
        i = bisect_left(self.starts, at)
        if i < len(self.starts) and self.starts[i] == at:
            return i
        whole = self.segments[i - 1]
        self.starts.insert(i, at)
        self.segments.insert(i, _Segment(whole.writer, list(whole.readers)))
        return i

    def _span(self, region: Region) -> tuple[int, int]:
        first = self._split(region.first)
        end = region.end if region.end is not None else _FAR
        last = len(self.starts) if end >= _FAR else self._split(end)
        return first, last

    def read(self, region: Region, reader: int) -> set[int]:
        """Writers the read waits for."""
        first, last = self._span(region)
        found = set()
        for segment in self.segments[first:last]:
            if segment.writer is not None:
                found.add(segment.writer)
            if not segment.readers or segment.readers[-1] != reader:
                segment.readers.append(reader)
        return found

    def write(self, region: Region, writer: int) -> tuple[set[int], set[int]]:
        """Readers and writers the write waits for."""
        first, last = self._span(region)
        readers: set[int] = set()
        writers: set[int] = set()
        for segment in self.segments[first:last]:
            readers.update(segment.readers)
            if segment.writer is not None:
                writers.add(segment.writer)
        self.starts[first:last] = [self.starts[first]]
        self.segments[first:last] = [_Segment(writer)]
        readers.discard(writer)
        writers.discard(writer)
        return readers, writers


def dependence_graph(instructions: Sequence[Instruction]) -> nx.DiGraph[str]:
    """The same as a graph over instruction ids; edges carry `why` and extra cycles (`lag`), nodes their duration (`cycles`)."""
    graph: nx.DiGraph[str] = nx.DiGraph()
    for instruction, edges in zip(instructions, dependences(instructions), strict=True):
        graph.add_node(instruction.id, cycles=instruction.duration_cycles, kind=instruction.kind)
        for edge in edges:
            graph.add_edge(instructions[edge.before].id, instruction.id, why=edge.why, lag=edge.lag_cycles)
    return graph


def dependences(instructions: Sequence[Instruction]) -> list[list[Edge]]:
    """Edges into every instruction, one a predecessor (the strongest reason first: RAW, WAW, WAR, explicit waits added)."""
    maps: dict[str, _IntervalMap] = {}
    position = {instruction.id: i for i, instruction in enumerate(instructions)}
    found: list[list[Edge]] = []
    for i, instruction in enumerate(instructions):
        why: dict[int, str] = {}
        for region in instruction.reads:
            for j in maps.setdefault(region.buffer, _IntervalMap()).read(region, i):
                why.setdefault(j, RAW)
        for region in instruction.writes:
            readers, writers = maps.setdefault(region.buffer, _IntervalMap()).write(region, i)
            for j in writers:
                why.setdefault(j, WAW)
            for j in readers:
                why.setdefault(j, WAR)
        why.pop(i, None)
        edges = [Edge(j, reason) for j, reason in sorted(why.items())]
        edges += [
            Edge(position[lag.after], lag.why or "wait", lag.cycles, lag.from_begin) for lag in instruction.waits if lag.after in position
        ]
        found.append(edges)
    return found

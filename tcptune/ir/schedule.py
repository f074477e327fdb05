"""Schedules: instructions before they have a time, operations after, and how long each buffer lives.

Clock: cycles of the static schedule (1 GHz), `end` exclusive. Contexts are the vendor's resource names.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

MAIN, SUB, VECTOR, DMA, PCIE, CORE, NOOP = "MainContext", "SubContext", "VectorEngine", "DmaEngine", "PcieDmaEngine", "PeCore", "Noop"
RESOURCES = (MAIN, SUB, VECTOR, DMA, PCIE, CORE)
"""Resources an operation can hold, in the viewer's lane order; `NOOP` holds none."""


@dataclass(frozen=True, slots=True)
class Region:
    """Part of a buffer that an instruction touches: bytes `first` to `end` (exclusive; None: to its end) of every slice."""

    buffer: str
    first: int = 0
    end: int | None = None

    def overlaps(self, other: Region) -> bool:
        """Whether both share a byte of the same buffer."""
        if self.buffer != other.buffer:
            return False
        return (other.end is None or self.first < other.end) and (self.end is None or other.first < self.end)


@dataclass(frozen=True, slots=True)
class Lag:
    """An explicit wait: not before `cycles` after the end (or, with `from_begin`, the begin) of instruction `after`."""

    after: str
    cycles: int = 0
    from_begin: bool = False
    why: str = ""


@dataclass(frozen=True, slots=True)
class Instruction:
    """A unit of work before it is scheduled.

    Attributes:
        id: unique name.
        kind: ``DmaLoad``, ``DmaStore``, ``DmaStos``, ``DmaGather``, ``DmaScatter``, ``DmaOther``, ``Main``, ``Sub`` or ``Core``.
        contexts: resources it holds for its whole duration.
        duration_cycles: static duration.
        reads, writes: regions; hazards between instructions follow from them in program order.
        waits: explicit waits on earlier instructions.
        description: source text.
        moved_bytes: bytes a DMA delivers over all slices.
        bank_accesses: longest run of consecutive accesses to one DM bank (SCHED-005).
        cost: what the duration is made of, for reports (``263 + 512 B/8``).
        step: the kernel step it comes from (its `let` or target), empty for inserted work.
    """

    id: str
    kind: str
    contexts: tuple[str, ...]
    duration_cycles: int
    reads: tuple[Region, ...] = ()
    writes: tuple[Region, ...] = ()
    waits: tuple[Lag, ...] = ()
    description: str = ""
    moved_bytes: int = 0
    bank_accesses: int = 0
    cost: str = ""
    step: str = ""


@dataclass(frozen=True, slots=True)
class Buffer:
    """Storage inside the chip.

    Attributes:
        name: the kernel's name for it, made unique over unrolled iterations.
        tier: ``Sram`` (DM), ``Trf``, ``Vrf``, ``Spm`` or ``Hbm`` (HBM has no address and no capacity here).
        size_bytes: bytes a slice, padding included.
        shape: mappings as the vendor prints them.
    """

    name: str
    tier: str
    size_bytes: int
    shape: str = ""
    dtype: str = ""


@dataclass(frozen=True, slots=True)
class Repeat:
    """A kept loop: its parts in order, `count` times, with a barrier and `overhead_cycles` after each iteration (VT-046)."""

    count: int
    parts: tuple[Instruction | Repeat, ...]
    overhead_cycles: int = 0


@dataclass(frozen=True, slots=True)
class Launch:
    """Offsets of a launch: first cycle of Core operations, of everything else, and the length of the closing sync (VT-040)."""

    core_begin: int
    first_begin: int
    sync_cycles: int


@dataclass(frozen=True, repr=False)
class Program:
    """Instructions in program order, loops as `Repeat`. Instructions between two loops are one scheduling unit."""

    parts: tuple[Instruction | Repeat, ...]
    buffers: tuple[Buffer, ...]
    launch: Launch

    def __repr__(self) -> str:
        return f"<Program: {len(tuple(self.instructions()))} instructions, {len(self.buffers)} buffers>"

    def instructions(self) -> Iterator[Instruction]:
        """Every instruction once, loop bodies included."""
        yield from _flat(self.parts)


def _flat(parts: tuple[Instruction | Repeat, ...]) -> Iterator[Instruction]:
    for part in parts:
        if isinstance(part, Repeat):
            yield from _flat(part.parts)
        else:
            yield part


@dataclass(frozen=True, slots=True)
class Operation:
    """A scheduled instruction.

    `cause` says what it waited for: ``data``, ``resource``, ``wait`` or ``start``; `blocker` is the id of that operation.
    """

    id: str
    kind: str
    contexts: tuple[str, ...]
    begin: int
    end: int
    description: str = ""
    reads: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()
    moved_bytes: int = 0
    cause: str = ""
    blocker: str = ""

    @property
    def duration_cycles(self) -> int:
        return self.end - self.begin


@dataclass(frozen=True, slots=True)
class Lifetime:
    """A placed buffer: alive from the begin of its producer to the end of its last reader (VT-044). `address` is in bytes a slice."""

    buffer: Buffer
    address: int
    begin: int
    end: int


@dataclass(frozen=True, repr=False)
class Schedule:
    """Operations with their times, and the memory plan."""

    operations: tuple[Operation, ...]
    lifetimes: tuple[Lifetime, ...] = ()
    title: str = "Schedule"
    notes: tuple[str, ...] = field(default=())

    def __repr__(self) -> str:
        return f"<Schedule {self.title}: {len(self.operations)} operations, makespan {self.makespan:,} cycles>"

    @property
    def makespan(self) -> int:
        """Last scheduled cycle: max of the ends, 0 if empty (VIEWER-011)."""
        return max((o.end for o in self.operations), default=0)

    def busy_cycles(self) -> dict[str, int]:
        """Cycles each resource is held."""
        busy = dict.fromkeys(RESOURCES, 0)
        for operation in self.operations:
            for context in operation.contexts:
                if context in busy:
                    busy[context] += operation.duration_cycles
        return busy

    def on(self, resource: str) -> tuple[Operation, ...]:
        """Operations that hold `resource`, in time order."""
        return tuple(sorted((o for o in self.operations if resource in o.contexts), key=lambda o: (o.begin, o.end)))

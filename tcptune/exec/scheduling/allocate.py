"""Memory planning: where every buffer of a program lies, and how long it lives (VT-044, HW-003 to HW-005, HW-019).

Addresses are assigned in program order before scheduling: DM in granules of 256 B a slice, the TRF by halves that alternate, the VRF in
granules of one flit. Fresh space is preferred; where a buffer takes the place of one that program order has finished with, its first
writer waits for the last users of the old one. So every schedule of the planned program is legal in memory, and no order can deadlock.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from tcptune.errors import RuleViolation
from tcptune.ir.schedule import Buffer, Instruction, Lag, Lifetime, Operation, Program, Region, Repeat, Schedule
from tcptune.model.hardware import RNGD, Hardware

_RULES = {"Sram": ("DM-003", ("HW-003", "MAP-033")), "Vrf": ("VRF-004", ("HW-005", "VE-034")), "Trf": ("TRF-006", ("HW-004",))}
_PLACES = {"Sram": "DM", "Vrf": "VRF", "Trf": "TRF"}


@dataclass(frozen=True)
class MemoryPlan:
    """A program whose buffers have addresses; `program` carries the waits that reuse of addresses needs."""

    program: Program
    addresses: dict[str, int]


@dataclass
class _Use:
    """Span of a buffer in program order, and who touches it."""

    first: int
    last: int
    users: list[str] = field(default_factory=list)


def _uses(parts: Sequence[Instruction | Repeat]) -> dict[str, _Use]:
    """First and last position of every buffer; one that a loop only uses lives to the loop's end."""
    uses: dict[str, _Use] = {}
    position = 0

    def visit(items: Sequence[Instruction | Repeat]) -> None:
        nonlocal position
        for item in items:
            if isinstance(item, Repeat):
                known = set(uses)
                start = position
                visit(item.parts)
                for name in known:
                    if uses[name].last >= start:
                        uses[name].last = position
                position += 1
                continue
            for region in (*item.reads, *item.writes):
                use = uses.setdefault(region.buffer, _Use(position, position))
                use.last = position
                if not use.users or use.users[-1] != item.id:
                    use.users.append(item.id)
            position += 1

    visit(parts)
    return uses


class _Memory:
    """One memory while addresses are handed out in program order."""

    def __init__(self, tier: str, capacity_bytes: int, granule_bytes: int) -> None:
        self.tier = tier
        self.capacity = capacity_bytes
        self.granule = granule_bytes
        self.fresh = 0
        self.live: list[tuple[int, int, str]] = []  # (address, end, buffer)
        self.dead: list[tuple[int, int, str]] = []

    def retire(self, before: int, uses: dict[str, _Use]) -> None:
        keep: list[tuple[int, int, str]] = []
        for entry in self.live:
            (keep if uses[entry[2]].last >= before else self.dead).append(entry)
        self.live = keep

    def place(self, buffer: Buffer, uses: dict[str, _Use]) -> tuple[int, list[str]]:
        """Address of `buffer` and the dead buffers whose place it takes: those that died first, so that it waits for them the least."""
        size = -(-max(buffer.size_bytes, 1) // self.granule) * self.granule
        if self.fresh + size <= self.capacity:
            self.live.append((self.fresh, self.fresh + size, buffer.name))
            self.fresh += size
            return self.fresh - size, []
        self._gap(size, buffer)
        address = min(self._free_places(size), key=lambda at: (self._died(at, size, uses), at))
        replaced = [name for first, end, name in self.dead if first < address + size and address < end]
        self.dead = [e for e in self.dead if e[2] not in replaced or e[0] < address or e[1] > address + size]
        self.live.append((address, address + size, buffer.name))
        return address, replaced

    def _free_places(self, size: int) -> Iterator[int]:
        """Addresses where `size` bytes touch nothing live: behind what is live, and at the ends of what is dead."""
        starts = {0, *(end for _, end, _ in self.live), *(at for first, end, _ in self.dead for at in (first, end, end - size))}
        for at in sorted(starts):
            if 0 <= at <= self.capacity - size and not any(first < at + size and at < end for first, end, _ in self.live):
                yield at

    def _died(self, address: int, size: int, uses: dict[str, _Use]) -> int:
        """When, in program order, the last of the dead buffers of a place was used."""
        return max((uses[name].last for first, end, name in self.dead if first < address + size and address < end), default=-1)

    def _gap(self, size: int, buffer: Buffer) -> int:
        at = 0
        for first, end, _ in sorted(self.live):
            if first - at >= size:
                break
            at = max(at, end)
        if at + size > self.capacity:
            rule, also = _RULES[self.tier]
            live = ", ".join(f"{name} ({end - first:,} B)" for first, end, name in sorted(self.live)) or "nothing"
            raise RuleViolation(
                rule,
                f"{buffer.name} needs {size:,} B a slice and does not fit into the {_PLACES[self.tier]}; live with it: {live}",
                expected=f"at most {self.capacity:,} B a slice live at once",
                got=f"{size + sum(end - first for first, end, _ in self.live):,} B",
                also=also,
            )
        return at


class _Halves(_Memory):
    """The TRF: a tensor takes one half whatever its size, or both if it is larger, and successive ones alternate (VT-044)."""

    def place(self, buffer: Buffer, uses: dict[str, _Use]) -> tuple[int, list[str]]:
        half = self.granule
        size = half if buffer.size_bytes <= half else self.capacity
        taken = {first for first, end, _ in self.live} | {half for first, end, _ in self.live if end - first > half}
        if buffer.size_bytes > self.capacity or (size > half and taken) or len(taken) * half >= self.capacity:
            return self._gap(max(size, buffer.size_bytes), buffer), []
        address = 0 if size > half else self.fresh
        if address in taken:
            address = half - address
        self.fresh = half - address if size == half else 0
        replaced = [name for first, end, name in self.dead if first < address + size and address < end]
        self.dead = [e for e in self.dead if e[2] not in replaced]
        self.live.append((address, address + size, buffer.name))
        return address, replaced


def plan_memory(program: Program, hw: Hardware = RNGD) -> MemoryPlan:
    """Addresses of all buffers, and the program with the waits that reuse needs.

    Raises:
        RuleViolation: DM-003, TRF-006 or VRF-004 naming the tensors that are live together.
    """
    buffers = {b.name: b for b in program.buffers}
    uses = _uses(program.parts)
    memories = {
        "Sram": _Memory("Sram", hw.dm_bytes_per_slice, hw.dm_granule_bytes),
        "Vrf": _Memory("Vrf", hw.vrf_bytes_per_slice, hw.flit_bytes),
        "Trf": _Halves("Trf", hw.trf_bytes_per_slice, hw.trf_half_bytes_per_slice),
        "Spm": _Memory("Spm", 1 << 30, 1),
    }
    addresses: dict[str, int] = {}
    waits: dict[str, list[Lag]] = {}
    for name, use in sorted(uses.items(), key=lambda entry: (entry[1].first, entry[1].last)):
        buffer = buffers.get(name)
        if buffer is None or buffer.tier not in memories or (buffer.tier == "Spm" and not buffer.size_bytes):
            continue
        memory = memories[buffer.tier]
        memory.retire(use.first, uses)
        addresses[name], replaced = memory.place(buffer, uses)
        for old in replaced:
            waits.setdefault(use.users[0], []).extend(Lag(user, why=f"{name} takes the place of {old}") for user in uses[old].users)
    return MemoryPlan(replace(program, parts=_with_waits(program.parts, waits)), addresses)


def _with_waits(parts: tuple[Instruction | Repeat, ...], waits: dict[str, list[Lag]]) -> tuple[Instruction | Repeat, ...]:
    done: list[Instruction | Repeat] = []
    for part in parts:
        if isinstance(part, Repeat):
            done.append(replace(part, parts=_with_waits(part.parts, waits)))
        elif part.id in waits:
            extra = tuple(lag for lag in dict.fromkeys(waits[part.id]) if lag.after != part.id)
            done.append(replace(part, waits=(*part.waits, *extra)))
        else:
            done.append(part)
    return tuple(done)


def lifetimes(plan: MemoryPlan, schedule: Schedule) -> tuple[Lifetime, ...]:
    """Lives of the placed buffers in `schedule`; a buffer local to a loop body has one a iteration (``name@i``)."""
    buffers = {b.name: b for b in plan.program.buffers}
    outer = _outer_buffers(plan.program)
    spans: dict[tuple[str, str], tuple[int, int]] = {}
    for operation in schedule.operations:
        for name in _touched(operation):
            if name not in plan.addresses:
                continue
            mark = "" if name in outer else operation.id.partition("@")[2]
            begin, end = spans.get((name, mark), (operation.begin, operation.end))
            spans[name, mark] = (min(begin, operation.begin), max(end, operation.end))
    found = []
    for (name, mark), (begin, end) in spans.items():
        buffer = buffers[name] if not mark else replace(buffers[name], name=f"{name}@{mark}")
        found.append(Lifetime(buffer, plan.addresses[name], begin, end))
    return tuple(sorted(found, key=lambda entry: (entry.begin, entry.end, entry.buffer.name)))


def _touched(operation: Operation) -> tuple[str, ...]:
    return tuple(dict.fromkeys((*operation.reads, *operation.writes)))


def _regions(instruction: Instruction) -> tuple[Region, ...]:
    return (*instruction.reads, *instruction.writes)


def _outer_buffers(program: Program) -> set[str]:
    """Buffers that some instruction outside every loop touches."""
    return {r.buffer for part in program.parts if isinstance(part, Instruction) for r in _regions(part)}

"""The manual's closed cost model of DMA commands: requests per side, DMN interleaving, and the HBM bound (DMA-022 to DMA-034).

A command is one paired sequencer: nested loops with a read and a write stride, and a packet. Both sides make one step a packet.
This model reproduces the six worked examples from their printed commands; `price` uses the request stream instead.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, prod

import numpy as np

from tcptune.errors import RuleViolation
from tcptune.model.hardware import RNGD, Hardware
from tcptune.model.memory import dm, hbm
from tcptune.model.memory.requests import Ints, largest_divisor
from tcptune.model.timing.calibration import MANUAL_DMA, DmaTiming

SLICE_STRIDE = RNGD.slice_window_bytes
"""Virtual distance of neighbouring slices, the manual's ``slice_stride`` (DMA-033)."""

DMN_STRIDE = RNGD.slice_window_bytes * RNGD.slices_per_dmn
"""Virtual distance of the two DMNs of a pair, the manual's ``DMN_stride``: slices laid out back to back (DMA-033)."""


def requests_per_packet(packet_bytes: int, hw: Hardware = RNGD) -> int:
    """AXI requests of one packet (DMA-027)."""
    return -(-packet_bytes // hw.request_bytes)


def axi_beats(hw: Hardware = RNGD) -> int:
    """Beats of the longest AXI transaction (DMA-022)."""
    return hw.max_packet_bytes // hw.axi_beat_bytes


def check_packet(packet_bytes: int, hw: Hardware = RNGD) -> None:
    """Raises:
    RuleViolation: DMA-022 for more bytes than one AXI transaction moves.
    """
    if not 0 < packet_bytes <= hw.max_packet_bytes:
        raise RuleViolation(
            "DMA-022",
            f"one packet is one AXI transaction: {axi_beats(hw)} beats of {hw.axi_beat_bytes} bytes",
            got=packet_bytes,
            expected=f"1 to {hw.max_packet_bytes}",
            nearest=hw.max_packet_bytes,
        )


@dataclass(frozen=True, slots=True)
class PacketSplit:
    """How a contiguous length becomes packets, requests and commands (DMA-022, DMA-027)."""

    requests: int
    full_requests: int
    tail_bytes: int
    commands: int
    packet_bytes: int
    iterations: int


def split_length(length_bytes: int, factorable: bool = True, hw: Hardware = RNGD) -> PacketSplit:
    """Split of `length_bytes`: one packet if it fits, a loop over the largest packet that divides it, else several commands.

    Args:
        factorable: False where no loop over equal packets is wanted (a prime length would leave one-byte packets).
    """
    block = hw.request_bytes
    if length_bytes <= hw.max_packet_bytes:
        full, tail = divmod(length_bytes, block)
        return PacketSplit(requests_per_packet(length_bytes, hw), full, tail, 1, length_bytes, 1)
    if factorable:
        packet = stride0(length_bytes, hw)
        count = length_bytes // packet
        full, tail = divmod(packet, block)
        return PacketSplit(count * requests_per_packet(packet, hw), count * full, tail, 1, packet, count)
    whole, rest = divmod(length_bytes, hw.max_packet_bytes)
    requests = whole * requests_per_packet(hw.max_packet_bytes, hw) + (requests_per_packet(rest, hw) if rest else 0)
    full, tail = divmod(length_bytes, block)
    return PacketSplit(requests, full, tail, whole + bool(rest), hw.max_packet_bytes, whole)


def stride0(run_bytes: int, hw: Hardware = RNGD) -> int:
    """Packet bytes of a contiguous run common to both sides: its largest divisor up to the packet limit (DMA-014)."""
    return largest_divisor(run_bytes, hw.max_packet_bytes, 1) or run_bytes


@dataclass(frozen=True, slots=True)
class Side:
    """One side of a command: `tier` (``Hbm`` or ``Dm``), base address and the byte stride of every loop.

    DM addresses are virtual: slice number times `SLICE_STRIDE` plus the offset in the slice.
    """

    tier: str
    base: int
    strides: tuple[int, ...]
    cluster: int = 0


@dataclass(frozen=True)
class Command:
    """One paired sequencer (DMA-010): loop counts, packet bytes, and both sides; `terms` name the loops in axes."""

    counts: tuple[int, ...]
    packet_bytes: int
    read: Side
    write: Side
    terms: tuple[str, ...] = ()

    @property
    def packets(self) -> int:
        return prod(self.counts)

    @property
    def requests(self) -> int:
        """AXI requests of each direction."""
        return self.packets * requests_per_packet(self.packet_bytes)

    def addresses(self, side: Side, first: int = 0, count: int | None = None) -> Ints:
        """Address of every request of a side, in order; `first` and `count` choose packets (DMA-011)."""
        number = np.arange(first, self.packets if count is None else min(first + count, self.packets), dtype=np.int64)
        address = np.full_like(number, side.base)
        for length, stride in zip(reversed(self.counts), reversed(side.strides), strict=True):
            number, digit = np.divmod(number, length)
            address += digit * stride
        per_packet = np.arange(requests_per_packet(self.packet_bytes), dtype=np.int64) * RNGD.request_bytes
        return np.asarray((address[:, None] + per_packet[None, :]).reshape(-1))

    @property
    def is_serial(self) -> bool:
        """Reads and writes share banks or channels, so their times add up (DMA-025)."""
        same_tier = self.read.tier == self.write.tier
        return same_tier and (self.read.tier == "Hbm" or self.read.cluster == self.write.cluster)

    def side_cycles(self, side: Side) -> float:
        """Engine time of one side: a cycle a request, two where the packets stay on one DMN (DMA-030, DM-006)."""
        return self.requests * (1.0 if side.tier == "Hbm" else self.dm_cycles_per_request(side))

    def dm_cycles_per_request(self, side: Side) -> float:
        """1 where consecutive packets alternate between the DMNs of a pair, 2 where they stay on one, in between where some do."""
        per_packet = requests_per_packet(self.packet_bytes)
        dmns = self.addresses(side, count=_INTERLEAVING_SAMPLE)[::per_packet] // DMN_STRIDE
        busy = dm.port_cycles_per_request()
        if len(dmns) < 2:
            return float(busy)
        return 1.0 + (busy - 1) * float(np.count_nonzero(dmns[1:] == dmns[:-1])) / (len(dmns) - 1)

    @property
    def data_cycles(self) -> float:
        read, write = self.side_cycles(self.read), self.side_cycles(self.write)
        return read + write if self.is_serial else max(read, write)


_INTERLEAVING_SAMPLE = 4_096
"""Packets over which the alternation of DMNs is judged."""


@dataclass(frozen=True)
class CommandCost:
    """Cost of a transfer given by the commands of every engine (DMA-034)."""

    engine_cycles: tuple[float, ...]
    startup_cycles: float
    read_spread: hbm.ChannelSpread | None
    write_spread: hbm.ChannelSpread | None
    total_cycles: float

    @property
    def is_hbm_bound(self) -> bool:
        return self.total_cycles > max(self.engine_cycles, default=0.0)


def interleaved_addresses(engines: Sequence[Sequence[Command]], pick_read: bool) -> Ints:
    """HBM addresses of all engines in issue order: the engines take turns, request by request."""
    columns = []
    for commands in engines:
        parts = [c.addresses(c.read if pick_read else c.write) for c in commands if (c.read if pick_read else c.write).tier == "Hbm"]
        if parts:
            columns.append(np.concatenate(parts))
    if not columns:
        return np.zeros(0, np.int64)
    longest = max(len(c) for c in columns)
    grid = np.full((longest, len(columns)), -1, np.int64)
    for place, column in enumerate(columns):
        grid[: len(column), place] = column
    flat = grid.reshape(-1)
    return np.asarray(flat[flat >= 0])


def cost(engines: Sequence[Sequence[Command]], timing: DmaTiming = MANUAL_DMA) -> CommandCost:
    """Cost of a transfer: the slowest engine, or the busiest HBM channel (DMA-034).

    Args:
        engines: the commands of every engine, in order; one startup each (DMA-026).

    Raises:
        RuleViolation: DMA-018 where engines of one transfer serve different memories, DMA-022 for a packet that is too long.
    """
    check_media([(c.read.tier, c.write.tier) for commands in engines for c in commands])
    for commands in engines:
        for command in commands:
            check_packet(command.packet_bytes)
    start = timing.start_load.value
    per_engine = tuple(sum(start + c.data_cycles for c in commands) for commands in engines)
    reads, writes = (interleaved_addresses(engines, pick_read) for pick_read in (True, False))
    read_spread, write_spread = (hbm.profile_spread(a, timing) if len(a) else None for a in (reads, writes))
    bound = sum(s.address_level_cycles for s in (read_spread, write_spread) if s is not None)
    total = max([*per_engine, start + bound if bound else 0.0])
    return CommandCost(per_engine, start, read_spread, write_spread, total)


def check_media(pairs: Sequence[tuple[str, str]]) -> None:
    """Raises:
    RuleViolation: DMA-018 where the engines of one transfer do not all connect the same two memories.
    """
    different = list(dict.fromkeys(pairs))
    if len(different) > 1:
        raise RuleViolation(
            "DMA-018",
            "all engines of one transfer use the same source and the same destination memory",
            got=", ".join(f"{a} to {b}" for a, b in different),
            expected=" to ".join(different[0]),
        )


@dataclass(frozen=True, slots=True)
class HbmShare:
    """What each of several HBM-to-HBM engines gets of the HBM (DMA-043)."""

    read_tb_per_s: float
    engine_tb_per_s: float
    bytes_per_cycle: float
    cycles_per_request: float


def hbm_share(engines: int, tb_per_s: float | None = None, hw: Hardware = RNGD) -> HbmShare:
    """Share of each of `engines` engines that copy HBM to HBM: reads get half of the bandwidth."""
    read = (hw.hbm_stated_tb_per_s if tb_per_s is None else tb_per_s) / 2
    per_engine = read / engines
    per_cycle = per_engine * 1000
    return HbmShare(read, per_engine, per_cycle, max(1.0, hw.request_bytes / per_cycle))


def engines_to_saturate(hbm_gb_per_s: float, engine_gb_per_s: float) -> int:
    """Engines that together ask for the whole HBM bandwidth (DMA-024)."""
    return ceil(hbm_gb_per_s / engine_gb_per_s)

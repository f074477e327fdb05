"""Sums of a contraction: Packet Reducer, Time Reducer and Lane Folder (PACKETRED, TIMERED, LANE)."""

from __future__ import annotations

from collections.abc import Mapping as Dict
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tcptune.errors import InputError, RuleViolation
from tcptune.ir.kernels.ops import ContractLane, ContractPacket, ContractTime, Op
from tcptune.ir.mappings.mapping import Mapping, pair
from tcptune.ir.types import DType, StreamType
from tcptune.model.engines.contraction.values import PendingProducts, packet_sums, time_sums
from tcptune.model.hardware import Hardware
from tcptune.model.mappings.loop_factors import LoopFactor, iterations, loop_factors, refined
from tcptune.model.numerics.elements import packing_bits
from tcptune.model.stage import ChainEnv, StageCost, Step
from tcptune.model.values import Values

HANDLES = (ContractPacket, ContractTime, ContractLane)
MODES = ("Interleaved", "Sequential")


@dataclass(frozen=True, slots=True)
class PacketConfig:
    """The tree of a lane: its depth, and how many of the surviving columns the packet keeps.

    Attributes:
        tree_depth: levels; the innermost ``2 ** tree_depth`` positions are summed.
        columns: declared size of OutPacket.
        sums_padding: whether padding positions enter a sum with live ones (A-08); such a sum is only known if that padding is.
    """

    tree_depth: int
    columns: int
    sums_padding: bool


@dataclass(frozen=True, slots=True)
class TimeConfig:
    """Loops of Time, outermost first, as (size, survives)."""

    loops: tuple[tuple[int, bool], ...]
    inner_time: int
    reduce_factor: int


@dataclass(frozen=True, slots=True)
class LaneConfig:
    """How the buffer drains."""

    mode: str
    bus_elements: int


@dataclass(frozen=True, slots=True)
class OpenSlots:
    """What the Lane Folder has to know of the sum over Time: results that are open at once (TIMERED-008)."""

    inner_time: int


def check(stream: StreamType, op: Op, env: ChainEnv) -> Step:
    """The stream behind one of the three stages.

    Raises:
        RuleViolation: PACKETRED-002, PACKETRED-005, PACKETRED-008; TIMERED-002, TIMERED-003; LANE-002 to LANE-005, TIMERED-006.
        InputError: an unknown lane mode.
    """
    if isinstance(op, ContractPacket):
        return _check_packet(stream, op, env.hw)
    if isinstance(op, ContractTime):
        return _check_time(stream, op)
    assert isinstance(op, ContractLane)
    return _check_lane(stream, op, env.hw)


def apply(values: Values, step: Step, env: ChainEnv, operands: Dict[str, Values]) -> Values:
    """Sums in hardware order, bit for bit; lanes are moved last."""
    if isinstance(values, PendingProducts):
        extended = values.then(step)
        return extended.summed() if isinstance(step.op, ContractTime) else extended
    if isinstance(step.op, ContractPacket):
        return packet_sums(values, step.config.tree_depth, step.config.columns)
    if isinstance(step.op, ContractTime):
        return time_sums(values, step.config.loops)
    return folded_lanes(values, step.config)


# --- Packet Reducer ---------------------------------------------------------------------------------------------------------------


def max_tree_depth(elements: int) -> int:
    """Depth that sums a whole packet (PACKETRED-003)."""
    return elements.bit_length() - 1


def tree_latency_cycles(stream: DType, hw: Hardware) -> int:
    """Cycles to the first result: the depth of the full 64-byte tree, whatever depth is used (PACKETRED-009)."""
    return max_tree_depth(hw.multiplier_bits_per_lane // packing_bits(stream))


def live_prefix(m: Mapping) -> int:
    """Positions up to the last live one. For packets only: they have at most 128 positions, which are read one by one."""
    live = np.flatnonzero(m.table().live)
    return int(live[-1]) + 1 if live.size else 0


def without_outer_padding(m: Mapping) -> Mapping:
    """The mapping up to its last live position (PACKETRED-007)."""
    return m.resize(max(live_prefix(m), 1))


def _check_packet(stream: StreamType, op: ContractPacket, hw: Hardware) -> Step:
    sizes = tuple(1 << n for n in range(hw.accumulator_columns.bit_length()))
    if op.packet.size not in sizes:
        raise RuleViolation(
            "PACKETRED-005",
            f"OutPacket {op.packet} has {op.packet.size} elements",
            expected=f"one of {', '.join(map(str, sizes))}",
            got=op.packet.size,
            nearest=next((f"padding up to {n}: # {n}" for n in sizes if n > op.packet.size), None),
            also=("CE-004", "TIMERED-011") if op.packet.size > sizes[-1] else (),
        )
    _require_tree_input(stream.packet, hw)
    depth = _tree_depth(stream.packet, op.packet)
    if depth is None:
        cut = op.packet.size == hw.accumulator_columns and stream.packet.size > op.packet.size
        inner = cut and stream.packet.split_at(op.packet.size)[1].equivalent(op.packet)
        raise RuleViolation(
            "PACKETRED-008",
            f"OutPacket {op.packet} is not what is left of {stream.packet} after summing its inner 1, 2, 4, … positions",
            expected=f"for instance {without_outer_padding(stream.packet)} or 1",
            got=str(op.packet),
            also=("PACKETRED-006",) if inner else (),
        )
    left = stream.packet.size >> depth
    consumed = stream.packet.table().live.reshape(left, -1)[: op.packet.size]
    mixed = bool((consumed.any(axis=1) & ~consumed.all(axis=1)).any())
    storage = stream.details if isinstance(stream.details, DType) else None
    latency = tree_latency_cycles(storage, hw) if storage else 0
    return Step(
        op,
        stream,
        stream.with_(position="ContractPacket", packet=op.packet, details=None),
        PacketConfig(depth, op.packet.size, mixed),
        {"tree_depth": depth, "reduce_packet_size": left},
        StageCost(cycles=stream.time.size, latency_cycles=latency),
    )


def _require_tree_input(packet: Mapping, hw: Hardware) -> None:
    """The tree takes a power of two of elements, at most 64 bytes of the narrowest type (PACKETRED-002)."""
    widest = hw.multiplier_bits_per_lane // 4
    if packet.size > widest or packet.size & (packet.size - 1):
        raise RuleViolation(
            "PACKETRED-002",
            f"the packet {packet} has {packet.size} elements",
            expected=f"a power of two, at most {widest}",
            got=packet.size,
            also=("OUTER-004",),
        )


def _tree_depth(packet: Mapping, declared: Mapping) -> int | None:
    """The smallest depth that leaves `declared`, outer padding aside (PACKETRED-003, A-08)."""
    wanted = without_outer_padding(declared)
    for depth in range(max_tree_depth(packet.size) + 1):
        if without_outer_padding(packet.split_at(1 << depth)[0]).equivalent(wanted):
            return depth
    return None


# --- Time Reducer -----------------------------------------------------------------------------------------------------------------


def _check_time(stream: StreamType, op: ContractTime) -> Step:
    loops = refined(loop_factors(stream.time), loop_factors(op.time))
    wanted = refined(loop_factors(op.time), loops)
    survives = _matched(loops, wanted, stream.time, op.time)
    first_reduced = survives.index(False) if False in survives else len(loops)
    inner_time = iterations(f for f, kept in list(zip(loops, survives, strict=True))[first_reduced:] if kept)
    factor = iterations(f for f, kept in zip(loops, survives, strict=True) if not kept)
    return Step(
        op,
        stream,
        stream.with_(position="ContractTime", time=op.time, details=OpenSlots(inner_time)),
        TimeConfig(tuple((f.extent, kept) for f, kept in zip(loops, survives, strict=True)), inner_time, factor),
        {"inner_time": inner_time, "time_reduce_factor": factor},
        StageCost(cycles=stream.time.size, latency_cycles=time_latency_cycles(factor)),
    )


def time_latency_cycles(reduce_factor: int) -> int:
    """Cycles to the first result of a sum of N packets, about N (TIMERED-010); a stage without a sum adds none."""
    return reduce_factor if reduce_factor > 1 else 0


def _matched(loops: tuple[LoopFactor, ...], wanted: tuple[LoopFactor, ...], time: Mapping, declared: Mapping) -> list[bool]:
    """Which loops survive: `wanted` is an ordered subset of `loops`."""
    survives = [False] * len(loops)
    place = 0
    for loop in wanted:
        while place < len(loops) and loops[place] != loop:
            place += 1
        if place == len(loops):
            _refuse_time(loop, loops, time, declared)
        survives[place] = True
        place += 1
    return survives


def _refuse_time(loop: LoopFactor, loops: tuple[LoopFactor, ...], time: Mapping, declared: Mapping) -> None:
    alike = next((f for f in loops if f.of == loop.of and f.weight == loop.weight and f.live == loop.live and f != loop), None)
    if alike is not None:
        raise RuleViolation(
            "TIMERED-003",
            f"{loop} of OutTime has another padding than in Time {time}",
            expected=str(alike),
            got=str(loop),
            also=("TIMERED-002",),
        )
    reason = "comes in another order" if loop in loops else "is no factor of Time"
    raise RuleViolation(
        "TIMERED-002", f"{loop} of OutTime {reason}", expected=f"factors of {time} in their order", got=str(declared), also=("TIMERED-001",)
    )


# --- Lane Folder ------------------------------------------------------------------------------------------------------------------


def cells_per_slot(mode: str, lanes: int, columns: int, hw: Hardware) -> int:
    """Accumulator cells of one slot: all lanes when interleaved, all columns in sequence (TIMERED-006)."""
    return hw.lanes_per_slice * columns if mode == "Interleaved" else lanes * hw.accumulator_columns


def slot_capacity(mode: str, lanes: int, columns: int, hw: Hardware) -> int:
    """Slots of the accumulator (TIMERED-006)."""
    return hw.accumulator_cells // cells_per_slot(mode, lanes, columns, hw)


def padded_columns(columns: int, hw: Hardware) -> int:
    """Columns of a lane, padded to whole bus flits (LANE-004)."""
    return -(-columns // hw.lane_bus_elements) * hw.lane_bus_elements


def drain_flits(mode: str, time: int, lanes: int, columns: int, hw: Hardware) -> int:
    """Output flits, one a cycle (LANE-003, LANE-004, LANE-010)."""
    return time * columns if mode == "Interleaved" else time * lanes * (padded_columns(columns, hw) // hw.lane_bus_elements)


def _check_lane(stream: StreamType, op: ContractLane, hw: Hardware) -> Step:
    if op.mode not in MODES:
        raise InputError(f"unknown lane mode {op.mode!r}", hint=f"modes: {', '.join(MODES)}")
    if stream.lane is None:
        raise RuleViolation("LANE-002", "the stream has no Lane to fold", expected="a stream behind contract_time", got=stream.position)
    bus = hw.lane_bus_elements
    if op.packet.size != bus:
        raise RuleViolation(
            "LANE-005",
            f"OutPacket {op.packet} has {op.packet.size} elements",
            expected=f"{bus} elements, one flit",
            got=op.packet.size,
            nearest=f"# {bus}" if op.packet.size < bus else None,
            also=("LANE-003" if op.mode == "Interleaved" else "LANE-004",),
        )
    columns, lanes = stream.packet.size, stream.lane.size
    if op.mode == "Interleaved":
        time, packet, rule = pair(stream.time, stream.packet), stream.lane.pad_to_multiple(bus), "LANE-003"
    else:
        outer, packet = stream.packet.pad_to_multiple(bus).split_at(bus)
        time, rule = pair(stream.time, stream.lane, outer), "LANE-004"
    for what, got, want in (("OutTime", op.time, time), ("OutPacket", op.packet, packet)):
        if not got.equivalent(want):
            raise RuleViolation(
                rule,
                f"{op.mode} {what} is {got}",
                expected=str(want),
                got=str(got),
                nearest=f"OutTime {time}, OutPacket {packet}",
                also=("LANE-001",),
            )
    open_slots = stream.details.inner_time if isinstance(stream.details, OpenSlots) else 1
    capacity = slot_capacity(op.mode, lanes, columns, hw)
    if open_slots > capacity:
        raise RuleViolation(
            "TIMERED-006",
            f"{open_slots} sums are open at once, {op.mode} with {lanes} lanes and {columns} columns has {capacity} slots",
            expected=f"InnerTime of at most {capacity}",
            got=open_slots,
            nearest=_other_mode(op.mode, open_slots, lanes, columns, hw),
        )
    flits = drain_flits(op.mode, stream.time.size, lanes, columns, hw)
    return Step(
        op,
        stream,
        replace(stream, position="Contract", time=op.time, packet=op.packet, lane=None, details=None),
        LaneConfig(op.mode, bus),
        {"cells_per_chunk": cells_per_slot(op.mode, lanes, columns, hw), "slot_capacity": capacity, "out_flits": flits},
        StageCost(cycles=flits),
    )


def _other_mode(mode: str, open_slots: int, lanes: int, columns: int, hw: Hardware) -> str:
    other = MODES[1 - MODES.index(mode)]
    if slot_capacity(other, lanes, columns, hw) >= open_slots:
        return other
    return "put the summed factor of Time further inside"


def folded_lanes(values: Values, config: LaneConfig) -> Values:
    """Lanes moved into the packet (Interleaved) or into time (Sequential); unused bus positions are undefined."""

    def fold(array: Any) -> Any:
        *spatial, lanes, time, columns = array.shape
        if config.mode == "Interleaved":
            moved = np.moveaxis(array, -3, -1).reshape(*spatial, time * columns, lanes)
        else:
            short = -columns % config.bus_elements
            wide = np.pad(array, [(0, 0)] * (array.ndim - 1) + [(0, short)])
            moved = np.moveaxis(wide, -3, -2).reshape(
                *spatial, time * lanes * (columns + short) // config.bus_elements, config.bus_elements
            )
        missing = config.bus_elements - moved.shape[-1]
        return np.pad(moved, [(0, 0)] * (moved.ndim - 1) + [(0, missing)]) if missing else moved

    return Values(fold(values.data), fold(values.defined))

"""What a transfer costs in cycles, under the constants of a profile, and the terms that explain it (VT-020 to VT-030, DMA-034)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from math import ceil

import numpy as np

from tcptune.errors import WorkError
from tcptune.ir.types import TensorType
from tcptune.model.hardware import RNGD
from tcptune.model.memory import hbm, pcie
from tcptune.model.memory.command_model import stride0
from tcptune.model.memory.descriptors import engine_commands
from tcptune.model.memory.engine_model import EngineTime, engine_time
from tcptune.model.memory.layout import box_runs
from tcptune.model.memory.requests import EngineShare, Ints, RequestStream
from tcptune.model.memory.streams import request_streams
from tcptune.model.memory.transfer import Move, prove_move
from tcptune.model.timing.calibration import DmaTiming
from tcptune.model.timing.calibration import profile as profile_of

_BOUND_SAMPLE_PACKETS = 512
"""Packets of every engine that the HBM bound looks at."""


class Unpriced(WorkError):
    """A transfer that no data prices; a search must not use it."""


@dataclass(frozen=True)
class TransferPrice:
    """Price of one transfer.

    Attributes:
        cycles: duration; whole cycles.
        delivered_bytes: bytes written at the destination.
        pieces: contiguous pieces of all slices together.
        packets: packets of all engines together.
        run_bytes: contiguous bytes of a piece (the shortest, where boxes differ).
        descriptors: commands of all engines together.
        utilisation: share of the peak bandwidth as the vendor reports it (VT-028).
        terms: (what, cycles) in the order they add up; the last rows say what bounds the slowest engine.
    """

    cycles: int
    delivered_bytes: int
    pieces: int
    packets: int
    run_bytes: int
    descriptors: int
    utilisation: float
    terms: tuple[tuple[str, float], ...]


def price_transfer(source: TensorType, dest: TensorType, profile: str = "vendor", hbm_base: int = 0) -> TransferPrice:
    """Price of moving `source` to `dest`.

    Args:
        profile: ``vendor`` or ``manual``.
        hbm_base: byte address of the HBM side; its alignment matters, and which channels it meets.

    Raises:
        RuleViolation: DMA-002, the move is none.
        Unpriced: no data prices such a transfer in this profile (HBM to HBM in ``vendor``).
        InputError: no such profile.
    """
    return _price(prove_move(source, dest), profile, hbm_base)


@lru_cache(maxsize=65_536)
def _price(move: Move, profile: str, hbm_base: int) -> TransferPrice:
    timing = profile_of(profile).dma
    tiers = (move.source.tier, move.dest.tier)
    if tiers in (("Hbm", "Dm"), ("Dm", "Hbm")):
        return _stream_price(move, timing, hbm_base)
    if "Host" in tiers:
        cycles = pcie.transfer_cycles(move.delivered_bytes)
        return _simple(move, float(cycles), (("data at the PCIe rate", float(cycles)),), 1)
    if tiers == ("Dm", "Dm"):
        return _dm_copy_price(move, timing)
    return _hbm_copy_price(move, timing, profile, hbm_base)


def stream_cycles(streams: tuple[RequestStream, ...], timing: DmaTiming, store: bool) -> tuple[float, tuple[tuple[str, float], ...], int]:
    """Cycles of a transfer between HBM and DM given as request streams of one chip, its terms and its packets.

    Args:
        store: DM to HBM.
    """
    start = (timing.start_store if store else timing.start_load).value
    skew, body, commands, packets = _slowest_engine(streams, timing, store)
    line = _shared_line_cycles(streams, timing) if store else 0.0
    engine = skew + max(body, line) + start * (commands - 1)
    bound = _hbm_bound(streams, timing)
    terms = (
        ("start", start),
        ("later start of the slowest engine", skew),
        ("packets of the slowest engine", body),
        ("line shared by pieces below 8 bytes", max(0.0, line - body)),
        ("further commands", start * (commands - 1)),
        ("busiest HBM channel beyond that", max(0.0, bound - engine)),
    )
    return start + max(engine, bound), tuple(t for t in terms if t[1]), packets


def _slowest_engine(streams: tuple[RequestStream, ...], timing: DmaTiming, store: bool) -> tuple[float, float, int, int]:
    """Skew, packet time and paid commands of the engine that ends last, and the packets of all.

    An engine serves its parts of the streams one after another.
    """
    start = (timing.start_store if store else timing.start_load).value
    bodies: dict[tuple[int, int], float] = {}
    commands: dict[tuple[int, int], int] = {}
    packets = 0
    for stream in streams:
        packet_bytes = stream.packet_bytes(int(timing.max_packet.value))
        alike: dict[bytes, EngineTime] = {}
        for share in sorted(stream.engines, key=lambda s: -_skew(s, timing)):
            found = alike.get(share.signature)
            if found is None:
                found = alike[share.signature] = engine_time(stream, share, packet_bytes, timing, store)
            place = (share.cluster, share.engine_in_cluster)
            bodies[place] = bodies.get(place, 0.0) + found.cycles
            commands[place] = commands.get(place, 0) + 1 if timing.pays_every_command else 1
            packets += found.packets
    ends = {place: body + _skew_of(*place, timing=timing) + start * commands[place] for place, body in bodies.items()}
    last = max(ends, key=lambda place: ends[place])
    return _skew_of(*last, timing=timing), bodies[last], commands[last], packets


def _skew(share: EngineShare, timing: DmaTiming) -> float:
    return _skew_of(share.cluster, share.engine_in_cluster, timing=timing)


def _skew_of(cluster: int, engine: int, *, timing: DmaTiming) -> float:
    """How much later than engine 0 of cluster 0 an engine starts."""
    return max(timing.skew_engine.value * engine, timing.skew_cluster.value * cluster)


def _shared_line_cycles(streams: tuple[RequestStream, ...], timing: DmaTiming) -> float:
    """Time of the line with the most pieces below a bank word: such pieces are written one at a time, all engines together."""
    most = max((_pieces_in_a_line(s) for s in streams if s.run_bytes < RNGD.dma_alignment_bytes), default=0)
    return most * (timing.sub_word_piece.value + timing.sub_word_queue.value * most)


def _pieces_in_a_line(stream: RequestStream) -> int:
    """Most pieces that start in one line, among the pieces that loops of less than a line reach from the first one."""
    line = RNGD.request_bytes
    offsets = np.zeros(1, np.int64)
    for loop in stream.loops:
        if 0 < abs(loop.stride) < line:
            near = np.arange(min(loop.count, line // abs(loop.stride)), dtype=np.int64) * loop.stride
            offsets = (offsets[:, None] + near[None, :]).reshape(-1)[:line]
    starts = (stream.bases[:, None] + offsets[None, :]).reshape(-1) // line
    return int(np.unique(starts, return_counts=True)[1].max())


def _hbm_bound(streams: tuple[RequestStream, ...], timing: DmaTiming) -> float:
    """Time of the busiest HBM channel, from a sample of every engine's requests in issue order; 0 where the profile charges none."""
    if timing.hbm_request is None:
        return 0.0
    return sum(_extrapolated_bound(*_sampled_addresses(stream, int(timing.max_packet.value)), timing) for stream in streams)


def _extrapolated_bound(addresses: Ints, share: float, timing: DmaTiming) -> float:
    """Channel time of all requests when `addresses` are their first `share`: the second half of the sample sets the rate of the rest.

    The first half opens the rows, which the manual does not charge.
    """
    whole = hbm.profile_spread(addresses, timing)
    if whole is None or share >= 1:
        return 0.0 if whole is None else whole.address_level_cycles
    half = hbm.profile_spread(addresses[: len(addresses) // 2], timing)
    grown = whole.address_level_cycles - (half.address_level_cycles if half is not None else 0.0)
    return whole.address_level_cycles + grown * 2 * (1 - share) / share


def _sampled_addresses(stream: RequestStream, limit: int) -> tuple[Ints, float]:
    """Line addresses of requests, engines in turns, and which share of all requests they are."""
    packet = stream.packet_bytes(limit)
    per_run = -(-stream.run_bytes // packet)
    rounds = stream.pieces_per_place * per_run
    widest = max(len(s.bases) for s in stream.engines)
    taken = min(rounds, max(1, _BOUND_SAMPLE_PACKETS // widest))
    piece, part = np.divmod(np.arange(taken, dtype=np.int64), per_run)
    offset = stream.offsets(piece) + part * packet
    columns = [(offset[:, None] + s.bases[None, :]).reshape(-1) for s in stream.engines]
    grid = np.full((max(len(c) for c in columns), len(columns)), -1, np.int64)
    for place, column in enumerate(columns):
        grid[: len(column), place] = column
    flat = grid.reshape(-1)
    starts = flat[flat >= 0]
    lines = np.arange(-(-packet // RNGD.request_bytes), dtype=np.int64) * RNGD.request_bytes
    return np.asarray((starts[:, None] + lines[None, :]).reshape(-1)), taken / rounds


def utilisation(delivered_bytes: int, cycles: int) -> float:
    """Utilisation as the vendor's schedules report it: whole cycles at the reported peak over the duration (VT-028)."""
    return -(-delivered_bytes // RNGD.reported_peak_bytes_per_cycle) / cycles


def whole_cycles(cycles: float) -> int:
    """The next whole cycle; sums of constants carry floating-point noise far below one."""
    return ceil(cycles - _NOISE_CYCLES)


_NOISE_CYCLES = 1e-6


def _stream_price(move: Move, timing: DmaTiming, hbm_base: int) -> TransferPrice:
    store = move.dest.tier == "Hbm"
    chips = request_streams(move, hbm_base)
    priced = [stream_cycles(streams, timing, store) for streams in chips]
    slowest = max(range(len(priced)), key=lambda i: priced[i][0])
    cycles, terms, _ = priced[slowest]
    streams = [s for chip in chips for s in chip]
    return TransferPrice(
        cycles=whole_cycles(cycles),
        delivered_bytes=move.delivered_bytes,
        pieces=sum(s.pieces for s in streams),
        packets=sum(p[2] for p in priced),
        run_bytes=min(s.run_bytes for s in streams),
        descriptors=sum(len(s.engines) for s in streams),
        utilisation=utilisation(move.delivered_bytes, whole_cycles(cycles)),
        terms=terms,
    )


def _dm_copy_price(move: Move, timing: DmaTiming) -> TransferPrice:
    """DM to DM: the vendor's few moves run at one rate; the manual adds reads and writes inside a cluster (DMA-025, VT-030)."""
    start = timing.start_load.value
    if timing.dm_copy_bytes_per_cycle is not None:
        data = move.delivered_bytes / timing.dm_copy_bytes_per_cycle.value
        return _simple(move, start + data, (("start", start), ("data at the rate of DM to DM moves", data)), 1)
    engines = engine_commands(move)
    totals = [sum(start + c.data_cycles for c in commands) for commands in engines.values()]
    commands = list(engines.values())[totals.index(max(totals))]
    terms = (
        ("start of every command", start * len(commands)),
        ("reads and writes of the slowest engine", max(totals) - start * len(commands)),
    )
    return _simple(move, max(totals), terms, sum(len(c) for c in engines.values()))


def _hbm_copy_price(move: Move, timing: DmaTiming, profile: str, hbm_base: int) -> TransferPrice:
    """HBM to HBM on one engine: reads and writes add up (DMA-035).

    Raises:
        Unpriced: in a profile without an HBM price.
    """
    if timing.hbm_request is None:
        raise Unpriced(
            f"the {profile} profile has no price for HBM to HBM transfers: no published schedule holds one",
            hint="go through DM, or price it with the manual profile",
        )
    engines = engine_commands(move, hbm_base)
    commands = [c for part in engines.values() for c in part]
    start = timing.start_load.value
    engine = sum(start + c.data_cycles for c in commands)
    bound = 0.0
    for pick_read in (True, False):
        for command in commands:
            sample = min(command.packets, _BOUND_SAMPLE_PACKETS * RNGD.engines_per_cluster)
            addresses = command.addresses(command.read if pick_read else command.write, count=sample)
            bound += _extrapolated_bound(addresses, sample / command.packets, timing)
    terms = (("start of every command", start * len(commands)), ("reads and writes", engine - start * len(commands)))
    beyond = max(0.0, start + bound - engine)
    return _simple(move, engine + beyond, (*terms, ("busiest HBM channel beyond that", beyond)), len(commands))


def _simple(move: Move, cycles: float, terms: tuple[tuple[str, float], ...], descriptors: int) -> TransferPrice:
    runs = [box_runs(box, move.source, move.dest) for box in move.boxes]
    pieces = [r.box.cells // r.live_elements for r in runs]
    run_bytes = [r.run_bytes(move.dest.dtype) for r in runs]
    packets = sum(n * -(-b // stride0(b)) for n, b in zip(pieces, run_bytes, strict=True))
    whole = whole_cycles(cycles)
    return TransferPrice(
        cycles=whole,
        delivered_bytes=move.delivered_bytes,
        pieces=sum(pieces),
        packets=packets,
        run_bytes=min(run_bytes),
        descriptors=descriptors,
        utilisation=utilisation(move.delivered_bytes, whole),
        terms=tuple(t for t in terms if t[1]),
    )

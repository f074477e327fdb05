"""The one timing model of DMA engines (VT-020 to VT-028): packets of one engine pushed through a small in-order window.

Engines run beside one another and a transfer ends with its slowest engine. The packets of an engine come in rounds, one packet of
every slice a round. A packet costs the lines it touches; the next one is issued after a spacing that depends on how far apart
they are; a line that was just read, a full window, a busy port or a busy slice hold it back. Stores add read-modify-write of
lines they write in part.

Long transfers are sampled: some rounds at the start, then chunks spread over the rest, whose steady rate is extrapolated. The number of
simulated packets is bounded, so the work of pricing does not grow with the bytes that move.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tcptune.model.hardware import RNGD
from tcptune.model.memory.requests import EngineShare, Ints, RequestStream
from tcptune.model.timing.calibration import DmaTiming

MAX_EXACT_PACKETS = 1_536
"""Engines with no more packets than this are simulated packet by packet."""

_CHUNKS = 6
_CHUNK_PACKETS = 48
_SPACING_SAMPLE_ROUNDS = 64
_GOLDEN = 0.6180339887498949


Floats = npt.NDArray[np.float64]


class _Rates(NamedTuple):
    """The constants as plain numbers, for the inner loop."""

    issue_far: float
    issue_mid: float
    issue_near: float
    near_distance: int
    mid_distance: int
    same_line: float
    same_line_bytes: int
    window: int
    latency: float
    port: float
    slice_gap: float
    partial_write_64: float
    partial_write_8: float
    partial_write_join: float
    partial_write_tail: float


@lru_cache(maxsize=8)
def _rates(timing: DmaTiming) -> _Rates:
    values = {name: getattr(timing, name).value for name in _Rates._fields}
    whole = {name: int(values[name]) for name in ("near_distance", "mid_distance", "same_line_bytes", "window")}
    return _Rates(**{**values, **whole})


@dataclass(frozen=True, slots=True)
class EngineTime:
    """Time of one engine from its first request to its last finished packet."""

    cycles: float
    packets: int
    lines: float
    """Lines touched, estimated from the sample where the engine was sampled."""
    simulated_packets: int


class _Packets(NamedTuple):
    """Packets in order: issue spacing before each, lines it touches, the part of a line that it starts in, its slice."""

    spacing: Floats
    lines: Ints
    start: Ints
    slices: Ints


class _Walk(NamedTuple):
    """The packets of one engine: stream, slices and bases in issue order, packet bytes, rounds (packets of a slice)."""

    stream: RequestStream
    slices: Ints
    bases: Ints
    packet_bytes: int
    rounds: int
    store: bool


def _packets(walk: _Walk, rounds: Ints, rates: _Rates) -> _Packets:
    """Packets of the given rounds, in order."""
    stream, packet_bytes = walk.stream, walk.packet_bytes
    per_run = -(-stream.run_bytes // packet_bytes)
    piece, part = np.divmod(rounds, per_run)
    offset = stream.offsets(piece) + part * packet_bytes
    length = np.minimum(packet_bytes, stream.run_bytes - part * packet_bytes)
    address = (offset[:, None] + walk.bases[None, :]).reshape(-1)
    length = np.repeat(length, len(walk.bases))
    line = RNGD.request_bytes
    lines = (address + length - 1) // line - address // line + 1
    spacing = np.zeros(len(address))
    apart = np.abs(address[1:] - address[:-1])
    beyond_near = np.where(apart < rates.mid_distance, rates.issue_mid, rates.issue_far)
    spacing[1:] = np.where(apart < rates.near_distance, rates.issue_near, beyond_near) * lines[:-1]
    if walk.store:
        hold, join = _partial_write_costs(address, length, rates)
        spacing[1:] = np.maximum(spacing[1:], hold[:-1]) + join[:-1]
    return _Packets(spacing, lines, address // rates.same_line_bytes, np.tile(walk.slices, len(rounds)))


def _partial_write_costs(address: Ints, length: Ints, rates: _Rates) -> tuple[Floats, Floats]:
    """Per packet: least spacing to the next one, and what it adds, for packets that do not fill their lines."""
    line = RNGD.request_bytes
    partial = (address % line != 0) | (length % line != 0)
    joins = length >= RNGD.dma_alignment_bytes
    joins[1:] &= address[1:] == address[:-1] + length[:-1]
    quarter = line // 4
    on_quarters = (address % quarter == 0) & (length % quarter == 0)
    hold = np.where(on_quarters, rates.partial_write_64, rates.partial_write_8)
    return np.where(partial & ~joins, hold, 0.0), np.where(partial & joins, rates.partial_write_join, 0.0)


def _simulate(packets: _Packets, marks: list[int], rates: _Rates) -> list[float]:
    """Time at which everything before each mark (packet number) has finished."""
    window, latency = rates.window, rates.latency
    half = RNGD.slices_per_dmn
    columns = [
        packets.spacing,
        packets.start,
        packets.slices,
        *(packets.lines * r for r in (rates.same_line, rates.port, rates.slice_gap)),
    ]
    rows = list(zip(*(column.tolist() for column in columns), strict=True))
    line_free: dict[int, float] = {}
    port_free = [0.0] * RNGD.dmns_per_engine
    slice_free = [0.0] * RNGD.slices_per_engine
    done = deque([0.0] * window, maxlen=window)
    times = []
    issue = retired = 0.0
    first = 0
    for mark in marks:
        for spacing, start, s, line_time, port_time, slice_time in rows[first:mark]:
            issue += spacing
            if done[0] > issue:
                issue = done[0]
            begin = line_free.get(start, 0.0)
            if begin < issue:
                begin = issue
            line_free[start] = begin + line_time
            arrive = begin + latency
            port = s // half
            if port_free[port] > arrive:
                arrive = port_free[port]
            if slice_free[s] > arrive:
                arrive = slice_free[s]
            slice_free[s] = arrive + slice_time
            arrive += port_time
            port_free[port] = arrive
            if arrive > retired:
                retired = arrive
            done.append(retired)
        times.append(retired)
        first = mark
    return times


def _chunks(rounds: int, width: int) -> tuple[int, int, int, list[int]]:
    """Sampling plan: rounds at the start, warm-up and measured rounds of a chunk, first round of every chunk."""
    step = max(1, -(-_CHUNK_PACKETS // width))
    head, warm, measured = 2 * step, step, 2 * step
    rest = rounds - head
    starts = []
    for j in range(_CHUNKS):
        jitter = (j + 1) * _GOLDEN % 1.0
        first = head + int((j + jitter) * rest / _CHUNKS)
        starts.append(min(max(first - warm, 0), rounds - warm - measured))
    return head, warm, measured, starts


def engine_time(stream: RequestStream, share: EngineShare, packet_bytes: int, timing: DmaTiming, store: bool) -> EngineTime:
    """Time of one engine's part of a stream (without startup and skew).

    Args:
        packet_bytes: bytes of one packet; the last packet of a run may be shorter.
        store: DM to HBM, which adds read-modify-write.
    """
    rates = _rates(timing)
    slices, bases = share.in_issue_order()
    rounds = stream.pieces_per_place * -(-stream.run_bytes // packet_bytes)
    walk = _Walk(stream, slices, bases, packet_bytes, rounds, store)
    total = rounds * len(bases)
    tail = _tail(stream, share, rates) if store else 0.0
    if total <= MAX_EXACT_PACKETS:
        packets = _packets(walk, np.arange(rounds), rates)
        return EngineTime(_simulate(packets, [total], rates)[0] + tail, total, float(packets.lines.sum()), total)
    return _sampled_time(walk, rates, tail)


def _sampled_time(walk: _Walk, rates: _Rates, tail: float) -> EngineTime:
    """Time from the first rounds in full and the steady rate of chunks spread over the rest."""
    width = len(walk.bases)
    head, warm, measured, starts = _chunks(walk.rounds, width)
    chosen = np.concatenate([np.arange(head), *(np.arange(s, s + warm + measured) for s in starts)])
    packets = _packets(walk, chosen, rates)
    marks = [head * width]
    for _ in starts:
        marks += [marks[-1] + warm * width, marks[-1] + (warm + measured) * width]
    times = _simulate(packets, marks, rates)
    steady = sum(after - before for before, after in zip(times[1::2], times[2::2], strict=True))
    spaced = sum(float(packets.spacing[a:b].sum()) for a, b in zip(marks[1::2], marks[2::2], strict=True))
    sampled_rounds = len(starts) * measured
    per_round = steady / sampled_rounds * _spacing_correction(walk, rates, spaced / sampled_rounds)
    total = walk.rounds * width
    cycles = times[0] + per_round * (walk.rounds - head) + tail
    return EngineTime(cycles, total, float(packets.lines.mean()) * total, len(packets.lines))


def _spacing_correction(walk: _Walk, rates: _Rates, spaced: float) -> float:
    """Issue spacing of a round over many rounds, relative to `spaced`, that of the few simulated ones."""
    count = min(walk.rounds - 1, _SPACING_SAMPLE_ROUNDS)
    jitter = np.arange(1, count + 1) * _GOLDEN % 1.0
    first = ((np.arange(count) + jitter) * ((walk.rounds - 1) / count)).astype(np.int64)
    pairs = np.stack([first, first + 1], axis=1).reshape(-1)
    spacing = _packets(walk, pairs, rates).spacing.reshape(count, 2, -1)[:, 1]
    mean = float(spacing.sum()) / count
    return mean / spaced if spaced > 0 else 1.0


def _tail(stream: RequestStream, share: EngineShare, rates: _Rates) -> float:
    """What a store with any partial line pays once at its end."""
    line = RNGD.request_bytes
    strided = any(loop.stride % line for loop in stream.loops if loop.count > 1)
    return rates.partial_write_tail if stream.run_bytes % line or strided or (share.bases % line).any() else 0.0

"""The one timing model of DMA engines (VT-020 to VT-028): packets of one engine pushed through a small in-order window.

Engines run beside one another and a transfer ends with its slowest engine. The packets of an engine come in rounds, one packet of
every slice a round. A packet costs the lines it touches; the next one is issued after a spacing that depends on how far apart
they are; a line that was just read, a full window, a busy port or a busy slice hold it back. Stores add read-modify-write of
lines they write in part.

Long transfers are sampled: some rounds at the start, then chunks spread over the rest, whose steady rate is extrapolated. The number of
simulated packets is bounded, so the work of pricing does not grow with the bytes that move.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tcptune.model.calibration import DmaTiming
from tcptune.model.hardware import RNGD
from tcptune.model.memory.requests import EngineShare, Ints, RequestStream

MAX_EXACT_PACKETS = 1_024
"""Engines with no more packets than this are simulated packet by packet."""

_CHUNKS = 5
_CHUNK_PACKETS = 48
_SPACING_SAMPLE_ROUNDS = 64
_GOLDEN = 0.6180339887498949


Floats = npt.NDArray[np.float64]


class _Rates(NamedTuple):
    """The constants as plain numbers, for the inner loop."""

    issue_far: float
    issue_mid: float
    issue_near: float
    near_block: int
    mid_distance: int
    same_line: float
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
    whole = {name: int(values[name]) for name in ("near_block", "mid_distance", "window")}
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
    """Packets in order: issue spacing before each, lines it touches, its start line, its slice."""

    spacing: Floats
    lines: Ints
    start_line: Ints
    slices: Ints


def _packets(stream: RequestStream, share: EngineShare, packet_bytes: int, rounds: Ints, rates: _Rates, store: bool) -> _Packets:
    """Packets of the given rounds, in order."""
    per_run = -(-stream.run_bytes // packet_bytes)
    piece, part = np.divmod(rounds, per_run)
    offset = stream.offsets(piece) + part * packet_bytes
    length = np.minimum(packet_bytes, stream.run_bytes - part * packet_bytes)
    address = (offset[:, None] + share.bases[None, :]).reshape(-1)
    length = np.repeat(length, len(share.bases))
    line = RNGD.request_bytes
    start_line = address // line
    lines = (address + length - 1) // line - start_line + 1
    spacing = np.zeros(len(address))
    block = address // rates.near_block
    apart = np.where(np.abs(np.diff(address)) <= rates.mid_distance, rates.issue_mid, rates.issue_far)
    spacing[1:] = np.where(block[1:] == block[:-1], rates.issue_near, apart) * lines[:-1]
    if store:
        hold, join = _partial_write_costs(address, length, rates)
        spacing[1:] = np.maximum(spacing[1:], hold[:-1]) + join[:-1]
    return _Packets(spacing, lines, start_line, np.tile(share.slices, len(rounds)))


def _partial_write_costs(address: Ints, length: Ints, rates: _Rates) -> tuple[Floats, Floats]:
    """Per packet: least spacing to the next one, and what it adds, for packets that do not fill their lines."""
    line = RNGD.request_bytes
    partial = (address % line != 0) | (length % line != 0)
    joins = np.r_[True, address[1:] == address[:-1] + length[:-1]] & (length >= RNGD.dma_alignment_bytes)
    quarter = line // 4
    on_quarters = (address % quarter == 0) & (length % quarter == 0)
    hold = np.where(on_quarters, rates.partial_write_64, rates.partial_write_8)
    return np.where(partial & ~joins, hold, 0.0), np.where(partial & joins, rates.partial_write_join, 0.0)


def _simulate(packets: _Packets, marks: list[int], rates: _Rates) -> list[float]:
    """Time at which everything before each mark (packet number) has finished."""
    spacing, lines, start_line, slices = (a.tolist() for a in packets)
    window, latency, same_line, port_rate, slice_rate = rates.window, rates.latency, rates.same_line, rates.port, rates.slice_gap
    half = RNGD.slices_per_dmn
    line_free: dict[int, float] = {}
    port_free = [0.0] * RNGD.dmns_per_engine
    slice_free = [0.0] * RNGD.slices_per_engine
    done = [0.0] * len(spacing)
    times = []
    issue = retired = 0.0
    first = 0
    for mark in marks:
        for i in range(first, mark):
            issue += spacing[i]
            if i >= window and done[i - window] > issue:
                issue = done[i - window]
            k, line, s = lines[i], start_line[i], slices[i]
            begin = line_free.get(line, 0.0)
            if begin < issue:
                begin = issue
            line_free[line] = begin + same_line * k
            arrive = begin + latency
            port = s // half
            if port_free[port] > arrive:
                arrive = port_free[port]
            if slice_free[s] > arrive:
                arrive = slice_free[s]
            slice_free[s] = arrive + slice_rate * k
            arrive += port_rate * k
            port_free[port] = arrive
            if arrive > retired:
                retired = arrive
            done[i] = retired
        times.append(retired)
        first = mark
    return times


def _chunks(rounds: int, width: int) -> tuple[int, int, int, list[int]]:
    """Sampling plan: rounds at the start, warm-up and measured rounds of a chunk, first round of every chunk."""
    step = max(1, -(-_CHUNK_PACKETS // width))
    head, warm, measured = 2 * step, step, step
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
    rounds = stream.pieces_per_place * -(-stream.run_bytes // packet_bytes)
    width = len(share.bases)
    total = rounds * width
    if total <= MAX_EXACT_PACKETS:
        packets = _packets(stream, share, packet_bytes, np.arange(rounds), rates, store)
        cycles = _simulate(packets, [total], rates)[0]
        return EngineTime(cycles + _tail(stream, share, rates, store), total, float(packets.lines.sum()), total)
    head, warm, measured, starts = _chunks(rounds, width)
    chosen = np.concatenate([np.arange(head), *(np.arange(s, s + warm + measured) for s in starts)])
    packets = _packets(stream, share, packet_bytes, chosen, rates, store)
    marks = [head * width]
    for _ in starts:
        marks += [marks[-1] + warm * width, marks[-1] + (warm + measured) * width]
    times = _simulate(packets, marks, rates)
    steady = sum(after - before for before, after in zip(times[1::2], times[2::2], strict=True))
    spaced = sum(float(packets.spacing[a:b].sum()) for a, b in zip(marks[1::2], marks[2::2], strict=True))
    per_round = (
        steady
        / (len(starts) * measured)
        * _spacing_correction(stream, share, packet_bytes, rates, store, spaced / (len(starts) * measured))
    )
    cycles = times[0] + per_round * (rounds - head)
    lines = float(packets.lines.mean()) * total
    return EngineTime(cycles + _tail(stream, share, rates, store), total, lines, len(packets.lines))


def _spacing_correction(stream: RequestStream, share: EngineShare, packet_bytes: int, rates: _Rates, store: bool, spaced: float) -> float:
    """Issue spacing of a round over many rounds, relative to `spaced`, that of the few simulated ones."""
    rounds = stream.pieces_per_place * -(-stream.run_bytes // packet_bytes)
    count = min(rounds - 1, _SPACING_SAMPLE_ROUNDS)
    first = ((np.arange(count) + np.arange(1, count + 1) * _GOLDEN % 1.0) * ((rounds - 1) / count)).astype(np.int64)
    pairs = np.stack([first, first + 1], axis=1).reshape(-1)
    spacing = _packets(stream, share, packet_bytes, pairs, rates, store).spacing.reshape(count, 2, -1)[:, 1]
    mean = float(spacing.sum()) / count
    return mean / spaced if spaced > 0 else 1.0


def _tail(stream: RequestStream, share: EngineShare, rates: _Rates, store: bool) -> float:
    """What a store with any partial line pays once at its end."""
    line = RNGD.request_bytes
    if not store:
        return 0.0
    partial = stream.run_bytes % line or (share.bases % line).any() or any(loop.stride % line for loop in stream.loops if loop.count > 1)
    return rates.partial_write_tail if partial else 0.0

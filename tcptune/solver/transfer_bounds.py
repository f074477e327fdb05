"""Lower bounds of one DMA between HBM and DM for whole columns of placements, from the engine model of `model.memory.engine_model`.

An engine issues its packets in order. Every packet touches a line at least, the next packet follows after the issue spacing of those lines,
and the last one still needs its latency and its port. So an engine that moves `L` lines takes at least

    skew + latency + port + rate * (L - 1)

and no sharing of the lines among the engines of a cluster makes the slowest one faster than their average. A slice, and a port of 32
slices, take their lines one after another as well. Fewer lines than bytes / 256, or than pieces, are never touched.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tcptune.ir.types import DType
from tcptune.model.hardware import RNGD
from tcptune.model.timing.calibration import DmaTiming
from tcptune.solver.tables import Ints, PlacementTable

Floats = npt.NDArray[np.float64]

_LINES_OF_A_PACKET = 2
"""Lines beyond its length in lines that an unaligned packet touches at most."""


@dataclass(frozen=True)
class Traffic:
    """What a transfer moves at least, one entry a placement.

    Attributes:
        first_bytes, last_bytes: live bytes of the first and the last cluster, copies included; 0 in the last where one cluster works.
        run_bytes: longest piece that is contiguous on both sides.
        places: slices of a cluster that take part, at most.
        span_bytes: bytes of the whole tensor in HBM, its copies there included: no two packets lie further apart.
    """

    first_bytes: Floats
    last_bytes: Floats
    run_bytes: Floats
    places: Ints
    span_bytes: int | Floats

    def lines(self, moved_bytes: Floats) -> Floats:
        """Lines that packets touch at least: whole lines, or one for each piece that is shorter."""
        return np.asarray(moved_bytes / np.minimum(self.run_bytes, RNGD.request_bytes), dtype=np.float64)


def load_bound(traffic: Traffic, timing: DmaTiming) -> Floats:
    """Cycles of a load."""
    spans, place = np.unique(np.broadcast_to(traffic.span_bytes, traffic.places.shape), return_inverse=True)
    rate = np.array([issue_rate(int(span), timing) for span in spans])[place]
    return timing.start_load.value + _clusters_bound(traffic, rate, timing)


def store_bound(traffic: Traffic, timing: DmaTiming, partial: npt.NDArray[np.bool_]) -> Floats:
    """Cycles of a store.

    A piece below a line is written in part: it holds the engine (`partial_write_64` at least), or joins the one before it, which then
    lies right before it and is followed at the near rate. An engine with any partial line pays `partial_write_tail` once.

    Args:
        partial: where every engine writes some line in part.
    """
    far = issue_rate(int(np.max(traffic.span_bytes)), timing)
    held = max(far, min(timing.partial_write_64.value, timing.partial_write_8.value))
    near = np.where(traffic.run_bytes < timing.near_distance.value, timing.issue_near.value, far)
    short = traffic.run_bytes < RNGD.request_bytes
    rate = np.where(short, np.minimum(held, np.maximum(near, far) + timing.partial_write_join.value), far)
    tail = np.where(short | partial, timing.partial_write_tail.value, 0.0)
    return np.asarray(timing.start_store.value + _clusters_bound(traffic, rate, timing) + tail, dtype=np.float64)


def shared_line_bound(pieces: Floats, timing: DmaTiming) -> Floats:
    """Cycles of a store with `pieces` pieces below 8 bytes in one line: they are written one at a time, all engines together."""
    return np.asarray(
        timing.start_store.value + pieces * (timing.sub_word_piece.value + timing.sub_word_queue.value * pieces), dtype=np.float64
    )


def issue_rate(span_bytes: int, timing: DmaTiming) -> float:
    """Least cycles a line: packets of a small tensor are never far enough apart for the cheaper classes (VT-020, VT-021)."""
    near, middle = timing.issue_near.value, timing.issue_mid.value
    if span_bytes <= timing.near_distance.value:
        return near
    if span_bytes <= timing.mid_distance.value:
        return min(middle, near)
    return min(timing.issue_far.value, middle, near)


def _longest_packet(timing: DmaTiming) -> float:
    """Lines of one packet at most; those of the last one pass at the port's rate."""
    return timing.max_packet.value / RNGD.request_bytes + _LINES_OF_A_PACKET


def engine_bound(lines: float, rate: float, timing: DmaTiming) -> float:
    """Cycles of one engine for at least `lines` lines at `rate` cycles a line, without startup and skew; the last packet passes a port."""
    longest = _longest_packet(timing)
    lost = max(0.0, rate - timing.port.value) * min(lines - 1, longest - 1)
    return timing.latency.value + timing.port.value + rate * (lines - 1) - lost


def _clusters_bound(traffic: Traffic, rate: Floats, timing: DmaTiming) -> Floats:
    """The slower of the first and the last cluster, without startup and tail."""
    first = _cluster_bound(traffic, traffic.first_bytes, rate, timing, 0)
    last = _cluster_bound(traffic, traffic.last_bytes, rate, timing, RNGD.clusters_per_chip - 1)
    return np.where(traffic.last_bytes > 0, np.maximum(first, last), first)


def _cluster_bound(traffic: Traffic, moved_bytes: Floats, rate: Floats, timing: DmaTiming, cluster: int) -> Floats:
    lines = np.maximum(1.0, traffic.lines(moved_bytes))
    skews = sorted(
        max(timing.skew_engine.value * engine, timing.skew_cluster.value * cluster) for engine in range(RNGD.engines_per_cluster)
    )
    least = timing.latency.value + timing.port.value
    longest = _longest_packet(timing)
    lost = np.maximum(0.0, rate - timing.port.value) * np.minimum(lines - 1, longest - 1)
    shared = []
    for count in range(1, RNGD.engines_per_cluster + 1):
        average = (sum(skews[:count]) + rate * lines) / count + least - rate - lost
        usable = traffic.places >= count
        shared.append(np.where(usable, np.maximum(average, skews[count - 1] + least), np.inf))
    engines = np.minimum.reduce(shared)
    ports = np.minimum(RNGD.engines_per_cluster * RNGD.dmns_per_engine, traffic.places)
    port = timing.latency.value + timing.port.value * lines / ports
    slices = least + timing.slice_gap.value * (lines / traffic.places - longest)
    return np.asarray(np.maximum.reduce([engines, port, skews[0] + slices]), dtype=np.float64)


# what placements make of a tensor


def cluster_shares(table: PlacementTable, axes: tuple[str, ...]) -> tuple[Floats, Floats]:
    """Shares of a tensor's live cells in the first and in the last cluster; 0 in the last where only one cluster works."""
    first, last = np.ones(table.rows), np.ones(table.rows)
    for axis in axes:
        clusters = table.column(axis, "cluster")
        size = table.family.workload.size(axis)
        part = table.column(axis, "slice") * table.column(axis, "in_slice")
        split = clusters > 1
        first = np.where(split, np.minimum(1.0, part / size), first)
        last = np.where(split, np.maximum(0.0, (size - (clusters - 1) * part) / size), last)
    return first, np.where(table.live_clusters > 1, last, 0.0)


def run_bytes(table: PlacementTable, axes: tuple[str, ...], element: DType, *, gathered: bool, stored: bool = False) -> Floats:
    """Longest piece that is contiguous both in HBM and in a slice: rows join where the slice holds them in full.

    `gathered`: the slices of the innermost axis are brought together first. `stored`: a piece ends where a slice holds more positions of an
    axis than HBM does, because nothing is written for them; a load runs on over such padding.
    """
    workload = table.family.workload
    whole_block = (summed(table, "slice") == 1) & (summed(table, "cluster") == 1)  # else parts of it may lie in other slices
    run, joins = np.ones(table.rows), np.ones(table.rows, dtype=bool)
    for axis in reversed(axes):
        held = table.column(axis, "in_slice").astype(np.float64)
        spread = table.column(axis, "slice") * table.column(axis, "cluster")
        rows = workload.size(axis)
        if axis == axes[-1]:
            if gathered:
                held = held * table.column(axis, "slice")
                spread = table.column(axis, "cluster")
            rows = workload.row_elements(axes, element)
            held = np.where(spread == 1, np.maximum(held, rows), held)
        padded = (held > rows) & whole_block if stored else np.zeros(table.rows, dtype=bool)
        run = np.where(joins, run * np.where(padded, rows, held), run)
        joins = joins & (spread == 1) & ~padded
    return np.asarray(run * element.bits / 8, dtype=np.float64)


def summed(table: PlacementTable, level: str) -> Ints:
    """Parts of one sum over slices or clusters; 1 where no summed axis lies over them."""
    return table.product([a for a in table.axes if a not in table.family.workload.output], level)

"""Prices of operations given as rows, in the form of the published schedules (VT-001 to VT-027, VT-040).

A row names its operation and the sizes that decide its cost: a DMA says which slices take which HBM bytes, a pass how many flits, steps
or bytes it streams. A row that leaves out what its price needs is skipped, with the reason.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from collections.abc import Mapping as Dict
from typing import Any

import numpy as np

from tcptune.errors import TcptuneError
from tcptune.model.hardware import RNGD
from tcptune.model.memory.price import stream_cycles, whole_cycles
from tcptune.model.memory.requests import Loop, RequestStream
from tcptune.model.timing.calibration import PassConstants, Profile
from tcptune.model.timing.kernels import kernel_timing

Row = Dict[str, Any]

LARGEST = 2**40
"""Largest size a row may name."""


class Skipped(TcptuneError):
    """A row that cannot be priced; the message says why."""


def price_row(row: Row, timing: Profile) -> int:
    """Whole cycles of one row.

    Raises:
        Skipped: the row is no operation, or lacks what its price needs.
    """
    operation = row.get("op")
    if not isinstance(operation, str):
        raise Skipped("the row names no op")
    for pattern, pricer in _PRICERS:
        if pattern.search(operation):
            return whole_cycles(pricer(row, timing))
    raise Skipped(f"{operation} is not an operation with a price")


def _size(row: Row, name: str, default: int | None = None) -> int:
    value = row.get(name, default)
    if value is None:
        raise Skipped(f"the row lacks {name}")
    if isinstance(value, bool) or not isinstance(value, int) or not 0 < value <= LARGEST:
        raise Skipped(f"{name} is {value!r}, not a size")
    return value


def _says(row: Row, *words: str) -> bool:
    text = f"{row.get('op', '')} {row.get('description', '')}".lower()
    return any(word in text for word in words)


# --- transfers -----------------------------------------------------------------------------------------------------------------------
def _dma(row: Row, timing: Profile) -> float:
    store = "store" in str(row["op"]).lower()
    cycles, _, _ = stream_cycles((row_stream(row),), timing.dma, store)
    return cycles


def row_stream(row: Row) -> RequestStream:
    """Request stream of a DMA row.

    The layout is either ``slices``, ``slice_stride``, ``source`` and ``pitch_bytes`` (``row_pitch_bytes`` too for several pieces a slice),
    or loops: ``slice_loops`` [count, slice step, HBM step] and ``piece_loops`` [count, HBM step], outermost first, and ``cluster_stride``.

    Raises:
        Skipped: the layout is missing or impossible.
    """
    stream = _loops_stream(row) if "slice_loops" in row else _pitch_stream(row)
    first = int(stream.bases.min()) + sum(min(0, (loop.count - 1) * loop.stride) for loop in stream.loops)
    last = int(stream.bases.max()) + sum(max(0, (loop.count - 1) * loop.stride) for loop in stream.loops) + stream.run_bytes
    if first < 0 or last > RNGD.hbm_bytes:
        raise Skipped(f"the pieces reach from byte {first} to {last}, outside the HBM")
    return stream


def _pitch_stream(row: Row) -> RequestStream:
    count, step = _size(row, "slices"), _size(row, "slice_stride", 1)
    if (count - 1) * step >= RNGD.slices_per_cluster:
        raise Skipped(f"{count} slices at a distance of {step} do not fit into {RNGD.slices_per_cluster}")
    clusters = _size(row, "clusters", 1)
    if clusters > RNGD.clusters_per_chip:
        raise Skipped(f"{clusters} clusters are more than a chip has")
    run, per_slice = _size(row, "run_bytes"), _size(row, "per_slice_bytes")
    if per_slice % run:
        raise Skipped(f"{per_slice} bytes a slice are no whole number of pieces of {run}")
    pieces = per_slice // run
    live = np.arange(count, dtype=np.int64)
    number = np.concatenate([live + count * c for c in range(clusters)])
    pitch = _size(row, "pitch_bytes", per_slice)
    loops: tuple[Loop, ...] = ()
    starts = _block(row)(number, live, clusters) * pitch
    if pieces > 1:
        between = _size(row, "row_pitch_bytes")
        beside = max(1, between // pitch)
        starts = number % beside * pitch + number // beside * pieces * between
        loops = (Loop(pieces, between),)
    cluster_of = np.repeat(np.arange(clusters, dtype=np.int64), count)
    return RequestStream(cluster_of, np.tile(live * step, clusters), starts, loops, run)


def _loops_stream(row: Row) -> RequestStream:
    slices, bases = np.zeros(1, np.int64), np.zeros(1, np.int64)
    for count, step, stride in _loops(row, "slice_loops", 3):
        if count * max(len(slices), abs(step)) > RNGD.slices_per_cluster:
            raise Skipped(f"{count} slices at a distance of {step} do not fit into {RNGD.slices_per_cluster}")
        turn = np.arange(count, dtype=np.int64)
        slices = (slices[:, None] + turn * step).reshape(-1)
        bases = (bases[:, None] + turn * stride).reshape(-1)
    if not 0 <= slices.min() <= slices.max() < RNGD.slices_per_cluster:
        raise Skipped(f"slices reach {slices.max()}, beyond {RNGD.slices_per_cluster}")
    clusters = np.zeros(len(slices), np.int64)
    if "cluster_stride" in row:
        second = _loops({"loop": [[2, row["cluster_stride"]]]}, "loop", 2)[0][1]
        clusters, slices, bases = np.repeat([0, 1], len(slices)), np.tile(slices, 2), np.concatenate([bases, bases + second])
    pieces = tuple(Loop(count, stride) for count, stride in _loops(row, "piece_loops", 2))
    return RequestStream(clusters, slices, bases, pieces, _size(row, "run_bytes"))


def _loops(row: Row, name: str, width: int) -> list[tuple[int, ...]]:
    """Loops of a row: lists of `width` whole numbers, the first of them a count."""
    raw = row.get(name, [])
    if not isinstance(raw, list) or len(raw) > RNGD.sequencer_max_entries:
        raise Skipped(f"{name} is not a list of at most {RNGD.sequencer_max_entries} loops")
    loops = []
    for loop in raw:
        numbers = loop if isinstance(loop, list) else []
        whole = all(isinstance(n, int) and not isinstance(n, bool) and abs(n) <= LARGEST for n in numbers)
        if len(numbers) != width or not whole or numbers[0] < 1:
            raise Skipped(f"{name} holds {loop!r}, not {width} whole numbers with a count first")
        loops.append(tuple(numbers))
    return loops


def _block(row: Row) -> Callable[[Any, Any, int], Any]:
    """Which block of the source every place reads, from its number over all clusters and in its own."""
    source = row.get("source")
    if source == "distinct":
        return lambda number, live, clusters: number
    if source == "replicated":
        return lambda number, live, clusters: number * 0
    found = re.fullmatch(r"block = slice (div|mod) (\d{1,9})", source) if isinstance(source, str) else None
    if found is None or int(found.group(2)) == 0:
        raise Skipped(f"the source layout {source!r} is not known" if source is not None else "the row lacks source")
    n = int(found.group(2))
    if found.group(1) == "div":
        return lambda number, live, clusters: np.tile(live // n, clusters)
    return lambda number, live, clusters: np.tile(live % n, clusters)


# --- Tensor Unit passes --------------------------------------------------------------------------------------------------------------
def _constants(timing: Profile) -> PassConstants:
    if timing.passes is None:
        raise Skipped(f"the {timing.name} profile prices passes from their stages, which a row does not give")
    return timing.passes


def _uses(row: Row, context: str) -> bool:
    contexts = row.get("contexts", ())
    return isinstance(contexts, list | tuple) and context in contexts


def _sub(row: Row, timing: Profile) -> float:
    """Staging of a register file, or a vector pass on Sub (VT-001, VT-007)."""
    c = _constants(timing)
    start = c.vector if _uses(row, "VectorEngine") else c.stage
    return start.value + _size(row, "per_slice_bytes") / c.sub_fetch_bytes_per_cycle.value


def _switch(row: Row, timing: Profile) -> float:
    """A switch pass (VT-010)."""
    c = _constants(timing)
    ring = _size(row, "ring")
    whole = c.whole_ring.value if ring == RNGD.slices_per_cluster else 0.0
    return c.stage.value + ring * _size(row, "time", 1) * _size(row, "flits") + whole


def _main(row: Row, timing: Profile) -> float:
    """Contraction, copy, vector or transpose pass on Main (VT-002, VT-004 to VT-006, VT-009, VT-012)."""
    c = _constants(timing)
    if "flits" in row:
        contracts = "lanes" in row or _says(row, "contraction")
        return (c.contract if contracts else c.copy).value + _size(row, "flits")
    if "time_steps" in row:
        steps = _size(row, "time_steps")
        if _uses(row, "SubContext"):
            return (c.vector_to_vrf if _uses(row, "VectorEngine") else c.stage).value + steps
        group = _reduce_group(row)
        if group:
            return c.inter_slice_reduce.value + max(c.reduce_steps_least.value, steps) + c.reduce_per_slice.value * group
        return c.vector.value + steps
    if _says(row, "transpose"):
        return c.transpose.value + _written_rows(row)
    raise Skipped("the row lacks flits or time_steps")


def _reduce_group(row: Row) -> int:
    """Slices of an inter-slice reduce; 0 where the pass has none."""
    if "reduce_slices" in row:
        return _size(row, "reduce_slices")
    found = re.search(r"(\d{1,4})-slice inter-slice reduce", str(row.get("description", "")))
    return int(found.group(1)) if found else 0


def _written_rows(row: Row) -> int:
    """Rows that a transpose writes."""
    if "rows" in row:
        return _size(row, "rows")
    found = re.search(r"into (\d{1,6}) rows", str(row.get("description", "")))
    if found is None:
        raise Skipped("the row lacks rows")
    return int(found.group(1))


def _sync(row: Row, timing: Profile) -> float:
    """The sync that closes a kernel (VT-040)."""
    if not _says(row, "sync"):
        raise Skipped("bookkeeping of the schedule, no operation")
    return kernel_timing(timing).closing_sync.value


_PRICERS: tuple[tuple[re.Pattern[str], Callable[[Row, Profile], float]], ...] = (
    (re.compile(r"^Dma(Load|Store)$"), _dma),
    (re.compile(r"^Sub\b"), _sub),
    (re.compile(r"^Switch\b"), _switch),
    (re.compile(r"^Main\b"), _main),
    (re.compile(r"^(Core|ExplicitSync)$"), _sync),
)

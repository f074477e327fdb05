"""Prices of operations given as rows, in the form of the published schedules (VT-001 to VT-027, VT-040).

A row names its operation and the sizes that decide its cost: a DMA says which slices take which HBM bytes, a pass how many flits, steps
or bytes it streams. A row that leaves out what its price needs is skipped, with the reason.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from tcptune.exec.row_sizes import (
    LARGEST,
    Row,
    Skipped,
    cast_packets,
    fetched_elements,
    optional_size,
    reduced_slices,
    result_dtype,
    says,
    size,
    staged_bytes,
    streamed_flits,
    transfer_sizes,
    vector_steps,
    written_rows,
)
from tcptune.model.hardware import RNGD
from tcptune.model.memory.price import stream_cycles, whole_cycles
from tcptune.model.memory.requests import Loop, RequestStream
from tcptune.model.timing.calibration import Constant, Profile
from tcptune.model.timing.kernels import kernel_timing
from tcptune.model.timing.pass_work import PassWork, pass_duration


def price_row(row: Row, timing: Profile) -> int:
    """Whole cycles of one row.

    Raises:
        Skipped: the row is no operation, or lacks what its price needs.
    """
    operation = row.get("op")
    if not isinstance(operation, str):
        raise Skipped("the row names no op")
    if _uses(row, "Noop"):
        raise Skipped("bookkeeping of the schedule, no operation")
    for pattern, pricer in _PRICERS:
        if pattern.search(operation):
            return whole_cycles(pricer(row, timing))
    raise Skipped(f"{operation} is not an operation with a price")


# --- transfers -----------------------------------------------------------------------------------------------------------------------
def _dma(row: Row, timing: Profile) -> float:
    if _uses(row, "PcieDmaEngine"):
        return _host(row, timing)
    kernel = kernel_timing(timing)
    if says(row, "lookup table"):
        return _inserted(kernel.table_load, timing)
    if says(row, "bitmap", "switch configuration"):
        return _inserted(kernel.bitmap_load, timing)
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
    stream = _loops_stream(row) if "slice_loops" in row else _pitch_stream(transfer_sizes(row))
    first = int(stream.bases.min()) + sum(min(0, (loop.count - 1) * loop.stride) for loop in stream.loops)
    last = int(stream.bases.max()) + sum(max(0, (loop.count - 1) * loop.stride) for loop in stream.loops) + stream.run_bytes
    if first < 0 or last > RNGD.hbm_bytes:
        raise Skipped(f"the pieces reach from byte {first} to {last}, outside the HBM")
    return stream


def _pitch_stream(row: Row) -> RequestStream:
    if row.get("slices") is None:
        raise Skipped("the row lacks slices: which of them take which bytes of HBM decides the price")
    count, step = size(row, "slices"), size(row, "slice_stride", 1)
    if (count - 1) * step >= RNGD.slices_per_cluster:
        raise Skipped(f"{count} slices at a distance of {step} do not fit into {RNGD.slices_per_cluster}")
    clusters = size(row, "clusters", 1)
    if clusters > RNGD.clusters_per_chip:
        raise Skipped(f"{clusters} clusters are more than a chip has")
    run, per_slice = size(row, "run_bytes"), size(row, "per_slice_bytes")
    if per_slice % run:
        raise Skipped(f"{per_slice} bytes a slice are no whole number of pieces of {run}")
    pieces = per_slice // run
    live = np.arange(count, dtype=np.int64)
    number = np.concatenate([live + count * c for c in range(clusters)])
    pitch = size(row, "pitch_bytes", per_slice)
    loops: tuple[Loop, ...] = ()
    starts = _block(row)(number, live, clusters) * pitch
    if pieces > 1:
        between = size(row, "row_pitch_bytes")
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
    return RequestStream(clusters, slices, bases, pieces, size(row, "run_bytes"))


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
def _pass(row: Row, timing: Profile) -> float:
    if timing.passes is None:
        raise Skipped(f"the {timing.name} profile prices passes from their stages, which a row does not give")
    if _is_table_store(row):
        return _inserted(kernel_timing(timing).table_store, timing)
    return pass_duration(_pass_work(row), timing.passes).cycles


def _is_table_store(row: Row) -> bool:
    return says(row, "stotab", "table store")


def _uses(row: Row, context: str) -> bool:
    contexts = row.get("contexts", ())
    return context in contexts if isinstance(contexts, list | tuple) else context == contexts


def _pass_work(row: Row) -> PassWork:
    """What the pass of a row streams, as far as the row says.

    Understood are ``flits`` or ``per_slice_bytes``, ``time_steps`` of the Vector Engine or ``elements`` with their ``dtype``, ``packets``
    (cast on Sub), ``ring``, ``time`` and ``flits`` of a switch, ``rows`` of a transpose, ``reduce_slices``; ``elements`` of a
    table lookup or a cast on Sub, or what is fetched and its ``dtype``.

    Raises:
        Skipped: nothing of it, or not what decides the cost of what it does.
    """
    on_sub = _on_sub(row)
    ring, steps = optional_size(row, "ring"), vector_steps(row)
    looked_up = fetched_elements(row) if says(row, "lookup") else None
    work = PassWork(
        rule="VT-004",
        vector=_uses(row, "VectorEngine"),
        flits=None if on_sub or steps is not None else streamed_flits(row),
        fetched_bytes=staged_bytes(row) if on_sub else None,
        cast_packets=cast_packets(row) if on_sub else None,
        looked_up=looked_up,
        looked_up_bf16=result_dtype(row) == "bf16",
        switch_rounds=ring * size(row, "time", 1) * size(row, "flits") if ring is not None else None,
        whole_ring=ring == RNGD.slices_per_cluster,
        rows=written_rows(row),
        steps=steps,
        reduced_slices=reduced_slices(row),
    )
    counts = (work.flits, work.steps, work.fetched_bytes, work.cast_packets, work.looked_up, work.switch_rounds, work.rows)
    if all(count is None for count in counts):
        raise Skipped("the row lacks per_slice_bytes" if on_sub else "the row lacks flits or time_steps, which set the pace of a pass")
    if says(row, "lookup") and looked_up is None:
        raise Skipped("the row lacks elements, which set the pace of a table lookup")
    rule = _rule(row, work, on_sub=on_sub)
    if steps is None and says(row, "vector", " ve ") and rule in ("VT-003", "VT-004", "VT-010", "VT-012"):
        raise Skipped("the row lacks time_steps, which set the pace of vector work")
    return replace(work, rule=rule)


def _on_sub(row: Row) -> bool:
    """Whether a pass runs on the Sub context; staging does, whatever the row calls it."""
    return re.match(r"Sub|Sto(Trf|Vrf|Tab)", str(row["op"]), re.IGNORECASE) is not None


def _rule(row: Row, work: PassWork, *, on_sub: bool) -> str:
    """The rule of the start: by the most specific thing that the row says of its pass."""
    if on_sub:
        return "VT-008" if work.cast_packets is not None else "VT-007" if work.vector else "VT-001"
    if work.reduced_slices is not None:
        return "VT-009"
    if "lanes" in row or says(row, "contract", "matmul"):
        return "VT-002"
    if _uses(row, "SubContext"):
        return "VT-006"
    if work.switch_rounds is not None and work.vector and not says(row, "cast"):
        return "VT-011"
    if work.steps is not None:
        return "VT-011" if work.switch_rounds is not None else "VT-005"
    if work.rows is not None and work.rows > max(work.flits or 0, work.switch_rounds or 0):
        return "VT-012"
    return "VT-010" if work.switch_rounds is not None else "VT-003" if work.looked_up is not None else "VT-004"


def _inserted(constant: Constant, timing: Profile) -> float:
    """Cycles of work that the compiler inserts."""
    if not constant.value:
        raise Skipped(f"the {timing.name} profile states no time for it")
    return constant.value


# --- what the compiler inserts -------------------------------------------------------------------------------------------------------
def _core(row: Row, timing: Profile) -> float:
    """Syncs, guards and the work of tile views (VT-029, VT-040, VT-045)."""
    kernel = kernel_timing(timing)
    if says(row, "sync") and says(row, "index", "gather", "scatter"):
        return _inserted(kernel.gather_after_sync, timing)
    if says(row, "sync"):
        return _inserted(kernel.closing_sync, timing)
    if says(row, "dramreuse", "dram reuse"):
        return _inserted(kernel.buffer_reuse, timing)
    if says(row, "address"):
        return _inserted(kernel.view_address, timing)
    if says(row, "bind", "merge"):
        return _inserted(kernel.view_bind, timing)
    raise Skipped("bookkeeping of the schedule, no operation")


def _index_stage(row: Row, timing: Profile) -> float:
    """Copy of a gather's index out of DM."""
    return _inserted(kernel_timing(timing).index_stage, timing)


def _dm_copy(row: Row, timing: Profile) -> float:
    """DM to DM: all moves at one rate (VT-030)."""
    if timing.dma.dm_copy_bytes_per_cycle is None:
        raise Skipped(f"the {timing.name} profile prices DM to DM moves from their commands, which a row does not give")
    moved = optional_size(row, "bytes") or size(row, "slices") * size(row, "clusters", 1) * size(row, "per_slice_bytes")
    return timing.dma.start_load.value + moved / timing.dma.dm_copy_bytes_per_cycle.value


def _indexed(row: Row, timing: Profile) -> float:
    raise Skipped("no published schedule gives an indexed transfer with its layout")


def _host(row: Row, timing: Profile) -> float:
    raise Skipped("no published schedule holds a transfer between host and HBM")


_PRICERS: tuple[tuple[re.Pattern[str], Callable[[Row, Profile], float]], ...] = (
    (re.compile(r"^(Dma|Spilly)(Load|Store)\b", re.IGNORECASE), _dma),
    (re.compile(r"^Dma(Gather|Scatter)\b", re.IGNORECASE), _indexed),
    (re.compile(r"^DmaOther\b", re.IGNORECASE), _index_stage),
    (re.compile(r"^DmaStos\b", re.IGNORECASE), _dm_copy),
    (re.compile(r"^P(cie|dma)", re.IGNORECASE), _host),
    (re.compile(r"^(Sub|Switch|Main|Transpose|CustomBroadcast|Sto(Trf|Vrf|Tab))\b", re.IGNORECASE), _pass),
    (re.compile(r"^(Core|ExplicitSync|DramReuse|SpillySync)\b", re.IGNORECASE), _core),
)

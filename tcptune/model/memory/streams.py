"""Request streams of a proven move: which HBM bytes every slice asks for (DMA-009, DMA-015, DMA-016)."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from tcptune.model.memory.layout import BoxRuns, box_runs
from tcptune.model.memory.requests import Ints, Loop, RequestStream
from tcptune.model.memory.transfer import CHIP, CLUSTER, ELEMENT, SLICE, Move, MoveDigit, Steps


@lru_cache(maxsize=1024)
def request_streams(move: Move, hbm_base: int = 0) -> tuple[tuple[RequestStream, ...], ...]:
    """Streams of every chip that does something different from the others: one stream a box of the move.

    Chips that do the same at the same addresses appear once.

    Args:
        hbm_base: byte address of the HBM tensor.
    """
    to_dm = move.dest.tier == "Dm"
    chips: dict[int, list[RequestStream]] = {}
    for box in move.boxes:
        runs = box_runs(box, move.source, move.dest)
        dm_base = box.dest_base if to_dm else box.source_base
        hbm_start = (box.source_base if to_dm else box.dest_base)[ELEMENT]
        start = hbm_base + move.dest.dtype.bytes_of(hbm_start)
        chips.setdefault(dm_base[CHIP], []).append(_stream(move, runs, dm_base, start, to_dm))
    return tuple(tuple(streams) for streams in chips.values())


def _stream(move: Move, runs: BoxRuns, dm_base: Steps, hbm_start: int, to_dm: bool) -> RequestStream:
    dtype = move.dest.dtype
    clusters, slices, bases = (np.array([v], np.int64) for v in (dm_base[CLUSTER], dm_base[SLICE], 0))
    walk: list[tuple[int, int, int]] = []
    for digit in runs.loops:
        dm, hbm = _sides(digit, to_dm)
        if dm[CHIP]:
            continue
        if dm[CLUSTER] or dm[SLICE]:
            count = np.arange(digit.extent, dtype=np.int64)
            clusters, slices, bases = (
                _spread(values, count, step) for values, step in ((clusters, dm[CLUSTER]), (slices, dm[SLICE]), (bases, hbm[ELEMENT]))
            )
        else:
            walk.append((dm[ELEMENT], hbm[ELEMENT], digit.extent))
    walk.sort(key=lambda step: -step[0])
    loops = tuple(Loop(extent, dtype.bytes_of(stride)) for _, stride, extent in walk)
    starts = hbm_start + bases * dtype.bits // 8
    return RequestStream(clusters, slices, starts, loops, runs.run_bytes(dtype))


def _sides(digit: MoveDigit, to_dm: bool) -> tuple[Steps, Steps]:
    return (digit.dest, digit.source) if to_dm else (digit.source, digit.dest)


def _spread(values: Ints, count: Ints, step: int) -> Ints:
    return np.asarray((values[:, None] + count[None, :] * step).reshape(-1))

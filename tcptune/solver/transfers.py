"""Price of a load or store straight from digits, without building or proving the transfer: ranks candidates before they are compiled."""

from __future__ import annotations

from collections.abc import Mapping as Dict
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from tcptune.ir.mappings.axes import Axes
from tcptune.ir.placement import Digit, merged
from tcptune.ir.types import DType, TensorType
from tcptune.model.engines.dma import check_transfer
from tcptune.model.hardware import RNGD
from tcptune.model.memory.price import price_transfer, stream_cycles, whole_cycles
from tcptune.model.memory.requests import Loop, RequestStream
from tcptune.model.timing.calibration import profile as profile_named

Ints = npt.NDArray[np.int64]

Pitches = tuple[tuple[str, int, int, int], ...]
"""(axis, HBM pitch in elements, live positions, stored positions) of every axis of a tensor, innermost first."""


def pitches(axes: tuple[str, ...], sizes: Dict[str, int], row: int) -> Pitches:
    """Row-major pitches of a tensor over `axes` whose innermost axis is stored with `row` elements."""
    out, pitch = [], 1
    for n, axis in enumerate(reversed(axes)):
        stored = row if n == 0 else sizes[axis]
        out.append((axis, pitch, sizes[axis], stored))
        pitch *= stored
    return tuple(out)


def _positions_of(digits: tuple[Digit, ...], own: Dict[str, tuple[int, int]]) -> tuple[Ints, dict[str, Ints], npt.NDArray[np.bool_]]:
    """HBM offset, coordinates and liveness of every position that `digits` span."""
    coordinates: dict[str, Ints] = {}
    live = np.ones(1, dtype=bool)
    size = 1
    for digit in digits:
        step = np.arange(digit.extent, dtype=np.int64)
        live = np.repeat(live, digit.extent)
        coordinates = {a: np.repeat(c, digit.extent) for a, c in coordinates.items()}
        tiled = np.tile(step, size)
        size *= digit.extent
        if not digit.axis:
            live &= tiled == 0
        elif digit.axis in own:
            coordinates[digit.axis] = coordinates.get(digit.axis, np.zeros(size, dtype=np.int64)) + tiled * digit.stride
    offset = np.zeros(size, dtype=np.int64)
    for axis, values in coordinates.items():
        offset += values * own[axis][0]
    return offset, coordinates, live


@lru_cache(maxsize=65536)
def transfer_cycles(
    clusters: tuple[Digit, ...],
    slices: tuple[Digit, ...],
    element: tuple[Digit, ...],
    hbm: Pitches,
    element_bits: int,
    store: bool,
    profile_name: str = "vendor",
    piece: tuple[Digit, ...] | None = None,
) -> int:
    """Cycles of one DMA between HBM and DM.

    Args:
        clusters, slices, element: levels of the DM side, outermost first; digits of axes that the tensor lacks replicate (loads).
        hbm: layout of the HBM side.
        element_bits: bits of one element.
        piece: innermost digits of the DM side where padding follows them, so that no piece is longer.
    """
    own = {axis: (pitch, size) for axis, pitch, size, _ in hbm}
    offset, coordinates, live = _positions_of((*clusters, *slices), own)
    for axis, values in coordinates.items():
        live = live & (values < own[axis][1])
    places = np.flatnonzero(live)
    per_cluster = RNGD.slices_per_cluster
    loops, run = _walk(element, piece, hbm, element_bits, store)
    stream = RequestStream(places // per_cluster, places % per_cluster, offset[places] * element_bits // 8, loops, run)
    cycles, _, _ = stream_cycles((stream,), profile_named(profile_name).dma, store)
    return whole_cycles(cycles)


def is_aligned(
    clusters: tuple[Digit, ...],
    slices: tuple[Digit, ...],
    element: tuple[Digit, ...],
    hbm: Pitches,
    bits: int,
    piece: tuple[Digit, ...] | None,
) -> bool:
    """Whether a load of whole tensors, given as in `transfer_cycles`, moves whole bank words (DMA-005, DMA-020)."""
    own = {axis: pitch for axis, pitch, _, _ in hbm}
    word_bits = 8 * RNGD.dma_alignment_bytes
    loops, run_bytes = _walk(element, piece, hbm, bits, False)
    starts = [own[d.axis] * d.stride * bits for d in (*clusters, *slices) if d.axis in own and d.extent > 1]
    lengths = [8 * run_bytes] if piece is None else []  # a piece before padding runs on over it
    return not any(n % word_bits for n in (*starts, *(8 * loop.stride for loop in loops if loop.count > 1), *lengths))


def _walk(
    element: tuple[Digit, ...], piece: tuple[Digit, ...] | None, hbm: Pitches, bits: int, store: bool
) -> tuple[tuple[Loop, ...], int]:
    """Loops over pieces and the bytes of one piece; a piece runs over padding of the destination that follows it (DMA-005)."""
    pitch_of = {axis: (pitch, live, stored) for axis, pitch, live, stored in hbm}
    run = 1
    if store and hbm and hbm[0][2] == 1:
        run = hbm[0][3]
    digits = [d for d in merged(element if piece is None else piece) if d.axis in pitch_of]
    while digits:
        pitch, live, stored = pitch_of[digits[-1].axis]
        if pitch * digits[-1].stride != run:
            break
        last = digits.pop()
        whole = last.stride == 1 and last.extent >= live
        run *= stored if store and whole else last.extent
    loops = []
    for d in [*([] if piece is None else merged(element)), *digits]:
        pitch, live, _ = pitch_of[d.axis]
        loops.append(Loop(min(d.extent, -(-live // d.stride)), pitch * d.stride * bits // 8))
    return tuple(loops), max(1, run * bits // 8)


@lru_cache(maxsize=16384)
def proven_cycles(axes: Axes, element: DType, hbm: str, levels: tuple[str, str, str], store: bool, profile: str) -> int:
    """Price of a proven transfer between HBM and DM (cluster, slice, element)."""
    outside = TensorType("Hbm", element, axes.mapping(hbm))
    cluster, slices, inner = (axes.mapping(text) for text in levels)
    inside = TensorType("Dm", element, inner, cluster=cluster, slice=slices)
    source, dest = (inside, outside) if store else (outside, inside)
    check_transfer(source, dest)
    return price_transfer(source, dest, profile).cycles

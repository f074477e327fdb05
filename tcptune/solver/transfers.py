"""Price of a load or store straight from digits, without building or proving the transfer: ranks candidates before they are compiled."""

from __future__ import annotations

from collections.abc import Mapping as Dict
from functools import lru_cache
from math import ceil

import numpy as np
import numpy.typing as npt

from tcptune.ir.placement import Digit, merged
from tcptune.model.calibration import profile as profile_named
from tcptune.model.hardware import RNGD
from tcptune.model.memory.price import stream_cycles
from tcptune.model.memory.requests import Loop, RequestStream

Ints = npt.NDArray[np.int64]
Pitches = tuple[tuple[str, int, int], ...]
"""(axis, HBM pitch in elements, positions that exist) of every axis of a tensor."""


def pitches(axes: tuple[str, ...], sizes: Dict[str, int], row: int) -> Pitches:
    """Row-major pitches of a tensor over `axes` whose innermost axis is stored with `row` elements."""
    out, pitch = [], 1
    for n, axis in enumerate(reversed(axes)):
        stored = row if n == 0 else sizes[axis]
        out.append((axis, pitch, stored))
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
) -> int:
    """Cycles of one DMA between HBM and DM.

    Args:
        clusters, slices, element: levels of the DM side, outermost first; digits of axes that the tensor lacks replicate (loads).
        hbm: layout of the HBM side.
        element_bits: bits of one element.
    """
    own = {axis: (pitch, size) for axis, pitch, size in hbm}
    offset, coordinates, live = _positions_of((*clusters, *slices), own)
    for axis, values in coordinates.items():
        live = live & (values < own[axis][1])
    places = np.flatnonzero(live)
    per_cluster = RNGD.slices_per_cluster
    loops, run = _walk(element, own, element_bits)
    stream = RequestStream(places // per_cluster, places % per_cluster, offset[places] * element_bits // 8, loops, run)
    cycles, _, _ = stream_cycles((stream,), profile_named(profile_name).dma, store)
    return ceil(cycles)


def _walk(element: tuple[Digit, ...], own: Dict[str, tuple[int, int]], bits: int) -> tuple[tuple[Loop, ...], int]:
    """Loops over pieces and the bytes of one contiguous piece."""
    run = 1
    digits = [d for d in merged(element) if d.axis in own]
    while digits and own[digits[-1].axis][0] * digits[-1].stride == run:
        last = digits.pop()
        run *= min(last.extent, -(-own[last.axis][1] // last.stride))
    loops = tuple(Loop(min(d.extent, -(-own[d.axis][1] // d.stride)), own[d.axis][0] * d.stride * bits // 8) for d in digits)
    return loops, max(1, run * bits // 8)

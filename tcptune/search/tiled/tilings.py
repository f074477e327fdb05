"""Every way to cut a workload into tiles: tiles along each axis, their length, the order of the loops, which loops are unrolled."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator

from tcptune.errors import WorkError
from tcptune.exec.lowering.fused_epilogue import operand_dtype
from tcptune.exec.lowering.tiled import cuttable, operand_axes
from tcptune.ir.candidate import TileLoop, Tiles
from tcptune.ir.workload import Workload
from tcptune.model.hardware import RNGD
from tcptune.solver.tiled_bounds import packet_elements

MOST_TILES = 4096
"""Tiles of a kernel at most."""

UNROLLED_TILES = 128
"""Tiles at most that are written out for the scheduler: a few instructions each, scheduled in about a tenth of a second."""

KEPT_UNIT = 32
"""Tiles at most that one iteration of a kept loop writes out, where there are more than `UNROLLED_TILES` in all."""

LONGER = 1.15
"""Length of a tile at most, over an equal share of its axis: what neighbouring tiles share is computed twice."""


def require_room(workload: Workload) -> None:
    """Raises:
    WorkError: inputs, operands of the epilogue and result are larger together than the memory of the chip.
    """
    stored = [(axes, workload.bytes_of(axes, element)) for axes, element in workload.tensors()]
    operands = list(operand_axes(workload).values())[len(workload.inputs) :]
    stored += [(axes, workload.bytes_of(axes, operand_dtype(workload))) for axes in operands]
    needed = sum(size for _, size in stored)
    if needed > RNGD.hbm_bytes:
        axes, largest = max(stored, key=lambda tensor: tensor[1])
        hint = f"all tensors have {needed:,} B, that over {', '.join(axes)} {largest:,} B; HBM {RNGD.hbm_bytes:,} B (HBM-002)"
        raise WorkError(f"{workload.text} is too large for one pass, and for tiles", hint=hint)


def tilings(workload: Workload) -> Iterator[Tiles]:
    """Every tiling of the declared space, fewer tiles first; the first one has no loops: one pass."""
    axes = [axis for axis, size in workload.sizes if size > 1 and cuttable(workload, axis)]
    options = [axis_tiles(workload, axis) for axis in axes]
    found = []
    for chosen in itertools.product(*options):
        cut = {axis: entry for axis, entry in zip(axes, chosen, strict=True) if entry[0] > 1}
        if math.prod(count for count, _ in chosen) <= MOST_TILES:
            found.append(cut)
    for cut in sorted(found, key=lambda c: math.prod(count for count, _ in c.values())):
        kept, summed = ([axis for axis in cut if (axis in workload.output) == is_kept] for is_kept in (True, False))
        for order in ((*a, *b) for a in itertools.permutations(kept) for b in itertools.permutations(summed)):
            yield Tiles(_loops(order, cut), tuple((axis, cut[axis][1]) for axis in order))


def axis_tiles(workload: Workload, axis: str) -> list[tuple[int, int]]:
    """(tiles, length of one) along an axis: every power of two, and the axis in one piece.

    Tiles of a summed axis may not overlap. Between two powers of two that count is taken whose length holds the largest power of two, over
    which slices and packets divide.
    """
    size = workload.size(axis)
    found = [(1, size)]
    if axis not in workload.output:
        return found + _exact_tiles(workload, axis)
    count = 2
    while count <= min(size, MOST_TILES):
        length = _length(workload, axis, count)
        if length is not None:
            found.append((count, length))
        count *= 2
    return found


def _exact_tiles(workload: Workload, axis: str) -> list[tuple[int, int]]:
    """(tiles, length of one) of equal tiles of a summed axis, whole packets where its rows are cut; see `axis_tiles`."""
    size = workload.size(axis)
    unit = packet_elements(workload.dtype) if any(axes[-1] == axis for axes in workload.inputs) else 1
    best: dict[int, int] = {}
    for count in range(2, min(size, MOST_TILES) + 1):
        length = size // count
        if count * length != size or length % unit:
            continue
        window = (count - 1).bit_length()
        if window not in best or length & -length >= (size // best[window]) & -(size // best[window]):
            best[window] = count
    return [(count, size // count) for count in best.values()]


def _length(workload: Workload, axis: str, count: int) -> int | None:
    """The length of `count` equal tiles that cover an axis; they begin on whole words where their rows are cut (DMA-020)."""
    size = workload.size(axis)
    share = -(-size // count)
    innermost = any(axes and axes[-1] == axis for axes in (*workload.inputs, workload.output, *(e.axes for e in workload.epilogue)))
    word = RNGD.dma_alignment_bytes * 8 // min(workload.dtype.bits, workload.out_dtype.bits) if innermost else 1
    fitting = [
        length
        for length in range(share, min(size, math.floor(LONGER * share)) + 1)
        if (size - length) % (count - 1) == 0 and length % word == 0 and (size - length) // (count - 1) % word == 0
    ]
    return min(fitting, key=lambda length: (-math.gcd(length, packet_elements(workload.dtype)), length), default=None)


def _loops(order: tuple[str, ...], cut: dict[str, tuple[int, int]]) -> tuple[TileLoop, ...]:
    """Loops over the tiles of each axis; the outer ones are kept where there are too many tiles to write all of them out."""
    counts = [cut[axis][0] for axis in order]
    if math.prod(counts) <= UNROLLED_TILES:
        return tuple(TileLoop(axis, count) for axis, count in zip(order, counts, strict=True))
    loops: list[TileLoop] = []
    room = KEPT_UNIT
    for axis, count in reversed(list(zip(order, counts, strict=True))):
        inner = math.gcd(count, room)  # counts are powers of two
        if inner > 1:
            loops.insert(0, TileLoop(axis, inner))
        if count > inner:
            loops.insert(0, TileLoop(axis, count // inner, unroll=False))
        room = room // inner if count == inner else 1
    return tuple(loops)

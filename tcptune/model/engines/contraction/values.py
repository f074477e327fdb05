"""Values of a contraction without its outer product: sums of strided products, bit for bit or by matrix products (CE-005, CE-013).

A legal contraction is a sum over loops that walk both operands with constant strides (`model.engines.contraction.loops`).
`exact` multiplies and adds in the order of the hardware: a balanced tree over the inner loops of the packet, then one addition after the
other in the order of Time. `fast` rearranges the loops into a batched matrix product; floats then differ in rounding, integers do not.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import cached_property
from math import prod
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt
from numpy.lib.stride_tricks import as_strided

from tcptune.model.engines.contraction.loops import Contraction, Loop
from tcptune.model.numerics.elements import convert, numpy_dtype, time_sum, tree_sum
from tcptune.model.values import Values

if TYPE_CHECKING:
    from tcptune.ir.types import DType
    from tcptune.model.stage import Step

Array = npt.NDArray[Any]
Mode = Literal["exact", "fast"]

BLOCK_ELEMENTS = 1 << 18
"""Products that are held at once in exact mode: few enough to stay in the cache."""

ONE_THREAD_PRODUCTS, THREADED_PRODUCTS, SHORTEST_RUN = 1 << 18, 1 << 26, 32
"""Multiplications up to which OpenBLAS uses one thread, from which several pay, and the shortest sum worth a call of its own."""

TRANSPOSED_ROWS = 16
"""Rows that are transposed at once."""

RUNS_WORTH_THREADS = 8
"""Runs of slices from which on they are shared among threads."""

OPERAND_ELEMENTS: dict[Mode, int] = {"exact": 1 << 22, "fast": 1 << 20}
"""Elements of both operands that are widened at once: slices are computed in runs, long ones for numpy, short ones for the cache."""


# --- the two modes ----------------------------------------------------------------------------------------------------------------


def contract_fused(stream: Values, weight: Values, steps: Sequence[Step], mode: Mode = "exact") -> Values:
    """Values behind the last of `steps`, a checked run of contract_outer, contract_packet, contract_time and contract_lane.

    Args:
        stream: collected flits, shape (chip, cluster, slice, time, packet).
        weight: the TRF tensor, shape (chip, cluster, slice, lane, element).
        steps: the run, from contract_outer on; it may stop early.
        mode: ``exact`` gives the bits of the hardware; ``fast`` uses matrix products, with |error| <= K 2^-24 sum |a b| for floats.

    Returns:
        Shape (chip, cluster, slice, lane, time, packet) before contract_lane, without the lane after it.
    """
    result = _contract(Contraction.of(steps), stream, weight, mode)
    if steps[-1].op.NAME == "contract_lane":
        from tcptune.model.engines.contraction.reduce import folded_lanes

        return folded_lanes(result, steps[-1].config)
    return result


def _contract(work: Contraction, stream: Values, weight: Values, mode: Mode) -> Values:
    spatial, lanes = stream.data.shape[:3], weight.data.shape[3]
    places = prod(spatial)
    x, x_known = (a.reshape(places, -1) for a in (stream.data, stream.defined))
    w, w_known = (a.reshape(places, lanes, -1) for a in (weight.data, weight.defined))
    busy = np.flatnonzero(x_known.any(axis=1) & w_known.any(axis=(1, 2)))
    shape = (lanes, *(loop.size for loop in work.kept))
    data = np.zeros((places, *shape), numpy_dtype(work.accumulator))
    known = np.zeros((places, *shape), np.bool_)
    mode = mode if work.accumulator.is_float else "fast"
    compute = _fast if mode == "fast" else _exact
    run = max(OPERAND_ELEMENTS[mode] // (x.shape[1] + lanes * w.shape[2]), 1)

    def compute_run(start: int) -> None:
        chosen: Any = busy[start : start + run]
        if chosen[-1] - chosen[0] + 1 == chosen.size:
            chosen = slice(int(chosen[0]), int(chosen[-1]) + 1)
        with np.errstate(invalid="ignore", over="ignore", under="ignore"):
            data[chosen] = _summed(compute, np.add, work, x[chosen], w[chosen])
        known[chosen] = _summed(_known, np.logical_and, work, x_known[chosen], w_known[chosen])

    starts = range(0, busy.size, run)
    if len(starts) < RUNS_WORTH_THREADS:
        for start in starts:
            compute_run(start)
    else:  # runs write slices of their own, so their order does not matter; numpy lets go of the interpreter in its loops
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            list(pool.map(compute_run, starts))
    data, known = (a.reshape(*spatial, lanes, work.result_time, work.result_columns) for a in (data, known))
    if work.time_known is not None:
        known &= work.time_known[:, None]
    missing = work.declared_columns - work.result_columns
    if missing:
        data, known = (np.pad(a, [(0, 0)] * 5 + [(0, missing)]) for a in (data, known))
    return Values(data, known)


def _summed(compute: Callable[[Contraction, Array, Array], Array], join: np.ufunc, work: Contraction, x: Array, w: Array) -> Array:
    """The result of all loops at once, or of one position of OutTime after the other where they have no common loops."""
    if work.steps is None:
        return compute(work, x, w)
    one = replace(work, time=(), steps=None)
    kept = work.time[0].size
    shape = (x.shape[0], w.shape[1], kept, *(loop.size for loop in work.columns))
    total = np.full(shape, join is np.logical_and, np.bool_ if join is np.logical_and else numpy_dtype(work.accumulator))
    for stream, weight, slot in work.steps:
        total[:, :, slot] = join(total[:, :, slot], compute(one, x[:, stream:], w[:, :, weight:]))
    return total


def _walk(array: Array, loops: Sequence[Loop], which: Literal["stream", "weight"], lead: int = 1) -> Array:
    """A view of `array` (leading levels, flat elements) with one axis a loop; no data is copied."""
    step = array.strides[lead]
    shape = (*array.shape[:lead], *(loop.size for loop in loops))
    strides = (*array.strides[:lead], *(getattr(loop, which) * step for loop in loops))
    return as_strided(array, shape=shape, strides=strides, writeable=False)


def _known(work: Contraction, x: Array, w: Array) -> Array:
    """A sum is known where everything in it is."""
    summed = [loop for loop in (*work.time, *work.tree) if not loop.kept]
    return _all_known(x, work.kept, summed, "stream", 1)[:, None] & _all_known(w, work.kept, summed, "weight", 2)


def _all_known(known: Array, kept: Sequence[Loop], summed: Sequence[Loop], which: Literal["stream", "weight"], lead: int) -> Array:
    """Whether all elements of the sums are known, repeated loops walked once."""
    once = [Loop(loop.size if getattr(loop, which) else 1, loop.stream, loop.weight, True) for loop in kept]
    view = _walk(known, [*once, *(loop for loop in summed if getattr(loop, which))], which, lead)
    found = np.asarray(view.all(axis=tuple(range(lead + len(kept), view.ndim))))
    return np.broadcast_to(found, (*known.shape[:lead], *(loop.size for loop in kept)))


def _exact(work: Contraction, x: Array, w: Array) -> Array:
    """Sums in hardware order; spatial positions are innermost so that every numpy pass is long and contiguous."""
    wide_x = _places_last(convert(x, work.stream_type, work.accumulator))
    wide_w = _places_last(convert(w, work.weight_type, work.accumulator))
    summed = [loop for loop in work.time if not loop.kept]
    order = [*summed, *work.tree, *work.kept]
    x_view = _loops_first(wide_x[None], order, "stream")
    w_view = _loops_first(wide_w, order, "weight")
    shape = (wide_w.shape[0], *(loop.size for loop in work.kept), x.shape[0])
    total = np.zeros(shape, numpy_dtype(work.accumulator))
    leaves = prod(loop.size for loop in work.tree)
    blocks = _blocks(shape, leaves)
    buffers = [np.empty(leaves * max(_elements(block, shape) for block in blocks) // n, total.dtype) for n in (1, 2)]
    for block in blocks:
        target = total[block]
        tree_block = (*((slice(None),) * len(work.tree)), *block)
        for step in np.ndindex(*(loop.size for loop in summed)):
            xs, ws = x_view[step][_clipped(tree_block, x_view[step].shape)], w_view[step][tree_block]
            products = buffers[0][: leaves * target.size].reshape(*(loop.size for loop in work.tree), *target.shape)
            np.multiply(xs, ws, out=products)
            target += _tree_in(buffers, leaves, target.size).reshape(target.shape)
    return np.moveaxis(total, -1, 0)


def _places_last(array: Array) -> Array:
    """The first axis moved to the end, in runs of few rows: rows a power of two apart would drive each other out of the cache."""
    moved = np.empty((*array.shape[1:], array.shape[0]), array.dtype)
    for first in range(0, array.shape[0], TRANSPOSED_ROWS):
        rows = slice(first, first + TRANSPOSED_ROWS)
        moved[..., rows] = np.moveaxis(array[rows], 0, -1)
    return moved


def _tree_in(buffers: list[Array], leaves: int, width: int) -> Array:
    """`tree_sum` of `leaves` rows of `width` elements that lie in the first buffer, without new memory."""
    source, other = buffers
    while leaves > 1:
        rows = source[: leaves * width].reshape(leaves, width)
        leaves //= 2
        np.add(rows[0::2], rows[1::2], out=other[: leaves * width].reshape(leaves, width))
        source, other = other, source
    return source[:width]


def _elements(block: tuple[slice, ...], shape: tuple[int, ...]) -> int:
    return prod(len(range(*part.indices(size))) for part, size in zip(block, shape, strict=True))


def _loops_first(array: Array, order: Sequence[Loop], which: Literal["stream", "weight"]) -> Array:
    """View of (lane, element, place) as (summed loops…, tree…, lane, kept…, place)."""
    step, kept_from = array.strides[1], next((i for i, loop in enumerate(order) if loop.kept), len(order))
    sizes = [loop.size for loop in order]
    strides = [getattr(loop, which) * step for loop in order]
    sizes[kept_from:kept_from] = [array.shape[0]]
    strides[kept_from:kept_from] = [array.strides[0]]
    return as_strided(array, (*sizes, array.shape[2]), (*strides, array.strides[2]), writeable=False)


def _clipped(index: tuple[slice, ...], shape: tuple[int, ...]) -> tuple[slice, ...]:
    """The same block of an array whose lane axis may have one position only."""
    return tuple(slice(None) if size == 1 else part for part, size in zip(index, shape, strict=True))


def _blocks(shape: tuple[int, ...], products: int) -> list[tuple[slice, ...]]:
    """Blocks of the result whose products fit `BLOCK_ELEMENTS`: whole inner axes, a run of one axis, single positions outside it."""
    room = max(BLOCK_ELEMENTS // products, 1)
    axis, inner = len(shape), 1
    while axis and inner * shape[axis - 1] <= room:
        axis -= 1
        inner *= shape[axis]
    if axis == 0:
        return [tuple(slice(None) for _ in shape)]
    run = max(room // inner, 1)
    rest = tuple(slice(None) for _ in shape[axis:])
    blocks = []
    for outer in np.ndindex(*shape[: axis - 1]):
        single = tuple(slice(i, i + 1) for i in outer)
        blocks += [(*single, slice(start, start + run), *rest) for start in range(0, shape[axis - 1], run)]
    return blocks


def _fast(work: Contraction, x: Array, w: Array) -> Array:
    """Batched matrix products; integers in a float type that holds every partial sum exactly, then wrapped to i32."""
    summed = [loop for loop in (*work.time, *work.tree) if not loop.kept]
    kind = np.dtype(np.float32) if work.accumulator.is_float else _integer_carrier(work, summed)
    both = [loop for loop in summed if loop.stream and loop.weight]
    batch = [loop for loop in work.kept if loop.stream and loop.weight]
    rows = [loop for loop in work.kept if loop.stream and not loop.weight]
    columns = [loop for loop in work.kept if not loop.stream]
    left = _summed_view(_as_kind(x, work.stream_type, kind), [*batch, *rows, *both], [n for n in summed if not n.weight], "stream", 1)
    right = _summed_view(_as_kind(w, work.weight_type, kind), [*batch, *columns, *both], [n for n in summed if not n.stream], "weight", 2)
    right = np.moveaxis(right, 1, 1 + len(batch))
    sizes = [prod(loop.size for loop in group) for group in (batch, rows, columns, both)]
    left = left.reshape(x.shape[0], sizes[0], sizes[1], sizes[3])
    right = right.reshape(x.shape[0], sizes[0], w.shape[1] * sizes[2], sizes[3])
    result = _products_of(left, right.swapaxes(-1, -2))
    result *= kind.type(prod(loop.size for loop in summed if not loop.stream and not loop.weight))
    shaped = result.reshape(x.shape[0], *(loop.size for loop in (*batch, *rows)), w.shape[1], *(loop.size for loop in columns))
    ordered = shaped.transpose(0, 1 + len(batch) + len(rows), *_places(work.kept, batch, rows, columns))
    if work.accumulator.is_float:
        return np.asarray(ordered)
    return np.asarray(ordered.astype(np.int64).astype(np.int32))


def _products_of(left: Array, right: Array) -> Array:
    """Batched matrix product; mid-size ones in runs of the summed axis, each so small that BLAS computes it without waking threads."""
    rows, depth, columns = *left.shape[-2:], right.shape[-1]
    run = ONE_THREAD_PRODUCTS // (rows * columns)
    if depth <= run or run < SHORTEST_RUN or rows * columns * depth > THREADED_PRODUCTS:
        return np.asarray(np.matmul(left, right))
    result = np.matmul(left[..., :run], right[..., :run, :])
    for first in range(run, depth, run):
        result += np.matmul(left[..., first : first + run], right[..., first : first + run, :])
    return np.asarray(result)


def _places(kept: Sequence[Loop], batch: Sequence[Loop], rows: Sequence[Loop], columns: Sequence[Loop]) -> list[int]:
    """Axis of every kept loop in (place, batch…, rows…, lane, columns…)."""
    following = {"batch": 1, "rows": 1 + len(batch), "columns": 2 + len(batch) + len(rows)}
    axes = []
    for loop in kept:
        group = "columns" if not loop.stream else "batch" if loop.weight else "rows"
        axes.append(following[group])
        following[group] += 1
    return axes


def _as_kind(array: Array, element: DType, kind: np.dtype[Any]) -> Array:
    return np.ascontiguousarray(array.astype(kind))


def _integer_carrier(work: Contraction, summed: Sequence[Loop]) -> np.dtype[Any]:
    """f32 where no partial sum can leave its 24-bit integers, else f64."""
    terms = prod(loop.size for loop in summed)
    widest = (1 << (work.stream_type.bits - 1)) * (1 << (work.weight_type.bits - 1))
    return np.dtype(np.float32) if terms * widest <= 1 << 24 else np.dtype(np.float64)


def _summed_view(array: Array, loops: Sequence[Loop], only: Sequence[Loop], which: Literal["stream", "weight"], lead: int) -> Array:
    """One axis a loop; loops that only this operand walks are summed, loops that neither walks are left to the caller."""
    own = [loop for loop in only if getattr(loop, which)]
    view = _walk(array, [*loops, *own], which, lead)
    return np.asarray(view.sum(axis=tuple(range(view.ndim - len(own), view.ndim)), dtype=array.dtype)) if own else view


# --- single stages ----------------------------------------------------------------------------------------------------------------


def packet_sums(values: Values, depth: int, columns: int) -> Values:
    """Packet Reducer on products that are there: the tree over the innermost 2^depth positions, then the declared columns."""

    def cut(array: Array) -> Array:
        short = columns - array.shape[-1]
        return np.pad(array, [(0, 0)] * (array.ndim - 1) + [(0, short)]) if short > 0 else array[..., :columns]

    grouped = (*values.data.shape[:-1], values.data.shape[-1] >> depth, 1 << depth)
    return Values(cut(tree_sum(values.data.reshape(grouped), axis=-1)), cut(np.asarray(values.defined.reshape(grouped).all(axis=-1))))


def time_sums(values: Values, loops: Sequence[tuple[int, bool]]) -> Values:
    """Time Reducer on packets that are there: one addition after the other in the order of Time."""
    *outer, _, packet = values.data.shape
    sizes = [size for size, _ in loops]
    summed = [len(outer) + i for i, (_, kept) in enumerate(loops) if not kept]
    survivors = prod(size for size, kept in loops if kept)

    def in_order(array: Array) -> Array:
        split = array.reshape(*outer, *sizes, packet)
        first = np.moveaxis(split, summed, range(len(summed)))
        return first.reshape(-1, *outer, survivors, packet)

    return Values(time_sum(in_order(values.data)), np.asarray(in_order(values.defined).all(axis=0)))


class PendingProducts(Values):
    """Products of an outer product that nobody has looked at yet, so that the following sums need not hold them all."""

    _stream: Values
    _weight: Values
    _steps: tuple[Step, ...]
    _mode: Mode

    def __init__(self, stream: Values, weight: Values, steps: tuple[Step, ...], mode: Mode = "exact") -> None:
        for name, value in (("_stream", stream), ("_weight", weight), ("_steps", steps), ("_mode", mode)):
            object.__setattr__(self, name, value)

    @cached_property
    def _held(self) -> Values:
        return contract_fused(self._stream, self._weight, self._steps, self._mode)

    @property
    def data(self) -> Array:
        return self._held.data

    @property
    def defined(self) -> npt.NDArray[np.bool_]:
        return self._held.defined

    def in_mode(self, mode: Mode) -> PendingProducts:
        """The same products, to be computed in this mode."""
        return self if mode == self._mode else PendingProducts(self._stream, self._weight, self._steps, mode)

    def then(self, step: Step) -> PendingProducts:
        """The same products with one more stage to come."""
        return PendingProducts(self._stream, self._weight, (*self._steps, step), self._mode)

    def summed(self) -> Values:
        """The values behind the stages so far."""
        return self._held

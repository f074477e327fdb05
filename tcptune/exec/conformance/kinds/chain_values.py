"""What a chain must compute, by coordinates alone: the reference that executed `chain` cases are compared with.

A stream is a function of axis coordinates. A chain that only moves data keeps that function; a contraction sums the product of two such
functions over everything the result does not carry; a reduction folds one. Nothing here knows how an engine orders its work. Contents
are small integers, so every conversion and sum on the way is exact and `==` is the comparison.
"""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Mapping as Dict
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tcptune.exec.conformance.registry import Mismatch
from tcptune.ir.mappings.axes import Axes
from tcptune.ir.mappings.cells import CellTable, joint_table
from tcptune.ir.mappings.mapping import Mapping
from tcptune.ir.types import DType, StreamType, TensorType, dtype
from tcptune.model.mappings.movement import carried_digits
from tcptune.model.numerics.elements import numpy_dtype
from tcptune.model.values import Values

Floats = npt.NDArray[np.float64]

LARGEST_GRID = 20_000_000
"""Cells of the joint index space up to which a contraction is recomputed."""

LARGEST_COMPARISON = 1_000_000
"""Cells of a result that are compared; of a larger one, evenly spread cells."""

CONVERTING = {"fetch_table_lookup", "fetch_cast", "cast", "commit_cast", "commit_cast_relu", "fetch_zero_point_sub"}
MOVING = {
    "begin_interleaved",
    "fetch",
    "fetch_chip_lift",
    "fetch_cluster_lift",
    "fetch_slice_lift",
    "switch",
    "collect",
    "to_trf",
    "to_vrf",
    "transpose",
    "commit_trim",
    "commit",
    "commit_view",
    "vector_init",
    "vector_final",
    "vector_intra_slice_tag",
    "vector_narrow_split",
    "vector_narrow_trim",
    "vector_widen_concat",
    "vector_widen_pad",
}
REDUCING = {"vector_intra_slice_reduce", "vector_inter_slice_reduce"}
FOLDS = {"Add": "sum", "AddSat": "sum", "Max": "max", "Min": "min", "Mul": "product"}
"""How a reduction folds; sums of the small test numbers never saturate."""

CONTRACTING = {"contract_outer", "contract_packet", "contract_time", "contract_lane"}


def cells_of(kind: StreamType | TensorType) -> CellTable:
    """Joint cells of all levels, in the shape of the value arrays."""
    return joint_table(*(m for _, m in kind.levels))


@dataclass(frozen=True)
class Field:
    """A function of axis coordinates.

    Attributes:
        names: axes it depends on; one array dimension each.
        data: its values; digits that the owner does not carry are read at 0.
        digits: carried digits (weight, extent) per axis.
    """

    names: tuple[str, ...]
    data: Floats
    digits: Dict[str, tuple[tuple[int, int], ...]]

    def at(self, coords: Dict[str, npt.NDArray[np.int64]]) -> Floats:
        """Values at coordinates; missing axes count as coordinate 0, digits that are not carried are ignored."""
        flat = np.zeros((), np.int64)
        for name, size in zip(self.names, self.data.shape, strict=True):
            coordinate = coords.get(name, np.zeros((), np.int64))
            whole = self.digits[name] == ((1, size),)
            flat = flat * size + (coordinate if whole else project(coordinate, self.digits[name]))
        return np.asarray(self.data.reshape(-1)[flat])


def project(coordinate: npt.NDArray[np.int64], digits: tuple[tuple[int, int], ...]) -> npt.NDArray[np.int64]:
    """The coordinate with only the given digits kept."""
    kept = np.zeros_like(coordinate)
    for weight, extent in digits:
        kept = kept + coordinate // weight % extent * weight
    return kept


def random_field(kind: StreamType | TensorType, axes: Axes, rng: np.random.Generator, extra: tuple[str, ...] = ()) -> Field:
    """A random function over the axes that `kind` names (and `extra`), with integer values from -2 to 2."""
    digits = {n: d for n, d in carried_digits(tuple(m for _, m in kind.levels)).items() if n in axes}
    digits.update({n: ((1, axes[n]),) for n in extra})
    names = tuple(digits)
    data = rng.integers(-2, 3, size=tuple(axes[n] for n in names)).astype(np.float64)
    return Field(names, data, digits)


def only_live(field: Field, kind: StreamType | TensorType) -> Field:
    """The function with 0 where `kind` has no live cell, so that sums over whole axes skip what was resized away.

    A function of further axes (an interleaved begin) is left as it is.
    """
    cells = cells_of(kind)
    if not set(field.names) <= set(cells.coords):
        return field
    held = np.zeros(field.data.shape, bool)
    held[tuple(cells.coords[n][cells.live] for n in field.names)] = True
    return Field(field.names, field.data * held, field.digits)


def contents(kind: StreamType | TensorType, function: Callable[[dict[str, Any]], Floats]) -> Values:
    """Values of a stream or tensor that hold `function` of the coordinates in live cells and nothing known elsewhere."""
    cells = cells_of(kind)
    live = cells.live
    data = np.zeros(live.shape, numpy_dtype(kind.dtype))
    data[live] = function({n: c[live] for n, c in cells.coords.items()}).astype(data.dtype)
    return Values(data, np.array(live))


def compare(final: StreamType | TensorType, got: Values, want: Callable[[dict[str, Any]], Floats], partial: bool = False) -> None:
    """Compares every live cell of the result with `want` of its coordinates.

    Args:
        partial: undefined live cells are allowed (a write into a part of a tensor, a sum over padding).

    Raises:
        Mismatch: shape, a cell that is not defined, or a value.
    """
    if got.data.shape != final.shape:
        raise Mismatch(f"values have shape {got.data.shape}, the type says {final.shape}")
    cells = cells_of(final)
    live = cells.live
    if not partial and not got.defined[live].all():
        raise Mismatch(f"{int((~got.defined[live]).sum())} of {int(live.sum())} live cells of the result are undefined")
    where = live & got.defined
    if not where.any():
        if partial:
            return
        raise Mismatch("no cell of the result is defined")
    chosen = np.flatnonzero(where)
    chosen = chosen[:: max(1, chosen.size // LARGEST_COMPARISON)]
    expected = np.broadcast_to(want({n: c.reshape(-1)[chosen] for n, c in cells.coords.items()}), chosen.shape)
    actual = got.data.reshape(-1)[chosen].astype(np.float64)
    wrong = np.flatnonzero(~((actual == expected) | (np.isnan(actual) & np.isnan(expected))))
    if wrong.size:
        first = tuple(int(i) for i in np.unravel_index(chosen[wrong[0]], where.shape))
        raise Mismatch(f"{wrong.size} of {actual.size} values differ, first at {first}: {actual[wrong[0]]} instead of {expected[wrong[0]]}")


def converted(values: Floats, op: Dict[str, Any]) -> Floats:
    """`values` after one converting operation, computed in float64 and rounded once."""
    if op["op"] == "fetch_zero_point_sub":
        return np.asarray(values - op["zero_point"], np.float64)
    if op["op"] == "commit_cast_relu":
        values = np.asarray(np.maximum(values, 0.0), np.float64)
    return narrowed(np.asarray(values, np.float64), op["dtype"] if isinstance(op["dtype"], DType) else dtype(op["dtype"]))


def narrowed(values: Floats, target: DType) -> Floats:
    """Numbers as `target` holds them: integers wrap, f8e4m3 saturates, f8e5m2 rounds halves away from zero, the rest to even (CAST-008)."""
    if not target.is_float:
        half = 2.0 ** (target.bits - 1)
        return np.asarray((values + half) % (2 * half) - half)
    if target.name == "f8e5m2":
        exponent = np.frexp(values)[1]
        unit = np.exp2(np.maximum(exponent - 3, -16))  # three significant bits, multiples of the smallest subnormal
        rounded = np.copysign(np.floor(np.abs(values) / unit + 0.5) * unit, values)
        return np.asarray(np.where(np.abs(rounded) > 57344.0, np.copysign(np.inf, values), rounded))
    if target.name == "f8e4m3":
        values = np.clip(values, -448.0, 448.0)
    return np.asarray(values.astype(np.float32).astype(numpy_dtype(target)).astype(np.float64))


def folded(fields: list[Field], kept: tuple[Mapping, ...], axes: Axes, fold: str = "sum") -> Callable[[dict[str, Any]], Floats] | None:
    """The product of `fields`, folded over every coordinate digit that `kept` does not carry; None if the index space is too large."""
    names = tuple(dict.fromkeys(n for f in fields for n in f.names))
    shape = tuple(axes[n] for n in names)
    if int(np.prod(shape, dtype=np.int64)) > LARGEST_GRID:
        return None
    grid = dict(zip(names, np.ix_(*(np.arange(s) for s in shape)), strict=True)) if names else {}
    present = np.ones(shape, bool)
    product = np.ones(shape)
    keep = {n: d for n, d in carried_digits(kept).items() if n in names}
    for name in names:
        carried = sorted({d for f in fields for d in f.digits.get(name, ())})
        present &= project(grid[name], tuple(_disjoint(carried))) == grid[name]
    for field in fields:
        product = product * field.at(grid)
    key = np.zeros((1,) * len(shape), np.int64)
    for name in names:
        key = key * axes[name] + project(grid[name], keep.get(name, ()))
    size = int(np.prod(shape, dtype=np.int64))
    keys = np.broadcast_to(key, shape)[present]
    totals = _fold(fold, keys, product[present], size)

    def value(coords: dict[str, Any]) -> Floats:
        index = np.zeros((), np.int64)
        for name in names:
            index = index * axes[name] + project(np.asarray(coords.get(name, 0)), keep.get(name, ()))
        return np.asarray(totals[index])

    return value


def _fold(fold: str, keys: npt.NDArray[np.int64], terms: Floats, size: int) -> Floats:
    if fold == "sum":
        return np.bincount(keys, weights=terms, minlength=size).astype(np.float64)
    start, step = {"max": (-np.inf, np.maximum), "min": (np.inf, np.minimum), "product": (1.0, np.multiply)}[fold]
    totals = np.full(size, start)
    step.at(totals, keys, terms)
    return totals


def _disjoint(digits: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Digit ranges joined where they overlap, so that `project` counts no part twice."""
    merged: list[tuple[int, int]] = []
    for low, high in sorted((w, w * e) for w, e in digits if e > 1):
        if merged and low <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(high, merged[-1][1]))
        else:
            merged.append((low, high))
    return [(low, high // low) for low, high in merged]

"""Contents of streams and tensors one cell at a time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from tcptune.ir.mappings.cells import joint_table
from tcptune.ir.types import DType, StreamType, TensorType
from tcptune.model.numerics.elements import encode_host, numpy_dtype, to_bits
from tcptune.model.values import Values

Kind = StreamType | TensorType
Position = tuple[int, ...]
Coordinates = dict[str, int]


def live_cells(kind: Kind, slices: frozenset[int] | None = None) -> Iterator[tuple[Position, Coordinates]]:
    """Every live position of a stream or tensor (in the given slices) with the coordinates it holds, in storage order."""
    table = joint_table(*(m for _, m in kind.levels))
    chosen = table.kind == 0
    if slices is not None:
        chosen &= np.isin(np.arange(table.kind.shape[2]), list(slices)).reshape(1, 1, -1, *(1,) * (table.kind.ndim - 3))
    axes = list(table.coords)
    columns = [table.coords[axis][chosen].tolist() for axis in axes]
    for i, position in enumerate(np.argwhere(chosen).tolist()):
        yield tuple(position), {axis: column[i] for axis, column in zip(axes, columns, strict=True)}


@dataclass(frozen=True)
class Contents:
    """Known cells of a stream or tensor: numpy scalars of its type by position.

    Attributes:
        slices: only these are looked at; None for all.
    """

    kind: Kind
    cells: dict[Position, Any]
    slices: frozenset[int] | None = None

    @classmethod
    def of(cls, kind: Kind, values: Values, slices: frozenset[int] | None = None) -> Contents:
        """The cells of an array that are live and defined."""
        return cls(kind, {p: values.data[p] for p, _ in live_cells(kind, slices) if values.defined[p]}, slices)

    def live(self) -> Iterator[tuple[Position, Coordinates]]:
        """Live positions of the slices that are looked at."""
        return live_cells(self.kind, self.slices)

    def like(self, kind: Kind, cells: dict[Position, Any]) -> Contents:
        """Other contents in the same slices."""
        return Contents(kind, cells, self.slices)


def random_values(kind: Kind, rng: np.random.Generator) -> Values:
    """Random contents of the live cells: numbers of mixed sign and size, so that sums round; nothing elsewhere.

    Cells with equal coordinates hold equal values, as broadcast positions must.
    """
    table = joint_table(*(m for _, m in kind.levels))
    live = table.kind == 0
    columns = [table.coords[axis][live] for axis in table.coords] or [np.zeros(int(live.sum()), np.int64)]
    different, which = np.unique(np.stack(columns), axis=1, return_inverse=True)
    data = np.zeros(kind.shape, numpy_dtype(kind.dtype))
    data[live] = random_elements(kind.dtype, different.shape[1], rng)[which.reshape(-1)]
    return Values(data, np.array(live))


def random_elements(element: DType, count: int, rng: np.random.Generator) -> Any:
    """Elements over much of the type's range."""
    if element.is_float:
        numbers = rng.normal(size=count) * 2.0 ** rng.integers(-4, 5, size=count)
        return encode_host(numbers.astype(np.float32), element)
    half = 1 << min(element.bits - 1, 20)
    return rng.integers(-half, half, size=count).astype(numpy_dtype(element))


def differences(kind: Kind, expected: Contents, got: Values) -> list[str]:
    """Cells that the reference knows and `got` holds with other bits or not at all."""
    found = []
    for position, value in expected.cells.items():
        if not got.defined[position]:
            found.append(f"{position}: undefined instead of {value}")
        elif int(to_bits(np.asarray([value]), kind.dtype)[0]) != int(to_bits(np.asarray([got.data[position]]), kind.dtype)[0]):
            found.append(f"{position}: {got.data[position]} instead of {value}")
    return found

"""Contents of streams and tensors one cell at a time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from tcptune.ir.cells import joint_table
from tcptune.ir.types import StreamType, TensorType
from tcptune.model.numerics import numpy_dtype, to_bits
from tcptune.model.values import Values

Kind = StreamType | TensorType
Position = tuple[int, ...]
Coordinates = dict[str, int]


def live_cells(kind: Kind) -> Iterator[tuple[Position, Coordinates]]:
    """Every live position of a stream or tensor with the coordinates it holds, in storage order."""
    table = joint_table(*(m for _, m in kind.levels))
    for position in np.ndindex(*table.kind.shape):
        if table.kind[position] == 0:
            yield position, {axis: int(c[position]) for axis, c in table.coords.items()}


@dataclass(frozen=True)
class Contents:
    """Known cells of a stream or tensor: numpy scalars of its type by position."""

    kind: Kind
    cells: dict[Position, Any]

    @classmethod
    def of(cls, kind: Kind, values: Values) -> Contents:
        """The cells of an array that are live and defined."""
        return cls(kind, {p: values.data[p] for p, _ in live_cells(kind) if values.defined[p]})

    def by_coordinates(self, axes: set[str]) -> dict[tuple[int, ...], list[tuple[Position, Any]]]:
        """Known cells by their coordinates on `axes` (sorted); axes the kind lacks count as 0."""
        order = sorted(axes)
        found: dict[tuple[int, ...], list[tuple[Position, Any]]] = {}
        for position, coordinates in live_cells(self.kind):
            if position in self.cells:
                found.setdefault(tuple(coordinates.get(a, 0) for a in order), []).append((position, self.cells[position]))
        return found


def random_values(kind: Kind, rng: np.random.Generator) -> Values:
    """Random contents of the live cells: small numbers of mixed sign and size, so that sums round; nothing elsewhere.

    Cells with equal coordinates hold equal values, as broadcast positions must.
    """
    data = np.zeros(kind.shape, numpy_dtype(kind.dtype))
    defined = np.zeros(kind.shape, bool)
    drawn: dict[tuple[tuple[str, int], ...], Any] = {}
    for position, coordinates in live_cells(kind):
        key = tuple(sorted(coordinates.items()))
        if key not in drawn:
            drawn[key] = random_scalar(kind, rng)
        data[position] = drawn[key]
        defined[position] = True
    return Values(data, defined)


def random_scalar(kind: Kind, rng: np.random.Generator) -> Any:
    """One element over much of its type's range."""
    if kind.dtype.is_float:
        with np.errstate(over="ignore"):
            return np.float32(rng.normal() * 2.0 ** int(rng.integers(-4, 5))).astype(numpy_dtype(kind.dtype))
    half = 1 << min(kind.dtype.bits - 1, 20)
    return numpy_dtype(kind.dtype).type(rng.integers(-half, half))


def differences(kind: Kind, expected: Contents, got: Values) -> list[str]:
    """Cells that the reference knows and `got` holds with other bits or not at all."""
    found = []
    for position, value in expected.cells.items():
        if not got.defined[position]:
            found.append(f"{position}: undefined instead of {value}")
        elif int(to_bits(np.asarray([value]), kind.dtype)[0]) != int(to_bits(np.asarray([got.data[position]]), kind.dtype)[0]):
            found.append(f"{position}: {got.data[position]} instead of {value}")
    return found

"""Inputs that indexed transfers read rows by: what they may hold (GATHER-002 to GATHER-004).

A random integer names no row of a table, so an input whose contents end up as an index is drawn among the rows that there are, every row at
most once as far as they reach: rows that a scatter names twice are undefined (GATHER-006).
"""

from __future__ import annotations

from collections.abc import Iterator
from collections.abc import Mapping as Dict
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from tcptune.exec.program.check import check_kernel
from tcptune.exec.program.checked import Bound, CheckedStep
from tcptune.ir.kernels import steps as s
from tcptune.ir.kernels.kernel import Kernel
from tcptune.ir.types import TensorType

_INDEXED = (s.DmaGatherScaled, s.DmaGatherUnscaled, s.DmaScatter)
_MOVES = (s.ToDm, s.ToHbm, s.Reshape, s.Tile, s.ChipTile, s.ClusterTile)


@dataclass(frozen=True)
class IndexRange:
    """What an index may hold: `rows` row numbers, each times `unit` (bytes of a row where the index is scaled)."""

    rows: int
    unit: int = 1

    def draw(self, count: int, rng: np.random.Generator) -> npt.NDArray[Any]:
        """`count` indices in random order."""
        turns = -(-count // self.rows)
        return np.concatenate([rng.permutation(self.rows) for _ in range(turns)])[:count] * self.unit


def index_ranges(kernel: Kernel) -> dict[str, IndexRange]:
    """Inputs that reach the index of an indexed transfer through moves alone, with what they may hold."""
    if not any(isinstance(step, _INDEXED) for step in _flat(kernel.steps)):
        return {}
    origins = {entry.name: entry.name for entry in kernel.inputs}
    found: dict[str, IndexRange] = {}
    _collect(check_kernel(kernel).steps, origins, found)
    return found


def _flat(steps: tuple[s.KernelStep, ...]) -> Iterator[s.KernelStep]:
    for step in steps:
        yield step
        if isinstance(step, s.Loop):
            yield from _flat(step.body)


def _collect(steps: tuple[CheckedStep, ...], origins: dict[str, str], found: dict[str, IndexRange]) -> None:
    for checked in steps:
        if checked.result is not None and isinstance(checked.step, _MOVES) and checked.sources[0].name in origins:
            origins[checked.result.name] = origins[checked.sources[0].name]
        if isinstance(checked.step, _INDEXED):
            name = origins.get(checked.sources[1].name)
            table = checked.target if isinstance(checked.step, s.DmaScatter) else checked.sources[0]
            rows = checked.sources[0] if isinstance(checked.step, s.DmaScatter) else checked.result
            if name is not None and table is not None and rows is not None:
                found[name] = _range(table, rows, scaled=not isinstance(checked.step, s.DmaGatherUnscaled))
        _collect(checked.body, origins, found)


def _range(table: Bound, rows: Bound, *, scaled: bool) -> IndexRange:
    """Rows of a table: its axes that the rows do not have; the others are the payload of a row."""
    sizes, held = _sizes(table.type), _sizes(rows.type)
    payload = prod(n for axis, n in sizes.items() if axis in held)
    return IndexRange(prod(n for axis, n in sizes.items() if axis not in held), table.type.dtype.bytes_of(payload) if scaled else 1)


def _sizes(type_: TensorType) -> Dict[str, int]:
    return {axis: n for _, mapping in type_.levels for axis, n in mapping.axes.items()}

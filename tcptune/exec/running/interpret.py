"""Runs a checked kernel on numpy arrays, tracking which cells hold anything known.

Every tensor is a `Values`: data and a `defined` mask in the shape of its levels. Moves are gathers by coordinate, passes run engine by
engine, views read and write the bytes of their storage. A cell that nothing wrote stays undefined, whatever the program claims about it
(``1 # n`` defines position 0 only), and an undefined cell of a result is reported with its coordinates.
"""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Mapping as Dict
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tcptune.errors import WorkError
from tcptune.exec.program.checked import Bound, CheckedKernel, CheckedStep
from tcptune.exec.program.moves import gather_axes
from tcptune.exec.program.views import view_offset
from tcptune.exec.running.fill import cells_of
from tcptune.ir.kernels import steps as s
from tcptune.ir.kernels.ops import BeginInterleaved
from tcptune.ir.mappings.cells import KIND_CODES, LIVE
from tcptune.ir.mappings.mapping import Mapping, PadKind
from tcptune.ir.types import TensorType
from tcptune.model.engines.contraction.values import Mode
from tcptune.model.mappings.movement import gather_indices
from tcptune.model.numerics.elements import numpy_dtype
from tcptune.model.pipeline import apply_chain
from tcptune.model.redistribution import Route
from tcptune.model.values import Values

REPORTED_CELLS = 8


@dataclass(frozen=True)
class Undefined:
    """Live cells of a result that hold nothing known: how many, and the coordinates of the first ones."""

    tensor: str
    count: int
    first: tuple[dict[str, int], ...]

    def __str__(self) -> str:
        where = "; ".join(", ".join(f"{a} = {c}" for a, c in cell.items()) or "the only cell" for cell in self.first)
        return f"{self.count} undefined cells of {self.tensor} (first: {where})"


@dataclass(frozen=True)
class RunResult:
    """Contents of the results, by name, and their undefined cells."""

    outputs: dict[str, Values]
    types: dict[str, TensorType]
    undefined: tuple[Undefined, ...]

    @property
    def undefined_reads(self) -> int:
        return sum(u.count for u in self.undefined)


def blank(type_: TensorType) -> Values:
    """Contents of a tensor that nothing has written."""
    return Values(np.zeros(type_.shape, dtype=numpy_dtype(type_.dtype)), np.zeros(type_.shape, dtype=np.bool_))


def moved(values: Values, source: TensorType, dest: TensorType) -> Values:
    """The same mathematical tensor in another layout (DMA-002)."""
    index, found = gather_indices(source, dest)
    data = np.take(values.data.reshape(-1), index).reshape(dest.shape)
    return Values(data, (np.take(values.defined.reshape(-1), index) & found).reshape(dest.shape))


def routed(values: Values, route: Route) -> Values:
    """The result of a redistribution plan in the source's layout (REDIST-010); positions count, not axis names (REDIST-012)."""
    return Values(_routed(values.data, route), _routed(values.defined, route))


def _routed(a: npt.NDArray[Any], route: Route) -> npt.NDArray[Any]:
    a = a[list(route.chip_sources)]
    if a.ndim > 2:
        a = a[:, list(route.cluster_sources)]
    for cut in route.slices:
        a = _cut(a, cut.level, cut.before, cut.count, cut.after, cut.indices)
    return a


def _cut(a: npt.NDArray[Any], level: str, before: int, count: int, after: int, indices: tuple[int, ...]) -> npt.NDArray[Any]:
    apart = a.reshape(*a.shape[:-1], before, count, after)
    axis = 0 if level == "chip" else 1
    kept = [np.take(np.take(apart, [p], axis=axis), index, axis=-2) for p, index in enumerate(indices)]
    return np.concatenate(kept, axis=axis).reshape(*a.shape[:-1], before * after)


def _shifted(a: npt.NDArray[Any], axis: int, offset: int) -> npt.NDArray[Any]:
    """Position p of the result is position p + offset of `a`; positions beyond the end are 0."""
    if offset == 0:
        return a
    result = np.zeros_like(a)
    length = a.shape[axis] - offset
    target = [slice(None)] * a.ndim
    origin = [slice(None)] * a.ndim
    target[axis], origin[axis] = slice(0, length), slice(offset, None)
    result[tuple(target)] = a[tuple(origin)]
    return result


class Interpreter:
    """The state of one run: contents of every storage, and the loop variables."""

    def __init__(self, checked: CheckedKernel, inputs: Dict[str, Values], mode: Mode = "exact") -> None:
        self.checked = checked
        self.mode: Mode = mode
        self.memory: dict[str, Values] = {}
        self.variables: dict[str, int] = {}
        for bound in checked.inputs:
            if bound.name not in inputs:
                raise WorkError(f"the input {bound.name!r} has no contents")
            given = inputs[bound.name]
            if given.data.shape != bound.type.shape:
                raise WorkError(f"the input {bound.name!r} has shape {given.data.shape} instead of {bound.type.shape}")
            self.memory[bound.name] = Values(given.data.copy(), given.defined.copy())

    # tensors

    def read(self, bound: Bound) -> Values:
        """Contents of a name; holes of a view are undefined."""
        values = self.memory[bound.storage]
        data, defined = values.data, values.defined
        for axis, (level, mapping) in enumerate(bound.type.levels):
            if any(v.level == level for v in bound.views):
                offset = view_offset(bound.views, level, self.variables)
                data, defined = _shifted(data, axis, offset), _shifted(defined, axis, offset)
                defined = defined & _along(mapping, axis, data.ndim)
        return Values(data, defined)

    def write(self, target: Bound, values: Values) -> None:
        """Writes the live cells of a view (or a whole tensor) into its storage."""
        if not target.views:
            self.memory[target.storage] = Values(values.data.copy(), values.defined.copy())
            return
        storage = self.memory[target.storage]
        data, defined = storage.data.copy(), storage.defined.copy()
        picks = []
        for level, mapping in target.type.levels:
            live = np.nonzero(mapping.table().live)[0] if any(v.level == level for v in target.views) else np.arange(mapping.size)
            picks.append((live, live + view_offset(target.views, level, self.variables)))
        origin, place = np.ix_(*(p[0] for p in picks)), np.ix_(*(p[1] for p in picks))
        data[place], defined[place] = values.data[origin], values.defined[origin]
        self.memory[target.storage] = Values(data, defined)

    def bind(self, step: CheckedStep, values: Values) -> None:
        """Stores a step's result under its new name, or through its target."""
        if step.target is not None:
            self.write(step.target, values)
        elif step.result is not None:
            self.memory[step.result.name] = values

    # steps

    def run(self) -> RunResult:
        for step in self.checked.steps:
            self.step(step)
        outputs = {b.name: self.read(b) for b in self.checked.outputs}
        types = {b.name: b.type for b in self.checked.outputs}
        undefined = tuple(u for name, values in outputs.items() if (u := undefined_cells(name, types[name], values)) is not None)
        return RunResult(outputs, types, undefined)

    def step(self, step: CheckedStep) -> None:
        if isinstance(step.step, s.Loop):
            count = step.step.count
            if isinstance(count, s.RuntimeCount):
                raise WorkError(f"the trip count {count.name!r} is not known")
            for i in range(count):
                self.variables[step.step.var] = i
                for inner in step.body:
                    self.step(inner)
            del self.variables[step.step.var]
            return
        _RUNS[type(step.step)](self, step)

    def new(self, step: CheckedStep) -> None:
        if step.result is not None:
            self.memory[step.result.name] = blank(step.result.type)

    def alias(self, step: CheckedStep) -> None:
        """Tiles and reshapes move no data."""

    def transfer(self, step: CheckedStep) -> None:
        dest = step.target or step.result
        if dest is not None:
            self.bind(step, moved(self.read(step.sources[0]), step.sources[0].type, dest.type))

    def redistribute(self, step: CheckedStep) -> None:
        dest = step.target or step.result
        if dest is not None:
            self.bind(step, moved(routed(self.read(step.sources[0]), step.route), step.route.result, dest.type))

    def keep_own(self, step: CheckedStep) -> None:
        self.bind(step, routed(self.read(step.sources[0]), step.route))

    def unit(self, step: CheckedStep) -> None:
        """One Tensor Unit pass."""
        chain, unit = step.chain, step.step
        if chain is None or not isinstance(unit, s.TensorUnit):
            raise WorkError("the pass was not checked")
        operands = {b.name: self.read(b) for b in step.sources}
        start = operands[step.sources[0].name]
        shape = chain.start.shape
        if isinstance(unit.begin, BeginInterleaved):
            operands = {n: _as_stream(v, shape) if n in unit.begins_on else v for n, v in operands.items()}
        self.bind(step, apply_chain(chain, _as_stream(start, shape), operands, self.mode))

    def gather(self, step: CheckedStep) -> None:
        table, index = step.sources
        if step.result is not None:
            scaled = isinstance(step.step, s.DmaGatherScaled)
            self.bind(step, gathered(self.read(table), table.type, self.read(index), index.type, step.result.type, scaled))

    def scatter(self, step: CheckedStep) -> None:
        source, index = step.sources
        if step.target is not None:
            into = self.read(step.target)
            result = scattered(self.read(source), source.type, self.read(index), index.type, into, step.target.type)
            self.memory[step.target.storage] = result


_RUNS: dict[type[s.KernelStep], Callable[[Interpreter, CheckedStep], None]] = {
    s.NewDm: Interpreter.new,
    s.NewHbm: Interpreter.new,
    s.Tile: Interpreter.alias,
    s.ChipTile: Interpreter.alias,
    s.ClusterTile: Interpreter.alias,
    s.Reshape: Interpreter.alias,
    s.ToDm: Interpreter.transfer,
    s.ToHbm: Interpreter.transfer,
    s.ToHost: Interpreter.transfer,
    s.ToHbmView: Interpreter.transfer,
    s.Redistribute: Interpreter.redistribute,
    s.AsymmetricChipSlice: Interpreter.keep_own,
    s.AsymmetricClusterSlice: Interpreter.keep_own,
    s.HbmChipShuffle: Interpreter.keep_own,
    s.DmaGatherScaled: Interpreter.gather,
    s.DmaGatherUnscaled: Interpreter.gather,
    s.DmaScatter: Interpreter.scatter,
    s.TensorUnit: Interpreter.unit,
}


def _along(mapping: Mapping, axis: int, ndim: int) -> npt.NDArray[np.bool_]:
    """Positions of one level that are no hole of a view (zeros that the host pads are none), shaped to broadcast along `axis`."""
    shape = [1] * ndim
    shape[axis] = mapping.size
    kind = mapping.table().kind
    return np.asarray((kind == LIVE) | (kind == KIND_CODES[PadKind.ZERO])).reshape(shape)


def _as_stream(values: Values, shape: tuple[int, ...]) -> Values:
    return Values(values.data.reshape(shape), values.defined.reshape(shape))


def undefined_cells(name: str, type_: TensorType, values: Values) -> Undefined | None:
    """Live cells that hold nothing known, or None if there are none."""
    cells = cells_of(type_)
    holes = np.argwhere(cells.live & ~values.defined)
    if not len(holes):
        return None
    first = tuple({a: int(c[tuple(at)]) for a, c in cells.coords.items()} for at in holes[:REPORTED_CELLS])
    return Undefined(name, len(holes), first)


# indirect moves


def _by_coordinates(type_: TensorType, values: Values, axes: tuple[str, ...], sizes: Dict[str, int]) -> Values:
    """Contents as an array over `axes`; the first copy of a coordinate counts."""
    cells = cells_of(type_)
    shape = tuple(sizes[a] for a in axes)
    data, defined = np.zeros(shape, values.data.dtype), np.zeros(shape, np.bool_)
    at = tuple(cells.coords[a][cells.live][::-1] for a in axes)
    data[at] = values.data[cells.live][::-1]
    defined[at] = values.defined[cells.live][::-1]
    return Values(data, defined)


def _sizes(*types: TensorType) -> dict[str, int]:
    return {a: n for t in types for _, m in t.levels for a, n in m.axes.items()}


def _rows(numbers: npt.NDArray[Any], row_bytes: int | None, limit: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.bool_]]:
    """Row of every index and whether it is one of the table."""
    rows = numbers.astype(np.int64)
    good = np.ones(rows.shape, dtype=np.bool_)
    if row_bytes is not None:
        good, rows = rows % row_bytes == 0, rows // row_bytes
    good = good & (rows >= 0) & (rows < limit)
    return np.where(good, rows, 0), good


def gathered(table: Values, table_type: TensorType, index: Values, index_type: TensorType, dest: TensorType, scaled: bool) -> Values:
    """``out[g, payload] = table[row(index[g]), payload]``; rows outside the table are undefined (GATHER-002, GATHER-003)."""
    (axis,) = gather_axes(table_type, dest, index_type)
    sizes = _sizes(table_type, index_type, dest)
    payload = tuple(a for a in _sizes(table_type) if a != axis)
    keys = tuple(a for a in _sizes(index_type))
    rows_of = _by_coordinates(index_type, index, keys, sizes)
    content = _by_coordinates(table_type, table, (axis, *payload), sizes)
    cells = cells_of(dest)
    row_bytes = table_type.dtype.bytes_of(int(np.prod([sizes[a] for a in payload], dtype=np.int64))) if scaled else None
    at = tuple(cells.coords[a] if a in cells.coords else np.zeros(dest.shape, np.int64) for a in keys)
    rows, good = _rows(rows_of.data[at], row_bytes, sizes[axis])
    where = (rows, *(cells.coords[a] for a in payload))
    return Values(content.data[where], cells.live & rows_of.defined[at] & good & content.defined[where])


def scattered(
    source: Values, source_type: TensorType, index: Values, index_type: TensorType, into: Values, into_type: TensorType
) -> Values:
    """``into[index[k] / row_bytes, payload] = source[k, payload]``; other rows keep their value (GATHER-004).

    A row that two sources write with different values is undefined (GATHER-006), everything is once an index names no row: nobody says
    where that write lands.
    """
    held = _sizes(source_type)
    (axis,) = (a for a in _sizes(into_type) if a not in held)
    sizes = _sizes(source_type, index_type, into_type)
    payload = tuple(a for a in _sizes(into_type) if a != axis)
    keys = tuple(_sizes(index_type))
    rows_of = _by_coordinates(index_type, index, keys, sizes)
    row_bytes = into_type.dtype.bytes_of(int(np.prod([sizes[a] for a in payload], dtype=np.int64)))
    cells = cells_of(source_type)
    live = cells.live
    numbers = rows_of.data[tuple(cells.coords[a][live] for a in keys)]
    rows, good = _rows(numbers, row_bytes, sizes[axis])
    target = _by_coordinates(into_type, into, (axis, *payload), sizes)
    at = tuple(a[good] for a in (rows, *(cells.coords[a][live] for a in payload)))
    written = source.data[live][good]
    target.data[at] = written
    target.defined[at] = source.defined[live][good]
    kept = target.data[at]
    clash = (kept != written) & ((kept == kept) | (written == written))
    target.defined[tuple(a[clash] for a in at)] = False
    if not good.all():
        target.defined[...] = False
    places = cells_of(into_type)
    where = tuple(places.coords[a] for a in (axis, *payload))
    return Values(np.where(places.live, target.data[where], into.data), np.where(places.live, target.defined[where], into.defined))


def run_kernel(checked: CheckedKernel, inputs: Dict[str, Values], mode: Mode = "exact") -> RunResult:
    """Runs a checked kernel on the given contents of its inputs.

    Args:
        mode: how contractions are computed: ``exact`` gives the bits of the hardware, ``fast`` uses matrix products.

    Raises:
        WorkError: an input is missing or has the wrong shape, or a trip count is not known.
    """
    return Interpreter(checked, inputs, mode).run()

"""Contents of kernel inputs: formulas, listed values, seeded draws and adversarial patterns (ORACLE-001).

All functions return `Values` in the shape of the tensor's levels. Cells that hold the same coordinates (broadcast) hold equal values; zero
padding holds zeros, other padding is undefined.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt

from tcptune.errors import InputError
from tcptune.exec.running.indices import IndexRange, index_ranges
from tcptune.ir.formula import evaluate
from tcptune.ir.kernels.kernel import Kernel, KernelInput
from tcptune.ir.mappings.cells import KIND_CODES, CellTable, joint_table
from tcptune.ir.mappings.mapping import PadKind
from tcptune.ir.types import DType, TensorType
from tcptune.model.numerics.elements import encode_host, integer_range, numpy_dtype
from tcptune.model.values import Values

Ints = npt.NDArray[np.int64]

SEED = 42
"""The manual's host programs draw from a generator seeded with 42."""


def cells_of(type_: TensorType) -> CellTable:
    """Cells of all storage positions in the shape of the levels, which decode jointly (SEM-003)."""
    return joint_table(*(m for _, m in type_.levels)).reshaped(type_.shape)


def cell_numbers(cells: CellTable) -> Ints:
    """A number of every cell that is equal exactly where the coordinates are equal: the row-major index over the axes in use."""
    number = np.zeros(cells.kind.shape, dtype=np.int64)
    for coordinate in cells.coords.values():
        number = number * (int(coordinate.max(initial=0)) + 1) + coordinate
    return number


def _with_padding(data: npt.NDArray[Any], cells: CellTable) -> Values:
    """`data` on the live cells, zeros in zero padding (MAP-007), nothing known elsewhere."""
    zero = cells.kind == KIND_CODES[PadKind.ZERO]
    return Values(np.where(zero, np.zeros((), data.dtype), data), cells.live | zero)


def _from_numbers(type_: TensorType, draw: Callable[[int], npt.NDArray[Any]]) -> Values:
    """Contents from a function that gives the values of the cells numbered 0 to n - 1."""
    cells = cells_of(type_)
    numbers = cell_numbers(cells)
    highest = int(numbers.max(initial=0)) + 1
    if highest > 4 * numbers.size + 64:
        _, inverse = np.unique(numbers, return_inverse=True)
        numbers = inverse.reshape(numbers.shape)
        highest = int(numbers.max(initial=0)) + 1
    data = np.asarray(draw(highest), dtype=numpy_dtype(type_.dtype))[numbers]
    return _with_padding(data, cells)


def formula(type_: TensorType, text: str) -> Values:
    """Contents from an integer formula over the axis coordinates, or ``linear``: the storage position, padding counted."""
    if text.strip() == "linear":
        position = np.arange(int(np.prod(type_.shape)), dtype=np.int64).reshape(type_.shape)
        return _with_padding(encode_host(position, type_.dtype), cells_of(type_))
    cells = cells_of(type_)
    numbers = np.broadcast_to(np.asarray(evaluate(text, cells.coords)), type_.shape)
    return _with_padding(encode_host(numbers, type_.dtype), cells)


def listed(type_: TensorType, values: tuple[float, ...]) -> Values:
    """Contents from a list over the live positions in storage order.

    Raises:
        InputError: the list has another length.
    """
    cells = cells_of(type_)
    live = cells.live
    if len(values) != int(live.sum()):
        raise InputError(f"{len(values)} values for a tensor of {int(live.sum())} live positions")
    data = np.zeros(type_.shape, dtype=numpy_dtype(type_.dtype))
    data[live] = encode_host(np.asarray(values), type_.dtype)
    return _with_padding(data, cells)


def random(type_: TensorType, rng: np.random.Generator) -> Values:
    """Uniform integers over the full range; floats from a normal distribution."""

    def draw(n: int) -> npt.NDArray[Any]:
        if type_.dtype.is_float:
            return encode_host(rng.standard_normal(n), type_.dtype)
        low, high = integer_range(type_.dtype)
        return encode_host(rng.integers(low, high, n, endpoint=True), type_.dtype)

    return _from_numbers(type_, draw)


def _alternating(n: int, dtype: DType, rng: np.random.Generator) -> npt.NDArray[Any]:
    k = np.arange(n)
    return np.asarray(np.where(k % 2, -1.0, 1.0) * (1 + k % 3))


def _wide(n: int, dtype: DType, rng: np.random.Generator) -> npt.NDArray[Any]:
    """Magnitudes over 24 binades (as far as the type reaches) with random signs; integers at both ends of their range."""
    if not dtype.is_float:
        return rng.choice(np.asarray(integer_range(dtype)), n)
    reach = 12 if dtype.bits > 8 else 4
    return np.asarray(np.ldexp(rng.uniform(1, 2, n), rng.integers(-reach, reach, n)) * rng.choice([-1.0, 1.0], n))


def _tiny(n: int, dtype: DType, rng: np.random.Generator) -> npt.NDArray[Any]:
    """Subnormals of the type; 0 and 1 for integers."""
    if not dtype.is_float:
        return np.asarray(np.arange(n) % 2)
    finfo: Any = ml_dtypes.finfo
    return np.asarray(float(finfo(numpy_dtype(dtype)).smallest_subnormal) * (np.arange(n) % 3))


PATTERNS: dict[str, Callable[[int, DType, np.random.Generator], npt.NDArray[Any]]] = {
    "zeros": lambda n, dtype, rng: np.zeros(n),
    "alternating": _alternating,
    "wide": _wide,
    "tiny": _tiny,
}
"""Adversarial contents by name: zeros, alternating signs, large dynamic range, subnormals."""


def pattern(type_: TensorType, name: str, rng: np.random.Generator) -> Values:
    """Contents of an adversarial pattern.

    Raises:
        InputError: no such pattern.
    """
    if name not in PATTERNS:
        raise InputError(f"unknown pattern {name!r}", hint=f"known: {', '.join(PATTERNS)}")
    return _from_numbers(type_, lambda n: encode_host(PATTERNS[name](n, type_.dtype, rng), type_.dtype))


def input_contents(entry: KernelInput, rng: np.random.Generator) -> Values:
    """Contents that the input declares, or a random draw where it declares none."""
    if entry.values is not None:
        return listed(entry.type, entry.values)
    if entry.fill is not None:
        return formula(entry.type, entry.fill)
    return random(entry.type, rng)


def declared_inputs(kernel: Kernel, seed: int = SEED) -> dict[str, Values]:
    """Contents of all inputs, drawn in argument order from one generator; indices of indexed transfers name rows that there are."""
    rng = np.random.default_rng(seed)
    ranges = index_ranges(kernel)
    return {
        entry.name: _indices(entry.type, ranges[entry.name], rng)
        if entry.name in ranges and entry.fill is None and entry.values is None
        else input_contents(entry, rng)
        for entry in kernel.inputs
    }


def _indices(type_: TensorType, range_: IndexRange, rng: np.random.Generator) -> Values:
    return _from_numbers(type_, lambda n: encode_host(range_.draw(n, rng), type_.dtype))


def drawn_inputs(kernel: Kernel, how: str, seed: int = SEED) -> dict[str, Values]:
    """Contents of all inputs by one way: ``random`` or the name of an adversarial pattern; declared contents are ignored.

    Indices of indexed transfers are drawn among the rows that there are in every way.
    """
    rng = np.random.default_rng(seed)
    ranges = index_ranges(kernel)
    found = {}
    for entry in kernel.inputs:
        if entry.name in ranges:
            found[entry.name] = _indices(entry.type, ranges[entry.name], rng)
        else:
            found[entry.name] = random(entry.type, rng) if how == "random" else pattern(entry.type, how, rng)
    return found

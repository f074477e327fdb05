"""Cutting axes: the same kernel with an axis written as several, its major part and minor ones.

Row-major memory does not change: ``J, K`` with J = 64 cut below 16 becomes ``J, X, K`` with J = 4 and X = 16. So whoever calls the kernel
passes the same bytes; only mappings can now speak of the parts by their own names. Before -> after, J cut below 16::

    J / 16          ->  J              J # 96 / 8     ->  J # 6, X / 8
    J % 16          ->  X              J / 8 % 4      ->  J % 2, X / 8
"""

from __future__ import annotations

import dataclasses
import string
from collections.abc import Mapping as Dict
from functools import partial
from math import prod
from typing import Any

from tcptune.errors import InputError
from tcptune.ir.kernels.kernel import Kernel
from tcptune.ir.mappings.algebra_terms import simplify
from tcptune.ir.mappings.axes import Axes
from tcptune.ir.mappings.mapping import Mapping, Modulo, Padding, Pair, Resize, Stride, Symbol, factors, pair


def minor_names(taken: Dict[str, int], count: int) -> list[str]:
    """The first `count` one-letter identifiers that `taken` leaves free.

    Raises:
        InputError: there are not so many.
    """
    free = [letter for letter in string.ascii_uppercase if letter not in taken]
    if len(free) < count:
        raise InputError(f"no letter is free for {count} more axes", hint="fewer axes")
    return free[:count]


def cut_axes(kernel: Kernel, minors: Dict[str, tuple[tuple[str, int], ...]]) -> Kernel:
    """`kernel` with axes cut; everything that names an axis in words (the oracle) is left to the caller.

    Args:
        minors: for each axis that is cut, names and positions of its minor parts, the outermost first; the major part keeps the name.

    Raises:
        InputError: the minor parts do not divide the axis.
    """
    sizes: dict[str, int] = {}
    for name, size in kernel.axes.items():
        parts = minors.get(name, ())
        below = prod(n for _, n in parts)
        if size % below:
            raise InputError(f"{below} positions do not divide axis {name} of {size}")
        sizes |= {name: size // below, **dict(parts)}
    axes = Axes(sizes)
    symbols: dict[str, Mapping] = {name: axes.mapping(", ".join((name, *(n for n, _ in parts)))) for name, parts in minors.items()}
    rewritten: Kernel = _rewritten(kernel, partial(_with_symbols, symbols=symbols))
    return dataclasses.replace(rewritten, axes=axes)


def _with_symbols(m: Mapping, symbols: Dict[str, Mapping]) -> Mapping:
    """`m` with axes replaced, in simplest form; without them it is left as it is written."""
    if not any(name in symbols for name in m.axes):
        return m
    return pair(*(simplify(factor) for factor in factors(_replaced(m, symbols))))


def _replaced(m: Mapping, symbols: Dict[str, Mapping]) -> Mapping:
    match m:
        case Symbol():
            return symbols.get(m.name, m)
        case Pair():
            return pair(_replaced(m.left, symbols), _replaced(m.right, symbols))
        case Stride():
            return Stride(_replaced(m.inner, symbols), m.n)
        case Modulo():
            return Modulo(_replaced(m.inner, symbols), m.n)
        case Resize():
            return Resize(_replaced(m.inner, symbols), m.n)
        case Padding():
            return Padding(_replaced(m.inner, symbols), m.n, m.kind)
        case _:
            return m


def _rewritten(value: Any, rewrite: Any) -> Any:
    """`value` with every mapping inside of it rewritten; records and tuples keep their form."""
    if isinstance(value, Mapping):
        return rewrite(value)
    if isinstance(value, tuple):
        return tuple(_rewritten(v, rewrite) for v in value)
    if isinstance(value, Axes) or not dataclasses.is_dataclass(value) or isinstance(value, type):
        return value
    changed = {f.name: _rewritten(getattr(value, f.name), rewrite) for f in dataclasses.fields(value) if f.init}
    return dataclasses.replace(value, **changed)

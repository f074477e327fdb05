"""Enumerated view of mappings: the finalised cell of one position, and numpy tables of all of them (MAP-014, MAP-015).

Evaluation has two stages. Stage 1 walks the mapping major to minor; below `/` and `%` it does not enter the operand but adds
``digit * weight`` to a running position kept for that operand. Stage 2 decodes every operand at its accumulated position, largest
first and never before an operand that contains it, until only axis coordinates are left. The first padding that is met decides the kind.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tcptune.ir.array_cache import array_cache
from tcptune.ir.mappings.mapping import Broadcast, Mapping, Modulo, Padding, PadKind, Pair, Resize, Stride, Symbol, factors, pair, walk

Ints = npt.NDArray[np.int64]

LIVE = 0
KIND_CODES = {PadKind.TOP: 1, PadKind.ZERO: 2, PadKind.BOTTOM: 3}
"""Codes in `CellTable.kind`; 0 is a live cell."""

_CACHED_BYTES = 64 << 20  # a table of a whole tensor takes up to tens of megabytes
_SLAB_POSITIONS = 1 << 20
_KINDS_BY_CODE = {code: kind for kind, code in KIND_CODES.items()}


@dataclass(frozen=True)
class Index:
    """A live cell: coordinates of the axes that the mapping names."""

    coords: dict[str, int]

    def to_json(self) -> dict[str, int]:
        return dict(self.coords)


@dataclass(frozen=True)
class PaddingCell:
    """A padding cell of a kind."""

    kind: PadKind

    def to_json(self) -> str:
        return f"padding:{self.kind.value}"


@dataclass(frozen=True)
class OutOfBounds:
    """A position beyond the mapping."""

    def to_json(self) -> str:
        return "oob"


OUT_OF_BOUNDS = OutOfBounds()
Cell = Index | PaddingCell | OutOfBounds


@dataclass(frozen=True)
class CellTable:
    """Cells of all positions.

    Attributes:
        kind: uint8, 0 live, 1 top, 2 zero, 3 bottom.
        coords: per axis the int64 coordinate, 0 in cells that are not live; same shape as `kind`.
    """

    kind: npt.NDArray[np.uint8]
    coords: dict[str, Ints]

    @property
    def live(self) -> npt.NDArray[np.bool_]:
        """Where cells are live."""
        return np.equal(self.kind, LIVE)

    def cell(self, *position: int) -> Cell:
        """One cell of the table."""
        code = int(self.kind[position])
        if code:
            return PaddingCell(_KINDS_BY_CODE[code])
        return Index({axis: int(values[position]) for axis, values in self.coords.items()})

    @property
    def nbytes(self) -> int:
        return self.kind.nbytes + sum(c.nbytes for c in self.coords.values())

    def reshaped(self, shape: tuple[int, ...]) -> CellTable:
        """The same cells under another shape."""
        return CellTable(self.kind.reshape(shape), {a: c.reshape(shape) for a, c in self.coords.items()})


def operand_key(m: Mapping) -> Mapping:
    """The operand of `/` and `%` in the form under which digits of it are added up: nesting of pairs does not count."""
    key: Mapping | None = m._memo.get("operand_key")
    if key is None:
        if isinstance(m, Pair):
            key = pair_list([operand_key(f) for f in factors(m)])
        elif isinstance(m, Padding):
            key = Padding(operand_key(m.inner), m.n, m.kind)
        elif isinstance(m, (Stride, Modulo, Resize)):
            key = type(m)(operand_key(m.inner), m.n)
        else:
            key = m
        m._memo["operand_key"] = key
    return key


def pair_list(members: list[Mapping]) -> Mapping:
    """Right-nested pairs of the members as they are."""
    result = members[-1]
    for member in reversed(members[:-1]):
        result = Pair(member, result)
    return result


def strip_digits(m: Mapping) -> tuple[Mapping, int]:
    """Operand below a chain of `/` and `%`, and the weight of one step of the chain in positions of the operand."""
    weight = 1
    while isinstance(m, (Stride, Modulo)):
        if isinstance(m, Stride):
            weight *= m.n
        m = m.inner
    return m, weight


def digit_operands(m: Mapping) -> frozenset[Mapping]:
    """All composite operands that decoding `m` can meet, those inside operands included."""
    found: frozenset[Mapping] | None = m._memo.get("digit_operands")
    if found is None:
        roots = {operand_key(strip_digits(n)[0]) for n in walk(m) if isinstance(n, (Stride, Modulo))}
        found = frozenset(r for r in roots if not isinstance(r, Symbol))
        m._memo["digit_operands"] = found
    return found


def next_operand(pending: dict[Mapping, Any]) -> Mapping:
    """The operand to decode next: the largest one that no other pending operand contains; earlier ones first among equals."""
    free = [m for m in pending if not any(m in digit_operands(other) for other in pending if other is not m)]
    return max(free, key=lambda m: m.size)


class _Tables:
    """State of the vectorised evaluation: kinds so far, coordinates and pending operand positions."""

    def __init__(self, shape: tuple[int, ...]) -> None:
        self.kind = np.zeros(shape, np.uint8)
        self.padded = False
        self.coords: dict[Symbol, Ints] = {}
        self.pending: dict[Mapping, Ints] = {}

    def mark(self, where: npt.NDArray[np.bool_], code: int) -> None:
        if where.any():
            self.kind[where & (self.kind == LIVE)] = code
            self.padded = True

    def add(self, operand: Mapping, position: Ints) -> None:
        store: dict[Any, Ints] = self.coords if isinstance(operand, Symbol) else self.pending
        store[operand] = store[operand] + position if operand in store else position

    def stage1(self, m: Mapping, position: Ints) -> None:
        """Walks `m` at `position` (values below its size); recursion follows nesting, not the length of pair lists."""
        members = factors(m)
        below = m.size
        for member in members:
            below //= member.size
            digit = position
            if below > 1:
                digit = position // below
                position = position - digit * below
            elif len(members) > 1 and member.size == 1:
                digit = np.zeros((), np.int64)
            self._member(member, digit)

    def _member(self, m: Mapping, position: Ints) -> None:
        while isinstance(m, (Padding, Resize)):
            if isinstance(m, Padding):
                inside = m.inner.size
                if inside < m.n:
                    self.mark(np.broadcast_to(position >= inside, self.kind.shape), KIND_CODES[m.kind])
            m = m.inner
        if isinstance(m, Broadcast):
            return
        if isinstance(m, Pair):
            self.stage1(m, position % m.size)
            return
        operand, weight = strip_digits(m)
        self.add(operand_key(operand), position * weight)

    def finish(self) -> None:
        """Stage 2: decodes the pending operands, then checks the coordinates against the axis sizes."""
        while self.pending:
            operand = next_operand(self.pending)
            position = self.pending.pop(operand)
            over = position >= operand.size
            if over.any():
                self.mark(np.broadcast_to(over, self.kind.shape), KIND_CODES[PadKind.TOP])
                position = np.where(over, 0, position)
            self.stage1(operand, position)
        for axis, coordinate in self.coords.items():
            over = coordinate >= axis.size
            if over.any():
                self.mark(np.broadcast_to(over, self.kind.shape), KIND_CODES[PadKind.TOP])


def _evaluate(parts: tuple[Mapping, ...], positions: list[Ints], shape: tuple[int, ...]) -> CellTable:
    state = _Tables(shape)
    names: dict[str, int] = {}
    for part, position in zip(parts, positions, strict=True):
        state.stage1(part, position)
        names.update(part.axes)
    state.finish()
    coords: dict[str, Ints] = {}
    dead = state.kind != LIVE if state.padded else None
    by_name = {symbol.name: values for symbol, values in state.coords.items()}
    for name in names:
        full = np.empty(shape, np.int64)
        full[...] = by_name.get(name, np.zeros((), np.int64))
        if dead is not None:
            full[dead] = 0
        full.flags.writeable = False
        coords[name] = full
    state.kind.flags.writeable = False
    return CellTable(state.kind, coords)


def cell(m: Mapping, position: int) -> Cell:
    """The finalised cell of one position."""
    if not 0 <= position < m.size:
        return OUT_OF_BOUNDS
    return cells_at(m, np.array([position], np.int64)).cell(0)


def cells_at(m: Mapping, positions: Ints) -> CellTable:
    """The finalised cells of the given positions, all of them below the size."""
    return _evaluate((m,), [positions], positions.shape)


def table(m: Mapping) -> CellTable:
    """Cells of all positions, shape ``(size,)``."""
    return joint_table(m).reshaped((m.size,))


def joint_table(*parts: Mapping) -> CellTable:
    """Cells of ``pair(*parts)`` in the shape of the parts' sizes; composite operands decode jointly (SEM-003)."""
    return _joint_table(parts)


def joint_slabs(*parts: Mapping, most_positions: int = _SLAB_POSITIONS) -> Iterator[tuple[int, CellTable]]:
    """The joint table in storage order, flat and in slabs of at most so many positions: (first position, cells).

    For tables that are larger than what is made of them.
    """
    flat = [f for part in parts for f in factors(part) if f.size > 1]
    inner, cut = 1, len(flat)
    while cut and inner * flat[cut - 1].size <= most_positions:
        cut -= 1
        inner *= flat[cut].size
    whole = [np.arange(f.size, dtype=np.int64) for f in flat]
    if not cut:
        pieces = [whole]
    else:
        width = max(1, most_positions // inner)
        split = [np.arange(at, min(at + width, flat[cut - 1].size), dtype=np.int64) for at in range(0, flat[cut - 1].size, width)]
        outer = [[w[i : i + 1] for i in range(len(w))] for w in whole[: cut - 1]]
        pieces = [[*fixed, *whole[cut:]] for fixed in itertools.product(*outer, split)]
    start = 0
    for piece in pieces:
        shape = tuple(len(p) for p in piece)
        positions = [p.reshape([-1 if n == place else 1 for n in range(len(piece))]) for place, p in enumerate(piece)]
        count = math.prod(shape)
        yield start, _evaluate(tuple(flat), positions, shape).reshaped((count,))
        start += count


def _table_bytes(cells: CellTable) -> int:
    return cells.nbytes


@array_cache(_CACHED_BYTES, _table_bytes)
def _joint_table(parts: tuple[Mapping, ...]) -> CellTable:
    members = [factors(p) for p in parts]
    flat = [f for group in members for f in group if f.size > 1]
    positions = []
    for place, member in enumerate(flat):
        shape = [1] * len(flat)
        shape[place] = member.size
        positions.append(np.arange(member.size, dtype=np.int64).reshape(shape))
    joint = _evaluate(tuple(flat), positions, tuple(f.size for f in flat))
    for name in pair(*parts).axes:
        if name not in joint.coords:
            zeros = np.zeros(joint.kind.shape, np.int64)
            zeros.flags.writeable = False
            joint.coords[name] = zeros
    return joint.reshaped(tuple(p.size for p in parts))

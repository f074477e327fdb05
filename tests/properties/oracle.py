"""Brute force for the property tests: one position at a time, with Python integers, straight from the rules (MAP-004 to MAP-015)."""

from __future__ import annotations

from collections import Counter

from tcptune.ir.mappings.mapping import Broadcast, Mapping, Modulo, Padding, Pair, Resize, Stride, Symbol

Cell = str | dict[str, int]


def _key(m: Mapping) -> str:
    """Operands are the same when their text is (the text does not show the nesting of pairs)."""
    return str(m)


class _Position:
    """Cell of one position, by the two stages of MAP-014."""

    def __init__(self) -> None:
        self.coords: dict[str, int] = {}
        self.sizes: dict[str, int] = {}
        self.pending: dict[str, tuple[Mapping, int]] = {}

    def visit(self, m: Mapping, i: int) -> str | None:
        if isinstance(m, Broadcast):
            return None
        if isinstance(m, Symbol):
            self.coords[m.name] = self.coords.get(m.name, 0) + i
            self.sizes[m.name] = m.size
            return None
        if isinstance(m, Pair):
            return self.visit(m.left, i // m.right.size) or self.visit(m.right, i % m.right.size)
        if isinstance(m, Resize):
            return self.visit(m.inner, i)
        if isinstance(m, Padding):
            return m.kind.value if i >= m.inner.size else self.visit(m.inner, i)
        while isinstance(m, (Stride, Modulo)):
            i *= m.n if isinstance(m, Stride) else 1
            m = m.inner
        if isinstance(m, Symbol):
            return self.visit(m, i)
        self.pending[_key(m)] = (m, self.pending.get(_key(m), (m, 0))[1] + i)
        return None

    def decode(self) -> str | None:
        while self.pending:
            inside = {k: {_key(x) for x in _operands(m) if x is not m} for k, (m, _) in self.pending.items()}
            free = [k for k in self.pending if not any(k in inside[o] for o in self.pending if o != k)]
            chosen = max(free, key=lambda k: self.pending[k][0].size)
            m, i = self.pending.pop(chosen)
            kind = "top" if i >= m.size else self.visit(m, i)
            if kind:
                return kind
        return "top" if any(value >= self.sizes[name] for name, value in self.coords.items()) else None


def _operands(m: Mapping) -> list[Mapping]:
    """Operands of `/` and `%` anywhere inside."""
    if isinstance(m, Pair):
        return [*_operands(m.left), *_operands(m.right)]
    if isinstance(m, (Padding, Resize)):
        return _operands(m.inner)
    if isinstance(m, (Stride, Modulo)):
        while isinstance(m, (Stride, Modulo)):
            m = m.inner
        return [m, *_operands(m)]
    return []


def cell(m: Mapping, i: int) -> Cell:
    """The finalised cell: ``top``, ``zero``, ``bottom``, ``oob``, or the coordinates that are not 0."""
    if i >= m.size:
        return "oob"
    state = _Position()
    kind = state.visit(m, i) or state.decode()
    return kind or {name: value for name, value in state.coords.items() if value}


def cells(m: Mapping) -> list[Cell]:
    """Cells of all positions."""
    return [cell(m, i) for i in range(m.size)]


def held(m: Mapping) -> Counter[tuple[tuple[str, int], ...]]:
    """How often each index is held by a live position."""
    return Counter(tuple(sorted(c.items())) for c in cells(m) if isinstance(c, dict))

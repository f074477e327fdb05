"""Algebra of mappings: equivalence, splitting, division, containment, permutation."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from tcptune.errors import RuleViolation
from tcptune.ir.cells import table
from tcptune.ir.mapping import Mapping, Modulo, Stride, pair


@lru_cache(maxsize=65_536)
def equivalent(a: Mapping, b: Mapping) -> bool:
    """Same size and same finalised cell at every position (MAP-020)."""
    if a is b:
        return True
    if a.size != b.size:
        return False
    ta, tb = table(a), table(b)
    if not np.array_equal(ta.kind, tb.kind):
        return False
    zeros = np.zeros(1, np.int64)
    return all(bool(np.all(ta.coords.get(n, zeros) == tb.coords.get(n, zeros))) for n in {*ta.coords, *tb.coords})


def split_at(m: Mapping, n: int) -> tuple[Mapping, Mapping]:
    """``(m / n, m % n)``, cut between terms where possible."""
    if n < 1 or m.size % n:
        Stride(m, n)
    inner: list[Mapping] = []
    outer = m.terms()
    below = 1
    while below < n:
        term = outer.pop()
        if n % (below * term.size) == 0:
            inner.insert(0, term)
            below *= term.size
            continue
        step = n // below
        if n % below or term.size % step:
            return Stride(m, n), Modulo(m, n)
        outer.append(Stride(term, step))
        inner.insert(0, Modulo(term, step))
        below = n
    return pair(*outer), pair(*inner)


def live_size(m: Mapping) -> int:
    """Number of live positions."""
    return int(np.count_nonzero(table(m).kind == 0))


def is_broadcast_free(m: Mapping) -> bool:
    """Whether no two live positions hold the same index."""
    cells = table(m)
    rows = np.stack([c[cells.live] for c in cells.coords.values()]) if cells.coords else np.zeros((1, live_size(m)), np.int64)
    return bool(np.unique(rows, axis=1).shape[1] == rows.shape[1])


def divide(m: Mapping, part: Mapping) -> Mapping:
    """What is left of `m` when the terms of `part` are taken out."""
    rest = m.terms()
    for term in part.terms():
        for place, candidate in enumerate(rest):
            if candidate is term:
                del rest[place]
                break
        else:
            raise RuleViolation("MAP-023", f"{term} is not a part of {m}", expected=str(m), got=str(part))
    return pair(*rest)


def divide_relaxed(m: Mapping, part: Mapping) -> Mapping:
    """As `divide`."""
    return divide(m, part)


def contains(m: Mapping, part: Mapping) -> bool:
    """Whether `divide` would succeed."""
    try:
        divide(m, part)
    except RuleViolation:
        return False
    return True


def is_permutation_of(a: Mapping, b: Mapping) -> bool:
    """Whether both hold the same indices equally often."""
    if a.size != b.size:
        return False
    names = sorted({*a.axes, *b.axes})

    def rows(m: Mapping) -> np.ndarray[tuple[int, ...], np.dtype[np.int64]]:
        cells = table(m)
        zeros = np.zeros(m.size, np.int64)
        stacked = np.stack([cells.kind.astype(np.int64), *(cells.coords.get(n, zeros) for n in names)])
        return stacked[:, np.lexsort(stacked)]

    return bool(np.array_equal(rows(a), rows(b)))

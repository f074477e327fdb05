"""Algebra of mappings on the symbolic view: equivalence, splitting, division, containment, permutation (MAP-020 to MAP-023).

Nothing here enumerates positions of mappings whose digits line up; results are cached by identity, as nodes are hash-consed.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import numpy.typing as npt

from tcptune.errors import RuleViolation, WorkError
from tcptune.ir.mappings.algebra_cases import evaluate, explore, same_cells
from tcptune.ir.mappings.algebra_terms import (
    Term,
    digits_used_once,
    from_terms,
    live_terms,
    regular,
    remove,
    simplify,
    split_terms,
    terms_of,
)
from tcptune.ir.mappings.cells import KIND_CODES, LIVE, cells_at, strip_digits
from tcptune.ir.mappings.mapping import Mapping, Modulo, Padding, PadKind, Pair, Resize, Stride, Symbol, factors, pair, walk
from tcptune.ir.mappings.normal_form import normal_form

_ENUMERATION_LIMIT = 2**22
"""Positions up to which a question that case splitting gives up is answered by looking at every position."""

_CACHE = 16_384


@lru_cache(maxsize=_CACHE)
def equivalent(a: Mapping, b: Mapping) -> bool:
    """Same size and same finalised cell at every position (MAP-020).

    Raises:
        WorkError: the digits do not line up and the mappings are too large to look at every position.
    """
    if a is b:
        return True
    if a.size != b.size:
        return False
    if normal_form(a) == normal_form(b):  # the usual case, and the cheapest
        return True
    try:
        return same_cells(a, b)
    except WorkError:
        if a.size > _ENUMERATION_LIMIT:
            raise
    positions = np.arange(a.size, dtype=np.int64)
    first, second = cells_at(a, positions), cells_at(b, positions)
    zeros = np.zeros(1, np.int64)
    return bool(np.array_equal(first.kind, second.kind)) and all(
        bool(np.all(first.coords.get(n, zeros) == second.coords.get(n, zeros))) for n in {*first.coords, *second.coords}
    )


@lru_cache(maxsize=_CACHE)
def split_at(m: Mapping, n: int) -> tuple[Mapping, Mapping]:
    """``(m / n, m % n)`` in simplest form, but digits of a group stay digits of it.

    Such a digit is decoded together with the group's other digits, which may stand in another level (MAP-014): ``[A, B] / 6`` beside
    ``[A, B] % 6`` is not what a simpler text of the same cells would be there.

    Raises:
        RuleViolation: MAP-010, n does not divide the size.
    """
    outer = Stride(m, n)
    if not regular(m):
        return _split_by_factors(m, n) or (outer, Modulo(m, n))
    cut = split_terms(pair(*factors(m)) if _has_group_digits(m) else simplify(m), n)
    if cut is not None:
        return cut
    return simplify(outer), simplify(Modulo(m, n))


def _has_group_digits(m: Mapping) -> bool:
    """Whether a factor is a digit of several axes in one operand."""
    return any(strip_digits(f)[0] is not f and any(isinstance(node, Pair) for node in walk(strip_digits(f)[0])) for f in factors(m))


def _split_by_factors(m: Mapping, n: int) -> tuple[Mapping, Mapping] | None:
    """The parts of a mapping with several kinds of padding, cut at its factors; None where they are not ``m / n`` and ``m % n``.

    Rewriting does not keep every cell of such a mapping (which kind a cell has may depend on both parts), but each part has one position
    of the other: so both are proven by comparison. Before -> after: ``A # 8, B #{0} 4`` at 2 -> ``A # 8, B #{0} 4 / 2  |  B #{0} 4 % 2``.
    """
    if not digits_used_once(m):
        return None
    for parts in ([part for factor in factors(m) for part in factors(simplify(factor))], factors(m)):
        cut = split_terms(pair(*parts), n)
        if cut is not None and equivalent(cut[0], Stride(m, n)) and equivalent(cut[1], Modulo(m, n)):
            return cut
    return None


def live_size(m: Mapping) -> int:
    """Number of live positions.

    Raises:
        WorkError: as `equivalent`.
    """
    return count_cells(m, None)


@lru_cache(maxsize=_CACHE)
def count_cells(m: Mapping, kind: PadKind | None) -> int:
    """Number of positions with padding of `kind`, or of live positions (None).

    Raises:
        WorkError: as `equivalent`.
    """
    try:
        return sum(box.volume for box, cell in explore(m.size, lambda box: evaluate(box, m)) if cell.kind is kind)
    except WorkError:
        if m.size > _ENUMERATION_LIMIT:
            raise
    code = LIVE if kind is None else KIND_CODES[kind]
    return int(np.count_nonzero(cells_at(m, np.arange(m.size, dtype=np.int64)).kind == code))


@lru_cache(maxsize=_CACHE)
def is_broadcast_free(m: Mapping) -> bool:
    """Whether no two live positions hold the same index.

    Decided on digits. Digits that occur twice, and parts of a group that repeats cut inside its factors, are looked at position by position
    if there are not too many, and count as repeating otherwise.
    """
    if digits_used_once(m):
        reach: dict[Mapping, int] = {}
        for term in reversed(live_terms(m)):
            operand = term.operand
            if operand is None or term.weight < reach.get(operand, 1):
                return False
            reach[operand] = reach.get(operand, 1) + term.weight * (term.extent - 1)
        if all(_holds_no_index_twice(operand) for operand in reach):
            return True
    if m.size > _ENUMERATION_LIMIT:
        return False
    held = _held_indices(m, tuple(m.axes))
    return bool(np.unique(held, axis=1).shape[1] == held.shape[1])


def _held_indices(m: Mapping, axes: tuple[str, ...]) -> npt.NDArray[np.int64]:
    """Coordinates of all live positions, a row an axis, sorted; looks at every position."""
    cells = cells_at(m, np.arange(m.size, dtype=np.int64))
    count = int(np.count_nonzero(cells.live))
    rows = [cells.coords[n][cells.live] if n in cells.coords else np.zeros(count, np.int64) for n in axes]
    held = np.stack(rows or [np.zeros(count, np.int64)])
    return held[:, np.lexsort(held)]


def _holds_no_index_twice(operand: Mapping) -> bool:
    while isinstance(operand, (Padding, Resize)):  # a part of something that does not repeat does not repeat
        operand = operand.inner
    return isinstance(operand, Symbol) or is_broadcast_free(operand)


@lru_cache(maxsize=_CACHE)
def divide(m: Mapping, part: Mapping) -> Mapping:
    """What is left of `m` when the digits of `part` are taken out; the places close up.

    Before -> after: ``A, B`` by ``B % 4`` -> ``A, B / 4``; ``A # 16 / 4, B, A # 16 % 4`` by ``A # 16`` -> ``B``.

    Raises:
        RuleViolation: MAP-023, `part` is not a part of `m`.
    """
    return _carve(m, part, relaxed=False)


@lru_cache(maxsize=_CACHE)
def divide_relaxed(m: Mapping, part: Mapping) -> Mapping:
    """As `divide`, but a resized or padded term of `part` may cover its whole operand, and padding of `m` around a term goes with it.

    Raises:
        RuleViolation: MAP-023, not even that holds.
    """
    return _carve(m, part, relaxed=True)


def _carve(m: Mapping, part: Mapping, relaxed: bool) -> Mapping:
    rest = terms_of(m)
    for term in terms_of(part):
        left = remove(rest, term)
        if left is None and relaxed:
            left = _remove_relaxed(rest, term)
        if left is None:
            raise RuleViolation(
                "MAP-023",
                f"{term.mapping()} is not a part of the mapping",
                expected=f"digits of {m}",
                got=part,
                nearest=_nearest_part(rest, term),
            )
        rest = left
    return from_terms(rest)


def _nearest_part(rest: list[Term], term: Term) -> str | None:
    """The terms of `rest` that share the operand or an axis with `term`."""
    axes = set(term.operand.axes) if term.operand is not None else set()
    near = [t.mapping() for t in rest if t.operand is not None and axes & set(t.operand.axes)]
    return ", ".join(str(n) for n in near) or None


def _remove_relaxed(rest: list[Term], term: Term) -> list[Term] | None:
    operand = term.operand
    for place, candidate in enumerate(rest):  # the candidate is the term with padding or a resize around it
        inside = candidate.operand
        if candidate.weight != 1 or inside is None or candidate.extent != inside.size:
            continue
        while isinstance(inside, (Padding, Resize)):
            inside = inside.inner
            if inside is term.mapping() or inside is operand:
                return rest[:place] + rest[place + 1 :]
    if isinstance(operand, (Padding, Resize)) and term.weight == 1 and term.extent == operand.size:
        left: list[Term] | None = rest
        for inner in terms_of(operand.inner):
            found = None if left is None else remove(left, inner)
            left = _remove_relaxed(left, inner) if found is None and left is not None else found
        return left
    return None


def contains(m: Mapping, part: Mapping) -> bool:
    """Whether `divide` would succeed."""
    try:
        divide(m, part)
    except RuleViolation:
        return False
    return True


@lru_cache(maxsize=_CACHE)
def is_permutation_of(a: Mapping, b: Mapping) -> bool:
    """Whether both have the same size and hold the same indices equally often, in whatever order and with padding wherever it is.

    Decided on digits; mappings in which a digit occurs twice are looked at position by position if they are small, and are no
    permutations otherwise.
    """
    if a.size != b.size:
        return False
    if not (digits_used_once(a) and digits_used_once(b)):
        axes = tuple(sorted({*a.axes, *b.axes}))
        return a.size <= _ENUMERATION_LIMIT and np.array_equal(_held_indices(a, axes), _held_indices(b, axes))
    left = live_terms(b)
    for term in live_terms(a):
        found = remove(left, term)
        if found is None:
            return False
        left = found
    return not left

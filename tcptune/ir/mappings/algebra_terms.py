"""Terms: a mapping as a list of digits of its operands, major first, and the rewriting that keeps such lists simple.

A term is ``operand / weight % extent``. The operand is an axis, or a whole expression that padding, resize or grouping made indivisible,
or None for a broadcast. All functions keep every cell of the mapping they rewrite (for mappings that do not use a digit twice).
"""

from __future__ import annotations

from itertools import pairwise
from math import prod
from typing import NamedTuple

from tcptune.ir.mappings.cells import operand_key, strip_digits
from tcptune.ir.mappings.mapping import IDENTITY, Broadcast, Mapping, Modulo, Padding, Pair, Resize, Stride, Symbol, factors, pair, walk


class Term(NamedTuple):
    """``operand / weight % extent``; operand None is a broadcast of `extent`."""

    operand: Mapping | None
    weight: int
    extent: int

    def mapping(self) -> Mapping:
        """The shortest expression of the term."""
        if self.operand is None:
            return Broadcast(self.extent)
        return digit(self.operand, self.weight, self.extent)


def digit(operand: Mapping, weight: int, extent: int) -> Mapping:
    """``operand / weight % extent`` without operators that do nothing."""
    if extent == 1:
        return IDENTITY
    outer = operand if weight == 1 else Stride(operand, weight)
    return outer if outer.size == extent else Modulo(outer, extent)


def terms_of(m: Mapping) -> list[Term]:
    """Terms of the simplified mapping, major first; factors of size 1 are dropped."""
    found: list[Term] | None = m._memo.get("terms_of")
    if found is None:
        found = []
        for factor in factors(simplify(m)):
            if factor.size == 1:
                continue
            if isinstance(factor, Broadcast):
                found.append(Term(None, 1, factor.size))
            else:
                operand, weight = strip_digits(factor)
                found.append(Term(operand, weight, factor.size))
        m._memo["terms_of"] = found
    return list(found)


def from_terms(terms: list[Term]) -> Mapping:
    """The pair list of the terms, neighbouring digits of one operand joined."""
    return pair(*(t.mapping() for t in joined(terms)))


def joined(terms: list[Term]) -> list[Term]:
    """Neighbours ``X / (w * e) % f, X / w % e`` become ``X / w % (e * f)``; neighbouring broadcasts multiply."""
    out: list[Term] = []
    for term in terms:
        if term.extent == 1:
            continue
        if out and out[-1].operand is term.operand:
            last = out[-1]
            if term.operand is None or last.weight == term.weight * term.extent:
                out[-1] = Term(term.operand, term.weight, last.extent * term.extent)
                continue
        out.append(term)
    return out


def simplify(m: Mapping) -> Mapping:
    """An equivalent mapping without operators that do nothing, chains of `/` and `%` in shortest form and groups opened where digits allow.

    A mapping that is not `regular` is returned as it is.
    """
    found: Mapping | None = m._memo.get("simple")
    if found is None:
        if not regular(m):
            m._memo["simple"] = m
            return m
        parts = [_simple_factor(f) for f in factors(m)]
        terms: list[Term] = []
        for part in (p for group in parts for p in factors(group)):
            operand, weight = strip_digits(part)
            terms.append(Term(None if isinstance(part, Broadcast) else operand, weight, part.size))
        found = pair(*factors(from_terms(terms)))
        if found is not m:  # digits that met may have completed an operand, which opens now
            found = simplify(found)
        m._memo["simple"] = found
    return found


def opened_factors(m: Mapping) -> list[Mapping]:
    """Factors of the mapping, major first, with groups opened where digits allow: ``[D, I] / 2, [D, I] % 2`` with I = 2 is D and I.

    Factors without a group stay as they were written, and neighbouring digits apart, unless only together they complete a group:
    ``[A, T] / 8, [A, T] % 8`` with T = 5 is A and T.
    """
    if not regular(m):
        return factors(m)
    opened = [part for factor in factors(m) for part in (factors(_simple_factor(factor)) if _has_group(factor) else (factor,))]
    if any(isinstance(part, (Stride, Modulo)) and _has_group(part) for part in opened):
        return factors(simplify(m))
    return opened


def _has_group(m: Mapping) -> bool:
    return any(isinstance(node, Pair) for node in walk(m))


def regular(m: Mapping) -> bool:
    """Whether rewriting term by term keeps every cell: no digit is used twice, and at most one kind of padding occurs.

    (With several kinds the order of decoding decides which kind a cell has; a digit used twice makes cells overshoot.)
    """
    found: bool | None = m._memo.get("regular")
    if found is None:
        found = _one_kind(m) and digits_used_once(m)
        m._memo["regular"] = found
    return found


def _one_kind(m: Mapping) -> bool:
    kinds = {node.kind for node in walk(m) if isinstance(node, Padding) and node.n > node.inner.size}
    return len(kinds) <= 1


def digits_used_once(m: Mapping) -> bool:
    """Whether no digit of an axis or operand occurs twice, operands inside operands included."""
    used: dict[Mapping, list[tuple[int, int]]] = {}
    seen: set[Mapping] = set()
    undivided: set[Mapping] = set()
    waiting = [m]
    while waiting:
        node = waiting.pop()
        while isinstance(node, (Padding, Resize)):
            undivided.add(operand_key(node))
            node = node.inner
        if isinstance(node, Pair):
            waiting += (node.left, node.right)
        elif isinstance(node, (Stride, Modulo, Symbol)):
            operand, weight = strip_digits(node)
            operand = operand_key(operand)
            if node.size > 1:
                used.setdefault(operand, []).append((weight, weight * node.size))
            if not isinstance(operand, Symbol) and operand not in seen:
                seen.add(operand)
                waiting.append(operand.inner if isinstance(operand, (Padding, Resize)) else operand)
    if any(operand in used for operand in undivided):  # once whole, once in digits
        return False
    for spans in used.values():
        spans.sort()
        if any(low < high for (_, high), (low, _) in pairwise(spans)):
            return False
    return True


def _simple_factor(m: Mapping) -> Mapping:
    if isinstance(m, Padding):
        return padded(simplify(m.inner), m)
    if isinstance(m, Resize):
        return resized(simplify(m.inner), m.n)
    if isinstance(m, (Stride, Modulo)):
        operand, weight = strip_digits(m)
        return take(simplify(operand) if isinstance(operand, (Pair, Padding, Resize)) else operand, weight, m.size)
    return m


def padded(inner: Mapping, like: Padding) -> Mapping:
    """`inner` padded as `like` is; whole minor parts are left outside: ``[A, B] # n`` -> ``A # (n / size of B), B``."""
    n = like.n
    if n == inner.size:
        return inner
    if isinstance(inner, Padding) and inner.kind is like.kind:
        inner = inner.inner
    parts = factors(inner)
    minor: list[Mapping] = []
    while len(parts) > 1 and n % parts[-1].size == 0:
        minor.append(parts.pop())
        n //= minor[-1].size
    major = pair(*parts)
    if isinstance(major, Padding) and major.kind is like.kind:
        major = major.inner
    return pair(Padding(major, n, like.kind), *reversed(minor))


def resized(inner: Mapping, n: int) -> Mapping:
    """The first n positions of `inner`, padding cut and whole minor parts kept."""
    if n == inner.size:
        return inner
    if n == 1:
        return IDENTITY
    if isinstance(inner, Padding):
        return Padding(inner.inner, n, inner.kind) if n > inner.inner.size else resized(inner.inner, n)
    if isinstance(inner, Resize):
        return resized(inner.inner, n)
    parts = factors(inner)
    if len(parts) == 1:
        return Broadcast(n) if isinstance(inner, Broadcast) else Resize(inner, n)
    below = inner.size // parts[0].size
    rest = pair(*parts[1:])
    if n % below == 0:
        return pair(resized(parts[0], n // below), rest)
    return resized(rest, n) if n < below else Resize(inner, n)


def take(m: Mapping, weight: int, extent: int) -> Mapping:
    """``m / weight % extent``, as parts of `m` where the boundaries allow."""
    if extent == 1:
        return IDENTITY
    if isinstance(m, Broadcast):
        return Broadcast(extent)
    cut = _take(m, weight, extent)
    return cut if cut is not None else digit(m, weight, extent)


def _take(m: Mapping, weight: int, extent: int) -> Mapping | None:
    """`take`, or None where a boundary falls inside something indivisible."""
    outer = split_terms(m, weight)
    if outer is None:
        return None
    inner = split_terms(outer[0], extent)
    return None if inner is None else inner[1]


def split_terms(m: Mapping, n: int) -> tuple[Mapping, Mapping] | None:
    """``(m / n, m % n)`` for a simplified `m`, cut between or inside its terms; None where the cut is not possible."""
    if n == 1:
        return m, IDENTITY
    if n == m.size:
        return IDENTITY, m
    outer = factors(m)
    inner: list[Mapping] = []
    below = 1
    while below < n:
        last = outer.pop()
        if n % below:
            return None
        step = n // below
        if step % last.size == 0:
            inner.append(last)
            below *= last.size
            continue
        cut = _split_factor(last, step)
        if cut is None:
            return None
        outer.append(cut[0])
        inner.append(cut[1])
        below = n
    return pair(*outer), pair(*reversed(inner))


def _split_factor(m: Mapping, n: int) -> tuple[Mapping, Mapping] | None:
    if m.size % n:
        return None
    if isinstance(m, Broadcast):
        return Broadcast(m.size // n), Broadcast(n)
    if isinstance(m, Padding) and m.inner.size == 1:
        return Padding(IDENTITY, m.size // n, m.kind), Padding(IDENTITY, n, m.kind)
    operand, weight = strip_digits(m)
    return digit(operand, weight * n, m.size // n), digit(operand, weight, n)


def remove(rest: list[Term], part: Term) -> list[Term] | None:
    """`rest` without the positions of `part`; None if `rest` does not hold all of them. Digits are cut where needed."""
    if part.operand is None:
        return _remove_broadcast(rest, part.extent)
    out = list(rest)
    low, high = part.weight, part.weight * part.extent
    while low < high:
        for place, term in enumerate(out):
            end = term.weight * term.extent
            if term.operand is part.operand and term.weight <= low < end and low % term.weight == 0:
                upper = min(high, end)
                if end % low or upper % low or end % upper:
                    return None
                pieces = [Term(term.operand, upper, end // upper), Term(term.operand, term.weight, low // term.weight)]
                out[place : place + 1] = [p for p in pieces if p.extent > 1]
                low = upper
                break
        else:
            return None
    return out


def _remove_broadcast(rest: list[Term], extent: int) -> list[Term] | None:
    for place, term in enumerate(rest):
        if term.operand is None and term.extent % extent == 0:
            left = term.extent // extent
            return rest[:place] + ([Term(None, 1, left)] if left > 1 else []) + rest[place + 1 :]
    return None


def whole(term: Term) -> bool:
    """Whether the term is all of a composite operand."""
    return term.operand is not None and term.weight == 1 and term.extent == term.operand.size


def live_terms(m: Mapping) -> list[Term]:
    """Terms of the live part in no particular order: padding taken off, digits of one operand collected, complete operands opened."""
    waiting = terms_of(m)
    done: list[Term] = []
    while waiting:
        waiting = joined(sorted(waiting, key=lambda t: (str(t.operand), -t.weight)))
        opened: list[Term] = []
        for term in waiting:
            operand = term.operand
            if whole(term) and isinstance(operand, Padding):
                opened += terms_of(operand.inner)
            elif whole(term) and isinstance(operand, Pair):
                opened += terms_of(operand)
            elif whole(term) and isinstance(operand, Resize):
                base, weight = strip_digits(operand.inner)
                if isinstance(base, Pair):
                    done.append(term)
                else:
                    done.append(Term(base, weight, operand.n))
            else:
                done.append(term)
        waiting = opened + done if opened else []
        if opened:
            done = []
    return joined(sorted(done, key=lambda t: (str(t.operand), -t.weight)))


def count(terms: list[Term]) -> int:
    """Positions of the list."""
    return prod(t.extent for t in terms)

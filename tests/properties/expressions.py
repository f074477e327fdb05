"""Hypothesis strategies: random mapping expressions over a few small axes, all constructors, and pairs that are nearly equal."""

from __future__ import annotations

from hypothesis import strategies as st

from tcptune.ir.mappings.axes import Axes
from tcptune.ir.mappings.mapping import Broadcast, Mapping, Modulo, Padding, PadKind, Pair, Resize, Stride, Symbol

AXES = Axes(A=2, B=3, C=4, D=6, E=8, F=12, G=1)
MAX_POSITIONS = 20_000

_ATOMS = st.one_of(
    st.sampled_from([Symbol(name, size) for name, size in AXES.items()]),
    st.integers(1, 4).map(Broadcast),
)


def divisors(n: int) -> list[int]:
    """All divisors of n."""
    return [d for d in range(1, n + 1) if n % d == 0]


@st.composite
def _grown(draw: st.DrawFn, children: st.SearchStrategy[Mapping]) -> Mapping:
    kind = draw(st.sampled_from(["pair", "pair", "split", "stride", "modulo", "resize", "pad", "pad"]))
    inner = draw(children)
    if kind == "pair":
        right = draw(children)
        return Pair(inner, right) if inner.size * right.size <= MAX_POSITIONS else inner
    if kind == "pad":
        extra = draw(st.integers(0, 8))
        padded = inner.size + extra
        return Padding(inner, padded, draw(st.sampled_from(PadKind))) if padded <= MAX_POSITIONS else inner
    if kind == "resize":
        return Resize(inner, draw(st.integers(1, inner.size)))
    n = draw(st.sampled_from(divisors(inner.size)))
    if kind == "stride":
        return Stride(inner, n)
    if kind == "modulo":
        return Modulo(inner, n)
    outer, low = Stride(inner, n), Modulo(inner, n)
    if draw(st.booleans()):
        return Pair(outer, low)
    middle = draw(children)
    parts = draw(st.permutations([outer, middle, low])) if inner.size * middle.size <= MAX_POSITIONS else [outer, low]
    result = parts[-1]
    for part in reversed(parts[:-1]):
        result = Pair(part, result)
    return result


def mappings(max_leaves: int = 6) -> st.SearchStrategy[Mapping]:
    """Random expressions of at most `MAX_POSITIONS` positions."""
    return st.recursive(_ATOMS, _grown, max_leaves=max_leaves).filter(lambda m: m.size <= MAX_POSITIONS)


@st.composite
def rewritten(draw: st.DrawFn, m: Mapping) -> Mapping:
    """An expression that the identities of MAP-021 make equal to `m`.

    They are applied to the whole: inside a pair, splitting a padded part defers its padding behind plain padding of another kind.
    """
    for _ in range(draw(st.integers(1, 3))):
        rule = draw(st.sampled_from(["unit", "split", "stride1", "pad", "resize", "project"]))
        if rule == "unit":
            m = Pair(m, Broadcast(1)) if draw(st.booleans()) else Pair(Broadcast(1), m)
        elif rule == "split":
            n = draw(st.sampled_from(divisors(m.size)))
            m = Pair(Stride(m, n), Modulo(m, n))
        elif rule == "stride1":
            m = Stride(m, 1)
        elif rule == "pad":
            m = Padding(m, m.size, draw(st.sampled_from(PadKind)))
        elif rule == "resize":
            m = Resize(m, m.size)
        else:
            m = Modulo(Pair(Broadcast(2), m), m.size)
    return m


@st.composite
def nearby(draw: st.DrawFn, m: Mapping) -> Mapping:
    """An expression of the same size as `m`, often equal and often different in one place."""
    choice = draw(st.sampled_from(["rewrite", "swap", "kind", "other", "resplit"]))
    if choice == "swap" and isinstance(m, Pair):
        return Pair(m.right, m.left)
    if choice == "kind" and isinstance(m, Padding):
        return Padding(m.inner, m.n, draw(st.sampled_from(PadKind)))
    if choice == "resplit":
        n = draw(st.sampled_from(divisors(m.size)))
        return Pair(Modulo(m, n), Stride(m, n))
    if choice == "other":
        other = draw(mappings(3))
        if other.size <= m.size:
            return Padding(other, m.size)
        return Resize(other, m.size)
    return draw(rewritten(m))


@st.composite
def streams(draw: st.DrawFn) -> tuple[Mapping, Mapping, Mapping]:
    """A buffer with the Time and Packet of a stream: digits of the buffer in some order, sometimes padded, repeated or cut elsewhere."""
    buffer = draw(mappings(5))
    terms = [t for term in buffer.terms() for t in _pieces(draw, term)]
    chosen = draw(st.permutations(terms))[:6]
    if draw(st.integers(0, 3)) == 0:
        chosen = [*chosen, draw(_ATOMS)]
    if draw(st.integers(0, 3)) == 0 and chosen:
        place = draw(st.integers(0, len(chosen) - 1))
        chosen[place] = Padding(chosen[place], chosen[place].size + draw(st.integers(0, 4)))
    if draw(st.integers(0, 5)) == 0 and chosen:
        place = draw(st.integers(0, len(chosen) - 1))
        chosen[place] = Resize(chosen[place], draw(st.integers(1, chosen[place].size)))
    cut = draw(st.integers(0, len(chosen)))
    time, packet = _list(chosen[:cut]), _list(chosen[cut:])
    if time.size * packet.size > MAX_POSITIONS:
        packet = Broadcast(1)
    return buffer, time, packet


def _pieces(draw: st.DrawFn, term: Mapping) -> list[Mapping]:
    n = draw(st.sampled_from(divisors(term.size)))
    return [Stride(term, n), Modulo(term, n)] if 1 < n < term.size else [term]


def _list(terms: list[Mapping]) -> Mapping:
    result: Mapping = Broadcast(1)
    for term in reversed(terms):
        result = Pair(term, result)
    return result

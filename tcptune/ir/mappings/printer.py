"""Canonical text and tree form of mapping expressions (MAP-019)."""

from __future__ import annotations

from typing import Any

from tcptune.ir.mappings.mapping import Broadcast, Mapping, Modulo, Padding, Pair, Resize, Stride, Symbol, factors

_TREE_NAMES = {Stride: "stride", Modulo: "modulo", Resize: "resize"}
_MARKS = {Stride: "/", Modulo: "%", Resize: "="}


def canonical(m: Mapping) -> str:
    """The canonical text; parsing it gives the same tree up to the nesting of pairs.

    >>> from tcptune.ir.mappings.axes import Axes
    >>> canonical(Axes(A=3, B=4).mapping("([A,B]#16)/4"))
    '[A, B] # 16 / 4'
    """
    text: str | None = m._memo.get("text")
    if text is None:
        text = ", ".join(_postfix_text(f) for f in factors(m))
        m._memo["text"] = text
    return text


def _postfix_text(m: Mapping) -> str:
    operators: list[str] = []
    while isinstance(m, (Stride, Modulo, Resize, Padding)):
        mark = m.kind.mark if isinstance(m, Padding) else _MARKS[type(m)]
        operators.append(f"{mark} {m.n}")
        m = m.inner
    if isinstance(m, Symbol):
        atom = m.name
    elif isinstance(m, Broadcast):
        atom = str(m.size)
    else:
        atom = f"[{canonical(m)}]"
    return " ".join([atom, *reversed(operators)])


def tree(m: Mapping) -> list[Any]:
    """The tree as nested lists: ``["pair", left, right]``, ``["padding", inner, n, kind]`` and so on."""
    if isinstance(m, Symbol):
        return ["symbol", m.name]
    if isinstance(m, Broadcast):
        return ["broadcast", m.size]
    if isinstance(m, Padding):
        return ["padding", tree(m.inner), m.n, m.kind.value]
    if isinstance(m, (Stride, Modulo, Resize)):
        return [_TREE_NAMES[type(m)], tree(m.inner), m.n]
    members = []
    while isinstance(m, Pair):
        members.append(tree(m.left))
        m = m.right
    result = tree(m)
    for member in reversed(members):
        result = ["pair", member, result]
    return result

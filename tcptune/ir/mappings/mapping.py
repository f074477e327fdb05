"""Mapping expressions: what every position of a buffer, level or stream holds (MAP-001 to MAP-039).

The grammar of the nodes::

    Mapping = Symbol(name, size)                  one axis
            | Broadcast(count)                    `n`; `1` is the identity
            | Pair(left, right)                   `L, R`, left is major
            | Stride(inner, n) | Modulo(inner, n) `L / n`, `L % n`: digits of L
            | Resize(inner, n)                    `L = n`: the first n positions
            | Padding(inner, n, kind)             `L # n`, `L #{0} n`, `L #{!} n`

Nodes are immutable and hash-consed: equal trees are the same object, so `is`, `==` and dictionary look-ups are free and every derived
result is cached on the node. Equality of trees is not the equality that rules speak of; that is `Mapping.equivalent`.
"""

from __future__ import annotations

import enum
import operator
import re
import zlib
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, TypeVar
from weakref import WeakValueDictionary

from tcptune.errors import InputError, RuleViolation
from tcptune.ir.mappings.arguments import close_divisor, is_whole_number, near_divisors, positive, shown

if TYPE_CHECKING:
    from tcptune.ir.mappings.cells import Cell, CellTable
    from tcptune.ir.mappings.normal_form import NormalForm

MAX_DEPTH = 256
"""Deepest nesting of brackets and postfix operators that is accepted."""

MAX_SIZE = 2**62
"""Most positions of one mapping: position tables and flat indices are signed 64-bit numbers."""

_AXIS_NAME = re.compile(r"[A-Z][A-Za-z0-9_]*\Z")

_M = TypeVar("_M", bound="Mapping")


class PadKind(enum.Enum):
    """What a padding cell holds (MAP-007)."""

    TOP = "top"  # readable and writable, contents arbitrary
    ZERO = "zero"  # known to be zero
    BOTTOM = "bottom"  # must not be touched

    @property
    def mark(self) -> str:
        """The operator as written: ``#``, ``#{0}`` or ``#{!}``."""
        return {PadKind.TOP: "#", PadKind.ZERO: "#{0}", PadKind.BOTTOM: "#{!}"}[self]


class Mapping:
    """Base of all nodes; see the module's grammar.

    Attributes:
        size: number of positions.
        depth: nesting depth (a list of pairs counts once).
    """

    __slots__ = ("__weakref__", "_hash", "_memo", "depth", "size")

    size: int
    depth: int
    _hash: int
    _memo: dict[Any, Any]

    # --- values -------------------------------------------------------------------------------------------------------------------
    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"mappings are immutable, cannot set {name}")

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        return self is other

    def __copy__(self: _M) -> _M:
        return self

    def __deepcopy__(self: _M, memo: object) -> _M:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return (_assembled, (_program(self),))

    def __repr__(self) -> str:
        text = str(self)
        return f"m![{text if len(text) <= 200 else text[:200] + '…'}]"

    def __str__(self) -> str:
        from tcptune.ir.mappings.printer import canonical

        return canonical(self)

    # --- constructors on a node ---------------------------------------------------------------------------------------------------
    def stride(self, n: int) -> Stride:
        """``self / n``; MAP-010."""
        return Stride(self, n)

    def modulo(self, n: int) -> Modulo:
        """``self % n``; MAP-011."""
        return Modulo(self, n)

    def resize(self, n: int) -> Resize:
        """``self = n``; MAP-009."""
        return Resize(self, n)

    def pad(self, n: int, kind: PadKind = PadKind.TOP) -> Padding:
        """``self # n``; MAP-006."""
        return Padding(self, n, kind)

    # --- structure ----------------------------------------------------------------------------------------------------------------
    @property
    def axes(self) -> dict[str, int]:
        """Sizes of the axes it names, in order of first mention."""
        if "axes" not in self._memo:
            found: dict[str, int] = {}
            for node in walk(self):
                if isinstance(node, Symbol):
                    found.setdefault(node.name, node.size)
            self._memo["axes"] = found
        return dict(self._memo["axes"])

    def terms(self) -> list[Mapping]:
        """The factors of the pair list, major first, without factors of size 1."""
        return [m for m in factors(self) if m.size != 1]

    def ast(self) -> list[Any]:
        """The tree as nested lists, e.g. ``["padding", ["symbol", "A"], 8, "top"]``."""
        from tcptune.ir.mappings.printer import tree

        return tree(self)

    # --- cells (enumerated view) --------------------------------------------------------------------------------------------------
    def cell(self, position: int) -> Cell:
        """The finalised cell at `position`: ``Index``, ``PaddingCell`` or ``OUT_OF_BOUNDS`` (MAP-014, MAP-015).

        Raises:
            InputError: the position is no whole number.
        """
        from tcptune.ir.mappings.cells import cell

        if not is_whole_number(position):
            raise InputError(f"a position is a whole number, got {shown(position)}", hint=f"cells of the mapping: 0 to {self.size - 1}")
        return cell(self, operator.index(position))

    def table(self) -> CellTable:
        """Cells of all positions as numpy arrays; costs time and memory proportional to `size`."""
        from tcptune.ir.mappings.cells import table

        return table(self)

    # --- algebra (symbolic view) --------------------------------------------------------------------------------------------------
    def normal_form(self) -> NormalForm:
        """Digits of the position, major first, with the guards that make cells padding; never enumerates positions."""
        from tcptune.ir.mappings.normal_form import normal_form

        return normal_form(self)

    def equivalent(self, other: Mapping) -> bool:
        """Whether both have the same size and the same finalised cell at every position (MAP-020)."""
        from tcptune.ir.mappings.algebra import equivalent

        return equivalent(self, _mapping(other, "equivalent"))

    def split_at(self, n: int) -> tuple[Mapping, Mapping]:
        """``(self / n, self % n)`` in simplest form, digits of groups kept as such; MAP-010 if n does not divide the size."""
        from tcptune.ir.mappings.algebra import split_at

        return split_at(self, n)

    def pad_to_multiple(self, n: int, kind: PadKind = PadKind.TOP) -> Mapping:
        """Itself, padded at the end to the next multiple of `n` positions; MAP-039."""
        n = positive(n, "MAP-039", "the multiple that a padding reaches")
        size = -(-self.size // n) * n
        return self if size == self.size else Padding(self, size, kind)

    @property
    def live_size(self) -> int:
        """Number of live positions."""
        from tcptune.ir.mappings.algebra import live_size

        return live_size(self)

    @property
    def is_broadcast_free(self) -> bool:
        """Whether no two live positions hold the same index."""
        from tcptune.ir.mappings.algebra import is_broadcast_free

        return is_broadcast_free(self)

    def divide(self, part: Mapping) -> Mapping:
        """What is left when the digits of `part` are taken out; their places close up. RuleViolation if `part` is not a part."""
        from tcptune.ir.mappings.algebra import divide

        return divide(self, _mapping(part, "divide"))

    def divide_relaxed(self, part: Mapping) -> Mapping:
        """As `divide`, but `part` may be shorter than the digits it covers (a resize, or padding that was cut)."""
        from tcptune.ir.mappings.algebra import divide_relaxed

        return divide_relaxed(self, _mapping(part, "divide_relaxed"))

    def contains(self, part: Mapping) -> bool:
        """Whether `divide` would succeed."""
        from tcptune.ir.mappings.algebra import contains

        return contains(self, _mapping(part, "contains"))

    def is_permutation_of(self, other: Mapping) -> bool:
        """Whether both hold the same indices equally often, in whatever order."""
        from tcptune.ir.mappings.algebra import is_permutation_of

        return is_permutation_of(self, _mapping(other, "is_permutation_of"))


_NODES: WeakValueDictionary[tuple[Any, ...], Mapping] = WeakValueDictionary()


def _build(cls: type[_M], key: tuple[Any, ...], size: int, depth: int, **fields: object) -> _M:
    if size > MAX_SIZE:
        raise RuleViolation("MAP-001", "the mapping has more than 2^62 positions", got=_brief(size))
    if depth > MAX_DEPTH:
        raise RuleViolation("MAP-018", f"the expression is nested deeper than {MAX_DEPTH} levels")
    node = object.__new__(cls)
    put = object.__setattr__
    for name, value in fields.items():
        put(node, name, value)
    put(node, "size", size)
    put(node, "depth", depth)
    put(node, "_hash", hash(tuple(_stable(part) for part in key)))
    put(node, "_memo", {})
    stored: _M = _NODES.setdefault(key, node)  # type: ignore[assignment]  # the key begins with the class of the node
    return stored


def _stable(part: object) -> int:
    """A number for one part of a node that is the same in every process, so that sets of mappings have one order."""
    if isinstance(part, Mapping):
        return part._hash
    if isinstance(part, int):
        return part
    text = part.value if isinstance(part, PadKind) else part if isinstance(part, str) else getattr(part, "__name__", "")
    return zlib.crc32(text.encode())


def _brief(n: int) -> str:
    return str(n) if n.bit_length() <= 128 else f"about 2^{n.bit_length()}"


def _mapping(value: object, asked: str) -> Mapping:
    """An argument that has to be a mapping.

    Raises:
        InputError: it is something else, such as the text of one.
    """
    if not isinstance(value, Mapping):
        raise InputError(f"{asked} takes a mapping, got {shown(value)}", hint="axes.mapping(text) makes one from a text")
    return value


class Symbol(Mapping):
    """One axis: position i holds coordinate i (MAP-002)."""

    __slots__ = ("name",)
    name: str

    def __new__(cls, name: str, size: int) -> Symbol:
        if not isinstance(name, str):
            raise RuleViolation("MAP-003", f"the name of an axis is a text, got {shown(name)}")
        size = positive(size, "MAP-003", f"the size of axis {name}")
        key = (cls, name, size)
        node = _NODES.get(key)
        if node is None:
            if not _AXIS_NAME.match(name):
                raise RuleViolation("MAP-003", "axis names start with an upper-case letter, then letters, digits, underscores", got=name)
            return _build(cls, key, size, 1, name=name)
        return node  # type: ignore[return-value]  # the key begins with the class of the node


class Broadcast(Mapping):
    """`n` positions that hold the empty index (MAP-005)."""

    __slots__ = ()

    def __new__(cls, count: int) -> Broadcast:
        count = positive(count, "MAP-005", "a broadcast")
        key = (cls, count)
        node = _NODES.get(key)
        if node is None:
            return _build(cls, key, count, 1)
        return node  # type: ignore[return-value]  # the key begins with the class of the node


class Pair(Mapping):
    """`left, right`, left major (MAP-004)."""

    __slots__ = ("left", "right")
    left: Mapping
    right: Mapping

    def __new__(cls, left: Mapping, right: Mapping) -> Pair:
        key = (cls, left, right)
        node = _NODES.get(key)
        if node is None:
            return _build(cls, key, left.size * right.size, max(left.depth + 1, right.depth), left=left, right=right)
        return node  # type: ignore[return-value]  # the key begins with the class of the node


class _Postfix(Mapping):
    """Base of the operators that take an operand and a number."""

    __slots__ = ("inner", "n")
    inner: Mapping
    n: int


class Stride(_Postfix):
    """`inner / n`: the block-number digit of a split (MAP-010)."""

    __slots__ = ()

    def __new__(cls, inner: Mapping, n: int) -> Stride:
        n = positive(n, "MAP-010", "the number after /")
        key = (cls, inner, n)
        node = _NODES.get(key)
        if node is None:
            _check_divides(inner, n, "MAP-010", "/")
            return _build(cls, key, inner.size // n, inner.depth + 1, inner=inner, n=n)
        return node  # type: ignore[return-value]  # the key begins with the class of the node


class Modulo(_Postfix):
    """`inner % n`: the in-block digit of a split (MAP-011)."""

    __slots__ = ()

    def __new__(cls, inner: Mapping, n: int) -> Modulo:
        n = positive(n, "MAP-011", "the number after %")
        key = (cls, inner, n)
        node = _NODES.get(key)
        if node is None:
            _check_divides(inner, n, "MAP-011", "%")
            return _build(cls, key, n, inner.depth + 1, inner=inner, n=n)
        return node  # type: ignore[return-value]  # the key begins with the class of the node


class Resize(_Postfix):
    """`inner = n`: the first n positions (MAP-009)."""

    __slots__ = ()

    def __new__(cls, inner: Mapping, n: int) -> Resize:
        n = positive(n, "MAP-039", "the size of a resize")
        key = (cls, inner, n)
        node = _NODES.get(key)
        if node is None:
            if n > inner.size:
                nearest = f"{_operand(inner)} # {n}"
                raise RuleViolation("MAP-039", f"{inner} = {n} grows", expected=f"at most {inner.size}", got=n, nearest=nearest)
            return _build(cls, key, n, inner.depth + 1, inner=inner, n=n)
        return node  # type: ignore[return-value]  # the key begins with the class of the node


class Padding(_Postfix):
    """`inner # n`: padding of a kind from the size of inner up to n (MAP-006)."""

    __slots__ = ("kind",)
    kind: PadKind

    def __new__(cls, inner: Mapping, n: int, kind: PadKind = PadKind.TOP) -> Padding:
        n = positive(n, "MAP-039", "the size of a padding")
        if not isinstance(kind, PadKind):
            raise InputError(f"a padding is PadKind.TOP, PadKind.ZERO or PadKind.BOTTOM, got {shown(kind)}")
        key = (cls, inner, n, kind)
        node = _NODES.get(key)
        if node is None:
            if n < inner.size:
                message, nearest = f"{inner} {kind.mark} {n} shrinks", f"{_operand(inner)} = {n}"
                raise RuleViolation("MAP-039", message, expected=f"at least {inner.size}", got=n, nearest=nearest)
            return _build(cls, key, n, inner.depth + 1, inner=inner, n=n, kind=kind)
        return node  # type: ignore[return-value]  # the key begins with the class of the node


def _operand(inner: Mapping) -> str:
    return f"[{inner}]" if isinstance(inner, Pair) else str(inner)


def _check_divides(inner: Mapping, n: int, rule: str, mark: str) -> None:
    if inner.size % n:
        multiple, close = -(-inner.size // n) * n, close_divisor(inner.size, n)
        raise RuleViolation(
            rule,
            f"{n} does not divide the size {inner.size} of {inner}",
            expected=f"a divisor of {inner.size}{near_divisors(inner.size, n)}",
            got=f"{mark} {n}",
            nearest=f"{_operand(inner)} {'' if close else f'# {multiple} '}{mark} {close or n}" if close or multiple <= MAX_SIZE else None,
        )


IDENTITY = Broadcast(1)
"""The mapping of one position that holds the empty index, written ``1``."""


def symbol(name: str, size: int) -> Symbol:
    """The mapping of one axis."""
    return Symbol(name, size)


def broadcast(count: int) -> Broadcast:
    """`count` equal positions."""
    return Broadcast(count)


def pair(*parts: Mapping) -> Mapping:
    """The pair list of `parts`, major first, nested to the right; identities are dropped, nothing gives the identity."""
    return _pair_of([m for m in parts if m is not IDENTITY])


def _pair_of(parts: Iterable[Mapping]) -> Mapping:
    items = list(parts)
    if not items:
        return IDENTITY
    result = items[-1]
    for item in reversed(items[:-1]):
        result = Pair(item, result)
    return result


def right_spine(m: Mapping) -> list[Mapping]:
    """The members of a right-nested list; a left member may itself be a pair."""
    members = []
    while isinstance(m, Pair):
        members.append(m.left)
        m = m.right
    members.append(m)
    return members


def factors(m: Mapping) -> list[Mapping]:
    """The members of the pair list with all nesting of pairs removed, major first."""
    out: list[Mapping] = []
    stack = [m]
    while stack:
        node = stack.pop()
        if isinstance(node, Pair):
            stack.append(node.right)
            stack.append(node.left)
        else:
            out.append(node)
    return out


def walk(m: Mapping) -> Iterator[Mapping]:
    """All nodes in pre-order, major first."""
    stack = [m]
    while stack:
        node = stack.pop()
        yield node
        if isinstance(node, Pair):
            stack.append(node.right)
            stack.append(node.left)
        elif isinstance(node, _Postfix):
            stack.append(node.inner)


def _program(m: Mapping) -> tuple[tuple[Any, ...], ...]:
    """The tree in post-order, for copies across processes; no recursion, so depth and length do not matter."""
    out: list[tuple[Any, ...]] = []
    for node in walk(m):
        if isinstance(node, Symbol):
            out.append((Symbol, node.name, node.size))
        elif isinstance(node, Broadcast):
            out.append((Broadcast, node.size))
        elif isinstance(node, Padding):
            out.append((Padding, node.n, node.kind))
        elif isinstance(node, _Postfix):
            out.append((type(node), node.n))
        else:
            out.append((Pair,))
    return tuple(reversed(out))


def _assembled(program: tuple[tuple[Any, ...], ...]) -> Mapping:
    """The mapping of a `_program`."""
    stack: list[Mapping] = []
    for cls, *values in program:
        if cls is Pair:
            stack.append(Pair(stack.pop(), stack.pop()))
        elif issubclass(cls, _Postfix):
            stack.append(cls(stack.pop(), *values))
        else:
            stack.append(cls(*values))
    return stack.pop()

"""Declared axes: names with sizes, and the entry to mapping expressions over them (MAP-003)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from collections.abc import Mapping as Dict

from tcptune.errors import InputError, RuleViolation
from tcptune.ir.mappings.mapping import Mapping, Symbol

_DECLARATION = re.compile(r"\s*([A-Za-z_]\w*)\s*=\s*(-?\d+)\s*\Z")


class Axes(Dict[str, int]):
    """Axis sizes in declaration order; immutable and hashable.

    >>> Axes(A=8, B=512).mapping("A, B").size
    4096

    Raises:
        RuleViolation: MAP-003, a name or a size that is not allowed. InputError: no names with sizes.
    """

    __slots__ = ("_hash", "_sizes")

    def __init__(self, sizes: Dict[str, int] | None = None, **more: int) -> None:
        if sizes is not None and not isinstance(sizes, Dict):
            raise InputError(f"sizes of axes are an object of names and sizes, got {sizes!r:.60}", hint="for example A=8, B=512")
        given = {**(sizes or {}), **more}
        self._sizes = {name: Symbol(name, size).size for name, size in given.items()}
        self._hash = hash(tuple(self._sizes.items()))

    @classmethod
    def parse(cls, *texts: str) -> Axes:
        """Axes from texts like ``A=8`` or ``A=8, B=512``.

        Raises:
            InputError: not of that form. RuleViolation: MAP-003, a name twice or an unusable size.
        """
        sizes: dict[str, int] = {}
        for text in texts:
            for item in text.rstrip().removesuffix(",").split(","):
                match = _DECLARATION.match(item[:100])
                if match is None or len(item) > 100:
                    raise InputError(f"cannot read the axis size {item[:40].strip()!r}", hint="write NAME=SIZE, for example A=2048")
                name, size = match.group(1), int(match.group(2))
                if name in sizes:
                    raise RuleViolation("MAP-003", f"axis {name} is declared twice", got=text[:60])
                sizes[name] = size
        return cls(sizes)

    def __getitem__(self, name: str) -> int:
        return self._sizes[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._sizes)

    def __len__(self) -> int:
        return len(self._sizes)

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Axes) and self._sizes == other._sizes

    def __repr__(self) -> str:
        return f"Axes({', '.join(f'{n}={s}' for n, s in self._sizes.items())})"

    def mapping(self, text: str | int | Mapping, aliases: Dict[str, Mapping | int | str] | None = None) -> Mapping:
        """The mapping that `text` writes; a `Mapping` is returned as it is, a number is that many broadcast positions.

        `aliases` are the names that braces may splice in (MAP-017).

        Raises:
            InputError: neither text, number nor mapping.
            ParseError: the text does not follow the grammar (MAP-018) or names an unknown axis (MAP-003).
            RuleViolation: a constructor refuses its operands (MAP-010, MAP-011, MAP-039).
        """
        from tcptune.ir.mappings.parser import parse

        if isinstance(text, Mapping):
            return text
        if isinstance(text, str) and not aliases:
            return _parse_cached(text, self)
        if isinstance(text, bool) or not isinstance(text, str | int):
            raise InputError(f"a mapping is written as a text, got {text!r:.60}", hint='for example "A / 8, A % 8"')
        return parse(str(text), self, _checked(aliases or {}))

    def symbol(self, name: str) -> Symbol:
        """The mapping of one declared axis; MAP-003 if there is none."""
        if not isinstance(name, str) or name not in self._sizes:
            raise RuleViolation("MAP-003", f"axis {name} is not declared", expected=f"one of {', '.join(self._sizes) or 'none'}", got=name)
        return Symbol(name, self._sizes[name])


def _checked(aliases: object) -> Dict[str, Mapping | int | str]:
    if not isinstance(aliases, Dict):
        raise InputError(f"aliases are an object of names with mappings, numbers or texts, got {aliases!r:.60}")
    for name, value in aliases.items():
        if isinstance(value, bool) or not isinstance(value, Mapping | int | str):
            raise InputError(f"alias {name!r} must be a mapping, a number or a text, got {value!r:.60}")
    return aliases


def _parse_cached(text: str, axes: Axes) -> Mapping:
    from tcptune.ir.mappings.parser import parse_cached

    return parse_cached(text, axes)

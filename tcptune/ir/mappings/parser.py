"""Parser of mapping expressions (MAP-017, MAP-018). Precedence: comma loosest, all postfix operators equal and left to right.

::

    mapping  = postfix [ "," [ mapping ] ]
    postfix  = atom { "/" num | "%" num | "=" num | "#" num | "#{*}" num | "#{0}" num | "#{!}" num }
    atom     = axis | number | "[" mapping "]" | "(" mapping ")" | "{" alias "}"

The parser keeps its own stack, so nesting costs no recursion; nesting beyond `MAX_DEPTH` is refused.
"""

from __future__ import annotations

import re
from collections.abc import Mapping as Dict
from functools import lru_cache

from tcptune.errors import ParseError, RuleViolation
from tcptune.ir.mappings.axes import Axes
from tcptune.ir.mappings.mapping import MAX_DEPTH, Broadcast, Mapping, Modulo, Padding, PadKind, Pair, Resize, Stride, Symbol

MAX_TEXT = 65_536
"""Longest text that is read, in characters."""

_TOKEN = re.compile(
    r"\s*(?:(?P<axis>[A-Za-z_]\w*)|(?P<number>\d+)|(?P<fill>\#\s*\{\s*(?P<mark>[^}\s]?)\s*\})|(?P<sign>[/%=\#\[\](){},])|(?P<end>\Z)|(?P<bad>.))",
    re.DOTALL | re.ASCII,
)
_KINDS = {"*": PadKind.TOP, "0": PadKind.ZERO, "!": PadKind.BOTTOM}
_CLOSING = {"[": "]", "(": ")"}
_MAX_DIGITS = 18

Aliases = Dict[str, "Mapping | int | str"]
_Token = tuple[str, str, int]


def parse(text: str, axes: Axes, aliases: Aliases | None = None) -> Mapping:
    """The mapping that `text` writes.

    Raises:
        ParseError: MAP-018 grammar, MAP-003 unknown axis, MAP-017 unknown alias; carries the column.
        RuleViolation: a constructor refuses its operands.
    """
    return _Parser(text, axes, aliases or {}).run()


@lru_cache(maxsize=16_384)
def parse_cached(text: str, axes: Axes) -> Mapping:
    """As `parse` without aliases; results are remembered."""
    return parse(text, axes)


class _Parser:
    """One run over one text. `open` holds, per open bracket, its sign, its column and the list members before it."""

    def __init__(self, text: str, axes: Axes, aliases: Aliases) -> None:
        if len(text) > MAX_TEXT:
            raise ParseError(text[:80], 0, f"the expression has {len(text)} characters, more than {MAX_TEXT}", rule="MAP-018")
        self.text = text
        self.axes = axes
        self.aliases = aliases
        self.tokens = self._tokenize()
        self.next = 0

    def _tokenize(self) -> list[_Token]:
        tokens: list[_Token] = []
        position = 0
        while True:
            match = _TOKEN.match(self.text, position)
            if match is None:
                raise self._error(position, "cannot read this")
            kind = match.lastgroup or "bad"
            if kind == "mark":
                kind = "fill"
            value = match.group(kind)
            column = match.start(kind)
            if kind == "fill" and match.group("mark") not in _KINDS and re.fullmatch(r"#\s*\{\s*[A-Za-z_]\w*\s*\}", value):
                kind, value, position = "sign", "#", column + 1
            else:
                position = match.end()
            tokens.append((kind, value, column))
            if kind == "end":
                return tokens
            if kind == "bad":
                raise self._error(column, f"unexpected character {value!r}")

    def _error(self, column: int, message: str, rule: str = "MAP-018", hint: str | None = None) -> ParseError:
        return ParseError(self.text, column, message, rule=rule, hint=hint)

    def _take(self) -> _Token:
        token = self.tokens[self.next]
        self.next += 1
        return token

    def run(self) -> Mapping:
        """Reads the whole text."""
        open_brackets: list[tuple[str, int, list[Mapping]]] = []
        members: list[Mapping] = []
        while True:
            kind, value, column = self._take()
            if value in _CLOSING and kind == "sign":
                if len(open_brackets) >= MAX_DEPTH:
                    raise self._error(column, f"brackets are nested deeper than {MAX_DEPTH} levels")
                open_brackets.append((value, column, members))
                members = []
                continue
            members.append(self._postfix(self._atom(kind, value, column)))
            while True:  # after an element: comma goes on, a closing bracket makes the list an operand
                kind, value, column = self._take()
                comma = value == "," and kind == "sign"
                if comma:
                    kind, value, column = self.tokens[self.next]
                    if not (kind == "end" or value in ("]", ")")):
                        break
                    self.next += 1
                if kind == "end":
                    if open_brackets:
                        sign, opened, _ = open_brackets[-1]
                        raise self._error(opened, f"{sign!r} is never closed")
                    return self._list(members, column)
                if not open_brackets or value != _CLOSING[open_brackets[-1][0]]:
                    joined = kind in ("axis", "number") or value in ("[", "(", "{")
                    raise self._error(
                        column, f"unexpected {value!r}", hint="elements of a list are separated by commas" if joined else None
                    )
                inner = self._list(members, column)
                members = open_brackets.pop()[2]
                members.append(self._postfix(inner))

    def _list(self, members: list[Mapping], column: int) -> Mapping:
        result = members[-1]
        try:
            for member in reversed(members[:-1]):
                result = Pair(member, result)
        except RuleViolation as error:
            raise self._error(column, error.message, rule=error.rule) from None
        return result

    def _atom(self, kind: str, value: str, column: int) -> Mapping:
        if kind == "axis":
            if value not in self.axes:
                known = ", ".join(self.axes) or "none"
                raise self._error(
                    column,
                    f"axis {value!r} is not declared",
                    rule="MAP-003",
                    hint=f"declared axes: {known[:200]}; declare it as {value[:40]}=SIZE (after -s on the command line)",
                )
            return Symbol(value, self.axes[value])
        if kind == "number":
            return Broadcast(self._number(value, column))
        if value == "{":
            spliced = self._alias(column)
            return spliced if isinstance(spliced, Mapping) else self.axes.mapping(spliced)
        if kind == "end":
            raise self._error(column, "the expression ends where an axis, a number or a bracket is expected")
        raise self._error(column, f"expected an axis, a number or a bracket, not {value!r}")

    def _alias(self, column: int) -> Mapping | int | str:
        kind, name, at = self._take()
        if kind not in ("axis", "number"):
            raise self._error(at, "braces hold the name of a mapping or a number", rule="MAP-017")
        if self._take()[1] != "}":
            raise self._error(column, "'{' is never closed")
        if kind == "number":
            return self._number(name, at)
        if name not in self.aliases:
            raise self._error(at, f"there is no mapping named {name!r}", rule="MAP-017")
        return self.aliases[name]

    def _number(self, digits: str, column: int) -> int:
        if len(digits) > _MAX_DIGITS:
            raise self._error(column, f"the number has {len(digits)} digits, at most {_MAX_DIGITS} are accepted")
        return int(digits)

    def _operand_number(self) -> int:
        kind, value, column = self._take()
        if kind == "number":
            return self._number(value, column)
        if value == "{":
            spliced = self._alias(column)
            if isinstance(spliced, int):
                return spliced
        wrong = f"the operator takes a number, not the axis {value!r}" if kind == "axis" else "expected a number after the operator"
        raise self._error(column, wrong, hint="the operators /, %, = and # take a number, for example A / 8")

    def _postfix(self, operand: Mapping) -> Mapping:
        while True:
            kind, value, column = self.tokens[self.next]
            if kind not in ("sign", "fill") or value[0] not in "/%=#":
                return operand
            self.next += 1
            fill = PadKind.TOP
            if kind == "fill":
                mark = value.strip("#{} \t\r\n")
                if mark not in _KINDS:
                    raise self._error(column, f"unknown fill mark in {value!r}", hint="fill marks are #{*}, #{0} and #{!}")
                fill = _KINDS[mark]
            n = self._operand_number()
            try:
                operand = _applied(operand, value[0], n, fill)
            except RuleViolation as error:
                error.place = (self.text, column)
                raise


def _applied(operand: Mapping, sign: str, n: int, fill: PadKind) -> Mapping:
    if sign == "/":
        return Stride(operand, n)
    if sign == "%":
        return Modulo(operand, n)
    if sign == "=":
        return Resize(operand, n)
    return Padding(operand, n, fill)

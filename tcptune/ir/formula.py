"""Integer formulas over names: fills of inputs (``3*I + K % 7``) and starts of tiles (``2*pair+1``).

Grammar: ``sum = product {(+|-) product}``, ``product = unary {(*|/|%) unary}``,
``unary = -unary | number | name | ( sum )``. ``/`` is the floor
division and ``%`` its remainder. Values are integers or numpy integer arrays.
"""

from __future__ import annotations

import re
from collections.abc import Mapping as Dict
from typing import Any

from tcptune.errors import ParseError

_TOKEN = re.compile(r"\s*(?:(\d+)|([A-Za-z_]\w*)|(//|[-+*/%()]))")
_MAX_DEPTH = 100
_MAX_DIGITS = 15


class _Parser:
    def __init__(self, text: str, names: Dict[str, Any]) -> None:
        self.text = text
        self.names = names
        self.at = 0
        self.depth = 0

    def _next(self) -> tuple[str, str, int]:
        found = _TOKEN.match(self.text, self.at)
        if not found:
            return "", "", len(self.text) - len(self.text[self.at :].lstrip())
        return found.group().strip(), str(found.lastindex), found.end()

    def _take(self, *tokens: str) -> str | None:
        token, _, end = self._next()
        if token and token in tokens:
            self.at = end
            return token
        return None

    def _fail(self, message: str) -> ParseError:
        at = len(self.text) - len(self.text[self.at :].lstrip()) if self.at < len(self.text) else self.at
        return ParseError(self.text, at, message)

    def run(self) -> Any:
        value = self.sum()
        if self.text[self.at :].strip():
            raise self._fail("unexpected text in the formula")
        return value

    def sum(self) -> Any:
        value = self.product()
        while sign := self._take("+", "-"):
            other = self.product()
            value = value + other if sign == "+" else value - other
        return value

    def product(self) -> Any:
        value = self.unary()
        while sign := self._take("*", "//", "/", "%"):
            other = self.unary()
            if sign == "*":
                value = value * other
                continue
            if not isinstance(other, int) or other == 0:
                raise self._fail("divide by a number other than 0")
            value = value % other if sign == "%" else value // other
        return value

    def unary(self) -> Any:
        self.depth += 1
        if self.depth > _MAX_DEPTH:
            raise self._fail("the formula nests too deep")
        try:
            if self._take("-"):
                return -self.unary()
            if self._take("("):
                value = self.sum()
                if not self._take(")"):
                    raise self._fail("expected ')'")
                return value
            token, kind, end = self._next()
            if kind == "1" and len(token) > _MAX_DIGITS:
                raise self._fail("the number is too large")
            if kind == "1":
                self.at = end
                return int(token)
            if kind == "2":
                if token not in self.names:
                    known = ", ".join(self.names) or "none"
                    raise ParseError(self.text, end - len(token), f"unknown name {token!r}", hint=f"names: {known}")
                self.at = end
                return self.names[token]
            raise self._fail("expected a number, a name or '('")
        finally:
            self.depth -= 1


def evaluate(text: str, names: Dict[str, Any]) -> Any:
    """Value of the formula `text` with the given names.

    Raises:
        ParseError: not a formula, or an unknown name.
    """
    return _Parser(text, names).run()

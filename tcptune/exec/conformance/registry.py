"""Handlers of `cost` and `table` cases by what they ask for; chapter modules register theirs here."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

Case = dict[str, Any]
Handler = Callable[[Case], None]
"""Checks one case; raises `Mismatch` when the model disagrees with it."""

COSTS: dict[str, Handler] = {}
TABLES: dict[str, Handler] = {}
TABLE_PATTERNS: list[tuple[re.Pattern[str], Handler]] = []
"""Handlers of tables whose `what` contains the values of the case."""


class Mismatch(AssertionError):
    """The model and a corpus case disagree; the text says on what."""


class Fields(dict[str, Any]):
    """An object of a case; a field that it lacks is a mismatch in words, wherever it is looked up."""

    def __missing__(self, key: str) -> Any:
        raise Mismatch(f"the case misses the field {key!r} (an object of it has: {', '.join(map(str, self)) or 'nothing'})")


def with_fields(raw: Any) -> Any:
    """A JSON value whose objects are `Fields`."""
    if isinstance(raw, dict):
        return Fields({key: with_fields(value) for key, value in raw.items()})
    return [with_fields(value) for value in raw] if isinstance(raw, list) else raw


def cost(what: str) -> Callable[[Handler], Handler]:
    """Registers the handler of cost cases with this `what`."""
    return _register(COSTS, what)


def table(what: str) -> Callable[[Handler], Handler]:
    """Registers the handler of table cases with this `what`."""
    return _register(TABLES, what)


def table_matching(pattern: str) -> Callable[[Handler], Handler]:
    """Registers the handler of table cases whose whole `what` matches the regular expression."""

    def add(handler: Handler) -> Handler:
        TABLE_PATTERNS.append((re.compile(pattern), handler))
        return handler

    return add


def find_table(what: str) -> Handler | None:
    """The handler of a table: by name, else by pattern."""
    if what in TABLES:
        return TABLES[what]
    return next((handler for pattern, handler in TABLE_PATTERNS if pattern.fullmatch(what)), None)


def _register(where: dict[str, Handler], what: str) -> Callable[[Handler], Handler]:
    def add(handler: Handler) -> Handler:
        if what in where:
            raise ValueError(f"two handlers for {what!r}")
        where[what] = handler
        return handler

    return add


def expect_equal(name: str, got: object, want: object) -> None:
    """Raises `Mismatch` unless both are equal."""
    if got != want:
        raise Mismatch(f"{name}: got {got!r}, expected {want!r}")

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

"""Handlers of `cost` and `table` cases by what they ask for; chapter modules register theirs here."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

Case = dict[str, Any]
Handler = Callable[[Case], None]
"""Checks one case; raises `Mismatch` when the model disagrees with it."""

COSTS: dict[str, Handler] = {}
TABLES: dict[str, Handler] = {}
_EXPLAINED: set[str] = set()
TABLE_PATTERNS: list[tuple[re.Pattern[str], Handler]] = []
"""Handlers of tables whose `what` contains the values of the case."""


class Mismatch(AssertionError):
    """The model and a corpus case disagree; the text says on what."""


class Fields(dict[str, Any]):
    """An object of a case; a field that it lacks is a mismatch in words, wherever it is looked up."""

    def __missing__(self, key: str) -> Any:
        raise Mismatch(f"the case misses the field {key!r} (an object of it has: {', '.join(map(str, self)) or 'nothing'})")


REMARKS = ("note", "why", "approx", "manual_says", "stated_in_manual", "confidence", "witness")
"""Fields and cells that are for the reader."""

NO_RESULT = (*REMARKS, "verdict", "rule", "also_violates", "tolerance", "source", "manual_verdict", "makespan_note", "do_not_gate_on_total")
"""Fields of ``expect`` that are no results: the verdict, how to compare, and remarks."""

_TOLD = (*NO_RESULT, "semantics", "makespan", "row_format", "heat_map")
"""Fields of ``expect`` that need no check of their own: no results, results in words, and what another tool found."""


class Watched(Fields):
    """An object of a case that knows which of its fields a check looked at."""

    def __init__(self, fields: dict[str, Any]) -> None:
        super().__init__(fields)
        self.looked_at: set[str] = set()
        self.listed = False

    def unread(self) -> dict[str, Any]:
        """Fields that nobody looked at, by name or in a walk over all of them."""
        return {key: value for key, value in super().items() if not (self.listed or key in self.looked_at)}

    def __getitem__(self, key: str) -> Any:
        self.looked_at.add(key)
        return super().__getitem__(key)

    def __contains__(self, key: object) -> bool:
        self.looked_at.add(str(key))
        return super().__contains__(key)

    def get(self, key: str, default: Any = None) -> Any:
        self.looked_at.add(key)
        return super().get(key, default)

    def __iter__(self) -> Iterator[str]:
        return iter(self._all())

    def keys(self) -> Any:
        return self._all().keys()

    def values(self) -> Any:
        return self._all().values()

    def items(self) -> Any:
        return self._all().items()

    def _all(self) -> dict[str, Any]:
        self.listed = True
        return dict(super().items())


def watched(raw: dict[str, Any]) -> Case:
    """A case whose expectations and rows know what is read of them."""
    case = Fields(with_fields(raw))
    if isinstance(case.get("expect"), dict):
        case["expect"] = Watched(case["expect"])
    if isinstance(case.get("rows"), list):
        case["rows"] = [Watched(row) if isinstance(row, dict) else row for row in case["rows"]]
    return case


def expect_nothing_unread(case: Case) -> None:
    """Nothing that a case expects passes unread; it may repeat a field of the case, and rows may explain in words.

    A case that gives no verdict is an accept, and so is one whose kind has no other.

    Raises:
        Mismatch: a field of ``expect``, or a number of a row, that no check looked at.
    """
    expect = case.get("expect")
    unread = expect.unread() if isinstance(expect, Watched) else {}
    if isinstance(expect, Watched) and "verdict" not in expect.looked_at and expect.get("verdict", "accept") != "accept":
        raise Mismatch(f"accepted, expected a refusal by {expect.get('rule')}")
    for key, value in unread.items():
        if key not in _TOLD and not (key in case and case[key] == value):
            raise Mismatch(f"nothing derives {key} (expected {value!r:.200})")
    if case.get("what") in _EXPLAINED:
        return
    rows = case.get("rows", ())
    for number, row in enumerate(rows):
        for key, value in row.unread().items() if isinstance(row, Watched) else ():
            if isinstance(value, int | float) and key not in REMARKS:
                raise Mismatch(f"row {number}: nothing derives {key} (expected {value!r})")


def with_fields(raw: Any) -> Any:
    """A JSON value whose objects are `Fields`."""
    if isinstance(raw, dict):
        return Fields({key: with_fields(value) for key, value in raw.items()})
    return [with_fields(value) for value in raw] if isinstance(raw, list) else raw


def cost(what: str) -> Callable[[Handler], Handler]:
    """Registers the handler of cost cases with this `what`."""
    return _register(COSTS, what)


def table(what: str, *, explained: bool = False) -> Callable[[Handler], Handler]:
    """Registers the handler of table cases with this `what`; `explained` tables may hold numbers that the model does not derive."""
    if explained:
        _EXPLAINED.add(what)
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


def asked(row: dict[str, Any], *names: str) -> dict[str, Any]:
    """The cells that a row is asked by; a row of results repeats them."""
    return {name: row[name] for name in names if name in row}


def expect_equal(name: str, got: object, want: object) -> None:
    """Raises `Mismatch` unless both are equal."""
    if got != want:
        raise Mismatch(f"{name}: got {got!r}, expected {want!r}")

"""Comparison of derived numbers with what a corpus case expects."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from collections.abc import Mapping as Dict
from typing import Any

from tcptune.errors import ParseError, RuleViolation
from tcptune.exec.conformance.registry import NO_RESULT, REMARKS, Case, Mismatch
from tcptune.model.rules import same_diagnosis

_PRINTED_DIGITS = 1e-4
"""Relative error of numbers that the corpus prints rounded."""


def matches(got: object, want: object, rel: float = _PRINTED_DIGITS, absolute: float = 0.0) -> bool:
    """Whether a derived value is the expected one: equal, or a number within the tolerance; containers element by element."""
    if isinstance(want, bool) or isinstance(got, bool):
        return got is want
    if isinstance(want, int | float) and isinstance(got, int | float):
        exact = isinstance(want, int) and isinstance(got, int) and not absolute
        return got == want if exact else abs(got - want) <= max(absolute, rel * abs(want))
    if isinstance(want, Dict) and isinstance(got, Dict):
        return all(key in got and matches(got[key], value, rel, absolute) for key, value in want.items())
    if isinstance(want, list | tuple) and isinstance(got, list | tuple):
        return len(got) == len(want) and all(matches(g, w, rel, absolute) for g, w in zip(got, want, strict=True))
    return got == want


def expect_derived(case: Case, derived: Dict[str, Any], ignore: Iterable[str] = ()) -> None:
    """Compares every number in ``expect`` with the derived one of the same name.

    Raises:
        Mismatch: a number differs beyond the case's tolerance, or nothing derives it.
    """
    expect = case.get("expect", {})
    tolerance = expect.get("tolerance", {})
    rel, absolute = float(tolerance.get("rel", _PRINTED_DIGITS)), float(tolerance.get("abs", 0.0))
    for name, want in expect.items():
        if name in NO_RESULT or name in ignore:
            continue
        if name not in derived:
            raise Mismatch(f"nothing derives {name}")
        if not matches(derived[name], want, rel, absolute):
            raise Mismatch(f"{name}: got {derived[name]!r}, expected {want!r}")


def expect_rows(case: Case, derived: Sequence[Dict[str, Any]], ignore: Iterable[str] = ()) -> None:
    """Compares the rows of a table, in order, cell by cell.

    Raises:
        Mismatch: a row is missing or too many, a cell differs, or nothing derives it.
    """
    rows = case["rows"]
    if len(rows) != len(derived):
        raise Mismatch(f"got {len(derived)} rows, expected {len(rows)}")
    for number, (got, want) in enumerate(zip(derived, rows, strict=True)):
        for name, cell in want.items():
            if name in ignore or name in REMARKS:
                continue
            if name not in got:
                raise Mismatch(f"row {number}: nothing derives {name}")
            if not matches(got[name], cell):
                raise Mismatch(f"row {number}, {name}: got {got[name]!r}, expected {cell!r}")


def expect_rows_among(case: Case, derived: Sequence[Dict[str, Any]], keys: Iterable[str], ignore: Iterable[str] = ()) -> None:
    """Compares rows that are a part of a table, in any order, each with the derived row of the same `keys`.

    A case that says ``complete`` must list every row.

    Raises:
        Mismatch: no such row, a row is missing from a complete table, a cell differs, or nothing derives it.
    """
    names = tuple(keys)
    found = []
    for row in case["rows"]:
        here = {name: row[name] for name in names if name in row}
        match = next((d for d in derived if all(matches(d[name], value) for name, value in here.items())), None)
        if match is None:
            raise Mismatch(f"the table has no row {here}")
        found.append(match)
    if case.get("complete") and len({id(row) for row in found}) != len(derived):
        raise Mismatch(f"{len(found)} rows, the table has {len(derived)}")
    expect_rows(case, found, ignore)


def expect_verdict(case: Case, run: Callable[[], Dict[str, Any] | None]) -> Dict[str, Any] | None:
    """Runs the model and holds its verdict against the case's; what it returned, or None where it refused as expected.

    Raises:
        Mismatch: accepted what must be refused, refused what must be accepted, or refused by another rule.
    """
    expect = case.get("expect", {})
    wants_rejection = expect.get("verdict", "accept") == "reject"
    try:
        result = run()
    except RuleViolation as error:
        if not wants_rejection:
            raise
        expect_refusal(error, expect)
        return None
    if wants_rejection:
        raise Mismatch(f"accepted, expected a refusal by {expect.get('rule')}")
    return result


def expect_refusal(refusal: RuleViolation | ParseError, expect: Dict[str, Any]) -> None:
    """Holds a refusal against the case's verdict; rules that restate one another count as one diagnosis.

    Raises:
        Mismatch: the case expects acceptance, or a refusal by another rule.
    """
    if expect.get("verdict", "accept") == "accept":
        raise Mismatch(f"refused: {refusal.render()}".replace("\n", " | "))
    named = same_diagnosis(r for r in (refusal.rule, *getattr(refusal, "also", ())) if r)
    right = {str(expect.get("rule")), *expect.get("also_violates", ())}
    if not named & right:
        raise Mismatch(f"refused by {refusal.rule} ({refusal.message}), expected {', '.join(sorted(right))}")

"""Tables as data: columns and rows, written as text for the terminal, as CSV, and by the HTML templates."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping as Dict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

Row = Dict[str, Any]


@dataclass(frozen=True)
class Column:
    """One column: the key in a row, its heading (with the unit), whether it is aligned as a number."""

    key: str
    title: str
    numeric: bool = False


def columns(*specs: str) -> tuple[Column, ...]:
    """Columns from ``key:title`` texts; a trailing ``#`` makes one numeric.

    >>> columns("name:run", "makespan:makespan (cycles)#")[1]
    Column(key='makespan', title='makespan (cycles)', numeric=True)
    """
    made = []
    for spec in specs:
        key, _, title = spec.partition(":")
        made.append(Column(key, title.removesuffix("#") or key.removesuffix("#"), spec.endswith("#")))
    return tuple(made)


def cell(value: Any) -> str:
    """One value as people read it: thousands separated, percent kept as given, nothing for None.

    >>> cell(12345), cell(0.125), cell(None), cell(True)
    ('12,345', '0.125', '', 'yes')
    """
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:,.4g}"
    if isinstance(value, list | tuple):
        return ", ".join(cell(v) for v in value)
    return str(value)


def csv_text(rows: Sequence[Row], shown: Sequence[Column]) -> str:
    """The table as CSV with the column keys as header; numbers are not grouped."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow([c.key for c in shown])
    for row in rows:
        writer.writerow([_plain(row.get(c.key)) for c in shown])
    return out.getvalue()


def _plain(value: Any) -> Any:
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    return " ".join(map(str, value)) if isinstance(value, list | tuple) else value


def text_table(rows: Sequence[Row], shown: Sequence[Column]) -> str:
    """The table in aligned columns for the terminal."""
    body = [[cell(row.get(c.key)) for c in shown] for row in rows]
    widths = [max(len(c.title), *(len(line[i]) for line in body)) if body else len(c.title) for i, c in enumerate(shown)]

    def line(texts: Sequence[str]) -> str:
        padded = [t.rjust(w) if c.numeric else t.ljust(w) for t, w, c in zip(texts, widths, shown, strict=True)]
        return "  ".join(padded).rstrip()

    return "\n".join([line([c.title for c in shown]), line(["-" * w for w in widths]), *(line(texts) for texts in body)]) + "\n"

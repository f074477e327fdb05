"""`tcptune analyse SCHEDULE.json`: where the cycles of a schedule go, for our schedules and for the vendor's."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from tcptune.cli.output import print_document, text_console
from tcptune.exec.scheduling.schedule_json import read_schedule
from tcptune.reports.schedule_analysis import Analysis, analyse

_LONGEST_GAPS = 8


def command(
    schedule: Annotated[Path, typer.Argument(metavar="SCHEDULE.json", help="a schedule JSON file, ours or the vendor's")],
    json: Annotated[bool, typer.Option("--json", help="one JSON document on standard output")] = False,
) -> None:
    """Busy and exclusive cycles per context, idle gaps with their reasons, and the critical path."""
    analysis = analyse(read_schedule(schedule))
    if json:
        print_document(analysis.to_json())
    else:
        print_analysis(analysis)


def print_analysis(analysis: Analysis) -> None:
    """The same for a person; the longest gaps only."""
    console = text_console()
    shares = _table("context", "busy cycles", "exclusive cycles")
    for share in analysis.shares:
        shares.add_row(share.resource, f"{share.busy:,}", f"{share.exclusive:,}")
    console.print(shares)
    critical = _table("critical path", "writes", "kind", "begin", "end", "cycles")
    for operation in analysis.critical:
        span = (f"{operation.begin:,}", f"{operation.end:,}", f"{operation.duration_cycles:,}")
        critical.add_row(operation.id, ", ".join(operation.writes), operation.kind, *span)
    console.print(critical)
    gaps = _table("longest gaps", "begin", "end", "cycles", "waited for")
    for gap in sorted(analysis.gaps, key=lambda g: (-g.cycles, g.begin))[:_LONGEST_GAPS]:
        gaps.add_row(gap.resource, f"{gap.begin:,}", f"{gap.end:,}", f"{gap.cycles:,}", gap.reason)
    console.print(gaps)
    console.print(f"makespan {analysis.makespan:,} cycles; nothing runs in {analysis.idle:,} of them")
    console.print("exclusive: every running operation holds the context, nothing hides behind it")


def _table(*headers: str) -> Table:
    """A table whose columns of numbers end flush."""
    table = Table(*headers)
    for column in table.columns:
        if str(column.header) in ("begin", "end") or "cycles" in str(column.header):
            column.justify = "right"
    return table

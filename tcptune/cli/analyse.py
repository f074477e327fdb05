"""`tcptune analyse SCHEDULE.json`: where the cycles of a schedule go, for our schedules and for the vendor's."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from tcptune.cli.output import print_document
from tcptune.exec.schedule_json import read_schedule
from tcptune.reports.schedule_analysis import Analysis, analyse

_LONGEST_GAPS = 8


def command(
    schedule: Annotated[Path, typer.Argument(help="a schedule JSON file, ours or the vendor's")],
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
    console = Console(highlight=False)
    shares = Table("context", "busy", "exclusive")
    for share in analysis.shares:
        shares.add_row(share.resource, f"{share.busy:,}", f"{share.exclusive:,}")
    console.print(shares)
    critical = Table("critical path", "kind", "begin", "end", "cycles")
    for operation in analysis.critical:
        critical.add_row(operation.id, operation.kind, f"{operation.begin:,}", f"{operation.end:,}", f"{operation.duration_cycles:,}")
    console.print(critical)
    gaps = Table("longest gaps", "begin", "end", "cycles", "waited for")
    for gap in sorted(analysis.gaps, key=lambda g: (-g.cycles, g.begin))[:_LONGEST_GAPS]:
        gaps.add_row(gap.resource, f"{gap.begin:,}", f"{gap.end:,}", f"{gap.cycles:,}", gap.reason)
    console.print(gaps)
    console.print(f"makespan {analysis.makespan:,} cycles, {analysis.idle:,} of them idle")

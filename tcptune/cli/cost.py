"""`tcptune cost FILE`: prices the steps of a kernel, or operations given as rows, and compares rows with published durations."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, TypeGuard

import typer
from rich.table import Table

from tcptune.cli.output import note, print_document, profile_in_use, text_console
from tcptune.errors import InputError, WorkError
from tcptune.exec.kernel_file import load_checked
from tcptune.exec.published_rows import price_row
from tcptune.exec.row_sizes import Skipped
from tcptune.exec.scheduling.schedule_forms import rows_of_schedules
from tcptune.exec.validate import error_summary
from tcptune.ir.files import read_json
from tcptune.model.timing.calibration import VENDOR
from tcptune.model.timing.calibration import profile as profile_of
from tcptune.reports.kernel_costs import StepCost, kernel_costs

KERNEL_SUFFIXES = (".visa", ".rs")
"""Endings of files that hold a kernel instead of rows."""


def command(
    rows: Annotated[
        Path, typer.Argument(metavar="FILE", help="rows like those of the published schedules (.json), or a .visa or .rs kernel")
    ],
    profile: Annotated[str | None, typer.Option(help="timing constants, vendor or manual; default: as a kernel's file records")] = None,
    function: Annotated[str | None, typer.Option(help="device function of a .rs file that holds several")] = None,
    json: Annotated[bool, typer.Option("--json", help="one JSON document on standard output")] = False,
) -> None:
    """Price the operations of a kernel, or operations given as rows (compared with their published durations where they have one).

    Exit status 1 if none can be priced.
    """
    checked = load_checked(rows, function) if rows.suffix in KERNEL_SUFFIXES else None
    profile = profile or (VENDOR.name if checked is None else profile_in_use(rows))
    costs = None if checked is None else kernel_costs(checked, profile)
    document = cost_document(rows, profile) if costs is None else kernel_document(costs, profile)
    if json:
        print_document(document)
    elif costs is not None:
        print_costs(costs)
    else:
        print_rows(document)
    kernel = rows.with_name("kernel.visa")
    if costs is None and any("skipped" in row for row in document["rows"]) and kernel.is_file():
        note(f"the kernel has a price for every step: tcptune cost {kernel}")
    if all("skipped" in row for row in document["rows"]):
        raise WorkError(f"{rows} has no row that can be priced", hint="the reason of each row is above")


def kernel_document(costs: tuple[StepCost, ...], profile: str) -> dict[str, Any]:
    """The cost/1 document of a kernel; its rows also say what the cycles are made of."""
    timing = profile_of(profile)
    return {"schema": "tcptune/cost/1", "profile": timing.name, "rows": [c.to_json() for c in costs], "summary": error_summary([])}


def print_costs(costs: tuple[StepCost, ...]) -> None:
    """A line per step with what its cycles are made of, then the stages of every pass."""
    console = text_console()
    table = Table("step", "kind", "cycles", "times", "bytes", "pieces", "run bytes", "descriptors", "made of")
    for column in table.columns[2:8]:
        column.justify = "right"
    for cost in costs:
        numbers = [cost.facts.get(key) for key in ("bytes", "pieces", "run_bytes", "descriptors")]
        total = "" if cost.cycles is None else f"{cost.cycles:,}"
        table.add_row(cost.step, cost.kind, total, f"{cost.times:,}", *("" if n is None else f"{n:,}" for n in numbers), _made_of(cost))
    console.print(table)
    for cost in costs:
        if cost.stages:
            console.print(f"{cost.step} on {cost.kind}, start by {cost.facts['rule']}, then {cost.facts['bound']}:")
            for op, cycles, derived in cost.stages:
                facts = ", ".join(f"{key.replace('_', ' ')} {value:,}" for key, value in derived.items())
                console.print(f"  {op:<28}{cycles:>10,} cycles  {facts}".rstrip())


def _made_of(cost: StepCost) -> str:
    """The terms of a price: those of a transfer add up, of a pass the largest stage is added to the start."""
    if cost.cycles is None:
        return cost.unpriced
    words = {what: f"{what.removeprefix('+')} {cycles:,.0f}" for what, cycles in cost.terms}
    if not cost.stages:
        return " + ".join(words.values())
    streaming = [text for what, text in words.items() if what != "start" and not what.startswith("+")]
    added = [text for what, text in words.items() if what == "start" or what.startswith("+")]
    return " + ".join([*added, *([f"the largest of {', '.join(streaming)}"] if streaming else [])])


def print_rows(document: dict[str, Any]) -> None:
    """A line per row, then the errors together."""
    console = text_console()
    table = Table("row", "predicted cycles", "cycles in the file", "error", "not priced because")
    for row in document["rows"]:
        if "skipped" in row:
            table.add_row(row["row"], "", "", "", row["skipped"])
            continue
        published, error = row["published"], row["error"]
        table.add_row(
            row["row"],
            f"{row['predicted']:,}",
            "" if published is None else f"{published:,}",
            "" if error is None else f"{100 * error:+.1f} %",
            "",
        )
    console.print(table)
    summary = document["summary"]
    if summary["count"]:
        median, most = 100 * summary["median_abs_error"], 100 * summary["p90_abs_error"]
        console.print(f"{summary['count']} compared: median error {median:.2f} %, 90 % within {most:.2f} %")


def read_rows(path: Path) -> Iterator[tuple[str, Any]]:
    """(name, row) of every row of a file: a list, an object with ``rows``, one with ``kernels`` as the published schedules have, or a
    schedule of the vendor's, whose instructions are the rows.

    Raises:
        InputError: not readable, not JSON, or none of these forms.
    """
    document = read_json(path)
    scheduled = rows_of_schedules(document, path)
    if scheduled:
        groups: list[tuple[str, Any]] = [(name or "instruction", rows) for name, rows in scheduled.items()]
    elif isinstance(document, dict) and isinstance(document.get("kernels"), dict):
        groups = list(document["kernels"].items())
    else:
        groups = [("row", document.get("rows") if isinstance(document, dict) else document)]
    for name, rows in groups:
        if not isinstance(rows, list):
            raise InputError(f"{path} holds no rows", hint='a list of rows, {"rows": [...]} or {"kernels": {name: [...]}}')
        for number, row in enumerate(rows):
            label = row.get("id") if isinstance(row, dict) else None
            yield (label if isinstance(label, str) else f"{name}[{number}]"), row


def cost_document(path: Path, profile: str = "vendor") -> dict[str, Any]:
    """The cost/1 document of a file of rows.

    Errors are relative: predicted over published minus one. Rows without a published duration have no error; rows that cannot be priced
    are skipped, with the reason.

    Raises:
        InputError: a file that cannot be used, or an unknown profile.
    """
    timing = profile_of(profile)
    rows: list[dict[str, Any]] = []
    errors: list[float] = []
    for name, row in read_rows(path):
        if not isinstance(row, dict):
            rows.append({"row": name, "skipped": "not an object"})
            continue
        try:
            predicted = price_row(row, timing)
        except Skipped as reason:
            rows.append({"row": name, "skipped": reason.message})
            continue
        published = _published(row)
        error = None if published is None else predicted / published - 1
        rows.append({"row": name, "predicted": predicted, "published": published, "error": error})
        if error is not None:
            errors.append(error)
    return {"schema": "tcptune/cost/1", "profile": timing.name, "rows": rows, "summary": error_summary(errors)}


def _published(row: dict[str, Any]) -> float | None:
    """The row's published duration, if it has one that can be compared: its cycles, or from its begin to its end."""
    value = row.get("cycles")
    if value is None and all(_is_number(row.get(name)) for name in ("begin", "end")):
        value = row["end"] - row["begin"]
    return value if _is_number(value) and 0 < value < math.inf else None


def _is_number(value: Any) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool)

"""`tcptune validate`: our makespans and operation durations beside the vendor's published schedules."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from tcptune.cli.output import note, print_document, text_console
from tcptune.errors import InputError
from tcptune.exec.kernel_file import load_checked, source_lines
from tcptune.exec.scheduling.schedule_forms import one_schedule, rows_left_out
from tcptune.exec.validate import OperationRow, Validation, compare_with_schedule, error_summary, validate
from tcptune.ir.files import read_json

_WORST_OPERATIONS = 10


def command(
    kernels: Annotated[
        list[str] | None, typer.Argument(metavar="KERNEL", help="published kernels (default: all of them); with --schedule, a kernel file")
    ] = None,
    schedule: Annotated[Path | None, typer.Option(help="the schedule JSON that the vendor's compiler wrote for the kernel file")] = None,
    function: Annotated[str | None, typer.Option(help="device function of a .rs file that holds several")] = None,
    json: Annotated[bool, typer.Option("--json", help="one JSON document on standard output")] = False,
) -> None:
    """Compare predicted with published schedules, or a kernel of one's own with the schedule that the vendor's compiler gave it."""
    if schedule is None:
        file = next((k for k in kernels or () if Path(k).suffix in (".json", ".rs", ".visa")), None)
        if file is not None:
            raise InputError(f"{file} is no published kernel", hint="a file: tcptune validate kernel.rs --schedule schedule.json")
        found = validate(kernels or ())
    elif len(kernels or ()) == 1:
        kernel = Path((kernels or [""])[0])
        checked = load_checked(kernel, function)
        rows = read_json(schedule)
        for line in rows_left_out(rows):
            note(f"warning: {schedule}: {line}")
        found = compare_with_schedule(checked, one_schedule(rows, checked.kernel.name, schedule), source_lines(kernel, function))
    else:
        raise InputError("--schedule takes one kernel file", hint="tcptune validate kernel.rs --schedule schedule.json")
    if json:
        print_document(document(found))
    else:
        print_tables(found)
    if found.likeness is not None:
        for line in found.likeness.to_lines():
            note(f"warning: {line}")


def document(found: Validation) -> dict[str, Any]:
    """The validation/1 document; errors are relative (predicted over published minus one).

    With a kernel and a schedule file, ``likeness`` says whether they can be of one kernel.
    """
    found_likeness = {} if found.likeness is None else {"likeness": found.likeness.to_json()}
    return {
        "schema": "tcptune/validation/1",
        "kernels": {
            k.kernel: {
                "published": k.published,
                "predicted": k.own_order,
                "error": k.own_order / k.published - 1,
                "predicted_published_order": k.imposed,
            }
            for k in found.kernels
        },
        "operations": {
            **error_summary([o.error_percent / 100 for o in found.operations]),
            "tensor_unit_exact_share": found.tensor_unit_exact_share,
            "worst_dma_abs_error": found.worst_dma_percent / 100,
            "worst": [
                {
                    "kernel": o.kernel,
                    "operation": o.step,
                    "kind": o.kind,
                    "published": o.published_cycles,
                    "predicted": o.predicted_cycles,
                    "error": o.error_percent / 100,
                }
                for o in _worst(found)
            ],
        },
        **found_likeness,
    }


def _worst(found: Validation) -> list[OperationRow]:
    """The operations whose durations differ most, the worst first."""
    return sorted(found.operations, key=lambda o: -abs(o.error_percent))[:_WORST_OPERATIONS]


def print_tables(found: Validation) -> None:
    """A row per kernel, then what the operations say together."""
    console = text_console()
    table = Table("kernel", "published", "its order", "error", "our order", "error", title="makespans in cycles")
    for column in table.columns[1:]:
        column.justify = "right"
    for k in found.kernels:
        imposed = "-" if k.imposed is None else f"{k.imposed:,}"
        imposed_error = "-" if k.imposed_percent is None else f"{k.imposed_percent:+.2f} %"
        table.add_row(k.kernel, f"{k.published:,}", imposed, imposed_error, f"{k.own_order:,}", f"{k.own_percent:+.2f} %")
    console.print(table)
    worst = [o for o in _worst(found) if o.difference]
    if worst:
        operations = Table("kernel", "operation", "kind", "published", "predicted", "error", title="operations that differ most, in cycles")
        for column in operations.columns[3:]:
            column.justify = "right"
        for o in worst:
            cells = (f"{o.published_cycles:,}", f"{o.predicted_cycles:,}", f"{o.error_percent:+.2f} %")
            operations.add_row(o.kernel, o.step, o.kind, *cells)
        console.print(operations)
    console.print(f"published order imposed: worst {found.worst_imposed_percent:.2f} %, median {found.median_imposed_percent:.2f} %")
    console.print(
        f"Tensor Unit operations exact to 2 cycles: {100 * found.tensor_unit_exact_share:.1f} %; worst DMA {found.worst_dma_percent:.1f} %"
    )

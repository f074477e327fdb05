"""`tcptune run KERNEL`: check a kernel, run it against its oracle, schedule it."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich.table import Table

from tcptune.cli import stream_functions
from tcptune.cli.output import print_document, profile_in_use, text_console
from tcptune.errors import InputError, WorkError
from tcptune.exec.compile import Compiled, compile_checked
from tcptune.exec.kernel_file import in_oracle, load_checked, source_lines
from tcptune.exec.program.checked import CheckedKernel
from tcptune.exec.program.unread import unread_notes
from tcptune.exec.running.fill import SEED, declared_inputs
from tcptune.exec.running.interpret import RunResult, run_kernel
from tcptune.exec.running.oracle import has_oracle, verify
from tcptune.exec.running.verification import Verification
from tcptune.exec.scheduling.impose import imposed_ranks
from tcptune.exec.scheduling.schedule_forms import one_schedule
from tcptune.exec.scheduling.schedule_json import write_schedule
from tcptune.ir.files import read_json
from tcptune.model.hardware import RNGD
from tcptune.model.memory.price import Unpriced


def command(
    kernel: Annotated[Path, typer.Argument(metavar="KERNEL", help="a .visa, .rs or .json kernel file")],
    function: Annotated[str | None, typer.Option(help="device function, or function on streams, of a .rs file that holds several")] = None,
    profile: Annotated[str | None, typer.Option(help="timing constants, vendor or manual; default: as the file records")] = None,
    order: Annotated[Path | None, typer.Option(help="a schedule JSON whose order of operations is imposed")] = None,
    schedule: Annotated[Path | None, typer.Option(help="where the schedule is written, in the vendor's JSON format")] = None,
    seed: Annotated[int, typer.Option(help="seed of the drawn inputs", min=0)] = SEED,
    json: Annotated[bool, typer.Option("--json", help="one JSON document on standard output")] = False,
) -> None:
    """Check, execute and schedule a kernel; exit status 1 if it differs from its oracle."""
    if order is None and schedule is None and stream_functions.show(kernel, function, json=json):
        return
    checked = load_checked(kernel, function)
    program = checked.kernel
    profile = profile or profile_in_use(kernel)
    compiled, unscheduled = _scheduled(checked, profile, required=order is not None or schedule is not None)
    if order is not None and compiled is not None:
        imposed = one_schedule(read_json(order), program.name, order)
        compiled = compile_checked(checked, profile, ranks=imposed_ranks(imposed, compiled.program, source_lines(kernel, function)))
    if schedule is not None and compiled is not None:
        write_schedule(compiled.schedule, schedule)
    result = run_kernel(checked, declared_inputs(program, seed))
    notes = [*unread_notes(checked), *(compiled.schedule.notes if compiled is not None else ())]
    try:
        verification = verify(checked, (seed, seed + 1, seed + 2)) if has_oracle(program) else None
    except InputError as error:
        raise in_oracle(error, kernel) from error
    if json:
        print_document({**document(program.name, compiled, unscheduled, result, verification), "notes": notes})
    else:
        print_summary(program.name, compiled, unscheduled, result, verification)
        for text in notes:
            print(f"note: {text}")
    if verification is not None:
        verification.require()
    if result.undefined_reads:
        raise WorkError(
            f"the result holds {'; '.join(str(u) for u in result.undefined)}", hint="a `1 # n` claims n positions and fills one"
        )


def _scheduled(checked: CheckedKernel, profile: str, *, required: bool) -> tuple[Compiled | None, str]:
    """The scheduled kernel, or None and the reason where the profile has no price for something in it.

    Raises:
        Unpriced: the same, if a schedule is required.
    """
    try:
        return compile_checked(checked, profile), ""
    except Unpriced as reason:
        if required:
            raise
        return None, reason.message


def document(
    name: str, compiled: Compiled | None, unscheduled: str, result: RunResult, verification: Verification | None
) -> dict[str, Any]:
    """The run/1 document; `checksum` is the SHA-256 of the stored bytes, undefined cells as zero.

    `makespan` and `busy` are null where nothing prices the kernel; `unscheduled` then says what.
    """
    undefined = {u.tensor: u.count for u in result.undefined}
    outputs = {
        name: {
            "shape": list(result.types[name].shape),
            "dtype": result.types[name].dtype.name,
            "checksum": checksum(values.data, values.defined),
            "undefined_cells": undefined.get(name, 0),
        }
        for name, values in result.outputs.items()
    }
    found = {
        "schema": "tcptune/run/1",
        "kernel": name,
        "oracle": None if verification is None else verification.to_json(),
        "outputs": outputs,
        "makespan": None if compiled is None else compiled.makespan,
        "busy": None if compiled is None else compiled.busy,
    }
    return found if compiled is not None else {**found, "unscheduled": unscheduled}


def checksum(data: np.ndarray[Any, Any], defined: np.ndarray[Any, Any]) -> str:
    """SHA-256 of the contents; cells that hold nothing known count as zero bytes."""
    known = np.ascontiguousarray(np.where(defined, data, np.zeros((), data.dtype)))
    return hashlib.sha256(known.tobytes()).hexdigest()


def print_summary(name: str, compiled: Compiled | None, unscheduled: str, result: RunResult, verification: Verification | None) -> None:
    """What a person wants to see: verdict, makespan, the operations in order."""
    console = text_console()
    if verification is None:
        console.print(f"{name}: legal; no oracle to compare with")
    else:
        failed, count = len(verification.failures), len(verification.runs)
        verdict = f"differs from its oracle on {failed} of {count} inputs" if failed else f"agrees with its oracle on {count} inputs"
        console.print("; ".join(part for part in (f"{name}: legal, {verdict}", verification.margin()) if part), soft_wrap=True)
        if verification.tolerance_ignored:
            console.print("the kernel's tolerance is not used: integers are compared exactly")
        for left in verification.not_compared:
            console.print(f"not compared: {left}")
    for entry in result.undefined:
        console.print(f"undefined: {entry}")
    if compiled is None:
        console.print(f"not scheduled: {unscheduled}")
        return
    table = Table("begin", "end", "cycles", "kind", "operation", "contexts")
    for column in table.columns[:3]:
        column.justify = "right"
    for operation in sorted(compiled.schedule.operations, key=lambda o: (o.begin, o.end)):
        if operation.end > operation.begin:
            cycles = f"{operation.end - operation.begin:,}"
            table.add_row(f"{operation.begin:,}", f"{operation.end:,}", cycles, operation.kind, operation.id, ", ".join(operation.contexts))
    console.print(table)
    console.print(f"makespan {compiled.makespan:,} cycles ({compiled.makespan / RNGD.clock_ghz / 1000:.1f} µs at {RNGD.clock_ghz:g} GHz)")

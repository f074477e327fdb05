"""`tcptune analyse FILE...`: where the cycles of a schedule go, for ours and the vendor's; several schedules or kernels side by side."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from tcptune.cli.output import note, print_document, profile_in_use, text_console
from tcptune.exec.compile import compile_checked
from tcptune.exec.kernel_file import load_checked
from tcptune.exec.scheduling.schedule_forms import rows_left_out, schedules_of
from tcptune.ir.files import read_json
from tcptune.ir.schedule import CORE, Operation, Schedule
from tcptune.reports.diagnosis import Diagnosis, diagnose
from tcptune.reports.kernel_costs import StepCost, kernel_costs
from tcptune.reports.levers import lever_text
from tcptune.reports.schedule_analysis import Analysis, Gap, analyse, named, source_line
from tcptune.reports.schedule_comparison import Comparison, peak_bytes, schedule_hash

_LONGEST_GAPS = 8
_LARGEST_BUFFERS = 12
_LEAST_SLACK = 12
_SHAPE_CHARACTERS = 70

Loaded = tuple[Schedule, tuple[StepCost, ...]]
"""A schedule and, of a kernel, the prices of its steps."""


def command(
    files: Annotated[
        list[Path], typer.Argument(metavar="FILE...", help="schedule JSON (ours or the vendor's), or .visa, .rs, .json kernels")
    ],
    function: Annotated[str | None, typer.Option(help="device function of a .rs file that holds several")] = None,
    profile: Annotated[
        str | None, typer.Option(help="timing constants with which kernels are scheduled, vendor or manual; default: as each file records")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="one JSON document on standard output")] = False,
) -> None:
    """Busy and exclusive cycles, idle gaps with reasons, critical path, memory plan; or several schedules side by side."""
    loaded = load_schedules(files, function, profile)
    schedules = {name: schedule for name, (schedule, _) in loaded.items()}
    if len(schedules) > 1:
        comparison = Comparison.of(schedules)
        if json:
            print_document(comparison.to_json())
        else:
            print(comparison.to_text(), end="")
        return
    ((schedule, costs),) = loaded.values()
    if json:
        print_document(document(schedule, costs))
    else:
        print_analysis(analyse(named(schedule)), costs)


def load_schedules(files: list[Path], function: str | None = None, profile: str | None = None) -> dict[str, Loaded]:
    """The schedules in files, or of the kernels in them, by short name, with the prices of a kernel's steps; a file of several gives each.

    A kernel is scheduled with `profile`, or with the one that its file records; one that is not the default is told on standard error.

    Raises:
        InputError, RuleViolation: a file is neither a schedule nor a legal kernel. WorkError: nothing prices an operation of the kernel.
    """
    found: dict[str, Loaded] = {}
    for name, file in zip(_names(files), files, strict=True):
        for inner, schedule in _load(file, function, profile).items():
            found[name if not inner else inner if len(files) == 1 else f"{name} {inner}"] = schedule
    return found


def _load(path: Path, function: str | None, profile: str | None) -> dict[str, Loaded]:
    """The schedules in one file, by the names that it gives them."""
    if path.suffix in (".visa", ".rs"):
        return {"": _compiled(path, function, profile)}
    raw = read_json(path)
    if isinstance(raw, dict) and "steps" in raw and "instructions" not in raw:
        return {"": _compiled(path, function, profile)}
    for line in rows_left_out(raw):
        note(f"warning: {path}: {line}")
    return {name: (schedule, ()) for name, schedule in schedules_of(raw, path).items()}


def _compiled(path: Path, function: str | None, profile: str | None) -> Loaded:
    """The schedule of the kernel in a file, with the profile asked for or the recorded one, and the prices of its steps."""
    checked = load_checked(path, function)
    profile = profile or profile_in_use(path)
    return compile_checked(checked, profile).schedule, kernel_costs(checked, profile)


def _names(files: list[Path]) -> list[str]:
    """Short names that tell the files apart: the file, its folder too, or the whole path; the place where one is given twice."""
    for name in (lambda p: p.name, lambda p: f"{p.parent.name}/{p.name}", str):
        names = [name(file) for file in files]
        if len(set(names)) == len(names):
            return names
    return [f"{number}: {file}" for number, file in enumerate(files, 1)]


def document(schedule: Schedule, costs: Sequence[StepCost] = ()) -> dict[str, Any]:
    """The schedule-analysis/1 document, with the diagnosis, the peaks of the memories and the hash of the schedule."""
    analysis = analyse(schedule)
    found = diagnose(analysis)
    extra = {
        "diagnosis": None if found is None else {**found.to_json(), "advice": lever_text(analysis, costs)},
        "peak_bytes_per_slice": peak_bytes(schedule.lifetimes),
        "hash": schedule_hash(schedule),
    }
    return {**analysis.to_json(), **extra}


def print_analysis(analysis: Analysis, costs: Sequence[StepCost] = ()) -> None:
    """The same for a person; the longest gaps and the largest buffers only."""
    console = text_console()
    shares = _table("context", "operations #", "busy cycles #", "exclusive cycles #")
    for share in analysis.shares:
        shares.add_row(share.resource, f"{share.operations:,}", f"{share.busy:,}", f"{share.exclusive:,}")
    console.print(shares)
    critical = _table("critical path", "kind", "begin #", "end #", "cycles #", "source")
    for o in analysis.critical:
        critical.add_row(o.id, o.kind, f"{o.begin:,}", f"{o.end:,}", f"{o.duration_cycles:,}", source_line(o))
    console.print(critical)
    beside = [o for o in analysis.schedule.operations if o.duration_cycles and o not in analysis.critical]
    if beside:
        console.print(_beside(analysis, beside))
    gaps = _table("longest gaps", "begin #", "end #", "cycles #", "waited for")
    for gap in longest_gaps(analysis)[:_LONGEST_GAPS]:
        gaps.add_row(gap.resource, f"{gap.begin:,}", f"{gap.end:,}", f"{gap.cycles:,}", gap.reason)
    console.print(gaps)
    if analysis.schedule.lifetimes:
        console.print(_memory(analysis.schedule))
        peaks = peak_bytes(analysis.schedule.lifetimes)
        console.print(f"peak memory: {', '.join(f'{tier} {size:,} B a slice' for tier, size in peaks.items())}")
    console.print(f"makespan {analysis.makespan:,} cycles; nothing runs in {analysis.idle:,} of them")
    console.print("exclusive: every running operation holds the context, nothing hides behind it")
    found = diagnose(analysis)
    if found is not None:
        console.print(diagnosis_text(found, analysis.makespan), lever_text(analysis, costs), sep="\n", soft_wrap=True)


def longest_gaps(analysis: Analysis) -> list[Gap]:
    """Gaps between work first, the longest first; then those of the core, which only syncs, and those after the last work of a context."""
    return sorted(analysis.gaps, key=lambda g: (g.resource == CORE or not g.before, -g.cycles, g.begin))


def diagnosis_text(found: Diagnosis, makespan: int) -> str:
    """The critical path by kind of work and the lever, in two lines."""
    parts = {"movement": found.movement, "Tensor Unit": found.tensor_unit, "launch, syncs and waits": found.fixed}
    shares = ", ".join(f"{what} {cycles:,} cycles ({cycles / makespan:.0%})" for what, cycles in parts.items())
    return f"critical path: {shares}\n{found.words}"


def _beside(analysis: Analysis, operations: list[Operation]) -> Table:
    """Operations off the critical path, those that may be delayed least first."""
    table = _table("beside the path", "kind", "begin #", "end #", "cycles #", "slack (cycles) #")
    for o in sorted(operations, key=lambda o: (analysis.slack.get(o.id, 0), o.begin))[:_LEAST_SLACK]:
        numbers = (o.begin, o.end, o.duration_cycles, analysis.slack.get(o.id, 0))
        table.add_row(o.id, o.kind, *(f"{n:,}" for n in numbers))
    return table


def _memory(schedule: Schedule) -> Table:
    """Buffers by size, with address and life."""
    memory = _table("buffer", "memory", "address #", "bytes a slice #", "from cycle #", "to cycle #", "shape")
    lives = sorted(schedule.lifetimes, key=lambda life: (-life.buffer.size_bytes, life.begin, life.buffer.name))
    for life in lives[:_LARGEST_BUFFERS]:
        numbers = (f"{n:,}" for n in (life.address, life.buffer.size_bytes, life.begin, life.end))
        memory.add_row(life.buffer.name, life.buffer.tier, *numbers, _shortened(life.buffer.shape.removeprefix("MappingShape")))
    if len(lives) > _LARGEST_BUFFERS:
        memory.add_row(f"and {len(lives) - _LARGEST_BUFFERS} smaller ones")
    return memory


def _shortened(shape: str) -> str:
    """A shape that a cell holds; what is left out shows."""
    return shape if len(shape) <= _SHAPE_CHARACTERS else shape[: _SHAPE_CHARACTERS - 1] + "…"


def _table(*headers: str) -> Table:
    """A table; columns whose heading ends with ``#`` hold numbers, which end flush."""
    table = Table()
    for header in headers:
        table.add_column(header.removesuffix(" #"), justify="right" if header.endswith("#") else "left")
    return table

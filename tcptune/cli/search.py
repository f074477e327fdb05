"""`tcptune search einsum TEXT -s axis=size …`: finds the fastest kernel for a workload and writes its result folder."""

from __future__ import annotations

import re
import shlex
import sys
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table
from typer.core import TyperGroup

from tcptune.cli.app import INTERRUPTED
from tcptune.cli.output import note, print_document
from tcptune.cli.progress import search_progress
from tcptune.errors import InputError
from tcptune.ir.files import require_writable
from tcptune.ir.mappings.mapping import MAX_SIZE
from tcptune.ir.workload import Workload, einsum
from tcptune.reports.explanation import result_document
from tcptune.reports.folder import write_result
from tcptune.reports.result_view import stopped_words
from tcptune.search.entry import tuner_for
from tcptune.search.frame import Search
from tcptune.search.result import SearchResult
from tcptune.search.store import require_place


class _Kinds(TyperGroup):
    """The kinds of workload; an einsum in the place of the kind is told where it goes."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        if args and args[0] not in self.commands and not args[0].startswith("-"):
            raise InputError(f"there is no kind of workload {args[0][:60]!r}", hint=f"write: tcptune search einsum {_quoted(args)}")
        return super().resolve_command(ctx, args)


def _quoted(arguments: list[str]) -> str:
    """The arguments of a search of an einsum as one would type them; an example where the first is none."""
    return shlex.join(arguments) if "->" in arguments[0] else '"ik,jk->ij" -s i=512 -s j=512 -s k=64'


app = typer.Typer(cls=_Kinds, no_args_is_help=True, help="Search the fastest kernel for a workload.")

_SIZE = re.compile(r"\s*([^=\s]+)\s*=\s*(-?[0-9]+)\s*\Z")

_MAX_DIGITS = len(str(MAX_SIZE)) + 1
"""Of a size with its sign; the workload compares what has no more with the limit itself."""


@app.command("einsum")
def command(
    text: Annotated[str, typer.Argument(metavar="EINSUM", help="for example 'ik,jk->ij'")],
    size: Annotated[list[str], typer.Option("-s", "--size", metavar="AXIS=N", help="size of an axis; once for each, or i=64,j=64")],
    dtype: Annotated[str, typer.Option(help="element type of the inputs")] = "bf16",
    out_dtype: Annotated[str | None, typer.Option(help="element type of the result; default: what the inputs imply")] = None,
    layout: Annotated[
        str, typer.Option(help="the host zero-pads to 32 bytes padded: rows that break 8-byte strides; aligned: all rows; dense: none")
    ] = "padded",
    epilogue: Annotated[str | None, typer.Option(help="for example 'bias:b(j), relu'")] = None,
    fuse: Annotated[bool, typer.Option("--fuse/--no-fuse", help="whether the epilogue may run in the contraction's pass")] = True,
    hbm_copies: Annotated[int, typer.Option(help="how often the host may store an input in HBM at most, a power of two")] = 1,
    reduce: Annotated[str, typer.Option(help="reduction of a workload with one input: sum or max")] = "sum",
    trials: Annotated[int, typer.Option(help="candidates that are tried at most, beside the template")] = 200,
    time_limit: Annotated[float | None, typer.Option(help="seconds after which the search begins nothing more")] = None,
    seed: Annotated[int, typer.Option(help="seed of the search", min=0)] = 0,
    jobs: Annotated[int, typer.Option(help="worker processes; any number gives the same document")] = 1,
    profile: Annotated[str, typer.Option(help="timing constants: vendor or manual")] = "vendor",
    study: Annotated[Path | None, typer.Option(help="journal file; a search that was killed goes on from it")] = None,
    out: Annotated[Path | None, typer.Option(help="result folder; default results/<name>")] = None,
    json: Annotated[bool, typer.Option("--json", help="one JSON document on standard output")] = False,
) -> None:
    """Search a kernel for an einsum with sizes and element types."""
    workload = einsum(
        text,
        sizes=read_sizes(size),
        dtype=dtype,
        out_dtype=out_dtype,
        layout=layout,
        epilogue=epilogue,
        fuse=fuse,
        reduce=reduce,
        hbm_copies=hbm_copies,
    )
    folder = out or Path("results") / folder_name(workload, profile=profile, seed=seed)
    tuner = tuner_for(
        workload,
        trials=trials,
        time_limit=time_limit,
        seed=seed,
        jobs=jobs,
        profile=profile,
        study=study,
        command="tcptune " + shlex.join(sys.argv[1:]),
    )
    if study is not None:
        require_place(study)
    require_writable(folder)
    result = run_with_progress(tuner)
    files = write_result(result, folder)
    if json:
        print_document(result_document(result, files))
    else:
        print_summary(result, folder)


def read_sizes(options: list[str]) -> dict[str, int]:
    """Axis sizes from texts like ``i=512`` or ``i=512, j=512``.

    Raises:
        InputError: a text of another form, or an axis given twice.
    """
    sizes: dict[str, int] = {}
    for item in (item for option in options for item in option.rstrip().removesuffix(",").split(",")):
        found = _SIZE.match(item)
        if not found:
            raise InputError(f"cannot read the size {item[:40]!r}", hint="write axis=number, for example -s i=512")
        if len(found.group(2)) > _MAX_DIGITS:
            raise InputError(
                f"the size of axis {found.group(1)[:40]!r} has {len(found.group(2))} digits", hint="at most 2^62, as all sizes"
            )
        axis, value = found.group(1), int(found.group(2))
        if axis in sizes:
            raise InputError(f"the size of axis {axis!r} is given twice: {sizes[axis]} and {value}")
        sizes[axis] = value
    return sizes


def folder_name(workload: Workload, *, profile: str = "vendor", seed: int = 0) -> str:
    """A folder name that tells searches apart: subscripts, sizes, element type, what of workload, profile and seed is no default."""
    subscripts = workload.text.replace(",", "-").replace("->", "_")
    sizes = "_".join(f"{axis}{size}" for axis, size in workload.sizes)
    named = {"out_dtype": "", "layout": "", "reduce": "", "hbm_copies": "copies", "fuse": "fuse"}
    given = {"hbm_copies": 1, "fuse": True, **workload.to_json()}
    plain = einsum(workload.text, sizes=dict(workload.sizes), dtype=workload.dtype, epilogue=given.get("epilogue"))
    usual = {"hbm_copies": 1, "fuse": True, **plain.to_json()}
    others = [f"{words}{given[key]}".lower() for key, words in named.items() if key in given and given[key] != usual[key]]
    others += [profile] * (profile != "vendor") + [f"s{seed}"] * (seed != 0)
    epilogue = "_".join(re.sub(r"\W+", "-", str(op)).strip("-") for op in workload.epilogue)
    return "_".join(part for part in (subscripts, sizes, workload.dtype.name, epilogue, *others) if part)


def run_with_progress(tuner: Search[Any, Any]) -> SearchResult:
    """Runs the search; a terminal sees a progress bar on standard error. An interrupt ends it with the best so far.

    Raises:
        Exit: interrupted while the best so far was checked; it has said so.
    """
    try:
        with search_progress() as (begin, show):
            begin("search", tuner.options.trials)
            tuner.progress = show
            result = tuner.run()
    except KeyboardInterrupt:
        if not tuner.state.best:
            raise
        note("interrupted before the result was written")
        raise typer.Exit(INTERRUPTED) from None
    if result.stopped == "interrupt":
        note("interrupted: this is the best so far")
    return result


def print_summary(result: SearchResult, folder: Path) -> None:
    """The table at the end: makespan against bound and default, verdict of the oracle, where the report is."""
    table = Table(show_header=False, box=None)
    table.add_column(style="bold")
    table.add_column()
    proof = "proven optimal in the declared space" if result.proven else f"gap {100 * result.gap:.1f} %"
    rows = [("makespan", f"{result.makespan:,} cycles"), ("lower bound", f"{result.lower_bound:,} cycles ({proof})")]
    if result.default is not None:
        speedup = result.default.makespan / result.makespan
        rows.append(("default", f"{result.default.makespan:,} cycles ({result.what_default}): {speedup:.1f} times slower"))
    else:
        rows.append(("default", f"not legal here ({result.what_default})"))
    verdict = "passed" if result.oracle.passed else "FAILED"
    rows.append(("oracle", f"{verdict}, {result.oracle.cases} runs, {result.oracle.undefined_reads} undefined cells"))
    if result.oracle.what != "the kernel":
        rows.append(("oracle ran", result.oracle.what))
    fates = result.fates
    rows.append(
        ("candidates", f"{fates.scheduled} scheduled, {fates.pruned} pruned, {fates.duplicates} duplicates, {fates.rejected} rejected")
    )
    rows.append(("stopped by", stopped_words(result.stopped, result.trials)))
    rows.append(("report", str(folder / "report.html")))
    for name, value in rows:
        table.add_row(name, value)
    Console(highlight=False).print(table)

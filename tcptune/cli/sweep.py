"""`tcptune sweep FILE`: runs the workloads of a TOML file and compares them in one table; a killed sweep goes on where it was."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from tcptune.cli.output import note, print_document
from tcptune.ir.files import require_writable
from tcptune.reports.compare import comparison_text, load_runs
from tcptune.reports.folder import write_result
from tcptune.reports.sweep import sweep_document, write_sweep
from tcptune.search.suite import SuiteRun, finished, load_suite, run_suite
from tcptune.search.tuner import Progress as TunerProgress


def command(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="a sweep configuration, for example experiments/gemm.toml")],
    out: Annotated[Path | None, typer.Option(help="folder of the results; default results/<name of the file>")] = None,
    resume: Annotated[bool, typer.Option("--resume/--no-resume", help="keep finished searches and go on with a killed one")] = True,
    json: Annotated[bool, typer.Option("--json", help="one JSON document on standard output")] = False,
) -> None:
    """Search every workload of a sweep; writes sweep.html, sweep.csv and sweep.json."""
    suite = load_suite(file)
    folder = out or Path("results") / file.stem
    require_writable(folder)
    columns = (TextColumn("{task.fields[name]}"), BarColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", name="", total=None)

        def watch(run: SuiteRun, state: TunerProgress | None) -> None:
            if state is None:
                bar.reset(task, name=run.name, total=run.options["trials"], description="pricing placements")
                return
            best = "none yet" if state.makespan is None else f"{state.makespan:,}"
            bar.update(task, completed=state.trials, total=state.budget, description=f"best {best}, bound {state.bound:,} cycles")

        run_suite(suite, folder, write_result, resume=resume, watch=watch)
    done = [folder / run.name for run in suite.runs if finished(run, folder / run.name)]
    if len(done) < len(suite.runs):
        note(f"interrupted: {len(done)} of {len(suite.runs)} searches are finished; the same command goes on")
    if not done:
        raise typer.Exit(1)
    runs = load_runs(done)
    files = write_sweep(suite.config, runs, folder, suite.title)
    if json:
        print_document(sweep_document(suite.config, runs))
    else:
        print(comparison_text(runs))
        print(folder / files["html"])

"""`tcptune sweep FILE`: runs the workloads of a TOML file and compares them in one table; a killed sweep goes on where it was."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tcptune.cli.output import note, print_document
from tcptune.cli.progress import search_progress
from tcptune.ir.files import require_writable
from tcptune.reports.compare import comparison_text, load_runs
from tcptune.reports.folder import write_result
from tcptune.reports.sweep import sweep_document, write_sweep
from tcptune.search.options import Progress as TunerProgress
from tcptune.search.suite import SuiteRun, load_suite, run_suite


def command(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="a sweep configuration, for example experiments/gemm.toml")],
    out: Annotated[Path | None, typer.Option(help="folder of the results; default results/<name of the file>")] = None,
    resume: Annotated[bool, typer.Option("--resume/--no-resume", help="keep finished searches and go on with a killed one")] = True,
    json: Annotated[bool, typer.Option("--json", help="one JSON document on standard output")] = False,
) -> None:
    """Search every workload of a sweep; writes sweep.html, sweep.csv and sweep.json. Exit status 1 if a search found nothing."""
    suite = load_suite(file)
    folder = out or Path("results") / file.stem
    require_writable(folder)
    with search_progress() as (begin, show):

        def watch(run: SuiteRun, state: TunerProgress | None) -> None:
            if state is None:
                begin(run.name, run.options["trials"])
            else:
                show(state)

        outcome = run_suite(suite, folder, write_result, resume=resume, watch=watch)
    runs = load_runs(outcome.finished)
    failed = {failure.name: failure.error.message for failure in outcome.failures}
    files = write_sweep(suite.config, runs, folder, suite.title, failed) if runs or failed else {}
    if json:
        print_document(sweep_document(suite.config, runs, failed))
    elif runs:
        print(comparison_text(runs))
        print(folder / files["html"])
    for failure in outcome.failures:
        note(f"{failure.name}: {failure.error.render()}")
    if outcome.interrupted:
        note(f"interrupted: {len(runs)} of {len(suite.runs)} searches are finished; the same command goes on")
    if failed or not runs:
        raise typer.Exit(1)

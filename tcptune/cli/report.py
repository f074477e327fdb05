"""`tcptune report DIR...`: compares the result folders of several searches."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tcptune.cli.output import print_document
from tcptune.reports.compare import comparison_text, load_runs, repeated, summary_rows, write_comparison


def command(
    folders: Annotated[list[Path], typer.Argument(metavar="DIR", help="result folders")],
    out: Annotated[Path | None, typer.Option(help="folder for comparison.html and comparison.csv")] = None,
    json: Annotated[bool, typer.Option("--json", help="one JSON document on standard output")] = False,
) -> None:
    """Compare search results side by side."""
    runs = load_runs(folders)
    files = {} if out is None else write_comparison(runs, out)
    if json:
        rows = [{**row, "gap": run.result["gap"]} for row, run in zip(summary_rows(runs), runs, strict=True)]  # tables have it in percent
        print_document({"schema": "tcptune/report/1", "runs": rows, "repeated": repeated(runs), "files": files})
    else:
        print(comparison_text(runs), end="")
        for path in files.values():
            print(path if out is None else out / path)

"""`tcptune conformance [PATH]`: the model against the corpus, per chapter."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import track
from rich.table import Table
from rich.text import Text

from tcptune.cli.output import print_document, text_console
from tcptune.exec.conformance.runner import CaseResult, corpus_files, questions_in


def command(
    path: Annotated[Path | None, typer.Argument(metavar="PATH", help="corpus file or folder; default: the project's corpus")] = None,
    ids: Annotated[str, typer.Option(help="only cases whose id starts with this")] = "",
    json: Annotated[bool, typer.Option("--json", help="one JSON document on standard output")] = False,
) -> None:
    """Run the conformance corpus; exit status 1 if a case fails."""
    questions = questions_in(corpus_files(path), ids)
    console = Console(stderr=True)
    results = [
        question.answer() for question in track(questions, "conformance", console=console, transient=True, disable=not console.is_terminal)
    ]
    if json:
        print_document(document(results))
    else:
        print_tables(results)
    if any(r.outcome == "failed" for r in results):
        raise typer.Exit(1)


def counts(results: list[CaseResult]) -> dict[str, dict[str, int]]:
    """Per chapter: total, passed, failed, known."""
    chapters: dict[str, dict[str, int]] = {}
    for chapter in dict.fromkeys(r.chapter for r in results):
        outcomes = Counter(r.outcome for r in results if r.chapter == chapter)
        chapters[chapter] = {"total": outcomes.total(), **{k: outcomes[k] for k in ("passed", "failed", "known")}}
    return chapters


def document(results: list[CaseResult]) -> dict[str, Any]:
    """The conformance/1 document."""
    return {
        "schema": "tcptune/conformance/1",
        "chapters": counts(results),
        "failed": [{"id": r.id, "why": r.why} for r in results if r.outcome == "failed"],
    }


def print_tables(results: list[CaseResult]) -> None:
    """Failures with their reason, then a line per chapter."""
    console = text_console()
    for result in results:
        if result.outcome == "failed":
            console.print(Text.assemble((result.id, "bold"), f": {result.why}"), soft_wrap=True)
    table = Table("chapter", "total", "passed", "failed", "known", "score")
    for chapter, n in counts(results).items():
        table.add_row(chapter, str(n["total"]), str(n["passed"]), str(n["failed"]), str(n["known"]), f"{n['passed'] / n['total']:.1%}")
    console.print(table)

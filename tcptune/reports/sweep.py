"""The outcome of a sweep: the ``sweep/1`` document and one comparison table of all its runs, as HTML and CSV."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tcptune.ir.files import write_text
from tcptune.reports.compare import Run, write_comparison

SCHEMA = "tcptune/sweep/1"
STEM = "sweep"


def sweep_document(config: Any, runs: Sequence[Run], failed: Mapping[str, str] | None = None) -> dict[str, Any]:
    """The ``sweep/1`` document: the configuration, every result without its kernel text, and why the other searches found nothing."""
    results = [{"name": run.name, "result": without_kernel(run.result)} for run in runs]
    failures = [{"name": name, "why": why} for name, why in (failed or {}).items()]
    return {"schema": SCHEMA, "config": config, "runs": results, "failed": failures}


def without_kernel(result: dict[str, Any]) -> dict[str, Any]:
    """A search result without the text of its best kernel."""
    best = {key: value for key, value in (result.get("best") or {}).items() if key != "kernel"}
    return {**result, "best": best}


def write_sweep(
    config: Any, runs: Sequence[Run], folder: Path, title: str = "Sweep", failed: Mapping[str, str] | None = None
) -> dict[str, str]:
    """Writes ``sweep.json``, ``sweep.csv`` and ``sweep.html`` into `folder`; returns their names.

    Raises:
        InputError: there is neither a run nor a failure, or the folder cannot be written.
    """
    question = config.get("question", "") if isinstance(config, dict) else ""
    files = write_comparison(runs, folder, title, STEM, str(question), dict(failed or {}))
    files["json"] = f"{STEM}.json"
    write_text(folder / files["json"], json.dumps(sweep_document(config, runs, failed), indent=1) + "\n")
    return files

"""The result folder of a search: every file written whole, the kernel as vISA and Rust, the schedule for the vendor's viewer, the report.

Files: ``result.json`` (search-result/1), ``trace.csv``, ``kernel.visa``, ``kernel.rs``, ``schedule.json``, ``report.html``.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from tcptune.exec.kernel_file import with_profile
from tcptune.exec.scheduling.schedule_json import to_json as schedule_to_json
from tcptune.ir.files import write_text
from tcptune.ir.kernels.kernel import Kernel
from tcptune.ir.kernels.ops import CommitView
from tcptune.ir.kernels.steps import Loop, TensorUnit
from tcptune.ir.schedule import Schedule
from tcptune.model.hardware import RNGD, Hardware
from tcptune.reports.explanation import result_document
from tcptune.reports.html import render
from tcptune.reports.result_view import result_context
from tcptune.reports.rust import RustText, kernel_to_rust
from tcptune.reports.trace import trace_csv
from tcptune.search.result import SearchResult

FILES = {
    "result": "result.json",
    "trace": "trace.csv",
    "kernel": "kernel.visa",
    "rust": "kernel.rs",
    "schedule": "schedule.json",
    "report": "report.html",
}
"""Name of a file in the result document to its path in the folder."""

_INSTANCE = re.compile(r"(\.\d+)?(@\d+)*\Z")


def write_result(result: SearchResult, folder: Path, command: str = "", hw: Hardware = RNGD) -> dict[str, str]:
    """Writes all files of a result and returns their paths by name, relative to the folder.

    The report comes last, so that a folder with a report is complete.

    Args:
        command: the command that reproduces the result; default: the one that the result carries.

    Raises:
        InputError: the folder cannot be written.
    """
    rust = kernel_to_rust(result.kernel, hw, profile=result.profile)
    texts = {
        "kernel": with_profile(result.kernel.to_text(), result.profile),
        "rust": rust.text,
        "schedule": json.dumps(schedule_document(result.schedule, result.kernel, rust, hw), indent=1) + "\n",
        "trace": trace_csv(result.trace_rows()),
        "result": json.dumps(result_document(result, FILES), indent=1) + "\n",
        "report": report_html(result, command, rust.text, hw),
    }
    for name, text in texts.items():
        write_text(folder / FILES[name], text)
    return dict(FILES)


def report_html(result: SearchResult, command: str = "", rust: str | None = None, hw: Hardware = RNGD) -> str:
    """The page of one search."""
    text = rust if rust is not None else kernel_to_rust(result.kernel, hw, profile=result.profile).text
    return render("result.html.j2", **result_context(result, command or result.command, FILES, text, hw))


def schedule_document(schedule: Schedule, kernel: Kernel, rust: RustText, hw: Hardware = RNGD) -> dict[str, Any]:
    """The vendor's schedule document, its descriptions pointing at the statements of the kernel's Rust file."""
    document = schedule_to_json(schedule, hw)
    lines = _lines_by_operation(kernel, rust)
    source = rust.text.split("\n")
    for operation, entry in zip(schedule.operations, document["instructions"], strict=True):
        line = lines.get(_INSTANCE.sub("", operation.id))
        if line is not None and entry["description"]:
            entry["description"] = _description(source, line)
    return document


def _lines_by_operation(kernel: Kernel, rust: RustText) -> dict[str, int]:
    """Line of the statement by the name that its operation has in a schedule."""
    found: dict[str, int] = {}

    def visit(steps: tuple[Any, ...], path: tuple[int, ...]) -> None:
        for index, step in enumerate(steps):
            here = (*path, index)
            if isinstance(step, Loop):
                visit(step.body, here)
            elif isinstance(step, TensorUnit) and step.let is None:
                into = next((op.into for op in step.ops if isinstance(op, CommitView)), None)
                found.setdefault(f"{into} tile", rust.lines[here])
            elif getattr(step, "let", None):
                found.setdefault(step.let, rust.lines[here])

    visit(kernel.steps, ())
    return found


def _description(source: list[str], line: int) -> str:
    """``--> path:line:column``, a blank line, the text of the expression that begins there (spec: schedule JSON, description)."""
    first = source[line - 1]
    start = first.index(" = ") + 3 if first.lstrip().startswith("let ") and " = " in first else len(first) - len(first.lstrip())
    text = [first[start:]]
    for following in source[line:]:
        if text[-1].rstrip().endswith(";") or following.strip() in ("}", ""):
            break
        text.append(following)
    body = "\n".join(text).removesuffix(";")
    return f"--> {FILES['rust']}:{line}:{start + 1}\n\n{body}"

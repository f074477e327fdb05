"""What `tcptune run` shows of functions on Tensor Unit streams: their chains, operation by operation (stream-functions/1)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rich.table import Table

from tcptune.cli.output import print_document, text_console
from tcptune.exec.rust.module_files import module_files
from tcptune.exec.rust.stream_functions import StreamFunction, stream_functions
from tcptune.ir.files import read_text
from tcptune.ir.types import StreamType, TensorType
from tcptune.model.pipeline import Chain


def show(path: Path, function: str | None, *, json: bool) -> bool:
    """Checks and prints the functions on streams of a Rust file; False where there are none to show.

    Raises:
        InputError, RuleViolation: as `exec.rust.stream_functions.stream_functions`.
    """
    if path.suffix != ".rs":
        return False
    text = read_text(path)
    found = stream_functions(text, function=function, path=str(path), modules=module_files(path, text))
    if not found:
        return False
    if json:
        print_document(document(found))
    else:
        for entry in found:
            print_function(entry)
    return True


def document(functions: tuple[StreamFunction, ...]) -> dict[str, Any]:
    """The stream-functions/1 document: types before and after every operation, its derived numbers and its cycles."""
    return {
        "schema": "tcptune/stream-functions/1",
        "functions": [{"function": f.name, "passes": [_pass_json(chain) for chain in f.chains]} for f in functions],
    }


def _pass_json(chain: Chain) -> dict[str, Any]:
    return {
        "context": chain.env.context,
        "start": _type_json(chain.start),
        "steps": [
            {
                "op": step.op.NAME,
                **_type_json(step.after),
                "derived": {k: v for k, v in step.derived.items() if isinstance(v, int | float | str | bool)},
                "cycles": step.cost.cycles,
                "latency": step.cost.latency_cycles,
            }
            for step in chain.steps
        ],
    }


def _type_json(type_: StreamType | TensorType) -> dict[str, str]:
    place = type_.position if isinstance(type_, StreamType) else type_.tier
    return {"position": place, "dtype": type_.dtype.name, **{name: str(m) for name, m in type_.levels}}


def print_function(function: StreamFunction) -> None:
    """A line per operation: what it leaves and what it costs in its stage."""
    console = text_console()
    console.print(f"{function.name}: legal; a function on streams is checked, not run")
    for chain in function.chains:
        table = Table("operation", "leaves", "dtype", "levels", "cycles")
        table.columns[-1].justify = "right"
        table.add_row("", *_type_cells(chain.start), "")
        for step in chain.steps:
            table.add_row(step.op.NAME, *_type_cells(step.after), f"{step.cost.cycles:,}" if step.cost.cycles else "")
        console.print(table)


def _type_cells(type_: StreamType | TensorType) -> tuple[str, str, str]:
    raw = _type_json(type_)
    return raw.pop("position"), raw.pop("dtype"), ", ".join(f"{name} [{text}]" for name, text in raw.items())

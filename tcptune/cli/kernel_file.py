"""Reads a kernel from a file: `.visa` text, `.rs` vendor Rust, or a `.json` kernel document."""

from __future__ import annotations

import json
from pathlib import Path

from tcptune.errors import InputError
from tcptune.exec.rust.check import check_rust
from tcptune.exec.rust.reader import read_rust
from tcptune.ir.kernel import Kernel


def load_kernel(path: Path, function: str | None = None) -> Kernel:
    """The kernel in `path`; the ending decides the form (anything but .rs and .json is read as .visa text).

    Raises:
        InputError: the file cannot be read; ParseError and RuleViolation: its text is wrong, with the place (in Rust files also the place
            of a broken rule of the machine).
    """
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as cause:
        raise InputError(f"cannot read {path}: {cause.strerror or cause}") from cause
    except UnicodeDecodeError as cause:
        raise InputError(f"{path} is not text (byte {cause.start} is not UTF-8)") from cause
    if path.suffix == ".rs":
        rust = read_rust(text, function=function, path=str(path))
        check_rust(rust)
        return rust.kernel
    if path.suffix == ".json":
        try:
            document = json.loads(text)
        except json.JSONDecodeError as cause:
            raise InputError(f"{path}, line {cause.lineno}, column {cause.colno}: {cause.msg}") from cause
        except RecursionError as cause:
            raise InputError(f"{path} nests too deeply to be read") from cause
        return Kernel.from_json(document)
    return Kernel.from_text(text)

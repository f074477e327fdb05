"""Reads a kernel from a file: `.visa` text, `.rs` vendor Rust, or a `.json` kernel document."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tcptune.errors import InputError, TcptuneError
from tcptune.exec.rust.check import check_rust
from tcptune.exec.rust.reader import read_rust
from tcptune.ir.files import read_json, read_text
from tcptune.ir.kernels.kernel import Kernel


def load_kernel(path: Path, function: str | None = None) -> Kernel:
    """The kernel in `path`; the ending decides the form (anything but .rs and .json is read as .visa text).

    Raises:
        InputError: the file cannot be read; ParseError and RuleViolation: its text is wrong, with the place (in Rust files also the place
            of a broken rule of the machine).
    """
    if function is not None and path.suffix != ".rs":
        raise InputError(f"--function chooses a device function of a .rs file; {path} holds one kernel")
    if path.suffix == ".rs":
        rust = read_rust(read_text(path), function=function, path=str(path))
        check_rust(rust)
        return rust.kernel
    raw: Any = read_json(path) if path.suffix == ".json" else read_text(path)
    try:
        return Kernel.from_json(raw) if path.suffix == ".json" else Kernel.from_text(raw)
    except TcptuneError as error:
        error.message = f"{path}: {error.message}"
        raise

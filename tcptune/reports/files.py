"""Writes report files so that a reader never sees half of one: a temporary file in the same folder, then a rename."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from tcptune.errors import InputError

_MODE = 0o644


def write_text(path: Path, text: str) -> None:
    """Writes `text` to `path`, creating its folder.

    Raises:
        InputError: the folder or the file cannot be written; no temporary file stays behind.
    """
    data = text.encode("utf-8")
    temporary: Path | None = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".tmp")
        temporary = Path(name)
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        temporary.chmod(_MODE)
        temporary.replace(path)
        temporary = None
    except OSError as cause:
        raise InputError(f"cannot write {path}: {cause.strerror or cause}", hint="choose another folder with --out") from cause
    finally:
        if temporary is not None:  # an error or an interrupt came between
            temporary.unlink(missing_ok=True)


def require_writable(folder: Path) -> None:
    """Creates `folder` and proves that files can be written there, before hours of work depend on it.

    Raises:
        InputError: it cannot be created or written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=folder, prefix=".", suffix=".tmp"):
            pass
    except OSError as cause:
        raise InputError(f"cannot write into {folder}: {cause.strerror or cause}", hint="choose another folder with --out") from cause

"""Files at the border: JSON documents that strangers wrote are read with a clear refusal; what we write appears whole or not at all."""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path
from typing import Any

from tcptune.errors import InputError

_MODE = 0o644


def read_text(path: Path) -> str:
    """The text in `path`.

    Raises:
        InputError: not readable, or not UTF-8.
    """
    try:
        return path.read_text(encoding="utf-8")
    except OSError as cause:
        raise InputError(f"cannot read {path}: {cause.strerror or cause}") from cause
    except UnicodeDecodeError as cause:
        raise InputError(f"{path} is not text (byte {cause.start} is not UTF-8)") from cause


def read_json(path: Path) -> Any:
    """The JSON document in `path`.

    Raises:
        InputError: not readable, not UTF-8 text, not JSON (with the place), nested too deeply, or with a number too long to read.
    """
    text = read_text(path)
    try:
        return json.loads(text)
    except json.JSONDecodeError as cause:
        raise InputError(f"{path} is not JSON: line {cause.lineno}, column {cause.colno}: {cause.msg}") from cause
    except RecursionError as cause:
        raise InputError(f"{path} nests too deeply to be read") from cause
    except ValueError as cause:  # Python refuses integers of thousands of digits
        raise InputError(f"{path} holds a number that is too long to be read") from cause


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

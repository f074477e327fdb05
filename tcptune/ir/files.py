"""Files at the border: JSON documents that strangers wrote are read with a clear refusal; what we write appears whole or not at all."""

from __future__ import annotations

import difflib
import errno
import json
import math
import os
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any, NoReturn

from tcptune.errors import InputError

LARGEST_BYTES = 256 * 2**20
"""Longest file that is read; an endless one (a device, a pipe) ends there too."""

_MODE = 0o644
_LISTED = 6
_ANOTHER_PLACE = "choose another place"


def is_file(path: Path) -> bool:
    """Whether there is a file; False too for names that no file can have."""
    try:
        return path.is_file()
    except (OSError, ValueError):  # too long, or a zero byte
        return False


def is_folder(path: Path) -> bool:
    """Whether there is a folder; False too for names that no folder can have."""
    try:
        return path.is_dir()
    except (OSError, ValueError):  # too long, or a zero byte
        return False


def read_text(path: Path) -> str:
    """The text in `path`; a mark of byte order at its start is dropped.

    Raises:
        InputError: not readable (the hint names what is there instead), not UTF-8, or longer than `LARGEST_BYTES`.
    """
    try:
        with path.open("rb") as file:
            data = file.read(LARGEST_BYTES + 1)
    except ValueError as cause:  # a name with a zero byte
        raise InputError(f"cannot read {str(path)!r}: {cause}") from cause
    except OSError as cause:
        raise InputError(f"cannot read {path}: {cause.strerror or cause}", hint=_neighbours(path)) from cause
    if len(data) > LARGEST_BYTES:
        raise InputError(f"{path} is longer than {LARGEST_BYTES >> 20} MiB")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as cause:
        raise InputError(f"{path} is not text (byte {cause.start} is not UTF-8)") from cause


def read_json(path: Path) -> Any:
    """The JSON document in `path`.

    Raises:
        InputError: not readable, not UTF-8 text, not JSON (with the place), nested too deeply, a number too large to read, NaN or infinity
            (which JSON does not know), or a field given twice in one object.
    """
    text = read_text(path)

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) < len(pairs):
            twice = next(key for key, count in Counter(key for key, _ in pairs).items() if count > 1)
            raise InputError(f"{path} gives the field {twice[:60]!r} twice in one object")
        return found

    def finite(digits: str) -> float:
        value = float(digits)
        if math.isinf(value):
            raise InputError(f"{path} holds a number that is too large to be read: {digits[:40]}")
        return value

    def constant(name: str) -> NoReturn:
        raise InputError(f"{path} is not JSON: it holds {name}", hint="JSON has no such number")

    try:
        return json.loads(text, object_pairs_hook=unique, parse_float=finite, parse_constant=constant)
    except json.JSONDecodeError as cause:
        hint = None if text.strip() else "the file is empty"
        raise InputError(f"{path} is not JSON: line {cause.lineno}, column {cause.colno}: {cause.msg}", hint=hint) from cause
    except RecursionError as cause:
        raise InputError(f"{path} nests too deeply to be read") from cause
    except ValueError as cause:  # Python refuses integers of thousands of digits
        raise InputError(f"{path} holds a number that is too long to be read") from cause


def write_text(path: Path, text: str) -> None:
    """Writes `text` to `path`, creating its folder; a link is followed, a device or pipe written as it is.

    Raises:
        InputError: the folder or the file cannot be written; no temporary file stays behind.
    """
    data = text.encode("utf-8", "backslashreplace")  # half a character of a stranger's document is no character
    try:
        place = path.resolve()
        if place.exists() and not place.is_file() and not place.is_dir():  # replacing would destroy a device
            place.write_bytes(data)
        else:
            _write_whole(place, data)
    except (OSError, RuntimeError, ValueError) as cause:  # a loop of links; a name with a zero byte
        raise _unwritable(path, cause) from cause


def _write_whole(path: Path, data: bytes) -> None:
    """Writes beside the file and renames, so that the file is never half there."""
    temporary: Path | None = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=".", suffix=".tmp")
        temporary = Path(name)
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        temporary.chmod(_MODE)
        temporary.replace(path)
        temporary = None
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
    except (OSError, ValueError) as cause:
        raise _unwritable(folder, cause) from cause


def _unwritable(path: Path, cause: Exception) -> InputError:
    """The refusal of a place, with what stands in the way."""
    words = cause.strerror if isinstance(cause, OSError) and cause.strerror else str(cause)
    if isinstance(cause, ValueError):
        return InputError(f"cannot write {str(path)!r}: {words}", hint=_ANOTHER_PLACE)
    if isinstance(cause, IsADirectoryError):
        return InputError(f"cannot write {path}: {words}", hint="it is a folder: give the name of a file")
    if isinstance(cause, NotADirectoryError | FileExistsError):
        file = next((p for p in (path, *path.parents) if p.is_file()), None)
        if file is not None:
            return InputError(f"cannot write {path}: {words}", hint=f"{file} is a file, not a folder")
    if isinstance(cause, OSError) and cause.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        return InputError(f"cannot write {path}: {words}", hint=f"you may not write there; {_ANOTHER_PLACE}")
    return InputError(f"cannot write {path}: {words}", hint=_ANOTHER_PLACE)


def _neighbours(path: Path) -> str | None:
    """What is there instead of a file that cannot be read: the files of a folder, or names like the one that is missing."""
    try:
        if path.is_dir():
            names = sorted(p.name for p in path.iterdir() if p.is_file())
            return f"it is a folder; its files: {_listed(names)}" if names else "it is an empty folder"
        if path.exists():
            return None
        folder = next(p for p in path.parents if p.exists())
        if folder != path.parent:
            return f"there is no folder {path.parent}"
        near = difflib.get_close_matches(path.name, [p.name for p in folder.iterdir()], n=3)
    except (OSError, StopIteration):  # a folder that may not be looked into: the cause of the refusal says enough
        return None
    return f"names like it: {', '.join(near)}" if near else None


def _listed(names: list[str]) -> str:
    return ", ".join(names[:_LISTED]) + (f" and {len(names) - _LISTED} more" if len(names) > _LISTED else "")

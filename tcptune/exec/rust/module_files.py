"""Finds the files of the modules that a Rust file names, so that a kernel of a crate can be read where it lies.

``mod name;`` and ``use crate::name::…`` or ``use super::name::…`` name a module; its file is ``name.rs`` or ``name/mod.rs`` beside the
file, below the folder of its own name, or in a folder above, up to ``src``. Modules without a file belong to other crates.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from tcptune.exec.rust.syntax.source import ModuleFile
from tcptune.ir.files import read_text

MOST_FILES = 64
"""Most files that are read for one kernel."""

_NAMED = re.compile(
    r"^\s*(?:pub(?:\([^)]*\))?\s+)?(?:mod\s+(\w+)\s*;|use\s+(?:crate|super|self)(?:::super)*::(\w+)\s*(?:::|;|\{))", re.MULTILINE
)
_TESTS = ("tests", "test")


def module_files(path: Path, text: str) -> tuple[ModuleFile, ...]:
    """The files of the modules that the Rust text at `path` names, and those that they name, in order.

    Raises:
        InputError: a file that is there cannot be read.
    """
    found: list[ModuleFile] = []
    seen = {path.resolve()}
    pending = list(_files_of(path, text))
    while pending and len(found) < MOST_FILES:
        name, file = pending.pop(0)
        if file.resolve() in seen:
            continue
        seen.add(file.resolve())
        inner = read_text(file)
        found.append(ModuleFile(name, str(file), inner))
        pending.extend(_files_of(file, inner))
    return tuple(found)


def _files_of(path: Path, text: str) -> Iterator[tuple[str, Path]]:
    """Name and file of every module that one file names."""
    for match in _NAMED.finditer(text):
        name = match[1] or match[2]
        if name in _TESTS:
            continue
        file = next((f for folder in _folders(path) for f in (folder / f"{name}.rs", folder / name / "mod.rs") if f.is_file()), None)
        if file is not None:
            yield name, file


def _folders(path: Path) -> Iterator[Path]:
    """Where a module of the file at `path` may lie, the likeliest first."""
    yield path.parent / path.stem
    folder = path.parent
    yield folder
    while folder.name != "src" and folder != folder.parent and len(folder.parts) > 1 and "src" in folder.resolve().parts:
        folder = folder.parent
        yield folder

"""What every command prints: one JSON document on standard output, or text; progress and errors on standard error."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from rich.console import Console

from tcptune.errors import TcptuneError
from tcptune.exec.kernel_file import recorded_profile
from tcptune.model.timing.calibration import VENDOR

_WIDTH_OF_FILES = 200
"""Columns of tables that go to a file or a pipe, so that nothing is cut in what is pasted elsewhere."""


def print_document(document: dict[str, Any]) -> None:
    """Prints `document` as the only thing on standard output."""
    json.dump(document, sys.stdout, indent=2, ensure_ascii=False, allow_nan=False)
    sys.stdout.write("\n")


def text_console() -> Console:
    """Standard output for tables and lines: brackets are text (mappings have them), and files are as wide as the text needs."""
    width = None if sys.stdout.isatty() else _WIDTH_OF_FILES
    return Console(highlight=False, markup=False, emoji=False, width=width, soft_wrap=False)


def print_error(error: TcptuneError) -> None:
    """Prints the error in the form a user sees: what is wrong, by which rule, what would be right."""
    print(error.render(), file=sys.stderr)


def note(text: str) -> None:
    """Prints a message that is not the result."""
    print(text, file=sys.stderr)


def profile_in_use(kernel: Path) -> str:
    """The profile that a kernel's file records; a note says so where it is not the default one."""
    profile = recorded_profile(kernel)
    if profile != VENDOR.name:
        note(f"{kernel}: timed with the {profile} profile that it records; --profile {VENDOR.name} for the default")
    return profile

"""What every command prints: one JSON document on standard output, or text; progress and errors on standard error."""

from __future__ import annotations

import json
import sys
from typing import Any

from tcptune.errors import TcptuneError


def print_document(document: dict[str, Any]) -> None:
    """Prints `document` as the only thing on standard output."""
    json.dump(document, sys.stdout, indent=2, ensure_ascii=False, allow_nan=False)
    sys.stdout.write("\n")


def print_error(error: TcptuneError) -> None:
    """Prints the error in the form a user sees: what is wrong, by which rule, what would be right."""
    print(error.render(), file=sys.stderr)


def note(text: str) -> None:
    """Prints a message that is not the result."""
    print(text, file=sys.stderr)

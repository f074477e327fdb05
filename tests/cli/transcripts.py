"""Pages whose commands are run: console blocks, the files they work on, and Python sessions, in the order of the page.

A console block has commands after ``$`` and the output of each; ``…`` alone stands for any lines, at the end of a line for the rest of it.
A block after ``<!-- file: NAME -->`` is a file. Spaces at line ends do not count.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_BLOCK = re.compile(r"(?:<!-- file: (?P<file>\S+) -->\n)?```(?P<kind>\w+)\n(?P<body>.*?)^```$", re.S | re.M)
_NUMBER = re.compile(r"\d[\d,]*(?:\.\d+)?")
ELLIPSIS = "…"


@dataclass(frozen=True)
class Block:
    """One fenced block of a page: a file, a ``console`` or a ``pycon`` session, or an example of another kind."""

    kind: str
    body: str
    file: str | None
    line: int


@dataclass(frozen=True)
class Command:
    """A command of a console block and the lines that the page shows of its output."""

    words: list[str]
    shown: list[str]


def blocks(page: Path) -> Iterator[Block]:
    """The blocks of a page, in order."""
    text = page.read_text(encoding="utf-8")
    for found in _BLOCK.finditer(text):
        yield Block(found["kind"], found["body"], found["file"], text.count("\n", 0, found.start()) + 1)


def commands(block: Block) -> list[Command]:
    """The commands of a console block."""
    found: list[Command] = []
    for line in block.body.splitlines():
        if line.startswith("$ "):
            found.append(Command(shlex.split(line[2:]), []))
        else:
            found[-1].shown.append(line)
    return found


def missing(shown: list[str], printed: str, tolerance: float = 0.0) -> str | None:
    """The first shown line that is not where the page says, None if all are.

    Args:
        tolerance: relative difference that numbers may have.
    """
    lines = printed.rstrip().splitlines()
    at, skipping = 0, False
    for want in shown:
        if want.strip() == ELLIPSIS:
            skipping = True
            continue
        places = range(at, len(lines)) if skipping else range(at, min(at + 1, len(lines)))
        place = next((n for n in places if _same(want, lines[n], tolerance)), None)
        if place is None:
            return want
        at, skipping = place + 1, False
    return None if skipping or at == len(lines) else f"(the end; printed: {lines[at]!r})"


def _same(want: str, got: str, tolerance: float) -> bool:
    want = want.rstrip()
    if want.endswith(ELLIPSIS):
        want = want.removesuffix(ELLIPSIS).rstrip()
        got = got[: len(want)] if not tolerance else got
        return got.rstrip() == want or (tolerance > 0 and _close(want, got, tolerance, whole=False))
    return want == got.rstrip() or (tolerance > 0 and _close(want, got, tolerance, whole=True))


def _close(want: str, got: str, tolerance: float, *, whole: bool) -> bool:
    """Equal words, and numbers within the tolerance."""
    words = (" ".join(_NUMBER.sub("N", text).split()) for text in (want, got))
    wanted, found = words
    numbers = [[float(n.replace(",", "")) for n in _NUMBER.findall(text)] for text in (want, got)]
    alike = wanted == found if whole else found.startswith(wanted)
    return alike and all(abs(a - b) <= tolerance * abs(a) for a, b in zip(numbers[0], numbers[1], strict=False))

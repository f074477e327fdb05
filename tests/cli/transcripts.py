"""Pages whose commands are run: console blocks, the files they work on, and Python sessions, in the order of the page.

A console block has commands after ``$`` and the output of each; ``…`` alone stands for any lines, at the end of a line for the rest of it.
A block after ``<!-- file: NAME -->`` is a file. Spaces at line ends do not count.
"""

from __future__ import annotations

import re
import shlex
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.cli.in_process import tcptune

_BLOCK = re.compile(r"(?:<!-- file: (?P<file>\S+) -->\n)?```(?P<kind>\w+)\n(?P<body>.*?)^```$", re.S | re.M)
_NUMBER = re.compile(r"(?<!\w)\d[\d,]*(?:\.\d+)?")
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


def _words(text: str) -> str:
    """The text without its numbers and without the widths of columns."""
    return " ".join(re.sub(r"[-━─]{2,}", "--", _NUMBER.sub("N", text)).split())


def _close(want: str, got: str, tolerance: float, *, whole: bool) -> bool:
    """Equal words, and numbers within the tolerance."""
    wanted, found = _words(want), _words(got)
    numbers = [[float(n.replace(",", "")) for n in _NUMBER.findall(text)] for text in (want, got)]
    alike = wanted == found if whole else found.startswith(wanted)
    return alike and all(abs(a - b) <= tolerance * abs(a) for a, b in zip(numbers[0], numbers[1], strict=False))


def printed_by(command: Command, folder: Path) -> str:
    """What a command prints in `folder`: its output, or its refusal."""
    assert command.words[0] == "tcptune", command.words
    outcome = tcptune(*command.words[1:], cwd=folder)
    assert outcome.status in (0, 2), (command.words, outcome.err)
    return outcome.out if outcome.status == 0 else outcome.err


def updated(shown: list[str], printed: str) -> list[str]:
    """The shown lines with the numbers that are printed now; a line is found by its words."""
    lines = printed.rstrip().splitlines()
    at, now = 0, []
    for want in shown:
        place = next((n for n in range(at, len(lines)) if _alike(want, lines[n])), None)
        if want.strip() == ELLIPSIS or place is None:
            now.append(want)
            continue
        at = place + 1
        now.append(_as_far(want, lines[place]) if want.rstrip().endswith(ELLIPSIS) else lines[place].rstrip())
    return now


def _alike(want: str, got: str) -> bool:
    begin = want.rstrip().removesuffix(ELLIPSIS)
    return _words(got) == _words(want) if begin == want.rstrip() else _words(got).startswith(_words(begin))


def _as_far(want: str, got: str) -> str:
    """The beginning of a printed line, as many words of it as the page shows, and the ellipsis."""
    words = len(want.rstrip().removesuffix(ELLIPSIS).split())
    found = re.match(rf"\s*(?:\S+\s+){{{words}}}", got + " ")
    return (found.group().rstrip() if found else got.rstrip()) + f" {ELLIPSIS}"


def update(page: Path) -> None:
    """Runs the commands of a page and writes what they print now."""
    text = page.read_text(encoding="utf-8")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for block in blocks(page):
            if block.file is not None:
                (folder / block.file).write_text(block.body)
            elif block.kind == "console":
                new = []
                for command, line in zip(commands(block), [x for x in block.body.splitlines() if x.startswith("$ ")], strict=True):
                    new += [line, *updated(command.shown, printed_by(command, folder))]
                text = text.replace(f"```console\n{block.body}```", "```console\n" + "\n".join(new) + "\n```")
    page.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    update(Path(sys.argv[1]))

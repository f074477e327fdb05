"""Cuts complete device functions out of the manual, which is read only where the folder is present; nothing of it is kept here."""

from __future__ import annotations

import re
from pathlib import Path

MANUAL = Path(__file__).resolve().parents[3] / "shared" / "manual" / "tcp-manual-ko.txt"
_ITEM = re.compile(r"^(#\[device|pub fn |fn |axes!\[|(?:pub )?type |use |#!?\[|///|//)")


def available() -> bool:
    """Whether the manual is there."""
    return MANUAL.is_file()


def _lines() -> list[str]:
    return MANUAL.read_text(encoding="utf-8").split("\n")


def device_functions() -> dict[str, list[str]]:
    """Name of a device function to the Rust files that the manual's page makes of it: its own text with the items around it."""
    lines = _lines()
    found: dict[str, list[str]] = {}
    for at, line in enumerate(lines):
        if line.startswith("#[device(") and lines[at + 1].startswith("pub fn "):
            name = re.match(r"pub fn (\w+)", lines[at + 1])[1]
            found.setdefault(name, []).append(_cut(lines, at))
    return found


def _cut(lines: list[str], at: int) -> str:
    """The function that begins at line `at`, after the axes and aliases that stand closest before it, and the helpers of its chapter."""
    end = next(i for i in range(at, len(lines)) if lines[i] == "}")
    axes_at = max(i for i in range(at) if lines[i].startswith("axes!["))
    prelude = []
    for i in range(axes_at, at):
        if lines[i].startswith(("axes![", "type ", "pub type ")):
            prelude.append(lines[i])
        elif lines[i].startswith("pub fn ") and not lines[i - 1].startswith("#[device"):
            prelude.extend(lines[i : next(k for k in range(i, len(lines)) if lines[k] == "}") + 1])
    return "\n".join([*prelude, "", *lines[at : end + 1], ""])


def function(name: str) -> str:
    """A function that an example defines, with the axes before it, as a device function."""
    lines = _lines()
    at = next(i for i, line in enumerate(lines) if line.startswith(f"fn {name}("))
    axes = max(i for i in range(at) if lines[i].startswith("axes!["))
    end = next(i for i in range(at, len(lines)) if lines[i] == "}")
    text = "\n".join(lines[at : end + 1])
    if "device: &mut Device" not in text:
        text = text.replace("(", "(\n    device: &mut Device,", 1)
    chips = 4 if "m![ChipAxis]" in text or "m![HbmChip]" in text else 1
    return f"{lines[axes]}\n#[device(chip = {chips})]\n{text}\n"


def page(name: str) -> str:
    """The whole example of a device function as the book prints it, attributes and `main` included."""
    lines = _lines()
    at = next(i for i, line in enumerate(lines) if line.startswith(f"pub fn {name}("))
    start = max(
        i
        for i in range(at)
        if lines[i].startswith(("#![", "use furiosa_opt_std")) and not lines[i - 1].startswith(("#![", "extern", "axes!"))
    )
    main = next((i for i in range(at, at + 120) if "async fn main" in lines[i]), at)
    end = next(i for i in range(main, len(lines)) if lines[i] == "}")
    return "\n".join(lines[start : end + 1]) + "\n"


def stream_examples() -> dict[str, str]:
    """``name:line`` of every function with a stream in its head to the whole example that the book prints it in."""
    lines = _lines()
    found = {}
    for at, line in enumerate(lines):
        match = re.match(r"fn (\w+)<", line)
        if match is None or "MemTensor" in "".join(lines[at : at + 4]):
            continue
        start = at
        while not lines[start].startswith(("#!", "fn main", "extern", "use ")):
            start -= 1
        while lines[start - 1].startswith(("#!", "fn main", "extern", "use ")):
            start -= 1
        is_wrapped = any(text.startswith("fn main()") for text in lines[start:at])
        end = next(i for i in range(at, len(lines)) if lines[i] == "}")
        depth = sum(_braces(text) for text in lines[start : end + 1])
        while is_wrapped and depth > 0:
            end += 1
            depth += _braces(lines[end])
        found[f"{match[1]}:{at + 1}"] = "\n".join(lines[start : end + 1]) + "\n"
    return found


def _braces(line: str) -> int:
    code = line.split("//")[0]
    return code.count("{") - code.count("}")

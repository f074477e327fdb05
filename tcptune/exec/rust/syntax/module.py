"""What a Rust kernel file declares: axes, type aliases, constants, functions and the notes in its header comment."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from difflib import get_close_matches

from tree_sitter import Node

from tcptune.exec.rust.syntax.declarations import Declarations
from tcptune.exec.rust.syntax.source import Source
from tcptune.ir.mappings.axes import Axes

_INTEGER = re.compile(r"(0[xX][0-9a-fA-F_]+|0[bB][01_]+|0[oO][0-7_]+|[0-9][0-9_]*)([iu](?:8|16|32|64|128|size))?\Z")


@dataclass(frozen=True)
class Function:
    """A function item; `chips` is the N of `#[device(chip = N)]`, None on a helper function."""

    name: str
    node: Node
    chips: int | None


@dataclass
class Module:
    """What a file declares.

    Attributes:
        axes: sizes from every `axes!`.
        aliases: `type` items, with what they stand for and their type parameters.
        constants: `const` items; `constants.Constants` evaluates them.
        functions: function items.
        notes: (key, name or empty) to value, from the header comment.
    """

    source: Source
    axes: Axes
    aliases: Declarations[Node] = field(default_factory=Declarations)
    constants: Declarations[Node] = field(default_factory=Declarations)
    functions: Declarations[Function] = field(default_factory=Declarations)
    notes: dict[tuple[str, str], str] = field(default_factory=dict)

    def device_function(self, name: str | None) -> Function:
        """The device function called `name` (a function without the attribute too, if it takes the device), or the only one.

        Raises:
            RustError: RUST-010, there is none, or several and no name was given.
        """
        functions = list(self.functions.values())
        devices = [f for f in functions if f.chips is not None]
        if name is None:
            devices = [f for f in devices if self.source.is_own(f.node)] or devices
        listed = ", ".join(dict.fromkeys(f.name for f in devices)) or "none"
        if name is not None:
            named = [f for f in devices if f.name == name] or [f for f in functions if f.name == name and self._takes_device(f)]
            if len(named) > 1:
                raise self.source.error(named[1].node, "RUST-010", f"the file has several functions {name!r}")
            if not named:
                raise self.source.error(0, "RUST-010", f"there is no device function {name!r}", hint=f"device functions: {listed}")
            return named[0]
        if not devices:
            raise self.source.error(0, "RUST-010", "the file has no device function", hint="mark the kernel with #[device(chip = 1)]")
        if len(devices) > 1:
            raise self.source.error(devices[1].node, "RUST-010", "the file has several device functions", hint=f"name one of {listed}")
        return devices[0]

    def _takes_device(self, function: Function) -> bool:
        parameters = function.node.child_by_field_name("parameters")
        first = next((p for p in (parameters.named_children if parameters is not None else ()) if p.type == "parameter"), None)
        kind = first.child_by_field_name("type") if first is not None else None
        return kind is not None and re.fullmatch(r"&\s*('\w+\s+)?(mut\s+)?Device", self.source.text_of(kind)) is not None


def integer_literal(text: str) -> int | None:
    """Value of a Rust integer literal (``2_048usize``), or None."""
    match = _INTEGER.match(text)
    return None if match is None else int(match[1].replace("_", ""), 0 if match[1][:2].lower() in ("0x", "0b", "0o") else 10)


def nearest(name: str, known: list[str]) -> str | None:
    """A hint naming the known name closest to `name`, or listing a few."""
    close = get_close_matches(name, known, n=1, cutoff=0.5)
    if close:
        return f"did you mean {close[0]!r}?"
    return f"known: {', '.join(known[:12])}" if known else None

"""Rust text as a syntax tree, and errors that point into it.

Lines and columns count from 1, columns in characters. `RustError` is for text that this reader cannot use, `LocatedViolation` for a rule of
the machine that a place in the text breaks; both name the rule, so that ``tcptune explain`` can help.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache

import tree_sitter_rust
from tree_sitter import Language, Node, Parser

from tcptune.errors import ParseError, RuleViolation

_EXCERPT_CHARACTERS = 100


@dataclass(frozen=True)
class Place:
    """A position in a source file."""

    path: str
    line: int
    column: int

    def __str__(self) -> str:
        return f"{self.path}:{self.line}:{self.column}"


class RustError(ParseError):
    """Rust text that cannot be read as a kernel (exit status 2), at `where`."""

    def __init__(self, source: Source, offset: int, rule: str, message: str, *, hint: str | None = None) -> None:
        self.where = source.place(offset)
        self.excerpt = source.line_at(offset)
        super().__init__(source.text, len(source.data[:offset].decode(errors="replace")), message, rule=rule, hint=hint)
        self.line = self.where.line

    def render(self) -> str:
        hint = [f"  {self.hint}"] if self.hint else []
        head = f"error[{self.rule}]: {self.where}: {self.message}"
        return "\n".join([head, *_pointer(self.excerpt, self.where.column), *hint, f"  see: tcptune explain {self.rule}"])


class LocatedViolation(RuleViolation):
    """A broken rule of the machine; `where` is the place in the text that breaks it."""

    def __init__(self, source: Source, offset: int, cause: RuleViolation) -> None:
        self.where = source.place(offset)
        self.excerpt = source.line_at(offset)
        super().__init__(cause.rule, cause.message, expected=cause.expected, got=cause.got, nearest=cause.nearest, also=cause.also)
        self.line = self.where.line

    def render(self) -> str:
        first, *rest = super().render().split("\n")
        head = first.replace(f"error[{self.rule}]: ", f"error[{self.rule}]: {self.where}: ", 1)
        return "\n".join([head, *_pointer(self.excerpt, self.where.column), *rest])


def _pointer(line: str, column: int) -> list[str]:
    """The source line, cut to a readable width, with a caret under `column` (1-based)."""
    first = max(0, column - 1 - _EXCERPT_CHARACTERS // 2)
    return ["  " + line[first : first + _EXCERPT_CHARACTERS].replace("\t", " "), "  " + " " * (column - 1 - first) + "^"]


@cache
def _language() -> Language:
    return Language(tree_sitter_rust.language())


@dataclass(frozen=True)
class ModuleFile:
    """A file that holds a module of a Rust file: the module's name, where it was read, its text."""

    name: str
    path: str
    text: str


class Source:
    """A Rust file with the files of its modules: text and syntax tree, which has no error nodes unless `check` is off.

    Raises:
        RustError: RUST-001, the text is not Rust; the place is the first offence.
    """

    def __init__(self, text: str, path: str = "kernel.rs", *, check: bool = True, modules: tuple[ModuleFile, ...] = ()) -> None:
        self.path = path
        self.own_text = text
        self._parts = [(0, path)]
        for module in modules:
            text += f"\nmod {module.name} {{"
            self._parts.append((len(text.encode()), module.path))
            text += module.text + "\n}\n"
        self.text = text
        self.data = text.encode()
        self.root = Parser(_language()).parse(self.data).root_node
        if check and self.root.has_error:
            self._refuse_syntax()

    def is_own(self, node: Node) -> bool:
        """Whether a node stands in the file itself, not in one of its modules."""
        return len(self._parts) == 1 or node.start_byte < self._parts[1][0]

    def _refuse_syntax(self) -> None:
        unclosed = _unclosed_bracket(self.data)
        if unclosed is not None:
            offset, bracket = unclosed
            raise RustError(self, offset, "RUST-001", f"the bracket {bracket!r} has no partner")
        node = _first_error(self.root)
        if node.is_missing:
            raise RustError(self, node.start_byte, "RUST-001", f"expected {node.type!r} here")
        lines = self.data[node.start_byte : node.end_byte].decode(errors="replace").split("\n")
        raise RustError(self, node.start_byte, "RUST-001", f"this is not Rust syntax: {lines[0][:60].strip()!r}")

    def text_of(self, node: Node) -> str:
        return self.data[node.start_byte : node.end_byte].decode()

    def place(self, offset: int) -> Place:
        start, path = next(part for part in reversed(self._parts) if part[0] <= offset)
        before = self.data[start:offset].decode(errors="replace")
        return Place(path, before.count("\n") + 1, len(before) - (before.rfind("\n") + 1) + 1)

    def line_at(self, offset: int) -> str:
        """The line that a byte offset stands in."""
        start = max(self.data.rfind(b"\n", 0, offset) + 1, next(part[0] for part in reversed(self._parts) if part[0] <= offset))
        end = self.data.find(b"\n", offset)
        return self.data[start : len(self.data) if end < 0 else end].decode(errors="replace")

    def error(self, node: Node | int, rule: str, message: str, *, hint: str | None = None) -> RustError:
        """The error to raise for an offence at `node` (or at a byte offset)."""
        return RustError(self, node if isinstance(node, int) else node.start_byte, rule, message, hint=hint)

    @contextmanager
    def at(self, node: Node | int) -> Iterator[None]:
        """Gives rule violations and parse errors that are raised inside a place in this file."""
        offset = node if isinstance(node, int) else node.start_byte
        try:
            yield
        except (RustError, LocatedViolation):
            raise
        except RuleViolation as cause:
            raise LocatedViolation(self, offset, cause) from cause
        except ParseError as cause:
            raise RustError(self, offset, cause.rule or "RUST-006", cause.message, hint=cause.hint) from cause


def _first_error(root: Node) -> Node:
    """The deepest first node that is an error or missing."""
    node = root
    while True:
        inner = next((c for c in node.children if c.has_error or c.is_error or c.is_missing), None)
        if inner is None:
            return node
        node = inner


_PARTNER = {")": "(", "]": "[", "}": "{"}


def _unclosed_bracket(data: bytes) -> tuple[int, str] | None:
    """Byte offset of the first bracket without a partner, or None; brackets in comments and literals do not count."""
    open_brackets: list[tuple[int, str]] = []
    for offset, character in _code_brackets(data):
        if character in "([{":
            open_brackets.append((offset, character))
        elif open_brackets and open_brackets[-1][1] == _PARTNER[character]:
            open_brackets.pop()
        else:
            return open_brackets[-1] if open_brackets else (offset, character)
    return open_brackets[-1] if open_brackets else None


def _code_brackets(data: bytes) -> Iterator[tuple[int, str]]:
    """The brackets of the text outside comments and string literals, with their byte offsets."""
    i, n = 0, len(data)
    while i < n:
        if data.startswith(b"//", i):
            i = _end(data, b"\n", i)
        elif data.startswith(b"/*", i):
            i = _end(data, b"*/", i)
        elif data[i : i + 1] == b"'" and data[i + 2 : i + 3] == b"'":
            i += 3
        elif data[i : i + 1] == b'"':
            i += 1
            while i < n and data[i : i + 1] != b'"':
                i += 2 if data[i : i + 1] == b"\\" else 1
            i += 1
        else:
            character = chr(data[i])
            if character in "()[]{}":
                yield i, character
            i += 1


def _end(data: bytes, mark: bytes, start: int) -> int:
    found = data.find(mark, start)
    return len(data) if found < 0 else found + len(mark)

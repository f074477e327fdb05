"""The kernel under construction: its steps in nested blocks, the names it uses, and the place in the text of every step."""

from __future__ import annotations

from dataclasses import dataclass

from tree_sitter import Node

from tcptune.exec.rust.syntax.source import Place, Source
from tcptune.exec.rust.syntax.types import TensorHint
from tcptune.exec.rust.values import Pending
from tcptune.ir.kernels.steps import KernelStep, Loop, RuntimeCount

StepPath = tuple[int, ...]
"""Where a step stands: its index in the kernel's steps, then in the body of that loop, and so on."""

_STATEMENT_NODES = ("let_declaration", "assignment_expression", "expression_statement")
_CHAIN_NODES = ("field_expression", "call_expression", "generic_function")


@dataclass(frozen=True)
class Span:
    """The expression that a step comes from; `offset` is where its operation stands, `op_offsets` where those of its chain stand.

    `statement_line` is the line on which the statement around it begins (a ``let`` may stand on a line of its own).
    """

    place: Place
    text: str
    offset: int
    op_offsets: tuple[int, ...] = ()
    statement_line: int = 0

    @property
    def last_line(self) -> int:
        """Line on which the expression ends."""
        return self.place.line + self.text.count("\n")


@dataclass(frozen=True)
class Annotation:
    """A type that the text states although it follows from the value; to be compared when the kernel is checked (RUST-009)."""

    tensor: str
    hint: TensorHint
    offset: int


class Emitter:
    """Collects steps."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.names: set[str] = set()
        self.spans: dict[StepPath, Span] = {}
        self.annotations: list[Annotation] = []
        self._blocks: list[list[KernelStep | Pending]] = [[]]
        self._path: list[int] = []

    def fresh(self, wanted: str, suffix: str = "") -> str:
        """A name that no tensor has yet: `wanted`, else with the suffix, else numbered."""
        name, number = wanted, 1
        if name in self.names and suffix and not wanted.endswith("_" + suffix):
            wanted = name = f"{wanted}_{suffix}"
        while name in self.names:
            number += 1
            name = f"{wanted}_{number}"
        self.names.add(name)
        return name

    def add(self, step: KernelStep | Pending, node: Node, op_offsets: tuple[int, ...] = ()) -> None:
        """Appends a step that the expression at `node` makes."""
        block = self._blocks[-1]
        self.spans[(*self._path, len(block))] = self._span(node, op_offsets)
        block.append(step)

    def open_loop(self, node: Node) -> None:
        """Begins the body of a loop; its steps follow until `close_loop`."""
        path = (*self._path, len(self._blocks[-1]))
        self.spans[path] = self._span(node)
        self._path = list(path)
        self._blocks.append([])

    def close_loop(self, var: str, count: int | RuntimeCount, unroll: bool) -> None:
        body = self._finish(self._blocks.pop())
        self._path.pop()
        self._blocks[-1].append(Loop(var, count, body, unroll))

    def steps(self) -> tuple[KernelStep, ...]:
        """All steps.

        Raises:
            RustError: RUST-004, nothing determines the type of a tensor made by ``new()``.
        """
        return self._finish(self._blocks[0])

    def _finish(self, block: list[KernelStep | Pending]) -> tuple[KernelStep, ...]:
        done: list[KernelStep] = []
        for step in block:
            if not isinstance(step, Pending):
                done.append(step)
            elif step.step is not None:
                done.append(step.step)
            else:
                raise self.source.error(step.offset, "RUST-004", f"nothing determines the type of {step.name!r}", hint="annotate the `let`")
        return tuple(done)

    def _span(self, node: Node, op_offsets: tuple[int, ...] = ()) -> Span:
        """The place and text of the expression that the call at `node` ends."""
        whole = node
        while whole.parent is not None and whole.parent.type in _CHAIN_NODES:
            whole = whole.parent
        around = whole.parent if whole.parent is not None and whole.parent.type in _STATEMENT_NODES else whole
        first = self.source.place(around.start_byte).line
        return Span(self.source.place(whole.start_byte), self.source.text_of(whole), node.start_byte, op_offsets, first)

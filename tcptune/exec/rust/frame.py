"""One activation of a function while it is read: its variables, type parameters and the evaluation of plain expressions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from tree_sitter import Node

from tcptune.exec.rust.emit import Emitter
from tcptune.exec.rust.syntax.calls import path_of, referent
from tcptune.exec.rust.syntax.constants import Constants, Number
from tcptune.exec.rust.syntax.index import Linear, read_index
from tcptune.exec.rust.syntax.module import Module, nearest
from tcptune.exec.rust.syntax.source import Source
from tcptune.exec.rust.syntax.types import TensorHint, TupleHint, TypeReader
from tcptune.exec.rust.values import Context, Index, Pending, Scalar, Tensor, Value, View, described

CONTEXTS = ("main", "sub", "tdma", "pdma")


@dataclass
class Frame:
    """Variables of one function under one call.

    Attributes:
        evaluate: the reader of expressions, given the name and type that the result should have.
        depth: nesting of helper calls.
        outer: the block of the same function around this one.
        loops: kept loops around this block.
        declared: variables that are bound in this block.
    """

    module: Module
    types: TypeReader
    emitter: Emitter
    evaluate: Callable[[Frame, Node, str | None, TensorHint | TupleHint | None], Value]
    variables: dict[str, Value] = field(default_factory=dict)
    depth: int = 0
    outer: Frame | None = None
    loops: int = 0
    declared: set[str] = field(default_factory=set)

    @property
    def source(self) -> Source:
        return self.module.source

    def inner(self) -> Frame:
        """A scope that sees these variables; what it declares ends with it."""
        return Frame(self.module, self.types, self.emitter, self.evaluate, dict(self.variables), self.depth, self, self.loops)

    def value(self, node: Node, name: str | None = None, hint: TensorHint | TupleHint | None = None) -> Value:
        """What an expression stands for; `name` is for a tensor it makes, `hint` its type."""
        return self.evaluate(self, node, name, hint)

    @property
    def constants(self) -> Constants:
        """Reader of constant expressions that knows the variables of this function."""
        return replace(self.types.constants, variable=self.number)

    def number(self, name: str) -> Number | None:
        """The value of a variable or constant type parameter that holds a known number; None for others."""
        value = self.variables.get(name)
        if isinstance(value, Scalar):
            return value.value
        if isinstance(value, Index):
            return value.value.constant if not value.value.terms else None
        bound = self.types.parameters.get(name)
        return bound if isinstance(bound, int) and name not in self.variables else None

    def constant(self, node: Node) -> Index | Scalar | None:
        """The value of a constant expression; None for others."""
        value = self.constants.value(node)
        if isinstance(value, int) and not isinstance(value, bool):
            return Index(Linear(value))
        return None if value is None else Scalar(value)

    def assign(self, name: str, value: Value) -> None:
        """Gives a variable of this or a surrounding block another value."""
        frame: Frame | None = self
        while frame is not None:
            frame.variables[name] = value
            frame = frame.outer if name not in frame.declared else None

    def is_own(self, name: str) -> bool:
        """Whether a variable was bound inside the innermost loop that is kept."""
        frame: Frame | None = self
        while frame is not None and frame.loops == self.loops:
            if name in frame.declared:
                return True
            frame = frame.outer
        return False

    def declare(self, name: str, value: Value) -> None:
        """Binds a variable in this block."""
        self.declared.add(name)
        self.variables[name] = value

    def variable(self, node: Node) -> Value:
        """The value of a variable.

        Raises:
            RustError: RUST-005, it is not declared.
        """
        name = self.source.text_of(node)
        if name in self.variables:
            return self.variables[name]
        constant = self.constant(node)
        if constant is not None:
            return constant
        raise self.source.error(node, "RUST-005", f"there is no variable {name!r}", hint=nearest(name, list(self.variables)))

    def tensor(self, node: Node, what: str = "a tensor") -> Tensor:
        """The tensor that an argument refers to; a view stands for its tensor or tile.

        Raises:
            RustError: RUST-006, it is something else.
        """
        return self.settled(self.value(referent(node)), node, what)

    def settled(self, value: Value, node: Node, what: str = "a tensor") -> Tensor:
        """The tensor behind a value; a read tile becomes a step of its own."""
        if isinstance(value, Pending):
            if value.tensor is None:
                return Tensor(value.name, value.tier)
            return value.tensor
        if isinstance(value, View) and value.tile is None:
            return value.tensor
        if isinstance(value, Tensor):
            return value
        raise self.source.error(node, "RUST-006", f"expected {what}, got {described(value)}")

    def context(self, node: Node) -> str:
        """The context that an argument such as ``&mut device.tdma`` names."""
        value = self.value(referent(node))
        if isinstance(value, Context):
            return value.name
        raise self.source.error(node, "RUST-006", "expected a context", hint="&mut device.tdma")

    def is_sub(self, node: Node) -> bool:
        value = self.value(referent(node))
        return isinstance(value, Context) and value.name == "sub"

    def index(self, node: Node) -> Linear:
        """An index expression in loop variables."""
        constant = self.constant(node)
        if isinstance(constant, Index):
            return constant.value
        return read_index(self.source, node, self._index_name)

    def _index_name(self, node: Node) -> Linear:
        path = path_of(self.source, node)
        if len(path) == 2 and path[1] == "SIZE":
            size = self.types.size_of(path[0], node.start_byte)
            if size is not None:
                return Linear(size)
            known = [*self.module.axes, *self.module.aliases]
            raise self.source.error(node, "RUST-005", f"{path[0]!r} is neither an axis nor a mapping", hint=nearest(path[0], known))
        value = self.variable(node) if len(path) == 1 else None
        if isinstance(value, Index):
            return value.value
        raise self.source.error(node, "RUST-007", f"{self.source.text_of(node)!r} is no index known when the kernel is read")

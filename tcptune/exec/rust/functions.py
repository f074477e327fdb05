"""Calls of functions: the device function with its parameters as kernel inputs, helper functions inlined at the place of the call."""

from __future__ import annotations

from tree_sitter import Node

from tcptune.exec.rust.frame import Frame
from tcptune.exec.rust.statements import read_block
from tcptune.exec.rust.syntax.module import Function
from tcptune.exec.rust.syntax.types import TensorHint, TupleHint, TypeArgument, TypeReader, parameter_names
from tcptune.exec.rust.values import Context, Device, Pending, RuntimeIndex, Stream, Tensor, Value, View, described
from tcptune.ir.types import DType

MAX_CALL_DEPTH = 32
"""Deepest nesting of helper calls; a helper that calls itself ends here."""


class Parameter:
    """A parameter: its name, its type expression and what kind of value it takes."""

    def __init__(self, frame: Frame, node: Node) -> None:
        pattern, self.type = node.child_by_field_name("pattern"), node.child_by_field_name("type")
        if pattern is None or self.type is None:
            raise frame.source.error(node, "RUST-008", "this parameter is not part of the subset")
        self.node = node
        self.name = frame.source.text_of(pattern).removeprefix("mut ").strip()
        self.text = frame.source.text_of(self.type)
        self.is_device = "Device" in self.text.replace("&", "").replace("mut ", "").split("<")[0]
        self.is_mutable = self.text.startswith("&mut") or (self.text.startswith("&'") and " mut " in self.text[:20])

    def hint(self, types: TypeReader) -> TensorHint | None:
        return None if self.type is None else types.tensor(self.type)


def parameters_of(frame: Frame, function: Function) -> list[Parameter]:
    """The parameters of a function in order."""
    nodes = function.node.child_by_field_name("parameters")
    return [Parameter(frame, node) for node in (nodes.named_children if nodes is not None else ()) if node.type == "parameter"]


def returned(function: Function, types: TypeReader) -> TensorHint | TupleHint | None:
    """The tensor type, or tuple of them, that a function returns; None if it returns something else."""
    node = function.node.child_by_field_name("return_type")
    return None if node is None else types.hint(node)


def call_function(
    frame: Frame,
    function: Function,
    at: Node,
    types: tuple[Node, ...] | None,
    arguments: tuple[Node, ...],
    name: str | None,
    hint: TensorHint | TupleHint | None,
) -> Value:
    """The value of a helper function, its body read with these arguments.

    Raises:
        RustError: RUST-006 wrong number of arguments, RUST-008 the helper calls itself.
    """
    if frame.depth >= MAX_CALL_DEPTH:
        raise frame.source.error(at, "RUST-008", f"calls nest deeper than {MAX_CALL_DEPTH}: {function.name!r} calls itself")
    inner = Frame(frame.module, TypeReader(frame.module, {}), frame.emitter, frame.evaluate, {}, frame.depth + 1, None, frame.loops)
    parameters = parameters_of(inner, function)
    if len(parameters) != len(arguments):
        raise frame.source.error(at, "RUST-006", f"{function.name} takes {len(parameters)} arguments, got {len(arguments)}")
    values = [frame.value(node) for node in arguments]
    inner.types.parameters = _type_parameters(frame, function, at, types, parameters, values)
    inner.types.unbound = frozenset(_generic_names(frame, function)) - inner.types.parameters.keys()
    for parameter, value, node in zip(parameters, values, arguments, strict=True):
        inner.declare(parameter.name, _passed(inner, parameter, value, frame, node))
    body = function.node.child_by_field_name("body")
    if body is None:
        raise frame.source.error(at, "RUST-008", f"function {function.name} has no body")
    return read_block(inner, body, name, returned(function, inner.types) or hint)


def _passed(inner: Frame, parameter: Parameter, value: Value, frame: Frame, node: Node) -> Value:
    """An argument under its parameter's type: this is where the type of a ``new()`` tensor may become known."""
    wanted = parameter.hint(inner.types)
    if isinstance(value, Pending) and value.tensor is None and wanted is not None:
        value.settle(wanted)
    if wanted is None:
        if parameter.is_device and not isinstance(value, Device | Context):
            raise frame.source.error(node, "RUST-006", f"the parameter {parameter.name!r} takes the device")
        return value
    if wanted.is_stream:
        if not isinstance(value, Stream):
            raise frame.source.error(node, "RUST-006", f"the parameter {parameter.name!r} takes a stream, got {described(value)}")
        return value
    if isinstance(value, Tensor) and value.tier == wanted.tier:
        levels = {level: m if m is not None else wanted.level(level) for level, m in {**wanted.levels, **(value.levels or {})}.items()}
        return Tensor(value.name, value.tier, value.dtype or wanted.dtype, levels)
    if not isinstance(value, Tensor | View | Pending) or (isinstance(value, Tensor | Pending) and value.tier != wanted.tier):
        raise frame.source.error(node, "RUST-006", f"the parameter {parameter.name!r} takes a {wanted.tier}Tensor")
    return value


def _type_parameters(
    frame: Frame, function: Function, at: Node, types: tuple[Node, ...] | None, parameters: list[Parameter], values: list[Value]
) -> dict[str, TypeArgument]:
    """What the type parameters of a helper stand for: given in the call, or read off the types of its arguments."""
    names = _generic_names(frame, function)
    bound: dict[str, TypeArgument] = {}
    if types is not None and len(types) != len(names):
        raise frame.source.error(at, "RUST-003", f"{function.name} takes {len(names)} type arguments, got {len(types)}")
    for name, node in zip(names, types or (), strict=False):
        text = frame.source.text_of(node)
        if text == "_":
            continue
        bound[name] = text if text in frame.module.axes else frame.types.argument(node)
    for parameter, value in zip(parameters, values, strict=True):
        tensor = value.tensor if isinstance(value, View | Pending) else value
        if isinstance(tensor, Tensor):
            _unify(frame, parameter, tensor, [n for n in names if n not in bound], bound)
    return bound


def _generic_names(frame: Frame, function: Function) -> list[str]:
    """Names of the type and constant parameters, lifetimes left out."""
    node = function.node.child_by_field_name("type_parameters")
    return [] if node is None else parameter_names(frame.source, node)


def _unify(frame: Frame, parameter: Parameter, tensor: Tensor, open_names: list[str], bound: dict[str, TypeArgument]) -> None:
    """Binds type parameters that stand alone at a level of a tensor parameter."""
    node = parameter.type
    while node is not None and node.type == "reference_type":
        node = node.child_by_field_name("type")
    arguments = node.child_by_field_name("type_arguments") if node is not None and node.type == "generic_type" else None
    if arguments is None:
        return
    nodes = [c for c in arguments.named_children if c.type != "lifetime"]
    known: list[DType | TypeArgument | None] = [tensor.dtype, *(tensor.levels or {}).values()]
    for given, actual in zip(nodes, known, strict=False):
        text = frame.source.text_of(given)
        if text in open_names and actual is not None:
            bound[text] = actual


def is_runtime_integer(parameter: Parameter) -> bool:
    """Whether a parameter is an integer that is known at run time only."""
    return parameter.text in ("usize", "u32", "u64", "i32", "i64")


def runtime_integer(parameter: Parameter) -> RuntimeIndex:
    return RuntimeIndex(parameter.name)

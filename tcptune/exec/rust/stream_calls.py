"""Reads a method call on a Tensor Unit stream as an operation, by the table of signatures."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from tree_sitter import Node

from tcptune.exec.rust.syntax.calls import Link, path_of, referent
from tcptune.exec.rust.syntax.constants import Constants, Number
from tcptune.exec.rust.syntax.literals import boolean, integer, variant
from tcptune.exec.rust.syntax.operands import read_guard, read_operand, read_tag_mode
from tcptune.exec.rust.syntax.signatures import DIVISION, MULTIPLIERS, STREAM_METHODS, SWITCH_CONFIGS, Signature
from tcptune.exec.rust.syntax.source import Source
from tcptune.exec.rust.syntax.types import TensorHint, TypeReader
from tcptune.ir.kernels.ops import CommitView, Op, SwitchConfig
from tcptune.ir.mappings.mapping import Mapping
from tcptune.ir.types import DType


@dataclass(frozen=True)
class CallReader:
    """What reading a call needs from its surroundings.

    Attributes:
        types: reader of type expressions.
        tensor: name of the kernel's tensor that an argument refers to.
        is_sub: whether an argument is ``&mut device.sub``.
        view: destination of a `commit_view` argument.
        variable: the value of a variable whose value is known.
    """

    types: TypeReader
    tensor: Callable[[Node], str]
    is_sub: Callable[[Node], bool]
    view: Callable[[Node], CommitView]
    variable: Callable[[str], Number | None] = lambda _: None

    @property
    def constants(self) -> Constants:
        """Reader of constant arguments."""
        return replace(self.types.constants, variable=self.variable)

    @property
    def source(self) -> Source:
        return self.types.module.source


def stream_op(reader: CallReader, link: Link, hint: TensorHint | None, stream_dtype: DType | None) -> Op:
    """The operation that `link` calls; `hint` is the annotation of its result, for methods that end a chain.

    Raises:
        RustError: RUST-003 or RUST-006, the call does not follow the signature; RUST-004, a mapping follows from nothing.
    """
    signature = STREAM_METHODS[link.name]
    fields: dict[str, Any] = _types(reader, link, signature, hint)
    fields |= _arguments(reader, link, signature, stream_dtype)
    if signature.op is CommitView:
        view: CommitView = fields["view"]
        return view
    with reader.source.at(link.node):
        return signature.op(**fields)


def _types(reader: CallReader, link: Link, signature: Signature, hint: TensorHint | None) -> dict[str, Any]:
    wanted = len(signature.types) + signature.inferred
    source = reader.source
    if link.types is None:
        if not signature.types:
            return {}
        if hint is not None and all(kind in ("mapping", "dtype") for _, kind in signature.types):
            return {name: _inferred(reader, link, name, hint) for name, _ in signature.types}
        hint_text = f"write {signature.shown}" + (", or annotate the `let` with the tensor type" if signature.ends else "")
        raise source.error(link.node, "RUST-004", f"the type arguments of {link.name} cannot be inferred here", hint=hint_text)
    if len(link.types) != wanted:
        raise source.error(link.node, "RUST-003", f"{link.name} takes {wanted} type arguments, got {len(link.types)}", hint=signature.shown)
    fields: dict[str, Any] = {}
    for (name, kind), node in zip(signature.types, link.types, strict=False):
        fields[name] = _inferred(reader, link, name, hint, node) if source.text_of(node) == "_" else _type(reader, kind, node)
    return fields


def _inferred(reader: CallReader, link: Link, name: str, hint: TensorHint | None, node: Node | None = None) -> Mapping | DType:
    """The mapping or element type that the annotation of the result gives for a type argument."""
    found = None if hint is None else hint.dtype if name == "dtype" else hint.level(name)
    if found is None:
        at = link.node if node is None else node
        raise reader.source.error(
            at, "RUST-004", f"nothing determines {name.capitalize()} of {link.name}", hint="write it out, or annotate the `let`"
        )
    return found


def _type(reader: CallReader, kind: str, node: Node) -> Any:
    if kind == "dtype":
        return reader.types.dtype(node)
    if kind == "scalar":
        return reader.types.dtype(node).name
    return reader.types.axis(node) if kind == "axis" else reader.types.mapping(node)


def _arguments(reader: CallReader, link: Link, signature: Signature, stream_dtype: DType | None) -> dict[str, Any]:
    nodes = list(link.arguments or ())
    fields: dict[str, Any] = {}
    for name, kind in signature.arguments:
        if kind in ("operands", "flags"):
            fields |= _group_arguments(reader, kind, nodes)
            nodes.clear()
        elif kind == "sub":
            fields[name] = _sub_argument(reader, link, nodes)
            nodes.clear()
        elif not nodes:
            raise reader.source.error(link.node, "RUST-006", f"{link.name} misses the argument {name!r}", hint=signature.shown)
        elif kind == "function":
            fields |= _function(reader, signature, nodes.pop(0), stream_dtype)
        else:
            fields[name] = _argument(reader, kind, name, nodes.pop(0), signature)
    if nodes:
        raise reader.source.error(nodes[0], "RUST-006", f"{link.name} takes no further argument", hint=signature.shown)
    return fields


def _argument(reader: CallReader, kind: str, name: str, node: Node, signature: Signature) -> Any:
    module = reader.types.module
    if kind == "integer":
        return integer(reader.constants, node, name)
    if kind == "tensor":
        return reader.tensor(node)
    if kind == "lane_mode":
        return variant(module, node, "LaneMode")
    if kind == "mode":
        return variant(module, node, signature.modes)
    if kind == "switch":
        return _switch_config(reader, node)
    if kind == "tag":
        return read_tag_mode(reader.constants, node)
    if kind == "guard":
        return read_guard(reader.constants, node)
    return reader.view(node)


def _sub_argument(reader: CallReader, link: Link, nodes: list[Node]) -> bool:
    if len(nodes) > 1 or (nodes and not reader.is_sub(nodes[0])):
        raise reader.source.error(nodes[-1], "RUST-006", f"{link.name} takes nothing, or &mut device.sub on the main context")
    return bool(nodes)


def _group_arguments(reader: CallReader, kind: str, nodes: list[Node]) -> dict[str, Any]:
    """One operand of a single stream, or one for each group of a pair (``()`` skips a group); flags likewise."""
    constants = reader.constants
    if kind == "flags":
        if len(nodes) not in (0, 2):
            raise reader.source.error(nodes[-1], "RUST-006", "a unary operation takes no flags, or one for each group of a pair")
        return {f"group{i}_apply": boolean(constants, node, f"group{i}_apply") for i, node in enumerate(nodes)}
    if len(nodes) == 1:
        return {"operand": read_operand(constants, nodes[0], reader.tensor)}
    if len(nodes) == 2:
        return {f"group{i}": read_operand(constants, node, reader.tensor) for i, node in enumerate(nodes)}
    if nodes:
        raise reader.source.error(
            nodes[2], "RUST-006", "at most two operands: one for each group of a pair", hint="a ternary operation takes a pair (a, b)"
        )
    return {}


def _function(reader: CallReader, signature: Signature, node: Node, stream_dtype: DType | None) -> dict[str, Any]:
    """The operator, for instance ``ClipBinaryOpI32::Max`` or ``FpBinaryOp::MulF(FpMulAlu::Mul0)``."""
    module, source = reader.types.module, reader.source
    enumeration = signature.enumeration
    head, unit = node, None
    if node.type == "call_expression" and (called := node.child_by_field_name("function")) is not None:
        head = called
        arguments = node.child_by_field_name("arguments")
        unit = arguments.named_children[0] if arguments is not None and arguments.named_child_count == 1 else None
    path = path_of(source, head)
    if signature.typed and len(path) > 1:
        enumeration = _typed(reader, signature, path[-2], head, stream_dtype)
    name = variant(module, head, enumeration)
    fields: dict[str, Any] = {"fn": name}
    if "fn" not in signature.op.__dataclass_fields__:
        variant(module, head, enumeration, (DIVISION,))
        del fields["fn"]
    if unit is not None:
        if name not in MULTIPLIERS or "alu" not in signature.op.__dataclass_fields__:
            raise source.error(unit, "RUST-006", f"{enumeration}::{name} takes no unit")
        fields["alu"] = variant(module, unit, MULTIPLIERS[name])
    return fields


def _typed(reader: CallReader, signature: Signature, given: str, node: Node, stream_dtype: DType | None) -> str:
    """The enumeration's name with the stream's element type; the text must name that one (RUST-009)."""
    names = {f"{signature.enumeration}{suffix}": suffix for suffix in ("I32", "F32")}
    if given not in names:
        return signature.enumeration + "I32"
    if stream_dtype is not None and names[given] != stream_dtype.name.upper():
        message = f"{given} works on {names[given].lower()}, the stream holds {stream_dtype}"
        raise reader.source.error(node, "RUST-009", message, hint=f"{signature.enumeration}{stream_dtype.name.upper()}::…")
    return given


def _switch_config(reader: CallReader, node: Node) -> SwitchConfig:
    """``SwitchConfig::Broadcast1 { slice1: 4, slice0: 2 }``."""
    module, source = reader.types.module, reader.source
    node = referent(node)
    name_node = node.child_by_field_name("name") if node.type == "struct_expression" else node
    if name_node is None:
        raise source.error(node, "RUST-006", "expected a SwitchConfig")
    kind = variant(module, name_node, "SwitchConfig", SWITCH_CONFIGS)
    sizes: dict[str, int] = {}
    body = node.child_by_field_name("body")
    for entry in body.named_children if body is not None else ():
        if entry.type in ("line_comment", "block_comment"):
            continue
        field, value = entry.child_by_field_name("field"), entry.child_by_field_name("value")
        size = None if value is None else _size(reader, value)
        if field is None or size is None:
            raise source.error(entry, "RUST-006", "a switch configuration has fields like slice1: 4")
        sizes[source.text_of(field)] = size
    with source.at(node):
        return SwitchConfig.from_json({kind: sizes})


def _size(reader: CallReader, node: Node) -> int | None:
    value = reader.constants.value(node)
    return value if isinstance(value, int) and not isinstance(value, bool) else None

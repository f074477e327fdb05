"""Operands, guards and tag modes of the Vector Engine in Rust text (VE-030, TAG-002, TAG-006, TAG-008)."""

from __future__ import annotations

from collections.abc import Callable

from tree_sitter import Node

from tcptune.exec.rust.syntax.calls import Link, arguments_of, callee, chain_of, path_of, referent
from tcptune.exec.rust.syntax.constants import Constants
from tcptune.exec.rust.syntax.literals import integer, variant
from tcptune.ir.kernels.vector_operands import (
    IGNORE,
    ONE,
    STASH,
    TAG_BITS,
    ZERO,
    Branched,
    Comparison,
    Constant,
    Operand,
    Slot,
    StashOperand,
    TagGuard,
    TagMode,
    TernaryOperand,
    VrfOperand,
)

TensorName = Callable[[Node], str]
SLOT_KINDS = ("imm", "rf")


def read_operand(constants: Constants, node: Node, tensor: TensorName) -> Operand | None:
    """An operand: a number, ``Stash``, a register tensor, a pair, ``Branched::…``; ``()`` is None (the group is skipped)."""
    inner = referent(node)
    if inner.type == "unit_expression":
        return None
    value = constants.value(inner)
    if value is not None and not isinstance(value, bool):
        return Constant(value)
    path = path_of(constants.source, inner)
    if path and path[-1] == STASH:
        return StashOperand()
    if inner.type == "tuple_expression":
        parts = [read_operand(constants, item, tensor) for item in inner.named_children]
        if len(parts) != 2 or parts[0] is None or parts[1] is None:
            raise constants.source.error(inner, "RUST-006", "a ternary operation takes a pair of operands", hint="(operand0, operand1)")
        return TernaryOperand(parts[0], parts[1])
    if inner.type == "call_expression":
        return _branched(constants, inner, tensor)
    return VrfOperand(tensor(inner))


def _branched(constants: Constants, node: Node, tensor: TensorName) -> Branched:
    """``Branched::imm(guard, value).imm(guard, value).rf(guard, &vrf)``."""
    root, links = chain_of(constants.source, node)
    function, _ = callee(root) if root.type == "call_expression" else (None, None)
    path = path_of(constants.source, function) if function is not None else ()
    if len(path) != 2 or path[0] != "Branched" or function is None:
        raise constants.source.error(
            node, "RUST-006", f"{constants.source.text_of(node)[:40]!r} is no operand", hint="a number, &vrf, Stash or Branched::imm(…)"
        )
    calls = [Link(path[1], function, None, arguments_of(root)), *links]
    return Branched(tuple(_slot(constants, link, tensor) for link in calls))


def _slot(constants: Constants, link: Link, tensor: TensorName) -> Slot:
    arguments = link.arguments or ()
    if link.name not in SLOT_KINDS or len(arguments) != 2:
        raise constants.source.error(link.node, "RUST-006", "a conditional operand is built by imm(guard, value) and rf(guard, value)")
    value = read_operand(constants, arguments[1], tensor)
    if value is None:
        raise constants.source.error(arguments[1], "RUST-006", "a slot holds a value")
    return Slot(link.name, read_guard(constants, arguments[0]), value)


def read_guard(constants: Constants, node: Node) -> TagGuard:
    """``TagGuard::all()``, ``group(0)``, ``matches([…])`` or ``not_matches([…])``."""
    inner = referent(node)
    function, _ = callee(inner) if inner.type == "call_expression" else (None, None)
    path = path_of(constants.source, function) if function is not None else ()
    arguments = arguments_of(inner) if function is not None else ()
    if len(path) == 2 and path[0] == "TagGuard":
        if path[1] == "all" and not arguments:
            return TagGuard()
        if path[1] == "group" and len(arguments) == 1:
            with constants.source.at(inner):
                return TagGuard.from_json({"group": integer(constants, arguments[0], "the group")})
        if path[1] in ("matches", "not_matches") and len(arguments) == 1 and arguments[0].type == "array_expression":
            return TagGuard(
                tuple(variant(constants.module, bit, "BitReq", (ONE, ZERO, IGNORE)) for bit in _bits(constants, arguments[0])),
                path[1] == "not_matches",
            )
    raise constants.source.error(
        node,
        "RUST-006",
        f"{constants.source.text_of(node)[:40]!r} is no guard",
        hint="TagGuard::all(), group(0), matches([BitReq::One, …])",
    )


def _bits(constants: Constants, node: Node) -> list[Node]:
    bits = [c for c in node.named_children if c.type not in ("line_comment", "block_comment")]
    if len(bits) != TAG_BITS:
        raise constants.source.error(node, "RUST-006", f"a guard has {TAG_BITS} tag bits, got {len(bits)}")
    return bits


def read_tag_mode(constants: Constants, node: Node) -> TagMode:
    """``TagMode::Zero``, ``TagMode::Comparison([Cmp::Less(0), …])`` or ``TagMode::AxisToggle { axis: A }``."""
    source = constants.source
    if node.type == "struct_expression":
        name, body = node.child_by_field_name("name"), node.child_by_field_name("body")
        kind = variant(constants.module, name, "TagMode") if name is not None else ""
        values = [e.child_by_field_name("value") for e in (body.named_children if body is not None else [])]
        return TagMode(kind, axis=source.text_of(values[0]) if values and values[0] is not None else None)
    if node.type != "call_expression":
        return TagMode(variant(constants.module, node, "TagMode"))
    function, _ = callee(node)
    arguments = arguments_of(node)
    if function is None or len(arguments) != 1 or arguments[0].type != "array_expression":
        raise source.error(
            node,
            "RUST-006",
            f"{source.text_of(node)[:40]!r} is no tag mode",
            hint="TagMode::Zero or TagMode::Comparison([Cmp::Less(0), …])",
        )
    kind = variant(constants.module, function, "TagMode")
    items = [c for c in arguments[0].named_children if c.type not in ("line_comment", "block_comment")]
    return TagMode(kind, tuple(_comparison(constants, item) for item in items))


def _comparison(constants: Constants, node: Node) -> Comparison:
    if node.type != "call_expression":
        return Comparison(variant(constants.module, node, "Cmp"))
    function, _ = callee(node)
    arguments = arguments_of(node)
    boundary = constants.value(arguments[0]) if len(arguments) == 1 else None
    if function is None or boundary is None:
        raise constants.source.error(node, "RUST-006", "a comparison has one number as its boundary", hint="Cmp::Less(0)")
    return Comparison(variant(constants.module, function, "Cmp"), boundary)

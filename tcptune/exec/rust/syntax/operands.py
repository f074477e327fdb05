"""Operands, guards and tag modes of the Vector Engine in Rust text (VE-030, TAG-002, TAG-006, TAG-008)."""

from __future__ import annotations

from collections.abc import Callable

from tree_sitter import Node

from tcptune.exec.rust.syntax.calls import Link, arguments_of, callee, chain_of, path_of, referent
from tcptune.exec.rust.syntax.literals import integer, number, variant
from tcptune.exec.rust.syntax.module import Module
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


def read_operand(module: Module, node: Node, tensor: TensorName) -> Operand | None:
    """An operand: a number, ``Stash``, a register tensor, a pair, ``Branched::…``; ``()`` is None (the group is skipped)."""
    inner = referent(node)
    if inner.type == "unit_expression":
        return None
    value = number(module, inner)
    if value is not None:
        return Constant(value)
    path = path_of(module.source, inner)
    if path and path[-1] == STASH:
        return StashOperand()
    if inner.type == "tuple_expression":
        parts = [read_operand(module, item, tensor) for item in inner.named_children]
        if len(parts) != 2 or parts[0] is None or parts[1] is None:
            raise module.source.error(inner, "RUST-006", "a ternary operation takes a pair of operands", hint="(operand0, operand1)")
        return TernaryOperand(parts[0], parts[1])
    if inner.type == "call_expression":
        return _branched(module, inner, tensor)
    return VrfOperand(tensor(inner))


def _branched(module: Module, node: Node, tensor: TensorName) -> Branched:
    """``Branched::imm(guard, value).imm(guard, value).rf(guard, &vrf)``."""
    root, links = chain_of(module.source, node)
    function, _ = callee(root) if root.type == "call_expression" else (None, None)
    path = path_of(module.source, function) if function is not None else ()
    if len(path) != 2 or path[0] != "Branched" or function is None:
        raise module.source.error(
            node, "RUST-006", f"{module.source.text_of(node)[:40]!r} is no operand", hint="a number, &vrf, Stash or Branched::imm(…)"
        )
    calls = [Link(path[1], function, None, arguments_of(root)), *links]
    return Branched(tuple(_slot(module, link, tensor) for link in calls))


def _slot(module: Module, link: Link, tensor: TensorName) -> Slot:
    arguments = link.arguments or ()
    if link.name not in SLOT_KINDS or len(arguments) != 2:
        raise module.source.error(link.node, "RUST-006", "a conditional operand is built by imm(guard, value) and rf(guard, value)")
    value = read_operand(module, arguments[1], tensor)
    if value is None:
        raise module.source.error(arguments[1], "RUST-006", "a slot holds a value")
    return Slot(link.name, read_guard(module, arguments[0]), value)


def read_guard(module: Module, node: Node) -> TagGuard:
    """``TagGuard::all()``, ``group(0)``, ``matches([…])`` or ``not_matches([…])``."""
    inner = referent(node)
    function, _ = callee(inner) if inner.type == "call_expression" else (None, None)
    path = path_of(module.source, function) if function is not None else ()
    arguments = arguments_of(inner) if function is not None else ()
    if len(path) == 2 and path[0] == "TagGuard":
        if path[1] == "all" and not arguments:
            return TagGuard()
        if path[1] == "group" and len(arguments) == 1:
            with module.source.at(inner):
                return TagGuard.from_json({"group": integer(module, arguments[0], "the group")})
        if path[1] in ("matches", "not_matches") and len(arguments) == 1 and arguments[0].type == "array_expression":
            return TagGuard(
                tuple(variant(module, bit, "BitReq", (ONE, ZERO, IGNORE)) for bit in _bits(module, arguments[0])), path[1] == "not_matches"
            )
    raise module.source.error(
        node, "RUST-006", f"{module.source.text_of(node)[:40]!r} is no guard", hint="TagGuard::all(), group(0), matches([BitReq::One, …])"
    )


def _bits(module: Module, node: Node) -> list[Node]:
    bits = [c for c in node.named_children if c.type not in ("line_comment", "block_comment")]
    if len(bits) != TAG_BITS:
        raise module.source.error(node, "RUST-006", f"a guard has {TAG_BITS} tag bits, got {len(bits)}")
    return bits


def read_tag_mode(module: Module, node: Node) -> TagMode:
    """``TagMode::Zero``, ``TagMode::Comparison([Cmp::Less(0), …])`` or ``TagMode::AxisToggle { axis: A }``."""
    source = module.source
    if node.type == "struct_expression":
        name, body = node.child_by_field_name("name"), node.child_by_field_name("body")
        kind = variant(module, name, "TagMode") if name is not None else ""
        values = [e.child_by_field_name("value") for e in (body.named_children if body is not None else [])]
        return TagMode(kind, axis=source.text_of(values[0]) if values and values[0] is not None else None)
    if node.type != "call_expression":
        return TagMode(variant(module, node, "TagMode"))
    function, _ = callee(node)
    arguments = arguments_of(node)
    if function is None or len(arguments) != 1 or arguments[0].type != "array_expression":
        raise source.error(
            node,
            "RUST-006",
            f"{source.text_of(node)[:40]!r} is no tag mode",
            hint="TagMode::Zero or TagMode::Comparison([Cmp::Less(0), …])",
        )
    kind = variant(module, function, "TagMode")
    items = [c for c in arguments[0].named_children if c.type not in ("line_comment", "block_comment")]
    return TagMode(kind, tuple(_comparison(module, item) for item in items))


def _comparison(module: Module, node: Node) -> Comparison:
    if node.type != "call_expression":
        return Comparison(variant(module, node, "Cmp"))
    function, _ = callee(node)
    arguments = arguments_of(node)
    boundary = number(module, arguments[0]) if len(arguments) == 1 else None
    if function is None or boundary is None:
        raise module.source.error(node, "RUST-006", "a comparison has one number as its boundary", hint="Cmp::Less(0)")
    return Comparison(variant(module, function, "Cmp"), boundary)

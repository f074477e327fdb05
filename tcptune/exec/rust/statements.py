"""Reads the statements of a function body: bindings, calls and constant loops (RUST-008)."""

from __future__ import annotations

from tree_sitter import Node

from tcptune.exec.rust.frame import Frame
from tcptune.exec.rust.memory_calls import bind_tile
from tcptune.exec.rust.syntax.calls import Link
from tcptune.exec.rust.syntax.index import Linear
from tcptune.exec.rust.syntax.types import TensorHint
from tcptune.exec.rust.values import Index, RuntimeIndex, Tuple, Value, View
from tcptune.ir.kernels.steps import RuntimeCount

_COMMENTS = ("line_comment", "block_comment")
_NO_EFFECT = ("assert", "assert_eq", "assert_ne", "debug_assert", "debug_assert_eq", "println", "axes")
_ITEMS = ("type_item", "function_item", "use_declaration", "const_item", "empty_statement", "attribute_item", "inner_attribute_item")


def read_block(frame: Frame, block: Node, name: str | None = None, hint: TensorHint | None = None) -> Value:
    """Reads the statements of a block; its value is that of the final expression, if it has one.

    Raises:
        RustError: RUST-008, a statement is not part of the subset.
    """
    children = [c for c in block.named_children if c.type not in _COMMENTS]
    for position, node in enumerate(children):
        last = position == len(children) - 1
        if node.type in _ITEMS:
            continue
        if node.type == "let_declaration":
            _let(frame, node)
        elif node.type == "expression_statement":
            _expression(frame, node)
        elif node.type == "for_expression":
            _loop(frame, node)
        elif node.type == "macro_invocation" and _without_effect(frame, node):
            continue
        elif last:
            return frame.value(node, name, hint)
        else:
            frame.value(node)
    return None


def _expression(frame: Frame, node: Node) -> None:
    inner = node.named_children[0]
    if inner.type == "for_expression":
        _loop(frame, inner)
    elif inner.type == "macro_invocation" and _without_effect(frame, inner):
        return
    else:
        frame.value(inner)


def _without_effect(frame: Frame, node: Node) -> bool:
    macro = node.child_by_field_name("macro")
    return macro is not None and frame.source.text_of(macro) in _NO_EFFECT


def _let(frame: Frame, node: Node) -> None:
    pattern, value_node, annotation = (node.child_by_field_name(field) for field in ("pattern", "value", "type"))
    if pattern is None or value_node is None:
        raise frame.source.error(node, "RUST-008", "a binding needs a value")
    hint = frame.types.tensor(annotation) if annotation is not None else None
    names = _names(frame, pattern)
    if len(names) == 1:
        value = _bound(frame, frame.value(value_node, names[0] if names[0] != "_" else None, hint), value_node, names[0])
        _bind(frame, names[0], value)
        return
    value = frame.value(value_node)
    if not isinstance(value, Tuple) or len(value.items) != len(names):
        raise frame.source.error(pattern, "RUST-006", f"the value has not {len(names)} parts")
    for part, item in zip(names, value.items, strict=True):
        _bind(frame, part, item)


def _bound(frame: Frame, value: Value, node: Node, name: str) -> Value:
    """A mutable tile that gets a name becomes a step of its own."""
    if isinstance(value, View) and value.tile is not None:
        return bind_tile(frame, value, Link(name, node), name)
    return value


def _names(frame: Frame, pattern: Node) -> list[str]:
    """The names that a pattern binds."""
    if pattern.type == "tuple_pattern":
        return [name for part in pattern.named_children for name in _names(frame, part)]
    if pattern.type in ("mut_pattern", "ref_pattern"):
        return _names(frame, pattern.named_children[-1])
    text = frame.source.text_of(pattern)
    if pattern.type == "identifier" or text == "_":
        return [text]
    raise frame.source.error(pattern, "RUST-008", f"the pattern {text[:30]!r} is not part of the subset")


def _bind(frame: Frame, name: str, value: Value) -> None:
    if name != "_":
        frame.variables[name] = value


def _loop(frame: Frame, node: Node) -> None:
    """``for g in 0..Group::SIZE { … }``, with or without ``#[unroll]``."""
    pattern, value, body = (node.child_by_field_name(field) for field in ("pattern", "value", "body"))
    if pattern is None or value is None or body is None:
        raise frame.source.error(node, "RUST-001", "this loop is incomplete")
    names = _names(frame, pattern)
    while value.type == "parenthesized_expression":
        value = value.named_children[0]
    if value.type != "range_expression" or len(names) != 1:
        raise frame.source.error(value, "RUST-007", "a loop runs over a range", hint="for g in 0..Group::SIZE")
    first, count = _range(frame, value)
    inner = frame.inner()
    var = frame.emitter.fresh(names[0] if names[0] != "_" else "i")
    inner.variables[names[0]] = Index(Linear(first, ((var, 1),)))
    frame.emitter.open_loop(node)
    read_block(inner, body)
    frame.emitter.close_loop(var, count, _is_unrolled(frame, node))


def _range(frame: Frame, node: Node) -> tuple[int, int | RuntimeCount]:
    """First value and number of iterations of a range."""
    bounds = [c for c in node.named_children if c.type not in _COMMENTS]
    sign = next((c.type for c in node.children if c.type in ("..", "..=")), "..")
    if len(bounds) != 2:
        raise frame.source.error(node, "RUST-007", "the range of a loop has both bounds", hint="0..Group::SIZE")
    first = frame.index(bounds[0])
    if bounds[1].type == "identifier" and isinstance(runtime := frame.variables.get(frame.source.text_of(bounds[1])), RuntimeIndex):
        return first.constant, RuntimeCount(runtime.name)
    end = frame.index(bounds[1])
    for bound, at in ((first, bounds[0]), (end, bounds[1])):
        if bound.terms:
            raise frame.source.error(at, "RUST-007", "the bounds of a loop are constants")
    count = end.constant - first.constant + (sign == "..=")
    if count < 0:
        raise frame.source.error(node, "RUST-007", f"the range ends at {end.constant}, before its start {first.constant}")
    return first.constant, count


def _is_unrolled(frame: Frame, node: Node) -> bool:
    """Whether ``#[unroll]`` stands before the loop."""
    at = node if node.prev_named_sibling is not None or node.parent is None else node.parent
    if node.parent is not None and node.parent.type == "expression_statement":
        at = node.parent
    before = at.prev_named_sibling
    while before is not None and before.type in (*_COMMENTS, "attribute_item"):
        if before.type == "attribute_item" and frame.source.text_of(before).strip("#[] \n").split("(")[0].strip() == "unroll":
            return True
        before = before.prev_named_sibling
    return False

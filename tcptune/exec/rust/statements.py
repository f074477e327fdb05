"""Reads the statements of a function body: bindings, calls and constant loops (RUST-008)."""

from __future__ import annotations

from dataclasses import dataclass

from tree_sitter import Node

from tcptune.exec.rust.frame import CONTEXTS, Frame
from tcptune.exec.rust.memory_calls import bind_tile
from tcptune.exec.rust.syntax.calls import Link, chain_of, referent
from tcptune.exec.rust.syntax.index import Linear
from tcptune.exec.rust.syntax.literals import integer
from tcptune.exec.rust.syntax.module import nearest
from tcptune.exec.rust.syntax.types import TensorHint, TupleHint
from tcptune.exec.rust.values import Context, Device, Index, RuntimeIndex, Tuple, Value, View, described
from tcptune.ir.kernels.steps import RuntimeCount

MAX_WRITTEN_OUT = 4096
"""Most iterations of an unrolled loop whose iterations differ."""

_COMMENTS = ("line_comment", "block_comment")
_NO_EFFECT = ("assert", "assert_eq", "assert_ne", "debug_assert", "debug_assert_eq", "debug_assert_ne", "println", "axes")
_ITEMS = ("type_item", "function_item", "use_declaration", "const_item", "empty_statement", "attribute_item", "inner_attribute_item")


def read_block(frame: Frame, block: Node, name: str | None = None, hint: TensorHint | TupleHint | None = None) -> Value:
    """Reads the statements of a block; its value is that of the final expression (or final ``return``), if it has one.

    Raises:
        RustError: RUST-008, a statement is not part of the subset.
    """
    children = [c for c in block.named_children if c.type not in _COMMENTS]
    wanted = _wanted(frame, children, hint)
    for position, node in enumerate(children):
        last = position == len(children) - 1
        if node.type in _ITEMS:
            continue
        result = _result(frame, node) if last else None
        if result is not None:
            return frame.value(result, name, hint)
        if node.type == "let_declaration":
            _let(frame, node, wanted.get(position))
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


def _wanted(frame: Frame, children: list[Node], hint: TensorHint | TupleHint | None) -> dict[int, TensorHint | TupleHint]:
    """Types of the bindings that a block ends with, by the place of their ``let``: ``let y = x.to_hbm(…); y`` has the type of the block."""
    if hint is None or not children:
        return {}
    value = _result(frame, children[-1]) or children[-1]
    parts = value.named_children if value.type == "tuple_expression" else [value]
    found: dict[int, TensorHint | TupleHint] = {}
    for number, part in enumerate(parts):
        own = hint.part(number, len(parts)) if isinstance(hint, TupleHint) else hint if len(parts) == 1 else None
        place = _last_let(frame, children, frame.source.text_of(part)) if part.type == "identifier" and own is not None else None
        if place is not None and own is not None:
            found[place] = own
    return found


def _last_let(frame: Frame, children: list[Node], name: str) -> int | None:
    """The place of the last ``let`` of a block that binds a name."""
    lets = [(at, node.child_by_field_name("pattern")) for at, node in enumerate(children) if node.type == "let_declaration"]
    single = [(at, p) for at, p in lets if p is not None and p.type in ("identifier", "mut_pattern")]
    places = [at for at, pattern in single if _names(frame, pattern) == [name]]
    return places[-1] if places else None


def _result(frame: Frame, node: Node) -> Node | None:
    """The value of a block in its final statement: what it returns, or an ``if`` or block without ``;``."""
    inner = node.named_children[0] if node.type == "expression_statement" and node.named_child_count else node
    if inner.type == "return_expression":
        return inner.named_children[0] if inner.named_child_count else None
    is_value = inner.type in ("if_expression", "block", "unsafe_block") and not frame.source.text_of(node).endswith(";")
    return inner if is_value else None


def _expression(frame: Frame, node: Node) -> None:
    inner = node.named_children[0]
    if inner.type == "for_expression":
        _loop(frame, inner)
    elif inner.type == "assignment_expression":
        _assign(frame, inner)
    elif inner.type == "macro_invocation" and _without_effect(frame, inner):
        return
    else:
        frame.value(inner)


def _without_effect(frame: Frame, node: Node) -> bool:
    macro = node.child_by_field_name("macro")
    return macro is not None and frame.source.text_of(macro) in _NO_EFFECT


def _assign(frame: Frame, node: Node) -> None:
    """``acc = …;`` gives a variable another value; in a kept loop that would have to hold for every iteration at once."""
    left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
    if left is None or right is None or left.type != "identifier":
        raise frame.source.error(node, "RUST-008", "only variables are assigned", hint="write tensors through view_mut()")
    name = frame.source.text_of(left)
    frame.variable(left)
    if frame.loops and not frame.is_own(name):
        message = f"{name!r} changes from iteration to iteration of a loop that is kept"
        raise frame.source.error(node, "RUST-008", message, hint="mark the loop with #[unroll], or write through view_mut()")
    frame.assign(name, frame.value(right, name))


def _let(frame: Frame, node: Node, wanted: TensorHint | TupleHint | None = None) -> None:
    """``let x: T = …;``; `wanted` is the type where none is written, if what follows tells."""
    pattern, value_node, annotation = (node.child_by_field_name(field) for field in ("pattern", "value", "type"))
    if pattern is None or value_node is None:
        raise frame.source.error(node, "RUST-008", "a binding needs a value")
    hint = frame.types.hint(annotation) if annotation is not None else wanted
    if pattern.type == "struct_pattern":
        _contexts(frame, pattern, frame.value(referent(value_node)))
        return
    names = _names(frame, pattern)
    if pattern.type != "tuple_pattern":
        value = _bound(frame, frame.value(value_node, names[0] if names[0] != "_" else None, hint), value_node, names[0])
        _bind(frame, names[0], value)
        return
    value = frame.value(value_node, None, hint)
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
        parts = [c for c in pattern.children if c.is_named or c.type == "_"]
        return [name for part in parts if part.type not in _COMMENTS for name in _names(frame, part)]
    if pattern.type in ("mut_pattern", "ref_pattern"):
        return _names(frame, pattern.named_children[-1])
    text = frame.source.text_of(pattern)
    if pattern.type == "identifier" or text == "_":
        return [text]
    raise frame.source.error(pattern, "RUST-008", f"the pattern {text[:30]!r} is not part of the subset")


def _bind(frame: Frame, name: str, value: Value) -> None:
    if name != "_":
        frame.declare(name, value)


def _contexts(frame: Frame, pattern: Node, value: Value) -> None:
    """``let Device { main, tdma: dma, .. } = device``: the contexts as variables."""
    if not isinstance(value, Device):
        raise frame.source.error(pattern, "RUST-008", f"{described(value)} has no fields to take apart")
    for part in pattern.named_children:
        if part.type != "field_pattern":
            continue
        field, inner = part.child_by_field_name("name"), part.child_by_field_name("pattern")
        name = frame.source.text_of(field) if field is not None else ""
        if name not in CONTEXTS:
            raise frame.source.error(part, "RUST-002", f"the device has no field {name!r}", hint=nearest(name, list(CONTEXTS)))
        _bind(frame, name if inner is None else _names(frame, inner)[0], Context(name))


@dataclass(frozen=True)
class _Range:
    """The values that a loop's variable takes: ``first + step * i``."""

    first: int
    step: int
    count: int | RuntimeCount


def _loop(frame: Frame, node: Node) -> None:
    """``for g in 0..Group::SIZE { … }``, with or without ``#[unroll]``."""
    pattern, value, body = (node.child_by_field_name(field) for field in ("pattern", "value", "body"))
    if pattern is None or value is None or body is None:
        raise frame.source.error(node, "RUST-001", "this loop is incomplete")
    names = _names(frame, pattern)
    if len(names) != 1:
        raise frame.source.error(pattern, "RUST-007", "a loop runs over a range", hint="for g in 0..Group::SIZE")
    values, unrolled = _values(frame, value), _is_unrolled(frame, node)
    if unrolled and isinstance(values.count, int) and _differs_by_iteration(frame, body, names[0]):
        _write_out(frame, node, names[0], values)
        return
    inner = frame.inner()
    inner.loops += 1
    var = frame.emitter.fresh(names[0] if names[0] != "_" else "i")
    inner.declare(names[0], Index(Linear(values.first, ((var, values.step),))))
    frame.emitter.open_loop(node)
    read_block(inner, body)
    frame.emitter.close_loop(var, values.count, unrolled)


def _differs_by_iteration(frame: Frame, body: Node, name: str) -> bool:
    """Whether iterations may do other steps than one another: they branch, assign variables, or compute or choose by its variable."""
    pending = [body]
    while pending:
        node = pending.pop()
        if node.type in ("if_expression", "assignment_expression"):
            return True
        if node.type == "index_expression" and _mentions(frame, node.named_children[-1], name):
            return True
        if node.type == "binary_expression" and not _is_linear(frame, node, name):
            return True
        pending.extend(node.named_children)
    return False


def _is_linear(frame: Frame, node: Node, name: str) -> bool:
    """Whether one operator leaves an index linear in the loop's variable."""
    operator = node.child_by_field_name("operator")
    sides = [_mentions(frame, side, name) for side in (node.child_by_field_name("left"), node.child_by_field_name("right"))]
    sign = frame.source.text_of(operator) if operator is not None else ""
    return sign in ("+", "-") or (sign == "*" and not all(sides)) or not any(sides)


def _mentions(frame: Frame, node: Node | None, name: str) -> bool:
    pending = [node] if node is not None else []
    while pending:
        at = pending.pop()
        if at.type == "identifier" and frame.source.text_of(at) == name:
            return True
        pending.extend(at.named_children)
    return False


def _write_out(frame: Frame, node: Node, name: str, values: _Range) -> None:
    """Reads the body of an unrolled loop once an iteration, its variable being a constant."""
    body = node.child_by_field_name("body")
    if body is None or not isinstance(values.count, int) or values.count > MAX_WRITTEN_OUT:
        raise frame.source.error(node, "RUST-007", f"a loop of {values.count} iterations is too long to be written out")
    for turn in range(values.count):
        inner = frame.inner()
        inner.declare(name, Index(Linear(values.first + values.step * turn)))
        read_block(inner, body)


def _values(frame: Frame, node: Node) -> _Range:
    """The values of ``0..n``, ``(0..n).rev()`` and ``(0..n).step_by(k)``."""
    root, links = chain_of(frame.source, node)
    while root.type == "parenthesized_expression":
        root = root.named_children[0]
    if root.type != "range_expression":
        raise frame.source.error(node, "RUST-007", "a loop runs over a range", hint="for g in 0..Group::SIZE")
    first, count = _range(frame, root)
    values = _Range(first, 1, count)
    for link in links:
        values = _adapted(frame, values, link)
    return values


def _adapted(frame: Frame, values: _Range, link: Link) -> _Range:
    count = values.count
    arguments = link.arguments or ()
    if link.name == "rev" and not arguments and isinstance(count, int):
        return _Range(values.first + values.step * (count - 1), -values.step, count)
    if link.name == "step_by" and len(arguments) == 1 and isinstance(count, int):
        step = integer(frame.constants, arguments[0], "the step")
        if step > 0:
            return _Range(values.first, values.step * step, -(-count // step))
    raise frame.source.error(link.node, "RUST-007", f"a loop has no {link.name!r} here", hint="0..n, (0..n).rev() or (0..n).step_by(k)")


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

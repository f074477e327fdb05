"""Evaluates the expressions of a device function: method chains, helper calls, `new()`, blocks and index arithmetic."""

from __future__ import annotations

from typing import NoReturn

from tree_sitter import Node

from tcptune.exec.rust.emit import Annotation
from tcptune.exec.rust.frame import CONTEXTS, Frame
from tcptune.exec.rust.functions import call_function
from tcptune.exec.rust.memory_calls import bind_tile, memory_call
from tcptune.exec.rust.statements import read_block
from tcptune.exec.rust.stream_calls import CallReader, stream_op
from tcptune.exec.rust.stream_types import dtype_after
from tcptune.exec.rust.syntax.calls import Link, arguments_of, callee, chain_of, path_of, referent
from tcptune.exec.rust.syntax.module import nearest
from tcptune.exec.rust.syntax.signatures import STREAM_METHODS
from tcptune.exec.rust.syntax.types import TensorHint, TupleHint
from tcptune.exec.rust.values import Context, Device, Index, Pending, Plan, Stream, Tensor, Tuple, Value, View, described
from tcptune.ir.kernels.ops import BeginInterleaved, Commit, CommitView, Op, ToTrf, ToVrf
from tcptune.ir.kernels.steps import TensorUnit
from tcptune.ir.types import TIER_LEVELS

_TIER_OF_END = {ToTrf: "Trf", ToVrf: "Vrf", Commit: "Dm"}
_NUMBER_NODES = (
    "integer_literal",
    "float_literal",
    "boolean_literal",
    "binary_expression",
    "type_cast_expression",
    "unary_expression",
    "scoped_identifier",
)
_WITHOUT_EFFECT = ("drop", "forget", "black_box")


Hint = TensorHint | TupleHint | None


def evaluate(frame: Frame, node: Node, name: str | None, hint: Hint) -> Value:
    """What an expression stands for; steps that it makes are emitted, the last under `name`.

    Raises:
        RustError: the expression is not part of the subset.
    """
    node = referent(node)
    root, links = chain_of(frame.source, node)
    if links and root.type in (*_NUMBER_NODES, "identifier") and (constant := frame.constant(node)) is not None:
        return constant
    value = _root(frame, root, name if not links else None, hint if not links else None)
    for position, link in enumerate(links):
        last = position == len(links) - 1
        value = _follow(frame, value, link, name if last else None, _tensor_hint(hint) if last else None)
    return value


def _tensor_hint(hint: Hint) -> TensorHint | None:
    return hint if isinstance(hint, TensorHint) else None


def _root(frame: Frame, node: Node, name: str | None, hint: Hint) -> Value:
    node = referent(node)
    if node.type in ("identifier", "self"):
        return frame.variable(node)
    if node.type in ("unsafe_block", "block"):
        block = node if node.type == "block" else next(c for c in node.named_children if c.type == "block")
        return read_block(frame.inner(), block, name, hint)
    if node.type == "call_expression":
        return _call(frame, node, name, hint)
    if node.type in _NUMBER_NODES:
        return frame.constant(node) or Index(frame.index(node))
    if node.type == "if_expression":
        return _branch(frame, node, name, hint)
    if node.type == "index_expression":
        return _element(frame, node)
    if node.type in ("tuple_expression", "array_expression") and not any(c.type == ";" for c in node.children):
        items = [c for c in node.named_children if c.type not in ("line_comment", "block_comment")]
        hints = [hint.part(i, len(items)) if hint is not None else None for i in range(len(items))]
        return Tuple(tuple(frame.value(item, None, wanted) for item, wanted in zip(items, hints, strict=True)))
    if node.type == "unit_expression":
        return None
    if node.type == "return_expression":
        raise frame.source.error(
            node, "RUST-008", "`return` is not part of the subset", hint="end the function with the expression it returns"
        )
    text = frame.source.text_of(node).split("\n")[0][:50]
    raise frame.source.error(node, "RUST-008", f"{text!r} is not part of the subset")


def _element(frame: Frame, node: Node) -> Value:
    """``parts[i]``: the index must be known when the kernel is read."""
    value, index = frame.value(referent(node.named_children[0])), frame.constants.value(node.named_children[-1])
    if not isinstance(value, Tuple):
        raise frame.source.error(node, "RUST-008", f"{described(value)} has no elements")
    if not isinstance(index, int) or isinstance(index, bool):
        raise frame.source.error(
            node.named_children[-1],
            "RUST-007",
            "the index of an array is not known when the kernel is read",
            hint="constants and variables of unrolled loops are",
        )
    if not 0 <= index < len(value.items):
        raise frame.source.error(node.named_children[-1], "RUST-007", f"there is no element {index} of {len(value.items)}")
    return value.items[index]


def _branch(frame: Frame, node: Node, name: str | None, hint: Hint) -> Value:
    """The branch of an ``if`` that is taken; the condition must be known when the kernel is read."""
    condition = node.child_by_field_name("condition")
    truth = frame.constants.value(condition) if condition is not None else None
    if not isinstance(truth, bool):
        raise frame.source.error(
            condition or node,
            "RUST-008",
            "the condition of an `if` is not known when the kernel is read",
            hint="constants, axis sizes and variables of unrolled loops are",
        )
    taken = frame.constants.branch(node)
    if taken is None:
        return None
    block = taken.named_children[-1] if taken.type == "else_clause" else taken
    return _branch(frame, block, name, hint) if block.type == "if_expression" else read_block(frame.inner(), block, name, hint)


def _call(frame: Frame, node: Node, name: str | None, hint: Hint) -> Value:
    """``helper(device, &x)``, ``DmTensor::new()`` or the call of a `const fn`."""
    constant = frame.constant(node)
    if constant is not None:
        return constant
    function, types = callee(node)
    path = path_of(frame.source, function) if function is not None else ()
    if function is None or not path:
        raise frame.source.error(node, "RUST-008", "this call is not part of the subset")
    if len(path) == 2 and path[1] == "new" and path[0] in ("DmTensor", "HbmTensor"):
        head = function.child_by_field_name("path")
        given = frame.types.tensor(head) if head is not None and head.type.startswith("generic_type") else None
        return _new(frame, node, path[0].removesuffix("Tensor"), name, given or _tensor_hint(hint))
    if path[-1] in _WITHOUT_EFFECT and frame.module.functions.find(path[-1], node.start_byte) is None:
        return None
    helper = frame.module.functions.find(path[-1], node.start_byte)
    if helper is None:
        names = [f.name for f in frame.module.functions.values() if f.chips is None and f.name != "main"]
        raise frame.source.error(
            function, "RUST-005", f"there is no function {'::'.join(path)!r} in this file", hint=nearest(path[-1], names)
        )
    return call_function(frame, helper, function, types, arguments_of(node), name, hint)


def _new(frame: Frame, node: Node, tier: str, name: str | None, hint: TensorHint | None) -> Value:
    value = Pending(frame.emitter.fresh(name or tier.lower()), tier, node.start_byte)
    frame.emitter.add(value, node)
    if hint is not None:
        value.settle(hint)
    return value


def _follow(frame: Frame, value: Value, link: Link, name: str | None, hint: TensorHint | None) -> Value:
    """One link of a chain, on the value before it."""
    if not link.is_call:
        if isinstance(value, Device) and link.name in CONTEXTS:
            return Context(link.name)
        if isinstance(value, Tuple) and link.name.isdigit() and int(link.name) < len(value.items):
            return value.items[int(link.name)]
        known = list(CONTEXTS) if isinstance(value, Device) else []
        raise frame.source.error(link.node, "RUST-002", f"{described(value)} has no field {link.name!r}", hint=nearest(link.name, known))
    if isinstance(value, Pending):
        if value.tensor is None and hint is None and link.name not in ("view", "view_mut"):
            raise frame.source.error(link.node, "RUST-004", f"the type of {value.name!r} is not known here", hint="annotate its `let`")
        value = value.tensor or Tensor(value.name, value.tier)
    if isinstance(value, Context):
        return _begin(frame, value, link)
    if isinstance(value, Stream):
        return _stream(frame, value, link, name, hint)
    if isinstance(value, Tensor | View | Plan):
        return memory_call(frame, value, link, name, hint)
    return _no_method(frame, value, link, [])


def _no_method(frame: Frame, value: Value, link: Link, known: list[str]) -> NoReturn:
    raise frame.source.error(link.node, "RUST-002", f"{described(value)} has no method {link.name!r}", hint=nearest(link.name, known))


def _begin(frame: Frame, context: Context, link: Link) -> Stream:
    """``device.main.begin(x.view())`` or ``begin_interleaved::<I, …>(a.view(), b.view())``."""
    if link.name not in ("begin", "begin_interleaved") or context.name not in ("main", "sub"):
        message = f"the {context.name} context has no method {link.name!r}"
        hint = (
            nearest(link.name, ["begin", "begin_interleaved"])
            if context.name in ("main", "sub")
            else "chains begin on device.main and device.sub"
        )
        raise frame.source.error(link.node, "RUST-002", message, hint=hint)
    wanted = 1 if link.name == "begin" else 2
    arguments = link.arguments or ()
    if len(arguments) != wanted:
        raise frame.source.error(
            link.node, "RUST-006", f"{link.name} takes {wanted} view{'s' * (wanted > 1)}, got {len(arguments)}", hint="x.view()"
        )
    tensors = [_viewed(frame, node, link) for node in arguments]
    if link.name == "begin":
        return Stream(context.name, tensors[0].name, tensors[0], (), tensors[0].dtype)
    types = link.types or ()
    if len(types) not in (1, 6):
        shown = "begin_interleaved::<Axis, _, _, _, _, _>(lhs, rhs)"
        raise frame.source.error(link.node, "RUST-003", f"begin_interleaved takes 6 type arguments, got {len(types)}", hint=shown)
    pair = BeginInterleaved(frame.types.axis(types[0]), tensors[1].name, tensors[0].name)
    return Stream(context.name, pair, tensors[0], (), tensors[0].dtype)


def _viewed(frame: Frame, node: Node, link: Link) -> Tensor:
    value = frame.value(node)
    if isinstance(value, View):
        return bind_tile(frame, value, link, None).tensor
    if isinstance(value, Tensor | Pending):
        raise frame.source.error(node, "RUST-006", f"{link.name} takes a view", hint=f"{frame.source.text_of(node)}.view()")
    raise frame.source.error(node, "RUST-006", f"{link.name} takes a view, got {described(value)}")


def _stream(frame: Frame, stream: Stream, link: Link, name: str | None, hint: TensorHint | None) -> Value:
    """One operation of a Tensor Unit chain; an operation that ends it emits the pass."""
    signature = STREAM_METHODS.get(link.name)
    if signature is None:
        _no_method(frame, stream, link, list(STREAM_METHODS))
    op = stream_op(_reader(frame), link, hint, stream.dtype)
    longer = stream.then(op, dtype_after(op, stream.dtype), link.node.start_byte)
    return _finish(frame, longer, op, link, name, hint) if signature.ends else longer


def _reader(frame: Frame) -> CallReader:
    return CallReader(
        frame.types,
        lambda node: frame.tensor(node, "a register tensor").name,
        frame.is_sub,
        lambda node: _destination(frame, node),
        frame.number,
    )


def _destination(frame: Frame, node: Node) -> CommitView:
    """The mutable view that `commit_view` writes."""
    value = frame.value(node)
    if isinstance(value, View) and value.mutable:
        return CommitView(value.tensor.name, value.tile)
    raise frame.source.error(node, "RUST-006", f"commit_view takes a mutable view, got {described(value)}", hint="output.view_mut()")


def _finish(frame: Frame, stream: Stream, op: Op, link: Link, name: str | None, hint: TensorHint | None) -> Value:
    if isinstance(op, CommitView):
        frame.emitter.add(TensorUnit(stream.context, stream.begin, stream.ops), link.node, stream.offsets)
        return None
    tier = next(t for kind, t in _TIER_OF_END.items() if isinstance(op, kind))
    let = frame.emitter.fresh(name or ("result" if tier == "Dm" else "operand"), tier.lower())
    frame.emitter.add(TensorUnit(stream.context, stream.begin, stream.ops, let), link.node, stream.offsets)
    given = hint.levels if hint is not None and hint.tier == tier else {}
    levels = {level: stream.levels().get(level) or given.get(level) for level in TIER_LEVELS[tier]}
    levels |= {field: getattr(op, field) for field in ("lane", "element") if hasattr(op, field)}
    if hint is not None:
        frame.emitter.annotations.append(Annotation(let, hint, link.node.start_byte))
    return Tensor(let, tier, stream.dtype or (hint.dtype if hint is not None else None), levels)

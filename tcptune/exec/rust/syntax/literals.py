"""Constants of the kernel API in Rust text: numbers, integer lists and values of enumerations."""

from __future__ import annotations

import re

from tree_sitter import Node

from tcptune.exec.rust.syntax.calls import path_of, referent
from tcptune.exec.rust.syntax.module import Module, integer_literal, nearest

_FLOAT = re.compile(r"([0-9][0-9_]*(?:\.[0-9_]*)?(?:[eE][+-]?[0-9_]+)?)_?(f32|f64)?\Z")
FLOAT_CONSTANTS = {
    "INFINITY": float("inf"),
    "NEG_INFINITY": float("-inf"),
    "NAN": float("nan"),
    "MAX": 3.4028234663852886e38,
    "MIN": -3.4028234663852886e38,
    "MIN_POSITIVE": 1.1754943508222875e-38,
    "EPSILON": 1.1920928955078125e-07,
}
"""Associated constants of `f32` that can stand for an operand."""

INTEGER_CONSTANTS = {"MAX": 2**31 - 1, "MIN": -(2**31)}
"""Associated constants of `i32`."""


def number(module: Module, node: Node) -> int | float | None:
    """Value of a number: literal, negated literal, constant of the file, `f32::…` or `i32::…`; None for other expressions."""
    source = module.source
    node = referent(node)
    text = source.text_of(node)
    if node.type == "unary_expression" and text.startswith("-"):
        inner = number(module, node.named_children[0])
        return None if inner is None else -inner
    if node.type == "integer_literal":
        value = integer_literal(text)
        if value is not None:
            return value
    if node.type in ("float_literal", "integer_literal"):
        match = _FLOAT.match(text)
        return None if match is None else float(match[1].replace("_", ""))
    path = path_of(source, node)
    if len(path) == 1:
        return module.constants.get(path[0])
    if len(path) == 2 and path[0] == "f32":
        return FLOAT_CONSTANTS.get(path[1])
    if len(path) == 2 and path[0] == "i32":
        return INTEGER_CONSTANTS.get(path[1])
    return None


def integer(module: Module, node: Node, what: str) -> int:
    """An integer argument.

    Raises:
        RustError: RUST-006, it is something else.
    """
    value = number(module, node)
    if isinstance(value, int):
        return value
    raise module.source.error(node, "RUST-006", f"{what} is an integer, got {module.source.text_of(node)[:40]!r}")


def integers(module: Module, node: Node, what: str) -> tuple[int, ...]:
    """A list of integers, ``[1, 2, 3, 0]``, behind any number of references."""
    inner = referent(node)
    if inner.type != "array_expression":
        raise module.source.error(
            node, "RUST-006", f"{what} is a list of integers, got {module.source.text_of(node)[:40]!r}", hint="[1, 2, 3, 0]"
        )
    return tuple(integer(module, item, what) for item in inner.named_children if item.type not in ("line_comment", "block_comment"))


def variant(module: Module, node: Node, enumeration: str, known: tuple[str, ...] = ()) -> str:
    """The variant of an enumeration that a path names: ``Interleaved`` for ``LaneMode::Interleaved`` (an import may drop the head).

    Raises:
        RustError: RUST-006, it names another enumeration, or a variant that is not among `known`.
    """
    path = path_of(module.source, node)
    text = module.source.text_of(node)[:60]
    if not path or (len(path) > 1 and path[-2] != enumeration):
        raise module.source.error(node, "RUST-006", f"expected a value of {enumeration}, got {text!r}", hint=f"{enumeration}::…")
    if known and path[-1] not in known:
        raise module.source.error(node, "RUST-006", f"{enumeration} has no variant {path[-1]!r}", hint=nearest(path[-1], list(known)))
    return path[-1]


def boolean(module: Module, node: Node, what: str) -> bool:
    """``true`` or ``false``."""
    if node.type == "boolean_literal":
        return module.source.text_of(node) == "true"
    raise module.source.error(node, "RUST-006", f"{what} is true or false, got {module.source.text_of(node)[:40]!r}")

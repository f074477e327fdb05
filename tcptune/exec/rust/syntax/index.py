"""Index expressions: integers that are linear in loop variables, as tile starts and loop bounds are (RUST-007)."""

from __future__ import annotations

import re
from collections.abc import Callable
from collections.abc import Mapping as Dict
from dataclasses import dataclass

from tree_sitter import Node

from tcptune.exec.rust.syntax.module import integer_literal
from tcptune.exec.rust.syntax.source import Source

_TERM = re.compile(r"(?:(\d+)\*)?([A-Za-z_]\w*)\Z")


@dataclass(frozen=True)
class Linear:
    """``constant + Σ coefficient · variable``; `terms` are sorted by first use and have no zero coefficient."""

    constant: int = 0
    terms: tuple[tuple[str, int], ...] = ()

    def __add__(self, other: Linear) -> Linear:
        sums = dict(self.terms)
        for name, coefficient in other.terms:
            sums[name] = sums.get(name, 0) + coefficient
        return Linear(self.constant + other.constant, tuple((n, c) for n, c in sums.items() if c))

    def times(self, factor: int) -> Linear:
        return Linear(self.constant * factor, tuple((n, c * factor) for n, c in self.terms if c * factor))

    def start(self) -> int | str:
        """The form that kernel steps carry: an integer, or a text like ``2*pair+1``."""
        if not self.terms:
            return self.constant
        text = "+".join(name if c == 1 else f"{c}*{name}" for name, c in self.terms)
        if self.constant:
            text += f"+{self.constant}"
        return text.replace("+-", "-")

    def renamed(self, names: Dict[str, str]) -> Linear:
        """The same with other variable names."""
        return Linear(self.constant, tuple((names.get(n, n), c) for n, c in self.terms))


def parse_start(text: int | str) -> Linear | None:
    """The linear form of a step's start (``2*pair+1``), or None if it is another expression."""
    if isinstance(text, int):
        return Linear(text)
    total = Linear()
    for part in re.findall(r"[+-]?[^+-]+", text.replace(" ", "")):
        sign = -1 if part.startswith("-") else 1
        body = part.lstrip("+-")
        if body.isdigit():
            total += Linear(int(body)).times(sign)
            continue
        swapped = re.sub(r"\A([A-Za-z_]\w*)\*(\d+)\Z", r"\2*\1", body)
        match = _TERM.match(swapped)
        if match is None:
            return None
        total += Linear(0, ((match[2], int(match[1] or 1)),)).times(sign)
    return total


def read_index(source: Source, node: Node, resolve: Callable[[Node], Linear]) -> Linear:
    """The linear form of a Rust expression; `resolve` gives the value of names and of `NAME::SIZE`.

    Raises:
        RustError: RUST-007, the expression is not linear in loop variables.
    """
    text = source.text_of(node)
    if node.type == "integer_literal" and (number := integer_literal(text)) is not None:
        return Linear(number)
    if node.type in ("identifier", "scoped_identifier", "type_identifier", "scoped_type_identifier"):
        return resolve(node)
    if node.type == "parenthesized_expression":
        return read_index(source, node.named_children[0], resolve)
    if node.type == "type_cast_expression" and (value := node.child_by_field_name("value")) is not None:
        return read_index(source, value, resolve)
    if node.type == "unary_expression" and text.startswith("-"):
        return read_index(source, node.named_children[0], resolve).times(-1)
    if node.type == "binary_expression":
        return _binary(source, node, resolve)
    raise source.error(node, "RUST-007", f"{text[:40]!r} is no index", hint="write integers, axis sizes and loop variables times constants")


def _binary(source: Source, node: Node, resolve: Callable[[Node], Linear]) -> Linear:
    left_node, right_node = node.child_by_field_name("left"), node.child_by_field_name("right")
    sign = node.child_by_field_name("operator")
    if left_node is None or right_node is None or sign is None:
        raise source.error(node, "RUST-001", "this expression is incomplete")
    left, right = read_index(source, left_node, resolve), read_index(source, right_node, resolve)
    operator = source.text_of(sign)
    if operator == "+":
        return left + right
    if operator == "-":
        return left + right.times(-1)
    if operator == "*" and not left.terms:
        return right.times(left.constant)
    if operator == "*" and not right.terms:
        return left.times(right.constant)
    if operator in ("/", "%") and not left.terms and not right.terms and right.constant > 0:
        return Linear(left.constant // right.constant if operator == "/" else left.constant % right.constant)
    raise source.error(node, "RUST-007", f"{source.text_of(node)[:40]!r} is not linear in loop variables")

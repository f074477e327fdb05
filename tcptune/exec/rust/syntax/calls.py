"""Method chains taken apart: ``root.field.method::<T, …>(a, …)…`` as a root expression and a list of links.

A chain nests its receivers to the left; it is unrolled in a loop, so that long chains cost no recursion.
"""

from __future__ import annotations

from dataclasses import dataclass

from tree_sitter import Node

from tcptune.exec.rust.syntax.source import Source


@dataclass(frozen=True)
class Link:
    """One step of a chain: a field access (`arguments` is None) or a method call.

    Attributes:
        node: the name, where errors point.
        types: the type arguments, None without ``::<…>``.
    """

    name: str
    node: Node
    types: tuple[Node, ...] | None = None
    arguments: tuple[Node, ...] | None = None

    @property
    def is_call(self) -> bool:
        return self.arguments is not None


def chain_of(source: Source, node: Node) -> tuple[Node, list[Link]]:
    """The root of a chain and its links, first link first; an expression that is no chain is its own root."""
    links: list[Link] = []
    while True:
        if node.type == "field_expression":
            field, value = node.child_by_field_name("field"), node.child_by_field_name("value")
            if field is None or value is None:
                break
            links.append(Link(source.text_of(field), field))
            node = value
            continue
        method = _method(source, node)
        if method is None:
            break
        link, node = method
        links.append(link)
    links.reverse()
    return node, links


def _method(source: Source, node: Node) -> tuple[Link, Node] | None:
    """The method call at `node` and its receiver, None if `node` is something else."""
    if node.type != "call_expression":
        return None
    function, types = callee(node)
    if function is None or function.type != "field_expression":
        return None
    field, value = function.child_by_field_name("field"), function.child_by_field_name("value")
    if field is None or value is None:
        return None
    return Link(source.text_of(field), field, types, arguments_of(node)), value


def callee(node: Node) -> tuple[Node | None, tuple[Node, ...] | None]:
    """The function that a call expression calls, without its type arguments, and these."""
    function = node.child_by_field_name("function")
    if function is not None and function.type == "generic_function":
        return function.child_by_field_name("function"), tuple(type_arguments(function))
    return function, None


def arguments_of(node: Node) -> tuple[Node, ...]:
    """The arguments of a call expression."""
    arguments = node.child_by_field_name("arguments")
    if arguments is None:
        return ()
    return tuple(c for c in arguments.named_children if c.type not in ("line_comment", "block_comment", "attribute_item"))


def referent(node: Node) -> Node:
    """The expression behind ``&``, ``&mut`` and round brackets."""
    while True:
        if node.type == "reference_expression":
            inner = node.child_by_field_name("value")
        elif node.type == "parenthesized_expression":
            inner = node.named_children[0] if node.named_child_count == 1 else None
        else:
            return node
        if inner is None:
            return node
        node = inner


def path_of(source: Source, node: Node) -> tuple[str, ...]:
    """The segments of a path: ``LaneMode::Interleaved`` is ("LaneMode", "Interleaved"); empty for other expressions."""
    if node.type in ("identifier", "type_identifier", "self"):
        return (source.text_of(node),)
    if node.type in ("scoped_identifier", "scoped_type_identifier"):
        name, path = node.child_by_field_name("name"), node.child_by_field_name("path")
        if name is None:
            return ()
        return (*(path_of(source, path) if path is not None else ()), source.text_of(name))
    if node.type in ("generic_type", "generic_type_with_turbofish"):
        head = node.child_by_field_name("type")
        return path_of(source, head) if head is not None else ()
    return ()


def type_arguments(node: Node) -> list[Node]:
    """The type arguments of a generic type or function, lifetimes and comments left out."""
    arguments = node.child_by_field_name("type_arguments")
    if arguments is None:
        return []
    return [c for c in arguments.named_children if c.type not in ("lifetime", "line_comment", "block_comment")]

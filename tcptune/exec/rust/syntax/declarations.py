"""Names of a file and where they are declared: which declaration a use sees, by Rust's rule of nested blocks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Generic, TypeVar

from tree_sitter import Node

T = TypeVar("T")
_CONTAINERS = ("block", "declaration_list", "source_file")


@dataclass(frozen=True)
class Declaration(Generic[T]):
    """One declaration; it is seen between the byte offsets of the block that holds it."""

    node: Node
    first: int
    last: int
    value: T


class Declarations(Generic[T]):
    """The declarations of one kind in a file; several may share a name in different blocks."""

    def __init__(self) -> None:
        self._by_name: dict[str, list[Declaration[T]]] = {}

    def add(self, name: str, node: Node, value: T) -> Declaration[T] | None:
        """Adds a declaration; an earlier one of this name in the same block is returned and kept."""
        container = container_of(node)
        declared = self._by_name.setdefault(name, [])
        clash = next((d for d in declared if (d.first, d.last) == (container.start_byte, container.end_byte)), None)
        if clash is None:
            declared.append(Declaration(node, container.start_byte, container.end_byte, value))
        return clash

    def find(self, name: str, at: int) -> T | None:
        """What `name` means at a byte offset: the declaration of the innermost block around it.

        A name that is declared once is seen from everywhere, as through a path or a `use`; of several that stand elsewhere none is seen.
        """
        declared = self._by_name.get(name, [])
        around = [d for d in declared if d.first <= at < d.last]
        if around:
            return min(around, key=lambda d: d.last - d.first).value
        return declared[0].value if len(declared) == 1 else None

    def values(self) -> Iterator[T]:
        for declared in self._by_name.values():
            for declaration in declared:
                yield declaration.value

    def __iter__(self) -> Iterator[str]:
        return iter(self._by_name)


def container_of(node: Node) -> Node:
    """The block, module body or file that holds `node`."""
    at = node
    while at.parent is not None:
        at = at.parent
        if at.type in _CONTAINERS:
            return at
    return at

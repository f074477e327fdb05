"""Arguments of the kernel API in Rust text: integers, lists of them and values of enumerations."""

from __future__ import annotations

from tree_sitter import Node

from tcptune.exec.rust.syntax.calls import path_of, referent
from tcptune.exec.rust.syntax.constants import Constants
from tcptune.exec.rust.syntax.module import Module, nearest


def integer(constants: Constants, node: Node, what: str) -> int:
    """An integer argument.

    Raises:
        RustError: RUST-006, it is something else.
    """
    value = constants.value(node)
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    raise constants.source.error(node, "RUST-006", f"{what} is an integer, got {constants.source.text_of(node)[:40]!r}")


def integers(constants: Constants, node: Node, what: str) -> tuple[int, ...]:
    """A list of integers, ``[1, 2, 3, 0]``, behind any number of references."""
    inner = referent(node)
    if inner.type != "array_expression":
        raise constants.source.error(
            node, "RUST-006", f"{what} is a list of integers, got {constants.source.text_of(node)[:40]!r}", hint="[1, 2, 3, 0]"
        )
    return tuple(integer(constants, item, what) for item in inner.named_children if item.type not in ("line_comment", "block_comment"))


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


def boolean(constants: Constants, node: Node, what: str) -> bool:
    """A constant that is true or false.

    Raises:
        RustError: RUST-006, it is something else.
    """
    value = constants.value(node)
    if isinstance(value, bool):
        return value
    raise constants.source.error(node, "RUST-006", f"{what} is true or false, got {constants.source.text_of(node)[:40]!r}")

"""Collects the items of a Rust kernel file.

Items are collected from everywhere in the file, whatever block they stand in, because the manual wraps its examples in `fn main`; code
for tests only is left out. Names resolve lazily, so their order does not matter.
"""

from __future__ import annotations

import re

from tree_sitter import Node

from tcptune.exec.rust.syntax.constants import Constants
from tcptune.exec.rust.syntax.module import Function, Module, integer_literal
from tcptune.exec.rust.syntax.source import Source
from tcptune.ir.mappings.axes import Axes

NOTE = re.compile(r"^//! tcptune (?P<key>[a-z]+)(?: (?P<name>\w+))?: (?P<value>.*)$", re.MULTILINE)
"""A header line that carries what Rust cannot say: ``//! tcptune KEY: …`` with KEY ``kernel``, ``oracle``, ``tolerance``, ``profile``,
or ``fill``, ``init``, ``values`` and the name of an input."""

_BODIES = (
    "source_file",
    "block",
    "function_item",
    "expression_statement",
    "mod_item",
    "declaration_list",
    "const_item",
    "impl_item",
)
_COMMENTS = ("line_comment", "block_comment")
_DEVICE = re.compile(r"#\[\s*(?:\w+\s*::\s*)*device\b(.*)\]\Z", re.DOTALL)
_TEST = re.compile(r"#\[\s*(cfg\s*\(\s*(all\s*\(\s*)?test\b|(\w+\s*::\s*)*test\b)")


def read_module(source: Source) -> Module:
    """Collects the items of `source`.

    Raises:
        RustError: an item is not of a form this reader knows.
    """
    module = Module(source, Axes())
    for match in NOTE.finditer(source.own_text):
        module.notes[match["key"], match["name"] or ""] = match["value"].strip()
    axes: list[Node] = []
    for node in _items(source):
        if node.type == "macro_invocation":
            axes.append(node)
        elif node.type == "type_item":
            _alias(module, node)
        elif node.type == "function_item":
            _function(module, node)
        else:
            _constant(module, node)
    sizes: dict[str, int] = {}
    for node in axes:
        _axes(module, node, sizes)
    with source.at(0):
        module.axes = Axes(sizes)
    return module


def _items(source: Source) -> list[Node]:
    """The `axes!` calls, type aliases, constants and functions of a file, in order; bodies of kernels are searched too."""
    found: list[Node] = []
    pending = [source.root]
    while pending:
        node = pending.pop()
        is_axes = node.type == "macro_invocation" and (name := node.child_by_field_name("macro")) is not None and name.text == b"axes"
        if node.type in ("mod_item", "function_item") and any(_TEST.match(source.text_of(a)) for a in attributes(node)):
            continue
        if is_axes or node.type in ("type_item", "function_item", "const_item"):
            found.append(node)
        if node.type in _BODIES:
            pending.extend(reversed(node.children))
    return found


def attributes(node: Node) -> list[Node]:
    """The attributes before an item, last one first."""
    found = []
    sibling = node.prev_sibling
    while sibling is not None and sibling.type in ("attribute_item", *_COMMENTS):
        if sibling.type == "attribute_item":
            found.append(sibling)
        sibling = sibling.prev_sibling
    return found


def _constant(module: Module, node: Node) -> None:
    name = node.child_by_field_name("name")
    text = module.source.text_of(name) if name is not None else "_"
    if text != "_":
        module.constants.add(text, node, node)


def _axes(module: Module, node: Node, sizes: dict[str, int]) -> None:
    """Reads ``axes![A = 8, B = A0 * 64]``; the sizes are constant expressions."""
    source = module.source
    tokens = [c for c in node.children[-1].children[1:-1] if c.type not in _COMMENTS]
    while tokens:
        end = next((i for i, token in enumerate(tokens) if token.type == ","), len(tokens))
        entry, tokens = tokens[:end], tokens[end + 1 :]
        if len(entry) < 3 or entry[0].type != "identifier" or entry[1].type != "=":
            raise source.error((entry or [node])[0], "RUST-005", "an axis is declared as NAME = SIZE", hint="axes![A = 2048, B = 8]")
        name, size = source.text_of(entry[0]), _axis_size(module, entry[2:], sizes)
        if size is None:
            raise source.error(entry[2], "RUST-005", f"the size of axis {name} must be an integer or a constant of this file")
        if sizes.setdefault(name, size) != size:
            raise source.error(entry[0], "RUST-005", f"axis {name} is declared with sizes {sizes[name]} and {size}")


def _axis_size(module: Module, tokens: list[Node], sizes: dict[str, int]) -> int | None:
    """Value of the tokens behind ``=``: macros keep no expressions, so their text is read as the value of a constant."""
    text = module.source.data[tokens[0].start_byte : tokens[-1].end_byte].decode()
    item = Source(f"const SIZE_OF_AXIS: usize = {text};", module.source.path, check=False)
    if item.root.has_error:
        return None
    value = item.root.children[0].child_by_field_name("value")
    at = tokens[0].start_byte
    constants = Constants(module, lambda name, _: sizes.get(name))
    reader = Constants(Module(item, Axes()), lambda name, _: sizes.get(name), lambda name: constants.item(name, at))
    size = reader.value(value) if value is not None else None
    return size if isinstance(size, int) and not isinstance(size, bool) else None


def _alias(module: Module, node: Node) -> None:
    name, value = node.child_by_field_name("name"), node.child_by_field_name("type")
    if name is None or value is None:
        return
    text = module.source.text_of(name)
    known = module.aliases.add(text, node, node)
    earlier = known.value.child_by_field_name("type") if known is not None else None
    if earlier is not None and module.source.text_of(earlier) != module.source.text_of(value):
        raise module.source.error(
            node, "RUST-005", f"type {text} is declared twice, as {module.source.text_of(earlier)} and {module.source.text_of(value)}"
        )


def _function(module: Module, node: Node) -> None:
    name = node.child_by_field_name("name")
    if name is None:
        return
    text = module.source.text_of(name)
    known = module.functions.add(text, node, Function(text, node, _chips(module, node)))
    if known is not None and text != "main":
        raise module.source.error(node, "RUST-005", f"function {text} is declared twice", hint="read the two kernels from separate files")


def _chips(module: Module, node: Node) -> int | None:
    """The N of the function's `#[device(chip = N)]` (1 where it is left out), None without the attribute."""
    for attribute in attributes(node):
        match = _DEVICE.match(module.source.text_of(attribute))
        if match is None:
            continue
        chips = re.search(r"\bchips?\s*=\s*(\w+)", match[1])
        if chips is None:
            return 1
        literal = integer_literal(chips[1])
        number = Constants(module, lambda name, _: None).item(chips[1], node.start_byte) if literal is None else literal
        if not isinstance(number, int) or isinstance(number, bool):
            raise module.source.error(attribute, "RUST-010", f"the chip count {chips[1]!r} is not an integer")
        return number
    return None

"""The items of a Rust kernel file: axes, type aliases, constants, functions and the notes in its header comment.

Items are collected from everywhere in the file, whatever block they stand in, because the manual wraps its examples in `fn main`.
Names resolve lazily, so their order does not matter.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from difflib import get_close_matches

from tree_sitter import Node

from tcptune.exec.rust.syntax.source import Source
from tcptune.ir.mappings.axes import Axes

NOTE = re.compile(r"^//! tcptune (?P<key>[a-z]+)(?: (?P<name>\w+))?: (?P<value>.*)$", re.MULTILINE)
"""A header line that carries what Rust cannot say: ``//! tcptune KEY: …`` with KEY ``kernel``, ``oracle``, ``tolerance``, or ``fill``,
``init``, ``values`` and the name of an input."""

_INTEGER = re.compile(r"(0[xX][0-9a-fA-F_]+|0[bB][01_]+|0[oO][0-7_]+|[0-9][0-9_]*)([iu](?:8|16|32|64|128|size))?\Z")


@dataclass(frozen=True)
class Function:
    """A function item; `chips` is the N of `#[device(chip = N)]`, None on a helper function."""

    name: str
    node: Node
    chips: int | None


@dataclass
class Module:
    """What a file declares.

    Attributes:
        axes: sizes from every `axes!`.
        aliases: node of the right-hand side by the name of the type alias.
        constants: values of `const` items.
        functions: by name.
        notes: (key, name or empty) to value, from the header comment.
    """

    source: Source
    axes: Axes
    aliases: dict[str, Node] = field(default_factory=dict)
    constants: dict[str, int] = field(default_factory=dict)
    functions: dict[str, Function] = field(default_factory=dict)
    notes: dict[tuple[str, str], str] = field(default_factory=dict)

    def device_function(self, name: str | None) -> Function:
        """The device function called `name`, or the only one.

        Raises:
            RustError: RUST-010, there is none, or several and no name was given.
        """
        devices = {n: f for n, f in self.functions.items() if f.chips is not None}
        if name is not None:
            if name not in devices:
                raise self.source.error(
                    0, "RUST-010", f"there is no device function {name!r}", hint=f"device functions: {', '.join(devices) or 'none'}"
                )
            return devices[name]
        if not devices:
            raise self.source.error(0, "RUST-010", "the file has no device function", hint="mark the kernel with #[device(chip = 1)]")
        if len(devices) > 1:
            second = list(devices.values())[1]
            raise self.source.error(
                second.node, "RUST-010", "the file has several device functions", hint=f"name one of {', '.join(devices)}"
            )
        return next(iter(devices.values()))


def read_module(source: Source) -> Module:
    """Collects the items of `source`.

    Raises:
        RustError: an item is not of a form this reader knows.
    """
    sizes: dict[str, int] = {}
    module = Module(source, Axes())
    for match in NOTE.finditer(source.text):
        module.notes[match["key"], match["name"] or ""] = match["value"].strip()
    _constants(source, source.root, module)
    for node in _items(source.root):
        if node.type == "macro_invocation":
            _axes(module, node, sizes)
        elif node.type == "type_item":
            _alias(module, node)
        elif node.type == "function_item":
            _function(module, node)
    with source.at(0):
        module.axes = Axes(sizes)
    return module


def _items(root: Node) -> list[Node]:
    """The `axes!` calls, type aliases and functions below `root`, in order; bodies of kernels are searched too."""
    found: list[Node] = []
    pending = [root]
    while pending:
        node = pending.pop()
        is_axes = node.type == "macro_invocation" and (name := node.child_by_field_name("macro")) is not None and name.text == b"axes"
        if is_axes or node.type in ("type_item", "function_item"):
            found.append(node)
        if node.type in ("source_file", "block", "function_item", "expression_statement", "mod_item", "declaration_list", "const_item"):
            pending.extend(reversed(node.children))
    return found


def _constants(source: Source, root: Node, module: Module) -> None:
    """Integer constants: literals, earlier constants and arithmetic on them; constants of other kinds are left alone."""
    for node in root.children:
        value = node.child_by_field_name("value") if node.type == "const_item" else None
        name = node.child_by_field_name("name")
        if value is None or name is None:
            continue
        number = _constant_value(source, value, module)
        if number is not None:
            module.constants[source.text_of(name)] = number


def _constant_value(source: Source, node: Node, module: Module) -> int | None:
    text = source.text_of(node)
    if node.type == "integer_literal":
        return integer_literal(text)
    if node.type == "identifier":
        return module.constants.get(text)
    if node.type == "parenthesized_expression":
        return _constant_value(source, node.named_children[0], module)
    if node.type != "binary_expression":
        return None
    left, right = (_constant_value(source, node.named_children[i], module) for i in (0, 1))
    sign = node.child_by_field_name("operator")
    if left is None or right is None or sign is None:
        return None
    operator = source.text_of(sign)
    if operator in ("/", "%"):
        return None if right == 0 else left // right if operator == "/" else left % right
    return {"+": left + right, "-": left - right, "*": left * right}.get(operator)


def integer_literal(text: str) -> int | None:
    """Value of a Rust integer literal (``2_048usize``), or None."""
    match = _INTEGER.match(text)
    return None if match is None else int(match[1].replace("_", ""), 0 if match[1][:2].lower() in ("0x", "0b", "0o") else 10)


def _axes(module: Module, node: Node, sizes: dict[str, int]) -> None:
    """Reads ``axes![A = 8, B = 512]``; the sizes are literals or constants."""
    source = module.source
    tokens = [c for c in node.children[-1].children[1:-1] if c.type not in ("line_comment", "block_comment")]
    while tokens:
        head = tokens[:3]
        if len(head) < 3 or head[0].type != "identifier" or head[1].type != "=":
            raise source.error(tokens[0], "RUST-005", "an axis is declared as NAME = SIZE", hint="axes![A = 2048, B = 8]")
        name, text = source.text_of(head[0]), source.text_of(head[2])
        size = integer_literal(text) if head[2].type == "integer_literal" else module.constants.get(text)
        if size is None or (len(tokens) > 3 and tokens[3].type != ","):
            raise source.error(head[2], "RUST-005", f"the size of axis {name} must be an integer or a constant of this file")
        if sizes.setdefault(name, size) != size:
            raise source.error(head[0], "RUST-005", f"axis {name} is declared with sizes {sizes[name]} and {size}")
        tokens = tokens[4:]


def _alias(module: Module, node: Node) -> None:
    name, value = node.child_by_field_name("name"), node.child_by_field_name("type")
    if name is None or value is None:
        return
    text = module.source.text_of(name)
    known = module.aliases.get(text)
    if known is not None and module.source.text_of(known) != module.source.text_of(value):
        raise module.source.error(
            node, "RUST-005", f"type {text} is declared twice, as {module.source.text_of(known)} and {module.source.text_of(value)}"
        )
    module.aliases[text] = value


def _function(module: Module, node: Node) -> None:
    name = node.child_by_field_name("name")
    if name is None:
        return
    text = module.source.text_of(name)
    if text in module.functions and text != "main":
        raise module.source.error(node, "RUST-005", f"function {text} is declared twice", hint="read the two kernels from separate files")
    module.functions[text] = Function(text, node, _chips(module.source, node))


def _chips(source: Source, node: Node) -> int | None:
    """The N of the function's `#[device(chip = N)]` (1 where it is left out), None without the attribute."""
    sibling = node.prev_sibling
    while sibling is not None and sibling.type in ("attribute_item", "line_comment", "block_comment"):
        if sibling.type == "attribute_item" and (match := re.match(r"#\[\s*device\b(.*)\]\Z", source.text_of(sibling), re.DOTALL)):
            chips = re.search(r"\bchips?\s*=\s*(\w+)", match[1])
            if chips is None:
                return 1
            number = integer_literal(chips[1])
            if number is None:
                raise source.error(sibling, "RUST-010", f"the chip count {chips[1]!r} is not an integer")
            return number
        sibling = sibling.prev_sibling
    return None


def nearest(name: str, known: list[str]) -> str | None:
    """A hint naming the known name closest to `name`, or listing a few."""
    close = get_close_matches(name, known, n=1, cutoff=0.5)
    if close:
        return f"did you mean {close[0]!r}?"
    return f"known: {', '.join(known[:12])}" if known else None

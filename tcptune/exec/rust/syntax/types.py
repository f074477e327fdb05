"""Type expressions of the Rust subset: mappings, element types and tensor types, with aliases and type parameters resolved.

A mapping is ``m![…]``, an alias of one, a type parameter bound to one, or ``_`` where the compiler infers it. A tensor type is
``Tier Tensor<D, levels…>``, behind any number of references; views (``DmTensorView``) read as the tensor they look at.
"""

from __future__ import annotations

import re
from collections.abc import Mapping as Dict
from collections.abc import Sequence
from dataclasses import dataclass, field

from tree_sitter import Node

from tcptune.errors import InputError, ParseError
from tcptune.exec.rust.syntax.calls import type_arguments
from tcptune.exec.rust.syntax.constants import Constants
from tcptune.exec.rust.syntax.module import Module, nearest
from tcptune.exec.rust.syntax.source import RustError, Source
from tcptune.ir.mappings.mapping import Mapping
from tcptune.ir.types import TIER_LEVELS, DType, StreamType, TensorType, dtype

_TENSOR = re.compile(r"(Host|Hbm|Dm|Trf|Vrf)Tensor(View|ViewMut)?\Z")
_STREAM = re.compile(r"((?:Begin|Fetch|Switch|Collect|Contract|Vector|Cast|Transpose|Commit)\w*)Tensor\Z")
_STREAM_LEVELS = ("chip", "cluster", "slice", "time", "packet")
_LANE_POSITIONS = ("ContractOuter", "ContractPacket", "ContractTime")
_SIZE = re.compile(r"\b(\w+)\s*::\s*SIZE\b")
_BRACED = re.compile(r"\{\s*([A-Za-z_]\w*)\s*\}")
TypeArgument = Mapping | DType | int | str
"""What a type parameter can stand for: a mapping, an element type, a constant, or the name of an axis."""


@dataclass(frozen=True)
class TensorHint:
    """A tensor or stream type as far as the text gives it; None stands for ``_``.

    `tier` is the tier of a tensor, or the position of a stream; `context` is that of a stream.
    """

    tier: str
    dtype: DType | None
    levels: Dict[str, Mapping | None]
    context: str = "main"

    @property
    def is_stream(self) -> bool:
        return self.tier not in TIER_LEVELS

    def part(self, position: int, count: int) -> None:
        """No tuple type: its parts are unknown."""

    def level(self, name: str) -> Mapping | None:
        return self.levels.get(name)

    def complete(self) -> TensorType | None:
        """The tensor type, if nothing is left open."""
        known = {name: m for name, m in self.levels.items() if m is not None}
        if self.dtype is None or len(known) != len(self.levels) or self.is_stream:
            return None
        return TensorType(self.tier, self.dtype, **known)

    def stream(self) -> StreamType | None:
        """The stream type, if nothing is left open."""
        known = {name: m for name, m in self.levels.items() if m is not None}
        if self.dtype is None or len(known) != len(self.levels) or not self.is_stream:
            return None
        return StreamType(self.tier, self.dtype, **known)


@dataclass(frozen=True)
class TupleHint:
    """A tuple type, as a function returns several tensors by."""

    items: tuple[TensorHint | TupleHint | None, ...]

    def part(self, position: int, count: int) -> TensorHint | TupleHint | None:
        """The type of one of `count` parts; None if there are not so many."""
        return self.items[position] if len(self.items) == count else None


@dataclass
class TypeReader:
    """Reads type expressions inside one function.

    Attributes:
        parameters: what the type parameters of a helper function stand for under its call.
        unbound: type parameters that the call does not determine; using one is an error, not having one is none.
    """

    module: Module
    parameters: Dict[str, TypeArgument] = field(default_factory=dict)
    unbound: frozenset[str] = frozenset()
    open_aliases: tuple[str, ...] = ()

    def mapping(self, node: Node) -> Mapping:
        """The mapping that a type expression names.

        Raises:
            RustError: RUST-005 unknown name, RUST-004 for ``_``, MAP rules of the grammar with the exact column.
            LocatedViolation: a constructor of the mapping refuses its operands (MAP-010, MAP-011, …).
        """
        source = self.module.source
        if node.type == "macro_invocation":
            return self._macro(node)
        if node.type in ("bracketed_type", "parenthesized_type", "block", "tuple_type") and node.named_child_count == 1:
            return self.mapping(node.named_children[0])
        if node.type == "generic_type":
            return self._applied(node)
        name = source.text_of(node)
        if name == "_":
            raise source.error(node, "RUST-004", "this mapping cannot be inferred here", hint="write it out, or annotate the `let`")
        if node.type not in ("type_identifier", "identifier", "primitive_type"):
            raise source.error(node, "RUST-005", f"{name!r} is no mapping", hint="write m![…] or the name of a type alias")
        if name in self.unbound:
            message = f"the call does not determine the type parameter {name}"
            raise source.error(node, "RUST-004", message, hint="write it in the call: helper::<…>(…)")
        found = self.named(name, node.start_byte)
        if isinstance(found, Mapping):
            return found
        known = [*self.parameters, *self.module.aliases]
        message = f"there is no type alias {name!r}" if found is None else f"{name!r} is no mapping"
        hint = f"an axis is written m![{name}]" if name in self.module.axes else nearest(name, known)
        raise source.error(node, "RUST-005", message, hint=hint)

    def named(self, name: str, at: int) -> TypeArgument | None:
        """What a type parameter or alias stands for at a byte offset; None where there is none."""
        if name in self.parameters:
            return self.parameters[name]
        alias = self._alias(name, at, ())
        return None if alias is None else alias[0].argument(alias[1])

    def _alias(self, name: str, at: int, arguments: Sequence[Node]) -> tuple[TypeReader, Node] | None:
        """What the alias that `name` means stands for, and the reader that knows its type parameters; None where there is none.

        Raises:
            RustError: RUST-005, it is defined by itself; RUST-003, the number of type arguments is wrong.
        """
        source = self.module.source
        item = self.module.aliases.find(name, at)
        value = item.child_by_field_name("type") if item is not None else None
        if item is None or value is None:
            return None
        if name in self.open_aliases:
            raise source.error(value, "RUST-005", f"type {name} is defined by itself")
        declared = item.child_by_field_name("type_parameters")
        names = [] if declared is None else parameter_names(source, declared)
        if len(arguments) != len(names):
            at_fault = arguments[-1] if arguments else value
            raise source.error(at_fault, "RUST-003", f"type {name} takes {len(names)} type arguments, got {len(arguments)}")
        bound = {n: self.argument(a) for n, a in zip(names, arguments, strict=True)}
        return TypeReader(self.module, bound, open_aliases=(*self.open_aliases, name)), value

    def _applied(self, node: Node) -> Mapping:
        """The mapping that an alias with type arguments stands for: ``Padded<m![A]>``."""
        source = self.module.source
        head = node.child_by_field_name("type")
        name = source.text_of(head) if head is not None else ""
        alias = self._alias(name, node.start_byte, type_arguments(node))
        if alias is None:
            raise source.error(node, "RUST-005", f"there is no type alias {name!r}", hint=nearest(name, [*self.module.aliases]))
        return alias[0].mapping(alias[1])

    def argument(self, node: Node) -> TypeArgument:
        """A type argument of any kind: element type, integer constant, axis or mapping."""
        text = self.module.source.text_of(node)
        number = self._constant(node)
        if number is not None:
            return number
        if self._is_dtype(text):
            return dtype(text)
        if text in self.module.axes and self.module.aliases.find(text, node.start_byte) is None:
            return text
        return self.mapping(node)

    @property
    def constants(self) -> Constants:
        """Reader of constant expressions that knows the sizes of mappings and the constant type parameters."""
        return Constants(self.module, self.size_of, self._number)

    def _number(self, name: str) -> int | None:
        bound = self.parameters.get(name)
        return bound if isinstance(bound, int) else None

    def _constant(self, node: Node) -> int | None:
        """The integer that a type argument such as ``4``, ``N`` or ``{ N * 2 }`` gives."""
        if node.type in ("type_identifier", "identifier"):
            name = self.module.source.text_of(node)
            value = self._number(name) if name in self.parameters else self.constants.item(name, node.start_byte)
        elif node.type in ("integer_literal", "block"):
            value = self.constants.value(node)
        else:
            return None
        return value if isinstance(value, int) else None

    @staticmethod
    def _is_dtype(text: str) -> bool:
        try:
            dtype(text)
        except InputError:
            return False
        return True

    def _macro(self, node: Node) -> Mapping:
        """The mapping inside ``m![…]``; an error points at the offending character."""
        source = self.module.source
        macro = node.child_by_field_name("macro")
        tokens = node.children[-1]
        if macro is None or source.text_of(macro) != "m":
            raise source.error(node, "RUST-005", f"{source.text_of(node)[:40]!r} is no mapping", hint="mappings are written m![…]")
        start = tokens.start_byte + 1
        text = _without_comments(source.data[start : tokens.end_byte - 1].decode())
        text = _SIZE.sub(lambda match: self._size(node, match[1]).ljust(len(match[0])), text)
        aliases = {name: value for name in _BRACED.findall(text) if isinstance(value := self._splice(name, node), Mapping | int)}
        with source.at(node):
            try:
                return self.module.axes.mapping(text, aliases or None)
            except ParseError as cause:
                offset = start + len(text[: cause.column].encode())
                raise RustError(source, offset, cause.rule or "MAP-018", cause.message, hint=cause.hint) from cause

    def _splice(self, name: str, node: Node) -> TypeArgument | None:
        if name in self.parameters:
            return self.parameters[name]
        value = self.constants.item(name, node.start_byte)
        return value if isinstance(value, int) else self.named(name, node.start_byte)

    def _size(self, node: Node, name: str) -> str:
        size = self.size_of(name, node.start_byte)
        if size is not None:
            return str(size)
        raise self.module.source.error(
            node, "RUST-005", f"{name!r} has no SIZE", hint=nearest(name, [*self.module.axes, *self.module.aliases])
        )

    def size_of(self, name: str, at: int) -> int | None:
        """The number `NAME::SIZE` at a byte offset, None if the name is neither axis nor mapping."""
        bound = self.parameters.get(name)
        if isinstance(bound, str):
            return self.module.axes[bound]
        if name in self.module.axes:
            return self.module.axes[name]
        value = self.named(name, at)
        return value.size if isinstance(value, Mapping) else None

    def dtype(self, node: Node) -> DType:
        """The element type that a type expression names."""
        text = self.module.source.text_of(node)
        bound = self.named(text, node.start_byte)
        if isinstance(bound, DType):
            return bound
        with self.module.source.at(node):
            try:
                return dtype(text)
            except InputError as cause:
                raise self.module.source.error(node, "RUST-005", cause.message, hint=cause.hint) from cause

    def axis(self, node: Node) -> str:
        """The axis that a type argument such as the I of `begin_interleaved::<I, …>` names."""
        name = self.module.source.text_of(node)
        bound = self.parameters.get(name)
        if isinstance(bound, str):
            return bound
        if name not in self.module.axes:
            raise self.module.source.error(node, "MAP-003", f"axis {name!r} is not declared", hint=nearest(name, list(self.module.axes)))
        return name

    def hint(self, node: Node) -> TensorHint | TupleHint | None:
        """The tensor type, or tuple of them, that an annotation gives; None if it is another type."""
        if node.type == "tuple_type":
            return TupleHint(tuple(self.hint(child) for child in node.named_children))
        return self.tensor(node)

    def tensor(self, node: Node) -> TensorHint | None:
        """The tensor or stream type that an annotation gives, an alias of one too; None if it is another type.

        Raises:
            RustError: RUST-003, the number of type arguments is wrong.
        """
        source = self.module.source
        while node.type == "reference_type":
            inner = node.child_by_field_name("type")
            if inner is None:
                return None
            node = inner
        head = node.child_by_field_name("type") if node.type == "generic_type" else node
        match = _TENSOR.match(source.text_of(head)) if head is not None else None
        if match is None:
            stream = _STREAM.match(source.text_of(head)) if head is not None and node.type == "generic_type" else None
            if stream is not None:
                return self._stream(node, stream[1])
            alias = None if head is None else self._tensor_alias(source.text_of(head), node)
            return None if alias is None else alias[0].tensor(alias[1])
        tier = match[1]
        names = ("dtype", *TIER_LEVELS[tier])
        if node.type != "generic_type":
            return TensorHint(tier, None, dict.fromkeys(TIER_LEVELS[tier]))
        arguments = type_arguments(node)
        if len(arguments) != len(names):
            signature = f"{match[0]}<{', '.join(n.capitalize() for n in names)}>"
            raise source.error(
                arguments[-1] if arguments else node,
                "RUST-003",
                f"{match[0]} takes {len(names)} type arguments, got {len(arguments)}",
                hint=signature,
            )
        return self._hint(tier, names[1:], arguments)

    def _stream(self, node: Node, position: str) -> TensorHint | None:
        """``CollectTensor<'l, { Tu::Main }, D, Chip, Cluster, Slice, Time, Packet>``; what follows the levels is the engine's."""
        arguments = type_arguments(node)
        names = (*_STREAM_LEVELS[:3], "lane", *_STREAM_LEVELS[3:]) if position in _LANE_POSITIONS else _STREAM_LEVELS
        if position == "ContractOuter" and len(arguments) > 2:  # its second element type is that of the register file
            arguments = [*arguments[:2], *arguments[3:]]
        if len(arguments) < len(names) + 2:
            return None
        context = "sub" if "Sub" in self.module.source.text_of(arguments[0]) else "main"
        return self._hint(position, names, arguments[1 : len(names) + 2], context)

    def _hint(self, tier: str, names: Sequence[str], arguments: Sequence[Node], context: str = "main") -> TensorHint:
        """A type from its element type and the mappings of its levels; ``_`` leaves one open."""
        open_ = [self.module.source.text_of(a) == "_" for a in arguments]
        levels = {n: None if o else self.mapping(a) for n, a, o in zip(names, arguments[1:], open_[1:], strict=True)}
        return TensorHint(tier, None if open_[0] else self.dtype(arguments[0]), levels, context)

    def _tensor_alias(self, name: str, node: Node) -> tuple[TypeReader, Node] | None:
        """The alias that a type expression names, unless it stands for a mapping or an element type."""
        item = self.module.aliases.find(name, node.start_byte)
        value = item.child_by_field_name("type") if item is not None else None
        if value is None or name in self.parameters or value.type not in ("generic_type", "type_identifier", "reference_type"):
            return None
        return self._alias(name, node.start_byte, type_arguments(node) if node.type == "generic_type" else ())


def parameter_names(source: Source, node: Node) -> list[str]:
    """Names of the type and constant parameters in ``<'l, E: M, const N: usize>``, lifetimes left out."""
    names = []
    for child in node.named_children:
        if child.type in ("lifetime", "lifetime_parameter", "line_comment", "block_comment"):
            continue
        name = child.child_by_field_name("name") or child.child_by_field_name("left") or child
        if name.type != "lifetime":
            names.append(source.text_of(name))
    return names


def _without_comments(text: str) -> str:
    """`text` with comments blanked out, so that columns stay."""
    return re.sub(r"//[^\n]*|/\*.*?\*/", lambda match: re.sub(r"[^\n]", " ", match[0]), text, flags=re.DOTALL)

"""Rust text of a Tensor Unit pass: one method call an operation, by the reader's table of signatures."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tcptune.exec.rust.stream_types import dtype_after
from tcptune.exec.rust.syntax.signatures import DIVISION, MULTIPLIERS, STREAM_METHODS, Signature
from tcptune.ir.kernels.ops import CommitView, Op, SwitchConfig, TileSpec, ToVrf
from tcptune.ir.types import DType
from tcptune.reports.rust.layout import Call, Chain, Expr, Struct
from tcptune.reports.rust.names import Aliases
from tcptune.reports.rust.operands import guard_text, operand_text, tag_mode_text


@dataclass(frozen=True)
class ChainWriter:
    """Writes operations.

    Attributes:
        aliases: texts of mappings.
        name_of: identifier of a tensor.
        start_text: a tile's start in Rust.
        view_mut: the mutable view of a tensor or mutable tile, by name.
    """

    aliases: Aliases
    name_of: Callable[[str], str]
    start_text: Callable[[int | str], str]
    view_mut: Callable[[str], Chain]

    def calls(self, ops: tuple[Op, ...], dtype: DType | None) -> tuple[Call, ...]:
        """The method calls of a chain that begins with elements of type `dtype`."""
        calls = []
        for op in ops:
            calls.append(self._call(op, dtype))
            dtype = dtype_after(op, dtype)
        return tuple(calls)

    def _call(self, op: Op, dtype: DType | None) -> Call:
        signature = STREAM_METHODS[op.NAME]
        if isinstance(op, CommitView):
            return Call(op.NAME, (), (self._destination(op),))
        if isinstance(op, ToVrf):
            return Call(op.NAME, self._types(op, signature), ("&mut device.sub",) if op.sub_arg else ())
        arguments: list[Expr] = []
        for name, kind in signature.arguments:
            arguments.extend(self._argument(op, name, kind, signature, dtype))
        return Call(op.NAME, self._types(op, signature), tuple(arguments))

    def _types(self, op: Op, signature: Signature) -> tuple[str, ...]:
        texts = []
        for name, kind in signature.types:
            value = getattr(op, name)
            role = op.NAME.title().replace("_", "") + name.capitalize()
            texts.append(self.aliases.mapping(value, role) if kind == "mapping" else str(value))
        return (*texts, *["_"] * signature.inferred)

    def _argument(self, op: Op, name: str, kind: str, signature: Signature, dtype: DType | None) -> list[Expr]:
        if kind == "function":
            return [_operator(op, signature, dtype)]
        if kind == "operands":
            return self._operands(op)
        if kind == "flags":
            flags = [getattr(op, f"group{i}_apply") for i in (0, 1)]
            return [] if flags == [None, None] else ["true" if flag else "false" for flag in flags]
        value: Any = getattr(op, name)
        if kind == "tensor":
            return [f"&{self.name_of(value)}"]
        if kind == "lane_mode":
            return [f"LaneMode::{value}"]
        if kind == "mode":
            return [f"{signature.modes}::{value}"]
        if kind == "switch":
            return [_switch(value)]
        if kind == "tag":
            return [tag_mode_text(value)]
        return [guard_text(value)] if kind == "guard" else [str(value)]

    def _operands(self, op: Any) -> list[Expr]:
        if op.operand is not None:
            return [operand_text(op.operand, self.name_of)]
        return [operand_text(group, self.name_of) for group in op.groups]

    def _destination(self, op: CommitView) -> Chain:
        view = self.view_mut(op.into or "output")
        if op.tile is None:
            return view
        return Chain(view.root, (*view.calls, self.tile_call(op.tile)))

    def tile_call(self, tile: TileSpec, method: str = "tile") -> Call:
        """``.tile::<I, LEN, E2>(start)``."""
        types = (self.aliases.mapping(tile.axis, "TileAxis"), str(tile.len), self.aliases.mapping(tile.element, "Tile"))
        return Call(method, types, (self.start_text(tile.start),))


def _operator(op: Any, signature: Signature, dtype: DType | None) -> str:
    """``ClipBinaryOpI32::Max``, ``FpBinaryOp::MulF(FpMulAlu::Mul0)``."""
    suffix = ("F32" if dtype is not None and dtype.is_float else "I32") if signature.typed else ""
    function = getattr(op, "fn", DIVISION)
    unit = getattr(op, "alu", None)
    carried = f"({MULTIPLIERS.get(function, 'FpMulAlu')}::{unit})" if unit is not None else ""
    return f"{signature.enumeration}{suffix}::{function}{carried}"


def _switch(config: SwitchConfig) -> Expr:
    sizes = config.to_json()[config.kind]
    return (
        Struct(f"SwitchConfig::{config.kind}", tuple((name, str(size)) for name, size in sizes.items()))
        if sizes
        else f"SwitchConfig::{config.kind}"
    )

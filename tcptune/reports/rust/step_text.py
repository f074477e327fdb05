"""Rust statements for the single steps of a kernel, and the comment above each."""

from __future__ import annotations

from functools import singledispatchmethod
from typing import TYPE_CHECKING

from tcptune.errors import InputError
from tcptune.exec.program.checked import CheckedStep
from tcptune.ir.kernels import steps as s
from tcptune.ir.kernels.ops import ContractOuter, ToTrf, ToVrf
from tcptune.ir.kernels.steps import PlanEntry
from tcptune.reports.rust.layout import Block, Call, Chain, Sequence, binding, statement
from tcptune.reports.rust.names import Identifiers

if TYPE_CHECKING:
    from tcptune.reports.rust.device import _DeviceWriter

_CONTEXT = "&mut device.{}"


def commented(checked: CheckedStep, names: Identifiers) -> str:
    """One line on what a step does."""
    step = checked.step
    if isinstance(step, s.TensorUnit):
        return _pass_comment(step, names)
    if isinstance(step, s.Loop):
        return f"{'Unrolled loop' if step.unroll else 'Loop'} over {names(step.var)}"
    if isinstance(step, s.ToDm | s.ToHbm):
        tier = checked.sources[0].type.tier.upper() if checked.sources else "?"
        return f"{tier.replace('DM', 'DM')} to {'DM' if isinstance(step, s.ToDm) else 'HBM'}: {names(step.source)}"
    return _COMMENTS.get(type(step), step.NAME.replace("_", " ").capitalize())


_COMMENTS = {
    s.NewDm: "Destination in DM",
    s.NewHbm: "Destination in HBM",
    s.Tile: "Tile",
    s.ChipTile: "Tile over chips",
    s.ClusterTile: "Tile over clusters",
    s.ToHbmView: "DM to HBM, into the result",
    s.Reshape: "The same bytes under other mappings",
    s.Redistribute: "Redistribution in one DMA",
}


def _pass_comment(step: s.TensorUnit, names: Identifiers) -> str:
    where = step.context.capitalize()
    for op in step.ops:
        if isinstance(op, ContractOuter):
            source = step.begin if isinstance(step.begin, str) else step.begin.rhs
            return f"{where}: contract {names(source)} with {names(op.trf)}"
    end = step.ops[-1] if step.ops else None
    if isinstance(end, ToTrf | ToVrf):
        return f"{where}: stage {names(step.let or '')} in the {'TRF' if isinstance(end, ToTrf) else 'VRF'}"
    vector = any(op.NAME == "vector_init" for op in step.ops)
    return f"{where}: {'vector operations' if vector else 'copy through the Tensor Unit'}"


class StepText:
    """Writes one step at a time for a `_DeviceWriter`."""

    def __init__(self, writer: _DeviceWriter) -> None:
        self.writer = writer

    def lines(self, checked: CheckedStep, indent: int) -> list[str]:
        """The statement of a step."""
        return self._lines(checked.step, indent)

    @singledispatchmethod
    def _lines(self, step: s.KernelStep, indent: int) -> list[str]:
        raise InputError(f"step {step.NAME!r} has no place in a device function", hint="transfers with the host belong to the host program")

    def _source(self, name: str) -> str:
        return self.writer.names(name)

    def move(self, step: s.ToHbm) -> Chain:
        """``x.to_hbm(&mut device.tdma)``."""
        return Chain(self._source(step.source), (Call("to_hbm", (), (_CONTEXT.format(step.context),)),))

    @_lines.register
    def _(self, step: s.ToHbm, indent: int) -> list[str]:
        if self.writer.types[step.source].tier == "Host":
            raise InputError("an upload from the host has no place in a device function")
        return self.writer.bind(step.let, self.move(step), indent, self.writer.types[step.let])

    @_lines.register
    def _(self, step: s.ToDm, indent: int) -> list[str]:
        writer = self.writer
        result, source = writer.types[step.let], writer.types[step.source]
        context = (_CONTEXT.format(step.context),)
        if source.tier == "Hbm" and result.chip.equivalent(source.chip):
            types = (writer.aliases.level(step.cluster), writer.aliases.level(step.slice), writer.aliases.level(step.element))
            return writer.bind(step.let, Chain(self._source(step.source), (Call("to_dm", types, context),)), indent)
        return writer.bind(step.let, Chain(self._source(step.source), (Call("to_dm", (), context),)), indent, result)

    @_lines.register
    def _(self, step: s.ToHbmView, indent: int) -> list[str]:
        writer = self.writer
        arguments = (_CONTEXT.format(step.context), writer.view_mut(step.into))
        view = writer.view(step.source)
        return statement(Chain(view.root, (*view.calls, Call("to_hbm_view", (), arguments))), indent)

    @_lines.register
    def _(self, step: s.NewDm, indent: int) -> list[str]:
        return self.writer.bind(step.let, "DmTensor::new()", indent, self.writer.types[step.let])

    @_lines.register
    def _(self, step: s.NewHbm, indent: int) -> list[str]:
        return self.writer.bind(step.let, "HbmTensor::new()", indent, self.writer.types[step.let])

    @_lines.register
    def _(self, step: s.Reshape, indent: int) -> list[str]:
        writer = self.writer
        _, arguments = writer.annotation(writer.types[step.let])
        call = Chain(writer.names(step.source), (Call("reshape", arguments[1:]),))
        return writer.bind(step.let, Block("unsafe", call) if step.unsafe else call, indent)

    @_lines.register(s.Tile)
    @_lines.register(s.ChipTile)
    @_lines.register(s.ClusterTile)
    def _(self, step: s.Tile | s.ChipTile | s.ClusterTile, indent: int) -> list[str]:
        writer = self.writer
        view = writer.view_mut(step.source) if step.mutable else writer.view(step.source)
        narrowed = step.element if isinstance(step, s.Tile) else step.chip if isinstance(step, s.ChipTile) else step.cluster
        types = (writer.aliases.mapping(step.axis, "TileAxis"), str(step.len), writer.aliases.mapping(narrowed, "Tile"))
        call = Call(step.NAME, types, (writer.index_text(step.start),))
        return writer.bind(step.let, Chain(view.root, (*view.calls, call)), indent)

    @_lines.register
    def _(self, step: s.Redistribute, indent: int) -> list[str]:
        writer = self.writer
        plan = tuple(self._plan(entry) for entry in step.plan)
        context = _CONTEXT.format(step.context)
        if step.into is not None:
            view = writer.view_mut(step.into.tensor)
            target = Chain(view.root, (*view.calls, writer.writer.tile_call(step.into.tile)))
            return statement(Chain(self._source(step.source), (*plan, Call("to_dm_view", (), (context, target)))), indent)
        result, source = writer.types[step.let or ""], writer.types[step.source]
        kept = all(getattr(result, level).equivalent(getattr(source, level)) for level in ("chip", "cluster", "slice"))
        types = (writer.aliases.level(result.element),) if kept else ()
        chain = Chain(self._source(step.source), (*plan, Call("to_dm", types, (context,))))
        return writer.bind(step.let or "", chain, indent, None if kept else result)

    def _plan(self, entry: PlanEntry) -> Call:
        if entry.op == "cluster_swap":
            return Call(entry.op)
        if entry.op == "chip_shuffle":
            return Call(entry.op, (), (_list(entry.sources),))
        return Call(entry.op, self._axis_and_output(entry), (_list(entry.indices),))

    def _axis_and_output(self, entry: PlanEntry | s.AsymmetricChipSlice | s.AsymmetricClusterSlice) -> tuple[str, ...]:
        pair = ((entry.axis, "SliceAxis"), (entry.output, "SliceOutput"))
        return tuple(self.writer.aliases.mapping(mapping, role) for mapping, role in pair if mapping is not None)

    @_lines.register(s.AsymmetricChipSlice)
    @_lines.register(s.AsymmetricClusterSlice)
    def _(self, step: s.AsymmetricChipSlice | s.AsymmetricClusterSlice, indent: int) -> list[str]:
        arguments = (_CONTEXT.format(step.context), f"&{_list_text(step.indices)}")
        chain = Chain(self._source(step.source), (Call(step.NAME, self._axis_and_output(step), arguments),))
        return self.writer.bind(step.let, chain, indent)

    @_lines.register
    def _(self, step: s.HbmChipShuffle, indent: int) -> list[str]:
        arguments = (_CONTEXT.format(step.context), f"&{_list_text(step.sources)}")
        return self.writer.bind(step.let, Chain(self._source(step.source), (Call(step.NAME, (), arguments),)), indent)

    @_lines.register(s.DmaGatherScaled)
    @_lines.register(s.DmaGatherUnscaled)
    def _(self, step: s.DmaGatherScaled | s.DmaGatherUnscaled, indent: int) -> list[str]:
        chain = Chain(self._source(step.source), (Call(step.NAME, (), (self._reference(step.index),)),))
        return self.writer.bind(step.let, chain, indent, self.writer.types[step.let])

    @_lines.register(s.DmaScatter)
    @_lines.register(s.DmaScatterUnscaled)
    def _(self, step: s.DmaScatter | s.DmaScatterUnscaled, indent: int) -> list[str]:
        types = (self.writer.aliases.mapping(step.key, "ScatterKey"), "_", "_")
        arguments = (self._reference(step.index), self._reference(step.into, "&mut "))
        return statement(Chain(self._source(step.source), (Call(step.NAME, types, arguments),)), indent)

    def _reference(self, name: str, sign: str = "&") -> str:
        """A tensor as an argument; parameters are references already."""
        return self.writer.names(name) if name in self.writer.inputs else f"{sign}{self.writer.names(name)}"

    @_lines.register
    def _(self, step: s.TensorUnit, indent: int) -> list[str]:
        chain = self.writer.chain(step)
        if step.let is None:
            return statement(chain, indent)
        return binding(self.writer.names(step.let), None, chain, indent)


def _list(numbers: tuple[int, ...]) -> Sequence:
    return Sequence(tuple(str(n) for n in numbers))


def _list_text(numbers: tuple[int, ...]) -> str:
    return f"[{', '.join(map(str, numbers))}]"

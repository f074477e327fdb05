"""Reads method calls on tensors, views and redistribution plans: memory moves, tiles, reshapes, gathers and scatters."""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Mapping as Dict
from dataclasses import replace
from typing import NoReturn

from tree_sitter import Node

from tcptune.exec.rust.frame import Frame
from tcptune.exec.rust.syntax.calls import Link, referent
from tcptune.exec.rust.syntax.literals import integers
from tcptune.exec.rust.syntax.module import nearest
from tcptune.exec.rust.syntax.types import TensorHint
from tcptune.exec.rust.values import Plan, Tensor, Value, View, described
from tcptune.ir.kernels.ops import TileSpec
from tcptune.ir.kernels.steps import (
    AsymmetricChipSlice,
    AsymmetricClusterSlice,
    ChipTile,
    ClusterTile,
    DmaGatherScaled,
    DmaGatherUnscaled,
    DmaScatter,
    DmaScatterUnscaled,
    HbmChipShuffle,
    PlanEntry,
    Redistribute,
    Reshape,
    Tile,
    TileTarget,
    ToDm,
    ToHbm,
    ToHbmView,
    ToHost,
)
from tcptune.ir.mappings.mapping import Mapping
from tcptune.ir.types import TIER_LEVELS
from tcptune.model.redistribution import STAGES

DM_LEVELS = ("chip", "cluster", "slice", "element")
Levels = dict[str, Mapping | None]


def memory_call(frame: Frame, receiver: Tensor | View | Plan, link: Link, name: str | None, hint: TensorHint | None) -> Value:
    """The result of a method on a tensor, a view or a plan.

    Raises:
        RustError: RUST-002 unknown method, RUST-003 and RUST-006 wrong type arguments or arguments, RUST-004 a mapping nothing determines.
    """
    source = receiver.source if isinstance(receiver, Plan) else receiver.tensor if isinstance(receiver, View) else receiver
    if link.name in STAGES:
        return _plan_step(frame, receiver, source, link)
    if isinstance(receiver, Plan):
        if link.name not in _PLAN_ENDS:
            _unknown(frame, link, receiver, [*STAGES, *_PLAN_ENDS])
        return _PLAN_ENDS[link.name](frame, receiver, link, name, hint)
    if link.name in ("view", "view_mut"):
        _arity(frame, link, 0)
        return View(source, link.name == "view_mut")
    if link.name in _TILES:
        if not isinstance(receiver, View):
            raise frame.source.error(link.node, "RUST-002", f"{link.name} is a method of views", hint=f".view().{link.name}::<…>(…)")
        return _tile(frame, receiver, link, name)
    handler = _MOVES.get(link.name)
    if handler is None:
        _unknown(frame, link, receiver, ["view", "view_mut", *_TILES, *_MOVES, *STAGES])
    if isinstance(receiver, View) and receiver.tile is not None:
        source = bind_tile(frame, receiver, link, None).tensor
    return handler(frame, source, link, name, hint)


def _unknown(frame: Frame, link: Link, receiver: Value, known: list[str]) -> NoReturn:
    raise frame.source.error(link.node, "RUST-002", f"{described(receiver)} has no method {link.name!r}", hint=nearest(link.name, known))


def _arity(frame: Frame, link: Link, count: int, what: str = "") -> tuple[Node, ...]:
    given = link.arguments or ()
    if len(given) != count:
        at = given[-1] if given else link.node
        raise frame.source.error(
            at, "RUST-006", f"{link.name} takes {count} argument{'s' * (count != 1)}, got {len(given)}", hint=what or None
        )
    return given


def _levels(frame: Frame, link: Link, forms: tuple[tuple[str, ...], ...], hint: TensorHint | None) -> Levels:
    """The mappings that the type arguments give, in one of the `forms`; without type arguments those of the annotation.

    Levels that neither determines are None.
    """
    if link.types is None:
        return dict(hint.levels) if hint is not None else {}
    form = next((f for f in forms if len(f) == len(link.types)), None)
    if form is None:
        shown = " or ".join(f"{link.name}::<{', '.join(n.capitalize() for n in f)}>" for f in forms)
        counts = " or ".join(str(len(f)) for f in forms)
        raise frame.source.error(link.node, "RUST-003", f"{link.name} takes {counts} type arguments, got {len(link.types)}", hint=shown)
    found: Levels = {}
    for level, node in zip(form, link.types, strict=True):
        inferred = frame.source.text_of(node) == "_"
        found[level] = (hint.level(level) if hint is not None else None) if inferred else frame.types.mapping(node)
    return found


def _needed(frame: Frame, link: Link, levels: Levels, level: str) -> Mapping:
    found = levels.get(level)
    if found is None:
        text = "write the type arguments, or annotate the `let` with the tensor type"
        raise frame.source.error(link.node, "RUST-004", f"nothing determines {level.capitalize()} of {link.name}", hint=text)
    return found


def _unless_kept(given: Mapping | None, source: Mapping | None) -> Mapping | None:
    """A level that may change, None where it stays what it is."""
    if given is None or (source is not None and given.equivalent(source)):
        return None
    return given


# moves


def _to_dm(frame: Frame, source: Tensor, link: Link, name: str | None, hint: TensorHint | None) -> Value:
    (context,) = _arity(frame, link, 1, "&mut device.tdma")
    levels = _levels(frame, link, (DM_LEVELS[1:], DM_LEVELS), hint)
    chip = levels.get("chip") or source.level("chip")
    let = frame.emitter.fresh(name or source.name, "dm")
    step = ToDm(
        let,
        source.name,
        _needed(frame, link, levels, "cluster"),
        _needed(frame, link, levels, "slice"),
        _needed(frame, link, levels, "element"),
        _unless_kept(levels.get("chip"), source.level("chip")),
        frame.context(context),
    )
    frame.emitter.add(step, link.node)
    return Tensor(let, "Dm", source.dtype, {"chip": chip, "cluster": step.cluster, "slice": step.slice, "element": step.element})


def _to_hbm(frame: Frame, source: Tensor, link: Link, name: str | None, hint: TensorHint | None) -> Value:
    (context,) = _arity(frame, link, 1, "&mut device.tdma")
    levels = _levels(frame, link, (("chip", "element"),), hint)
    chip = levels.get("chip") or source.level("chip")
    let = frame.emitter.fresh(name or "out", "hbm")
    kept = None if source.tier == "Host" else source.level("chip")
    step = ToHbm(let, source.name, _needed(frame, link, levels, "element"), _unless_kept(levels.get("chip"), kept), frame.context(context))
    frame.emitter.add(step, link.node)
    return Tensor(let, "Hbm", source.dtype, {"chip": chip, "element": step.element})


def _to_host(frame: Frame, source: Tensor, link: Link, name: str | None, hint: TensorHint | None) -> Value:
    (context,) = _arity(frame, link, 1, "&mut device.pdma")
    element = _needed(frame, link, _levels(frame, link, (("element",),), hint), "element")
    let = frame.emitter.fresh(name or "host", "host")
    frame.emitter.add(ToHost(let, source.name, element, frame.context(context)), link.node)
    return Tensor(let, "Host", source.dtype, {"element": element})


def _to_hbm_view(frame: Frame, source: Tensor, link: Link, name: str | None, hint: TensorHint | None) -> Value:
    context, view = _arity(frame, link, 2, "&mut device.tdma, result.view_mut()")
    value = frame.value(referent(view))
    if isinstance(value, View) and not value.mutable:
        raise frame.source.error(view, "RUST-006", "to_hbm_view writes a mutable view", hint="result.view_mut()")
    target = (
        bind_tile(frame, value, link, None).tensor if isinstance(value, View) else frame.settled(value, view, "a view of an HBM tensor")
    )
    frame.emitter.add(ToHbmView(source.name, target.name, frame.context(context)), link.node)
    return None


def _reshape(frame: Frame, source: Tensor, link: Link, name: str | None, hint: TensorHint | None) -> Value:
    _arity(frame, link, 0)
    names = TIER_LEVELS[source.tier]
    levels = _levels(frame, link, (names,), hint)
    let = frame.emitter.fresh(name or source.name, "view")
    changed = {level: _unless_kept(levels.get(level), source.level(level)) for level in names}
    step = Reshape(let, source.name, unsafe=_is_unsafe(link.node), **changed)
    frame.emitter.add(step, link.node)
    return Tensor(let, source.tier, source.dtype, {level: levels.get(level) or source.level(level) for level in names})


def _is_unsafe(node: Node) -> bool:
    at: Node | None = node
    while at is not None:
        if at.type == "unsafe_block":
            return True
        at = at.parent
    return False


def _asymmetric(kind: type[AsymmetricChipSlice] | type[AsymmetricClusterSlice]) -> _Move:
    def read(frame: Frame, source: Tensor, link: Link, name: str | None, hint: TensorHint | None) -> Value:
        context, indices = _arity(frame, link, 2, "&mut device.sub, &[0, 1]")
        axis, output = _pair_of_types(frame, link)
        let = frame.emitter.fresh(name or source.name, "slice")
        step = kind(let, source.name, axis, output, integers(frame.constants, indices, "the index list"), frame.context(context))
        frame.emitter.add(step, link.node)
        return Tensor(let, "Dm", source.dtype, {**(source.levels or {}), "element": output})

    return read


def _pair_of_types(frame: Frame, link: Link) -> tuple[Mapping, Mapping]:
    types = link.types or ()
    if len(types) != 2:
        shown = f"{link.name}::<Axis, Output>"
        raise frame.source.error(link.node, "RUST-003", f"{link.name} takes 2 type arguments, got {len(types)}", hint=shown)
    return frame.types.mapping(types[0]), frame.types.mapping(types[1])


def _hbm_chip_shuffle(frame: Frame, source: Tensor, link: Link, name: str | None, hint: TensorHint | None) -> Value:
    context, sources = _arity(frame, link, 2, "&mut device.tdma, &[1, 2, 3, 0]")
    let = frame.emitter.fresh(name or source.name, "hbm")
    frame.emitter.add(
        HbmChipShuffle(let, source.name, integers(frame.constants, sources, "the source list"), frame.context(context)), link.node
    )
    return Tensor(let, "Hbm", source.dtype, source.levels)


def _gather(kind: type[DmaGatherScaled] | type[DmaGatherUnscaled]) -> _Move:
    def read(frame: Frame, source: Tensor, link: Link, name: str | None, hint: TensorHint | None) -> Value:
        (index,) = _arity(frame, link, 1, "&index")
        levels = _levels(frame, link, (DM_LEVELS[1:], DM_LEVELS), hint)
        let = frame.emitter.fresh(name or source.name, "dm")
        cluster, slices, element = (_needed(frame, link, levels, level) for level in DM_LEVELS[1:])
        frame.emitter.add(kind(let, source.name, frame.tensor(index).name, cluster, slices, element), link.node)
        chip = levels.get("chip") or source.level("chip")
        return Tensor(let, "Dm", source.dtype, {"chip": chip, "cluster": cluster, "slice": slices, "element": element})

    return read


def _scatter(kind: type[DmaScatter] | type[DmaScatterUnscaled]) -> _Move:
    def read(frame: Frame, source: Tensor, link: Link, name: str | None, hint: TensorHint | None) -> Value:
        index, into = _arity(frame, link, 2, "index, output")
        types = link.types or ()
        if len(types) not in (1, 3):
            raise frame.source.error(
                link.node, "RUST-003", f"{link.name} takes 3 type arguments, got {len(types)}", hint=f"{link.name}::<Key, _, _>"
            )
        key = frame.types.mapping(types[0])
        frame.emitter.add(kind(source.name, key, frame.tensor(index).name, frame.tensor(into).name), link.node)
        return None

    return read


_Move = Callable[[Frame, Tensor, Link, "str | None", "TensorHint | None"], Value]
_MOVES: Dict[str, _Move] = {
    "to_dm": _to_dm,
    "to_hbm": _to_hbm,
    "to_host": _to_host,
    "to_hbm_view": _to_hbm_view,
    "reshape": _reshape,
    "asymmetric_chip_slice": _asymmetric(AsymmetricChipSlice),
    "asymmetric_cluster_slice": _asymmetric(AsymmetricClusterSlice),
    "hbm_chip_shuffle": _hbm_chip_shuffle,
    "dma_gather_scaled": _gather(DmaGatherScaled),
    "dma_gather_unscaled": _gather(DmaGatherUnscaled),
    "dma_scatter": _scatter(DmaScatter),
    "dma_scatter_unscaled": _scatter(DmaScatterUnscaled),
}


# tiles

_TILES = {"tile": "element", "chip_tile": "chip", "cluster_tile": "cluster"}
"""The level that each kind of tile narrows."""


def _tile(frame: Frame, view: View, link: Link, name: str | None) -> View:
    """``.tile::<I, LEN, E2>(start)``: a read tile is a step of its own, a mutable one waits for its use."""
    types = link.types or ()
    if len(types) != 3:
        shown = f"{link.name}::<Index, LEN, {_TILES[link.name].capitalize()}>(start)"
        raise frame.source.error(link.node, "RUST-003", f"{link.name} takes 3 type arguments, got {len(types)}", hint=shown)
    (start,) = _arity(frame, link, 1, "the start")
    axis, narrowed = frame.types.mapping(types[0]), frame.types.mapping(types[2])
    spec = TileSpec(axis, _length(frame, types[1]), frame.index(start).start(), narrowed, view.mutable)
    if view.tile is not None:
        view = bind_tile(frame, view, link, None)
    if link.name != "tile":
        return _level_tile(frame, view, spec, link, name)
    tiled = View(view.tensor, view.mutable, spec)
    return tiled if view.mutable else bind_tile(frame, tiled, link, name)


def _length(frame: Frame, node: Node) -> int:
    bound = frame.types.parameters.get(frame.source.text_of(node))
    if isinstance(bound, int):
        return bound
    if node.type == "block" and node.named_child_count == 1:
        node = node.named_children[0]
    length = frame.index(node)
    if length.terms:
        raise frame.source.error(node, "RUST-007", "the length of a tile is a constant")
    return length.constant


def bind_tile(frame: Frame, view: View, link: Link, name: str | None) -> View:
    """The tile of a view as a step of its own."""
    if view.tile is None:
        return view
    let = frame.emitter.fresh(name or f"{view.tensor.name}_tile")
    spec = view.tile
    frame.emitter.add(Tile(let, view.tensor.name, spec.axis, spec.len, spec.start, spec.element, spec.mutable), link.node)
    return View(replace(view.tensor, name=let, levels={**(view.tensor.levels or {}), "element": spec.element}), view.mutable)


def _level_tile(frame: Frame, view: View, spec: TileSpec, link: Link, name: str | None) -> View:
    let = frame.emitter.fresh(name or f"{view.tensor.name}_tile")
    level = _TILES[link.name]
    kind: type[ChipTile] | type[ClusterTile] = ChipTile if level == "chip" else ClusterTile
    frame.emitter.add(kind(let, view.tensor.name, spec.axis, spec.len, spec.start, spec.element, spec.mutable), link.node)
    return View(replace(view.tensor, name=let, levels={**(view.tensor.levels or {}), level: spec.element}), view.mutable)


# redistributions


def _plan_step(frame: Frame, receiver: Tensor | View | Plan, source: Tensor, link: Link) -> Plan:
    if isinstance(receiver, View) and receiver.tile is not None:
        source = bind_tile(frame, receiver, link, None).tensor
    if link.name == "cluster_swap":
        _arity(frame, link, 0)
        entry = PlanEntry(link.name)
    elif link.name == "chip_shuffle":
        (sources,) = _arity(frame, link, 1, "[1, 2, 3, 0]")
        entry = PlanEntry(link.name, sources=integers(frame.constants, sources, "the source list"))
    else:
        (indices,) = _arity(frame, link, 1, "[0, 1]")
        axis, output = _pair_of_types(frame, link)
        entry = PlanEntry(link.name, axis=axis, output=output, indices=integers(frame.constants, indices, "the index list"))
    return Plan(source, (*(receiver.entries if isinstance(receiver, Plan) else ()), entry))


def _plan_to_dm(frame: Frame, plan: Plan, link: Link, name: str | None, hint: TensorHint | None) -> Value:
    (context,) = _arity(frame, link, 1, "&mut device.tdma")
    given = _levels(frame, link, (("element",), DM_LEVELS), hint)
    levels = {level: given.get(level) or (hint.level(level) if hint else None) or plan.source.level(level) for level in DM_LEVELS}
    if given.get("element") is None:
        levels["element"] = next((e.output for e in reversed(plan.entries) if e.output is not None), plan.source.level("element"))
    let = frame.emitter.fresh(name or plan.source.name, "moved")
    chip, cluster, slices, element = (_needed(frame, link, levels, level) for level in DM_LEVELS)
    step = Redistribute(plan.source.name, plan.entries, "to_dm", let, frame.context(context), chip, cluster, slices, element)
    frame.emitter.add(step, link.node)
    return Tensor(let, "Dm", plan.source.dtype, levels)


def _plan_to_dm_view(frame: Frame, plan: Plan, link: Link, name: str | None, hint: TensorHint | None) -> Value:
    context, node = _arity(frame, link, 2, "&mut device.tdma, output.view_mut().tile::<…>(…)")
    view = frame.value(referent(node))
    if not isinstance(view, View) or view.tile is None or not view.mutable:
        raise frame.source.error(node, "RUST-006", "to_dm_view writes a mutable tile", hint="output.view_mut().tile::<…>(…)")
    target = TileTarget(view.tensor.name, view.tile)
    frame.emitter.add(Redistribute(plan.source.name, plan.entries, "to_dm_view", context=frame.context(context), into=target), link.node)
    return None


_PLAN_ENDS: Dict[str, Callable[[Frame, Plan, Link, str | None, TensorHint | None], Value]] = {
    "to_dm": _plan_to_dm,
    "to_dm_view": _plan_to_dm_view,
}

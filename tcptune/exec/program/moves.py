"""Checks the steps that move data without the Tensor Unit: DMA, redistribution, gather and scatter (DMA, REDIST, GATHER, PCIE)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tcptune.errors import InputError, RuleViolation
from tcptune.exec.program import views
from tcptune.exec.program.checked import Bound, CheckedStep
from tcptune.ir.kernels import steps as s
from tcptune.ir.mappings.mapping import Mapping
from tcptune.ir.types import TensorType, dtype
from tcptune.model.engines.dma import check_context, check_tile_starts, check_transfer
from tcptune.model.hardware import Hardware
from tcptune.model.mappings.movement import carried_digits
from tcptune.model.redistribution import Route, check_asymmetric, check_hbm_shuffle, check_plan

if TYPE_CHECKING:
    from tcptune.exec.program.check import Checker


def check_move(checker: Checker, step: s.KernelStep) -> CheckedStep:
    """Checks one moving step.

    Raises:
        RuleViolation: a rule of the page.
        InputError: a step that is none of these.
    """
    check = _CHECKS.get(type(step))
    if check is None:
        raise InputError(f"nothing checks the step {step.NAME!r}")
    return check(checker, step)


def _element_starts(checker: Checker, bound: Bound) -> set[int]:
    """Element positions at which a tile begins, over all turns of the enclosing loops."""
    starts = {0}
    for view in bound.views:
        if view.level == "element":
            values = {view.stride * int(v) for v in checker.start_values(view.start)}
            starts = {a + b for a in starts for b in values}
    return starts


def _moved(checker: Checker, step: Any, source: Bound, dest: TensorType, *, into: Bound | None = None) -> CheckedStep:
    """A plain transfer to a new tensor, or into an existing one."""
    transfer = check_transfer(source.type, dest, step.context)
    check_tile_starts(source.type, dest, _element_starts(checker, source), _element_starts(checker, into) if into is not None else ())
    if into is not None:
        return CheckedStep(step, (source,), target=into, transfers=(transfer,))
    made_up = frozenset(_axes(dest)) - frozenset(_axes(source.type))
    bound = Bound(step.let, dest, step.let, replicated_axes=made_up)
    return CheckedStep(step, (source,), bound, transfers=(transfer,))


def _axes(type_: TensorType) -> dict[str, int]:
    return {name: size for _, m in type_.levels for name, size in m.axes.items()}


def _to_dm(checker: Checker, step: s.ToDm) -> CheckedStep:
    source = checker.scope.find(step.source)
    if source.type.tier not in ("Hbm", "Dm"):
        raise RuleViolation("MOVE-001", f"no DMA moves {source.type.tier} to Dm", got=source.type.tier, also=("DMA-001", "MOVE-002"))
    chip = source.type.chip if step.chip is None else step.chip
    dest = TensorType("Dm", source.type.dtype, step.element, chip, step.cluster, step.slice)
    if source.type.tier == "Hbm" and not chip.equivalent(source.type.chip):
        message = "a load keeps the chip mapping of its source"
        other_device = ("HW-008", "MAP-031") if chip.size != checker.chips else ()
        raise RuleViolation("DMA-004", message, expected=source.type.chip, got=chip, also=("DMA-002", *other_device))
    check_context(source.type.tier, "Dm", step.context)
    checker.require_placement(step.let, dest)
    return _moved(checker, step, source, dest)


def _to_hbm(checker: Checker, step: s.ToHbm) -> CheckedStep:
    source = checker.scope.find(step.source)
    chip = step.chip if step.chip is not None else source.type.chip
    return _moved(checker, step, source, TensorType("Hbm", source.type.dtype, step.element, chip))


def _to_host(checker: Checker, step: s.ToHost) -> CheckedStep:
    source = checker.scope.find(step.source)
    return _moved(checker, step, source, TensorType("Host", source.type.dtype, step.element))


def _to_hbm_view(checker: Checker, step: s.ToHbmView) -> CheckedStep:
    source, into = checker.scope.find(step.source), checker.scope.find(step.into)
    if into.type.tier != "Hbm":
        raise RuleViolation("DMA-001", f"to_hbm_view writes an HBM tensor; {into.name} is in {into.type.tier}", also=("MOVE-001",))
    if not into.mutable:
        raise RuleViolation("MAP-024", f"{into.name} is a read view; nothing is written through it", also=("KERNEL-031",))
    return _moved(checker, step, source, into.type, into=into)


# redistribution


def _redistribute(checker: Checker, step: s.Redistribute) -> CheckedStep:
    source = checker.scope.find(step.source)
    route = check_plan(source.type, step.plan, [v.level for v in source.views])
    if step.finish == "to_dm_view":
        return _into_view(checker, step, source, route)
    if step.finish != "to_dm":
        raise RuleViolation("REDIST-001", f"a plan ends in to_dm or to_dm_view, not in {step.finish!r}", got=step.finish)
    if step.let is None or step.element is None:
        raise InputError("redistribute to_dm needs let and element")
    result = route.result
    levels: dict[str, Any] = {n: m for n in ("chip", "cluster", "slice") if (m := getattr(step, n)) is not None}
    dest = replace(result, element=step.element, **levels)
    checker.require_placement(step.let, dest)
    _check_same_digits(step, route, dest)
    transfer = _relayout(route.footprint, dest, step.context)
    return CheckedStep(step, (source,), Bound(step.let, dest, step.let), transfers=(transfer,), route=route)


def _into_view(checker: Checker, step: s.Redistribute, source: Bound, route: Route) -> CheckedStep:
    if step.into is None:
        raise InputError("redistribute to_dm_view needs into")
    tensor = checker.scope.find(step.into.tensor)
    view = views.tile_of(tensor, step.into.tile, checker.start_values(step.into.tile.start), f"{tensor.name} tile")
    _check_same_digits(step, route, view.type)
    transfer = _relayout(route.footprint, view.type, step.context)
    check_tile_starts(source.type, view.type, _element_starts(checker, source), _element_starts(checker, view))
    return CheckedStep(step, (source,), target=view, transfers=(transfer,), route=route)


def _check_same_digits(step: s.Redistribute, route: Route, dest: TensorType) -> None:
    """A digit that the plan took out does not come back: every position of it would hold the one coordinate that was kept.

    Raises:
        RuleViolation: REDIST-011.
    """
    left = carried_digits(tuple(m for _, m in route.result.levels))
    named = carried_digits(tuple(m for _, m in dest.levels))
    for axis in sorted({axis for entry in step.plan if entry.axis is not None for axis in entry.axis.axes}):
        if axis in named and named[axis] != left.get(axis):
            raise RuleViolation(
                "REDIST-011",
                f"the plan keeps one coordinate of {axis}, the destination [{dest.element}] names it again",
                got=dest.element,
                expected=f"a relayout of [{route.result.element}]",
                also=("DMA-002",),
            )


def _relayout(footprint: TensorType, dest: TensorType, context: str) -> Any:
    """The terminal's transfer: any relayout of the plan's result (REDIST-011)."""
    try:
        return check_transfer(footprint, dest, context)
    except RuleViolation as refusal:
        refusal.also = (*refusal.also, "REDIST-011", "REDIST-020")
        raise


def _asymmetric(checker: Checker, step: s.AsymmetricChipSlice | s.AsymmetricClusterSlice) -> CheckedStep:
    source = checker.scope.find(step.source)
    if step.context != "sub":
        raise RuleViolation("REDIST-013", f"{step.NAME} runs on the sub context, not on {step.context}", expected="sub", got=step.context)
    level = "chip" if isinstance(step, s.AsymmetricChipSlice) else "cluster"
    route = check_asymmetric(source.type, level, step.axis, step.output, step.indices)
    return CheckedStep(step, (source,), Bound(step.let, route.result, step.let), route=route)


def _hbm_shuffle(checker: Checker, step: s.HbmChipShuffle) -> CheckedStep:
    source = checker.scope.find(step.source)
    check_context("Hbm", "Hbm", step.context)
    route = check_hbm_shuffle(source.type, step.sources)
    return CheckedStep(step, (source,), Bound(step.let, route.result, step.let), route=route)


# gather and scatter


def _require_index(bound: Bound, tier: str, rule: str) -> None:
    if bound.type.tier != tier:
        message = f"the index {bound.name} is in {bound.type.tier}"
        raise RuleViolation(rule, message, expected=tier, got=bound.type.tier, also=("GATHER-001", "MOVE-005"))
    if bound.type.dtype != dtype("i32"):
        raise RuleViolation(
            "GATHER-001", f"an index holds i32, {bound.name} holds {bound.type.dtype}", expected="i32", got=bound.type.dtype
        )


def _gather(checker: Checker, step: s.DmaGatherScaled | s.DmaGatherUnscaled) -> CheckedStep:
    table, index = checker.scope.find(step.source), checker.scope.find(step.index)
    scaled = isinstance(step, s.DmaGatherScaled)
    if table.type.tier != "Hbm":
        raise RuleViolation(
            "GATHER-001", f"a gather reads an HBM table; {table.name} is in {table.type.tier}", got=table.type.tier, also=("MOVE-005",)
        )
    _require_index(index, "Hbm" if scaled else "Dm", "GATHER-002" if scaled else "GATHER-003")
    dest = TensorType("Dm", table.type.dtype, step.element, table.type.chip, step.cluster, step.slice)
    if not scaled:
        _check_index_bytes(index, checker.hw)
    if dest.slice.size not in checker.hw.legal_slice_sizes:
        message = f"a gather spreads its rows over {dest.slice.size} slices"
        raise RuleViolation(
            "GATHER-005", message, expected=checker.hw.legal_slice_sizes, got=dest.slice, also=("HW-007", "MAP-031", "MOVE-007", "TU-007")
        )
    _check_one_copy(dest)
    checker.require_placement(step.let, dest)
    gather_axes(table.type, dest, index.type)
    return CheckedStep(step, (table, index), Bound(step.let, dest, step.let))


def _check_index_bytes(index: Bound, hw: Hardware) -> None:
    entries = index.type.element.live_size * index.type.slice.live_size * index.type.cluster.live_size
    if index.type.dtype.bytes_of(entries) > hw.unscaled_index_bytes * index.type.cluster.live_size:
        message = f"the index {index.name} lists {entries} rows"
        raise RuleViolation(
            "GATHER-003", message, expected=f"at most {hw.unscaled_index_bytes} B of index", got=index.type.dtype.bytes_of(entries)
        )


def _check_one_copy(dest: TensorType) -> None:
    """A gather writes every row once: what the destination calls copies would hold nothing known.

    Raises:
        RuleViolation: GATHER-005.
    """
    for level in ("cluster", "slice", "element"):
        held: Mapping = getattr(dest, level)
        copies = next((term for term in held.terms() if not term.axes and term.live_size > 1), None)
        if copies is not None:
            raise RuleViolation(
                "GATHER-005",
                f"a gather writes one copy, but {level} [{held}] names {copies.live_size}",
                got=held,
                expected=f"axes of the index or the table, idle places as 1 # {copies.size}",
                nearest="give the index a real partition along this level, or copy the result with a DMA",
                also=("GATHER-003",),
            )


def gather_axes(table: TensorType, result: TensorType, index: TensorType) -> tuple[str, ...]:
    """The table axes that the result lacks: the gather axis.

    Raises:
        RuleViolation: GATHER-002 if there is none, or the result holds an axis that neither index nor table has.
    """
    missing = tuple(a for a in _axes(table) if a not in _axes(result))
    if len(missing) != 1:
        message = "the gather axis is the one table axis that the result lacks"
        raise RuleViolation("GATHER-002", message, got=missing or "none", also=("GATHER-003", "GATHER-001", "DMA-002"))
    unknown = [a for a in _axes(result) if a not in _axes(table) and a not in _axes(index)]
    if unknown:
        raise RuleViolation(
            "GATHER-002", f"nothing says what the result axis {unknown[0]} means", got=unknown, also=("GATHER-003", "DMA-002")
        )
    return missing


def _scatter(checker: Checker, step: s.DmaScatter) -> CheckedStep:
    source, index, into = (checker.scope.find(n) for n in (step.source, step.index, step.into))
    if source.type.tier != "Dm" or into.type.tier != "Hbm":
        got = f"{source.type.tier} to {into.type.tier}"
        raise RuleViolation(
            "GATHER-004", "a scatter writes DM rows into an HBM tensor", expected="Dm to Hbm", got=got, also=("GATHER-001", "MOVE-005")
        )
    held = _axes(source.type)
    if not step.key.axes or any(a not in held for a in step.key.axes):
        raise RuleViolation("GATHER-004", f"the key {step.key} is not an axis of {source.name}", expected=", ".join(held), got=step.key)
    if _shares_digits(source.type.chip, step.key):
        raise RuleViolation("GATHER-004", f"the key {step.key} is split over chips", got=source.type.chip)
    _require_index(index, "Hbm", "GATHER-004")
    scattered = [a for a in _axes(into.type) if a not in held]
    if len(scattered) != 1:
        message = f"the scatter axis is the one axis of {into.name} that {source.name} lacks"
        raise RuleViolation("GATHER-004", message, got=scattered or "none")
    if source.type.dtype != into.type.dtype:
        raise RuleViolation(
            "DMA-002", "a scatter keeps the element type", expected=into.type.dtype, got=source.type.dtype, also=("GATHER-004",)
        )
    return CheckedStep(step, (source, index), target=into)


def _shares_digits(level: Mapping, key: Mapping) -> bool:
    """Whether a level holds a part of the key."""
    held = carried_digits((level,))
    return any(
        w < weight * extent and weight < w * n
        for axis, digits in carried_digits((key,)).items()
        for weight, extent in digits
        for w, n in held.get(axis, ())
    )


def _scatter_unscaled(checker: Checker, step: s.DmaScatterUnscaled) -> CheckedStep:
    raise RuleViolation("GATHER-007", "the device has no unscaled scatter", nearest="dma_scatter with byte offsets", also=("MOVE-005",))


_CHECKS: dict[type[s.KernelStep], Callable[[Any, Any], CheckedStep]] = {
    s.ToDm: _to_dm,
    s.ToHbm: _to_hbm,
    s.ToHost: _to_host,
    s.ToHbmView: _to_hbm_view,
    s.Redistribute: _redistribute,
    s.AsymmetricChipSlice: _asymmetric,
    s.AsymmetricClusterSlice: _asymmetric,
    s.HbmChipShuffle: _hbm_shuffle,
    s.DmaGatherScaled: _gather,
    s.DmaGatherUnscaled: _gather,
    s.DmaScatter: _scatter,
    s.DmaScatterUnscaled: _scatter_unscaled,
}

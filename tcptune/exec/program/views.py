"""Views and reshapes in kernels: tiles (MAP-023 to 026, KERNEL-022), reshape (DMA-006), and what a reshape merely claims (LIFT-011)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from tcptune.errors import RuleViolation
from tcptune.exec.program.checked import Bound, CheckedStep, View
from tcptune.ir.formula import evaluate
from tcptune.ir.kernels import steps as s
from tcptune.ir.kernels.ops import TileSpec, ViewSpec
from tcptune.ir.mappings.mapping import Mapping
from tcptune.ir.types import TensorType
from tcptune.model.mappings.reshape import check_wire_order
from tcptune.model.mappings.tiles import check_start, tile_stride


def start_values(start: int | str, ranges: dict[str, int]) -> npt.NDArray[np.int64]:
    """All values a start takes when the loop variables run through their ranges (a single value outside loops)."""
    if isinstance(start, int):
        return np.asarray([start], dtype=np.int64)
    shape = tuple(ranges.values()) or (1,)
    grids = list(np.indices(shape, dtype=np.int64)) if ranges else []
    return np.asarray(evaluate(start, dict(zip(ranges, grids, strict=False))), dtype=np.int64).reshape(-1)


def tile_of(source: Bound, tile: s.Tile | s.ChipTile | s.ClusterTile | TileSpec, starts: npt.NDArray[np.int64], name: str) -> Bound:
    """The view that a tile makes of `source`; `starts` are all values its start takes.

    Raises:
        RuleViolation: MAP-023 to MAP-025.
    """
    level = "chip" if isinstance(tile, s.ChipTile) else "cluster" if isinstance(tile, s.ClusterTile) else "element"
    before: Mapping = getattr(source.type, level)
    after: Mapping = getattr(tile, level)
    if tile.mutable and not source.mutable:
        raise RuleViolation("MAP-024", f"{source.name} is a read view; nothing is written through it", also=("KERNEL-022", "KERNEL-031"))
    stride = tile_stride(before, tile.axis, tile.len, after, tile.mutable)
    check_start(tile.axis, tile.len, int(starts.min()), int(starts.max()))
    changed: dict[str, Any] = {level: after}
    type_ = replace(source.type, **changed)
    view = View(level, stride, tile.start, tile.len, stride * tile.axis.size == before.size)
    return replace(source, name=name, type=type_, views=(*source.views, view), mutable=tile.mutable)


def view_spec(source: Bound, tile: TileSpec, start: int) -> ViewSpec:
    """The destination of a ``commit_view`` as the commit engine wants it."""
    return ViewSpec(source.type.element, tile.axis, tile.len, start, tile.mutable)


def whole_view(source: Bound) -> ViewSpec:
    """All of a tensor, or of a mutable tile, as the destination of a ``commit_view``.

    Raises:
        RuleViolation: MAP-024 if nothing is written through it.
    """
    if not source.mutable:
        raise RuleViolation("MAP-024", f"{source.name} is a read view; nothing is written through it", also=("KERNEL-022", "KERNEL-031"))
    element = source.type.element
    return ViewSpec(element, element, element.size, 0, True)


def require_same_dtype(target: Bound, written: TensorType) -> None:
    """Raises:
    RuleViolation: COMMIT-010 if the stream has another element type than the tensor it is written into.
    """
    if target.type.dtype != written.dtype:
        raise RuleViolation(
            "COMMIT-010", f"{target.name} holds {target.type.dtype}", expected=target.type.dtype, got=written.dtype, also=("DMA-002",)
        )


def check_reshape(source: Bound, step: s.Reshape) -> CheckedStep:
    """Relabels a tensor at the same address: every level keeps its size, every axis its place (DMA-006).

    Raises:
        RuleViolation: DMA-006.
    """
    given: dict[str, Any] = {n: m for n in ("chip", "cluster", "slice", "element") if (m := getattr(step, n)) is not None}
    levels = dict(source.type.levels)
    if source.views:
        raise RuleViolation("DMA-006", f"{source.name} is a view; reshape takes a whole tensor", got=source.name, also=("MAP-023",))
    for name, mapping in given.items():
        if name not in levels:
            raise RuleViolation("DMA-006", f"a {source.type.tier} tensor has no {name}", got=name)
        if mapping.size != levels[name].size:
            raise RuleViolation(
                "DMA-006", f"{name} of {source.name} has {levels[name].size} positions", expected=levels[name].size, got=mapping.size
            )
    replicated = _replicated_positions(source)
    unproven = tuple(n for n, m in given.items() if _claims_broadcast(levels[n], m, replicated))
    type_ = replace(source.type, **given)
    check_wire_order(source.type, type_)
    bound = Bound(step.let, type_, source.storage, mutable=source.mutable, unproven=(*source.unproven, *unproven))
    return CheckedStep(step, (source,), bound)


def _replicated_positions(source: Bound) -> frozenset[str]:
    """Axes of the tensor over which its data are known to repeat: the transfer that wrote it made them up."""
    return source.replicated_axes


def _claims_broadcast(before: Mapping, after: Mapping, replicated: frozenset[str]) -> bool:
    """Whether a reshape turns a digit of a live axis that is not known to repeat into a broadcast."""
    lost = set(before.axes) - set(after.axes)
    return bool(lost - replicated) and any(not m.axes and m.size > 1 and m.live_size > 1 for m in after.terms())


def require_replicated(bound: Bound, level: str) -> None:
    """Raises:
    RuleViolation: LIFT-011 if the broadcast of this level is only a reshape's claim.
    """
    if level in bound.unproven:
        raise RuleViolation(
            "LIFT-011",
            f"{bound.name} names a broadcast on {level} that a reshape introduced over different data",
            expected="data that a transfer really wrote to every position of the broadcast",
            got=getattr(bound.type, level),
        )


def view_offset(views: tuple[View, ...], level: str, variables: dict[str, int]) -> int:
    """Positions by which the views of a level shift it, for given loop variables."""
    return sum(v.stride * start_at(v.start, variables) for v in views if v.level == level)


def start_at(start: int | str, variables: dict[str, int]) -> int:
    """A tile's start for given loop variables."""
    return start if isinstance(start, int) else int(evaluate(start, variables))

"""Shorthand for chain tests: a stream, operations as JSON, and what a refusal says."""

from __future__ import annotations

from typing import Any

import pytest

from tcptune.errors import RuleViolation
from tcptune.ir.kernels.ops import op_from_json
from tcptune.ir.mappings.axes import Axes
from tcptune.ir.types import StreamType, TensorType, dtype
from tcptune.model.pipeline import Chain, check_chain
from tcptune.model.stage import ChainEnv


def stream(axes: Axes, dt: str, position: str = "Fetch", **levels: str) -> StreamType:
    """A stream; levels not given are the whole unit with nothing in it."""
    filled = {"chip": "1", "cluster": "1 # 2", "slice": "1 # 256", "time": "1", "packet": "1", **levels}
    return StreamType(position, dtype(dt), **{n: axes.mapping(m) for n, m in filled.items()})


def run(start: StreamType, axes: Axes, *ops: dict[str, Any], context: str = "main", operands: dict[str, TensorType] | None = None) -> Chain:
    """The checked chain."""
    return check_chain(start, [op_from_json(op, axes) for op in ops], ChainEnv(context, axes, operands or {}))


def refused(
    start: StreamType, axes: Axes, *ops: dict[str, Any], context: str = "main", operands: dict[str, TensorType] | None = None
) -> RuleViolation:
    """The refusal of a chain that must not be accepted."""
    with pytest.raises(RuleViolation) as caught:
        run(start, axes, *ops, context=context, operands=operands)
    return caught.value


def trf(axes: Axes, dt: str, lane: str, element: str, **levels: str) -> TensorType:
    """A tensor in the TRF; spatial levels not given are the whole unit with nothing in it."""
    filled = {"chip": "1", "cluster": "1 # 2", "slice": "1 # 256", **levels, "lane": lane, "element": element}
    return TensorType("Trf", dtype(dt), **{n: axes.mapping(m) for n, m in filled.items()})


def outer(time: str, packet: str) -> dict[str, Any]:
    return {"op": "contract_outer", "time": time, "packet": packet, "trf": "w"}


def reduced(packet: str, time: str, folded_time: str, folded_packet: str, mode: str = "Interleaved") -> tuple[dict[str, Any], ...]:
    """The three stages behind the outer product."""
    return (
        {"op": "contract_packet", "packet": packet},
        {"op": "contract_time", "time": time},
        {"op": "contract_lane", "time": folded_time, "packet": folded_packet, "mode": mode},
    )


def switch(slice_: str, time: str, kind: str, **sizes: int) -> dict[str, Any]:
    return {"op": "switch", "slice": slice_, "time": time, "config": {kind: sizes}}


def collect(time: str, packet: str) -> dict[str, Any]:
    return {"op": "collect", "time": time, "packet": packet}

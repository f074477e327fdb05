"""Cast Engine: narrows flits of i32 and f32 before they are written (CAST-001..010)."""

from __future__ import annotations

from collections.abc import Mapping as Dict

import numpy as np

from tcptune.errors import RuleViolation
from tcptune.ir.kernels.ops import Cast
from tcptune.ir.mappings.mapping import Pair
from tcptune.ir.types import DType, StreamType
from tcptune.model.hardware import Hardware
from tcptune.model.numerics.elements import convert
from tcptune.model.stage import ChainEnv, StageCost, Step
from tcptune.model.values import Values

HANDLES = (Cast,)

TARGETS: dict[str, tuple[str, ...]] = {"i32": ("i4", "i8", "i16"), "f32": ("f8e5m2", "f8e4m3", "bf16")}
"""Types that an input type can be cast to (CAST-003)."""


def has_cast(source: DType, target: DType) -> bool:
    """Whether the Cast Engine has this pair."""
    return target.name in TARGETS.get(source.name, ())


def flit_elements(element: DType, hw: Hardware) -> int:
    """Elements of one flit (CAST-004)."""
    return hw.flit_bytes * 8 // element.bits


def check(stream: StreamType, op: Cast, env: ChainEnv) -> Step:
    """The stream in the narrow type, every packet padded to a flit again.

    Raises:
        RuleViolation: CAST-003 (types), CAST-002 (input packet), CAST-004 (output packet).
    """
    padded = stream.packet.pad_to_multiple(flit_elements(op.dtype, env.hw))
    if not has_cast(stream.dtype, op.dtype):
        targets = TARGETS.get(stream.dtype.name)
        one_flit = op.packet.size == flit_elements(op.dtype, env.hw) and op.packet.equivalent(padded)
        raise RuleViolation(
            "CAST-003",
            f"the Cast Engine does not convert {stream.dtype} to {op.dtype}",
            expected=f"{stream.dtype} to {', '.join(targets)}" if targets else "an input of i32 or f32",
            got=op.dtype,
            also=(*(() if targets else ("CAST-009",)), *(() if one_flit else ("CAST-004",))),
        )
    per_flit = flit_elements(stream.dtype, env.hw)
    if stream.packet.size != per_flit:
        raise RuleViolation(
            "CAST-002",
            f"the packet {stream.packet} has {stream.packet.size} elements of {stream.dtype}",
            expected=f"{per_flit}, one flit",
            got=stream.packet.size,
            nearest=f"collect to # {per_flit}",
        )
    if not op.packet.equivalent(padded):
        shown = f"[{stream.packet}]" if isinstance(stream.packet, Pair) else str(stream.packet)
        raise RuleViolation(
            "CAST-004",
            f"OutPacket {op.packet} is not the input packet padded to one flit of {op.dtype}",
            expected=f"{shown} # {padded.size}",
            got=str(op.packet),
            also=("CAST-005",),
        )
    after = stream.with_(position="Cast", dtype=op.dtype, packet=op.packet, details=None)
    return Step(op, stream, after, None, {"cast_cycles": stream.time.size}, StageCost(cycles=stream.time.size))


def apply(values: Values, step: Step, env: ChainEnv, operands: Dict[str, Values]) -> Values:
    """Every element converted; the added padding is undefined."""
    assert isinstance(step.after, StreamType)
    data = convert(values.data, step.before.dtype, step.after.dtype)
    missing = step.after.packet.size - step.before.packet.size
    widths = [(0, 0)] * (data.ndim - 1) + [(0, missing)]
    return Values(np.pad(data, widths), np.pad(values.defined, widths))

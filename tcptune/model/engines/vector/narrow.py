"""Narrow and Widen: between 8-way flits and 4-way packets (VE-016 to VE-019).

Split and concat move the half index between Packet and Time and keep all data; trim and pad keep Time and the front half only. A packet and
its time are one position, so a split or a concat is legal exactly where both types hold the same cell at every position.
"""

from __future__ import annotations

from collections.abc import Mapping as Dict
from dataclasses import replace

import numpy as np

from tcptune.errors import RuleViolation
from tcptune.ir.kernels.vector_ops import VectorNarrowSplit, VectorNarrowTrim, VectorWidenConcat, VectorWidenPad
from tcptune.ir.mappings.mapping import pair
from tcptune.ir.types import StreamType
from tcptune.model.engines.vector.pair import require_single
from tcptune.model.engines.vector.state import advance, enter_stage, make_step, require_dtype, state_of, vector_values
from tcptune.model.stage import ChainEnv, Step
from tcptune.model.values import Values

HANDLES = (VectorNarrowSplit, VectorNarrowTrim, VectorWidenConcat, VectorWidenPad)

NarrowOp = VectorNarrowSplit | VectorNarrowTrim | VectorWidenConcat | VectorWidenPad

INVERSE = {"vector_narrow_split": "vector_widen_concat", "vector_narrow_trim": "vector_widen_pad"}
"""Which widening undoes which narrowing."""


def check(stream: StreamType, op: NarrowOp, env: ChainEnv) -> Step:
    """Legality of a change of way.

    Raises:
        RuleViolation: VE-005, 011, 012 (stage), PAIR-005, VE-016 (split), VE-017 (trim), VE-018 (concat), VE-019 (pad).
    """
    state = state_of(stream)
    require_single(state, op)
    stage = enter_stage(state, op)
    require_dtype(stream, op, stage)
    wide, narrow = env.hw.vector_ways
    lanes = narrow if stage.way_out == narrow else wide
    if isinstance(op, VectorNarrowSplit):
        _check_regrouped(stream, op, lanes, "VE-016")
    elif isinstance(op, VectorWidenConcat):
        _check_regrouped(stream, op, lanes, "VE-018")
    elif isinstance(op, VectorNarrowTrim):
        _check_trim(stream, op, lanes)
    else:
        _check_pad(stream, op, lanes)
    if stage.way_out == narrow:
        state = replace(state, narrowed=op.NAME)
    time = op.time if isinstance(op, VectorNarrowSplit | VectorWidenConcat) else stream.time
    return make_step(op, stream, advance(stream, state, stage, time=time, packet=op.packet))


def _check_regrouped(stream: StreamType, op: VectorNarrowSplit | VectorWidenConcat, lanes: int, rule: str) -> None:
    _check_size(op, lanes, rule)
    before, after = pair(stream.time, stream.packet), pair(op.time, op.packet)
    if before.size % lanes or not before.equivalent(after):
        nearest = None
        if before.size % lanes == 0:
            time, packet = before.split_at(lanes)
            nearest = f"time {time}, packet {packet}"
        raise RuleViolation(
            rule,
            f"{op.NAME} keeps every position of time and packet",
            expected=f"time and packet that hold {before}" if nearest else f"a Time of at least {lanes // stream.packet.size} steps",
            got=f"time {op.time}, packet {op.packet}",
            nearest=nearest or "vector_widen_pad",
        )


def _check_size(op: NarrowOp, lanes: int, rule: str) -> None:
    if op.packet.size != lanes:
        raise RuleViolation(
            rule, f"the packet after {op.NAME} has {lanes} elements, {op.packet} has {op.packet.size}", expected=lanes, got=op.packet.size
        )


def _check_trim(stream: StreamType, op: VectorNarrowTrim, lanes: int) -> None:
    front = stream.packet.resize(lanes)
    if front.live_size != stream.packet.live_size:
        raise RuleViolation(
            "VE-017",
            f"the back {stream.packet.size - lanes} lanes of {stream.packet} hold data",
            expected="padding in the back half",
            got=str(stream.packet),
            nearest="vector_narrow_split",
            also=("VCG-023", "VCG-016"),
        )
    _check_size(op, lanes, "VE-017")
    if not front.equivalent(op.packet):
        raise RuleViolation(
            "VE-017", f"the packet after a trim is the front half of {stream.packet}", expected=str(front), got=str(op.packet)
        )


def _check_pad(stream: StreamType, op: VectorWidenPad, lanes: int) -> None:
    _check_size(op, lanes, "VE-019")
    padded = stream.packet.pad(lanes)
    if not padded.equivalent(op.packet):
        raise RuleViolation(
            "VE-019", "the added lanes are padding, the others stay", expected=str(padded), got=str(op.packet), nearest=str(padded)
        )


# --- values -----------------------------------------------------------------------------------------------------------


def apply(values: Values, step: Step, env: ChainEnv, operands: Dict[str, Values]) -> Values:
    """Values after a change of way; the lanes a pad adds are undefined."""
    current = vector_values(values)
    after = step.after
    assert isinstance(after, StreamType)
    time, lanes = after.time.size, after.packet.size

    def moved(array: np.ndarray, fill: int) -> np.ndarray:
        if isinstance(step.op, VectorNarrowSplit | VectorWidenConcat):
            return array.reshape(*array.shape[:-2], time, lanes)
        if isinstance(step.op, VectorNarrowTrim):
            return array[..., :lanes]
        return np.pad(array, [(0, 0)] * (array.ndim - 1) + [(0, lanes - array.shape[-1])], constant_values=fill)

    tags = None if current.tags is None else moved(current.tags, 0)
    return replace(current, data=moved(current.data, 0), defined=moved(current.defined, 0), tags=tags)

"""Vector Engine: entry, exit, and the stages without ALUs: tag, conversions, reinterpret, stash, filter (VE-001 to VE-024).

The chain is a typed state machine (`vector_state`): its ALU stages are in `vector_elementwise`, Narrow and Widen in `vector_narrow`, pair
mode in `vector_pair`, the two reducers in `vector_reduce` and `inter_slice_reduce`.
"""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Mapping as Dict
from dataclasses import replace
from typing import Any

import numpy as np

from tcptune.errors import RuleViolation
from tcptune.ir.kernels.ops import Op
from tcptune.ir.kernels.vector_operands import TAG_BITS, Comparison, TagMode
from tcptune.ir.kernels.vector_ops import (
    VectorFilter,
    VectorFinal,
    VectorFpToFxp,
    VectorFxpToFp,
    VectorInit,
    VectorIntraSliceTag,
    VectorReinterpret,
    VectorStash,
)
from tcptune.ir.types import DType, StreamType
from tcptune.model.engines.vector.operands import admitted, check_guard, require_register_room
from tcptune.model.engines.vector.pair import require_single
from tcptune.model.engines.vector.state import (
    F32,
    FINAL_POSITION,
    I32,
    INIT,
    INIT_POSITION,
    INTRA_FIRST,
    REDUCER,
    STAGES,
    StashState,
    VectorState,
    advance,
    allowed_methods,
    enter_stage,
    make_step,
    require_dtype,
    stage_named,
    state_of,
    vector_values,
)
from tcptune.model.numerics.vector import compare, fixed_to_float, float_to_fixed, reinterpret
from tcptune.model.stage import ChainEnv, Step
from tcptune.model.values import Values

HANDLES = (VectorInit, VectorIntraSliceTag, VectorFinal, VectorFxpToFp, VectorFpToFxp, VectorReinterpret, VectorStash, VectorFilter)

TAG_MODES = {"Zero": True, "Comparison": True, "AxisToggle": False, "ValidCount": False, "Vrf": False}
"""Tag modes, and whether a kernel can use them: AxisToggle is declared but not lowered, the last two are withheld (TAG-002, TAG-005)."""

COMPARISON_TESTS = {
    "Equal": True,
    "Less": True,
    "Greater": True,
    "LessUnsigned": True,
    "GreaterUnsigned": True,
    "True": False,
    "False": False,
}
"""Tests of the Comparison tag mode, and whether they have a boundary (TAG-003)."""

_NUMPY = {I32.name: np.int32, F32.name: np.float32}


def check(stream: StreamType, op: Op, env: ChainEnv) -> Step:
    """Legality of one method; see `_CHECKS` for the rules of each."""
    require_single(state_of(stream), op)
    step: Step = _CHECKS[type(op)](stream, op, env)
    return step


def _check_init(stream: StreamType, op: VectorInit, env: ChainEnv) -> Step:
    """VE-001: i32 or f32; VE-003: one flit a packet. The position is the edge list's business (VE-002)."""
    if stream.dtype not in (I32, F32):
        raise RuleViolation(
            "VE-001",
            f"the engine works on 32-bit elements, the stream holds {stream.dtype}",
            expected="i32 or f32",
            got=str(stream.dtype),
            nearest="fetch_cast to i32 or f32",
            also=("KERNEL-042", "TU-004", "VE-003"),
        )
    lanes = env.hw.vector_ways[0]
    if stream.packet.size != lanes:
        raise RuleViolation(
            "VE-003",
            f"a packet is one flit of {lanes} elements, {stream.packet} has {stream.packet.size}",
            expected=lanes,
            got=stream.packet.size,
        )
    state = VectorState(flits=stream.time.size, steps=stream.time.size)
    return make_step(op, stream, replace(stream, position=INIT_POSITION, details=state))


def _check_tag(stream: StreamType, op: VectorIntraSliceTag, env: ChainEnv) -> Step:
    """VE-004, VE-005: once, from init or from the output of a reducer that ran first; TAG-002 to TAG-005: the mode."""
    state = state_of(stream)
    if state.stage == REDUCER and state.order == INTRA_FIRST:
        raise RuleViolation(
            "VE-004", "the chain ran before the reducer and cannot be entered again", expected="vector_final", also=("VE-005", "VE-011")
        )
    if state.stage not in (INIT, REDUCER):
        raise RuleViolation(
            "VE-005",
            f"the chain is entered already, at stage {state.stage}",
            expected=", ".join(allowed_methods(state)),
            also=("VE-004", "VE-011"),
        )
    _check_tag_mode(op.mode, stream.dtype)
    order = state.order or INTRA_FIRST
    state = replace(state, order=order, entry=replace(stream, details=None))
    return make_step(op, stream, advance(stream, state, STAGES[0]))


def _check_tag_mode(mode: TagMode, dtype: DType) -> None:
    if not TAG_MODES.get(mode.kind, False):
        rules = ("TAG-005", "TAG-002") if mode.kind == "AxisToggle" else ("TAG-002",)
        offered = ", ".join(name for name, available in TAG_MODES.items() if available)
        hint = "vector_intra_slice_unzip splits a stream into groups" if mode.kind == "AxisToggle" else None
        raise RuleViolation(
            rules[0],
            f"tag mode {mode.kind} cannot be used in a kernel",
            expected=offered,
            got=mode.kind,
            nearest=hint,
            also=(*rules[1:], "PAIR-002"),
        )
    if mode.kind != "Comparison":
        return
    if len(mode.comparisons) != TAG_BITS:
        raise RuleViolation("TAG-003", "Comparison has one test a tag bit", expected=TAG_BITS, got=len(mode.comparisons))
    for comparison in mode.comparisons:
        _check_comparison(comparison, dtype)


def _check_comparison(comparison: Comparison, dtype: DType) -> None:
    has_boundary = COMPARISON_TESTS.get(comparison.test)
    if has_boundary is None:
        raise RuleViolation("TAG-003", f"there is no test {comparison.test}", expected=", ".join(COMPARISON_TESTS), got=comparison.test)
    boundary = comparison.boundary
    if has_boundary != (boundary is not None):
        raise RuleViolation("TAG-003", f"{comparison.test} has {'a' if has_boundary else 'no'} boundary", got=comparison.to_json())
    if boundary is None:
        return
    if isinstance(boundary, float) != dtype.is_float or (dtype == I32 and not -(2**31) <= boundary < 2**31):
        raise RuleViolation("TAG-003", f"boundaries have the element type of the stream, {dtype}", expected=str(dtype), got=boundary)


def _check_final(stream: StreamType, op: VectorFinal, env: ChainEnv) -> Step:
    """VE-005: something must have run; VE-013: from 8-way only."""
    state = state_of(stream)
    if state.stage == INIT:
        raise RuleViolation(
            "VE-005",
            "vector_final directly after vector_init",
            expected="vector_intra_slice_tag, _unzip or vector_inter_slice_reduce",
            also=("VE-011",),
        )
    if state.way != STAGES[0].way_in:
        raise RuleViolation(
            "VE-013",
            f"vector_final needs 8-way, stage {state.stage} is {state.way}-way",
            expected="vector_widen_concat or vector_widen_pad first",
            got=state.stage,
            also=("VE-011", "VE-012"),
        )
    after = replace(stream, position=FINAL_POSITION, details=None)
    step = make_step(op, stream, after)
    return replace(step, derived={**step.derived, "stage": "VectorFinal"})


def _check_conversion(stream: StreamType, op: VectorFxpToFp | VectorFpToFxp, env: ChainEnv) -> Step:
    """VE-020, VE-021: int_width in 0..31; VE-015: the element type."""
    state = state_of(stream)
    stage = enter_stage(state, op)
    require_dtype(stream, op, stage)
    widths = env.hw.vector_int_widths
    if not isinstance(op.int_width, int) or isinstance(op.int_width, bool) or not 0 <= op.int_width < widths:
        rule = "VE-020" if isinstance(op, VectorFxpToFp) else "VE-021"
        raise RuleViolation(rule, f"int_width is {op.int_width}", expected=f"0 to {widths - 1}", got=op.int_width)
    return make_step(op, stream, advance(stream, state, stage, dtype=stage.result))


def _check_reinterpret(stream: StreamType, op: VectorReinterpret, env: ChainEnv) -> Step:
    """VE-022: to i32 or f32, anywhere inside the chain; stage, way and mapping stay."""
    state = state_of(stream)
    targets = {I32.name: I32, F32.name: F32}
    if state.stage == INIT:
        raise RuleViolation(
            "VE-022", "vector_reinterpret before the chain is entered", expected="vector_intra_slice_tag first", also=("VE-005", "VE-011")
        )
    if op.to not in targets:
        raise RuleViolation("VE-022", f"32 bits cannot be read as {op.to}", expected="i32 or f32", got=op.to)
    return make_step(op, stream, advance(stream, state, dtype=targets[op.to]))


def _check_stash(stream: StreamType, op: VectorStash, env: ChainEnv) -> Step:
    """STASH-002: at a stage with a write port; STASH-003: once; STASH-007: the room it leaves."""
    state = state_of(stream)
    if state.stage in (INIT, REDUCER) or not stage_named(state.stage).stashable:
        also = ("VE-005", "VE-011") if state.stage in (INIT, REDUCER) else ("VE-011",)
        stashable = ", ".join(s.name for s in STAGES if s.stashable)
        raise RuleViolation(
            "STASH-002", f"stage {state.stage} has no register-file write port", expected=stashable, got=state.stage, also=also
        )
    if state.stash is not None:
        raise RuleViolation("STASH-003", "the stash was written before", expected="one vector_stash a call")
    state = replace(state, stash=StashState(replace(stream, details=None), state.way))
    require_register_room(state, env)
    return make_step(op, stream, advance(stream, state))


def _check_filter(stream: StreamType, op: VectorFilter, env: ChainEnv) -> Step:
    """VE-014: 8-way, last stage; TAG-006: the guard."""
    state = state_of(stream)
    stage = enter_stage(state, op)
    check_guard(op.guard)
    return make_step(op, stream, advance(stream, state, stage))


_CHECKS: dict[type[Op], Callable[[StreamType, Any, ChainEnv], Step]] = {
    VectorInit: _check_init,
    VectorIntraSliceTag: _check_tag,
    VectorFinal: _check_final,
    VectorFxpToFp: _check_conversion,
    VectorFpToFxp: _check_conversion,
    VectorReinterpret: _check_reinterpret,
    VectorStash: _check_stash,
    VectorFilter: _check_filter,
}


# --- values -----------------------------------------------------------------------------------------------------------


def apply(values: Values, step: Step, env: ChainEnv, operands: Dict[str, Values]) -> Values:
    """Values after one method. A filter leaves what it masks undefined: how a shortened stream would map is not stated (VE-014)."""
    current = vector_values(values)
    op = step.op
    if isinstance(op, VectorIntraSliceTag) and op.mode.kind == "Comparison":
        return replace(current, tags=tags_of(op.mode, current.data))
    if isinstance(op, VectorFxpToFp):
        return replace(current, data=fixed_to_float(current.data, op.int_width))
    if isinstance(op, VectorFpToFxp):
        return replace(current, data=float_to_fixed(current.data, op.int_width))
    if isinstance(op, VectorReinterpret):
        return replace(current, data=reinterpret(current.data, _NUMPY[op.to]))
    if isinstance(op, VectorStash):
        return replace(current, stash=Values(current.data, current.defined))
    if isinstance(op, VectorFilter):
        return replace(current, defined=current.defined & admitted(op.guard, current.tags))
    if isinstance(op, VectorFinal):
        return Values(current.data, current.defined)
    return current


def tags_of(mode: TagMode, data: np.ndarray) -> np.ndarray:
    """Tag of every element: bit i holds test i of a Comparison mode (TAG-003)."""
    tags = np.zeros(data.shape, np.uint8)
    for bit, comparison in enumerate(mode.comparisons):
        boundary = np.asarray(comparison.boundary or 0, dtype=data.dtype)
        tags |= compare(comparison.test, data, boundary).astype(np.uint8) << np.uint8(bit)
    return tags

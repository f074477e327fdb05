"""State of a stream inside the Vector Engine: the twelve stages of the chain, what may follow what, and what a call has used up.

A `VectorState` travels in `StreamType.details` from `vector_init` to `vector_final`. `enter_stage` is the transition table (VE-010 to
VE-014): a method of stage n may be called while the current stage is earlier than n, or again within the multi-ALU clusters; every
stage fixes the way (8 or 4 elements a step) it needs and the way it leaves.
"""

from __future__ import annotations

from collections.abc import Mapping as Dict
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from tcptune.errors import RuleViolation
from tcptune.ir.kernels.ops import Op
from tcptune.ir.types import DType, StreamType, dtype
from tcptune.model.hardware import RNGD
from tcptune.model.stage import StageCost, Step
from tcptune.model.values import Values

I32, F32 = dtype("i32"), dtype("f32")
INTRA_FIRST, INTER_FIRST = "IntraFirst", "InterFirst"
PAIRED, MERGED = "paired", "merged"
INIT, ENTRY, NARROW, WIDEN, FILTER = "VectorInit", "Entry", "Narrow", "Widen", "Filter"
REDUCER = "InterSliceReduce"

INIT_POSITION, CHAIN_POSITION, FINAL_POSITION = "VectorInit", "Vector", "VectorFinal"
BRANCH_POSITION = "VectorBranch"
"""Position of a fragment that starts right after `vector_intra_slice_tag` with tag Zero."""


@dataclass(frozen=True, slots=True)
class Stage:
    """One stage of the chain (VE-010, VE-015).

    Attributes:
        methods: vendor methods that enter it, without the ``_with_mode`` and ``_zip`` forms.
        way_in, way_out: elements a step it needs and leaves.
        operand: whether its operations take operands.
        to_reducer: whether the Inter-Slice Reducer may follow (VE-013).
        stashable: whether it has a register-file write port (STASH-002).
        dtypes: element types it accepts.
        result: element type it leaves, where it changes it.
        repeats: whether several of its operations may follow one another, each on its own ALU.
    """

    name: str
    methods: tuple[str, ...]
    way_in: int
    way_out: int
    operand: bool
    to_reducer: bool
    stashable: bool
    dtypes: tuple[DType, ...] = (I32, F32)
    result: DType | None = None
    repeats: bool = False


_WIDE, _HALF = RNGD.vector_ways

STAGES = (
    Stage(ENTRY, ("vector_intra_slice_tag",), _WIDE, _WIDE, False, False, True),
    Stage("Logic", ("vector_logic",), _WIDE, _WIDE, True, True, True, repeats=True),
    Stage("Fxp", ("vector_fxp",), _WIDE, _WIDE, True, True, True, (I32,), repeats=True),
    Stage("FxpToFp", ("vector_fxp_to_fp",), _WIDE, _WIDE, False, True, False, (I32,), F32),
    Stage(NARROW, ("vector_narrow_split", "vector_narrow_trim"), _WIDE, _HALF, False, False, True),
    Stage("Float", ("vector_fp_unary", "vector_fp_binary", "vector_fp_ternary"), _HALF, _HALF, True, False, True, (F32,), repeats=True),
    Stage("IntraSliceReduce", ("vector_intra_slice_reduce",), _HALF, _HALF, False, False, False),
    Stage("FpDiv", ("vector_fp_div",), _HALF, _HALF, True, False, True, (F32,)),
    Stage(WIDEN, ("vector_widen_concat", "vector_widen_pad"), _HALF, _WIDE, False, True, False),
    Stage("FpToFxp", ("vector_fp_to_fxp",), _WIDE, _WIDE, False, True, False, (F32,), I32),
    Stage("Clip", ("vector_clip",), _WIDE, _WIDE, True, True, True, repeats=True),
    Stage(FILTER, ("vector_filter",), _WIDE, _WIDE, False, False, False),
)
"""The stages in pipeline order."""

STAGE_NUMBER = {stage.name: number for number, stage in enumerate(STAGES)}
"""Place of each stage in the pipeline."""

_STAGE_OF_METHOD = {**{m: s for s in STAGES for m in s.methods}, "vector_fp": STAGES[STAGE_NUMBER["Float"]]}


def stage_named(name: str) -> Stage:
    """The stage with this name."""
    return STAGES[STAGE_NUMBER[name]]


def base_method(op: Op) -> str:
    """The method without its ``_with_mode`` and ``_zip`` suffixes."""
    return op.NAME.removesuffix("_with_mode").removesuffix("_zip")


@dataclass(frozen=True, slots=True)
class StashState:
    """What the one snapshot of a call holds; `was_read` once an operation took it (STASH-003 to STASH-006)."""

    stream: StreamType
    way: int
    was_read: bool = False


@dataclass(frozen=True, slots=True)
class VectorState:
    """What a call has done so far.

    Attributes:
        stage: the current stage, ``VectorInit`` before the first block, ``InterSliceReduce`` on the reducer's output.
        way: elements a step, 8 or 4.
        order: ``IntraFirst`` or ``InterFirst``, fixed by the first block entered (VE-004).
        entry: the stream that entered the chain; the Valid Count Generator is set up for it.
        reduced: whether the Inter-Slice Reducer has run.
        alus: ALUs used, in order (ALU-001).
        stash: the snapshot, if one was taken.
        pair: ``""`` for a single stream, ``paired`` before and ``merged`` after the zip.
        narrowed: the method that narrowed, if any.
        registers: register tensors read so far, with their bytes a slice.
        flits: 8-way flits a slice that entered the engine.
        steps: most steps a slice so far, an 8-way flit or a 4-way packet each (VT-005).
    """

    stage: str = INIT
    way: int = _WIDE
    order: str | None = None
    entry: StreamType | None = None
    reduced: bool = False
    alus: tuple[str, ...] = ()
    stash: StashState | None = None
    pair: str = ""
    narrowed: str | None = None
    registers: tuple[tuple[str, int], ...] = ()
    flits: int = 0
    steps: int = 0


def state_of(stream: StreamType) -> VectorState:
    """The state a stream carries; a fragment that starts inside the chain gets the one of a fresh entry."""
    if isinstance(stream.details, VectorState):
        return stream.details
    return VectorState(ENTRY, order=INTRA_FIRST, entry=stream, flits=stream.time.size, steps=stream.time.size)


@dataclass(frozen=True)
class VectorValues(Values):
    """Contents of a stream inside the engine.

    In the paired phase `data` and `defined` have a leading axis of two groups.

    Attributes:
        tags: 4-bit tag of every element, in the shape of `data`; absent where all tags are 0.
        stash: the snapshot, in the shape of the stream it was taken from.
    """

    tags: npt.NDArray[np.uint8] | None = field(default=None)
    stash: Values | None = field(default=None)


def vector_values(values: Values) -> VectorValues:
    """The contents with the engine's side state, empty where a chain enters."""
    return values if isinstance(values, VectorValues) else VectorValues(values.data, values.defined)


def enter_stage(state: VectorState, op: Op) -> Stage:
    """The stage that the method of `op` enters from the current one.

    Raises:
        RuleViolation: VE-005 before the chain is entered or after the reducer; VE-011 against the stage order; VE-012 in the wrong way;
            VE-014 for a filter that cannot be placed. VE-011 is always among the equally right diagnoses.
    """
    target = _STAGE_OF_METHOD[base_method(op)]
    if target.name == FILTER and state.stage == REDUCER:
        return target
    if state.stage in (INIT, REDUCER):
        raise RuleViolation(
            "VE-005",
            f"{op.NAME} needs the chain, and at {state.stage} the chain is not entered",
            expected="vector_intra_slice_tag first"
            if state.stage == INIT or state.order == INTER_FIRST
            else "vector_filter or vector_final",
            got=op.NAME,
            also=("VE-004", "VE-011", "STASH-004", "STASH-009") if state.stage == REDUCER else ("VE-011",),
        )
    here, there = STAGE_NUMBER[state.stage], STAGE_NUMBER[target.name]
    wrong_way = target.way_in != state.way
    if target.name == FILTER and wrong_way:
        raise _stage_violation("VE-014", state, op, target, ("VE-011", "VE-012"))
    if there < here or (there == here and not target.repeats):
        also = (*(("VE-012",) if wrong_way else ()), *(("VE-014",) if state.stage == FILTER else ()), *_unit_rules(state, target))
        raise _stage_violation("VE-011", state, op, target, also)
    if wrong_way:
        also = ("VE-011", *(("PAIR-010",) if "_zip" in op.NAME else ()), *(("ISR-001",) if target.name == "IntraSliceReduce" else ()))
        raise _stage_violation("VE-012", state, op, target, also)
    return target


def _unit_rules(state: VectorState, target: Stage) -> tuple[str, ...]:
    """A second use of a dedicated unit also breaks the rule of that unit."""
    if state.stage != target.name:
        return ()
    return {"FpDiv": ("ALU-001", "ALU-041", "VE-023"), "IntraSliceReduce": ("ALU-001", "ALU-040")}.get(target.name, ())


def _stage_violation(rule: str, state: VectorState, op: Op, target: Stage, also: tuple[str, ...]) -> RuleViolation:
    return RuleViolation(
        rule,
        f"{op.NAME} enters stage {target.name} in {target.way_in}-way, and the stream is at stage {state.stage} in {state.way}-way",
        expected=", ".join(allowed_methods(state)),
        got=op.NAME,
        also=(*also, *(("PAIR-003",) if state.pair else ())),
    )


def allowed_methods(state: VectorState) -> tuple[str, ...]:
    """Methods of the chain that may follow, in pipeline order (VE-011)."""
    here = STAGE_NUMBER[state.stage]
    found = [
        method
        for number, stage in enumerate(STAGES)
        for method in stage.methods
        if (number > here or (number == here and stage.repeats)) and stage.way_in == state.way
    ]
    if state.way == STAGES[0].way_in and state.stage != FILTER and stage_named(state.stage).to_reducer:
        found.append("vector_inter_slice_reduce")
    return (*found, *(("vector_final",) if state.way == STAGES[0].way_in else ()))


def require_dtype(stream: StreamType, op: Op, stage: Stage) -> None:
    """Refuses an element type that the stage does not have.

    Raises:
        RuleViolation: VE-015.
    """
    if stream.dtype not in stage.dtypes:
        raise RuleViolation(
            "VE-015",
            f"stage {stage.name} works on {' and '.join(map(str, stage.dtypes))}, not on {stream.dtype}",
            expected=" or ".join(map(str, stage.dtypes)),
            got=f"{op.NAME} on {stream.dtype}",
            nearest=f"vector_reinterpret to {stage.dtypes[0]} first, or convert",
            also=("VE-030",) if stage.operand else (),
        )


def use_alu(state: VectorState, alu: str, op: Op) -> VectorState:
    """The state after `op` has taken `alu`.

    Raises:
        RuleViolation: ALU-001 if the call has used it before.
    """
    if alu in state.alus:
        unary = ("ALU-030",) if alu in ("FpFpu", "FpExp") else ()
        pair = ("ALU-060", "PAIR-014") if state.pair else ()
        raise RuleViolation(
            "ALU-001",
            f"{alu} is already in use",
            expected="an ALU that this call has not used",
            got=f"{op.NAME} on {alu}",
            also=(*unary, *pair),
        )
    return replace(state, alus=(*state.alus, alu))


def advance(stream: StreamType, state: VectorState, stage: Stage | None = None, **changes: Any) -> StreamType:
    """The stream after a method: its state at `stage` (the same one if absent), and its changed levels."""
    if stage is not None:
        state = replace(state, stage=stage.name, way=stage.way_out)
    after = replace(stream, position=CHAIN_POSITION, **changes)
    return replace(after, details=replace(state, steps=max(state.steps, after.time.size)))


def make_step(
    op: Op, before: StreamType, after: StreamType, *, config: Any = None, latency: int = 0, more: Dict[str, Any] | None = None
) -> Step:
    """A checked stage with the numbers every vector operation derives: what the call has used so far (VE-041)."""
    state = after.details if isinstance(after.details, VectorState) else state_of(before)
    narrow = state.narrowed is not None
    derived: dict[str, Any] = {
        "alus": list(state.alus),
        "alu_latency_cycles": len(state.alus),
        "flits_per_slice": state.flits,
        "way4_flits": state.steps if narrow else 0,
        "vector_steps": state.steps,
        "elements_per_cycle": _HALF if narrow else _WIDE,
        "stage": state.stage,
        "way": state.way,
        **({"order": state.order} if state.order else {}),
        **(more or {}),
    }
    return Step(op, before, after, config, derived, StageCost(before.time.size, latency))

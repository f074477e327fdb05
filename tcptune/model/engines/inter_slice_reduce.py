"""Inter-Slice Reducer: folds the innermost factors of Slice over the slices of a cluster (XSR-001 to XSR-011).

The freed places of Slice are filled by a dummy ``1 # n`` (position 0 holds the value), by a broadcast over a fresh axis, or by
factors promoted from Time. The reducer runs right after `vector_init` (InterFirst) or after the chain (IntraFirst), once a call.
"""

from __future__ import annotations

from collections.abc import Mapping as Dict
from dataclasses import dataclass, replace

import numpy as np

from tcptune.errors import RuleViolation
from tcptune.ir.kernels.vector_ops import VectorInterSliceReduce
from tcptune.ir.mappings.mapping import Mapping, Padding
from tcptune.ir.types import StreamType
from tcptune.model.engines.vector.alus import INTER_SLICE_REDUCTIONS, Reduction, find_reduction
from tcptune.model.engines.vector.pair import require_single
from tcptune.model.engines.vector.state import (
    CHAIN_POSITION,
    INIT,
    INTER_FIRST,
    REDUCER,
    STAGES,
    VectorState,
    allowed_methods,
    make_step,
    stage_named,
    state_of,
    vector_values,
)
from tcptune.model.mappings.movement import gather_indices
from tcptune.model.numerics.vector import fold
from tcptune.model.stage import ChainEnv, Step
from tcptune.model.values import Values

HANDLES = (VectorInterSliceReduce,)


@dataclass(frozen=True, slots=True)
class InterSliceReduceConfig:
    """A checked reduction: what folds, over how many slices a group, and the slices that stay (one a group)."""

    reduction: Reduction
    ratio: int
    kept: Mapping


def tail_cycles(ratio: int) -> int:
    """Cycles after the last input: about one traversal of the group's ring (XSR-007)."""
    return ratio


def check(stream: StreamType, op: VectorInterSliceReduce, env: ChainEnv) -> Step:
    """Legality of an inter-slice reduction.

    Raises:
        RuleViolation: VE-004 (twice), VE-013 (stage), PAIR-013, XSR-006 (function), XSR-008 (size), XSR-001 and XSR-002 (Slice),
            XSR-010 and XSR-004 (Time).
    """
    state = state_of(stream)
    require_single(state, op)
    _require_entry(state)
    reduction = find_reduction(INTER_SLICE_REDUCTIONS, stream.dtype, op.fn, "XSR-006")
    if op.slice.size != stream.slice.size:
        raise RuleViolation(
            "XSR-008",
            f"the slices stay {stream.slice.size} in number",
            expected=stream.slice.size,
            got=op.slice.size,
            nearest=f"fill the freed places, e.g. with 1 # {stream.slice.size // op.slice.size}"
            if op.slice.size < stream.slice.size
            else None,
            also=("XSR-002",),
        )
    ratio, kept, fill = _split_slices(stream.slice, op.slice)
    _check_fill(stream, op, ratio, fill)
    _check_time(stream, op, fill)
    config = InterSliceReduceConfig(reduction, ratio, kept)
    state = replace(state, stage=REDUCER, way=STAGES[0].way_in, order=state.order or INTER_FIRST, reduced=True, stash=None)
    state = replace(state, steps=max(state.steps, op.time.size))
    after = replace(stream, position=CHAIN_POSITION, slice=op.slice, time=op.time, details=state)
    return make_step(op, stream, after, config=config, latency=tail_cycles(ratio), more={"reduction_ratio": ratio})


def _require_entry(state: VectorState) -> None:
    if state.reduced:
        also = ("VE-011",) if state.stage == REDUCER else ()
        raise RuleViolation("VE-004", "the reducer ran before and cannot run again", expected=", ".join(_after_reducer(state)), also=also)
    if state.stage == INIT:
        return
    if state.way != STAGES[0].way_in or not stage_named(state.stage).to_reducer:
        paired = ("PAIR-013",) if state.pair else ()
        raise RuleViolation(
            "VE-013",
            f"the reducer does not follow stage {state.stage} in {state.way}-way",
            expected="8-way, from " + ", ".join(s.name for s in STAGES if s.to_reducer),
            got=state.stage,
            nearest=", ".join(allowed_methods(state)),
            also=("VE-011", "XSR-009", *(("VE-012",) if state.way != STAGES[0].way_in else ()), *paired),
        )


def _after_reducer(state: VectorState) -> tuple[str, ...]:
    return allowed_methods(state) if state.stage != REDUCER else ("vector_filter", "vector_final")


def _split_slices(before: Mapping, after: Mapping) -> tuple[int, Mapping, Mapping]:
    """Group size, the outer part that stays, and what fills the freed inner places.

    The group is the smallest inner part outside which both mappings agree.
    """
    for ratio in range(1, before.size + 1):
        if before.size % ratio:
            continue
        kept, _ = before.split_at(ratio)
        outer, fill = after.split_at(ratio)
        if kept.equivalent(outer):
            if ratio == 1:
                raise RuleViolation("XSR-001", "nothing is reduced", expected="at least two slices a group", got=str(after))
            return ratio, kept, fill
    raise AssertionError("mappings of one size agree outside the whole")


def _check_fill(stream: StreamType, op: VectorInterSliceReduce, ratio: int, fill: Mapping) -> None:
    for axis in fill.axes:
        if axis in stream.slice.axes and not _is_promotable(stream, axis):
            raise RuleViolation(
                "XSR-001",
                f"the reduced factors are the innermost ones of {stream.slice}, and {axis} moves",
                expected="kept factors outermost, in place",
                got=str(op.slice),
                also=("XSR-002",),
            )
        elsewhere = [level for level in ("packet", "cluster", "chip") if axis in getattr(stream, level).axes]
        if elsewhere and axis not in stream.time.axes:
            raise RuleViolation(
                "XSR-002",
                f"{axis} fills freed slices and lies in {elsewhere[0].capitalize()}",
                expected="a dummy 1 # n, a fresh axis, or a factor of Time",
                got=str(fill),
            )


def _is_promotable(stream: StreamType, axis: str) -> bool:
    return axis in stream.time.axes


def _check_time(stream: StreamType, op: VectorInterSliceReduce, fill: Mapping) -> None:
    """Time without the promoted factors; a promoted factor may be padded, ``S # 4`` being ``[1 # 2, S]`` for S of 2."""
    rest = stream.time
    for term in fill.terms():
        factor = term.inner if isinstance(term, Padding) else term
        if not any(axis in stream.time.axes for axis in factor.axes):
            continue
        if not rest.contains(factor):
            raise RuleViolation(
                "XSR-002", f"{factor} is no factor of Time", expected=f"factors of {stream.time}", got=str(factor), also=("XSR-010",)
            )
        rest = rest.divide(factor)
    if op.time.equivalent(rest):
        return
    reordered = op.time.is_permutation_of(rest)
    raise RuleViolation(
        "XSR-004" if reordered else "XSR-010",
        "factors that stay in Time keep their order" if reordered else "the output time is Time without the promoted factors",
        expected=str(rest),
        got=str(op.time),
        nearest=str(rest),
        also=("XSR-010",) if reordered else (),
    )


# --- values -----------------------------------------------------------------------------------------------------------


def apply(values: Values, step: Step, env: ChainEnv, operands: Dict[str, Values]) -> Values:
    """Every group is folded in ring order, then the results move to their new places; a group with an undefined slice is undefined."""
    current = vector_values(values)
    config: InterSliceReduceConfig = step.config
    before, after = step.before, step.after
    assert isinstance(after, StreamType)
    chips, clusters, slices, time, lanes = current.data.shape
    shape = (chips, clusters, slices // config.ratio, config.ratio, time, lanes)
    folded = fold(config.reduction.combine, np.moveaxis(current.data.reshape(shape), 3, 0), config.reduction.identity_value)
    defined = current.defined.reshape(shape).all(axis=3)
    index, live = gather_indices(replace(before, slice=config.kept, details=None), replace(after, details=None))
    return replace(current, data=folded.reshape(-1)[index], defined=defined.reshape(-1)[index] & live, tags=None, stash=None)

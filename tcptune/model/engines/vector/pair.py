"""Pair mode: two groups of one stream run in lock step until a zip merges them (PAIR-001 to PAIR-015).

`vector_intra_slice_unzip` parts the stream along a 2-way axis of Time; operations then name operands a group; one `_zip` operation combines
the groups, and the merged stream goes on as a single one, without stash, filter and intra-slice reduce.
"""

from __future__ import annotations

from collections.abc import Mapping as Dict
from dataclasses import dataclass, replace

import numpy as np

from tcptune.errors import RuleViolation
from tcptune.ir.kernels.ops import Op
from tcptune.ir.kernels.vector_ops import (
    VectorClipZip,
    VectorClipZipWithMode,
    VectorFpZip,
    VectorFpZipWithMode,
    VectorFxpZip,
    VectorFxpZipWithMode,
    VectorIntraSliceUnzip,
    VectorLogicZip,
    VectorLogicZipWithMode,
)
from tcptune.ir.mappings.mapping import Mapping
from tcptune.ir.types import StreamType
from tcptune.model.engines.vector.alus import AluFunction, find_function
from tcptune.model.engines.vector.operands import DEFAULT_ZIP_MODE, ZIP_MODES, argument_mode, evaluate
from tcptune.model.engines.vector.state import (
    INIT,
    INTRA_FIRST,
    MERGED,
    PAIRED,
    STAGES,
    VectorState,
    advance,
    enter_stage,
    make_step,
    require_dtype,
    state_of,
    use_alu,
    vector_values,
)
from tcptune.model.mappings.position_digits import PlacedDigit, position_digits, without_axis
from tcptune.model.stage import ChainEnv, Step
from tcptune.model.values import Values

ZIPS = (
    VectorLogicZip,
    VectorLogicZipWithMode,
    VectorFxpZip,
    VectorFxpZipWithMode,
    VectorFpZip,
    VectorFpZipWithMode,
    VectorClipZip,
    VectorClipZipWithMode,
)
HANDLES = (VectorIntraSliceUnzip, *ZIPS)

GROUPS = 2

UNAVAILABLE: dict[str, tuple[str, str, tuple[str, ...]]] = {
    "vector_narrow_trim": (PAIRED, "PAIR-005", ()),
    "vector_widen_pad": (PAIRED, "PAIR-005", ()),
    "vector_stash": (MERGED, "PAIR-011", ("STASH-008",)),
    "vector_filter": (MERGED, "PAIR-011", ("VE-014",)),
    "vector_intra_slice_reduce": (MERGED, "PAIR-012", ("ISR-010",)),
    "vector_inter_slice_reduce": (PAIRED, "PAIR-013", ("VE-013",)),
    "vector_final": (PAIRED, "PAIR-003", ("VE-013",)),
}
"""Methods a pair does not offer: until which phase, the rule, and equally right diagnoses (PAIR-010)."""


@dataclass(frozen=True, slots=True)
class UnzipConfig:
    """Where the grouping axis lies in Time: its steps, inside `outer` blocks of two."""

    outer_steps: int
    inner_steps: int


@dataclass(frozen=True, slots=True)
class ZipConfig:
    """The function that merges, and which group fills each of its arguments."""

    function: AluFunction
    arguments: tuple[str, ...]


def require_single(state: VectorState, op: Op) -> None:
    """Refuses a method that the current phase of a pair does not offer.

    Raises:
        RuleViolation: PAIR-003, 005, 011, 012 or 013.
    """
    if not state.pair or op.NAME not in UNAVAILABLE:
        return
    until, rule, also = UNAVAILABLE[op.NAME]
    if state.pair == PAIRED or until == MERGED:
        raise RuleViolation(rule, f"{op.NAME} is not offered on a {state.pair} stream", got=op.NAME, also=also)


def check(stream: StreamType, op: Op, env: ChainEnv) -> Step:
    """Legality of the entry and of the merge of a pair.

    Raises:
        RuleViolation: PAIR-001 for an entry, PAIR-009 and PAIR-010 for a merge, and the stage and ALU rules of the merge's cluster.
    """
    if isinstance(op, VectorIntraSliceUnzip):
        return _check_unzip(stream, op, env)
    assert isinstance(op, ZIPS)
    state = state_of(stream)
    if state.pair != PAIRED:
        what = "the groups are merged already" if state.pair else "the stream is no pair"
        raise RuleViolation(
            "PAIR-010", f"{op.NAME} merges two groups: {what}", expected="one zip, after vector_intra_slice_unzip", also=("PAIR-003",)
        )
    stage = enter_stage(state, op)
    require_dtype(stream, op, stage)
    function = find_function(stage.name, stream.dtype, op.fn, 2, getattr(op, "alu", None))
    arguments = argument_mode(ZIP_MODES, getattr(op, "mode", None), DEFAULT_ZIP_MODE, "PAIR-009")
    state = replace(use_alu(state, function.alu, op), pair=MERGED)
    return make_step(op, stream, advance(stream, state, stage), config=ZipConfig(function, arguments), latency=1)


def _check_unzip(stream: StreamType, op: VectorIntraSliceUnzip, env: ChainEnv) -> Step:
    state = state_of(stream)
    if state.stage != INIT:
        raise RuleViolation(
            "PAIR-001",
            "vector_intra_slice_unzip directly follows vector_init",
            got=f"at stage {state.stage}",
            also=("VE-004", "VE-005", "VE-011"),
        )
    size = env.axes.get(op.axis)
    if size != GROUPS:
        raise RuleViolation("PAIR-001", f"the grouping axis has two coordinates, {op.axis} has {size}", expected=GROUPS, got=size)
    place = _grouping_digit(stream.time, op)
    inner = place.place
    outer = stream.time.size // (GROUPS * inner)
    rest = without_axis(stream.time, op.axis)
    if rest is None or not op.time.equivalent(rest):
        raise RuleViolation(
            "PAIR-001", f"the time of the groups is Time without {op.axis}", expected=str(rest), got=str(op.time), nearest=str(rest)
        )
    state = replace(state, order=INTRA_FIRST, pair=PAIRED, entry=replace(stream, details=None))
    after = advance(stream, state, STAGES[0], time=op.time)
    return make_step(op, stream, after, config=UnzipConfig(outer, inner))


def _grouping_digit(time: Mapping, op: VectorIntraSliceUnzip) -> PlacedDigit:
    for digit in position_digits(time) or ():
        if digit.axis == op.axis and digit.extent == GROUPS:
            return digit
    raise RuleViolation("PAIR-001", f"the grouping axis {op.axis} is a factor of Time", expected=f"Time with {op.axis}", got=str(time))


# --- values -----------------------------------------------------------------------------------------------------------


def apply(values: Values, step: Step, env: ChainEnv, operands: Dict[str, Values]) -> Values:
    """Unzip gives `data` a leading axis of two groups; a zip takes it away."""
    current = vector_values(values)
    config = step.config
    if isinstance(config, UnzipConfig):
        return replace(current, data=_parted(current.data, config), defined=_parted(current.defined, config), tags=None)
    groups = [Values(current.data[k], current.defined[k]) for k in range(GROUPS)]
    merged = evaluate(config.function, [groups[int(name.removeprefix("group"))] for name in config.arguments])
    return replace(current, data=merged.data, defined=merged.defined)


def _parted(array: np.ndarray, config: UnzipConfig) -> np.ndarray:
    *space, time, packet = array.shape
    split = array.reshape(*space, config.outer_steps, GROUPS, config.inner_steps, packet)
    grouped = np.moveaxis(split, len(space) + 1, 0)
    return np.ascontiguousarray(grouped).reshape(GROUPS, *space, time // GROUPS, packet)

"""Element-wise operations of the chain: Logic, Fxp, Float, FpDiv and Clip, on a single stream and on a pair (ALU, VE-030 to VE-037).

On a single stream an operation has one operand; on a pair it has one a group, and a group without one passes unchanged (PAIR-006).
"""

from __future__ import annotations

from collections.abc import Mapping as Dict
from dataclasses import dataclass, replace

import numpy as np

from tcptune.errors import RuleViolation
from tcptune.ir.kernels.vector_ops import (
    OperandFields,
    VectorClip,
    VectorClipWithMode,
    VectorFpBinary,
    VectorFpBinaryWithMode,
    VectorFpDiv,
    VectorFpDivWithMode,
    VectorFpTernary,
    VectorFpTernaryWithMode,
    VectorFpUnary,
    VectorFpUnaryWithMode,
    VectorFxp,
    VectorFxpWithMode,
    VectorLogic,
    VectorLogicWithMode,
)
from tcptune.ir.types import StreamType
from tcptune.model.engines.vector.alus import AluFunction, find_function
from tcptune.model.engines.vector.operands import (
    BINARY_MODES,
    DEFAULT_BINARY_MODE,
    DEFAULT_TERNARY_MODE,
    TERNARY_MODES,
    OperandSlot,
    admitted,
    argument_mode,
    check_operand,
    evaluate,
    operand_values,
)
from tcptune.model.engines.vector.state import (
    PAIRED,
    Stage,
    VectorState,
    VectorValues,
    advance,
    base_method,
    enter_stage,
    make_step,
    require_dtype,
    state_of,
    use_alu,
    vector_values,
)
from tcptune.model.stage import ChainEnv, Step
from tcptune.model.values import Values

HANDLES = (
    VectorLogic,
    VectorLogicWithMode,
    VectorFxp,
    VectorFxpWithMode,
    VectorFpUnary,
    VectorFpUnaryWithMode,
    VectorFpBinary,
    VectorFpBinaryWithMode,
    VectorFpTernary,
    VectorFpTernaryWithMode,
    VectorFpDiv,
    VectorFpDivWithMode,
    VectorClip,
    VectorClipWithMode,
)

ElementwiseOp = (
    VectorLogic
    | VectorLogicWithMode
    | VectorFxp
    | VectorFxpWithMode
    | VectorFpUnary
    | VectorFpUnaryWithMode
    | VectorFpBinary
    | VectorFpBinaryWithMode
    | VectorFpTernary
    | VectorFpTernaryWithMode
    | VectorFpDiv
    | VectorFpDivWithMode
    | VectorClip
    | VectorClipWithMode
)

_UNARY, _TERNARY, _DIVIDER = "vector_fp_unary", "vector_fp_ternary", "vector_fp_div"


@dataclass(frozen=True, slots=True)
class ElementwiseConfig:
    """A checked operation.

    Attributes:
        function: what the ALU computes.
        arguments: what fills each argument slot of the function: ``stream``, ``operand``, ``operand0`` or ``operand1``.
        groups: operand slots of the stream, or of both groups of a pair; None where the group is skipped, empty for a unary operation.
    """

    function: AluFunction
    arguments: tuple[str, ...]
    groups: tuple[tuple[OperandSlot, ...] | None, ...]


def check(stream: StreamType, op: ElementwiseOp, env: ChainEnv) -> Step:
    """Legality of one ALU operation; the stream keeps its mapping and its element type.

    Raises:
        RuleViolation: VE-005, 011, 012, 015 (stage), ALU-001 (ALU taken), ALU-010 to 051 (no such function), VE-030 to 037 and
            STASH, TAG, PAIR-006, PAIR-007 (operands).
    """
    state = state_of(stream)
    stage = enter_stage(state, op)
    require_dtype(stream, op, stage)
    function = _function(stream, op, stage)
    arguments = _arguments(op, function)
    state = use_alu(state, function.alu, op)
    groups, state = _unary_groups(op, state) if isinstance(op, VectorFpUnary) else _operand_groups(op, function, stream, state, env)
    config = ElementwiseConfig(function, arguments, groups)
    return make_step(op, stream, advance(stream, state, stage), config=config, latency=1)


def _function(stream: StreamType, op: ElementwiseOp, stage: Stage) -> AluFunction:
    method = base_method(op)
    if method == _DIVIDER:
        return find_function(stage.name, stream.dtype, "DivF", 2)
    arity = {_UNARY: 1, _TERNARY: 3}.get(method, 2)
    name: str = op.fn  # type: ignore[union-attr]  # only the divider has none
    return find_function(stage.name, stream.dtype, name, arity, getattr(op, "alu", None))


def _arguments(op: ElementwiseOp, function: AluFunction) -> tuple[str, ...]:
    mode = getattr(op, "mode", None)
    if function.arity == 1:
        if mode is not None:
            raise RuleViolation(
                "VE-037", f"{function.name} computes op(stream) and has no argument mode", expected="vector_fp_unary", got=mode
            )
        return ("stream",)
    if function.arity == 3:
        return argument_mode(TERNARY_MODES, mode, DEFAULT_TERNARY_MODE, "VE-036")
    return argument_mode(BINARY_MODES, mode, DEFAULT_BINARY_MODE, "VE-035")


def _unary_groups(op: VectorFpUnary, state: VectorState) -> tuple[tuple[tuple[OperandSlot, ...] | None, ...], VectorState]:
    flags = (op.group0_apply, op.group1_apply)
    if state.pair == PAIRED:
        if None in flags:
            raise RuleViolation(
                "PAIR-007", f"{op.NAME} on a pair says which groups it applies to", expected="group0_apply and group1_apply"
            )
        return tuple(() if flag else None for flag in flags), state
    if flags != (None, None):
        raise RuleViolation("PAIR-007", f"{op.NAME} has group flags on a single stream", expected="no flags", got=flags, also=("PAIR-003",))
    return ((),), state


def _operand_groups(
    op: ElementwiseOp, function: AluFunction, stream: StreamType, state: VectorState, env: ChainEnv
) -> tuple[tuple[tuple[OperandSlot, ...] | None, ...], VectorState]:
    assert isinstance(op, OperandFields)
    if state.pair != PAIRED:
        if op.groups != (None, None):
            raise RuleViolation(
                "PAIR-006", f"{op.NAME} has an operand a group on a single stream", expected="operand", got="group0, group1"
            )
        if op.operand is None:
            rule, what = ("VE-036", "(operand0, operand1)") if function.arity == 3 else ("VE-030", "an operand")
            raise RuleViolation(rule, f"{op.NAME} has no operand", expected=what)
        slots, state = check_operand(op.operand, function, stream, state, op, env)
        return (slots,), state
    if op.operand is not None:
        raise RuleViolation("PAIR-006", f"{op.NAME} has one operand for two groups", expected="group0 and group1", got=str(op.operand))
    groups: list[tuple[OperandSlot, ...] | None] = []
    for operand in op.groups:
        if operand is None:
            groups.append(None)
            continue
        slots, state = check_operand(operand, function, stream, state, op, env)
        groups.append(slots)
    return tuple(groups), state


# --- values -----------------------------------------------------------------------------------------------------------


def apply(values: Values, step: Step, env: ChainEnv, operands: Dict[str, Values]) -> Values:
    """Every element takes the first slot that admits its tag; one that no slot admits passes unchanged (TAG-009)."""
    current = vector_values(values)
    config: ElementwiseConfig = step.config
    if len(config.groups) == 1:
        only = config.groups[0]
        return current if only is None else _apply_slots(current, only, config, step, env, operands)
    parts = []
    for group, slots in enumerate(config.groups):
        part = replace(current, data=current.data[group], defined=current.defined[group])
        parts.append(part if slots is None else _apply_slots(part, slots, config, step, env, operands))
    return replace(current, data=np.stack([p.data for p in parts]), defined=np.stack([p.defined for p in parts]))


def _apply_slots(
    current: VectorValues,
    slots: tuple[OperandSlot, ...],
    config: ElementwiseConfig,
    step: Step,
    env: ChainEnv,
    registers: Dict[str, Values],
) -> VectorValues:
    stream = Values(current.data, current.defined)
    if not slots:
        result = evaluate(config.function, [stream])
        return replace(current, data=result.data, defined=result.defined)
    state = state_of(step.before)
    data, defined = current.data.copy(), current.defined.copy()
    free = np.ones(data.shape, bool)
    for slot in slots:
        sources = {"stream": stream}
        sources["operand"] = sources["operand0"] = operand_values(slot.operand0, step.before, env, registers, state.stash, current.stash)
        if slot.operand1 is not None:
            sources["operand1"] = operand_values(slot.operand1, step.before, env, registers, None, None)
        result = evaluate(config.function, [_spread(sources[name], data.shape) for name in config.arguments])
        taken = free & admitted(slot.guard, current.tags)
        data[taken] = result.data[taken]
        defined[taken] = result.defined[taken]
        free &= ~taken
    return replace(current, data=data, defined=defined)


def _spread(values: Values, shape: tuple[int, ...]) -> Values:
    return Values(np.broadcast_to(values.data, shape), np.broadcast_to(values.defined, shape))

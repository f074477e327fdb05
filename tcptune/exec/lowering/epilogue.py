"""Epilogues as Vector Engine calls: which stage and ALU each step takes, and how many passes a sequence needs (VE-011, ALU-001, STASH-004).

A step may run in several places: an addition in the Fxp, Float or Clip cluster, a multiplication on three multipliers. `plan_epilogue`
finds an assignment that respects the order of the stages and uses every ALU once, prefers one that needs no 4-way stage, and starts a
further pass where no assignment exists.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from tcptune.errors import RuleViolation
from tcptune.ir.types import DType
from tcptune.ir.workload import EpilogueOp
from tcptune.model.engines.vector.alus import MULTIPLIERS
from tcptune.model.engines.vector.state import STAGE_NUMBER

STASH = "Stash"
_FLOAT, _FXP, _CLIP = "Float", "Fxp", "Clip"


@dataclass(frozen=True)
class VectorCall:
    """One call of a pass: stage, ALU ("" where it takes none), and its JSON form."""

    stage: str
    alu: str
    raw: dict[str, Any]


@dataclass(frozen=True)
class EpiloguePass:
    """The calls of one Tensor Unit pass, in order.

    Attributes:
        steps: the epilogue steps it performs.
        calls: what runs between the entry of the chain and `vector_final`, without narrowing.
    """

    steps: tuple[EpilogueOp, ...]
    calls: tuple[VectorCall, ...]

    @property
    def narrows(self) -> bool:
        """Whether it needs the 4-way part."""
        return any(c.stage == _FLOAT for c in self.calls)

    @property
    def operands(self) -> tuple[EpilogueOp, ...]:
        """Steps that read a register tensor."""
        return tuple(s for s in self.steps if s.operand)


def register_name(step: EpilogueOp) -> str:
    """Name of the register tensor that holds a step's operand."""
    return f"{step.operand}_vrf"


def plan_epilogue(steps: tuple[EpilogueOp, ...], element: DType) -> tuple[EpiloguePass, ...]:
    """Passes that perform `steps` in order on elements of `element` (f32 or i32).

    Raises:
        RuleViolation: ALU-020 for a step that integers do not have.
    """
    passes: list[EpiloguePass] = []
    rest = steps
    while rest:
        for count in range(len(rest), 0, -1):
            found = _best_pass(rest[:count], element)
            if found is not None:
                passes.append(found)
                rest = rest[count:]
                break
        else:
            raise RuleViolation(
                "ALU-020", f"{rest[0]} has no function on {element}", expected="add, mul, bias, residual or relu", got=str(rest[0])
            )
    return tuple(passes)


def _best_pass(steps: tuple[EpilogueOp, ...], element: DType) -> EpiloguePass | None:
    """The first assignment without a Float call, else the first one."""
    first = None
    for calls in _assignments(steps, element, ()):
        candidate = EpiloguePass(steps, calls)
        if not candidate.narrows:
            return candidate
        first = first or candidate
    return first


def _assignments(steps: tuple[EpilogueOp, ...], element: DType, calls: tuple[VectorCall, ...]) -> Iterator[tuple[VectorCall, ...]]:
    if not steps:
        yield calls
        return
    for option in _options(steps[0], element):
        extended = (*calls, *option)
        if _is_legal(extended):
            yield from _assignments(steps[1:], element, extended)


def _is_legal(calls: tuple[VectorCall, ...]) -> bool:
    stages = [STAGE_NUMBER[c.stage] for c in calls]
    alus = [c.alu for c in calls if c.alu]
    stashes = sum(c.raw["op"] == "vector_stash" for c in calls)
    return stages == sorted(stages) and len(set(alus)) == len(alus) and stashes <= 1


def _options(step: EpilogueOp, element: DType) -> Iterator[tuple[VectorCall, ...]]:
    """Ways to perform one step, each a run of calls."""
    value: Any = register_name(step) if step.operand else step.constant
    if step.kind in ("add", "bias", "residual"):
        if element.is_float:
            yield (_call(_CLIP, "ClipAdd", "vector_clip", "Add", value),)
            yield (_call(_FLOAT, "FpFma", "vector_fp_binary", "AddF", value),)
        else:
            yield (_call(_CLIP, "ClipAdd", "vector_clip", "AddFxp", _whole(value)),)
            yield (_call(_FXP, "FxpAdd", "vector_fxp", "AddFxp", _whole(value)),)
    elif step.kind == "mul":
        if element.is_float:
            yield from ((multiplication(select, value),) for select in MULTIPLIERS)
        else:
            yield (_call(_FXP, "FxpMul", "vector_fxp", "MulInt", _whole(value)),)
    elif step.kind == "relu":
        yield (_call(_CLIP, "ClipMax", "vector_clip", "Max", 0.0 if element.is_float else 0),)
    elif element.is_float:
        yield from _gated(step.kind)


def _gated(kind: str) -> Iterator[tuple[VectorCall, ...]]:
    """x times a gate of x: x waits in the stash while the gate is computed."""
    stash = VectorCall(_FLOAT, "", {"op": "vector_stash"})
    for select in MULTIPLIERS:
        if kind == "silu":
            yield stash, _unary("Sigmoid"), multiplication(select, STASH)
        else:
            for scale in MULTIPLIERS:
                half = VectorCall(_FLOAT, "FpFma", {"op": "vector_fp_ternary", "fn": "FmaF", "operand": [0.5, 0.5]})
                yield stash, multiplication(scale, 1 / math.sqrt(2)), _unary("Erf"), half, multiplication(select, STASH)


def _whole(value: Any) -> Any:
    if isinstance(value, float):
        if not value.is_integer():
            raise RuleViolation("VE-030", "a constant on integers is a whole number", expected="a whole number", got=value)
        return int(value)
    return value


def _call(stage: str, alu: str, op: str, fn: str, operand: Any) -> VectorCall:
    return VectorCall(stage, alu, {"op": op, "fn": fn, "operand": operand})


def _unary(fn: str) -> VectorCall:
    return VectorCall(_FLOAT, "FpFpu", {"op": "vector_fp_unary", "fn": fn})


def multiplication(select: str, operand: Any) -> VectorCall:
    """MulF on the multiplier `select` (ALU-031)."""
    return VectorCall(_FLOAT, MULTIPLIERS[select], {"op": "vector_fp_binary", "fn": "MulF", "alu": select, "operand": operand})


def pass_ops(plan: EpiloguePass, time: str, packet: str, live: int, lanes: tuple[int, int]) -> list[dict[str, Any]]:
    """The operations of a pass on a stream of flits, from `vector_init` to `vector_final`.

    Args:
        time, packet: mapping texts of the stream; the packet is one flit.
        live: elements of the flit that may hold data, at its front; narrow ones are trimmed, others split.
        lanes: elements of a flit and of a 4-way packet.
    """
    narrow = lanes[1]
    calls = list(plan.calls)
    first = next((i for i, c in enumerate(calls) if c.stage == _FLOAT), len(calls))
    last = next((i for i in range(first, len(calls)) if STAGE_NUMBER[calls[i].stage] > STAGE_NUMBER[_FLOAT]), len(calls))
    ops: list[dict[str, Any]] = [{"op": "vector_init"}, {"op": "vector_intra_slice_tag", "mode": "Zero"}]
    ops += [c.raw for c in calls[:first]]
    if plan.narrows:
        joint = f"[{time}, {packet}]"
        if live <= narrow:
            ops.append({"op": "vector_narrow_trim", "packet": f"[{packet}] = {narrow}"})
        else:
            ops.append({"op": "vector_narrow_split", "time": f"{joint} / {narrow}", "packet": f"{joint} % {narrow}"})
        ops += [c.raw for c in calls[first:last]]
        if live <= narrow:
            ops.append({"op": "vector_widen_pad", "packet": packet})
        else:
            ops.append({"op": "vector_widen_concat", "time": time, "packet": packet})
    ops += [c.raw for c in calls[last:]]
    return [*ops, {"op": "vector_final"}]

"""Lowering of epilogues: fused into the contraction's pass where one pass can do both, else in passes of their own (VE-011, VE-030 on).

An operand (a bias, a residual) is loaded to the slices of the result in the order in which the stream meets it, widened into the register
file, and read from there. A pass that is not the last one commits the accumulator's element type, so that the result is rounded once.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tcptune.errors import RuleViolation
from tcptune.exec.epilogue import EpiloguePass, pass_ops, plan_epilogue, register_name
from tcptune.exec.lower_layout import Layout
from tcptune.exec.lower_pass import contraction_ops, contraction_result, folded
from tcptune.exec.lower_result import padded_packet, write_width
from tcptune.ir.placement import Digit, expression, merged, positions, without
from tcptune.ir.types import DType, dtype
from tcptune.ir.workload import EpilogueOp, Workload

RESERVED = ("a", "b", "w", "r", "g", "out", "a_dm", "b_dm", "a_rows", "b_rows")
"""Names that a lowered contraction gives to its own tensors."""

Steps = list[dict[str, Any]]


def operand_name(step: EpilogueOp) -> str:
    """Name of an epilogue operand in the kernel."""
    name = str(step.operand)
    return f"{step.kind}_{name}" if name in RESERVED else name


def operand_dtype(workload: Workload) -> DType:
    """Operands are bf16 beside floats and i32 beside integers."""
    return dtype("bf16" if workload.dtype.is_float else "i32")


def named(workload: Workload) -> tuple[EpilogueOp, ...]:
    """The epilogue with its operands under their names in the kernel."""
    return tuple(replace(s, operand=operand_name(s)) if s.operand else s for s in workload.epilogue)


def oracle_stages(workload: Workload) -> str:
    """The epilogue as the oracle's text has it."""
    return "".join(f" | {step}" for step in named(workload))


def result_steps(layout: Layout, stream_dm: str) -> Steps:
    """The pass that contracts, with or without the first part of the epilogue, and those that complete it; the result is named ``r``."""
    workload = layout.candidate.workload
    passes = plan_epilogue(named(workload), layout.accumulator)
    inside = passes[:1] if workload.fuse else ()
    after = passes[len(inside) :]
    if after and layout.candidate.knobs.transpose:
        raise RuleViolation("TRANSPOSE-017", "an epilogue in a pass of its own takes results that no transpose regrouped", got="transpose")
    first = _accumulating(layout) if after else layout
    time, live = folded(layout)
    steps: Steps = []
    fused: Steps = []
    for plan in inside:
        steps += _operands(layout, plan, merged(time), live)
        packet = padded_packet(live, layout.hw.vector_ways[0], layout.texts(None))
        fused = pass_ops(plan, expression(time, layout.texts(None)), packet, positions(live), _lanes(layout))
    name = "r" if not after else "r0"
    steps.append({"let": name, "context": "main", "begin": stream_dm, "ops": contraction_ops(first, fused)})
    for number, plan in enumerate(after, 1):
        last = number == len(after)
        steps += _pass_of_its_own(layout, first, plan, f"r{number - 1}", "r" if last else f"r{number}", last)
    return steps


def _lanes(layout: Layout) -> tuple[int, int]:
    wide, narrow = layout.hw.vector_ways
    return wide, narrow


def _accumulating(layout: Layout) -> Layout:
    """The same candidate with the accumulator as its result."""
    workload = replace(layout.candidate.workload, out_dtype=layout.accumulator)
    return Layout(replace(layout.candidate, workload=workload), layout.hw)


def _pass_of_its_own(layout: Layout, held: Layout, plan: EpiloguePass, source: str, target: str, last: bool) -> Steps:
    """Reads a committed result in the accumulator's type, applies `plan`, and commits it again (in the result's type if it is the last)."""
    texts = layout.texts(None)
    before = contraction_result(held)
    rest, live = before.element(held)
    time, packet = expression(rest, texts), padded_packet(live, layout.hw.vector_ways[0], texts)
    ops: Steps = [
        {"op": "fetch", "time": time, "packet": padded_packet(live, before.width, texts)},
        {"op": "collect", "time": time, "packet": packet},
        *pass_ops(plan, time, packet, positions(live), _lanes(layout)),
    ]
    written = layout if last else held
    element = written.candidate.workload.out_dtype
    if element != layout.accumulator:
        ops.append({"op": "cast", "dtype": element.name, "packet": padded_packet(live, layout.flit_elements(element), texts)})
    ops.append({"op": "commit_trim", "packet": padded_packet(live, write_width(layout, positions(live), element), texts)})
    ops.append({"op": "commit", "element": contraction_result(written).element_text(written)})
    return [*_operands(layout, plan, rest, live), {"let": target, "context": "main", "begin": source, "ops": ops}]


def _operands(layout: Layout, plan: EpiloguePass, time: list[Digit], live: list[Digit]) -> Steps:
    """Load of every operand of a pass to the slices of the result, and its way into the register file."""
    steps: Steps = []
    for step in plan.operands:
        held = merged([d for d in (*time, *live) if d.axis in step.axes])
        steps += stage_operand(step, held, layout.clusters, layout.slices, layout)
    return steps


def stage_operand(step: EpilogueOp, held: list[Digit], clusters: tuple[Digit, ...], slices: tuple[Digit, ...], layout: Layout) -> Steps:
    """Steps that bring one operand into the register file (`register_name`), a slice's part in the order of `held`."""
    texts, name = layout.texts(None), str(step.operand)
    element = operand_dtype(layout.candidate.workload)
    lanes = layout.hw.vector_ways[0]
    last = held[-1] if held else Digit("", 1, 1)
    piece = last.inner(min(lanes, last.extent & -last.extent))
    time = expression(without(held, piece), texts)
    width = write_width(layout, piece.extent, element)
    packet = padded_packet([piece], width, texts)
    flit = padded_packet([piece], lanes, texts)
    stored = packet if time == "1" else f"{time}, {packet}"
    ops: Steps = [{"op": "fetch", "time": time, "packet": packet}]
    if element != layout.accumulator:
        ops.append({"op": "fetch_cast", "dtype": layout.accumulator.name})
    ops.append({"op": "collect", "time": time, "packet": flit})
    ops.append({"op": "to_vrf", "element": flit if time == "1" else f"{time}, {flit}"})
    place = {"cluster": expression(clusters, texts), "slice": expression(slices, texts), "element": stored}
    return [
        {"let": f"{name}_dm", "op": "to_dm", "from": name, **place},
        {"let": register_name(step), "context": "sub", "begin": f"{name}_dm", "ops": ops},
    ]

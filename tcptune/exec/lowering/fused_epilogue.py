"""Lowering of epilogues: fused into the contraction's pass where one pass can do both, else in passes of their own (VE-011, VE-030 on).

An operand (a bias, a residual) is loaded to the slices of the result in the order in which the stream meets it, widened into the register
file, and read from there. A pass that is not the last one commits the accumulator's element type, so that the result is rounded once.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

from tcptune.errors import RuleViolation
from tcptune.exec.lowering.epilogue import EpiloguePass, pass_ops, plan_epilogue, register_name
from tcptune.exec.lowering.layout import Layout
from tcptune.exec.lowering.partial_sums import accumulating, has_partials, summation_steps
from tcptune.exec.lowering.passes import contraction_ops, contraction_result, folded
from tcptune.exec.lowering.result import padded_packet, write_width
from tcptune.exec.lowering.tile_sums import tile_sum_steps
from tcptune.ir.placement import AxisText, Digit, expression, merged, positions, without
from tcptune.ir.types import DType, dtype
from tcptune.ir.workload import EpilogueOp, Workload
from tcptune.model.hardware import Hardware
from tcptune.model.timing.calibration import REPLICATED_LOAD

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
    if has_partials(layout):
        sums = summation_steps(layout, "p", "r")
        if layout.candidate.parts > 1:
            return [*tile_sum_steps(layout, stream_dm, "p", is_whole=False), *sums]
        return [{"let": "p", "context": "main", "begin": stream_dm, "ops": contraction_ops(accumulating(layout))}, *sums]
    if layout.candidate.parts > 1:
        return tile_sum_steps(layout, stream_dm, "r", is_whole=True)
    passes = plan_epilogue(named(workload), layout.accumulator)
    inside = passes[:1] if workload.fuse else ()
    after = passes[len(inside) :]
    if after and layout.candidate.knobs.transpose:
        raise RuleViolation("TRANSPOSE-017", "an epilogue in a pass of its own takes results that no transpose regrouped", got="transpose")
    first = accumulating(layout) if after else layout
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
        steps += stage_operand(step, held, layout.slices, layout, layout.texts(None))
    return steps


def stage_operand(
    step: EpilogueOp,
    held: list[Digit],
    slices: tuple[Digit, ...],
    layout: Layout,
    texts: dict[str, AxisText],
    element: DType | None = None,
) -> Steps:
    """Steps that bring one operand into the register file (`register_name`), a slice's part in the order of `held`.

    `element` is its element type (default: that of epilogue operands). Where neighbouring slices need the same part, the load gives each of
    them a flit of it and the Switch Engine hands the flits round.
    """
    name = str(step.operand)
    element = element or operand_dtype(layout.candidate.workload)
    route = operand_route(step, held, slices, layout, element)
    lanes = layout.hw.vector_ways[0]
    time = expression(route.loaded, texts)
    packet, flit = padded_packet([route.piece], route.width, texts), padded_packet([route.piece], lanes, texts)
    ops: Steps = [{"op": "fetch", "time": time, "packet": packet}]
    if element != layout.accumulator:
        ops.append({"op": "fetch_cast", "dtype": layout.accumulator.name})
    if route.spread:
        time = expression([*route.loaded, *route.spread], texts)
        config = {"Broadcast1": {"slice1": positions(route.spread), "slice0": route.inner}}
        ops.append({"op": "switch", "slice": expression(slices, texts), "time": time, "config": config})
    ops.append({"op": "collect", "time": time, "packet": flit})
    ops.append({"op": "to_vrf", "element": flit if time == "1" else f"{time}, {flit}"})
    levels = {"cluster": expression(layout.clusters, texts), "slice": expression(route.slices, texts), "element": route.stored_text(texts)}
    return [
        {"let": f"{name}_dm", "op": "to_dm", "from": name, **levels},
        {"let": register_name(step), "context": "sub", "begin": f"{name}_dm", "ops": ops},
    ]


@dataclass(frozen=True)
class OperandRoute:
    """How an epilogue operand gets to its slices.

    Attributes:
        slices: Slice level of the load.
        loaded: digits that every slice loads, outermost first, without the packet.
        piece: live digit of the packet; `width` positions in memory.
        spread: digits that lie over the ring at the load and in Time after the switch, filler first; empty without a ring.
        inner: slices inside one step of the ring.
    """

    slices: tuple[Digit, ...]
    loaded: tuple[Digit, ...]
    piece: Digit
    width: int
    spread: tuple[Digit, ...] = ()
    inner: int = 1

    @property
    def ring(self) -> int:
        """Slices of one ring; 0 without a switch."""
        return positions(self.spread) * self.inner if self.spread else 0

    def stored_text(self, texts: dict[str, AxisText]) -> str:
        """Element mapping of the operand in data memory."""
        packet = padded_packet([self.piece], self.width, texts)
        return f"{expression(self.loaded, texts)}, {packet}" if self.loaded else packet


def operand_route(
    step: EpilogueOp, held: list[Digit], slices: tuple[Digit, ...], layout: Layout, element: DType | None = None
) -> OperandRoute:
    """The way of one operand, a slice's part in the order of `held`; see `stage_operand`."""
    element = element or operand_dtype(layout.candidate.workload)
    lanes = layout.hw.vector_ways[0]
    last = held[-1] if held else Digit("", 1, 1)
    piece = last.inner(min(lanes, _power_of_two(last.extent)))
    width = write_width(layout, piece.extent, element)
    block = without(held, piece)
    ring = _ring(block, slices, step.axes, _load_cycles(lanes * element.bits // 8, layout.hw))
    if ring is None:
        return OperandRoute(slices, tuple(block), piece, width)
    return OperandRoute(ring.slices, tuple(ring.loaded), piece, width, tuple(ring.spread), ring.inner)


@dataclass(frozen=True)
class _Ring:
    """How neighbouring slices share the load of one operand.

    Attributes:
        loaded: digits of the operand that every slice loads.
        spread: digits that lie over the ring at the load and in Time after the switch, filler first.
        slices: the Slice level of the load.
        inner: slices inside one step of the ring.
    """

    loaded: list[Digit]
    spread: list[Digit]
    slices: tuple[Digit, ...]
    inner: int


def _load_cycles(flit_bytes: int, hw: Hardware) -> float:
    """Cycles of a load that gives every slice of a cluster the same flit of `flit_bytes` (VT-022)."""
    return hw.slices_per_cluster * flit_bytes / REPLICATED_LOAD.value


def _ring(block: list[Digit], slices: tuple[Digit, ...], own: tuple[str, ...], flit_load_cycles: float) -> _Ring | None:
    """The ring over the innermost slices that share a part, if handing round is faster than loading copies.

    A ring over all slices costs extra (VT-010) and is not used.
    """
    whole = positions(slices)
    inner = 1
    for place in range(len(slices) - 1, -1, -1):
        digit = slices[place]
        if digit.axis in own or not digit.axis:
            inner *= digit.extent
            continue
        last = block[-1] if block else Digit("", 1, 1)
        shared = last.inner(math.gcd(_power_of_two(last.extent), digit.extent))
        if shared.extent == 1 or digit.extent == whole or digit.extent > positions(block) * flit_load_cycles:
            return None
        spread = [d for d in (Digit("", 1, digit.extent // shared.extent), shared) if d.extent > 1]
        return _Ring(without(block, shared), spread, (*slices[:place], *spread, *slices[place + 1 :]), inner)
    return None


def _power_of_two(n: int) -> int:
    return n & -n

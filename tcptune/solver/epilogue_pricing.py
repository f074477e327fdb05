"""Closed-form price of an epilogue: loads of its operands, their way into registers, passes of its own, and when its result is ready.

The parts follow `exec.lowering.fused_epilogue`; the times follow VT-001, VT-005, VT-010 and the DMA model. An epilogue fused into the
contraction's pass may lengthen it: the Vector Engine takes four elements a step where it narrows (VT-005).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from itertools import permutations, product

from tcptune.errors import RuleViolation
from tcptune.exec.lowering.epilogue import EpiloguePass, plan_epilogue
from tcptune.exec.lowering.fused_epilogue import OperandRoute, named, operand_dtype, operand_route
from tcptune.exec.lowering.layout import ACCUMULATORS, Layout, hbm_element
from tcptune.exec.lowering.partial_sums import accumulating
from tcptune.exec.lowering.passes import contraction_result, folded
from tcptune.ir.mappings.axes import Axes
from tcptune.ir.placement import Digit, expression, merged, positions
from tcptune.ir.types import DType, dtype
from tcptune.ir.workload import EpilogueOp, Workload
from tcptune.model.hardware import RNGD
from tcptune.solver.fixed_costs import FixedCosts
from tcptune.solver.pass_latencies import epilogue_latency, fetch_cast_latency
from tcptune.solver.transfers import is_aligned, pitches, proven_cycles, transfer_cycles

ORDERED_LOADS = 6
"""Loads of one kernel up to which every order of them is tried."""


@dataclass(frozen=True, slots=True)
class EpiloguePart:
    """One vector pass of an epilogue.

    Attributes:
        operands: cycles of load and staging of every operand that it reads.
        cycles: of the pass; 0 for the part that runs in the contraction's pass.
    """

    operands: tuple[tuple[int, int], ...]
    cycles: int


@lru_cache(maxsize=64)
def passes_of(workload: Workload) -> tuple[tuple[EpiloguePass, ...], tuple[EpiloguePass, ...]]:
    """Passes of a workload's epilogue: the one inside of the contraction's pass, if any, and those behind it."""
    passes = plan_epilogue(named(workload), dtype(ACCUMULATORS[workload.dtype.is_float]))
    inside = passes[:1] if workload.fuse else ()
    return inside, passes[len(inside) :]


def epilogue_parts(layout: Layout, fixed: FixedCosts, profile: str) -> tuple[EpiloguePart, ...]:
    """Priced passes of the epilogue of a candidate, first to last; empty without an epilogue.

    Raises:
        RuleViolation: a load is refused, or TRANSPOSE-017 for a transpose before a pass of the epilogue's own.
    """
    workload = layout.candidate.workload
    if not workload.epilogue:
        return ()
    inside, behind = passes_of(workload)
    if behind and layout.candidate.knobs.transpose:
        raise RuleViolation("TRANSPOSE-017", "an epilogue in a pass of its own takes results that no transpose regrouped", got="transpose")
    parts = []
    time, live = folded(layout)
    for plan in inside:
        parts.append(EpiloguePart(_operands(layout, plan, merged(time), live, fixed, profile), 0))
    if behind:
        held = accumulating(layout)
        rest, packet = contraction_result(held).element(held)
        for plan in behind:
            steps = positions(rest) * vector_steps(plan, positions(packet)) + (epilogue_latency(plan) if fixed.stage_latencies else 0)
            parts.append(EpiloguePart(_operands(layout, plan, rest, packet, fixed, profile), fixed.vector_pass + steps))
    return tuple(parts)


def fused_steps(layout: Layout) -> int:
    """Cycles that the Vector Engine streams in the contraction's pass; 0 where nothing is fused."""
    workload = layout.candidate.workload
    inside = passes_of(workload)[0] if workload.epilogue else ()
    if not inside:
        return 0
    time, live = folded(layout)
    return positions(time) * vector_steps(inside[0], positions(live))


def fused_latency(layout: Layout) -> int:
    """Cycles that the ALUs of a fused epilogue hold a flit back; 0 where nothing is fused."""
    workload = layout.candidate.workload
    return sum(map(epilogue_latency, passes_of(workload)[0])) if workload.epilogue else 0


def vector_steps(plan: EpiloguePass, live: int) -> int:
    """Steps for a flit with `live` elements: two where a wider one is split for the 4-way part."""
    return 2 if plan.narrows and live > RNGD.vector_ways[1] else 1


def _operands(
    layout: Layout, plan: EpiloguePass, time: list[Digit], live: list[Digit], fixed: FixedCosts, profile: str
) -> tuple[tuple[int, int], ...]:
    found = []
    for step in plan.operands:
        held = merged([d for d in (*time, *live) if d.axis in step.axes])
        route = operand_route(step, held, layout.slices, layout)
        found.append((_load_cycles(layout, step, route, profile), _staging_cycles(layout, route, fixed)))
    return tuple(found)


def _load_cycles(layout: Layout, step: EpilogueOp, route: OperandRoute, profile: str) -> int:
    workload, placement = layout.candidate.workload, layout.candidate.placement
    element: DType = operand_dtype(workload)
    sizes = layout.candidate.whole or workload
    stored = workload.row_elements(step.axes, element)
    ragged = step.axes and stored != workload.size(step.axes[-1])
    if ragged or any(placement.of(a).padded != n for a, n in workload.sizes):
        texts, outside = layout.texts(None), hbm_element(workload, step.axes, element, zero=True)
        levels = (expression(layout.clusters, texts), expression(route.slices, texts), route.stored_text(texts))
        return proven_cycles(Axes({a.upper(): n for a, n in sizes.sizes}), element, outside, levels, False, profile)
    hbm = pitches(step.axes, dict(sizes.sizes), sizes.row_elements(step.axes, element))
    piece = (route.piece,) if route.width != route.piece.extent else None
    loops = tuple(route.loaded) if piece else tuple(merged([*route.loaded, route.piece]))
    if not is_aligned(layout.clusters, route.slices, loops, hbm, element.bits, piece):
        raise RuleViolation("DMA-020", f"the load of {step.operand} moves no whole words", got=expression(loops, layout.texts(None)))
    return transfer_cycles(layout.clusters, route.slices, loops, hbm, element.bits, False, profile, piece)


def _staging_cycles(layout: Layout, route: OperandRoute, fixed: FixedCosts) -> int:
    """VT-001, VT-010: 8 bytes a cycle from data memory, or the rounds of a ring; plus the latency of a cast where a profile charges it."""
    packets = positions(route.loaded)
    fetched = packets * route.width * operand_dtype(layout.candidate.workload).bits // (8 * RNGD.stream_alignment_bytes)
    casts = operand_dtype(layout.candidate.workload) != layout.accumulator
    latency = fetch_cast_latency() if casts and fixed.stage_latencies else 0
    return fixed.staging_pass + max(fetched, route.ring * packets) + fixed.whole_ring * (route.ring == RNGD.slices_per_cluster) + latency


# when the result is ready


@lru_cache(maxsize=65536)
def result_ready(
    load_stationary: int, load_stream: int, staging: int, contraction: int, main: tuple[int, int, bool], parts: tuple[EpiloguePart, ...]
) -> int:
    """Cycles from the first load to the end of the last pass, in the best order of loads; DMA, Sub and Main do one thing at a time.

    Args:
        main: cycles of the copies of the stationary and of the streamed operand on Main, and whether staging runs there too.
        parts: the epilogue, the fused part first.
    """
    keys: list[tuple[int, int]] = [(-1, 0), (-1, 1)]
    cycles = {keys[0]: load_stationary, keys[1]: load_stream}
    for number, part in enumerate(parts):
        for place, (load, _) in enumerate(part.operands):
            keys.append((number, place))
            cycles[number, place] = load
    orders = permutations(keys) if len(keys) <= ORDERED_LOADS else (tuple(keys), (keys[1], keys[0], *keys[2:]))
    best = None
    for order, copy_first in product(orders, (True, False) if main[0] or main[1] or main[2] else (True,)):
        arrived, clock = {}, 0
        for key in order:
            clock += cycles[key]
            arrived[key] = clock
        end = _end_of(arrived, staging, contraction, main, parts, copy_first)
        best = end if best is None else min(best, end)
    assert best is not None
    return best


def _end_of(
    arrived: dict[tuple[int, int], int],
    staging: int,
    contraction: int,
    main: tuple[int, int, bool],
    parts: tuple[EpiloguePart, ...],
    copy_first: bool,
) -> int:
    """End of the last pass when the loads end at `arrived`; `copy_first`: the stream is copied before the other work of Main."""
    copy_w, copy_x, staging_on_main = main
    free, stream, held = 0, arrived[-1, 1], arrived[-1, 0]
    staged = 0
    for job in ("x", "w") if copy_first else ("w", "x"):
        if job == "x" and copy_x:
            stream = free = max(free, stream) + copy_x
        if job == "w" and copy_w:
            held = free = max(free, held) + copy_w
        if job == "w" and staging_on_main:
            staged = free = max(free, held) + staging
    jobs = [(arrived[n, place], cycles, n) for n, part in enumerate(parts) for place, (_, cycles) in enumerate(part.operands)]
    if not staging_on_main:
        jobs.append((held, staging, -1))
    sub, ready = 0, dict.fromkeys(range(-1, len(parts)), 0)
    for release, cycles, number in sorted(jobs):
        sub = max(sub, release) + cycles
        ready[number] = max(ready[number], sub)
    fused = ready[0] if parts and not parts[0].cycles else 0
    clock = max(free, stream, staged, ready[-1], fused) + contraction
    for number, part in enumerate(parts):
        if part.cycles:
            clock = max(clock, ready[number]) + part.cycles
    return clock

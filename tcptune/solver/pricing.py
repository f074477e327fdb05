"""Closed-form price of a candidate before it is compiled: the parts of its makespan in cycles, from the digits of its layout.

The parts follow VT-001 to VT-012 and the DMA model (VT-020 to VT-029). They rank candidates; the compiled schedule is the authority.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from math import prod

from tcptune.exec.lowering.layout import Layout, hbm_element, remove, summed_row
from tcptune.exec.lowering.partial_sums import TERM, Summation, exchange_levels, has_partials, plan_summation, stored_result
from tcptune.exec.lowering.passes import contraction_result, folded, outer_time, stream_time
from tcptune.exec.lowering.result import plan_gather, stored_digits, stored_texts
from tcptune.exec.lowering.routes import COPY, piece_bytes
from tcptune.exec.lowering.tile_sums import plan_tile_sum
from tcptune.ir.mappings.axes import Axes
from tcptune.ir.placement import AxisText, Digit, expression, merged, positions
from tcptune.ir.types import DType, TensorType
from tcptune.ir.workload import K
from tcptune.model.engines.dma import check_transfer
from tcptune.model.hardware import RNGD
from tcptune.model.memory.price import price_transfer, whole_cycles
from tcptune.model.timing import calibration
from tcptune.solver.epilogue_pricing import EpiloguePart, epilogue_parts, fused_latency, fused_steps, result_ready
from tcptune.solver.fixed_costs import FixedCosts as FixedCosts
from tcptune.solver.front import front_cycles, result_ready_holding_dma
from tcptune.solver.operand_passes import copy_holds_dma, staging_holds_dma
from tcptune.solver.operand_passes import relayout_cycles as relayout_cycles
from tcptune.solver.pass_latencies import addition_latency, contraction_latency, transposed_rows
from tcptune.solver.transfer_bounds import engine_bound, issue_rate
from tcptune.solver.transfers import Pitches, pitches, proven_cycles, transfer_cycles


@dataclass(frozen=True, slots=True)
class Terms:
    """Cycles of the parts of one plan; `makespan` composes them as the schedule does (VT-040 to VT-043)."""

    start: int
    load_stationary: int
    load_stream: int
    relayout_stationary: int
    relayout_stream: int
    staging: int
    contraction: int
    gather: int
    store: int
    sync: int
    staging_on_main: bool = False
    exchange: int = 0
    addition: int = 0
    epilogue: tuple[EpiloguePart, ...] = ()
    holds_dma: tuple[bool, bool, bool] = (False, False, False)

    @property
    def front(self) -> int:
        """Cycles until both operands are ready, in the best order; the DMA engine and Main do one thing at a time.

        `holds_dma`: whether no DMA runs beside the copies of the stationary and of the streamed operand, and beside staging.
        """
        if any(self.holds_dma):
            loads, copies = (self.load_stationary, self.load_stream), (self.relayout_stationary, self.relayout_stream)
            return front_cycles(loads, copies, self.holds_dma, self.staging, self.staging_on_main)
        return min(self._front(first, copy_first) for first in (True, False) for copy_first in (True, False))

    def _front(self, stationary_first: bool, copy_first: bool) -> int:
        """`stationary_first`: order of the loads; `copy_first`: whether the stream's copy goes before staging where both need Main."""
        both = self.load_stationary + self.load_stream
        here_w, here_x = (self.load_stationary, both) if stationary_first else (both, self.load_stream)
        copied_w = here_w + self.relayout_stationary
        if not self.relayout_stream:
            return max(copied_w + self.staging, here_x)
        if not self.relayout_stationary and not self.staging_on_main:
            return max(copied_w + self.staging, here_x + self.relayout_stream)
        if copy_first:
            copied_x = here_x + self.relayout_stream
            copied_w = max(here_w, copied_x) + self.relayout_stationary
            return max(copied_x, max(copied_w, copied_x * self.staging_on_main) + self.staging)
        staged = copied_w + self.staging
        return max(staged, max(here_x, staged if self.staging_on_main else copied_w) + self.relayout_stream)

    @property
    def computed(self) -> int:
        """Cycles from the first load to the end of the contraction, or of the last pass of an epilogue."""
        if not self.epilogue:
            return self.front + self.contraction
        main = (self.relayout_stationary, self.relayout_stream, self.staging_on_main)
        if any(self.holds_dma):
            loads = (self.load_stationary, self.load_stream)
            return result_ready_holding_dma(loads, self.staging, self.contraction, main, self.holds_dma, self.epilogue)
        return result_ready(self.load_stationary, self.load_stream, self.staging, self.contraction, main, self.epilogue)

    @property
    def makespan(self) -> int:
        return self.start + self.computed + self.exchange + self.addition + self.gather + self.store + self.sync

    def to_json(self) -> dict[str, int]:
        """Parts by name, in time order; those of an epilogue are its loads, their way into registers, and passes of its own."""
        found = {name: getattr(self, name) for name in self.__slots__ if name not in ("staging_on_main", "epilogue", "holds_dma")}
        operands = [operand for part in self.epilogue for operand in part.operands]
        found["epilogue_loads"] = sum(load for load, _ in operands)
        found["epilogue_staging"] = sum(staging for _, staging in operands)
        found["epilogue_passes"] = sum(part.cycles for part in self.epilogue)
        order = [n for n in found if n not in _BEHIND_EPILOGUE] + [n for n in found if n in _BEHIND_EPILOGUE]
        return {name: found[name] for name in order if found[name]}


_BEHIND_EPILOGUE = ("gather", "store", "sync")
"""Parts that follow the last pass of an epilogue."""


def price(layout: Layout, fixed: FixedCosts, profile: str = "vendor") -> Terms:
    """All terms of a candidate.

    Raises:
        RuleViolation: the knobs do not fit the placement.
    """
    w, x = layout.stationary, layout.stream
    return Terms(
        fixed.start,
        load_cycles(layout, w, profile),
        load_cycles(layout, x, profile),
        relayout_cycles(layout, w, fixed),
        relayout_cycles(layout, x, fixed),
        staging_cycles(layout, fixed),
        contraction_cycles(layout, fixed),
        gather_cycles(layout, fixed),
        store_cycles(layout, profile),
        fixed.sync,
        layout.candidate.knobs.staging == "main",
        *summation_cycles(layout, fixed, profile),
        epilogue_parts(layout, fixed, profile),
        (copy_holds_dma(layout, w), copy_holds_dma(layout, x), staging_holds_dma(layout)),
    )


def load_cycles(layout: Layout, index: int, profile: str) -> int:
    """Cycles of one operand's load.

    Raises:
        RuleViolation: the transfer is refused (ragged layouts only; others are checked when the kernel is compiled).
    """
    workload, route = layout.candidate.workload, layout.route(index)
    axes = layout.operand(index)
    element = remove(layout.held(index), route.spread)
    if is_ragged(layout, axes, workload.dtype):
        texts, hbm = layout.texts(index, stored=True), hbm_element(workload, axes, workload.dtype, zero=True)
        sizes = {a.upper(): n for a, n in workload.sizes}
        if route.copies is not None:
            sizes[COPY.upper()], hbm = route.copies.extent, f"{COPY.upper()}, {hbm}"
            texts[COPY] = AxisText(COPY.upper(), route.copies.extent)
        levels = tuple(expression(digits, texts) for digits in (layout.clusters, route.copied_slices, element))
        return proven_cycles(Axes(sizes), workload.dtype, hbm, levels, False, profile)
    row = hbm_pitches(layout, axes, workload.dtype)
    if route.copies is not None:
        count = route.copies.extent
        row = (*row, (COPY, prod(stored for _, _, _, stored in row), count, count))
    return transfer_cycles(layout.clusters, route.copied_slices, tuple(merged(element)), row, workload.dtype.bits, False, profile)


def hbm_pitches(layout: Layout, axes: tuple[str, ...], element: DType) -> Pitches:
    """Row-major layout of an HBM tensor over `axes`; of one tile of it, the pitches are those of the whole."""
    workload, whole = layout.candidate.workload, layout.candidate.whole or layout.candidate.workload
    found = pitches(axes, dict(whole.sizes), whole.row_elements(axes, element))
    return tuple((a, pitch, workload.size(a), min(stored, workload.row_elements((a,), element))) for a, pitch, _, stored in found)


def is_ragged(layout: Layout, axes: tuple[str, ...], element: DType) -> bool:
    """Whether a tensor over `axes` is padded anywhere; then its transfers fall into unequal boxes, which their proof finds."""
    workload, placement = layout.candidate.workload, layout.candidate.placement
    if axes and workload.row_elements(axes, element) != workload.size(axes[-1]):
        return True
    return any(placement.of(a).padded != n for a, n in workload.sizes)


def load_floor(layout: Layout, index: int, profile: str) -> float:
    """Bound of a load from its lines, the engines that bring them and the start of the last one (VT-020 to VT-027); costs no simulation."""
    timing = calibration.profile(profile).dma
    workload, placement, route = layout.candidate.workload, layout.candidate.placement, layout.route(index)
    axes = layout.operand(index)
    placed = positions(d for d in route.load_slices if d.axis)
    loaded_bytes = placed * positions(remove(layout.held(index), route.spread)) * layout.dtype.bits / 8
    padded = {*axes, *(d.axis for d in (*layout.clusters, *route.load_slices))}
    live = prod(size / placement.of(axis).padded for axis, size in workload.sizes if axis in padded)
    longest = RNGD.request_bytes
    if layout.is_half_padded(index, axes[-1]):
        live *= placement.of(axes[-1]).padded / summed_row(workload, index, axes[-1])
    else:
        longest = min(longest, piece_bytes(layout, index, route.spread))
    engines, last = _working_engines(route.load_slices)
    lines = min(1.0, live) * loaded_bytes / longest / engines
    skew = max(timing.skew_engine.value * last, timing.skew_cluster.value * (placement.live_clusters - 1))
    if is_ragged(layout, layout.operand(index), layout.dtype):  # the last engine may do less than the others
        skew = 0.0
    copies = 1 if route.copies is None else route.copies.extent
    rate = issue_rate(copies * (layout.candidate.whole or workload).bytes_of(layout.operand(index), layout.dtype), timing)
    return timing.start_load.value + skew + engine_bound(max(1.0, lines), rate, timing)


def _working_engines(slices: tuple[Digit, ...]) -> tuple[int, int]:
    """Engines of a cluster that serve live slices, all equally many, and the number of the last of them."""
    count, last, weight = 1, 0, positions(slices)
    for digit in slices:
        weight //= digit.extent
        steps = digit.extent * weight // max(weight, RNGD.slices_per_engine)
        if digit.axis and steps > 1:
            count *= steps
            last += (steps - 1) * max(weight, RNGD.slices_per_engine) // RNGD.slices_per_engine
    return count, last


def staging_cycles(layout: Layout, fixed: FixedCosts) -> int:
    """VT-001; on Main the fetch moves a flit a cycle."""
    route, packet = layout.route(layout.stationary), layout.staging_packet
    held = positions(layout.held(layout.stationary))
    flits = held // packet.extent * _flits(layout, packet.extent, layout.dtype)
    fetched = flits // route.ring_outer
    ring = route.ring_outer * route.ring_inner if route.uses_switch else 0
    if layout.candidate.knobs.staging == "sub":
        word = layout.word_elements(layout.dtype)
        fetch = held // route.ring_outer // packet.extent * -(-packet.extent // word)
    else:
        fetch = fetched
    return fixed.staging_pass + max(fetch, ring * fetched) + fixed.whole_ring * (ring == RNGD.slices_per_cluster)


def contraction_cycles(layout: Layout, fixed: FixedCosts) -> int:
    """VT-002: the slowest of fetch, switch, packets after time broadcast, drain, rows of a transpose; VT-009 where slices are summed.

    Plus the latencies of its stages where a profile charges them.
    """
    route, packet = layout.route(layout.stream), layout.packet
    flits_each = _flits(layout, packet.extent, layout.dtype)
    fetched = positions(stream_time(layout, route)) * flits_each
    ring = route.ring_outer * route.ring_inner if route.uses_switch else 0
    packets = positions(outer_time(layout))
    drained = positions(folded(layout)[0])
    wait = fixed.whole_ring * (ring == RNGD.slices_per_cluster)
    rows = _written_rows(layout, fixed) if layout.candidate.knobs.transpose else 0
    streamed = max(fetched * route.ring_outer, ring * fetched, packets, drained, rows, fused_steps(layout))
    if fixed.stage_latencies:
        wait += contraction_latency(layout) + fused_latency(layout)
    if layout.reduced > 1:
        return fixed.reduce_pass + max(streamed, fixed.reduce_least) + fixed.reduce_per_slice * layout.reduced + wait
    return fixed.contraction_pass + streamed + wait


def _written_rows(layout: Layout, fixed: FixedCosts) -> int:
    """Rows that the contraction's transpose writes, one a cycle; with the bursts that it reads before where a profile charges stages."""
    result = contraction_result(layout)
    written = positions(result.time)
    if not fixed.stage_latencies or result.before_transpose is None:
        return written
    return transposed_rows(layout, positions(result.packet), positions(result.before_transpose), written)


def slots(layout: Layout) -> tuple[int, int]:
    """Accumulator slots a candidate needs and has (TIMERED-004, TIMERED-006)."""
    outer = outer_time(layout)
    first = next((n for n, d in enumerate(outer) if layout.roles[d.axis] == K and d.extent > 1), None)
    needed = 1 if first is None else positions(d for d in outer[first:] if layout.roles[d.axis] != K)
    packet = 1 if layout.sums_packet else layout.packet.extent
    if layout.candidate.knobs.lane_mode == "Interleaved":
        return needed, RNGD.accumulator_cells // (RNGD.lanes_per_slice * packet)
    lanes = layout.lane.extent if layout.lane else 1
    return needed, RNGD.accumulator_cells // (lanes * RNGD.accumulator_columns)


def summation_cycles(layout: Layout, fixed: FixedCosts, profile: str) -> tuple[int, int]:
    """Cycles of the DMA that brings partial sums together, and of the passes that add them; 0 where no pass of its own does.

    Those of tiles are added first, in a pass that needs no DMA.

    Raises:
        RuleViolation: the knobs do not fit the placement.
    """
    of_tiles = _addition_cycles(plan_tile_sum(layout), fixed) if layout.candidate.parts > 1 else 0
    if not has_partials(layout):
        return 0, of_tiles
    plan = plan_summation(layout)
    return _exchange_cycles(layout, plan, profile), of_tiles + _addition_cycles(plan, fixed)


def _addition_cycles(plan: Summation, fixed: FixedCosts) -> int:
    """VT-005, with a ring VT-011. The Intra-Slice Reducer takes four elements a step, so that a whole flit takes two."""
    flits, fetched = positions(plan.out_time), positions(plan.in_time)
    narrow = RNGD.vector_ways[1]
    steps = flits if plan.is_pair else flits * -(-positions(plan.packet) // narrow)
    wait = fixed.whole_ring * (plan.ring == RNGD.slices_per_cluster)
    wait += addition_latency(plan) if fixed.stage_latencies else 0
    return fixed.vector_pass + max(steps, fetched, plan.ring * fetched) + wait


def _exchange_cycles(layout: Layout, plan: Summation, profile: str) -> int:
    """DM to DM: one rate for the terms of all results (VT-030), or what the proven transfer costs where a profile has no such rate."""
    if not plan.moved:
        return 0
    timing, workload = calibration.profile(profile).dma, layout.candidate.workload
    if timing.dm_copy_bytes_per_cycle is not None:
        moved_bytes = prod(workload.size(a) for a in workload.output) * plan.count * layout.accumulator.bits / 8
        return whole_cycles(timing.start_load.value + moved_bytes / timing.dm_copy_bytes_per_cycle.value)
    source, dest = exchange_levels(layout, plan)
    sizes = (layout.candidate.whole or workload).sizes
    axes = Axes({a.upper(): n for a, n in sizes} | {TERM.upper(): plan.count})
    return _copied_cycles(axes, layout.accumulator, source, dest, profile)


@lru_cache(maxsize=4096)
def _copied_cycles(axes: Axes, element: DType, source: tuple[str, str, str], dest: tuple[str, str, str], profile: str) -> int:
    """Price of a proven transfer between two layouts (cluster, slice, element) of data memory."""
    types = []
    for levels in (source, dest):
        cluster, slices, inner = (axes.mapping(text) for text in levels)
        types.append(TensorType("Dm", element, inner, cluster=cluster, slice=slices))
    check_transfer(types[0], types[1])
    return price_transfer(types[0], types[1], profile).cycles


def gather_cycles(layout: Layout, fixed: FixedCosts) -> int:
    """VT-010: a switch pass over the result; VT-012 where a transpose of single results writes more rows than the switch has rounds."""
    if layout.candidate.knobs.gather == "none":
        return 0
    gather = plan_gather(layout, stored_result(layout))
    switched = gather.ring * positions(gather.in_time)
    wait = fixed.whole_ring * (gather.ring == RNGD.slices_per_cluster)
    rows = positions(gather.commit_time) if gather.rows is not None else 0
    if fixed.stage_latencies and gather.rows is not None:
        rows = transposed_rows(layout, gather.rows.extent, 1, rows)
    return (fixed.transpose_pass if rows > switched else fixed.switch_pass) + max(rows, switched) + wait


def store_cycles(layout: Layout, profile: str) -> int:
    workload = layout.candidate.workload
    result = stored_result(layout)
    if is_ragged(layout, workload.output, workload.out_dtype):
        texts, outside = layout.texts(None), hbm_element(workload, workload.output, workload.out_dtype, zero=False)
        levels = stored_texts(layout, result)
        return proven_cycles(
            Axes({a.upper(): n for a, n in workload.sizes}),
            workload.out_dtype,
            outside,
            (expression(result.clusters, texts), *levels),
            True,
            profile,
        )
    slices, element, piece = stored_digits(layout, result)
    hbm = hbm_pitches(layout, workload.output, workload.out_dtype)
    return transfer_cycles(result.clusters, slices, element, hbm, workload.out_dtype.bits, True, profile, piece)


def _flits(layout: Layout, elements: int, element: DType) -> int:
    return -(-elements // layout.flit_elements(element))

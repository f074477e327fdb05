"""Partial sums of a summed axis that lies over clusters or slices: how they meet in one slice, are added, and become the result.

The contraction commits them in the accumulator's element type, and they are rounded once, after the last addition. One DMA brings those of
two clusters (COLL-013, COLL-014) and, if asked, of all slices into Element; the Switch Engine brings those of a ring of slices into Time.
Two terms are added as a pair (COLL-007), more by the Intra-Slice Reducer (ISR-001).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from math import prod
from typing import Any

from tcptune.errors import RuleViolation
from tcptune.exec.lowering.layout import Layout
from tcptune.exec.lowering.passes import contraction_result
from tcptune.exec.lowering.result import Result, padded_packet, write_width
from tcptune.ir.placement import AxisText, Digit, expression, merged, positions, without
from tcptune.ir.workload import K

TERM = "term"
"""Axis of the partial sums of one result, whatever axes they come from; longer than any axis of an einsum, so that none has its name."""

PAIR = 2
"""Terms that are added as a pair (PAIR-001)."""

SLICE_SUMS = ("reducer", "gather", "exchange", "transfer")
CLUSTER_SUMS = ("one", "scatter")

REDUCTIONS = {True: "Add", False: "AddSat"}
"""Sum of the Intra-Slice Reducer by whether elements are floats (ISR-003)."""

Steps = list[dict[str, Any]]


@dataclass(frozen=True)
class Summation:
    """The way from partial sums to the result.

    Attributes:
        held: the partial sums as the contraction commits them, their digits over clusters and slices named `TERM`.
        count: terms of one sum.
        moved: digits of `TERM` that a DMA brings into Element, outermost first (the cluster's, then the slices'); empty without a DMA.
        clusters, slices: levels where the summing pass begins.
        element: output digits in a slice there, without the packet.
        packet: live digits of the packet; `width` positions in memory.
        in_time, out_time: Time of the fetch, and after the switch.
        config: switch configuration, or None without a ring.
        result: the result that the summing pass commits.
        axis: name of the axis of the terms.
    """

    held: Result
    count: int
    moved: tuple[Digit, ...]
    clusters: tuple[Digit, ...]
    slices: tuple[Digit, ...]
    element: tuple[Digit, ...]
    packet: tuple[Digit, ...]
    width: int
    in_time: tuple[Digit, ...]
    out_time: tuple[Digit, ...]
    config: dict[str, dict[str, int]] | None
    result: Result
    axis: str = TERM

    @property
    def ring(self) -> int:
        """Slices of one ring; 0 without a switch."""
        if self.config is None:
            return 0
        ((_, sizes),) = self.config.items()
        return sizes["slice1"] * sizes["slice0"]

    @property
    def is_pair(self) -> bool:
        """Whether there are two terms, so that one addition does."""
        return self.count == PAIR


def has_partials(layout: Layout) -> bool:
    """Whether a pass of its own adds partial sums."""
    summed = [a for a in layout.candidate.placement.axes if layout.roles[a.axis] == K]
    if any(a.cluster > 1 for a in summed):
        return True
    return layout.candidate.knobs.slice_sum != "reducer" and any(a.slice > 1 for a in summed)


def stored_result(layout: Layout) -> Result:
    """The result as it is committed before any gather: by the contraction, or by the pass that adds its partial sums."""
    return plan_summation(layout).result if has_partials(layout) else contraction_result(layout)


def accumulating(layout: Layout) -> Layout:
    """The same candidate with the accumulator as its result."""
    workload = replace(layout.candidate.workload, out_dtype=layout.accumulator)
    return Layout(replace(layout.candidate, workload=workload), layout.hw)


def plan_summation(layout: Layout) -> Summation:
    """How a candidate's partial sums are added.

    Raises:
        RuleViolation: TRANSPOSE-017, VE-011, ISR-003, SWITCH-003, SWITCH-014 or COLL-002 where the knobs do not fit the placement.
    """
    return _planned(layout)


@lru_cache(maxsize=256)
def _planned(layout: Layout) -> Summation:
    if layout.candidate.knobs.transpose:
        raise RuleViolation("TRANSPOSE-017", "partial sums are added in the order of the Lane Folder, without a transpose", got="transpose")
    if layout.candidate.workload.epilogue:
        raise RuleViolation("VE-011", "an epilogue follows a whole sum", expected="summed axes within a slice", got="partial sums")
    held = _named(layout, contraction_result(accumulating(layout)))
    across = tuple(d for d in held.clusters if d.axis == TERM)
    over = tuple(d for d in held.slices if d.axis == TERM)
    by_transfer = layout.candidate.knobs.slice_sum == "transfer"
    moved, ring = ((*across, *over), ()) if by_transfer else (across, over)
    rest, packet = held.element(accumulating(layout))
    clusters, rest, packet, scattered = _clusters(layout, held, bool(across), rest, packet)
    width = write_width(layout, positions(packet), layout.accumulator)
    slices = tuple(Digit("", 1, d.extent) if d in moved else d for d in held.slices)
    target, in_time, out_time, config, sent = _ring(layout, slices, ring, rest, moved)
    time = tuple(d for d in out_time if d.axis != TERM)
    element = layout.candidate.workload.out_dtype
    result = Result(time, tuple(packet), write_width(layout, positions(packet), element), target, clusters, away=(*scattered, *sent))
    count = positions((*across, *over))
    if count != PAIR:
        check_no_saturation(layout)
    return Summation(held, count, moved, clusters, slices, tuple(rest), tuple(packet), width, in_time, out_time, config, result)


def _named(layout: Layout, held: Result) -> Result:
    """Partial sums with the digits of summed axes over clusters and slices renamed to those of `TERM`, clusters outermost."""
    named: dict[Digit, Digit] = {}
    stride = 1
    for digit in reversed((*held.clusters, *held.slices)):
        if digit.axis and layout.roles[digit.axis] == K:
            named[digit] = Digit(TERM, stride, digit.extent)
            stride *= digit.extent
    clusters = tuple(named.get(d, d) for d in held.clusters)
    return replace(held, clusters=clusters, slices=tuple(merged(named.get(d, d) for d in held.slices)))


def check_no_saturation(layout: Layout) -> None:
    """Raises:
    RuleViolation: ISR-003 if sums of integers may leave the range in which saturating and wrapping additions agree.
    """
    if layout.dtype.is_float:
        return
    w = layout.candidate.whole or layout.candidate.workload
    largest = prod(w.size(a) for a, role in layout.roles.items() if role == K) << 2 * (layout.dtype.bits - 1)
    limit = 1 << (layout.accumulator.bits - 1)
    if largest >= limit:
        raise RuleViolation(
            "ISR-003", "sums of i32 saturate in the Intra-Slice Reducer", expected=f"sums below {limit}", got=f"up to {largest}"
        )


def _clusters(
    layout: Layout, held: Result, across: bool, rest: list[Digit], packet: list[Digit]
) -> tuple[tuple[Digit, ...], list[Digit], list[Digit], tuple[Digit, ...]]:
    """Cluster level of the sums, element and packet without the output positions that go to the other cluster, and those positions."""
    if not across:
        return held.clusters, rest, packet, ()
    count = layout.hw.clusters_per_chip
    if layout.candidate.knobs.cluster_sum != "scatter":
        return (Digit("", 1, count),), rest, packet, ()
    word = layout.word_elements(layout.accumulator)
    for digit in rest:
        if digit.extent % count == 0:
            half = digit.outer(count)
            return (half,), without(rest, half), packet, (half,)
    for digit in packet:
        if digit.extent % (count * word) == 0:
            half = digit.outer(count)
            return (half,), rest, without(packet, half), (half,)
    raise RuleViolation("COLL-002", f"a slice holds no {count} parts of the result, one for each cluster", got=positions([*rest, *packet]))


def _ring(
    layout: Layout, slices: tuple[Digit, ...], ring: tuple[Digit, ...], rest: list[Digit], moved: tuple[Digit, ...]
) -> tuple[tuple[Digit, ...], tuple[Digit, ...], tuple[Digit, ...], dict[str, dict[str, int]] | None, tuple[Digit, ...]]:
    """Slice level after the switch, Time before and after it, its configuration, and output positions that go to other slices."""
    before = (*rest, *moved)
    if not ring or layout.candidate.knobs.slice_sum == "reducer":
        return slices, before, before, None, ()
    if len(ring) > 1:
        got = expression(slices, term_texts(layout, positions((*ring, *moved))))
        raise RuleViolation("SWITCH-003", "the slices of one sum are no neighbours", expected="summed axes side by side", got=got)
    (taken,) = ring
    place = slices.index(taken)
    inner = positions(slices[place + 1 :])
    if layout.candidate.knobs.slice_sum == "gather":
        config = {"Broadcast1": {"slice1": taken.extent, "slice0": inner}}
        target = (*slices[:place], Digit("", 1, taken.extent), *slices[place + 1 :])
        return target, before, (*before, taken), config, ()
    shared = next((d.outer(taken.extent) for d in rest if d.extent % taken.extent == 0), None)
    if shared is None:
        raise RuleViolation(
            "SWITCH-014", "a slice's results are not shared evenly by the ring", expected=f"{taken.extent} parts", got=positions(rest)
        )
    kept = (*without(rest, shared), *moved)
    config = {"InterTranspose": {"slice1": taken.extent, "slice0": inner, "time0": positions(kept)}}
    return (*slices[:place], shared, *slices[place + 1 :]), (shared, *kept), (*kept, taken), config, (shared,)


# steps


def term_texts(layout: Layout, count: int) -> dict[str, AxisText]:
    """How mappings of partial sums write each axis: outputs as in the result, and the axis of `count` terms."""
    return {**layout.texts(None), TERM: AxisText(TERM.upper(), count)}


def extra_axes(layout: Layout) -> dict[str, int]:
    """Axes of the kernel beyond those of the workload."""
    return {TERM.upper(): plan_summation(layout).count} if has_partials(layout) else {}


def exchange_levels(layout: Layout, plan: Summation) -> tuple[tuple[str, str, str], tuple[str, str, str]]:
    """Cluster, Slice and Element of the DMA's source and destination."""
    texts = term_texts(layout, plan.count)
    packet = padded_packet(list(plan.packet), plan.width, texts)
    source = expression(plan.held.clusters, texts), expression(plan.held.slices, texts), plan.held.element_text(accumulating(layout))
    element = f"{expression([*plan.element, *plan.moved], texts)}, {packet}"
    return source, (expression(plan.clusters, texts), expression(plan.slices, texts), element)


def summation_steps(layout: Layout, source: str, target: str) -> Steps:
    """From partial sums `source` to the result `target`: relabelling, DMA, and the pass that adds."""
    plan = plan_summation(layout)
    texts = term_texts(layout, plan.count)
    named = {"cluster": expression(plan.held.clusters, texts), "slice": expression(plan.held.slices, texts)}
    steps: Steps = [{"let": f"{source}_terms", "op": "reshape", "from": source, **named, "unsafe": True}]
    source = f"{source}_terms"
    if plan.moved:
        _, (cluster, slices, element) = exchange_levels(layout, plan)
        levels = {"cluster": cluster, "slice": slices, "element": element}
        steps.append({"let": f"{target}_terms", "op": "to_dm", "from": source, **levels})
        source = f"{target}_terms"
    return [*steps, {"let": target, "context": "main", "begin": source, "ops": addition_ops(layout, plan, texts)}]


def addition_ops(layout: Layout, plan: Summation, texts: dict[str, AxisText]) -> Steps:
    """The summing pass: fetch, ring, addition, commit."""
    wide, _ = layout.hw.vector_ways
    before, after = expression(plan.in_time, texts), expression(plan.out_time, texts)
    flit = padded_packet(list(plan.packet), wide, texts)
    ops: Steps = [{"op": "fetch", "time": before, "packet": padded_packet(list(plan.packet), plan.width, texts)}]
    if plan.config is not None:
        ops.append({"op": "switch", "slice": expression(plan.result.slices, texts), "time": after, "config": plan.config})
    ops += [{"op": "collect", "time": after, "packet": flit}, {"op": "vector_init"}]
    if plan.is_pair:
        ops.append({"op": "vector_intra_slice_unzip", "axis": plan.axis.upper(), "time": expression(plan.result.time, texts)})
        ops.append({"op": "vector_clip_zip", "fn": "Add" if layout.accumulator.is_float else "AddFxp"})
    else:
        ops += _fold_ops(layout, plan, flit, texts)
    return [*ops, {"op": "vector_final"}, *plan.result.commit_ops(layout)]


def _fold_ops(layout: Layout, plan: Summation, flit: str, texts: dict[str, AxisText]) -> Steps:
    """The Intra-Slice Reducer over the summed digits of Time, lane by lane, four lanes at a time."""
    _, narrow = layout.hw.vector_ways
    fold = {"op": "vector_intra_slice_reduce", "axis": plan.axis.upper(), "fn": REDUCTIONS[layout.accumulator.is_float]}
    kept = expression(plan.result.time, texts)
    ops: Steps = [{"op": "vector_intra_slice_tag", "mode": "Zero"}]
    if positions(plan.packet) <= narrow:
        half = f"[{flit}] = {narrow}"
        return [
            *ops,
            {"op": "vector_narrow_trim", "packet": half},
            {**fold, "time": kept, "packet": half},
            {"op": "vector_widen_pad", "packet": flit},
        ]
    (piece,) = plan.packet
    halves = piece.outer(piece.extent // narrow)
    packet = expression([piece.inner(narrow)], texts)
    return [
        *ops,
        {"op": "vector_narrow_split", "time": expression([*plan.out_time, halves], texts), "packet": packet},
        {**fold, "time": expression([*plan.result.time, halves], texts), "packet": packet},
        {"op": "vector_widen_concat", "time": kept, "packet": flit},
    ]

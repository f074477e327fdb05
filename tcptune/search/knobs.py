"""The knobs that a placement leaves open: what each may be, and the best setting by closed-form price."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, replace

from tcptune.errors import RuleViolation
from tcptune.exec.lower_layout import Layout, foreign_runs
from tcptune.ir.candidate import FILLER, Candidate, Knobs
from tcptune.ir.placement import Placement, positions
from tcptune.ir.workload import Workload
from tcptune.model.hardware import RNGD
from tcptune.solver.pricing import (
    FixedCosts,
    Terms,
    contraction_cycles,
    gather_cycles,
    load_cycles,
    relayout_cycles,
    slots,
    staging_cycles,
    store_cycles,
)

MAX_ORDERS = 24
"""Slice orders tried for one placement (all of them up to four entries)."""


@dataclass(frozen=True, slots=True)
class Priced:
    """A knob setting with its price."""

    knobs: Knobs
    terms: Terms


def slice_orders(placement: Placement) -> list[tuple[str, ...]]:
    """Every order of the Slice level's axes, the idle part included."""
    names = [a.axis for a in placement.axes if a.slice > 1]
    if placement.live_slices < RNGD.slices_per_cluster:
        names.append(FILLER)
    return list(itertools.islice(itertools.permutations(names), MAX_ORDERS))


def ring_choices(layout: Layout, index: int) -> list[int]:
    """Ring sizes over which operand `index` can be spread, 1 (replicated load) first."""
    runs = {positions(layout.slices[first:end]) for first, end in foreign_runs(layout.slices, layout.operand(index))}
    return [1, *sorted(runs - {1})]


def spread_choices(layout: Layout, index: int, ring: int) -> list[str]:
    if ring == 1:
        return ["outer"]
    lane = layout.lane
    if index == layout.stationary and lane is not None:
        return ["outer", "inner", "lane"]
    return ["outer", "inner"]


def pass_choices(layout: Layout) -> Iterator[dict[str, object]]:
    """Settings of the streaming pass that are not dominated by another."""
    repeats = positions(layout.stationary_outputs) > 1
    modes = ["Interleaved"] if layout.sums_packet else ["Sequential", "Interleaved"]
    for mode, refetch, k_inner in itertools.product(modes, [False, True] if repeats else [False], [True, False]):
        yield {"lane_mode": mode, "refetch": refetch, "k_inner": k_inner}


def gather_choices(layout: Layout) -> list[tuple[str, int]]:
    """Gathers before the store: none, and rings of every power of two along the innermost output axis."""
    out = [("none", 1)]
    if layout.output:
        extent = layout.candidate.placement.of(layout.output[-1]).slice
        for step in range(1, extent.bit_length()):
            out += [("exchange", 1 << step), ("collect", 1 << step)]
    return out


def _with(candidate: Candidate, index: int, ring: int, spread: str) -> Candidate:
    knobs = candidate.knobs
    rings, spreads = list(knobs.rings), list(knobs.spread)
    rings[index], spreads[index] = ring, spread
    return replace(candidate, knobs=replace(knobs, rings=(rings[0], rings[1]), spread=(spreads[0], spreads[1])))


def _routes(base: Candidate, index: int) -> Iterator[Candidate]:
    layout = Layout(base)
    for ring in ring_choices(layout, index):
        for spread in spread_choices(layout, index, ring):
            yield _with(base, index, ring, spread)


def best_knobs(workload: Workload, placement: Placement, start: Knobs, fixed: FixedCosts, profile: str, below: int) -> Priced | None:
    """The cheapest setting of all knobs for one placement, if it costs less than `below` cycles.

    The parts are separable: the route of the stationary operand decides its load and staging, that of the stream its load and pass, pass
    and gather decide the store; so the product is never enumerated.
    """
    best: Priced | None = None
    for order in slice_orders(placement):
        base = Candidate(workload, placement, replace(start, slice_order=order))
        found = _best_of_order(base, fixed, profile, below if best is None else best.terms.makespan)
        if found is not None:
            best = found
    return best


def _best_of_order(base: Candidate, fixed: FixedCosts, profile: str, below: int) -> Priced | None:
    layout = Layout(base)
    w, x = layout.stationary, layout.stream
    stationary = _priced_routes(base, w, fixed, profile, staged=True)
    streams = _priced_routes(base, x, fixed, profile, staged=False)
    finishes = _finishes(base, fixed, profile)
    if not (stationary and streams and finishes):
        return None
    best: Priced | None = None
    limit = below
    cheapest_finish = min(f[0] for f in finishes)
    for x_candidate, x_load, x_copy, _ in streams:
        front, w_candidate = min(
            ((_front(w_load, w_copy, w_stage, x_load, x_copy), c) for c, w_load, w_copy, w_stage in stationary), key=lambda t: t[0]
        )
        if fixed.start + front + fixed.contraction_pass + cheapest_finish + fixed.sync >= limit:
            continue
        for finish, gather, store, settings in finishes:
            if fixed.start + front + fixed.contraction_pass + finish + fixed.sync >= limit:
                continue
            knobs = replace(x_candidate.knobs, **settings)  # type: ignore[arg-type]
            candidate = _with(replace(x_candidate, knobs=knobs), w, w_candidate.knobs.rings[w], w_candidate.knobs.spread[w])
            trial = Layout(candidate)
            needed, available = slots(trial)
            if needed > available:
                continue
            w_terms = next(t for t in stationary if t[0] is w_candidate)
            terms = Terms(
                fixed.start, w_terms[1], x_load, w_terms[2], x_copy, w_terms[3], contraction_cycles(trial, fixed), gather, store, fixed.sync
            )
            if terms.makespan < limit:
                limit = terms.makespan
                best = Priced(candidate.knobs, terms)
    return best


def _front(w_load: int, w_copy: int, w_stage: int, x_load: int, x_copy: int) -> int:
    return Terms(0, w_load, x_load, w_copy, x_copy, w_stage, 0, 0, 0, 0).front


def _priced_routes(base: Candidate, index: int, fixed: FixedCosts, profile: str, staged: bool) -> list[tuple[Candidate, int, int, int]]:
    out = []
    for candidate in _routes(base, index):
        layout = Layout(candidate)
        try:
            load = load_cycles(layout, index, profile)
            copy = relayout_cycles(layout, index, fixed)
            stage = staging_cycles(layout, fixed) if staged else 0
        except RuleViolation:
            continue
        out.append((candidate, load, copy, stage))
    return out


def _finishes(base: Candidate, fixed: FixedCosts, profile: str) -> list[tuple[int, int, int, dict[str, object]]]:
    """(gather + store, gather, store, settings) of every pass and gather setting that fits, cheapest first; equal settings once."""
    out = []
    layout = Layout(base)
    gathers = gather_choices(layout)
    for settings in pass_choices(layout):
        for transpose in (False, True):
            for gather, ring in gathers:
                knobs = replace(base.knobs, **settings, transpose=transpose, gather=gather, gather_ring=ring)  # type: ignore[arg-type]
                trial = Layout(replace(base, knobs=knobs))
                try:
                    g, s = gather_cycles(trial, fixed), store_cycles(trial, profile)
                except RuleViolation:
                    continue
                chosen = {**settings, "transpose": transpose, "gather": gather, "gather_ring": ring}
                out.append((g + s, g, s, chosen))
    return sorted(out, key=lambda f: f[0])

"""The knobs that a placement leaves open: what each may be, and the best setting by closed-form price."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from tcptune.errors import RuleViolation
from tcptune.exec.lowering.layout import Layout
from tcptune.exec.lowering.partial_sums import CLUSTER_SUMS, SLICE_SUMS, has_partials, stored_result
from tcptune.exec.lowering.routes import copies_choices, route_choices
from tcptune.ir.candidate import FILLER, Candidate, Knobs
from tcptune.ir.placement import Placement, positions
from tcptune.ir.workload import K, Workload
from tcptune.model.hardware import RNGD
from tcptune.solver.epilogue_pricing import EpiloguePart, epilogue_parts
from tcptune.solver.operand_passes import copy_holds_dma, staging_holds_dma
from tcptune.solver.pricing import (
    FixedCosts,
    Terms,
    contraction_cycles,
    gather_cycles,
    load_cycles,
    load_floor,
    relayout_cycles,
    slots,
    staging_cycles,
    store_cycles,
    summation_cycles,
)

MAX_ORDERS = 24
"""Slice orders tried for one placement (all of them up to four entries)."""


@dataclass(frozen=True, slots=True)
class Priced:
    """A knob setting with its price."""

    knobs: Knobs
    terms: Terms


def slice_orders(placement: Placement, output: tuple[str, ...]) -> list[tuple[str, ...]]:
    """Orders of the Slice level's axes, the idle part included; first those that the reducer takes, summed axes innermost (XSR-001)."""
    split = [a.axis for a in placement.axes if a.slice > 1]
    names, summed = [a for a in split if a in output], tuple(a for a in split if a not in output)
    if placement.live_slices < RNGD.slices_per_cluster:
        names.append(FILLER)
    innermost = [(*order, *summed) for order in itertools.islice(itertools.permutations(names), MAX_ORDERS)]
    if not summed:
        return innermost
    others = itertools.islice(itertools.permutations((*names, *summed)), MAX_ORDERS + len(innermost))
    return [*innermost, *(order for order in others if order not in innermost)][:MAX_ORDERS]


def sum_choices(layout: Layout) -> list[tuple[str, str]]:
    """Ways to add partial sums over slices and over clusters (`Knobs.slice_sum`, `Knobs.cluster_sum`)."""
    summed = [a for a in layout.candidate.placement.axes if layout.roles[a.axis] == K]
    over = sum(layout.roles[d.axis] == K for d in layout.slices if d.axis)
    innermost = over and all(d.axis and layout.roles[d.axis] == K for d in layout.slices[-over:])
    slices = [s for s in SLICE_SUMS if s != "reducer" or innermost] if over else ["reducer"]
    clusters = CLUSTER_SUMS if any(a.cluster > 1 for a in summed) else CLUSTER_SUMS[:1]
    return list(itertools.product(slices, clusters))


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


@dataclass(frozen=True, slots=True)
class Floor:
    """Bounds of one placement in cycles: what no setting of its knobs can go below (see `solver.bounds`)."""

    load: tuple[float, float] = (0.0, 0.0)
    contraction: float = 0.0
    store: float = 0.0
    epilogue: tuple[EpiloguePart, ...] = ()

    @property
    def fused(self) -> tuple[EpiloguePart, ...]:
        """The part of the epilogue in the contraction's pass, if any."""
        return tuple(part for part in self.epilogue if not part.cycles)

    @property
    def fused_loads(self) -> int:
        """Loads that the contraction waits for beside those of its operands."""
        return sum(load for part in self.fused for load, _ in part.operands)

    @property
    def behind(self) -> int:
        """Passes between the contraction and the gather or the store."""
        return sum(part.cycles for part in self.epilogue)


_NO_FLOOR = Floor()


@dataclass(frozen=True, slots=True)
class _Route:
    """A priced way of one operand to its slices; `staging` is 0 for the streamed one, its copy or staging may let no DMA run beside it."""

    ring: int
    spread: str
    load: int
    copy: int
    staging: int
    context: str = "sub"
    copies: int = 1
    copy_holds_dma: bool = False
    staging_holds_dma: bool = False

    @property
    def holds_dma(self) -> int:
        """How many of its passes let no DMA run beside them."""
        return self.copy_holds_dma + self.staging_holds_dma


@dataclass(frozen=True, slots=True)
class _Finish:
    """A priced way from the pass to HBM; `reduced` is what the Inter-Slice Reducer adds to the pass at least."""

    gather: int
    store: int
    settings: dict[str, object]
    exchange: int = 0
    addition: int = 0
    reduced: int = 0

    @property
    def stored(self) -> int:
        """Cycles behind the last addition."""
        return self.gather + self.store

    @property
    def cycles(self) -> int:
        """Cycles behind a pass without reduction."""
        return self.reduced + self.exchange + self.addition + self.stored


def ranked_knobs(
    workload: Workload, placement: Placement, start: Knobs, fixed: FixedCosts, profile: str, below: int, floor: Floor, keep: int = 1
) -> list[Priced]:
    """The cheapest settings of all knobs for one placement that cost less than `below` cycles, at most `keep`, one for each slice order.

    The parts are separable: the route of the stationary operand decides its load and staging, that of the stream its load and pass, pass
    and gather decide the store; so the product is never enumerated.
    """
    best: list[Priced] = []
    for order in slice_orders(placement, workload.output):
        limit = below if len(best) < keep else best[-1].terms.makespan
        found = _best_of_order(Candidate(workload, placement, replace(start, slice_order=order)), fixed, profile, limit, floor)
        if found is not None:
            best = sorted([*best, found], key=lambda p: p.terms.makespan)[:keep]
    return best


def _best_of_order(base: Candidate, fixed: FixedCosts, profile: str, below: int, floor: Floor) -> Priced | None:
    layout = Layout(base)
    w, x = layout.stationary, layout.stream
    frame = fixed.start + fixed.sync
    allowed = below - frame - max(floor.contraction, fixed.contraction_pass) - floor.store
    other = floor.fused_loads + floor.behind
    stationary = _routes(base, w, fixed, profile, allowed, floor.load[x] + other)
    streams = _routes(base, x, fixed, profile, allowed, floor.load[w] + other) if stationary else []
    pairs = _pairs(stationary, streams, floor)
    if not pairs or pairs[0][0] >= allowed:
        return None
    finishes = _finishes(base, fixed, profile, below - frame - pairs[0][0], floor)
    best: Priced | None = None
    limit = below
    for front, a, b in pairs:
        for finish in finishes:
            if frame + front + fixed.contraction_pass + finish.cycles >= limit:
                break
            if frame + front + floor.contraction + finish.stored >= limit:
                continue
            knobs = _chosen(base.knobs, w, x, a, b, finish)
            terms = _checked_terms(Layout(replace(base, knobs=knobs)), a, b, finish, fixed, profile)
            if terms is not None and terms.makespan < limit:
                limit = terms.makespan
                best = Priced(knobs, terms)
    return best


def _checked_terms(layout: Layout, a: _Route, b: _Route, finish: _Finish, fixed: FixedCosts, profile: str) -> Terms | None:
    """Terms of a whole setting, None if its parts do not fit together (slots, ring of a repeated stream, transpose, epilogue loads)."""
    try:
        needed, available = slots(layout)
        if needed > available:
            return None
        stored_result(layout)
        epilogue = epilogue_parts(layout, fixed, profile)
        contraction = contraction_cycles(layout, fixed)
    except RuleViolation:
        return None
    return Terms(
        fixed.start, a.load, b.load, a.copy, b.copy, a.staging, contraction, finish.gather, finish.store, fixed.sync, a.context == "main",
        finish.exchange, finish.addition, epilogue,
        (a.copy_holds_dma, b.copy_holds_dma, a.staging_holds_dma),
    )  # fmt: skip


def _pairs(stationary: list[_Route], streams: list[_Route], floor: Floor) -> list[tuple[int, _Route, _Route]]:
    """Pairs of routes with the cycles that they and the passes of an epilogue take at least, fewest first.

    Of the stationary operand's routes only the best for a stream counts, except beside loads of an epilogue, which may hide its staging.
    """
    if floor.epilogue:
        found = [(_front(a, b, floor), a, b) for b in streams for a in stationary]
    else:
        found = [(_front(a, b, floor), a, b) for b in streams for a in [min(stationary, key=lambda a: _front(a, b, floor))]]
    return sorted(found, key=lambda pair: (pair[0], pair[2].load))


def _front(a: _Route, b: _Route, floor: Floor) -> int:
    terms = Terms(
        0,
        a.load,
        b.load,
        a.copy,
        b.copy,
        a.staging,
        0,
        0,
        0,
        0,
        a.context == "main",
        epilogue=floor.fused,
        holds_dma=(a.copy_holds_dma, b.copy_holds_dma, a.staging_holds_dma),
    )
    return terms.computed + floor.behind


def _routed(knobs: Knobs, index: int, route: _Route) -> Knobs:
    rings, spreads, copies = list(knobs.rings), list(knobs.spread), list(knobs.copies)
    rings[index], spreads[index], copies[index] = route.ring, route.spread, route.copies
    return replace(knobs, rings=(rings[0], rings[1]), spread=(spreads[0], spreads[1]), copies=(copies[0], copies[1]))


def _routes(base: Candidate, index: int, fixed: FixedCosts, profile: str, allowed: float, other_load: float) -> list[_Route]:
    """Routes of one operand that leave both loads and staging below `allowed` cycles when the other load takes `other_load`.

    A stationary operand arrives alike by all routes; so of its routes those are left out that cost no less than another in any part.
    """
    layout = Layout(base)
    staged = index == layout.stationary
    floors = []
    choices = [(ring, spread, 1) for ring, spread in route_choices(layout, index)]
    choices += [(1, "outer", copies) for copies in copies_choices(layout, index)[1:]]
    for place, (ring, spread, copies) in enumerate(choices):
        trial = Layout(replace(base, knobs=_routed(base.knobs, index, _Route(ring, spread, 0, 0, 0, copies=copies))))
        floor = load_floor(trial, index, profile)
        if floor + other_load < allowed:
            floors.append((floor, place, trial))
    found: list[tuple[int, _Route]] = []
    for floor, place, trial in sorted(floors, key=lambda entry: entry[:2]):
        try:
            copy = relayout_cycles(trial, index, fixed)
            stagings = _stagings(trial, fixed) if staged else [(0, "sub")]
            alike = ("sub",) if not base.workload.epilogue else ()
            if staged and all(
                any(not r.holds_dma and _costs_no_more(r, floor, copy, s, (c, *alike)) for _, r in found) for s, c in stagings
            ):
                continue
            load = load_cycles(trial, index, profile)
            copy_holds = copy_holds_dma(trial, index)
            holds = {c: staged and staging_holds_dma(_staged_on(trial, c)) for _, c in stagings}
        except RuleViolation:
            continue
        ring, spread, copies = (getattr(trial.candidate.knobs, name)[index] for name in ("rings", "spread", "copies"))
        for staging, context in stagings:
            if max(load + other_load, load + copy + (staging if staged else 0)) < allowed:
                found.append((place, _Route(ring, spread, load, copy, staging, context, copies, copy_holds, holds[context])))
    return [route for _, route in sorted(found, key=lambda entry: entry[0])]


def _costs_no_more(route: _Route, load_floor: float, copy: int, staging: int, contexts: tuple[str, ...]) -> bool:
    """Whether `route` is no worse than one with these costs, whose load takes at least `load_floor`.

    `contexts`: where its staging may run, which on Main may delay a copy, and on Sub the operands of an epilogue.
    """
    return route.load <= load_floor and route.copy <= copy and route.staging <= staging and route.context in contexts


def _stagings(layout: Layout, fixed: FixedCosts) -> list[tuple[int, str]]:
    """Cycles of staging on Sub, and on Main where that, fetching a flit a cycle, is faster, or Sub has operands of an epilogue to stage."""
    cycles = {c: staging_cycles(_staged_on(layout, c), fixed) for c in ("sub", "main")}
    both = bool(layout.candidate.workload.epilogue)
    return [(cycles[c], c) for c in ("sub", "main") if c == "sub" or both or cycles["main"] < cycles["sub"]]


def _staged_on(layout: Layout, context: str) -> Layout:
    return Layout(replace(layout.candidate, knobs=replace(layout.candidate.knobs, staging=context)))


def _finishes(base: Candidate, fixed: FixedCosts, profile: str, allowed: float = math.inf, floor: Floor = _NO_FLOOR) -> list[_Finish]:
    """Every setting of pass, sum and gather that fits and leaves contraction, sum, gather and store below `allowed`; the cheapest first.

    Where several ways to add leave the result at the same place, only the cheapest counts.
    """
    out = []
    gathers = gather_choices(Layout(base))
    for settings in pass_choices(Layout(base)):
        for summed in _sums(base, settings, fixed, profile):
            sums = summed.cycles + fixed.contraction_pass
            if sums + floor.store >= allowed:
                continue
            for transpose, (gather, ring) in itertools.product((False, True), gathers):
                chosen = {**summed.settings, "transpose": transpose, "gather": gather, "gather_ring": ring}
                trial = Layout(_with(base, chosen))
                if transpose and (has_partials(trial) or base.parts > 1):
                    continue
                try:
                    switched = gather_cycles(trial, fixed)
                    if max(sums, floor.contraction) + max(floor.store, switched) < allowed:
                        out.append(replace(summed, gather=switched, store=store_cycles(trial, profile), settings=chosen))
                except RuleViolation:
                    continue
    return sorted(out, key=lambda f: f.cycles)


def _sums(base: Candidate, settings: dict[str, object], fixed: FixedCosts, profile: str) -> list[_Finish]:
    """Priced ways to add partial sums, without those that another one beats in every plan."""
    found: list[_Finish] = []
    for slice_sum, cluster_sum in sum_choices(Layout(base)):
        chosen = {**settings, "slice_sum": slice_sum, "cluster_sum": cluster_sum}
        layout = Layout(_with(base, chosen))
        try:
            exchange, addition = summation_cycles(layout, fixed, profile)
            reduced = fixed.reduce_per_slice * layout.reduced + fixed.reduce_pass - fixed.contraction_pass if layout.reduced > 1 else 0
        except RuleViolation:
            continue
        found.append(_Finish(0, 0, chosen, exchange, addition, reduced))
    return [f for f in found if not any(_beats(other, f, fixed) for other in found)]


def _beats(a: _Finish, b: _Finish, fixed: FixedCosts) -> bool:
    """Whether `a` leaves the result where `b` does, for fewer cycles whatever streams through the pass (`reduce_least` at most on top)."""
    if a.settings["cluster_sum"] != b.settings["cluster_sum"] or "exchange" in (a.settings["slice_sum"], b.settings["slice_sum"]):
        return False
    if b.settings["slice_sum"] == "reducer" and not b.addition:
        return False  # it alone goes with a transpose
    return a.cycles + (fixed.reduce_least if a.reduced else 0) < b.cycles


def _chosen(knobs: Knobs, w: int, x: int, a: _Route, b: _Route, finish: _Finish) -> Knobs:
    """The setting of all parts: the routes `a` of operand `w` and `b` of operand `x`, and the finish."""
    return replace(_routed(_routed(knobs, w, a), x, b), staging=a.context, **finish.settings)  # type: ignore[arg-type]  # the settings are fields of Knobs


def _with(base: Candidate, settings: dict[str, object]) -> Candidate:
    return replace(base, knobs=replace(base.knobs, **settings))  # type: ignore[arg-type]  # the settings are fields of Knobs


REFUSALS = 2
"""Settings with one pair of routes that may be refused before the pair counts as illegal."""


@dataclass(frozen=True, slots=True)
class Budget:
    """What the parts of a body may cost at most, in cycles: the load of either input, and all that begins with the pass.

    `least_pass` is what the pass costs in any case.
    """

    loads: tuple[float, float]
    rest: float
    least_pass: int = 0


def least_setting(
    base: Candidate,
    fixed: FixedCosts,
    profile: str,
    cost: Callable[[Terms], float],
    below: float,
    budget: Budget,
    is_legal: Callable[[Knobs], bool],
) -> tuple[float, Priced] | None:
    """The legal setting of one slice order whose terms have the least `cost`, and that cost; None if none is below `below`.

    For another end than the makespan of one pass: a body whose operands are loaded in loops, for instance. `cost` must not fall where a
    term grows.
    """
    layout = Layout(base)
    w, x = layout.stationary, layout.stream
    stationary = _routes(base, w, fixed, profile, budget.loads[w], 0)
    streams = _routes(base, x, fixed, profile, budget.loads[x], 0) if stationary else []
    if not streams:
        return None
    best: tuple[float, Priced] | None = None
    refused: dict[tuple[_Route, _Route], int] = {}
    floors = []
    least_pass = max(fixed.contraction_pass, budget.least_pass)
    for n, (a, b, finish) in enumerate(itertools.product(stationary, streams, _finishes(base, fixed, profile, budget.rest))):
        least = Terms(
            fixed.start, a.load, b.load, a.copy, b.copy, a.staging, least_pass, finish.gather, finish.store, fixed.sync,
            a.context == "main", finish.exchange, finish.addition,
        )  # fmt: skip
        floors.append((cost(least), n, a, b, finish))
    for floor, _, a, b, finish in sorted(floors, key=lambda entry: entry[:2]):
        if floor >= below:
            break
        if refused.get((a, b), 0) == REFUSALS:
            continue
        knobs = _chosen(base.knobs, w, x, a, b, finish)
        terms = _checked_terms(Layout(replace(base, knobs=knobs)), a, b, finish, fixed, profile)
        if terms is None or (found := cost(terms)) >= below:
            continue
        if is_legal(knobs):
            below, best = found, (found, Priced(knobs, terms))
        else:
            refused[a, b] = refused.get((a, b), 0) + 1
    return best

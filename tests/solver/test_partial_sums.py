"""Random plans whose summed axes lie over clusters or slices: each costs its price, and no less than the bound of its placement."""

from dataclasses import replace
from functools import cache
from random import Random

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from tcptune.errors import RuleViolation
from tcptune.exec.compile import compile_kernel
from tcptune.exec.lowering.layout import Layout
from tcptune.exec.lowering.lower import lower
from tcptune.exec.lowering.routes import route_choices
from tcptune.ir.candidate import FILLER, Candidate
from tcptune.ir.workload import K, einsum
from tcptune.search.knobs import gather_choices, sum_choices
from tcptune.search.space import Space
from tcptune.solver.pricing import FixedCosts, price

WORKLOADS = (
    einsum("i,i->", i=2048),
    einsum("i,i->", i=33, dtype="i8"),
    einsum("ij,j->i", i=8, j=1024),
    einsum("ij,j->i", i=5, j=256, dtype="f8e4m3"),
    einsum("ik,kj->ij", i=16, j=24, k=96),
    einsum("ik,jk->ij", i=7, j=16, k=64, dtype="i8", out_dtype="i8"),
    einsum("vmk,vkn->vmn", v=3, m=4, k=64, n=8),
    einsum("ikl,jkl->ij", i=6, j=8, k=8, l=16),
    einsum("ik,jk->ij", i=16, j=16, k=256, out_dtype="f32"),
)


@cache
def space(number: int) -> tuple[Space, tuple[int, ...]]:
    """The space of a workload, and its entries that split a summed axis."""
    found = Space(WORKLOADS[number])
    summed = [a for a, role in found.workload.roles().items() if role == K]
    splits = [e for e in range(found.entries) if any(found.placement(e).of(a).cluster * found.placement(e).of(a).slice > 1 for a in summed)]
    return found, tuple(splits)


def drawn(number: int, seed: int) -> tuple[int, Candidate]:
    """A random setting of all knobs of a random placement."""
    rng = Random(seed)
    found, splits = space(number)
    entry = rng.choice(splits)
    placement = found.placement(entry)
    order = [a.axis for a in placement.axes if a.slice > 1] + ([FILLER] if placement.live_slices < 256 else [])
    rng.shuffle(order)
    if rng.random() < 0.5:  # summed axes innermost, as the Inter-Slice Reducer takes them
        order.sort(key=lambda name: found.workload.roles().get(name) == K)
    start = replace(
        found.start_knobs(entry),
        slice_order=tuple(order),
        refetch=rng.random() < 0.5,
        k_inner=rng.random() < 0.5,
        lane_mode=rng.choice(("Interleaved", "Sequential")),
        staging=rng.choice(("sub", "main")),
    )
    layout = Layout(Candidate(found.workload, placement, start))
    routes = [rng.choice(route_choices(layout, n)) for n in (0, 1)]
    slice_sum, cluster_sum = rng.choice(sum_choices(layout))
    gather, ring = rng.choice(gather_choices(layout))
    knobs = replace(
        start,
        rings=(routes[0][0], routes[1][0]),
        spread=(routes[0][1], routes[1][1]),
        slice_sum=slice_sum,
        cluster_sum=cluster_sum,
        gather=gather,
        gather_ring=ring,
    )
    return entry, Candidate(found.workload, placement, knobs)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.filter_too_much])
@given(st.integers(0, len(WORKLOADS) - 1), st.integers(0, 1 << 20))
def test_a_plan_costs_its_price_and_no_less_than_its_bound(number, seed):
    entry, candidate = drawn(number, seed)
    try:
        compiled = compile_kernel(lower(candidate))
    except RuleViolation:
        assume(False)
    terms = price(Layout(candidate), FixedCosts.of("vendor"))
    assert compiled.makespan >= terms.makespan
    if not any(
        {"MainContext", "DmaEngine"} <= set(o.contexts) for o in compiled.schedule.operations
    ):  # a pass that starves DMAs (SCHED-005)
        assert compiled.makespan == terms.makespan
    assert compiled.makespan >= space(number)[0].bound(entry)


@pytest.mark.parametrize("slice_sum", ["gather", "transfer"])
def test_the_manual_profile_bounds_its_own_makespans(slice_sum):
    """The manual prices a copy between slices by its reads and writes (DMA-025), not by one rate."""
    workload = einsum("ij,j->i", i=8, j=1024)
    found = Space(workload, "manual")
    checked = 0
    for entry in range(0, found.entries, 7):
        placement = found.placement(entry)
        if placement.of("j").slice == 1:
            continue
        order = tuple(a.axis for a in placement.axes if a.slice > 1) + ((FILLER,) if placement.live_slices < 256 else ())
        candidate = Candidate(workload, placement, replace(found.start_knobs(entry), slice_order=order, slice_sum=slice_sum))
        try:
            makespan = compile_kernel(lower(candidate), "manual").makespan
        except RuleViolation:
            continue
        assert price(Layout(candidate), FixedCosts.of("manual"), "manual").makespan <= makespan
        checked += 1
    assert checked > 5

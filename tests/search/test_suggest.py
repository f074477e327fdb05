"""Suggestions: every knob that a placement leaves open has a parameter of its own, and what is suggested is in the space."""

import random
from dataclasses import fields

import pytest
from optuna.distributions import CategoricalDistribution

from tcptune.exec.lowering.layout import Layout
from tcptune.exec.lowering.partial_sums import CLUSTER_SUMS, SLICE_SUMS
from tcptune.ir.candidate import Knobs
from tcptune.ir.workload import einsum
from tcptune.search.knobs import gather_choices, slice_orders, sum_choices
from tcptune.search.space import Space
from tcptune.search.suggest import DISTRIBUTIONS, Suggester


def first(distribution):
    return distribution.choices[0] if isinstance(distribution, CategoricalDistribution) else distribution.low


BASE = {name: first(distribution) for name, distribution in DISTRIBUTIONS.items()}
SUMMED = einsum("ij,j->i", i=8, j=65536)
COPIED = einsum("ik,jk->ij", i=512, j=512, k=64, hbm_copies=4)


def entry_where(space, is_so):
    return next(e for e in range(space.entries) if is_so(space.placement(e)))


def suggested(space, entry, **changes):
    return Suggester(space, [entry], 0).candidate({**BASE, **changes})


def test_every_knob_but_those_of_the_family_has_a_parameter():
    numbered = {name.rpartition("_")[0] if name[-1].isdigit() else name for name in DISTRIBUTIONS}
    named = {{"ring": "rings"}.get(name, name) for name in numbered} - {"placement"}
    assert {f.name for f in fields(Knobs)} - named == {"stationary", "relayout", "gather_ring"}  # a gather comes with its ring


@pytest.mark.parametrize("slice_sum", SLICE_SUMS)
@pytest.mark.parametrize("cluster_sum", CLUSTER_SUMS)
def test_ways_to_add_are_suggested_by_name(slice_sum, cluster_sum):
    space = Space(SUMMED)
    entry = entry_where(space, lambda p: p.of("j").slice > 1 and p.of("j").cluster > 1 and p.of("i").slice == 1)
    knobs = suggested(space, entry, slice_sum=slice_sum, cluster_sum=cluster_sum).knobs
    assert (knobs.slice_sum, knobs.cluster_sum) == (slice_sum, cluster_sum)


def test_the_order_of_slices_does_not_decide_how_sums_are_added():
    space = Space(SUMMED)
    entry = entry_where(space, lambda p: p.of("j").slice > 1 and p.of("i").slice > 1)
    orders = slice_orders(space.placement(entry), SUMMED.output)
    for number in range(3 * len(orders)):
        knobs = suggested(space, entry, slice_order=number, slice_sum="gather").knobs
        assert knobs.slice_order == orders[number % len(orders)]
        assert knobs.slice_sum == "gather"


def test_copies_are_suggested_where_the_load_replicates():
    space = Space(COPIED)
    entry = entry_where(space, lambda p: p.of("i").slice >= 16 and p.of("j").slice >= 16)
    counts = {suggested(space, entry, ring_0=0, copies_0=n).knobs.copies for n in range(3)}
    assert counts == {(1, 1), (2, 1), (4, 1)}
    on_a_ring = suggested(space, entry, ring_0=1, copies_0=2).knobs
    assert on_a_ring.rings[0] > 1
    assert on_a_ring.copies == (1, 1)


@pytest.mark.parametrize("workload", [SUMMED, COPIED], ids=["sums", "copies"])
def test_what_is_suggested_is_among_the_choices(workload):
    draw, space = random.Random(0), Space(workload)
    for _ in range(40):
        params = {
            name: draw.choice(d.choices) if isinstance(d, CategoricalDistribution) else draw.randint(d.low, d.high)
            for name, d in DISTRIBUTIONS.items()
        }
        candidate = Suggester(space, [draw.randrange(space.entries)], 0).candidate(params)
        layout = Layout(candidate)
        knobs = candidate.knobs
        assert knobs.slice_order in slice_orders(candidate.placement, workload.output)
        assert (knobs.slice_sum, knobs.cluster_sum) in sum_choices(layout)
        assert (knobs.gather, knobs.gather_ring) in gather_choices(layout)
        assert all(count == 1 or ring == 1 for count, ring in zip(knobs.copies, knobs.rings, strict=True))

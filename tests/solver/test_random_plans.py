"""Random workloads and knobs: the bound of a placement is at most the price of each of its plans, and that at most its makespan."""

from dataclasses import replace

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from tcptune.errors import TcptuneError
from tcptune.exec.compile import compile_kernel
from tcptune.exec.lowering.candidates import lower_candidate
from tcptune.exec.lowering.layout import Layout
from tcptune.ir.candidate import FILLER, Candidate
from tcptune.ir.workload import LAYOUTS, einsum
from tcptune.search.knobs import gather_choices
from tcptune.search.space import Space
from tcptune.solver.pricing import price

TEXTS = ["ik,jk->ij", "ik,kj->ij", "ki,jk->ij", "ki,kj->ij", "ij,j->i", "bik,bkj->bij", "ik,jk->ji", "i,i->"]
SIZES = [1, 2, 3, 7, 8, 16, 24, 33, 48, 64, 100]


@st.composite
def plans(draw):
    """A space and one of its plans, legal or not."""
    text = draw(st.sampled_from(TEXTS))
    sizes = {axis: draw(st.sampled_from(SIZES)) for axis in sorted(set(text) - set(",->"))}
    element = draw(st.sampled_from(["bf16", "i8", "f8e4m3"]))
    space = Space(einsum(text, sizes=sizes, dtype=element, layout=draw(st.sampled_from(LAYOUTS))))
    entry = draw(st.integers(0, space.entries - 1))
    placement = space.placement(entry)
    order = [a.axis for a in placement.axes if a.slice > 1] + [FILLER] * (placement.live_slices < 256)
    knobs = replace(
        space.start_knobs(entry),
        slice_order=tuple(draw(st.permutations(order))),
        refetch=draw(st.booleans()),
        k_inner=draw(st.booleans()),
        lane_mode=draw(st.sampled_from(["Interleaved", "Sequential"])),
        staging=draw(st.sampled_from(["sub", "main"])),
        transpose=draw(st.booleans()),
    )
    try:
        gather, ring = draw(st.sampled_from(gather_choices(Layout(Candidate(space.workload, placement, knobs)))))
    except TcptuneError:
        gather, ring = "none", 1
    return space, Candidate(space.workload, placement, replace(knobs, gather=gather, gather_ring=ring))


def check(space: Space, candidate: Candidate) -> None:
    try:
        makespan = compile_kernel(lower_candidate(candidate), "vendor").makespan
    except TcptuneError:
        assume(False)
    assert space.own_bound(candidate) <= price(Layout(candidate), space.fixed, "vendor").makespan <= makespan


LIMITS = settings(deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck))


@settings(LIMITS, max_examples=40)
@given(plans())
def test_bound_price_and_makespan_are_in_this_order(plan):
    check(*plan)


@pytest.mark.slow
@settings(LIMITS, max_examples=1000)
@given(plans())
def test_bound_price_and_makespan_are_in_this_order_for_many_more(plan):
    check(*plan)

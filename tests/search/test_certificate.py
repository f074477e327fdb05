"""The certificate: full enumeration with choices of its own finds nothing better, and nothing scheduled lies below its placement's bound.

The smallest workloads run always; the others, some ten thousand plans each, are slow, and of the largest only a part is enumerated.
"""

from itertools import islice

import pytest

from tcptune.ir.candidate import Candidate, Knobs
from tcptune.ir.placement import Placement
from tcptune.ir.workload import Workload, einsum
from tcptune.search.entry import tune
from tcptune.search.parallel import evaluate
from tcptune.search.space import Space
from tests.search.settings import plans

TINY = [
    einsum("i,i->", i=2),
    einsum("i,i->", i=4),
    einsum("i,i->", i=8),
    einsum("i,i->i", i=1),
    einsum("i,j->ij", i=1, j=1),
]

SMALL = [einsum("i,i->", i=16), einsum("i,i->i", i=4), einsum("i,j->ij", i=1, j=2), einsum("i,j->ij", i=2, j=2)]

LARGE = [
    einsum("ij,j->i", i=1, j=16),
    einsum("ij,j->i", i=2, j=4),
    einsum("ik,jk->ij", i=1, j=1, k=16),
    einsum("ik,jk->ij", i=1, j=1, k=16, epilogue="relu"),
]
"""Workloads with hundreds of thousands of plans, of which the first are tried."""

FIRST = 5_000


def named(workload: Workload) -> str:
    return f"{workload.text} {dict(workload.sizes)} {', '.join(map(str, workload.epilogue))}"


def check(workload: Workload, most: int | None = None) -> None:
    """Compares at most `most` plans, None all of them; only all of them must contain the best."""
    result = tune(workload, trials=60, seed=0)
    assert result.proven
    space = Space(workload)
    seen: dict[str, int] = {}
    for candidate in islice(plans(workload), most):
        outcome = evaluate(candidate, "vendor", seen=seen)
        if outcome.fate == "scheduled":
            seen[outcome.kernel_hash] = outcome.makespan
            assert outcome.makespan >= space.own_bound(candidate), candidate.to_json()
            assert outcome.makespan >= result.makespan, candidate.to_json()
    assert most is not None or min(seen.values()) == result.makespan


@pytest.mark.parametrize("workload", TINY, ids=named)
def test_full_enumeration_finds_nothing_better_than_a_proven_result(workload):
    check(workload)


@pytest.mark.slow
@pytest.mark.parametrize("workload", SMALL, ids=named)
def test_full_enumeration_of_larger_workloads_finds_nothing_better_either(workload):
    check(workload)


@pytest.mark.slow
@pytest.mark.parametrize("workload", LARGE, ids=named)
def test_the_first_plans_of_an_enumeration_are_not_better_than_a_proven_result(workload):
    check(workload, FIRST)


KNOWN = [
    (
        einsum("ib,bj->bij", i=16, b=32, j=16),  # packets of 8 B are staged: four blocks of b instead of two
        {"i": {"Slice": 2, "Time": 8}, "b": {"Slice": 4, "Packet": 8}, "j": {"Packet": 16}},
        Knobs(0, slice_order=("_", "b", "i"), rings=(2, 2), lane_mode="Sequential", staging="main"),
    ),
    (
        einsum("kli,klj->ij", k=2, l=64, i=8, j=8),  # only the operand that waits is copied
        {"k": {"Time": 2}, "l": {"Slice": 4, "Packet": 16}, "i": {"Time": 8}, "j": {"Packet": 8}},
        Knobs(0, slice_order=("_", "l"), relayout=("l", ""), lane_mode="Sequential"),
    ),
]


@pytest.mark.parametrize(("workload", "levels", "knobs"), KNOWN, ids=["short packets", "one copy"])
def test_legal_plans_are_in_the_space_and_not_better_than_what_is_found(workload, levels, knobs):
    placement = Placement.from_json(levels)
    plan = evaluate(Candidate(workload, placement, knobs), "vendor")
    assert plan.fate == "scheduled"
    space = Space(workload)
    same = [t for t in space.tables if (t.family.stationary, t.family.relayout) == (knobs.stationary, knobs.relayout)]
    assert any(t.placement(row) == placement for t in same for row in range(t.rows))
    result = tune(workload, trials=60, seed=0)
    assert result.makespan <= plan.makespan
    assert result.lower_bound <= plan.makespan


@pytest.mark.parametrize("profile", ["manual", "vendor"])
@pytest.mark.parametrize("workload", [einsum("hw,w->h", h=1, w=56), einsum("ik,jk->ij", i=1, j=1, k=112)], ids=named)
def test_one_result_in_a_padded_row_is_stored_with_its_padding(workload, profile):
    space = Space(workload, profile)
    scheduled = 0
    for entry in range(6):
        (cheapest,) = space.ranked(entry, 1 << 62, 1)
        candidate = Candidate(workload, space.placement(entry), cheapest.knobs)
        outcome = evaluate(candidate, profile)
        if outcome.fate == "scheduled":
            scheduled += 1
            assert outcome.makespan >= space.bound(entry)
            assert outcome.makespan >= space.own_bound(candidate)
    assert scheduled


def test_what_depends_on_the_placement_of_an_epilogue_is_priced_exactly():
    workload = einsum("ik,jk->ij", i=64, j=64, k=64, epilogue="bias:c(j), gelu")
    space = Space(workload)
    priced = [(entry, found) for entry in range(0, 400, 80) for found in space.ranked(entry, 1 << 40, 1)]
    assert priced
    for entry, found in priced:
        outcome = evaluate(Candidate(workload, space.placement(entry), found.knobs), "vendor")
        assert outcome.makespan == found.terms.makespan >= space.bound(entry)


@pytest.mark.parametrize("epilogue", ["relu", "bias:c(j), relu", "residual:c(ij)"])
def test_searches_with_epilogues_end_proven(epilogue):
    result = tune(einsum("ik,jk->ij", i=32, j=32, k=64, epilogue=epilogue), trials=60, seed=0)
    assert result.proven
    assert all(plan.lower_bound <= plan.makespan for plan in result.top)


def test_parts_of_an_epilogue_are_among_the_terms():
    best = tune(einsum("ik,jk->ij", i=32, j=32, k=64, epilogue="bias:c(j), gelu"), trials=20, seed=0).best
    assert {"epilogue_loads", "epilogue_staging", "epilogue_passes"} <= set(best.terms)

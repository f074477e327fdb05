"""Oracles of plans in one pass: what they may cost is counted, larger plans are stood in for by smaller ones, and the result says so."""

import json
from math import prod

import pytest

from tcptune.exec.compile import compile_kernel
from tcptune.exec.lowering.candidates import lower_candidate
from tcptune.exec.running.oracle import verify
from tcptune.ir.workload import einsum
from tcptune.search import stand_in
from tcptune.search.entry import tune, tuner_for
from tcptune.search.stand_in import MOST_POSITIONS, affordable, allowed_positions, positions_moved, what_ran
from tcptune.search.template import template
from tcptune.search.vector_space import default_candidate

CONTRACTIONS = [
    einsum("ik,jk->ij", i=200, j=72, k=100),
    einsum("ik,kj->ij", i=64, j=96, k=48),
    einsum("i,i->", i=8192),
    einsum("bik,bjk->bij", b=4, i=24, j=40, k=72, dtype="i8"),
    einsum("ik,jk->ij", i=200, j=72, k=100, layout="aligned", epilogue="bias:c(j), relu"),
]
VECTOR = [
    einsum("i->i", i=1 << 17, epilogue="relu"),
    einsum("ij->i", i=300, j=200),
    einsum("ik,jk->ij", i=8, j=16, k=64, dtype="f32"),
]
PLANS = [*((w, template(w)) for w in CONTRACTIONS), *((w, default_candidate(w)) for w in VECTOR)]


def levels(candidate):
    return [(a.axis, a.cluster, a.slice, a.lane, a.packet) for a in candidate.placement.axes]


@pytest.mark.parametrize(("workload", "plan"), PLANS, ids=lambda value: getattr(value, "text", ""))
def test_a_smaller_plan_keeps_all_but_time_and_passes_its_oracle(workload, plan):
    most = positions_moved(plan) // 3
    small = affordable(plan, most)
    assert positions_moved(small) <= most
    assert levels(small) == levels(plan)
    assert small.knobs == plan.knobs
    assert all(a.time <= b.time for a, b in zip(small.placement.axes, plan.placement.axes, strict=True))
    assert prod(n for _, n in small.workload.sizes) < prod(n for _, n in workload.sizes)
    assert verify(compile_kernel(lower_candidate(small)).checked).passed
    assert "would take too long" in what_ran(plan, small)


@pytest.mark.parametrize(("workload", "plan"), PLANS, ids=lambda value: getattr(value, "text", ""))
def test_a_plan_within_what_is_allowed_runs_itself(workload, plan):
    assert affordable(plan, positions_moved(plan)) is plan
    assert what_ran(plan, plan) == "the kernel"


def test_what_is_allowed_follows_from_the_time_limit_and_from_no_clock():
    assert allowed_positions(None) == MOST_POSITIONS
    assert allowed_positions(1e9) == MOST_POSITIONS
    assert allowed_positions(8) == stand_in.POSITIONS_A_SECOND
    assert allowed_positions(4) == stand_in.POSITIONS_A_SECOND // 2


def test_a_large_template_is_stood_in_for_without_any_limit():
    plan = template(einsum("ij,j->i", i=8192, j=4096))
    assert positions_moved(plan) > MOST_POSITIONS
    assert positions_moved(affordable(plan, MOST_POSITIONS)) <= MOST_POSITIONS


@pytest.mark.parametrize("workload", [CONTRACTIONS[0], VECTOR[1]], ids=["contraction", "reduction"])
def test_a_search_says_for_which_plans_smaller_ones_ran(monkeypatch, workload):
    whole = tune(workload, trials=4).to_json()
    assert whole["oracle"]["what"] == "the kernel"
    monkeypatch.setattr(stand_in, "MOST_POSITIONS", 1 << 20)
    result = tune(workload, trials=4)
    assert result.oracle.passed
    assert result.oracle.what.startswith("a kernel of the same placement and knobs with shorter Time: i = ")
    small = json.loads(json.dumps(result.to_json()))
    for same in ("makespan", "lower_bound", "best", "candidates", "knob_worth"):
        assert small[same] == whole[same]


def test_what_ran_for_the_best_plan_and_for_others_is_told_apart():
    search = tuner_for(CONTRACTIONS[0])
    search.state.best = "a"
    assert search._what_ran() == "the kernel"
    search._stood_in = {"b": "x"}
    assert search._what_ran() == "the kernel; smaller kernels ran in place of 1 other plan"
    search._stood_in = {"a": "a small kernel", "b": "x", "c": "y"}
    assert search._what_ran() == "a small kernel; smaller kernels ran in place of 2 other plans"

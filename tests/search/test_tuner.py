"""The search as its users see it: targets, determinism, certificate, resume, interrupt, refusals."""

import json

import pytest

from tcptune.errors import InputError, WorkError
from tcptune.ir.workload import einsum
from tcptune.search import tuner as tuner_module
from tcptune.search.entry import tune

SMALL = einsum("ik,jk->ij", i=32, j=32, k=32)


def document(result, **changes):
    return {**result.to_json(), "wall_time_s": 0, **changes}


@pytest.mark.parametrize(
    ("text", "sizes", "options"),
    [
        ("i,i->", {"i": 512}, {}),
        ("ij,j->i", {"i": 64, "j": 128}, {}),
        ("ik,jk->ij", {"i": 32, "j": 32, "k": 32}, {}),
        ("ik,jk->ij", {"i": 1, "j": 1, "k": 1}, {}),
        ("ik,jk->ij", {"i": 7, "j": 5, "k": 11}, {}),
        ("ki,kj->ij", {"i": 16, "j": 32, "k": 24}, {}),
        ("ik,kj->ij", {"i": 16, "j": 32, "k": 24}, {}),
        ("mk,nk->nm", {"m": 24, "n": 40, "k": 24}, {}),
        ("bhqd,bhkd->bhqk", {"b": 2, "h": 2, "q": 8, "k": 12, "d": 32}, {}),
        ("ik,jk->ij", {"i": 32, "j": 32, "k": 64}, {"dtype": "i8"}),
        ("ik,jk->ij", {"i": 32, "j": 32, "k": 64}, {"dtype": "f8e4m3"}),
        ("ik,jk->ij", {"i": 16, "j": 16, "k": 64}, {"dtype": "f8e5m2"}),
        ("ik,jk->ij", {"i": 16, "j": 16, "k": 32}, {"out_dtype": "f32"}),
        ("i,i->i", {"i": 256}, {}),
        ("i,j->ij", {"i": 16, "j": 64}, {}),
        ("i,j->ij", {"i": 1, "j": 1}, {}),
        ("ji,j->i", {"i": 2, "j": 11}, {}),
        ("ki,jk->ij", {"i": 40, "j": 16, "k": 3}, {"dtype": "i8"}),
        ("bik,bkj->ibj", {"b": 2, "i": 4, "j": 8, "k": 11}, {}),
        ("kb,bk->b", {"b": 3, "k": 13}, {"dtype": "f8e5m2"}),
        ("ij,ji->ij", {"i": 11, "j": 8}, {}),
        ("ij,ij->", {"i": 13, "j": 4}, {}),
        ("i,i->", {"i": 256}, {"dtype": "f32"}),
        ("i,i->i", {"i": 256}, {"dtype": "f32"}),
        ("ik,jk->ij", {"i": 8, "j": 16, "k": 32}, {"dtype": "f32"}),
        ("ij,j->i", {"i": 5, "j": 7}, {"dtype": "f32"}),
    ],
)
def test_a_search_ends_with_a_proven_correct_kernel_not_slower_than_the_template(text, sizes, options):
    result = tune(einsum(text, sizes=sizes, **options), trials=12, seed=0)
    assert result.oracle.passed
    assert result.oracle.undefined_reads == 0
    assert result.lower_bound <= result.makespan
    if result.default is not None:
        assert result.makespan <= result.default.makespan


def test_the_same_seed_gives_the_same_document():
    first, second = (document(tune(SMALL, trials=25, seed=3)) for _ in range(2))
    assert json.dumps(first, sort_keys=True) == json.dumps(second, sort_keys=True)


def test_fates_add_up_and_the_top_is_sorted():
    result = tune(SMALL, trials=30, seed=0)
    fates = result.fates.to_json()
    assert fates["enumerated"] == sum(n for name, n in fates.items() if name != "enumerated")
    assert sum(result.rejections.values()) == result.fates.rejected
    spans = [plan.makespan for plan in result.top]
    assert spans == sorted(spans)
    assert spans[0] == result.makespan
    assert [row.makespan for row in result.trace] == sorted((row.makespan for row in result.trace), reverse=True)


def test_the_terms_of_the_best_plan_compose_its_makespan():
    from tcptune.exec.lowering.layout import Layout
    from tcptune.ir.candidate import Candidate
    from tcptune.solver.pricing import FixedCosts, price

    best = tune(SMALL, trials=10, seed=0).best
    candidate = Candidate.from_json(SMALL, best.to_json())
    assert price(Layout(candidate), FixedCosts.of("vendor")).makespan == best.makespan


def test_a_resumed_study_equals_one_that_was_never_interrupted(tmp_path, monkeypatch):
    path = tmp_path / "study.journal"
    whole = document(tune(SMALL, trials=25, seed=0))
    tune(SMALL, trials=9, seed=0, study=path)
    compiled = []
    explore = tuner_module.Workers.explore
    monkeypatch.setattr(
        tuner_module.Workers, "explore", lambda self, entries, *rest: compiled.extend(entries) or explore(self, entries, *rest)
    )
    resumed = document(tune(SMALL, trials=25, seed=0, study=path))
    assert resumed == whole
    tune(SMALL, trials=25, seed=0, study=path)
    assert len(compiled) == len(set(compiled))


def test_an_interrupt_reports_the_best_so_far():
    def stop(state):
        if state.trials >= 4:
            raise KeyboardInterrupt

    result = tune(SMALL, trials=200, progress=stop)
    assert result.stopped == "interrupt"
    assert result.oracle.passed
    assert result.lower_bound <= result.makespan


def test_a_failing_candidate_never_stops_the_run():
    result = tune(einsum("ik,jk->ij", i=5, j=3, k=7), trials=60, seed=0)
    assert result.fates.rejected > 0
    assert result.oracle.passed


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"trials": 0}, "trials"),
        ({"jobs": 0}, "jobs"),
        ({"time_limit": 0}, "time limit"),
        ({"profile": "fast"}, "profile"),
        ({"trails": 5}, "option"),
    ],
)
def test_bad_options_are_named(options, words):
    with pytest.raises(InputError, match=words):
        tune(SMALL, **options)


def test_what_fits_neither_one_pass_nor_a_tile_exits_with_the_capacity():
    with pytest.raises(WorkError, match="too large for one pass"):
        tune(einsum("i,i->", i=10**10))


@pytest.mark.parametrize(
    ("workload", "trials"), [(SMALL, 20), (einsum("mk,nk->nm", m=96, n=200, k=72), 3)], ids=["proven", "many placements"]
)
def test_two_jobs_give_the_document_of_one(workload, trials):
    one, two = (document(tune(workload, trials=trials, seed=0, jobs=jobs)) for jobs in (1, 2))
    assert two == one


@pytest.mark.parametrize("dtype", ["bf16", "f8e4m3"])
def test_results_beyond_the_largest_value_of_a_type_without_infinity_saturate(dtype):
    result = tune(einsum("ik,jk->ij", i=16, j=16, k=32, dtype=dtype, out_dtype="f8e4m3"), trials=3, seed=0)
    assert result.oracle.passed and result.oracle.undefined_reads == 0

"""What every kind of search shares: the template beside the budget, the time limit, journals and workers of enumerated searches."""

import json
import subprocess
import sys
import time
from itertools import product
from math import prod

import pytest

from tcptune.errors import InputError, WorkError
from tcptune.ir.workload import einsum
from tcptune.search import frame, space, vector_space
from tcptune.search.deadline import Deadline, TimeIsUp
from tcptune.search.entry import tune, tuner_for
from tcptune.search.options import Options
from tcptune.search.store import _valid_lines
from tcptune.search.tuner import Tuner
from tcptune.search.vector_search import VectorTuner

GEMM = einsum("ik,jk->ij", i=32, j=32, k=32)
RELU = einsum("i->i", i=4096, epilogue="relu")
ROWS = einsum("ij->i", i=24, j=64)
FLOAT = einsum("ik,jk->ij", i=8, j=16, k=32, dtype="f32")
KINDS = pytest.mark.parametrize("workload", [GEMM, RELU, ROWS, FLOAT], ids=["contraction", "element-wise", "reduction", "f32"])


def document(result):
    return json.dumps({**result.to_json(), "wall_time_s": 0}, sort_keys=True)


@KINDS
@pytest.mark.parametrize("trials", [1, 2])
def test_the_template_is_measured_beside_the_smallest_budget(workload, trials):
    result = tune(workload, trials=trials)
    assert result.default is not None
    assert result.makespan <= result.default.makespan
    assert result.default.makespan == tune(workload, trials=12).default.makespan


@KINDS
def test_a_time_limit_that_is_over_at_once_leaves_the_template_and_says_so(workload):
    result = tune(workload, time_limit=1e-9)
    assert result.stopped == "time"
    assert result.makespan == result.default.makespan
    assert result.oracle.passed
    assert 0 < result.lower_bound <= result.makespan
    assert not result.proven


@KINDS
def test_a_time_limit_that_is_not_reached_changes_nothing(workload):
    assert document(tune(workload, trials=8, time_limit=3600)) == document(tune(workload, trials=8))


class Clock:
    """A clock that moves when it is told to."""

    def __init__(self):
        self.now = 0.0

    def monotonic(self):
        return self.now


@pytest.fixture
def clock(monkeypatch):
    monkeypatch.setattr("tcptune.search.deadline.time", found := Clock())
    return found


def test_the_limit_ends_the_building_of_tables(monkeypatch, clock):
    workload, built, real = einsum("ki,kj->ij", i=32, j=32, k=32), [], space.placement_table

    def slow(family):
        clock.now += 3
        built.append(family)
        return real(family)

    monkeypatch.setattr(space, "placement_table", slow)
    result = tuner_for(workload, time_limit=5).run()
    assert result.stopped == "time"
    assert len(built) == 2 < len(space.families(workload))
    assert result.makespan == result.default.makespan


def test_the_limit_ends_pricing_between_placements_and_the_best_so_far_is_reported(monkeypatch, clock):
    priced, real = [], space.Space.ranked

    def slow(self, entry, below, keep):
        clock.now += 1
        priced.append(entry)
        return real(self, entry, below, keep)

    monkeypatch.setattr(space.Space, "ranked", slow)
    result = tune(GEMM, time_limit=10)  # the first 8 placements are priced, the best is compiled; the next ones are dropped
    assert result.stopped == "time"
    assert len(priced) == 10
    assert result.makespan < result.default.makespan
    assert result.makespan == tune(GEMM).makespan
    assert result.fates.scheduled >= 2


def test_a_limit_without_any_plan_is_an_error_that_names_it(monkeypatch):
    monkeypatch.setattr("tcptune.search.tuner.template", lambda workload: None)
    with pytest.raises(WorkError, match=r"no plan .* within 0\.001 s"):
        tune(GEMM, time_limit=0.001)


def test_a_search_out_of_time_runs_no_oracle_but_those_of_its_best_and_its_template(monkeypatch):
    verified = []
    real = frame.verify
    monkeypatch.setattr(frame, "verify", lambda checked: verified.append(checked) or real(checked))
    result = tune(RELU, time_limit=1e-9)
    assert len(verified) == 1
    assert len(result.top) == 1


def test_a_search_stopped_by_time_goes_on_from_its_journal(tmp_path):
    path = tmp_path / "study.journal"
    assert tune(ROWS, trials=10, time_limit=1e-9, study=path).stopped == "time"
    assert document(tune(ROWS, trials=10, study=path)) == document(tune(ROWS, trials=10))


def test_a_deadline_passes_once_and_for_all():
    assert not Deadline().passed
    assert not Deadline.after(None).passed
    assert not Deadline.after(60).passed
    over = Deadline.after(1e-9)
    time.sleep(0.001)
    with pytest.raises(TimeIsUp):
        over.check()


@KINDS
def test_two_jobs_give_the_document_of_one_for_every_kind_of_search(workload):
    assert document(tune(workload, trials=12, jobs=2)) == document(tune(workload, trials=12))


def test_an_enumerated_search_compiles_nothing_again_that_its_journal_holds(tmp_path, monkeypatch):
    path = tmp_path / "study.journal"
    tune(ROWS, trials=9, study=path)
    evaluated = []
    real = frame.Workers.evaluate
    monkeypatch.setattr(frame.Workers, "evaluate", lambda self, found, seen: evaluated.extend(found) or real(self, found, seen))
    resumed = tune(ROWS, trials=15, study=path)
    assert len(evaluated) == 15 - 9
    assert document(resumed) == document(tune(ROWS, trials=15))


CHILD = """
import sys
from pathlib import Path
from tcptune.ir.workload import einsum
from tcptune.search.entry import tune
tune(einsum("ij->i", i=24, j=64), trials=30, study=Path(sys.argv[1]))
"""


def whole_lines(path):
    return len(_valid_lines(path.read_bytes())[0]) if path.exists() else 0


def test_a_killed_search_of_one_input_resumes_as_if_it_had_never_been_killed(tmp_path):
    path = tmp_path / "study.journal"
    for wanted in (1, 4, 9):
        before = whole_lines(path)
        with subprocess.Popen([sys.executable, "-c", CHILD, str(path)]) as child:
            while whole_lines(path) < wanted:
                assert child.poll() is None
                time.sleep(0.005)
            child.kill()
        assert whole_lines(path) >= max(before, wanted), "a finished step was lost"
    assert whole_lines(path) < 32, "it was killed before its end"
    workload = einsum("ij->i", i=24, j=64)
    assert document(tune(workload, trials=30, study=path)) == document(tune(workload, trials=30))


def test_each_kind_of_search_refuses_what_is_for_the_other():
    with pytest.raises(InputError, match="no work for the Contraction Engine"):
        Tuner(RELU)
    with pytest.raises(InputError, match="is work for the Contraction Engine"):
        VectorTuner(GEMM)


def test_options_are_one_value_for_every_kind_of_search():
    given = {"trials": 7, "seed": 3, "profile": "manual"}
    assert tuner_for(GEMM, **given).options == tuner_for(RELU, **given).options == Options(**given)


@pytest.mark.parametrize(("text", "sizes"), [("ijk->i", {"i": 3, "j": 4, "k": 8}), ("ij->ji", {"i": 12, "j": 16})])
def test_the_space_holds_every_pair_of_cluster_and_slice_cuts_within_the_chip(text, sizes):
    workload = einsum(text, sizes=sizes, epilogue="relu")
    placements = {c.placement for c in vector_space.candidates_of(workload)}
    roles = workload.roles()
    allowed = []
    for axis, size in workload.sizes:
        cuts = [(c, 1 << e) for c in (1, 2) if c == 1 or roles[axis] != "k" for e in range(9) if c * 2**e < 2 * size]
        allowed.append([vector_space._placed(workload, axis, *cut) for cut in cuts])
    fits = [
        p
        for p in product(*allowed)
        if prod(a.cluster for a in p) <= 2
        and prod(a.slice for a in p) <= 256
        and all(a.padded <= max(1.5 * workload.size(a.axis), a.in_slice) for a in p)
    ]
    assert {p.axes for p in placements} == set(fits)


@pytest.mark.parametrize(
    ("text", "sizes", "element"),
    [
        ("dh,db->hb", {"d": 16, "h": 16, "b": 16}, "f32"),
        ("dh,db->hb", {"d": 64, "h": 32, "b": 48}, "f32"),
        ("abk,ck->bca", {"a": 3, "b": 16, "c": 17, "k": 3}, "bf16"),
    ],
)
@pytest.mark.parametrize("trials", [1, 3])
def test_refusals_before_the_first_legal_plan_do_not_use_up_the_trials(text, sizes, element, trials):
    result = tune(einsum(text, sizes=sizes, dtype=element), trials=trials)
    assert result.oracle.passed
    assert result.default is None or result.makespan <= result.default.makespan
    assert result.fates.scheduled <= trials + 1


def test_a_space_without_a_legal_plan_ends_with_what_refused_it():
    """Rows of 28 B: no part of 4 B elements that a load brings is whole words (DMA-020)."""
    with pytest.raises(WorkError, match="no legal plan") as caught:
        tune(einsum("dh,db->hb", d=5, h=7, b=3, dtype="f32"), trials=3)
    assert "DMA-020" in caught.value.render()


def test_refusals_take_trials_once_too_many_were_free(monkeypatch):
    monkeypatch.setattr(frame, "FREE_REFUSALS", 2)
    with pytest.raises(WorkError) as caught:
        tune(einsum("dh,db->hb", d=16, h=16, b=16, dtype="f32"), trials=3)
    assert "DMA-005 (5)" in caught.value.render()


@pytest.mark.parametrize("text", ["dh,db->hb", "abk,ck->bca"])
def test_refusals_are_counted_alike_for_any_number_of_jobs(text):
    workload = {
        "dh,db->hb": einsum("dh,db->hb", d=16, h=16, b=16, dtype="f32"),
        "abk,ck->bca": einsum("abk,ck->bca", a=3, b=16, c=17, k=3),
    }[text]
    assert document(tune(workload, trials=5, jobs=2)) == document(tune(workload, trials=5))


def test_a_search_that_ended_by_proof_runs_no_further_oracles_behind_its_time_limit():
    tuner = tuner_for(einsum("ik,jk->ij", i=16, j=16, k=16), trials=12, time_limit=1000)
    whole = tuner.run()
    assert whole.stopped != "time" and len(whole.top) > 1
    tuner.deadline = Deadline(0.0)
    tuner.state.verifications = {tuner.state.best: tuner.state.verifications[tuner.state.best]}
    reported = [plan.makespan for plan in tuner._result(whole.stopped).top]
    assert reported == [whole.makespan, whole.default.makespan]  # the template's oracle is always run

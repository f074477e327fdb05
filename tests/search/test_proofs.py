"""When a search may claim a proof: not while a price is open, a candidate has no price, or a plan failed its oracle."""

from dataclasses import replace

import pytest

from tcptune.errors import WorkError
from tcptune.ir.workload import einsum
from tcptune.model.memory.price import Unpriced
from tcptune.search import frame, parallel, space
from tcptune.search.entry import tune, tuner_for
from tcptune.search.parallel import Outcome, evaluate
from tcptune.search.result import kernel_hash
from tcptune.search.space import Space
from tcptune.search.store import DUPLICATE, SCHEDULED, UNPRICED

GEMM = einsum("ik,jk->ij", i=32, j=32, k=32)
ROWS = einsum("ij->i", i=8, j=32)


@pytest.mark.parametrize("fate", [DUPLICATE, SCHEDULED])  # found by the worker that compiled it, or by another one
def test_a_known_kernel_with_a_price_below_the_best_leaves_its_placement_open(fate):
    tuner = tuner_for(GEMM)
    result = tuner.run()
    assert result.proven
    candidate = tuner.state.scheduled[tuner.state.best][2].to_json()
    same = Outcome(candidate, fate, tuner.state.best, result.makespan, result.makespan)
    tuner._account_outcome(same, 0, is_template=False)
    assert tuner._proven()
    tuner._account_outcome(replace(same, price=result.makespan - 1), 0, is_template=False)
    assert not tuner._proven()
    assert tuner._bound() == result.makespan - 1


def fails(monkeypatch, error, every=4):
    """Makes every fourth candidate fail to compile with an error."""
    calls, real = [], parallel.compile_kernel

    def compile_or_fail(kernel, profile):
        calls.append(kernel)
        if len(calls) % every == 0:
            raise error
        return real(kernel, profile)

    monkeypatch.setattr(parallel, "compile_kernel", compile_or_fail)


def test_a_defect_of_the_program_is_not_counted_as_a_refusal(monkeypatch):
    fails(monkeypatch, WorkError("internal: no part of axis I begins at 3"))
    with pytest.raises(WorkError, match="internal: no part of axis I"):
        tune(ROWS)


def test_candidates_without_a_price_forbid_a_proof(monkeypatch):
    assert tune(ROWS).stopped == "proven"
    fails(monkeypatch, Unpriced("no price for it"))
    result = tune(ROWS)
    assert result.rejections[UNPRICED] > 0
    assert result.stopped == "exhausted"
    assert not result.proven
    assert result.lower_bound < result.makespan


def test_a_refused_candidate_keeps_the_rule_and_an_unpriced_one_says_so(monkeypatch):
    candidate = tuner_for(ROWS).space.candidates[0]
    fails(monkeypatch, Unpriced("no price for it"), every=1)
    assert evaluate(candidate, "vendor").rule == UNPRICED


def test_a_search_whose_best_plan_failed_its_oracle_is_exhausted_not_proven(monkeypatch):
    plain = tune(ROWS)
    real = frame.verify

    def doubtful(checked):
        verdict = real(checked)
        if kernel_hash(checked.kernel.to_text()) == kernel_hash(plain.kernel.to_text()):
            return replace(verdict, runs=tuple(replace(run, report=replace(run.report, wrong=1)) for run in verdict.runs))
        return verdict

    monkeypatch.setattr(frame, "verify", doubtful)
    result = tune(ROWS)
    assert result.rejections["ORACLE"] > 0
    assert result.makespan >= plain.makespan
    assert (result.stopped, result.proven) == ("exhausted", False)


PAIR = einsum("ik,jk->ij", i=8, j=8, k=16)


def test_a_truncated_table_is_no_proof_and_what_it_left_out_is_in_the_bound(monkeypatch):
    whole = tune(PAIR)
    real = space.placement_table
    monkeypatch.setattr(space, "placement_table", lambda family: real(family, limit_rows=40))
    result = tune(PAIR, trials=8)
    assert result.stopped != "proven"
    assert not result.proven
    assert result.lower_bound <= whole.makespan <= result.makespan


def test_a_family_whose_rows_were_all_left_out_still_counts(monkeypatch):
    """Truncation may keep only rows that no further axis lets fit; CP-SAT then gives the family a row, or proves that it has none."""
    real = space.placement_table
    lost = Space(PAIR).tables[1].family

    def losing(family):
        table = real(family)
        return replace(table, choice=table.choice[:0], complete=False) if family == lost else table

    monkeypatch.setattr(space, "placement_table", losing)
    found = Space(PAIR)
    assert [t.rows for t in found.tables if t.family == lost] == [1]
    assert not found.complete
    result = tune(PAIR, trials=8)
    assert not result.proven
    assert result.lower_bound == found.lower_bound <= result.makespan


def test_a_truncated_family_without_any_placement_is_complete(monkeypatch):
    real = space.placement_table
    monkeypatch.setattr(space, "placement_table", lambda family: replace(real(family), complete=False))
    with pytest.raises(WorkError, match="too large for one pass"):
        Space(einsum("i,i->", i=2_000_003)).tables  # noqa: B018 - an odd size is not cut

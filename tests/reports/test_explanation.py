"""What the document of a search says of its best plan: what limits it, why it beats the runner-up, what each choice is worth."""

import json

import pytest

from tcptune.exec.kernel_file import load_checked, recorded_profile
from tcptune.ir.workload import einsum
from tcptune.reports.explanation import explanation, result_document
from tcptune.reports.folder import write_result
from tcptune.reports.result_view import result_context
from tcptune.search.entry import tune

KINDS = {
    "contraction": einsum("ik,jk->ij", i=32, j=64, k=32),
    "epilogue": einsum("ik,jk->ij", i=32, j=64, k=32, epilogue="bias:b(j), silu"),
    "element-wise": einsum("i->i", i=4096, epilogue="relu"),
    "reduction": einsum("ij->i", i=16, j=64),
    "f32": einsum("ij,j->i", i=16, j=32, dtype="f32"),
}


@pytest.mark.parametrize("workload", KINDS.values(), ids=KINDS)
def test_every_kind_of_search_explains_its_best_plan(workload):
    result = tune(workload, trials=12)
    found = explanation(result)
    assert "cycles" in found["limits"]
    second = result.top[1]
    assert found["runner_up"]["makespan"] == second.makespan
    for part, difference in found["runner_up"]["terms"].items():
        assert difference == second.terms.get(part, 0) - result.best.terms.get(part, 0) != 0
    assert result.knob_worth
    legal = [makespan for makespan in result.knob_worth.values() if makespan is not None]
    assert all(makespan >= result.lower_bound for makespan in legal)
    json.dumps(result_document(result, {}), allow_nan=False)


@pytest.mark.parametrize("workload", [KINDS["element-wise"], KINDS["reduction"]], ids=["element-wise", "reduction"])
def test_the_terms_of_a_plan_of_one_input_add_up_to_its_makespan(workload):
    best = tune(workload, trials=12).best
    assert sum(best.terms.values()) == best.makespan


@pytest.mark.parametrize("profile", ["vendor", "manual"])
def test_a_kernel_file_records_the_profile_it_was_found_with(tmp_path, profile):
    result = tune(KINDS["reduction"], trials=3, profile=profile)
    write_result(result, tmp_path)
    assert recorded_profile(tmp_path / "kernel.visa") == profile
    assert load_checked(tmp_path / "kernel.visa").kernel == result.kernel


def test_the_page_of_an_enumerated_search_shows_the_worth_of_its_cuts():
    result = tune(KINDS["reduction"], trials=12)
    rows = {row["knob"]: row for row in result_context(result, "", {}, "")["knobs"]}
    for name, makespan in result.knob_worth.items():
        assert rows[name]["worth"] == ("not legal" if makespan is None else makespan - result.makespan)
        axis = name.removeprefix("placement of ")
        assert all(f"{level} {n}" in rows[name]["value"] for level, n in result.best.placement[axis].items())

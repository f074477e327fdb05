"""Nothing that a case expects passes unread: an invented field of ``expect`` or an invented number of a row fails, whatever the kind.

A remark does not, and a mapping may be written in another way.
"""

from copy import deepcopy
from pathlib import Path

import pytest

from tcptune.exec.conformance.runner import load_cases, run_case

DATA = Path(__file__).parent / "data"
CASES = {case["id"]: case for file in sorted(DATA.glob("*.json")) for case in load_cases(file)}

FIRST_OF_A_KIND = {
    (case["kind"], case.get("what"), case.get("expect", {}).get("verdict")): case_id
    for case_id, case in sorted(CASES.items(), key=lambda item: len(str(item[1])), reverse=True)
}
"""The shortest case of every question and verdict."""

EXPLAINED = {"vector_stages"}
"""Tables that may hold numbers that nothing derives."""


def _outcome(case_id, change):
    case = deepcopy(CASES[case_id])
    change(case)
    return run_case(case).outcome


@pytest.mark.parametrize("case_id", sorted(FIRST_OF_A_KIND.values()))
def test_an_invented_result_is_not_passed_over(case_id):
    assert _outcome(case_id, lambda case: case.setdefault("expect", {}).update(invented=17)) == "failed"


@pytest.mark.parametrize("case_id", sorted(FIRST_OF_A_KIND.values()))
def test_a_remark_beside_the_results_changes_nothing(case_id):
    assert _outcome(case_id, lambda case: case.setdefault("expect", {}).update(note="for the reader")) == "passed"


@pytest.mark.parametrize("case_id", sorted(i for i in FIRST_OF_A_KIND.values() if isinstance(CASES[i].get("rows", [None])[0], dict)))
def test_an_invented_number_of_a_row_is_not_passed_over(case_id):
    if CASES[case_id]["what"] not in EXPLAINED:
        assert _outcome(case_id, lambda case: case["rows"][0].update(invented=17)) == "failed"


@pytest.mark.parametrize("case_id", sorted(i for (kind, _, _), i in FIRST_OF_A_KIND.items() if kind == "table"))
def test_a_table_is_an_accept(case_id):
    assert _outcome(case_id, lambda case: case.update(expect={"verdict": "reject", "rule": "MAP-001"})) == "failed"


def test_a_field_of_the_case_may_be_repeated_in_what_it_expects():
    assert CASES["sequencer.commit-12"]["expect"]["engine"] == CASES["sequencer.commit-12"]["engine"]
    assert _outcome("sequencer.commit-12", lambda case: case["expect"].update(engine="fetch")) == "failed"


def test_the_type_of_an_output_is_compared_by_its_cells():
    def write(slices):
        return lambda case: case["expect"]["output_type"].update(slice=slices)

    assert CASES["lift.named-broadcast"]["expect"]["output_type"]["slice"] == "A, H"
    assert _outcome("lift.named-broadcast", write("[A / 2, A % 2, H % 2]")) == "passed"
    assert _outcome("lift.named-broadcast", write("H, A")) == "failed"

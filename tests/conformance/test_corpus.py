"""The corpus passes chapter by chapter; what fails must be a known issue with its reason."""

import json
from collections import Counter
from pathlib import Path

import pytest

from tcptune.exec.conformance.runner import CHAPTERS, corpus_files, known_issues, load_cases, run_case

FILES = {f.stem: f for f in corpus_files()}
CASES = [(stem, case) for stem in CHAPTERS for case in load_cases(FILES[stem])]


@pytest.mark.parametrize(("stem", "case"), CASES, ids=[f"{case['id']}" for _, case in CASES])
def test_the_model_agrees_with_the_case(stem, case):
    result = run_case(case, stem)
    assert result.outcome in ("passed", "known"), result.why


def test_case_ids_are_unique():
    counts = Counter(case["id"] for _, case in CASES)
    assert not [i for i, n in counts.items() if n > 1]


def test_known_issues_name_cases_that_exist_and_are_few():
    ids = {case["id"] for _, case in CASES}
    assert set(known_issues()) <= ids
    for stem in CHAPTERS:
        known = [c["id"] for s, c in CASES if s == stem and c["id"] in known_issues()]
        assert len(known) <= 4, (stem, known)


def test_the_projects_own_copy_is_in_step_with_the_shared_corpus():
    shared = Path(__file__).parents[3] / "shared" / "conformance"
    if not shared.is_dir():
        pytest.skip("no shared corpus beside the project: only the own copy exists")
    for file in sorted(shared.glob("*.json")):
        own = Path(__file__).parent / "data" / file.name
        assert json.loads(own.read_text()) == json.loads(file.read_text()), file.name


def test_a_kind_that_nothing_can_run_counts_as_failed():
    assert run_case({"id": "x", "kind": "no such kind"}).outcome == "failed"
    assert run_case({"id": "x", "kind": "cost", "what": "no such question"}).outcome == "failed"

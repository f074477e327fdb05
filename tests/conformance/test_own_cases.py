"""Own cases in the corpus's format: other types, sizes, paddings and parameters than the corpus has, with both sides of every limit.

Their expected values come from the rule texts and from brute force over cells, never from a run of the model.
"""

from collections import Counter
from pathlib import Path

import pytest

from tcptune.exec.conformance.runner import load_cases, run_case

FILES = sorted((Path(__file__).parent / "own").glob("*.json"))
CASES = [(file.stem, case) for file in FILES for case in load_cases(file)]


@pytest.mark.parametrize(("stem", "case"), CASES, ids=[f"{stem}:{case['id']}" for stem, case in CASES])
def test_the_model_agrees_with_the_case(stem, case):
    result = run_case(case, stem)
    assert result.outcome == "passed", result.why


def test_case_ids_are_unique():
    counts = Counter(case["id"] for _, case in CASES)
    assert not [i for i, n in counts.items() if n > 1]

"""The certificate: on tiny workloads full enumeration finds nothing better, and nothing scheduled lies below its bound."""

import pytest

from tcptune.ir.workload import einsum
from tcptune.search.entry import tune
from tcptune.search.parallel import evaluate
from tcptune.search.space import Space
from tests.search.settings import all_settings

TINY = [
    einsum("i,i->", i=64),
    einsum("ij,j->i", i=2, j=16),
    einsum("ik,jk->ij", i=2, j=1, k=16),
    einsum("i,i->i", i=16),
    einsum("i,j->ij", i=2, j=8),
]


@pytest.mark.parametrize("workload", TINY, ids=lambda w: f"{w.text} {dict(w.sizes)}")
def test_full_enumeration_finds_nothing_better_than_a_proven_result(workload):
    result = tune(workload, trials=60, seed=0)
    assert result.proven
    space = Space(workload)
    best = None
    seen: dict[str, int] = {}
    for entry in range(space.entries):
        for candidate in all_settings(space, entry):
            outcome = evaluate(candidate, "vendor", seen=seen)
            if outcome.fate == "scheduled":
                seen[outcome.kernel_hash] = outcome.makespan
                assert outcome.makespan >= space.bound(entry)
                best = outcome.makespan if best is None else min(best, outcome.makespan)
    assert best == result.makespan

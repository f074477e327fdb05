"""Bounds and prices against compiled kernels: nothing scheduled is below a bound, and a price is the makespan."""

import pytest

from tcptune.ir.candidate import Candidate
from tcptune.ir.workload import einsum
from tcptune.search.parallel import explore
from tcptune.search.space import Space

WORKLOADS = [
    einsum("i,i->", i=256),
    einsum("ij,j->i", i=32, j=64),
    einsum("ik,jk->ij", i=32, j=32, k=64),
    einsum("ik,kj->ij", i=16, j=64, k=32),
    einsum("vmk,kn->vmn", v=4, m=8, k=32, n=8),
    einsum("ik,jk->ij", i=5, j=3, k=7),
    einsum("ik,jk->ij", i=16, j=16, k=64, dtype="i8"),
    einsum("i,i->i", i=512),
    einsum("ik,jk->ij", i=32, j=64, k=32, epilogue="bias:c(j), gelu"),
    einsum("ik,jk->ij", i=32, j=64, k=32, epilogue="residual:c(ij), relu", fuse=False),
    einsum("ki,jk->ij", k=33, i=33, j=48, dtype="f8e4m3"),
    einsum("bik,bkj->bij", b=16, i=1, k=128, j=1, layout="dense"),
]


@pytest.mark.parametrize("workload", WORKLOADS, ids=lambda w: f"{w.text} {dict(w.sizes)} {w.dtype} {w.layout} {w.epilogue}")
def test_every_compiled_plan_costs_its_price_and_no_less_than_its_bound(workload):
    space = Space(workload)
    step = max(1, space.entries // 40)
    compiled = 0
    for entry in range(0, space.entries, step):
        for outcome in explore(space, entry, 1 << 40):
            if outcome.fate == "scheduled":
                compiled += 1
                candidate = Candidate.from_json(workload, outcome.candidate)
                assert outcome.makespan >= outcome.price, candidate
                if not any(candidate.knobs.relayout):  # copies may also hold the DMA engine (SCHED-005)
                    assert outcome.makespan == outcome.price, candidate
                assert outcome.makespan >= space.bound(entry), candidate
    assert compiled


def test_entries_are_ordered_by_bound_and_the_first_bounds_the_space():
    space = Space(WORKLOADS[2])
    bounds = [space.bound(e) for e in range(space.entries)]
    assert bounds == sorted(bounds)
    assert space.lower_bound == bounds[0]
    assert space.below(bounds[0]) == 0
    assert space.below(bounds[-1] + 1) == space.entries


def test_what_does_not_fit_one_pass_names_the_memory():
    from tcptune.errors import WorkError

    with pytest.raises(WorkError) as caught:
        Space(einsum("ik,jk->ij", i=60_000, j=60_000, k=64)).entries  # noqa: B018
    assert "DM-003" in caught.value.render()
    assert caught.value.exit_status == 1

"""Options and sizes that no search can use are refused before it starts."""

import pytest

from tcptune.errors import InputError, WorkError
from tcptune.ir.workload import einsum
from tcptune.search.entry import tune, tuner_for

GEMM = einsum("ik,jk->ij", i=8, j=8, k=8)
RELU = einsum("i->i", i=64, epilogue="relu")


@pytest.mark.parametrize("workload", [GEMM, RELU], ids=["two inputs", "one input"])
@pytest.mark.parametrize(
    "option",
    [{"trials": 0}, {"trials": 1.5}, {"trials": "3"}, {"jobs": 0}, {"jobs": True}, {"seed": -1}, {"seed": None}]
    + [{"time_limit": t} for t in (0, -1.0, float("nan"), "1")]
    + [{"profile": "fast"}, {"unknown": 1}],
    ids=str,
)
def test_an_option_that_cannot_be_used_is_refused(workload, option):
    with pytest.raises(InputError):
        tuner_for(workload, **option)


@pytest.mark.parametrize("sizes", [(10**12, 8, 8), (8, 8, 10**12), (10**12, 10**12, 10**12), (2**62, 2**62, 2**62), (2**31, 1, 1)])
def test_tensors_beyond_the_data_memory_are_too_large_for_one_pass(sizes):
    with pytest.raises(WorkError, match="too large for one pass"):
        tune(einsum("ik,jk->ij", sizes=dict(zip("ijk", sizes, strict=True))), trials=2)


def test_a_size_beyond_any_mapping_is_refused():
    with pytest.raises(InputError, match=r"at most 2\^62"):
        einsum("i->i", i=10**30, epilogue="relu")


@pytest.mark.parametrize("trials", [2, 3])
def test_a_short_search_does_not_end_behind_the_mapping_of_the_manual(trials):
    result = tune(einsum("ij->ji", i=16, j=64, epilogue="relu"), trials=trials)
    assert result.makespan <= result.default.makespan

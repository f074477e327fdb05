"""Options and sizes that no search can use are refused before it starts."""

from pathlib import Path

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
    + [{"time_limit": t} for t in (0, -1.0, float("nan"), "1", float("inf"), 1e300)]
    + [{"profile": "fast"}, {"unknown": 1}, {"jobs": 100_000}, {"study": "a\0b"}, {"study": Path("a\0b")}],
    ids=str,
)
def test_an_option_that_cannot_be_used_is_refused(workload, option):
    with pytest.raises(InputError):
        tuner_for(workload, **option)


@pytest.mark.parametrize("option", ["trials", "seed", "jobs", "time_limit"])
@pytest.mark.parametrize("value", [10**400, -(10**400), 10**5000, -(10**5000)], ids=["1e400", "-1e400", "1e5000", "-1e5000"])
def test_numbers_beyond_every_clock_and_text_are_refused(option, value):
    with pytest.raises(InputError, match=r"must be (at|above)"):
        tuner_for(GEMM, **{option: value})


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

"""The search adds partial sums in whichever way is cheapest, and what it finds can be exported."""

import pytest

from tcptune.exec.compile import compile_checked, compile_kernel
from tcptune.exec.lowering.lower import lower
from tcptune.exec.rust.check import check_rust
from tcptune.exec.rust.reader import read_rust
from tcptune.ir.workload import K, einsum
from tcptune.reports.rust.device import kernel_to_rust
from tcptune.reports.rust.project import project_files
from tcptune.search.entry import tune
from tcptune.search.space import Space
from tests.exec.test_partial_sums import gemm

LIMIT = 1 << 40


def test_every_way_is_the_cheapest_of_some_placement():
    missing = {("exchange", "one"), ("gather", "one"), ("reducer", "one"), ("transfer", "one"), ("reducer", "scatter")}
    for workload in (einsum("ij,j->i", i=32, j=128), einsum("ik,jk->ij", i=64, j=8, k=64)):
        space = Space(workload)
        summed = next(a for a, role in workload.roles().items() if role == K)
        for entry in range(0, space.entries, 3):
            part = space.placement(entry).of(summed)
            if part.slice * part.cluster > 1 and missing:
                missing -= {(p.knobs.slice_sum, p.knobs.cluster_sum) for p in space.ranked(entry, LIMIT, 1)}
    assert not missing


def test_a_long_dot_product_is_gathered_over_a_ring():
    """4,080 cycles is the best with the Inter-Slice Reducer alone, over 8 slices."""
    result = tune(einsum("i,i->", i=16_384), trials=60, seed=0)
    assert result.proven and result.oracle.passed
    assert result.best.knobs["slice_sum"] == "gather"
    assert result.makespan < 4080


def test_where_no_axis_is_summed_over_slices_or_clusters_there_is_nothing_to_choose():
    space = Space(einsum("ik,jk->ij", i=4, j=4, k=32))
    roles = space.workload.roles()
    for entry in range(0, space.entries, 3):
        placement = space.placement(entry)
        if all(a.slice * a.cluster == 1 for a in placement.axes if roles[a.axis] == K):
            for priced in space.ranked(entry, LIMIT, 1):
                assert (priced.knobs.slice_sum, priced.knobs.cluster_sum) == ("reducer", "one")
                assert not priced.terms.exchange and not priced.terms.addition


@pytest.mark.parametrize("slice_sum", ["reducer", "gather", "exchange", "transfer"])
def test_a_kernel_that_adds_partial_sums_is_exported_and_read_again(slice_sum):
    kernel = lower(gemm("bf16", slice_sum=slice_sum, cluster_sum="scatter"))
    assert project_files(kernel, "sums")
    again = check_rust(read_rust(kernel_to_rust(kernel).text))
    assert compile_checked(again).makespan == compile_kernel(kernel).makespan


@pytest.mark.slow
@pytest.mark.parametrize(
    ("workload", "reducer_alone"),
    [
        (einsum("i,i->", i=65_536), 5640),
        (einsum("ij,j->i", i=8, j=65_536), 6789),
        (einsum("ik,kj->ij", i=8, j=32, k=4096), 6_055),
    ],
    ids=["dot", "gemv", "gemm"],
)
def test_long_sums_beat_the_reducer_alone_when_both_clusters_share_them(workload, reducer_alone):
    """`reducer_alone`: the best of 200 trials with summed axes over slices only, added by the Inter-Slice Reducer."""
    result = tune(workload, trials=200, seed=0)
    summed = next(a for a, role in workload.roles().items() if role == K)
    assert result.best.placement[summed]["Cluster"] == 2
    assert result.makespan < reducer_alone

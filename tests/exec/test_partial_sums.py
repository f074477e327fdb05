"""Partial sums over clusters and slices: every way to add them computes what the oracle says; what cannot work names its rule."""

from dataclasses import replace

import numpy as np
import pytest

from tcptune.errors import RuleViolation
from tcptune.exec.compile import compile_kernel
from tcptune.exec.lowering.lower import lower
from tcptune.exec.running.fill import drawn_inputs
from tcptune.exec.running.interpret import run_kernel
from tcptune.exec.running.oracle import verify
from tcptune.ir.candidate import Candidate, Knobs
from tcptune.ir.kernels.kernel import Kernel
from tcptune.ir.placement import AxisPlacement, Placement
from tcptune.ir.workload import Workload, einsum

SLICE_SUMS = ("reducer", "gather", "exchange", "transfer")
CLUSTER_SUMS = ("one", "scatter")


def candidate(workload: Workload, placement: tuple[AxisPlacement, ...], order: tuple[str, ...], **knobs: object) -> Candidate:
    return Candidate(workload, Placement(placement), Knobs(slice_order=order, **knobs))


def gemm(dtype: str, clusters: int = 2, out_dtype: str | None = None, i: int = 16, **knobs: object) -> Candidate:
    """16 rows of 8 results in a slice: K over clusters and four slices, rows in time, columns in lanes; a row count below 16 is padded."""
    flit = 256 // einsum("i,i->", i=64, dtype=dtype).dtype.bits
    workload = einsum("ik,jk->ij", i=i, j=8, k=clusters * 4 * 2 * flit, dtype=dtype, out_dtype=out_dtype)
    axes = (
        AxisPlacement("i", time=16),
        AxisPlacement("k", cluster=clusters, slice=4, time=2, packet=flit),
        AxisPlacement("j", lane=8),
    )
    return candidate(workload, axes, ("_", "k"), **knobs)


def steps(kernel: Kernel) -> list[str]:
    return [line.strip() for line in kernel.to_text().splitlines()]


@pytest.mark.parametrize("cluster_sum", CLUSTER_SUMS)
@pytest.mark.parametrize("slice_sum", SLICE_SUMS)
@pytest.mark.parametrize("dtype", ["bf16", "i8", "f8e4m3"])
def test_sums_over_clusters_and_slices_agree_with_the_oracle(dtype, slice_sum, cluster_sum):
    chosen = gemm(dtype, slice_sum=slice_sum, cluster_sum=cluster_sum)
    assert verify(compile_kernel(lower(chosen)).checked, seeds=(3,)).passed


@pytest.mark.parametrize("slice_sum", ["gather", "exchange", "transfer"])
def test_sums_over_slices_of_each_cluster_agree_with_the_oracle(slice_sum):
    assert verify(compile_kernel(lower(gemm("bf16", clusters=1, slice_sum=slice_sum))).checked, seeds=(3,)).passed


@pytest.mark.parametrize("slice_sum", SLICE_SUMS)
def test_a_row_count_that_is_no_power_of_two_is_padded_and_agrees(slice_sum):
    chosen = gemm("bf16", i=13, slice_sum=slice_sum, cluster_sum="scatter")
    assert verify(compile_kernel(lower(chosen)).checked, seeds=(3,)).passed


@pytest.mark.parametrize("slice_sum", ["gather", "transfer"])
def test_slices_that_hold_only_the_padding_of_a_row_add_zero(slice_sum):
    workload = einsum("i,i->", i=33, dtype="i8")  # rows of 33 bytes are stored as 64
    chosen = candidate(workload, (AxisPlacement("i", slice=2, packet=32),), ("_", "i"), slice_sum=slice_sum)
    assert verify(compile_kernel(lower(chosen)).checked, seeds=(3,)).passed


@pytest.mark.parametrize(
    ("slice_sum", "order"), [("gather", ("k", "i", "_")), ("transfer", ("k", "_", "i")), ("exchange", ("k", "i", "_"))]
)
def test_summed_slices_need_not_be_innermost(slice_sum, order):
    workload = einsum("ik,jk->ij", i=16, j=8, k=128)
    axes = (AxisPlacement("i", slice=4, time=4), AxisPlacement("k", slice=4, packet=32), AxisPlacement("j", lane=8))
    assert verify(compile_kernel(lower(candidate(workload, axes, order, slice_sum=slice_sum))).checked, seeds=(3,)).passed
    with pytest.raises(RuleViolation) as refused:
        lower(candidate(workload, axes, order))
    assert refused.value.rule == "XSR-001"


def test_two_summed_axes_side_by_side_are_one_sum():
    workload = einsum("ikl,jkl->ij", i=4, j=8, k=4, l=64)
    axes = (
        AxisPlacement("i", time=4),
        AxisPlacement("k", cluster=2, slice=2),
        AxisPlacement("l", slice=2, packet=32),
        AxisPlacement("j", lane=8),
    )
    chosen = candidate(workload, axes, ("_", "k", "l"), slice_sum="gather")
    assert verify(compile_kernel(lower(chosen)).checked, seeds=(3,)).passed
    apart = replace(chosen, knobs=replace(chosen.knobs, slice_order=("k", "_", "l")))
    with pytest.raises(RuleViolation) as refused:
        lower(apart)
    assert refused.value.rule == "SWITCH-003"


# what the kernels are made of


def test_partial_sums_of_bf16_are_rounded_once_after_the_last_addition():
    """Terms 256, 0.5, 0.5, … of which each alone is lost beside 256 in bf16 (8 bits), but not their sum of 4."""
    workload = einsum("i,i->", i=256)
    for slice_sum in ("gather", "transfer"):
        chosen = candidate(workload, (AxisPlacement("i", cluster=2, slice=4, packet=32),), ("_", "i"), slice_sum=slice_sum)
        checked = compile_kernel(lower(chosen)).checked
        inputs = drawn_inputs(checked.kernel, "random", 1)
        first = np.zeros(256, np.float32)
        first[::32] = [256, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 1.0]
        for name, values in (("a", first), ("b", np.ones(256, np.float32))):
            inputs[name].data[...] = values.reshape(inputs[name].data.shape).astype(inputs[name].data.dtype)
        (out,) = run_kernel(checked, inputs).outputs.values()
        assert float(out.data.reshape(-1)[0]) == 260.0


def test_two_clusters_exchange_by_one_dma_and_add_a_pair():
    workload = einsum("ik,jk->ij", i=16, j=8, k=128)
    axes = (AxisPlacement("i", time=16), AxisPlacement("k", cluster=2, time=2, packet=32), AxisPlacement("j", lane=8))
    kernel = lower(candidate(workload, axes, ("_",), cluster_sum="scatter"))
    moves = [line for line in steps(kernel) if line.startswith("r_terms")]
    assert moves == ["r_terms = to_dm(p_terms, cluster=[I / 8], slice=[1 # 256], element=[I % 8, TERM, J])"]
    assert any("vector_clip_zip" in line for line in steps(kernel)) and not any("intra_slice_reduce" in line for line in steps(kernel))


def test_clusters_that_share_the_sums_share_their_store():
    workload = einsum("ik,jk->ij", i=1024, j=8, k=128)
    axes = (AxisPlacement("i", time=1024), AxisPlacement("k", cluster=2, time=2, packet=32), AxisPlacement("j", lane=8))
    cycles = {}
    for cluster_sum in CLUSTER_SUMS:
        schedule = compile_kernel(lower(candidate(workload, axes, ("_",), cluster_sum=cluster_sum))).schedule
        (store,) = [o for o in schedule.operations if o.id == "out"]
        cycles[cluster_sum] = store.end - store.begin
    assert cycles["scatter"] < cycles["one"]


def test_a_ring_of_slices_is_gathered_in_the_pass_that_adds():
    kernel = lower(gemm("bf16", clusters=1, slice_sum="gather"))
    text = " ".join(steps(kernel))
    assert "Broadcast1" in text and "vector_intra_slice_reduce" in text and "vector_inter_slice_reduce" not in text
    assert not any(line.startswith("r_terms") for line in steps(kernel))  # no DMA


# refusals


def test_integer_sums_that_may_saturate_take_the_wrapping_ways():
    """131,072 products of -128 x -128 are 2^31, one more than i32 holds: the Intra-Slice Reducer would saturate."""
    workload = einsum("i,i->", i=1 << 17, dtype="i8")
    axes = (AxisPlacement("i", slice=64, time=32, packet=64),)
    with pytest.raises(RuleViolation) as refused:
        lower(candidate(workload, axes, ("_", "i"), slice_sum="gather"))
    assert refused.value.rule == "ISR-003"
    halves = (AxisPlacement("i", cluster=2, slice=64, time=16, packet=64),)
    for knobs, placed in (({}, axes), ({"cluster_sum": "one"}, halves)):
        checked = compile_kernel(lower(candidate(workload, placed, ("_", "i"), **knobs))).checked
        inputs = drawn_inputs(checked.kernel, "random", 1)
        for values in inputs.values():
            values.data[...] = -128
        (out,) = run_kernel(checked, inputs).outputs.values()
        assert int(out.data.reshape(-1)[0]) == -(1 << 31)


@pytest.mark.parametrize(
    ("rule", "knobs"),
    [
        ("TRANSPOSE-017", {"transpose": True, "slice_sum": "gather"}),
        ("SWITCH-014", {"slice_sum": "exchange"}),
        ("COLL-002", {"cluster_sum": "scatter"}),
    ],
)
def test_what_a_single_result_cannot_do_is_refused_by_its_rule(rule, knobs):
    chosen = candidate(einsum("i,i->", i=256), (AxisPlacement("i", cluster=2, slice=4, packet=32),), ("_", "i"), **knobs)
    with pytest.raises(RuleViolation) as refused:
        lower(chosen)
    assert refused.value.rule == rule


def test_an_epilogue_keeps_summed_axes_in_a_slice():
    workload = einsum("ik,jk->ij", i=16, j=8, k=128, epilogue="relu")
    axes = (AxisPlacement("i", time=16), AxisPlacement("k", cluster=2, time=2, packet=32), AxisPlacement("j", lane=8))
    with pytest.raises(RuleViolation) as refused:
        lower(candidate(workload, axes, ("_",)))
    assert refused.value.rule == "VE-011"

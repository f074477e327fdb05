"""The manual's complete device functions are read, accepted, compute what their chapter says, and are scheduled."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tcptune.exec.compile import compile_checked
from tcptune.exec.running.fill import random
from tcptune.exec.running.interpret import run_kernel
from tcptune.exec.running.oracle import dense, verify
from tcptune.exec.rust import read_rust
from tcptune.exec.rust.check import check_rust
from tcptune.ir.kernels.kernel import Tolerance
from tests.rust import manual
from tests.rust.programs import CLUSTER_HELPERS, COLLECTIVE_HELPERS

pytestmark = pytest.mark.skipif(not manual.available(), reason=f"the manual is not at {manual.MANUAL}")

EXACT = Tolerance(form="exact")
EINSUMS = {
    "elementwise_mul_kernel": ("einsum a,a->a", EXACT),
    "dot_product_kernel": ("einsum a,a->", Tolerance(0.02, 0.5, "max")),
    "gemv_kernel": ("einsum ij,j->i", Tolerance(0.02, 0.5, "max")),
    "gemm_kernel": ("einsum ik,jk->ij", Tolerance(0.05, 1.0, "max")),
    "fetch_commit_simple": ("permute ab -> ba", EXACT),
    "rolled": ("einsum tr,gor->tgo", Tolerance(0.05, 1.0, "max")),
    "software_pipelined": ("einsum tr,gor->tgo", Tolerance(0.05, 1.0, "max")),
    "unrolled": ("einsum tr,gor->tgo", Tolerance(0.05, 1.0, "max")),
}


def _text(name: str, which: int = 0) -> str:
    return manual.device_functions()[name][which]


@pytest.mark.parametrize("name", EINSUMS)
def test_a_template_is_read_accepted_passes_its_oracle_and_is_scheduled(name: str) -> None:
    rust = read_rust(_text(name))
    oracle, tolerance = EINSUMS[name]
    checked = check_rust(replace(rust, kernel=replace(rust.kernel, oracle=oracle, tolerance=tolerance)))
    verify(checked, seeds=(1,), patterns=()).require()
    assert compile_checked(checked).makespan > 0


def test_constant_add_adds_one() -> None:
    checked = check_rust(read_rust(_text("constant_add_kernel")))
    inputs = {i.name: random(i.type, np.random.default_rng(3)) for i in checked.inputs}
    result = run_kernel(checked, inputs)
    (bound,) = checked.outputs
    got = dense(bound.type, result.outputs[bound.name], ("A",))
    want = dense(checked.inputs[0].type, inputs["input"], ("A",)).astype(np.int32) + np.int32(1)
    assert np.array_equal(got, want)


def test_the_double_buffer_kernels_keep_the_published_order() -> None:
    makespans = [compile_checked(check_rust(read_rust(_text(n)))).makespan for n in ("rolled", "software_pipelined", "unrolled")]
    assert makespans[0] > makespans[1] > makespans[2]


COLLECTIVES = ["reduce_scatter", "all_gather", "all_gather_after_reduce_scatter", "all_reduce"]


@pytest.mark.parametrize("level", ["chip", "cluster"])
@pytest.mark.parametrize("name", [*COLLECTIVES, "butterfly_all_reduce"])
def test_a_collective_computes_the_sum_its_chapter_states(level: str, name: str) -> None:
    """The chapter does not print the bodies of two helpers; these tests bring their own."""
    if level == "cluster" and name == "butterfly_all_reduce":
        pytest.skip("the cluster chapter has no butterfly")
    which, helpers = (0, COLLECTIVE_HELPERS) if level == "chip" else (1, CLUSTER_HELPERS)
    checked = check_rust(read_rust(_text(name, which) + helpers, function=name))
    inputs = {i.name: random(i.type, np.random.default_rng(5)) for i in checked.inputs}
    result = run_kernel(checked, inputs)
    (bound,) = checked.outputs
    assert not result.undefined
    source = checked.inputs[0].type
    axes = tuple(dict.fromkeys(axis for _, m in source.levels for axis in m.axes))
    given = dense(source, inputs["hbm"], axes).astype(np.int64).astype(np.int32)
    want = given if name == "all_gather" else given.sum(axis=axes.index("A"), dtype=np.int32)
    stored = result.outputs[bound.name].data
    if name == "reduce_scatter":  # chip or cluster s holds shard s
        assert np.array_equal(stored.reshape(want.shape), want)
    else:  # every chip or cluster holds all of it
        copies = stored.reshape(-1, want.size)
        assert all(np.array_equal(copy, want.reshape(-1)) for copy in copies)
    assert compile_checked(checked).makespan > 0


MOVEMENTS = [
    "transpose_simple",
    "chip_shuffle",
    "hbm_chip_shuffle",
    "cluster_swap",
    "chip_slice",
    "cluster_slice",
    "fused_redistribution",
    "sub_context_chip_slice",
    "sub_context_cluster_slice",
    "scatter_minimal",
    "gather_minimal",
    "gather_unscaled",
    "named_broadcast",
    "store_pass",
]


@pytest.mark.parametrize("name", MOVEMENTS)
def test_an_example_of_data_movement_is_read_and_accepted(name: str) -> None:
    assert check_rust(read_rust(manual.function(name))).steps


@pytest.mark.parametrize("name", ["rolled", "software_pipelined", "unrolled"])
def test_a_whole_page_copied_from_the_book_is_read(name: str) -> None:
    text = manual.page(name)
    assert "async fn main()" in text and "#![feature" in text
    assert check_rust(read_rust(text)).kernel.name == name

"""Searches over one input: element-wise work and row reductions beat the published mappings, pass their oracles, and are proven."""

import numpy as np
import pytest

from tcptune.errors import InputError, RuleViolation, WorkError
from tcptune.exec.compile import compile_kernel
from tcptune.exec.lowering.float_products import lower_float
from tcptune.exec.lowering.vector import lower_vector
from tcptune.exec.program.check import check_kernel
from tcptune.exec.running.fill import drawn_inputs
from tcptune.exec.running.oracle import reference, verify
from tcptune.ir.workload import einsum
from tcptune.search.entry import tune, tuner_for
from tcptune.search.tuner import Tuner
from tcptune.search.vector_search import VectorTuner
from tcptune.search.vector_space import candidates_of, default_candidate, lower_bound

PUBLISHED_ADD, PUBLISHED_REDUCE_SUM, PUBLISHED_ROW_SUMS = 12_602, 5_398, 97_673


def test_the_entry_picks_the_search_by_the_number_of_inputs():
    assert isinstance(tuner_for(einsum("i,i->i", i=64)), Tuner)
    assert isinstance(tuner_for(einsum("i->", i=64)), VectorTuner)


def test_a_constant_add_takes_less_than_half_of_the_published_vector_add():
    result = tune(einsum("i->i", i=2048, dtype="i32", epilogue="add 1"))
    assert result.proven
    assert result.makespan == result.lower_bound < PUBLISHED_ADD // 2
    assert result.oracle.passed
    assert result.default.makespan == pytest.approx(PUBLISHED_ADD, rel=0.1)


def test_a_full_sum_beats_the_published_one_and_its_mapping_is_priced_close_to_it():
    result = tune(einsum("i->", i=8192))
    assert result.makespan < PUBLISHED_REDUCE_SUM
    assert result.default.makespan == pytest.approx(PUBLISHED_REDUCE_SUM, rel=0.1)


def test_row_sums_stored_one_by_one_cost_what_was_published_and_the_search_avoids_that():
    result = tune(einsum("ij->i", i=256, j=1000), trials=12)
    assert result.default.makespan == pytest.approx(PUBLISHED_ROW_SUMS, rel=0.05)
    assert result.makespan < PUBLISHED_ROW_SUMS // 10
    assert result.stopped == "trials"
    assert result.lower_bound <= result.makespan


@pytest.mark.parametrize(
    ("text", "options"),
    [
        ("i->i", {"i": 300, "epilogue": "silu"}),
        ("ij->ij", {"i": 12, "j": 32, "epilogue": "bias:b(j), gelu, residual:x(ij)"}),
        ("ij->ij", {"i": 12, "j": 32, "epilogue": "mul 0.5, bias:b(i), relu", "fuse": False}),
        ("ij->ji", {"i": 16, "j": 32, "epilogue": "mul 2"}),
        ("i->i", {"i": 256, "dtype": "i8", "out_dtype": "i32", "epilogue": "mul 3, add 7"}),
        ("ij->i", {"i": 20, "j": 44}),
        ("ij->i", {"i": 20, "j": 44, "reduce": "max", "epilogue": "bias:b(i), relu"}),
        ("ij->i", {"i": 16, "j": 32, "epilogue": "silu"}),
        ("ij->j", {"i": 16, "j": 32, "epilogue": "mul 2, relu"}),
        ("ij->j", {"i": 16, "j": 32, "reduce": "max"}),
        ("ij->i", {"i": 16, "j": 32, "dtype": "i8"}),
        ("ij->i", {"i": 16, "j": 32, "dtype": "i32", "reduce": "max"}),
    ],
)
def test_every_candidate_of_a_space_that_compiles_passes_its_oracle(text, options):
    verdicts = []
    for candidate in candidates_of(einsum(text, **options)):
        try:
            verdicts.append(verify(check_kernel(lower_vector(candidate)), seeds=(42,), patterns=("alternating",)).passed)
        except RuleViolation:
            continue
    assert verdicts
    assert all(verdicts)


@pytest.mark.parametrize(
    ("text", "options"),
    [
        ("ij->i", {"i": 64, "j": 128}),  # words of 8 bytes leave two positions of j in a slice
        ("ij->j", {"i": 512, "j": 8}),  # more positions than slices
        ("ij->j", {"i": 12, "j": 8}),  # no power of two: padding would need a fold
    ],
)
def test_sums_of_i32_inside_a_slice_are_refused_by_the_rule(text, options):
    with pytest.raises(WorkError, match="no legal plan") as caught:
        tune(einsum(text, **options, dtype="i32"), trials=200)
    assert "ISR-003" in caught.value.hint


def test_sums_of_i32_over_slices_wrap():
    workload = einsum("ij->j", i=256, j=4, dtype="i32")
    result = tune(workload)
    assert result.oracle.passed
    inputs = drawn_inputs(result.kernel, "wide", 1)
    rows = inputs["a"].data.reshape(256, 4).astype(np.int64)
    assert (abs(rows.sum(axis=0)) > 2**31).any()
    assert (reference(result.kernel, inputs).values == rows.astype(np.int32).sum(axis=0, dtype=np.int32)).all()


@pytest.mark.parametrize(
    ("text", "options"),
    [
        ("ij->", {"i": 4, "j": 64}),
        ("ijk->i", {"i": 4, "j": 8, "k": 32}),
        ("ijk->j", {"i": 6, "j": 8, "k": 40}),
        ("ijk->k", {"i": 6, "j": 4, "k": 40, "reduce": "max"}),
        ("ijk->ki", {"i": 4, "j": 5, "k": 8, "epilogue": "bias:b(i), relu"}),
        ("ijk->i", {"i": 4, "j": 8, "k": 32, "dtype": "i8", "epilogue": "relu"}),
        ("ijk->k", {"i": 4, "j": 16, "k": 8, "dtype": "i32"}),
        ("abcde->ab", {"a": 2, "b": 2, "c": 2, "d": 2, "e": 2}),
        ("ijkl->ik", {"i": 2, "j": 3, "k": 4, "l": 16}),
    ],
)
def test_several_axes_are_folded_in_a_pass_each_and_every_plan_is_right(text, options):
    workload = einsum(text, **options)
    verdicts = []
    for candidate in candidates_of(workload):
        try:
            kernel = lower_vector(candidate)
            verdicts.append(verify(check_kernel(kernel), seeds=(7,), patterns=()).passed)
        except RuleViolation:
            continue
    assert verdicts
    assert all(verdicts)


@pytest.mark.parametrize(
    ("text", "options"),
    [
        ("i,i->", {"i": 100}),
        ("ik,kj->ij", {"i": 4, "j": 16, "k": 6}),
        ("ijk,jk->i", {"i": 4, "j": 3, "k": 16}),
        ("i,j->ij", {"i": 3, "j": 16}),
        ("i,j->ij", {"i": 1, "j": 1}),
        ("ij,i->ij", {"i": 8, "j": 12}),
        ("ij,j->i", {"i": 4, "j": 8, "epilogue": "bias:b(i), relu"}),
        ("i,i->i", {"i": 64, "epilogue": "bias:x(i), silu"}),
    ],
)
def test_products_of_f32_are_right_in_every_plan(text, options):
    workload = einsum(text, **options, dtype="f32")
    verdicts = []
    for candidate in candidates_of(workload):
        try:
            kernel = lower_float(candidate)
            verdicts.append(verify(check_kernel(kernel), seeds=(7,), patterns=("wide",)).passed)
        except RuleViolation:
            continue
    assert verdicts
    assert all(verdicts)


def test_an_operand_that_is_fetched_across_its_rows_is_refused_by_the_rule():
    with pytest.raises(WorkError, match="no legal plan") as caught:
        tune(einsum("ij,ji->ij", i=8, j=16, dtype="f32"))
    assert caught.value.hint.startswith("refused by: VRF-007")


def test_candidates_cover_the_axes_and_waste_little():
    workload = einsum("ij->i", i=100, j=96)
    for candidate in candidates_of(workload):
        for axis in candidate.placement.axes:
            assert workload.size(axis.axis) <= axis.padded <= max(1.5 * workload.size(axis.axis), axis.in_slice)
    assert default_candidate(workload).placement.of("i").slice == 128


def test_likely_placements_are_those_of_the_profile():
    workload = einsum("ij->i", i=100, j=200)
    vendor, manual = (candidates_of(workload, profile=profile) for profile in ("vendor", "manual"))
    assert sorted(map(str, vendor)) == sorted(map(str, manual))
    assert vendor != manual


@pytest.mark.parametrize("profile", ["vendor", "manual"])
@pytest.mark.parametrize(
    ("text", "options"),
    [
        ("i->i", {"i": 4096, "epilogue": "relu"}),
        ("ij->i", {"i": 64, "j": 256}),
        ("ij->j", {"i": 32, "j": 64, "reduce": "max"}),
        ("ik,jk->ij", {"i": 4, "j": 8, "k": 16, "dtype": "f32"}),
    ],
)
def test_no_plan_of_the_space_is_below_its_lower_bound(text, options, profile):
    workload = einsum(text, **options)
    lowering = lower_vector if len(workload.inputs) == 1 else lower_float
    makespans = []
    for candidate in candidates_of(workload):
        try:
            makespans.append(compile_kernel(lowering(candidate), profile).makespan)
        except RuleViolation:
            continue
    assert 0.3 * min(makespans) < lower_bound(workload, profile) <= min(makespans)


def test_what_the_budget_leaves_is_not_counted_as_pruned():
    result = tune(einsum("ij->i", i=64, j=256), trials=4)
    assert result.stopped == "trials"
    assert (result.fates.pruned, result.fates.enumerated) == (0, 1 + 4)  # the template is measured beside the budget


def test_an_unknown_option_is_named():
    with pytest.raises(InputError, match="no search option"):
        tune(einsum("i->", i=64), trails=3)


def test_the_maximum_oracle_is_the_maximum():
    workload = einsum("ij->j", i=5, j=8, reduce="max", epilogue="relu")
    kernel = lower_vector(default_candidate(workload))
    assert kernel.oracle == "maximum ij -> j | relu"

    inputs = drawn_inputs(kernel, "random", 3)
    rows = inputs["a"].data.reshape(5, 8).astype(np.float64)
    assert (reference(kernel, inputs).values == np.maximum(rows.max(axis=0), 0)).all()


@pytest.mark.slow
def test_a_fused_epilogue_saves_at_least_three_hundredths_of_the_makespan():
    """GEMM 512 x 512 x 64 with bias and ReLU: the acceptance figure of the fused epilogue."""
    makespans = {}
    for fuse in (True, False):
        workload = einsum("ik,jk->ij", i=512, j=512, k=64, dtype="bf16", epilogue="bias:b(j), relu", fuse=fuse)
        result = tune(workload, trials=25)
        assert result.oracle.passed
        makespans[fuse] = result.makespan
    assert makespans[True] <= 0.97 * makespans[False]

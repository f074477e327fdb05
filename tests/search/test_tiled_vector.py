"""The search in tiles of workloads of the Vector Engine: what one pass does not hold has plans, right ones, above a bound that holds."""

import json
import math

import pytest

from tcptune.errors import RuleViolation, WorkError
from tcptune.exec.compile import compile_kernel
from tcptune.exec.lowering.candidates import lower_candidate
from tcptune.ir.workload import einsum
from tcptune.search.deadline import Deadline
from tcptune.search.entry import tune, tuner_for
from tcptune.search.tiled.vector import TiledVectorSpace, TiledVectorTuner, fits_one_pass, lower_bound
from tcptune.search.vector_search import VectorTuner
from tcptune.search.vector_space import candidates_of

# data memory: 512 slices of 512 KiB, 256 MiB in all
LARGE = {
    "element-wise": einsum("i->i", i=1 << 27, epilogue="relu"),  # 512 MiB in and out
    "reduction": einsum("ij->i", i=1 << 15, j=1 << 13),  # 512 MiB in
    "f32": einsum("ij,ij->ij", i=1 << 13, j=1 << 12, dtype="f32"),  # 384 MiB, and 8 KiB of register file a slice
}


@pytest.mark.parametrize("workload", LARGE.values(), ids=LARGE)
def test_what_one_pass_does_not_hold_is_searched_in_tiles(workload):
    result = tune(workload, trials=3)
    assert result.oracle.passed
    assert result.lower_bound <= result.makespan < 1.25 * result.lower_bound, "little more than its transfers"
    assert result.best.knobs["tiles"] != "none"
    assert "fewer and shorter tiles" in result.oracle.what


@pytest.mark.parametrize(
    "workload",
    [
        einsum("ij->ij", i=64, j=64, epilogue="relu"),
        einsum("ij->j", i=16, j=512),
        einsum("ik,jk->ij", i=32, j=32, k=64, dtype="f32"),
    ],
    ids=["element-wise", "reduction", "f32"],
)
def test_no_plan_is_below_the_bound(workload):
    bound, seen = lower_bound(workload, "vendor"), 0
    for candidate in TiledVectorSpace(workload).candidates[::7]:
        makespan = evaluate_or_none(candidate)
        if makespan is not None:
            assert bound <= makespan
            seen += 1
    assert seen > 2


def evaluate_or_none(candidate):
    try:
        return compile_kernel(lower_candidate(candidate)).makespan
    except RuleViolation:
        return None


def test_products_of_f32_are_bounded_by_four_multipliers_a_slice():
    workload = einsum("ik,jk->ij", i=2048, j=2048, k=2048, dtype="f32")
    assert lower_bound(workload, "vendor") > 2048**3 / (512 * 4)


def test_a_workload_that_fits_one_pass_is_not_cut():
    for workload in (
        einsum("i->i", i=4096, epilogue="relu"),
        einsum("ij->i", i=24, j=64),
        einsum("ik,jk->ij", i=8, j=16, k=32, dtype="f32"),
    ):
        assert fits_one_pass(candidates_of(workload), Deadline())
        assert "tiles" not in tune(workload, trials=2).best.knobs


def test_a_workload_that_no_layout_can_lower_is_not_handed_on_to_tiles():
    # both inputs have an output axis innermost: VRF-007 whatever the size
    workload = einsum("ki,kj->ij", i=64, j=64, k=64, dtype="f32")
    assert fits_one_pass([c for c in candidates_of(workload) if c.placement.of("k").slice == 1], Deadline())


def test_what_no_tile_holds_is_refused():
    with pytest.raises(WorkError, match="too large"):
        tune(einsum("ij->i", i=4, j=1 << 31), trials=1)  # 16 GiB in four rows, which are not cut
    with pytest.raises(WorkError, match="too large") as refused:
        tune(einsum("i->i", i=1 << 35, epilogue="relu"), trials=1)
    assert "HBM-002" in refused.value.hint


def test_any_number_of_jobs_and_a_resumed_study_give_the_same_document(tmp_path):
    workload = einsum("ij->ij", i=64, j=64, epilogue="relu")
    documents = []
    for options in ({"jobs": 1}, {"jobs": 2}, {"study": tmp_path / "s"}):
        for trials in (3, 11) if "study" in options else (11,):
            result = TiledVectorTuner(workload, tuner_for(workload, trials=trials, **options).options).run()
        documents.append(json.dumps({**result.to_json(), "wall_time_s": 0}, sort_keys=True))
    assert len(set(documents)) == 1


def test_the_time_of_looking_for_one_pass_counts(monkeypatch):
    limits = []
    monkeypatch.setattr(TiledVectorTuner, "_searched", lambda self: limits.append((self.deadline, self.space.deadline)))
    tuner = tuner_for(LARGE["reduction"], time_limit=3600)
    assert isinstance(tuner, VectorTuner)
    tuner.run()
    assert limits == [(tuner.deadline, tuner.deadline)]


def test_tiles_cover_their_axes():
    workload = einsum("ij->ij", i=1000, j=96, epilogue="relu")
    for candidate in TiledVectorSpace(workload).candidates:
        counts = [loop.count for loop in candidate.tiles.loops]
        assert candidate.tiles.tiles == math.prod(counts) > 1
        for axis, length in candidate.tiles.lengths:
            pitch = candidate.tiles.pitch(axis, workload.size(axis))
            assert pitch * (candidate.tiles.count(axis) - 1) + length == workload.size(axis)
            assert candidate.placement.of(axis).padded >= length

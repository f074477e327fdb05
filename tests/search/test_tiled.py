"""The search over tilings: they cover their axes, bounds hold, results are checked, and what no tile holds is refused."""

import itertools
import math

import pytest

from tcptune.errors import WorkError
from tcptune.exec.compile import compile_kernel
from tcptune.exec.lowering.candidates import lower_candidate
from tcptune.ir.candidate import Candidate, TileLoop, Tiles
from tcptune.ir.workload import einsum
from tcptune.search.entry import tuner_for
from tcptune.search.options import Options
from tcptune.search.tiled.checking import affordable, fits, what_ran
from tcptune.search.tiled.space import TiledSpace
from tcptune.search.tiled.tilings import KEPT_UNIT, MOST_TILES, UNROLLED_TILES, axis_tiles, tilings
from tcptune.search.tiled.tuner import TiledTuner
from tcptune.search.tuner import Tuner
from tcptune.solver.pricing import FixedCosts
from tcptune.solver.tiled_bounds import products_floor, tiles_bound

LARGE = einsum("ik,jk->ij", i=2048, j=2048, k=8192)


@pytest.mark.parametrize("sizes", [(4096, 1000, 64), (1000, 999, 30), (7, 4096, 8), (60_000, 60_000, 64)])
def test_tiles_of_every_tiling_cover_their_axes(sizes):
    workload = einsum("ik,jk->ij", sizes=dict(zip("ijk", sizes, strict=True)))
    for tiles in tilings(workload):
        assert tiles.tiles <= MOST_TILES
        for axis, length in tiles.lengths:
            last = tiles.pitch(axis, workload.size(axis)) * (tiles.count(axis) - 1)
            assert last + length == workload.size(axis)


def test_every_order_of_the_loops_is_listed():
    orders = {tuple(loop.axis for loop in t.loops) for t in tilings(einsum("ik,jk->ij", i=8, j=8, k=8))}
    assert orders == {(), *itertools.permutations("i"), *itertools.permutations("j"), *itertools.permutations("ij")}


def test_many_tiles_are_kept_in_loops_around_a_unit_that_the_scheduler_sees():
    for tiles in tilings(einsum("ik,jk->ij", i=4096, j=4096, k=64)):
        written_out = math.prod(loop.count for loop in tiles.loops if loop.unroll)
        kept = [loop.unroll for loop in tiles.loops]
        assert kept == sorted(kept), "kept loops are the outer ones"
        assert written_out <= (UNROLLED_TILES if all(kept) else KEPT_UNIT)


def test_lengths_are_whole_words_where_rows_are_cut():
    assert all(length % 4 == 0 for _, length in axis_tiles(einsum("ki,kj->ij", i=200, j=200, k=8), "i"))


def test_products_take_a_packet_a_cycle_in_every_lane():
    # 512 slices of 8 lanes with 32 bf16 (64 i8) multipliers
    assert products_floor(einsum("ik,jk->ij", i=512, j=256, k=64)) == 512 * 256 * 64 // (512 * 8 * 32)
    assert products_floor(einsum("ik,jk->ij", i=512, j=256, k=64, dtype="i8")) == 512 * 256 * 64 // (512 * 8 * 64)


def test_no_plan_of_a_tiling_is_below_its_bound_nor_below_that_of_the_space():
    space = TiledSpace(einsum("ik,jk->ij", i=64, j=64, k=64))
    tried = 0
    for entry in range(0, space.entries, 12):
        for body in space.bodies(entry, 1 << 40):
            makespan = compile_kernel(lower_candidate(body.candidate)).makespan
            assert space.lower_bound <= space.bound(entry) <= makespan
            tried += 1
    assert tried > 2


def test_a_second_load_of_an_operand_raises_the_bound():
    workload, fixed = einsum("ik,jk->ij", i=4096, j=4096, k=64), FixedCosts.of("vendor")

    def bound(first: str, second: str) -> int:
        tiles = Tiles((TileLoop(first, 8), TileLoop(second, 16)), ((first, 512), (second, 256)))
        return tiles_bound(workload, tiles, fixed, "vendor")

    assert bound("i", "j") > tiles_bound(workload, Tiles(), fixed, "vendor")


def test_what_does_not_fit_one_pass_is_searched_in_tiles():
    result = TiledTuner(LARGE, Options(trials=1)).run()
    assert result.oracle.passed
    assert result.lower_bound <= result.makespan
    assert "fewer and shorter tiles" in result.to_json()["oracle"]["what"]
    tiles = Tiles.from_json(result.best.knobs["tiles"])
    assert tiles.tiles > 1
    assert {axis: levels["Tile"] for axis, levels in result.best.placement.items() if "Tile" in levels} == {
        axis: tiles.count(axis) for axis in tiles.axes
    }


def test_the_plan_that_the_oracle_runs_has_the_same_structure():
    space = TiledSpace(einsum("ik,jk->ij", i=2048, j=2048, k=64))
    tiles = Tiles((TileLoop("i", 4), TileLoop("j", 4)), (("i", 512), ("j", 512)))
    entry = next(e for e in range(space.entries) if space.tiles(e) == tiles)
    candidate = space.bodies(entry, 1 << 40)[0].candidate
    small = affordable(candidate)
    assert not fits(candidate)
    assert math.prod(size for _, size in small.workload.sizes) <= math.prod(size for _, size in candidate.workload.sizes) / 8
    assert small.knobs == candidate.knobs
    assert [loop.axis for loop in small.tiles.loops] == ["i", "j"]
    for before, after in zip(candidate.placement.axes, small.placement.axes, strict=True):
        assert (before.cluster, before.slice, before.lane, before.packet) == (after.cluster, after.slice, after.lane, after.packet)
    assert affordable(small) == small
    assert what_ran(small, small) == "the kernel"


def test_a_study_in_tiles_goes_on_where_it_was(tmp_path):
    workload = einsum("ik,jk->ij", i=64, j=64, k=64)
    whole, first = (TiledTuner(workload, Options(trials=n, study=tmp_path / f"{n}")).run() for n in (3, 1))
    again = TiledTuner(workload, Options(trials=3, study=tmp_path / "1")).run()
    assert (again.makespan, again.fates) == (whole.makespan, whole.fates)
    assert again.makespan <= first.makespan


def test_small_workloads_are_searched_in_one_pass_and_large_ones_in_tiles():
    assert isinstance(tuner_for(einsum("ik,jk->ij", i=256, j=256, k=64)), Tuner)
    assert isinstance(tuner_for(einsum("ik,jk->ij", i=4096, j=4096, k=4096)), TiledTuner)


@pytest.mark.parametrize(
    "workload",
    [einsum("ik,jk->ij", i=8, j=8, k=10**12), einsum("i,i->", i=10**10), einsum("ik,jk->ij", i=10**12, j=8, k=8)],
    ids=["HBM", "a sum", "rows"],
)
def test_what_no_tile_holds_is_refused(workload):
    with pytest.raises(WorkError, match="too large for one pass"):
        tuner_for(workload, trials=1).run()


def test_a_candidate_without_tiles_is_one_pass():
    space = TiledSpace(einsum("ik,jk->ij", i=128, j=128, k=64))
    (body,) = space.bodies(next(e for e in range(space.entries) if not space.tiles(e).loops), 1 << 40)
    one_pass = Candidate(space.workload, body.candidate.placement, body.candidate.knobs)
    assert body.candidate == one_pass

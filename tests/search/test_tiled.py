"""The search over tilings: they cover their axes, bounds hold, results are checked, and what no tile holds is refused."""

import itertools
import math

import pytest

from tcptune.errors import WorkError
from tcptune.exec.compile import compile_kernel
from tcptune.exec.lowering.candidates import lower_candidate
from tcptune.ir.candidate import Candidate, TileLoop, Tiles
from tcptune.ir.workload import einsum
from tcptune.search.entry import is_large, tuner_for
from tcptune.search.frame import NO_LIMIT
from tcptune.search.options import Options
from tcptune.search.parallel import RETRIES, Outcome, Workers
from tcptune.search.space import Space
from tcptune.search.store import REJECTED, SCHEDULED
from tcptune.search.tiled.space import Body, TiledSpace, _placements
from tcptune.search.tiled.stand_in import affordable, fits, what_ran
from tcptune.search.tiled.tilings import KEPT_UNIT, MOST_TILES, UNROLLED_TILES, axis_tiles, require_room, tilings
from tcptune.search.tiled.tuner import TiledTuner
from tcptune.search.tuner import Tuner
from tcptune.solver.pricing import FixedCosts
from tcptune.solver.tiled_bounds import products_floor, tiles_bound

LARGE = einsum("ik,jk->ij", i=4096, j=4096, k=8192)


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


def test_loops_over_summed_axes_are_the_innermost_ones():
    orders = {tuple(loop.axis for loop in t.loops) for t in tilings(einsum("ik,jk->ij", i=8, j=8, k=64))}
    assert {order for order in orders if "k" in order} == {("k",), ("i", "k"), ("j", "k"), ("i", "j", "k"), ("j", "i", "k")}


@pytest.mark.parametrize(("size", "counts"), [(4096, [2, 4, 8, 16, 32, 64, 128]), (10_000_000, [2, 5, 25, 125, 625]), (97 * 32, [97])])
def test_tiles_of_summed_axes_are_equal_whole_packets_that_divide_over_slices(size, counts):
    found = dict(axis_tiles(einsum("k,k->", k=size), "k"))
    assert found.pop(1) == size
    assert all(count * length == size and length % 32 == 0 for count, length in found.items())
    assert set(counts) <= set(found)


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
    counts = {axis: levels["Tile"] for axis, levels in result.best.placement.items() if "Tile" in levels}
    assert math.prod(counts.values()) > 1
    assert {text.split(" of ")[0] for text in result.best.knobs["tiles"]} == {f"{axis}: {count}" for axis, count in counts.items()}
    assert result.best.knobs["unroll"] in ("all", "none") or set(result.best.knobs["unroll"]) < set(result.best.knobs["loops"])


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


def test_a_long_sum_is_searched_in_tiles_of_the_summed_axis_and_its_oracle_adds_more_than_two():
    tuner = TiledTuner(einsum("i,i->", i=1 << 27), Options(trials=1))
    result = tuner.run()
    assert result.oracle.passed
    assert result.lower_bound <= result.makespan
    best = tuner.state.scheduled[tuner.state.best][2]
    assert best.tiles.parts(()) > 4
    assert affordable(best).tiles.parts(()) == 4


def test_no_plan_with_tiles_of_summed_axes_is_below_its_bound():
    workload = einsum("ij,j->i", i=64, j=8192)
    space = TiledSpace(workload)
    tried = 0
    for entry in range(space.entries):
        tiles = space.tiles(entry)
        if tiles.parts("i") in (2, 8) and tiles.tiles <= 16 and not entry % 3:
            for body in space.bodies(entry, 1 << 40):
                makespan = compile_kernel(lower_candidate(body.candidate)).makespan
                assert space.lower_bound <= space.bound(entry) <= makespan
                tried += 1
    assert tried > 1


def test_a_study_in_tiles_goes_on_where_it_was(tmp_path):
    workload = einsum("ik,jk->ij", i=64, j=64, k=64)
    whole, first = (TiledTuner(workload, Options(trials=n, study=tmp_path / f"{n}")).run() for n in (3, 1))
    again = TiledTuner(workload, Options(trials=3, study=tmp_path / "1")).run()
    assert (again.makespan, again.fates) == (whole.makespan, whole.fates)
    assert again.makespan <= first.makespan


def test_any_number_of_jobs_gives_the_same_document_in_tiles():
    workload = einsum("ik,jk->ij", i=32, j=32, k=64)
    one, two = ({**TiledTuner(workload, Options(trials=4, jobs=jobs)).run().to_json(), "wall_time_s": 0} for jobs in (1, 2))
    assert one == two


def test_a_study_that_ends_within_a_chunk_of_tilings_goes_on_as_if_it_had_not(tmp_path):
    workload = einsum("ik,jk->ij", i=32, j=32, k=64)
    documents = []
    for ends in ((6,), (1, 2, 3, 4, 5, 6)):
        for trials in ends:
            result = TiledTuner(workload, Options(trials=trials, study=tmp_path / f"{len(ends)}")).run()
        documents.append({**result.to_json(), "wall_time_s": 0})
    assert documents[0] == documents[1]


def test_the_cheapest_tiling_of_a_chunk_is_compiled_first_and_what_costs_more_than_it_takes_not_at_all(monkeypatch):
    tuner = TiledTuner(einsum("ik,jk->ij", i=64, j=64, k=64))
    candidates = [tuner.space.bodies(entry, NO_LIMIT)[0].candidate for entry in (0, 1)]
    prices = {0: 30, 1: 20}
    monkeypatch.setattr(TiledSpace, "bodies", lambda self, entry, below, keep=1: [Body(prices[entry], candidates[entry])])
    monkeypatch.setattr(TiledTuner, "_passes", lambda self, candidate, digest: True)
    tried = refusing(monkeypatch)
    with Workers(tuner.space, 1) as workers:
        for number in (1, 2):
            tuner._account(tuner._step(number, workers))
    assert tried == [candidates[1]]
    assert tuner.state.makespan == 20


def test_small_workloads_are_searched_in_one_pass_and_large_ones_in_tiles():
    assert isinstance(tuner_for(einsum("ik,jk->ij", i=256, j=256, k=64)), Tuner)
    assert isinstance(tuner_for(einsum("ik,jk->ij", i=4096, j=4096, k=4096)), TiledTuner)


@pytest.mark.parametrize(
    "workload",
    [
        einsum("ik,jk->ij", i=8, j=8, k=10**12),
        einsum("i,i->", i=10**9 + 7),  # a prime number
        einsum("ik,jk->ij", i=10**12, j=8, k=8),
    ],
    ids=["HBM", "a sum without equal parts", "rows"],
)
def test_what_no_tile_holds_is_refused(workload):
    with pytest.raises(WorkError, match="too large for one pass"):
        tuner_for(workload, trials=1).run()


def test_all_tensors_together_must_fit_the_memory_of_the_chip():
    # 2^17 x 2^17 bf16: 32 GiB of result, 8 GiB each of both inputs (k = 2^15): 48 GiB, just all of it
    whole = {"i": 1 << 17, "j": 1 << 17, "k": 1 << 15}
    require_room(einsum("ik,jk->ij", sizes=whole))
    with pytest.raises(WorkError) as refused:
        require_room(einsum("ik,jk->ij", sizes=whole, epilogue="bias:c(j)"))
    assert f"{48 * 2**30 + 2 * (1 << 17):,} B" in refused.value.hint
    assert "HBM-002" in refused.value.hint


def test_a_candidate_without_tiles_is_one_pass():
    space = TiledSpace(einsum("ik,jk->ij", i=128, j=128, k=64))
    (body,) = space.bodies(next(e for e in range(space.entries) if not space.tiles(e).loops), 1 << 40)
    one_pass = Candidate(space.workload, body.candidate.placement, body.candidate.knobs)
    assert body.candidate == one_pass


def refusing(monkeypatch, *refused):
    """Lets the compiler refuse these candidates by a rule; returns those that were tried."""
    tried = []

    def evaluate(candidate, profile, price=0, seen=None):
        tried.append(candidate)
        if candidate in refused:
            return Outcome(candidate.to_json(), REJECTED, price=price, rule="SEQ-017")
        return Outcome(candidate.to_json(), SCHEDULED, f"kernel {len(tried)}", price, price)

    monkeypatch.setattr("tcptune.search.tiled.tuner.evaluate", evaluate)
    return tried


def test_a_better_body_that_only_the_longer_ranking_finds_is_tried(monkeypatch):
    tuner = TiledTuner(einsum("ik,jk->ij", i=64, j=64, k=64))
    space = tuner.space
    better, first, last = (Body(cycles, space.bodies(entry, NO_LIMIT)[0].candidate) for cycles, entry in ((10, 0), (20, 1), (30, 2)))
    rankings = {1: [first], RETRIES: [better, first, last]}
    monkeypatch.setattr(TiledSpace, "bodies", lambda self, entry, below, keep=1: rankings[keep] if entry == 0 else [])
    tried = refusing(monkeypatch, first.candidate, better.candidate)
    with Workers(space, 1) as workers:
        tuner._step(1, workers)
    assert tried == [first.candidate, better.candidate, last.candidate]


@pytest.mark.parametrize(("dtype", "packet"), [("bf16", 32), ("i8", 64), ("f8e4m3", 64)])
def test_tiles_are_whole_packets_where_they_may_overlap(dtype, packet):
    # 1000 in two tiles: 500 each at least, up to 15 % more
    lengths = dict(axis_tiles(einsum("ik,jk->ij", i=1000, j=8, k=64, dtype=dtype), "i"))
    assert 500 <= lengths[2] <= 575
    assert lengths[2] % packet == 0


@pytest.mark.parametrize("sizes", [(64, 4096, 8192), (64, 512, 4096)])  # two tiles do not fit the memories; they do
def test_no_placement_in_kept_loops_is_below_the_bound_that_prunes_it(sizes):
    workload = einsum("ik,jk->ij", sizes=dict(zip("ijk", sizes, strict=True)))
    tiles = Tiles((TileLoop("i", 2, unroll=False), TileLoop("j", 8)), (("i", 32), ("j", sizes[1] // 8)))
    tiled, space = TiledSpace(workload), Space(tiles.body_workload(workload))
    checked = 0
    for placed in itertools.islice(_placements(space, tiles, tiled.fixed, NO_LIMIT, 1000), 0, 1000, 120):
        body = tiled._best_body(tiles, placed, NO_LIMIT)
        if body is not None:
            assert placed.bound <= placed.estimate
            assert placed.bound <= compile_kernel(lower_candidate(body.candidate)).makespan
            checked += 1
    assert checked > 2


def test_the_size_of_a_workload_counts_its_result_in_its_own_type():
    # 64 x 262,144 results: 16 MiB in i8, 64 MiB in i32
    sizes = {"i": 64, "j": 1 << 18, "k": 4}
    assert not is_large(einsum("ik,jk->ij", sizes=sizes, dtype="i8", out_dtype="i8"))
    assert is_large(einsum("ik,jk->ij", sizes=sizes, dtype="i8", out_dtype="i32"))


def test_no_table_is_built_before_the_search_runs(monkeypatch):
    monkeypatch.setattr("tcptune.search.space.placement_table", lambda family: pytest.fail("a table is built"))
    tuner_for(einsum("ik,jk->ij", i=256, j=256, k=64))


def test_what_no_pass_holds_is_handed_on_to_tiles_within_the_same_time():
    seen = []
    tuner = Tuner(LARGE, Options(trials=1, time_limit=3600, progress=seen.append))
    result = tuner.run()
    assert result.best.knobs["loops"]
    assert result.oracle.passed
    assert seen


def test_the_time_of_building_tables_counts_where_no_pass_holds_the_workload(monkeypatch):
    limits = []
    monkeypatch.setattr(TiledTuner, "_searched", lambda self: limits.append((self.deadline, self.space.deadline)))
    tuner = Tuner(LARGE, Options(time_limit=3600))
    tuner.run()
    assert limits == [(tuner.deadline, tuner.deadline)]

"""Tiles of candidates: coverage of axes, depth and runs of what is loaded, JSON, smaller siblings."""

import pytest

from tcptune.errors import InputError
from tcptune.ir.candidate import Candidate, Knobs, TileLoop, Tiles
from tcptune.ir.placement import AxisPlacement, Placement
from tcptune.ir.workload import einsum

GEMM = einsum("ik,jk->ij", i=1000, j=512, k=64)
NEST = Tiles((TileLoop("i", 2, unroll=False), TileLoop("j", 4), TileLoop("i", 2)), (("i", 256), ("j", 128)))
PLACEMENT = Placement((AxisPlacement("i", slice=16, time=16), AxisPlacement("k", time=2, packet=32), AxisPlacement("j", lane=8, time=16)))


def test_counts_multiply_over_the_loops_of_an_axis():
    assert (NEST.tiles, NEST.count("i"), NEST.count("j")) == (16, 4, 4)


def test_tiles_cover_an_axis_and_may_overlap():
    pitch = NEST.pitch("i", 1000)
    covered = {p for t in range(4) for p in range(t * pitch, t * pitch + 256)}
    assert covered == set(range(1000))


@pytest.mark.parametrize("size", [1001, 1100, 200])
def test_tiles_that_leave_gaps_or_go_beyond_the_axis_are_refused(size):
    with pytest.raises(InputError, match="do not cover axis i"):
        NEST.pitch("i", size)


def test_an_operand_stays_across_the_loops_inside_of_the_last_that_cuts_it():
    order = Tiles((TileLoop("i", 2), TileLoop("j", 4)), (("i", 500), ("j", 128)))
    assert order.runs(order.depth(("i", "k"))) == 2
    assert order.runs(order.depth(("j", "k"))) == 8
    assert order.runs(order.depth(("k",))) == 1


def test_the_body_does_one_tile_of_the_workload():
    candidate = Candidate(GEMM, PLACEMENT, Knobs(), NEST)
    assert dict(candidate.body.workload.sizes) == {"i": 256, "j": 128, "k": 64}
    assert candidate.body.whole == GEMM


def test_candidates_survive_json():
    for candidate in (Candidate(GEMM, PLACEMENT, Knobs(), NEST), Candidate(GEMM, PLACEMENT, Knobs())):
        assert Candidate.from_json(GEMM, candidate.to_json()) == candidate


def test_fewer_tiles_keep_body_and_order():
    small = Candidate(GEMM, PLACEMENT, Knobs(), NEST).with_fewer_tiles({"i": 2, "j": 2})
    assert [(loop.axis, loop.count) for loop in small.tiles.loops] == [("j", 2), ("i", 2)]
    assert dict(small.workload.sizes) == {"i": 256 + 248, "j": 256, "k": 64}
    assert small.body.workload == Candidate(GEMM, PLACEMENT, Knobs(), NEST).body.workload

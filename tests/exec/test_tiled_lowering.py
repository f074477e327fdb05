"""Tiled candidates as kernels: right by their oracle, loads outside of the loops that do not change them, overlap of loads with passes."""

import pytest

from tcptune.errors import RuleViolation
from tcptune.exec.compile import Compiled, compile_kernel
from tcptune.exec.lowering.candidates import lower_candidate
from tcptune.exec.lowering.tiled import cuttable
from tcptune.exec.program.check import check_kernel
from tcptune.exec.running.oracle import verify
from tcptune.ir.candidate import Candidate, Knobs, TileLoop, Tiles
from tcptune.ir.kernels.kernel import Kernel
from tcptune.ir.placement import AxisPlacement, Placement
from tcptune.ir.workload import Workload, einsum
from tcptune.search.space import Space
from tcptune.search.vector_space import candidates_of


def tiled(workload: Workload, loops: list[tuple[str, int, bool]], **lengths: int) -> Candidate:
    """The workload in tiles, around the first legal body of the one-pass space of a tile."""
    tiles = Tiles(tuple(TileLoop(*loop) for loop in loops), tuple(lengths.items()))
    space = Space(tiles.body_workload(workload))
    for entry in range(space.entries):
        for priced in space.ranked(entry, 1 << 40, 1):
            candidate = Candidate(workload, space.placement(entry), priced.knobs, tiles)
            try:
                check_kernel(lower_candidate(candidate))
            except RuleViolation:
                continue
            return candidate
    raise AssertionError("no body is legal")


def compiled(candidate: Candidate) -> Compiled:
    return compile_kernel(lower_candidate(candidate))


GEMM = einsum("ik,jk->ij", i=256, j=192, k=64)

CASES = {
    "rows and columns": (GEMM, [("i", 2, True), ("j", 3, True)], {"i": 128, "j": 64}),
    "kept loops": (GEMM, [("j", 3, False), ("i", 2, False)], {"i": 128, "j": 64}),
    "an axis in two loops": (GEMM, [("i", 2, False), ("j", 3, True), ("i", 2, True)], {"i": 64, "j": 64}),
    "tiles that overlap": (einsum("ik,jk->ij", i=200, j=64, k=64), [("i", 2, True)], {"i": 128}),
    "one position of a batch": (
        einsum("vik,vkj->vij", v=4, i=32, j=64, k=32, epilogue="bias:b(j), residual:c(vij), relu"),
        [("v", 4, True), ("j", 2, True)],
        {"v": 1, "j": 32},
    ),
    "a result in another order": (einsum("ik,kj->ji", i=64, j=128, k=64, dtype="i8"), [("i", 2, True), ("j", 2, True)], {"i": 32, "j": 64}),
    "two partial sums": (einsum("ik,jk->ij", i=16, j=32, k=256), [("k", 2, True)], {"k": 128}),
    "partial sums of integers": (einsum("ik,kj->ij", i=16, j=32, k=256, dtype="i8"), [("k", 4, True)], {"k": 64}),
    "partial sums in kept loops": (
        einsum("ik,jk->ij", i=32, j=32, k=512),
        [("i", 2, False), ("k", 2, False), ("k", 4, True)],
        {"i": 16, "k": 64},
    ),
    "two summed axes": (einsum("ikl,jkl->ij", i=16, j=16, k=6, l=64), [("k", 3, True), ("l", 2, True)], {"k": 2, "l": 32}),
    "a sum to one number": (einsum("i,i->", i=4096), [("i", 4, True)], {"i": 1024}),
    "sums in a batch": (einsum("vik,vjk->vij", v=2, i=16, j=16, k=256), [("v", 2, True), ("k", 4, True)], {"v": 1, "k": 64}),
    "rows that the host pads": (einsum("ik,jk->ij", i=128, j=64, k=30), [("i", 4, False)], {"i": 32}),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_kernels_in_tiles_compute_the_whole_workload(case):
    workload, loops, lengths = case
    kernel = lower_candidate(tiled(workload, loops, **lengths))
    verify(compile_kernel(kernel).checked, seeds=(0,), patterns=()).require()
    assert Kernel.from_text(kernel.to_text()) == kernel


def test_what_an_inner_loop_does_not_change_is_loaded_and_staged_outside_of_it():
    candidate = tiled(GEMM, [("i", 2, True), ("j", 3, True)], i=128, j=64)
    kinds = [instruction.id.split(".")[0] for instruction in compiled(candidate).instructions]
    assert (kinds.count("a_dm"), kinds.count("b_dm"), kinds.count("r")) == (2, 6, 6)
    assert kinds.count("w") == (2 if candidate.knobs.stationary == 0 else 6)


def test_the_next_tile_is_loaded_while_this_one_is_contracted():
    operations = {o.id: o for o in compiled(tiled(GEMM, [("j", 3, True)], j=64)).schedule.operations}
    assert operations["b_dm.1"].begin < operations["r.0"].end


def test_unrolled_loops_are_faster_than_kept_ones_that_end_with_a_barrier():
    unrolled, kept = (compiled(tiled(GEMM, [("j", 3, unroll)], j=64)).makespan for unroll in (True, False))
    assert unrolled < kept


def test_a_kept_loop_takes_as_many_instructions_for_any_number_of_tiles():
    few, many = (compiled(tiled(einsum("ik,jk->ij", i=n * 64, j=64, k=64), [("i", n, False)], i=64)) for n in (2, 64))
    assert len(few.instructions) == len(many.instructions)
    assert many.makespan > few.makespan


def test_padded_rows_and_axes_of_sums_before_an_epilogue_are_not_cut():
    assert [axis for axis in "ijk" if cuttable(einsum("ik,kj->ij", i=64, j=64, k=64), axis)] == ["i", "j", "k"]
    assert [axis for axis in "ijk" if cuttable(einsum("ik,kj->ij", i=64, j=64, k=64, epilogue="relu"), axis)] == ["i", "j"]
    assert [axis for axis in "ijk" if cuttable(einsum("ik,kj->ij", i=64, j=63, k=63), axis)] == ["i"]


SUMS = ["reducer", "gather", "exchange", "transfer"]


@pytest.mark.parametrize(("slice_sum", "cluster"), [*((way, 1) for way in SUMS), ("transfer", 2), ("gather", 2)])
def test_sums_of_tiles_are_added_over_slices_and_clusters_in_every_way(slice_sum, cluster):
    workload, tiles = einsum("ik,jk->ij", i=16, j=64, k=4096), Tiles((TileLoop("k", 4),), (("k", 1024),))
    placement = Placement(
        (
            AxisPlacement("i", 1, 1, time=16),
            AxisPlacement("k", cluster, 16, time=1024 // (cluster * 16 * 32), packet=32),
            AxisPlacement("j", 1, 8, lane=8),
        )
    )
    knobs = Knobs(slice_order=("_", "j", "k"), slice_sum=slice_sum)
    kernel = lower_candidate(Candidate(workload, placement, knobs, tiles))
    verify(compile_kernel(kernel).checked, seeds=(0,), patterns=()).require()


def test_every_tile_has_one_pass_and_their_sums_one_more_that_rounds_once():
    candidate = tiled(einsum("ik,jk->ij", i=16, j=32, k=256), [("k", 4, True)], k=64)
    instructions = compiled(candidate).instructions
    kernel = lower_candidate(candidate)
    assert sum(1 for i in instructions if i.id.split(".")[0] == "w") == 4
    assert kernel.to_text().count("cast(dtype=bf16") == 1
    assert "parts = new_dm(dtype=f32" in kernel.to_text()


def test_sums_of_integers_that_may_leave_i32_are_refused_unless_two_are_added_as_a_pair():
    # 2^18 products of i8, each up to 2^14: 2^32
    def candidate(count: int) -> Candidate:
        placement = Placement((AxisPlacement("k", 1, 256, time=(1 << 18) // (count * 256 * 64), packet=64),))
        tiles = Tiles((TileLoop("k", count),), (("k", (1 << 18) // count),))
        return Candidate(einsum("k,k->", k=1 << 18, dtype="i8"), placement, Knobs(slice_order=("k",)), tiles)

    with pytest.raises(RuleViolation, match="saturate") as refused:
        lower_candidate(candidate(4))
    assert refused.value.rule == "ISR-003"
    check_kernel(lower_candidate(candidate(2)))


VECTOR_CASES = {
    "element by element": (
        einsum("ij->ij", i=32, j=96, epilogue="gelu, bias:b(j), residual:c(ij)"),
        [("i", 2, False), ("j", 2, True)],
        {"i": 16, "j": 48},
    ),
    "element-wise tiles that overlap": (einsum("i->i", i=1000, epilogue="relu"), [("i", 2, True)], {"i": 512}),
    "a sum of rows": (einsum("ij->i", i=64, j=96), [("i", 4, True)], {"i": 16}),
    "a maximum of columns": (einsum("ij->j", i=24, j=96, reduce="max", epilogue="bias:b(j)"), [("j", 4, False)], {"j": 24}),
    "sums of integers": (einsum("ij->j", i=16, j=64, dtype="i32"), [("j", 2, True)], {"j": 32}),
    "products of f32": (einsum("ik,jk->ij", i=16, j=16, k=32, dtype="f32"), [("i", 2, True), ("j", 2, True)], {"i": 8, "j": 8}),
    "f32 element by element": (einsum("ij,ij->ij", i=16, j=64, dtype="f32", epilogue="relu"), [("i", 4, True)], {"i": 4}),
}


@pytest.mark.parametrize("case", VECTOR_CASES.values(), ids=VECTOR_CASES)
def test_tiles_of_workloads_of_the_vector_engine_compute_the_whole_workload(case):
    workload, loops, lengths = case
    tiles = Tiles(tuple(TileLoop(*loop) for loop in loops), tuple(lengths.items()))
    kernels = []
    for body in candidates_of(tiles.body_workload(workload)):
        try:
            kernels.append(compiled(Candidate(workload, body.placement, body.knobs, tiles)).checked)
        except RuleViolation:
            continue
        if len(kernels) == 2:
            break
    assert kernels
    for checked in kernels:
        verify(checked, seeds=(0,), patterns=()).require()


def test_sums_of_the_vector_engine_are_not_cut():
    assert [axis for axis in "ij" if cuttable(einsum("ij->i", i=64, j=64), axis)] == ["i"]
    assert [axis for axis in "ijk" if cuttable(einsum("ik,jk->ij", i=64, j=64, k=64, dtype="f32"), axis)] == ["i", "j"]

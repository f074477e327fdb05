"""Bounds and prices against compiled kernels: nothing scheduled is below a bound, and a price is the makespan."""

from dataclasses import replace

import numpy as np
import pytest

from tcptune.exec.compile import compile_kernel
from tcptune.exec.lowering.candidates import lower_candidate
from tcptune.exec.lowering.layout import Layout
from tcptune.exec.lowering.routes import piece_bytes
from tcptune.ir.candidate import Candidate, Knobs
from tcptune.ir.placement import AxisPlacement, Placement
from tcptune.ir.workload import einsum
from tcptune.model.hardware import RNGD
from tcptune.model.timing import calibration
from tcptune.search.parallel import Workers
from tcptune.search.space import Space
from tcptune.solver.pricing import FixedCosts, load_cycles, load_floor, price
from tcptune.solver.tables import Family, PlacementTable
from tcptune.solver.transfer_bounds import run_bytes

WORKLOADS = [
    einsum("i,i->", i=256),
    einsum("ij,j->i", i=32, j=64),
    einsum("ik,jk->ij", i=32, j=32, k=64),
    einsum("ik,kj->ij", i=16, j=64, k=32),
    einsum("vmk,kn->vmn", v=4, m=8, k=32, n=8),
    einsum("ik,jk->ij", i=5, j=3, k=7),
    einsum("ik,jk->ij", i=16, j=16, k=64, dtype="i8"),
    einsum("i,i->i", i=512),
    einsum("ik,jk->ij", i=32, j=64, k=32, epilogue="bias:c(j), gelu"),
    einsum("ik,jk->ij", i=32, j=64, k=32, epilogue="residual:c(ij), relu", fuse=False),
    einsum("ki,jk->ij", k=33, i=33, j=48, dtype="f8e4m3"),
    einsum("bik,bkj->bij", b=16, i=1, k=128, j=1, layout="dense"),
]

STORES = [
    # single elements in shared lines, rows of one element, rows that the host pads; few entries of each, since they price slowly
    einsum("ik,jk->ij", i=128, j=1, k=64, layout="dense"),
    einsum("ik,jk->ij", i=128, j=1, k=64),
    einsum("bik,bjk->bij", b=4, i=16, j=1, k=48, dtype="f8e4m3", layout="dense"),
    einsum("ik,jk->ji", i=100, j=32, k=32, layout="dense"),
    einsum("ik,jk->ji", i=3, j=128, k=48, layout="dense"),
    einsum("ki,jk->ij", i=7, j=48, k=256, layout="dense"),
    einsum("ik,jk->ij", i=24, j=20, k=48, layout="aligned"),
]


def named(value):
    return value if isinstance(value, int | str) else f"{value.text} {dict(value.sizes)} {value.dtype} {value.layout} {value.epilogue}"


CASES = [
    *((w, 40, "vendor") for w in WORKLOADS),
    *((w, 30 if w.text == "ki,jk->ij" else 12, "vendor") for w in STORES),
    *((w, 6, "manual") for w in WORKLOADS),
]


@pytest.mark.parametrize(("workload", "samples", "profile"), CASES, ids=named)
def test_every_compiled_plan_costs_its_price_and_no_less_than_its_bound(workload, samples, profile):
    space = Space(workload, profile)
    step = max(1, space.entries // samples)
    compiled = 0
    for entry in range(0, space.entries, step):
        for outcome in Workers(space, 1).explore([entry], 1 << 40, {})[0]:
            if outcome.fate == "scheduled":
                compiled += 1
                candidate = Candidate.from_json(workload, outcome.candidate)
                assert outcome.makespan == outcome.price, candidate
                assert outcome.makespan >= space.bound(entry), candidate
    assert compiled


def placed(levels):
    names = {"Cluster": "cluster", "Slice": "slice", "Lane": "lane", "Time": "time", "Packet": "packet"}
    return Placement(tuple(AxisPlacement(axis, **{names[level]: n for level, n in cut.items()}) for axis, cut in levels.items()))


LINES_COUNTED_IN_PART = [
    (
        einsum("ik,jk->ji", i=3, k=48, j=128, layout="dense"),
        {"i": {"Time": 3}, "k": {"Time": 3, "Packet": 16}, "j": {"Cluster": 2, "Lane": 4, "Time": 16}},
        Knobs(1, slice_order=("_",), rings=(1, 8), spread=("outer", "inner"), cast="commit", staging="main"),
    ),
    (
        einsum("ik,jk->ji", i=100, k=32, j=32, layout="dense"),
        {"i": {"Cluster": 2, "Time": 50}, "k": {"Packet": 32}, "j": {"Slice": 4, "Lane": 8}},
        Knobs(1, slice_order=("j", "_"), rings=(1, 8), spread=("outer", "lane"), lane_mode="Sequential", cast="commit", staging="main"),
    ),
]


@pytest.mark.parametrize(("workload", "placement", "knobs"), LINES_COUNTED_IN_PART, ids=["i=3", "i=100"])
def test_pieces_that_the_price_does_not_count_in_a_line_are_not_in_the_bound(workload, placement, knobs):
    """Rows of 6 and 200 bytes: a line of 256 holds no whole number of them, and the price counts whole groups of pieces."""
    candidate = Candidate(workload, placed(placement), knobs)
    assert compile_kernel(lower_candidate(candidate), "vendor").makespan >= Space(workload).own_bound(candidate)


def test_entries_are_ordered_by_bound_and_the_first_bounds_the_space():
    space = Space(WORKLOADS[2])
    bounds = [space.bound(e) for e in range(space.entries)]
    assert bounds == sorted(bounds)
    assert space.lower_bound == bounds[0]
    assert space.below(bounds[0]) == 0
    assert space.below(bounds[-1] + 1) == space.entries


def test_what_does_not_fit_one_pass_names_the_memory():
    from tcptune.errors import WorkError

    with pytest.raises(WorkError) as caught:
        Space(einsum("ik,jk->ij", i=60_000, j=60_000, k=64)).entries  # noqa: B018
    assert "DM-003" in caught.value.render()
    assert caught.value.exit_status == 1


def test_pieces_that_run_on_over_padding_into_other_rows_are_no_lines_of_their_own():
    """Every fourth row of 8 B lies 32 B apart in HBM, as the rows padded to 32 B in a slice: 25 rows come in one piece."""
    workload = einsum("ij,j->ij", i=200, j=8, dtype="f8e4m3", layout="dense")
    placement = placed({"i": {"Lane": 4, "Time": 50}, "j": {"Packet": 32}})
    layout = Layout(Candidate(workload, placement, Knobs(0, slice_order=("_",), rings=(8, 1), spread=("lane", "outer"), k_inner=False)))
    assert load_floor(layout, 0, "vendor") <= load_cycles(layout, 0, "vendor")
    assert piece_bytes(layout, 0, layout.route(0).spread) >= 24 * 32 + 8  # 24 rows with what lies between them, and the last one


def test_the_floor_of_a_load_counts_rows_that_the_host_pads_for_one_operand_alone():
    """2,048 rows of 24 B, padded to 32 B: 256 lines in all, and no engine of the two clusters brings less than its share of them."""
    workload = einsum("ik,kj->ij", i=2048, k=24, j=8, dtype="f8e4m3", layout="aligned")
    placement = placed({"i": {"Slice": 8, "Time": 256}, "k": {"Time": 24}, "j": {"Packet": 32}})
    layout = Layout(Candidate(workload, placement, Knobs(0, ("i", "_"), k_inner=False)))
    assert layout.is_half_padded(0, "k")
    timing = calibration.profile("vendor").dma
    rate = min(timing.issue_near.value, timing.issue_mid.value, timing.issue_far.value)
    share = 2048 * 24 / RNGD.request_bytes / RNGD.engines_per_cluster
    floor = load_floor(layout, 0, "vendor")
    assert timing.start_load.value + rate * (share - 10) <= floor <= load_cycles(layout, 0, "vendor")


HOLDING = [
    # the copy of 512 x 512 single elements, which lie 128 B or more apart; staging on Main of flits that lie whole rows of banks apart
    (
        einsum("bik,bkj->bij", b=1, i=3, j=512, k=512, dtype="f8e4m3", layout="dense"),
        {"b": {"Time": 1}, "i": {"Time": 3}, "k": {"Time": 8, "Packet": 64}, "j": {"Slice": 2, "Time": 256}},
        Knobs(0, ("j", "_"), (2, 2), ("inner", "inner"), relayout=("", "k"), refetch=True, transpose=True, gather="collect", gather_ring=2),
        None,
    ),
    (
        einsum("bik,bjk->bij", b=64, i=3, j=512, k=3, layout="aligned"),
        {
            "b": {"Slice": 16, "Time": 4},
            "i": {"Slice": 4},
            "k": {"Packet": 16},
            "j": {"Slice": 2, "Lane": 8, "Time": 32},
        },
        Knobs(1, ("b", "i", "j", "_"), k_inner=False, lane_mode="Sequential", staging="main", gather="exchange", gather_ring=2),
        "residual:c(bij)",
    ),
]


@pytest.mark.parametrize("profile", ["vendor", "manual"])
@pytest.mark.parametrize("epilogue", [False, True])
@pytest.mark.parametrize(("workload", "placement", "knobs", "step"), HOLDING, ids=["copy", "staging"])
def test_a_pass_that_holds_the_dma_engine_is_priced_so(workload, placement, knobs, step, epilogue, profile):
    if epilogue:
        sizes, element = dict(workload.sizes), workload.dtype.name
        workload = einsum(workload.text, sizes=sizes, dtype=element, layout=workload.layout, epilogue=step or "relu")
        knobs = replace(knobs, transpose=False, gather="none", gather_ring=1)
    candidate = Candidate(workload, placed(placement), knobs)
    compiled = compile_kernel(lower_candidate(candidate), profile)
    terms = price(Layout(candidate), FixedCosts.of(profile), profile)
    assert any(terms.holds_dma)
    assert terms.makespan == compiled.makespan
    assert terms.makespan > replace(terms, holds_dma=(False,) * 3).makespan


def test_the_bound_of_a_placement_that_pads_whole_slices_is_that_of_its_transfers():
    """6 rows over 2 clusters, 16 slices and packets of 8: one slice of 32 has anything to do, and takes less than two clusters would."""
    workload = einsum("ij,j->i", i=6, j=24)
    placement = placed({"i": {"Cluster": 2, "Slice": 16, "Packet": 8}, "j": {"Time": 3, "Packet": 8}})
    candidate = Candidate(workload, placement, Knobs(0, slice_order=("_", "i"), k_inner=False, lane_mode="Sequential", transpose=True))
    assert compile_kernel(lower_candidate(candidate), "vendor").makespan >= Space(workload).own_bound(candidate) > 2000


@pytest.mark.parametrize(("slices", "time", "piece"), [(8, 16, 192), (8, 12, 200 // 2 * 192)], ids=["128 of 96", "96 of 96"])
def test_stored_pieces_end_with_the_rows_where_slices_hold_padding(slices, time, piece):
    """Rows of 96 bf16 in HBM: gathered slices with 96 positions hold 100 of them in one piece, those with 128 a row a piece of 192 B."""
    workload = einsum("mk,nk->nm", m=96, n=200, k=72)
    placement = placed({"m": {"Slice": slices, "Time": time}, "n": {"Cluster": 2, "Time": 100}, "k": {"Time": 9, "Packet": 8}})
    axes = workload.axes
    table = PlacementTable(Family(workload, 0, ("", "")), axes, tuple((placement.of(a),) for a in axes), np.zeros((1, 3), dtype=np.int64))
    assert run_bytes(table, workload.output, workload.out_dtype, gathered=True, stored=True) == [piece]

"""Placement tables against enumeration by hand."""

import itertools

import numpy as np
import pytest

from tcptune.ir.workload import einsum
from tcptune.model.hardware import RNGD
from tcptune.solver.tables import Family, axis_options, families, placement_table

WORKLOADS = [
    einsum("ik,jk->ij", i=8, j=5, k=32),
    einsum("ij,j->i", i=6, j=24),
    einsum("ki,kj->ij", i=4, j=16, k=3),
    einsum("bmk,bkn->bmn", b=2, m=4, k=16, n=8),
]


@pytest.mark.parametrize("workload", WORKLOADS, ids=lambda w: w.text)
def test_every_row_covers_its_axes_and_respects_the_machine(workload):
    for family in families(workload):
        table = placement_table(family)
        for row in range(table.rows):
            placement = table.placement(row)
            assert placement.live_slices <= RNGD.slices_per_cluster
            assert placement.live_clusters <= RNGD.clusters_per_chip
            assert sum(a.lane > 1 for a in placement.axes) <= 1
            for axis in placement.axes:
                assert axis.padded >= workload.size(axis.axis)
                assert axis.lane in RNGD.legal_lane_counts


@pytest.mark.parametrize("workload", WORKLOADS, ids=lambda w: w.text)
def test_no_placement_is_missing_or_there_twice(workload):
    for family in families(workload):
        table = placement_table(family)
        rows = {tuple(r) for r in table.choice.tolist()}
        assert len(rows) == table.rows
        counts = [range(len(options)) for options in table.options]
        fitting = set()
        for choice in itertools.product(*counts):
            picked = [table.options[n][k] for n, k in enumerate(choice)]
            slices = int(np.prod([p.slice for p in picked]))
            clusters = int(np.prod([p.cluster for p in picked]))
            if slices <= 256 and clusters <= 2 and sum(p.lane > 1 for p in picked) <= 1:
                fitting.add(choice)
        assert rows == fitting


def test_columns_are_those_of_the_rows():
    table = placement_table(Family(WORKLOADS[0], 1, ("", "")))
    for row in range(0, table.rows, 7):
        placement = table.placement(row)
        assert table.column("i", "slice")[row] == placement.of("i").slice
        assert table.block(0)[row] == placement.of("i").in_slice * placement.of("k").in_slice
        assert table.live_slices[row] == placement.live_slices


def test_an_operand_that_no_register_file_holds_has_no_row():
    assert placement_table(Family(einsum("i,i->", i=200_000), 1, ("", ""))).rows == 0


def test_rows_that_only_the_stationary_operand_pads_are_staged_in_full_flits():
    """48 rows of 33 f8 in a slice: the host pads each to 64 B, two flits, whatever the packet of the summed axis."""
    workload = einsum("ki,jk->ij", k=33, i=33, j=48, dtype="f8e4m3")
    table = placement_table(Family(workload, 1, ("", "")))
    held = table.column("j", "in_slice")
    assert 48 in held
    assert (table.staged_flits() == 2 * held).all()
    assert (table.column("k", "cluster") == 1).all()  # both clusters would cut the padding


def test_packets_are_all_powers_of_two_from_a_word_to_a_flit_also_where_they_are_staged_only():
    """32 positions of b: a slice may hold 16, 8 or 4 bf16 as one packet, and shorter ones leave more slices."""
    family = Family(einsum("ib,bj->bij", i=16, b=32, j=16), 0, ("", ""))
    assert family.innermost(family.stationary) == "b" != family.packet_axis
    blocks = {(o.slice, o.time, o.packet) for o in axis_options(family, "b") if o.cluster == o.lane == 1}
    assert {(2, 1, 16), (4, 1, 8), (8, 1, 4), (4, 2, 4), (1, 8, 4)} <= blocks


def test_the_register_file_holds_a_flit_for_every_shorter_packet():
    """8 rows of j, each one flit, two flits of half a packet, or four of a word."""
    family = Family(einsum("ib,bj->bij", i=16, b=8, j=16), 1, ("", ""))
    table = placement_table(family)
    whole = (table.column("b", "in_slice") == 8) & (table.column("j", "in_slice") == 16)
    found = {(int(p), int(f)) for p, f in zip(table.column("j", "packet")[whole], table.staged_flits()[whole], strict=True)}
    assert found == {(16, 8), (8, 16), (4, 32)}


def test_either_operand_is_copied_for_any_summed_axis_or_lies_as_it_is():
    """`kli,klj->ij`: no copy, k or l innermost, for both operands; a stream with k in front of a register file with l has no packet."""
    found = {(f.stationary, f.relayout) for f in families(einsum("kli,klj->ij", k=2, l=64, i=8, j=8))}
    shared = [("", ""), ("k", "k"), ("l", "l")]
    assert found == {*((0, r) for r in [*shared, ("k", ""), ("l", "")]), *((1, r) for r in [*shared, ("", "k"), ("", "l")])}


def test_rows_that_are_left_out_are_said_and_the_busiest_are_kept():
    family = families(einsum("ik,jk->ij", i=64, j=64, k=64))[0]
    whole, part = placement_table(family), placement_table(family, limit_rows=100)
    assert (whole.complete, part.complete) == (True, False)
    assert part.rows <= 100
    assert {whole.placement(r) for r in range(whole.rows)} >= {part.placement(r) for r in range(part.rows)}


def test_what_is_dropped_before_all_axes_are_placed_would_not_fit(monkeypatch):
    """The product of all options, cut by the capacities at the end, has as many rows as the table that is cut an axis at a time."""
    workload = einsum("bk,ck->bc", b=4096, c=3000, k=512)
    monkeypatch.setattr("tcptune.solver.tables._SLAB_ROWS", 1000)
    table = placement_table(Family(workload, 1, ("", "")))
    along = dict(zip(table.axes, ((-1, 1, 1), (1, -1, 1), (1, 1, -1)), strict=True))

    def extents(axis: str, value) -> np.ndarray:
        return np.array([value(o) for o in table.options[table.axes.index(axis)]]).reshape(along[axis])

    def over(axes: str, value) -> np.ndarray:
        return np.prod(np.broadcast_arrays(*(extents(a, value) for a in axes), np.ones([len(o) for o in table.options]))[:-1], axis=0)

    fits = (over("bck", lambda o: o.slice) <= 256) & (over("bck", lambda o: o.cluster) <= 2) & (over("bc", lambda o: 1 + (o.lane > 1)) <= 2)
    rows = extents("k", lambda o: o.in_slice // o.packet * max(o.packet, 16)) * extents("c", lambda o: o.in_slice)
    fits &= (rows * 2 <= 65_536) & (over("bc", lambda o: o.in_slice) * 2 <= 524_288)
    fits &= np.maximum(*(over(axes, lambda o: o.in_slice * o.slice) for axes in ("bk", "ck"))) * 2 <= 524_288 * 256
    assert 0 < table.rows == fits.sum() < fits.size / 2

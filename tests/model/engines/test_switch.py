"""The Switch Engine: the relation table of the manual, the constraints of custom broadcasts, costs and refusals."""

import itertools

import numpy as np
import pytest

from tcptune.ir.mappings.axes import Axes
from tcptune.ir.mappings.cells import Index
from tcptune.ir.mappings.mapping import pair
from tcptune.model.engines.switch.bitmap import Routing
from tcptune.model.engines.switch.custom import derived_ring_size
from tcptune.model.pipeline import apply_chain
from tcptune.model.values import Values
from tests.model.chains import refused, run, stream, switch

AX = Axes(A=256, B=64, C=8, X=4, Y=2, Z=8, P=32, Q=64, R=128)


def relation(kind, slice1, slice0, time0, out_slice, t):
    """Source (slice, step) of an output position, transcribed from the manual's relation table."""
    ring = slice1 * slice0
    base, m = ring * (out_slice // ring), out_slice % ring
    if kind == "Broadcast01":
        t, b = divmod(t, slice0)
        t, t0 = divmod(t, time0)
        t1, a = divmod(t, slice1)
        return base + a * slice0 + b, t1 * time0 + t0
    if kind == "Broadcast1":
        t, a = divmod(t, slice1)
        return base + a * slice0 + m % slice0, t
    if kind == "Transpose":
        b, a = divmod(m, slice1)
        return base + a * slice0 + b, t
    if kind == "InterTranspose":
        t, a = divmod(t, slice1)
        t2, t0 = divmod(t, time0)
        u, b = divmod(m, slice0)
        return base + a * slice0 + b, (t2 * slice1 + u) * time0 + t0
    t, b = divmod(t, slice0)
    return base + m % slice1 * slice0 + b, t


GROWTH = {
    "Broadcast01": lambda s1, s0: s1 * s0,
    "Broadcast1": lambda s1, s0: s1,
    "Transpose": lambda s1, s0: 1,
    "InterTranspose": lambda s1, s0: 1,
    "TransposedBroadcast1": lambda s1, s0: s0,
}


@pytest.mark.parametrize("kind", GROWTH)
@pytest.mark.parametrize(("slice1", "slice0", "time0", "steps"), [(2, 2, 1, 4), (4, 2, 2, 16), (2, 8, 4, 8), (8, 1, 1, 8), (1, 4, 2, 4)])
def test_canonical_routes_follow_the_relation_table(kind, slice1, slice0, time0, steps):
    routing = Routing(kind, 64, slice1 * slice0, steps, steps * GROWTH[kind](slice1, slice0), slice1, slice0, time0)
    in_slice, in_step = routing.route()
    for s, t in itertools.product(range(64), range(routing.out_steps)):
        expected = relation(kind, slice1, slice0, time0, s, t)
        assert (in_slice[s, t], in_step[s, t]) == expected == routing.source_of(s, t)


def test_a_transposed_broadcast_is_a_transpose_then_a_broadcast():
    for p, q in ((4, 2), (2, 4), (8, 8), (8, 2)):
        combined = Routing("TransposedBroadcast1", 256, p * q, 4, 4 * q, p, q)
        transpose = Routing("Transpose", 256, p * q, 4, 4, p, q)
        broadcast = Routing("Broadcast1", 256, p * q, 4, 4 * q, q, p)
        for s, t in itertools.product(range(0, 256, 7), range(4 * q)):
            assert combined.source_of(s, t) == transpose.source_of(*broadcast.source_of(s, t))


LAYOUTS = [
    ("A / 4, X", "B / 4, A / 2 % 2, B % 4, A % 2", "Broadcast01", {"slice1": 2, "slice0": 2, "time0": 4}, 4 * 64),
    ("A / 32, X, A % 8", "B, A / 8 % 4", "Broadcast1", {"slice1": 4, "slice0": 8}, 32 * 64),
    ("A / 64, A % 2, A / 2 % 32", "B", "Transpose", {"slice1": 32, "slice0": 2}, 64 * 64),
    ("A / 32, B / 2 % 2, A % 16", "B / 4, B % 2, A / 16 % 2", "InterTranspose", {"slice1": 2, "slice0": 16, "time0": 2}, 32 * 64),
    ("A / 64, Z, A / 8 % 8", "B, A % 8", "TransposedBroadcast1", {"slice1": 8, "slice0": 8}, 64 * 64),
    ("A / 32, Y, A / 8 % 2, A % 8", "B, A / 16 % 2", "CustomBroadcast", {"ring_size": 32}, 32 * 64),
]


@pytest.mark.parametrize(("slice_", "time", "kind", "sizes", "cycles"), LAYOUTS)
def test_every_output_cell_holds_the_input_cell_of_its_coordinates(slice_, time, kind, sizes, cycles):
    chain = run(stream(AX, "i8", slice="A", time="B", packet="P"), AX, switch(slice_, time, kind, **sizes))
    assert chain.derived["cycles"] == cycles, "ring size x input steps x one flit"
    data = np.random.default_rng(0).integers(-128, 128, (1, 2, 256, 64, 32)).astype(np.int8)
    out = apply_chain(chain, Values(data, np.ones(data.shape, bool)))
    final = pair(chain.final.slice, chain.final.time)
    for position in range(0, final.size, 611):
        cell = final.cell(position)
        assert isinstance(cell, Index)
        s, t = divmod(position, chain.final.time.size)
        assert np.array_equal(out.data[:, :, s, t], data[:, :, cell.coords["A"], cell.coords["B"]])
        assert out.defined[:, :, s, t].all()


@pytest.mark.parametrize("filling", ["4", "1 # 4", "X", "Y, 2", "Y, 1 # 2"])
def test_anything_new_may_fill_a_vacated_slot(filling):
    run(
        stream(AX, "i8", slice="A", time="B", packet="P"),
        AX,
        switch(f"A / 32, {filling}, A % 8", "B, A / 8 % 4", "Broadcast1", slice1=4, slice0=8),
    )


@pytest.mark.parametrize("filling", ["A / 8 % 4", "B % 4", "Y, A / 8 % 2", "X % 2, X % 2"])
def test_a_vacated_slot_takes_nothing_that_the_input_holds(filling):
    op = switch(f"A / 32, {filling}, A % 8", "B, A / 8 % 4", "Broadcast1", slice1=4, slice0=8)
    assert refused(stream(AX, "i8", slice="A", time="B", packet="P"), AX, op).rule == "SWITCH-005"


def test_a_padded_slot_is_undefined():
    op = switch("A / 32, 1 # 4, A % 8", "B, A / 8 % 4", "Broadcast1", slice1=4, slice0=8)
    chain = run(stream(AX, "i8", slice="A", time="B", packet="P"), AX, op)
    out = apply_chain(chain, Values(np.zeros((1, 2, 256, 64, 32), np.int8), np.ones((1, 2, 256, 64, 32), bool)))
    by_slot = out.defined.reshape(1, 2, 8, 4, 8, -1)
    assert by_slot[:, :, :, 0].all()
    assert not by_slot[:, :, :, 1:].any()


@pytest.mark.parametrize(
    ("slice_", "time", "kind", "sizes", "rule"),
    [
        ("A / 4, X, Y", "B, A % 4", "Broadcast1", {"slice1": 4, "slice0": 1}, "SWITCH-002"),
        ("A / 4, X", "B, A % 4", "Broadcast1", {"slice1": 3, "slice0": 1}, "SWITCH-003"),
        ("A / 4, X", "B, A % 4", "Broadcast1", {"slice1": 4, "slice0": 0}, "SWITCH-003"),
        ("A / 4, X", "B, A / 2 % 2, A % 2", "Broadcast01", {"slice1": 2, "slice0": 2, "time0": 3}, "SWITCH-008"),
        ("A / 4, X", "B, A % 2, A / 2 % 2", "Broadcast01", {"slice1": 2, "slice0": 2, "time0": 1}, "SWITCH-007"),
        ("A / 32, X, A % 8", "A / 8 % 4, B", "Broadcast1", {"slice1": 4, "slice0": 8}, "SWITCH-009"),
        ("A", "B", "Transpose", {"slice1": 4, "slice0": 8}, "SWITCH-010"),
        ("A / 32, A % 8, A / 8 % 4", "Q", "Transpose", {"slice1": 4, "slice0": 8}, "SWITCH-011"),
        ("A / 32, X % 2, A % 16", "B / 2, A / 16 % 2", "InterTranspose", {"slice1": 2, "slice0": 16, "time0": 1}, "SWITCH-012"),
        ("A", "B", "InterTranspose", {"slice1": 2, "slice0": 16, "time0": 5}, "SWITCH-015"),
        ("A / 16, Z, A % 2", "B, A / 2 % 8", "TransposedBroadcast1", {"slice1": 8, "slice0": 2}, "SWITCH-016"),
        ("A", "B", "Forwarding", {}, "SWITCH-034"),
    ],
)
def test_a_wrong_canonical_call_is_refused_by_its_rule(slice_, time, kind, sizes, rule):
    error = refused(stream(AX, "i8", slice="A", time="B", packet="P"), AX, switch(slice_, time, kind, **sizes))
    assert error.rule == rule


def test_a_refusal_tells_the_right_output_time():
    error = refused(
        stream(AX, "i8", slice="A", time="B", packet="P"), AX, switch("A / 32, X, A % 8", "B", "Broadcast1", slice1=4, slice0=8)
    )
    assert error.expected.equivalent(AX.mapping("B, A / 8 % 4"))
    assert error.nearest == f"time = {error.expected}"


def test_inter_transpose_needs_256_slices():
    op = switch("R / 32, B / 2 % 2, R % 16", "B / 4, B % 2, R / 16 % 2", "InterTranspose", slice1=2, slice0=16, time0=2)
    assert refused(stream(AX, "i8", slice="R", time="B", packet="P"), AX, op).rule == "SWITCH-013"


GRID = Axes(A=16, B=16, C=8, D=3, X=4, Y=2, Z=2, F=4, P=32, K=4, M=2)


@pytest.mark.parametrize(
    ("in_slice", "in_time", "slice_", "time", "ring", "rule"),
    [
        ("A, B", "C", "A / 2, Y, B / 2, Z", "C, A % 2, B % 2", 32, None),
        ("A, B", "C", "B % 4, B / 4, A % 4, A / 4", "C", 256, None),
        ("A, K, D # 4", "C", "A, K, X", "C, D", 4, None),
        ("A, K, D # 4", "C", "A, K, X", "C, D # 4", 4, None),
        ("A, B", "C", "A, B", "C", 1, None),
        ("A, 1 # 16", "C", "A, X, F", "C", 16, None),
        ("1 # 2, A, C", "1", "1 # 2, C, A", "1", 128, None),
        ("A, B", "C", "A / 2, Y, B / 2, Y", "C, A % 2, B % 2", 32, "SWITCH-024"),
        ("A, B", "C", "A / 4, D # 4, B", "C, A % 4", 64, "SWITCH-025"),
        ("A, B", "C", "A, C / 2, B % 4", "C, B / 4", 16, "SWITCH-023"),
        ("A, B", "C", "A, B / 4, X", "C, B % 2, B / 2 % 2", 4, "SWITCH-026"),
        ("A, B", "C", "A, B / 4, X", "B % 4, C", 4, "SWITCH-027"),
        ("A, B", "C", "A / 2, Y, B / 2, Z", "A % 2, C, B % 2", 32, "SWITCH-027"),
        ("A, B", "C", "A, B / 4, X", "C", 4, "SWITCH-028"),
        ("A, B", "C", "A, B / 4, X", "C, B % 4 = 3", 4, "SWITCH-028"),
        ("A, K, D # 4", "C", "A, K, X", "C, D = 2", 4, "SWITCH-028"),
        ("A, B", "C", "A, B / 4, X", "C, B % 4", 12, "SWITCH-029"),
        ("A, B", "C", "A, B / 4, X", "C, B % 4", 8, "SWITCH-030"),
        ("A, B", "C, F", "A, B / 4, X", "F, C, B % 4", 4, "SWITCH-033"),
        ("A, B", "C", "A, B / 4, X", "C = 4, B % 4", 4, "SWITCH-033"),
        ("A, B", "C", "A, B / 4, X", "C, F", 4, "SWITCH-033"),
        ("A, B", "C", "A, B / 4, 4", "C, B", 4, "SWITCH-020"),
        ("A, B / 4, 4", "C", "A, B / 4, X", "C", 4, "SWITCH-020"),
    ],
)
def test_custom_broadcasts_obey_their_constraints(in_slice, in_time, slice_, time, ring, rule):
    start = stream(GRID, "i8", slice=in_slice, time=in_time, packet="P")
    op = switch(slice_, time, "CustomBroadcast", ring_size=ring)
    if rule is None:
        assert run(start, GRID, op).derived["ring_size"] == ring
    else:
        error = refused(start, GRID, op)
        assert rule in (error.rule, *error.also)


def test_a_wrong_ring_is_told_the_right_one():
    op = switch("A / 2, Y, B / 2, Z", "C, A % 2, B % 2", "CustomBroadcast", ring_size=64)
    error = refused(stream(GRID, "i8", slice="A, B", time="C", packet="P"), GRID, op)
    assert (error.expected, error.nearest) == (32, "ring_size = 32")


def test_reversed_digits_are_told_their_order():
    op = switch("A / 2, Y, B / 2, Z", "C, B % 2, A % 2", "CustomBroadcast", ring_size=32)
    error = refused(stream(GRID, "i8", slice="A, B", time="C", packet="P"), GRID, op)
    assert error.nearest == f"time = {GRID.mapping('C, A % 2, B % 2')}"


def test_the_snoop_bitmap_lists_the_slices_with_the_same_coordinates():
    op = switch("A / 2, Y, B / 2, Z", "C, A % 2, B % 2", "CustomBroadcast", ring_size=32)
    bitmap = run(stream(GRID, "i8", slice="A, B", time="C", packet="P"), GRID, op).steps[0].config.snoop_bitmap()
    for s in range(256):
        a, b = s // 32, s // 2 % 8
        assert bitmap[s] == [16 * (2 * a + i) + 2 * b + j for i in range(2) for j in range(2)]


def test_a_custom_bitmap_holds_dma_and_sub_while_it_is_loaded():
    start = stream(GRID, "i8", slice="A, B", time="C", packet="P")
    custom = run(start, GRID, switch("A, B / 4, X", "C, B % 4", "CustomBroadcast", ring_size=4)).steps[0].config
    canonical = run(start, GRID, switch("A, B / 4, X", "C, B % 4", "Broadcast1", slice1=4, slice0=1)).steps[0].config
    assert custom.occupies_while_loading == ("dma", "sub")
    assert canonical.occupies_while_loading == ()
    assert custom.snoop_bitmap() == canonical.snoop_bitmap()


def test_the_ring_starts_where_the_output_is_no_longer_the_input():
    for in_slice, out_slice, ring in (
        ("A, B", "A, B", 1),
        ("A, B", "A, B / 4, X", 4),
        ("A, B", "B, A", 256),
        ("A, B, 1", "A / 2, Y, B", 32),
    ):
        assert derived_ring_size(GRID.mapping(in_slice), GRID.mapping(out_slice)) == ring


def test_packets_below_a_flit_cost_a_flit_and_unaligned_packets_are_refused():
    op = switch("A / 32, X, A % 8", "B, A / 8 % 4", "Broadcast1", slice1=4, slice0=8)
    assert run(stream(AX, "i8", slice="A", time="B", packet="C"), AX, op).derived["flits_per_packet"] == 1
    axes = Axes({**AX, "O": 12})
    assert refused(stream(axes, "i8", slice="A", time="B", packet="O"), axes, op).rule == "TU-004"

"""Fetch Engine: read sizes, cycles, casts, interleaving, padding, values. Numbers are the manual's."""

from __future__ import annotations

import numpy as np
import pytest

from tcptune.ir.mappings.axes import Axes
from tcptune.ir.types import TensorType, dtype
from tcptune.model.pipeline import apply_chain
from tcptune.model.values import Values
from tests.model.chains import refused, run, stream

NCHW = Axes(N=4, C=3, H=4, W=16)


def fetch(time: str, packet: str) -> dict[str, str]:
    return {"op": "fetch", "time": time, "packet": packet}


@pytest.mark.parametrize(
    ("time", "packet", "main", "sub"),
    [
        ("N, C, H", "W", (16, 1, 48), (16, 1, 48)),
        ("N, C, H / 2", "H % 2, W", (32, 1, 24), (16, 2, 48)),
        ("N, C", "H, W", (64, 1, 12), (16, 4, 48)),
        ("N", "C, H, W", (64, 3, 12), (16, 12, 48)),
    ],
)
def test_larger_packets_take_fewer_reads(time, packet, main, sub):
    start = stream(NCHW, "i4", "Begin", packet="N, C, H, W")
    for context, wanted in (("main", main), ("sub", sub)):
        derived = run(start, NCHW, fetch(time, packet), context=context).derived
        assert (derived["read_size"], derived["reads_per_packet"], derived["cycles"]) == wanted


@pytest.mark.parametrize(("time", "packet", "cycles"), [("A, B", "C # 8", 15), ("A", "[B, C] # 16", 3), ("1", "[A, B, C] # 32", 1)])
def test_padding_a_packet_saves_reads(time, packet, cycles):
    axes = Axes(A=3, B=5, C=2)
    assert run(stream(axes, "f8e4m3", "Begin", packet="A, B, C"), axes, fetch(time, packet)).cost.cycles == cycles


def test_a_cast_bounds_the_output_of_a_read_to_a_flit():
    axes = Axes(A=4096, B=8)
    start = stream(axes, "i8", "Begin", slice="A / 16", packet="A / 8 % 2, A % 8, B")
    plain = run(start, axes, fetch("A / 8 % 2", "A % 8, B"))
    assert (plain.derived["read_size"], plain.cost.cycles) == (32, 4)
    cast = run(start, axes, fetch("A / 8 % 2", "A % 8, B"), {"op": "fetch_cast", "dtype": "i32"})
    assert (cast.derived["read_size"], cast.derived["fetch_cycles"], cast.cost.cycles) == (8, 16, 16)


@pytest.mark.parametrize(
    ("dt", "packet", "context", "rule"),
    [("i4", "B", "main", "SEQ-015"), ("i8", "B", "sub", "FETCH-004"), ("bf16", "B", "sub", "FETCH-004")],
)
def test_reads_of_no_legal_size_are_refused(dt, packet, context, rule):
    axes = Axes(A=4, B=3)
    assert refused(stream(axes, dt, "Begin", packet="A, B # 4"), axes, fetch("A", packet), context=context).rule == rule


def test_half_bytes_cannot_be_read_one_by_one():
    axes = Axes(A=4, B=4)
    assert refused(stream(axes, "i4", "Begin", packet="A, B"), axes, fetch("B", "A")).rule == "SEQ-016"


def values_of(shape: tuple[int, ...], first: int = 0) -> Values:
    data = (np.arange(np.prod(shape)) + first).astype(np.int32).reshape(shape)
    return Values(data, np.ones(shape, bool))


def test_a_fetch_moves_every_element_to_its_coordinates():
    axes = Axes(A=3, B=5, C=2)
    chain = run(stream(axes, "i32", "Begin", slice="1 # 64", packet="A, B, C # 4"), axes, fetch("C, A", "B"))
    source = values_of((1, 2, 64, 1, 60))
    got = apply_chain(chain, source)
    wanted = source.data.reshape(2, 64, 3, 5, 4)[..., :2].transpose(0, 1, 4, 2, 3)
    assert np.array_equal(got.data.reshape(2, 64, 2, 3, 5), wanted)
    assert got.defined.all()


def test_what_is_read_for_padding_is_not_known():
    axes = Axes(A=3, C=2)
    chain = run(stream(axes, "i32", "Begin", packet="A, C"), axes, fetch("A", "C # 8"))
    got = apply_chain(chain, values_of((1, 2, 256, 1, 6)))
    assert got.defined.reshape(-1, 8).sum(axis=1).tolist() == [2] * (2 * 256 * 3)


def test_idle_slices_stay_unknown():
    axes = Axes(A=8)
    source = values_of((1, 2, 256, 1, 8))
    source.defined[:, :, 1:] = False
    got = apply_chain(run(stream(axes, "i32", "Begin", packet="A"), axes, fetch("1", "A")), source)
    assert got.defined[:, :, 0].all()
    assert not got.defined[:, :, 1:].any()


def interleave(rhs_element: str, **sizes: int):
    axes = Axes(sizes)
    rhs = TensorType("Dm", dtype("i8"), axes.mapping(rhs_element), cluster=axes.mapping("1 # 2"), slice=axes.mapping("1 # 256"))
    return axes, stream(axes, "i8", "Begin", packet="A, B"), {"rhs": rhs}


def test_two_tensors_are_read_in_turn():
    axes, start, operands = interleave("A, B", A=16, B=32, I=2)
    chain = run(start, axes, {"op": "begin_interleaved", "axis": "I", "lhs": "start", "rhs": "rhs"}, fetch("A, I", "B"), operands=operands)
    assert (chain.derived["time_steps"], chain.derived["cycles"]) == (32, 32)
    lhs, rhs = np.zeros((1, 2, 256, 1, 512), np.int8), np.ones((1, 2, 256, 512), np.int8)
    known = np.ones
    got = apply_chain(chain, Values(lhs, known(lhs.shape, bool)), {"rhs": Values(rhs, known(rhs.shape, bool))})
    assert got.data[0, 0, 0, :, 0].tolist() == [0, 1] * 16


@pytest.mark.parametrize(
    ("element", "sizes", "time", "rule"),
    [
        ("B, A", {"A": 16, "B": 32, "I": 2}, "A, I", "FETCH-008"),
        ("A, B", {"A": 16, "B": 32, "I": 3}, "A, I", "FETCH-009"),
        ("A, B", {"A": 16, "B": 32, "I": 2}, "A", "FETCH-008"),
    ],
)
def test_interleaving_needs_two_equal_tensors_and_its_axis_in_time(element, sizes, time, rule):
    axes, start, operands = interleave(element, **sizes)
    begin = {"op": "begin_interleaved", "axis": "I", "lhs": "start", "rhs": "rhs"}
    assert refused(start, axes, begin, fetch(time, "B"), operands=operands).rule == rule

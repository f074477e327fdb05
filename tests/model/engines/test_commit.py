"""Commit Engine: writes, transposition, alignment, views, values. Numbers are the manual's."""

from __future__ import annotations

import numpy as np
import pytest

from tcptune.ir.mappings.axes import Axes
from tcptune.model.pipeline import apply_chain
from tcptune.model.values import Values
from tests.model.chains import refused, run, stream


def commit(element: str) -> dict[str, str]:
    return {"op": "commit", "element": element}


def trim(packet: str) -> dict[str, str]:
    return {"op": "commit_trim", "packet": packet}


@pytest.mark.parametrize(
    ("dt", "time", "packet", "element", "sizes", "context", "wanted"),
    [
        ("i8", "M, K", "L", "M, K, L", {"M": 4, "K": 2, "L": 32}, "main", (32, 32, 1, 8)),
        ("i8", "M, K", "L", "M, K, L", {"M": 4, "K": 2, "L": 32}, "sub", (32, 8, 4, 32)),
        ("f32", "M, K", "W", "K, M, W", {"M": 4, "K": 2, "W": 8}, "main", (8, 8, 1, 8)),
        ("bf16", "M", "N", "M, N # 16", {"M": 16, "N": 8}, "main", (8, 8, 1, 16)),
        ("i8", "M", "N", "M, N", {"M": 4, "N": 24}, "main", (24, 24, 1, 4)),
        ("i8", "M", "K, L", "M, K, L", {"M": 4, "K": 2, "L": 12}, "main", (24, 24, 1, 4)),
        ("i8", "M", "K, L", "M, K, L", {"M": 4, "K": 2, "L": 12}, "sub", (24, 8, 3, 12)),  # 24 bytes together, though a loop steps 12
        ("f32", "M", "K, L", "M, K, L", {"M": 4, "K": 2, "L": 3}, "sub", (6, 2, 3, 12)),
    ],
)
def test_valid_and_write_size(dt, time, packet, element, sizes, context, wanted):
    axes = Axes(sizes)
    derived = run(stream(axes, dt, "CommitTrim", time=time, packet=packet), axes, commit(element), context=context).derived
    assert (derived["valid_size"], derived["write_size"], derived["writes_per_packet"], derived["cycles"]) == wanted


@pytest.mark.parametrize(
    ("dt", "time", "packet", "element", "rule"),
    [
        ("i8", "M", "W = 12", "M, W = 12", "COMMIT-006"),
        ("i8", "M", "W % 8", "M, W % 8 # 12", "COMMIT-005"),
        ("i8", "W / 8", "W % 8", "M, W", "SEQ-018"),
        ("i8", "M, W / 8", "W % 8", "W", "SEQ-018"),
        ("i8", "W / 8", "W % 8", "W % 8, W / 8", "COMMIT-005"),
        ("i8", "M", "W % 8 # 16", "M, W % 8", "SEQ-018"),
    ],
)
def test_what_cannot_be_written_is_refused(dt, time, packet, element, rule):
    axes = Axes(M=4, W=32)
    assert refused(stream(axes, dt, "CommitTrim", time=time, packet=packet), axes, commit(element)).rule == rule


def test_a_tensor_larger_than_a_slice_is_refused():
    axes = Axes(A=65_536, B=16)
    assert refused(stream(axes, "i8", "CommitTrim", time="A", packet="B"), axes, commit("A, B")).rule == "MAP-033"


def test_the_strides_transpose_the_values():
    axes = Axes(M=4, K=3, W=8)
    chain = run(stream(axes, "i32", "CommitTrim", slice="1 # 64", time="M, K", packet="W"), axes, commit("K, M, W # 10"))
    data = np.arange(2 * 64 * 96, dtype=np.int32).reshape(1, 2, 64, 12, 8)
    got = apply_chain(chain, Values(data, np.ones(data.shape, bool)))
    element = got.data.reshape(2, 64, 3, 4, 10)
    assert np.array_equal(element[..., :8], data.reshape(2, 64, 4, 3, 8).transpose(0, 1, 3, 2, 4))
    assert got.defined.reshape(-1, 10).sum(axis=1).tolist() == [8] * (2 * 64 * 12)


def view(start: int, mutable: bool = True, slice_: str = "1 # 256", element: str = "D = 32 #{!} 64") -> dict[str, object]:
    where = {"source": "D", "index": "D", "len": 32, "start": start, "mutable": mutable}
    return {"op": "commit_view", "slice": slice_, "element": element, "view": where}


AXES = Axes(D=64, W=32)
HALF = stream(AXES, "f32", "CommitTrim", time="D = 32 / 8", packet="D = 32 % 8")


def test_a_view_is_written_where_it_lies():
    chain = run(HALF, AXES, view(32))
    assert chain.derived["written_elements"] == [32, 64]
    assert str(chain.final.element) == "D"
    data = np.arange(2 * 256 * 32, dtype=np.float32).reshape(1, 2, 256, 4, 8)
    got = apply_chain(chain, Values(data, np.ones(data.shape, bool)))
    assert np.array_equal(got.data[..., :32], data.reshape(1, 2, 256, 32))
    assert not got.defined[..., 32:].any()


@pytest.mark.parametrize(
    ("op", "rule"),
    [
        (view(33), "MAP-025"),
        (view(0, mutable=False), "MAP-024"),
        (view(0, slice_="1 # 128"), "COMMIT-010"),
        (view(0, element="D = 32 # 64"), "MAP-024"),
        (view(0, element="D = 32"), "MAP-023"),
    ],
)
def test_illegal_views_are_refused(op, rule):
    assert refused(HALF, AXES, op).rule == rule


def test_a_stream_over_another_axis_does_not_fit_the_view():
    start = stream(AXES, "f32", "CommitTrim", time="W / 8", packet="W % 8")
    assert refused(start, AXES, view(32)).rule == "SEQ-018"

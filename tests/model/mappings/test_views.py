"""Tile views: footprint, kind of hole, start; and the gathers of moves."""

from __future__ import annotations

import numpy as np
import pytest

from tcptune.errors import RuleViolation
from tcptune.ir.mappings.axes import Axes
from tcptune.ir.types import TensorType, dtype
from tcptune.model.mappings.movement import carried_digits, gather_indices, gather_within_slice
from tcptune.model.mappings.reshape import check_wire_order
from tcptune.model.mappings.tiles import check_start, tile_stride

AXES = Axes(A=8, B=512, C=4)


def m(text: str):
    return AXES.mapping(text)


@pytest.mark.parametrize(
    ("source", "index", "length", "view", "stride"),
    [
        ("A, B", "B", 2, "A, B = 2 # 512", 1),
        ("A, B", "A", 3, "A = 3 # 8, B", 512),
        ("A, B", "B / 32", 2, "A, B / 32 = 2 # 16, B % 32", 32),
        ("A, B", "B / 32", 1, "A, 1 # 16, B % 32", 32),
        ("A, B", "B % 32", 1, "A, B / 32, 1 # 32", 1),
        ("A, B", "B", 512, "A, B", 1),
    ],
)
def test_a_tile_keeps_the_footprint(source, index, length, view, stride):
    assert tile_stride(m(source), m(index), length, m(view), mutable=False) == stride


@pytest.mark.parametrize(
    ("view", "length", "mutable", "rule"),
    [
        ("A, B = 2", 2, False, "MAP-023"),
        ("A, B = 3 # 512", 2, False, "MAP-023"),
        ("A, B = 2 #{!} 512", 2, False, "MAP-024"),
        ("A, B = 2 # 512", 2, True, "MAP-024"),
    ],
)
def test_other_views_are_refused_with_the_right_one(view, length, mutable, rule):
    with pytest.raises(RuleViolation) as caught:
        tile_stride(m("A, B"), m("B"), length, m(view), mutable)
    assert caught.value.rule == rule
    right = caught.value.nearest
    assert tile_stride(m("A, B"), m("B"), length, right, mutable) == 1


def test_a_tile_stays_inside_its_index():
    check_start(m("B / 32"), 2, 0, 14)
    with pytest.raises(RuleViolation) as caught:
        check_start(m("B / 32"), 2, 15, 15)
    assert caught.value.rule == "MAP-025"


def dm(element: str, slice_: str) -> TensorType:
    return TensorType("Dm", dtype("i8"), m(element), cluster=m("1 # 2"), slice=m(slice_))


def test_a_move_takes_every_element_from_its_coordinates():
    hbm = TensorType("Hbm", dtype("i8"), m("A, B"))
    index, live = gather_indices(hbm, dm("B % 16", "B / 16, A"))
    table = np.arange(8 * 512).reshape(8, 512)
    assert live[0, 0].all()
    assert not live[0, 1].any()
    wanted = table.reshape(8, 32, 16).transpose(1, 0, 2).reshape(256, 16)
    assert np.array_equal(index[0, 0], wanted)


def test_digits_the_source_lacks_repeat_its_data():
    index, live = gather_indices(TensorType("Host", dtype("i8"), m("B % 16")), TensorType("Host", dtype("i8"), m("B, C")))
    assert live.all()
    assert np.array_equal(index.reshape(512, 4)[:, 2], np.arange(512) % 16)


def test_a_tile_holds_its_part_only():
    _, live = gather_indices(TensorType("Host", dtype("i8"), m("B = 16 # 512")), TensorType("Host", dtype("i8"), m("B")))
    assert live.tolist() == [True] * 16 + [False] * 496


def test_a_slice_reads_itself_where_the_data_is_replicated():
    index, live = gather_within_slice(dm("C", "256"), dm("C", "256"))
    assert live[0, 0].all()
    assert np.array_equal(index[0, 0], np.arange(256 * 4).reshape(256, 4))
    with pytest.raises(ValueError, match="slice has"):
        gather_within_slice(dm("C", "256"), dm("C", "128"))


def test_carried_digits_are_joined():
    assert carried_digits((m("B / 64 % 2"), m("B % 64"))) == {"B": ((1, 128),)}
    assert carried_digits((m("B / 64"), m("A # 16 / 4"))) == {"B": ((64, 8),), "A": ((4, 4),)}
    assert carried_digits((m("[B % 16 # 64] / 1"),)) == {"B": ((1, 16),)}
    assert carried_digits((m("B / 4 % 8 # 16 / 2"),)) == {"B": ((8, 4),)}


def test_a_padded_digit_cut_into_digits_holds_no_more_than_the_digit():
    index, live = gather_indices(
        TensorType("Host", dtype("i8"), m("B % 4 # 8 / 2, B % 4 # 8 % 2")), TensorType("Host", dtype("i8"), m("B"))
    )
    assert live.all()
    assert np.array_equal(index.reshape(-1), np.arange(512) % 4)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (("A # 64, 4", "B"), ("A # 64, C", "B")),
        (("B / 2", "A, B % 2"), ("B / 2", "A, B % 2")),
        (("1 # 256", "B / 64, B % 64"), ("1 # 256", "B")),
        (("1 # 256", "A, C"), ("1 # 256", "B % 32")),
    ],
)
def test_a_reshape_may_rename_merge_and_split(before, after):
    check_wire_order(dm(*reversed(before)), dm(*reversed(after)))


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (("1 # 256", "A, C"), ("1 # 256", "C, A")),
        (("A # 256", "B % 8"), ("B % 8 # 256", "A")),
        (("1 # 256", "B % 32"), ("1 # 256", "B / 8 % 4, B / 32 % 8")),
    ],
)
def test_a_reshape_moves_no_element(before, after):
    with pytest.raises(RuleViolation) as caught:
        check_wire_order(dm(*reversed(before)), dm(*reversed(after)))
    assert caught.value.rule == "DMA-006"

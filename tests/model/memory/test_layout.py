"""Pieces of a move: the run both sides share, and the padding it may go over."""

from __future__ import annotations

import pytest

from tcptune.ir.mappings.axes import Axes
from tcptune.ir.types import TensorType
from tcptune.model.memory.layout import box_runs
from tcptune.model.memory.transfer import prove_move
from tests.model.memory.tensors import dm, hbm

ROWS = Axes(P=256, Q=5, R=8)


def pieces(source: TensorType, dest: TensorType) -> tuple[int, int, int]:
    """Live elements in a row, elements of a piece, and pieces of one place."""
    (box,) = prove_move(source, dest).boxes
    runs = box_runs(box, source, dest)
    count = 1
    for digit in runs.loops:
        count *= digit.extent
    return runs.live_elements, runs.run_elements, count


@pytest.mark.parametrize(
    ("source", "dest", "expected"),
    [
        (hbm(ROWS, "P, R"), hbm(ROWS, "P, R"), (2048, 2048, 1)),
        (hbm(ROWS, "P, R"), hbm(ROWS, "R, P"), (1, 1, 2048)),
        (hbm(ROWS, "P, Q # 8"), dm(ROWS, "P", "Q # 8"), (5, 8, 256)),
        (hbm(ROWS, "P, Q"), dm(ROWS, "P", "Q # 8"), (5, 8, 256)),
        (hbm(ROWS, "R, Q # 8"), dm(ROWS, "1 # 256", "R, Q # 8"), (5, 64, 1)),
        (dm(ROWS, "P", "Q # 8"), hbm(ROWS, "P, Q # 8"), (5, 8, 256)),
        (dm(ROWS, "P", "Q"), hbm(ROWS, "P, Q # 8"), (5, 5, 256)),
        (dm(ROWS, "P", "Q # 8"), hbm(ROWS, "P, Q #{0} 8"), (5, 5, 256)),
        (dm(ROWS, "P", "Q #{0} 8"), hbm(ROWS, "P, Q #{0} 8"), (5, 8, 256)),
        (hbm(ROWS, "P, Q # 8"), dm(ROWS, "P", "Q #{!} 8"), (5, 5, 256)),
    ],
    ids=[
        "same layout",
        "transposed",
        "padded alike",
        "padded in DM only",
        "rows merge over padding",
        "store, padded alike",
        "store, nothing behind the source",
        "store, unknown over zeros",
        "store, zeros over zeros",
        "bottom padding",
    ],
)
def test_pieces(source: TensorType, dest: TensorType, expected: tuple[int, int, int]) -> None:
    assert pieces(source, dest) == expected


def test_the_last_part_of_a_padded_row_is_stored_up_to_the_end_of_the_row_where_the_source_is_padded_too():
    rows = Axes(I=128, J=13)
    halves = dm(rows, "J # 16 / 8, I", "J # 16 % 8")
    stored = hbm(rows, "I, J # 16")
    assert [box_runs(box, halves, stored).run_elements for box in prove_move(halves, stored).boxes] == [
        8,
        8,
    ]  # 5 live ones and 3 of padding
    shorter = hbm(rows, "I, J # 15")
    assert [box_runs(box, halves, shorter).run_elements for box in prove_move(halves, shorter).boxes] == [8, 7]

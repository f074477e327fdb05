"""The proof of a move: what it accepts moves every cell from the right place, and what it refuses is named."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import assume, given, settings

from tcptune.errors import RuleViolation, WorkError
from tcptune.ir.mappings.axes import Axes
from tcptune.ir.mappings.cells import CellTable, joint_table
from tcptune.ir.mappings.mapping import Mapping
from tcptune.ir.types import TensorType, dtype
from tcptune.model.memory.transfer import ELEMENT, Move, joint_levels, prove_move
from tests.model.memory.tensors import dm, hbm
from tests.properties.expressions import mappings

SMALL = Axes(A=6, B=4, C=8)


def writes(move: Move) -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
    """(destination place, source place) of every cell that the boxes move."""
    found = []
    for box in move.boxes:
        for counts in product(*(range(d.extent) for d in box.digits)):
            source, dest = list(box.source_base), list(box.dest_base)
            for count, digit in zip(counts, box.digits, strict=True):
                source = [x + count * y for x, y in zip(source, digit.source, strict=True)]
                dest = [x + count * y for x, y in zip(dest, digit.dest, strict=True)]
            found.append((tuple(dest), tuple(source)))
    return found


def assert_moves_every_cell(move: Move) -> None:
    """Each live destination cell is written once, from a live source cell with the same coordinates; no other cell is."""
    held, wanted = (joint_table(t.chip, t.cluster, t.slice, t.element) for t in (move.source, move.dest))
    written = dict(writes(move))
    assert len(written) == move.cells
    assert set(written) == {tuple(int(i) for i in place) for place in np.argwhere(wanted.live)}
    for dest, source in written.items():
        assert held.live[source]
        for axis, coordinates in held.coords.items():
            assert coordinates[source] == (wanted.coords[axis][dest] if axis in wanted.coords else 0)


@pytest.mark.parametrize(
    ("source", "dest"),
    [
        (hbm(SMALL, "A, B, C"), hbm(SMALL, "B, A, C")),
        (hbm(SMALL, "A, B, C"), dm(SMALL, "A # 8", "C / 2, B, C % 2", cluster="2")),
        (hbm(SMALL, "A # 8, C"), dm(SMALL, "A # 8 / 4, C", "A # 8 % 4")),
        (dm(SMALL, "A # 8 / 4, C", "A # 8 % 4"), hbm(SMALL, "C, A")),
        (hbm(SMALL, "A = 2 # 6, C"), dm(SMALL, "C", "A = 2")),
        (hbm(SMALL, "A, C", chip="B"), dm(SMALL, "C", "A", cluster="B # 8 / 4", chip="B")),
        (dm(SMALL, "1 # 16", "A, C"), dm(SMALL, "16", "C, A")),
    ],
    ids=["transpose", "replicated clusters", "ragged slices", "ragged store", "tile", "chips", "replica of one slice"],
)
def test_a_move_takes_every_cell_from_its_coordinates(source: TensorType, dest: TensorType) -> None:
    assert_moves_every_cell(prove_move(source, dest))


def coordinates(cells: CellTable, axes: list[str]) -> set[tuple[int, ...]]:
    """Coordinates of the live cells in these axes; an axis that the cells do not name is 0."""
    live = np.flatnonzero(cells.live)
    return {tuple(int(cells.coords[a][i]) if a in cells.coords else 0 for a in axes) for i in live}


@settings(max_examples=150, deadline=None)
@given(mappings(4), mappings(4))
def test_a_proof_agrees_with_the_enumerated_cells(stored: Mapping, wanted: Mapping) -> None:
    assume(stored.size <= 600 and wanted.size <= 600)
    source, dest = TensorType("Hbm", dtype("i8"), stored), TensorType("Hbm", dtype("i8"), wanted)
    held, asked = joint_table(joint_levels(source)), joint_table(joint_levels(dest))
    legal = coordinates(asked, list(held.coords)) == coordinates(held, list(held.coords))
    try:
        move = prove_move(source, dest)
    except WorkError:
        assume(False)
    except RuleViolation as refusal:
        assert refusal.rule == "DMA-002"
        assert not legal
        return
    assert legal
    assert_moves_every_cell(move)


def refusal_of(source: TensorType, dest: TensorType) -> RuleViolation:
    with pytest.raises(RuleViolation) as refusal:
        prove_move(source, dest)
    assert refusal.value.rule == "DMA-002"
    return refusal.value


def test_a_missing_coordinate_is_named() -> None:
    refusal = refusal_of(hbm(SMALL, "A, C = 5"), dm(SMALL, "A # 8", "C"))
    assert "A = 0, C = 5" in refusal.message
    assert "position 5 " in refusal.message


def test_a_dropped_axis_is_named() -> None:
    assert "lacks axis C" in refusal_of(hbm(SMALL, "A, C"), hbm(SMALL, "A")).message


def test_a_dropped_coordinate_is_named() -> None:
    assert "C = 4" in refusal_of(hbm(SMALL, "C"), hbm(SMALL, "C = 4")).message


def test_another_element_type_is_refused() -> None:
    refusal_of(hbm(SMALL, "A", "i8"), hbm(SMALL, "A", "f32"))


def test_the_number_of_boxes_does_not_grow_with_sizes() -> None:
    large = Axes(A=15 * 2**20, B=2**20)
    move = prove_move(hbm(large, "A, B"), hbm(large, "B, A"))
    assert len(move.boxes) == 1
    assert move.boxes[0].digits[-1].dest[ELEMENT] == 1

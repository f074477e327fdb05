"""Gathers of moves against a search position by position (SEM-003, SEM-008)."""

import numpy as np
import pytest

from tcptune.ir.mappings import cells
from tcptune.ir.mappings.axes import Axes
from tcptune.ir.mappings.cells import Index, joint_table
from tcptune.ir.mappings.mapping import PadKind
from tcptune.ir.types import TensorType, dtype
from tcptune.model.mappings import movement

AXES = Axes(A=12, B=8)


def dm(cluster, slice_, element):
    return TensorType("Dm", dtype("bf16"), AXES.mapping(element), cluster=AXES.mapping(cluster), slice=AXES.mapping(slice_))


def by_hand(source, destination, *, local):
    """For every destination position the first source position with the same coordinates (and the same slice, if `local`)."""
    held, wanted = (joint_table(*(m for _, m in t.levels)) for t in (source, destination))
    index, found = np.zeros(destination.shape, int), np.zeros(destination.shape, bool)
    positions = list(np.ndindex(source.shape))
    for at in np.ndindex(destination.shape):
        cell = wanted.cell(*at)
        for number, place in enumerate(positions):
            if local and place[:3] != at[:3]:
                continue
            other = held.cell(*place)
            same = isinstance(cell, Index) and isinstance(other, Index) and cell.coords == other.coords
            zeros = [getattr(c, "kind", None) is PadKind.ZERO for c in (cell, other)]
            if same or all(zeros):
                index[at], found[at] = number, True
                break
    return index, found


MOVES = [
    (("1", "A", "B"), ("1", "B", "A")),
    (("1", "A # 16", "B"), ("1", "B", "A # 16")),
    (("2", "A", "B"), ("B / 4", "A", "B % 4")),
    (("1", "A / 4 # 4", "A % 4, B"), ("2", "A % 4", "A / 4, B")),
    (("1", "A", "B #{0} 12"), ("1", "A", "B #{0} 16")),
    (("1", "A, B", "1 # 4"), ("1", "B, A", "1 # 2")),
]


@pytest.mark.parametrize(("before", "after"), MOVES)
@pytest.mark.parametrize("slab", [5, 1 << 20])
def test_a_move_reads_the_first_position_that_holds_the_cell(monkeypatch, before, after, slab):
    monkeypatch.setattr(cells.joint_slabs, "__kwdefaults__", {"most_positions": slab})
    source, destination = dm(*before), dm(*after)
    index, found = movement._gather.__wrapped__(source, destination, ())
    want, has = by_hand(source, destination, local=False)
    assert (found == has).all()
    assert (index[found] == want[found]).all()


@pytest.mark.parametrize(
    ("before", "after"), [(("1", "A # 16", "B"), ("1", "A # 16", "B / 4 # 4, B % 4")), (("2", "4", "A"), ("2", "4", "A"))]
)
def test_a_move_within_slices_reads_its_own_slice(before, after):
    source, destination = dm(*before), dm(*after)
    index, found = movement.gather_within_slice(source, destination)
    want, has = by_hand(source, destination, local=True)
    assert (found == has).all()
    assert (index[found] == want[found]).all()


def test_axes_far_larger_than_the_tensors_are_looked_up_by_sorting():
    axes = Axes(A=4096, B=4096)
    types = [
        TensorType("Dm", dtype("bf16"), axes.mapping(element), slice=axes.mapping(slice_))
        for slice_, element in (("A % 8", "B % 4"), ("B % 4", "A % 8"))
    ]
    index, found = movement.gather_indices(*types)
    want, has = by_hand(*types, local=False)
    assert (found == has).all()
    assert (index[found] == want[found]).all()

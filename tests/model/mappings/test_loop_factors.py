"""Mappings as nested loops, against the enumerated cells."""

from __future__ import annotations

from math import prod

import numpy as np
import pytest

from tcptune.ir.mappings.axes import Axes
from tcptune.model.mappings.loop_factors import loop_factors, refined

AX = Axes(A=8, K=80, M=6, V=32, C=2, B=3, U=1)
EXPRESSIONS = [
    "A", "A / 2", "A % 4", "A / 2 % 2", "M # 8", "[M # 8] / 2", "[M # 8] % 2", "[A, C] # 128", "[A, C] / 4", "K # 96 / 32", "1 # 256",
    "A = 4", "V % 16 # 256", "[M, B] % 9", "B, A # 16, 3", "M % 3 # 4", "A / 8 # 4", "[A # 16, C] / 4", "U # 4", "[A, C] = 6", "M #{0} 8",
]  # fmt: skip


@pytest.mark.parametrize("text", EXPRESSIONS)
def test_loops_cover_every_position(text: str) -> None:
    mapping = AX.mapping(text)
    assert prod(loop.extent for loop in loop_factors(mapping)) == mapping.size


@pytest.mark.parametrize("text", EXPRESSIONS)
def test_loops_give_the_coordinates_of_the_live_cells(text: str) -> None:
    mapping = AX.mapping(text)
    table = mapping.table()
    position, coordinates, place = np.arange(mapping.size), {}, mapping.size
    inside = np.ones(mapping.size, bool)
    for loop in loop_factors(mapping):
        place //= loop.extent
        count = position // place % loop.extent
        inside &= count < loop.live
        if isinstance(loop.of, str):
            coordinates[loop.of] = coordinates.get(loop.of, 0) + count * loop.weight
    for axis, size in AX.items():
        inside &= coordinates.get(axis, 0) < size
    if all(loop.of is None or isinstance(loop.of, str) for loop in loop_factors(mapping)):
        assert (inside == table.live).all()
        for axis, found in coordinates.items():
            assert (found[table.live] == table.coords[axis][table.live]).all()


def test_digits_match_however_they_are_written() -> None:
    whole, digits = loop_factors(AX.mapping("A, V")), loop_factors(AX.mapping("A / 4, A % 4, V / 16, V % 16"))
    assert refined(whole, digits) == digits
    assert refined(digits, whole) == digits


def test_padding_stays_with_the_outermost_piece() -> None:
    pieces = refined(loop_factors(AX.mapping("K # 96")), loop_factors(AX.mapping("K # 96 % 32")))
    assert [(p.weight, p.live, p.extent) for p in pieces] == [(32, 3, 3), (1, 32, 32)]


def test_boundaries_that_do_not_divide_are_left_out() -> None:
    assert refined(loop_factors(AX.mapping("A")), loop_factors(AX.mapping("A = 3"))) == loop_factors(AX.mapping("A"))


def test_padding_alone_is_no_digit() -> None:
    padded, whole = loop_factors(AX.mapping("C # 8")), loop_factors(AX.mapping("C"))
    assert refined(padded, whole) == padded
    outer, inner = loop_factors(AX.mapping("C # 8 / 2")), loop_factors(AX.mapping("C # 8 % 2"))
    assert refined(padded, (*outer, *inner)) == (*outer, *inner)

"""Groups cut into digits open into their factors; everything else stays as it was written."""

import pytest

from tcptune.ir.mappings.algebra_terms import opened_factors
from tcptune.ir.mappings.axes import Axes
from tcptune.ir.mappings.mapping import pair

AXES = Axes(A=8, D=3, I=2, T=5, Q=16, X=3)


@pytest.mark.parametrize(
    ("written", "opened"),
    [
        ("[D, I] / 2, [D, I] % 2", ["D", "I"]),
        ("[D, I] / 1", ["D", "I"]),
        ("[D, I] = 6", ["D", "I"]),
        ("[D, A, I] / 2 % 8", ["A"]),
        ("[A, T] / 8, [A, T] % 8", ["A", "T"]),
        ("[A, X # 4] / 4, [A, X # 4] % 4", ["A", "X # 4"]),
        ("Q / 4, Q % 4", ["Q / 4", "Q % 4"]),
        ("Q # 32 / 2, Q # 32 % 2", ["Q # 32 / 2", "Q # 32 % 2"]),
        ("[A, T, T] / 5, [A, T, T] % 5", ["[A, T, T] / 5", "[A, T, T] % 5"]),
    ],
)
def test_groups_open_where_digits_allow(written, opened):
    mapping = AXES.mapping(written)
    found = opened_factors(mapping)
    assert [str(m) for m in found] == opened
    assert pair(*found).equivalent(mapping)

"""Linear combinations: sliding windows and strides (SEM-004 to SEM-006)."""

from __future__ import annotations

from itertools import product

import pytest

from tcptune.errors import RuleViolation, TcptuneError, WorkError
from tcptune.ir.mappings.axes import Axes
from tcptune.ir.mappings.linear import MAX_TERMS, outer_product, parse_linear

AXES = Axes(N=5, F=3, A=3, B=4)


def test_a_window_has_the_size_of_its_reach():
    assert parse_linear("$(N:1, F:2)", AXES).size == 1 + 4 + 2 * 2


@pytest.mark.parametrize(
    "text, strides", [("$(N:1, F:2)", (1, 2)), ("$(N:2, F:1)", (2, 1)), ("$(N:4, F:1)", (4, 1)), ("$(N:1, F:7)", (1, 7))]
)
def test_positions_relate_to_every_index_that_adds_up_to_them(text, strides):
    window = parse_linear(text, AXES)
    for position in range(window.size):
        wanted = [{"N": n, "F": f} for n, f in product(range(5), range(3)) if n * strides[0] + f * strides[1] == position]
        assert window.indices(position) == wanted
    distinct = {n * strides[0] + f * strides[1] for n, f in product(range(5), range(3))}
    assert window.is_one_to_one() == (len(distinct) == 15)


def test_a_pair_is_the_combination_with_the_sizes_as_strides():
    pair = AXES.mapping("A, B")
    combination = outer_product(pair)
    assert str(combination) == "$(A:4, B:1)"
    for position in range(pair.size):
        assert combination.indices(position) == [pair.cell(position).to_json()]


def test_padding_relates_to_nothing():
    assert parse_linear("$(A # 4:1)", AXES).indices(3) == []


@pytest.mark.parametrize("text", ["", "$", "$()", "$(N)", "$(N:)", "$(N:0)", "$(N:-1)", "$(N:x)", "$(Q:1)", "$(N:" + "9" * 40 + ")"])
def test_garbage_is_refused(text):
    with pytest.raises(TcptuneError):
        parse_linear(text, AXES)


def test_indices_that_are_too_many_to_list_are_refused_at_once():
    wide = Axes(A=2048)
    with pytest.raises(WorkError, match="ways lead to position 5000"):
        parse_linear("$(A:1, A:1, A:1, A:1)", wide).indices(5000)
    with pytest.raises(WorkError, match="ways"):  # an odd position that no even strides reach
        parse_linear("$(A:2, A:2, A:2, A:2)", wide).indices(5001)


def test_dimensions_beyond_any_tensor_are_refused():
    with pytest.raises(RuleViolation, match="too many dimensions"):
        parse_linear(f"$({', '.join(['N:1'] * (MAX_TERMS + 1))})", AXES)

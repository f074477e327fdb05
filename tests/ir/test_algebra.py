"""Symbolic algebra: what it answers, and that sizes do not matter to it."""

from __future__ import annotations

import pytest

from tcptune.errors import RuleViolation
from tcptune.ir.mappings.algebra_cases import first_difference
from tcptune.ir.mappings.algebra_terms import simplify
from tcptune.ir.mappings.axes import Axes
from tcptune.ir.mappings.mapping import pair

AXES = Axes(A=16, B=8, C=12, K=512, N=2**30)


def m(text: str, axes: Axes = AXES):
    return axes.mapping(text)


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ("N / 16, N % 16", "N"),
        ("N / 1024, N / 16 % 64, N % 16", "N / 32, N % 32"),
        ("[A, B] / 8", "A"),
        ("[N, B] % 8", "B"),
        ("[[N, B] # 8589934600] / 8, [[N, B] # 8589934600] % 8", "N # 1073741825, B"),
        ("C # 16 / 8, C # 16 % 8", "C # 16"),
        ("A / 8 = 1 # 2", "1 # 2"),
        ("A # 16", "A #{0} 16"),
        ("K % 8 / 8", "1"),
    ],
)
def test_equivalent_pairs(left, right):
    assert m(left).equivalent(m(right))
    assert m(right).equivalent(m(left))
    assert first_difference(m(left), m(right)) is None


@pytest.mark.parametrize(
    ("left", "right", "position"),
    [
        ("A, B", "B, A", 1),
        ("C # 16", "C #{0} 16", 12),
        ("N, A", "N, A = 8 # 16", 8),
        ("N / 16, N % 16", "N % 16, N / 16", 1),
        ("A", "A = 15", 15),
        ("C # 16 / 8, C # 16 % 8", "C = 11 # 16 / 8, C = 11 # 16 % 8", 11),
    ],
)
def test_different_pairs_and_where_they_part(left, right, position):
    assert not m(left).equivalent(m(right))
    at = first_difference(m(left), m(right))
    assert at is not None
    assert m(left).cell(at) != m(right).cell(at)
    assert at == position


@pytest.mark.parametrize(
    ("text", "n", "outer", "inner"),
    [
        ("A, B", 4, "A, B / 4", "B % 4"),
        ("A, B", 16, "A / 2", "A % 2, B"),
        ("C # 16, B", 64, "C # 16 / 8", "C # 16 % 8, B"),
        ("[C, B] # 128", 8, "C # 16", "B"),
        ("1 # 64", 8, "1 # 8", "1 # 8"),
        ("K / 8 # 256", 16, "K / 8 # 256 / 16", "K / 8 # 256 % 16"),
        ("C # 16, B #{0} 12", 4, "C # 16, B #{0} 12 / 4", "B #{0} 12 % 4"),
        ("C # 16, B #{0} 12", 24, "C # 16 / 2", "C # 16 % 2, B #{0} 12"),
        ("C # 16 / 4, A, B #{0} 12 / 4", 3, "C # 16 / 4, A", "B #{0} 12 / 4"),
    ],
)
def test_split_at_gives_the_shortest_halves(text, n, outer, inner):
    assert tuple(map(str, m(text).split_at(n))) == (outer, inner)


def test_halves_of_a_group_go_on_with_the_groups_other_digits():
    axes = Axes(A=5, B=2, C=12)
    group = "[A, C / 6, C % 6, B] # 128"  # 12 positions of C do not divide the blocks of 32
    time, packet = axes.mapping(f"{group} / 32"), axes.mapping(f"{group} % 32")
    for n in (1, 2, 4):
        assert pair(*time.split_at(n), packet).equivalent(axes.mapping(group))


def test_a_split_that_does_not_divide_is_refused():
    with pytest.raises(RuleViolation) as refusal:
        m("A, B").split_at(3)
    assert refusal.value.rule == "MAP-010"


@pytest.mark.parametrize(
    ("text", "short"),
    [
        ("K % 8 % 4, 1, A / 1", "K % 4, A"),
        ("A / 8, A % 8", "A"),
        ("K / 2 / 4 % 8", "K / 8 % 8"),
        ("C # 14 # 16", "C # 16"),
        ("C # 16 = 14", "C # 14"),
        ("[A, B] # 256", "A # 32, B"),
        ("A = 1 # 16, B", "1 # 16, B"),
    ],
)
def test_simplified_text(text, short):
    assert str(simplify(m(text))) == short


@pytest.mark.parametrize(
    ("whole", "part", "rest"),
    [
        ("A, B", "B % 4", "A, B / 4"),
        ("A / 4, B, A % 4", "A", "B"),
        ("C # 16 / 4, B, C # 16 % 4", "C # 16", "B"),
        ("4, B", "2", "2, B"),
        ("K / 64, A, K % 64", "K / 8 % 16", "K / 128, A, K % 8"),
    ],
)
def test_exact_division_carves_digits_out(whole, part, rest):
    assert str(m(whole).divide(m(part))) == rest
    assert m(whole).contains(m(part))


@pytest.mark.parametrize(("whole", "part"), [("A, B", "K"), ("A % 4, B", "A"), ("B", "2"), ("C # 16, B", "C % 4")])
def test_division_by_something_else_is_refused(whole, part):
    assert not m(whole).contains(m(part))
    with pytest.raises(RuleViolation) as refusal:
        m(whole).divide(m(part))
    assert refusal.value.rule == "MAP-023"


def test_relaxed_division_takes_padding_and_shortened_axes_along():
    assert str(m("C # 16, B").divide_relaxed(m("C"))) == "B"
    assert str(m("C, B").divide_relaxed(m("C # 16"))) == "B"
    assert str(m("K, B").divide_relaxed(m("K = 100"))) == "B"


def test_permutations():
    assert m("B / 4, C # 16 % 4, C # 16 / 4, B % 4").is_permutation_of(m("C # 16, B"))
    assert m("A # 32, B").is_permutation_of(m("B # 16, A"))
    assert not m("A / 2, B").is_permutation_of(m("A % 8, B"))


def test_repetition():
    assert m("A / 4, B, A % 4 # 8").is_broadcast_free
    assert m("1 # 8, A").is_broadcast_free
    assert not m("2, A").is_broadcast_free
    assert not m("A, A").is_broadcast_free


def test_live_positions_are_counted_without_being_visited():
    assert m("N # 2000000000, C # 16").live_size == 2**30 * 12
    assert m("C # 16 % 8, N, C # 16 / 8").live_size == 2**30 * 12

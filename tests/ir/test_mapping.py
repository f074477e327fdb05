"""Mapping expressions: constructors, cells, text, copies. Expected values are the manual's."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from tcptune.errors import RuleViolation
from tcptune.ir.mappings.axes import Axes
from tcptune.ir.mappings.cells import OUT_OF_BOUNDS, Index, PaddingCell, joint_slabs, joint_table
from tcptune.ir.mappings.mapping import IDENTITY, Broadcast, Padding, PadKind, Pair, Symbol, factors, pair

AXES = Axes(A=8, B=512, C=13, D=61, R=12)


def m(text: str, axes: Axes = AXES):
    return axes.mapping(text)


def test_equal_trees_are_the_same_object():
    assert m("[A, B] # 8192") is m("[ A ,B ]#8192")
    assert m("A, B") is Pair(Symbol("A", 8), Symbol("B", 512))


def test_symbols_of_different_sizes_are_different():
    assert Symbol("A", 8) is not Symbol("A", 9)


def test_position_519_of_a_pair_is_row_1_column_7():
    assert m("A, B").cell(519) == Index({"A": 1, "B": 7})


def test_the_position_behind_the_last_is_out_of_bounds():
    assert m("A, B").cell(4096) is OUT_OF_BOUNDS
    assert m("A").cell(-1) is OUT_OF_BOUNDS


def test_padding_keeps_the_row_pitch():
    rows = m("C, D # 64")
    assert rows.size == 13 * 64
    assert rows.cell(60) == Index({"C": 0, "D": 60})
    assert rows.cell(61) == PaddingCell(PadKind.TOP)
    assert rows.cell(64) == Index({"C": 1, "D": 0})


@pytest.mark.parametrize(("mark", "kind"), [("#", PadKind.TOP), ("#{*}", PadKind.TOP), ("#{0}", PadKind.ZERO), ("#{!}", PadKind.BOTTOM)])
def test_every_fill_mark_has_its_kind(mark, kind):
    assert m(f"D {mark} 64").cell(63) == PaddingCell(kind)


def test_the_major_padding_decides_the_kind():
    axes = Axes(A=3, B=3)
    assert m("A # 4, B #{0} 4", axes).cell(15) == PaddingCell(PadKind.TOP)
    assert m("B #{0} 4, A # 4", axes).cell(15) == PaddingCell(PadKind.ZERO)


def test_digits_in_another_order_permute_address_bits():
    assert m("B / 64, B % 32, B / 32 % 2").cell(67) == Index({"B": 97})


def test_digits_of_a_group_are_added_before_it_is_decoded():
    axes = Axes(A=3, B=4)
    assert m("[A, B] / 6, [A, B] % 6", axes).cell(8) == Index({"A": 2, "B": 0})


def test_digits_on_several_levels_are_decoded_together():
    levels = joint_table(m("R # 16 / 8"), m("R # 16 % 8"))
    assert levels.kind.shape == (2, 8)
    assert levels.coords["R"][1, 3] == 11
    assert levels.cell(1, 4) == PaddingCell(PadKind.TOP)


def test_an_axis_named_twice_overshoots_into_padding():
    assert m("A, A").cell(7 * 8 + 1) == PaddingCell(PadKind.TOP)
    assert m("A, A").cell(3 * 8 + 4) == Index({"A": 7})


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("( A,B )#16384/4", "[A, B] # 16384 / 4"),
        ("[A, [B, C]]", "A, B, C"),
        ("A #{*} 8", "A # 8"),
        ("[[A]]", "A"),
        ("B=2#512", "B = 2 # 512"),
        ("A,", "A"),
        ("A, [B % 4 #{!} 8], 1", "A, B % 4 #{!} 8, 1"),
    ],
)
def test_canonical_text(text, canonical):
    assert str(m(text)) == canonical
    assert str(m(canonical)) == canonical


def test_the_tree_keeps_the_nesting_that_the_text_hides():
    assert m("[A, B], C").ast() == ["pair", ["pair", ["symbol", "A"], ["symbol", "B"]], ["symbol", "C"]]


@pytest.mark.parametrize(
    ("text", "rule", "nearest"),
    [
        ("A / 3", "MAP-010", "A # 9 / 3"),
        ("D % 2", "MAP-011", "D # 62 % 2"),
        ("[A, C] / 9", "MAP-010", "[A, C] # 108 / 9"),
        ("A # 4", "MAP-039", "A = 4"),
        ("A = 9", "MAP-039", "A # 9"),
    ],
)
def test_constructors_refuse_with_what_would_be_legal(text, rule, nearest):
    with pytest.raises(RuleViolation) as refusal:
        m(text)
    assert (refusal.value.rule, refusal.value.nearest) == (rule, nearest)
    assert m(nearest).size > 0


def test_pair_drops_identities_and_terms_drop_sizes_of_one():
    assert pair() is IDENTITY
    assert pair(IDENTITY, m("A"), IDENTITY) is m("A")
    assert m("1, A, [1, B], A % 1").terms() == [m("A"), m("B")]
    assert factors(m("[A, [B, C]], D")) == [m("A"), m("B"), m("C"), m("D")]


def test_copies_across_processes_are_the_same_object():
    deep = m("[A, B] # 8192 / 2, 1 #{!} 3, [[C, D], R = 5 # 8] % 4")
    assert pickle.loads(pickle.dumps(deep)) is deep


def test_mappings_cannot_be_changed():
    with pytest.raises(AttributeError):
        m("A").size = 9


def test_sizes_of_named_axes_are_read_off_the_mapping():
    assert m("D # 64, A, D").axes == {"D": 61, "A": 8}


def test_padding_to_a_multiple():
    assert m("R").pad_to_multiple(8) is Padding(Symbol("R", 12), 16)
    assert m("B").pad_to_multiple(64) is m("B")


def test_axes_are_declared_once_with_positive_sizes():
    assert Axes.parse("A=8", "B=512,C=4") == Axes(A=8, B=512, C=4)
    for wrong in ("A=0", "a=3", "A=1,A=2"):
        with pytest.raises(RuleViolation):
            Axes.parse(wrong)


def test_aliases_are_spliced():
    aliases = {"Tile": m("A, B"), "n": 4}
    assert AXES.mapping("{Tile} / {n}", aliases) is m("[A, B] / 4")
    assert AXES.mapping("{Tile}, C # {n}4".replace("{n}4", "16"), aliases) is Pair(m("A, B"), m("C # 16"))
    assert Broadcast(1) is AXES.mapping(1)


@pytest.mark.parametrize("most", [1, 3, 8, 64, 1 << 20])
@pytest.mark.parametrize(
    ("axes", "texts"),
    [
        ({"A": 6, "B": 8}, ["A", "B"]),
        ({"A": 5, "B": 8}, ["A # 8, B / 4", "B % 4 #{0} 6", "2"]),
        ({"A": 12}, ["1 # 4", "A / 3", "A % 3"]),
        ({"A": 1}, ["A"]),
        ({"A": 40}, ["[A] % 8", "A / 8 # 7"]),
    ],
)
def test_slabs_of_a_joint_table_laid_end_to_end_are_the_table(axes, texts, most):
    parts = [Axes(axes).mapping(text) for text in texts]
    whole = joint_table(*parts)
    at = 0
    for start, cells in joint_slabs(*parts, most_positions=most):
        assert start == at
        count = len(cells.kind)
        assert 1 <= count <= most
        assert (cells.kind == whole.kind.reshape(-1)[at : at + count]).all()
        for name, coordinates in whole.coords.items():
            assert (cells.coords.get(name, np.zeros(count)) == coordinates.reshape(-1)[at : at + count]).all()
        at += count
    assert at == whole.kind.size


@pytest.mark.parametrize(
    ("text", "nearest"),
    [
        ("A / 240", "A / 256"),
        ("A % 240", "A % 256"),
        ("A / 3", "A # 65538 / 3"),
        ("A / 1000", "A / 1024"),
        ("A / 1200", "A # 66000 / 1200"),
    ],
)
def test_a_divisor_up_to_an_eighth_larger_is_tried_before_padding(text, nearest):
    with pytest.raises(RuleViolation) as refusal:
        Axes(A=65536).mapping(text)
    assert refusal.value.nearest == nearest

"""Garbage in: every text is refused in well under a second with the rule and the column, never by a crash."""

from __future__ import annotations

import time

import pytest

from tcptune.errors import ParseError, RuleViolation, TcptuneError
from tcptune.ir.mappings.axes import Axes

AXES = Axes(A=2, B=3, U=1)


@pytest.mark.parametrize(
    ("text", "rule", "column"),
    [
        ("", "MAP-018", 0),
        ("A / ", "MAP-018", 4),
        ("A / B", "MAP-018", 4),
        ("A, , B", "MAP-018", 3),
        ("A #{1} 8", "MAP-018", 2),
        ("A #", "MAP-018", 3),
        ("[A", "MAP-018", 0),
        ("A]", "MAP-018", 1),
        ("[A)", "MAP-018", 2),
        ("A B", "MAP-018", 2),
        ("A # -1", "MAP-018", 4),
        ("Ä", "MAP-018", 0),
        ("A, Q", "MAP-003", 3),
        ("a", "MAP-003", 0),
        ("{x}", "MAP-017", 1),
        ("A # " + "9" * 5000, "MAP-018", 4),
    ],
)
def test_the_column_of_the_offence_is_named(text, rule, column):
    with pytest.raises(ParseError) as refusal:
        AXES.mapping(text)
    assert (refusal.value.rule, refusal.value.column) == (rule, column)
    assert "^" in refusal.value.render()


@pytest.mark.parametrize(
    "text",
    [
        "[" * 10_000 + "A" + "]" * 10_000,
        "A, " * 350_000,
        "A" + " # 9" * 1000,
        "A" + " / 1" * 20_000,
        "(" * 257 + "A" + ")" * 257,
        ", ".join(["B"] * 60),
        "A # 999999999999999999, B # 999999999999999999",
        "A / 0",
        "A % 0",
        "0",
        "\0",
    ],
)
def test_huge_and_deep_texts_are_refused_quickly(text):
    begin = time.perf_counter()
    with pytest.raises(TcptuneError) as refusal:
        AXES.mapping(text)
    assert time.perf_counter() - begin < 1
    assert len(refusal.value.render()) < 2000


def test_nesting_beyond_256_is_refused_as_such():
    assert AXES.mapping("[" * 256 + "A" + "]" * 256) is AXES.mapping("A")
    with pytest.raises(ParseError, match="deeper than 256"):
        AXES.mapping("[" * 257 + "A" + "]" * 257)
    with pytest.raises(RuleViolation, match="deeper than 256"):
        AXES.mapping("A" + "".join(f" # {n}" for n in range(3, 300)))


def test_the_deepest_and_the_longest_legal_texts_go_through_the_whole_algebra():
    texts = [
        "[" * 250 + "A" + ", U]" * 250,
        "A" + "".join(f" # {n}" for n in range(3, 257)),
        "[" * 120 + "A" + ", U] # 3" + "".join(f", U] # {n}" for n in range(4, 123)),
        "U, " * 20_000 + "A",
    ]
    for text in texts:
        mapping = AXES.mapping(text)
        assert AXES.mapping(str(mapping)).equivalent(mapping)
        assert mapping.split_at(mapping.size)[1].equivalent(mapping)
        assert mapping.live_size == 2
        assert mapping.cell(1).to_json()["A"] == 1
        assert len(mapping.ast()) > 1
        assert mapping.normal_form().size == mapping.size

"""Integer formulas of fills and tile starts."""

import numpy as np
import pytest

from tcptune.errors import ParseError
from tcptune.ir.formula import evaluate


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("7", 7),
        ("2*3+1", 7),
        ("2*(3+1)", 8),
        ("-3 + 5", 2),
        ("-(2*3)", -6),
        ("17 % 5", 2),
        ("17 / 5", 3),
        ("2 - 3 - 4", -5),
        ("pair*2+1", 9),
    ],
)
def test_arithmetic_follows_the_usual_precedence(text, value):
    assert evaluate(text, {"pair": 4}) == value


def test_remainders_of_negative_numbers_are_not_negative():
    assert evaluate("(0-7) % 5", {}) == 3


def test_arrays_are_computed_elementwise():
    i, j = np.indices((3, 4))
    assert np.array_equal(evaluate("10*I + J % 3", {"I": i, "J": j}), 10 * i + j % 3)


@pytest.mark.parametrize("text", ["", "2 +", "2 2", "(1", "x", "1 / 0", "3 % (2)x", "__import__", "1" * 40, "(" * 200])
def test_anything_else_points_at_its_column(text):
    with pytest.raises(ParseError) as caught:
        evaluate(text, {"y": 1})
    assert 0 <= caught.value.column <= len(text)

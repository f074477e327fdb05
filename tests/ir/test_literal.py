"""Index literals (MAP-016)."""

import pytest

from tcptune.errors import ParseError
from tcptune.ir.mappings.axes import Axes
from tcptune.ir.mappings.cells import OUT_OF_BOUNDS, Index, PaddingCell
from tcptune.ir.mappings.literal import parse_literal
from tcptune.ir.mappings.mapping import PadKind

AXES = Axes(A=8, B=512, R=12)


@pytest.mark.parametrize(
    ("text", "cell"),
    [
        ("B / 64: 2, B % 64: 2", Index({"B": 130})),
        ("A: 1, B: 7", Index({"A": 1, "B": 7})),
        ("R # 16 / 8: 1, R # 16 % 8: 3", Index({"R": 11})),
        ("R # 16 / 8: 1, R # 16 % 8: 4", PaddingCell(PadKind.TOP)),
        ("A: 8", OUT_OF_BOUNDS),
        ("A: 1, B: 512", OUT_OF_BOUNDS),
        ("A #{0} 9: 8, B: 512", PaddingCell(PadKind.ZERO)),
        ("B: 512, A #{0} 9: 8", OUT_OF_BOUNDS),
        ("[A, R] # 100: 97", PaddingCell(PadKind.TOP)),
    ],
)
def test_assignments_combine_major_first(text, cell):
    assert parse_literal(text, AXES) == cell


@pytest.mark.parametrize("text", ["", "A", "A:", "A: x", "Q: 1", "A: 1,, B: 2"])
def test_garbage_is_refused_with_its_column(text):
    with pytest.raises(ParseError):
        parse_literal(text, AXES)

"""Index literals ``B / 64: 2, B % 64: 2``: cells written as values of expressions (MAP-016)."""

from __future__ import annotations

from collections.abc import Sequence

from tcptune.errors import ParseError
from tcptune.ir.mappings.axes import Axes
from tcptune.ir.mappings.cells import OUT_OF_BOUNDS, Cell, PaddingCell, cell, pair_list
from tcptune.ir.mappings.linear import split_list
from tcptune.ir.mappings.mapping import IDENTITY, Mapping


def literal_cell(assignments: Sequence[tuple[Mapping, int]]) -> Cell:
    """The cell that the assignments make together, the first one most major: `expression` at position `value` each.

    A value at or beyond the size of its expression makes the whole cell out of bounds, unless padding before it decides.
    """
    position = 0
    mappings: list[Mapping] = []
    for mapping, value in assignments:
        if not 0 <= value < mapping.size:
            before = cell(pair_list(mappings or [IDENTITY]), position)
            return before if isinstance(before, PaddingCell) else OUT_OF_BOUNDS
        position = position * mapping.size + value
        mappings.append(mapping)
    return cell(pair_list(mappings or [IDENTITY]), position)


def parse_literal(text: str, axes: Axes) -> Cell:
    """The cell that `text` writes, e.g. ``A: 1, B / 64: 2``.

    Raises:
        ParseError: not of that form; carries the column. RuleViolation: an expression is refused.
    """
    assignments = []
    for column, part in split_list(text):
        expression, colon, value = part.rpartition(":")
        if not colon or not value.strip().isdecimal() or len(value.strip()) > 18:
            raise ParseError(text, column, f"expected expression: value, got {part.strip()[:40]!r}", rule="MAP-016")
        assignments.append((axes.mapping(expression), int(value)))
    return literal_cell(assignments)

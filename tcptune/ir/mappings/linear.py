"""Linear combinations ``$(e1:n1, …, ed:nd)``: dimensions with explicit strides, which may meet at a position (SEM-004 to SEM-006).

A position s relates to an index t when there are positions s_k of e_k with ``s = sum(s_k * n_k)`` and t the sum of the indices that the e_k
hold at s_k. Sliding windows make several indices meet at one position, gaps leave positions without any.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from tcptune.errors import ParseError, RuleViolation, WorkError
from tcptune.ir.mappings.axes import Axes
from tcptune.ir.mappings.cells import Index
from tcptune.ir.mappings.mapping import MAX_SIZE, Mapping, right_spine

MAX_TERMS = 64
"""Dimensions of a combination at most; far more than any tensor has."""

MAX_WAYS = 4096
"""Ways that may lead to one position before their indices are no longer listed."""

_FORM = re.compile(r"\s*\$\s*\((.*)\)\s*\Z", re.DOTALL)


@dataclass(frozen=True)
class LinearCombination:
    """Dimensions with strides.

    Attributes:
        terms: (mapping, stride in positions), in written order.
    """

    terms: tuple[tuple[Mapping, int], ...]

    def __post_init__(self) -> None:
        for mapping, stride in self.terms:
            if stride < 1:
                raise RuleViolation("SEM-004", f"the stride of {mapping} must be a positive whole number", got=stride)
        if len(self.terms) > MAX_TERMS:
            raise RuleViolation(
                "SEM-004", "the linear combination has too many dimensions", expected=f"at most {MAX_TERMS}", got=len(self.terms)
            )
        if self.size > MAX_SIZE:
            raise RuleViolation("SEM-004", "the linear combination has more than 2^62 positions", got=self)

    @property
    def size(self) -> int:
        """``1 + sum((|e_k| - 1) * n_k)`` positions."""
        return 1 + sum((m.size - 1) * n for m, n in self.terms)

    def __str__(self) -> str:
        inner = ", ".join(f"{f'[{m}]' if ',' in str(m) else m}:{n}" for m, n in self.terms)
        return f"$({inner})"

    def indices(self, position: int) -> list[dict[str, int]]:
        """All indices that relate to `position`, sorted by their coordinates in the order of the terms.

        Costs time proportional to the positions of all terms but the last, pruned by what the rest can still reach.

        Raises:
            WorkError: too many ways lead to the position.
        """
        names = list(dict.fromkeys(name for m, _ in self.terms for name in m.axes))
        found = []
        for places in self._places(position):
            index = dict.fromkeys(names, 0)
            for (mapping, _), place in zip(self.terms, places, strict=True):
                cell = mapping.cell(place)
                if not isinstance(cell, Index):
                    break
                for name, value in cell.coords.items():
                    index[name] += value
            else:
                found.append(index)
        return sorted(found, key=lambda index: tuple(index.values()))

    def _places(self, position: int) -> list[tuple[int, ...]]:
        """Every choice of a place in each term that sums up to `position`."""
        partial: list[tuple[int, tuple[int, ...]]] = [(position, ())]  # what is left of the position, the places so far
        reach = self.size - 1
        for mapping, stride in self.terms:
            reach -= (mapping.size - 1) * stride
            ranges = [range(max(0, -(-(left - reach) // stride)), min(mapping.size - 1, left // stride) + 1) for left, _ in partial]
            if sum(len(r) for r in ranges) > MAX_WAYS:
                raise WorkError(f"more than {MAX_WAYS:,} ways lead to position {position} of {str(self)[:60]}")
            partial = [(left - place * stride, (*places, place)) for (left, places), r in zip(partial, ranges, strict=True) for place in r]
        return [places for left, places in partial if left == 0]

    def is_one_to_one(self) -> bool:
        """Whether no position relates to two indices: sorted by stride, each step passes the reach of the smaller ones."""
        reach = 0
        for mapping, stride in sorted(self.terms, key=lambda term: term[1]):
            if mapping.size > 1:
                if stride <= reach:
                    return False
                reach += (mapping.size - 1) * stride
        return True


def outer_product(m: Mapping) -> LinearCombination:
    """A pair list as a linear combination: ``e1, e2`` is ``$(e1:|e2|, e2:1)`` (SEM-005)."""
    terms = []
    stride = 1
    for member in reversed(right_spine(m)):
        terms.append((member, stride))
        stride *= member.size
    return LinearCombination(tuple(reversed(terms)))


def parse_linear(text: str, axes: Axes) -> LinearCombination:
    """The linear combination that `text` writes, e.g. ``$(N:1, F:2)``.

    Raises:
        ParseError: not of that form; carries the column. RuleViolation: a mapping or a stride is refused.
    """
    match = _FORM.match(text)
    if match is None:
        raise ParseError(text, 0, "a linear combination is written $(mapping:stride, …)", rule="SEM-004")
    terms = []
    for start, part in split_list(match.group(1)):
        mapping, colon, stride = part.rpartition(":")
        column = match.start(1) + start
        if not colon or not stride.strip().isdecimal() or len(stride.strip()) > 18:
            raise ParseError(text, column, f"expected mapping:stride, got {part.strip()[:40]!r}", rule="SEM-004")
        terms.append((axes.mapping(mapping), int(stride)))
    return LinearCombination(tuple(terms))


def split_list(text: str) -> Iterator[tuple[int, str]]:
    """Pieces between the commas outside brackets, with their columns."""
    depth = start = 0
    for place, character in enumerate(text):
        if character in "[({":
            depth += 1
        elif character in "])}":
            depth -= 1
        elif character == "," and depth == 0:
            yield start, text[start:place]
            start = place + 1
    yield start, text[start:]

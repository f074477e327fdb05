"""Exact reasoning about cells by case splitting: the position as mixed-radix digits, cells as linear forms of them.

A case is a box: the position is ``base + sum(stride_k * d_k)`` with independent digits ``0 <= d_k < extent_k``. Walking a mapping over
a box keeps every quantity a linear form of the digits. Dividing a form by a constant splits a digit in two (``d = f * high + low``),
which keeps the box; a comparison or a carry that the box does not decide cuts the box in two. On a box where nothing is left undecided,
the cell is one kind of padding or one linear form an axis, so two mappings are compared without looking at positions. The number of boxes
depends on how many boundaries the mappings have, not on their sizes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import gcd, prod
from typing import NamedTuple, TypeVar

from tcptune.errors import WorkError
from tcptune.ir.mappings.cells import next_operand, operand_key, strip_digits
from tcptune.ir.mappings.mapping import Broadcast, Mapping, Padding, PadKind, Pair, Resize, Symbol, factors

MAX_EFFORT = 30_000
"""Digits that all boxes of one question may have together before it is given up (about a second); only mappings with large coprime
boundaries or dozens of overlapping digits come near it."""


class Form(NamedTuple):
    """``const + sum(terms[digit] * digit)`` with positive coefficients."""

    const: int
    terms: dict[int, int]


class Outcome(NamedTuple):
    """The cell of a whole box: a padding kind, or (kind None) coordinates by axis name."""

    kind: PadKind | None
    coords: dict[str, Form]


class Undecided(Exception):
    """The box must be cut at `at` along `digit`."""

    def __init__(self, digit: int, at: int) -> None:
        super().__init__()
        self.digit = digit
        self.at = at


class Box:
    """One case. `extents[d]` is the extent of digit d; `halves[d]` is (factor, high digit, low digit) once d was split (-1: none)."""

    __slots__ = ("extents", "halves", "position")

    def __init__(self, base: int, digits: list[tuple[int, int]]) -> None:
        self.extents: list[int] = []
        self.halves: dict[int, tuple[int, int, int]] = {}
        terms = {}
        for stride, extent in digits:
            if extent > 1:
                terms[self._digit(extent)] = stride
        self.position = Form(base, terms)

    def _digit(self, extent: int) -> int:
        if extent == 1:
            return -1
        self.extents.append(extent)
        return len(self.extents) - 1

    @property
    def volume(self) -> int:
        """Number of positions."""
        return prod(self.extents[d] for d in self.leaves(self.position).terms)

    def leaves(self, form: Form) -> Form:
        """The same form over digits that are not split."""
        halves = self.halves
        if not any(d in halves for d in form.terms):
            return form
        terms: dict[int, int] = {}
        stack = list(form.terms.items())
        while stack:
            digit, coefficient = stack.pop()
            split = halves.get(digit)
            if split is None:
                terms[digit] = terms.get(digit, 0) + coefficient
                continue
            factor, high, low = split
            if high >= 0:
                stack.append((high, coefficient * factor))
            if low >= 0:
                stack.append((low, coefficient))
        return Form(form.const, terms)

    def divide(self, form: Form, n: int) -> tuple[Form, Form]:
        """Quotient and remainder of the form by `n`; splits digits where needed."""
        quotient_const, remainder_const = divmod(form.const, n)
        quotient: dict[int, int] = {}
        remainder: dict[int, int] = {}
        largest = remainder_const
        for digit, coefficient in self.leaves(form).terms.items():
            if coefficient % n == 0:
                quotient[digit] = coefficient // n
                continue
            extent = self.extents[digit]
            if coefficient * (extent - 1) >= n:
                digit, extent = self._aligned(digit, extent, coefficient, n, quotient)
                if digit < 0:
                    continue
            whole, rest = divmod(coefficient, n)
            if whole:
                quotient[digit] = quotient.get(digit, 0) + whole
            remainder[digit] = rest
            largest += rest * (extent - 1)
        if largest >= n:
            raise self._cut(Form(remainder_const, remainder), n)
        return Form(quotient_const, quotient), Form(remainder_const, remainder)

    def _aligned(self, digit: int, extent: int, coefficient: int, n: int, quotient: dict[int, int]) -> tuple[int, int]:
        """Splits off the part of the digit whose steps are multiples of `n`; returns the low part and its extent."""
        factor = n // gcd(coefficient, n)
        if extent <= factor:
            return digit, extent
        if extent % factor:
            raise Undecided(digit, extent - extent % factor)
        high, low = self._digit(extent // factor), self._digit(factor)
        self.halves[digit] = (factor, high, low)
        if high >= 0:
            quotient[high] = coefficient * factor // n
        return low, factor

    def below(self, form: Form, bound: int) -> bool:
        """Whether the form is below `bound` everywhere in the box; False if nowhere."""
        if form.const >= bound:
            return False
        leaves = self.leaves(form)
        extents = self.extents
        if form.const + sum(c * (extents[d] - 1) for d, c in leaves.terms.items()) < bound:
            return True
        raise self._cut(leaves, bound)

    def _cut(self, form: Form, bound: int) -> Undecided:
        """Where to cut so that fewer digits decide whether the form is below `bound`; looks at the largest coefficient first."""
        order = sorted(form.terms.items(), key=lambda item: (-item[1], item[0]))
        spread = sum(c * (self.extents[d] - 1) for d, c in order)
        room = bound - form.const
        for digit, coefficient in order:
            if coefficient == 0:
                continue
            extent = self.extents[digit]
            beyond = -(-room // coefficient)  # from here on the form reaches the bound
            if 0 < beyond < extent:
                return Undecided(digit, beyond)
            within = (room - 1 - spread + coefficient * (extent - 1)) // coefficient + 1  # up to here it stays below
            if 0 < within < extent:
                return Undecided(digit, within)
        digit = order[0][0]
        return Undecided(digit, self.extents[digit] // 2)

    def cut_at(self, cut: Undecided) -> tuple[Box, Box]:
        """The two boxes below and from the cut on."""
        leaves = self.leaves(self.position)
        lower, upper = [], []
        base = leaves.const
        for digit, stride in leaves.terms.items():
            extent = self.extents[digit]
            if digit == cut.digit:
                lower.append((stride, cut.at))
                upper.append((stride, extent - cut.at))
                base += stride * cut.at
            else:
                lower.append((stride, extent))
                upper.append((stride, extent))
        return Box(leaves.const, lower), Box(base, upper)


class _Walk:
    """One evaluation of a mapping over a box (the two stages of `tcptune.ir.mappings.cells`)."""

    __slots__ = ("box", "coords", "pending")

    def __init__(self, box: Box) -> None:
        self.box = box
        self.coords: dict[Symbol, Form] = {}
        self.pending: dict[Mapping, Form] = {}

    def stage1(self, m: Mapping, position: Form) -> PadKind | None:
        """Walks `m`; returns the kind of the first padding met."""
        if not isinstance(m, Pair):
            return self._member(m, position)
        members = factors(m)
        digits: list[Form] = []
        for member in reversed(members[1:]):
            position, digit = self.box.divide(position, member.size)
            digits.append(digit)
        digits.append(position)
        for member in members:
            kind = self._member(member, digits.pop())
            if kind is not None:
                return kind
        return None

    def _member(self, m: Mapping, position: Form) -> PadKind | None:
        while isinstance(m, (Padding, Resize)):
            if isinstance(m, Padding) and m.inner.size < m.n and not self.box.below(position, m.inner.size):
                return m.kind
            m = m.inner
        if isinstance(m, Broadcast):
            return None
        if isinstance(m, Pair):
            return self.stage1(m, position)
        operand, weight = strip_digits(m)
        if weight != 1:
            position = Form(position.const * weight, {d: c * weight for d, c in position.terms.items()})
        if isinstance(operand, Symbol):
            known = self.coords.get(operand)
            self.coords[operand] = position if known is None else self._sum(known, position)
        else:
            operand = operand_key(operand)
            known = self.pending.get(operand)
            self.pending[operand] = position if known is None else self._sum(known, position)
        return None

    def _sum(self, a: Form, b: Form) -> Form:
        a, b = self.box.leaves(a), self.box.leaves(b)
        terms = dict(a.terms)
        for digit, coefficient in b.terms.items():
            terms[digit] = terms.get(digit, 0) + coefficient
        return Form(a.const + b.const, terms)

    def finish(self) -> PadKind | None:
        """Decodes the pending operands and checks coordinates against axis sizes."""
        while self.pending:
            operand = next(iter(self.pending)) if len(self.pending) == 1 else next_operand(self.pending)
            position = self.pending.pop(operand)
            if not self.box.below(position, operand.size):
                return PadKind.TOP
            kind = self.stage1(operand, position)
            if kind is not None:
                return kind
        for axis, coordinate in self.coords.items():
            if not self.box.below(coordinate, axis.size):
                return PadKind.TOP
        return None


def evaluate(box: Box, m: Mapping, position: Form | None = None) -> Outcome:
    """The cell of `m` on the whole box, at the box's position or at a form of its digits.

    Raises:
        Undecided: the box holds different cells; where to cut it.
    """
    walk = _Walk(box)
    kind = walk.stage1(m, box.position if position is None else position)
    if kind is None:
        kind = walk.finish()
    if kind is not None:
        return Outcome(kind, {})
    return Outcome(None, {axis.name: form for axis, form in walk.coords.items()})


_T = TypeVar("_T")


def explore(size: int, question: Callable[[Box], _T]) -> Iterator[tuple[Box, _T]]:
    """Boxes that cover all positions below `size`, each with the answer to `question`, which may raise `Undecided`.

    Raises:
        WorkError: more than `MAX_EFFORT`.
    """
    waiting = [Box(0, [(1, size)])]
    effort = 0
    while waiting:
        box = waiting.pop()
        try:
            answer = question(box)
        except Undecided as cut:
            effort += 1 + len(box.extents)
            if effort > MAX_EFFORT:
                raise WorkError("the mapping has too many boundaries", hint="its digits do not line up with each other") from None
            waiting.extend(reversed(box.cut_at(cut)))
            continue
        yield box, answer


def same_cells(a: Mapping, b: Mapping) -> bool:
    """Whether two mappings of the same size have the same cell at every position.

    Raises:
        WorkError: more than `MAX_EFFORT`.
    """
    for box, (first, second) in explore(a.size, lambda box: (evaluate(box, a), evaluate(box, b))):
        if first.kind is not second.kind:
            return False
        if first.kind is None and _coordinates(box, first) != _coordinates(box, second):
            return False
    return True


def first_difference(a: Mapping, b: Mapping) -> int | None:
    """The first position at which two mappings have different cells; None if there is none.

    Raises:
        WorkError: more than `MAX_EFFORT`.
    """
    common = min(a.size, b.size)
    best: int | None = common if a.size != b.size else None
    for box, (first, second) in explore(common, lambda box: (evaluate(box, a), evaluate(box, b))):
        if first.kind is not second.kind:
            found = box.position.const
        elif first.kind is None and _coordinates(box, first) != _coordinates(box, second):
            found = _first_in_box(box, first, second)
        else:
            continue
        best = found if best is None else min(best, found)
    return best


def _first_in_box(box: Box, first: Outcome, second: Outcome) -> int:
    """First position of a box on which the coordinates are different forms."""
    position = box.leaves(box.position)
    steps = []
    zero = Form(0, {})
    for name in {*first.coords, *second.coords}:
        x, y = box.leaves(first.coords.get(name, zero)), box.leaves(second.coords.get(name, zero))
        if x.const != y.const:
            return position.const
        steps += [position.terms[d] for d in {*x.terms, *y.terms} if x.terms.get(d, 0) != y.terms.get(d, 0)]
    return position.const + min(steps)


def _coordinates(box: Box, outcome: Outcome) -> dict[str, Form]:
    """Coordinates over unsplit digits; an axis that is 0 throughout is left out, for it equals one that is not mentioned."""
    found = {}
    for name, form in outcome.coords.items():
        leaves = box.leaves(form)
        if leaves.const or leaves.terms:
            found[name] = leaves
    return found

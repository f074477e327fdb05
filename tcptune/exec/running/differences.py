"""How far results may be from their reference (ORACLE-009), and what is told of the cells that are further."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tcptune.ir.kernels.kernel import Tolerance

Floats = npt.NDArray[np.float64]

_FIGURES = (6, 9, 12, 17)
"""Significant figures that are tried: what people read, enough for f32, more, enough for float64."""

_WHOLE = 2.0**53
"""Whole numbers below are exact in float64 and written in full."""


def in_force(tolerance: Tolerance, *, integers: bool) -> Tolerance:
    """The tolerance that counts: none of a kernel covers integers that are computed from integers, a wrong one is a wrong kernel."""
    return Tolerance(form="exact") if integers else tolerance


def allowance(want: Floats, tolerance: Tolerance, bound: Floats | float = 0.0) -> Floats:
    """How far a result may be from `want` (ORACLE-009): the tolerance, or `bound` where that is wider; nothing if exact."""
    if tolerance.form == "exact":
        return np.zeros_like(want)
    relative = tolerance.rel * np.abs(want)
    return np.maximum(np.maximum(relative, tolerance.abs) if tolerance.form == "max" else tolerance.abs + relative, bound)


def within(got: Floats, want: Floats, tolerance: Tolerance, bound: Floats | float = 0.0) -> npt.NDArray[np.bool_]:
    """Where `got` is close enough to `want`, see `allowance`. Equal infinities and NaN agree."""
    same = (got == want) | (np.isnan(got) & np.isnan(want))
    with np.errstate(invalid="ignore"):
        close = np.abs(got - want) <= allowance(want, tolerance, bound)
    return np.asarray(same | close)


@dataclass(frozen=True)
class FailingCell:
    """A cell of a result beyond its tolerance: the index of each axis, what was found, what the oracle expects."""

    result: str
    at: tuple[tuple[str, int], ...]
    got: float
    expected: float

    def __str__(self) -> str:
        where = ", ".join(f"{axis} = {index}" for axis, index in self.at) or "the only cell"
        got, expected = told_apart(self.got, self.expected)
        return f"{self.result} at {where}: got {got}, expected {expected}"

    def to_json(self) -> dict[str, object]:
        """The cell of documents; JSON has no infinities and no NaN, so these are texts."""
        values = {"got": self.got, "expected": self.expected}
        return {"result": self.result, "at": dict(self.at), **{k: v if math.isfinite(v) else str(v) for k, v in values.items()}}


def number_text(value: float, figures: int = _FIGURES[0]) -> str:
    """Whole numbers in full, others with so many significant figures.

    >>> number_text(1511470.0), number_text(0.1 + 0.2), number_text(1e30)
    ('1511470', '0.3', '1e+30')
    """
    return str(int(value)) if value.is_integer() and abs(value) < _WHOLE else f"{value:.{figures}g}"


def told_apart(first: float, second: float) -> tuple[str, str]:
    """Both numbers with the fewest figures that show a difference between them.

    >>> told_apart(1.0000001, 1.00000013)
    ('1.0000001', '1.00000013')
    """
    texts = ("", "")
    for figures in _FIGURES:
        texts = number_text(first, figures), number_text(second, figures)
        if texts[0] != texts[1]:
            break
    return texts

"""Outcomes of comparisons with an oracle: of one run, and of all runs of a kernel (ORACLE-001, ORACLE-009, ORACLE-011)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tcptune.errors import WorkError
from tcptune.exec.running.differences import FailingCell, number_text


@dataclass(frozen=True)
class ClosestCell:
    """The cell whose difference is the largest share of what it is allowed; `allowed` is above 0, in units of the result."""

    cell: FailingCell
    allowed: float

    @property
    def share(self) -> float:
        """Difference over allowance; 1 is the limit."""
        return abs(self.cell.got - self.cell.expected) / self.allowed

    def __str__(self) -> str:
        error = number_text(abs(self.cell.got - self.cell.expected))
        return f"largest difference {100 * self.share:.3g} % of what is allowed, {error} of {number_text(self.allowed)} ({self.cell})"

    def to_json(self) -> dict[str, Any]:
        return {**self.cell.to_json(), "allowed": self.allowed, "share": self.share}


@dataclass(frozen=True)
class OracleReport:
    """Outcome of one comparison.

    Attributes:
        compared: live cells compared.
        undefined: live cells that hold nothing known.
        wrong: cells beyond the tolerance.
        worst: the cell furthest beyond it, as text.
        max_error: largest absolute difference.
        max_relative_error: largest difference relative to a reference that is not 0.
        not_compared: results of the kernel for which the oracle has no form.
        max_bound_share: largest difference as a share of what is allowed in its cell; 1 is the limit. A cell that is further off
            and passes because it holds the reference as it is stored does not count.
        cell: the wrong cell that `worst` tells of, None if all agree.
        closest: the cell that `max_bound_share` is of, None where nothing but equality is allowed.
        tolerance_ignored: the kernel has a tolerance, and a result is of integers computed from integers, which it does not cover.
    """

    compared: int
    undefined: int
    wrong: int
    worst: str
    max_error: float
    max_relative_error: float = 0.0
    not_compared: tuple[str, ...] = ()
    max_bound_share: float = 0.0
    cell: FailingCell | None = None
    closest: ClosestCell | None = None
    tolerance_ignored: bool = False

    @property
    def passed(self) -> bool:
        """Whether something was compared, and all of it agrees."""
        return self.compared > 0 and not self.wrong and not self.undefined

    def __str__(self) -> str:
        rest = f"; not compared: {', '.join(self.not_compared)}" if self.not_compared else ""
        if self.passed:
            return f"{self.compared} cells agree, largest difference {number_text(self.max_error)}{rest}"
        if not self.compared:
            return f"the result has no live cell to compare{rest}"
        return f"{self.wrong} of {self.compared} cells differ, {self.undefined} are undefined; {self.worst}{rest}"


@dataclass(frozen=True)
class OracleRun:
    """One comparison: how the inputs were drawn, with which seed, and the outcome."""

    how: str
    seed: int
    report: OracleReport

    def to_json(self) -> dict[str, Any]:
        """An entry of ``failures``: the input set, and what is wrong with its results."""
        report = self.report
        counts = {"compared": report.compared, "wrong": report.wrong, "undefined": report.undefined}
        cell = None if report.cell is None else report.cell.to_json()
        return {"inputs": self.how, "seed": self.seed, **counts, "cell": cell, "message": str(report)}


@dataclass(frozen=True)
class Verification:
    """All comparisons of a kernel."""

    runs: tuple[OracleRun, ...]

    @property
    def passed(self) -> bool:
        """Whether there were runs, and all of them passed."""
        return bool(self.runs) and not self.failures

    @property
    def closest(self) -> tuple[OracleRun, ClosestCell] | None:
        """The cell of all runs that comes closest to its limit, or is furthest beyond it, with its run; None where all must be equal."""
        found = [(run, run.report.closest) for run in self.runs if run.report.closest is not None]
        return max(found, key=lambda pair: pair[1].share, default=None)

    @property
    def tolerance_ignored(self) -> bool:
        """Whether integers were compared exactly although the kernel has a tolerance."""
        return any(run.report.tolerance_ignored for run in self.runs)

    def margin(self) -> str:
        """In words: the largest difference as a share of what its cell allows, and where; empty if none was allowed and some differ."""
        if self.closest is None:
            return "every cell equals the reference as it is stored, no difference allowed" if self.passed else ""
        run, cell = self.closest
        return f"{cell}, {run.how} inputs"

    @property
    def failures(self) -> tuple[OracleRun, ...]:
        """The runs that did not pass."""
        return tuple(r for r in self.runs if not r.report.passed)

    @property
    def undefined_reads(self) -> int:
        return max((r.report.undefined for r in self.runs), default=0)

    @property
    def not_compared(self) -> tuple[str, ...]:
        """Results of the kernel for which its oracle has no form."""
        return self.runs[0].report.not_compared if self.runs else ()

    def to_json(self) -> dict[str, Any]:
        """The ``oracle`` object of documents: passed, cases, the cell closest to its limit, largest errors, the runs that failed."""
        found = self.closest
        closest = None if found is None else {**found[1].to_json(), "inputs": found[0].how, "seed": found[0].seed}
        return {
            "passed": self.passed,
            "cases": len(self.runs),
            "max_bound_share": max((r.report.max_bound_share for r in self.runs), default=0.0),
            "closest": closest,
            "max_abs_error": max((r.report.max_error for r in self.runs), default=0.0),
            "max_rel_error": max((r.report.max_relative_error for r in self.runs), default=0.0),
            "tolerance_ignored": self.tolerance_ignored,
            "undefined_reads": self.undefined_reads,
            "failures": [run.to_json() for run in self.failures],
        }

    def require(self) -> None:
        """Raises:
        WorkError: the first run that failed.
        """
        if self.failures:
            run = self.failures[0]
            raise WorkError(f"the result differs from the oracle on {run.how} inputs (seed {run.seed}): {run.report}")

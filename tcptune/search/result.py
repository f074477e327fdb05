"""What a search hands over: the best kernel with its schedule, the certificate, the candidates by fate (``search-result/1``)."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, field, fields
from typing import Any

from tcptune.exec.running.verification import Verification
from tcptune.ir.kernels.kernel import Kernel
from tcptune.ir.schedule import Schedule

SCHEMA = "tcptune/search-result/1"


def kernel_hash(text: str) -> str:
    """Hash of what a kernel does: its text form without the first line, its name."""
    _, _, body = text.partition("\n")
    return hashlib.sha256(body.encode()).hexdigest()[:16]


@dataclass(frozen=True, slots=True)
class TraceRow:
    """One improvement of the best plan. `elapsed_s` is wall time since the start of the search."""

    trial: int
    makespan: int
    bound: int
    elapsed_s: float


@dataclass(frozen=True, slots=True)
class OracleSummary:
    """The verdict of every oracle run behind the result: the best plan, the reported candidates and each best on the way.

    `what` says which kernel ran for the best plan, itself or a smaller one of the same structure, and whether smaller ones ran for others.
    """

    passed: bool
    cases: int
    max_abs_error: float
    max_rel_error: float
    undefined_reads: int
    what: str = "the kernel"
    max_bound_share: float = 0.0

    @classmethod
    def of(cls, verifications: Iterable[Verification]) -> OracleSummary:
        """The runs of every verification that passed (a plan that failed its oracle is not part of the result)."""
        whole = Verification(tuple(run for verification in verifications if verification.passed for run in verification.runs))
        told = {f.name for f in fields(cls)}
        return cls(**{name: value for name, value in whole.to_json().items() if name in told})

    def to_json(self) -> dict[str, Any]:
        return {
            "passed": self.passed,
            "cases": self.cases,
            "max_abs_error": self.max_abs_error,
            "max_rel_error": self.max_rel_error,
            "max_bound_share": self.max_bound_share,
            "undefined_reads": self.undefined_reads,
            "what": self.what,
        }


@dataclass(frozen=True, slots=True)
class Fates:
    """Candidates by fate; `enumerated` is the sum of the other four.

    Attributes:
        pruned: placements or tilings that were priced and not compiled: no setting of theirs has a price below the best makespan then.
        duplicates: same kernel as an earlier one (hash of its text without the name).
        rejected: refused by a rule of the machine (see `SearchResult.rejections`).
        scheduled: compiled, with a makespan.
    """

    pruned: int
    duplicates: int
    rejected: int
    scheduled: int

    @property
    def enumerated(self) -> int:
        return self.pruned + self.duplicates + self.rejected + self.scheduled

    def to_json(self) -> dict[str, int]:
        return {
            "enumerated": self.enumerated,
            "pruned": self.pruned,
            "duplicates": self.duplicates,
            "rejected": self.rejected,
            "scheduled": self.scheduled,
        }


@dataclass(frozen=True, repr=False)
class Plan:
    """A compiled candidate.

    Attributes:
        placement: axis → level → size, for instance ``{"i": {"Slice": 64, "Time": 4}}``.
        knobs: name → value of everything the placement leaves open.
        terms: cycles of each part of the makespan (``start``, ``load a``, ``staging``, ``contraction``, ``store`` …), in time order.
        lower_bound: analytic bound of this plan's placement in cycles, never above `makespan`.
    """

    makespan: int
    lower_bound: int
    placement: dict[str, dict[str, int]]
    knobs: dict[str, Any]
    terms: dict[str, int]
    kernel: Kernel
    schedule: Schedule
    busy: dict[str, int]

    def __repr__(self) -> str:
        return f"<Plan of {self.kernel.name}: makespan {self.makespan:,} cycles, lower bound {self.lower_bound:,}>"

    def to_json(self) -> dict[str, Any]:
        """The entry of ``best.top``."""
        return {"makespan": self.makespan, "placement": self.placement, "knobs": self.knobs}


@dataclass(frozen=True, repr=False)
class SearchResult:
    """The outcome of one search.

    Attributes:
        workload: the document's ``workload`` object (einsum, sizes, dtype, out_dtype, layout …).
        default: the plan of the manual's template mapping, or None if the workload has none that is legal.
        what_default: that mapping in words.
        best: the fastest plan; `top` are the ten fastest, best first, all passed by the oracle.
        lower_bound: valid for every plan of the declared space; `proven` when nothing in it can beat `best`.
        rejections: rule id → candidates it refused.
        knob_worth: knob → makespan of the best plan with that knob at its default (None where that is not legal).
        trace: improvements in order.
        stopped: ``proven``, ``exhausted`` (all of the space was tried), ``trials``, ``time`` or ``interrupt``.
    """

    workload: dict[str, Any]
    hardware: str
    profile: str
    seed: int
    trials: int
    best: Plan
    top: tuple[Plan, ...]
    lower_bound: int
    proven: bool
    default: Plan | None
    what_default: str
    oracle: OracleSummary
    fates: Fates
    rejections: dict[str, int]
    knob_worth: dict[str, int | None] = field(default_factory=dict)
    trace: tuple[TraceRow, ...] = ()
    stopped: str = "trials"
    wall_time_s: float = 0.0
    command: str = ""
    files: dict[str, str] = field(default_factory=dict)

    def __repr__(self) -> str:
        sizes = " ".join(f"{axis}={size}" for axis, size in self.workload.get("sizes", {}).items())
        proof = "proven" if self.proven else f"gap {100 * self.gap:.1f} %"
        cycles = f"makespan {self.makespan:,} cycles, lower bound {self.lower_bound:,} ({proof})"
        return f"<SearchResult {self.workload.get('einsum', '')} {sizes}: {cycles}; {self.fates.scheduled} candidates scheduled>"

    @property
    def makespan(self) -> int:
        return self.best.makespan

    @property
    def gap(self) -> float:
        """`makespan / lower_bound - 1`."""
        return self.makespan / self.lower_bound - 1

    @property
    def kernel(self) -> Kernel:
        return self.best.kernel

    @property
    def schedule(self) -> Schedule:
        return self.best.schedule

    def to_json(self, files: dict[str, str] | None = None) -> dict[str, Any]:
        """The ``search-result/1`` document; `files` maps a name to its path relative to the result folder."""
        best = {
            "placement": self.best.placement,
            "knobs": self.best.knobs,
            "kernel": self.best.kernel.to_text(),
            "busy": self.best.busy,
            "terms": self.best.terms,
            "top": [plan.to_json() for plan in self.top],
        }
        return {
            "schema": SCHEMA,
            "workload": self.workload,
            "hardware": self.hardware,
            "profile": self.profile,
            "seed": self.seed,
            "trials": self.trials,
            "makespan": self.makespan,
            "lower_bound": self.lower_bound,
            "gap": self.gap,
            "proven": self.proven,
            "stopped": self.stopped,
            "default": {"makespan": self.default.makespan if self.default else None, "what": self.what_default},
            "oracle": self.oracle.to_json(),
            "candidates": self.fates.to_json(),
            "rejections": dict(sorted(self.rejections.items())),
            "best": best,
            "knob_worth": self.knob_worth,
            "wall_time_s": self.wall_time_s,
            "files": self.files if files is None else files,
        }

    def trace_rows(self) -> list[dict[str, Any]]:
        """Rows of ``trace.csv``: trial, makespan, bound, elapsed_s."""
        return [{"trial": r.trial, "makespan": r.makespan, "bound": r.bound, "elapsed_s": round(r.elapsed_s, 3)} for r in self.trace]

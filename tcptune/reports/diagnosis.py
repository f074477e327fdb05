"""What limits a schedule, and the lever to pull first (TUNE-003, TUNE-007): the critical path by kind of work, in cycles.

The diagnosis is of this schedule only; a lever that it names is a hypothesis to be tried alone (TUNE-005).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tcptune.ir.schedule import DMA, MAIN, PCIE, SUB, VECTOR
from tcptune.model.practice import BUSY, LEVERS, MOVEMENT, SERIAL
from tcptune.reports.schedule_analysis import Analysis

_UNIT = frozenset({MAIN, SUB, VECTOR})
_MOVERS = frozenset({DMA, PCIE})
_BUSY_SHARE = 0.5
"""A resource that is held for this share of the makespan is the bottleneck."""


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """Cycles of the critical path by kind; their sum is the makespan.

    Attributes:
        movement: DMA and PCIe operations.
        tensor_unit: passes of the Tensor Unit.
        fixed: launch offset, syncs and waits, in which no work runs on the critical path.
        finding: the diagnosis in the manual's words.
    """

    movement: int
    tensor_unit: int
    fixed: int
    finding: str

    @property
    def lever(self) -> str:
        """What the manual changes first for this diagnosis."""
        return LEVERS[self.finding]

    @property
    def words(self) -> str:
        """The finding and its lever in a sentence; where fixed cycles are the largest part, that they are."""
        if self.fixed > max(self.movement, self.tensor_unit):
            return "launch, syncs and waits are the largest part: do more in one launch, let fewer operations wait (TUNE-007)"
        return f"{self.finding}: change the {self.lever} (tcptune explain TUNE-007)"

    def to_json(self) -> dict[str, Any]:
        return {
            "movement": self.movement,
            "tensor_unit": self.tensor_unit,
            "fixed": self.fixed,
            "finding": self.finding,
            "lever": self.lever,
            "rule": "TUNE-007",
        }


def diagnose(analysis: Analysis) -> Diagnosis | None:
    """The diagnosis of a schedule; None where nothing runs."""
    if not analysis.makespan:
        return None
    movement = sum(o.duration_cycles for o in analysis.critical if _MOVERS.intersection(o.contexts))
    unit = sum(o.duration_cycles for o in analysis.critical if _UNIT.intersection(o.contexts) and not _MOVERS.intersection(o.contexts))
    fixed = max(0, analysis.makespan - movement - unit)
    busiest = max((share.busy for share in analysis.shares if share.resource in _UNIT), default=0)
    if movement >= unit and movement >= fixed:
        finding = MOVEMENT
    elif unit >= fixed and busiest >= _BUSY_SHARE * analysis.makespan:
        finding = BUSY
    else:
        finding = SERIAL
    return Diagnosis(movement, unit, fixed, finding)

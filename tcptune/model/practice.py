"""The working practice of the manual as data: evidence, comparisons, the tuning loop (ORACLE-010, TUNE-001 to TUNE-007).

Reports and `explain` print these; the search keeps to them: one lever at a time, the rest fixed, correctness first.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Evidence:
    """A kind of evidence about a kernel, weakest first (ORACLE-010)."""

    name: str
    executes: bool


EVIDENCE = (Evidence("kernel compilation", False), Evidence("CPU run", True), Evidence("NPU run", True), Evidence("schedule data", False))

COMPARISON_FIELDS = {
    "source revision": True,
    "release profile": True,
    "device-function filter": True,
    "shapes": True,
    "element types": True,
    "mappings": True,
    "backend": True,
    "schedule file": False,
    "oracle result": False,
    "hypothesis and changed lever": False,
    "baseline and candidate makespan": False,
}
"""What a comparison records, and whether it has to be the same for both candidates (TUNE-004, ORACLE-011)."""

PROTOCOL = ("type check", "oracle test", "baseline schedule", "change one lever", "repeat the checks", "keep or restore")
"""Steps of one experiment (TUNE-005)."""

DIAGNOSIS = ("last interval", "its predecessor", "overlap of lanes", "one candidate change")
"""Steps from a timeline to a hypothesis (TUNE-003)."""

LEVERS = {
    "current resource is the bottleneck": "execution-engine path",
    "avoidable serial work or ill-fitting reduction": "tile or split shape",
    "limiting interval is movement or an address dependency": "mapping, padding or transfer boundary",
}
"""Lever for each diagnosis (TUNE-007)."""

NEXT_PATTERNS = (
    "fits one pass",
    "layout permutation or packet handling",
    "reduction axis spans chips or clusters",
    "composed model pattern",
)
"""Constraints that decide where to go from the basic patterns (KERNEL-019)."""

CONTEXTS = {"main": "device.main", "sub": "device.sub", "DMA": "device.tdma"}
"""Contexts the scheduler treats as independent streams, and their handles (SCHED-001)."""

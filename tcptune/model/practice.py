"""The working practice of the manual as data: evidence, comparisons, the tuning loop (ORACLE-010, TUNE-001 to TUNE-007).

`tcptune explain` prints them under their rules (`points`); `tcptune analyse` names the diagnosis and lever of a schedule.
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

BUSY, SERIAL, MOVEMENT = (
    "current resource is the bottleneck",
    "avoidable serial work or ill-fitting reduction",
    "limiting interval is movement or an address dependency",
)
"""Diagnoses of a schedule (TUNE-007)."""

LEVERS = {BUSY: "execution-engine path", SERIAL: "tile or split shape", MOVEMENT: "mapping, padding or transfer boundary"}
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


def points(rule_id: str) -> tuple[str, ...]:
    """What the practice lists under a rule, a line each; empty for rules that list nothing.

    >>> points("SCHED-001")
    ('main: device.main', 'sub: device.sub', 'DMA: device.tdma')
    """
    evidence = tuple(f"{kind.name}: {'executes' if kind.executes else 'does not execute'} the kernel" for kind in EVIDENCE)
    record = tuple(f"{field}: {'equal for both' if same else 'recorded'}" for field, same in COMPARISON_FIELDS.items())
    listed = {
        "ORACLE-010": evidence,
        "TUNE-003": DIAGNOSIS,
        "TUNE-004": record,
        "TUNE-005": PROTOCOL,
        "TUNE-007": tuple(f"{diagnosis}: change the {lever}" for diagnosis, lever in LEVERS.items()),
        "KERNEL-019": NEXT_PATTERNS,
        "SCHED-001": tuple(f"{context}: {handle}" for context, handle in CONTEXTS.items()),
    }
    return listed.get(rule_id, ())

"""What a pass of the Tensor Unit streams, and how long that takes (VT-001 to VT-012).

A pass costs a fixed start and then whatever its busiest part streams; what cannot overlap is added. `PassWork` holds the counts, however
they were found: from a checked chain (`timing.passes`) or from a row of a published schedule.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil

from tcptune.model.timing.calibration import PassConstants


@dataclass(frozen=True)
class PassTiming:
    """Duration of a pass.

    Attributes:
        cycles: the whole pass.
        base: the rule that gave the start, e.g. ``VT-002``; ``manual`` for stage formulas.
        terms: what was counted, in cycles: ``start``; candidates of which only the largest counts; then additions marked ``+``.
    """

    cycles: int
    base: str
    terms: dict[str, float]

    @property
    def bound(self) -> str:
        """The streaming term that sets the duration."""
        streaming = {k: v for k, v in self.terms.items() if k != "start" and not k.startswith("+")}
        return max(streaming, key=lambda k: streaming[k]) if streaming else "start"


STARTS = {
    "VT-001": "stage",
    "VT-002": "contract",
    "VT-003": "stage",
    "VT-004": "copy",
    "VT-005": "vector",
    "VT-006": "stage",
    "VT-007": "vector",
    "VT-008": "copy",
    "VT-009": "inter_slice_reduce",
    "VT-010": "stage",
    "VT-011": "vector",
    "VT-012": "transpose",
}
"""The constant of `PassConstants` that a rule starts with; VT-006 has another where vector work ends in a register file."""


@dataclass(frozen=True)
class PassWork:
    """What decides how long a pass takes; all counts are per slice, None where the pass has none of it.

    Attributes:
        rule: the rule of its start, by the most specific thing that the pass does.
        vector: whether it does vector work.
        flits: flits that the Collect Engine delivers.
        reads: reads of the fetch, more than flits where packets are read by element.
        fetched_bytes: bytes that a pass on Sub takes out of DM, before any cast.
        cast_packets: packets that a pass on Sub casts.
        committed_bytes, commit_width: bytes that a pass on Sub commits, and how many a cycle.
        looked_up: elements that pass the table; `looked_up_bf16` whether it gives bf16.
        switch_rounds: cycles of the switch, and whether its ring is the `whole_ring`.
        packets, drained: packets multiplied, flits drained by the lane folder.
        rows: rows that a transpose writes.
        steps: steps of the Vector Engine.
        reduced_slices: slices of the group that an inter-slice reduce goes through.
    """

    rule: str
    vector: bool = False
    flits: int | None = None
    reads: int | None = None
    fetched_bytes: int | None = None
    cast_packets: int | None = None
    committed_bytes: int | None = None
    commit_width: int = 1
    looked_up: int | None = None
    looked_up_bf16: bool = False
    switch_rounds: int | None = None
    whole_ring: bool = False
    packets: int | None = None
    drained: int | None = None
    rows: int | None = None
    steps: int | None = None
    reduced_slices: int | None = None


def pass_duration(work: PassWork, constants: PassConstants) -> PassTiming:
    """How long a pass takes, and what that consists of."""
    start = constants.vector_to_vrf.value if work.rule == "VT-006" and work.vector else getattr(constants, STARTS[work.rule]).value
    streaming = _streaming(work, constants)
    added: dict[str, float] = {}
    if work.whole_ring:
        added["+whole ring"] = constants.whole_ring.value
    if work.reduced_slices is not None:
        added["+slices reduced"] = constants.reduce_per_slice.value * work.reduced_slices
    if work.rule in ("VT-005", "VT-011") and "rows written" in streaming:
        added["+rows written"] = streaming.pop("rows written")
    if work.rule == "VT-009":
        streaming["least steps"] = constants.reduce_steps_least.value
    cycles = ceil(start + max(streaming.values(), default=0) + sum(added.values()))
    return PassTiming(cycles, work.rule, {"start": start, **streaming, **added})


def _streaming(work: PassWork, constants: PassConstants) -> dict[str, float]:
    """Cycles of everything that streams; the largest sets the pace."""
    lookup = constants.lookup_bf16_per_cycle if work.looked_up_bf16 else constants.lookup_f8_per_cycle
    found: dict[str, float | None] = {
        "flits": work.flits,
        "switch rounds": work.switch_rounds,
        "reads": work.reads,
        "bytes fetched": _times(work.fetched_bytes, 1 / constants.sub_fetch_bytes_per_cycle.value),
        "packets cast": _times(work.cast_packets, constants.sub_cycles_per_cast_packet.value),
        "bytes committed": _times(work.committed_bytes, 1 / work.commit_width),
        "elements looked up": _times(work.looked_up, 1 / lookup.value),
        "packets multiplied": work.packets,
        "flits drained": work.drained,
        "rows written": work.rows,
        "vector steps": work.steps,
    }
    return {name: value for name, value in found.items() if value}


def _times(count: int | None, cycles_each: float) -> float | None:
    return None if count is None else count * cycles_each

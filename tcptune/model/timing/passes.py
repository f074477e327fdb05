"""How long one pass of the Tensor Unit takes (VT-001 to VT-012; manual: the stage formulas).

In the vendor's schedules a pass costs a fixed start and then whatever its busiest part streams: flits fetched, packets sent to the
multipliers, flits drained, vector steps, switch rounds, rows written by a transpose. In the manual's profile it costs its busiest stage
plus the latencies of all stages.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil

from tcptune.ir.kernels.ops import (
    Cast,
    Commit,
    CommitView,
    ContractLane,
    ContractOuter,
    Fetch,
    FetchTableLookup,
    Switch,
    ToTrf,
    ToVrf,
    Transpose,
)
from tcptune.ir.types import StreamType
from tcptune.model.hardware import Hardware
from tcptune.model.pipeline import Chain
from tcptune.model.stage import Step
from tcptune.model.timing.calibration import PassConstants, Profile, profile


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


def pass_cycles(chain: Chain, context: str, timing: str | Profile = "vendor") -> int:
    """Cycles of a checked pass; see `pass_timing`."""
    return pass_timing(chain, context, timing).cycles


def pass_timing(chain: Chain, context: str, timing: str | Profile = "vendor") -> PassTiming:
    """Duration of a checked pass and what it consists of.

    Args:
        chain: from the begin (or the collected stream) to the last operation.
        context: ``main`` or ``sub``.
        timing: profile.

    Raises:
        InputError: no such profile.
    """
    constants = profile(timing).passes
    if constants is None:
        return _manual(chain)
    streaming = _streaming(chain, context, constants)
    start, rule = _start(chain, context, constants)
    added = _added(chain, constants)
    if rule in ("VT-005", "VT-011") and "rows written" in streaming:
        added["+rows written"] = streaming.pop("rows written")
    if rule == "VT-009":
        streaming["least steps"] = constants.reduce_steps_least.value
    cycles = ceil(start + max(streaming.values(), default=0) + sum(added.values()))
    return PassTiming(cycles, rule, {"start": start, **streaming, **added})


def _manual(chain: Chain) -> PassTiming:
    stages = {f"{i} {step.op.NAME}": float(step.cost.cycles) for i, step in enumerate(chain.steps)}
    cost = chain.cost
    return PassTiming(cost.cycles + cost.latency_cycles, "manual", {**stages, "+latencies": float(cost.latency_cycles)})


def _find(chain: Chain, *ops: type) -> Step | None:
    return next((step for step in chain.steps if isinstance(step.op, ops)), None)


def _is_vector(chain: Chain) -> bool:
    return any(step.op.NAME.startswith("vector_") and step.op.NAME not in ("vector_init", "vector_final") for step in chain.steps)


def _start(chain: Chain, context: str, constants: PassConstants) -> tuple[float, str]:
    """Cycles before the first flit, and the rule: by the most specific thing the pass does."""
    vector = _is_vector(chain)
    if any(step.op.NAME == "vector_inter_slice_reduce" for step in chain.steps):
        return constants.inter_slice_reduce.value, "VT-009"
    if _find(chain, ContractOuter):
        return constants.contract.value, "VT-002"
    if _find(chain, ToVrf) and vector:
        return (constants.vector_to_vrf.value, "VT-006") if context == "main" else (constants.vector.value, "VT-007")
    if vector:
        return constants.vector.value, "VT-011" if _find(chain, Switch) else "VT-005"
    if _find(chain, ToTrf, ToVrf):
        return constants.stage.value, "VT-001" if context == "sub" else "VT-006"
    switch, transpose = _find(chain, Switch), _find(chain, Transpose)
    rounds = switch.derived["cycles"] if switch else 0
    if transpose and transpose.derived["n"] * transpose.derived["out_rows"] > max(_flits(chain), rounds):
        return constants.transpose.value, "VT-012"
    if switch:
        return constants.stage.value, "VT-010"
    if _find(chain, FetchTableLookup):
        return constants.stage.value, "VT-003"
    return constants.copy.value, "VT-008" if context == "sub" or _find(chain, Cast) else "VT-004"


def _flits(chain: Chain) -> int:
    """Flits that the Collect Engine delivers a slice: what is fetched, one flit a cycle."""
    for step in chain.steps:
        if isinstance(step.after, StreamType) and step.after.position == "Collect":
            return step.after.time.size
    return chain.start.time.size


def _fetched_bytes(chain: Chain) -> int:
    """Bytes a slice that leave DM, before any cast."""
    fetched = _find(chain, Fetch)
    stream = fetched.after if fetched and isinstance(fetched.after, StreamType) else chain.start
    return stream.time.size * stream.packet_bytes


def _streaming(chain: Chain, context: str, constants: PassConstants) -> dict[str, float]:
    """Cycles of everything that streams; the largest sets the pace."""
    switch = _find(chain, Switch)
    found: dict[str, float] = {"flits": _flits(chain)}
    if switch:
        found["switch rounds"] = switch.derived["cycles"]
    fetched = _find(chain, Fetch)
    if context == "main" and fetched:
        found["reads"] = fetched.derived["fetch_cycles"]  # one a cycle (FETCH-005); more than flits where packets are read by element
    if context == "sub":
        found["bytes fetched"] = _fetched_bytes(chain) / constants.sub_fetch_bytes_per_cycle.value
        if _find(chain, Cast):
            found["packets cast"] = _flits(chain) * constants.sub_cycles_per_cast_packet.value
        committed = _find(chain, Commit, CommitView)
        if committed:
            found["bytes committed"] = committed.before.time.size * committed.before.packet_bytes / chain.env.hw.sub_commit_bytes
        if _find(chain, ToTrf, ToVrf):
            del found["flits"]
    for step in chain.steps:
        found.update(_of_stage(step, constants, chain.env.hw))
    return {name: value for name, value in found.items() if value}


def _of_stage(step: Step, constants: PassConstants, hw: Hardware) -> dict[str, float]:
    """Cycles that one stage streams, by name."""
    if isinstance(step.op, FetchTableLookup):
        elements = step.before.time.size * step.before.packet.size
        rate = constants.lookup_bf16_per_cycle if step.op.dtype.name == "bf16" else constants.lookup_f8_per_cycle
        return {"elements looked up": elements / rate.value}
    if isinstance(step.op, ContractOuter):
        return {"packets multiplied": step.op.time.size}
    if isinstance(step.op, ContractLane):
        return {"flits drained": step.op.time.size}
    if isinstance(step.op, Transpose):
        return {"rows written": step.op.time.size}
    if "vector_steps" in step.derived:
        return {"vector steps": step.derived["vector_steps"]}
    return {}


def _added(chain: Chain, constants: PassConstants) -> dict[str, float]:
    """Cycles that no stream hides."""
    found: dict[str, float] = {}
    switch = _find(chain, Switch)
    if switch and switch.derived["ring_size"] == chain.env.hw.slices_per_cluster:
        found["+whole ring"] = constants.whole_ring.value
    for step in chain.steps:
        if step.op.NAME == "vector_inter_slice_reduce":
            found["+slices reduced"] = constants.reduce_per_slice.value * step.derived["reduction_ratio"]
    return found

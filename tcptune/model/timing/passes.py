"""How long one pass of the Tensor Unit takes (VT-001 to VT-012; manual: the stage formulas).

In the vendor's schedules a pass costs a fixed start and then whatever its busiest part streams (`timing.pass_work`). In the manual's
profile it costs its busiest stage plus the latencies of all stages.
"""

from __future__ import annotations

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
from tcptune.model.pipeline import Chain
from tcptune.model.stage import Step
from tcptune.model.timing.calibration import Profile, profile
from tcptune.model.timing.pass_work import PassTiming, PassWork, pass_duration


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
    return _manual(chain) if constants is None else pass_duration(pass_work(chain, context), constants)


def _manual(chain: Chain) -> PassTiming:
    stages = {f"{i} {step.op.NAME}": float(step.cost.cycles) for i, step in enumerate(chain.steps)}
    cost = chain.cost
    return PassTiming(cost.cycles + cost.latency_cycles, "manual", {**stages, "+latencies": float(cost.latency_cycles)})


def _find(chain: Chain, *ops: type) -> Step | None:
    return next((step for step in chain.steps if isinstance(step.op, ops)), None)


def _is_vector(chain: Chain) -> bool:
    return any(step.op.NAME.startswith("vector_") and step.op.NAME not in ("vector_init", "vector_final") for step in chain.steps)


def pass_work(chain: Chain, context: str) -> PassWork:
    """What a checked pass streams."""
    switch, transpose, vector = _find(chain, Switch), _find(chain, Transpose), _is_vector(chain)
    contract_lane, outer, lookup = _find(chain, ContractLane), _find(chain, ContractOuter), _find(chain, FetchTableLookup)
    reduce = next((step for step in chain.steps if step.op.NAME == "vector_inter_slice_reduce"), None)
    fetched = _find(chain, Fetch)
    on_sub = _sub_work(chain) if context == "sub" else {}
    to_registers = context == "sub" and _find(chain, ToTrf, ToVrf) is not None
    steps = [step.derived["vector_steps"] for step in chain.steps if "vector_steps" in step.derived]
    return PassWork(
        rule=_rule(chain, context, vector),
        vector=vector,
        flits=None if to_registers else _flits(chain),
        reads=fetched.derived["fetch_cycles"] if context == "main" and fetched else None,  # one a cycle (FETCH-005)
        looked_up=lookup.before.time.size * lookup.before.packet.size if lookup else None,
        looked_up_bf16=isinstance(lookup.op, FetchTableLookup) and lookup.op.dtype.name == "bf16" if lookup else False,
        switch_rounds=switch.derived["cycles"] if switch else None,
        whole_ring=switch is not None and switch.derived["ring_size"] == chain.env.hw.slices_per_cluster,
        packets=outer.op.time.size if outer and isinstance(outer.op, ContractOuter) else None,
        drained=contract_lane.op.time.size if contract_lane and isinstance(contract_lane.op, ContractLane) else None,
        rows=transpose.op.time.size if transpose and isinstance(transpose.op, Transpose) else None,
        steps=steps[-1] if steps else None,
        reduced_slices=reduce.derived["reduction_ratio"] if reduce else None,
        **on_sub,
    )


def _sub_work(chain: Chain) -> dict[str, int]:
    """What only a pass on Sub is bound by: bytes out of DM and into it, packets cast."""
    found = {"fetched_bytes": _fetched_bytes(chain)}
    if _find(chain, Cast):
        found["cast_packets"] = _flits(chain)
    committed = _find(chain, Commit, CommitView)
    if committed:
        found["committed_bytes"] = committed.before.time.size * committed.before.packet_bytes
        found["commit_width"] = chain.env.hw.sub_commit_bytes
    return found


def _rule(chain: Chain, context: str, vector: bool) -> str:
    """The rule of the start: by the most specific thing that the pass does."""
    if any(step.op.NAME == "vector_inter_slice_reduce" for step in chain.steps):
        return "VT-009"
    if _find(chain, ContractOuter):
        return "VT-002"
    if _find(chain, ToVrf) and vector:
        return "VT-006" if context == "main" else "VT-007"
    if vector:
        return "VT-011" if _find(chain, Switch) else "VT-005"
    if _find(chain, ToTrf, ToVrf):
        return "VT-001" if context == "sub" else "VT-006"
    switch, transpose = _find(chain, Switch), _find(chain, Transpose)
    rounds = switch.derived["cycles"] if switch else 0
    if transpose and transpose.derived["n"] * transpose.derived["out_rows"] > max(_flits(chain), rounds):
        return "VT-012"
    if switch:
        return "VT-010"
    if _find(chain, FetchTableLookup):
        return "VT-003"
    return "VT-008" if context == "sub" or _find(chain, Cast) else "VT-004"


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

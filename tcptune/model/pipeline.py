"""Runs a chain of Tensor Unit operations: which operation may follow which, and the engine that owns each (TU-001, TU-011).

A chain is checked step by step: every operation is looked up by class in the engine modules (`HANDLES`), its entry position is checked
here, everything else by its engine. The order of the edge list is the hardware's: engines may be skipped, never reordered.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterable
from collections.abc import Mapping as Dict
from dataclasses import dataclass
from functools import cache
from types import ModuleType
from typing import Any, cast

from tcptune.errors import InputError, RuleViolation
from tcptune.ir.kernels.ops import Op
from tcptune.ir.types import StreamType, TensorType
from tcptune.model import engines
from tcptune.model.engines.cast import TARGETS as CASTS
from tcptune.model.engines.commit_adapter import CAST_PAIRS
from tcptune.model.engines.contraction.values import Mode, PendingProducts
from tcptune.model.numerics.elements import STAGING_TYPES
from tcptune.model.stage import ChainEnv, StageCost, Step
from tcptune.model.tensor_unit import engine_name
from tcptune.model.values import Values

FETCHED = ("Fetch", "FetchChipLift", "FetchClusterLift", "FetchSliceLift")
ADAPTED = ("FetchTableLookup", "FetchCast", "FetchZeroPointSub")
COMMITTING = ("CommitTrim", "CommitCast", "CommitCastRelu")
BEFORE_COLLECT = ("Begin", *FETCHED, *ADAPTED, "Switch")

ENTRY_POSITIONS: dict[str, tuple[str, ...]] = {
    "begin_interleaved": ("Begin",),
    "fetch": ("Begin",),
    "fetch_chip_lift": ("Fetch",),
    "fetch_cluster_lift": ("Fetch", "FetchChipLift"),
    "fetch_slice_lift": ("Fetch", "FetchChipLift", "FetchClusterLift"),
    "fetch_table_lookup": FETCHED,
    "fetch_cast": (*FETCHED, "FetchTableLookup"),
    "fetch_zero_point_sub": (*FETCHED, "FetchTableLookup", "FetchCast"),
    "switch": (*FETCHED, *ADAPTED),
    "collect": (*FETCHED, *ADAPTED, "Switch"),
    "to_trf": ("Collect",),
    "to_vrf": ("Collect", "VectorFinal"),
    "contract_outer": ("Collect",),
    "contract_packet": ("ContractOuter",),
    "contract_time": ("ContractPacket",),
    "contract_lane": ("ContractTime",),
    "vector_init": ("Collect", "Contract"),
    "cast": ("Collect", "Contract", "VectorFinal"),
    "transpose": ("Collect", "Contract", "VectorFinal", "Cast"),
    "commit_trim": ("Collect", "Contract", "VectorFinal", "Cast", "Transpose"),
    "commit_cast": ("CommitTrim",),
    "commit_cast_relu": ("CommitTrim",),
    "commit": COMMITTING,
    "commit_view": COMMITTING,
}
"""Where each operation may be called (TU-011, LIFT-008, FA-001, CE-001, VE-002, CAST-001, TRANSPOSE-001, CADAPT-003).

The other Vector Engine operations may be called at any position inside that engine, which checks its own stages. Contract before
transpose is the published position graph's reading; the manual is silent.
"""

MISPLACED_RULE: dict[str, tuple[str, ...]] = {
    "begin_interleaved": ("FETCH-008",),
    "fetch": ("FETCH-001",),
    "fetch_table_lookup": ("FA-001",),
    "fetch_cast": ("FA-001",),
    "fetch_zero_point_sub": ("FA-001",),
    "switch": ("TU-011", "SWITCH-035"),
    "collect": ("TU-011", "COLLECT-006"),
    "to_trf": ("TRF-001",),
    "to_vrf": ("VRF-001",),
    "contract_outer": ("OUTER-025", "CE-001"),
    "contract_packet": ("CE-001",),
    "contract_time": ("CE-001",),
    "contract_lane": ("CE-001",),
    "vector_init": ("VE-002",),
    "cast": ("CAST-001",),
    "transpose": ("TRANSPOSE-001",),
    "commit_trim": ("CADAPT-003",),
    "commit_cast": ("CADAPT-011", "CADAPT-003", "CADAPT-001"),
    "commit_cast_relu": ("CADAPT-011", "CADAPT-010", "CADAPT-003", "CADAPT-001"),
    "commit": ("CADAPT-003", "CADAPT-001", "COMMIT-002"),
    "commit_view": ("CADAPT-003", "CADAPT-001", "COMMIT-002"),
}
"""The rule a misplaced operation breaks, most specific first; the others are equally right diagnoses. TU-011 always is one."""

SUCCESSOR_RULES: dict[str, tuple[str, ...]] = {
    "Switch": ("SWITCH-035",),
    **dict.fromkeys(("ContractOuter", "ContractPacket", "ContractTime"), ("CE-001",)),
    "Cast": ("CAST-001",),
    "Transpose": ("TRANSPOSE-001",),
    **dict.fromkeys(COMMITTING, ("CADAPT-001", "CADAPT-003", "CADAPT-011")),
}
"""Rules that name what follows a position; any other operation there breaks them too."""

STAGING_CONSUMERS = frozenset({"switch", "collect", "contract_outer"})
"""A zero-point residual may pass these and nothing else (FA-014)."""

STAGING_REFUSALS = {
    "transpose": ("TRANSPOSE-015",),
    "commit_trim": ("CADAPT-008",),
    "cast": ("CAST-009", "CAST-003"),
    "vector_init": ("VE-001", "KERNEL-042", "TU-004", "VE-003"),
    "to_vrf": ("VRF-003",),
}
"""Rules of an operation that speak of its element types."""


INPUT_TYPES = {
    "cast": (frozenset(CASTS), ("CAST-003", "CAST-009")),
    "commit_cast": (frozenset(source for source, _ in CAST_PAIRS), ("CADAPT-009",)),
    "commit_cast_relu": (frozenset(source for source, _ in CAST_PAIRS), ("CADAPT-009", "CADAPT-010")),
}
"""Element types that a conversion takes, and the rules that say so, also where it stands at a wrong position."""


MAIN_ONLY = {
    "fetch_table_lookup": ("FA-003", "TU-009"),
    "contract_outer": ("TU-009", "CE-002"),
    "contract_packet": ("TU-009", "CE-002"),
    "contract_time": ("TU-009", "CE-002"),
    "contract_lane": ("TU-009", "CE-002"),
    "commit_cast": ("CADAPT-002",),
    "commit_cast_relu": ("CADAPT-002",),
}
"""Operations that the sub context lacks, and the rules that say so (TU-009, FA-003, CE-002, CADAPT-002)."""


SETTLED_EARLY = frozenset({"valid_size", "valid_bytes"})
"""Derived numbers that the first stage settles: the trim counts in its own element type, whatever a commit cast does (CADAPT-004)."""


@dataclass(frozen=True)
class Chain:
    """A checked chain.

    Attributes:
        start: the stream it began with.
        steps: one checked stage an operation.
        env: the surroundings it was checked in.
    """

    start: StreamType
    steps: tuple[Step, ...]
    env: ChainEnv

    @property
    def final(self) -> StreamType | TensorType:
        """What the chain ends in: a stream inside the unit, or a tensor in DM, TRF or VRF."""
        return self.steps[-1].after if self.steps else self.start

    @property
    def derived(self) -> dict[str, Any]:
        """Derived numbers of all stages under the corpus's names; a later stage overrides an earlier one, except `SETTLED_EARLY`."""
        merged: dict[str, Any] = {}
        for step in self.steps:
            merged.update({name: value for name, value in step.derived.items() if name not in SETTLED_EARLY or name not in merged})
        return merged

    @property
    def cost(self) -> StageCost:
        """Stages stream into one another: the busiest stage sets the cycles, the latencies add up.

        Lifts and casts change the reads of the fetch before them, so the last stage that prices the fetch counts, not the longest.
        """
        reads = [s.cost.cycles for s in self.steps if s.op.NAME in _FETCH_SIDE and s.cost.cycles]
        rest = [s.cost.cycles for s in self.steps if s.op.NAME not in _FETCH_SIDE]
        return StageCost(
            cycles=max(reads[-1:] + rest, default=0),
            latency_cycles=sum(s.cost.latency_cycles for s in self.steps),
        )


@cache
def _engines_by_op() -> dict[type[Op], ModuleType]:
    found: dict[type[Op], ModuleType] = {}
    for info in sorted(pkgutil.walk_packages(engines.__path__, f"{engines.__name__}."), key=lambda m: m.name):
        module = importlib.import_module(info.name)
        for op_class in getattr(module, "HANDLES", ()):
            if op_class in found:
                raise ValueError(f"{op_class.__name__} is handled by {found[op_class].__name__} and {module.__name__}")
            found[op_class] = module
    return found


def engine_of(op: Op) -> Any:
    """The engine module that owns `op` (functions ``check`` and ``apply``).

    Raises:
        InputError: no engine handles this operation.
    """
    module = _engines_by_op().get(type(op))
    if module is None:
        raise InputError(f"no engine of the Tensor Unit runs {op.NAME!r}")
    return module


def successors(position: str) -> tuple[str, ...]:
    """Operations that may follow at `position`, in pipeline order."""
    return tuple(name for name in ENTRY_POSITIONS if _may_enter(name, position))


def _is_inside_vector_engine(position: str) -> bool:
    return position.startswith("Vector") and position != "VectorFinal"


def _may_enter(name: str, position: str) -> bool:
    if name in ENTRY_POSITIONS:
        return position in ENTRY_POSITIONS[name]
    return _is_inside_vector_engine(position)


def _misplaced_rules(name: str, position: str) -> tuple[str, ...]:
    """Ids of the broken rules, most specific first."""
    before_collect = ("TU-005",) if position in BEFORE_COLLECT and name not in (*_FETCH_SIDE, "switch", "collect") else ()
    if name.endswith("_lift"):
        specific: tuple[str, ...] = ("LIFT-008",) if position in (*FETCHED, *ADAPTED) else ("LIFT-001",)
    elif name == "to_vrf" and position in ("Cast", "Transpose", *COMMITTING):
        specific = ("VRF-006", "VRF-001")
    elif name == "commit_trim" and position in COMMITTING:
        specific = ("CADAPT-003", "CADAPT-011", "CADAPT-001")
    elif name == "commit_trim" and position in BEFORE_COLLECT:
        specific = ("CADAPT-003", "COMMIT-002")
    elif name in ("commit_cast", "commit_cast_relu") and position in COMMITTING:
        specific = ("CADAPT-011", "CADAPT-010")
    else:
        specific = MISPLACED_RULE.get(name, ("VE-005",))
    if name == "fetch" or position in BEFORE_COLLECT or _is_inside_vector_engine(position):
        specific = (*specific, "KERNEL-007")
    if position in FETCHED:
        specific = (*specific, "FETCH-015")
    return tuple(dict.fromkeys((*specific, *SUCCESSOR_RULES.get(position, ()), *before_collect, "TU-011")))


_FETCH_SIDE = tuple(name for name in ENTRY_POSITIONS if name.startswith("fetch"))


def require_entry(stream: StreamType, op: Op) -> None:
    """Refuses an operation that its position does not offer, and staging types that only the Contraction Engine may consume.

    Raises:
        RuleViolation: TU-011 or the more specific rule of the operation; FA-014 for i5 and i9 streams.
    """
    position = stream.position
    is_staging_end = stream.dtype.name in STAGING_TYPES and op.NAME not in STAGING_CONSUMERS
    if not _may_enter(op.NAME, position):
        types, type_rules = INPUT_TYPES.get(op.NAME, (frozenset(), ()))
        wrong_type = () if stream.dtype.name in types else type_rules
        rules = (*_misplaced_rules(op.NAME, position), *(("FA-014",) if is_staging_end else ()), *wrong_type)
        offered = "any vector operation" if _is_inside_vector_engine(position) else ", ".join(successors(position)) or "nothing"
        where = ENTRY_POSITIONS.get(op.NAME, ("a position inside the Vector Engine",))
        raise RuleViolation(
            rules[0],
            f"{op.NAME} ({engine_name(op.NAME)} engine) cannot be called at position {position}",
            expected=f"{op.NAME} at {', '.join(where)}",
            got=position,
            nearest=f"at {position}: {offered}",
            also=rules[1:],
        )
    if is_staging_end:
        raise RuleViolation(
            "FA-014",
            f"a stream of {stream.dtype} is consumed by contract_outer only, not by {op.NAME}",
            expected="switch, collect, then contract_outer",
            got=op.NAME,
            also=STAGING_REFUSALS.get(op.NAME, ()),
        )


def require_context(operation: str, context: str) -> None:
    """Refuses what the sub context lacks.

    Raises:
        RuleViolation: TU-009, FA-003, CE-002 or CADAPT-002.
    """
    rules = MAIN_ONLY.get(operation, ())
    if context != "main" and rules:
        raise RuleViolation(
            rules[0],
            f"{operation} runs in the main context only",
            expected="main",
            got=context,
            nearest="run this pass on main and let sub fill the register file",
            also=rules[1:],
        )


def require_spatial_sizes(stream: StreamType, env: ChainEnv) -> None:
    """Cluster and Slice must have sizes the hardware has; unused units are written as padding.

    Raises:
        RuleViolation: TU-007.
    """
    for level, size, legal in (
        ("Cluster", stream.cluster.size, env.hw.legal_cluster_sizes),
        ("Slice", stream.slice.size, env.hw.legal_slice_sizes),
    ):
        if size not in legal:
            larger = [n for n in legal if n > size]
            raise RuleViolation(
                "TU-007",
                f"{level} has {size} positions",
                expected=f"{level} of {', '.join(map(str, legal))} positions",
                got=size,
                nearest=f"pad it: # {larger[0]}" if larger else None,
                also=("FETCH-002", "MOVE-007", "MAP-031", "HW-006" if level == "Cluster" else "HW-007"),
            )


def check_chain(start: StreamType, ops: Iterable[Op], env: ChainEnv) -> Chain:
    """Checks every operation of a chain in turn.

    Raises:
        RuleViolation: the first broken rule; what operations after it lack in the context is broken as well.
        InputError: an unknown context, or an operation no engine runs.
    """
    if env.context not in ("main", "sub"):
        raise InputError(f"unknown context {env.context!r}", hint="contexts of the Tensor Unit: main, sub")
    require_spatial_sizes(start, env)
    steps: list[Step] = []
    waiting = list(ops)
    try:
        while waiting:
            op = waiting.pop(0)
            steps.append(_check_next(steps[-1].after if steps else start, op, steps, env))
    except RuleViolation as refusal:
        lacking = [rule for op in waiting if env.context != "main" for rule in MAIN_ONLY.get(op.NAME, ())]
        refusal.also = tuple(dict.fromkeys((*refusal.also, *lacking)))
        raise
    return Chain(start, tuple(steps), env)


def _check_next(stream: StreamType | TensorType, op: Op, steps: list[Step], env: ChainEnv) -> Step:
    """One operation behind the checked `steps`, which left `stream`.

    Raises:
        RuleViolation: where and in which context it is called, or a rule of its engine.
    """
    if isinstance(stream, TensorType):
        raise RuleViolation("TU-011", f"the chain ended in a {stream.tier} tensor; {op.NAME} cannot follow", got=op.NAME)
    if op.NAME == "begin_interleaved" and steps:
        again = all(s.op.NAME == "begin_interleaved" for s in steps)
        rule, other = ("FETCH-009", "FETCH-008") if again else ("FETCH-008", "FETCH-009")
        raise RuleViolation(rule, "begin_interleaved starts a chain of two tensors, nothing comes before it", also=(other, "TU-011"))
    require_entry(stream, op)
    require_context(op.NAME, env.context)
    return cast(Step, engine_of(op).check(stream, op, env))


def apply_chain(chain: Chain, values: Values, operands: Dict[str, Values] | None = None, mode: Mode = "exact") -> Values:
    """Contents of the chain's result for the contents `values` of its start.

    Args:
        operands: contents of the register and DM tensors that operations name.
        mode: how contractions are computed, ``exact`` (bits of the hardware) or ``fast`` (see `model.engines.contraction.values`).
    """
    for step in chain.steps:
        values = cast(Values, engine_of(step.op).apply(values, step, chain.env, operands or {}))
        if isinstance(values, PendingProducts):
            values = values.in_mode(mode)
    return values

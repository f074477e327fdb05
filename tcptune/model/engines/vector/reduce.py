"""Intra-Slice Reduce: folds one axis over the Time and Packet of every slice (ISR-001 to ISR-011).

A packet either passes its four lanes (each accumulated over Time on its own) or collapses them through a two-level tree. Over Time the
results are folded in time order into at most eight accumulator slots. Elements that the Valid Count Generator does not count are left
out; a slice without any real element yields the identity.
"""

from __future__ import annotations

from collections.abc import Mapping as Dict
from dataclasses import dataclass, replace
from math import prod

import numpy as np
import numpy.typing as npt

from tcptune.errors import RuleViolation
from tcptune.ir.kernels.vector_ops import VectorIntraSliceReduce
from tcptune.ir.mappings.mapping import IDENTITY
from tcptune.ir.types import StreamType
from tcptune.model.engines.valid_count import ValidCountConfig, derive, split_counts, trim_counts
from tcptune.model.engines.vector.alus import INTRA_SLICE_REDUCTIONS, POOLS, Reduction, find_reduction
from tcptune.model.engines.vector.pair import require_single
from tcptune.model.engines.vector.state import VectorState, advance, enter_stage, make_step, require_dtype, state_of, use_alu, vector_values
from tcptune.model.mappings.position_digits import position_digits, spread_factors, without_axis
from tcptune.model.numerics.vector import fold, tree_of_lanes
from tcptune.model.stage import ChainEnv, Step
from tcptune.model.values import Values

HANDLES = (VectorIntraSliceReduce,)

TREE, PRESERVE = "tree", "preserve"


@dataclass(frozen=True, slots=True)
class ReduceConfig:
    """A checked reduction.

    Attributes:
        reduction: what folds, and its identity.
        packet_path: ``tree`` (lanes collapse) or ``preserve`` (lanes pass).
        time_factors: size of every Time factor, major first, and whether it is reduced.
        valid_count: which elements are real.
        narrowed: the method that narrowed the flits, which says how counts of flits become counts of packets.
    """

    reduction: Reduction
    packet_path: str
    time_factors: tuple[tuple[int, bool], ...]
    valid_count: ValidCountConfig
    narrowed: str

    @property
    def time_steps(self) -> int:
        """Time steps of the reduced axis."""
        return prod(size for size, reduced in self.time_factors if reduced)

    @property
    def inner_time(self) -> int:
        """Accumulator slots: surviving steps inside the outermost reduced factor (ISR-004)."""
        slots, seen = 1, False
        for size, reduced in self.time_factors:
            seen = seen or reduced
            slots *= size if seen and not reduced else 1
        return slots


def first_output_delay_flits(time_steps: int, inner_time: int = 1) -> int:
    """Flit cycles until the first result leaves: the last step of its slot must have come (ISR-009)."""
    return time_steps * inner_time


def check(stream: StreamType, op: VectorIntraSliceReduce, env: ChainEnv) -> Step:
    """Legality of an intra-slice reduction.

    Raises:
        RuleViolation: VE-005, 011, 012 (stage), PAIR-012, ISR-002 (shape), ISR-003 (function), ISR-004 (slots), ISR-005 (packet), ALU-001,
            VCG-… (padding that the Valid Count Generator cannot express).
    """
    state = state_of(stream)
    require_single(state, op)
    stage = enter_stage(state, op)
    require_dtype(stream, op, stage)
    reduction = find_reduction(INTRA_SLICE_REDUCTIONS, stream.dtype, op.fn, "ISR-003")
    if op.axis not in env.axes or op.axis not in {**stream.time.axes, **stream.packet.axes}:
        raise RuleViolation(
            "ISR-002", f"neither Time nor Packet carries {op.axis}", expected="an axis of Time or Packet", got=op.axis, also=("ISR-001",)
        )
    path = _packet_path(stream, op)
    _check_time(stream, op)
    state = use_alu(state, POOLS[stage.name][0], op)
    factors = tuple((m.size, op.axis in m.axes) for m in spread_factors(stream.time))
    config = ReduceConfig(reduction, path, factors, _valid_count(stream, state, op, env), state.narrowed or "")
    if config.time_steps > 1 and config.inner_time > env.hw.reduce_slots:
        raise RuleViolation(
            "ISR-004",
            f"{config.inner_time} accumulator slots are needed, for the steps inside the outermost factor of {op.axis}",
            expected=f"at most {env.hw.reduce_slots}",
            got=config.inner_time,
            nearest=f"move other axes of Time outside {op.axis}",
        )
    after = advance(stream, state, stage, time=op.time, packet=op.packet)
    return make_step(op, stream, after, config=config, latency=1 + _delay(config), more=_derived(config))


def _delay(config: ReduceConfig) -> int:
    return first_output_delay_flits(config.time_steps, config.inner_time)


def _derived(config: ReduceConfig) -> dict[str, object]:
    return {
        "inner_time_size": config.inner_time,
        "time_steps": config.time_steps,
        "packet_path": config.packet_path,
        "vcg": config.valid_count.summary(),
        "first_output_delay_flits": _delay(config),
    }


def _packet_path(stream: StreamType, op: VectorIntraSliceReduce) -> str:
    lanes = stream.packet.size
    collapsed = IDENTITY.pad(lanes)
    digits = position_digits(stream.packet)
    if op.axis not in stream.packet.axes:
        if op.packet.equivalent(stream.packet):
            return PRESERVE
        raise RuleViolation(
            "ISR-002", "a packet without the axis passes unchanged", expected=str(stream.packet), got=str(op.packet), also=("ISR-005",)
        )
    if op.axis in op.packet.axes:
        raise RuleViolation("ISR-002", f"{op.axis} survives in the packet", expected=str(collapsed), got=str(op.packet), also=("ISR-005",))
    if digits is None or any(d.axis != op.axis for d in digits):
        raise RuleViolation(
            "ISR-002",
            f"the tree collapses all lanes, and {stream.packet} holds more than {op.axis}",
            expected=f"{op.axis} alone in the packet",
            got=str(stream.packet),
            also=("ISR-005",),
        )
    if not op.packet.equivalent(collapsed):
        raise RuleViolation(
            "ISR-005", "a reduced packet collapses to one value", expected=str(collapsed), got=str(op.packet), also=("ISR-002",)
        )
    return TREE


def _check_time(stream: StreamType, op: VectorIntraSliceReduce) -> None:
    rest = without_axis(stream.time, op.axis)
    if rest is None or not op.time.equivalent(rest):
        raise RuleViolation(
            "ISR-002",
            f"the time after the reduction is Time without the factors of {op.axis}, in order",
            expected=str(rest) if rest is not None else f"factors of {op.axis} alone",
            got=str(op.time),
            nearest=str(rest) if rest is not None else None,
        )


def _valid_count(stream: StreamType, state: VectorState, op: VectorIntraSliceReduce, env: ChainEnv) -> ValidCountConfig:
    entry = state.entry or stream
    tracked = {op.axis: env.axes[op.axis]}
    return derive(entry.slice, entry.time, entry.packet, tracked, env.hw, elsewhere=(entry.chip, entry.cluster))


# --- values -----------------------------------------------------------------------------------------------------------


def apply(values: Values, step: Step, env: ChainEnv, operands: Dict[str, Values]) -> Values:
    """Excluded lanes become the identity; then lanes (in the tree path) and time steps are folded, in the hardware's order."""
    current = vector_values(values)
    config: ReduceConfig = step.config
    after = step.after
    assert isinstance(after, StreamType)
    counted = _counted(config, state_of(step.before), step.before)
    data = np.where(counted, current.data, config.reduction.identity_value)
    known = np.asarray(current.defined | ~counted)
    if config.packet_path == TREE:
        lanes = data.shape[-1]
        data = tree_of_lanes(config.reduction.combine, data)[..., None]
        known = np.asarray(known.all(axis=-1, keepdims=True))
        data = np.pad(data, [(0, 0)] * (data.ndim - 1) + [(0, lanes - 1)])
        known = np.pad(known, [(0, 0)] * (known.ndim - 1) + [(0, lanes - 1)])
    folded = fold(config.reduction.combine, _steps_first(data, config), config.reduction.identity_value)
    defined = _steps_first(known, config).all(axis=0)
    shape = after.shape
    return replace(current, data=folded.reshape(shape), defined=defined.reshape(shape), tags=None)


def _counted(config: ReduceConfig, state: VectorState, before: StreamType) -> npt.NDArray[np.bool_]:
    """Which lanes of the 4-way packets are real: shape (slice, time, lane)."""
    entry = state.entry or before
    counts = config.valid_count.valid_sizes(entry.slice.size, entry.time.size)
    lanes = before.packet.size
    if config.narrowed == "vector_narrow_split":
        counts = split_counts(counts, lanes).reshape(entry.slice.size, -1)
    else:
        counts = trim_counts(counts, lanes)
    return np.asarray(np.arange(lanes) < counts[..., None])


def _steps_first(array: npt.NDArray[np.generic], config: ReduceConfig) -> npt.NDArray[np.generic]:
    """Steps of the reduced axis as axis 0, in time order; the surviving steps stay at their place."""
    *space, _, lanes = array.shape
    sizes = [size for size, _ in config.time_factors]
    split = array.reshape(*space, *sizes, lanes)
    reduced = [len(space) + i for i, (_, gone) in enumerate(config.time_factors) if gone]
    moved = np.moveaxis(split, reduced, range(len(reduced)))
    kept = [size for size, gone in config.time_factors if not gone]
    return moved.reshape(config.time_steps, *space, prod(kept), lanes)

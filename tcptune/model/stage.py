"""The shape every engine has: what a checked stage of a chain is, what it costs, and the surroundings it is checked in."""

from __future__ import annotations

from collections.abc import Mapping as Dict
from dataclasses import dataclass, field
from typing import Any

from tcptune.ir.kernels.ops import Op
from tcptune.ir.mappings.axes import Axes
from tcptune.ir.types import StreamType, TensorType
from tcptune.model.hardware import RNGD, Hardware


@dataclass(frozen=True)
class ChainEnv:
    """Surroundings of a chain.

    Attributes:
        context: ``main`` or ``sub``.
        axes: axis sizes in force.
        operands: types of the register and DM tensors that operations name.
        hw: the device.
    """

    context: str
    axes: Axes
    operands: Dict[str, TensorType] = field(default_factory=dict)
    hw: Hardware = RNGD


@dataclass(frozen=True, slots=True)
class StageCost:
    """Cost of one stage in the manual's formulas: `cycles` it is busy, `latency_cycles` until its first output."""

    cycles: int = 0
    latency_cycles: int = 0


@dataclass(frozen=True)
class Step:
    """One checked stage: the stream before and after, the derived configuration and what it costs.

    `derived` holds the derived numbers under the corpus's names; `config` is the engine's own frozen value.
    """

    op: Op
    before: StreamType
    after: StreamType | TensorType
    config: Any = None
    derived: Dict[str, Any] = field(default_factory=dict)
    cost: StageCost = StageCost()

"""Kernels as programs: inputs, steps in order, outputs, plus the oracle they are compared with.

The grammar (M mapping, N integer, T tensor name, S step)::

    Kernel     = (name, axes, chips, inputs, steps, outputs, oracle, tolerance)
    S          = ToDm | ToHbm | ToHost | ToHbmView              one DMA
               | NewDm | NewHbm | Reshape                       no data moves
               | Tile | ChipTile | ClusterTile                  views
               | Redistribute(plan) | AsymmetricChipSlice | AsymmetricClusterSlice | HbmChipShuffle
               | DmaGatherScaled | DmaGatherUnscaled | DmaScatter | DmaScatterUnscaled
               | Loop(var, count, unroll, body of S)
               | TensorUnit(context, begin, ops of `ops`)       one pass of the Tensor Unit

`Kernel.from_json` and `to_json` convert from and to the vocabulary of the conformance corpus; `ir.kernels.kernel_text` has the text form.
"""

from __future__ import annotations

from collections.abc import Iterator
from collections.abc import Mapping as Dict
from dataclasses import dataclass
from typing import Any

from tcptune.errors import InputError
from tcptune.ir.fields import integer, items, need, no_others, number, record, text_of
from tcptune.ir.kernels.steps import (
    AsymmetricChipSlice,
    AsymmetricClusterSlice,
    ChipTile,
    ClusterTile,
    DmaGatherScaled,
    DmaGatherUnscaled,
    DmaScatter,
    DmaScatterUnscaled,
    HbmChipShuffle,
    KernelStep,
    Loop,
    NewDm,
    NewHbm,
    PlanEntry,
    Redistribute,
    Reshape,
    RuntimeCount,
    TensorUnit,
    Tile,
    TileTarget,
    ToDm,
    ToHbm,
    ToHbmView,
    ToHost,
    step_from_json,
)
from tcptune.ir.mappings.axes import Axes
from tcptune.ir.types import TIER_LEVELS, TensorType, dtype

__all__ = [
    "AsymmetricChipSlice",
    "AsymmetricClusterSlice",
    "ChipTile",
    "ClusterTile",
    "DmaGatherScaled",
    "DmaGatherUnscaled",
    "DmaScatter",
    "DmaScatterUnscaled",
    "HbmChipShuffle",
    "Kernel",
    "KernelInput",
    "KernelStep",
    "Loop",
    "NewDm",
    "NewHbm",
    "PlanEntry",
    "Redistribute",
    "Reshape",
    "RuntimeCount",
    "TensorUnit",
    "Tile",
    "TileTarget",
    "ToDm",
    "ToHbm",
    "ToHbmView",
    "ToHost",
    "Tolerance",
    "step_from_json",
]


@dataclass(frozen=True)
class KernelInput:
    """A tensor the kernel is called with.

    Attributes:
        fill: integer formula over axis coordinates, ``linear``, or None (any values).
        values: contents over the live positions in storage order.
        init: the same in words (read by people only).
    """

    name: str
    type: TensorType
    fill: str | None = None
    values: tuple[float, ...] | None = None
    init: str | None = None

    @classmethod
    def from_json(cls, name: str, raw: Dict[str, Any], axes: Axes) -> KernelInput:
        tier = need(raw, "type", f"input {name!r}")
        if tier not in ("Host", "Hbm", "Dm"):
            raise InputError(f"input {name!r:.60}: a kernel is called with Host, Hbm or Dm tensors, not {tier!r:.60}")
        levels = TIER_LEVELS[tier]
        no_others(raw, ("type", "dtype", *levels, "fill", "values", "init"), f"input {name!r}")
        mappings = {level: axes.mapping(text_of(raw[level], level)) for level in levels if level in raw}
        need(raw, "element", f"input {name!r}")
        values = raw.get("values")
        fill = raw.get("fill")
        return cls(
            name,
            TensorType(tier, dtype(need(raw, "dtype", f"input {name!r}")), **mappings),
            None if fill is None else str(fill),
            None if values is None else tuple(number(v, "values") for v in items(values, "values")),
            None if raw.get("init") is None else text_of(raw["init"], "init"),
        )

    def to_json(self) -> dict[str, Any]:
        extra = {"fill": self.fill, "values": None if self.values is None else list(self.values), "init": self.init}
        return {**self.type.to_json(), **{k: v for k, v in extra.items() if v is not None}}


@dataclass(frozen=True)
class Tolerance:
    """How results compare with the oracle (ORACLE-009).

    ``exact``; ``max``: |a - e| <= max(rel |e|, abs); ``sum``: |a - e| <= abs + rel |e|.
    """

    rel: float = 0.0
    abs: float = 0.0
    form: str = "sum"

    @classmethod
    def from_json(cls, raw: Dict[str, Any]) -> Tolerance:
        form = record(raw, "tolerance").get("form", "sum")
        if not isinstance(form, str) or form not in ("exact", "max", "sum"):
            raise InputError(f"unknown tolerance form {form!r:.60}", hint="exact, max or sum")
        return cls(float(number(raw.get("rel", 0), "rel")), float(number(raw.get("abs", 0), "abs")), form)

    def to_json(self) -> dict[str, Any]:
        return {"rel": self.rel, "abs": self.abs, "form": self.form}


@dataclass(frozen=True, repr=False)
class Kernel:
    """A device function: a program over named tensors.

    Attributes:
        name: identifier of the kernel.
        axes: sizes of the axes that mappings speak of.
        chips: chips of the device (HW-008).
        outputs: tensors that are the results, in order.
        oracle: reference in words or as ``einsum …`` (see `exec.running.oracle`), or None.
        tolerance: how results are compared with the oracle, or None.
    """

    name: str
    axes: Axes
    inputs: tuple[KernelInput, ...]
    steps: tuple[KernelStep, ...]
    outputs: tuple[str, ...]
    chips: int = 1
    oracle: str | None = None
    tolerance: Tolerance | None = None

    def __repr__(self) -> str:
        inputs = ", ".join(i.name for i in self.inputs) or "none"
        return f"<Kernel {self.name}: inputs {inputs}; {len(tuple(self.walk()))} steps; output {', '.join(self.outputs)}>"

    @classmethod
    def from_json(cls, raw: Dict[str, Any]) -> Kernel:
        """Reads a kernel case (other keys of the case are ignored).

        Raises:
            InputError: a field is missing or of the wrong kind.
            ParseError, RuleViolation: a mapping is wrong.
        """
        if not isinstance(raw, dict):
            raise InputError("a kernel is an object")
        where = f"kernel {raw.get('id', raw.get('name', ''))!r}"
        axes = Axes({str(k): integer(v, f"axis {k}") for k, v in record(need(raw, "axes", where), "axes").items()})
        output = need(raw, "output", where)
        tolerance = raw.get("tolerance")
        return cls(
            str(raw.get("name", raw.get("id", "kernel"))),
            axes,
            tuple(KernelInput.from_json(n, r, axes) for n, r in record(need(raw, "inputs", where), "inputs").items()),
            tuple(step_from_json(s, axes) for s in items(need(raw, "steps", where), "steps")),
            tuple(text_of(o, "output") for o in output) if isinstance(output, list | tuple) else (text_of(output, "output"),),
            integer(raw.get("chips", 1), "chips"),
            None if raw.get("oracle") is None else text_of(raw["oracle"], "oracle"),
            None if tolerance is None else Tolerance.from_json(tolerance),
        )

    def to_json(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "axes": dict(self.axes.items()),
            "chips": self.chips,
            "inputs": {i.name: i.to_json() for i in self.inputs},
            "steps": [s.to_json() for s in self.steps],
            "output": self.outputs[0] if len(self.outputs) == 1 else list(self.outputs),
            "oracle": self.oracle,
            "tolerance": None if self.tolerance is None else self.tolerance.to_json(),
        }

    def to_text(self) -> str:
        """The `.visa` text form (see `ir.kernels.kernel_text`)."""
        from tcptune.ir.kernels.kernel_text import print_kernel

        return print_kernel(self)

    @classmethod
    def from_text(cls, text: str) -> Kernel:
        """Reads the `.visa` text form; errors name line and column."""
        from tcptune.ir.kernels.kernel_text import parse_kernel

        return parse_kernel(text)

    def walk(self) -> Iterator[KernelStep]:
        """Every step, loop bodies included, in program order (each body once)."""
        yield from _walk(self.steps)


def _walk(steps: tuple[KernelStep, ...]) -> Iterator[KernelStep]:
    for step in steps:
        yield step
        if isinstance(step, Loop):
            yield from _walk(step.body)

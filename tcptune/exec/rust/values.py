"""What an expression of a device function stands for while it is read: tensors of the kernel, views, streams, indices."""

from __future__ import annotations

from collections.abc import Mapping as Dict
from dataclasses import dataclass, replace

from tcptune.exec.rust.syntax.index import Linear
from tcptune.exec.rust.syntax.types import TensorHint
from tcptune.ir.kernels.ops import BeginInterleaved, Op, TileSpec
from tcptune.ir.kernels.steps import NewDm, NewHbm, PlanEntry
from tcptune.ir.mappings.mapping import Mapping
from tcptune.ir.types import DType


@dataclass(frozen=True)
class Device:
    """The device parameter."""


@dataclass(frozen=True)
class Context:
    """One of the device's contexts: ``main``, ``sub``, ``tdma``, ``pdma``."""

    name: str


@dataclass(frozen=True)
class Tensor:
    """A named tensor; element type and levels are None where the text does not determine them."""

    name: str
    tier: str
    dtype: DType | None = None
    levels: Dict[str, Mapping | None] | None = None

    @classmethod
    def of(cls, name: str, hint: TensorHint) -> Tensor:
        return cls(name, hint.tier, hint.dtype, hint.levels)

    def level(self, name: str) -> Mapping | None:
        return None if self.levels is None else self.levels.get(name)

    def hint(self) -> TensorHint:
        return TensorHint(self.tier, self.dtype, self.levels or {})


class Pending:
    """A tensor made by ``new()`` whose type a later use must determine; `tensor` is set then."""

    def __init__(self, name: str, tier: str, offset: int) -> None:
        self.name = name
        self.tier = tier
        self.offset = offset
        self.tensor: Tensor | None = None
        self.step: NewDm | NewHbm | None = None

    def settle(self, hint: TensorHint) -> None:
        """Gives the tensor its type, if `hint` is of its tier and leaves nothing open."""
        known = hint.complete()
        if known is None or hint.tier != self.tier:
            return
        self.tensor = Tensor.of(self.name, hint)
        if self.tier == "Dm":
            self.step = NewDm(self.name, known.dtype, known.cluster, known.slice, known.element, known.chip)
        else:
            self.step = NewHbm(self.name, known.dtype, known.element, known.chip)


@dataclass(frozen=True)
class View:
    """A view of a tensor; `tile` is the part of it that is looked at, None for all."""

    tensor: Tensor
    mutable: bool
    tile: TileSpec | None = None


@dataclass(frozen=True)
class Stream:
    """A Tensor Unit chain that is not ended yet.

    Attributes:
        source: the tensor it begins on (the first of an interleaved pair).
        dtype: element type of the stream so far, None if unknown.
        offsets: byte offset of every operation in the text.
    """

    context: str
    begin: str | BeginInterleaved
    source: Tensor
    ops: tuple[Op, ...] = ()
    dtype: DType | None = None
    offsets: tuple[int, ...] = ()

    def then(self, op: Op, dtype: DType | None, offset: int) -> Stream:
        return replace(self, ops=(*self.ops, op), dtype=dtype, offsets=(*self.offsets, offset))

    def levels(self) -> dict[str, Mapping | None]:
        """Chip, Cluster and Slice at the end: those of the source, as lifts, switches and reductions change them."""
        found = {level: self.source.level(level) for level in ("chip", "cluster", "slice")}
        for op in self.ops:
            found |= {level: value for level in found if isinstance(value := getattr(op, level, None), Mapping)}
        return found


@dataclass(frozen=True)
class Plan:
    """A redistribution plan that is not ended yet."""

    source: Tensor
    entries: tuple[PlanEntry, ...]


@dataclass(frozen=True)
class Index:
    """An integer that is linear in loop variables."""

    value: Linear


@dataclass(frozen=True)
class Scalar:
    """A constant that is no integer."""

    value: float | bool


@dataclass(frozen=True)
class RuntimeIndex:
    """An integer parameter of the function, known at run time only (TUNE-009)."""

    name: str


@dataclass(frozen=True)
class Tuple:
    """Several values, as a function returns them."""

    items: tuple[Value, ...]


Value = Device | Context | Tensor | Pending | View | Stream | Plan | Index | Scalar | RuntimeIndex | Tuple | None


def described(value: Value) -> str:
    """What a value is, for error messages."""
    if isinstance(value, Tensor | Pending):
        return f"{value.tier}Tensor"
    if isinstance(value, View):
        return f"{value.tensor.tier}TensorView{'Mut' if value.mutable else ''}"
    if isinstance(value, Scalar):
        return f"the number {value.value}"
    names = {Stream: "a Tensor Unit stream", Plan: "a redistribution plan", Device: "the device", Context: "a context", Index: "an index"}
    return names.get(type(value), "this value")

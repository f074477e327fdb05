"""The steps of a kernel, one frozen dataclass a device call (the grammar is in `ir.kernels.kernel`)."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping as Dict
from dataclasses import dataclass
from typing import Any, ClassVar, cast

from tcptune.errors import InputError
from tcptune.ir.fields import did_you_mean, flag, integer, integers, items, need, no_others, record, start, text_of
from tcptune.ir.kernels.ops import BeginInterleaved, Op, TileSpec, op_from_json
from tcptune.ir.mappings.axes import Axes
from tcptune.ir.mappings.mapping import IDENTITY, Mapping
from tcptune.ir.types import DType, dtype

MAX_LOOP_DEPTH = 32
"""Deepest nest of loops that is read."""

_JSON_KEY = {"source": "from", "asynchronous": "async"}


@dataclass(frozen=True)
class PlanEntry:
    """One step of a redistribution plan.

    ``chip_shuffle`` has sources, ``cluster_swap`` nothing, ``chip_slice`` and ``cluster_slice`` axis, output and indices.
    """

    op: str
    sources: tuple[int, ...] = ()
    axis: Mapping | None = None
    output: Mapping | None = None
    indices: tuple[int, ...] = ()

    @classmethod
    def from_json(cls, raw: Dict[str, Any], axes: Axes) -> PlanEntry:
        op = text_of(need(raw, "op", "a redistribution plan entry"), "op")
        fields = {"chip_shuffle": ("sources",), "cluster_swap": (), "chip_slice": ("axis", "output", "indices")}
        fields["cluster_slice"] = fields["chip_slice"]
        if op not in fields:
            raise InputError(f"unknown redistribution plan entry {op!r:.60}", hint=f"known: {', '.join(fields)}")
        no_others(raw, (*fields[op], "op"), f"plan entry {op}")
        values = {name: need(raw, name, f"plan entry {op}") for name in fields[op]}
        return cls(
            op,
            integers(values.get("sources", ()), "sources"),
            axes.mapping(values["axis"]) if "axis" in values else None,
            axes.mapping(values["output"]) if "output" in values else None,
            integers(values.get("indices", ()), "indices"),
        )

    def to_json(self) -> dict[str, Any]:
        if self.op == "cluster_swap":
            return {"op": self.op}
        if self.op == "chip_shuffle":
            return {"op": self.op, "sources": list(self.sources)}
        return {"op": self.op, "axis": str(self.axis), "output": str(self.output), "indices": list(self.indices)}


@dataclass(frozen=True)
class TileTarget:
    """A mutable tile of a DM tensor as destination of a redistribution."""

    tensor: str
    tile: TileSpec

    @classmethod
    def from_json(cls, raw: Dict[str, Any], axes: Axes) -> TileTarget:
        return cls(text_of(need(raw, "tensor", "into"), "tensor"), TileSpec.from_json(need(raw, "tile", "into"), axes))

    def to_json(self) -> dict[str, Any]:
        return {"tensor": self.tensor, "tile": self.tile.to_json()}


@dataclass(frozen=True)
class RuntimeCount:
    """A trip count that is known at run time only (TUNE-009)."""

    name: str

    def to_json(self) -> dict[str, str]:
        return {"runtime": self.name}


def _count(value: Any, axes: Axes) -> int | RuntimeCount:
    if isinstance(value, dict):
        return RuntimeCount(text_of(need(value, "runtime", "count"), "runtime"))
    return integer(value, "count")


_READERS: dict[str, Any] = {
    "str": lambda v, axes: text_of(v, "a name"),
    "str | None": lambda v, axes: None if v is None else text_of(v, "a name"),
    "int": lambda v, axes: integer(v, "a number"),
    "bool": lambda v, axes: flag(v, "a flag"),
    "int | str": lambda v, axes: start(v, "start"),
    "tuple[int, ...]": lambda v, axes: integers(v, "a list"),
    "Mapping": lambda v, axes: axes.mapping(text_of(v, "a mapping")),
    "Mapping | None": lambda v, axes: None if v is None else axes.mapping(text_of(v, "a mapping")),
    "DType": lambda v, axes: dtype(v),
    "int | RuntimeCount": _count,
    "tuple[PlanEntry, ...]": lambda v, axes: tuple(PlanEntry.from_json(e, axes) for e in items(v, "a plan")),
    "TileTarget | None": lambda v, axes: None if v is None else TileTarget.from_json(v, axes),
}


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return str(value)
    if isinstance(value, DType):
        return value.name
    if isinstance(value, tuple):
        return [_plain(v) for v in value]
    return value.to_json() if hasattr(value, "to_json") else value


@dataclass(frozen=True)
class KernelStep:
    """Base of all steps; `NAME` is the vendor's method name."""

    NAME: ClassVar[str] = ""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        cls.NAME = re.sub(r"(?<!^)(?=[A-Z])", "_", cls.__name__).lower()
        STEPS[cls.NAME] = cls

    @classmethod
    def from_json(cls, raw: Dict[str, Any], axes: Axes) -> KernelStep:
        """Reads the fields of this step; unknown or missing fields are refused by name."""
        fields = {f.name: f for f in dataclasses.fields(cls)}
        no_others(raw, ("op", *(_JSON_KEY.get(n, n) for n in fields)), f"step {cls.NAME!r}")
        values: dict[str, Any] = {}
        for name, f in fields.items():
            key = _JSON_KEY.get(name, name)
            if key in raw:
                values[name] = _READERS[str(f.type)](raw[key], axes)
            elif f.default is dataclasses.MISSING:
                raise InputError(f"step {cls.NAME!r} misses the field {key!r:.60}")
        return cls(**values)

    def to_json(self) -> dict[str, Any]:
        out: dict[str, Any] = {}
        for f in dataclasses.fields(self):
            value = getattr(self, f.name)
            if f.name == "let":
                if value is not None:
                    out = {"let": value, "op": self.NAME, **out}
            elif value is not None and value != f.default:
                out[_JSON_KEY.get(f.name, f.name)] = _plain(value)
        return out if "op" in out else {"op": self.NAME, **out}


STEPS: dict[str, type[KernelStep]] = {}


@dataclass(frozen=True)
class ToDm(KernelStep):
    """DMA to a new DM tensor; `chip` defaults to that of the source (DMA-002 to 005)."""

    let: str
    source: str
    cluster: Mapping
    slice: Mapping
    element: Mapping
    chip: Mapping | None = None
    context: str = "tdma"


@dataclass(frozen=True)
class ToHbm(KernelStep):
    """DMA to a new HBM tensor (DMA-003; from Host by PCIe, PCIE-002)."""

    let: str
    source: str
    element: Mapping
    chip: Mapping | None = None
    context: str = "tdma"
    asynchronous: bool = False


@dataclass(frozen=True)
class ToHost(KernelStep):
    """HBM to Host by PCIe DMA (PCIE-002)."""

    let: str
    source: str
    element: Mapping
    context: str = "pdma"
    asynchronous: bool = False


@dataclass(frozen=True)
class ToHbmView(KernelStep):
    """DMA into an existing HBM tensor, whole, in its own layout."""

    source: str
    into: str
    context: str = "tdma"


@dataclass(frozen=True)
class NewDm(KernelStep):
    """A DM tensor that nothing has written yet."""

    let: str
    dtype: DType
    cluster: Mapping
    slice: Mapping
    element: Mapping
    chip: Mapping = IDENTITY


@dataclass(frozen=True)
class NewHbm(KernelStep):
    """An HBM tensor that nothing has written yet."""

    let: str
    dtype: DType
    element: Mapping
    chip: Mapping = IDENTITY


@dataclass(frozen=True)
class Reshape(KernelStep):
    """Same address, new mappings, no data moves (DMA-006); levels left out keep their mapping."""

    let: str
    source: str
    element: Mapping | None = None
    chip: Mapping | None = None
    cluster: Mapping | None = None
    slice: Mapping | None = None
    unsafe: bool = False


@dataclass(frozen=True)
class Tile(KernelStep):
    """View of the `len` positions of `axis` that begin at coordinate `start` (MAP-023 to 026)."""

    let: str
    source: str
    axis: Mapping
    len: int
    start: int | str
    element: Mapping
    mutable: bool = False

    @property
    def spec(self) -> TileSpec:
        return TileSpec(self.axis, self.len, self.start, self.element, self.mutable)


@dataclass(frozen=True)
class ChipTile(KernelStep):
    """As `Tile`, on the chip level."""

    let: str
    source: str
    axis: Mapping
    len: int
    start: int | str
    chip: Mapping
    mutable: bool = False


@dataclass(frozen=True)
class ClusterTile(KernelStep):
    """As `Tile`, on the cluster level."""

    let: str
    source: str
    axis: Mapping
    len: int
    start: int | str
    cluster: Mapping
    mutable: bool = False


@dataclass(frozen=True)
class Redistribute(KernelStep):
    """A plan of moves between chips and clusters in one DMA; `finish` is ``to_dm`` (new tensor) or ``to_dm_view`` (into a mutable tile)."""

    source: str
    plan: tuple[PlanEntry, ...]
    finish: str
    let: str | None = None
    context: str = "tdma"
    chip: Mapping | None = None
    cluster: Mapping | None = None
    slice: Mapping | None = None
    element: Mapping | None = None
    into: TileTarget | None = None


@dataclass(frozen=True)
class AsymmetricChipSlice(KernelStep):
    """Each chip keeps its own index of `axis`; a parallel copy on Sub (REDIST-013)."""

    let: str
    source: str
    axis: Mapping
    output: Mapping
    indices: tuple[int, ...]
    context: str = "sub"


@dataclass(frozen=True)
class AsymmetricClusterSlice(KernelStep):
    """Each cluster keeps its own index of `axis`; a parallel copy on Sub (REDIST-013)."""

    let: str
    source: str
    axis: Mapping
    output: Mapping
    indices: tuple[int, ...]
    context: str = "sub"


@dataclass(frozen=True)
class HbmChipShuffle(KernelStep):
    """Chip t receives the HBM tensor of chip `sources[t]` (REDIST-005)."""

    let: str
    source: str
    sources: tuple[int, ...]
    context: str = "tdma"


@dataclass(frozen=True)
class DmaGatherScaled(KernelStep):
    """Rows of the table `source` chosen by an index tensor of byte offsets of rows (GATHER-001, 002, 005)."""

    let: str
    source: str
    index: str
    cluster: Mapping
    slice: Mapping
    element: Mapping
    context: str = "tdma"


@dataclass(frozen=True)
class DmaGatherUnscaled(KernelStep):
    """As `DmaGatherScaled`, the index holding row numbers (GATHER-003)."""

    let: str
    source: str
    index: str
    cluster: Mapping
    slice: Mapping
    element: Mapping
    context: str = "tdma"


@dataclass(frozen=True)
class DmaScatter(KernelStep):
    """Rows of a DM tensor written to the places of `into` that `index` names (GATHER-004)."""

    source: str
    key: Mapping
    index: str
    into: str
    context: str = "tdma"


@dataclass(frozen=True)
class DmaScatterUnscaled(KernelStep):
    """A scatter by row numbers, which the device refuses (GATHER-007)."""

    source: str
    key: Mapping
    index: str
    into: str
    context: str = "tdma"


@dataclass(frozen=True)
class Loop(KernelStep):
    """`body` repeated for `var` = 0 .. `count` - 1; names bound in the body are fresh in each iteration (TUNE-008, TUNE-009)."""

    var: str
    count: int | RuntimeCount
    body: tuple[KernelStep, ...]
    unroll: bool = False

    @classmethod
    def from_json(cls, raw: Dict[str, Any], axes: Axes, depth: int = 0) -> Loop:
        """Reads a loop and its body; `depth` counts the loops around it."""
        if depth >= MAX_LOOP_DEPTH:
            raise InputError(f"loops are nested deeper than {MAX_LOOP_DEPTH}")
        no_others(raw, ("for", "count", "unroll", "body"), "a loop")
        body = tuple(step_from_json(s, axes, depth + 1) for s in items(need(raw, "body", "a loop"), "body"))
        return cls(
            text_of(need(raw, "for", "a loop"), "for"),
            _count(need(raw, "count", "a loop"), axes),
            body,
            flag(raw.get("unroll", False), "unroll"),
        )

    def to_json(self) -> dict[str, Any]:
        count = self.count.to_json() if isinstance(self.count, RuntimeCount) else self.count
        return {"for": self.var, "count": count, "unroll": self.unroll, "body": [s.to_json() for s in self.body]}


@dataclass(frozen=True)
class TensorUnit(KernelStep):
    """One Tensor Unit pass: begins on a DM tensor or tile (or two of them in turn) and runs `ops`.

    `let` is None if the pass ends in `CommitView`.
    """

    context: str
    begin: str | BeginInterleaved
    ops: tuple[Op, ...]
    let: str | None = None

    @classmethod
    def from_json(cls, raw: Dict[str, Any], axes: Axes) -> TensorUnit:
        no_others(raw, ("let", "context", "begin", "begin_interleaved", "ops"), "a Tensor Unit step")
        begin: str | BeginInterleaved
        if "begin_interleaved" in raw:
            pair = raw["begin_interleaved"]
            begin = BeginInterleaved(
                text_of(need(pair, "axis", "begin_interleaved"), "axis"),
                text_of(need(pair, "rhs", "begin_interleaved"), "rhs"),
                text_of(need(pair, "lhs", "begin_interleaved"), "lhs"),
            )
        else:
            begin = text_of(need(raw, "begin", "a Tensor Unit step"), "begin")
        ops = tuple(op_from_json(record(o, "an operation"), axes) for o in items(raw["ops"], "ops"))
        return cls(text_of(need(raw, "context", "a Tensor Unit step"), "context"), begin, ops, _READERS["str | None"](raw.get("let"), axes))

    def to_json(self) -> dict[str, Any]:
        out: dict[str, Any] = {} if self.let is None else {"let": self.let}
        out["context"] = self.context
        if isinstance(self.begin, BeginInterleaved):
            out["begin_interleaved"] = {"axis": self.begin.axis, "lhs": self.begin.lhs, "rhs": self.begin.rhs}
        else:
            out["begin"] = self.begin
        return {**out, "ops": [o.to_json() for o in self.ops]}

    @property
    def begins_on(self) -> tuple[str, ...]:
        """Names of the tensors the pass streams from."""
        if isinstance(self.begin, BeginInterleaved):
            return (cast(str, self.begin.lhs), self.begin.rhs)
        return (self.begin,)


def step_from_json(raw: Dict[str, Any], axes: Axes, depth: int = 0) -> KernelStep:
    """The step that `raw` describes.

    Raises:
        InputError: unknown step or field.
        ParseError, RuleViolation: a mapping in it is wrong.
    """
    if not isinstance(raw, dict):
        raise InputError(f"a step is an object, got {raw!r:.60}")
    if "ops" in raw:
        return TensorUnit.from_json(raw, axes)
    if "for" in raw:
        return Loop.from_json(raw, axes, depth)
    name = raw.get("op")
    if not isinstance(name, str) or name not in STEPS:
        raise InputError(f"unknown step {name!r:.60}", hint=did_you_mean(name, STEPS))
    return STEPS[name].from_json(raw, axes)

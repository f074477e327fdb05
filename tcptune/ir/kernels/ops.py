"""The operations of a Tensor Unit chain outside the Vector Engine, one frozen dataclass a vendor method.

The grammar of a chain (field types: M mapping, D element type, N integer)::

    chain   = [BeginInterleaved] Fetch {Lift} [TableLookup | FetchCast | ZeroPointSub] [Switch] Collect
              (ToTrf | ToVrf | [Contract…] [vector ops] [Cast] [Transpose] CommitTrim [CommitCast | CommitCastRelu] (Commit | CommitView))
    Fetch(time M, packet M)   FetchChipLift(chip M, time M)   …

`op_from_json` and `Op.to_json` convert from and to the vocabulary of the conformance corpus (snake-case name under ``op``).
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable
from collections.abc import Mapping as Dict
from dataclasses import dataclass
from typing import Any, ClassVar

from tcptune.errors import InputError, RuleViolation
from tcptune.ir.fields import did_you_mean, flag, integer, need, text_of
from tcptune.ir.fields import start as start_of
from tcptune.ir.mappings.axes import Axes
from tcptune.ir.mappings.mapping import Mapping
from tcptune.ir.types import DType, dtype


def _snake(name: str) -> str:
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()


@dataclass(frozen=True)
class Op:
    """Base of all chain operations."""

    NAME: ClassVar[str] = ""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        cls.NAME = _snake(cls.__name__)
        OPS[cls.NAME] = cls

    @classmethod
    def from_json(cls, raw: Dict[str, Any], axes: Axes) -> Op:
        """Reads the fields of this operation; unknown or missing fields are refused by name."""
        fields = {f.name: f for f in dataclasses.fields(cls)}
        values: dict[str, Any] = {}
        for key, value in raw.items():
            if key in ("op",):
                continue
            if key not in fields:
                raise InputError(f"operation {cls.NAME!r} has no field {key!r:.60}", hint=did_you_mean(key, fields, "fields"))
            values[key] = _read_field(str(fields[key].type), value, axes)
        missing = [n for n, f in fields.items() if n not in values and f.default is dataclasses.MISSING]
        if missing:
            raise InputError(f"operation {cls.NAME!r} misses the field {missing[0]!r}")
        return cls(**values)

    def to_json(self) -> dict[str, Any]:
        out: dict[str, Any] = {"op": self.NAME}
        for f in dataclasses.fields(self):
            value = getattr(self, f.name)
            if value is not None and value != f.default:
                out[f.name] = _write_field(value)
        return out


OPS: dict[str, type[Op]] = {}


def _plain(kind: type, what: str) -> Callable[[Any, Axes], Any]:
    def read(value: Any, axes: Axes) -> Any:
        if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
            raise InputError(f"{value!r:.60} is no {what}")
        return value

    return read


def _optional(reader: Callable[[Any, Axes], Any]) -> Callable[[Any, Axes], Any]:
    return lambda value, axes: None if value is None else reader(value, axes)


_TEXT, _NUMBER, _FLAG = _plain(str, "name"), _plain(int, "whole number"), _plain(bool, "true or false")

FIELD_READERS: dict[str, Callable[[Any, Axes], Any]] = {
    "str": _TEXT,
    "str | None": _optional(_TEXT),
    "int": _NUMBER,
    "int | None": _optional(_NUMBER),
    "bool": _FLAG,
    "bool | None": _optional(_FLAG),
    "Mapping": lambda v, axes: axes.mapping(v),
    "Mapping | None": lambda v, axes: None if v is None else axes.mapping(v),
    "DType": lambda v, axes: dtype(v),
}
"""How a field of an annotated type is read; modules that add field types (tiles, vector operands) register theirs here."""


def _read_field(annotation: str, value: Any, axes: Axes) -> Any:
    reader = FIELD_READERS.get(annotation)
    return reader(value, axes) if reader else value


def _write_field(value: Any) -> Any:
    if isinstance(value, Mapping):
        return str(value)
    if isinstance(value, DType):
        return value.name
    if hasattr(value, "to_json"):
        return value.to_json()
    if isinstance(value, tuple):
        return [_write_field(v) for v in value]
    return value


def op_from_json(raw: Dict[str, Any], axes: Axes) -> Op:
    """The operation that `raw` describes; a method with a ``mode`` is its form ``…_with_mode`` (VE-035).

    Raises:
        InputError: unknown operation or field.
        ParseError, RuleViolation: a mapping in it is wrong.
    """
    name = raw.get("op")
    if not isinstance(name, str) or name not in OPS:
        raise InputError(f"unknown operation {name!r:.60}", hint=did_you_mean(name, OPS))
    with_mode = f"{name}_with_mode"
    if "mode" in raw and with_mode in OPS:
        return OPS[with_mode].from_json({**raw, "op": with_mode}, axes)
    return OPS[name].from_json(raw, axes)


@dataclass(frozen=True)
class BeginInterleaved(Op):
    """Reads two equal DM tensors in turn; `axis` (size 2) joins Time (FETCH-008)."""

    axis: str
    rhs: str
    lhs: str | None = None

    @classmethod
    def from_json(cls, raw: Dict[str, Any], axes: Axes) -> Op:
        """As `Op.from_json`; more tensors than two are refused by their rule (FETCH-009)."""
        extra = [key for key in raw if key not in ("op", "axis", "rhs", "lhs")]
        if extra or any(isinstance(raw.get(side), list) for side in ("lhs", "rhs")):
            raise RuleViolation(
                "FETCH-009",
                "one fetch interleaves two tensors, lhs and rhs",
                got=", ".join(extra) or "a list of tensors",
                also=("FETCH-008",),
            )
        return super().from_json(raw, axes)


@dataclass(frozen=True)
class Fetch(Op):
    time: Mapping
    packet: Mapping


@dataclass(frozen=True)
class FetchChipLift(Op):
    chip: Mapping
    time: Mapping


@dataclass(frozen=True)
class FetchClusterLift(Op):
    cluster: Mapping
    time: Mapping


@dataclass(frozen=True)
class FetchSliceLift(Op):
    slice: Mapping
    time: Mapping


@dataclass(frozen=True)
class FetchTableLookup(Op):
    dtype: DType


@dataclass(frozen=True)
class FetchCast(Op):
    dtype: DType


@dataclass(frozen=True)
class FetchZeroPointSub(Op):
    dtype: DType
    zero_point: int


@dataclass(frozen=True)
class SwitchConfig:
    """A configuration of the Switch Engine: its kind and the sizes it names (slice1, slice0, time0, ring_size)."""

    kind: str
    slice1: int | None = None
    slice0: int | None = None
    time0: int | None = None
    ring_size: int | None = None

    @classmethod
    def from_json(cls, raw: Dict[str, Any] | str) -> SwitchConfig:
        if isinstance(raw, str):
            return cls(raw)
        if not isinstance(raw, Dict) or len(raw) != 1:
            raise InputError(f"a switch configuration names one kind and its sizes, got {raw!r:.60}")
        ((kind, sizes),) = raw.items()
        if not isinstance(kind, str) or not isinstance(sizes or {}, Dict):
            raise InputError(f"a switch configuration names one kind and its sizes, got {raw!r:.60}")
        known = {"slice1", "slice0", "time0", "ring_size"}
        for key in sizes or {}:
            if key not in known:
                raise InputError(f"switch configuration {kind} has no size {key!r:.60}", hint=f"sizes: {', '.join(sorted(known))}")
        return cls(kind, **(sizes or {}))

    def to_json(self) -> dict[str, Any]:
        sizes = {k: v for k, v in dataclasses.asdict(self).items() if k != "kind" and v is not None}
        return {self.kind: sizes}


FIELD_READERS["SwitchConfig"] = lambda v, axes: SwitchConfig.from_json(v)


@dataclass(frozen=True)
class Switch(Op):
    slice: Mapping
    time: Mapping
    config: SwitchConfig


@dataclass(frozen=True)
class Collect(Op):
    time: Mapping
    packet: Mapping


@dataclass(frozen=True)
class ToTrf(Op):
    lane: Mapping
    element: Mapping


@dataclass(frozen=True)
class ToVrf(Op):
    element: Mapping
    sub_arg: bool = False


@dataclass(frozen=True)
class ContractOuter(Op):
    time: Mapping
    packet: Mapping
    trf: str


@dataclass(frozen=True)
class ContractPacket(Op):
    packet: Mapping


@dataclass(frozen=True)
class ContractTime(Op):
    time: Mapping


@dataclass(frozen=True)
class ContractLane(Op):
    time: Mapping
    packet: Mapping
    mode: str


@dataclass(frozen=True)
class Cast(Op):
    dtype: DType
    packet: Mapping


@dataclass(frozen=True)
class Transpose(Op):
    time: Mapping
    packet: Mapping


@dataclass(frozen=True)
class CommitTrim(Op):
    packet: Mapping


@dataclass(frozen=True)
class CommitCast(Op):
    dtype: DType


@dataclass(frozen=True)
class CommitCastRelu(Op):
    dtype: DType


@dataclass(frozen=True)
class Commit(Op):
    element: Mapping


def _require_fields(raw: Any, names: tuple[str, ...], what: str) -> None:
    missing = [n for n in names if not isinstance(raw, Dict) or n not in raw]
    if missing:
        raise InputError(f"{what} misses the field {missing[0]!r}")


@dataclass(frozen=True)
class TileSpec:
    """A tile of an existing tensor: `len` positions of `axis` from coordinate `start` (MAP-023).

    `start` is a number or an expression in loop variables (``2*pair+1``).
    """

    axis: Mapping
    len: int
    start: int | str
    element: Mapping
    mutable: bool

    @classmethod
    def from_json(cls, raw: Dict[str, Any], axes: Axes) -> TileSpec:
        _require_fields(raw, ("axis", "len", "element"), "a tile")
        where = "a tile"
        axis, element = (axes.mapping(text_of(need(raw, key, where), key)) for key in ("axis", "element"))
        length = integer(need(raw, "len", where), "len")
        return cls(axis, length, start_of(raw.get("start", 0), "start"), element, flag(raw.get("mutable", True), "mutable"))

    def to_json(self) -> dict[str, Any]:
        return {"axis": str(self.axis), "len": self.len, "start": self.start, "element": str(self.element), "mutable": self.mutable}


@dataclass(frozen=True)
class ViewSpec:
    """Destination of a bare `commit_view` in a chain case: the source element mapping and the part of it that is written."""

    source: Mapping
    index: Mapping
    len: int
    start: int
    mutable: bool

    @classmethod
    def from_json(cls, raw: Dict[str, Any], axes: Axes) -> ViewSpec:
        _require_fields(raw, ("source", "index", "len"), "a view")
        where = "a view"
        source, index = (axes.mapping(text_of(need(raw, key, where), key)) for key in ("source", "index"))
        length = integer(need(raw, "len", where), "len")
        return cls(source, index, length, integer(raw.get("start", 0), "start"), flag(raw.get("mutable", True), "mutable"))

    def to_json(self) -> dict[str, Any]:
        return {"source": str(self.source), "index": str(self.index), "len": self.len, "start": self.start, "mutable": self.mutable}


FIELD_READERS["TileSpec | None"] = lambda v, axes: None if v is None else TileSpec.from_json(v, axes)
FIELD_READERS["ViewSpec | None"] = lambda v, axes: None if v is None else ViewSpec.from_json(v, axes)


@dataclass(frozen=True)
class CommitView(Op):
    """Commit into a mutable view: `into` and `tile` in a kernel, `slice`, `element` and `view` in a bare chain."""

    into: str | None = None
    tile: TileSpec | None = None
    slice: Mapping | None = None
    element: Mapping | None = None
    view: ViewSpec | None = None

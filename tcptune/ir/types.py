"""Element types, tensor types and stream types: what a value of a kernel is, without its contents."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from tcptune.errors import InputError
from tcptune.ir.mappings.mapping import IDENTITY, Mapping


@dataclass(frozen=True, slots=True)
class DType:
    """An element type of the device.

    Attributes:
        name: the manual's name, e.g. ``bf16``.
        bits: storage width; i5 and i9 exist only between zero-point subtraction and contraction (FA-011).
        is_float: whether it is a floating-point type.
    """

    name: str
    bits: int
    is_float: bool

    def __str__(self) -> str:
        return self.name

    def bytes_of(self, elements: int) -> int:
        """Bytes of `elements` elements; a trailing partial byte counts as one."""
        return -(-elements * self.bits // 8)

    def elements_in(self, count: int) -> int:
        """Whole elements in `count` bytes."""
        return count * 8 // self.bits


_DTYPES = {
    d.name: d
    for d in (
        DType("i4", 4, False),
        DType("i5", 5, False),
        DType("i8", 8, False),
        DType("i9", 9, False),
        DType("i16", 16, False),
        DType("i32", 32, False),
        DType("f4e2m1", 4, True),
        DType("f8e4m3", 8, True),
        DType("f8e5m2", 8, True),
        DType("bf16", 16, True),
        DType("f16", 16, True),
        DType("f32", 32, True),
    )
}


def dtype(name: str | DType) -> DType:
    """The element type called `name`.

    Raises:
        InputError: no such type; the message lists the known ones.
    """
    if isinstance(name, DType):
        return name
    found = _DTYPES.get(name) if isinstance(name, str) else None
    if found is None:
        raise InputError(f"unknown element type {name!r}", hint=f"known: {', '.join(_DTYPES)}")
    return found


def is_dtype(name: str) -> bool:
    """Whether an element type has this name."""
    return name in _DTYPES


@dataclass(frozen=True, slots=True)
class TensorType:
    """Type of a stored tensor.

    `tier` is ``Host``, ``Hbm``, ``Dm``, ``Trf`` or ``Vrf``. Levels that the tier does not have are the identity (``1``):
    Host has element; Hbm chip, element; Dm and Vrf chip, cluster, slice, element; Trf also lane.
    """

    tier: str
    dtype: DType
    element: Mapping
    chip: Mapping = IDENTITY
    cluster: Mapping = IDENTITY
    slice: Mapping = IDENTITY
    lane: Mapping = IDENTITY

    @property
    def levels(self) -> tuple[tuple[str, Mapping], ...]:
        """(level name, mapping) outermost first, only the levels of the tier."""
        return tuple((name, getattr(self, name)) for name in TIER_LEVELS[self.tier])

    @property
    def shape(self) -> tuple[int, ...]:
        """Positions per level, outermost first."""
        return tuple(m.size for _, m in self.levels)

    @property
    def element_bytes(self) -> int:
        """Bytes of the element mapping, padding included (per slice for Dm and Vrf, per lane for Trf)."""
        return self.dtype.bytes_of(self.element.size)

    def to_json(self) -> dict[str, str]:
        return {"type": self.tier, "dtype": self.dtype.name, **{name: str(m) for name, m in self.levels}}


TIER_LEVELS: dict[str, tuple[str, ...]] = {
    "Host": ("element",),
    "Hbm": ("chip", "element"),
    "Dm": ("chip", "cluster", "slice", "element"),
    "Vrf": ("chip", "cluster", "slice", "element"),
    "Trf": ("chip", "cluster", "slice", "lane", "element"),
}


@dataclass(frozen=True, slots=True)
class StreamType:
    """Type of a stream between two engines of the Tensor Unit.

    `position` is the typed stage (MAP-036): Begin, Fetch, Switch, Collect, ContractOuter, ContractPacket, ContractTime, Contract, Vector…,
    Cast, Transpose, CommitTrim; see `model.pipeline` for the edges. `lane` exists between the outer product and the lane folder only.
    `details` carries what a stage must remember for the next ones (for instance the Vector Engine's stage, way and branch state);
    it is a hashable value that only the owning engine reads.
    """

    position: str
    dtype: DType
    chip: Mapping
    cluster: Mapping
    slice: Mapping
    time: Mapping
    packet: Mapping
    lane: Mapping | None = None
    details: Any = None

    @property
    def levels(self) -> tuple[tuple[str, Mapping], ...]:
        """(level name, mapping) in the order of the value array's axes."""
        names = (
            ("chip", "cluster", "slice", "lane", "time", "packet")
            if self.lane is not None
            else ("chip", "cluster", "slice", "time", "packet")
        )
        return tuple((name, getattr(self, name)) for name in names)

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(m.size for _, m in self.levels)

    @property
    def packet_bytes(self) -> int:
        return self.dtype.bytes_of(self.packet.size)

    def with_(self, **changes: Any) -> StreamType:
        """A copy with some fields replaced."""
        return replace(self, **changes)

    def to_json(self) -> dict[str, str]:
        return {"position": self.position, "dtype": self.dtype.name, **{name: str(m) for name, m in self.levels}}

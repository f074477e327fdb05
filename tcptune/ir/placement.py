"""Placements: how each axis of a workload is cut over Cluster, Slice, Lane, Time and Packet, and the digits that follow.

An axis of size n is padded to the product of its extents. Its digits lie, minor first: Packet, Lane, Time, Slice, Cluster; so a slice
holds one contiguous block of each axis and rows stay whole.
"""

from __future__ import annotations

from collections.abc import Iterable
from collections.abc import Mapping as Dict
from dataclasses import dataclass
from functools import cached_property

LEVELS = ("Cluster", "Slice", "Lane", "Time", "Packet")


@dataclass(frozen=True, slots=True)
class Digit:
    """Positions ``axis / stride % extent``; the empty axis is filler (``1 # extent``: one live position)."""

    axis: str
    stride: int
    extent: int

    def inner(self, extent: int) -> Digit:
        """The minor part with `extent` positions."""
        return Digit(self.axis, self.stride, extent)

    def outer(self, extent: int) -> Digit:
        """The major part with `extent` positions."""
        return Digit(self.axis, self.stride * (self.extent // extent), extent)


@dataclass(frozen=True, slots=True)
class AxisPlacement:
    """Extents of one axis at each level; their product is its padded size."""

    axis: str
    cluster: int = 1
    slice: int = 1
    lane: int = 1
    time: int = 1
    packet: int = 1

    @property
    def in_slice(self) -> int:
        """Positions of the axis that one slice holds."""
        return self.lane * self.time * self.packet

    @property
    def padded(self) -> int:
        return self.cluster * self.slice * self.in_slice

    def to_json(self) -> dict[str, int]:
        extents = (self.cluster, self.slice, self.lane, self.time, self.packet)
        return {level: n for level, n in zip(LEVELS, extents, strict=True) if n > 1} or {"Time": 1}

    @classmethod
    def from_json(cls, axis: str, raw: Dict[str, int]) -> AxisPlacement:
        return cls(axis, **{level.lower(): size for level, size in raw.items()})


@dataclass(frozen=True)
class Placement:
    """Extents of every axis of a workload, in the workload's axis order."""

    axes: tuple[AxisPlacement, ...]

    @cached_property
    def _by_axis(self) -> dict[str, AxisPlacement]:
        return {a.axis: a for a in self.axes}

    def of(self, axis: str) -> AxisPlacement:
        return self._by_axis[axis]

    @property
    def live_clusters(self) -> int:
        return _product(a.cluster for a in self.axes)

    @property
    def live_slices(self) -> int:
        return _product(a.slice for a in self.axes)

    def to_json(self) -> dict[str, dict[str, int]]:
        return {a.axis: a.to_json() for a in self.axes}

    @classmethod
    def from_json(cls, raw: Dict[str, Dict[str, int]]) -> Placement:
        return cls(tuple(AxisPlacement.from_json(axis, extents) for axis, extents in raw.items()))


def _product(numbers: Iterable[int]) -> int:
    result = 1
    for n in numbers:
        result *= n
    return result


def positions(digits: Iterable[Digit]) -> int:
    """Number of positions that `digits` span."""
    return _product(d.extent for d in digits)


def merged(digits: Iterable[Digit]) -> list[Digit]:
    """The same positions with neighbouring digits of one axis joined: ``I / 4 % 8, I % 4`` becomes ``I % 32``."""
    out: list[Digit] = []
    for digit in digits:
        if digit.extent == 1:
            continue
        last = out[-1] if out else None
        if last is not None and last.axis == digit.axis and digit.axis and last.stride == digit.stride * digit.extent:
            out[-1] = Digit(digit.axis, digit.stride, last.extent * digit.extent)
        else:
            out.append(digit)
    return out


@dataclass(frozen=True, slots=True)
class AxisText:
    """How mappings write one whole axis: its name, with padding where its placement needs some (``I # 512``, ``K #{0} 2000``)."""

    text: str
    size: int


def expression(digits: Iterable[Digit], axes: Dict[str, AxisText]) -> str:
    """Mapping text of `digits`, outermost first; ``1`` if there are none.

    >>> expression([Digit("i", 8, 64), Digit("i", 1, 4)], {"i": AxisText("I", 512)})
    'I / 8, I % 4'
    """
    terms = []
    for digit in merged(digits):
        if not digit.axis:
            terms.append(f"1 # {digit.extent}")
            continue
        whole = axes[digit.axis]
        text = whole.text
        if digit.stride > 1:
            text += f" / {digit.stride}"
        if digit.stride * digit.extent < whole.size:
            text += f" % {digit.extent}"
        terms.append(text)
    return ", ".join(terms) or "1"


def without(digits: Iterable[Digit], taken: Digit) -> list[Digit]:
    """`digits` with the positions of `taken` cut out; a digit that contains it splits into the parts above and below.

    >>> without([Digit("j", 1, 32)], Digit("j", 4, 2))
    [Digit(axis='j', stride=8, extent=4), Digit(axis='j', stride=1, extent=4)]
    """
    out: list[Digit] = []
    low, high = taken.stride, taken.stride * taken.extent
    for digit in digits:
        begin, end = digit.stride, digit.stride * digit.extent
        if digit.axis != taken.axis or begin >= high or end <= low:
            out.append(digit)
            continue
        if end > high:
            out.append(Digit(digit.axis, high, end // high))
        if begin < low:
            out.append(Digit(digit.axis, begin, low // begin))
    return out

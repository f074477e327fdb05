"""Placement tables: every way to cut the axes of a contraction over the levels, as numpy columns priced all at once.

Enumerating placements through a solver's callback is a hundred times slower; `solver.placement` uses CP-SAT where a proof is asked.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from math import prod
from operator import attrgetter

import numpy as np
import numpy.typing as npt

from tcptune.exec.lowering.layout import summed_row
from tcptune.ir.placement import AxisPlacement, Placement
from tcptune.ir.types import DType
from tcptune.ir.workload import BATCH, K, Workload
from tcptune.model.hardware import RNGD, Hardware

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Demand:
    """What a placement asks of a memory of a slice: the product of `extent` over `axes`, in elements, at most `capacity`.

    Attributes:
        divided: whether slices divide the extents, as clusters do in any case.
    """

    axes: tuple[str, ...]
    extent: Callable[[AxisPlacement], int]
    capacity: float
    divided: bool = True


@dataclass(frozen=True)
class Family:
    """Placements that share which operand waits, and which axis each operand has innermost when it is fetched.

    Attributes:
        stationary: input held in the register file.
        relayout: for each input the axis a copy pass makes innermost, or empty.
    """

    workload: Workload
    stationary: int
    relayout: tuple[str, str]
    hw: Hardware = RNGD

    @property
    def stream(self) -> int:
        return 1 - self.stationary

    def innermost(self, index: int) -> str:
        return self.relayout[index] or self.workload.inputs[index][-1]

    @property
    def packet_axis(self) -> str:
        """Axis of the stream's packet, empty if none fits both operands (then one element a packet)."""
        axis = self.innermost(self.stream)
        shared = self.workload.roles()[axis] in (K, BATCH)
        return axis if not shared or self.innermost(self.stationary) == axis else ""

    @property
    def sums_packet(self) -> bool:
        return not self.packet_axis or self.workload.roles()[self.packet_axis] == K

    @property
    def lane_axes(self) -> tuple[str, ...]:
        """Output axes that only the stationary operand has."""
        w = self.workload
        return tuple(a for a in w.output if a in w.inputs[self.stationary] and a not in w.inputs[self.stream])

    def staged(self, option: AxisPlacement) -> int:
        """Positions of an axis of the stationary operand in the register file of a slice: packets are padded to flits.

        Rows that only this operand pads are staged in full, a flit a packet (`Layout.held`, `Layout.staging_packet`).
        """
        row = summed_row(self.workload, self.stationary, option.axis)
        if row > option.padded:
            return row
        if option.axis != self.innermost(self.stationary):
            return option.in_slice
        flit = self.workload.dtype.elements_in(self.hw.flit_bytes)
        return option.in_slice // option.packet * -(-option.packet // flit) * flit

    @property
    def demands(self) -> tuple[Demand, ...]:
        """What every plan of a placement holds in a slice: the stationary operand in the register file, the result once in data memory.

        And of each operand in data memory its share of the largest ring there may be, over all slices that do not divide it. What settings
        need beyond that (both operands at once, copies, a gather's second result) is for the compiler to refuse (DM-003).
        """
        w, hw = self.workload, self.hw
        element = w.dtype.bits / 8
        spread = hw.dm_bytes_per_slice * hw.slices_per_cluster / element
        return (
            Demand(w.inputs[self.stationary], self.staged, hw.trf_bytes_per_slice / element),
            Demand(w.output, attrgetter("in_slice"), hw.dm_bytes_per_slice / (w.out_dtype.bits / 8)),
            *(Demand(axes, _in_cluster, spread, divided=False) for axes in w.inputs),
        )


def _in_cluster(option: AxisPlacement) -> int:
    """Positions of an axis in all slices of a cluster together."""
    return option.slice * option.in_slice


def families(workload: Workload) -> list[Family]:
    """All families of a contraction: either operand stationary, each as it lies or copied so that a summed axis is innermost.

    What leaves the stream without a packet is left out, except where both operands lie as they are.
    """
    summed = [a for a, role in workload.roles().items() if role == K]
    copies = [("", *(a for a in summed if a != inputs[-1])) for inputs in workload.inputs]
    found = [Family(workload, stationary, (first, second)) for stationary in (0, 1) for first, second in itertools.product(*copies)]
    return [family for family in found if family.packet_axis or not any(family.relayout)]


def powers(limit: int, most: int) -> list[int]:
    """1, 2, 4 … up to `most`, as long as the one before is below `limit` (so that padding stays below a factor of two)."""
    out = [1]
    while out[-1] * 2 <= most and out[-1] < limit:
        out.append(out[-1] * 2)
    return out


def summed_size(workload: Workload, axis: str) -> int:
    """Positions of a summed axis: its size, host padding included if it is innermost in both inputs."""
    if all(inputs[-1] == axis for inputs in workload.inputs):
        return workload.row_elements(workload.inputs[0], workload.dtype)
    return workload.size(axis)


def axis_options(family: Family, axis: str) -> list[AxisPlacement]:
    """Every placement of one axis in a family."""
    w, hw = family.workload, family.hw
    size = summed_size(w, axis) if w.roles()[axis] == K else w.size(axis)
    packets = _packet_options(family, axis, size)
    if w.roles()[axis] == K:
        splits = [1] if w.epilogue else powers(size, hw.slices_per_cluster)
        half_padded = any(summed_row(w, index, axis) > size for index in (0, 1))
        halves = [1] if w.epilogue or half_padded else powers(size, hw.clusters_per_chip)
        return [
            AxisPlacement(axis, c, n, time=size // (c * n * p), packet=p)
            for c, n, p in itertools.product(halves, splits, packets)
            if size % (c * n * p) == 0
        ]
    word = w.dtype.elements_in(hw.stream_alignment_bytes)
    rows = any(inputs[-1] == axis for inputs in w.inputs)  # a slice's part of a row is whole 8-byte words (DMA-005)
    lanes = [n for n in hw.legal_lane_counts if n < 2 * size] if axis in family.lane_axes else [1]
    out = []
    for cluster, slices, lane, packet in itertools.product(
        powers(size, hw.clusters_per_chip), powers(size, hw.slices_per_cluster), lanes, packets
    ):
        spread = cluster * slices
        inner = lane * packet
        least = -(-size // (spread * inner))
        if spread > 1 and (spread // 2) * inner >= size:
            continue
        for time in _times(least, size // (spread * inner)):
            if spread == 1 or not rows or time * inner % word == 0:
                out.append(AxisPlacement(axis, cluster, slices, lane, time, packet))
    return out


def _times(least: int, size: int) -> list[int]:
    """Extents of an output axis in Time: the least, and the power of two above it while padding stays below a factor of two.

    Powers of two divide over rings and gathers where an odd extent does not.
    """
    power = 1 << (least - 1).bit_length()
    return [least, power] if least < power < 2 * size else [least]


def _packet_options(family: Family, axis: str, size: int) -> list[int]:
    """Packet extents of one axis, largest first: every power of two of words up to two flits in the stream's packet, up to one elsewhere.

    A summed axis is not padded, so its packet divides it. Others are padded to packets at most up to the next power of two, or to a flit:
    a padded flit of a short axis is written without a transpose, and staged without padding behind it.
    """
    element: DType = family.workload.dtype
    flit, word = element.elements_in(family.hw.flit_bytes), element.elements_in(family.hw.stream_alignment_bytes)
    summed = family.workload.roles()[axis] == K
    innermost = (family.innermost(family.stationary), family.innermost(family.stream))
    if axis == family.packet_axis:
        limit = 2 * flit if summed else min(2 * flit, family.hw.accumulator_columns)
    elif axis in innermost:
        limit = flit
    else:
        return [1]
    extents = [word << n for n in range((limit // word).bit_length())]
    if summed:
        return [p for p in reversed(extents) if size % p == 0] or [_largest_power(size, flit)]
    whole = [flit] if axis in (family.packet_axis, innermost[0]) else []
    least = max(word, 1 << max(0, size - 1).bit_length())
    return sorted({*whole, *(min(p, least) for p in extents)}, reverse=True)


def _largest_power(size: int, limit: int) -> int:
    return min(limit, size & -size)


@dataclass(frozen=True)
class PlacementTable:
    """All placements of a family as columns; `options[a][choice[r, n]]` is the placement of axis n in row r."""

    family: Family
    axes: tuple[str, ...]
    options: tuple[tuple[AxisPlacement, ...], ...]
    choice: Ints
    complete: bool = True
    """Whether every placement of the family has its row (else the idlest were left out)."""

    @property
    def rows(self) -> int:
        return len(self.choice)

    def placement(self, row: int) -> Placement:
        return Placement(tuple(self.options[n][int(k)] for n, k in enumerate(self.choice[row])))

    def column(self, axis: str, level: str) -> Ints:
        """Extent of `axis` at `level` (an attribute of `AxisPlacement`) in every row."""
        n = self.axes.index(axis)
        values = np.array([getattr(o, level) for o in self.options[n]], dtype=np.int64)
        return np.asarray(values[self.choice[:, n]], dtype=np.int64)

    def product(self, axes: tuple[str, ...] | list[str], level: str) -> Ints:
        result = np.ones(self.rows, dtype=np.int64)
        for axis in axes:
            result = result * self.column(axis, level)
        return result

    def with_one(self, placement: Placement | None) -> PlacementTable:
        """The same table with this placement as its only row; without rows if there is none."""
        if placement is None:
            return replace(self, choice=self.choice[:0])
        chosen = [self.options[n].index(placement.of(axis)) for n, axis in enumerate(self.axes)]
        return replace(self, choice=np.array([chosen], dtype=np.int64))

    @cached_property
    def live_slices(self) -> Ints:
        return self.product(self.axes, "slice")

    @cached_property
    def live_clusters(self) -> Ints:
        return self.product(self.axes, "cluster")

    def block(self, index: int) -> Ints:
        """Elements of operand `index` that a slice holds during the pass."""
        return self.product(self.family.workload.inputs[index], "in_slice")

    def output_block(self) -> Ints:
        return self.product(self.family.workload.output, "in_slice")

    def staged_flits(self) -> Ints:
        """Flits of the stationary operand in the register file of a slice (HW-004)."""
        staged = np.ones(self.rows, dtype=np.int64)
        for axis in self.family.workload.inputs[self.family.stationary]:
            n = self.axes.index(axis)
            staged *= np.array([self.family.staged(option) for option in self.options[n]], dtype=np.int64)[self.choice[:, n]]
        return staged // self._flit_elements

    def streamed_flits(self) -> Ints:
        """Flits of the stream that a slice fetches once; of rows that only the stream pads, the live ones."""
        axis = self.family.packet_axis
        packet = self.column(axis, "packet") if axis else np.ones(self.rows, dtype=np.int64)
        return self.block(self.family.stream) // packet * -(-packet // self._flit_elements)

    @property
    def _flit_elements(self) -> int:
        return self.family.workload.dtype.elements_in(self.family.hw.flit_bytes)


def placement_table(family: Family, limit_rows: int = 400_000) -> PlacementTable:
    """The table of a family: at most one lane axis, slices, clusters and memories respected (HW-001, HW-003, HW-004).

    Axes are added one at a time. Of more than `limit_rows` rows those with most live slices are kept.
    """
    axes = family.workload.axes
    options = tuple(tuple(axis_options(family, a)) for a in axes)
    rows = _Rows.none(len(family.demands))
    complete = True
    for number in range(len(axes)):
        rows, whole = _with_axis(family, axes, options, rows, number, limit_rows)
        complete = complete and whole
    return PlacementTable(family, axes, options, rows.choice, complete)


@dataclass(frozen=True)
class _Rows:
    """Rows over the first axes: what they have chosen, their live clusters, slices and lane axes, and a column for each demand."""

    choice: Ints
    clusters: Ints
    slices: Ints
    lanes: Ints
    demanded: Floats

    @classmethod
    def none(cls, demands: int) -> _Rows:
        """The one row over no axis."""
        one = np.ones(1, dtype=np.int64)
        return cls(np.zeros((1, 0), dtype=np.int64), one, one, 0 * one, np.ones((1, demands)))

    def part(self, kept: Ints | slice) -> _Rows:
        return _Rows(self.choice[kept], self.clusters[kept], self.slices[kept], self.lanes[kept], self.demanded[kept])

    def busiest(self, count: int) -> _Rows:
        """The `count` rows with most live slices, in their order."""
        order = np.argsort(-(self.slices * self.clusters), kind="stable")
        return self.part(np.sort(order[:count]))

    @classmethod
    def joined(cls, parts: list[_Rows]) -> _Rows:
        columns = [(p.choice, p.clusters, p.slices, p.lanes, p.demanded) for p in parts]
        return cls(*(np.concatenate(column) for column in zip(*columns, strict=True)))


_SLAB_ROWS = 1 << 18
"""Rows that are made at a time, before those that do not fit are dropped."""


def _with_axis(
    family: Family, axes: tuple[str, ...], options: tuple[tuple[AxisPlacement, ...], ...], rows: _Rows, number: int, limit: int
) -> tuple[_Rows, bool]:
    """Rows with every option of one more axis that may still fit the machine, at most `limit`, and whether these are all."""
    demands, count = family.demands, len(options[number])
    levels = [[getattr(o, level) for o in options[number]] for level in ("cluster", "slice", "lane")]
    clusters, slices, lanes = np.array(levels, dtype=np.int64)
    extents = [[d.extent(o) if axes[number] in d.axes else 1 for d in demands] for o in options[number]]
    demanded = np.array(extents, dtype=np.float64).reshape(count, len(demands))
    rest = [_Rest.of(d, axes[number + 1 :], options[number + 1 :], family) for d in demands]
    found, whole = [], True
    step = max(1, _SLAB_ROWS // max(1, count))
    for first in range(0, len(rows.choice), step):
        old = rows.part(slice(first, first + step))
        source, chosen = (grid.ravel() for grid in np.indices((len(old.choice), count)))
        old = old.part(source)
        made = _Rows(
            np.concatenate([old.choice, chosen[:, None]], axis=1),
            old.clusters * clusters[chosen],
            old.slices * slices[chosen],
            old.lanes + (lanes[chosen] > 1),
            old.demanded * demanded[chosen],
        )
        fits = (made.clusters <= family.hw.clusters_per_chip) & (made.slices <= family.hw.slices_per_cluster) & (made.lanes <= 1)
        made = made.part(np.flatnonzero(fits))
        for n, remaining in enumerate(rest):
            made = made.part(np.flatnonzero(made.demanded[:, n] * remaining.least(made.clusters, made.slices) <= demands[n].capacity))
        found.append(made)
        if sum(len(f.choice) for f in found) > 2 * limit:
            found, whole = [_Rows.joined(found).busiest(limit)], False
    if not found:
        return rows.part(slice(0)), whole
    joined = _Rows.joined(found)
    return (joined, whole) if len(joined.choice) <= limit else (joined.busiest(limit), False)


@dataclass(frozen=True)
class _Rest:
    """What the axes that are still to be placed add to a demand at least: their smallest options, or all positions shared out at best."""

    smallest: int
    positions: int
    demand: Demand
    hw: Hardware

    @classmethod
    def of(cls, demand: Demand, axes: tuple[str, ...], options: tuple[tuple[AxisPlacement, ...], ...], family: Family) -> _Rest:
        own = [(axis, found) for axis, found in zip(axes, options, strict=True) if axis in demand.axes and found]
        smallest = prod(min(map(demand.extent, found)) for _, found in own)
        return cls(smallest, prod(family.workload.size(axis) for axis, _ in own), demand, family.hw)

    def least(self, clusters: Ints, slices: Ints) -> Floats:
        shares = self.hw.clusters_per_chip // clusters
        if self.demand.divided:
            shares = shares * (self.hw.slices_per_cluster // slices)
        return np.maximum(float(self.smallest), self.positions / shares)

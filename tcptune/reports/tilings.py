"""Every legal way to lay one HBM tensor over clusters and slices, with the predicted cost of its load or store.

Each axis is cut into three digits, ``outer x slice x inner``: the middle one goes to Slice, the others stay in the element of a slice in
the order of the HBM layout; an outermost digit of 2 of one axis may go to Cluster. Every tiling is checked and priced as a kernel of one
DMA.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from itertools import product
from math import isqrt, prod
from typing import Any

from tcptune.errors import InputError, RuleViolation
from tcptune.exec.program.check import check_kernel
from tcptune.ir.kernels.kernel import Kernel, KernelInput
from tcptune.ir.kernels.steps import ToDm, ToHbm
from tcptune.ir.mappings.axes import Axes
from tcptune.ir.mappings.mapping import IDENTITY, Mapping, Symbol, broadcast, factors, pair
from tcptune.ir.types import DType, TensorType
from tcptune.model.hardware import RNGD, Hardware
from tcptune.reports.kernel_costs import kernel_costs

MOST_TILINGS = 1_000
"""Tilings that are priced; those that use the most slices come first."""


@dataclass(frozen=True, slots=True)
class Tiling:
    """A placement of the tensor in DM and what moving it there, or back, costs. Bytes and pieces as in `reports.kernel_costs`."""

    cluster: str
    slice: str
    element: str
    cycles: int
    pieces: int
    run_bytes: int
    descriptors: int
    bytes_per_slice: int


@dataclass(frozen=True)
class Tilings:
    """All tilings of one tensor, cheapest first.

    Attributes:
        enumerated: ways to cut the axes that fit the slices.
        refused: rule → tilings among the priced ones that break it.
    """

    layout: str
    dtype: str
    store: bool
    profile: str
    enumerated: int
    refused: dict[str, int]
    found: tuple[Tiling, ...]

    def to_json(self) -> dict[str, Any]:
        """The ``tilings/1`` document."""
        return {
            "schema": "tcptune/tilings/1",
            "layout": self.layout,
            "dtype": self.dtype,
            "direction": "store" if self.store else "load",
            "profile": self.profile,
            "enumerated": self.enumerated,
            "refused": self.refused,
            "tilings": [asdict(tiling) for tiling in self.found],
        }


def tilings(layout: Mapping, axes: Axes, dtype: DType, *, store: bool = False, profile: str = "vendor", hw: Hardware = RNGD) -> Tilings:
    """Prices the tilings of a tensor that lies in HBM as `layout`.

    Raises:
        InputError: the layout is no list of whole axes, or there is no such profile.
    """
    symbols = [part for part in factors(layout) if isinstance(part, Symbol)]
    if len(symbols) != len(factors(layout)) or len({s.name for s in symbols}) != len(symbols):
        raise InputError(f"the layout {layout} is no list of different whole axes", hint='for example "I, K"')
    placements = sorted(_placements(symbols, hw), key=lambda p: (-p[1].live_size * p[0].live_size, str(p)))
    hbm = TensorType("Hbm", dtype, layout)
    found: list[Tiling] = []
    refused: Counter[str] = Counter()
    for cluster, slices, element in placements[:MOST_TILINGS]:
        dm = TensorType("Dm", dtype, element, IDENTITY, cluster, slices)
        try:
            (cost,) = kernel_costs(check_kernel(_kernel(axes, hbm, dm, store=store), hw), profile)
        except RuleViolation as violation:
            refused[violation.rule] += 1
            continue
        if cost.cycles is not None:
            pieces, run_bytes, descriptors = (int(cost.facts[name]) for name in ("pieces", "run_bytes", "descriptors"))
            found.append(Tiling(str(cluster), str(slices), str(element), cost.cycles, pieces, run_bytes, descriptors, dm.element_bytes))
    found.sort(key=lambda t: (t.cycles, t.bytes_per_slice, t.cluster, t.slice))
    return Tilings(str(layout), dtype.name, store, profile, len(placements), dict(sorted(refused.items())), tuple(found))


def _kernel(axes: Axes, hbm: TensorType, dm: TensorType, *, store: bool) -> Kernel:
    """One DMA between the two types."""
    if store:
        return Kernel("store", axes, (KernelInput("x", dm),), (ToHbm("y", "x", hbm.element, IDENTITY),), ("y",))
    return Kernel("load", axes, (KernelInput("x", hbm),), (ToDm("y", "x", dm.cluster, dm.slice, dm.element, IDENTITY),), ("y",))


def _placements(symbols: list[Symbol], hw: Hardware) -> Iterator[tuple[Mapping, Mapping, Mapping]]:
    """(cluster, slice, element) of every way to cut the axes."""
    clusters = hw.clusters_per_chip
    for halved in [None, *(n for n, s in enumerate(symbols) if s.size % clusters == 0)]:
        sizes = [s.size // clusters if n == halved else s.size for n, s in enumerate(symbols)]
        for cuts in product(*(list(_cuts(size, hw.slices_per_cluster)) for size in sizes)):
            used = prod(middle for middle, _ in cuts)
            if used > hw.slices_per_cluster:
                continue
            cluster = broadcast(1).pad(clusters) if halved is None else symbols[halved].stride(sizes[halved])
            slices = pair(*(_digit(s, inner, middle) for s, (middle, inner) in zip(symbols, cuts, strict=True)))
            element = pair(
                *(
                    part
                    for s, size, (middle, inner) in zip(symbols, sizes, cuts, strict=True)
                    for part in (_digit(s, middle * inner, size // (middle * inner)), _digit(s, 1, inner))
                )
            )
            yield cluster, slices if used == hw.slices_per_cluster else slices.pad(hw.slices_per_cluster), element


def _cuts(size: int, most: int) -> Iterator[tuple[int, int]]:
    """(slice digit, inner digit) of a size; an axis of which nothing goes to Slice stays whole."""
    yield 1, size
    divisors = [n for n in range(1, isqrt(size) + 1) if size % n == 0]
    divisors += [size // n for n in reversed(divisors) if n * n != size]
    for middle in divisors:
        if 1 < middle <= most:
            yield from ((middle, inner) for inner in divisors if (size // middle) % inner == 0)


def _digit(axis: Symbol, stride: int, extent: int) -> Mapping:
    """``axis / stride % extent`` in its shortest form."""
    if extent == 1:
        return IDENTITY
    blocks: Mapping = axis if stride == 1 else axis.stride(stride)
    return blocks if blocks.size == extent else blocks.modulo(extent)

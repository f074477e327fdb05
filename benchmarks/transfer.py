"""Pricing of a transfer: at most 2 ms the first time and 100 µs from the cache in the median, and no growth with the bytes that move."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from itertools import product
from statistics import median
from time import perf_counter

from tcptune.errors import RuleViolation
from tcptune.ir.mappings.axes import Axes
from tcptune.ir.types import TensorType, dtype
from tcptune.model.engines import dma
from tcptune.model.memory import descriptors, layout, price, streams, transfer

UNCACHED_MS, CACHED_US, GROWTH = 2.0, 100.0, 3.0
_CACHES = (
    price._price,
    streams.request_streams,
    descriptors.engine_commands,
    layout._kinds,
    transfer.prove_move,
    transfer._held_boxes,
    dma.check_transfer,
)

Transfer = tuple[TensorType, TensorType]


def template_transfers() -> Iterator[Transfer]:
    """Loads and stores of the placements that a matrix product, a matrix-vector product and a row reduction go through."""
    for m, n, k in ((512, 512, 64), (2048, 256, 1024), (256, 2048, 2048), (4096, 4096, 512)):
        axes = Axes(M=m, N=n, K=k)
        for cluster, over_m in product(("1 # 2", "M / {c}", "2"), (1, 4, 16, 64, 256)):
            in_cluster = m // 2 if cluster.startswith("M") else m
            rows = in_cluster // over_m
            cols = n * over_m // 256
            if not rows or not cols or n % cols:
                continue
            m_part = f"M % {in_cluster} / {rows}" if in_cluster < m else f"M / {rows}"
            slice_ = axes.mapping(f"{m_part}, N / {cols}")
            clusters = axes.mapping(cluster.format(c=m // 2))
            a, b = (TensorType("Hbm", dtype("bf16"), axes.mapping(e)) for e in ("M, K", "N, K"))
            out = TensorType("Hbm", dtype("bf16"), axes.mapping("M, N"))
            for source, element in ((a, f"M % {rows}, K"), (b, f"N % {cols}, K")):
                yield source, TensorType("Dm", dtype("bf16"), axes.mapping(element), cluster=clusters, slice=slice_)
            if cluster != "2":
                yield TensorType("Dm", dtype("bf16"), axes.mapping(f"M % {rows}, N % {cols}"), cluster=clusters, slice=slice_), out


def clear() -> None:
    """Forgets everything that pricing remembers."""
    for cache in _CACHES:
        cache.cache_clear()


def timed(source: TensorType, dest: TensorType) -> float:
    """Seconds of one pricing."""
    begin = perf_counter()
    price.price_transfer(source, dest)
    return perf_counter() - begin


def row_transfer(row_elements: int) -> Transfer:
    """A row of so many f32 to each of 256 slices of both clusters."""
    axes = Axes(A=512, B=row_elements)
    dest = TensorType("Dm", dtype("f32"), axes.mapping("B"), cluster=axes.mapping("A / 256"), slice=axes.mapping("A % 256"))
    return TensorType("Hbm", dtype("f32"), axes.mapping("A, B")), dest


def main() -> int:
    transfers = []
    for pair in template_transfers():
        try:
            dma.check_transfer(*pair)
        except RuleViolation:
            continue
        transfers.append(pair)
    uncached, cached = [], []
    for pair in transfers:
        clear()
        uncached.append(timed(*pair))
        cached.append(median(timed(*pair) for _ in range(5)))
    growth = []
    for row_elements in (2**10, 2**16):
        runs = []
        for _ in range(9):
            clear()
            runs.append(timed(*row_transfer(row_elements)))
        growth.append(median(runs))
    first, again, ratio = median(uncached) * 1e3, median(cached) * 1e6, growth[1] / growth[0]
    worst = max(uncached) * 1e3
    print(f"transfers {len(transfers)}")
    print(f"first pricing    median {first:.2f} ms (at most {UNCACHED_MS}), slowest {worst:.2f} ms")
    print(f"from the cache   median {again:.1f} µs (at most {CACHED_US})")
    print(f"64 times the bytes: {ratio:.2f} times the work (at most {GROWTH})")
    return int(first > UNCACHED_MS or again > CACHED_US or ratio > GROWTH)


if __name__ == "__main__":
    sys.exit(main())

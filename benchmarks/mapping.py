"""Mapping algebra: time of normal form, equivalence, Sequencer derivation and position tables, and that sizes do not matter.

Targets: medians below 200 µs uncached and 2 µs cached; axes of 2^30 at most 1.5 times axes of 2^10; a table of 4 million cells at most
5 times `numpy.unravel_index`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from statistics import median
from time import perf_counter

import numpy as np

from tcptune.ir.mappings import cells
from tcptune.ir.mappings.algebra import equivalent
from tcptune.ir.mappings.axes import Axes
from tcptune.ir.mappings.mapping import Mapping
from tcptune.ir.mappings.normal_form import normal_form
from tcptune.model.sequencer.derivation import derive_read

UNCACHED_US, CACHED_US, GROWTH, TABLE_RATIO = 200.0, 2.0, 1.5, 5.0

FOUR_TERMS = (
    ("A / 4, N / 16, B, N % 16", "A / 4, N / 32, N / 16 % 2, B, N % 16"),
    ("A, B, C # 64, N", "A / 8, A % 8, B, C # 64 / 8, C # 64 % 8, N"),
    ("A # 80 / 4, B, A # 80 % 4, C # 128", "A # 80 / 8, A # 80 / 4 % 2, B, A # 80 % 4, C # 128"),
    ("N % 16, A, B, N / 16", "N % 16, A, N / 16, B"),
    ("[A, B, C] # 262144 / 8, N, 1 # 2, [A, B, C] # 262144 % 8", "[A, B, C] # 262144 / 16, [A, B, C] # 262144 / 8 % 2, N, 1 # 2, "
     "[A, B, C] # 262144 % 8"),
)  # fmt: skip
"""Pairs of mappings, the first of four terms; the fourth pair is not equivalent."""

STREAMS = (("N / 16, N % 16", "N / 32", "N % 32"), ("A, N / 16, N % 16", "N / 16, A", "N % 16"), ("N % 16, N / 16", "N % 16", "N / 16"))
"""Buffer, Time and Packet."""


def axes_of(n: int) -> Axes:
    """Three small axes and N."""
    return Axes(A=64, B=64, C=60, N=n)


def microseconds(call: Callable[[], object], repeat: int = 200) -> float:
    """Median time of one call."""
    times = []
    for _ in range(repeat):
        begin = perf_counter()
        call()
        times.append(perf_counter() - begin)
    return median(times) * 1e6


def cached_microseconds(call: Callable[[], object], loops: int = 1000) -> float:
    """Median over runs of the mean time of a call too short to be timed alone."""
    times = []
    for _ in range(9):
        begin = perf_counter()
        for _ in range(loops):
            call()
        times.append((perf_counter() - begin) / loops)
    return median(times) * 1e6


def fresh_normal_form(m: Mapping) -> None:
    """The normal form without anything remembered of the mapping."""
    m._memo.clear()
    normal_form(m)


def fresh_equivalence(a: Mapping, b: Mapping) -> None:
    """Equivalence without anything remembered of the two mappings."""
    a._memo.clear()
    b._memo.clear()
    equivalent.__wrapped__(a, b)


def uncached(n: int) -> dict[str, float]:
    """Medians over the mappings, by operation."""
    axes = axes_of(n)
    pairs = [(axes.mapping(a), axes.mapping(b)) for a, b in FOUR_TERMS]
    streams = [tuple(axes.mapping(t) for t in s) for s in STREAMS]
    fresh_read = derive_read.__wrapped__
    return {
        "normal form": median(microseconds(lambda a=a: fresh_normal_form(a)) for a, _ in pairs),
        "equivalence": median(microseconds(lambda a=a, b=b: fresh_equivalence(a, b)) for a, b in pairs),
        "sequencer": median(microseconds(lambda s=s: fresh_read(*s)) for s in streams),
    }


def cached() -> dict[str, float]:
    """As `uncached` from the caches, through the methods that users call."""
    axes = axes_of(2**10)
    pairs = [(axes.mapping(a), axes.mapping(b)) for a, b in FOUR_TERMS]
    buffer, time, packet = (axes.mapping(t) for t in STREAMS[0])
    return {
        "normal form": median(cached_microseconds(a.normal_form) for a, _ in pairs),
        "equivalence": median(cached_microseconds(lambda a=a, b=b: a.equivalent(b)) for a, b in pairs),
        "sequencer": cached_microseconds(lambda: derive_read(buffer, time, packet)),
    }


def table_ratios() -> dict[str, float]:
    """Time of a table of about 4 million cells against `numpy.unravel_index` of as many positions in as many dimensions."""
    axes = Axes(A=64, B=64, C=60, N=1024)
    ratios = {}
    for text in ("N / 16, A, B, N % 16", "N / 16, A # 64 / 8, B, N % 16, A # 64 % 8", "N, [B, C] # 4096"):
        mapping = axes.mapping(text)
        shape = tuple(t.size for t in mapping.terms())
        ours = microseconds(lambda m=mapping: cells._joint_table.__wrapped__((m,)), repeat=5)
        theirs = microseconds(lambda n=mapping.size, s=shape: np.unravel_index(np.arange(n), s), repeat=5)
        ratios[f"{text} ({mapping.size:,} cells)"] = ours / theirs
    return ratios


def main() -> int:
    """Prints the table; 1 if a target is missed."""
    small, large, hot = uncached(2**10), uncached(2**30), cached()
    failed = False
    print(f"{'operation':<14}{'uncached, N = 2^10':>20}{'N = 2^30':>12}{'ratio':>8}{'cached':>10}")
    for name in small:
        growth = large[name] / small[name]
        print(f"{name:<14}{small[name]:>17.1f} µs{large[name]:>9.1f} µs{growth:>8.2f}{hot[name]:>7.2f} µs")
        failed |= growth > GROWTH or hot[name] > CACHED_US or (name != "sequencer" and small[name] > UNCACHED_US)
    for text, ratio in table_ratios().items():
        print(f"table of {text}: {ratio:.2f} x numpy.unravel_index")
        failed |= ratio > TABLE_RATIO
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())

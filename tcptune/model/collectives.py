"""Reductions over chips and clusters: shapes, rounds, synchronisation counts and the order of additions (COLL-001 to COLL-017)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from tcptune.errors import RuleViolation

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Shape:
    """What a dimension (Chip or Cluster) holds, and the local axes, major first."""

    dimension: str
    local: tuple[str, ...]


def reduce_scatter_shape(before: Shape, shard: str) -> Shape:
    """The reduced dimension takes over the local axis `shard` (COLL-001)."""
    return Shape(shard, tuple(axis for axis in before.local if axis != shard))


def all_gather_shape(before: Shape, place: int, count: str) -> Shape:
    """The dimension becomes a broadcast of `count`, its axis local at `place` (COLL-001, COLL-003)."""
    return Shape(f"Broadcast({count})", (*before.local[:place], before.dimension, *before.local[place:]))


def all_reduce_shape(before: Shape, count: str) -> Shape:
    """The dimension becomes a broadcast, the local axes stay (COLL-001)."""
    return Shape(f"Broadcast({count})", before.local)


def rotation(count: int, distance: int) -> tuple[int, ...]:
    """Sources of a cyclic round: target t reads ``t + distance`` (COLL-008, COLL-011)."""
    return tuple((t + distance) % count for t in range(count))


def exchange(count: int, distance: int) -> tuple[int, ...]:
    """Sources of a butterfly round: target t reads ``t xor distance`` (COLL-012).

    Raises:
        RuleViolation: COLL-012 unless `count` is a power of two.
    """
    if count & (count - 1):
        raise RuleViolation("COLL-012", "a butterfly pairs the chips in every round", got=count, expected="a power of two")
    return tuple(t ^ distance for t in range(count))


def butterfly_distances(count: int) -> tuple[int, ...]:
    """Distances of the butterfly's rounds, log2 of them."""
    return tuple(1 << r for r in range(count.bit_length() - 1))


def reduce_scatter_rounds(count: int) -> list[list[tuple[int, int]]]:
    """Of every target: (source chip, shard) of each round of the cyclic form (COLL-008)."""
    return [[(rotation(count, r)[t], t) for r in range(count)] for t in range(count)]


def all_reduce_rounds(count: int) -> list[list[int]]:
    """Of every target: source chip of each rotation, the local one first (COLL-011)."""
    return [[rotation(count, r)[t] for r in range(count)] for t in range(count)]


def crossing_rounds(rounds: Sequence[Sequence[int]]) -> int:
    """Rounds in which any target reads another place: each inserts one synchronisation (COLL-005, COLL-006)."""
    return sum(any(source != target for target, source in enumerate(sources)) for sources in rounds)


def cyclic_rounds(count: int, local_first: bool) -> list[tuple[int, ...]]:
    """Source lists of a cyclic collective; AllReduce has its own value already and leaves round 0 out."""
    return [rotation(count, r) for r in range(0 if local_first else 1, count)]


def cluster_swap_sources() -> tuple[int, int]:
    """Sources of the one exchange between the two clusters (COLL-013, COLL-016)."""
    return 1, 0


@dataclass(frozen=True, slots=True)
class SyncCounts:
    """Synchronisations of the collectives over `chips` chips (COLL-005)."""

    reduce_scatter_cyclic: int
    all_gather: int
    reduce_scatter_then_all_gather: int
    all_reduce_cyclic: int
    all_reduce_butterfly: int | None
    """None where nobody asked for it."""


ALL_GATHER_SYNCS = 1
"""One to_dm moves the whole dimension to Element (COLL-009, COLL-014)."""


def sync_counts(chips: int, butterfly: bool = True) -> SyncCounts:
    """Counts by going through the rounds; the cyclic forms take any number of chips.

    Raises:
        RuleViolation: COLL-012 if the butterfly is asked for and `chips` is no power of two.
    """
    scatter = crossing_rounds(cyclic_rounds(chips, local_first=True))
    reduce_cyclic = crossing_rounds(cyclic_rounds(chips, local_first=False))
    exchanged = crossing_rounds([exchange(chips, d) for d in butterfly_distances(chips)]) if butterfly else None
    return SyncCounts(scatter, ALL_GATHER_SYNCS, scatter + ALL_GATHER_SYNCS, reduce_cyclic, exchanged)


def cyclic_reduce(values: Sequence[_T], add: Callable[[_T, _T], _T], first: int) -> _T:
    """Sum in the order first, first + 1, … (COLL-004)."""
    total = values[first]
    for r in range(1, len(values)):
        total = add(total, values[(first + r) % len(values)])
    return total


def butterfly_reduce(values: Sequence[_T], add: Callable[[_T, _T], _T]) -> list[_T]:
    """Every target's sum: in each round it adds (its peer's value, its own) (COLL-012)."""
    held = list(values)
    for distance in butterfly_distances(len(values)):
        peers = exchange(len(values), distance)
        held = [add(held[peer], held[t]) for t, peer in enumerate(peers)]
    return held

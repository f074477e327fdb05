"""Request stream of a transfer between HBM and DM: which bytes every slice asks for, and in which order (DMA-009 to DMA-014).

A stream says where every live slice starts in HBM and how all of them walk from there: nested loops over pieces of equal length. It is
a handful of numbers however many bytes move. A transfer whose slices walk differently (a ragged edge) is a sequence of streams.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import zip_longest
from math import prod

import numpy as np
import numpy.typing as npt

from tcptune.model.hardware import RNGD, Hardware

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Loop:
    """`count` steps of `stride` bytes."""

    count: int
    stride: int


@dataclass(frozen=True)
class RequestStream:
    """Requests of a transfer on one chip.

    Attributes:
        clusters, slices: the live places on the DM side, one entry each.
        bases: HBM byte address where the walk of each place starts.
        loops: the walk over the pieces of one place, outermost first, HBM strides in bytes.
        run_bytes: length of one piece, contiguous in HBM and in the slice.
    """

    clusters: Ints
    slices: Ints
    bases: Ints
    loops: tuple[Loop, ...]
    run_bytes: int

    @property
    def places(self) -> int:
        return len(self.bases)

    @property
    def pieces_per_place(self) -> int:
        return prod(loop.count for loop in self.loops)

    @property
    def pieces(self) -> int:
        return self.places * self.pieces_per_place

    @property
    def total_bytes(self) -> int:
        """Bytes delivered to, or taken from, all slices together."""
        return self.pieces * self.run_bytes

    def offsets(self, pieces: Ints) -> Ints:
        """HBM offset of pieces by their number in the walk."""
        offset = np.zeros_like(pieces)
        for loop in reversed(self.loops):
            pieces, digit = np.divmod(pieces, loop.count)
            offset += digit * loop.stride
        return offset

    def packet_bytes(self, limit: int, hw: Hardware = RNGD) -> int:
        """Bytes of one packet; the last packet of a piece may be shorter.

        A line if all addresses and lengths are whole lines; else the run if it fits `limit`; else its largest divisor on 8 bytes that
        leaves an even number of packets, or any number where none does. A run without a divisor of at least half the limit has no usable
        factor (DMA-022): it is cut into the least even number of packets, the last one shorter.
        """
        line, word = hw.request_bytes, hw.dma_alignment_bytes
        bases_on_lines = not (self.bases % line).any()
        if bases_on_lines and self.run_bytes % line == 0 and all(loop.stride % line == 0 for loop in self.loops):
            return line
        if self.run_bytes <= limit:
            return self.run_bytes
        half = largest_divisor(self.run_bytes // 2, limit, word) if self.run_bytes % 2 == 0 else None
        usable = (divisor for divisor in (half, largest_divisor(self.run_bytes, limit, word)) if divisor and 2 * divisor >= limit)
        even = 2 * -(-self.run_bytes // (2 * limit))
        return next(usable, min(limit, -(-self.run_bytes // (even * word)) * word))

    @cached_property
    def engines(self) -> tuple[EngineShare, ...]:
        """The part of every engine that has work, first engine first."""
        per_engine = RNGD.slices_per_engine
        engine = self.clusters * RNGD.engines_per_cluster + self.slices // per_engine
        shares = []
        for e in sorted(set(engine.tolist())):
            mine = np.flatnonzero(engine == e)
            cluster, number = divmod(e, RNGD.engines_per_cluster)
            shares.append(EngineShare(cluster, number, self.slices[mine] % per_engine, self.bases[mine]))
        return tuple(shares)


@dataclass(frozen=True)
class EngineShare:
    """What one engine does in a stream: its slices (0 to 63) and where each starts in HBM."""

    cluster: int
    engine_in_cluster: int
    slices: Ints
    bases: Ints

    @cached_property
    def signature(self) -> bytes:
        """Equal for engines that do the same at different addresses."""
        relative: Ints = self.bases - self.bases[0]
        return bytes(self.slices.tobytes() + relative.tobytes())

    def in_issue_order(self) -> tuple[Ints, Ints]:
        """Slices and bases in the order in which the engine serves them."""
        order = issue_order(self.slices.tolist(), self.bases.tolist())
        return self.slices[order], self.bases[order]


def largest_divisor(n: int, limit: int, multiple: int) -> int | None:
    """Largest divisor of `n` that is at most `limit` and a multiple of `multiple`."""
    largest = min(n, limit) // multiple * multiple
    return next((d for d in range(largest, 0, -multiple) if n % d == 0), None)


def issue_order(slices: list[int], bases: list[int], hw: Hardware = RNGD) -> list[int]:
    """Order in which one engine serves its slices within a round of packets, as indices.

    The two 32-slice halves alternate; inside a half replicas (equal start) come after the distinct ones.
    """
    halves: list[list[tuple[int, int, int]]] = [[] for _ in range(hw.dmns_per_engine)]
    copies: list[dict[int, int]] = [{} for _ in range(hw.dmns_per_engine)]
    for slice_, index in sorted(zip(slices, range(len(slices)), strict=True)):
        half = slice_ // hw.slices_per_dmn
        copy = copies[half].get(bases[index], 0)
        copies[half][bases[index]] = copy + 1
        halves[half].append((copy, slice_, index))
    for members in halves:
        members.sort()
    turns = zip_longest(*halves)
    return [member[2] for turn in turns for member in turn if member is not None]

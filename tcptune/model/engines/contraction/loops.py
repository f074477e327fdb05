"""A legal contraction as a sum over loops: which operand every loop walks, and whether it survives (CE-005, OUTER-015, OUTER-019).

Each loop walks the flits of a slice with one stride and the TRF element with another (0 where an operand is repeated)::

    out[lane, kept…] = sum over reduced… of stream[kept…, reduced…] * weight[lane, kept…, reduced…]
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from tcptune.ir.types import DType
    from tcptune.model.stage import Step


@dataclass(frozen=True, slots=True)
class Loop:
    """One loop of a contraction.

    Attributes:
        size: iterations.
        stream: stride in elements of a slice's flits; 0 where the packet is sent again.
        weight: stride in elements of the TRF element; 0 where the same read is used.
        kept: whether it survives into the result.
    """

    size: int
    stream: int
    weight: int
    kept: bool


@dataclass(frozen=True)
class Contraction:
    """Loops of the stages outer, packet and time, each list outermost first, and what surrounds them.

    Attributes:
        time: loops of OutTime.
        columns: surviving loops of the packet, cut to the declared columns.
        tree: summed loops of the packet; the product of their sizes is a power of two.
        declared_columns: elements of the declared OutPacket; columns beyond the loops are undefined.
        stream_type, weight_type, accumulator: element types.
        time_known: whether results of each surviving position of Time can be known: False where a repeated packet stands for padding that
            neither operand holds; None where all can.
        steps: (stream offset, weight offset, surviving position) of every position of OutTime, where the loops of the TRF and those of the
            sum cut one axis at crossing boundaries and so have no common loops; None otherwise.
    """

    time: tuple[Loop, ...]
    columns: tuple[Loop, ...]
    tree: tuple[Loop, ...]
    declared_columns: int
    stream_type: DType
    weight_type: DType
    accumulator: DType
    time_known: npt.NDArray[np.bool_] | None = None
    steps: tuple[tuple[int, int, int], ...] | None = None

    @classmethod
    def of(cls, steps: Sequence[Step]) -> Contraction:
        """The loops of a checked chain that begins with contract_outer; stages that are not given do nothing."""
        outer = steps[0]
        config = outer.config
        packet = next((s.config for s in steps if s.op.NAME == "contract_packet"), None)
        time = next((s.config for s in steps if s.op.NAME == "contract_time"), None)
        depth, declared = (packet.tree_depth, packet.columns) if packet else (0, config.packet_elements)
        size = outer.after.time.size  # type: ignore[union-attr]  # contract_outer gives a stream, never a tensor
        survival = time.loops if time else ((size, True),)
        walked = _time_loops(config, survival, size)
        columns, tree = _packet_loops(config.packet_elements, config.read_size, depth, declared)
        types = (outer.before.dtype, config.weight_type, config.accumulator)
        known = _time_known(config, survival, size)
        if walked is not None:
            return cls(walked, columns, tree, declared, *types, known)
        kept = prod(n for n, survives in survival if survives)
        return cls((Loop(kept, 0, 0, True),), columns, tree, declared, *types, known, _positions(config, survival, size))

    @property
    def kept(self) -> tuple[Loop, ...]:
        """Surviving loops in the order of the result: time, then columns."""
        return (*(loop for loop in self.time if loop.kept), *self.columns)

    @property
    def result_time(self) -> int:
        return prod(loop.size for loop in self.time if loop.kept)

    @property
    def result_columns(self) -> int:
        """Columns that the loops compute; at most `declared_columns`."""
        return prod(loop.size for loop in self.columns)


def _time_loops(config: Any, survival: Sequence[tuple[int, bool]], size: int) -> tuple[Loop, ...] | None:
    """OutTime cut at every boundary of the TRF loops, of the sum over Time and of the time broadcast; None where boundaries cross."""
    sequenced, surviving = _with_places(config.entries), _with_places(survival)
    edges = sorted({size, config.time_broadcast, 1, *(p for _, p, _ in sequenced), *(p for _, p, _ in surviving)}, reverse=True)
    loops = []
    for high, low in pairwise(edges):
        if high % low:
            return None
        packet_step = low // config.time_broadcast * config.packet_elements if low >= config.time_broadcast else 0
        weight = next((stride * (low // place) for n, place, stride in sequenced if place <= low < place * n), 0)
        kept = next((survives for n, place, survives in surviving if place <= low < place * n), True)
        loops.append(Loop(high // low, packet_step, weight, kept))
    return tuple(loops)


def _positions(config: Any, survival: Sequence[tuple[int, bool]], size: int) -> tuple[tuple[int, int, int], ...]:
    """(stream offset, weight offset, surviving position) of every position of OutTime."""
    time, slot = np.arange(size), _slots(survival, size)
    weight = np.zeros_like(time)
    for n, place, stride in _with_places(config.entries):
        weight += time // place % n * stride
    stream = time // config.time_broadcast * config.packet_elements
    return tuple(zip(stream.tolist(), weight.tolist(), slot.tolist(), strict=True))


def _slots(survival: Sequence[tuple[int, bool]], size: int) -> npt.NDArray[np.int64]:
    """Surviving position that every position of OutTime is summed into."""
    time, slot, below = np.arange(size), np.zeros(size, np.int64), 1
    for n, place, survives in _with_places(survival):
        if survives:
            slot += time // place % n * below
            below *= n
    return slot


def _time_known(config: Any, survival: Sequence[tuple[int, bool]], size: int) -> npt.NDArray[np.bool_] | None:
    if not config.padded_broadcasts:
        return None
    time = np.arange(size)
    padding = np.zeros(size, np.bool_)
    for place, extent, live in config.padded_broadcasts:
        padding |= time // place % extent >= live
    slot = _slots(survival, size)
    known = np.ones(int(slot.max()) + 1, np.bool_)
    known[slot[padding]] = False
    return known


def _with_places(loops: Sequence[tuple[int, Any]]) -> list[tuple[int, int, Any]]:
    """(size, place, rest) of loops given outermost first, innermost first."""
    place, placed = 1, []
    for size, rest in reversed(loops):
        placed.append((size, place, rest))
        place *= size
    return placed


def _packet_loops(elements: int, read_size: int, depth: int, declared: int) -> tuple[tuple[Loop, ...], tuple[Loop, ...]]:
    """(columns, tree): the packet cut at the tree and at the read; repeated reads have weight stride 0."""
    tree = 1 << depth
    last = tree * min(declared, elements // tree)
    edges = sorted({e for e in (last, tree, read_size, 1) if e <= last}, reverse=True)
    loops = [(high // low, low) for high, low in pairwise(edges)]
    made = [Loop(size, low, low if low < read_size else 0, low >= tree) for size, low in loops]
    return tuple(loop for loop in made if loop.kept), tuple(loop for loop in made if not loop.kept)

"""Runs of a move: how many bytes both sides access in one piece, and the loops around it (DMA-005, DMA-014)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from tcptune.ir.mapping import Mapping, PadKind
from tcptune.ir.types import DType, TensorType
from tcptune.model.memory.transfer import ELEMENT, MoveBox, MoveDigit, cell_kinds, joint_levels

_WRITABLE = {PadKind.TOP, PadKind.ZERO}
"""Padding that a piece may run over; bottom padding must not be touched."""


@dataclass(frozen=True)
class BoxRuns:
    """One box of a move, seen as equal pieces.

    Attributes:
        box: the box.
        run_elements: length of a piece, with the destination's own padding behind it where the piece may run over it.
        live_elements: innermost destination positions in a row that are live and read consecutive source positions.
        loops: the digits outside the piece, destination order, outermost first.
        inside: the digits of the piece, outermost first.
    """

    box: MoveBox
    run_elements: int
    live_elements: int
    loops: tuple[MoveDigit, ...]
    inside: tuple[MoveDigit, ...]

    def run_bytes(self, dtype: DType) -> int:
        return dtype.bytes_of(self.run_elements)


def _is_inside(digit: MoveDigit, run: int) -> bool:
    """Whether the digit continues a run of this length on both sides."""
    elsewhere = any(digit.source[:ELEMENT]) or any(digit.dest[:ELEMENT])
    return not elsewhere and digit.source[ELEMENT] == run == digit.dest[ELEMENT]


def box_runs(box: MoveBox, dest: TensorType) -> BoxRuns:
    """Pieces of a box."""
    loops = list(box.digits)
    taken: list[MoveDigit] = []
    run = 1
    live = 0
    while True:
        inside = next((d for d in loops if _is_inside(d, run)), None)
        if inside is not None:
            loops.remove(inside)
            taken.insert(0, inside)
            run *= inside.extent
            continue
        if not live:
            live = run
        reach = min([d.dest[ELEMENT] for d in loops if d.dest[ELEMENT] > 0], default=dest.element.size)
        if reach > run and _is_padding(joint_levels(dest), _flat(box, dest) + run, reach - run):
            run = reach
            continue
        break
    loops.sort(key=lambda d: (d.dest, d.source), reverse=True)
    return BoxRuns(box, run, live, tuple(loops), tuple(taken))


def _flat(box: MoveBox, dest: TensorType) -> int:
    chip, cluster, slice_, element = box.dest_base
    return ((chip * dest.cluster.size + cluster) * dest.slice.size + slice_) * dest.element.size + element


@lru_cache(maxsize=4096)
def _is_padding(mapping: Mapping, first: int, count: int) -> bool:
    return cell_kinds(mapping, first, count) <= _WRITABLE

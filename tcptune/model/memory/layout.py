"""Runs of a move: how many bytes both sides access in one piece, and the loops around it (DMA-005, DMA-014)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from tcptune.ir.mappings.mapping import Mapping, PadKind
from tcptune.ir.types import DType, TensorType
from tcptune.model.memory.transfer import ELEMENT, MoveBox, MoveDigit, Steps, cell_kinds, joint_levels

_WRITABLE = {PadKind.TOP, PadKind.ZERO}
"""Padding that a piece may touch; bottom padding must not be."""


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


def box_runs(box: MoveBox, source: TensorType, dest: TensorType) -> BoxRuns:
    """Pieces of a box.

    A piece runs over the padding behind it in the destination where nothing known is lost: in DM over top padding (DMA-005), else only
    where the source is padded alike, and over known zeros only with zeros.
    """
    loops = list(box.digits)
    taken: list[MoveDigit] = []
    run = 1
    live = 0
    behind_live = True
    while True:
        inside = next((d for d in loops if _is_inside(d, run)), None)
        if inside is not None:
            loops.remove(inside)
            taken.insert(0, inside)
            run *= inside.extent
            behind_live = True
            continue
        if not live:
            live = run
        reach = min([d.dest[ELEMENT] for d in loops if d.dest[ELEMENT] > 0], default=dest.element.size)
        over = _run_over(box, source, dest, run, reach - run) if behind_live else 0
        left = reach - box.dest_base[ELEMENT] % reach - run  # what is left of the row of a box that begins inside it
        if behind_live and not over and left > 0:
            over = _run_over(box, source, dest, run, left)
        run += over
        behind_live = False
        if not over:
            break
    loops.sort(key=lambda d: (d.dest, d.source), reverse=True)
    return BoxRuns(box, run, live, tuple(loops), tuple(taken))


def _run_over(box: MoveBox, source: TensorType, dest: TensorType, run: int, most: int) -> int:
    """How many positions of padding a piece of `run` elements may go on over: `most`, else what of it lies right behind the piece.

    In DM only known zeros count then, in HBM all padding that the source has alike: the last part of a row that is padded.
    """
    if most and _may_run_over(box, source, dest, run, most):
        return most
    taken, refused = 0, most
    while refused - taken > 1:
        count = (taken + refused) // 2
        behind = _kinds(joint_levels(dest), _flat(box.dest_base, dest) + run, count)
        if (behind == {PadKind.ZERO} or dest.tier == "Hbm") and _may_run_over(box, source, dest, run, count):
            taken = count
        else:
            refused = count
    return taken


def _may_run_over(box: MoveBox, source: TensorType, dest: TensorType, run: int, count: int) -> bool:
    """Whether a piece of `run` elements may go on over `count` positions of padding."""
    behind = _kinds(joint_levels(dest), _flat(box.dest_base, dest) + run, count)
    if not behind <= _WRITABLE:
        return False
    if dest.tier == "Dm" and PadKind.ZERO not in behind:
        return True
    if box.source_base[ELEMENT] + run + count > source.element.size:
        return False
    read = _kinds(joint_levels(source), _flat(box.source_base, source) + run, count)
    return read <= ({PadKind.ZERO} if PadKind.ZERO in behind else _WRITABLE)


def _flat(place: Steps, tensor: TensorType) -> int:
    chip, cluster, slice_, element = place
    return ((chip * tensor.cluster.size + cluster) * tensor.slice.size + slice_) * tensor.element.size + element


@lru_cache(maxsize=4096)
def _kinds(mapping: Mapping, first: int, count: int) -> frozenset[PadKind | None]:
    return frozenset(cell_kinds(mapping, first, count))

"""From the accumulator to HBM: cast, transpose, commit, and the pass that gathers results into long pieces before the store."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tcptune.errors import RuleViolation
from tcptune.exec.lower_layout import Layout, remove
from tcptune.ir.placement import AxisText, Digit, expression, merged, positions, without
from tcptune.ir.types import DType


def padded_packet(live: list[Digit], size: int, texts: dict[str, AxisText]) -> str:
    """Packet text of `live` digits padded to `size` positions."""
    text = expression(live, texts)
    if positions(live) == size:
        return text
    return f"[{text}] # {size}" if "," in text else f"{text} # {size}"


@dataclass(frozen=True)
class Result:
    """The result of the contraction as it is committed.

    Attributes:
        time: digits of Time when the stream reaches the commit.
        packet: live digits of the packet.
        width: positions of the committed packet (live ones, padded to the write unit of 8 bytes).
        slices: Slice level of the result.
        before_transpose: the packet that the rows replaced, or None without a transpose.
    """

    time: tuple[Digit, ...]
    packet: tuple[Digit, ...]
    width: int
    slices: tuple[Digit, ...]
    before_transpose: tuple[Digit, ...] | None = None

    @classmethod
    def of(cls, layout: Layout, time: list[Digit], packet: list[Digit]) -> Result:
        before = None
        element = layout.candidate.workload.out_dtype
        if layout.candidate.knobs.transpose:
            rows = _rows(layout, time, element)
            before = tuple(packet)
            time, packet = [*without(time, rows), *packet], [rows]
        return cls(tuple(time), tuple(packet), write_width(layout, positions(packet), element), layout.slices, before)

    def element(self, layout: Layout) -> tuple[list[Digit], list[Digit]]:
        """Digits of the DM element in output order, then the packet if it is not the innermost part of that order."""
        block = layout.block(layout.output)
        return merged(remove(block, self.packet)), list(self.packet)

    def element_text(self, layout: Layout) -> str:
        texts = layout.texts(None)
        rest, packet = self.element(layout)
        if self.width == positions(packet):
            return expression([*rest, *packet], texts)
        tail = padded_packet(packet, self.width, texts)
        return f"{expression(rest, texts)}, {tail}" if rest else tail

    def commit_ops(self, layout: Layout) -> list[dict[str, Any]]:
        """Cast, transpose, trim and commit (CAST-004, TRANSPOSE-017, CADAPT-003 to 015)."""
        texts, knobs = layout.texts(None), layout.candidate.knobs
        accumulator, element = layout.accumulator, layout.candidate.workload.out_dtype
        casts = element != accumulator
        ops: list[dict[str, Any]] = []
        before = list(self.packet if self.before_transpose is None else self.before_transpose)
        if casts and knobs.cast == "engine":
            ops.append({"op": "cast", "dtype": element.name, "packet": padded_packet(before, layout.flit_elements(element), texts)})
        if self.before_transpose is not None:
            ops.append(
                {
                    "op": "transpose",
                    "time": expression(self.time, texts),
                    "packet": padded_packet(list(self.packet), layout.flit_elements(element), texts),
                }
            )
        if casts and knobs.cast == "commit":
            width = max(self.width, 2 * layout.word_elements(accumulator))
            ops.append({"op": "commit_trim", "packet": padded_packet(list(self.packet), width, texts)})
            ops.append({"op": "commit_cast", "dtype": element.name})
        else:
            ops.append({"op": "commit_trim", "packet": padded_packet(list(self.packet), self.width, texts)})
        ops.append({"op": "commit", "element": self.element_text(layout)})
        return ops


def write_width(layout: Layout, live: int, element: DType) -> int:
    """Positions of a committed packet: the live ones, padded to whole 8-byte words (COMMIT-006)."""
    word = layout.word_elements(element)
    return -(-live // word) * word


def _rows(layout: Layout, time: list[Digit], element: DType) -> Digit:
    """The part of Time that the Transpose Engine makes the packet: the innermost positions of the innermost output axis (TRANSPOSE-003)."""
    axis = layout.output[-1] if layout.output else ""
    last = time[-1] if time else None
    limit = layout.word_elements(element)
    if last is None or last.axis != axis or last.stride != 1 or last.extent % limit:
        raise RuleViolation(
            "TRANSPOSE-017",
            f"Time must end in {limit} neighbouring positions of {axis} for a transpose",
            got=None if last is None else last.extent,
        )
    return last.inner(limit)


def gathered_slices(layout: Layout) -> tuple[list[Digit], Digit, int]:
    """Slice digits with the gathered one replaced by filler (``collect``), that digit, and slice0 of the switch."""
    ring, axis = layout.candidate.knobs.gather_ring, layout.output[-1]
    for place, digit in enumerate(layout.slices):
        if digit.axis == axis and digit.extent % ring == 0:
            taken = digit.inner(ring)
            outer = [digit.outer(digit.extent // ring)] if digit.extent > ring else []
            inside = layout.slices[place + 1 :]
            return [*layout.slices[:place], *outer, Digit("", 1, ring), *inside], taken, positions(inside)
    raise RuleViolation("SWITCH-003", f"the result has no {ring} slices along {axis} to gather from", got=ring)


def gather_pass(layout: Layout, result: Result) -> list[dict[str, Any]]:
    """Operations of the pass that brings `gather_ring` slices' parts of the innermost output axis together."""
    texts, knobs = layout.texts(None), layout.candidate.knobs
    element = layout.candidate.workload.out_dtype
    slices, taken, inner = gathered_slices(layout)
    rest, packet = result.element(layout)
    flit = layout.flit_elements(element)
    padded = result.width != positions(packet)
    time, piece = (rest, packet) if padded else _flit_of([*rest, *packet], flit)
    width = result.width if padded else positions(piece)
    if knobs.gather == "exchange":
        moved = _exchanged(layout, time, knobs.gather_ring)
        kept = without(time, moved)
        in_time = [moved, *kept]
        config = {"InterTranspose": {"slice1": taken.extent, "slice0": inner, "time0": positions(kept)}}
        slices = [moved if d == Digit("", 1, taken.extent) else d for d in slices]
        after = [*kept, taken]
    else:
        in_time, after = time, [*time, taken]
        config = {"Broadcast1": {"slice1": taken.extent, "slice0": inner}}
    ops = [
        {"op": "fetch", "time": expression(in_time, texts), "packet": padded_packet(piece, width, texts)},
        {"op": "switch", "slice": expression(slices, texts), "time": expression(after, texts), "config": config},
        {"op": "collect", "time": expression(after, texts), "packet": padded_packet(piece, flit, texts)},
    ]
    return ops + _gather_commit(layout, after, piece, taken, padded)


def _flit_of(block: list[Digit], flit: int) -> tuple[list[Digit], list[Digit]]:
    """The block cut into Time and the longest packet of at most one flit along its innermost axis."""
    block = merged(block)
    last = block[-1] if block else Digit("", 1, 1)
    extent = min(flit, last.extent & -last.extent)
    piece = last.inner(extent)
    return without(block, piece), [piece]


def _exchanged(layout: Layout, time: list[Digit], ring: int) -> Digit:
    """The positions of another output axis that take the place of the gathered ones over the slices."""
    candidates = [d for d in time if d.axis != layout.output[-1] and d.extent % ring == 0]
    if not candidates:
        raise RuleViolation("SWITCH-014", f"a slice holds no {ring} positions to exchange", got=ring)
    return max(candidates, key=lambda d: d.extent).outer(ring)


def _gather_commit(layout: Layout, time: list[Digit], piece: list[Digit], taken: Digit, padded: bool) -> list[dict[str, Any]]:
    texts, element = layout.texts(None), layout.candidate.workload.out_dtype
    ops: list[dict[str, Any]] = []
    if padded:
        if positions(piece) != 1:
            raise RuleViolation("TRANSPOSE-017", "only single results are gathered by a transpose", got=positions(piece))
        limit = layout.word_elements(element)
        rows = taken.inner(min(limit, taken.extent))
        time = without(time, rows)
        piece = [rows]
        packet = padded_packet(piece, layout.flit_elements(element), texts)
        ops.append({"op": "transpose", "time": expression(time, texts), "packet": packet})
    width = write_width(layout, positions(piece), element)
    ops.append({"op": "commit_trim", "packet": padded_packet(piece, width, texts)})
    block = _natural(layout, [*time, *piece])
    if width == positions(piece):
        text = expression([*remove(block, piece), *piece], texts)
    else:
        rest = merged(remove(block, piece))
        tail = padded_packet(piece, width, texts)
        text = f"{expression(rest, texts)}, {tail}" if rest else tail
    ops.append({"op": "commit", "element": text})
    return ops


def _natural(layout: Layout, digits: list[Digit]) -> list[Digit]:
    """`digits` in the order of the result: by axis, then by stride."""
    place = {axis: n for n, axis in enumerate(layout.output)}
    return merged(sorted((d for d in digits if d.axis), key=lambda d: (place[d.axis], -d.stride)))

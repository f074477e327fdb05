"""From the accumulator to HBM: cast, transpose, commit, and the pass that gathers results into long pieces before the store."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tcptune.errors import RuleViolation
from tcptune.exec.lowering.layout import Layout, remove
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
        clusters: Cluster level of the result.
        before_transpose: the packet that the rows replaced, or None without a transpose.
        away: output digits that the contraction had in a slice and that lie over clusters or slices now.
    """

    time: tuple[Digit, ...]
    packet: tuple[Digit, ...]
    width: int
    slices: tuple[Digit, ...]
    clusters: tuple[Digit, ...]
    before_transpose: tuple[Digit, ...] | None = None
    away: tuple[Digit, ...] = ()

    @classmethod
    def of(cls, layout: Layout, time: list[Digit], packet: list[Digit]) -> Result:
        before = None
        element = layout.candidate.workload.out_dtype
        if layout.candidate.knobs.transpose:
            rows = _rows(layout, time, element)
            before = tuple(packet)
            time, packet = [*without(time, rows), *packet], [rows]
        width = write_width(layout, positions(packet), element)
        return cls(tuple(time), tuple(packet), width, layout.result_slices, layout.clusters, before)

    def element(self, layout: Layout) -> tuple[list[Digit], list[Digit]]:
        """Digits of the DM element in output order, then the packet if it is not the innermost part of that order."""
        block = remove(layout.block(layout.output), self.away)
        return merged(remove(block, self.packet)), list(self.packet)

    def element_text(self, layout: Layout) -> str:
        rest, packet = self.element(layout)
        return _element_text(rest, packet, self.width, layout.texts(None))

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
    return _whole_rows(layout, last.inner(limit))


def _whole_rows(layout: Layout, rows: Digit) -> Digit:
    """`rows`, unless padding of their axis is among them: rows padded once more to a packet are no factor of a Time with other axes.

    Raises:
        RuleViolation: TRANSPOSE-017, the axis has fewer positions.
    """
    workload = layout.candidate.workload
    size, others = workload.size(rows.axis), [a for a in layout.output if a != rows.axis and workload.size(a) > 1]
    if size < rows.extent and others:
        raise RuleViolation("TRANSPOSE-017", f"a transpose takes whole rows of {rows.axis}", expected=f"{rows.extent} positions", got=size)
    return rows


@dataclass(frozen=True)
class Gather:
    """A switch pass over the result: which digits trade places, and how the stream looks before and after.

    Attributes:
        slices: Slice level after the pass.
        in_time, out_time: Time at the fetch and after the switch.
        piece: live digits of the packet; `width` positions with padding.
        config: the switch configuration.
        rows: positions that a transpose makes the packet, or None where the packet stays.
    """

    slices: tuple[Digit, ...]
    in_time: tuple[Digit, ...]
    out_time: tuple[Digit, ...]
    piece: tuple[Digit, ...]
    width: int
    config: dict[str, dict[str, int]]
    rows: Digit | None

    @property
    def ring(self) -> int:
        """Slices of one ring."""
        ((_, sizes),) = self.config.items()
        return sizes["slice1"] * sizes["slice0"]

    @property
    def packet(self) -> tuple[Digit, ...]:
        """Live digits of the packet that is committed."""
        return self.piece if self.rows is None else (self.rows,)

    @property
    def commit_time(self) -> tuple[Digit, ...]:
        return self.out_time if self.rows is None else tuple(without(self.out_time, self.rows))


def plan_gather(layout: Layout, result: Result) -> Gather:
    """The pass that brings `gather_ring` slices' parts of the innermost output axis together.

    Raises:
        RuleViolation: SWITCH-003, SWITCH-014, TRANSPOSE-017 where the result does not lie so.
    """
    knobs, element = layout.candidate.knobs, layout.candidate.workload.out_dtype
    outside, taken, inside = _gathered_slices(layout, result)
    inner, filling = positions(inside), Digit("", 1, taken.extent)
    rest, packet = result.element(layout)
    padded = result.width != positions(packet)
    if padded and positions(packet) != 1:
        raise RuleViolation("TRANSPOSE-017", "only single results are gathered by a transpose", got=positions(packet))
    time, piece = (rest, packet) if padded else _flit_of([*rest, *packet], layout.flit_elements(element))
    rows = _whole_rows(layout, taken.inner(min(layout.word_elements(element), taken.extent))) if padded else None
    if knobs.gather == "exchange":
        moved = _exchanged(layout, time, taken.extent)
        kept = without(time, moved)
        config = {"InterTranspose": {"slice1": taken.extent, "slice0": inner, "time0": positions(kept)}}
        filling = moved
        before, after = [moved, *kept], [*kept, taken]
    else:
        config = {"Broadcast1": {"slice1": taken.extent, "slice0": inner}}
        before, after = time, [*time, taken]
    width = result.width if padded else positions(piece)
    return Gather((*outside, filling, *inside), tuple(before), tuple(after), tuple(piece), width, config, rows)


def gather_ops(layout: Layout, gather: Gather) -> list[dict[str, Any]]:
    """Operations of the gather pass: fetch, switch, collect, transpose of single results, trim, commit."""
    texts, element = layout.texts(None), layout.candidate.workload.out_dtype
    flit = layout.flit_elements(element)
    after = expression(gather.out_time, texts)
    piece = list(gather.piece)
    ops: list[dict[str, Any]] = [
        {"op": "fetch", "time": expression(gather.in_time, texts), "packet": padded_packet(piece, gather.width, texts)},
        {"op": "switch", "slice": expression(gather.slices, texts), "time": after, "config": gather.config},
        {"op": "collect", "time": after, "packet": padded_packet(piece, flit, texts)},
    ]
    packet = list(gather.packet)
    if gather.rows is not None:
        ops.append({"op": "transpose", "time": expression(gather.commit_time, texts), "packet": padded_packet(packet, flit, texts)})
    width = write_width(layout, positions(packet), element)
    ops.append({"op": "commit_trim", "packet": padded_packet(packet, width, texts)})
    ops.append({"op": "commit", "element": _gathered_element(layout, gather)})
    return ops


def stored_digits(layout: Layout, result: Result) -> tuple[tuple[Digit, ...], tuple[Digit, ...], tuple[Digit, ...] | None]:
    """Slice and element digits of the tensor that is stored; the third are those of a packet that padding follows, else None."""
    if layout.candidate.knobs.gather == "none":
        rest, packet = result.element(layout)
        slices, width = result.slices, result.width
    else:
        gather = plan_gather(layout, result)
        packet = list(gather.packet)
        rest = remove(_natural(layout, [*gather.commit_time, *packet]), packet)
        slices, width = gather.slices, write_width(layout, positions(packet), layout.candidate.workload.out_dtype)
    if width == positions(packet):
        return slices, tuple(merged([*rest, *packet])), None
    return slices, tuple(merged(rest)), tuple(merged(packet))


def stored_texts(layout: Layout, result: Result) -> tuple[str, str]:
    """Slice and element mappings of the tensor that is stored."""
    texts = layout.texts(None)
    if layout.candidate.knobs.gather == "none":
        return expression(result.slices, texts), result.element_text(layout)
    gather = plan_gather(layout, result)
    return expression(gather.slices, texts), _gathered_element(layout, gather)


def _gathered_element(layout: Layout, gather: Gather) -> str:
    packet = list(gather.packet)
    width = write_width(layout, positions(packet), layout.candidate.workload.out_dtype)
    rest = merged(remove(_natural(layout, [*gather.commit_time, *packet]), packet))
    return _element_text(rest, packet, width, layout.texts(None))


def _element_text(rest: list[Digit], packet: list[Digit], width: int, texts: dict[str, AxisText]) -> str:
    if width == positions(packet):
        return expression([*rest, *packet], texts)
    tail = padded_packet(packet, width, texts)
    return f"{expression(rest, texts)}, {tail}" if rest else tail


def _gathered_slices(layout: Layout, result: Result) -> tuple[list[Digit], Digit, list[Digit]]:
    """Slice digits outside of the gathered one, that digit, and those inside of it."""
    ring, axis = layout.candidate.knobs.gather_ring, layout.output[-1]
    for place, digit in enumerate(result.slices):
        if digit.axis == axis and digit.extent % ring == 0:
            outer = [digit.outer(digit.extent // ring)] if digit.extent > ring else []
            return [*result.slices[:place], *outer], digit.inner(ring), list(result.slices[place + 1 :])
    raise RuleViolation("SWITCH-003", f"the result has no {ring} slices along {axis} to gather from", got=ring)


def _flit_of(block: list[Digit], flit: int) -> tuple[list[Digit], list[Digit]]:
    """The block cut into Time and the longest packet of at most one flit along its innermost axis."""
    block = merged(block)
    last = block[-1] if block else Digit("", 1, 1)
    piece = last.inner(min(flit, last.extent & -last.extent))
    return without(block, piece), [piece]


def _exchanged(layout: Layout, time: list[Digit], ring: int) -> Digit:
    """The positions of another output axis that take the place of the gathered ones over the slices."""
    candidates = [d for d in time if d.axis != layout.output[-1] and d.extent % ring == 0]
    if not candidates:
        raise RuleViolation("SWITCH-014", f"a slice holds no {ring} positions to exchange", got=ring)
    return max(candidates, key=lambda d: d.extent).outer(ring)


def _natural(layout: Layout, digits: list[Digit]) -> list[Digit]:
    """`digits` in the order of the result: by axis, then by stride."""
    place = {axis: n for n, axis in enumerate(layout.output)}
    return merged(sorted((d for d in digits if d.axis), key=lambda d: (place[d.axis], -d.stride)))

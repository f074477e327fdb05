"""Commands of a move: one paired sequencer an engine and box, as reports show them (DMA-010, DMA-015 to DMA-017).

A move whose shape divides evenly over the engines gives every engine one command of the same form. At a ragged edge an engine gets several
commands, so that nothing beyond the live region is written; a remainder falls into aligned pieces by the digits of its axis.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import product

from tcptune.ir.types import DType
from tcptune.model.hardware import RNGD
from tcptune.model.memory.command_model import SLICE_STRIDE, Command, Side, stride0
from tcptune.model.memory.layout import BoxRuns, box_runs
from tcptune.model.memory.transfer import CHIP, CLUSTER, ELEMENT, SLICE, Move, MoveDigit, Steps


@dataclass(frozen=True, slots=True)
class EngineKey:
    """An engine of a chip; chips that do the same share one key."""

    chip: int
    cluster: int
    engine_in_cluster: int


@dataclass(frozen=True)
class _Piece:
    """Loops of one command before the engine is known."""

    loops: tuple[MoveDigit, ...]
    source_base: Steps
    dest_base: Steps
    packet_bytes: int


@lru_cache(maxsize=1024)
def engine_commands(move: Move, hbm_base: int = 0) -> dict[EngineKey, tuple[Command, ...]]:
    """Commands of every engine, in order.

    The engine is that of the source's slices, or of the destination's where the source is HBM (DMA-015); HBM to HBM runs on engine 0.
    """
    local_is_source = move.source.tier == "Dm"
    found: dict[EngineKey, list[Command]] = {}
    for box in move.boxes:
        runs = box_runs(box, move.source, move.dest)
        packet, within = _packets(runs, move.dest.dtype)
        whole = _Piece((*runs.loops, *within), box.source_base, box.dest_base, packet)
        for piece in _aligned(whole, local_is_source):
            for key, command in _per_engine(piece, move, local_is_source, hbm_base):
                found.setdefault(key, []).append(command)
    return {
        key: tuple(commands)
        for key, commands in sorted(found.items(), key=lambda item: (item[0].chip, item[0].cluster, item[0].engine_in_cluster))
    }


def _packets(runs: BoxRuns, dtype: DType) -> tuple[int, list[MoveDigit]]:
    """Packet bytes of a piece, and the loops over the packets inside it.

    A packet is one request where the piece is a whole number of requests, so that the DMNs can take turns; else as long as it may be.
    """
    length = runs.run_bytes(dtype)
    packet = RNGD.request_bytes if length % RNGD.request_bytes == 0 else stride0(length)
    if packet == length:
        return packet, []
    elements = packet * 8 // dtype.bits
    loops: list[MoveDigit] = []
    below = 1
    for digit in reversed(runs.inside):
        stride = digit.dest[ELEMENT]
        if stride != below or runs.run_elements != runs.live_elements:
            return packet, [_run_loop(elements, length // packet)]
        below = stride * digit.extent
        if stride >= elements:
            loops.insert(0, digit)
        elif below > elements:
            if elements % stride or below % elements:
                return packet, [_run_loop(elements, length // packet)]
            loops.insert(0, _scaled(digit, elements // stride, below // elements))
    return packet, loops


def _run_loop(elements: int, count: int) -> MoveDigit:
    step = (0, 0, 0, elements)
    return MoveDigit(count, step, step, f"packet of {elements}")


def _local(digit: MoveDigit, local_is_source: bool) -> Steps:
    return digit.source if local_is_source else digit.dest


def _with_loops(piece: _Piece, place: int, instead: list[MoveDigit], skipped: int = 0) -> _Piece:
    """The piece with loop `place` replaced, starting `skipped` steps of that loop later."""
    digit = piece.loops[place]

    def moved(base: Steps, step: Steps) -> Steps:
        a, b, c, d = (x + skipped * y for x, y in zip(base, step, strict=True))
        return a, b, c, d

    loops = (*piece.loops[:place], *instead, *piece.loops[place + 1 :])
    return replace(piece, loops=loops, source_base=moved(piece.source_base, digit.source), dest_base=moved(piece.dest_base, digit.dest))


def _aligned(piece: _Piece, local_is_source: bool) -> Iterator[_Piece]:
    """The piece cut so that no loop over slices leaves an engine or a DMN half way."""
    base = (piece.source_base if local_is_source else piece.dest_base)[SLICE]
    for unit in (RNGD.slices_per_engine, RNGD.slices_per_dmn):
        for place, digit in enumerate(piece.loops):
            step = _local(digit, local_is_source)[SLICE]
            if not step or step >= unit or base % unit + step * (digit.extent - 1) < unit:
                continue
            inside = unit // step
            if unit % step or base % unit >= step or digit.extent < inside:
                for count in range(digit.extent):
                    yield from _aligned(_with_loops(piece, place, [], count), local_is_source)
                return
            outer, rest = divmod(digit.extent, inside)
            high = _scaled(digit, inside, outer)
            low = replace(digit, extent=inside)
            yield from _aligned(_with_loops(piece, place, [high, low]), local_is_source)
            if rest:
                yield from _aligned(_with_loops(piece, place, [replace(digit, extent=rest)], outer * inside), local_is_source)
            return
    yield piece


def _scaled(digit: MoveDigit, factor: int, extent: int) -> MoveDigit:
    def scaled(step: Steps) -> Steps:
        a, b, c, d = (x * factor for x in step)
        return a, b, c, d

    return MoveDigit(extent, scaled(digit.source), scaled(digit.dest), f"{digit.term} / {factor}")


def _per_engine(piece: _Piece, move: Move, local_is_source: bool, hbm_base: int) -> Iterator[tuple[EngineKey, Command]]:
    """One command for every engine, cluster and chip that a piece reaches; chips that do the same are given once."""
    over_engines: list[MoveDigit] = []
    inside: list[MoveDigit] = []
    for digit in piece.loops:
        if digit.source[CHIP] and digit.dest[CHIP]:
            continue
        apart = any(side[CHIP] or side[CLUSTER] for side in (digit.source, digit.dest))
        other_engine = _local(digit, local_is_source)[SLICE] >= RNGD.slices_per_engine
        (over_engines if apart or other_engine else inside).append(digit)
    inside.sort(key=lambda d: _loop_order(_local(d, local_is_source)))
    for counts in product(*(range(d.extent) for d in over_engines)):
        source, dest = list(piece.source_base), list(piece.dest_base)
        for count, digit in zip(counts, over_engines, strict=True):
            source = [x + count * y for x, y in zip(source, digit.source, strict=True)]
            dest = [x + count * y for x, y in zip(dest, digit.dest, strict=True)]
        local = source if local_is_source else dest
        key = EngineKey(local[CHIP], local[CLUSTER], local[SLICE] // RNGD.slices_per_engine)
        yield key, _command(piece, inside, source, dest, move, hbm_base)


def _loop_order(step: Steps) -> tuple[int, int]:
    """Loops inside a slice first, then slices of a DMN, the two DMNs innermost; each group from large steps to small."""
    if not step[SLICE]:
        return 0, -step[ELEMENT]
    return (1 if step[SLICE] < RNGD.slices_per_dmn else 2), -step[SLICE]


def _command(piece: _Piece, loops: list[MoveDigit], source: list[int], dest: list[int], move: Move, hbm_base: int) -> Command:
    sides = []
    for tier, base, steps in (
        (move.source.tier, source, [d.source for d in loops]),
        (move.dest.tier, dest, [d.dest for d in loops]),
    ):
        offset = hbm_base if tier == "Hbm" else 0
        strides = tuple(_address(tier, step, move) for step in steps)
        sides.append(Side(tier, offset + _address(tier, tuple(base), move), strides, base[CLUSTER]))
    counts = tuple(d.extent for d in loops)
    return Command(counts, piece.packet_bytes, sides[0], sides[1], tuple(d.term for d in loops))


def _address(tier: str, step: tuple[int, ...], move: Move) -> int:
    """Byte address of a position: HBM and host by element, DM by slice window and element."""
    window = step[SLICE] * SLICE_STRIDE if tier == "Dm" else 0
    return window + move.dest.dtype.bytes_of(step[ELEMENT])

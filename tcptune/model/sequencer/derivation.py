"""Finds the Sequencer configuration that moves between a buffer and a stream, and proves it (SEQ-002 to SEQ-008, SEQ-017, SEQ-018).

The buffer is read as segments: a segment (weight, extent, stride) of an operand says that ``operand / weight % extent`` lies `stride`
elements apart. A term of the stream takes the segments of its operand that it covers; digits that the buffer does not carry get stride 0.
The result is proven symbolically: at every live position of the stream, the cell of the buffer at the derived address is live and has the
same coordinates.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from tcptune.errors import RuleViolation
from tcptune.ir.mappings.algebra import count_cells
from tcptune.ir.mappings.algebra_cases import Box, Form, evaluate, explore
from tcptune.ir.mappings.algebra_terms import simplify
from tcptune.ir.mappings.cells import operand_key, strip_digits
from tcptune.ir.mappings.mapping import Broadcast, Mapping, Modulo, Padding, PadKind, Pair, Resize, Stride, Symbol, factors, pair, walk
from tcptune.model.mappings.movement import carried_digits
from tcptune.model.sequencer.configuration import Entry, SequencerConfig


class Segment(NamedTuple):
    """``operand / weight % extent`` lies `stride` elements apart in the buffer."""

    weight: int
    extent: int
    stride: int


@dataclass(frozen=True)
class TermEntries:
    """One term of the stream with its entries, and the buffer after its place became a hole (SEQ-004)."""

    term: Mapping
    entries: tuple[Entry, ...]


@dataclass(frozen=True)
class Derivation:
    """A configuration with the terms it comes from."""

    buffer: Mapping
    time: Mapping
    packet: Mapping
    config: SequencerConfig
    terms: tuple[TermEntries, ...]


@lru_cache(maxsize=4_096)
def derive_read(buffer: Mapping, time: Mapping, packet: Mapping) -> Derivation:
    """Configuration that reads `buffer` into packets.

    Raises:
        RuleViolation: SEQ-017 the axes are cut incompatibly or a live position of the stream has no source, SEQ-005 a padded group is
            not one run.
    """
    found = _derive(buffer, time, packet)
    _prove(found)
    return found


@lru_cache(maxsize=4_096)
def derive_write(buffer: Mapping, time: Mapping, packet: Mapping) -> Derivation:
    """Configuration that writes packets into `buffer`.

    Raises:
        RuleViolation: as `derive_read`; SEQ-018 a live slot of the buffer has no source or several.
    """
    found = _derive(buffer, time, packet)
    _prove_single_source(found)
    _prove(found, also=("SEQ-018",))
    _prove_full(found)
    return found


def _derive(buffer: Mapping, time: Mapping, packet: Mapping) -> Derivation:
    layout = _Layout(buffer)
    terms = [TermEntries(term, layout.entries(term)) for side in (time, packet) for term in factors(side) if term.size > 1]
    config = SequencerConfig(tuple(e for t in terms for e in t.entries), packet.size)
    return Derivation(buffer, time, packet, config, tuple(terms))


@lru_cache(maxsize=4096)
def entries_of(buffer: Mapping, term: Mapping) -> tuple[Entry, ...]:
    """Loops over `buffer` that one term of a stream stands for, outermost first.

    Raises:
        RuleViolation: SEQ-017, SEQ-005.
    """
    return _Layout(buffer).entries(term)


class _Layout:
    """Segments of every operand that the buffer carries, at all levels of grouping."""

    def __init__(self, buffer: Mapping) -> None:
        self.buffer = buffer
        self.table: dict[Mapping, list[Segment]] = {}
        self._place(buffer, 1)
        self._open_operands()
        self.table = {m: _merged(segments) for m, segments in self.table.items()}

    def _add(self, operand: Mapping, segment: Segment) -> None:
        """Records a segment; of an operand laid out twice (two slots `1 # 2`) the inner one counts."""
        known = self.table.setdefault(operand_key(operand), []) if segment.extent > 1 else []
        end = segment.weight * segment.extent
        if segment.extent > 1 and not any(s.weight < end and segment.weight < s.weight * s.extent for s in known):
            known.append(segment)

    def _place(self, m: Mapping, stride: int) -> None:
        """Records `m`, whose positions lie `stride` apart."""
        for member in reversed(factors(m)):
            self._place_member(member, stride)
            stride *= member.size

    def _place_member(self, m: Mapping, stride: int) -> None:
        extent = m.size
        while isinstance(m, (Padding, Resize)):
            self._add(m, Segment(1, m.size, stride))
            extent = min(extent, m.inner.size)
            m = m.inner
        if isinstance(m, Pair):
            self._add(m, Segment(1, extent, stride))
            self._place(m, stride)
        elif isinstance(m, (Symbol, Stride, Modulo)):
            operand, weight = strip_digits(m)
            self._add(operand, Segment(weight, extent, stride))

    def _open_operands(self) -> None:
        """Derives the segments of what lies inside composite operands whose digits are laid out one by one."""
        opened: set[Mapping] = set()
        waiting = [m for m in self.table if not isinstance(m, Symbol)]
        while waiting:
            operand = waiting.pop()
            if operand in opened:
                continue
            opened.add(operand)
            segments = _merged(self.table[operand])
            if len(segments) == 1 and segments[0].weight == 1 and segments[0].extent == operand.size and self._inside_known(operand):
                continue
            before = set(self.table)
            self._open(operand, segments)
            waiting += [m for m in self.table if m not in before and not isinstance(m, Symbol)]

    def _inside_known(self, operand: Mapping) -> bool:
        """Whether `_place` already recorded what is inside a contiguous operand."""
        while isinstance(operand, (Padding, Resize)):
            operand = operand.inner
        return all(operand_key(strip_digits(f)[0]) in self.table for f in factors(operand) if f.size > 1 and not isinstance(f, Broadcast))

    def _open(self, operand: Mapping, segments: list[Segment]) -> None:
        inside = operand
        while isinstance(inside, (Padding, Resize)):
            inside = inside.inner
        weight = 1
        for member in reversed(factors(inside)):
            found = _cover(segments, weight, member.size)
            weight *= member.size
            if found is None:
                continue
            base, scale = (member, 1) if isinstance(member, (Padding, Resize, Pair)) else strip_digits(member)
            if not isinstance(base, Broadcast):
                for segment in found:
                    self._add(base, Segment(segment.weight * scale, segment.extent, segment.stride))

    def segments(self, m: Mapping) -> list[Segment]:
        """Segments of the position of `m`; parts that the buffer does not carry are left out.

        Raises:
            RuleViolation: SEQ-017, SEQ-005.
        """
        known = self.table.get(operand_key(m))
        if known is not None:
            return known
        if isinstance(m, (Symbol, Broadcast)):
            return []
        if isinstance(m, Padding):
            return self._extended(m)
        if isinstance(m, Resize):
            return self._shortened(m)
        if isinstance(m, (Stride, Modulo)):
            operand, weight = strip_digits(m)
            found = _cover(self.segments(operand), weight, m.size)
            if found is None:
                raise self._incompatible(m, operand)
            return found
        out: list[Segment] = []
        weight = 1
        for member in reversed(factors(m)):
            out += [Segment(s.weight * weight, s.extent, s.stride) for s in self.segments(member)]
            weight *= member.size
        return _merged(out)

    def _extended(self, m: Padding) -> list[Segment]:
        segments = self.segments(m.inner)
        if not segments or segments[-1].weight * segments[-1].extent < m.inner.size:
            return segments
        top = segments[-1]
        if m.n % top.weight:
            raise RuleViolation(
                "SEQ-005",
                f"the live part of {m} is not one run of the buffer {self.buffer}",
                got=m,
                expected=f"a padded size that is a multiple of {top.weight}",
                nearest=m.inner.pad_to_multiple(top.weight),
            )
        return [*segments[:-1], Segment(top.weight, m.n // top.weight, top.stride)]

    def _shortened(self, m: Resize) -> list[Segment]:
        out = []
        for segment in self.segments(m.inner):
            if segment.weight >= m.n:
                continue
            extent = segment.extent
            if segment.weight * extent > m.n:
                if m.n % segment.weight:
                    raise self._incompatible(m, m.inner)
                extent = m.n // segment.weight
            out.append(Segment(segment.weight, extent, segment.stride))
        return out

    def _incompatible(self, term: Mapping, operand: Mapping) -> RuleViolation:
        held = ", ".join(f"{operand}{f' / {s.weight}' * (s.weight > 1)} % {s.extent}" for s in reversed(self.segments(operand)))
        return RuleViolation(
            "SEQ-017",
            f"the buffer {self.buffer} and the stream cut {operand} at places that have no common refinement",
            got=f"stream term {term}",
            expected=f"digits that refine {held}" if held else "an axis of the buffer",
            nearest=held or None,
        )

    def entries(self, term: Mapping) -> tuple[Entry, ...]:
        """Loops of one term, outermost first; parts that the buffer does not carry get stride 0 (SEQ-008)."""
        out: list[Entry] = []
        reached = 1
        for segment in self.segments(term):
            if segment.weight > reached:
                if segment.weight % reached:
                    raise self._incompatible(term, term)
                out.append(Entry(segment.weight // reached, 0))
            out.append(Entry(segment.extent, segment.stride))
            reached = segment.weight * segment.extent
        if reached < term.size:
            if term.size % reached:
                raise self._incompatible(term, term)
            out.append(Entry(term.size // reached, 0))
        return tuple(reversed(out))


def _merged(segments: list[Segment]) -> list[Segment]:
    """Sorted by weight; segments that continue each other in the operand and in the buffer are joined."""
    out: list[Segment] = []
    for segment in sorted(segments):
        if out:
            low = out[-1]
            if segment.weight == low.weight * low.extent and segment.stride == low.stride * low.extent:
                out[-1] = Segment(low.weight, low.extent * segment.extent, low.stride)
                continue
        out.append(segment)
    return out


def _cover(segments: list[Segment], weight: int, extent: int) -> list[Segment] | None:
    """The part of the segments inside ``[weight, weight * extent)``, with weights relative to it; None if a boundary does not line up."""
    out = []
    end = weight * extent
    for segment in segments:
        low, high = max(segment.weight, weight), min(segment.weight * segment.extent, end)
        if low >= high:
            continue
        if low % segment.weight or low % weight or high % low:
            return None
        out.append(Segment(low // weight, high // low, segment.stride * (low // segment.weight)))
    return out


def _stream(found: Derivation) -> Mapping:
    return pair(found.time, found.packet)


def address_form(box: Box, config: SequencerConfig) -> Form:
    """The address as a form of the box's digits."""
    position = box.position
    const, terms = config.base, dict[int, int]()
    for entry in reversed(config.entries):
        position, digit = box.divide(position, entry.size)
        if entry.stride:
            leaves = box.leaves(digit)
            const += leaves.const * entry.stride
            for d, c in leaves.terms.items():
                terms[d] = terms.get(d, 0) + c * entry.stride
    return Form(const, terms)


def _prove(found: Derivation, also: tuple[str, ...] = ()) -> None:
    """Every live position of the stream meets a live cell of the buffer with the same coordinates, every zero a zero (MAP-007)."""
    stream, buffer, config = _stream(found), found.buffer, found.config
    if stream.size != config.iterations:
        raise AssertionError("entries do not cover the stream")
    carried = carried_digits((buffer,))
    whole = {name: buffer.axes.get(name) for name in carried}

    def holds(box: Box) -> bool:
        wanted = evaluate(box, stream)
        if wanted.kind not in (None, PadKind.ZERO):
            return True
        address = address_form(box, config)
        if not box.below(address, buffer.size):
            return False
        held = evaluate(box, buffer, address)
        if held.kind is not wanted.kind:
            return False
        if held.kind is PadKind.ZERO:
            return True
        zero = Form(0, {})
        for axis, digits in carried.items():
            a, b = wanted.coords.get(axis, zero), held.coords.get(axis, zero)
            if digits != ((1, whole[axis]),):
                a, b = _projected(box, a, digits), _projected(box, b, digits)
            if box.leaves(a) != box.leaves(b):
                return False
        return True

    for _, same in explore(stream.size, holds):
        if not same:
            raise RuleViolation(
                "SEQ-017",
                "a live position of the stream (or one said to be zero) has no source in the buffer",
                got=f"time {found.time}, packet {found.packet}",
                expected=f"positions of {simplify(buffer)}",
                also=(*also, "MAP-007") if PadKind.ZERO in _kinds(stream) else also,
            )


def _kinds(m: Mapping) -> set[PadKind]:
    return {node.kind for node in walk(m) if isinstance(node, Padding)}


def _projected(box: Box, coordinate: Form, digits: tuple[tuple[int, int], ...]) -> Form:
    const, terms = 0, dict[int, int]()
    for weight, extent in digits:
        quotient, _ = box.divide(coordinate, weight)
        _, digit = box.divide(quotient, extent)
        leaves = box.leaves(digit)
        const += leaves.const * weight
        for d, c in leaves.terms.items():
            terms[d] = terms.get(d, 0) + c * weight
    return Form(const, terms)


def _prove_single_source(found: Derivation) -> None:
    """No slot of the buffer is written twice: a loop of stride 0 may only repeat padding."""
    stream = _stream(found)
    below = stream.size
    for term in found.terms:
        for entry in term.entries:
            below //= entry.size
            if entry.stride == 0 and next(explore(1, lambda _, at=below: evaluate(Box(at, []), stream)))[1].kind is None:  # type: ignore[misc]  # mypy cannot infer a lambda that binds its loop variable by default
                missing = ", ".join(sorted(set(term.term.axes) - set(found.buffer.axes)))
                raise RuleViolation(
                    "SEQ-018",
                    f"every slot of the buffer would have {entry.size} sources: it does not carry {missing or term.term}",
                    got=f"buffer {found.buffer}",
                    expected=f"a buffer that carries {term.term}",
                    nearest=pair(term.term, found.buffer),
                )


def _prove_full(found: Derivation) -> None:
    """Every live slot of the buffer has a source."""
    stream = _stream(found)
    slots, sources = found.buffer.live_size, stream.live_size
    if slots != sources or not stream.is_broadcast_free:
        missing = [name for name in found.buffer.axes if name not in stream.axes]
        why = f"the stream does not carry {', '.join(missing)}" if missing else f"{sources} live positions for {slots} live slots"
        raise RuleViolation(
            "SEQ-018",
            f"not every live slot of the buffer has exactly one source: {why}",
            got=f"buffer {found.buffer}",
            expected=f"the axes of {simplify(stream)}",
            nearest=simplify(stream),
        )
    zeros = count_cells(found.buffer, PadKind.ZERO)
    if zeros and zeros != count_cells(stream, PadKind.ZERO):
        raise RuleViolation(
            "SEQ-018",
            f"{zeros} slots of the buffer are said to be zero, but the stream does not write zeros there",
            got=f"buffer {found.buffer}",
            expected="zero padding in the stream at the same places, or padding of kind Top in the buffer",
            also=("MAP-007",),
        )

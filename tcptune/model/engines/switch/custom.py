"""CustomBroadcast of the Switch Engine: its seven constraints, and the ring it needs (SWITCH-020 to SWITCH-030, SWITCH-033).

Constraints speak of mappings and are checked symbolically, with one exception: which slice feeds which is a table over the slices of a
cluster anyway (the snoop bitmap), so completeness and order are read off that table.
"""

from __future__ import annotations

from tcptune.errors import RuleViolation
from tcptune.ir.kernels.ops import Switch
from tcptune.ir.mappings.algebra_terms import opened_factors
from tcptune.ir.mappings.mapping import Mapping, Padding, pair, walk
from tcptune.ir.types import StreamType
from tcptune.model.engines.switch.bitmap import Routing, Synthesis, synthesise
from tcptune.model.mappings.movement import Digits, carried_digits


def custom_routing(stream: StreamType, op: Switch) -> Routing:
    """The routing of a CustomBroadcast.

    Raises:
        RuleViolation: SWITCH-023, 024, 025 for axes added to Slice; SWITCH-027, 033 for the time; SWITCH-020, 026, 028 for the sources;
            SWITCH-029, 030 for the ring size.
    """
    needed = derived_ring_size(stream.slice, op.slice)
    wrong_ring = _wrong_ring(op.config.ring_size, needed)
    if wrong_ring and wrong_ring.rule == "SWITCH-029":
        raise wrong_ring
    try:
        sources = _checked_sources(stream, op)
    except RuleViolation as refusal:
        if wrong_ring:
            refusal.also = (*refusal.also, wrong_ring.rule)
        raise
    if wrong_ring:
        raise wrong_ring
    return Routing("CustomBroadcast", stream.slice.size, needed, stream.time.size, op.time.size, sources=sources)


def _checked_sources(stream: StreamType, op: Switch) -> tuple[tuple[int, ...], ...]:
    """Input slice of every output slice and combination of moved digits, all constraints but those on the ring checked."""
    check_added_axes(stream, op)
    moved = _moved_digits(stream, op)
    found = synthesise(stream.slice, op.slice, moved)
    _check_sources(stream, op, found, moved)
    return tuple(tuple(row) for row in found.sources.tolist())


def _wrong_ring(ring: int | None, needed: int) -> RuleViolation | None:
    """SWITCH-029 or SWITCH-030, if the ring size breaks one of them."""
    nearest = f"ring_size = {needed}"
    if not isinstance(ring, int) or isinstance(ring, bool) or ring < 1 or ring & (ring - 1):
        message = f"the ring size {ring} is not a power of two"
        return RuleViolation("SWITCH-029", message, expected="a power of two", got=ring, nearest=nearest, also=("SWITCH-030",))
    if ring == needed:
        return None
    message = "the ring starts at the outermost position where the output Slice is not the input Slice carried over"
    return RuleViolation("SWITCH-030", message, expected=needed, got=ring, nearest=nearest)


def derived_ring_size(in_slice: Mapping, out_slice: Mapping) -> int:
    """The smallest power of two r with ``in_slice / r`` equal to ``out_slice / r`` (SWITCH-030); padding equal on both sides is carried."""
    ring = 1
    while ring < in_slice.size and not _carried_outside(in_slice, out_slice, ring):
        ring *= 2
    return min(ring, in_slice.size)


def _carried_outside(in_slice: Mapping, out_slice: Mapping, ring: int) -> bool:
    if in_slice.size % ring:
        return False
    return in_slice.split_at(ring)[0].equivalent(out_slice.split_at(ring)[0])


def overlapping_symbol(mapping: Mapping) -> str | None:
    """An axis of which two factors of `mapping` carry the same digits, if there is one."""
    seen: dict[str, list[tuple[int, int]]] = {}
    for term in mapping.terms():
        for name, digits in carried_digits((term,)).items():
            for weight, extent in digits:
                if any(weight < high and low < weight * extent for low, high in seen.get(name, ())):
                    return name
            seen.setdefault(name, []).extend((w, w * e) for w, e in digits if e > 1)
    return None


def _covers(held: Digits, asked: Digits, axis_size: int) -> bool:
    """Whether digits `asked` of an axis are among the digits `held`; a padded digit reaches beyond the axis and counts up to its size."""
    return all(
        any(low <= weight and min(weight * extent, axis_size) <= low * reach for low, reach in held)
        for weight, extent in asked
        if extent > 1
    )


def _strange(term: Mapping, held: dict[str, Digits]) -> list[str]:
    """Axes of which a factor carries digits that are not held."""
    sizes = term.axes
    return [n for n, d in carried_digits((term,)).items() if n not in held or not _covers(held[n], d, sizes[n])]


def check_added_axes(stream: StreamType, op: Switch) -> None:
    """SWITCH-023, 024, 025: what the output Slice adds is new, used once and not padded."""
    held = carried_digits((stream.slice,))
    added: list[Mapping] = []
    for term in (term for factor in opened_factors(op.slice) for term in factor.terms()):
        foreign = [n for n in _strange(term, held) if n in stream.time.axes or n in held]
        if foreign:
            raise RuleViolation(
                "SWITCH-023",
                f"{term} in the output Slice is a part of {foreign[0]} that the input Slice does not hold; added axes must be new",
                expected="an axis that is neither in the input Slice nor in the input Time",
                got=op.slice,
                nearest=f"a new axis of {term.size}",
                also=("SWITCH-020",),
            )
        if term.axes and not any(n in held for n in term.axes):
            added.append(term)
    twice = overlapping_symbol(pair(*added))
    if twice:
        raise RuleViolation("SWITCH-024", f"the added axis {twice} fills two positions", expected="each added axis once", got=op.slice)
    for term in added:
        if any(isinstance(node, Padding) and node.n > node.inner.size for node in walk(term)):
            raise RuleViolation(
                "SWITCH-025",
                f"the added axis {term} is padded",
                expected="added axes without padding",
                got=op.slice,
                nearest=f"1 # {term.size}, or an axis of {term.size}",
            )


def _moved_digits(stream: StreamType, op: Switch) -> Mapping:
    """The innermost part of the output Time that follows the input Time (SWITCH-027, SWITCH-033)."""
    count = op.time.size // stream.time.size
    if op.time.size % stream.time.size == 0:
        outer, moved = op.time.split_at(count)
        if outer.equivalent(stream.time):
            _check_moved(stream, op, moved)
            return moved
    from_slice, from_time = carried_digits((stream.slice,)), carried_digits((stream.time,))
    kept = [m for m in op.time.terms() if _strange(m, from_slice) or not _strange(m, from_time)]
    if len(kept) < len(op.time.terms()) and pair(*kept).equivalent(stream.time):
        nearest = pair(stream.time, *(m for m in op.time.terms() if m not in kept))
        raise RuleViolation(
            "SWITCH-027",
            "the digits moved from Slice are not innermost in Time",
            expected=nearest,
            got=op.time,
            nearest=f"time = {nearest}",
        )
    raise RuleViolation(
        "SWITCH-033",
        "the output Time is the input Time followed by the digits moved from Slice",
        expected=f"{stream.time}, then digits of {stream.slice}",
        got=op.time,
    )


def _check_moved(stream: StreamType, op: Switch, moved: Mapping) -> None:
    """SWITCH-033: nothing but digits of the input Slice, and padding, follows the input Time."""
    held = carried_digits((stream.slice,))
    for term in moved.terms():
        if _strange(term, held) or (not term.axes and term.live_size > 1):
            raise RuleViolation(
                "SWITCH-033",
                f"{term} in the output Time is no digit of the input Slice",
                expected=f"{stream.time}, then digits of {stream.slice}",
                got=op.time,
            )


def _check_sources(stream: StreamType, op: Switch, found: Synthesis, moved: Mapping) -> None:
    """SWITCH-020, 026 and 028, read off the table of sources."""
    got = f"slice = {op.slice}; time = {op.time}"
    if not stream.slice.is_broadcast_free:
        raise RuleViolation(
            "SWITCH-020", f"several slices of {stream.slice} hold the same data, so an output slice has more than one source", got=got
        )
    if found.orphans:
        raise RuleViolation("SWITCH-020", f"{found.orphans} live output positions have no source in {stream.slice}", got=got)
    reads = found.reads[found.live_inputs]
    if (reads == 0).any():
        lost = int((reads == 0).sum())
        raise RuleViolation(
            "SWITCH-028",
            f"{lost} of {len(reads)} live slices of {stream.slice} are read by no output slice",
            expected="every live slice read; only padding may be dropped",
            got=got,
            nearest="append the digits that leave Slice to the time",
        )
    if (reads != reads[0]).any():
        raise RuleViolation(
            "SWITCH-020",
            f"digits of {stream.slice} have two homes in the output",
            expected="each input digit once, in the output Slice or in the output Time",
            got=got,
            also=("SWITCH-026",) if not found.keeps_order else (),
        )
    if not found.keeps_order:
        raise RuleViolation(
            "SWITCH-026",
            "the digits moved from Slice to Time change their order",
            expected=f"{moved} in the order of {stream.slice}",
            got=op.time,
            nearest=f"time = {_in_slice_order(stream, moved)}",
        )


def _in_slice_order(stream: StreamType, moved: Mapping) -> Mapping:
    """The output time with the moved digits in the order of the input Slice."""
    order = {name: place for place, term in enumerate(stream.slice.terms()) for name in term.axes}

    def place(term: Mapping) -> tuple[int, int]:
        digits = carried_digits((term,))
        name = next(iter(digits), "")
        weight = max((w for w, _ in digits.get(name, ((0, 1),))), default=0)
        return order.get(name, len(order)), -weight

    return pair(stream.time, *sorted(moved.terms(), key=place))

"""Vector Register File accesses: what one packet of a stream may read of a register tensor (VE-032, VE-033).

One access delivers one packet. The indexer either broadcasts one cell to all lanes or reads as many consecutive cells as the packet has.
"""

from __future__ import annotations

from tcptune.errors import RuleViolation
from tcptune.ir.mappings.mapping import Mapping, pair
from tcptune.model.mappings.position_digits import Digits, PlacedDigit, position_digits, split_digits


def check_register_access(name: str, element: Mapping, time: Mapping, packet: Mapping) -> None:
    """Refuses a register tensor that a stream cannot read a packet at a time.

    Args:
        name: the register tensor, for the message.
        element: its cells in one slice.
        time, packet: the stream that reads it.

    Raises:
        RuleViolation: VE-033 if cells of `element` are never read, VE-032 if a packet neither broadcasts nor is contiguous.
    """
    held, lanes, steps = position_digits(element), position_digits(packet), position_digits(time)
    if held is None or lanes is None or steps is None:
        raise _no_encoding(name, element, packet)
    held_pieces = split_digits(held, (*lanes, *steps))
    read_pieces = split_digits((*steps, *lanes), held)
    lane_pieces = split_digits(lanes, held)
    if held_pieces is None or read_pieces is None or lane_pieces is None:
        raise _no_encoding(name, element, packet)
    for piece in held_pieces:
        if piece.axis is not None and not any(_same_part(piece, r) for r in read_pieces):
            raise RuleViolation(
                "VE-033",
                f"the stream leaves operand axes unmatched: {pair(time, packet)} never reads all of {piece.axis} in {name}",
                expected=f"an operand over axes of {pair(time, packet)}",
                got=str(element),
            )
    if not _is_one_access(held_pieces, lane_pieces):
        raise _no_encoding(name, element, packet)


def _same_part(a: PlacedDigit, b: PlacedDigit) -> bool:
    return a.axis == b.axis and a.weight == b.weight and (a.extent == b.extent or (a.is_top and b.is_top))


def _is_one_access(held: Digits, lanes: Digits) -> bool:
    strides = {lane: next((h.place for h in held if h.axis is not None and _same_part(h, lane)), 0) for lane in lanes}
    broadcast = all(stride == 0 for stride in strides.values())
    return broadcast or all(stride == lane.place for lane, stride in strides.items())


def _no_encoding(name: str, element: Mapping, packet: Mapping) -> RuleViolation:
    return RuleViolation(
        "VE-032",
        f"a packet {packet} cannot read {name}, which holds {element}",
        expected=f"{packet} innermost and contiguous in the operand, or absent from it",
        got=str(element),
        nearest=f"store it as [..., {packet}]",
    )

"""Outer product of a contraction: Stream Adapter, TRF Sequencer and multipliers (OUTER-001..027, CE-002, CE-003).

The Stream Adapter packs one or two flits into a packet and repeats it over time; the TRF Sequencer reads the stationary operand beside
it; all lanes multiply. The result is a stream with a lane level; its values are only computed when someone looks at them
(`model.engines.contraction.values`), because a contraction needs just their sums.
"""

from __future__ import annotations

from collections.abc import Mapping as Dict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tcptune.errors import RuleViolation
from tcptune.ir.kernels.ops import ContractOuter
from tcptune.ir.mappings.mapping import Mapping, Pair
from tcptune.ir.types import DType, StreamType, TensorType
from tcptune.model.hardware import Hardware
from tcptune.model.mappings.loop_factors import LoopFactor, loop_factors, refined
from tcptune.model.mappings.movement import Digits, carried_digits
from tcptune.model.numerics.elements import accumulator, packing_bits
from tcptune.model.stage import ChainEnv, StageCost, Step

if TYPE_CHECKING:
    from tcptune.model.values import Values

HANDLES = (ContractOuter,)

OPERAND_FAMILIES: tuple[tuple[str, ...], ...] = (("i4", "i5"), ("i8", "i9"), ("f8e4m3",), ("f8e5m2",), ("bf16",))
"""Types that multiply with one another (OUTER-023)."""


@dataclass(frozen=True, slots=True)
class OuterConfig:
    """How the packets of both operands are formed.

    Attributes:
        pack_size: flits in a packet, 1 or 2 (OUTER-003).
        flit_elements: elements of one flit.
        time_broadcast: times a packet is sent again (OUTER-007).
        read_size: TRF elements of one read (OUTER-016).
        entries: (size, stride in elements) of the TRF loops, outermost first (OUTER-019).
        padded_broadcasts: (place, extent, live) of loops of OutTime that neither operand holds and that have padding: packets are sent
            again for the padding too, so nothing is known of those products.
        weight_type: element type of the TRF operand.
        accumulator: type of the products.
    """

    pack_size: int
    flit_elements: int
    time_broadcast: int
    read_size: int
    entries: tuple[tuple[int, int], ...]
    padded_broadcasts: tuple[tuple[int, int, int], ...]
    weight_type: DType
    accumulator: DType

    @property
    def packet_elements(self) -> int:
        return self.pack_size * self.flit_elements


def pair_accumulator(stream: DType, weight: DType) -> DType | None:
    """Accumulator of this operand pair; None if the multipliers do not take it (OUTER-023)."""
    for family in OPERAND_FAMILIES:
        if stream.name in family and weight.name in family:
            return accumulator(stream)
    return None


def packet_elements(stream: DType, hw: Hardware) -> tuple[int, ...]:
    """Legal sizes of OutPacket, for PackSize 1 and 2 (OUTER-004)."""
    return tuple(n * 8 // packing_bits(stream) for n in hw.contraction_packet_bytes)


def multipliers_per_lane(stream: DType, hw: Hardware) -> int:
    """Multipliers of a lane (CE-012)."""
    return hw.multiplier_bits_per_lane // packing_bits(stream)


def trf_banks(read_bytes: float, hw: Hardware) -> int:
    """Banks that one read takes (OUTER-018)."""
    return 2 if read_bytes > hw.trf_narrow_read_bytes else 1


def require_aligned_read(read_bytes: float, base_address: int, strides: tuple[int, ...], hw: Hardware) -> None:
    """Base address and strides of a full-width read are multiples of its width.

    Args:
        read_bytes, base_address, strides: bytes.

    Raises:
        RuleViolation: OUTER-020.
    """
    if read_bytes < hw.trf_wide_read_bytes:
        return
    for what, value in (("base address", base_address), *(("stride", s) for s in strides)):
        if value % hw.trf_wide_read_bytes:
            raise RuleViolation(
                "OUTER-020",
                f"a read of {read_bytes} bytes has the {what} {value}",
                expected=f"a multiple of {hw.trf_wide_read_bytes} bytes",
                got=value,
                nearest=-(-value // hw.trf_wide_read_bytes) * hw.trf_wide_read_bytes,
            )


def check(stream: StreamType, op: ContractOuter, env: ChainEnv) -> Step:
    """The joint stream of products.

    Raises:
        RuleViolation: CE-002 (context), OUTER-001 (operand), OUTER-023 (types), CE-003 (spatial mappings), OUTER-008 (lanes), OUTER-004 to
            OUTER-007 (packing and broadcast), OUTER-016 to OUTER-020 (reads of the TRF).
    """
    if env.context != "main":
        raise RuleViolation("CE-002", f"contract_outer in the {env.context} context", expected="main", got=env.context)
    trf = _operand(op, env)
    result_dtype = _require_pair(stream.dtype, trf.dtype)
    _require_spatial(stream, trf)
    if trf.lane.size not in env.hw.legal_lane_counts:
        raise RuleViolation(
            "OUTER-008",
            f"Lane {trf.lane} of {op.trf} has {trf.lane.size} positions",
            expected=f"one of {', '.join(map(str, env.hw.legal_lane_counts))}",
            got=trf.lane.size,
            nearest=next((f"{_group(trf.lane)} # {n}" for n in env.hw.legal_lane_counts if n > trf.lane.size), None),
            also=("CE-004", "TIMERED-011") if trf.lane.size > env.hw.lanes_per_slice else (),
        )
    flit = env.hw.flit_bytes * 8 // packing_bits(stream.dtype)
    pack_size = _check_packet(stream, op, flit, env.hw)
    time_broadcast = _check_time(stream, op, pack_size)
    read_size = _read_size(trf, op.packet, env.hw)
    _require_packet_broadcast(trf, op.packet, read_size)
    entries = _entries(trf, op.time, read_size)
    read_bits = read_size * packing_bits(trf.dtype)
    read_bytes = read_bits / 8 if read_bits % 8 else read_bits // 8  # one element of 4 bits is half a byte
    require_aligned_read(read_bytes, 0, tuple(s * packing_bits(trf.dtype) // 8 for _, s in entries), env.hw)
    padded = _padded_broadcasts(trf, op.time, time_broadcast)
    config = OuterConfig(pack_size, flit, time_broadcast, read_size, entries, padded, trf.dtype, result_dtype)
    after = stream.with_(position="ContractOuter", dtype=result_dtype, time=op.time, packet=op.packet, lane=trf.lane, details=stream.dtype)
    derived = {
        "pack_size": pack_size,
        "lane_broadcast": trf.lane.size,
        "time_broadcast": time_broadcast,
        "stream_flits": stream.time.size,
        "outer_steps": op.time.size,
        "read_size": read_size,
        "read_bytes": read_bytes,
        "trf_banks": trf_banks(read_bytes, env.hw),
        "packet_broadcast": op.packet.size // read_size,
        "trf_reads_per_pass": trf.element.size // read_size,
        "trf_time_entries": [list(e) for e in entries],
        "mac_utilization": mac_utilization(op.packet.live_size, trf.lane.live_size, stream.dtype, env.hw),
    }
    return Step(op, stream, after, config, derived, StageCost(cycles=max(stream.time.size, op.time.size)))


def mac_utilization(live_elements: int, live_lanes: int, stream: DType, hw: Hardware) -> dict[str, float]:
    """Live share of the 64-byte packet and of the lanes (CE-012)."""
    return {"packet": live_elements / multipliers_per_lane(stream, hw), "lane": live_lanes / hw.lanes_per_slice}


def apply(values: Values, step: Step, env: ChainEnv, operands: Dict[str, Values]) -> Values:
    """The products, lane, time and packet level last; computed when their arrays are first read."""
    from tcptune.model.engines.contraction.values import PendingProducts

    return PendingProducts(values, operands[step.op.trf], (step,))  # type: ignore[attr-defined]  # this engine handles ContractOuter alone


# --- the parts of the check -------------------------------------------------------------------------------------------------------


def _operand(op: ContractOuter, env: ChainEnv) -> TensorType:
    trf = env.operands.get(op.trf)
    if trf is None or trf.tier != "Trf":
        what = "no tensor of that name" if trf is None else f"a {trf.tier} tensor"
        raise RuleViolation(
            "OUTER-001",
            f"contract_outer names {op.trf!r}, {what}",
            expected="a TRF tensor",
            got=op.trf,
            nearest=next((name for name, t in env.operands.items() if t.tier == "Trf"), None),
            also=("TRF-001", "TU-006"),
        )
    return trf


def _require_pair(stream: DType, weight: DType) -> DType:
    found = pair_accumulator(stream, weight)
    if found is not None:
        return found
    partners = next((f for f in OPERAND_FAMILIES if stream.name in f), ())
    unusable = [d.name for d in (stream, weight) if accumulator(d) is None]
    raise RuleViolation(
        "OUTER-023",
        f"the multipliers do not take a {stream} stream with {weight} weights",
        expected=f"weights of {' or '.join(partners)}" if partners else "a stream of i4, i5, i8, i9, f8e4m3, f8e5m2 or bf16",
        got=weight,
        also=(("CE-014",) if unusable else ()) + (("OUTER-025",) if stream.name in unusable else ()),
    )


def _require_spatial(stream: StreamType, trf: TensorType) -> None:
    for level in ("chip", "cluster", "slice"):
        here, there = getattr(stream, level), getattr(trf, level)
        if not here.equivalent(there):
            single = there.size == here.size and there.live_size == 1 < here.live_size
            why = f"; [{there}] is one live copy and {there.size - 1} without contents, no broadcast" if single else ""
            raise RuleViolation(
                "CE-003",
                f"{level.capitalize()} of the stream is {here}, of the TRF operand {there}{why}",
                expected=str(here),
                got=str(there),
                nearest=f"{level}=[{here}] for the operand too: where it lacks an axis, every coordinate of the axis gets a copy",
            )


def _check_packet(stream: StreamType, op: ContractOuter, flit: int, hw: Hardware) -> int:
    """PackSize."""
    legal = packet_elements(stream.dtype, hw)
    if op.packet.size not in legal:
        raise RuleViolation(
            "OUTER-004",
            f"OutPacket {op.packet} has {op.packet.size} elements of {stream.dtype}",
            expected=f"{' or '.join(map(str, legal))} elements ({' or '.join(map(str, hw.contraction_packet_bytes))} bytes)",
            got=op.packet.size,
            nearest=next((f"{_group(op.packet)} # {n}" for n in legal if n > op.packet.size), None),
            also=(
                "OUTER-003",
                *(("CE-004",) if op.packet.size > legal[-1] else ("OUTER-005",) if op.packet.size < legal[0] else ("CE-004",)),
            ),
        )
    if stream.packet.size != flit:
        raise RuleViolation(
            "OUTER-025",
            f"the stream's packet {stream.packet} is not one flit",
            expected=f"{flit} elements of {stream.dtype}",
            got=stream.packet.size,
            also=("CE-001", "OUTER-005"),
        )
    outer, inner = op.packet.split_at(flit)
    if not inner.equivalent(stream.packet):
        raise RuleViolation(
            "OUTER-005",
            f"the inner flit of OutPacket is {inner}, not the collected packet",
            expected=str(stream.packet),
            got=str(inner),
            nearest=_packed(stream, op.packet.size // flit),
            also=("OUTER-006",),
        )
    pack_size = op.packet.size // flit
    if stream.time.size % pack_size:
        raise RuleViolation(
            "OUTER-006",
            f"Time {stream.time} has {stream.time.size} positions, which do not pack in twos",
            expected=f"a multiple of {pack_size}",
            got=stream.time.size,
            nearest=f"{_group(stream.time)} # {-(-stream.time.size // pack_size) * pack_size}",
            also=("OUTER-003",),
        )
    absorbed = stream.time.split_at(pack_size)[1]
    if not outer.equivalent(absorbed):
        raise RuleViolation(
            "OUTER-006",
            f"OutPacket packs {outer}, but the inner end of Time is {absorbed}",
            expected=str(absorbed),
            got=str(outer),
            nearest=_packed(stream, pack_size),
            also=("OUTER-007",),
        )
    return pack_size


def _packed(stream: StreamType, pack_size: int) -> str | None:
    if stream.time.size % pack_size:
        return None
    return f"OutPacket {Pair(stream.time.split_at(pack_size)[1], stream.packet)}" if pack_size > 1 else f"OutPacket {stream.packet}"


def _group(m: Mapping) -> str:
    return f"[{m}]" if isinstance(m, Pair) else str(m)


def _check_time(stream: StreamType, op: ContractOuter, pack_size: int) -> int:
    """Size of the time broadcast."""
    packed = stream.time.split_at(pack_size)[0]
    broadcast, rest = divmod(op.time.size, packed.size)
    if rest or not op.time.split_at(max(broadcast, 1))[0].equivalent(packed):
        raise RuleViolation(
            "OUTER-007",
            f"OutTime {op.time} does not begin with the packed Time {packed}",
            expected=f"{packed}, followed by broadcast axes",
            got=str(op.time),
        )
    _require_new_axes(stream, op, broadcast)
    return broadcast


def _require_new_axes(stream: StreamType, op: ContractOuter, broadcast: int) -> None:
    """A broadcast factor repeats packets for an axis that the stream does not hold (OUTER-009)."""
    held = carried_digits((stream.chip, stream.cluster, stream.slice, stream.time, stream.packet))
    repeated = op.time.split_at(broadcast)[1]
    loops = loop_factors(repeated)
    for place, loop in enumerate(loops):
        again = any(isinstance(loop.of, str) and f.of == loop.of and f.weight < loop.span and loop.weight < f.span for f in loops[:place])
        if again or _overlaps(loop, held):
            raise RuleViolation(
                "OUTER-007",
                f"the broadcast part {repeated} of OutTime holds {loop.of}, which {'it' if again else 'the stream'} already has",
                expected="axes of the TRF operand or new ones, each once",
                got=str(op.time),
                also=("OUTER-009",),
            )


def _overlaps(loop: LoopFactor, held: Dict[str, Digits]) -> bool:
    """Whether the loop walks a digit that is held."""
    return isinstance(loop.of, str) and any(loop.weight < w * e and w < loop.span for w, e in held.get(loop.of, ()) if e > 1)


def _padded_broadcasts(trf: TensorType, time: Mapping, broadcast: int) -> tuple[tuple[int, int, int], ...]:
    """(place, extent, live) of padded broadcast loops that the TRF does not hold either."""
    held = carried_digits((trf.element,))
    found, place = [], 1
    for loop in reversed(loop_factors(time.split_at(broadcast)[1])):
        if loop.live < loop.extent and not _overlaps(loop, held):
            found.append((place, loop.extent, loop.live))
        place *= loop.extent
    return tuple(found)


def _read_size(trf: TensorType, packet: Mapping, hw: Hardware) -> int:
    """Largest read that Element and OutPacket share at their inner ends (OUTER-016)."""
    size = packet.size
    while size > 1:
        fits = trf.element.size % size == 0 and size * packing_bits(trf.dtype) <= hw.trf_wide_read_bytes * 8
        if fits and trf.element.split_at(size)[1].equivalent(packet.split_at(size)[1]):
            return size
        size //= 2
    return 1


def _require_packet_broadcast(trf: TensorType, packet: Mapping, read_size: int) -> None:
    """What OutPacket repeats above the read must not be stored in the TRF.

    A packet has at most 128 positions, so its cells are read one by one.
    """
    repeated = packet.split_at(read_size)[0]
    stored = carried_digits((trf.element,))
    cells = repeated.table()
    for axis, coordinates in cells.coords.items():
        live = coordinates[cells.live]
        if any((live // weight % extent).any() for weight, extent in stored.get(axis, ())):
            raise RuleViolation(
                "OUTER-017",
                f"a read takes {read_size} elements of Element {trf.element}; the rest of OutPacket, {repeated}, holds {axis}, "
                "which the TRF stores",
                expected=f"an OutPacket whose inner end is that of Element {trf.element}",
                got=str(packet),
                also=("OUTER-016", "OUTER-019"),
            )


def _entries(trf: TensorType, time: Mapping, read_size: int) -> tuple[tuple[int, int], ...]:
    """Loops of the TRF Sequencer (OUTER-019)."""
    held = refined(loop_factors(trf.element), loop_factors(time))
    places: list[tuple[LoopFactor, int]] = []
    place = trf.element.size
    for factor in held:
        place //= factor.extent
        places.append((factor, place))
    # a loop of one live iteration holds padding beside it, which needs no reader
    unread = {f for f, p in places if f.of is not None and f.live > 1 and f.extent * p > read_size}
    walked: set[LoopFactor] = set()
    entries: list[tuple[int, int]] = []
    for loop in loop_factors(time):
        parts = []
        for part in refined([loop], held):
            stored, stride = _walked(part, places, read_size, trf, time)
            if stored is not None:
                if stored in walked:
                    raise RuleViolation("OUTER-019", f"OutTime {time} walks {stored} twice", expected="every factor once", got=str(time))
                walked.add(stored)
                unread.discard(stored)
            parts.append((part.extent, stride))
        entries += _merged(parts)
    if unread:
        raise RuleViolation(
            "OUTER-019",
            f"Element {trf.element} stores {', '.join(sorted(map(str, unread)))}, which neither OutTime nor OutPacket walks",
            expected="every stored factor in OutTime or OutPacket",
            got=str(time),
        )
    return tuple(entries)


def _walked(
    part: LoopFactor, places: list[tuple[LoopFactor, int]], read_size: int, trf: TensorType, time: Mapping
) -> tuple[LoopFactor | None, int]:
    """The stored factor that one loop of OutTime walks and its stride; (None, 0) for a broadcast."""
    for factor, place in places:
        if part.of is None or factor.of != part.of or factor.span <= part.weight or part.span <= factor.weight:
            continue
        if part.live == 1 and place < read_size:
            continue  # its one live iteration is the packet that is read anyway, the others are padding
        same = factor.weight == part.weight and factor.live == part.live and part.extent <= factor.extent
        if not same or place < read_size:
            raise RuleViolation(
                "OUTER-019",
                f"OutTime {time} walks {part}, Element {trf.element} stores {factor}",
                expected=f"the stored factor {factor}" if place >= read_size else "a factor that OutPacket does not read already",
                got=str(part),
                also=("OUTER-016", "OUTER-017"),
            )
        return factor, place
    return None, 0


def _merged(parts: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Neighbouring entries of one factor joined where their strides continue."""
    joined: list[tuple[int, int]] = []
    for size, stride in parts:
        if joined and joined[-1][1] == size * stride:
            joined[-1] = (joined[-1][0] * size, stride)
        else:
            joined.append((size, stride))
    return joined

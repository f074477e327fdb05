"""Register files of a slice: stores into the Tensor and the Vector Register File (TRF-001 to TRF-016, VRF-001 to VRF-010)."""

from __future__ import annotations

from collections.abc import Mapping as Dict
from dataclasses import dataclass

from tcptune.errors import RuleViolation
from tcptune.ir.kernels.ops import Op, ToTrf, ToVrf
from tcptune.ir.mappings.mapping import Mapping, pair
from tcptune.ir.types import DType, StreamType, TensorType, dtype
from tcptune.model.engines.collect import flit_elements
from tcptune.model.engines.fetch_adapter import ZERO_POINTS
from tcptune.model.hardware import Hardware
from tcptune.model.numerics.elements import packing_bits
from tcptune.model.stage import ChainEnv, StageCost, Step
from tcptune.model.values import Values

HANDLES = (ToTrf, ToVrf)

TRF_DTYPES = ("i4", "i8", "f8e4m3", "f8e5m2", "bf16")
"""Types that a TRF row is described for (TRF-008)."""

VRF_DTYPES = ("i32", "f32")
"""Types of the Vector Engine, the only ones the VRF holds (VRF-003)."""


@dataclass(frozen=True, slots=True)
class TrfStore:
    """How a collected stream fills the TRF.

    Attributes:
        lanes: active lanes.
        flits_per_lane: consecutive flits that each lane takes, one row each (TRF-002, TRF-008).
        bytes_per_lane: native bytes a lane holds.
    """

    lanes: int
    flits_per_lane: int
    bytes_per_lane: int

    @property
    def bytes_per_slice(self) -> int:
        """Native bytes that the tensor takes in the file."""
        return self.lanes * self.bytes_per_lane

    def fits_half(self, hw: Hardware) -> bool:
        """Whether the tensor can be double buffered (TRF-010)."""
        return self.bytes_per_slice <= hw.trf_half_bytes_per_slice


@dataclass(frozen=True, slots=True)
class VrfStore:
    """A store into the VRF: bytes a slice, and the contexts it holds until the command is done (VRF-005)."""

    bytes_per_slice: int
    contexts: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class StoreRoute:
    """A way into a register file (TRF-015, VRF-009, VRF-010).

    Attributes:
        name: the operations, or the short command.
        data_source: what is stored.
        contiguous_only: the DM access has neither gap nor reordering; see `is_short_store`.
        bypasses: stages that it does without.
    """

    name: str
    data_source: str = "DM"
    contiguous_only: bool = False
    bypasses: tuple[str, ...] = ()


STORE_ROUTES = {
    "Trf": (
        StoreRoute("Fetch -> Switch -> Collect -> to_trf"),
        StoreRoute("StoTRF short command", contiguous_only=True, bypasses=("Fetch", "Switch", "Collect", "to_trf")),
    ),
    "Vrf": (
        StoreRoute("Fetch -> Switch -> Collect -> to_vrf"),
        StoreRoute("StoVRF short command", contiguous_only=True, bypasses=("Fetch", "Switch", "Collect", "to_vrf")),
        StoreRoute("vector_final -> to_vrf", data_source="values computed by the pass"),
    ),
}


def is_short_store(source: Mapping, target: TensorType) -> bool:
    """Whether a short command can load `target` from the DM elements `source`: same cells, same order (TRF-015, VRF-009)."""
    return source.equivalent(pair(target.lane, target.element))


@dataclass(frozen=True, slots=True)
class AddressMode:
    """A region of the TRF: its first and last row in every bank (TRF-010)."""

    name: str
    first_row: int
    last_row: int

    @property
    def rows(self) -> int:
        return self.last_row - self.first_row + 1


def address_modes(hw: Hardware) -> tuple[AddressMode, ...]:
    """The whole file and its two halves."""
    rows = hw.trf_rows_per_bank
    return AddressMode("Full", 0, rows - 1), AddressMode("FirstHalf", 0, rows // 2 - 1), AddressMode("SecondHalf", rows // 2, rows - 1)


def rows_per_bank(active_lanes: int, hw: Hardware) -> int:
    """Rows of a bank that each active lane sees: idle lanes lend theirs (TRF-009)."""
    return hw.trf_rows_per_bank * hw.lanes_per_slice // active_lanes


def native_bytes(mode: AddressMode, hw: Hardware) -> int:
    """Payload of a region in a slice: one flit a row (TRF-008, TRF-010)."""
    return hw.lanes_per_slice * hw.trf_banks_per_lane * mode.rows * hw.flit_bytes


def physical_bytes(rows: int, hw: Hardware) -> int:
    """Bytes of `rows` rows of every bank in all lanes of a slice, headroom included (TRF-007, TRF-013)."""
    return hw.lanes_per_slice * hw.trf_banks_per_lane * rows * hw.trf_row_bits // 8


@dataclass(frozen=True, slots=True)
class RowPacking:
    """How elements of one type lie in a row (TRF-008)."""

    stored_as: DType
    elements: int
    used_bits: int
    slack_bits: int


def row_packing(element: DType, hw: Hardware, promoted: bool = False) -> RowPacking:
    """Elements of one flit in one row; `promoted` integers carry the extra bit of a zero point.

    Raises:
        RuleViolation: TRF-008 for a promotion of a type that has no zero point.
    """
    if promoted and element.name not in ZERO_POINTS:
        legal = ", ".join(f"{source} to {target}" for source, target in ZERO_POINTS.items())
        raise RuleViolation("TRF-008", f"only integers with a zero point are promoted on store, not {element}", expected=legal, got=element)
    stored = dtype(ZERO_POINTS[element.name]) if promoted else element
    elements = flit_elements(element, hw)
    used = elements * stored.bits
    return RowPacking(stored, elements, used, hw.trf_row_bits - used)


def read_bits_per_lane(banks: int, hw: Hardware) -> int:
    """Bits of one lane's read: a row of one bank (narrow) or of both (wide).

    Raises:
        RuleViolation: TRF-011 for another number of banks.
    """
    if not 1 <= banks <= hw.trf_banks_per_lane:
        raise RuleViolation(
            "TRF-011", "a read takes one row of one or both banks", expected=f"1 or {hw.trf_banks_per_lane} banks", got=banks
        )
    return banks * hw.trf_row_bits


def bank_of_narrow_read(byte_offset: int, hw: Hardware) -> int:
    """Bank that holds the flit at `byte_offset` of a lane; consecutive flits alternate (TRF-014)."""
    return byte_offset // hw.flit_bytes % hw.trf_banks_per_lane


def store_proceeds(read_is_wide: bool, cache_hit: bool, same_bank: bool) -> bool:
    """Whether a store gets its bank in the cycle of a read; the read wins (TRF-012 to TRF-014)."""
    return cache_hit or not (read_is_wide or same_bank)


def check_lane_count(lanes: int, hw: Hardware, also: tuple[str, ...] = ()) -> None:
    """Refuses a number of active lanes that the file does not have.

    Raises:
        RuleViolation: TRF-003.
    """
    if lanes not in hw.legal_lane_counts:
        smaller = [n for n in hw.legal_lane_counts if n <= lanes]
        raise RuleViolation(
            "TRF-003",
            f"{lanes} lanes cannot be active together",
            expected=f"one of {', '.join(map(str, hw.legal_lane_counts))}",
            got=lanes,
            nearest=f"{smaller[-1]} lanes" if smaller else None,
            also=(*also, *(("MAP-033",) if lanes > hw.lanes_per_slice else ())),
        )


def _check_trf(stream: StreamType, op: ToTrf, hw: Hardware) -> TrfStore:
    lanes, steps = op.lane.size, stream.time.size
    check_lane_count(lanes, hw, ("TRF-004",) if steps % lanes else ())
    if steps % lanes:
        raise RuleViolation(
            "TRF-004",
            f"{lanes} lanes do not divide the {steps} time steps of {stream.time}",
            expected=f"a divisor of {steps}",
            got=lanes,
            nearest=f"{max(n for n in hw.legal_lane_counts if steps % n == 0)} lanes",
        )
    flits = steps // lanes
    lane, rest = stream.time.split_at(flits)
    if not op.lane.equivalent(lane):
        raise RuleViolation(
            "TRF-002",
            f"lane is the outermost part of the time, {flits} flits a lane",
            expected=lane,
            got=op.lane,
            nearest=lane,
        )
    element = pair(rest, stream.packet)
    if not op.element.equivalent(element):
        raise RuleViolation(
            "TRF-005", "element is the rest of the time followed by the packet", expected=element, got=op.element, nearest=element
        )
    store = TrfStore(lanes, flits, -(-element.size * packing_bits(stream.dtype) // 8))
    if store.bytes_per_slice > hw.trf_bytes_per_slice:
        raise RuleViolation(
            "TRF-006",
            f"{lanes} lanes of {store.bytes_per_lane} bytes take {store.bytes_per_slice} bytes a slice",
            expected=f"at most {hw.trf_bytes_per_slice} bytes",
            got=store.bytes_per_slice,
            nearest=f"at most {hw.trf_bytes_per_slice // lanes} bytes a lane",
            also=("MAP-033", "HW-004"),
        )
    return store


def _check_vrf(stream: StreamType, op: ToVrf, env: ChainEnv) -> VrfStore:
    hw = env.hw
    if stream.dtype.name not in VRF_DTYPES:
        raise RuleViolation(
            "VRF-003",
            f"the VRF does not hold {stream.dtype}",
            expected=" or ".join(VRF_DTYPES),
            got=stream.dtype,
            nearest="widen with fetch_cast",
        )
    element = pair(stream.time, stream.packet)
    if not op.element.equivalent(element):
        raise RuleViolation("VRF-002", "element is the time followed by the packet", expected=element, got=op.element, nearest=element)
    size = stream.dtype.bytes_of(element.size)
    if size > hw.vrf_bytes_per_slice:
        raise RuleViolation(
            "VRF-004",
            f"the operand takes {size} bytes a slice",
            expected=f"at most {hw.vrf_bytes_per_slice} bytes",
            got=size,
            nearest=f"at most {hw.vrf_bytes_per_slice * 8 // stream.dtype.bits} elements of {stream.dtype}",
            also=("MAP-033", "VE-034", "HW-005"),
        )
    if env.context == "main" and not op.sub_arg:
        raise RuleViolation(
            "VRF-005",
            "a store from main writes through the sub context, which has to be passed",
            expected="to_vrf with the sub context",
            got="no sub context",
            nearest="sub_arg = true, or store from a sub pass",
        )
    return VrfStore(size, ("sub",) if env.context == "sub" else ("main", "sub"))


def check(stream: StreamType, op: Op, env: ChainEnv) -> Step:
    """The tensor that the store leaves in the register file; one row is written a cycle.

    Raises:
        RuleViolation: TRF-002 to TRF-006; VRF-002 to VRF-005.
    """
    spatial = {"chip": stream.chip, "cluster": stream.cluster, "slice": stream.slice}
    cost = StageCost(cycles=stream.time.size)
    if isinstance(op, ToTrf):
        trf = _check_trf(stream, op, env.hw)
        derived: dict[str, object] = {
            "flits_per_lane": trf.flits_per_lane,
            "element_bytes_per_lane": trf.bytes_per_lane,
            "rows_per_lane": -(-op.element.size // flit_elements(stream.dtype, env.hw)),
        }
        return Step(op, stream, TensorType("Trf", stream.dtype, op.element, lane=op.lane, **spatial), trf, derived, cost)
    assert isinstance(op, ToVrf)
    vrf = _check_vrf(stream, op, env)
    derived = {"contexts": vrf.contexts, "bytes_per_slice": vrf.bytes_per_slice}
    return Step(op, stream, TensorType("Vrf", stream.dtype, op.element, **spatial), vrf, derived, cost)


def apply(values: Values, step: Step, env: ChainEnv, operands: Dict[str, Values]) -> Values:
    """The flits in their rows: Time and Packet under the tensor's shape."""
    shape = step.after.shape
    return Values(values.data.reshape(shape), values.defined.reshape(shape))

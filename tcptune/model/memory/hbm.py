"""HBM: which stack, channel, bank and row an address means, and how requests spread over them (HBM-001 to HBM-014)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tcptune.errors import InputError, RuleViolation
from tcptune.model.hardware import RNGD, Hardware
from tcptune.model.timing.calibration import DmaTiming

Addresses = npt.NDArray[np.int64]

ADDRESS_BITS = 36
SLICE_HIGH_BIT = 34
ROW_HIGH_BIT = 35
SLICE_LOW_BIT = 20

_MAIN_FIELD: dict[int, tuple[str, int]] = {
    **{bit: ("byte", bit) for bit in range(8)},
    8: ("stack", 0),
    **{9 + j: ("channel", j) for j in range(4)},
    13: ("bank_group", 0),
    **{14 + j: ("byte", 8 + j) for j in range(3)},
    17: ("bank", 0),
    18: ("bank", 1),
    19: ("bank_group", 1),
    SLICE_LOW_BIT: ("slice", 0),
    **{21 + j: ("row", j) for j in range(13)},
    SLICE_HIGH_BIT: ("slice", 1),
    ROW_HIGH_BIT: ("row", 13),
}
"""HBM-005: the field bit that an address bit is. Above 16 GiB bit 20 takes the place of row[13] (HBM-007)."""

_XOR_BITS = range(13, 29)
"""HBM-006: address bits that are also folded into the channel."""


def _field_runs() -> tuple[tuple[int, str, int, int], ...]:
    """(lowest address bit, field, lowest field bit, width) of neighbouring bits that go together into one field."""
    runs: list[tuple[int, str, int, int]] = []
    for bit, (name, position) in sorted(_MAIN_FIELD.items()):
        if runs:
            low, field, first, width = runs[-1]
            if field == name and bit == low + width and position == first + width:
                runs[-1] = (low, field, first, width + 1)
                continue
        runs.append((bit, name, position, 1))
    return tuple(runs)


_FIELD_RUNS = _field_runs()
_CHANNEL_WIDTH = RNGD.hbm_channels_per_stack.bit_length() - 1


def channel_bits(channel_bit: int) -> tuple[int, ...]:
    """Address bits whose exclusive or is `channel_bit` (0 to 3) of the channel (HBM-006).

    Raises:
        InputError: the channel has no such bit.
    """
    own = next((bit for bit, field in _MAIN_FIELD.items() if field == ("channel", channel_bit)), None)
    if own is None:
        raise InputError(f"the channel has {_CHANNEL_WIDTH} bits, there is no bit {channel_bit}")
    return (own, *(bit for bit in _XOR_BITS if (bit - own) % _CHANNEL_WIDTH == 0))


@dataclass(frozen=True, slots=True)
class BitUse:
    """What one address bit selects: its field, and `xor_channel`, the channel bit it is folded into, if any."""

    field: str
    field_bit: int
    xor_channel: int | None
    also_row: bool


def bit_use(bit: int) -> BitUse:
    """Meaning of one address bit.

    Raises:
        RuleViolation: HBM-005 if addresses have no such bit.
    """
    if bit not in _MAIN_FIELD:
        raise RuleViolation("HBM-005", f"HBM addresses have no bit {bit}", expected=f"0 to {max(_MAIN_FIELD)}", got=bit, also=("HBM-002",))
    field, position = _MAIN_FIELD[bit]
    folded = (bit - min(_XOR_BITS)) % _CHANNEL_WIDTH if bit in _XOR_BITS else None
    return BitUse(field, position, folded, also_row=bit == SLICE_HIGH_BIT)


@dataclass(frozen=True)
class Decoded:
    """Fields of HBM addresses, arrays of one shape. `bank_id` names a bank of the whole chip, `channel_id` a channel of the whole chip."""

    stack: Addresses
    channel: Addresses
    bank_group: Addresses
    bank: Addresses
    slice: Addresses
    row: Addresses
    byte: Addresses

    @property
    def channel_id(self) -> Addresses:
        return self.stack * RNGD.hbm_channels_per_stack + self.channel

    @property
    def bank_id(self) -> Addresses:
        in_channel = (self.slice * RNGD.hbm_bank_groups_per_slice + self.bank_group) * RNGD.hbm_banks_per_group + self.bank
        return self.channel_id * (RNGD.hbm_slices_per_channel * RNGD.hbm_bank_groups_per_slice * RNGD.hbm_banks_per_group) + in_channel


def decode(addresses: Addresses | Sequence[int] | int, hw: Hardware = RNGD) -> Decoded:
    """Fields of byte addresses (HBM-005 to HBM-007).

    Raises:
        RuleViolation: HBM-007 for an address outside the contiguous 48 GiB.
    """
    a = np.asarray(addresses, dtype=np.int64)
    outside = (a < 0) | (a >= hw.hbm_bytes)
    if outside.any():
        first = int(a[outside].flat[0]) if a.ndim else int(a)
        raise RuleViolation(
            "HBM-007",
            f"address {first:#x} is outside the HBM: bits {SLICE_HIGH_BIT} and {ROW_HIGH_BIT} are never both 1",
            got=first,
            expected=f"0 to {hw.hbm_bytes - 1:#x}",
            also=("HBM-002",),
        )
    fields = {name: np.zeros_like(a) for name in ("stack", "channel", "bank_group", "bank", "slice", "row", "byte")}
    for low, name, position, width in _FIELD_RUNS:
        fields[name] = fields[name] | ((a >> low & (1 << width) - 1) << position)
    for low in range(_XOR_BITS.start, _XOR_BITS.stop, _CHANNEL_WIDTH):
        fields["channel"] ^= a >> low & (1 << _CHANNEL_WIDTH) - 1
    high = (a >> SLICE_HIGH_BIT & 1).astype(bool)
    row_top = _MAIN_FIELD[ROW_HIGH_BIT][1]
    fields["slice"] = np.where(high, 2, fields["slice"])
    fields["row"] = np.where(high, fields["row"] | ((a >> SLICE_LOW_BIT & 1) << row_top), fields["row"])
    return Decoded(**fields)


@dataclass(frozen=True, slots=True)
class ChannelSpread:
    """How a list of requests, in issue order, loads the channels."""

    requests: int
    channels_used: int
    busiest_channel_requests: int
    row_switches: int
    hit_cycles: float
    """Time of the busiest channel when every request hits an open row."""
    address_level_cycles: float
    """Time of the busiest channel with each row switch charged (HBM-011); the first touch of a bank counts as a hit."""


def spread(addresses: Addresses | Sequence[int], request_cycles: float, row_switch_cycles: float) -> ChannelSpread:
    """Channel load of requests issued in this order (HBM-004, HBM-008, HBM-011).

    Args:
        addresses: byte address of every request.
        request_cycles: channel time of a request to an open row.
        row_switch_cycles: channel time of a request that finds another row open in its bank.
    """
    a = np.asarray(addresses, dtype=np.int64).reshape(-1)
    if not a.size:
        return ChannelSpread(0, 0, 0, 0, 0.0, 0.0)
    fields = decode(a)
    channel, bank = fields.channel_id, fields.bank_id
    order = np.argsort(bank, kind="stable")
    same_bank = np.diff(bank[order]) == 0
    switches = np.zeros(a.size, dtype=bool)
    switches[order[1:]] = same_bank & (np.diff(fields.row[order]) != 0)
    per_channel = np.bincount(channel, minlength=RNGD.hbm_channels)
    switched = np.bincount(channel, weights=switches, minlength=RNGD.hbm_channels)
    busy = (per_channel - switched) * request_cycles + switched * row_switch_cycles
    return ChannelSpread(
        requests=int(a.size),
        channels_used=int(np.count_nonzero(per_channel)),
        busiest_channel_requests=int(per_channel.max()),
        row_switches=int(switches.sum()),
        hit_cycles=float(per_channel.max() * request_cycles),
        address_level_cycles=float(busy.max()),
    )


def profile_spread(addresses: Addresses | Sequence[int], timing: DmaTiming) -> ChannelSpread | None:
    """Channel load with the constants of a profile; None where the profile does not charge the HBM."""
    if timing.hbm_request is None or timing.hbm_row_switch is None:
        return None
    return spread(addresses, timing.hbm_request.value, timing.hbm_row_switch.value)


OTHER_BANK_GROUP = "same slice, different bank group"
OTHER_SLICE = "different slice"
SAME_BANK_GROUP = "same slice, same bank group"

TCCD = {OTHER_BANK_GROUP: 2, OTHER_SLICE: 3, SAME_BANK_GROUP: 4}
"""HBM-013: least distance of two commands on one channel, in cycles of the 1.5 GHz memory clock."""

TCCD_CAUSE = {
    OTHER_BANK_GROUP: "ideal bank-group interleaving",
    OTHER_SLICE: "data path switch",
    SAME_BANK_GROUP: "I/O buffer shared by four banks",
}
"""HBM-013: why commands must keep that distance."""


@dataclass(frozen=True, slots=True)
class PairRelation:
    """How two consecutive requests meet; `tccd` is None on different channels, where nothing constrains them."""

    same_channel: bool
    same_slice: bool
    same_bank_group: bool
    same_bank: bool
    row_switch: bool
    tccd: int | None


def pair_relation(first: int, second: int) -> PairRelation:
    """Relation of two requests, `second` issued directly after `first` (HBM-011, HBM-013)."""
    fields = decode([first, second])

    def same(values: Addresses) -> bool:
        return bool(values[0] == values[1])

    same_channel = same(fields.channel_id)
    same_slice = same_channel and same(fields.slice)
    same_group = same_slice and same(fields.bank_group)
    same_bank = same_group and same(fields.bank)
    if not same_channel:
        tccd = None
    elif not same_slice:
        tccd = TCCD[OTHER_SLICE]
    else:
        tccd = TCCD[SAME_BANK_GROUP if same_group else OTHER_BANK_GROUP]
    return PairRelation(same_channel, same_slice, same_group, same_bank, same_bank and not same(fields.row), tccd)


def lines_touched(address: int, length_bytes: int, hw: Hardware = RNGD) -> int:
    """256-byte blocks that an access touches: the NoC transfers of a read (HBM-009)."""
    return (address + length_bytes - 1) // hw.request_bytes - address // hw.request_bytes + 1


@dataclass(frozen=True, slots=True)
class WriteCost:
    """How a contiguous write falls into whole blocks and read-modify-writes (HBM-010); `relative_time` counts a whole block as 1."""

    requests: int
    full_requests: int
    partial_bytes: int
    rmw_requests: int
    relative_time: int


def write_cost(offset: int, length_bytes: int, hw: Hardware = RNGD) -> WriteCost:
    """Requests of one write of `length_bytes` at `offset`; every block that it covers in part is read, changed and written back."""
    block = hw.request_bytes
    requests = lines_touched(offset, length_bytes, hw)
    first_full = -(-offset // block)
    full = max(0, (offset + length_bytes) // block - first_full)
    rmw = requests - full
    return WriteCost(requests, full, length_bytes - full * block, rmw, full + rmw * hw.partial_hbm_write_factor)

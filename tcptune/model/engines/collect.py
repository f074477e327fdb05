"""Collect Engine: cuts every packet of a stream into 32-byte flits (COLLECT-001 to COLLECT-007)."""

from __future__ import annotations

from collections.abc import Mapping as Dict
from dataclasses import dataclass

import numpy as np

from tcptune.errors import RuleViolation
from tcptune.ir.kernels.ops import Collect, Op
from tcptune.ir.mappings.mapping import Mapping, pair
from tcptune.ir.types import DType, StreamType
from tcptune.model.hardware import Hardware
from tcptune.model.numerics.elements import packing_bits
from tcptune.model.stage import ChainEnv, StageCost, Step
from tcptune.model.values import Values

HANDLES = (Collect,)


@dataclass(frozen=True, slots=True)
class CollectConfig:
    """How one packet becomes flits.

    Attributes:
        packet_bytes: bytes of a packet before padding.
        flits_per_packet: flits after padding.
        flit_elements: elements of one flit.
    """

    packet_bytes: int
    flits_per_packet: int
    flit_elements: int

    @property
    def padded_elements(self) -> int:
        """Elements of a packet after padding."""
        return self.flits_per_packet * self.flit_elements


def flit_elements(dtype: DType, hw: Hardware) -> int:
    """Elements of `dtype` in one flit; i5 and i9 count as 4 and 8 bits (COLLECT-001)."""
    return 8 * hw.flit_bytes // packing_bits(dtype)


def flits_of_bytes(packet_bytes: int, hw: Hardware) -> int:
    """Flits of a packet, the last one padded (COLLECT-001, SWITCH-018)."""
    return -(-packet_bytes // hw.flit_bytes)


def aligned_packet_bytes(stream: StreamType, hw: Hardware) -> int:
    """Bytes of a packet that enters Switch or Collect.

    Raises:
        RuleViolation: TU-004 if that is not a multiple of 8 bytes.
    """
    bits = stream.packet.size * packing_bits(stream.dtype)
    step = 8 * hw.stream_alignment_bytes
    if bits % step:
        whole = -(-bits // step) * step // packing_bits(stream.dtype)
        raise RuleViolation(
            "TU-004",
            f"a packet of {stream.packet.size} {stream.dtype} elements has {bits / 8:g} bytes",
            expected=f"a multiple of {hw.stream_alignment_bytes} bytes",
            got=str(stream.packet),
            nearest=f"pad the packet to {whole} elements at fetch",
            also=("FETCH-017",),
        )
    return bits // 8


def collected(stream: StreamType, hw: Hardware) -> tuple[Mapping, Mapping, CollectConfig]:
    """Time and packet that collect gives for `stream`, and how it cuts the packets.

    Raises:
        RuleViolation: TU-004.
    """
    per_flit = flit_elements(stream.dtype, hw)
    packet_bytes = aligned_packet_bytes(stream, hw)
    config = CollectConfig(packet_bytes, flits_of_bytes(packet_bytes, hw), per_flit)
    outer, flit = stream.packet.pad_to_multiple(per_flit).split_at(per_flit)
    return pair(stream.time, outer), flit, config


def check(stream: StreamType, op: Op, env: ChainEnv) -> Step:
    """The packet is padded up to whole flits; the number of flits joins Time as its innermost factor.

    Raises:
        RuleViolation: TU-004 for unaligned packets, COLLECT-002 if the new packet is not one flit, COLLECT-003 or COLLECT-004 if the
            packet or the time is not that split.
    """
    assert isinstance(op, Collect)
    time, packet, config = collected(stream, env.hw)
    wrong_time = () if op.time.equivalent(time) else ("COLLECT-004",)
    if op.packet.size != config.flit_elements:
        raise RuleViolation(
            "COLLECT-002",
            f"the packet {op.packet} has {op.packet.size} elements of {stream.dtype}; a flit has {config.flit_elements}",
            expected=f"{env.hw.flit_bytes} bytes",
            got=op.packet,
            nearest=f"collect(time = {time}, packet = {packet})",
            also=("COLLECT-003", *wrong_time, "KERNEL-040"),
        )
    if not op.packet.equivalent(packet):
        message = "the packet is not the flit of the stream's packet"
        raise RuleViolation("COLLECT-003", message, expected=packet, got=op.packet, nearest=packet, also=wrong_time)
    if wrong_time:
        raise RuleViolation(
            "COLLECT-004", "the time is not the stream's time with the flits innermost", expected=time, got=op.time, nearest=time
        )
    derived = {
        "time_steps": op.time.size,
        "packet_bytes": config.packet_bytes,
        "padded_bytes": config.flits_per_packet * env.hw.flit_bytes,
        "pad_bytes": config.flits_per_packet * env.hw.flit_bytes - config.packet_bytes,
        "flits_per_packet": config.flits_per_packet,
        "flit_elements": config.flit_elements,
    }
    if stream.position != "Switch":
        derived["ring_size"] = 1  # forwarding: every slice keeps its own data (SWITCH-006)
    after = stream.with_(position="Collect", time=op.time, packet=op.packet, details=None)
    return Step(op, stream, after, config, derived, StageCost(cycles=op.time.size))


def apply(values: Values, step: Step, env: ChainEnv, operands: Dict[str, Values]) -> Values:
    """Values with every packet padded and cut; padding is not defined (COLLECT-005)."""
    config: CollectConfig = step.config
    shape = step.after.shape
    missing = config.padded_elements - values.data.shape[-1]
    widths = [(0, 0)] * (values.data.ndim - 1) + [(0, missing)]
    data = np.pad(values.data, widths) if missing else values.data
    defined = np.pad(values.defined, widths) if missing else values.defined
    return Values(data.reshape(shape), defined.reshape(shape))

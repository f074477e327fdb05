"""Fetch Engine: reads a DM tensor into packets, one Sequencer a slice (FETCH-001 to FETCH-016).

A begin stream has Time ``1`` and the Element mapping of the tensor as its Packet. Two tensors of identical mapping may be read in turn
(FETCH-008): they count as one buffer with an axis of size 2 in front, whose stride stands for the distance of the two.
"""

from __future__ import annotations

from collections.abc import Mapping as Dict
from dataclasses import dataclass, replace

import numpy as np

from tcptune.errors import RuleViolation
from tcptune.ir.kernels.ops import BeginInterleaved, Fetch, Op
from tcptune.ir.mappings.cells import KIND_CODES, LIVE
from tcptune.ir.mappings.mapping import Mapping, PadKind, pair
from tcptune.ir.types import DType, StreamType
from tcptune.model.hardware import Hardware
from tcptune.model.sequencer.configuration import SequencerConfig
from tcptune.model.sequencer.derivation import derive_read
from tcptune.model.stage import ChainEnv, StageCost, Step
from tcptune.model.values import Values

HANDLES = (BeginInterleaved, Fetch)


@dataclass(frozen=True)
class FetchRead:
    """How a fetch reads DM; travels in `StreamType.details` until the stream is collected, as lifts and casts change the read.

    Attributes:
        buffer: what the slice's Sequencer addresses (the Element mapping; with interleaving the axis in front).
        config: the Sequencer configuration.
        dtype: element type in DM.
        steps: packets that one slice reads.
        read_size: elements of one read.
        lifted_strides: elements between neighbouring values of each lifted digit (LIFT-002), by its text.
    """

    buffer: Mapping
    config: SequencerConfig
    dtype: DType
    steps: int
    read_size: int
    lifted_strides: tuple[tuple[str, int], ...] = ()

    @property
    def reads_per_packet(self) -> int:
        """Reads that one packet takes (FETCH-005)."""
        return self.config.packet_size // self.read_size

    @property
    def cycles(self) -> int:
        """One read a cycle (FETCH-005)."""
        return self.steps * self.reads_per_packet

    def derived(self) -> dict[str, object]:
        """Numbers of the read under the corpus's names."""
        return {
            "read_size": self.read_size,
            "read_bytes": self.dtype.bytes_of(self.read_size),
            "reads_per_packet": self.reads_per_packet,
            "cycles": self.cycles,
            "fetch_cycles": self.cycles,
            "time_steps": self.steps,
        }


def read_size(config: SequencerConfig, dtype: DType, context: str, hw: Hardware, output: DType | None = None) -> int:
    """Elements of one read: as many as possible in the main context, 8 bytes in the sub context (FETCH-003, FETCH-004).

    Args:
        output: element type after the Fetch Adapter; the output of one read must fit a flit (FETCH-006).

    Raises:
        RuleViolation: SEQ-015, SEQ-016, FETCH-003 or FETCH-004 if there is no legal size.
    """
    sizes = hw.fetch_access_bytes if context == "main" else (hw.sub_fetch_bytes,)
    if output is not None and context == "main":
        sizes = tuple(s for s in sizes if s * 8 // dtype.bits * output.bits <= hw.flit_bytes * 8)
    found = config.largest_access(dtype, sizes)
    if found is not None:
        return found
    raise _no_read(config, dtype, context, hw)


def _no_read(config: SequencerConfig, dtype: DType, context: str, hw: Hardware) -> RuleViolation:
    bits = config.access_size * dtype.bits
    given = f"accesses of {config.access_size} {dtype} elements ({bits / 8:g} bytes), packet {config.packet_size}, entries {config}"
    if context != "main":
        step = hw.sub_fetch_bytes * 8 // dtype.bits
        return RuleViolation(
            "FETCH-004",
            f"the sub context reads {hw.sub_fetch_bytes} bytes at a time",
            got=given,
            expected=f"contiguous runs and packets of a multiple of {step} elements",
            nearest=f"pad the packet to {-(-config.packet_size // step) * step} elements",
            also=("FETCH-003", "SEQ-015"),
        )
    if config.is_discrete and dtype.bits % 8:
        rule = "SEQ-016"
        message = f"the innermost stride is {config.innermost_stride}, so elements are read one by one, and one {dtype} is no whole byte"
    elif config.packet_size * dtype.bits % 8:
        rule, message = "SEQ-015", f"a packet of {config.packet_size} {dtype} elements is no whole number of bytes"
    else:
        rule, message = "FETCH-003", "no divisor of the access size is a legal read"
    also = tuple(other for other in ("FETCH-003", "SEQ-015") if other != rule)
    sizes = ", ".join(map(str, hw.fetch_access_bytes))
    return RuleViolation(rule, message, got=given, expected=f"reads of {sizes} bytes", nearest="pad the packet to whole bytes", also=also)


def check(stream: StreamType, op: Op, env: ChainEnv) -> Step:
    """The stream of packets, or the begin stream of two tensors.

    Raises:
        RuleViolation: FETCH-008, FETCH-009 for interleaving; SEQ-005, SEQ-010, SEQ-011, SEQ-015 to SEQ-017, FETCH-003, FETCH-004.
    """
    if isinstance(op, BeginInterleaved):
        return _check_interleaved(stream, op, env)
    assert isinstance(op, Fetch)
    buffer = pair(stream.time, stream.packet)
    if stream.time.size > 1:
        _check_axis_in_time(stream.time, op)
    found = derive_read(buffer, op.time, op.packet)
    found.config.check_limits(env.hw)
    size = read_size(found.config, stream.dtype, env.context, env.hw)
    read = FetchRead(buffer, found.config, stream.dtype, op.time.size, size)
    derived = {**found.config.to_json(), **read.derived()}
    after = stream.with_(position="Fetch", time=op.time, packet=op.packet, details=read)
    return Step(op, stream, after, read, derived, StageCost(cycles=read.cycles))


def _check_axis_in_time(axis: Mapping, op: Fetch) -> None:
    if not op.time.contains(axis):
        raise RuleViolation(
            "FETCH-008",
            f"the interleaving axis {axis} is not in the fetched Time",
            expected=f"a Time with {axis}, which alternates the two tensors",
            got=op.time,
            nearest=pair(op.time, axis),
        )


def _check_interleaved(stream: StreamType, op: BeginInterleaved, env: ChainEnv) -> Step:
    if stream.time.size > 1:
        raise RuleViolation("FETCH-009", "one fetch interleaves at most two tensors", got=f"a begin stream with Time {stream.time}")
    axis = env.axes.symbol(op.axis)
    if axis.size != 2:
        raise RuleViolation(
            "FETCH-009",
            f"the interleaving axis {op.axis} has size {axis.size}",
            expected="size 2: the first and the second tensor",
            got=axis.size,
            also=("FETCH-008",),
        )
    other = env.operands.get(op.rhs)
    if other is None:
        raise RuleViolation("FETCH-008", f"there is no tensor {op.rhs!r} to interleave with", got=op.rhs)
    pairs = (
        ("dtype", stream.dtype, other.dtype),
        ("chip", stream.chip, other.chip),
        ("cluster", stream.cluster, other.cluster),
        ("slice", stream.slice, other.slice),
        ("element", stream.packet, other.element),
    )
    for level, mine, theirs in pairs:
        same = mine.equivalent(theirs) if isinstance(mine, Mapping) and isinstance(theirs, Mapping) else mine == theirs
        if not same:
            raise RuleViolation(
                "FETCH-008", f"the two interleaved tensors differ in {level}", expected=mine, got=theirs, nearest=f"{level} {mine}"
            )
    return Step(op, stream, stream.with_(time=axis))


def adapted(stream: StreamType, output: DType, env: ChainEnv) -> FetchRead | None:
    """The read once the Fetch Adapter emits `output` (FETCH-006, FA-010); None if the stream does not come from a fetch.

    Raises:
        RuleViolation: FETCH-003 if no legal read is small enough.
    """
    read = stream.details
    if not isinstance(read, FetchRead):
        return None
    size = read_size(read.config, read.dtype, env.context, env.hw, output)
    return replace(read, read_size=min(size, read.read_size))


def apply(values: Values, step: Step, env: ChainEnv, operands: Dict[str, Values]) -> Values:
    """Values at the addresses that the Sequencer visits; what is read for padding is not known (FETCH-013), zero padding stays zero."""
    if isinstance(step.op, BeginInterleaved):
        other = operands[step.op.rhs]
        shape = step.after.shape
        data = np.stack([values.data.reshape(*shape[:3], -1), other.data.reshape(*shape[:3], -1)], axis=3)
        defined = np.stack([values.defined.reshape(*shape[:3], -1), other.defined.reshape(*shape[:3], -1)], axis=3)
        return Values(data.reshape(shape), defined.reshape(shape))
    read: FetchRead = step.config
    after = step.after
    assert isinstance(after, StreamType)
    kind = pair(after.time, after.packet).table().kind
    known = (kind == LIVE) | (kind == KIND_CODES[PadKind.ZERO])
    address = np.where(known, read.config.addresses(), 0)
    data = np.take(values.data.reshape(*values.data.shape[:3], -1), address, axis=-1)
    held = values.defined.reshape(*values.defined.shape[:3], -1)
    full = held.all(axis=-1, keepdims=True)
    uniform = bool((full == held.any(axis=-1, keepdims=True)).all())  # every slice holds all of its element, or nothing
    defined = (full if uniform else np.take(held, address, axis=-1)) & known
    return Values(data.reshape(after.shape), defined.reshape(after.shape))

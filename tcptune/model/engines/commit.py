"""Commit Engine: writes a trimmed stream to DM, one Sequencer a slice; the strides transpose while writing (COMMIT-001 to COMMIT-014)."""

from __future__ import annotations

from collections.abc import Mapping as Dict
from dataclasses import dataclass
from functools import lru_cache
from math import gcd

import numpy as np

from tcptune.errors import RuleViolation
from tcptune.ir.kernels.ops import Commit, CommitView, Op
from tcptune.ir.mappings.algebra_cases import Box, evaluate, explore
from tcptune.ir.mappings.cells import LIVE
from tcptune.ir.mappings.mapping import Mapping, pair
from tcptune.ir.types import DType, StreamType, TensorType
from tcptune.model.capacity import check_tensor
from tcptune.model.hardware import Hardware
from tcptune.model.mappings.tiles import check_start, tile_stride
from tcptune.model.sequencer.configuration import SequencerConfig
from tcptune.model.sequencer.derivation import Derivation, address_form, derive_write
from tcptune.model.stage import ChainEnv, StageCost, Step
from tcptune.model.values import Values

HANDLES = (Commit, CommitView)


@dataclass(frozen=True)
class CommitWrite:
    """How a commit writes DM.

    Attributes:
        buffer: what the slice's Sequencer addresses (the Element mapping, or the view's).
        config: the Sequencer configuration.
        dtype: element type.
        steps: packets that one slice writes.
        valid_size: elements of the trimmed packet.
        write_size: elements of one write.
    """

    buffer: Mapping
    config: SequencerConfig
    dtype: DType
    steps: int
    valid_size: int
    write_size: int

    @property
    def writes_per_packet(self) -> int:
        """Writes that one packet takes (COMMIT-008, COMMIT-009)."""
        return self.valid_size // self.write_size

    @property
    def cycles(self) -> int:
        """One write a cycle."""
        return self.steps * self.writes_per_packet

    def derived(self) -> dict[str, object]:
        """Numbers of the write under the corpus's names."""
        return {
            **self.config.to_json(),
            "access_size": self.config.max_access_size,
            "valid_size": self.valid_size,
            "valid_bytes": self.dtype.bytes_of(self.valid_size),
            "write_size": self.write_size,
            "write_bytes": self.dtype.bytes_of(self.write_size),
            "writes_per_packet": self.writes_per_packet,
            "cycles": self.cycles,
            "commit_cycles": self.cycles,
        }


def plan_write(buffer: Mapping, time: Mapping, packet: Mapping, dtype: DType, context: str, hw: Hardware) -> CommitWrite:
    """How a stream is written into `buffer`.

    Raises:
        RuleViolation: COMMIT-006 the packet, SEQ-017 and SEQ-018 the layout, SEQ-010 and SEQ-011 the loops, COMMIT-005 their strides.
    """
    check_valid_size(packet, dtype, hw)
    found = derive_write(buffer, time, packet)
    found.config.check_limits(hw)
    _check_neighbours(found)
    piece = _contiguous_piece(found.config, packet.size, dtype, hw)
    _check_strides(found.config, piece, dtype, hw)
    write_size = piece if context == "main" else hw.sub_commit_bytes * 8 // dtype.bits
    return CommitWrite(buffer, found.config, dtype, time.size, packet.size, write_size)


def check_valid_size(packet: Mapping, dtype: DType, hw: Hardware) -> None:
    """Raises:
    RuleViolation: COMMIT-006 if the trimmed packet has no legal number of bytes.
    """
    bits = packet.size * dtype.bits
    if bits not in [8 * size for size in hw.commit_valid_bytes]:
        larger = next((size for size in hw.commit_valid_bytes if 8 * size >= bits), None)
        raise RuleViolation(
            "COMMIT-006",
            f"the packet {packet} has {packet.size} valid {dtype} elements, {bits / 8:g} bytes",
            expected=f"{', '.join(map(str, hw.commit_valid_bytes))} bytes",
            got=f"{bits / 8:g} bytes",
            nearest=f"a packet padded to {8 * larger // dtype.bits} elements" if larger else f"trim to {hw.flit_bytes} bytes",
            also=("CADAPT-004", "KERNEL-041"),
        )


def _contiguous_piece(config: SequencerConfig, valid_size: int, dtype: DType, hw: Hardware) -> int:
    """Elements of a packet that lie together in DM (COMMIT-007): main writes them at once, sub in units of 8 bytes."""
    access = gcd(valid_size, config.access_size)
    unit = hw.sub_commit_bytes * 8 // dtype.bits
    if access % unit:
        raise RuleViolation(
            "COMMIT-005",
            f"the packet falls into pieces of {access} {dtype} elements ({access * dtype.bits / 8:g} bytes) in DM",
            expected=f"pieces of a multiple of {hw.sub_commit_bytes} bytes",
            got=f"entries {config}",
            nearest="an Element whose innermost axis is the packet's",
            also=("COMMIT-007", "COMMIT-013", "SEQ-016"),
        )
    return access


def _check_strides(config: SequencerConfig, piece: int, dtype: DType, hw: Hardware) -> None:
    """Strides of all loops outside one contiguous piece are multiples of 8 bytes (COMMIT-005); those inside merge to one run (SEQ-009)."""
    covered = 1
    for entry in reversed(config.entries):
        if covered < piece and entry.stride == covered:
            covered *= entry.size
            continue
        if entry.stride * dtype.bits % (8 * hw.stream_alignment_bytes):
            step = hw.stream_alignment_bytes * 8 // dtype.bits
            raise RuleViolation(
                "COMMIT-005",
                f"the loop {entry} steps {entry.stride * dtype.bits / 8:g} bytes",
                expected=f"a multiple of {hw.stream_alignment_bytes} bytes",
                got=f"{entry.stride * dtype.bits / 8:g} bytes",
                nearest=f"pad the row to {-(-entry.stride // step) * step} elements",
            )


@lru_cache(maxsize=4096)
def _overwrites(found: Derivation) -> bool:
    """Whether padding of a packet is written over a live slot or past the buffer; idle time steps write nothing."""
    stream, buffer = pair(found.time, found.packet), found.buffer

    def bad(box: Box) -> bool:
        outer, _ = box.divide(box.position, found.packet.size)
        if evaluate(box, found.time, outer).kind is not None or evaluate(box, stream).kind is None:
            return False
        address = address_form(box, found.config)
        return not box.below(address, buffer.size) or evaluate(box, buffer, address).kind is None

    return any(wrong for _, wrong in explore(stream.size, bad))


def _check_neighbours(found: Derivation) -> None:
    if found.packet.live_size < found.packet.size and _overwrites(found):
        raise RuleViolation(
            "SEQ-018",
            f"the padding of the packet {found.packet} would be written over other elements of {found.buffer}",
            expected="a packet whose padding falls on padding of the Element mapping",
            got=found.packet,
            nearest="commit_trim to the live part of the packet, or pad the rows of Element",
        )


def check(stream: StreamType, op: Op, env: ChainEnv) -> Step:
    """The DM tensor that the stream becomes, or the tensor whose view it is written into.

    Raises:
        RuleViolation: those of `plan_write`; MAP-033 capacity; COMMIT-010, MAP-023, MAP-024, MAP-025 for views.
    """
    if isinstance(op, Commit):
        write = plan_write(op.element, stream.time, stream.packet, stream.dtype, env.context, env.hw)
        tensor = TensorType("Dm", stream.dtype, op.element, stream.chip, stream.cluster, stream.slice)
        check_tensor(tensor, env.hw)
        return Step(op, stream, tensor, write, write.derived(), StageCost(cycles=write.cycles))
    assert isinstance(op, CommitView)
    return _check_view(stream, op, env)


def _check_view(stream: StreamType, op: CommitView, env: ChainEnv) -> Step:
    if op.view is None or op.element is None or op.slice is None:
        raise RuleViolation(
            "COMMIT-010", "commit_view needs the slice and element mappings of its view and where it lies", got=op.to_json()
        )
    view = op.view
    if not view.mutable:
        raise RuleViolation("MAP-024", "a read view cannot be written", expected="a mutable view", got=op.element, also=("COMMIT-010",))
    stride = tile_stride(view.source, view.index, view.len, op.element, mutable=True)
    check_start(view.index, view.len, view.start, view.start)
    if op.slice.size != stream.slice.size:
        raise RuleViolation(
            "COMMIT-010",
            f"the view has {op.slice.size} slices, the stream {stream.slice.size}",
            expected=f"{stream.slice.size} slices",
            got=op.slice,
            nearest=stream.slice,
        )
    write = plan_write(op.element, stream.time, stream.packet, stream.dtype, env.context, env.hw)
    tensor = TensorType("Dm", stream.dtype, view.source, stream.chip, stream.cluster, op.slice)
    derived = write.derived()
    if stride * view.index.size == view.source.size:  # the tile is one piece
        derived["written_elements"] = [view.start * stride, (view.start + view.len) * stride]
    return Step(op, stream, tensor, write, derived, StageCost(cycles=write.cycles))


def apply(values: Values, step: Step, env: ChainEnv, operands: Dict[str, Values]) -> Values:
    """Contents of the written slots in the order of the Element mapping (for a view: of the view, before it is moved to its start);
    slots that nothing is written to are not defined."""
    write: CommitWrite = step.config
    before = step.before
    kind = pair(before.time, before.packet).table().kind
    live = np.flatnonzero(kind == LIVE)
    source = np.zeros(write.buffer.size, np.int64)
    written = np.zeros(write.buffer.size, bool)
    address = write.config.addresses()[live]
    source[address], written[address] = live, True
    spatial = values.data.shape[:3]
    data = np.take(values.data.reshape(*spatial, -1), source, axis=-1)
    defined = np.take(values.defined.reshape(*spatial, -1), source, axis=-1) & written
    return Values(data, defined)

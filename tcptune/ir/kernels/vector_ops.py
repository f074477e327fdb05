"""The operations of the Vector Engine, one frozen dataclass a vendor method.

The grammar of the part of a chain between `VectorInit` and `VectorFinal` (M mapping, N integer, S name)::

    vector  = VectorInit (chain [reduce] | reduce [chain]) [VectorFilter] VectorFinal
    chain   = (VectorIntraSliceTag(mode) | VectorIntraSliceUnzip(axis S, time M)) {stage op | VectorStash | VectorReinterpret(to S)}
    reduce  = VectorInterSliceReduce(slice M, time M, fn S)

A binary or ternary operation on a single stream has `operand`; on a pair it has `group0` and `group1` (absent: that group is skipped).
The operand, guard and mode values are in `ir.kernels.vector_operands`. Legality is the engine's business: these are plain data.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from tcptune.ir.kernels.ops import FIELD_READERS, Op
from tcptune.ir.kernels.vector_operands import Operand, TagGuard, TagMode, operand_from_json
from tcptune.ir.mappings.mapping import Mapping

FIELD_READERS["Operand | None"] = lambda v, axes: None if v is None else operand_from_json(v)
FIELD_READERS["TagGuard"] = lambda v, axes: TagGuard.from_json(v)
FIELD_READERS["TagMode"] = lambda v, axes: TagMode.from_json(v)


@dataclass(frozen=True)
class OperandFields:
    """Fields of an operation that takes operands: one for a single stream, one a group for a pair (PAIR-006)."""

    operand: Operand | None = field(default=None, kw_only=True)
    group0: Operand | None = field(default=None, kw_only=True)
    group1: Operand | None = field(default=None, kw_only=True)

    @property
    def groups(self) -> tuple[Operand | None, Operand | None]:
        return self.group0, self.group1


@dataclass(frozen=True)
class VectorInit(Op):
    """Enters the engine from a collected stream or a contraction result (VE-002)."""


@dataclass(frozen=True)
class VectorFinal(Op):
    """Leaves the engine (VE-013)."""


@dataclass(frozen=True)
class VectorIntraSliceTag(Op):
    """Enters the chain with a single stream."""

    mode: TagMode


@dataclass(frozen=True)
class VectorIntraSliceUnzip(Op):
    """Enters the chain with two groups: the positions of `axis` (size 2) in Time; `time` is Time without it (PAIR-001)."""

    axis: str
    time: Mapping


@dataclass(frozen=True)
class VectorLogic(OperandFields, Op):
    fn: str


@dataclass(frozen=True)
class VectorLogicWithMode(OperandFields, Op):
    fn: str
    mode: str


@dataclass(frozen=True)
class VectorFxp(OperandFields, Op):
    fn: str


@dataclass(frozen=True)
class VectorFxpWithMode(OperandFields, Op):
    fn: str
    mode: str


@dataclass(frozen=True)
class VectorFpUnary(Op):
    """A function of the stream; on a pair the flags say which groups it applies to (PAIR-007)."""

    fn: str
    group0_apply: bool | None = None
    group1_apply: bool | None = None


@dataclass(frozen=True)
class VectorFpUnaryWithMode(Op):
    """Does not exist on the machine: a unary operation has no argument mode (VE-037)."""

    fn: str
    mode: str
    group0_apply: bool | None = None
    group1_apply: bool | None = None


@dataclass(frozen=True)
class VectorFpBinary(OperandFields, Op):
    """`alu` selects the multiplier of MulF (ALU-031)."""

    fn: str
    alu: str | None = None


@dataclass(frozen=True)
class VectorFpBinaryWithMode(OperandFields, Op):
    fn: str
    mode: str
    alu: str | None = None


@dataclass(frozen=True)
class VectorFpTernary(OperandFields, Op):
    fn: str


@dataclass(frozen=True)
class VectorFpTernaryWithMode(OperandFields, Op):
    fn: str
    mode: str


@dataclass(frozen=True)
class VectorFpDiv(OperandFields, Op):
    """Division on the dedicated divider (VE-023)."""


@dataclass(frozen=True)
class VectorFpDivWithMode(OperandFields, Op):
    mode: str


@dataclass(frozen=True)
class VectorClip(OperandFields, Op):
    fn: str


@dataclass(frozen=True)
class VectorClipWithMode(OperandFields, Op):
    fn: str
    mode: str


@dataclass(frozen=True)
class VectorLogicZip(Op):
    """Merges the two groups (PAIR-010); so do the other `…Zip` operations."""

    fn: str


@dataclass(frozen=True)
class VectorLogicZipWithMode(Op):
    fn: str
    mode: str


@dataclass(frozen=True)
class VectorFxpZip(Op):
    fn: str


@dataclass(frozen=True)
class VectorFxpZipWithMode(Op):
    fn: str
    mode: str


@dataclass(frozen=True)
class VectorFpZip(Op):
    fn: str
    alu: str | None = None


@dataclass(frozen=True)
class VectorFpZipWithMode(Op):
    fn: str
    mode: str
    alu: str | None = None


@dataclass(frozen=True)
class VectorClipZip(Op):
    fn: str


@dataclass(frozen=True)
class VectorClipZipWithMode(Op):
    fn: str
    mode: str


@dataclass(frozen=True)
class VectorFxpToFp(Op):
    """i32 to f32 with `int_width` integer bits (VE-020)."""

    int_width: int


@dataclass(frozen=True)
class VectorFpToFxp(Op):
    """f32 to i32 with `int_width` integer bits (VE-021)."""

    int_width: int


@dataclass(frozen=True)
class VectorReinterpret(Op):
    """Rereads the 32 bits as the element type `to` (VE-022)."""

    to: str


@dataclass(frozen=True)
class VectorNarrowSplit(Op):
    time: Mapping
    packet: Mapping


@dataclass(frozen=True)
class VectorNarrowTrim(Op):
    packet: Mapping


@dataclass(frozen=True)
class VectorWidenConcat(Op):
    time: Mapping
    packet: Mapping


@dataclass(frozen=True)
class VectorWidenPad(Op):
    packet: Mapping


@dataclass(frozen=True)
class VectorStash(Op):
    """Snapshots the stream for one later operand (STASH-001)."""


@dataclass(frozen=True)
class VectorFilter(Op):
    guard: TagGuard


@dataclass(frozen=True)
class VectorIntraSliceReduce(Op):
    """Reduces `axis` over Time and Packet of each slice (ISR-001)."""

    axis: str
    time: Mapping
    packet: Mapping
    fn: str


@dataclass(frozen=True)
class VectorInterSliceReduce(Op):
    """Reduces the innermost factors of Slice over the slices of a cluster (XSR-001)."""

    slice: Mapping
    time: Mapping
    fn: str

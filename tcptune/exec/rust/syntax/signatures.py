"""The kernel API's methods on a Tensor Unit stream: which type arguments and arguments each takes, in the vendor's order.

One table serves both directions: the reader parses a call by it, the exporter prints one. Kinds of type arguments: ``mapping``, ``dtype``,
``axis``, ``scalar`` (an element type that the operation stores by name). Kinds of arguments:

- ``integer``, ``tensor`` (a reference to a register tensor), ``lane_mode``, ``switch``, ``tag``, ``guard``
- ``function`` (an enumeration of operators), ``mode`` (an argument mode)
- ``operands`` (one, or one a group), ``flags`` (none, or one a group)
- ``sub`` (``&mut device.sub``, where the main context stores to the vector registers), ``view`` (a mutable view)
"""

from __future__ import annotations

from dataclasses import dataclass

from tcptune.ir.kernels import ops, vector_ops
from tcptune.ir.kernels.ops import Op


@dataclass(frozen=True)
class Signature:
    """One method.

    Attributes:
        types: (field of the operation, kind) per type argument.
        inferred: further type arguments, which the compiler infers and which are written ``_``.
        arguments: (field, kind) per argument.
        enumeration: the enumeration of ``function``; `typed` says whether its name ends in the stream's element type (``…OpI32``).
        modes: the enumeration of ``mode``.
        ends: whether the method ends the chain; its type arguments may then come from an annotation.
    """

    op: type[Op]
    types: tuple[tuple[str, str], ...] = ()
    inferred: int = 0
    arguments: tuple[tuple[str, str], ...] = ()
    enumeration: str = ""
    typed: bool = False
    modes: str = "BinaryArgMode"
    ends: bool = False

    @property
    def shown(self) -> str:
        """The signature as errors print it: ``fetch::<Time, Packet>()``."""
        names = [name.capitalize() for name, _ in self.types] + ["_"] * self.inferred
        turbofish = f"::<{', '.join(names)}>" if names else ""
        return f"{self.op.NAME}{turbofish}({', '.join(name for name, _ in self.arguments)})"


def _m(*names: str) -> tuple[tuple[str, str], ...]:
    return tuple((name, "mapping") for name in names)


_DTYPE = (("dtype", "dtype"),)
_FN = ("fn", "function")
_MODE = ("mode", "mode")
_OPERANDS = ("operands", "operands")
_FLAGS = ("flags", "flags")


def _operator(op: type[Op], enumeration: str, *rest: tuple[str, str], typed: bool = False, modes: str = "BinaryArgMode") -> Signature:
    return Signature(op, arguments=(_FN, *rest), enumeration=enumeration, typed=typed, modes=modes)


_CHAIN = (
    Signature(ops.Fetch, _m("time", "packet")),
    Signature(ops.FetchChipLift, _m("chip", "time")),
    Signature(ops.FetchClusterLift, _m("cluster", "time")),
    Signature(ops.FetchSliceLift, _m("slice", "time")),
    Signature(ops.FetchTableLookup, _DTYPE),
    Signature(ops.FetchCast, _DTYPE),
    Signature(ops.FetchZeroPointSub, _DTYPE, arguments=(("zero_point", "integer"),)),
    Signature(ops.Switch, _m("slice", "time"), arguments=(("config", "switch"),)),
    Signature(ops.Collect, _m("time", "packet")),
    Signature(ops.ToTrf, _m("lane", "element"), ends=True),
    Signature(ops.ToVrf, _m("element"), arguments=(("sub_arg", "sub"),), ends=True),
    Signature(ops.ContractOuter, _m("time", "packet"), inferred=3, arguments=(("trf", "tensor"),)),
    Signature(ops.ContractPacket, _m("packet")),
    Signature(ops.ContractTime, _m("time")),
    Signature(ops.ContractLane, _m("time", "packet"), arguments=(("mode", "lane_mode"),)),
    Signature(ops.Cast, (*_DTYPE, *_m("packet"))),
    Signature(ops.Transpose, _m("time", "packet")),
    Signature(ops.CommitTrim, _m("packet")),
    Signature(ops.CommitCast, _DTYPE),
    Signature(ops.CommitCastRelu, _DTYPE),
    Signature(ops.Commit, _m("element"), ends=True),
    Signature(ops.CommitView, (), inferred=2, arguments=(("view", "view"),), ends=True),
)

_V = vector_ops
_VECTOR = (
    Signature(_V.VectorInit),
    Signature(_V.VectorFinal),
    Signature(_V.VectorIntraSliceTag, arguments=(("mode", "tag"),)),
    Signature(_V.VectorIntraSliceUnzip, (("axis", "axis"), *_m("time"))),
    _operator(_V.VectorLogic, "LogicBinaryOp", _OPERANDS, typed=True),
    _operator(_V.VectorLogicWithMode, "LogicBinaryOp", _MODE, _OPERANDS, typed=True),
    _operator(_V.VectorFxp, "FxpBinaryOp", _OPERANDS),
    _operator(_V.VectorFxpWithMode, "FxpBinaryOp", _MODE, _OPERANDS),
    _operator(_V.VectorFpUnary, "FpUnaryOp", _FLAGS),
    _operator(_V.VectorFpUnaryWithMode, "FpUnaryOp", _MODE, _FLAGS),
    _operator(_V.VectorFpBinary, "FpBinaryOp", _OPERANDS),
    _operator(_V.VectorFpBinaryWithMode, "FpBinaryOp", _MODE, _OPERANDS),
    _operator(_V.VectorFpTernary, "FpTernaryOp", _OPERANDS),
    _operator(_V.VectorFpTernaryWithMode, "FpTernaryOp", _MODE, _OPERANDS, modes="TernaryArgMode"),
    _operator(_V.VectorFpDiv, "FpDivBinaryOp", _OPERANDS),
    _operator(_V.VectorFpDivWithMode, "FpDivBinaryOp", _MODE, _OPERANDS),
    _operator(_V.VectorClip, "ClipBinaryOp", _OPERANDS, typed=True),
    _operator(_V.VectorClipWithMode, "ClipBinaryOp", _MODE, _OPERANDS, typed=True),
    _operator(_V.VectorLogicZip, "LogicBinaryOp", typed=True),
    _operator(_V.VectorLogicZipWithMode, "LogicBinaryOp", _MODE, typed=True),
    _operator(_V.VectorFxpZip, "FxpBinaryOp"),
    _operator(_V.VectorFxpZipWithMode, "FxpBinaryOp", _MODE),
    _operator(_V.VectorFpZip, "FpBinaryOp"),
    _operator(_V.VectorFpZipWithMode, "FpBinaryOp", _MODE),
    _operator(_V.VectorClipZip, "ClipBinaryOp", typed=True),
    _operator(_V.VectorClipZipWithMode, "ClipBinaryOp", _MODE, typed=True),
    Signature(_V.VectorFxpToFp, arguments=(("int_width", "integer"),)),
    Signature(_V.VectorFpToFxp, arguments=(("int_width", "integer"),)),
    Signature(_V.VectorReinterpret, (("to", "scalar"),)),
    Signature(_V.VectorNarrowSplit, _m("time", "packet")),
    Signature(_V.VectorNarrowTrim, _m("packet")),
    Signature(_V.VectorWidenConcat, _m("time", "packet")),
    Signature(_V.VectorWidenPad, _m("packet")),
    Signature(_V.VectorStash),
    Signature(_V.VectorFilter, arguments=(("guard", "guard"),)),
    Signature(
        _V.VectorIntraSliceReduce, (("axis", "axis"), *_m("time", "packet")), arguments=(_FN,), enumeration="IntraSliceReduceOp", typed=True
    ),
    Signature(_V.VectorInterSliceReduce, _m("slice", "time"), arguments=(_FN,), enumeration="InterSliceReduceOp", typed=True),
)

STREAM_METHODS: dict[str, Signature] = {signature.op.NAME: signature for signature in (*_CHAIN, *_VECTOR)}
"""Signature by the method's name."""

MULTIPLIERS = {"MulF": "FpMulAlu"}
"""Operators that carry the unit they run on, with its enumeration: ``FpBinaryOp::MulF(FpMulAlu::Mul0)`` (ALU-031)."""

DIVISION = "DivF"
"""The one operator of `FpDivBinaryOp` (VE-023), which the operation does not store."""

SWITCH_CONFIGS = ("Broadcast01", "Broadcast1", "Transpose", "InterTranspose", "TransposedBroadcast1", "CustomBroadcast")
"""Variants of `SwitchConfig` (SWITCH-006 to 036)."""

"""The element type of a stream through a chain, as far as the operations alone determine it."""

from __future__ import annotations

from tcptune.ir.kernels import ops, vector_ops
from tcptune.ir.kernels.ops import Op
from tcptune.ir.types import DType, dtype

_SETS_DTYPE = (ops.FetchTableLookup, ops.FetchCast, ops.FetchZeroPointSub, ops.Cast, ops.CommitCast, ops.CommitCastRelu)


def dtype_after(op: Op, before: DType | None) -> DType | None:
    """Element type after `op`: casts name theirs, a contraction accumulates in 32 bits (CE-014), conversions cross between i32 and f32."""
    if isinstance(op, _SETS_DTYPE):
        return op.dtype
    if isinstance(op, ops.ContractOuter):
        return None if before is None else dtype("f32" if before.is_float else "i32")
    if isinstance(op, vector_ops.VectorReinterpret):
        return dtype(op.to)
    if isinstance(op, vector_ops.VectorFxpToFp):
        return dtype("f32")
    if isinstance(op, vector_ops.VectorFpToFxp):
        return dtype("i32")
    return before

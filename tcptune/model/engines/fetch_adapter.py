"""Fetch Adapter: element-wise conversions between Fetch and Switch (FA-001 to FA-015).

Table lookup decodes f4e2m1 to an 8-bit float (paired tables of a byte) or an 8-bit float to bf16, fetch_cast widens to the 32-bit compute
width, zero-point subtraction widens i4 and i8 by one bit for the Contraction Engine.
"""

from __future__ import annotations

from collections.abc import Mapping as Dict
from dataclasses import dataclass

import numpy as np

from tcptune.errors import RuleViolation
from tcptune.ir.kernels.ops import FetchCast, FetchTableLookup, FetchZeroPointSub, Op
from tcptune.ir.types import DType, StreamType, dtype
from tcptune.model.engines import fetch
from tcptune.model.hardware import Hardware
from tcptune.model.numerics import elements as numerics
from tcptune.model.stage import ChainEnv, StageCost, Step
from tcptune.model.values import Values

HANDLES = (FetchTableLookup, FetchCast, FetchZeroPointSub)

LOOKUPS: dict[str, tuple[str, ...]] = {"f4e2m1": ("f8e4m3", "f8e5m2"), "f8e4m3": ("bf16",), "f8e5m2": ("bf16",)}
"""Output types of the table lookup by input type (FA-002)."""

CASTS: dict[str, tuple[str, ...]] = {
    "i4": ("i32",),
    "i8": ("i32",),
    "i16": ("i32",),
    "f8e4m3": ("f32",),
    "f8e5m2": ("f32",),
    "bf16": ("f32",),
    "f32": ("bf16",),
}
"""Output types of fetch_cast by input type (FA-007)."""

ZERO_POINTS: dict[str, str] = {"i4": "i5", "i8": "i9"}
"""Output type of the zero-point subtraction by input type (FA-011)."""

OTHER_ENGINE = {
    **{(source, "bf16"): "fetch_table_lookup" for source in ("f8e4m3", "f8e5m2")},
    **{("f32", target): "the Cast Engine (cast)" for target in ("f8e4m3", "f8e5m2")},
    **dict.fromkeys(ZERO_POINTS.items(), "fetch_zero_point_sub"),
}
"""Conversions that fetch_cast leaves to another operation, and to which (FA-008)."""


@dataclass(frozen=True, slots=True)
class LookupTable:
    """The table of one conversion (FA-005).

    Attributes:
        key_bits: bits of one element of the input.
        paired: a byte holds two keys and one lookup gives two elements.
    """

    key_bits: int
    paired: bool

    @property
    def elements_per_key(self) -> int:
        """Elements that one lookup gives."""
        return 2 if self.paired else 1

    @property
    def entries(self) -> int:
        """Rows of the table: the patterns of the byte-aligned key."""
        return 1 << (self.key_bits * self.elements_per_key)


def lookup_table(source: DType) -> LookupTable:
    """The table that decodes `source`: keys are whole bytes, so 4-bit keys come in pairs."""
    return LookupTable(source.bits, paired=source.bits < 8)


def paired_entry(byte: int, source: DType, target: DType) -> tuple[int, int]:
    """Bit patterns of the two elements that a byte of two keys decodes to, low nibble first (FA-005)."""
    patterns = numerics.to_bits(numerics.conversion_table(source, target), target)
    mask = (1 << source.bits) - 1
    return int(patterns[byte & mask]), int(patterns[byte >> source.bits & mask])


def read_size_cap(target: DType, hw: Hardware) -> int:
    """Most elements of one read when the adapter emits `target`: one flit of output (FA-010)."""
    return 8 * hw.flit_bytes // target.bits


def _refuse_type(rule: str, op: Op, source: DType, target: DType, legal: tuple[str, ...], also: tuple[str, ...] = ()) -> RuleViolation:
    return RuleViolation(
        rule,
        f"{op.NAME} does not convert {source} to {target}",
        expected=f"{source} to {' or '.join(legal)}" if legal else f"one of {', '.join(_sources(op))}",
        got=f"{source} to {target}",
        nearest=OTHER_ENGINE.get((source.name, target.name)),
        also=also,
    )


def _sources(op: Op) -> tuple[str, ...]:
    if isinstance(op, FetchZeroPointSub):
        return tuple(f"{source} to {target}" for source, target in ZERO_POINTS.items())
    table = LOOKUPS if isinstance(op, FetchTableLookup) else CASTS
    return tuple(f"{source} to {' or '.join(targets)}" for source, targets in table.items())


def check(stream: StreamType, op: Op, env: ChainEnv) -> Step:
    """Element type after one stage; all mappings are kept (FA-006).

    Raises:
        RuleViolation: FA-002 for a lookup, FA-007, FA-008 or FA-010 for a cast, FA-011 or FA-012 for a zero point.
    """
    if isinstance(op, FetchTableLookup):
        _check_lookup(stream.dtype, op)
        return _converted(stream, op, "FetchTableLookup", StageCost(), env)
    if isinstance(op, FetchCast):
        _check_cast(stream.dtype, op, env)
        return _converted(stream, op, "FetchCast", StageCost(latency_cycles=env.hw.fetch_cast_latency_cycles[1]), env)
    assert isinstance(op, FetchZeroPointSub)
    _check_zero_point(stream, op)
    return _converted(stream, op, "FetchZeroPointSub", StageCost(), env)


def _converted(
    stream: StreamType, op: FetchTableLookup | FetchCast | FetchZeroPointSub, position: str, cost: StageCost, env: ChainEnv
) -> Step:
    """The converted stream; a conversion bounds the reads of the fetch before it to one flit of output, which makes it longer (FA-010).

    The manual states the bound for casts; it is applied to lookups as well. Residuals are counted at the width of their source.
    """
    read = None if isinstance(op, FetchZeroPointSub) else fetch.adapted(stream, op.dtype, env)
    if read is None:
        return Step(op, stream, stream.with_(position=position, dtype=op.dtype), cost=cost)
    after = stream.with_(position=position, dtype=op.dtype, details=read)
    return Step(op, stream, after, derived=read.derived(), cost=StageCost(read.cycles, cost.latency_cycles))


def _check_lookup(source: DType, op: FetchTableLookup) -> None:
    legal = LOOKUPS.get(source.name, ())
    if op.dtype.name not in legal:
        raise _refuse_type("FA-002", op, source, op.dtype, legal)


def _check_cast(source: DType, op: FetchCast, env: ChainEnv) -> None:
    legal = CASTS.get(source.name, ())
    if op.dtype.name in legal:
        _check_sub_read(source, op, env)
        return
    if (source.name, op.dtype.name) in OTHER_ENGINE:
        raise _refuse_type("FA-008", op, source, op.dtype, legal, also=("FA-007",))
    raise _refuse_type("FA-007", op, source, op.dtype, legal)


def _check_sub_read(source: DType, op: FetchCast, env: ChainEnv) -> None:
    """The sub context always reads 8 bytes, which must not grow beyond a flit."""
    elements = 8 * env.hw.sub_fetch_bytes // source.bits
    if env.context == "sub" and elements > read_size_cap(op.dtype, env.hw):
        raise RuleViolation(
            "FA-010",
            f"the sub context reads {elements} {source} elements at a time, {op.dtype.bytes_of(elements)} bytes of {op.dtype}",
            expected=f"at most {env.hw.flit_bytes} bytes a read",
            got=f"{source} to {op.dtype} on sub",
            nearest="cast on main",
        )


def _check_zero_point(stream: StreamType, op: FetchZeroPointSub) -> None:
    """The conversion and the range; no earlier stage leaves a type that has a zero point, so behind one the order is at fault as well."""
    source = stream.dtype
    target = ZERO_POINTS.get(source.name)
    if op.dtype.name != target:
        also = ("FA-001",) if stream.position in ("FetchTableLookup", "FetchCast") else ()
        raise _refuse_type("FA-011", op, source, op.dtype, (target,) if target else (), also)
    low, high = numerics.integer_range(source)
    if not isinstance(op.zero_point, int) or isinstance(op.zero_point, bool) or not low <= op.zero_point <= high:
        raise RuleViolation(
            "FA-012",
            f"the zero point {op.zero_point} is outside the range of {source}",
            expected=f"{low} to {high}",
            got=op.zero_point,
            nearest=min(max(op.zero_point, low), high) if isinstance(op.zero_point, int) else None,
        )


def residual_range(source: DType) -> tuple[int, int]:
    """Smallest and largest difference of two numbers of `source` (FA-013)."""
    low, high = numerics.integer_range(source)
    return low - high, high - low


def subtract_zero_point(data: numerics.Array, source: DType, zero_point: int) -> numerics.Array:
    """``data - zero_point`` in the widened type; it never wraps (FA-013)."""
    target = dtype(ZERO_POINTS[source.name])
    return np.asarray((data.astype(np.int16) - np.int16(zero_point)).astype(numerics.numpy_dtype(target)))


def apply(values: Values, step: Step, env: ChainEnv, operands: Dict[str, Values]) -> Values:
    """Every element converted; what is defined stays as it is."""
    op = step.op
    source = step.before.dtype
    if isinstance(op, FetchZeroPointSub):
        return Values(subtract_zero_point(values.data, source, op.zero_point), values.defined)
    assert isinstance(op, (FetchTableLookup, FetchCast))
    return Values(numerics.convert(values.data, source, op.dtype), values.defined)

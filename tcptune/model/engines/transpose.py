"""Transpose Engine: exchanges a part of Time with the packet inside every slice (TRANSPOSE-001..020).

With Time = [Outer, Rows, Gather] it unpacks the valid elements of each flit, gathers the flits of a row, transposes rows and columns,
drops the rows that padding leaves, and pads every row of the result to a flit.
"""

from __future__ import annotations

from collections.abc import Iterator
from collections.abc import Mapping as Dict
from dataclasses import dataclass
from math import isqrt
from typing import Any

import numpy as np
import numpy.typing as npt

from tcptune.errors import RuleViolation
from tcptune.ir.kernels.ops import Transpose
from tcptune.ir.mappings.mapping import Mapping, Pair, pair
from tcptune.ir.types import DType, StreamType
from tcptune.model.engines.contraction.reduce import live_prefix
from tcptune.model.hardware import RNGD, Hardware
from tcptune.model.numerics.elements import STAGING_TYPES
from tcptune.model.stage import ChainEnv, StageCost, Step
from tcptune.model.values import Values

HANDLES = (Transpose,)


@dataclass(frozen=True, slots=True)
class WidthParameters:
    """What the engine can do with elements of one width (TRANSPOSE-003)."""

    single_valid_size: int
    dual_valid_size: int | None
    max_in_rows: int
    in_cols: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class TransposeConfig:
    """One burst of the engine.

    Attributes:
        valid_size: elements read of each flit.
        packets_per_col: flits gathered into a row.
        in_rows: rows, and elements of every output packet.
        out_rows: packets written a burst.
        kept: leading elements of every gathered flit that become output rows; `valid_size` unless padding inside a row is dropped (A-10).
        bursts: iterations n.
        flit_elements: elements of an output packet.
    """

    valid_size: int
    packets_per_col: int
    in_rows: int
    out_rows: int
    kept: int
    bursts: int
    flit_elements: int

    @property
    def in_cols(self) -> int:
        return self.packets_per_col * self.valid_size

    @property
    def in_flits(self) -> int:
        """Flits read a burst (TRANSPOSE-011)."""
        return self.in_rows * self.packets_per_col


def width_parameters(bits: int, hw: Hardware) -> WidthParameters:
    """Parameters of an element width (TRANSPOSE-003)."""
    rows = hw.transpose_row_bytes * 8 // bits
    single = max(hw.transpose_columns[0], rows)
    dual = hw.transpose_dual_elements if bits in hw.transpose_dual_bits else None
    return WidthParameters(single, dual, rows, tuple(c for c in hw.transpose_columns if c >= single))


def takes_type(element: DType, hw: Hardware = RNGD) -> bool:
    """Whether elements of this type can be transposed (TRANSPOSE-015)."""
    return element.bits in hw.transpose_element_bits and element.name not in STAGING_TYPES


def is_double_buffered(in_cols: int, hw: Hardware) -> bool:
    """Whether reading and writing overlap (TRANSPOSE-012)."""
    return in_cols <= hw.transpose_buffer_columns


def transpose_cycles(bursts: int, in_flits: int, out_rows: int, double: bool) -> int:
    """Cycles of all bursts (TRANSPOSE-013, TRANSPOSE-014)."""
    if not double:
        return bursts * (in_flits + out_rows)
    return in_flits + (bursts - 1) * max(in_flits, out_rows) + out_rows


def check(stream: StreamType, op: Transpose, env: ChainEnv) -> Step:
    """The transposed stream.

    Raises:
        RuleViolation: TRANSPOSE-015 (type), TRANSPOSE-016 (flits), TRANSPOSE-004 (live elements), TRANSPOSE-006 (columns), TRANSPOSE-007
            (rows), TRANSPOSE-009 (live rows dropped), TRANSPOSE-017 (mapping equation).
    """
    if not takes_type(stream.dtype, env.hw):
        raise RuleViolation(
            "TRANSPOSE-015",
            f"elements of {stream.dtype} cannot be transposed",
            expected="4, 8, 16 or 32 bits",
            got=stream.dtype,
            also=("FA-014",),
        )
    _require_flits(stream, op, env.hw)
    limits = width_parameters(stream.dtype.bits, env.hw)
    valid_size = _valid_size(stream, limits)
    in_rows = live_prefix(op.packet)
    if in_rows > limits.max_in_rows or not in_rows:
        raise RuleViolation(
            "TRANSPOSE-007",
            f"OutPacket {op.packet} has {in_rows} rows of {stream.dtype}",
            expected=f"1 to {limits.max_in_rows} rows",
            got=in_rows,
            also=("TRANSPOSE-003",),
        )
    config = _derive(stream, op, valid_size, in_rows, limits)
    if config.in_cols not in limits.in_cols:
        raise RuleViolation(
            "TRANSPOSE-006",
            f"{config.packets_per_col} packets of {valid_size} elements make {config.in_cols} columns",
            expected=f"one of {', '.join(map(str, limits.in_cols))} columns",
            got=config.in_cols,
            also=("TRANSPOSE-003", "TRANSPOSE-017"),
        )
    double = is_double_buffered(config.in_cols, env.hw)
    cycles = transpose_cycles(config.bursts, config.in_flits, config.out_rows, double)
    derived = {
        "valid_size": valid_size,
        "packing": "single" if valid_size == limits.single_valid_size else "dual",
        "packets_per_col": config.packets_per_col,
        "in_cols": config.in_cols,
        "in_rows": in_rows,
        "out_rows": config.out_rows,
        "n": config.bursts,
        "in_flits": config.in_flits,
        "buffering": "double" if double else "single",
        "cycles": cycles,
    }
    after = stream.with_(position="Transpose", time=op.time, packet=op.packet, details=None)
    return Step(op, stream, after, config, derived, StageCost(cycles=cycles))


def apply(values: Values, step: Step, env: ChainEnv, operands: Dict[str, Values]) -> Values:
    """Elements moved; the padding that fills a row up to a flit is undefined."""
    config: TransposeConfig = step.config

    def moved(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
        *spatial, _, packet = array.shape
        rows = array.reshape(*spatial, config.bursts, config.in_rows, config.packets_per_col, packet)[..., : config.kept]
        columns = np.moveaxis(rows, -3, -1).reshape(*spatial, config.bursts, -1, config.in_rows)
        written = columns[..., : config.out_rows, :].reshape(*spatial, config.bursts * config.out_rows, config.in_rows)
        return np.pad(written, [(0, 0)] * (written.ndim - 1) + [(0, config.flit_elements - config.in_rows)])

    return Values(moved(values.data), moved(values.defined))


def _require_flits(stream: StreamType, op: Transpose, hw: Hardware) -> None:
    flit = hw.flit_bytes * 8 // stream.dtype.bits
    for what, m, also in (("input packet", stream.packet, ()), ("OutPacket", op.packet, ("TRANSPOSE-010",))):
        if m.size != flit:
            shown = f"[{m}]" if isinstance(m, Pair) else str(m)
            raise RuleViolation(
                "TRANSPOSE-016",
                f"the {what} {m} has {m.size} elements of {stream.dtype}",
                expected=f"{flit}, one flit",
                got=m.size,
                nearest=f"{shown} # {flit}" if m.size < flit else None,
                also=also,
            )


# --- derivation -------------------------------------------------------------------------------------------------------------------


def _valid_size(stream: StreamType, limits: WidthParameters) -> int:
    """Elements read of each flit (TRANSPOSE-004)."""
    prefix = live_prefix(stream.packet)
    for size in (limits.single_valid_size, limits.dual_valid_size):
        if size is not None and prefix <= size:
            return size
    widest = limits.dual_valid_size or limits.single_valid_size
    raise RuleViolation(
        "TRANSPOSE-004",
        f"the packet {stream.packet} has live elements up to position {prefix}",
        expected=f"at most {widest} elements of {stream.dtype.bits} bits, then padding",
        got=prefix,
        also=("TRANSPOSE-003",),
    )


def _divisors(n: int) -> Iterator[int]:
    """Divisors of n, smallest first."""
    small = [d for d in range(1, isqrt(n) + 1) if n % d == 0]
    yield from small
    yield from (n // d for d in reversed(small) if d * d != n)


def _derive(stream: StreamType, op: Transpose, valid_size: int, in_rows: int, limits: WidthParameters) -> TransposeConfig:
    """The fewest gathered packets for which both mappings fit (TRANSPOSE-018)."""
    rows_wanted = op.packet.resize(in_rows)
    refusal: RuleViolation | None = None
    for packets in _divisors(stream.time.size // in_rows) if stream.time.size % in_rows == 0 else ():
        above, gather = stream.time.split_at(packets)
        outer, rows = above.split_at(in_rows)
        if not rows.equivalent(rows_wanted):
            continue
        found = _output_rows(stream, op, outer, gather, valid_size, limits)
        if not isinstance(found, RuleViolation):
            out_rows, kept = found
            return TransposeConfig(valid_size, packets, in_rows, out_rows, kept, op.time.size // out_rows, op.packet.size)
        if refusal is None or found.rule == "TRANSPOSE-009":
            refusal = found
    if refusal is None:
        refusal = RuleViolation(
            "TRANSPOSE-017",
            f"the rows {rows_wanted} of OutPacket are no part of Time {stream.time} above the gathered packets",
            expected="OutPacket rows that are a factor of Time",
            got=str(op.packet),
            also=("TRANSPOSE-007",),
        )
    raise refusal


def _output_rows(
    stream: StreamType, op: Transpose, outer: Mapping, gather: Mapping, valid_size: int, limits: WidthParameters
) -> tuple[int, int] | RuleViolation:
    """(out_rows, kept elements of each gathered flit), or why OutTime does not fit.

    Live rows are looked up only where the columns are few enough to be legal.
    """
    columns = pair(gather, stream.packet.resize(valid_size))
    prefix = live_prefix(stream.packet)
    expected = f"{pair(outer, gather, stream.packet.resize(max(prefix, 1)))}"
    misfit = RuleViolation(
        "TRANSPOSE-017", f"OutTime is {op.time}", expected=expected, got=str(op.time), also=("TRANSPOSE-008", "TRANSPOSE-009")
    )
    out_rows, rest = divmod(op.time.size, outer.size)
    if rest:
        return misfit
    declared_outer, declared = op.time.split_at(out_rows)
    if not declared_outer.equivalent(outer):
        return misfit
    if out_rows <= columns.size and declared.equivalent(columns.resize(out_rows)):
        if columns.size <= limits.in_cols[-1] and out_rows < live_prefix(columns):
            return RuleViolation(
                "TRANSPOSE-009",
                f"OutTime keeps {out_rows} of {live_prefix(columns)} live rows",
                expected=expected,
                got=str(op.time),
                also=("TRANSPOSE-017",),
            )
        return out_rows, valid_size
    trimmed = pair(gather, stream.packet.resize(max(prefix, 1)))
    return (out_rows, max(prefix, 1)) if declared.equivalent(trimmed) else misfit

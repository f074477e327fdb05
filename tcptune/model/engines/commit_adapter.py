"""Commit Adapter: trims packets and converts f32 to bf16 just before they are written (CADAPT-001..017)."""

from __future__ import annotations

from collections.abc import Mapping as Dict
from dataclasses import dataclass

from tcptune.errors import RuleViolation
from tcptune.ir.kernels.ops import CommitCast, CommitCastRelu, CommitTrim, Op
from tcptune.ir.types import DType, StreamType
from tcptune.model.hardware import Hardware
from tcptune.model.numerics.elements import STAGING_TYPES, bf16_relu, convert
from tcptune.model.stage import ChainEnv, Step
from tcptune.model.values import Values

HANDLES = (CommitTrim, CommitCast, CommitCastRelu)

CONTEXTS: dict[str, tuple[str, ...]] = {
    "commit_trim": ("main", "sub"),
    "commit_cast": ("main",),
    "commit_cast_relu": ("main",),
    "generate_mode": ("sub",),
}
"""Contexts of each function (CADAPT-002). Generate mode is the path of memset: a constant is written without a stream (CADAPT-014)."""

CAST_PAIRS: tuple[tuple[str, str], ...] = (("f32", "bf16"),)
"""Conversions on the way to DM (CADAPT-009)."""


@dataclass(frozen=True, slots=True)
class TrimConfig:
    """Elements of a packet that are written."""

    valid_size: int


def valid_sizes(element: DType, hw: Hardware) -> tuple[int, ...]:
    """Elements that a trimmed packet may have (CADAPT-004)."""
    return tuple(n * 8 // element.bits for n in hw.commit_valid_bytes)


def require_context(function: str, context: str) -> None:
    """Refuses a function that the context does not have.

    Args:
        function: a key of `CONTEXTS`.

    Raises:
        RuleViolation: CADAPT-002; CADAPT-014 for generate mode.
    """
    if context not in CONTEXTS[function]:
        rule, also = ("CADAPT-014", ("CADAPT-002",)) if function == "generate_mode" else ("CADAPT-002", ())
        raise RuleViolation(rule, f"{function} in the {context} context", expected=" or ".join(CONTEXTS[function]), got=context, also=also)


def check(stream: StreamType, op: Op, env: ChainEnv) -> Step:
    """The trimmed or converted stream.

    Raises:
        RuleViolation: CADAPT-002 (context), CADAPT-004, CADAPT-005, CADAPT-008 (trim), CADAPT-009, CADAPT-015 (cast).
    """
    require_context(op.NAME, env.context)
    if isinstance(op, CommitTrim):
        return _check_trim(stream, op, env.hw)
    assert isinstance(op, (CommitCast, CommitCastRelu))
    return _check_cast(stream, op, env.hw)


def _check_trim(stream: StreamType, op: CommitTrim, hw: Hardware) -> Step:
    if stream.dtype.name in STAGING_TYPES:
        raise RuleViolation("CADAPT-008", f"a stream of {stream.dtype} cannot be written", expected="contract_outer", also=("FA-014",))
    sizes = valid_sizes(stream.dtype, hw)
    fits = op.packet.size <= stream.packet.size
    prefix = stream.packet.resize(op.packet.size) if fits else stream.packet
    is_prefix = fits and op.packet.equivalent(prefix)
    if op.packet.size not in sizes:
        raise RuleViolation(
            "CADAPT-004",
            f"OutPacket {op.packet} has {op.packet.size} elements of {stream.dtype}",
            expected=f"one of {', '.join(map(str, sizes))} ({', '.join(map(str, hw.commit_valid_bytes))} bytes)",
            got=op.packet.size,
            nearest=next((n for n in sizes if n > op.packet.size), None),
            also=("COMMIT-006", *(() if is_prefix else ("CADAPT-005",))),
        )
    if not is_prefix:
        raise RuleViolation(
            "CADAPT-005",
            f"OutPacket {op.packet} is not the beginning of the packet {stream.packet}",
            expected=str(prefix),
            got=str(op.packet),
        )
    valid_bytes = op.packet.size * stream.dtype.bits // 8
    derived = {"valid_size": op.packet.size, "valid_bytes": valid_bytes}
    return Step(op, stream, stream.with_(position="CommitTrim", packet=op.packet, details=None), TrimConfig(op.packet.size), derived)


def _check_cast(stream: StreamType, op: CommitCast | CommitCastRelu, hw: Hardware) -> Step:
    if (stream.dtype.name, op.dtype.name) not in CAST_PAIRS:
        raise RuleViolation(
            "CADAPT-009",
            f"the commit path does not convert {stream.dtype} to {op.dtype}",
            expected=", ".join(f"{a} to {b}" for a, b in CAST_PAIRS),
            got=f"{stream.dtype} to {op.dtype}",
            also=("CADAPT-010",) if isinstance(op, CommitCastRelu) else (),
        )
    written = stream.packet.size * op.dtype.bits // 8
    if written not in hw.commit_valid_bytes:
        narrowed = stream.dtype.bits // op.dtype.bits
        legal = [n for n in valid_sizes(stream.dtype, hw) if n * stream.dtype.bits // 8 // narrowed in hw.commit_valid_bytes]
        raise RuleViolation(
            "CADAPT-015",
            f"{stream.packet.size} elements are {written} bytes of {op.dtype}",
            expected=f"{' or '.join(map(str, legal))} elements",
            got=stream.packet.size,
            also=("COMMIT-006",),
        )
    return Step(op, stream, stream.with_(position="CommitCast", dtype=op.dtype, details=None), None, {"commit_bytes": written})


def apply(values: Values, step: Step, env: ChainEnv, operands: Dict[str, Values]) -> Values:
    """The valid prefix of every packet, or every element converted (with ReLU, CADAPT-017)."""
    if isinstance(step.op, CommitTrim):
        valid = step.config.valid_size
        return Values(values.data[..., :valid], values.defined[..., :valid])
    if isinstance(step.op, CommitCastRelu):
        return Values(bf16_relu(values.data), values.defined)
    assert isinstance(step.op, CommitCast)
    return Values(convert(values.data, step.before.dtype, step.op.dtype), values.defined)

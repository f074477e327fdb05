"""Operands of the Vector Engine: constants, register tensors, stash, branched slots, argument modes, guards (VE-030 to VE-037, STASH, TAG).

`check_operand` decides whether an operation may read an operand and lists the slots an element can take; `operand_values` delivers the
values.
"""

from __future__ import annotations

from collections.abc import Iterable
from collections.abc import Mapping as Dict
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from tcptune.errors import InputError, RuleViolation
from tcptune.ir.kernels.ops import Op
from tcptune.ir.kernels.vector_operands import (
    IGNORE,
    ONE,
    TAG_BITS,
    ZERO,
    Branched,
    Constant,
    Operand,
    Slot,
    StashOperand,
    TagGuard,
    TernaryOperand,
    VrfOperand,
)
from tcptune.ir.types import DType, StreamType, TensorType
from tcptune.model.engines.vector.alus import AluFunction
from tcptune.model.engines.vector.register_access import check_register_access
from tcptune.model.engines.vector.state import I32, PAIRED, StashState, VectorState
from tcptune.model.mappings.movement import gather_within_slice
from tcptune.model.numerics.vector import shift_count_is_defined
from tcptune.model.stage import ChainEnv
from tcptune.model.values import Values

BINARY_MODES: dict[str, tuple[str, ...]] = {
    "Mode00": ("stream", "stream"),
    "Mode01": ("stream", "operand"),
    "Mode10": ("operand", "stream"),
    "Mode11": ("operand", "operand"),
}
DEFAULT_BINARY_MODE = "Mode01"
"""What fills the two argument slots (VE-035)."""

TERNARY_MODES: dict[str, tuple[str, ...]] = {
    "Mode012": ("stream", "operand0", "operand1"),
    "Mode002": ("stream", "stream", "operand1"),
    "Mode102": ("operand0", "stream", "operand1"),
    "Mode112": ("operand0", "operand0", "operand1"),
    "Mode020": ("stream", "operand1", "stream"),
    "Mode021": ("stream", "operand1", "operand0"),
    "Mode120": ("operand0", "operand1", "stream"),
}
DEFAULT_TERNARY_MODE = "Mode012"
"""What fills the three argument slots (VE-036)."""

ZIP_MODES: dict[str, tuple[str, ...]] = {
    "Mode00": ("group0", "group0"),
    "Mode01": ("group0", "group1"),
    "Mode10": ("group1", "group0"),
    "Mode11": ("group1", "group1"),
}
DEFAULT_ZIP_MODE = "Mode01"
"""Which group fills which argument slot of a zip (PAIR-009)."""

OPERAND_READS = {"constant": None, "vrf": None, "stash": 1}
"""How often an operation of one call may read each source; None is any number (VE-030, STASH-004)."""

_I32_RANGE = np.iinfo(np.int32)
_SHIFT_COUNTS = range(32)


@dataclass(frozen=True, slots=True)
class OperandSlot:
    """One operand an element may take: the guard that admits it, and its value (for a ternary operation both values)."""

    guard: TagGuard
    operand0: Constant | VrfOperand | StashOperand
    operand1: Constant | None = None


def argument_mode(modes: Dict[str, tuple[str, ...]], name: str | None, default: str, rule: str) -> tuple[str, ...]:
    """The argument slots of mode `name`.

    Raises:
        RuleViolation: `rule` if there is no such mode.
    """
    found = modes.get(default if name is None else name)
    if found is None:
        raise RuleViolation(rule, f"there is no argument mode {name}", expected=", ".join(modes), got=name)
    return found


def check_guard(guard: TagGuard) -> None:
    """Refuses a pattern that is not four of One, Zero and Ignore (TAG-006)."""
    if len(guard.pattern) != TAG_BITS or any(bit not in (ONE, ZERO, IGNORE) for bit in guard.pattern):
        raise RuleViolation(
            "TAG-006", "a guard has four bits, each One, Zero or Ignore", expected="[b0, b1, b2, b3]", got=list(guard.pattern)
        )


def check_slot_sequence(kinds: Iterable[str], *, immediates: int, ports: int) -> None:
    """Up to `immediates` immediates, then at most `ports` register-file ports, the port last.

    Raises:
        RuleViolation: TAG-008.
    """
    counts = {"imm": 0, "rf": 0}
    for kind in kinds:
        if kind not in counts:
            raise RuleViolation("TAG-008", f"there is no operand slot {kind!r}", expected="imm or rf", got=kind)
        counts[kind] += 1
        if counts["rf"] and (kind == "imm" or counts["rf"] > ports):
            raise RuleViolation("TAG-008", f"{kind} after the register-file port", expected="the port last, once", got=kind)
        if counts["imm"] > immediates:
            raise RuleViolation("TAG-008", "too many immediates", expected=f"at most {immediates}", got=counts["imm"])
    if not any(counts.values()):
        raise RuleViolation("TAG-008", "a branched operand has no slot", expected="at least one imm or rf")


def check_operand(
    operand: Operand, function: AluFunction, stream: StreamType, state: VectorState, op: Op, env: ChainEnv
) -> tuple[tuple[OperandSlot, ...], VectorState]:
    """The slots that `op` reads on `stream`, and the state after reading them.

    Raises:
        RuleViolation: VE-030 to VE-034, VE-036, STASH-004 to 007, PAIR-006, PAIR-011, TAG-008, TAG-010, ALU-022.
    """
    if isinstance(operand, Branched):
        if state.pair == PAIRED:
            raise RuleViolation(
                "PAIR-006", "a pair takes no branched operand", expected="a constant or a register tensor a group", got=operand
            )
        slots = _branched_slots(operand, function, env)
    else:
        slots = (_slot_of(TagGuard(), operand, function, op),)
    for slot in slots:
        _check_constants(slot, function, stream.dtype, op)
        if isinstance(slot.operand0, VrfOperand):
            state = _read_register(slot.operand0, stream, state, env)
        elif isinstance(slot.operand0, StashOperand):
            state = _read_stash(stream, state)
    return slots, state


def _branched_slots(operand: Branched, function: AluFunction, env: ChainEnv) -> tuple[OperandSlot, ...]:
    check_slot_sequence([s.slot for s in operand.slots], immediates=env.hw.operand_immediates, ports=env.hw.operand_register_ports)
    slots: list[OperandSlot] = []
    for slot in operand.slots:
        check_guard(slot.guard)
        if slot.guard.admits_nothing:
            raise RuleViolation("TAG-010", "a slot guarded by not_matches of four Ignores admits nothing", got=slot.to_json())
        if slots and slots[-1].guard.is_unconditional:
            raise RuleViolation("TAG-010", "a slot after an unconditional one can never be taken", got=slot.to_json())
        slots.append(_guarded_slot(slot, function))
    return tuple(slots)


def _guarded_slot(slot: Slot, function: AluFunction) -> OperandSlot:
    found = _slot_of(slot.guard, slot.value, function, None)
    is_immediate = isinstance(found.operand0, Constant)
    if is_immediate != (slot.slot == "imm"):
        raise RuleViolation(
            "TAG-008",
            f"{found.operand0} cannot fill an {slot.slot} slot",
            expected="imm: a constant; rf: a register tensor or Stash",
            got=slot.to_json(),
        )
    return found


def _slot_of(guard: TagGuard, operand: Operand, function: AluFunction, op: Op | None) -> OperandSlot:
    name = op.NAME if op else function.name
    if function.arity == 3:
        if not isinstance(operand, TernaryOperand):
            raise RuleViolation("VE-036", f"{name} needs both operands", expected="(operand0, operand1)", got=str(operand))
        if not isinstance(operand.operand1, Constant):
            raise RuleViolation("VE-030", f"operand1 of {name} is an f32 constant", expected="a constant", got=str(operand.operand1))
        if isinstance(operand.operand0, Constant | VrfOperand | StashOperand):
            return OperandSlot(guard, operand.operand0, operand.operand1)
    elif isinstance(operand, Constant | VrfOperand | StashOperand):
        return OperandSlot(guard, operand)
    raise RuleViolation("VE-030", f"{name} takes a constant, a register tensor or Stash", got=str(operand))


def _check_constants(slot: OperandSlot, function: AluFunction, dtype: DType, op: Op) -> None:
    for value in (slot.operand0, slot.operand1):
        if not isinstance(value, Constant):
            continue
        if isinstance(value.value, float) != dtype.is_float:
            raise RuleViolation(
                "VE-030", f"a constant has the element type of the stream, {dtype}", expected=f"an {dtype} constant", got=value.value
            )
        if dtype == I32 and not _I32_RANGE.min <= value.value <= _I32_RANGE.max:
            raise RuleViolation(
                "VE-030", f"{value.value} is no i32 value", expected=f"{_I32_RANGE.min} to {_I32_RANGE.max}", got=value.value
            )
        if function.is_shift and _is_count(op) and value.value not in _SHIFT_COUNTS:
            raise RuleViolation(
                "ALU-022", f"shift counts are defined for 0 to 31, not for {value.value}", expected="0 to 31", got=value.value
            )


def _is_count(op: Op) -> bool:
    """Whether the operand of a shift fills its second slot, the count; in Mode10 and Mode00 it does not (VE-035)."""
    return argument_mode(BINARY_MODES, getattr(op, "mode", None), DEFAULT_BINARY_MODE, "VE-035")[1] == "operand"


def _read_register(operand: VrfOperand, stream: StreamType, state: VectorState, env: ChainEnv) -> VectorState:
    tensor = env.operands.get(operand.name)
    if tensor is None:
        raise InputError(f"there is no register tensor {operand.name!r}", hint=f"known: {', '.join(env.operands) or 'none'}")
    if tensor.tier != "Vrf":
        raise RuleViolation(
            "VE-030", f"{operand.name} lies in {tensor.tier}", expected="a tensor in the VRF", got=tensor.tier, also=("TU-006",)
        )
    if tensor.dtype != stream.dtype:
        raise RuleViolation(
            "VE-030", f"{operand.name} holds {tensor.dtype}, the stream {stream.dtype}", expected=str(stream.dtype), got=str(tensor.dtype)
        )
    _check_partition(operand.name, tensor, stream)
    check_register_access(operand.name, tensor.element, stream.time, stream.packet)
    registers = dict(state.registers)
    registers[operand.name] = tensor.element_bytes
    state = replace(state, registers=tuple(registers.items()))
    require_register_room(state, env)
    return state


def _check_partition(name: str, tensor: TensorType, stream: StreamType) -> None:
    for level in ("chip", "cluster", "slice"):
        held, read = getattr(tensor, level), getattr(stream, level)
        if not held.equivalent(read):
            raise RuleViolation(
                "VE-031",
                f"{name} is spread over {level} as {held}, the stream as {read}",
                expected=str(read),
                got=str(held),
                nearest=f"reshape {name} to {level} = {read}",
                also=("KERNEL-043", "VRF-007"),
            )


def require_register_room(state: VectorState, env: ChainEnv) -> None:
    """All register operands of a call share the register file, with the stash if one is taken.

    Raises:
        RuleViolation: VE-034 over the file's size, STASH-007 over what the stash leaves.
    """
    used = sum(size for _, size in state.registers)
    names = ", ".join(name for name, _ in state.registers)
    if used > env.hw.vrf_bytes_per_slice:
        raise RuleViolation(
            "VE-034",
            f"{names} take {used} bytes a slice",
            expected=f"at most {env.hw.vrf_bytes_per_slice} bytes",
            got=used,
            also=("HW-005", "MAP-033", "VRF-004"),
        )
    room = operand_room_bytes(env.hw.vrf_bytes_per_slice, env.hw.vrf_stash_bytes_per_slice if state.stash else 0)
    if used > room:
        message = f"{names} take {used} bytes a slice beside the stash"
        raise RuleViolation("STASH-007", message, expected=f"at most {room} bytes", got=used, also=("VRF-004",))


def operand_room_bytes(register_file_bytes: int, reserved_bytes: int) -> int:
    """Bytes a slice that register operands may take (STASH-007)."""
    return register_file_bytes - reserved_bytes


def _read_stash(stream: StreamType, state: VectorState) -> VectorState:
    if state.pair:
        raise RuleViolation("PAIR-011", "a pair has no stash", got="Stash", also=("PAIR-006", "STASH-004", "STASH-008"))
    stash = state.stash
    if stash is None or stash.was_read:
        what = "was not written" if stash is None else "was read before"
        raise RuleViolation(
            "STASH-004",
            f"the stash {what}",
            expected="one vector_stash, then one read",
            nearest="a register tensor is read any number of times" if stash else None,
        )
    _check_stash_type(stash, stream, state)
    return replace(state, stash=replace(stash, was_read=True))


def _check_stash_type(stash: StashState, stream: StreamType, state: VectorState) -> None:
    if stash.stream.dtype != stream.dtype:
        raise RuleViolation(
            "STASH-005",
            f"the stash holds {stash.stream.dtype}, the stream {stream.dtype}",
            expected=str(stash.stream.dtype),
            got=str(stream.dtype),
        )
    if stash.way != state.way:
        raise RuleViolation(
            "STASH-006",
            f"the stash was written in {stash.way}-way and is read in {state.way}-way",
            expected=f"{stash.way}-way",
            got=f"{state.way}-way",
        )


# --- values -----------------------------------------------------------------------------------------------------------


def constant_value(constant: Constant, dtype: DType) -> npt.NDArray[np.generic]:
    """The constant as a zero-dimensional array of the stream's element type."""
    with np.errstate(over="ignore"):
        return np.asarray(constant.value, dtype=np.int32 if dtype == I32 else np.float32)


def operand_values(
    operand: Operand, stream: StreamType, env: ChainEnv, registers: Dict[str, Values], stash: StashState | None, held: Values | None
) -> Values:
    """What every element of `stream` sees as this operand; constants have zero dimensions.

    Args:
        registers: contents of the register tensors.
        stash, held: where the snapshot was taken, and its contents.
    """
    if isinstance(operand, Constant):
        return Values(constant_value(operand, stream.dtype), np.asarray(True))
    if isinstance(operand, VrfOperand):
        return _gathered(env.operands[operand.name], stream, registers[operand.name])
    if stash is None or held is None:
        raise ValueError("the stash is read before it is written")
    return _gathered(stash.stream, stream, held)


def _gathered(source: TensorType | StreamType, stream: StreamType, values: Values) -> Values:
    index, live = gather_within_slice(source, replace(stream, details=None))
    return Values(values.data.reshape(-1)[index], values.defined.reshape(-1)[index] & live)


def evaluate(function: AluFunction, arguments: list[Values]) -> Values:
    """The function of its arguments; a result is defined where all arguments are, and a shift count lies in range."""
    data = function.compute(*np.broadcast_arrays(*(a.data for a in arguments)))
    defined = np.array(np.broadcast_to(True, data.shape))
    for argument in arguments:
        defined &= argument.defined
    if function.is_shift:
        defined &= shift_count_is_defined(arguments[1].data)
    return Values(data, defined)


def admitted(guard: TagGuard, tags: npt.NDArray[np.uint8] | None) -> npt.NDArray[np.bool_]:
    """Where the guard lets an element pass; without tags every element has tag 0."""
    table = np.array([guard.admits(tag) for tag in range(1 << TAG_BITS)])
    return np.asarray(table[0]) if tags is None else table[tags]

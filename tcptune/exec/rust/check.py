"""Checks a kernel that was read from Rust: a broken rule is reported at the call that breaks it, annotations must agree with the values."""

from __future__ import annotations

from collections.abc import Iterator

from tcptune.errors import InputError, RuleViolation
from tcptune.exec.program.check import check_kernel
from tcptune.exec.program.checked import CheckedKernel, CheckedStep
from tcptune.exec.program.locate import StepPath, failing_place
from tcptune.exec.rust.emit import Annotation
from tcptune.exec.rust.reader import RustKernel
from tcptune.exec.rust.syntax.source import LocatedViolation, RustError
from tcptune.exec.scheduling.impose import SourceLines
from tcptune.ir.types import TensorType
from tcptune.model.hardware import RNGD, Hardware


def check_rust(rust: RustKernel, hw: Hardware = RNGD) -> CheckedKernel:
    """The checked kernel of a Rust file.

    Raises:
        LocatedViolation: a rule of the machine is broken, at this line and column.
        RustError: RUST-009, a stated type disagrees with the value's.
    """
    try:
        checked = check_kernel(rust.kernel, hw)
    except (RuleViolation, InputError) as cause:
        raise _located(rust, cause, hw) from cause
    types = _types(checked.steps)
    for annotation in rust.annotations:
        _require_agreement(rust, annotation, types[annotation.tensor])
    return checked


def statement_lines(rust: RustKernel, checked: CheckedKernel) -> dict[str, SourceLines]:
    """Where the statement of every step stands, by the name that the step binds or writes; names are unique."""
    return dict(_statement_lines(rust, checked.steps, ()))


def _statement_lines(rust: RustKernel, steps: tuple[CheckedStep, ...], path: StepPath) -> Iterator[tuple[str, SourceLines]]:
    for number, checked in enumerate(steps):
        yield from _statement_lines(rust, checked.body, (*path, number))
        span, bound = rust.spans.get((*path, number)), checked.target or checked.result
        if span is not None and bound is not None:
            yield bound.name, SourceLines(span.place.path, span.statement_line, span.last_line)


def _located(rust: RustKernel, cause: RuleViolation | InputError, hw: Hardware) -> RuleViolation | InputError:
    """`cause` with the place of the step, and of the operation in its chain, that raises it."""
    offset = _failing_offset(rust, hw)
    if isinstance(cause, RuleViolation):
        return LocatedViolation(rust.source, offset, cause)
    return RustError(rust.source, offset, "RUST-006", cause.message, hint=cause.hint)


def _failing_offset(rust: RustKernel, hw: Hardware) -> int:
    """Byte offset of the first parameter or call that a fresh checker refuses; 0 where the result is at fault."""
    place = failing_place(rust.kernel, hw)
    if place.input:
        return rust.parameters.get(place.input, 0)
    if place.path is None:
        return 0
    span = rust.spans[place.path]
    return span.op_offsets[place.op] if place.op is not None and span.op_offsets else span.offset


def _types(steps: tuple[CheckedStep, ...]) -> dict[str, TensorType]:
    """Type of every tensor that a step makes."""
    found: dict[str, TensorType] = {}
    for step in steps:
        if step.result is not None:
            found[step.result.name] = step.result.type
        found |= _types(step.body)
    return found


def _require_agreement(rust: RustKernel, annotation: Annotation, actual: TensorType) -> None:
    """The stated type must be the value's, mapping by mapping up to equivalence (RUST-009)."""
    hint = annotation.hint
    if hint.tier != actual.tier:
        raise _disagrees(rust, annotation, "tensor", f"{hint.tier}Tensor", f"{actual.tier}Tensor")
    if hint.dtype is not None and hint.dtype != actual.dtype:
        raise _disagrees(rust, annotation, "element type", hint.dtype, actual.dtype)
    for level, stated in hint.levels.items():
        mapping = getattr(actual, level)
        if stated is not None and not stated.equivalent(mapping):
            raise _disagrees(rust, annotation, level.capitalize(), f"m![{stated}]", f"m![{mapping}]")


def _disagrees(rust: RustKernel, annotation: Annotation, what: str, stated: object, actual: object) -> RustError:
    message = f"the annotation says {what} {stated}, the value has {actual}"
    return rust.source.error(annotation.offset, "RUST-009", message, hint="correct the annotation")

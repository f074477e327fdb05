"""Functions on Tensor Unit streams, as the manual writes its examples of single engines: read and checked as a chain.

Such a function takes a stream at some position of the unit (``CollectTensor<'l, T, …>``), register or DM tensors, perhaps the device, and
returns what its chain makes. It is no kernel: nothing says how the stream came to be. Its operations are checked from the stated type on,
and the type that it declares to return must be the one it makes.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from tcptune.errors import InputError, RuleViolation
from tcptune.exec.program.check import Checker
from tcptune.exec.program.checked import Bound
from tcptune.exec.rust.emit import Emitter
from tcptune.exec.rust.expressions import evaluate
from tcptune.exec.rust.frame import Frame
from tcptune.exec.rust.functions import Parameter, parameters_of
from tcptune.exec.rust.statements import read_block
from tcptune.exec.rust.syntax.items import read_module
from tcptune.exec.rust.syntax.module import Function, Module
from tcptune.exec.rust.syntax.source import LocatedViolation, ModuleFile, RustError, Source
from tcptune.exec.rust.syntax.types import TensorHint, TypeReader
from tcptune.exec.rust.values import Device, Stream, Tensor
from tcptune.ir.kernels.kernel import Kernel
from tcptune.ir.kernels.steps import KernelStep, TensorUnit
from tcptune.ir.mappings.mapping import pair
from tcptune.ir.types import StreamType, TensorType
from tcptune.model.engines.vector.state import (
    CHAIN_POSITION,
    FILTER,
    INTER_FIRST,
    INTRA_FIRST,
    NARROW,
    REDUCER,
    WIDEN,
    VectorState,
    stage_named,
)
from tcptune.model.hardware import RNGD, Hardware
from tcptune.model.pipeline import Chain

VECTOR_STAGES = {
    "VectorLogic": "Logic",
    "VectorFxp": "Fxp",
    "VectorNarrow": NARROW,
    "VectorFp": "Float",
    "VectorIntraSliceReduce": "IntraSliceReduce",
    "VectorFpDiv": "FpDiv",
    "VectorWiden": WIDEN,
    "VectorClip": "Clip",
    "VectorFilter": FILTER,
    "VectorInterSliceReduce": REDUCER,
}
"""Stage of the Vector Engine's chain by the name of the stream's type."""


@dataclass(frozen=True)
class StreamFunction:
    """A checked function on streams.

    Attributes:
        chains: its passes in order; the last one may end in a stream.
    """

    name: str
    chains: tuple[Chain, ...]


class _StreamChecker(Checker):
    """A checker that knows the streams a function is given."""

    def __init__(self, kernel: Kernel, streams: dict[str, StreamType], hw: Hardware) -> None:
        super().__init__(kernel, hw)
        self.streams = streams

    def begin(self, step: TensorUnit) -> tuple[tuple[Bound, ...], StreamType]:
        given = self.streams.get(step.begin) if isinstance(step.begin, str) else None
        if given is None:
            return super().begin(step)
        element = pair(given.time, given.packet)
        memory = TensorType("Dm", given.dtype, element, given.chip, given.cluster, given.slice)
        return (Bound(str(step.begin), memory, str(step.begin)),), given


def stream_functions(
    text: str, *, function: str | None = None, path: str = "kernel.rs", modules: tuple[ModuleFile, ...] = (), hw: Hardware = RNGD
) -> tuple[StreamFunction, ...]:
    """The functions on streams of a Rust file, checked: the one called `function`, or all of a file that has no device function.

    Raises:
        RustError: the text is not Rust or not of the subset, or a function does not return what it declares (RUST-009).
        LocatedViolation: a chain breaks a rule.
    """
    source = Source(text, path, modules=modules)
    module = read_module(source)
    functions = list(module.functions.values())
    if function is None and any(f.chips is not None for f in functions):
        return ()
    named = [f for f in functions if f.chips is None and (source.is_own(f.node) if function is None else f.name == function)]
    found = [f for f in named if _is_on_streams(module, f)]
    try:
        return tuple(_checked(module, f, hw) for f in found)
    except RecursionError as cause:
        raise source.error(0, "RUST-008", "expressions nest too deeply to be read") from cause


def _is_on_streams(module: Module, function: Function) -> bool:
    """Whether a function takes or returns a stream whose type is written in full; helpers over type parameters are read where called."""
    declared = function.node.child_by_field_name("type_parameters")
    if declared is not None and any(c.type in ("type_parameter", "constrained_type_parameter") for c in declared.named_children):
        return False
    frame = Frame(module, TypeReader(module), Emitter(module.source), evaluate)
    node = function.node.child_by_field_name("return_type")
    hints = [p.hint(frame.types) for p in parameters_of(frame, function)]
    hints.append(frame.types.tensor(node) if node is not None else None)
    return any(hint is not None and hint.is_stream for hint in hints)


def _checked(module: Module, function: Function, hw: Hardware) -> StreamFunction:
    emitter = Emitter(module.source)
    frame = Frame(module, TypeReader(module), emitter, evaluate)
    streams: dict[str, StreamType] = {}
    tensors: list[tuple[Parameter, TensorType]] = []
    for parameter in parameters_of(frame, function):
        _bind(frame, parameter, streams, tensors)
    body, returns = (function.node.child_by_field_name(field) for field in ("body", "return_type"))
    if body is None:
        raise module.source.error(function.node, "RUST-008", f"function {function.name} has no body")
    declared = frame.types.tensor(returns) if returns is not None else None
    result = read_block(frame, body, None, declared)
    chips = max([*(s.chip.size for s in streams.values()), *(t.chip.size for _, t in tensors)], default=1)
    checker = _StreamChecker(Kernel(function.name, module.axes, (), (), (), chips), streams, hw)
    for parameter, type_ in tensors:
        with module.source.at(parameter.node):
            checker.add_input(parameter.name, type_)
    chains = [chain for step in enumerate(emitter.steps()) if (chain := _step(checker, emitter, *step)) is not None]
    if isinstance(result, Stream):
        chains.append(_prefix(checker, module.source, result))
    if declared is not None and returns is not None and chains:
        _require_declared(module.source, returns.start_byte, declared, chains[-1].final)
    return StreamFunction(function.name, tuple(chains))


def _bind(frame: Frame, parameter: Parameter, streams: dict[str, StreamType], tensors: list[tuple[Parameter, TensorType]]) -> None:
    """Binds a parameter as the device, a stream or a tensor."""
    hint = parameter.hint(frame.types)
    stream, tensor = (hint.stream(), hint.complete()) if hint is not None else (None, None)
    if parameter.is_device:
        frame.declare(parameter.name, Device())
    elif hint is not None and stream is not None:
        name = frame.emitter.fresh(parameter.name)
        streams[name] = _inside(stream, INTER_FIRST if INTER_FIRST in parameter.text else INTRA_FIRST)
        source = Tensor(name, "Dm", stream.dtype, dict(hint.levels))
        frame.declare(parameter.name, Stream(hint.context, name, source, (), stream.dtype))
    elif hint is not None and tensor is not None:
        frame.emitter.fresh(parameter.name)
        tensors.append((parameter, tensor))
        frame.declare(parameter.name, Tensor.of(parameter.name, hint))
    else:
        raise frame.source.error(
            parameter.node, "RUST-010", f"the parameter {parameter.name!r} is no stream or tensor type written in full"
        )


def _step(checker: _StreamChecker, emitter: Emitter, index: int, step: KernelStep) -> Chain | None:
    """A step of the body; a broken rule is reported at the call that breaks it."""
    span = emitter.spans[(index,)]
    try:
        return checker.step(step).chain
    except (RuleViolation, InputError) as cause:
        offset = span.offset
        if isinstance(step, TensorUnit) and span.op_offsets:
            offset = span.op_offsets[_failing(checker, step)]
        raise _located(emitter.source, offset, cause) from cause


def _prefix(checker: _StreamChecker, source: Source, stream: Stream) -> Chain:
    """The chain of a stream that is returned."""
    unit = TensorUnit(stream.context, stream.begin, stream.ops)
    try:
        return checker.check_prefix(unit)
    except (RuleViolation, InputError) as cause:
        raise _located(source, stream.offsets[_failing(checker, unit)], cause) from cause


def _failing(checker: _StreamChecker, unit: TensorUnit) -> int:
    """Index of the first operation that is refused."""
    for count in range(1, len(unit.ops)):
        try:
            checker.check_prefix(TensorUnit(unit.context, unit.begin, unit.ops[:count]))
        except (RuleViolation, InputError):
            return count - 1
    return len(unit.ops) - 1


def _located(source: Source, offset: int, cause: RuleViolation | InputError) -> RuleViolation | InputError:
    if isinstance(cause, RuleViolation):
        return LocatedViolation(source, offset, cause)
    return RustError(source, offset, "RUST-006", cause.message, hint=cause.hint)


def _require_declared(source: Source, offset: int, declared: TensorHint, final: StreamType | TensorType) -> None:
    """The declared result must be what the chain makes: position or tier, element type and every level (RUST-009)."""
    made = _position(final) if isinstance(final, StreamType) else final.tier
    if declared.tier != made and not (
        made.startswith("Vector") and declared.tier not in VECTOR_STAGES and declared.tier.startswith("Vector")
    ):
        raise _disagrees(source, offset, "type", f"{declared.tier}Tensor", f"{made}Tensor")
    if declared.dtype is not None and declared.dtype != final.dtype:
        raise _disagrees(source, offset, "element type", declared.dtype, final.dtype)
    for level, stated in declared.levels.items():
        mapping = getattr(final, level)
        if stated is not None and not stated.equivalent(mapping):
            raise _disagrees(source, offset, level.capitalize(), f"m![{stated}]", f"m![{mapping}]")


def _position(stream: StreamType) -> str:
    """The position by the name of its type; inside the Vector Engine every stage has one of its own."""
    if not isinstance(stream.details, VectorState) or stream.position != CHAIN_POSITION:
        return stream.position
    return next((name for name, stage in VECTOR_STAGES.items() if stage == stream.details.stage), stream.position)


def _inside(stream: StreamType, order: str) -> StreamType:
    """A stream that a function is given inside the Vector Engine's chain, with the state that its type tells."""
    stage = VECTOR_STAGES.get(stream.position)
    if stage is None:
        return stream
    way = RNGD.vector_ways[0] if stage == REDUCER else stage_named(stage).way_out
    steps = stream.time.size
    state = VectorState(stage, way, order, stream, reduced=stage == REDUCER, flits=steps, steps=steps)
    return replace(stream, position=CHAIN_POSITION, details=state)


def _disagrees(source: Source, offset: int, what: str, stated: object, actual: object) -> RustError:
    return source.error(offset, "RUST-009", f"the function declares {what} {stated}, its chain makes {actual}", hint="correct the type")

"""Reads a Rust kernel file: `read_rust` gives the kernel with the place of every step, `read_kernel` the kernel alone."""

from __future__ import annotations

import json
from collections.abc import Mapping as Dict
from dataclasses import dataclass
from pathlib import Path

from tcptune.errors import InputError
from tcptune.exec.rust.emit import Annotation, Emitter, Span, StepPath
from tcptune.exec.rust.expressions import evaluate
from tcptune.exec.rust.frame import Frame
from tcptune.exec.rust.functions import Parameter, is_runtime_integer, parameters_of, returned, runtime_integer
from tcptune.exec.rust.module_files import module_files
from tcptune.exec.rust.statements import read_block
from tcptune.exec.rust.syntax.items import read_module
from tcptune.exec.rust.syntax.module import Function, Module
from tcptune.exec.rust.syntax.source import ModuleFile, Source
from tcptune.exec.rust.syntax.types import TypeReader
from tcptune.exec.rust.values import Device, Pending, Tensor, Tuple, Value
from tcptune.ir.files import read_text
from tcptune.ir.kernels.kernel import Kernel, KernelInput, Tolerance

SUFFIX = "_kernel"
"""Ending that the starter's naming adds to a device function; the kernel's name goes without it."""


@dataclass(frozen=True)
class RustKernel:
    """A kernel read from Rust text.

    Attributes:
        kernel: its steps; not checked yet.
        spans: the statement behind every step, by the step's path.
        annotations: types the text states although they follow from the values.
        parameters: byte offset of every input's parameter.
        source: the text, for errors.
    """

    kernel: Kernel
    spans: Dict[StepPath, Span]
    annotations: tuple[Annotation, ...]
    parameters: Dict[str, int]
    source: Source


def read_kernel(text: str, *, function: str | None = None, path: str = "kernel.rs") -> Kernel:
    """The kernel that a Rust file describes; see `read_rust`."""
    return read_rust(text, function=function, path=path).kernel


def read_rust_file(path: Path, function: str | None = None) -> RustKernel:
    """Reads the device function of a Rust file with the files of the modules that it names; see `read_rust`.

    Raises:
        InputError: a file cannot be read.
    """
    text = read_text(path)
    return read_rust(text, function=function, path=str(path), modules=module_files(path, text))


def read_rust(text: str, *, function: str | None = None, path: str = "kernel.rs", modules: tuple[ModuleFile, ...] = ()) -> RustKernel:
    """Reads the device function of a Rust file (the one called `function` where it has several).

    Raises:
        RustError: the text is not Rust, or not of the subset; with line, column and rule.
        LocatedViolation: a mapping breaks a rule.
    """
    source = Source(text, path, modules=modules)
    try:
        return _read(source, function)
    except RecursionError as cause:
        raise source.error(0, "RUST-008", "expressions nest too deeply to be read") from cause


def _read(source: Source, function: str | None) -> RustKernel:
    module = read_module(source)
    device = module.device_function(function)
    emitter = Emitter(source)
    frame = Frame(module, TypeReader(module), emitter, evaluate)
    inputs = _inputs(frame, device)
    body = device.node.child_by_field_name("body")
    if body is None:
        raise source.error(device.node, "RUST-008", f"function {device.name} has no body")
    result = read_block(frame, body, None, returned(device, frame.types))
    steps = emitter.steps()
    kernel = Kernel(
        module.notes.get(("kernel", ""), device.name.removesuffix(SUFFIX)),
        module.axes,
        inputs,
        steps,
        _outputs(frame, device, result),
        device.chips or _chips(inputs),
        module.notes.get(("oracle", "")),
        _tolerance(module),
    )
    parameters = {p.name: p.node.start_byte for p in parameters_of(frame, device)}
    return RustKernel(kernel, emitter.spans, tuple(emitter.annotations), parameters, source)


def _chips(inputs: tuple[KernelInput, ...]) -> int:
    """Chips of a function without the attribute: as many as the tensors that it is called with lie on."""
    return max((entry.type.chip.size for entry in inputs if entry.type.tier != "Host"), default=1)


def _inputs(frame: Frame, device: Function) -> tuple[KernelInput, ...]:
    """The tensors that the device function is called with; the device itself is no input."""
    parameters = parameters_of(frame, device)
    if not parameters or not parameters[0].is_device:
        raise frame.source.error(device.node, "RUST-010", f"the first parameter of {device.name} is the device", hint="device: &mut Device")
    frame.declare(parameters[0].name, Device())
    inputs: list[KernelInput] = []
    for parameter in parameters[1:]:
        if is_runtime_integer(parameter):
            frame.declare(parameter.name, runtime_integer(parameter))
            continue
        inputs.append(_input(frame, parameter))
    return tuple(inputs)


def _input(frame: Frame, parameter: Parameter) -> KernelInput:
    hint = parameter.hint(frame.types)
    known = hint.complete() if hint is not None else None
    if hint is None or known is None or hint.tier in ("Trf", "Vrf"):
        raise frame.source.error(
            parameter.node,
            "RUST-010",
            f"the parameter {parameter.name!r} is no tensor type written in full",
            hint="&HbmTensor<D, Chip, Element>",
        )
    name = frame.emitter.fresh(parameter.name)
    frame.declare(parameter.name, Tensor.of(name, hint))
    notes = frame.module.notes
    values = notes.get(("values", parameter.name))
    with frame.source.at(parameter.node):
        contents = None if values is None else _values(frame, parameter, values)
        return KernelInput(name, known, notes.get(("fill", parameter.name)), contents, notes.get(("init", parameter.name)))


def _values(frame: Frame, parameter: Parameter, text: str) -> tuple[float, ...]:
    try:
        values = json.loads(text)
    except ValueError:
        values = None
    if not isinstance(values, list) or not all(isinstance(v, int | float) and not isinstance(v, bool) for v in values):
        raise frame.source.error(
            0, "RUST-006", f"the values of {parameter.name} are a list of numbers", hint="//! tcptune values a: [1, 2]"
        )
    return tuple(values)


def _outputs(frame: Frame, device: Function, result: Value) -> tuple[str, ...]:
    """The tensors that the function returns; without a return value, those it is given to write."""
    items = result.items if isinstance(result, Tuple) else (result,)
    names = [item.name for item in items if isinstance(item, Tensor | Pending)]
    if result is None:
        written = [p for p in parameters_of(frame, device) if p.is_mutable and not p.is_device]
        names = [v.name for p in written if isinstance(v := frame.variables.get(p.name), Tensor)]
    if not names or (result is not None and len(names) != len(items)):
        raise frame.source.error(
            device.node,
            "RUST-010",
            f"{device.name} returns no tensor",
            hint="end the function with the result, for instance x.to_hbm(&mut device.tdma)",
        )
    return tuple(names)


def _tolerance(module: Module) -> Tolerance | None:
    """The header line ``//! tcptune tolerance: form=max rel=0.05 abs=1.0``."""
    text = module.notes.get(("tolerance", ""))
    if text is None:
        return None
    parts = dict(part.split("=", 1) for part in text.split() if "=" in part)
    try:
        return Tolerance.from_json({"form": parts.get("form", "sum"), "rel": float(parts.get("rel", 0)), "abs": float(parts.get("abs", 0))})
    except (ValueError, InputError) as cause:
        raise module.source.error(
            0, "RUST-006", f"cannot read the tolerance {text!r}", hint="//! tcptune tolerance: form=max rel=0.05 abs=1.0"
        ) from cause

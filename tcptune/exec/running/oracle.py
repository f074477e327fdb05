"""Oracles: what a kernel should compute, how far its result may be off, and the runs that compare both (ORACLE-001 to ORACLE-012).

The text of an oracle::

    oracle   = form {";" form}                         one form for each result, in order; results without a form are not compared
    form     = "einsum" [names] subscripts {"|" epilogue}      ``einsum ik,jk->ij | bias:c(j) | relu``; a label is an axis in lower case
             | "max(einsum" [names] subscripts ", 0)"          the same with ReLU
             | "maximum" [names] axes "->" axes {"|" epilogue} the largest over the axes that the result lacks
             | "permute" [names] axes "->" axes                the same values under other axes
             | "formula" name                                  a function of `exec.running.formulas`
    names    = "(" input {"," input} ")"               inputs that the labels are of; the first ones of the kernel if absent
    epilogue = "relu" | "gelu" | "silu" | "add" number | "mul" number | ("bias" | "residual") ":" input "(" axes ")"

Anything else is prose and no oracle. References are computed in float64 (integers exactly, modulo 2^32); results are rounded by the device
alone. The bound of a contraction in f32 with a bf16 result is ``|err| <= 2^-8 |ref| + K 2^-24 sum |a b|``; a kernel's own tolerance may
be wider, but not of integers that are computed from integers: these are compared exactly.
"""

from __future__ import annotations

import re
from collections.abc import Mapping as Dict
from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import numpy as np
import numpy.typing as npt

from tcptune.errors import InputError
from tcptune.exec.program.checked import CheckedKernel, CheckedStep
from tcptune.exec.running import formulas
from tcptune.exec.running.differences import FailingCell, allowance, in_force, within
from tcptune.exec.running.fill import PATTERNS, SEED, cells_of, drawn_inputs
from tcptune.exec.running.interpret import RunResult, run_kernel
from tcptune.exec.running.verification import ClosestCell, OracleReport, OracleRun, Verification
from tcptune.ir.kernels.kernel import Kernel, KernelInput, Tolerance
from tcptune.ir.kernels.ops import ContractOuter
from tcptune.ir.mappings.cells import CellTable
from tcptune.ir.types import StreamType, TensorType
from tcptune.model.engines.contraction.values import Mode
from tcptune.model.numerics.elements import encode_host
from tcptune.model.values import Values

Floats = npt.NDArray[np.float64]

ACCUMULATION_EPSILON = 2.0**-24  # half a unit in the last place of f32
EXACT_PRODUCTS = 1 << 27
"""Contractions with more multiplications are computed by matrix products: within the bound, not bit for bit."""

FLUSHED = 2.0**-126
"""Subnormals of f32 may become zero on the way (f32 to bf16 does so)."""

GATE_EPSILON = 2.0**-22
"""Error of a gate near 0, in f32: a sum of numbers of size 1 (GeLU, SiLU)."""

GATE_SLOPE, GATED_EPSILON = 1.13, 2.0**-16
"""Steepest slope of GeLU and SiLU, and their relative error in f32: a chain of transcendental functions and products."""

RESULT_EPSILON = {"bf16": 2.0**-8, "f32": 2.0**-23, "f8e4m3": 2.0**-3, "f8e5m2": 2.0**-2}

_NAMES = r"(?:\((?P<names>[\w, ]*)\))?"
_EINSUM = re.compile(r"(?P<relu>max\()?\s*einsum" + _NAMES + r"\s+(?P<labels>[A-Za-z ,]*->\s*[A-Za-z]*)(?:,\s*0\))?(?P<rest>.*)", re.DOTALL)
_MAXIMUM = re.compile(r"maximum" + _NAMES + r"\s+(?P<labels>[A-Za-z ]*->\s*[A-Za-z]*)(?P<rest>.*)", re.DOTALL)
_PERMUTE = re.compile(r"permute" + _NAMES + r"\s+(?P<labels>[a-z]+\s*->\s*[a-z]+)")
_FORMULA = re.compile(r"formula\s+(?P<formula>\w+)\s*$")
_OPERAND = re.compile(r"(bias|residual)\s*:\s*(\w+)\s*\(\s*([a-z]*)\s*\)$")
_CONSTANT = re.compile(r"(add|mul)\s+([-+]?[0-9]+(?:\.[0-9]*)?(?:[eE][-+]?[0-9]+)?)$")


def axes_of(type_: TensorType) -> tuple[str, ...]:
    """Axes of a tensor in order of first mention, outermost level first."""
    return tuple(dict.fromkeys(a for _, m in type_.levels for a in m.axes))


@dataclass(frozen=True)
class Reference:
    """Expected values over the axes of the result, and how far the device may be off by its arithmetic alone.

    `integer`: computed in integers throughout, so that an integer result equals them; the bound then holds for a float result only.
    """

    values: Floats
    bound: Floats
    integer: bool = False


def has_oracle(kernel: Kernel) -> bool:
    """Whether the kernel's oracle is one of the forms that are computed."""
    return bool(_forms(kernel))


def _forms(kernel: Kernel) -> list[tuple[str, re.Match[str]]]:
    """Forms of the oracle, one for each of the first results; none if it is prose.

    Raises:
        InputError: there are more forms than results.
    """
    text = kernel.oracle or ""
    parts = [_parse(part) for part in text.split(";")]
    forms = [part for part in parts if part is not None]
    if len(forms) < len(parts):  # words after a semicolon are a remark
        forms = forms[:1] if parts[0] is not None else []
    if len(forms) > len(kernel.outputs):
        raise InputError(f"the oracle has {len(forms)} forms, kernel {kernel.name!r} {len(kernel.outputs)} results")
    return forms


def _parse(text: str) -> tuple[str, re.Match[str]] | None:
    for kind, form in (("einsum", _EINSUM), ("maximum", _MAXIMUM), ("permute", _PERMUTE), ("formula", _FORMULA)):
        found = form.match(text.strip())
        if found:
            return kind, found
    return None


def dense(type_: TensorType, values: Values, axes: Sequence[str]) -> Floats:
    """Contents over `axes` as float64 (integers are exact up to 2^53)."""
    cells = cells_of(type_)
    sizes = {a: n for _, m in type_.levels for a, n in m.axes.items()}
    result = np.zeros(tuple(sizes[a] for a in axes), dtype=np.float64)
    contents = values.data[cells.live][::-1].astype(np.float64)
    if not axes:  # one value, however often it is stored
        return np.asarray(contents[-1:].reshape(()), dtype=np.float64)
    result[tuple(cells.coords[a][cells.live][::-1] for a in axes)] = contents
    return result


def reference(kernel: Kernel, inputs: Dict[str, Values], result: int = 0) -> Reference:
    """What the kernel should compute from these inputs as its result number `result`.

    Raises:
        InputError: the oracle is no form that is computed, or names what the kernel has not.
    """
    forms = _forms(kernel)
    if result >= len(forms):
        raise InputError(f"kernel {kernel.name!r} has no oracle that can be computed", hint="einsum …, permute … or formula …")
    kind, found = forms[result]
    arrays = {i.name: dense(i.type, inputs[i.name], axes_of(i.type)) for i in kernel.inputs}
    if kind == "formula":
        answer = formulas.find(found["formula"])(arrays, kernel)
        values, bound = answer if isinstance(answer, tuple) else (answer, np.zeros_like(answer))
        whole = not any(i.type.dtype.is_float for i in kernel.inputs) and bool(np.all(values == np.rint(values)))
        return Reference(values, bound, whole)
    if kind == "permute":
        (entry,) = _operands(kernel, found, 1)
        before, after = found["labels"].replace(" ", "").split("->")
        axes = axes_of(entry.type)
        places = dict(zip(before, _order(before, axes), strict=True))
        if sorted(after) != sorted(before):
            raise InputError(f"the oracle permutes {before!r} into {after!r}", hint="the same labels, each once")
        values = np.transpose(arrays[entry.name], [places[c] for c in after])
        return Reference(values, np.zeros_like(values), not entry.type.dtype.is_float)
    return _einsum(kernel, arrays, found, largest=kind == "maximum")


def _operands(kernel: Kernel, found: re.Match[str], count: int) -> list[KernelInput]:
    """Inputs that the subscripts of a form are of."""
    inputs = {i.name: i for i in kernel.inputs}
    names = [n.strip() for n in found["names"].split(",")] if found["names"] is not None else list(inputs)[:count]
    for name in names:
        if name not in inputs:
            raise InputError(f"the oracle names no input {name!r}", hint=f"inputs: {', '.join(inputs)}")
    if len(names) != count:
        raise InputError(f"the oracle has {count} operands, the kernel {len(names)} inputs")
    return [inputs[name] for name in names]


def _letters(labels: str, axes: tuple[str, ...]) -> list[str]:
    """Axis of each label: the one of the same name in lower case, or the only one that begins with it."""
    found = []
    for label in labels:
        same = [a for a in axes if a.lower() == label.lower()] or [a for a in axes if a[:1].lower() == label.lower()]
        if len(same) != 1:
            raise InputError(f"the oracle's label {label!r} is no axis of the tensor", hint=f"axes: {', '.join(axes)}")
        found.append(same[0])
    return found


def _order(labels: str, axes: tuple[str, ...]) -> list[int]:
    """Places of the labelled axes of an operand, for a transposition into the order of the labels."""
    letters = _letters(labels, axes)
    if sorted(letters) != sorted(axes):
        raise InputError(f"the oracle's labels {labels!r} do not name every axis of the operand once", hint=f"axes: {', '.join(axes)}")
    return [axes.index(a) for a in letters]


def _einsum(kernel: Kernel, arrays: dict[str, Floats], found: re.Match[str], *, largest: bool = False) -> Reference:
    """Sum of products over the axes that the result lacks, or (`largest`) the maximum over them, then the epilogue."""
    inputs_text, output = found["labels"].replace(" ", "").lower().split("->")
    subscripts = inputs_text.split(",")
    entries = _operands(kernel, found, len(subscripts))
    operands = []
    for labels, entry in zip(subscripts, entries, strict=True):
        operands.append(np.transpose(arrays[entry.name], _order(labels, axes_of(entry.type))))
    sizes = _sizes(subscripts, operands)
    if len(set(output)) != len(output) or not set(output) <= set(sizes):
        raise InputError(f"the oracle's result {output!r} names an axis twice, or one that no input has", hint=f"axes: {', '.join(sizes)}")
    spec = f"{','.join(subscripts)}->{output}"
    integer = not any(e.type.dtype.is_float for e in entries)
    values = _exact_einsum(spec, operands) if integer else np.einsum(spec, *operands, optimize=True)
    summed = np.prod([n for c, n in sizes.items() if c not in output], dtype=np.float64)
    spread = np.einsum(spec, *[np.abs(o) for o in operands], optimize=True)
    if largest:
        gone = tuple(i for i, c in enumerate(subscripts[0]) if c not in output)
        left = [c for c in subscripts[0] if c in output]
        values = np.transpose(operands[0].max(axis=gone), [left.index(c) for c in output])
    bound = np.zeros_like(values) if integer or largest else float(summed) * ACCUMULATION_EPSILON * spread
    stages = [p.strip() for p in found["rest"].split("|")[1:]] + (["relu"] if not largest and found["relu"] else [])
    for stage in stages:
        if integer and not _stays_integer(stage, kernel):
            integer, bound = False, bound + ACCUMULATION_EPSILON * np.abs(values)
        values, bound = _epilogue(stage, values, bound, output, arrays, kernel, integer=integer)
    return Reference(values, bound, integer)


def _sizes(subscripts: list[str], operands: list[Floats]) -> dict[str, int]:
    """Size of each label.

    Raises:
        InputError: a label that stands for axes of several sizes.
    """
    sizes: dict[str, int] = {}
    for labels, operand in zip(subscripts, operands, strict=True):
        for label, size in zip(labels, operand.shape, strict=True):
            if sizes.setdefault(label, size) != size:
                raise InputError(f"the oracle's label {label!r} stands for axes of {sizes[label]} and {size} elements")
    return sizes


def _exact_einsum(spec: str, operands: list[Floats]) -> Floats:
    """Integer contraction modulo 2^32, as signed numbers."""
    return _wrapped(np.einsum(spec, *[o.astype(np.int64) for o in operands]))


def _wrapped(values: npt.NDArray[np.int64]) -> Floats:
    """Integers modulo 2^32, as signed ones."""
    return np.asarray((np.asarray(values) + 2**31) % 2**32 - 2**31, dtype=np.float64)


def _stays_integer(stage: str, kernel: Kernel) -> bool:
    """Whether a step takes integers to integers: no gate, no fraction, no float operand."""
    operand, constant = _OPERAND.match(stage), _CONSTANT.match(stage)
    if constant:
        number = float(constant.group(2))
        return number.is_integer() and abs(number) <= 2.0**31
    if operand:
        return not any(i.type.dtype.is_float for i in kernel.inputs if i.name == operand.group(2))
    return stage == "relu"


def _combined(kind: str, values: Floats, other: Floats, *, integer: bool) -> Floats:
    """Product (``mul``) or sum; of integers the low 32 bits (ALU-021, ALU-023), in 64 bits since float64 keeps 53 of a product."""
    operation = np.multiply if kind == "mul" else np.add
    if integer:
        return _wrapped(operation(values.astype(np.int64), other.astype(np.int64)))
    return np.asarray(operation(values, other))


def _epilogue(
    stage: str, values: Floats, bound: Floats, output: str, arrays: dict[str, Floats], kernel: Kernel, *, integer: bool
) -> tuple[Floats, Floats]:
    """One step after the contraction; the bound follows by the slope of the step."""
    operand, constant = _OPERAND.match(stage), _CONSTANT.match(stage)
    if stage == "relu":
        return np.maximum(values, 0), bound
    if stage in ("gelu", "silu"):
        inner = {"gelu": formulas.gelu, "silu": formulas.silu}[stage](values)
        return inner, GATE_SLOPE * bound + GATE_EPSILON * np.abs(values) + GATED_EPSILON * np.abs(inner)
    if constant:
        number = float(constant.group(2))
        scaled = _combined(constant.group(1), values, np.asarray(number), integer=integer)
        return scaled, bound * (1 if constant.group(1) == "add" else abs(number)) + ACCUMULATION_EPSILON * np.abs(scaled)
    if operand:
        _, name, labels = operand.groups()
        if name not in arrays:
            raise InputError(f"the oracle names no input {name!r}", hint=f"inputs: {', '.join(arrays)}")
        axes = axes_of(next(i.type for i in kernel.inputs if i.name == name))
        other = np.transpose(arrays[name], _order(labels, axes))
        if not set(labels) <= set(output) or any(values.shape[output.index(c)] != n for c, n in zip(labels, other.shape, strict=True)):
            raise InputError(f"the oracle's operand {name!r} over {labels!r} does not fit the result over {output!r}")
        index = tuple(slice(None) if c in labels else None for c in output)
        order = sorted(range(len(labels)), key=lambda i: output.index(labels[i]))
        total = _combined("add", values, np.transpose(other, order)[index], integer=integer)
        return total, bound + ACCUMULATION_EPSILON * np.abs(total)
    raise InputError(
        f"unknown epilogue {stage!r} in the oracle", hint="relu, gelu, silu, add N, mul N, bias:NAME(axes), residual:NAME(axes)"
    )


def compare_with_oracle(kernel: Kernel, inputs: Dict[str, Values], result: RunResult) -> OracleReport:
    """Compares the results of a run with the oracle; only live cells count (ORACLE-012).

    Raises:
        InputError: the kernel has no oracle that can be computed.
    """
    count = max(1, len(_forms(kernel)))
    found = [_compare_result(kernel, inputs, result, number) for number in range(count)]
    return OracleReport(
        sum(r.compared for r in found),
        sum(r.undefined for r in found),
        sum(r.wrong for r in found),
        next((r.worst for r in found if r.worst), ""),
        max(r.max_error for r in found),
        max(r.max_relative_error for r in found),
        kernel.outputs[count:],
        max(r.max_bound_share for r in found),
        next((r.cell for r in found if r.cell), None),
        max((r.closest for r in found if r.closest), key=lambda c: c.share, default=None),
        any(r.tolerance_ignored for r in found),
    )


def _compare_result(kernel: Kernel, inputs: Dict[str, Values], result: RunResult, number: int) -> OracleReport:
    """Compares one result with its form of the oracle."""
    name = kernel.outputs[number]
    type_, values = result.types[name], result.outputs[name]
    expected = reference(kernel, inputs, number)
    cells = cells_of(type_)
    live = cells.live
    axes, sizes = _result_axes(_forms(kernel)[number], type_), {a: n for _, m in type_.levels for a, n in m.axes.items()}
    if expected.values.ndim != len(axes) or any(n < sizes[a] for a, n in zip(axes, expected.values.shape, strict=True)):
        held = " x ".join(f"{a} = {sizes[a]}" for a in axes) or "one value"
        raise InputError(f"the oracle computes {expected.values.shape}, the result {name!r} holds {held}")
    at = tuple(cells.coords[a][live] for a in axes)
    got = values.data[live].astype(np.float64)
    want, bound = (np.broadcast_to(a[at], got.shape) for a in (expected.values, expected.bound))
    bound = bound + (RESULT_EPSILON.get(type_.dtype.name, 0.0) * np.abs(want) if np.any(expected.bound) else 0.0)
    if type_.dtype.is_float:
        bound = bound + FLUSHED
    elif expected.integer:
        bound = np.zeros_like(bound)
    want_stored = _stored(want, type_)
    exact_integers = expected.integer and not type_.dtype.is_float
    given = kernel.tolerance or Tolerance()
    tolerance = in_force(given, integers=exact_integers)
    fine = within(got, want, tolerance, bound) | (got == want_stored)
    undefined = int((~values.defined[live]).sum())
    wrong = np.flatnonzero(~fine & values.defined[live])
    worst, cell = "", None
    if wrong.size:
        cell = _cell(name, cells, got, want, int(wrong[int(np.argmax(np.abs(got[wrong] - want[wrong])))]))
        worst = str(cell)
    elif undefined:
        worst = str(result.undefined[0]) if result.undefined else "undefined cells"
    finite = np.isfinite(got) & np.isfinite(want)
    error, size, allowed = np.abs(got[finite] - want[finite]), np.abs(want[finite]), allowance(want, tolerance, bound)[finite]
    relative = error[size > 0] / size[size > 0]
    counted = np.flatnonzero((allowed > 0) & ((error <= allowed) | (got != want_stored)[finite]))
    closest = None
    if counted.size:
        nearest = int(counted[int(np.argmax(error[counted] / allowed[counted]))])
        closest = ClosestCell(_cell(name, cells, got, want, int(np.flatnonzero(finite)[nearest])), float(allowed[nearest]))
    share = 0.0 if closest is None else closest.share
    largest, largest_relative = (float(np.max(found, initial=0.0)) for found in (error, relative))
    return OracleReport(
        *(int(live.sum()), undefined, int(wrong.size), worst, largest, largest_relative),
        max_bound_share=share,
        cell=cell,
        closest=closest,
        tolerance_ignored=exact_integers and given.form != "exact" and max(given.rel, given.abs) > 0,
    )


def _cell(name: str, cells: CellTable, got: Floats, want: Floats, number: int) -> FailingCell:
    """The live cell of that number: its index on every axis, what was found and what is expected."""
    where = tuple((axis, int(cells.coords[axis][cells.live][number])) for axis in cells.coords)
    return FailingCell(name, where, float(got[number]), float(want[number]))


def _stored(want: Floats, type_: TensorType) -> Floats:
    """The reference after the one conversion that storing it takes: floats round and overflow or saturate, integers wrap."""
    if type_.dtype.is_float:
        with np.errstate(over="ignore"):
            return np.asarray(encode_host(want.astype(np.float32), type_.dtype), dtype=np.float64)
    span = 2.0**type_.dtype.bits
    return np.asarray((want + span / 2) % span - span / 2)


def _result_axes(form: tuple[str, re.Match[str]], type_: TensorType) -> list[str]:
    """Axes of the reference's dimensions, in its order."""
    kind, found = form
    axes = axes_of(type_)
    if kind == "formula":
        return list(axes)
    labels = found["labels"].replace(" ", "").lower().split("->")[-1]
    return _letters(labels, axes)


def most_products(steps: Sequence[CheckedStep]) -> int:
    """Multiplications of the largest contraction among these steps, over all slices."""
    largest = max((most_products(step.body) for step in steps if step.body), default=0)
    for step in steps:
        for stage in step.chain.steps if step.chain is not None else ():
            if isinstance(stage.op, ContractOuter) and isinstance(stage.after, StreamType):
                largest = max(largest, prod(stage.after.shape))
    return largest


def verify(
    checked: CheckedKernel, seeds: Sequence[int] = (SEED, SEED + 1, SEED + 2), patterns: Sequence[str] = tuple(PATTERNS)
) -> Verification:
    """Runs a kernel on seeded random draws and on adversarial inputs and compares each with its oracle."""
    plan = [("random", seed) for seed in seeds] + [(name, SEED) for name in patterns]
    mode: Mode = "fast" if most_products(checked.steps) > EXACT_PRODUCTS else "exact"
    runs = []
    for how, seed in plan:
        inputs = drawn_inputs(checked.kernel, how, seed)
        result = run_kernel(checked, inputs, mode)
        runs.append(OracleRun(how, seed, compare_with_oracle(checked.kernel, inputs, result)))
    return Verification(tuple(runs))

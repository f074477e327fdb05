"""The host oracle in Rust: the kernel's oracle as plain loops over flat buffers, with the error that the device's arithmetic may make.

Floats are summed in f64 and come with ``K 2^-24 sum |a b|``, as `exec.running.oracle` bounds them; integers wrap in i32.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

from tcptune.exec.running.oracle import ACCUMULATION_EPSILON, GATE_EPSILON, GATE_SLOPE, GATED_EPSILON, axes_of
from tcptune.ir.kernels.kernel import Kernel
from tcptune.ir.types import TensorType
from tcptune.reports.rust.layout import INDENT, MAX_WIDTH

_EINSUM = re.compile(
    r"(?P<relu>max\()?\s*einsum\s+(?P<inputs>[A-Za-z ,]*)->(?P<output>[A-Za-z ]*)(?:,\s*0\))?(?P<rest>(?:\|.*)?)\Z", re.DOTALL
)
_PERMUTE = re.compile(r"permute\s+(?P<inputs>[a-z]+)\s*->\s*(?P<output>[a-z]+)\s*\Z")
_CONSTANT = re.compile(r"(add|mul)\s+([-+0-9.eE]+)\Z")
_OPERAND = re.compile(r"(?:bias|residual)\s*:\s*(\w+)\s*\(\s*([a-z]*)\s*\)\Z")
_SMOOTH = {
    "silu": "sum = sum / (1.0 + (-sum).exp());",
    "gelu": "sum = 0.5 * sum * (1.0 + erf(sum / std::f64::consts::SQRT_2));",
}


def power_of_two(value: float, rust_type: str) -> str:
    """A power of two as Rust writes it legibly; other numbers as they are.

    >>> power_of_two(2.0**-24, "f64")
    '2f64.powi(-24)'
    """
    mantissa, exponent = math.frexp(value)
    return f"2{rust_type}.powi({exponent - 1})" if mantissa == 0.5 else repr(value)


_ACCUMULATION = power_of_two(ACCUMULATION_EPSILON, "f64")
_SMOOTH_EPSILON = power_of_two(GATED_EPSILON, "f64")
_GATE = power_of_two(GATE_EPSILON, "f64")

ERROR_FUNCTION = [
    "/// The error function to 1.5e-7 (Abramowitz and Stegun, 7.1.26).",
    "fn erf(x: f64) -> f64 {",
    "    let t = 1.0 / (1.0 + 0.3275911 * x.abs());",
    "    let coefficients = [",
    "        1.061405429,",
    "        -1.453152027,",
    "        1.421413741,",
    "        -0.284496736,",
    "        0.254829592,",
    "    ];",
    "    let series = coefficients.iter().fold(0.0, |sum, c| (sum + c) * t);",
    "    (1.0 - series * (-x * x).exp()).copysign(x)",
    "}",
]
"""Rust has no error function of its own."""


@dataclass(frozen=True)
class Stage:
    """One step after the sum: ``relu``, ``silu``, ``gelu``, ``add`` or ``mul`` a constant, or ``plus`` an input over some axes."""

    kind: str
    constant: float = 0.0
    operand: str = ""
    axes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Formula:
    """An oracle over the axes of a kernel.

    Attributes:
        inputs: (input, its axes in storage order) of every factor.
        output: axes of the result in storage order.
    """

    inputs: tuple[tuple[str, tuple[str, ...]], ...]
    output: tuple[str, ...]
    stages: tuple[Stage, ...] = ()

    @property
    def summed(self) -> tuple[str, ...]:
        """Axes that the output lacks, in order of first use."""
        return tuple(dict.fromkeys(axis for _, axes in self.inputs for axis in axes if axis not in self.output))


def formula_of(kernel: Kernel, output: TensorType) -> Formula | None:
    """The kernel's oracle if it is an einsum (with epilogue) or a permutation over the axes of its tensors, else None."""
    text = (kernel.oracle or "").strip()
    match = _EINSUM.match(text) or _PERMUTE.match(text)
    if match is None:
        return None
    subscripts = [part.strip() for part in match["inputs"].split(",")]
    entries = kernel.inputs[: len(subscripts)]
    stages = _stages(kernel, match.groupdict())
    if len(entries) != len(subscripts) or stages is None:
        return None
    result = axes_of(output)
    for labels, axes in [(match["output"].strip(), result), *zip(subscripts, (axes_of(e.type) for e in entries), strict=True)]:
        if not _names(labels, axes):
            return None
    known = {axis for entry in entries for axis in axes_of(entry.type)}
    if not set(result) <= known:
        return None
    return Formula(tuple((e.name, axes_of(e.type)) for e in entries), result, stages)


def _names(labels: str, axes: tuple[str, ...]) -> bool:
    """Whether the labels stand for exactly these axes, by name in lower case or by first letter."""
    letters = sorted(labels.replace(" ", "").lower())
    return letters in (sorted(a.lower() for a in axes), sorted(a[:1].lower() for a in axes))


def _stages(kernel: Kernel, groups: dict[str, str | None]) -> tuple[Stage, ...] | None:
    stages: list[Stage] = []
    for part in (groups.get("rest") or "").split("|")[1:]:
        text = part.strip()
        constant, operand = _CONSTANT.match(text), _OPERAND.match(text)
        if text in ("relu", *_SMOOTH):
            stages.append(Stage(text))
        elif constant is not None:
            stages.append(Stage(constant[1], float(constant[2])))
        elif operand is not None and (entry := next((i for i in kernel.inputs if i.name == operand[1]), None)) is not None:
            stages.append(Stage("plus", operand=entry.name, axes=axes_of(entry.type)))
        else:
            return None
    return (*stages, Stage("relu")) if groups.get("relu") else tuple(stages)


def reference_lines(formula: Formula, kernel: Kernel, names: dict[str, str]) -> list[str]:
    """The function ``reference`` over flat row-major inputs.

    It returns (value, allowed error) as f32 pairs for float inputs, the wrapped i32 values for integers.

    Args:
        names: identifier of every input.
    """
    floats = kernel.inputs[0].type.dtype.is_float
    dtypes = {entry.name: entry.type.dtype.name for entry in kernel.inputs}
    loops = _loop_names((*formula.output, *formula.summed), tuple(names.values()))
    element = "(f32, f32)" if floats else "i32"
    parameters = [f"{names[entry.name]}: &[{dtypes[entry.name]}]" for entry in kernel.inputs]
    flat = f"fn reference({', '.join(parameters)}) -> Vec<{element}> {{"
    head = [flat] if len(flat) <= MAX_WIDTH else ["fn reference(", *(f"    {p}," for p in parameters), f") -> Vec<{element}> {{"]
    body = _Body(loops)
    body.add("let mut out = Vec::new();")
    for axis in formula.output:
        body.open(axis)
    body.add("let (mut sum, mut spread) = (0f64, 0f64);" if floats else "let mut sum = 0i32;")
    for axis in formula.summed:
        body.open(axis)
    factors = [_value(f"{names[name]}[{_flat(axes, loops)}]", dtypes[name], floats) for name, axes in formula.inputs]
    _accumulate(body, factors, floats)
    body.close(len(formula.summed))
    _finish(body, formula, names, dtypes, floats)
    body.close(len(formula.output))
    return [f"/// Reference: {describe(formula, names)}.", *head, *body.lines, "    out", "}"]


class _Body:
    """Lines of a function body with nested loops."""

    def __init__(self, loops: dict[str, str]) -> None:
        self.loops = loops
        self.lines: list[str] = []
        self.depth = INDENT

    def add(self, text: str) -> None:
        self.lines.append(" " * self.depth + text)

    def open(self, axis: str) -> None:
        self.add(f"for {self.loops[axis]} in 0..{axis}::SIZE {{")
        self.depth += INDENT

    def close(self, count: int) -> None:
        for _ in range(count):
            self.depth -= INDENT
            self.add("}")


def _accumulate(body: _Body, factors: list[str], floats: bool) -> None:
    """Adds one product to the sum."""
    names = [f"x{i}" for i in range(len(factors))]
    for name, factor in zip(names, factors, strict=True):
        body.add(f"let {name} = {factor};")
    if floats:
        body.add(f"sum += {' * '.join(names)};")
        body.add(f"spread += {names[0] + '.abs()' if len(names) == 1 else '(' + ' * '.join(names) + ').abs()'};")
    else:
        product = names[0] + "".join(f".wrapping_mul({name})" for name in names[1:])
        body.add(f"sum = sum.wrapping_add({product});")


def _finish(body: _Body, formula: Formula, names: dict[str, str], dtypes: dict[str, str], floats: bool) -> None:
    """The epilogue and the result of one output element."""
    if floats:
        terms = " * ".join(f"{axis}::SIZE as f64" for axis in formula.summed) or "1.0"
        keyword = "let mut" if any(stage.kind != "relu" for stage in formula.stages) else "let"
        body.add(f"{keyword} bound = spread * {terms} * {_ACCUMULATION};")
    for stage in formula.stages:
        for line in _stage(stage, names, dtypes, body.loops, floats):
            body.add(line)
    body.add("out.push((sum as f32, bound as f32));" if floats else "out.push(sum);")


def _stage(stage: Stage, names: dict[str, str], dtypes: dict[str, str], loops: dict[str, str], floats: bool) -> list[str]:
    rounding = f"bound += {_ACCUMULATION} * sum.abs();"
    if stage.kind == "relu":
        return ["sum = sum.max(0.0);" if floats else "sum = sum.max(0);"]
    if stage.kind == "plus":
        other = _value(f"{names[stage.operand]}[{_flat(stage.axes, loops)}]", dtypes[stage.operand], floats)
        return [f"sum += {other};", rounding] if floats else [f"sum = sum.wrapping_add({other});"]
    if stage.kind in _SMOOTH:
        slope = f"bound = {GATE_SLOPE!r} * bound + {_GATE} * before + {_SMOOTH_EPSILON} * sum.abs();"
        return ["let before = sum.abs();", _SMOOTH[stage.kind], slope]
    if stage.kind == "add":
        return [f"sum += {stage.constant!r};", rounding] if floats else [f"sum = sum.wrapping_add({int(stage.constant)});"]
    if not floats:
        return [f"sum = sum.wrapping_mul({int(stage.constant)});"]
    return [f"sum *= {stage.constant!r};", f"bound *= {abs(stage.constant)!r};", rounding]


def _value(text: str, dtype_name: str, floats: bool) -> str:
    """An element as f64, or as i32 for integers."""
    if floats:
        return f"f64::from({text})" if dtype_name == "f32" else f"f64::from(f32::from({text}))"
    return text if dtype_name == "i32" else f"i32::from({text})"


def _flat(axes: tuple[str, ...], loops: dict[str, str]) -> str:
    """Row-major position: ``(i * J::SIZE + j) * K::SIZE + k``."""
    text = "0"
    for position, axis in enumerate(axes):
        if position == 0:
            text = loops[axis]
        else:
            text = f"{text if position == 1 else f'({text})'} * {axis}::SIZE + {loops[axis]}"
    return text


def _loop_names(axes: tuple[str, ...], taken: tuple[str, ...]) -> dict[str, str]:
    """A loop variable for every axis, apart from the names in use."""
    used = {*taken, "out", "sum", "spread", "bound"}
    names: dict[str, str] = {}
    for axis in axes:
        name = axis.lower()
        while name in used:
            name += "_at"
        used.add(name)
        names[axis] = name
    return names


def describe(formula: Formula, names: dict[str, str]) -> str:
    """The formula in words: ``out[I, J] = sum over K of a[I, K] * b[J, K], then relu``."""
    product = " * ".join(f"{names[name]}[{', '.join(axes)}]" for name, axes in formula.inputs)
    summed = f"sum over {', '.join(formula.summed)} of " if formula.summed else ""
    stages = ", ".join(s.kind if s.kind != "plus" else f"plus {names[s.operand]}" for s in formula.stages)
    return f"out[{', '.join(formula.output)}] = {summed}{product}{', then ' + stages if stages else ''}"

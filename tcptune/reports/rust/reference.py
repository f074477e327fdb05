"""The host oracle in Rust: an einsum as plain loops over flat buffers, accumulated in f32 or i32."""

from __future__ import annotations

import re
from dataclasses import dataclass

from tcptune.ir.kernel import Kernel
from tcptune.ir.types import DType, TensorType

_EINSUM = re.compile(r"\beinsum\s+(?P<inputs>[A-Za-z, ]*?)\s*->\s*(?P<output>[A-Za-z]*|1)\s*\Z")


@dataclass(frozen=True)
class Einsum:
    """An einsum over the axes of a kernel: axis names per input and of the output, in storage order."""

    inputs: tuple[tuple[str, ...], ...]
    output: tuple[str, ...]

    @property
    def summed(self) -> tuple[str, ...]:
        """Axes that the output lacks, in order of first use."""
        return tuple(dict.fromkeys(axis for axes in self.inputs for axis in axes if axis not in self.output))


def einsum_of(kernel: Kernel) -> Einsum | None:
    """The einsum that the kernel's oracle ends with, over the axes of its inputs; None if the oracle is another formula.

    Subscripts are matched with the inputs' axes by position, so that ``TR, GOR -> TGO`` reads for axes called Tok, Red, Group, Out.
    """
    match = _EINSUM.search(kernel.oracle or "")
    if match is None:
        return None
    subscripts = [part.strip() for part in match["inputs"].split(",")]
    if len(subscripts) != len(kernel.inputs):
        return None
    axis_of: dict[str, str] = {}
    for letters, entry in zip(subscripts, kernel.inputs, strict=True):
        axes = logical_axes(entry.type)
        if len(letters) != len(axes):
            return None
        for letter, axis in zip(letters, axes, strict=True):
            if axis_of.setdefault(letter, axis) != axis:
                return None
    output = "" if match["output"] == "1" else match["output"]
    if any(letter not in axis_of for letter in output):
        return None
    return Einsum(
        tuple(tuple(axis_of[letter] for letter in letters) for letters in subscripts), tuple(axis_of[letter] for letter in output)
    )


def logical_axes(type_: TensorType) -> tuple[str, ...]:
    """Axes of a stored tensor in the order of first use, outermost level first."""
    return tuple(dict.fromkeys(axis for _, mapping in type_.levels for axis in mapping.axes))


def reference_lines(einsum: Einsum, names: tuple[str, ...], dtypes: tuple[DType, ...]) -> list[str]:
    """The function ``reference`` over flat row-major inputs; it returns the accumulated values (f32 or i32).

    Args:
        names: identifiers of the inputs.
        dtypes: their element types.
    """
    accumulator = "f32" if dtypes[0].is_float else "i32"
    loops = _loop_names((*einsum.output, *einsum.summed), names)
    lines = [f"/// Reference: {_formula(einsum, names)}, accumulated in {accumulator}."]
    parameters = [f"{n}: &[{d.name}]" for n, d in zip(names, dtypes, strict=True)]
    flat = f"fn reference({', '.join(parameters)}) -> Vec<{accumulator}> {{"
    lines += [flat] if len(flat) <= 100 else ["fn reference(", *(f"    {p}," for p in parameters), f") -> Vec<{accumulator}> {{"]
    size = " * ".join(f"{axis}::SIZE" for axis in einsum.output) or "1"
    lines.append(f"    let mut out = vec![0{accumulator}; {size}];")
    indent = 4
    for axis in (*einsum.output, *einsum.summed):
        lines.append(f"{' ' * indent}for {loops[axis]} in 0..{axis}::SIZE {{")
        indent += 4
    pad = " " * indent
    for name, axes, element in zip(names, einsum.inputs, dtypes, strict=True):
        lines.append(f"{pad}let {name} = {_value(f'{name}[{_flat(axes, loops)}]', element, accumulator)};")
    lines.append(f"{pad}let at = {_flat(einsum.output, loops)};")
    lines.append(f"{pad}out[at] {_accumulate(names, accumulator)};")
    while indent > 4:
        indent -= 4
        lines.append(f"{' ' * indent}}}")
    return [*lines, "    out", "}"]


def _accumulate(names: tuple[str, ...], accumulator: str) -> str:
    if accumulator == "f32":
        return f"+= {' * '.join(names)}"
    product = names[0] + "".join(f".wrapping_mul({name})" for name in names[1:])
    return f"= out[at].wrapping_add({product})"


def _value(text: str, element: DType, accumulator: str) -> str:
    if element.name == accumulator:
        return text
    return f"{accumulator}::from({text})"


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
    used = {*taken, "out", "at"}
    names: dict[str, str] = {}
    for axis in axes:
        name = axis.lower()
        while name in used:
            name += "_at"
        used.add(name)
        names[axis] = name
    return names


def _formula(einsum: Einsum, names: tuple[str, ...]) -> str:
    product = " * ".join(f"{n}[{', '.join(axes)}]" for n, axes in zip(names, einsum.inputs, strict=True))
    summed = f"sum over {', '.join(einsum.summed)} of " if einsum.summed else ""
    return f"out[{', '.join(einsum.output)}] = {summed}{product}"

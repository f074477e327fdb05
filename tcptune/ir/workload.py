"""Workloads: an einsum of one or two inputs with sizes, element types, layout and epilogue, validated once at the border.

The grammar of the text is ``inputs "->" output``, inputs separated by a comma, every axis one lower-case letter::

    ik,jk->ij     contraction (matrix product)         vmk,kn->vmn    with a batch axis
    i,i->i        elementwise product                  i->i           elementwise, an epilogue does the work
    ij->i         row reduction (sum or max)

Axis identifiers of mappings are the upper-case letters.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Iterable
from collections.abc import Mapping as Dict
from dataclasses import dataclass
from typing import Any

import numpy as np

from tcptune.errors import InputError
from tcptune.ir.fields import did_you_mean
from tcptune.ir.mappings.mapping import MAX_SIZE
from tcptune.ir.types import DType, dtype, is_dtype

BATCH, M, N, K = "batch", "m", "n", "k"
"""Roles of axes: in both inputs and the output; in the first and the output; in the second and the output; summed."""

OUT_DTYPES: dict[str, tuple[str, ...]] = {
    "bf16": ("bf16", "f32", "f8e4m3", "f8e5m2"),
    "f8e4m3": ("bf16", "f32", "f8e4m3", "f8e5m2"),
    "f8e5m2": ("bf16", "f32", "f8e4m3", "f8e5m2"),
    "i8": ("i32", "i16", "i8"),
    "f32": ("f32", "bf16"),
    "i32": ("i32",),
}
"""Supported element types of inputs and the result types each allows; the first is the default."""

LAYOUTS = ("padded", "aligned", "dense")
"""Which rows the host pads (`Workload.layout`)."""

UNARY_EPILOGUES = ("relu", "gelu", "silu")
GATES = ("gelu", "silu")
"""Functions of floats alone."""
OPERAND_EPILOGUES = ("bias", "residual")
CONSTANT_EPILOGUES = ("add", "mul")

_AXIS = re.compile(r"[a-z]\Z")
_CONSTANT = re.compile(r"(add|mul)\s+(-?\d+(?:\.\d*)?(?:[eE][-+]?\d+)?)\Z")
_STEPS_END = re.compile(r",(?![^()]*\))")  # commas between parentheses part axes
_OPERAND = re.compile(r"(bias|residual)\s*:\s*([A-Za-z_]\w*)\s*\(\s*((?:[a-z](?:\s*,?\s*[a-z])*)?)\s*\)\Z")
_LARGEST_CONSTANT = float(np.finfo(np.float32).max)
_I32 = np.iinfo(np.int32)
_ROW_ALIGNMENT_BYTES = 8
_ROW_PADDING_BYTES = 32

MAX_COPIES = 64
"""Most copies of an input in HBM that a host may be asked for: the slices that one DMA engine serves, which alone wait for each other's
lines (VT-022); 256 slices of a cluster on 4 engines."""


@dataclass(frozen=True, slots=True)
class EpilogueOp:
    """One step after the contraction: a function, ``add`` or ``mul`` with a constant, ``bias`` or ``residual`` with an operand."""

    kind: str
    constant: float | None = None
    operand: str | None = None
    axes: tuple[str, ...] = ()

    def __str__(self) -> str:
        if self.constant is not None:
            return f"{self.kind} {repr(self.constant).removesuffix('.0')}"
        return f"{self.kind}:{self.operand}({''.join(self.axes)})" if self.operand else self.kind


@dataclass(frozen=True, repr=False)
class Workload:
    """A validated workload; build it with `einsum`.

    Attributes:
        inputs: axes of each input, in subscript order (HBM is row-major in this order).
        output: axes of the result.
        sizes: (axis, size) in order of first appearance.
        layout: which rows the host pads with zeros to a multiple of 32 bytes: ``padded`` those that break 8-byte strides, ``aligned`` all,
            ``dense`` none.
        reduce: ``sum`` or ``max`` (row reductions of one input), else ``sum``.
        epilogue: applied to the result in order.
        fuse: whether the epilogue may run in the contraction's pass.
        hbm_copies: how often the host may store an input of a contraction in HBM at most; a power of two.
    """

    inputs: tuple[tuple[str, ...], ...]
    output: tuple[str, ...]
    sizes: tuple[tuple[str, int], ...]
    dtype: DType
    out_dtype: DType
    layout: str = "padded"
    reduce: str = "sum"
    epilogue: tuple[EpilogueOp, ...] = ()
    fuse: bool = True
    hbm_copies: int = 1

    def __repr__(self) -> str:
        extra = [self.layout] * (self.layout != "padded") + [self.reduce] * (self.reduce != "sum") + [str(op) for op in self.epilogue]
        types = self.dtype.name if self.out_dtype == self.dtype else f"{self.dtype} to {self.out_dtype}"
        return f"<Workload {', '.join([self.text, *(f'{a}={n}' for a, n in self.sizes), types, *extra])}>"

    @property
    def text(self) -> str:
        return ",".join("".join(i) for i in self.inputs) + "->" + "".join(self.output)

    @property
    def kernel_name(self) -> str:
        """Name of a kernel for this workload: its subscripts, ``ik_jk_to_ij``."""
        return "_".join(part for part in self.text.replace("->", ",to,").split(",") if part)

    def size(self, axis: str) -> int:
        return dict(self.sizes)[axis]

    @property
    def axes(self) -> tuple[str, ...]:
        return tuple(a for a, _ in self.sizes)

    def tensors(self) -> tuple[tuple[tuple[str, ...], DType], ...]:
        """Axes and element type of each input and, last, of the result."""
        return (*((axes, self.dtype) for axes in self.inputs), (self.output, self.out_dtype))

    def roles(self) -> dict[str, str]:
        """Role of every axis.

        >>> einsum("vmk,kn->vmn", v=2, m=3, k=4, n=5).roles()
        {'v': 'm', 'm': 'm', 'k': 'k', 'n': 'n'}
        """
        first, second = self.inputs[0], self.inputs[-1]

        def role(axis: str) -> str:
            if axis not in self.output:
                return K
            if axis in first and axis in second:
                return BATCH
            return M if axis in first else N

        return {a: role(a) for a in self.axes}

    def kind(self) -> str:
        """Template pattern: ``dot``, ``gemv``, ``gemm``, ``bmm``, ``product``, ``elementwise`` or ``reduction``."""
        roles = set(self.roles().values())
        if len(self.inputs) == 1:
            return "reduction" if K in roles else "elementwise"
        if K not in roles:
            return "product"
        if roles == {K}:
            return "dot"
        if BATCH in roles or sum(1 for a in self.axes if a in self.output) > 2:
            return "bmm"
        return "gemm" if {M, N} <= roles else "gemv"

    def row_elements(self, axes: tuple[str, ...], element: DType) -> int:
        """Stored elements of the innermost axis of a tensor over `axes`: its size, or whole blocks of 32 bytes where `layout` pads rows."""
        if not axes:
            return 1
        size = self.size(axes[-1])
        row_bits = size * element.bits
        if self.layout == "dense" or (self.layout == "padded" and row_bits % (8 * _ROW_ALIGNMENT_BYTES) == 0):
            return size
        per_block = _ROW_PADDING_BYTES * 8 // element.bits
        return -(-size // per_block) * per_block

    def bytes_of(self, axes: tuple[str, ...], element: DType) -> int:
        """HBM bytes of a tensor over `axes`, host padding included."""
        elements = self.row_elements(axes, element)
        for axis in axes[:-1]:
            elements *= self.size(axis)
        return element.bytes_of(elements)

    def to_json(self) -> dict[str, Any]:
        out: dict[str, Any] = {
            "einsum": self.text,
            "sizes": dict(self.sizes),
            "dtype": self.dtype.name,
            "out_dtype": self.out_dtype.name,
            "layout": self.layout,
        }
        if len(self.inputs) == 1:
            out["reduce"] = self.reduce
        if self.epilogue:
            out["epilogue"] = ", ".join(str(e) for e in self.epilogue)
            out["fuse"] = self.fuse
        if self.hbm_copies > 1:
            out["hbm_copies"] = self.hbm_copies
        return out


def einsum(
    text: str,
    *,
    sizes: Dict[str, int] | None = None,
    dtype: str | DType = "bf16",
    out_dtype: str | DType | None = None,
    layout: str = "padded",
    reduce: str = "sum",
    epilogue: str | None = None,
    fuse: bool = True,
    hbm_copies: int = 1,
    **axis_sizes: int,
) -> Workload:
    """The workload that `text` describes; sizes by keyword or in `sizes`.

    >>> einsum("ik,jk->ij", i=512, j=512, k=64, dtype="bf16").kind()
    'gemm'

    Raises:
        InputError: malformed text, an axis without size or a size without axis, size below 1, an axis twice in one operand, an output axis
            that no input has, an element type that is not supported, an unknown layout, reduction or epilogue, an epilogue that
            integers do not have, a number of copies that is no power of two.
    """
    inputs, output = _parse_text(text)
    all_sizes = _check_sizes(text, inputs, _merged(sizes, axis_sizes))
    element, result = _check_types(dtype, out_dtype, len(inputs))
    if layout not in LAYOUTS:
        raise InputError(f"unknown layout {layout!r:.60}", hint=" or ".join(LAYOUTS))
    if reduce not in ("sum", "max"):
        raise InputError(f"unknown reduction {reduce!r:.60}", hint="sum or max")
    if reduce == "max" and len(inputs) == 2:
        raise InputError("a contraction sums; --reduce max is for one input, such as 'ij->i'")
    if not isinstance(fuse, bool):
        raise InputError(f"fuse must be true or false, got {fuse!r:.60}")
    ops = _parse_epilogue(epilogue, output)
    if not element.is_float:
        _check_integer_epilogue(ops, element)
    if len(inputs) == 1 and set(inputs[0]) == set(output) and not ops:
        raise InputError(f"{text!r} computes nothing", hint="add an epilogue, for example --epilogue 'add 1'")
    return Workload(inputs, output, all_sizes, element, result, layout, reduce, ops, fuse, _checked_copies(hbm_copies, len(inputs)))


def _checked_copies(copies: object, inputs: int) -> int:
    """The most copies of one input in HBM."""
    if isinstance(copies, bool) or not hasattr(copies, "__index__"):
        raise InputError(f"the number of copies in HBM must be an integer, got {copies!r:.60}")
    count = operator.index(copies)
    if not 1 <= count <= MAX_COPIES or count & (count - 1):
        raise InputError(
            f"an input has a power of two of copies in HBM, up to {MAX_COPIES}, got {str(count)[:20]}", hint=_near_copies(count)
        )
    if count > 1 and inputs != 2:
        raise InputError("only inputs of a contraction are stored several times in HBM", hint="1 copy, or a workload of two inputs")
    return count


def _near_copies(count: int) -> str:
    """The legal numbers of copies next to one that is not."""
    if count < 1:
        return "1 stores every input once"
    below = min(1 << (count.bit_length() - 1), MAX_COPIES)
    return f"for example {below}" if below == MAX_COPIES else f"{below} or {2 * below}"


def _parse_text(text: str) -> tuple[tuple[tuple[str, ...], ...], tuple[str, ...]]:
    if not isinstance(text, str):
        raise InputError(f"an einsum is a text like 'ik,jk->ij', got {text!r:.60}")
    form = "write one or two inputs and the result, for example 'ik,jk->ij'"
    compact = text.replace(" ", "")
    if compact.count("->") != 1:
        raise InputError(f"malformed einsum {text[:60]!r}: it needs exactly one '->'", hint=form)
    left, right = compact.split("->")
    operands = left.split(",")
    if len(operands) > 2:
        raise InputError(f"malformed einsum {text[:60]!r}: {len(operands)} inputs", hint=form)
    for place, subscripts in [*((f"input {n + 1}", o) for n, o in enumerate(operands)), ("the result", right)]:
        for axis in subscripts:
            if not _AXIS.match(axis):
                raise InputError(
                    f"malformed einsum {text[:60]!r}: {axis!r} in {place} is not an axis", hint="axes are single lower-case letters"
                )
        repeated = sorted({a for a in subscripts if subscripts.count(a) > 1})
        if repeated:
            raise InputError(
                f"axis {repeated[0]} is repeated in {place} of {text!r}", hint="diagonals are not supported: use each axis once per operand"
            )
    if not all(operands):
        raise InputError(f"malformed einsum {text[:60]!r}: an input has no axes", hint=form)
    known = set("".join(operands))
    for axis in right:
        if axis not in known:
            raise InputError(f"output axis {axis} of {text!r} occurs in no input", hint=f"input axes: {', '.join(sorted(known))}")
    if len(operands) == 2:
        for n, o in enumerate(operands):
            alone = sorted(a for a in o if a not in right and a not in operands[1 - n])
            if alone:
                raise InputError(
                    f"axis {alone[0]} of {text!r} occurs in input {n + 1} only and not in the result",
                    hint="reduce it first, with a workload of one input",
                )
    return tuple(tuple(o) for o in operands), tuple(right)


def _merged(sizes: object, by_keyword: Dict[str, Any]) -> dict[str, Any]:
    """Sizes given in `sizes` and by keyword together."""
    if sizes is not None and not isinstance(sizes, Dict):
        raise InputError(f"sizes are a dictionary of axes and sizes, got {sizes!r:.60}", hint="for example {'i': 512, 'k': 64}")
    twice = sorted(axis for axis in by_keyword if axis in (sizes or {}))
    if twice:
        raise InputError(f"the size of axis {twice[0]!r} is given twice, in sizes and by keyword")
    return {**(sizes or {}), **by_keyword}


def _check_sizes(text: str, inputs: tuple[tuple[str, ...], ...], given: Dict[str, Any]) -> tuple[tuple[str, int], ...]:
    order = list(dict.fromkeys(a for i in inputs for a in i))
    for axis in given:
        if axis not in order and isinstance(axis, str) and len(axis) > 1:  # a misspelt option lands among the sizes
            known = "dtype, out_dtype, layout, reduce, epilogue, fuse, hbm_copies, sizes"
            raise InputError(f"einsum has no option {axis!r}", hint=f"options: {known}; axes of {text!r}: {', '.join(order)}")
        if axis not in order:
            raise InputError(f"size given for unknown axis {axis!r}", hint=f"axes of {text!r}: {', '.join(order)}")
    for axis in order:
        if axis not in given:
            missing = ", ".join(f"{a}=SIZE" for a in order if a not in given)
            raise InputError(f"no size given for axis {axis!r} of {text!r}", hint=f"add {missing} (each after -s on the command line)")
        value = given[axis]
        if isinstance(value, bool) or not hasattr(value, "__index__"):
            raise InputError(f"size of axis {axis!r} must be an integer, got {value!r:.60}")
        value = operator.index(value)  # numpy's integers too
        if value < 1:
            raise InputError(f"size of axis {axis!r} must be at least 1, got {value}")
        if value > MAX_SIZE:
            raise InputError(f"size of axis {axis!r} must be at most 2^62, got one of {value.bit_length()} bits", hint="a smaller size")
    return tuple((a, operator.index(given[a])) for a in order)


def _check_types(element: str | DType, result: str | DType | None, inputs: int) -> tuple[DType, DType]:
    supported = [name for name in OUT_DTYPES if inputs < 2 or name != "i32"]
    if not isinstance(element, DType) and not (isinstance(element, str) and is_dtype(element)):
        raise InputError(f"unknown element type {element!r:.60}", hint=did_you_mean(element, supported, "supported"))
    given = dtype(element)
    if given.name not in OUT_DTYPES:
        raise InputError(f"element type {given} is not supported", hint=f"supported: {', '.join(supported)}")
    if inputs == 2 and given.name == "i32":
        raise InputError("element type i32 has no contraction", hint="i8 contracts exactly in i32")
    allowed = OUT_DTYPES[given.name]
    if isinstance(result, str) and not is_dtype(result):
        hint = did_you_mean(result, allowed, f"supported for inputs of type {given}")
        raise InputError(f"unknown element type {result!r:.60} of the result", hint=hint)
    out = dtype(result) if result is not None else dtype(allowed[0])
    if out.name not in allowed:
        raise InputError(f"a result of type {out} is not supported for inputs of type {given}", hint=f"supported: {', '.join(allowed)}")
    return given, out


def _parse_epilogue(text: str | None, output: tuple[str, ...]) -> tuple[EpilogueOp, ...]:
    if text is not None and not isinstance(text, str):
        raise InputError(f"an epilogue is a text such as 'bias:b(j), relu', got {text!r:.60}")
    if text is None or not text.strip():
        return ()
    ops = tuple(_parse_epilogue_op(part.strip(), output) for part in _STEPS_END.split(text))
    names = [op.operand for op in ops if op.operand]
    for name in _repeated(names):
        raise InputError(f"epilogue operand {name} is named twice")
    return ops


def _parse_epilogue_op(part: str, output: tuple[str, ...]) -> EpilogueOp:
    if part in UNARY_EPILOGUES:
        return EpilogueOp(part)
    if found := _CONSTANT.match(part):
        constant = float(found.group(2))
        if abs(constant) > _LARGEST_CONSTANT:
            raise InputError(f"the constant of epilogue {part[:40]!r} is beyond the range of f32")
        return EpilogueOp(found.group(1), constant=constant)
    if found := _OPERAND.match(part):
        axes = tuple(re.findall("[a-z]", found.group(3)))
        for axis in axes:
            if axis not in output:
                raise InputError(
                    f"epilogue operand {found.group(2)} has axis {axis}, which the result lacks",
                    hint=f"axes of the result: {', '.join(output)}",
                )
        if len(set(axes)) != len(axes):
            raise InputError(f"epilogue operand {found.group(2)} repeats an axis")
        return EpilogueOp(found.group(1), operand=found.group(2), axes=axes)
    operand = re.match(r"bias|residual", part)
    written = f"an operand is written with its axes, for example {operand.group()}:r({''.join(output)})" if operand else None
    forms = "add C, mul C, bias:NAME(axes), residual:NAME(axes), relu, gelu, silu"
    raise InputError(f"unknown epilogue {part[:40]!r}", hint=written or forms)


def _check_integer_epilogue(ops: tuple[EpilogueOp, ...], element: DType) -> None:
    """Integers are computed in i32: no gates, and constants are whole numbers of i32 (ALU-020)."""
    for step in ops:
        if step.kind in GATES:
            raise InputError(f"epilogue {step} has no function on integers ({element})", hint="add C, mul C, bias, residual or relu")
        if step.constant is None:
            continue
        if not step.constant.is_integer() or not _I32.min <= step.constant <= _I32.max:
            raise InputError(
                f"epilogue {str(step)!r} on {element}: integers take whole constants in the range of i32",
                hint=f"a whole number from {_I32.min} to {_I32.max}",
            )


def _repeated(names: Iterable[str]) -> list[str]:
    listed = list(names)
    return sorted({n for n in listed if listed.count(n) > 1})

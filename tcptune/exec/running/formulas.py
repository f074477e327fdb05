"""Named reference formulas of oracles: ``formula NAME`` in a kernel's oracle calls the function registered here.

A formula gets the inputs by name, as float64 arrays over their axes in order of first mention, and the kernel; it returns an array over
the axes of the result in that order, or a pair of it and a bound on the error that the device's rounding may cause. It looks inputs up by
position in the kernel's inputs, so that kernels may name them freely.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import ml_dtypes
import numpy as np
import numpy.typing as npt

from tcptune.errors import InputError
from tcptune.ir.kernels.kernel import Kernel

Floats = npt.NDArray[np.float64]
Formula = Callable[[dict[str, Floats], Kernel], Floats | tuple[Floats, Floats]]

FORMULAS: dict[str, Formula] = {}


def formula(name: str) -> Callable[[Formula], Formula]:
    """Registers a named reference."""

    def add(function: Formula) -> Formula:
        if name in FORMULAS:
            raise ValueError(f"two formulas are called {name!r}")
        FORMULAS[name] = function
        return function

    return add


def find(name: str) -> Formula:
    """The formula called `name`.

    Raises:
        InputError: no such formula; the hint lists them.
    """
    if name not in FORMULAS:
        raise InputError(f"unknown formula {name!r}", hint=f"known: {', '.join(sorted(FORMULAS))}")
    return FORMULAS[name]


def operands(inputs: dict[str, Floats], kernel: Kernel, count: int) -> list[Floats]:
    """The first `count` inputs in order.

    Raises:
        InputError: the kernel has fewer.
    """
    if len(kernel.inputs) < count:
        raise InputError(f"the formula needs {count} inputs, kernel {kernel.name!r} has {len(kernel.inputs)}")
    return [inputs[i.name] for i in kernel.inputs[:count]]


@formula("add")
def add_inputs(inputs: dict[str, Floats], kernel: Kernel) -> Floats:
    """Sum of two tensors of the same shape."""
    x, y = operands(inputs, kernel, 2)
    return x + y


@formula("sum")
def total(inputs: dict[str, Floats], kernel: Kernel) -> Floats:
    """Sum over everything."""
    (x,) = operands(inputs, kernel, 1)
    return np.asarray(x.sum())


@formula("row_sum")
def row_sum(inputs: dict[str, Floats], kernel: Kernel) -> Floats:
    """Sum over the last axis."""
    (x,) = operands(inputs, kernel, 1)
    return np.asarray(x.sum(axis=-1))


@formula("row_sum_exp")
def row_sum_exp(inputs: dict[str, Floats], kernel: Kernel) -> Floats:
    """Sum of exponentials over the last axis."""
    (x,) = operands(inputs, kernel, 1)
    with np.errstate(over="ignore"):
        return np.asarray(np.exp(x).sum(axis=-1))


@formula("row_softmax")
def row_softmax(inputs: dict[str, Floats], kernel: Kernel) -> Floats:
    """Softmax over the last axis."""
    (x,) = operands(inputs, kernel, 1)
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return np.asarray(e / e.sum(axis=-1, keepdims=True))


RMS_EPSILON = 6.25e-8  # XFMR-009


@formula("rms_norm")
def rms_norm(inputs: dict[str, Floats], kernel: Kernel) -> Floats:
    """Rows over their root mean square, times a weight."""
    x, weight = operands(inputs, kernel, 2)
    return np.asarray(x / np.sqrt((x * x).mean(axis=-1, keepdims=True) + RMS_EPSILON) * weight)


def _bf16(x: Floats) -> Floats:
    return x.astype(np.float32).astype(ml_dtypes.bfloat16).astype(np.float64)


@formula("perceptron")
def perceptron(inputs: dict[str, Floats], kernel: Kernel) -> tuple[Floats, Floats]:
    """Two layers: inputs are x, first weight and bias, second weight and bias; bf16 between passes (SCHED-019, XFMR-009).

    The bound allows one rounding of every hidden value to fall the other way, and the rounding of the second product.
    """
    x, w1, b1, w2, b2 = operands(inputs, kernel, 5)
    hidden = _bf16(np.maximum(_bf16(w1 @ x) + b1, 0))
    product = w2 @ hidden
    spread = np.abs(w2) @ np.maximum(np.abs(_bf16(w1 @ x)), np.abs(hidden)) + np.abs(product)
    return _bf16(product) + b2, 2.0**-8 * spread


_F32_EPSILON = 2.0**-22
"""Four roundings of f32, for sums of few terms."""

_erf = np.frompyfunc(math.erf, 1, 1)


def silu(x: Floats) -> Floats:
    """x times its logistic function."""
    with np.errstate(over="ignore"):
        return np.asarray(x / (1 + np.exp(-x)))


def gelu(x: Floats) -> Floats:
    """x / 2 * (1 + erf(x / sqrt(2))): GeLU by the error function, which the Vector Engine has."""
    return np.asarray(0.5 * x * (1 + np.asarray(_erf(x / math.sqrt(2)), dtype=np.float64)))


@formula("gelu_erf")
def gelu_erf(inputs: dict[str, Floats], kernel: Kernel) -> tuple[Floats, Floats]:
    """GeLU of every element."""
    (x,) = operands(inputs, kernel, 1)
    return gelu(x), _F32_EPSILON * np.abs(x)


@formula("swiglu")
def swiglu(inputs: dict[str, Floats], kernel: Kernel) -> Floats:
    """SiLU of the gate times the other."""
    gate, up = operands(inputs, kernel, 2)
    return silu(gate) * up


@formula("rope")
def rope(inputs: dict[str, Floats], kernel: Kernel) -> tuple[Floats, Floats]:
    """Rotates the halves of x (token, head, half, element) by angles whose cosine and sine are given a token and element."""
    x, cosine, sine = operands(inputs, kernel, 3)
    low, high, c, s = x[:, :, 0], x[:, :, 1], cosine[:, None], sine[:, None]
    turned = np.stack([low * c - high * s, high * c + low * s], axis=2)
    spread = np.stack([np.abs(low * c) + np.abs(high * s), np.abs(high * c) + np.abs(low * s)], axis=2)
    return turned, _F32_EPSILON * spread

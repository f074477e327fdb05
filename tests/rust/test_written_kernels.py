"""Kernels written by hand as an engineer of the vendor's API writes them: attention, norms, GEMV and GEMM variants, reductions, moves.

Every one is read, checked, run against numpy in float64, and scheduled where a published schedule prices all of it.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from tcptune.exec.compile import compile_checked
from tcptune.exec.program.check import check_kernel
from tcptune.exec.program.checked import CheckedKernel
from tcptune.exec.running.fill import declared_inputs
from tcptune.exec.running.interpret import run_kernel
from tcptune.exec.running.oracle import axes_of, dense, verify
from tcptune.exec.rust import read_rust
from tcptune.exec.rust.check import check_rust
from tcptune.exec.scheduling.check_schedule import check_schedule
from tcptune.ir.kernels.kernel import Kernel

FOLDER = Path(__file__).parent / "kernels"
Floats = npt.NDArray[np.float64]


def read(name: str) -> CheckedKernel:
    return check_rust(read_rust((FOLDER / f"{name}.rs").read_text(encoding="utf-8")))


def softmax(x: Floats) -> Floats:
    weights = np.exp(x - x.max(axis=1, keepdims=True))
    return weights / weights.sum(axis=1, keepdims=True)


def attention(q: Floats, k: Floats, v: Floats) -> Floats:
    return softmax(q @ k.T / np.sqrt(q.shape[1])) @ v.T


def layer_norm(x: Floats) -> Floats:
    return (x - x.mean(axis=1, keepdims=True)) / np.sqrt(x.var(axis=1, keepdims=True) + 1e-5)


def embedding(table: Floats, index: Floats) -> Floats:
    return 2 * table[index.astype(np.int64)]


def mlp(x: Floats, w1: Floats, b1: Floats, w2: Floats, b2: Floats) -> Floats:
    return (np.maximum(x @ w1.T + b1, 0) @ w2.T + b2).T


REFERENCES: dict[str, tuple[Callable[..., Floats], float]] = {
    "attention_head": (attention, 2.0**-6),
    "flash_attention": (attention, 2.0**-6),
    "layer_norm": (layer_norm, 2.0**-7),
    "embedding": (embedding, 0.0),
    "mlp": (mlp, 2.0**-7),
}
"""What numpy computes, and how far a result may be off, relative to the largest: results, scores and weights are rounded to bf16."""

ORACLES = ("gemv_split_k", "blocked_gemm", "chip_gemm", "bmatmul_k_in_time", "reduce_max", "transpose_engine")
NAMES = (*REFERENCES, *ORACLES)


@pytest.mark.parametrize("name", REFERENCES)
def test_a_kernel_computes_what_numpy_does(name: str) -> None:
    checked = read(name)
    formula, allowed = REFERENCES[name]
    inputs = declared_inputs(checked.kernel, 11)
    result = run_kernel(checked, inputs)
    assert not result.undefined
    given = [dense(bound.type, inputs[bound.name], axes_of(bound.type)) for bound in checked.inputs]
    (out,) = checked.outputs
    got = dense(out.type, result.outputs[out.name], axes_of(out.type))
    want = formula(*given)
    assert np.abs(got - want).max() <= allowed * np.abs(want).max()


@pytest.mark.parametrize("name", ORACLES)
def test_a_kernel_agrees_with_the_oracle_of_its_header(name: str) -> None:
    verify(read(name), seeds=(1,), patterns=()).require()


@pytest.mark.parametrize("name", [name for name in NAMES if name != "embedding"])
def test_it_is_scheduled_and_its_text_form_is_the_same_kernel(name: str) -> None:
    checked = read(name)
    compiled = compile_checked(checked)
    check_schedule(compiled.program, compiled.schedule)
    again = compile_checked(check_kernel(Kernel.from_text(checked.kernel.to_text())))
    assert again.makespan == compiled.makespan

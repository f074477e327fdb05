"""The decoder-layer kernels pass their oracles on random and adversarial inputs, and equal plain numpy on inputs made to hurt."""

import math

import ml_dtypes
import numpy as np
import pytest

from tcptune.exec.compile import compile_kernel
from tcptune.exec.library.transformer import HEAD_DIM, HEADS, HIDDEN, INTERMEDIATE, KERNELS, KV_HEADS, rope
from tcptune.exec.program.check import check_kernel
from tcptune.exec.running.interpret import run_kernel
from tcptune.exec.running.oracle import verify
from tcptune.ir.kernels.kernel import Kernel
from tcptune.model.values import Values

BF16 = ml_dtypes.bfloat16


@pytest.fixture(scope="module")
def checked():
    return {name: check_kernel(make()) for name, make in KERNELS.items()}


def run(kernel, **arrays):
    """The result over its axes, for inputs given over theirs."""
    inputs = {}
    for entry in kernel.kernel.inputs:
        data = arrays[entry.name].astype(BF16).reshape(entry.type.shape)
        inputs[entry.name] = Values(data, np.ones(data.shape, bool))
    result = run_kernel(kernel, inputs)
    name = kernel.kernel.outputs[0]
    assert result.outputs[name].defined.all()
    return result.outputs[name].data.astype(np.float64), {n: v.data.astype(np.float64) for n, v in inputs.items()}


def close(got, want, rel=2.0**-7, absolute=2.0**-20):
    assert np.abs(got.reshape(want.shape) - want).max(initial=0, where=np.isfinite(want)) <= np.abs(want).max() * rel + absolute


@pytest.mark.parametrize("name", KERNELS)
def test_a_kernel_passes_its_oracle_on_random_and_adversarial_inputs(name, checked):
    report = verify(checked[name], seeds=(42, 43))
    report.require()
    assert {r.how for r in report.runs} >= {"random", "zeros", "alternating", "wide", "tiny"}


@pytest.mark.parametrize("name", KERNELS)
def test_a_kernel_has_a_schedule_and_survives_its_text_form(name, checked):
    kernel = checked[name].kernel
    assert compile_kernel(kernel).makespan > 1_600
    assert Kernel.from_text(kernel.to_text()) == kernel


def test_the_sizes_are_those_of_the_model(checked):
    assert (HIDDEN, HEADS, KV_HEADS, HEAD_DIM, INTERMEDIATE) == (1024, 16, 8, 128, 3072)
    assert checked["swiglu"].kernel.axes["L"] == 3072
    assert checked["rope"].kernel.axes["E"] * checked["rope"].kernel.axes["P"] == 128


def test_softmax_of_equal_rows_is_uniform_and_of_one_spike_is_that_spike(checked):
    rows = np.zeros((256, 512))
    rows[0] = 1e4
    rows[1, 7] = 200.0
    rows[2] = -3e38
    got, _ = run(checked["attention_softmax"], x=rows)
    got = got.reshape(256, 512)
    assert (got[[0, 2, 3]] == 1 / 512).all()
    assert got[1, 7] == 1.0
    assert got[1].sum() == 1.0


def test_rms_norm_of_a_zero_row_is_zero_and_of_a_constant_row_is_the_weight(checked):
    rows = np.zeros((256, HIDDEN))
    rows[1], rows[2] = 3.0, -1e15
    weight = np.linspace(-2, 2, HIDDEN)
    got, given = run(checked["rms_norm"], x=rows, weight=weight)
    got = got.reshape(256, HIDDEN)
    assert (got[0] == 0).all()
    close(got[1], given["weight"].ravel())
    close(got[2], -given["weight"].ravel())


def test_gelu_keeps_large_values_and_silences_large_negative_ones(checked):
    x = np.tile([1e30, -1e30, 5.0, -5.0, 0.0, -0.7518, 1e-30, -1e-30], 32 * INTERMEDIATE // 8)
    got, given = run(checked["gelu"], x=x)
    want = np.array([0.5 * v * (1 + math.erf(v / math.sqrt(2))) for v in given["x"].ravel()[:8]])
    got = got.ravel()[:8]
    assert got[0] == np.float64(BF16(1e30))
    assert got[1] == 0
    assert np.allclose(got[2:], want[2:], rtol=2.0**-7, atol=1e-6)


def test_swiglu_saturates_without_overflow(checked):
    gate = np.tile([100.0, -100.0, 0.0, 1.0], 32 * INTERMEDIATE // 4)
    up = np.tile([3.0, 3.0, 1e30, -2.0], 32 * INTERMEDIATE // 4)
    got, _ = run(checked["swiglu"], gate=gate, up=up)
    assert got.ravel()[:3].tolist() == [300.0, got.ravel()[1], 0.0]
    assert abs(got.ravel()[1]) < 1e-30
    assert math.isclose(got.ravel()[3], -2 / (1 + math.exp(-1)), rel_tol=2.0**-8)


def test_residual_add_cancels_exactly(checked):
    x = np.random.default_rng(1).normal(0, 1e3, 64 * HIDDEN)
    got, _ = run(checked["residual_add"], x=x, y=-x.astype(BF16).astype(float))
    assert (got == 0).all()


@pytest.mark.parametrize("heads", [HEADS, KV_HEADS])
def test_rope_by_a_quarter_turn_swaps_the_halves_and_keeps_norms_otherwise(heads):
    kernel = check_kernel(rope(heads))
    tokens = 512 // heads
    rng = np.random.default_rng(2)
    x = rng.normal(size=(tokens, heads, 2, 64))
    angle = np.arange(tokens)[:, None] * 1e6 ** (-np.arange(64) / 64)[None]
    cosine, sine = np.cos(angle), np.sin(angle)
    cosine[0], sine[0] = 0.0, 1.0
    got, given = run(kernel, x=x, cosine=cosine, sine=sine)
    got, x = got.reshape(x.shape), given["x"].reshape(x.shape)
    assert (got[0, :, 0] == -x[0, :, 1]).all()
    assert (got[0, :, 1] == x[0, :, 0]).all()
    turned = (x[:, :, 0] + 1j * x[:, :, 1]) * (given["cosine"] + 1j * given["sine"]).reshape(tokens, 1, 64)
    close(got[:, :, 0], turned.real)
    close(got[:, :, 1], turned.imag)

"""The two-layer perceptron of the scheduling chapter: biases spread by the ring, two matrix-vector products (SCHED-019, SCHED-020)."""

from __future__ import annotations

from tcptune.exec.program.build import KernelBuilder, Tensor
from tcptune.ir.kernels.kernel import Kernel, Tolerance

CLUSTER = "1 # 2"
LOOSE = "1 # 2 # 4"
"""One value in four positions; written apart from ``1 # 4`` so that a commit can tell the rows from their padding."""


def _first_bias(b: KernelBuilder, bias: Tensor) -> Tensor:
    """One value a slice from eight values in every eighth slice: transposed into rows, spread over rings of eight, gathered."""
    s = b.main.begin(bias).fetch("1", "H % 8").collect("1", "H % 8 # 16").transpose("H % 8", "1 # 16")
    rows = s.commit_trim("1 # 4").commit("H % 8, 1 # 4", let="fc1_bias_rows")
    s = (
        b.main.begin(rows)
        .fetch("H % 8", "1 # 4")
        .switch("H / 8, H % 8", "1 # 8", {"InterTranspose": {"slice1": 8, "slice0": 1, "time0": 1}})
    )
    return s.collect("1 # 8", "1 # 16").transpose("1 # 2", "1 # 16").commit_trim("1 # 4").commit("1 # 2, 1 # 4", let="fc1_bias_spread")


def _second_bias(b: KernelBuilder, bias: Tensor) -> Tensor:
    """One value in every sixteenth slice from sixteen values in one, over the whole ring."""
    s = b.main.begin(bias).fetch("C", "1 # 4").switch("C, 1 # 16", "1 # 16", {"InterTranspose": {"slice1": 16, "slice0": 16, "time0": 1}})
    return s.collect("1 # 16", "1 # 16").transpose("1 # 4", "1 # 16").commit_trim(LOOSE).commit(f"1 # 4, {LOOSE}", let="fc2_bias_spread")


def _product(b: KernelBuilder, weight: Tensor, operand: Tensor, axis: str, result: str, let: str) -> Tensor:
    """Rows of `weight` against the vector in the TRF, one value a slice."""
    s = b.main.begin(weight).fetch(f"{axis} / 16", f"{axis} % 16").collect(f"{axis} / 16", f"{axis} % 16")
    s = s.contract_outer(f"{axis} / 32", f"{axis} % 32", operand).contract_packet("1").contract_time("1")
    s = s.contract_lane("1", "1 # 8", "Interleaved").cast("bf16", "1 # 16")
    return s.commit_trim(result).commit(result, let=let)


def _staged(b: KernelBuilder, vector: Tensor, axis: str, let: str) -> Tensor:
    s = b.sub.begin(vector).fetch("1", axis).collect(f"{axis} / 16", f"{axis} % 16")
    return s.to_trf("1", axis, let=let)


def _with_bias(b: KernelBuilder, product: Tensor, bias: Tensor, *, relu: bool, let: str) -> Tensor:
    """Adds the bias to the product, both read in turn; the first eight positions hold the value."""
    s = b.main.begin_interleaved("I", product, bias).fetch("I", "1 # 8").fetch_cast("f32").collect("I", "1 # 8")
    s = s.vector_init().vector_intra_slice_unzip("I", "1").vector_clip_zip("Add")
    if relu:
        s = s.vector_clip("Max", operand=0.0)
    return s.vector_final().cast("bf16", "1 # 16").commit_trim("1 # 4").commit("1 # 4", let=let)


def _gathered(b: KernelBuilder, hidden: Tensor) -> Tensor:
    """All hidden values in every sixteenth slice: broadcast over the whole ring, transposed into packets of four."""
    s = b.main.begin(hidden).fetch("1", "1 # 4").switch("C, 1 # 16", "H", {"Broadcast1": {"slice1": 256, "slice0": 1}})
    return s.collect("H", "1 # 16").transpose("H / 4", "H % 4 # 16").commit_trim("H % 4").commit("H", let="hidden_rows")


def mnist(inputs: int = 800, hidden: int = 256, classes: int = 16) -> Kernel:
    """``fc2 . relu(fc1 . x + b1) + b2`` in bf16."""
    b = KernelBuilder("mnist", {"X": inputs, "H": hidden, "C": classes, "I": 2})
    x = b.input("x", "Hbm", "bf16", element="X")
    w1, b1 = b.input("fc1_weight", "Hbm", "bf16", element="H, X"), b.input("fc1_bias", "Hbm", "bf16", element="H")
    w2, b2 = b.input("fc2_weight", "Hbm", "bf16", element="C, H"), b.input("fc2_bias", "Hbm", "bf16", element="C")
    w1_dm = w1.to_dm(cluster=CLUSTER, slice="H", element="X", let="fc1_weight_dm")
    b1_dm = b1.to_dm(cluster=CLUSTER, slice="H / 8, 1 # 8", element="H % 8", let="fc1_bias_dm")
    w2_dm = w2.to_dm(cluster=CLUSTER, slice="C, 1 # 16", element="H", let="fc2_weight_dm")
    b2_dm = b2.to_dm(cluster=CLUSTER, slice="1 # 256", element="C", let="fc2_bias_dm")
    x_dm = x.to_dm(cluster=CLUSTER, slice="H", element="X", let="x_dm")
    bias1, bias2 = _first_bias(b, b1_dm), _second_bias(b, b2_dm)
    product = _product(b, w1_dm, _staged(b, x_dm, "X", "x_trf"), "X", "1 # 8", "fc1_product")
    activated = _with_bias(b, product, bias1, relu=True, let="hidden")
    rows = _gathered(b, activated)
    logits = _product(b, w2_dm, _staged(b, rows, "H", "hidden_trf"), "H", "1 # 16", "fc2_product")
    result = _with_bias(b, logits, bias2, relu=False, let="logits")
    tolerance = Tolerance(0.05, 1.0, "sum")
    return b.build(result.to_hbm(element="C", let="out"), oracle="formula perceptron", tolerance=tolerance)

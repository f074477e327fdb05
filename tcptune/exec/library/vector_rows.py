"""Vector kernels with published schedules: elementwise bf16, reductions, softmax and RMS norm, one row a slice."""

from __future__ import annotations

from tcptune.exec.program.build import KernelBuilder, Stream, Tensor
from tcptune.ir.kernels.kernel import Kernel, Tolerance

CLUSTER = "1 # 2"
SCALAR_F32 = "1 # 8"
"""One f32 value in a packet of one flit."""


def add(elements: int = 2048) -> Kernel:
    """``x + y`` in bf16: one pass reads both in turn, widened to f32, and adds the pair."""
    b = KernelBuilder("add", {"A": elements, "I": 2})
    place = {"cluster": CLUSTER, "slice": "A / 8 # 256", "element": "A % 8"}
    x = b.input("x", "Hbm", "bf16", element="A").to_dm(**place, let="x_dm")
    y = b.input("y", "Hbm", "bf16", element="A").to_dm(**place, let="y_dm")
    s = b.main.begin_interleaved("I", x, y).fetch("I", "A % 8").fetch_cast("f32").collect("I", "A % 8")
    s = s.vector_init().vector_intra_slice_unzip("I", "1").vector_clip_zip("Add").vector_final()
    result = s.cast("bf16", "A % 8 # 16").commit_trim("A % 8").commit("A % 8", let="sum")
    return b.build(result.to_hbm(element="A", let="out"), oracle="formula add", tolerance=Tolerance(2.0**-8, 0))


def mul(elements: int = 2048) -> Kernel:
    """``x * y`` in bf16: y widened to f32 into the VRF on Sub, x streamed on Main."""
    b = KernelBuilder("mul", {"A": elements})
    place = {"cluster": CLUSTER, "slice": "A / 8 # 256", "element": "A % 8"}
    y = b.input("x", "Hbm", "bf16", element="A"), b.input("y", "Hbm", "bf16", element="A")
    y_dm = y[1].to_dm(**place, let="y_dm")
    x_dm = y[0].to_dm(**place, let="x_dm")
    vrf = b.sub.begin(y_dm).fetch("1", "A % 8").fetch_cast("f32").collect("1", "A % 8").to_vrf("A % 8", let="y_vrf")
    s = b.main.begin(x_dm).fetch("1", "A % 8").fetch_cast("f32").collect("1", "A % 8").vector_init().vector_intra_slice_tag("Zero")
    s = s.vector_narrow_split("A / 4 % 2", "A % 4").vector_fp_binary("MulF", "Mul0", operand=vrf)
    s = s.vector_widen_concat("1", "A % 8").vector_final()
    result = s.cast("bf16", "A % 8 # 16").commit_trim("A % 8").commit("A % 8", let="product")
    return b.build(result.to_hbm(element="A", let="out"), oracle="einsum a,a->a", tolerance=Tolerance(2.0**-8, 0))


def _rows(b: KernelBuilder, x: Tensor) -> Stream:
    """A bf16 row of K in steps of four f32 values, at the float stages of the Vector Engine."""
    s = b.main.begin(x).fetch("K / 4", "K % 4").fetch_cast("f32").collect("K / 4", "K % 4 # 8")
    return s.vector_init().vector_intra_slice_tag("Zero").vector_narrow_trim("K % 4")


def _reduced(s: Stream, fn: str) -> Stream:
    """One value a row."""
    return s.vector_intra_slice_reduce("K", "1", "1 # 4", fn)


def _one_value(s: Stream, let: str) -> Tensor:
    """Leaves the engine with one f32 value a row and commits its flit."""
    return s.vector_widen_pad(SCALAR_F32).vector_final().commit_trim(SCALAR_F32).commit(SCALAR_F32, let=let)


def _loaded_rows(b: KernelBuilder) -> Tensor:
    return b.input("x", "Hbm", "bf16", element="I, K").to_dm(cluster=CLUSTER, slice="I", element="K", let="x_dm")


def reduce_sum(elements: int = 8192) -> Kernel:
    """Sum of a bf16 vector: inside the slices, then over the 256 slices in the same pass."""
    b = KernelBuilder("reduce_sum", {"R": elements})
    part = elements // 256
    x = b.input("x", "Hbm", "bf16", element="R").to_dm(cluster=CLUSTER, slice=f"R / {part}", element=f"R % {part}", let="x_dm")
    s = b.main.begin(x).fetch(f"R % {part} / 4", "R % 4").fetch_cast("f32").collect(f"R % {part} / 4", "R % 4 # 8")
    s = s.vector_init().vector_intra_slice_tag("Zero").vector_narrow_trim("R % 4").vector_intra_slice_reduce("R", "1", "1 # 4", "Add")
    s = s.vector_widen_pad(SCALAR_F32).vector_inter_slice_reduce("1 # 256", "1", "Add").vector_final()
    result = s.cast("bf16", "1 # 16").commit_trim("1 # 4").commit("1 # 4", let="sum")
    return b.build(result.to_hbm(element="1", let="out"), oracle="formula sum", tolerance=Tolerance(2.0**-7, elements * 2.0**-10))


def _row_sums(name: str, exponential: bool, rows: int, columns: int) -> Kernel:
    b = KernelBuilder(name, {"I": rows, "K": columns})
    s = _rows(b, _loaded_rows(b))
    if exponential:
        s = s.vector_fp_unary("Exp")
    s = _reduced(s, "Add").vector_widen_pad(SCALAR_F32).vector_final()
    result = s.cast("bf16", "1 # 16").commit_trim("1 # 4").commit("1 # 4", let="sums")
    oracle = "formula row_sum_exp" if exponential else "formula row_sum"
    return b.build(result.to_hbm(element="I", let="out"), oracle=oracle, tolerance=Tolerance(2.0**-7, columns * 2.0**-10))


def reduce_sum_ragged(rows: int = 256, columns: int = 1000) -> Kernel:
    """Row sums of a bf16 matrix whose rows are no whole number of flits."""
    return _row_sums("reduce_sum_ragged", False, rows, columns)


def reduce_sum_exp(rows: int = 256, columns: int = 1000) -> Kernel:
    """Row sums of exp(x)."""
    return _row_sums("reduce_sum_exp", True, rows, columns)


def _staged(b: KernelBuilder, value: Tensor, let: str) -> Tensor:
    """One f32 value a slice into the VRF on Sub."""
    return b.sub.begin(value).fetch("1", SCALAR_F32).collect("1", SCALAR_F32).to_vrf(SCALAR_F32, let=let)


def softmax(rows: int = 256, columns: int = 1000) -> Kernel:
    """Row softmax in three passes: maximum, reciprocal of the sum of exponentials, scaled exponentials."""
    b = KernelBuilder("softmax", {"I": rows, "K": columns})
    x = _loaded_rows(b)
    largest = _staged(b, _one_value(_reduced(_rows(b, x), "Max"), "largest"), "largest_vrf")

    def exponentials() -> Stream:
        return _rows(b, x).vector_fp_binary("SubF", operand=largest).vector_fp_unary("Exp")

    total = _one_value(_reduced(exponentials(), "Add").vector_fp_div_with_mode("Mode10", operand=1.0), "inverse_sum")
    scale = _staged(b, total, "inverse_sum_vrf")
    s = exponentials().vector_fp_binary("MulF", "Mul0", operand=scale).vector_widen_pad("K % 4 # 8").vector_final()
    result = s.cast("bf16", "K % 4 # 16").commit_trim("K % 4").commit("K", let="weights")
    return b.build(result.to_hbm(element="I, K", let="out"), oracle="formula row_softmax", tolerance=Tolerance(2.0**-7, 2.0**-20))


def rmsnorm(rows: int = 256, columns: int = 1024, epsilon: float = 6.25e-8) -> Kernel:
    """RMS norm of bf16 rows with a weight: mean square, its inverse root into the VRF, scaled row."""
    b = KernelBuilder("rmsnorm", {"I": rows, "K": columns})
    x = _loaded_rows(b)
    weight = b.input("weight", "Hbm", "bf16", element="K").to_dm(cluster=CLUSTER, slice="I", element="K", let="weight_dm")
    squares = _rows(b, x).vector_stash().vector_fp_binary("MulF", "Mul0", operand="Stash")
    mean = _reduced(squares, "Add").vector_fp_div(operand=float(columns)).vector_widen_pad(SCALAR_F32).vector_clip("Add", operand=epsilon)
    mean_dm = mean.vector_final().commit_trim(SCALAR_F32).commit(SCALAR_F32, let="mean_square")
    s = b.main.begin(mean_dm).fetch("1", SCALAR_F32).collect("1", SCALAR_F32).vector_init().vector_intra_slice_tag("Zero")
    s = s.vector_narrow_trim("1 # 4").vector_fp_unary("Sqrt").vector_fp_div_with_mode("Mode10", operand=1.0).vector_widen_pad(SCALAR_F32)
    scale = s.vector_final().to_vrf(SCALAR_F32, sub_arg=True, let="inverse_rms")
    staged = b.sub.begin(weight).fetch("K / 8", "K % 8").fetch_cast("f32").collect("K / 8", "K % 8")
    weight_vrf = staged.to_vrf("K", let="weight_vrf")
    s = _rows(b, x).vector_fp_binary("MulF", "Mul0", operand=scale).vector_fp_binary("MulF", "Mul1", operand=weight_vrf)
    s = s.vector_widen_pad("K % 4 # 8").vector_final()
    result = s.cast("bf16", "K % 4 # 16").commit_trim("K % 4").commit("K", let="normed")
    return b.build(result.to_hbm(element="I, K", let="out"), oracle="formula rms_norm", tolerance=Tolerance(2.0**-7, 2.0**-20))

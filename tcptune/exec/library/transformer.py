"""Element-wise and row kernels of a decoder layer on sizes of Qwen3-0.6B: norm, softmax, activations, residual, rotary embedding.

Every kernel takes and gives bf16 in HBM, row-major, and computes in f32. Where rows are cut into parts, all 512 slices of a chip hold one
(XFMR-003).
"""

from __future__ import annotations

import math

from tcptune.exec.library.vector_rows import rmsnorm, softmax
from tcptune.exec.program.build import KernelBuilder, Stream, Tensor
from tcptune.ir.kernels.kernel import Kernel, Tolerance
from tcptune.model.hardware import RNGD

HIDDEN, HEADS, KV_HEADS, HEAD_DIM, INTERMEDIATE = 1024, 16, 8, 128, 3072
CLUSTERS, SLICES = RNGD.clusters_per_chip, RNGD.slices_per_cluster
BF16 = Tolerance(2.0**-7, 2.0**-20)


def rms_norm(tokens: int = SLICES) -> Kernel:
    """RMS norm of hidden rows with a weight, one row a slice."""
    return rmsnorm(tokens, HIDDEN)


def attention_softmax(queries: int = 16, context: int = 512) -> Kernel:
    """Softmax over the context of every head and query, one row a slice."""
    return softmax(HEADS * queries, context)


class _Rows:
    """Rows of `width` elements over tokens, cut into equal parts so that every slice of both clusters holds one part."""

    def __init__(self, name: str, tokens: int, axis: str, width: int, **more: int) -> None:
        self.axis = axis
        self.part = tokens * width // (CLUSTERS * SLICES)
        per_cluster = tokens // CLUSTERS
        self.builder = KernelBuilder(name, {"T": tokens, axis: width, **more})
        self.place = {
            "cluster": f"T / {per_cluster}",
            "slice": f"T % {per_cluster}, {axis} / {self.part}",
            "element": f"{axis} % {self.part}",
        }
        self.flits = f"{axis} % {self.part} / 8"
        self.packets = f"{axis} % {self.part} / 4"
        self.flit = f"{axis} % 8"
        self.packet = f"{axis} % 4"

    def load(self, name: str) -> Tensor:
        return self.builder.input(name, "Hbm", "bf16", element=f"T, {self.axis}").to_dm(**self.place, let=f"{name}_dm")

    def widened(self, stream: Stream) -> Stream:
        """Flits of eight f32 values, in the chain."""
        s = stream.fetch(self.flits, self.flit).fetch_cast("f32").collect(self.flits, self.flit)
        return s.vector_init().vector_intra_slice_tag("Zero")

    def in_registers(self, tensor: Tensor, let: str) -> Tensor:
        s = self.builder.sub.begin(tensor).fetch(self.flits, self.flit).fetch_cast("f32").collect(self.flits, self.flit)
        return s.to_vrf(f"{self.axis} % {self.part}", let=let)

    def finish(self, stream: Stream, oracle: str) -> Kernel:
        """Leaves the engine, narrows to bf16 and stores the rows."""
        s = stream.vector_final().cast("bf16", f"{self.flit} # 16").commit_trim(self.flit)
        result = s.commit(f"{self.axis} % {self.part}", let="result")
        return self.builder.build(result.to_hbm(element=f"T, {self.axis}", let="out"), oracle=oracle, tolerance=BF16)


def residual_add(tokens: int = 64) -> Kernel:
    """``x + y`` on hidden rows: one pass reads both in turn and adds the pair."""
    rows = _Rows("residual_add", tokens, "H", HIDDEN, I=2)
    x, y = rows.load("x"), rows.load("y")
    time = f"{rows.flits}, I"
    s = rows.builder.main.begin_interleaved("I", x, y).fetch(time, rows.flit).fetch_cast("f32").collect(time, rows.flit)
    return rows.finish(s.vector_init().vector_intra_slice_unzip("I", rows.flits).vector_clip_zip("Add"), "formula add")


def gelu(tokens: int = 32) -> Kernel:
    """GeLU by the error function on intermediate rows, one pass: x waits in the stash while the gate is computed."""
    rows = _Rows("gelu", tokens, "L", INTERMEDIATE)
    s = rows.widened(rows.builder.main.begin(rows.load("x"))).vector_narrow_split(rows.packets, rows.packet).vector_stash()
    s = s.vector_fp_binary("MulF", "Mul0", operand=1 / math.sqrt(2)).vector_fp_unary("Erf")
    s = s.vector_fp_ternary("FmaF", operand=[0.5, 0.5]).vector_fp_binary("MulF", "Mul1", operand="Stash")
    return rows.finish(s.vector_widen_concat(rows.flits, rows.flit), "formula gelu_erf")


def swiglu(tokens: int = 32) -> Kernel:
    """``silu(gate) * up`` on intermediate rows: up waits in the VRF, gate in the stash."""
    rows = _Rows("swiglu", tokens, "L", INTERMEDIATE)
    gate, up = rows.load("gate"), rows.load("up")
    registers = rows.in_registers(up, "up_vrf")
    s = rows.widened(rows.builder.main.begin(gate)).vector_narrow_split(rows.packets, rows.packet).vector_stash()
    s = s.vector_fp_unary("Sigmoid").vector_fp_binary("MulF", "Mul0", operand="Stash").vector_fp_binary("MulF", "Mul1", operand=registers)
    return rows.finish(s.vector_widen_concat(rows.flits, rows.flit), "formula swiglu")


def rope(heads: int = HEADS) -> Kernel:
    """Rotary embedding of query (or key) heads: the halves of a head are the two groups of a pair, one pass a half of the result.

    A slice holds one token of one head; cosines and sines of its token are replicated over the heads by their load.
    """
    per_cluster = SLICES // heads
    half = HEAD_DIM // 2
    b = KernelBuilder("rope", {"T": CLUSTERS * per_cluster, "N": heads, "P": 2, "E": half})
    place = {"cluster": f"T / {per_cluster}", "slice": f"T % {per_cluster}, N"}
    x = b.input("x", "Hbm", "bf16", element="T, N, P, E").to_dm(**place, element="P, E", let="x_dm")
    turns = []
    for name in ("cosine", "sine"):
        angles = b.input(name, "Hbm", "bf16", element="T, E").to_dm(**place, element="E", let=f"{name}_dm")
        s = b.sub.begin(angles).fetch("E / 8", "E % 8").fetch_cast("f32").collect("E / 8", "E % 8")
        turns.append(s.to_vrf("E", let=f"{name}_vrf"))
    cosine, sine = turns
    out = b.new_dm("bf16", **place, element="P, E", let="turned")
    for position, (low, high, fn) in enumerate(((cosine, sine, "SubF"), (sine, cosine, "AddF"))):
        s = b.main.begin(x).fetch("E / 8, P", "E % 8").fetch_cast("f32").collect("E / 8, P", "E % 8")
        s = s.vector_init().vector_intra_slice_unzip("P", "E / 8").vector_narrow_split("E / 4", "E % 4")
        s = s.vector_fp_binary("MulF", "Mul0", group0=low, group1=high).vector_fp_zip(fn).vector_widen_concat("E / 8", "E % 8")
        tile = {"axis": "P", "len": 1, "start": position, "element": "1 #{!} 2, E", "mutable": True}
        s.vector_final().cast("bf16", "E % 8 # 16").commit_trim("E % 8").commit_view(into=out, tile=tile)
    return b.build(out.to_hbm(element="T, N, P, E", let="out"), oracle="formula rope", tolerance=BF16)


KERNELS = {
    "rms_norm": rms_norm,
    "attention_softmax": attention_softmax,
    "residual_add": residual_add,
    "gelu": gelu,
    "swiglu": swiglu,
    "rope": rope,
}
"""The kernels by name, each on its default sizes."""

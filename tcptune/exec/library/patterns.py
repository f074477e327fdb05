"""The manual's template patterns: constant add, elementwise products, dot, GEMV, GEMM, fetch and commit, batched matmul (KERNEL-003 on)."""

from __future__ import annotations

from tcptune.exec.program.build import KernelBuilder, Stream, Tensor
from tcptune.ir.kernels.kernel import Kernel, Tolerance

EXACT = Tolerance(form="exact")
CLUSTER = "1 # 2"


def finished(stream: Stream, packet: str, element: str, let: str) -> Tensor:
    """Commit of a vector result: leave the engine, trim, commit."""
    return stream.vector_final().commit_trim(packet).commit(element, let=let)


def constant_add(elements: int = 2048, constant: int = 1) -> Kernel:
    """``out[i] = x[i] + constant`` in wrapping i32, eight values a slice (KERNEL-003)."""
    b = KernelBuilder("constant_add", {"A": elements})
    x = b.input("x", "Hbm", "i32", element="A").to_dm(cluster=CLUSTER, slice="A / 8 # 256", element="A % 8", let="x_dm")
    s = b.main.begin(x).fetch("1", "A % 8").collect("1", "A % 8").vector_init().vector_intra_slice_tag("Zero")
    result = finished(s.vector_fxp(fn="AddFxp", operand=constant), "A % 8", "A % 8", "sum")
    return b.build(result.to_hbm(element="A", let="out"), oracle=f"einsum a->a | add {constant}", tolerance=EXACT)


def elementwise_mul(elements: int = 2048) -> Kernel:
    """``out[i] = lhs[i] * rhs[i]`` in wrapping i32, rhs in the VRF (KERNEL-008)."""
    b = KernelBuilder("elementwise_mul", {"A": elements})
    place = {"cluster": CLUSTER, "slice": "A / 8 # 256", "element": "A % 8"}
    lhs = b.input("lhs", "Hbm", "i32", element="A").to_dm(**place, let="lhs_dm")
    rhs = b.input("rhs", "Hbm", "i32", element="A").to_dm(**place, let="rhs_dm")
    vrf = b.sub.begin(rhs).fetch("1", "A % 8").collect("1", "A % 8").to_vrf("A % 8", let="rhs_vrf")
    s = b.main.begin(lhs).fetch("1", "A % 8").collect("1", "A % 8").vector_init().vector_intra_slice_tag("Zero")
    result = finished(s.vector_fxp(fn="MulInt", operand=vrf), "A % 8", "A % 8", "product")
    return b.build(result.to_hbm(element="A", let="out"), oracle="einsum a,a->a", tolerance=EXACT)


def _contracted(stream: Stream, time: str, packet: str, weight: Tensor) -> Stream:
    """A contraction over the whole packet and all of Time, one lane."""
    return (
        stream.contract_outer(time, packet, weight)
        .contract_packet("1")
        .contract_time("1")
        .contract_lane("1", "1 # 8", "Interleaved")
        .cast("bf16", "1 # 16")
    )


def dot(elements: int = 2048) -> Kernel:
    """Dot product of two bf16 vectors in one live slice (KERNEL-012)."""
    b = KernelBuilder("dot", {"A": elements})
    place = {"cluster": CLUSTER, "slice": "1 # 256", "element": "A"}
    rhs = b.input("lhs", "Hbm", "bf16", element="A"), b.input("rhs", "Hbm", "bf16", element="A")
    rhs_dm = rhs[1].to_dm(**place, let="rhs_dm")
    lhs_dm = rhs[0].to_dm(**place, let="lhs_dm")
    trf = b.sub.begin(rhs_dm).fetch("1", "A").collect("A / 16", "A % 16").to_trf("1", "A", let="rhs_trf")
    s = b.main.begin(lhs_dm).fetch("1", "A").collect("A / 16", "A % 16")
    result = _contracted(s, "A / 32", "A % 32", trf).commit_trim("1 # 4").commit("1 # 4", let="result")
    return b.build(result.to_hbm(element="1", let="out"), oracle="einsum a,a->", tolerance=Tolerance(0.02, 0.5, "max"))


def gemv(rows: int = 256, columns: int = 2048) -> Kernel:
    """``y = A x`` in bf16, one row a slice, the vector replicated by its load and kept in the TRF (KERNEL-015)."""
    b = KernelBuilder("gemv", {"I": rows, "J": columns})
    matrix = b.input("matrix", "Hbm", "bf16", element="I, J")
    vector = b.input("vector", "Hbm", "bf16", element="J")
    vector_dm = vector.to_dm(cluster=CLUSTER, slice="I", element="J", let="vector_dm")
    matrix_dm = matrix.to_dm(cluster=CLUSTER, slice="I", element="J", let="matrix_dm")
    trf = b.sub.begin(vector_dm).fetch("1", "J").collect("J / 16", "J % 16").to_trf("1", "J", let="vector_trf")
    s = b.main.begin(matrix_dm).fetch("J / 16", "J % 16").collect("J / 16", "J % 16")
    result = _contracted(s, "J / 32", "J % 32", trf).commit_trim("1 # 4").commit("1 # 4", let="result")
    return b.build(result.to_hbm(element="I", let="out"), oracle="einsum ij,j->i", tolerance=Tolerance(0.02, 0.5, "max"))


def gemm(rows: int = 512, columns: int = 512, depth: int = 64) -> Kernel:
    """``C[i,j] = sum_k A[i,k] B[j,k]`` in bf16 on a 16 x 16 grid of slices, 8 lanes (KERNEL-016)."""
    b = KernelBuilder("gemm", {"I": rows, "J": columns, "K": depth})
    a = b.input("a", "Hbm", "bf16", element="I, K")
    w = b.input("b", "Hbm", "bf16", element="J, K")
    tile_i, tile_j = rows // 16, columns // 16
    groups = tile_j // 8
    grid = f"I / {tile_i}, J / {tile_j}"
    w_dm = w.to_dm(cluster=CLUSTER, slice=grid, element=f"J % {tile_j}, K", let="b_dm")
    a_dm = a.to_dm(cluster=CLUSTER, slice=grid, element=f"I % {tile_i}, K", let="a_dm")
    lanes = f"J % 8, J / 8 % {groups}"
    trf = b.sub.begin(w_dm).fetch(lanes, "K").collect(f"{lanes}, K / 16", "K % 16").to_trf("J % 8", f"J / 8 % {groups}, K", let="b_trf")
    time = f"I % {tile_i}, J / 8 % {groups}"
    s = b.main.begin(a_dm).fetch(time, "K").collect(f"{time}, K / 16", "K % 16")
    s = s.contract_outer(f"{time}, K / 32", "K % 32", trf).contract_packet("1").contract_time(time)
    s = s.contract_lane(time, "J % 8", "Interleaved").cast("bf16", "J % 8 # 16").commit_trim("J % 8")
    result = s.commit(f"I % {tile_i}, J % {tile_j}", let="result")
    return b.build(result.to_hbm(element="I, J", let="out"), oracle="einsum ik,jk->ij", tolerance=Tolerance(0.05, 1.0, "max"))


def fetch_commit(rows: int = 4096, columns: int = 8) -> Kernel:
    """``out[b, a] = i32(x[a, b])``: i8 widened on the way through, transposed by the last DMA (KERNEL-017)."""
    b = KernelBuilder("fetch_commit", {"A": rows, "B": columns})
    inner = "A % 8, B"
    blocks = f"A / 8 % {rows // 2048}"
    x = b.input("x", "Hbm", "i8", element="A, B").to_dm(
        cluster=CLUSTER, slice=f"A / {rows // 256}", element=f"{blocks}, {inner}", let="x_dm"
    )
    s = b.main.begin(x).fetch(blocks, inner).fetch_cast("i32").collect(f"{blocks}, A % 8", "B")
    moved = s.commit_trim("B").commit(f"{blocks}, {inner}", let="moved")
    return b.build(moved.to_hbm(element="B, A", let="out"), oracle="permute ab->ba", tolerance=EXACT)


def batched_matmul(
    batch: int = 32, rows: int = 32, depth: int = 128, columns: int = 8, *, time: str = "M", element: str = "bf16", relu: bool = False
) -> Kernel:
    """``out[v,m,n] = sum_k a[v,m,k] b[n,k]``, columns in the lanes, one of batch and rows over slices of both clusters.

    Args:
        time: the axis that stays in time, ``M`` or ``V``.
        element: ``bf16`` or ``i8``.
        relu: bf16 by the Commit Adapter with ReLU, which leaves the Cast Engine and the Vector Engine free.
    """
    b = KernelBuilder("batched_matmul", {"V": batch, "M": rows, "N": columns, "K": depth})
    spread = "V" if time == "M" else "M"
    half = b.axes[spread] // 2
    flit, packet = (16, 32) if element == "bf16" else (32, 64)
    place = {"cluster": f"{spread} / {half}", "slice": f"{spread} % {half} # 256"}
    a = b.input("a", "Hbm", element, element="V, M, K").to_dm(**place, element=f"{time}, K", let="a_dm")
    w = b.input("b", "Hbm", element, element="N, K").to_dm(**place, element="N, K", let="b_dm")
    rows_of = f"K / {flit}", f"K % {flit}"
    trf = b.sub.begin(w).fetch(f"N, {rows_of[0]}", rows_of[1]).collect(f"N, {rows_of[0]}", rows_of[1]).to_trf("N", "K", let="b_trf")
    s = b.main.begin(a).fetch(f"{time}, {rows_of[0]}", rows_of[1]).collect(f"{time}, {rows_of[0]}", rows_of[1])
    s = s.contract_outer(f"{time}, K / {packet}", f"K % {packet}", trf).contract_packet("1").contract_time(time)
    s = s.contract_lane(time, "N", "Interleaved")
    if element == "bf16" and not relu:
        s = s.cast("bf16", "N # 16")
    s = s.commit_trim("N")
    if relu:
        s = s.commit_cast_relu("bf16")
    result = s.commit(f"{time}, N", let="result")
    oracle = "einsum vmk,nk->vmn | relu" if relu else "einsum vmk,nk->vmn"
    tolerance = EXACT if element == "i8" else Tolerance(2.0**-7, 1e-3)
    return b.build(result.to_hbm(element="V, M, N", let="out"), oracle=oracle, tolerance=tolerance)

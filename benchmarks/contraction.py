"""Contractions against numpy: exact and fast mode, one pass and whole kernels with their transfers. Ratios are of the same run.

Targets: GEMM (512, 512, 64, bf16) with transfers, exact: at most 20 times `numpy.einsum` in f32; GEMM of 1,024 cubed, fast: at most 5 times
`numpy.einsum(optimize=True)`.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np

from tcptune.exec.library.patterns import gemm
from tcptune.exec.program.check import check_kernel
from tcptune.exec.running.fill import declared_inputs
from tcptune.exec.running.interpret import run_kernel
from tcptune.ir.kernels.ops import op_from_json
from tcptune.ir.mappings.axes import Axes
from tcptune.ir.types import StreamType, TensorType, dtype
from tcptune.model.engines.contraction.values import contract_fused
from tcptune.model.pipeline import Chain, check_chain
from tcptune.model.stage import ChainEnv
from tcptune.model.values import Values

REPEATS = 7


@dataclass(frozen=True)
class Duration:
    """Shortest of several runs in milliseconds: by the clock, and of processor time (which other load disturbs less)."""

    wall: float
    processor: float


def best(work: Callable[[], Any]) -> Duration:
    wall, processor = [], []
    for _ in range(REPEATS):
        begin, used = time.perf_counter(), time.process_time()
        work()
        wall.append(time.perf_counter() - begin)
        processor.append(time.process_time() - used)
    return Duration(min(wall) * 1e3, min(processor) * 1e3)


def gemm_pass(rows: int, columns: int, depth: int, row_tile: int, column_tile: int, clusters: int) -> tuple[Chain, Values, Values]:
    """One contraction pass over a slice grid: `row_tile` x `column_tile` results a slice, all operands in place."""
    axes = Axes(I=rows, J=columns, K=depth)
    per_cluster = columns // clusters
    cluster = axes.mapping(f"J / {per_cluster} # 2" if clusters > 1 else "1 # 2")
    spatial = {"chip": axes.mapping("1"), "cluster": cluster, "slice": axes.mapping(f"I / {row_tile}, J % {per_cluster} / {column_tile}")}
    bf16 = dtype("bf16")
    start = StreamType("Collect", bf16, time=axes.mapping(f"I % {row_tile}, K / 16"), packet=axes.mapping("K % 16"), **spatial)
    weight = TensorType("Trf", bf16, axes.mapping(f"J % {column_tile} / 8, K"), lane=axes.mapping("J % 8"), **spatial)
    kept = f"I % {row_tile}, J % {column_tile} / 8"
    ops = (
        {"op": "contract_outer", "time": f"I % {row_tile}, K / 32, J % {column_tile} / 8", "packet": "K % 32", "trf": "w"},
        {"op": "contract_packet", "packet": "1"},
        {"op": "contract_time", "time": kept},
        {"op": "contract_lane", "time": kept, "packet": "J % 8", "mode": "Interleaved"},
    )
    chain = check_chain(start, [op_from_json(op, axes) for op in ops], ChainEnv("main", axes, {"w": weight}))
    rng = np.random.default_rng(0)
    live = np.broadcast_to(np.arange(2)[:, None, None] < clusters, (2, 256, 1))[None]

    def filled(kind: StreamType | TensorType) -> Values:
        data = rng.normal(size=kind.shape).astype(ml_dtypes.bfloat16)
        return Values(data, np.broadcast_to(live.reshape(1, 2, 256, *(1,) * (data.ndim - 3)), data.shape).copy())

    return chain, filled(start), filled(weight)


def matrices(rows: int, columns: int, depth: int) -> tuple[Any, Any]:
    rng = np.random.default_rng(1)
    return rng.normal(size=(rows, depth)).astype(np.float32), rng.normal(size=(columns, depth)).astype(np.float32)


def report(what: str, spent: Duration, reference: Duration, name: str) -> None:
    ratios = f"{spent.wall / reference.wall:6.2f} x {name} ({spent.processor / reference.processor:.2f} x of processor time)"
    print(f"{what:<50} {spent.wall:9.2f} ms   {ratios}")


def main() -> None:
    """Prints the table."""
    left, right = matrices(512, 512, 64)
    plain = best(lambda: np.einsum("ik,jk->ij", left, right))
    report("numpy.einsum 512 x 512 x 64, f32", plain, plain, "einsum")
    chain, stream, weight = gemm_pass(512, 512, 64, 32, 32, clusters=1)
    report("exact, one pass", best(lambda: contract_fused(stream, weight, chain.steps)), plain, "einsum")
    checked = check_kernel(gemm())
    inputs = declared_inputs(gemm())
    run_kernel(checked, inputs)
    report("exact, whole kernel with transfers", best(lambda: run_kernel(checked, inputs)), plain, "einsum")
    report("fast, whole kernel with transfers", best(lambda: run_kernel(checked, inputs, "fast")), plain, "einsum")

    left, right = matrices(1024, 1024, 1024)
    blas = best(lambda: np.einsum("ik,jk->ij", left, right, optimize=True))
    report("numpy.einsum(optimize=True) 1,024 cubed, f32", blas, blas, "einsum(optimize)")
    chain, stream, weight = gemm_pass(1024, 1024, 1024, 64, 32, clusters=2)
    report("fast, one pass", best(lambda: contract_fused(stream, weight, chain.steps, "fast")), blas, "einsum(optimize)")
    report("exact, one pass", best(lambda: contract_fused(stream, weight, chain.steps)), blas, "einsum(optimize)")


if __name__ == "__main__":
    main()

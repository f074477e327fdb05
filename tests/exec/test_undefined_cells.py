"""Silent wrong results are loud: `1 # n` is no replica, a destination-only axis repeats nothing, and undefined cells are named."""

from __future__ import annotations

from typing import Any

import pytest

from tcptune.errors import RuleViolation
from tcptune.exec.program.check import check_kernel
from tcptune.exec.running.fill import declared_inputs
from tcptune.exec.running.interpret import run_kernel
from tcptune.ir.kernels.kernel import Kernel

ROWS, COLUMNS = 256, 64


def gemv(vector_slice: str, out_element: str = "I", extra_axes: dict[str, int] | None = None, claimed: str | None = None) -> Kernel:
    """A matrix-vector product, a row a slice.

    `vector_slice` says how the vector lies over the slices; `claimed` is what a reshape then says about it.
    """
    steps: list[dict[str, Any]] = [
        {"let": "matrix_dm", "op": "to_dm", "from": "matrix", "cluster": "1 # 2", "slice": "I", "element": "J"},
        {"let": "vector_dm", "op": "to_dm", "from": "vector", "cluster": "1 # 2", "slice": vector_slice, "element": "J"},
        {
            "let": "vector_trf",
            "context": "sub",
            "begin": "vector_dm",
            "ops": [
                {"op": "fetch", "time": "1", "packet": "J"},
                {"op": "collect", "time": "J / 16", "packet": "J % 16"},
                {"op": "to_trf", "lane": "1", "element": "J"},
            ],
        },
        {
            "let": "result",
            "context": "main",
            "begin": "matrix_dm",
            "ops": [
                {"op": "fetch", "time": "J / 16", "packet": "J % 16"},
                {"op": "collect", "time": "J / 16", "packet": "J % 16"},
                {"op": "contract_outer", "time": "J / 32", "packet": "J % 32", "trf": "vector_trf"},
                {"op": "contract_packet", "packet": "1"},
                {"op": "contract_time", "time": "1"},
                {"op": "contract_lane", "time": "1", "packet": "1 # 8", "mode": "Interleaved"},
                {"op": "cast", "dtype": "bf16", "packet": "1 # 16"},
                {"op": "commit_trim", "packet": "1 # 4"},
                {"op": "commit", "element": "1 # 4"},
            ],
        },
        {"let": "out", "op": "to_hbm", "from": "result", "chip": "1", "element": out_element},
    ]
    if claimed is not None:
        relabelled = {"let": "vector_all", "op": "reshape", "from": "vector_dm", "chip": "1", "cluster": "1 # 2", "slice": claimed}
        steps.insert(2, {**relabelled, "element": "J", "unsafe": True})
        steps[3]["begin"] = "vector_all"
    case = {
        "id": "gemv",
        "axes": {"I": ROWS, "J": COLUMNS, **(extra_axes or {})},
        "chips": 1,
        "inputs": {
            "matrix": {"type": "Hbm", "dtype": "bf16", "chip": "1", "element": "I, J", "fill": "(I + J) % 5"},
            "vector": {"type": "Hbm", "dtype": "bf16", "chip": "1", "element": "J", "fill": "J % 3"},
        },
        "steps": steps,
        "output": "out",
    }
    return Kernel.from_json(case)


def undefined_reads(kernel: Kernel) -> str:
    """What the run says about undefined cells of its results; empty where all are known."""
    result = run_kernel(check_kernel(kernel), declared_inputs(kernel))
    return "; ".join(str(u) for u in result.undefined)


def test_a_vector_loaded_to_every_slice_gives_a_defined_product() -> None:
    assert undefined_reads(gemv("I")) == ""


def test_a_vector_loaded_into_one_slice_cannot_be_used_by_all() -> None:
    with pytest.raises(RuleViolation) as refusal:
        check_kernel(gemv("1 # 256"))
    assert "1 # 256" in refusal.value.render()


def test_relabelling_it_as_a_replica_leaves_its_cells_undefined_and_named() -> None:
    text = undefined_reads(gemv("1 # 256", claimed="I"))
    assert "255" in text
    assert "I = 1" in text


def test_a_store_along_an_axis_that_nothing_holds_is_refused() -> None:
    with pytest.raises(RuleViolation) as refusal:
        check_kernel(gemv("I", out_element="N, I", extra_axes={"N": 4}))
    assert refusal.value.rule == "DMA-002"
    assert "axis N" in refusal.value.message

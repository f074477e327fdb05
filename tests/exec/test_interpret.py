"""Running kernels: values, undefined cells, views, routing and indirect moves, against plain numpy."""

import numpy as np
import pytest

from tcptune.errors import WorkError
from tcptune.exec.library import double_buffer
from tcptune.exec.program.build import KernelBuilder
from tcptune.exec.program.check import check_kernel
from tcptune.exec.running.fill import cells_of, declared_inputs, formula
from tcptune.exec.running.interpret import run_kernel
from tcptune.ir.kernels.kernel import Kernel
from tcptune.model.values import Values

WHOLE = {"cluster": "1 # 2", "slice": "1 # 256"}


def run(b, *outputs):
    checked = check_kernel(b.build(*outputs))
    return run_kernel(checked, declared_inputs(checked.kernel))


def contents(result, name):
    """Live cells by coordinates."""
    values, type_ = result.outputs[name], result.types[name]
    cells = cells_of(type_)
    axes = sorted(cells.coords)
    return {tuple(int(cells.coords[a][at]) for a in axes): values.data[at].item() for at in zip(*np.nonzero(cells.live), strict=True)}


def test_a_transfer_moves_by_coordinate():
    b = KernelBuilder("k", {"A": 8, "B": 16})
    x = b.input("x", "Hbm", "i32", element="A, B", fill="100*A + B")
    out = x.to_dm(**WHOLE, element="A, B").to_hbm(element="B, A", let="out")
    got = contents(run(b, out), "out")
    assert got == {(a, k): 100 * a + k for a in range(8) for k in range(16)}


def test_only_position_zero_of_a_padded_slice_holds_data():
    b = KernelBuilder("k", {"A": 8, "S": 256})
    x = b.input("x", "Hbm", "i32", element="A", fill="A")
    dm = x.to_dm(**WHOLE, element="A", let="dm")
    result = run(b, dm)
    values = result.outputs["dm"]
    assert values.defined[0, 0, 0].all()
    assert not values.defined[0, 0, 1:].any()
    assert not values.defined[0, 1].any()


def test_padding_claimed_as_an_axis_is_named_as_undefined():
    b = KernelBuilder("k", {"A": 8, "S": 256})
    dm = b.input("x", "Hbm", "i32", element="A", fill="A").to_dm(**WHOLE, element="A")
    claimed = dm.reshape(slice="S", unsafe=True)
    out = claimed.to_hbm(element="S, A", let="out")
    result = run(b, out)
    assert result.undefined_reads == 255 * 8
    assert result.undefined[0].first[0] == {"S": 1, "A": 0}


def test_a_tensor_nothing_wrote_is_undefined():
    b = KernelBuilder("k", {"A": 8})
    fresh = b.new_dm("i32", **WHOLE, element="A", let="fresh")
    assert run(b, fresh).undefined_reads == 8


def test_a_read_tile_shows_its_window_and_nothing_else():
    b = KernelBuilder("k", {"G": 4, "A": 8})
    dm = b.input("x", "Hbm", "i32", element="G, A", fill="10*G + A").to_dm(**WHOLE, element="G, A")
    view = dm.tile("G", 2, 1, "G = 2 # 4, A", let="view")
    result = run(b, view)
    values = result.outputs["view"]
    assert values.data[0, 0, 0, :16].tolist() == [10 * g + a for g in (1, 2) for a in range(8)]
    assert values.defined[0, 0, 0].tolist() == [True] * 16 + [False] * 16


@pytest.mark.parametrize("build", [double_buffer.rolled, double_buffer.software_pipelined, double_buffer.unrolled])
def test_tiles_written_in_a_loop_make_the_whole_tensor(build):
    checked = check_kernel(build())
    rng = np.random.default_rng(7)
    types = {i.name: i.type for i in checked.kernel.inputs}
    a, w = (rng.integers(-3, 4, shape).astype(np.float32) for shape in ((16, 64), (20, 8, 64)))
    inputs = {
        "activation": Values(a.reshape(1, -1).astype(_np("activation", types)), np.ones((1, a.size), bool)),
        "weight": Values(w.reshape(1, -1).astype(_np("weight", types)), np.ones((1, w.size), bool)),
    }
    result = run_kernel(checked, inputs)
    want = np.einsum("tr,gor->tgo", a, w)
    assert np.allclose(result.outputs["out"].data.astype(np.float32).reshape(16, 20, 8), want, rtol=2**-8)
    assert not result.undefined


def _np(name, types):
    return formula(types[name], "0").data.dtype


def test_a_redistribution_follows_positions_not_names():
    b = KernelBuilder("k", {"C": 4, "K": 2, "B": 4, "D": 8}, chips=4)
    dm = b.input("x", "Dm", "i32", chip="C", cluster="K", slice="1 # 256", element="B, D", fill="1000*C + 100*K + 10*B + D")
    plan = [
        {"op": "chip_shuffle", "sources": [1, 2, 3, 0]},
        {"op": "cluster_swap"},
        {"op": "chip_slice", "axis": "B", "output": "D", "indices": [3, 2, 1, 0]},
    ]
    out = dm.redistribute(plan, element="D", let="out")
    got = contents(run(b, out), "out")
    assert got == {(t, d, k): 1000 * ((t + 1) % 4) + 100 * (1 - k) + 10 * (3 - t) + d for t in range(4) for k in range(2) for d in range(8)}


def test_gathers_read_rows_by_number_and_by_byte_offset():
    b = KernelBuilder("k", {"W": 16, "V": 4, "G": 256})
    table = b.input("table", "Hbm", "i32", element="W, V", fill="10*W + V")
    offsets = b.input("offsets", "Hbm", "i32", element="G", fill="16 * ((7*G) % 16)")
    numbers = b.input("numbers", "Dm", "i32", chip="1", cluster="1 # 2", slice="G / 2 # 256", element="G % 2", fill="(7*G) % 16")
    scaled = table.dma_gather_scaled(offsets, cluster="1 # 2", slice="G", element="V", let="scaled")
    unscaled = table.dma_gather_unscaled(numbers, cluster="1 # 2", slice="G / 2 # 256", element="G % 2, V", let="unscaled")
    result = run(b, scaled, unscaled)
    want = {(g, v): 10 * (7 * g % 16) + v for g in range(256) for v in range(4)}
    assert contents(result, "scaled") == want
    assert contents(result, "unscaled") == want


def test_a_row_outside_the_table_is_undefined():
    b = KernelBuilder("k", {"W": 4, "V": 2, "G": 256})
    table = b.input("table", "Hbm", "i32", element="W, V", fill="W")
    index = b.input("index", "Hbm", "i32", element="G", fill="8 * G")
    out = table.dma_gather_scaled(index, cluster="1 # 2", slice="G", element="V", let="out")
    assert run(b, out).undefined_reads == (256 - 4) * 2


def scatter_rows(index):
    """64 rows of two i32 scattered over 80; row k holds 100 + k."""
    axes = {"K": 64, "V": 2, "C": 80}
    source = {"type": "Dm", "dtype": "i32", "chip": "1", "cluster": "1 # 2", "slice": "K # 256", "element": "V", "fill": "100 + K"}
    inputs = {
        "d": source,
        "index": {"type": "Hbm", "dtype": "i32", "chip": "1", "element": "K", "fill": index},
        "out": {"type": "Hbm", "dtype": "i32", "chip": "1", "element": "C, V", "fill": "C"},
    }
    steps = [{"op": "dma_scatter", "from": "d", "key": "K", "index": "index", "into": "out"}]
    kernel = Kernel.from_json({"id": "k", "axes": axes, "chips": 1, "inputs": inputs, "steps": steps, "output": "out"})
    return run_kernel(check_kernel(kernel), declared_inputs(kernel))


def test_rows_that_no_index_names_keep_their_value():
    result = scatter_rows("8 * (K + 10)")
    assert result.undefined_reads == 0
    assert contents(result, "out") == {(c, v): 90 + c if 10 <= c < 74 else c for c in range(80) for v in range(2)}


def test_a_row_written_twice_with_different_values_is_undefined():
    assert scatter_rows("8 * (K - K % 2)").undefined_reads == 32 * 2


def test_a_scatter_to_a_row_that_is_none_leaves_nothing_known():
    assert scatter_rows("8 * (K + 17)").undefined_reads == 80 * 2


def test_inputs_are_checked():
    checked = check_kernel(double_buffer.rolled())
    with pytest.raises(WorkError, match="no contents"):
        run_kernel(checked, {})

"""Inputs that indexed transfers read rows by hold rows that there are."""

from __future__ import annotations

import numpy as np
import pytest

from tcptune.exec.running.fill import declared_inputs, drawn_inputs
from tcptune.exec.running.indices import IndexRange, index_ranges
from tcptune.exec.running.interpret import run_kernel
from tcptune.exec.rust.check import check_rust
from tcptune.exec.rust.reader import read_rust

HEAD = "axes![G = 256, V = 1000, D = 64];\ntype Chip = m![1];\ntype Cluster = m![1 # 2];\n"
EMBED = """\
#[device(chip = 1)]
fn embed(device: &mut Device, table: &HbmTensor<bf16, Chip, m![V, D]>, ids: &HbmTensor<i32, Chip, m![G]>)
    -> HbmTensor<bf16, Chip, m![G, D]> {
    let ids_dm = ids.to_dm::<Cluster, m![1 # 256], m![G]>(&mut device.tdma);
    let rows: DmTensor<bf16, Chip, Cluster, m![G], m![D]> = table.dma_gather_unscaled(&ids_dm);
    rows.to_hbm(&mut device.tdma)
}
"""
STORE = """\
#[device(chip = 1)]
fn store(device: &mut Device, x: &HbmTensor<bf16, Chip, m![G, D]>, at: &HbmTensor<i32, Chip, m![G]>,
    table: &mut HbmTensor<bf16, Chip, m![V, D]>) {
    let rows = x.to_dm::<Cluster, m![G], m![D]>(&mut device.tdma);
    rows.dma_scatter::<m![G], _, _>(at, table);
}
"""


@pytest.mark.parametrize(("text", "name", "want"), [(EMBED, "ids", IndexRange(1000)), (STORE, "at", IndexRange(1000, 128))])
def test_the_range_of_an_index_is_the_rows_of_its_table(text: str, name: str, want: IndexRange) -> None:
    assert index_ranges(read_rust(HEAD + text).kernel) == {name: want}


def test_kernels_without_indexed_transfers_have_none() -> None:
    text = EMBED.replace("table.dma_gather_unscaled(&ids_dm)", "DmTensor::new()")
    assert index_ranges(read_rust(HEAD + text).kernel) == {}


@pytest.mark.parametrize("seed", [1, 2])
def test_an_embedding_gathers_the_rows_that_its_input_names(seed: int) -> None:
    checked = check_rust(read_rust(HEAD + EMBED))
    inputs = declared_inputs(checked.kernel, seed)
    result = run_kernel(checked, inputs)
    ids = inputs["ids"].data.reshape(-1)
    assert len(set(ids.tolist())) == 256
    assert not result.undefined
    table = inputs["table"].data.reshape(1000, 64)
    assert np.array_equal(result.outputs["out"].data.reshape(256, 64).view(np.uint16), table[ids].view(np.uint16))


@pytest.mark.parametrize("how", ["random", "zeros", "wide"])
def test_a_scatter_writes_every_row_once_whatever_else_is_drawn(how: str) -> None:
    checked = check_rust(read_rust(HEAD + STORE))
    inputs = drawn_inputs(checked.kernel, how)
    want = inputs["table"].data.reshape(1000, 64).copy()
    want[inputs["at"].data.reshape(-1) // 128] = inputs["x"].data.reshape(256, 64)
    result = run_kernel(checked, inputs)
    assert not result.undefined
    assert np.array_equal(result.outputs["table"].data.reshape(1000, 64).view(np.uint16), want.view(np.uint16))


def test_more_indices_than_rows_repeat_them_evenly() -> None:
    drawn = IndexRange(3, 8).draw(7, np.random.default_rng(0))
    assert sorted(set(drawn.tolist())) == [0, 8, 16]
    assert np.bincount(drawn // 8).tolist() in ([3, 2, 2], [2, 3, 2], [2, 2, 3])

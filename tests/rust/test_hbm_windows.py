"""Windows of HBM tensors: written through mutable tiles, guarded and awaited only where bytes are shared."""

from __future__ import annotations

import numpy as np
import pytest

from tcptune.errors import TcptuneError
from tcptune.exec.compile import compile_checked
from tcptune.exec.running.fill import declared_inputs
from tcptune.exec.running.interpret import run_kernel
from tcptune.exec.rust.check import check_rust
from tcptune.exec.rust.reader import read_rust

HEAD = """\
axes![G = 4, A = 2048];
type Chip = m![1];
type Row = DmTensor<bf16, Chip, m![1 # 2], m![A / 8], m![A % 8]>;
"""
CACHE = """\
#[device(chip = 1)]
fn update(device: &mut Device, row: &HbmTensor<bf16, Chip, m![A]>, cache: &mut HbmTensor<bf16, Chip, m![G, A]>) {
    let row_dm: Row = row.to_dm(&mut device.tdma);
    row_dm.view().to_hbm_view(&mut device.tdma, cache.view_mut().tile::<m![G], 1, m![1 #{!} 4, A]>(2));
}
"""
COPY = """\
#[device(chip = 1)]
fn copy(device: &mut Device, x: &HbmTensor<bf16, Chip, m![G, A]>) -> HbmTensor<bf16, Chip, m![G, A]> {
    let mut out: HbmTensor<bf16, Chip, m![G, A]> = HbmTensor::new();
    #[unroll]
    for g in 0..G::SIZE {
        let row: Row = x.view().tile::<m![G], 1, m![1 # 4, A]>(g).to_dm(&mut device.tdma);
        row.view().to_hbm_view(&mut device.tdma, out.view_mut().tile::<m![G], 1, m![1 #{!} 4, A]>(START));
    }
    MORE
    out
}
"""


def _checked(text: str):
    return check_rust(read_rust(HEAD + text))


def test_a_row_of_a_cache_is_replaced_and_the_others_stay() -> None:
    checked = _checked(CACHE)
    inputs = declared_inputs(checked.kernel, 7)
    row, before = (inputs[name].data.reshape(-1, 2048).copy() for name in ("row", "cache"))
    after = run_kernel(checked, inputs).outputs["cache"].data.reshape(4, 2048)
    want = np.concatenate([before[:2], row, before[3:]])
    assert np.array_equal(after.view(np.uint16), want.view(np.uint16))


def _kinds(text: str) -> list[str]:
    return [i.id.split(" of ")[0] for i in compile_checked(_checked(text)).instructions if i.kind == "Core" and " of " in i.id]


def test_an_input_that_is_overwritten_is_guarded() -> None:
    assert _kinds(CACHE).count("reuse") == 1


@pytest.mark.parametrize(("start", "guards"), [("g", 0), ("0", 3), ("g / 2", 2), ("g * g % 4", 2)])
def test_parts_of_a_new_buffer_are_guarded_only_where_they_are_written_again(start: str, guards: int) -> None:
    text = COPY.replace("START", start).replace("MORE", "")
    assert _kinds(text).count("reuse") == guards


@pytest.mark.parametrize(("start", "syncs"), [(1, 0), (0, 1)])
def test_a_load_waits_for_the_stores_of_what_it_reads(start: int, syncs: int) -> None:
    more = f"let again: Row = out.view().tile::<m![G], 1, m![1 # 4, A]>({start}).to_dm(&mut device.tdma);"
    text = COPY.replace("START", "g").replace("MORE", more).replace("0..G::SIZE", "0..1")
    assert _kinds(text).count("sync") == syncs  # only row 0 is written


def test_a_view_that_is_not_mutable_is_not_written() -> None:
    with pytest.raises(TcptuneError) as refusal:
        _checked(CACHE.replace("cache.view_mut().tile::<m![G], 1, m![1 #{!} 4, A]>(2)", "cache.view()"))
    assert refusal.value.rule == "RUST-006"

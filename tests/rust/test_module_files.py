"""A kernel of a crate is read where it lies: what its modules declare comes from their files."""

from __future__ import annotations

from pathlib import Path

import pytest

from tcptune.errors import TcptuneError
from tcptune.exec.rust.check import check_rust
from tcptune.exec.rust.module_files import module_files
from tcptune.exec.rust.reader import read_rust_file

FILES = {
    "lib.rs": "pub mod axes;\npub mod ops;\npub mod decoder;\n",
    "axes.rs": "use furiosa_opt_std::prelude::*;\naxes![A = 2048];\npub type Chip = m![1];\npub type Cluster = m![1 # 2];\n",
    "ops.rs": """\
use crate::axes::*;
type Slice = m![A / 8];
pub type Row = DmTensor<bf16, Chip, Cluster, Slice, m![A % 8]>;
pub fn load(device: &mut Device, x: &HbmTensor<bf16, Chip, m![A]>) -> Row {
    x.to_dm(&mut device.tdma)
}
""",
    "decoder/mod.rs": """\
use crate::axes::*;
use crate::ops::{self, load};
mod store;
#[cfg(test)]
mod tests;

#[device(chip = 1)]
pub fn copy_kernel(device: &mut Device, x: &HbmTensor<bf16, Chip, m![A]>) -> HbmTensor<bf16, Chip, m![A]> {
    let row = ops::load(device, x);
    store::store(device, &row)
}
""",
    "decoder/store.rs": """\
use super::*;
type Slice = m![1 # 256];
pub fn store(device: &mut Device, x: &ops::Row) -> HbmTensor<bf16, Chip, m![A]> {
    x.to_hbm(&mut device.tdma)
}
""",
    "decoder/tests.rs": "this is no kernel {",
}


@pytest.fixture
def crate(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        file = tmp_path / "src" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return tmp_path / "src"


@pytest.mark.parametrize("entry", ["decoder/mod.rs", "lib.rs"])
def test_a_kernel_is_read_with_the_files_of_its_modules(crate: Path, entry: str) -> None:
    checked = check_rust(read_rust_file(crate / entry))
    assert [type(step.step).__name__ for step in checked.steps] == ["ToDm", "ToHbm"]
    assert str(checked.steps[0].result.type.slice) == "A / 8"


def test_every_file_is_read_once_and_tests_are_not(crate: Path) -> None:
    entry = crate / "decoder" / "mod.rs"
    names = [Path(m.path).relative_to(crate).as_posix() for m in module_files(entry, entry.read_text())]
    assert sorted(names) == ["axes.rs", "decoder/store.rs", "ops.rs"]


def test_an_error_names_the_file_and_line_of_the_module(crate: Path) -> None:
    file = crate / "decoder" / "store.rs"
    file.write_text(file.read_text().replace("to_hbm(", "to_hbn("))
    with pytest.raises(TcptuneError) as refusal:
        read_rust_file(crate / "decoder" / "mod.rs")
    assert refusal.value.rule == "RUST-002"
    shown = refusal.value.render().split("\n")
    assert f"{file}:4:7: " in shown[0]
    assert shown[1] == "      x.to_hbn(&mut device.tdma)"


def test_a_module_without_a_file_belongs_to_another_crate(tmp_path: Path) -> None:
    file = tmp_path / "kernel.rs"
    file.write_text("use crate::missing::*;\nmod nowhere;\n" + FILES["axes.rs"])
    assert module_files(file, file.read_text()) == ()

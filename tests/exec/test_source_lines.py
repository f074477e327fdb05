"""Operations of a schedule that name nothing but a line of the source are matched with the steps that stand there."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tcptune.exec.compile import Compiled, compile_checked
from tcptune.exec.kernel_file import load_checked, source_lines
from tcptune.exec.scheduling.impose import SourceLines, match
from tcptune.exec.scheduling.schedule_json import from_json, to_json
from tests.cli.in_process import tcptune

KERNEL = """\
use furiosa_opt_std::prelude::*;

axes![I = 256, K = 1024];

#[device(chip = 1)]
pub fn pair(
    device: &mut Device,
    x: &HbmTensor<bf16, m![1], m![I, K]>,
    y: &HbmTensor<bf16, m![1], m![I, K]>,
) -> (HbmTensor<f32, m![1], m![I]>, HbmTensor<f32, m![1], m![I]>) {
    let x_in = x.to_dm::<m![1 # 2], m![I], m![K]>(&mut device.tdma);
    let y_in = y
        .to_dm::<m![1 # 2], m![I], m![K]>(&mut device.tdma);
    let a = device.main.begin(x_in.view()).fetch::<m![K / 8], m![K % 8]>().fetch_cast::<f32>()
        .collect::<m![K / 8], m![K % 8]>().vector_init().vector_intra_slice_tag(TagMode::Zero)
        .vector_narrow_split::<m![K / 4], m![K % 4]>()
        .vector_intra_slice_reduce::<K, m![1], m![1 # 4]>(IntraSliceReduceOpF32::Add)
        .vector_widen_pad::<m![1 # 8]>().vector_final().commit_trim::<m![1 # 8]>().commit::<m![1 # 8]>();
    let b = device.main.begin(y_in.view()).fetch::<m![K / 8], m![K % 8]>().fetch_cast::<f32>()
        .collect::<m![K / 8], m![K % 8]>().vector_init().vector_intra_slice_tag(TagMode::Zero)
        .vector_narrow_split::<m![K / 4], m![K % 4]>()
        .vector_intra_slice_reduce::<K, m![1], m![1 # 4]>(IntraSliceReduceOpF32::Max)
        .vector_widen_pad::<m![1 # 8]>().vector_final().commit_trim::<m![1 # 8]>().commit::<m![1 # 8]>();
    let a_out = a.to_hbm(&mut device.tdma);
    let b_out = b.to_hbm(&mut device.tdma);
    (a_out, b_out)
}
"""
LINES = {"x_in": (11, 11), "y_in": (12, 13), "a": (14, 18), "b": (19, 23), "a_out": (24, 24), "b_out": (25, 25)}
"""Counted by hand in the text above."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("pair")
    (path / "pair.rs").write_text(KERNEL)
    return path


@pytest.fixture(scope="module")
def compiled(folder: Path) -> Compiled:
    return compile_checked(load_checked(folder / "pair.rs"))


def swapped(compiled: Compiled) -> dict[str, Any]:
    """A schedule that names lines only and does everything of y before that of x: the lines of x and y change places."""
    document = to_json(compiled.schedule)
    for instruction, operation in zip(document["instructions"], compiled.schedule.operations, strict=True):
        if operation.id in LINES:
            line = LINES[operation.id.translate(str.maketrans("xyab", "yxba"))][1]
            instruction["description"] = f"--> src/kernel/pair.rs:{line}:9\n\n(source)"
    for tensor in document["tensors"]:
        tensor["name"] = f"vISA(T{tensor['index']})_24"
    return document


def test_every_step_has_the_lines_of_its_statement(folder: Path) -> None:
    found = source_lines(folder / "pair.rs")
    assert {name: (found[name].first, found[name].last) for name in LINES} == LINES
    assert source_lines(folder / "pair.visa") == {}


def test_equal_operations_are_told_apart_by_their_lines(folder: Path, compiled: Compiled) -> None:
    schedule = from_json(swapped(compiled))
    known = match(schedule, compiled.program, source_lines(folder / "pair.rs"))
    assert known["y_in"].begin < known["x_in"].begin
    assert known["b"].begin < known["a"].begin
    unknown = match(schedule, compiled.program)
    assert unknown["x_in"].begin < unknown["y_in"].begin
    assert set(known) == set(unknown)


@pytest.mark.parametrize(
    ("description", "holds"),
    [
        ("--> a/b/pair.rs:5:1", True),
        ("--> pair.rs:7:80\n\ntext", True),
        ("--> pair.rs:8:1", False),
        ("--> other.rs:6:1", False),
        ("pair.rs:6", False),
        ("", False),
    ],
)
def test_a_place_lies_on_lines_of_a_file_of_the_same_name(description: str, holds: bool) -> None:
    assert SourceLines("src/pair.rs", 5, 7).hold(description) is holds


def test_the_command_imposes_the_order_of_the_lines(folder: Path, compiled: Compiled) -> None:
    (folder / "schedule.json").write_text(json.dumps(swapped(compiled)))
    run = tcptune("validate", folder / "pair.rs", "--schedule", folder / "schedule.json", "--json")
    assert run.status == 0, run.err
    document = json.loads(run.out)
    assert document["likeness"]["alike"] is True
    assert document["kernels"]["pair"]["predicted_published_order"] == compiled.makespan


def test_an_order_is_imposed_by_the_lines(folder: Path, compiled: Compiled) -> None:
    (folder / "order.json").write_text(json.dumps(swapped(compiled)))
    run = tcptune("run", folder / "pair.rs", "--order", folder / "order.json", "--schedule", folder / "imposed.json")
    assert run.status == 0, run.err
    loads = [i for i in json.loads((folder / "imposed.json").read_text())["instructions"] if i["tpe"] == "DmaLoad"]
    assert [load["description"].split(":")[0] for load in loads] == ["--> y_in", "--> x_in"]

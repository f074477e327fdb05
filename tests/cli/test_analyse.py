"""`tcptune analyse` takes schedules and kernels in every form, one alone or several side by side."""

import json

import pytest

from tcptune.exec.library.patterns import gemm
from tests.cli.in_process import tcptune


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "gemm.visa").write_text(gemm().to_text())
    (tmp_path / "gemm.json").write_text(json.dumps(gemm().to_json()))
    assert tcptune("run", tmp_path / "gemm.visa", "--schedule", tmp_path / "schedule.json").status == 0
    assert tcptune("export", tmp_path / "gemm.visa", "--rust", tmp_path / "project").status == 0
    return tmp_path


def test_a_kernel_in_every_form_and_its_schedule_file_are_one_schedule(folder):
    rust = next(path for path in (folder / "project").rglob("*.rs") if "device" in path.read_text() and "to_trf" in path.read_text())
    files = [folder / "gemm.visa", folder / "gemm.json", folder / "schedule.json", rust]
    run = tcptune("analyse", *files, "--json")
    assert run.status == 0, run.err
    document = json.loads(run.out)
    assert document["schema"] == "tcptune/schedule-comparison/1"
    assert {entry["makespan"] for entry in document["schedules"].values()} == {81_154}
    assert len({entry["hash"] for entry in document["schedules"].values()}) == 1
    assert "the same schedule: gemm.visa, gemm.json" in tcptune("analyse", *files[:2]).out


def test_one_schedule_shows_resources_path_gaps_memory_and_the_lever(folder):
    run = tcptune("analyse", folder / "schedule.json")
    assert run.status == 0, run.err
    for part in (
        "exclusive cycles",
        "critical path",
        "waited for",
        "bytes a slice",
        "peak memory: Sram",
        "slack (cycles)",
        "makespan 81,154 cycles",
    ):
        assert part in run.out, part
    assert "change the mapping, padding or transfer boundary" in run.out  # nine tenths of it is the store


def test_files_of_one_name_are_told_apart(folder, tmp_path):
    other = tmp_path / "other"
    other.mkdir()
    (other / "gemm.visa").write_text(gemm().to_text())
    document = json.loads(tcptune("analyse", folder / "gemm.visa", other / "gemm.visa", "--json").out)
    assert list(document["schedules"]) == [f"{folder.name}/gemm.visa", "other/gemm.visa"]
    assert len(json.loads(tcptune("analyse", folder / "gemm.visa", folder / "gemm.visa", "--json").out)["schedules"]) == 2


def test_a_shape_that_is_cut_shows_it():
    from tcptune.cli.analyse import _shortened

    assert _shortened("a" * 70) == "a" * 70
    assert _shortened("a" * 71) == "a" * 69 + "…"

"""The profile that a kernel was found with is recorded in its files, and every command that times a kernel uses it."""

import json

import pytest

from tests.cli.in_process import tcptune


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    """A search with the manual's profile, and the makespan that it reports."""
    folder = tmp_path_factory.mktemp("profile") / "man"
    arguments = ("search", "einsum", "i->i", "-s", "i=65536", "--dtype", "i32", "--epilogue", "add 1")
    assert tcptune(*arguments, "--profile", "manual", "--trials", 20, "--out", folder).status == 0
    return folder, json.loads((folder / "result.json").read_text())["makespan"]


@pytest.mark.parametrize("file", ["kernel.visa", "kernel.rs"])
def test_run_analyse_and_cost_use_the_recorded_profile_and_say_so(found, file):
    folder, makespan = found
    assert json.loads(tcptune("run", folder / file, "--json").out)["makespan"] == makespan
    analysed = tcptune("analyse", folder / file, "--json")
    assert json.loads(analysed.out)["makespan"] == makespan
    assert "manual profile that it records" in analysed.err
    costs = json.loads(tcptune("cost", folder / file, "--json").out)
    assert costs["profile"] == "manual"


@pytest.mark.parametrize("command", ["run", "analyse"])
def test_a_profile_that_is_asked_for_wins(found, command):
    folder, makespan = found
    vendor = tcptune(command, folder / "kernel.rs", "--profile", "vendor", "--json")
    assert json.loads(vendor.out)["makespan"] > makespan and "records" not in vendor.err


def test_kernels_of_two_profiles_are_two_schedules(found, tmp_path):
    folder, makespan = found
    text = (folder / "kernel.visa").read_text()
    (tmp_path / "vendor.visa").write_text(text.replace("# profile manual\n", ""))
    outcome = tcptune("analyse", folder / "kernel.visa", tmp_path / "vendor.visa")
    assert "the same schedule" not in outcome.out and f"{makespan:,}" in outcome.out


def test_an_export_records_the_profile_too(found, tmp_path):
    folder, makespan = found
    assert tcptune("export", folder / "kernel.visa", "--rust", tmp_path / "project").status == 0
    (kernel,) = (tmp_path / "project" / "src" / "kernel").glob("*_kernel.rs")
    assert json.loads(tcptune("run", kernel, "--json").out)["makespan"] == makespan


def test_a_recorded_profile_that_there_is_not_is_refused_with_its_file(found, tmp_path):
    (tmp_path / "odd.visa").write_text((found[0] / "kernel.visa").read_text().replace("# profile manual", "# profile fast"))
    outcome = tcptune("run", tmp_path / "odd.visa")
    assert outcome.status == 2 and "odd.visa records a profile that there is not" in outcome.err

"""What is refused says what would be right."""

import json

import pytest

from tests.cli.in_process import tcptune

SEARCH = ["search", "einsum", "ik,jk->ij"]
SIZES = ["-s", "i=64,j=64", "-s", "k=64"]
HINTS = {
    "copies between powers of two": ([*SEARCH, *SIZES, "--hbm-copies", "3"], "2 or 4"),
    "more copies than there may be": ([*SEARCH, *SIZES, "--hbm-copies", "128"], "64"),
    "copies of the only input": (["search", "einsum", "i->i", "-s", "i=64", "--epilogue", "relu", "--hbm-copies", "2"], "1 copy"),
    "no time": ([*SEARCH, *SIZES, "--time-limit", "0"], "for example 60"),
    "time that is no number": ([*SEARCH, *SIZES, "--time-limit", "nan"], "for example 60"),
    "size above the limit": ([*SEARCH, "-s", f"i={2**62 + 1}", "-s", "j=4,k=4"], "2^62"),
    "size of many digits": ([*SEARCH, "-s", f"i={10**40}", "-s", "j=4,k=4"], "2^62"),
    "axis without a size": (["tilings", "I, K", "-s", "I=512"], "K=SIZE (after -s"),
    "operator without a number": (["map", "A /", "-s", "A=8"], "take a number"),
    "list without a comma": (["tilings", "I K", "-s", "I=512,K=64"], "commas"),
}


@pytest.mark.parametrize(("arguments", "hint"), HINTS.values(), ids=HINTS.keys())
def test_a_refusal_says_what_would_be_right(arguments, hint, tmp_path):
    run = tcptune(*arguments, cwd=tmp_path)
    assert run.status == 2 and run.out == ""
    assert hint in run.err


def test_sizes_of_a_search_may_stand_in_one_option():
    from tcptune.cli.search import read_sizes

    assert read_sizes(["i=64, j=32", "k=16,"]) == {"i": 64, "j": 32, "k": 16}


@pytest.fixture
def found(tmp_path):
    """A folder with the names that a search writes."""
    (tmp_path / "kernel.visa").write_text("kernel x\n")
    (tmp_path / "schedule.json").write_text(json.dumps({"instructions": [], "tensors": []}))
    (tmp_path / "result.json").write_text(json.dumps({"schema": "tcptune/search-result/1"}))
    return tmp_path


@pytest.mark.parametrize(("name", "what"), [("schedule.json", "schedule"), ("result.json", "result"), ("", "folder")])
def test_a_run_of_another_file_of_a_search_names_its_kernel(found, name, what):
    run = tcptune("run", found / name)
    assert run.status == 2 and what in run.err.splitlines()[0]
    assert str(found / "kernel.visa") in run.err


def test_a_report_of_a_result_file_names_its_folder(found):
    run = tcptune("report", found / "result.json")
    assert run.status == 2 and f"give the folder: {found}" in run.err


def test_rows_that_have_no_price_name_the_kernel_beside_them(tmp_path):
    (tmp_path / "kernel.visa").write_text("kernel x\n")
    rows = tmp_path / "schedule.json"
    rows.write_text(json.dumps([{"op": "nothing that is known"}]))
    run = tcptune("cost", rows)
    assert f"tcptune cost {tmp_path / 'kernel.visa'}" in run.err
    assert "not priced because" in run.out

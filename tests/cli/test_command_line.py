"""The command line: documents on standard output, errors on standard error, exit statuses."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

GEMM = ["search", "einsum", "ik,jk->ij", "-s", "i=64", "-s", "j=32", "-s", "k=32", "--trials", "5"]


def tcptune(*arguments: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "tcptune", *map(str, arguments)], capture_output=True, text=True, cwd=cwd, timeout=120)


@pytest.fixture(scope="module")
def searched(tmp_path_factory):
    folder = tmp_path_factory.mktemp("searched") / "result"
    return folder, tcptune(*GEMM, "--out", folder, "--json")


def test_a_search_prints_one_document_and_writes_its_folder(searched):
    folder, run = searched
    assert run.returncode == 0, run.stderr
    document = json.loads(run.stdout)
    assert document["schema"] == "tcptune/search-result/1"
    assert document["oracle"]["passed"] and document["oracle"]["undefined_reads"] == 0
    assert document["lower_bound"] <= document["makespan"] <= document["default"]["makespan"]
    fates = document["candidates"]
    assert fates["enumerated"] == sum(fates[k] for k in ("pruned", "duplicates", "rejected", "scheduled"))
    for name in ("result.json", "trace.csv", "kernel.visa", "kernel.rs", "schedule.json", "report.html"):
        assert (folder / name).stat().st_size > 0, name
    assert "http://" not in (folder / "report.html").read_text().replace("http://www.w3.org/", "")


def test_the_found_kernel_runs_again_with_the_same_makespan_from_both_text_forms(searched):
    folder, run = searched
    makespan = json.loads(run.stdout)["makespan"]
    for name in ("kernel.visa", "kernel.rs"):
        again = tcptune("run", folder / name, "--json")
        assert again.returncode == 0, again.stderr
        document = json.loads(again.stdout)
        assert document["schema"] == "tcptune/run/1"
        assert document["makespan"] == makespan
        assert document["oracle"]["passed"]


def test_two_searches_with_one_seed_write_the_same_result(searched, tmp_path):
    folder, _ = searched
    first = json.loads((folder / "result.json").read_text())
    run = tcptune(*GEMM, "--out", tmp_path / "again")
    assert run.returncode == 0, run.stderr
    second = json.loads((tmp_path / "again" / "result.json").read_text())
    for document in (first, second):
        document.pop("wall_time_s")
    assert first == second


BAD_SEARCHES = {
    "no arrow": ["ik,jk", "-s", "i=4", "-s", "j=4", "-s", "k=4"],
    "unknown axis": ["ik,jk->ij", "-s", "i=4", "-s", "j=4", "-s", "k=4", "-s", "z=4"],
    "size zero": ["ik,jk->ij", "-s", "i=0", "-s", "j=4", "-s", "k=4"],
    "negative size": ["ik,jk->ij", "-s", "i=-4", "-s", "j=4", "-s", "k=4"],
    "missing size": ["ik,jk->ij", "-s", "i=4", "-s", "j=4"],
    "size is no number": ["ik,jk->ij", "-s", "i=four", "-s", "j=4", "-s", "k=4"],
    "element type": ["ik,jk->ij", "-s", "i=4", "-s", "j=4", "-s", "k=4", "--dtype", "f64"],
    "output axis that no input has": ["ik,jk->iz", "-s", "i=4", "-s", "j=4", "-s", "k=4", "-s", "z=4"],
    "axis twice in one operand": ["ii,ji->ij", "-s", "i=4", "-s", "j=4"],
    "unknown profile": ["ik,jk->ij", "-s", "i=4", "-s", "j=4", "-s", "k=4", "--profile", "fast"],
    "size without end": ["ik,jk->ij", "-s", "i=4", "-s", "j=4", "-s", "k=" + "9" * 5000],
    "time limit that is no number": ["ik,jk->ij", "-s", "i=4", "-s", "j=4", "-s", "k=4", "--time-limit", "nan"],
    "no jobs for one input": ["i->i", "-s", "i=4", "--epilogue", "relu", "--jobs", "0"],
    "no trials": ["ik,jk->ij", "-s", "i=4", "-s", "j=4", "-s", "k=4", "--trials", "0"],
}


@pytest.mark.parametrize("arguments", BAD_SEARCHES.values(), ids=BAD_SEARCHES.keys())
def test_a_bad_search_is_refused_in_one_clear_error_and_leaves_no_file(arguments, tmp_path):
    run = tcptune("search", "einsum", *arguments, "--out", tmp_path / "r", cwd=tmp_path)
    assert run.returncode == 2, run.stderr
    assert run.stderr.startswith("error") and "Traceback" not in run.stderr
    assert run.stdout == ""
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_written_is_refused_before_the_search(tmp_path):
    (tmp_path / "file").write_text("in the way")
    run = tcptune(*GEMM, "--out", tmp_path / "file" / "r")
    assert run.returncode == 2 and run.stderr.startswith("error") and "Traceback" not in run.stderr


def test_a_workload_that_exceeds_every_tile_fails_and_names_the_capacity(tmp_path):
    sizes = ["-s", "i=65536", "-s", "j=65536", "-s", "k=65536"]
    run = tcptune("search", "einsum", "ik,jk->ij", *sizes, "--out", tmp_path / "r")
    assert run.returncode == 1, run.stderr
    assert "DM-003" in run.stderr or "TRF-006" in run.stderr  # the rules of the memories that are too small
    assert "Traceback" not in run.stderr


@pytest.mark.parametrize(
    "text",
    ["", "kernel", "kernel x\naxes A=4\nnonsense\n", "kernel x\naxes A=0\noutput y\n", "\x00\x01", "kernel x\n" + "[" * 5000],
    ids=["empty", "one word", "nonsense", "axis of size 0", "binary", "brackets"],
)
def test_a_broken_kernel_file_is_refused_without_traceback(text, tmp_path):
    for name in ("k.visa", "k.rs", "k.json"):
        path = tmp_path / name
        path.write_text(text)
        run = tcptune("run", path)
        assert run.returncode == 2, (name, run.stdout, run.stderr)
        assert run.stderr.startswith("error") and "Traceback" not in run.stderr


def test_explain_prints_a_rule_and_refuses_an_unknown_one():
    found = json.loads(tcptune("explain", "switch-011", "--json").stdout)
    assert found["schema"] == "tcptune/explain/1" and found["rule"] == "SWITCH-011"
    assert all(found[k] for k in ("title", "text", "breaks", "fix", "manual"))
    unknown = tcptune("explain", "SWITCH-999")
    assert unknown.returncode == 2 and "SWITCH-001" in unknown.stderr


def test_map_prints_the_cells_of_a_mapping():
    document = json.loads(tcptune("map", "B / 64, B % 64", "B", "-s", "B=512", "--json").stdout)
    assert document["schema"] == "tcptune/map/1"
    assert document["size"] == 512 and document["equivalent"] is True
    assert [130, {"B": 130}] in json.loads(tcptune("map", "B / 64, B % 64", "-s", "B=512", "--cells", "200", "--json").stdout)["cells"]


def test_conformance_counts_what_nothing_can_run_as_failed(tmp_path):
    cases = [
        {"id": "odd", "kind": "no such kind", "expect": {}},
        {"id": "even", "kind": "mapping", "axes": {"A": 2}, "expr": "A", "expect": {"size": 2}},
    ]
    (tmp_path / "c.json").write_text(json.dumps({"cases": cases}))
    run = tcptune("conformance", tmp_path / "c.json", "--json")
    document = json.loads(run.stdout)
    assert run.returncode == 1
    assert document["schema"] == "tcptune/conformance/1"
    assert document["chapters"]["c"] == {"total": 2, "passed": 1, "failed": 1, "known": 0}
    assert [f["id"] for f in document["failed"]] == ["odd"]


def test_a_vendor_style_schedule_is_analysed(searched):
    folder, run = searched
    document = json.loads(tcptune("analyse", folder / "schedule.json", "--json").stdout)
    assert document["schema"] == "tcptune/schedule-analysis/1"
    assert document["makespan"] == json.loads(run.stdout)["makespan"]


def test_validate_prints_published_beside_predicted():
    document = json.loads(tcptune("validate", "gemm", "--json").stdout)
    assert document["schema"] == "tcptune/validation/1"
    assert document["kernels"]["gemm"]["published"] == 81_449


def test_cost_prices_rows_and_says_why_it_skips(tmp_path):
    (tmp_path / "rows.json").write_text(json.dumps([{"kind": "nothing known"}]))
    document = json.loads(tcptune("cost", tmp_path / "rows.json", "--json").stdout)
    assert document["schema"] == "tcptune/cost/1"
    assert document["rows"][0]["skipped"]


def test_garbage_documents_are_refused_by_every_command_that_reads_one(searched, tmp_path):
    deep = tmp_path / "result.json"
    deep.write_text("[" * 100_000)
    kernel = searched[0] / "kernel.visa"
    commands = [
        ["cost", deep],
        ["analyse", deep],
        ["run", deep],
        ["conformance", deep],
        ["report", tmp_path],
        ["run", kernel, "--order", deep],
    ]
    for command in commands:
        run = tcptune(*command)
        assert run.returncode == 2, (command, run.stderr)
        assert "nests too deeply" in run.stderr and "Traceback" not in run.stderr


def test_a_schedule_that_cannot_be_written_is_refused(searched, tmp_path):
    run = tcptune("run", searched[0] / "kernel.visa", "--schedule", tmp_path)
    assert run.returncode == 2
    assert run.stderr.startswith("error: cannot write")
    assert list(tmp_path.iterdir()) == []


def test_an_einsum_in_the_place_of_the_kind_of_workload_is_told_where_it_goes():
    run = tcptune("search", "ik,jk->ij", "-s", "i=64")
    assert run.returncode == 2
    assert "tcptune search einsum 'ik,jk->ij' -s i=64" in run.stderr

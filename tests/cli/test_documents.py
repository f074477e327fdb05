"""Every ``--json`` document against its schema; standard output holds the document and nothing else, errors go to standard error."""

import json

import pytest

from tests.cli import documents
from tests.cli.in_process import tcptune

GEMM = ["search", "einsum", "ik,jk->ij", "-s", "i=64", "-s", "j=32", "-s", "k=32", "--trials", "4"]
SWEEP = """title = "two"
[[run]]
name = "relu"
einsum = "i->i"
sizes = { i = [8, 16] }
epilogue = "relu"
"""


@pytest.fixture(scope="module")
def result(tmp_path_factory):
    folder = tmp_path_factory.mktemp("documents") / "result"
    return folder, tcptune(*GEMM, "--out", folder, "--json")


def document(*arguments, status=0):
    run = tcptune(*arguments, "--json")
    assert run.status == status, run.err
    return json.loads(run.out)


def test_search_result(result):
    folder, run = result
    assert run.status == 0, run.err
    found = documents.SearchResult.model_validate(json.loads(run.out))
    assert found.best.kernel
    assert all((folder / path).is_file() for path in found.files.values())
    assert [top.makespan for top in found.best.top] == sorted(top.makespan for top in found.best.top)
    assert found.best.top[0].makespan == found.makespan
    for axis, levels in found.best.placement.items():
        product = 1
        for size in levels.values():
            product *= size
        assert product >= found.workload.sizes[axis.lower()], axis
    assert json.loads((folder / "result.json").read_text()) == json.loads(run.out)


def test_run(result):
    folder, run = result
    found = documents.Run.model_validate(document("run", folder / "kernel.visa"))
    assert found.makespan == json.loads(run.out)["makespan"]
    assert found.busy == json.loads(run.out)["best"]["busy"]
    assert found.outputs["out"].undefined_cells == 0


def test_run_of_a_kernel_that_differs_names_its_input_sets_and_cells(tmp_path):
    """The copy agrees with its doubled input where that is 0."""
    kernel = "kernel copy\naxes A=256\nchips 1\ninput x: Hbm i32 chip=[1] element=[A]\n"
    kernel += 'y = to_hbm(x, chip=[1], element=[A])\noutput y\noracle "einsum a->a | mul 2"\ntolerance form=exact\n'
    (tmp_path / "copy.visa").write_text(kernel)
    oracle = documents.Run.model_validate(document("run", tmp_path / "copy.visa", status=1)).oracle
    assert 0 < len(oracle.failures) < oracle.cases
    assert "zeros" not in {failure.inputs for failure in oracle.failures}
    for failure in oracle.failures:
        assert 0 < failure.wrong <= failure.compared == 256
        assert failure.cell.result == "y"
        assert 0 <= failure.cell.at["A"] < 256
        assert failure.cell.got != 0


def test_run_without_an_oracle(tmp_path):
    kernel = "kernel copy\naxes A=256\nchips 1\ninput x: Hbm i8 chip=[1] element=[A]\n"
    kernel += "y = to_hbm(x, chip=[1], element=[A])\noutput y\n"
    (tmp_path / "copy.visa").write_text(kernel)
    assert documents.Run.model_validate(document("run", tmp_path / "copy.visa")).oracle is None


def test_map():
    found = documents.Map.model_validate(document("map", "A # 10, 1 # 2", "A", "-s", "A=8", "--cells", "20"))
    assert found.equivalent is False
    assert found.size == 20
    assert found.cells[:3] == [[0, {"A": 0}], [1, "padding:top"], [2, {"A": 1}]]
    assert found.cells[16] == [16, "padding:top"]
    assert documents.Map.model_validate(document("map", "A / 2, A % 2", "A", "-s", "A=8")).equivalent is True
    assert "equivalent" not in document("map", "A", "-s", "A=8")


def test_explain():
    found = documents.Explain.model_validate(document("explain", "switch-011"))
    assert found.rule == "SWITCH-011"
    listing = document("explain", "COLLECT")
    assert listing["schema"] == "tcptune/explain-list/1"
    assert [r["rule"] for r in listing["rules"]] == [f"COLLECT-00{n}" for n in range(1, 8)]


def test_cost(tmp_path):
    rows = [
        {"id": "matched", "op": "DmaLoad", "cycles": 2277, "run_bytes": 4096, "slice_loops": [[256, 4096, 4096]], "time_loops": []},
        {"kind": "nothing known"},
        3,
    ]
    (tmp_path / "rows.json").write_text(json.dumps(rows))
    run = tcptune("cost", tmp_path / "rows.json", "--json")
    found = documents.Cost.model_validate(json.loads(run.out))
    assert len(found.rows) == 3
    assert found.rows[2].skipped == "not an object"


def test_cost_of_published_transfers(tmp_path):
    found = documents.Cost.model_validate(document("cost", "tcptune/data/published_transfers.json"))
    priced = [row for row in found.rows if isinstance(row, documents.Priced)]
    assert found.summary.count == len([row for row in priced if row.published is not None])
    assert all(row.error == row.predicted / row.published - 1 for row in priced if row.published)


def test_conformance(tmp_path):
    good = {"id": "even", "kind": "mapping", "axes": {"A": 2}, "expr": "A", "expect": {"size": 2}}
    bad = {"id": "odd", "kind": "mapping", "axes": {"A": 2}, "expr": "A", "expect": {"size": 3}}
    (tmp_path / "c.json").write_text(json.dumps({"cases": [good, bad]}))
    found = documents.Conformance.model_validate(document("conformance", tmp_path / "c.json", status=1))
    assert found.chapters["c"].passed == 1
    assert [case.id for case in found.failed] == ["odd"]


def test_validation():
    found = documents.ValidationDocument.model_validate(document("validate", "gemm"))
    assert found.kernels["gemm"].published == 81_449
    assert found.operations.worst


def test_sweep(tmp_path):
    (tmp_path / "s.toml").write_text(SWEEP)
    found = documents.Sweep.model_validate(document("sweep", tmp_path / "s.toml", "--out", tmp_path / "out"))
    assert [run.name for run in found.runs] == ["relu-i8", "relu-i16"]
    assert found.config["run"][0]["sizes"] == {"i": [8, 16]}


def test_schedule_analysis(result):
    folder, run = result
    found = documents.ScheduleAnalysis.model_validate(document("analyse", folder / "schedule.json"))
    assert found.makespan == json.loads(run.out)["makespan"]
    for context, busy in found.busy.items():
        idle = sum(gap.end - gap.begin for gap in found.gaps if gap.resource == context)
        assert busy + idle == found.makespan, context
    assert {"a_dm", "b_dm"} <= {life.name for life in found.memory}


@pytest.mark.parametrize(
    ("arguments", "status"),
    [
        (["search", "einsum", "ik,jk->ij", "-s", "i=0", "-s", "j=4", "-s", "k=4"], 2),
        (["run", "missing.visa"], 2),
        (["map", "A / 3", "-s", "A=8"], 2),
        (["explain", "SWITCH-999"], 2),
        (["cost", "missing.json"], 2),
        (["analyse", "missing.json"], 2),
        (["conformance", "missing.json"], 2),
        (["validate", "missing"], 2),
        (["sweep", "missing.toml"], 2),
        (["report", "missing"], 2),
        (["export", "missing.visa", "--rust", "out"], 2),
        (["conformance", "--ids", "no such case"], 2),
    ],
    ids=lambda value: value[0] if isinstance(value, list) else str(value),
)
def test_a_refusal_prints_no_document_and_says_why_on_standard_error(arguments, status, tmp_path):
    run = tcptune(*arguments, "--json", cwd=tmp_path)
    assert run.status == status
    assert run.out == ""
    assert run.err.startswith("error")
    assert list(tmp_path.iterdir()) == []


def test_cost_of_a_kernel(result):
    folder, _ = result
    found = documents.Cost.model_validate(document("cost", folder / "kernel.visa"))
    analysis = document("analyse", folder / "kernel.visa")
    durations = {o["name"]: o["end"] - o["begin"] for o in analysis["operations"]}
    assert found.summary.count == 0
    assert {row.row: row.predicted for row in found.rows} == {row.row: durations[row.row] for row in found.rows}
    shown = tcptune("cost", folder / "kernel.visa").out
    assert "run bytes" in shown
    assert "switch" in shown or "fetch" in shown

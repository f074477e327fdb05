"""The table and document of a sweep."""

from __future__ import annotations

import json
from pathlib import Path

from tcptune.reports.compare import Run
from tcptune.reports.sweep import write_sweep
from tests.reports.schedules import search_result


def test_a_sweep_is_written_as_document_table_and_page(tmp_path: Path) -> None:
    runs = [Run("small", search_result().to_json()), Run("again", search_result().to_json())]
    files = write_sweep({"trials": 50, "question": "Does it pay?"}, runs, tmp_path, "GEMM")
    document = json.loads((tmp_path / files["json"]).read_text())
    assert document["schema"] == "tcptune/sweep/1" and document["config"]["trials"] == 50
    assert [run["name"] for run in document["runs"]] == ["small", "again"]
    assert "kernel" not in document["runs"][0]["result"]["best"]
    assert document["runs"][0]["result"]["best"]["knobs"]
    assert (tmp_path / files["csv"]).read_text().count("\n") == 3
    page = (tmp_path / files["html"]).read_text()
    assert "GEMM" in page and "Does it pay?" in page

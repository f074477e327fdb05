"""The table and document of a sweep."""

from __future__ import annotations

import csv
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


def test_searches_that_found_nothing_stand_in_the_table_and_on_the_page(tmp_path: Path) -> None:
    runs = [Run("small", search_result().to_json())]
    files = write_sweep({"trials": 50}, runs, tmp_path, "GEMM", {"huge": "i,i-> is too large, <b>even tiled</b>"})
    header, small, huge = csv.reader((tmp_path / files["csv"]).read_text().splitlines())
    assert (small[header.index("name")], small[header.index("failed")]) == ("small", "")
    assert (huge[header.index("name")], huge[header.index("failed")]) == ("huge", "i,i-> is too large, <b>even tiled</b>")
    assert huge[header.index("makespan")] == ""
    page = (tmp_path / files["html"]).read_text()
    assert "Searches that found nothing" in page and "&lt;b&gt;even tiled" in page


def test_a_sweep_of_failures_alone_is_written_too(tmp_path: Path) -> None:
    files = write_sweep({}, [], tmp_path, "None", {"huge": "too large"})
    assert "too large" in (tmp_path / files["html"]).read_text()
    assert (tmp_path / files["csv"]).read_text().count("\n") == 2
    assert json.loads((tmp_path / files["json"]).read_text())["failed"] == [{"name": "huge", "why": "too large"}]

"""Comparison of result folders: table, CSV, page."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import replace
from pathlib import Path

import pytest

from tcptune.errors import InputError
from tcptune.reports.compare import Run, comparison_csv, comparison_text, load_runs, summary_rows, write_comparison
from tcptune.reports.folder import write_result
from tcptune.reports.tables import cell, columns, csv_text, text_table
from tests.reports.schedules import search_result


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    root = tmp_path_factory.mktemp("runs")
    result = search_result()
    slower = replace(result, best=result.top[1])
    for name, one in (("first", result), ("second", slower)):
        write_result(one, root / name)
    return [root / "first", root / "second"]


def test_a_row_holds_the_numbers_of_the_document(folders: list[Path]) -> None:
    first, second = summary_rows(load_runs(folders))
    assert (first["name"], second["name"]) == ("first", "second")
    assert second["makespan"] - first["makespan"] == 50
    assert first["speedup"] == 1.0 and first["against_first"] == 1.0
    assert second["against_first"] == round(second["makespan"] / first["makespan"], 3)
    assert first["near_end_s"] == 0.5  # the first plan is 400 cycles slower, more than 5 %
    assert first["oracle"] == "passed"


def test_equal_kernels_have_equal_hashes_whatever_their_name(folders: list[Path]) -> None:
    first, second = summary_rows(load_runs(folders))
    assert first["kernel_hash"] == second["kernel_hash"] != ""


def test_the_csv_has_one_line_a_run(folders: list[Path]) -> None:
    rows = list(csv.DictReader(io.StringIO(comparison_csv(load_runs(folders)))))
    assert [row["name"] for row in rows] == ["first", "second"]
    assert rows[0]["workload"] == "ik,jk->ij"


def test_the_terminal_table_is_aligned(folders: list[Path]) -> None:
    lines = comparison_text(load_runs(folders)).split("\n")
    assert lines[0].startswith("run") and set(lines[1]) <= {"-", " "}


def test_the_page_shows_both_timelines(folders: list[Path], tmp_path: Path) -> None:
    files = write_comparison(load_runs(folders), tmp_path)
    page = (tmp_path / files["html"]).read_text()
    assert page.count('<svg class="timeline"') == 2
    assert "Operations side by side" in page and "The same kernel: first, second." in page


def test_folders_of_the_same_name_are_told_apart(folders: list[Path], tmp_path: Path) -> None:
    write_result(search_result(), tmp_path / "first")
    names = [run.name for run in load_runs([folders[0], tmp_path / "first"])]
    assert len(set(names)) == 2


@pytest.mark.parametrize("text", [None, "", "[]", "{}", '{"schema": "tcptune/run/1"}', "{"])
def test_a_folder_without_a_result_is_refused(tmp_path: Path, text: str | None) -> None:
    if text is not None:
        (tmp_path / "result.json").write_text(text)
    with pytest.raises(InputError):
        Run.load(tmp_path)


def test_nothing_to_compare_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="nothing"):
        write_comparison([], tmp_path)


def test_cells_and_tables() -> None:
    shown = columns("a:name", "n:number#")
    rows = [{"a": "x", "n": 12345}, {"a": "longer", "n": None}]
    assert text_table(rows, shown) == "name    number\n------  ------\nx       12,345\nlonger\n"
    assert csv_text(rows, shown) == "a,n\nx,12345\nlonger,\n"
    assert [cell(v) for v in (True, 1.23456789, [1, 2])] == ["yes", "1.235", "1, 2"]


@pytest.mark.parametrize(
    "change",
    [{"makespan": "x"}, {"makespan": 0}, {"gap": None}, {"workload": 3}, {"best": {"placement": {"i": 4}}}, {"default": {"makespan": "9"}}],
    ids=str,
)
def test_a_result_with_a_wrong_field_is_refused_by_its_name(tmp_path, change):
    (tmp_path / "result.json").write_text(json.dumps({**search_result().to_json(), **change}))
    with pytest.raises(InputError, match=next(iter(change))):
        Run.load(tmp_path)


def test_a_trace_that_is_none_is_refused(tmp_path):
    (tmp_path / "result.json").write_text(json.dumps(search_result().to_json()))
    (tmp_path / "trace.csv").write_text("makespan,elapsed_s\nx,1\n")
    with pytest.raises(InputError, match="no trace"):
        Run.load(tmp_path).near_end_s()

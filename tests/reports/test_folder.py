"""The result folder: complete, whole files, a page without network, a schedule that points at the Rust file."""

from __future__ import annotations

import csv
import errno
import json
from html.parser import HTMLParser
from pathlib import Path

import pytest

from tcptune.errors import InputError
from tcptune.exec.rust import read_kernel
from tcptune.ir.files import require_writable, write_text
from tcptune.ir.kernels.kernel import Kernel
from tcptune.reports.folder import FILES, write_result
from tests.reports.schedules import files_below, search_result

RESULT = search_result()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("result")
    assert write_result(RESULT, path) == FILES
    return path


def test_the_folder_holds_exactly_the_declared_files(folder: Path) -> None:
    assert files_below(folder) == {"result.json", "trace.csv", "kernel.visa", "kernel.rs", "schedule.json", "report.html"}


def test_the_document_names_the_files_and_the_best_plan(folder: Path) -> None:
    document = json.loads((folder / "result.json").read_text())
    assert document["schema"] == "tcptune/search-result/1"
    assert document["files"] == FILES
    assert document["makespan"] == RESULT.makespan >= document["lower_bound"]
    counts = document["candidates"]
    assert counts["enumerated"] == sum(counts[k] for k in ("pruned", "duplicates", "rejected", "scheduled"))


def test_the_trace_has_one_row_an_improvement(folder: Path) -> None:
    rows = list(csv.DictReader((folder / "trace.csv").open()))
    assert [(row["trial"], row["elapsed_s"]) for row in rows] == [("1", "0.25"), ("7", "0.5")]


def test_both_kernel_files_hold_the_best_kernel(folder: Path) -> None:
    text = (folder / "kernel.visa").read_text()
    assert Kernel.from_text(text) == RESULT.kernel
    assert [type(s) for s in read_kernel((folder / "kernel.rs").read_text()).steps] == [type(s) for s in RESULT.kernel.steps]


def test_the_schedule_points_at_the_statements_of_the_rust_file(folder: Path) -> None:
    document = json.loads((folder / "schedule.json").read_text())
    source = (folder / "kernel.rs").read_text().split("\n")
    described = [i["description"] for i in document["instructions"] if i["description"].startswith("--> kernel.rs")]
    assert len(described) >= 5
    for description in described:
        head, _, text = description.partition("\n\n")
        _, line, column = head.removeprefix("--> ").split(":")
        assert source[int(line) - 1][int(column) - 1 :].startswith(text.split("\n")[0])


class _Page(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text.append(data)


@pytest.fixture(scope="module")
def page(folder: Path) -> _Page:
    parser = _Page()
    parser.feed((folder / "report.html").read_text())
    return parser


def test_the_page_loads_nothing_from_elsewhere(page: _Page) -> None:
    for tag, attributes in page.tags:
        assert tag not in ("link", "iframe", "img")
        assert "src" not in attributes
        assert not (attributes.get("href") or "").startswith(("http", "//"))


def test_the_page_shows_what_was_asked_for(page: _Page) -> None:
    text = " ".join(page.text)
    for wanted in (
        f"{RESULT.makespan:,}",
        "lower bound",
        "Timeline",
        "Critical path",
        "Placement",
        "Packet",
        "Why it beats the runner-up",
        "staging sub instead of main",
        "SWITCH-003",
        "Top ten",
        "tcptune search einsum 'ik,jk->ij' -s i=32",
        "the manual's <template>",
    ):
        assert wanted in text, wanted


def test_the_page_is_small(folder: Path) -> None:
    assert (folder / "report.html").stat().st_size < 100_000


def test_two_writes_of_a_result_are_byte_identical(tmp_path: Path) -> None:
    for name in ("a", "b"):
        write_result(RESULT, tmp_path / name)
    for file in FILES.values():
        assert (tmp_path / "a" / file).read_bytes() == (tmp_path / "b" / file).read_bytes()


def test_a_file_is_replaced_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = tmp_path / "result.json"
    write_text(target, "old")

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "chmod", full)  # after the text is written and before it takes the place of the old one
    with pytest.raises(InputError, match="No space left"):
        write_text(target, "new")
    assert target.read_text() == "old"
    assert files_below(tmp_path) == {"result.json"}


def test_an_unwritable_folder_is_refused(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("")
    for attempt in (lambda: require_writable(blocked / "sub"), lambda: write_text(blocked / "sub" / "x", "")):
        with pytest.raises(InputError, match="cannot write"):
            attempt()
    assert files_below(tmp_path) == {"file"}

"""`tcptune map`: the document and its text."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from tcptune.cli.map import Stream, document, linear_document, text
from tcptune.errors import RuleViolation
from tcptune.ir.mappings.axes import Axes
from tcptune.ir.mappings.linear import parse_linear
from tcptune.ir.types import dtype

AXES = Axes(A=8, B=8, C=4, N=2**30)


def made(expression: str, other: str | None = None, **more):
    compared = None if other is None else AXES.mapping(other)
    return document(expression, AXES.mapping(expression), compared, **more)


def test_a_mapping_is_described_by_its_digits_and_guards():
    found = made("A, C # 8", count=6)
    assert (found["canonical"], found["size"], found["live"]) == ("A, C # 8", 64, 32)
    assert [(d["axis"], d["weight"], d["extent"], d["stride"]) for d in found["normal_form"]] == [("A", 1, 8, 8), ("C", 1, 8, 1)]
    assert found["guards"] == [{"sum": [{"weight": 1, "extent": 8, "stride": 1}], "below": 4, "else": "top"}]
    assert found["cells"][3:] == [[3, {"A": 0, "C": 3}], [4, "padding:top"], [5, "padding:top"]]
    assert "i % 8 >= 4: top" in text(found)


def test_comparison_names_the_first_difference():
    found = made("N, A", "N, A = 5 # 8")
    assert found["equivalent"] is False
    assert found["difference"] == {"position": 5, "first": {"N": 0, "A": 5}, "second": "padding:top", "sizes": [2**33, 2**33]}
    assert "equivalent to N" in text(made("N / 4, N % 4", "N"))


def test_a_stream_shows_loops_accesses_and_cycles():
    stream = Stream(AXES.mapping("A % 2, B % 4, A / 2, B / 4"), AXES.mapping("C # 32"), dtype("i8"), "sub", write=False)
    found = made("A, B, C # 8", stream=stream)["sequencer"]
    assert found["entries"] == [[2, 64], [4, 8], [4, 128], [2, 32], [32, 1]]
    assert (found["read_size"], found["accesses_per_packet"], found["cycles"]) == (8, 4, 256)
    assert found["terms"][0]["buffer_after"] == "A / 2, 1 # 2, B, C # 8"
    assert "[2:64, 4:8, 4:128, 2:32, 32:1] : 32" in text(made("A, B, C # 8", stream=stream))


def test_a_stream_that_cannot_be_written_is_refused():
    stream = Stream(AXES.mapping("A"), AXES.mapping("C"), dtype("i8"), "main", write=True)
    with pytest.raises(RuleViolation) as caught:
        made("A, C", stream=stream)
    assert caught.value.rule == "COMMIT-006"


def test_a_linear_combination_lists_all_indices_of_a_position():
    found = linear_document("$(N:1, F:2)", parse_linear("$(N:1, F:2)", Axes(N=5, F=3)))
    assert (found["size"], found["one_to_one"]) == (9, False)
    assert found["cells"][4] == [4, [{"N": 0, "F": 2}, {"N": 2, "F": 1}, {"N": 4, "F": 0}]]


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "tcptune.cli.app", "map", *arguments], capture_output=True, text=True, check=False)


def test_json_is_one_document_and_errors_have_status_2():
    good = run("A / 8 # 256", "-s", "A=64", "--json")
    assert json.loads(good.stdout)["schema"] == "tcptune/map/1"
    bad = run("[" * 1000 + "A", "-s", "A=64")
    assert (bad.returncode, bad.stdout) == (2, "")
    assert "deeper than 256" in bad.stderr
    assert "Traceback" not in bad.stderr


def test_a_start_behind_the_last_position_shows_no_cells():
    assert made("A", start=10**30)["cells"] == []

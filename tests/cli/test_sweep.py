"""`tcptune sweep`: one table of all searches, resumable, refusing a bad file before anything runs."""

import json

from tests.cli.test_command_line import tcptune

CONFIG = """
title = "small"
[defaults]
trials = 3
[[run]]
name = "dot"
einsum = "i,i->"
sizes = { i = [64, 128] }
"""


def test_a_sweep_compares_its_searches_and_keeps_finished_ones(tmp_path):
    (tmp_path / "small.toml").write_text(CONFIG)
    first = tcptune("sweep", tmp_path / "small.toml", "--out", tmp_path / "out", "--json")
    assert first.returncode == 0, first.stderr
    document = json.loads(first.stdout)
    assert document["schema"] == "tcptune/sweep/1"
    assert [run["name"] for run in document["runs"]] == ["dot-i64", "dot-i128"]
    assert all("kernel" not in run["result"]["best"] for run in document["runs"])
    kept = (tmp_path / "out" / "dot-i64" / "result.json").stat().st_mtime_ns
    again = tcptune("sweep", tmp_path / "small.toml", "--out", tmp_path / "out", "--json")
    assert json.loads(again.stdout) == document
    assert (tmp_path / "out" / "dot-i64" / "result.json").stat().st_mtime_ns == kept
    assert {p.name for p in (tmp_path / "out").iterdir()} == {"dot-i64", "dot-i128", "sweep.html", "sweep.csv", "sweep.json"}


def test_a_bad_sweep_file_is_refused_before_a_search_starts(tmp_path):
    for text in ("", "[[run]]\nname = 'x'\n", CONFIG.replace("einsum", "einsun"), CONFIG.replace("64", "0"), "title = "):
        (tmp_path / "bad.toml").write_text(text)
        run = tcptune("sweep", tmp_path / "bad.toml", "--out", tmp_path / "out")
        assert run.returncode == 2, (text, run.stderr)
        assert run.stderr.startswith("error") and "Traceback" not in run.stderr
        assert not (tmp_path / "out").exists()


def test_a_search_that_finds_nothing_is_listed_and_the_others_are_compared(tmp_path):
    (tmp_path / "mixed.toml").write_text(CONFIG + '[[run]]\nname = "huge"\neinsum = "i,i->"\nsizes = { i = 10000000000 }\n')
    run = tcptune("sweep", tmp_path / "mixed.toml", "--out", tmp_path / "out", "--json")
    assert run.returncode == 1, run.stderr
    document = json.loads(run.stdout)
    assert [r["name"] for r in document["runs"]] == ["dot-i64", "dot-i128"]
    assert [f["name"] for f in document["failed"]] == ["huge"]
    assert "huge: error: i,i-> is too large for one pass" in run.stderr
    assert json.loads((tmp_path / "out" / "sweep.json").read_text()) == document

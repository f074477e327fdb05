"""Suites: validated before the first search, resumable, nothing finished is searched again."""

import json
from pathlib import Path

import pytest

from tcptune.errors import InputError
from tcptune.search import suite as suite_module
from tcptune.search.suite import load_suite, run_suite

EXPERIMENTS = Path(__file__).parents[2] / "experiments"
TEXT = """
title = "two"
[defaults]
trials = 6
[[run]]
name = "dot"
einsum = "i,i->"
sizes = { i = [32, 64] }
"""


def written(tmp_path, text=TEXT):
    path = tmp_path / "suite.toml"
    path.write_text(text)
    return path


def save(result, folder):
    (folder / "result.json").write_text(json.dumps(result.to_json()))


@pytest.mark.parametrize("path", sorted(EXPERIMENTS.glob("*.toml")), ids=lambda p: p.stem)
def test_every_experiment_is_valid_and_says_what_it_asks(path):
    suite = load_suite(path)
    assert suite.runs
    assert suite.question.endswith("?")


def test_lists_run_every_combination(tmp_path):
    suite = load_suite(written(tmp_path, TEXT + "seed = [0, 1]\n"))
    assert [r.name for r in suite.runs] == ["dot-i32-s0", "dot-i32-s1", "dot-i64-s0", "dot-i64-s1"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("title =", "not TOML"),
        ('title = "x"', "run"),
        (TEXT + "trails = 3\n", "trails"),
        (TEXT + "trials = 0\n", "trials"),
        (TEXT.replace('"i,i->"', '"i,i"'), "malformed einsum"),
        (TEXT.replace("[32, 64]", "0"), "at least 1"),
        (TEXT.replace('"dot"', '"../dot"'), "letters, digits"),
        (TEXT + TEXT.split("trials = 6")[1], "two runs called"),
        (TEXT.replace("[32, 64]", "[]"), "no search"),
        (TEXT + "seed = []\n", "no search"),
        (TEXT + "seed = -1\n", "seed must be at least 0"),
        (TEXT + "time_limit = inf\n", "time_limit"),
        (TEXT + 'profile = "fast"\n', "unknown timing profile"),
        (TEXT.replace('"dot"', f'"{"d" * 300}"'), "304 characters"),
        ("a = " + "[" * 100_000, "nests too deeply"),
    ],
)
def test_a_bad_suite_is_refused_before_any_search(tmp_path, text, words):
    with pytest.raises(InputError, match=words):
        load_suite(written(tmp_path, text))


def test_a_missing_suite_is_a_clear_error(tmp_path):
    with pytest.raises(InputError, match="cannot read"):
        load_suite(tmp_path / "none.toml")


def test_finished_searches_are_kept_and_changed_ones_run_again(tmp_path, monkeypatch):
    searched = []
    search = suite_module._search
    monkeypatch.setattr(suite_module, "_search", lambda run, *rest: searched.append(run.name) or search(run, *rest))
    suite = load_suite(written(tmp_path))
    folders = run_suite(suite, tmp_path / "out", save).finished
    assert [f.name for f in folders] == searched == ["dot-i32", "dot-i64"]
    run_suite(suite, tmp_path / "out", save)
    assert len(searched) == 2
    (folders[1] / "result.json").write_text("{")
    run_suite(suite, tmp_path / "out", save)
    assert searched[2:] == ["dot-i64"]
    run_suite(load_suite(written(tmp_path, TEXT + "seed = 5\n")), tmp_path / "out", save)
    assert searched[3:] == ["dot-i32", "dot-i64"]


def test_an_unwritable_folder_is_a_clear_error(tmp_path):
    blocked = tmp_path / "file"
    blocked.write_text("")
    with pytest.raises(InputError, match="cannot write"):
        run_suite(load_suite(written(tmp_path)), blocked, save)


TOO_LARGE = """
[[run]]
name = "huge"
einsum = "i,i->"
sizes = { i = 10000000000 }
"""


def test_a_search_that_finds_nothing_does_not_stop_the_others(tmp_path):
    first, then = TEXT.split("[[run]]")
    suite = load_suite(written(tmp_path, first + TOO_LARGE + "[[run]]" + then))
    outcome = run_suite(suite, tmp_path / "out", save)
    assert [f.name for f in outcome.finished] == ["dot-i32", "dot-i64"]
    ((name, error),) = [(f.name, f.error) for f in outcome.failures]
    assert name == "huge" and "too large" in error.message
    assert not (tmp_path / "out" / "huge").exists()


def test_an_interrupted_search_is_not_finished_and_goes_on(tmp_path, monkeypatch):
    suite = load_suite(written(tmp_path))

    def interrupt(run, state):
        if state is not None and state.makespan is not None:
            raise KeyboardInterrupt

    outcome = run_suite(suite, tmp_path / "out", save, watch=interrupt)
    assert outcome.interrupted and not outcome.finished
    assert json.loads((tmp_path / "out" / "dot-i32" / "result.json").read_text())["stopped"] == "interrupt"
    again = run_suite(suite, tmp_path / "out", save)
    assert [f.name for f in again.finished] == ["dot-i32", "dot-i64"]
    assert json.loads((tmp_path / "out" / "dot-i32" / "result.json").read_text())["stopped"] != "interrupt"


def test_an_unknown_key_is_named_with_its_run_and_its_neighbour(tmp_path):
    with pytest.raises(InputError, match=r"run 'dot' of .*: trails is no key of it") as caught:
        load_suite(written(tmp_path, TEXT + "trails = 3\n"))
    assert caught.value.hint.startswith("did you mean trials?")


def test_a_foreign_file_in_the_place_of_a_journal_is_kept_named_and_stops_no_other_run(tmp_path):
    out = tmp_path / "another study"
    precious = out / "dot-i32" / "study.journal"
    precious.parent.mkdir(parents=True)
    precious.write_text("my thesis\n")
    for resume in (True, False):
        outcome = run_suite(load_suite(written(tmp_path)), out, save, resume=resume)
        assert [f.name for f in outcome.finished] == ["dot-i64"]
        assert [f.name for f in outcome.failures] == ["dot-i32"]
        assert "not a study journal" in outcome.failures[0].error.message
        assert precious.read_text() == "my thesis\n"


def test_a_run_that_its_time_limit_ended_runs_again_with_a_longer_one(tmp_path):
    def limited(seconds):
        return load_suite(written(tmp_path, TEXT.replace("[defaults]", f"[defaults]\ntime_limit = {seconds}"))).runs[0]

    run_suite(load_suite(written(tmp_path)), tmp_path / "out", save)
    folder = tmp_path / "out" / "dot-i32"
    document = json.loads((folder / "result.json").read_text())
    (folder / "result.json").write_text(json.dumps({**document, "stopped": "time", "wall_time_s": 5.2}))
    assert suite_module.finished(limited(5.0), folder)
    assert not suite_module.finished(limited(60.0), folder)
    assert not suite_module.finished(load_suite(written(tmp_path)).runs[0], folder)


def test_a_grid_that_nobody_can_wait_for_is_refused_before_it_is_expanded(tmp_path):
    axis = list(range(1, 401))
    text = f'[[run]]\nname = "grid"\neinsum = "ik,jk->ij"\nsizes = {{ i = {axis}, j = {axis}, k = {axis} }}\n'
    with pytest.raises(InputError, match="64,000,000 searches, at most 10,000") as refusal:
        load_suite(written(tmp_path, text))
    assert "'grid'" in refusal.value.hint

"""Garbage in files and arguments: refused with status 2 and a message, never by a traceback, and nothing half written.

Commands run in this process, so an exception that the command line does not handle fails its test by itself.
"""

import json
import random
import re
import shutil

import pytest

from tcptune.exec.library.patterns import constant_add
from tests.cli.in_process import tcptune
from tests.reports.schedules import search_result

FILES = {
    "empty": b"",
    "binary": bytes(range(256)),
    "zeros": bytes(100),
    "deep lists": b"[" * 100_000,
    "deep objects": b'{"a":' * 20_000,
    "deep brackets": b"kernel k\naxes A=4\nx = to_dm(y, element=" + b"[" * 100_000,
    "a number": b"5",
    "null": b"null",
    "no number": b'{"instructions": [{"lifetime": {"begin": NaN, "end": 1}}], "rows": [NaN], "cases": [NaN]}',
    "infinity": b'{"instructions": [{"lifetime": {"begin": 0, "end": 1e999}}]}',
    "doubled keys": b'{"instructions": [], "rows": [], "cases": [], "cases": []}',
    "thousands of digits": b"[" + b"9" * 6000 + b"]",
    "another schema": b'{"schema": "tcptune/search-result/2"}',
    "schema that is a number": b'{"schema": 3, "instructions": 3, "cases": 3, "rows": 3, "steps": 3}',
    "lists of nothing": b'{"instructions": [null], "cases": 3, "rows": 3, "steps": [null]}',
    "negative times": b'{"instructions": [{"lifetime": {"begin": -5, "end": 3}}]}',
    "one long word": b"kernel " + b"x" * 1_000_000,
}

READERS = {
    "run .visa": (["run", "FILE"], "g.visa"),
    "run .rs": (["run", "FILE"], "g.rs"),
    "run .json": (["run", "FILE"], "g.json"),
    "run --order": (["run", "KERNEL", "--order", "FILE"], "g.json"),
    "export": (["export", "FILE", "--rust", "OUT"], "g.visa"),
    "cost": (["cost", "FILE"], "g.json"),
    "analyse": (["analyse", "FILE"], "g.json"),
    "analyse two": (["analyse", "KERNEL", "FILE"], "g.json"),
    "conformance": (["conformance", "FILE"], "g.json"),
    "report": (["report", "FOLDER", "--out", "OUT"], "result.json"),
    "sweep": (["sweep", "FILE", "--out", "OUT"], "g.toml"),
}


@pytest.fixture(scope="module")
def kernel(tmp_path_factory):
    path = tmp_path_factory.mktemp("kernel") / "add.visa"
    path.write_text(constant_add().to_text())
    return path


@pytest.mark.parametrize("content", FILES.values(), ids=FILES.keys())
@pytest.mark.parametrize(("command", "name"), READERS.values(), ids=READERS.keys())
def test_a_file_of_garbage_is_refused(command, name, content, kernel, tmp_path):
    (tmp_path / name).write_bytes(content)
    words = {"FILE": tmp_path / name, "FOLDER": tmp_path, "KERNEL": kernel, "OUT": tmp_path / "out"}
    outcome = tcptune(*(words.get(word, word) for word in command))
    assert outcome.status == 2, outcome
    assert outcome.out == ""
    assert outcome.err.startswith("error")
    assert len(outcome.err) < 2000
    assert [path.name for path in tmp_path.iterdir()] == [name]


@pytest.mark.parametrize("name", ["missing", "no/such/folder", ".", "x" * 300, "loop", "\udcff"])
@pytest.mark.parametrize("command", [c for c, _ in READERS.values() if c[0] != "run" or "--order" not in c], ids=lambda c: c[0])
def test_a_file_that_is_not_there_is_refused(command, name, kernel, tmp_path):
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    words = {"FILE": tmp_path / name, "FOLDER": tmp_path / name, "KERNEL": kernel, "OUT": tmp_path / "out"}
    outcome = tcptune(*(words.get(word, word) for word in command))
    assert outcome.status == 2, outcome
    assert outcome.err.startswith("error")
    assert [path.name for path in tmp_path.iterdir()] == ["loop"]


ARGUMENTS = [
    ["map", ""],
    ["map", "A"],
    ["map", "A", "-s", "A"],
    ["map", "A", "-s", "A=0"],
    ["map", "A", "-s", "A=" + "9" * 300],
    ["map", "A", "-s", "A=4", "-s", "A=5"],
    ["map", "A", "-s", "A=4", "--packet", "A", "--dtype", "f64"],
    ["map", "A", "-s", "A=4", "--packet", "A", "--context", "third"],
    ["map", "[" * 1000 + "A" + "]" * 1000, "-s", "A=4"],
    ["map", "A, " * 40_000, "-s", "A=4"],
    ["map", "A #{x} 9", "-s", "A=4"],
    ["map", "A\udcff", "-s", "A=4"],
    ["map", "$(A:x)", "-s", "A=4"],
    ["tilings", "A / 2", "-s", "A=4"],
    ["tilings", "A, A", "-s", "A=4"],
    ["tilings", "A", "-s", "A=4", "--dtype", "f64"],
    ["tilings", "A", "-s", "A=4", "--profile", "third"],
    ["explain", "\udcff"],
    ["explain", "x" * 10_000],
    ["explain", "SWITCH-" + "9" * 30],
    ["explain", "(", "-"],
    ["validate", "no such kernel"],
    ["conformance", "--ids", "no such case"],
    ["no such command"],
    ["search", "foo"],
    ["mop"],
]


@pytest.mark.parametrize("arguments", ARGUMENTS, ids=lambda a: " ".join(a).encode("utf-8", "replace").decode()[:30])
def test_an_argument_of_garbage_is_refused(arguments, tmp_path):
    outcome = tcptune(*arguments, cwd=tmp_path)
    assert outcome.status == 2, outcome
    assert outcome.out == ""
    assert outcome.err.startswith("error")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("arguments", [["map"], ["cost"], ["map", "A", "--cells", "x"], ["run", "--no-such-option"]], ids=" ".join)
def test_a_wrong_use_shows_the_usage(arguments):
    outcome = tcptune(*arguments)
    assert outcome.status == 2
    assert "Usage: " in outcome.err
    assert "Traceback" not in outcome.err


def test_a_command_that_does_not_exist_is_answered_by_its_neighbour():
    assert "did you mean explain?" in tcptune("explian", "SWITCH-011").err
    assert "commands: search, sweep" in tcptune("qqqq").err


BAD_VALUES = [None, True, -1, 0, 1.5, "", "x", [], {}, [None], {"a": 1}, "1 # 2", 2**70, "9" * 400, "\ud800"]


def mutated(document, draw):
    """A copy with one field somewhere gone, renamed or of another kind."""
    document = json.loads(json.dumps(document))
    node = document
    while True:
        key = draw.choice(list(node)) if isinstance(node, dict) else draw.randrange(len(node))
        if isinstance(node[key], dict | list) and node[key] and draw.random() < 0.8:
            node = node[key]
            continue
        kind = draw.random()
        if kind < 0.3:
            del node[key]
        elif kind < 0.4 and isinstance(node, dict):
            node[f"{key}x"] = node.pop(key)
        else:
            node[key] = draw.choice(BAD_VALUES)
        return document


def mutated_text(text, draw):
    """A copy with some characters gone, a word put in, two lines swapped or a number changed."""
    kind, at = draw.random(), draw.randrange(len(text))
    if kind < 0.3:
        return text[:at] + text[at + draw.randint(1, 8) :]
    if kind < 0.6:
        return text[:at] + draw.choice([*"[](){},=#/%", "9" * 25, "null", '"', "é", "\0", "  ", "\n", "for i in 3:"]) + text[at:]
    if kind < 0.8:
        lines = text.split("\n")
        one, two = draw.randrange(len(lines)), draw.randrange(len(lines))
        lines[one], lines[two] = lines[two], lines[one]
        return "\n".join(lines)
    number = draw.choice(list(re.finditer(r"\d+", text)))
    return text[: number.start()] + draw.choice(["0", "1", "3", "7", "255", "4096", str(2**62), "9" * 30]) + text[number.end() :]


@pytest.mark.parametrize("seed", range(40))
def test_a_result_folder_with_one_change_is_compared_or_refused(seed, kernel, tmp_path):
    draw = random.Random(seed)
    good = {**search_result().to_json(), "seed": 1}
    for name, document in (("a", good), ("b", mutated(search_result().to_json(), draw))):
        (tmp_path / name).mkdir()
        (tmp_path / name / "result.json").write_text(json.dumps(document))
        (tmp_path / name / "trace.csv").write_text(mutated_text("trial,makespan,bound,elapsed_s\n1,5000,2000,0.125\n", draw))
    outcome = tcptune("report", tmp_path / "a", tmp_path / "b", "--json", "--out", tmp_path / "out")
    assert outcome.status in (0, 2), outcome
    if outcome.status == 2:
        assert outcome.err.startswith("error")
        assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("seed", range(20))
def test_a_kernel_or_schedule_with_one_change_is_used_or_refused(seed, kernel, tmp_path):
    draw = random.Random(seed)
    schedule = tmp_path / "schedule.json"
    assert tcptune("run", kernel, "--schedule", schedule).status == 0
    (tmp_path / "k.visa").write_text(mutated_text(kernel.read_text(), draw))
    (tmp_path / "k.json").write_text(json.dumps(mutated(constant_add().to_json(), draw)))
    (tmp_path / "s.json").write_text(json.dumps(mutated(json.loads(schedule.read_text()), draw)))
    for command in (
        ["run", tmp_path / "k.visa"],
        ["cost", tmp_path / "k.visa"],
        ["analyse", tmp_path / "k.json"],
        ["analyse", tmp_path / "s.json", schedule],
        ["run", kernel, "--order", tmp_path / "s.json"],
        ["export", tmp_path / "k.visa", "--rust", tmp_path / "project"],
    ):
        outcome = tcptune(*command, "--json")
        assert outcome.status in (0, 1, 2), outcome
        if outcome.status == 0:
            json.loads(outcome.out)
        if outcome.status == 2:
            assert outcome.err.startswith("error")
            assert outcome.out == ""
    shutil.rmtree(tmp_path / "project", ignore_errors=True)

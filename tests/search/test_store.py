"""The journal of a study: whole after any kill, refused for another study."""

import json
import zlib

import pytest

from tcptune.errors import InputError
from tcptune.search.store import StepRecord, Study

IDENTITY = {"workload": {"einsum": "i,i->"}, "seed": 0}
RECORDS = [StepRecord(n, "explore", [n], [[{"fate": "scheduled", "makespan": 4000 - n}]], {}) for n in range(5)]


def written(path, records=RECORDS):
    with Study(path, IDENTITY) as study:
        for record in records:
            study.record(record)


def test_what_was_recorded_is_there_again(tmp_path):
    path = tmp_path / "study.journal"
    written(path)
    with Study(path, IDENTITY) as study:
        assert study.records == {r.number: r for r in RECORDS}


def test_a_journal_cut_anywhere_keeps_every_whole_line(tmp_path):
    path = tmp_path / "study.journal"
    written(path)
    data = path.read_bytes()
    ends = [n for n, byte in enumerate(data) if byte == ord("\n")]
    for length in range(len(data) + 1):
        path.write_bytes(data[:length])
        whole = max(0, sum(1 for end in ends if end < length) - 1)
        with Study(path, IDENTITY) as study:
            assert len(study.records) == whole
            study.record(RECORDS[whole] if whole < len(RECORDS) else StepRecord(whole, "suggest", [], [], {}))
        with Study(path, IDENTITY) as study:
            assert len(study.records) == whole + 1


def test_a_corrupt_line_ends_the_journal(tmp_path):
    path = tmp_path / "study.journal"
    written(path)
    lines = path.read_bytes().splitlines(keepends=True)
    lines[3] = lines[3].replace(b"scheduled", b"SCHEDULED")
    path.write_bytes(b"".join(lines))
    with Study(path, IDENTITY) as study:
        assert sorted(study.records) == [0, 1]


def test_a_journal_of_another_study_is_refused(tmp_path):
    path = tmp_path / "study.journal"
    written(path)
    with pytest.raises(InputError, match="another study") as caught:
        Study(path, {**IDENTITY, "seed": 1})
    assert "seed" in caught.value.render()


def test_any_other_file_is_refused_and_left_as_it_is(tmp_path):
    path = tmp_path / "notes.txt"
    path.write_text("shopping list\nmilk\n")
    with pytest.raises(InputError, match="not a study journal"):
        Study(path, IDENTITY)
    assert path.read_text() == "shopping list\nmilk\n"


def test_a_study_that_cannot_be_written_is_a_clear_error(tmp_path):
    with pytest.raises(InputError, match="cannot use the study file"):
        Study(tmp_path / "missing" / "study.journal", IDENTITY)


@pytest.mark.parametrize("content", [b"my thesis, without a newline", b"\0" * 100, b"two\nlines\n"], ids=["text", "zeros", "lines"])
def test_a_file_that_is_no_journal_is_left_as_it_is(tmp_path, content):
    path = tmp_path / "precious"
    path.write_bytes(content)
    with pytest.raises(InputError, match="not a study journal"):
        Study(path, {"seed": 0})
    assert path.read_bytes() == content


def test_a_first_line_that_a_kill_tore_is_written_anew(tmp_path):
    path = tmp_path / "study.journal"
    Study(path, {"seed": 0}).close()
    whole = path.read_bytes()
    for kept in range(len(whole)):
        path.write_bytes(whole[:kept])
        Study(path, {"seed": 0}).close()
        assert path.read_bytes() == whole


@pytest.mark.parametrize("step", [3, {"a": 1}, {"number": 0, "kind": "explore", "entries": [], "outcomes": 5, "params": {}}], ids=str)
def test_a_checksummed_line_that_is_no_step_gives_no_traceback(tmp_path, step):
    path = tmp_path / "study.journal"
    Study(path, {"seed": 0}).close()
    body = json.dumps(step).encode()
    path.write_bytes(path.read_bytes() + b"%08x %s\n" % (zlib.crc32(body), body))
    try:
        with Study(path, {"seed": 0}) as study:
            assert study.records == {}
    except InputError as refusal:
        assert "another form" in refusal.message

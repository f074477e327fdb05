"""The journal of a study: whole after any kill, refused for another study."""

import copy
import json
import os
import resource
import zlib
from dataclasses import asdict

import pytest

from tcptune.errors import InputError, WorkError
from tcptune.ir.candidate import Candidate, Knobs
from tcptune.ir.placement import AxisPlacement, Placement
from tcptune.ir.workload import einsum
from tcptune.search.entry import tune
from tcptune.search.parallel import Outcome
from tcptune.search.store import OtherStudy, StepRecord, Study, program_version

DOT = einsum("i,i->", i=8)
IDENTITY = {"workload": DOT.to_json(), "seed": 0}
PLAN = Candidate(DOT, Placement((AxisPlacement("i", packet=8),)), Knobs()).to_json()


def step(number):
    outcome = asdict(Outcome(PLAN, "scheduled", f"kernel {number}", 4000 - number))
    return StepRecord(number, "explore" if number else "template", [number] if number else [], [[outcome]], {})


RECORDS = [step(n) for n in range(5)]


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
            study.record(step(whole))
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


def checksummed(body):
    return b"%08x %s\n" % (zlib.crc32(body), body)


@pytest.mark.parametrize(
    "body",
    [b"3", b"hello", b"\xff\xfe", b"[" * 100_000, b'{"a":' + b"1" * 5000 + b"}", b'{"a": 1}'],
    ids=["number", "word", "bytes", "deep", "digits", "object"],
)
def test_a_checksummed_line_that_is_no_step_is_refused_with_its_number(tmp_path, body):
    path = tmp_path / "study.journal"
    written(path, RECORDS[:2])
    path.write_bytes(data := path.read_bytes() + checksummed(body))
    with pytest.raises(InputError, match="line 4"):
        Study(path, IDENTITY)
    assert path.read_bytes() == data


def outcome_with(**fields):
    return lambda document: document["outcomes"][0][0].update(fields)


@pytest.mark.parametrize(
    ("change", "names"),
    [
        (lambda d: d.update(number="x"), "number"),
        (lambda d: d.update(number=9), "expected step 1"),
        (lambda d: d.update(kind="bogus"), "'explore'"),
        (lambda d: d.update(entries=5), "entries"),
        (lambda d: d.update(entries=[-1]), "entries.0"),
        (lambda d: d.update(outcomes=[]), "as many lists of outcomes"),
        (lambda d: d.update(outcomes=[[{}]]), "candidate"),
        (outcome_with(makespan="x"), "makespan"),
        (outcome_with(makespan=0), "at least 1 cycle"),
        (outcome_with(fate="rejected"), "rule"),
        (outcome_with(candidate={**PLAN, "placement": {"i": {"Floor": 8}}}), "Floor"),
        (outcome_with(candidate={**PLAN, "placement": {"z": {"Packet": 8}}}), "z"),
        (outcome_with(candidate={**PLAN, "knobs": {**PLAN["knobs"], "slice_order": ["q"]}}), "'q' has no placement"),
    ],
)
def test_a_step_with_a_wrong_field_is_refused_with_the_field(tmp_path, change, names):
    path = tmp_path / "study.journal"
    written(path, RECORDS[:1])
    document = copy.deepcopy(asdict(RECORDS[1]))
    change(document)
    path.write_bytes(path.read_bytes() + checksummed(json.dumps(document).encode()))
    with pytest.raises(InputError, match="line 3") as refusal:
        Study(path, IDENTITY)
    assert names in refusal.value.message


def test_a_makespan_that_the_plan_does_not_take_is_not_believed(tmp_path):
    path, workload = tmp_path / "study.journal", einsum("ik,jk->ij", i=8, j=8, k=8)
    tune(workload, trials=3, study=path)
    head, template, *_ = path.read_bytes().splitlines(keepends=True)
    document = json.loads(template[9:])
    document["outcomes"][0][0]["makespan"] = 5
    path.write_bytes(head + checksummed(json.dumps(document).encode()))
    with pytest.raises(InputError, match="claims 5 cycles for a plan that takes"):
        tune(workload, trials=3, study=path)


def test_the_journal_of_another_version_of_the_program_is_of_another_study(tmp_path):
    path = tmp_path / "study.journal"
    Study(path, {**IDENTITY, "program": "0" * 16}).close()
    with pytest.raises(OtherStudy) as refusal:
        Study(path, {**IDENTITY, "program": program_version()})
    assert "another version of tcptune" in refusal.value.render()


@pytest.mark.parametrize("place", ["/dev/zero", "/dev/null", "pipe", "folder"])
def test_only_regular_files_are_opened(tmp_path, place):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    with pytest.raises(InputError, match=r"device or a pipe|it is a folder"):
        Study(tmp_path / place, IDENTITY)


@pytest.mark.parametrize(
    ("rewritten", "words"),
    [(lambda data: data.replace(b"\n", b"\r\n"), "CR LF"), (lambda data: b"\xef\xbb\xbf" + data, "byte order")],
)
def test_a_journal_that_an_editor_rewrote_says_so(tmp_path, rewritten, words):
    path = tmp_path / "study.journal"
    written(path)
    path.write_bytes(rewritten(path.read_bytes()))
    with pytest.raises(InputError) as refusal:
        Study(path, IDENTITY)
    assert words in refusal.value.render()


def test_a_full_disk_names_the_file_and_keeps_the_whole_steps(tmp_path):
    path = tmp_path / "study.journal"
    written(path, RECORDS[:2])
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    with Study(path, IDENTITY) as study:
        resource.setrlimit(resource.RLIMIT_FSIZE, (path.stat().st_size + 10, hard))
        try:
            with pytest.raises(WorkError, match="cannot write the study file") as refusal:
                study.record(RECORDS[2])
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert str(path) in refusal.value.message
    with Study(path, IDENTITY) as study:
        assert sorted(study.records) == [0, 1]

"""The forms in which files hold schedules, and what of a schedule can be priced from the file alone."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tcptune.cli.cost import cost_document
from tcptune.errors import InputError
from tcptune.exec.compile import compile_kernel
from tcptune.exec.library import patterns
from tcptune.exec.scheduling.schedule_forms import one_schedule, rows_left_out, schedules_of
from tcptune.exec.scheduling.schedule_json import from_json, to_json

SLICES = 512


def _instruction(index: str, tpe: str, begin: int, end: int, **more: Any) -> dict[str, Any]:
    return {"index": index, "tpe": tpe, "lifetime": {"begin": begin, "end": end}, "description": "--> src/k.rs:1:1", **more}


LOAD = _instruction("1", "DmaLoad", 1003, 1500, contexts=["DmaEngine"])
SYNC = _instruction("ExplicitSync(1)", "Core", 1500, 2100, contexts=["PeCore"], description="")
ONE = {"title": "Schedule", "instructions": [SYNC, LOAD], "tensors": []}
ROWS = [
    {"op": "DmaLoad", "begin": 1003, "end": 1500, "cycles": 497, "util": 0.5},
    {"op": "Switch", "begin": 1500, "end": 1700, "cycles": 200, "contexts": ["MainContext"]},
    {"op": "ExplicitSync", "begin": 1700, "end": 2100, "cycles": 400},
    {"op": "makespan", "cycles": 2100},
    {"op": "launch overhead", "begin": 0, "end": 1003, "cycles": 1003},
]


@pytest.mark.parametrize(
    ("document", "names"),
    [
        (ONE, [""]),
        ([SYNC, LOAD], [""]),
        ({"schedule": ONE}, ["schedule"]),
        ({"a": ONE, "b": ONE, "note": "two"}, ["a", "b"]),
        ({"kernels": {"a": ONE, "b": ROWS}}, ["a", "b"]),
        ([{**ONE, "name": "first"}, ONE], ["first", "schedule 1"]),
        (ROWS, [""]),
        ({"a": {"b": {"c": ONE}}}, ["c"]),
        ({"launches": [{**ONE, "name": "k"}, {**ONE, "name": "k"}]}, ["launches/k", "launches/k (2)"]),
        ({"a": {"launches": [ONE, ONE]}, "b": [ONE]}, ["a/launches/schedule 0", "schedule 1", "b/schedule 0"]),
        ({"kernels": {"q": {"main": ONE}, "r": {"main": ONE, "tail": ROWS}}}, ["kernels/q/main", "kernels/r/main", "tail"]),
    ],
)
def test_every_form_gives_its_schedules_by_name(document: Any, names: list[str]) -> None:
    found = schedules_of(document)
    assert list(found) == names
    assert {schedule.makespan for schedule in found.values()} == {2100}


def test_rows_become_operations_of_their_lanes() -> None:
    (schedule,) = schedules_of(ROWS).values()
    assert [(o.kind, o.contexts) for o in schedule.operations] == [
        ("DmaLoad", ("DmaEngine",)),
        ("Main", ("MainContext",)),
        ("Core", ("PeCore",)),
    ]
    assert schedule.operations[0].moved_bytes == round(0.5 * 497 * 1360)


@pytest.mark.parametrize("document", [{}, [], 7, {"kernels": {}}, [LOAD, 5], {"rows": [{"op": 7}]}])
def test_what_holds_no_schedule_is_refused(document: Any) -> None:
    with pytest.raises(InputError):
        schedules_of(document)


def test_an_operation_without_contexts_stands_in_the_lane_of_its_type() -> None:
    kinds = {"Main": "MainContext", "Sub": "SubContext", "Core": "PeCore", "DmaGather": "DmaEngine", "": "DmaEngine"}
    schedule = from_json({"instructions": [_instruction(str(i), kind, i, i + 1) for i, kind in enumerate(kinds)]})
    assert [o.contexts for o in schedule.operations] == [(context,) for context in kinds.values()]


def test_spill_traffic_is_told_by_its_description_and_written_as_it_was_read() -> None:
    rows = [("DmaLoad", "SpillyLoad"), ("DmaStore", "SpillyStore"), ("Core", "SpillySync")]
    schedule = from_json({"instructions": [_instruction(str(i), kind, i, i + 1, description="Spilly") for i, (kind, _) in enumerate(rows)]})
    assert [o.kind for o in schedule.operations] == [name for _, name in rows]
    assert [i["tpe"] for i in to_json(schedule)["instructions"]] == [kind for kind, _ in rows]


def test_durations_without_times_are_no_schedule() -> None:
    with pytest.raises(InputError, match="no 'begin' and 'end'"):
        schedules_of({"rows": [{"op": "DmaLoad", "cycles": 500}]})


def test_a_row_without_times_does_not_hide_the_others() -> None:
    document = {"kernels": {"k": [*ROWS, {"op": "Main", "cycles": 300}, {"note": "read off a picture"}]}}
    (schedule,) = schedules_of(document).values()
    assert len(schedule.operations) == 3
    assert [line.split(" has")[0] for line in rows_left_out(document)] == ["row 5 (Main)", "row 6 (no op)"]
    assert rows_left_out({"kernels": {"k": ROWS}}) == rows_left_out(ONE) == rows_left_out([ONE]) == ()


@pytest.mark.parametrize(("op", "kind"), [("StoTrf", "Sub"), ("Transpose 8 x 8", "Main"), ("DramReuse", "Core"), ("", "")])
def test_rows_that_are_called_by_what_they_do_have_a_lane(op: str, kind: str) -> None:
    (schedule,) = schedules_of([{"op": op, "begin": 0, "end": 9}]).values()
    assert schedule.operations[0].kind == kind


def test_of_several_schedules_the_one_of_the_kernel_is_taken() -> None:
    late = {"instructions": [{**SYNC, "lifetime": {"begin": 0, "end": 9}}]}
    assert one_schedule({"a": ONE, "b": late}, "b").makespan == 9
    assert one_schedule({"a": ONE}, "b").makespan == 2100
    with pytest.raises(InputError, match="holds 2 schedules, none of 'c'"):
        one_schedule({"a": ONE, "b": late}, "c")


def test_tensors_are_found_by_number_and_by_text() -> None:
    tensors = [{"index": "7", "name": "x_dm", "buffer_type": "Sram", "size": SLICES}]
    rows = [_instruction(str(i), "Main", i, i + 1, input_tensors=[given]) for i, given in enumerate((7, "7", 8, "x"))]
    assert [o.reads for o in from_json({"instructions": rows, "tensors": tensors}).operations] == [("x_dm",), ("x_dm",), ("T8",), ("Tx",)]


# prices


def _tensor(index: int, memory: str, size: int) -> dict[str, Any]:
    return {"index": str(index), "buffer_type": memory, "size": size, "lifetime": {"begin": 0, "end": 1}}


PRICED = [
    (_instruction("1", "DmaOther", 0, 484), 484),
    (_instruction("DramReuse(3)", "Core", 0, 600, contexts=["PeCore"], description=""), 600),
    (_instruction("ExplicitSync(3)", "Core", 0, 600, contexts=["PeCore"], description=""), 600),
    (_instruction("2", "Core", 0, 10, contexts=["PeCore"], output_tensors=[9]), 10),
    (_instruction("3", "Core", 0, 6, contexts=["PeCore"], input_tensors=[1], output_tensors=[2]), 6),
    (_instruction("4", "DmaLoad", 0, 838, description="", output_tensors=[1]), 838),
    (_instruction("5", "Sub", 0, 1293, contexts=["SubContext"], description="", input_tensors=[1], output_tensors=[2]), 1293),
    (_instruction("6", "DmaLoad", 0, 719, description="", output_tensors=[3]), 719),
    (_instruction("7", "Sub", 0, 775, contexts=["SubContext"], input_tensors=[4], output_tensors=[5]), 263 + 4096 // 8),
]
TENSORS = [
    _tensor(1, "Sram", 4_096),
    _tensor(2, "Sram", 8_388_608),
    _tensor(3, "Sram", 16_384),
    _tensor(4, "Sram", 4_096 * SLICES),
    _tensor(5, "Trf", 32_768 * SLICES),
    _tensor(9, "Spm", 32),
]


@pytest.mark.parametrize("which", range(len(PRICED)))
def test_work_that_a_schedule_tells_completely_is_priced(tmp_path: Path, which: int) -> None:
    instruction, cycles = PRICED[which]
    file = tmp_path / "schedule.json"
    file.write_text(json.dumps({"instructions": [instruction], "tensors": TENSORS}))
    (row,) = cost_document(file)["rows"]
    assert row["predicted"] == cycles


@pytest.mark.parametrize(
    ("instruction", "reason"),
    [
        (_instruction("1", "DmaGather", 0, 900), "indexed"),
        (_instruction("1", "DmaLoad", 0, 900, contexts=["PcieDmaEngine"]), "host"),
        (_instruction("1", "Main", 0, 900, contexts=["MainContext"]), "lacks flits"),
        (_instruction("1", "DmaStore", 0, 900), "lacks slices"),
        (_instruction("1", "Sub", 0, 0, contexts=["Noop"]), "bookkeeping"),
        (_instruction("1", "Sub", 0, 400, contexts=["SubContext"], description="x.switch()", input_tensors=[4]), "lacks per_slice_bytes"),
    ],
)
def test_work_that_it_does_not_tell_is_skipped_with_the_reason(tmp_path: Path, instruction: dict[str, Any], reason: str) -> None:
    file = tmp_path / "schedule.json"
    file.write_text(json.dumps({"instructions": [instruction, SYNC], "tensors": TENSORS}))
    row, _ = cost_document(file)["rows"]
    assert reason in row["skipped"]


def test_the_sync_after_a_staged_index_is_the_shorter_one(tmp_path: Path) -> None:
    """300 cycles after a DmaOther, 600 anywhere else (VT-029); the index of a sync names the place that it follows."""
    stage = _instruction("1", "DmaOther", 0, 484)
    syncs = [_instruction(f"ExplicitSync({n})", "Core", 484, 484 + t, description="") for n, t in ((0, 300), (1, 600), (9, 600))]
    file = tmp_path / "schedule.json"
    file.write_text(json.dumps({"instructions": [stage, *syncs]}))
    assert [row["error"] for row in cost_document(file)["rows"]] == [0.0, 0.0, 0.0, 0.0]


def test_the_viewers_names_of_contexts_are_understood(tmp_path: Path) -> None:
    file = tmp_path / "schedule.json"
    file.write_text(json.dumps({"instructions": [_instruction("1", "DmaLoad", 0, 9, contexts=["PDMA"]), SYNC]}))
    assert "host" in cost_document(file)["rows"][0]["skipped"]


def test_our_own_schedules_agree_with_their_prices(tmp_path: Path) -> None:
    file = tmp_path / "gemm.json"
    file.write_text(json.dumps(to_json(compile_kernel(patterns.gemm()).schedule)))
    errors = [row["error"] for row in cost_document(file)["rows"] if "skipped" not in row]
    assert len(errors) == 2
    assert errors == [0.0, 0.0]

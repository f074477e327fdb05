"""The vendor's schedule JSON: what we write, what we read, and what is refused."""

import json
from math import ceil

import pytest

from tcptune.errors import InputError
from tcptune.exec.compile import compile_kernel
from tcptune.exec.library import double_buffer, patterns, vector_rows
from tcptune.exec.scheduling.schedule_json import from_json, lanes_of, read_schedule, to_json, visible, write_schedule
from tcptune.ir.schedule import DMA, MAIN, VECTOR

SLICES = 512


@pytest.fixture(scope="module")
def gemm():
    return compile_kernel(patterns.gemm()).schedule


@pytest.fixture(scope="module")
def document(gemm):
    return to_json(gemm)


def test_the_top_level_is_the_vendors(document):
    assert set(document) == {"title", "total_memory", "page_size", "instructions", "tensors"}
    assert document["total_memory"] == 268_435_456
    assert document["page_size"] == 16_777_216


def test_an_instruction_has_every_field_of_the_format(document):
    first = document["instructions"][0]
    assert set(first) == {"index", "history", "tpe", "contexts", "lifetime", "input_tensors", "output_tensors", "description", "util"}
    assert first["tpe"] == "DmaLoad"
    assert first["contexts"] == ["DmaEngine"]
    assert first["lifetime"]["begin"] == 1003
    assert first["history"] == {"resourcelir": "O0"}


def test_the_last_instruction_is_the_closing_sync(document):
    last = document["instructions"][-1]
    assert last["index"].startswith("ExplicitSync(")
    assert last["contexts"] == ["PeCore"]
    assert last["lifetime"]["end"] - last["lifetime"]["begin"] == 600


def test_utilisation_is_bytes_over_1360_rounded_up_over_cycles(document):
    for row in document["instructions"]:
        cycles = row["lifetime"]["end"] - row["lifetime"]["begin"]
        if row["tpe"] == "DmaStore":
            assert row["util"]["total_util"] * cycles == pytest.approx(ceil(512 * 512 * 2 / 1360))
        elif not row["tpe"].startswith("Dma"):
            assert row["util"]["total_util"] == 0


def test_tensors_are_totals_over_all_slices(document):
    tensors = {t["name"]: t for t in document["tensors"]}
    assert tensors["b_dm"]["size"] == 4096 * SLICES
    assert tensors["b_dm"]["address"] % (256 * SLICES) == 0
    assert tensors["b_trf"]["buffer_type"] == "Trf"
    assert tensors["b_trf"]["size"] == 32_768 * SLICES
    assert tensors["b_trf"]["shape"].startswith("MappingShape[Chip: 1, Cluster: 1 # 2, Slice: ")
    assert "Lane: J % 8" in tensors["b_trf"]["shape"]


def test_hbm_tensors_have_ids_but_no_entry(document):
    listed = {int(t["index"]) for t in document["tensors"]}
    load = document["instructions"][0]
    assert not set(load["input_tensors"]) & listed
    assert set(load["output_tensors"]) <= listed


def test_a_written_schedule_is_read_back(tmp_path, gemm):
    path = tmp_path / "schedule.json"
    write_schedule(gemm, path)
    again = read_schedule(path)
    assert again.makespan == gemm.makespan
    assert [(o.kind, o.contexts, o.begin, o.end) for o in again.operations] == [
        (o.kind, o.contexts, o.begin, o.end) for o in gemm.operations
    ]
    trf = next(life for life in again.lifetimes if life.buffer.name == "b_trf")
    assert (trf.buffer.size_bytes, trf.address) == (32_768, 0)


@pytest.mark.parametrize("build", [double_buffer.rolled, double_buffer.unrolled, vector_rows.softmax])
def test_every_buffer_an_instruction_names_is_listed_or_in_hbm(build):
    schedule = compile_kernel(build()).schedule
    written = to_json(schedule)
    listed = {int(t["index"]) for t in written["tensors"]}
    assert len(listed) == len(written["tensors"])
    for row in written["instructions"]:
        if row["tpe"] in ("Main", "Sub") and row["contexts"] != ["Noop"]:
            assert set(row["input_tensors"]) <= listed
            assert set(row["output_tensors"]) <= listed


def test_the_makespan_is_the_last_end_in_any_order():
    rows = [{"lifetime": {"begin": 100, "end": 5000}}, {"lifetime": {"begin": 0, "end": 900}}]
    assert from_json({"instructions": rows}).makespan == 5000
    assert from_json({"instructions": []}).makespan == 0


def test_unknown_keys_and_older_context_names_are_accepted():
    row = {"tpe": "exec", "contexts": ["Main", "VE"], "lifetime": {"begin": 0, "end": 10}, "scheduler_node_index": 4}
    (operation,) = from_json({"instructions": [row], "new_key": 1}).operations
    assert operation.contexts == (MAIN, VECTOR)


@pytest.mark.parametrize(
    "broken",
    [
        [],
        {"instructions": 3},
        {"instructions": [{"tpe": "Main"}]},
        {"instructions": [{"lifetime": {"begin": 0}}]},
        {"instructions": [{"lifetime": {"begin": 5, "end": 3}}]},
        {"instructions": [{"lifetime": {"begin": "a", "end": 3}}]},
        {"instructions": [], "tensors": {}},
    ],
)
def test_what_is_no_schedule_is_refused(broken):
    with pytest.raises(InputError):
        from_json(broken)


def test_a_file_that_is_no_json_is_refused(tmp_path):
    path = tmp_path / "x.json"
    path.write_text("{")
    with pytest.raises(InputError, match="is not JSON"):
        read_schedule(path)


def test_lanes_follow_the_viewer():
    assert lanes_of((VECTOR, MAIN)) == ("Main", "VE")
    assert lanes_of((), "Sub") == ("Sub",)
    assert lanes_of((), "DmaLoad") == lanes_of((DMA,)) == ("TDMA",)


def test_a_window_is_half_open():
    assert visible(3999, 4001, 4000, 8000) == (4000, 4001)
    assert visible(0, 4000, 4000, 8000) is None
    assert visible(8000, 8500, 4000, 8000) is None


def test_the_document_is_plain_json(document):
    assert json.loads(json.dumps(document)) == document


LIFE = {"begin": 0, "end": 4}


@pytest.mark.parametrize(
    "broken",
    [
        {"instructions": [{"lifetime": LIFE, "contexts": 1.5}]},
        {"instructions": [{"lifetime": LIFE, "input_tensors": True}]},
        {"instructions": [{"lifetime": LIFE, "util": {"total_util": []}}]},
        {"instructions": [{"lifetime": {"begin": float("nan"), "end": 4}}]},
        {"instructions": [], "tensors": [{"buffer_type": "Sram", "lifetime": {"begin": None}}]},
    ],
)
def test_a_field_of_another_type_is_refused(broken):
    with pytest.raises(InputError, match="must be"):
        from_json(broken)

"""Prices of published operations: how close the vendor profile comes, and what happens to rows that cannot be priced."""

from __future__ import annotations

import json
from math import ceil
from pathlib import Path
from statistics import median
from typing import Any

import pytest

import tcptune.exec
from tcptune.cli.cost import cost_document
from tcptune.errors import InputError
from tcptune.exec.published_rows import price_row
from tcptune.exec.row_sizes import Skipped
from tcptune.model.timing.calibration import MANUAL, VENDOR

DATA = Path(tcptune.exec.__path__[0]).parent / "data" / "published_transfers.json"
SCHEDULES = DATA.parents[3] / "shared" / "calibration" / "vendor_schedules.json"


def errors(operation: str) -> list[float]:
    """Sorted relative errors of the published shapes with known layout."""
    rows = [r for r in json.loads(DATA.read_text())["rows"] if r["op"] == operation and "layout" not in r]
    return sorted(abs(price_row(r, VENDOR) / r["cycles"] - 1) for r in rows)


def test_published_loads() -> None:
    found = errors("DmaLoad")
    assert len(found) == 44
    assert median(found) <= 0.01
    assert found[ceil(0.9 * len(found)) - 1] <= 0.07


def test_published_stores() -> None:
    found = errors("DmaStore")
    assert len(found) == 15
    assert median(found) <= 0.015
    assert found[-1] <= 0.08


@pytest.mark.skipif(not SCHEDULES.exists(), reason="the published schedules are not beside the project")
def test_every_transfer_of_the_published_schedules_is_within_eight_percent() -> None:
    kernels = json.loads(SCHEDULES.read_text())["kernels"]
    rows = [row for kernel in kernels.values() for row in kernel if row["op"].startswith("Dma")]
    assert len(rows) > 30
    assert all(price_row(row, VENDOR) == pytest.approx(row["cycles"], rel=0.08) for row in rows)


@pytest.mark.parametrize(
    ("row", "cycles"),
    [
        ({"op": "Sub", "contexts": ["SubContext"], "per_slice_bytes": 4096}, 775),
        ({"op": "Main", "flits": 512, "lanes": 8}, 777),
        ({"op": "Main", "flits": 32}, 296),
        ({"op": "Main", "contexts": ["MainContext", "VectorEngine"], "time_steps": 250}, 531),
        ({"op": "Main", "contexts": ["MainContext", "SubContext"], "time_steps": 1}, 264),
        ({"op": "Main", "time_steps": 8, "reduce_slices": 256}, 2582),
        ({"op": "Switch", "ring": 256, "time": 16, "flits": 1}, 4871),
        ({"op": "ExplicitSync"}, 600),
    ],
)
def test_passes_cost_what_the_schedules_print(row: dict[str, Any], cycles: int) -> None:
    assert price_row(row, VENDOR) == cycles


LOAD = {"op": "DmaLoad", "slices": 256, "source": "distinct", "run_bytes": 64, "per_slice_bytes": 64, "pitch_bytes": 64}


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"slices": None}, "lacks slices"),
        ({"slices": 257}, "do not fit"),
        ({"run_bytes": "64"}, "not a size"),
        ({"run_bytes": 48}, "whole number of pieces"),
        ({"run_bytes": 32}, "lacks row_pitch_bytes"),
        ({"source": "elsewhere"}, "not known"),
        ({"clusters": 3}, "more than a chip has"),
        ({"op": "Launch"}, "no operation|not an operation"),
        ({"slice_loops": [[2**40, 0, 0]]}, "do not fit"),
        ({"slice_loops": [[2, 1]]}, "whole numbers"),
        ({"slice_loops": [[2, 1, 64]], "piece_loops": [[2**39, 2**39]]}, "outside the HBM"),
        ({"pitch_bytes": 2**38}, "outside the HBM"),
    ],
)
def test_a_row_that_lacks_what_it_needs_is_skipped_with_the_reason(change: dict[str, Any], reason: str) -> None:
    row = {name: value for name, value in {**LOAD, **change}.items() if value is not None}
    with pytest.raises(Skipped, match=reason):
        price_row(row, VENDOR)


GEMM_STORE = {
    "op": "DmaStore",
    "bytes": 524288,
    "per_slice_bytes": 2048,
    "slices": 256,
    "run_bytes": 64,
    "pieces": 8192,
    "source": "distinct",
    "pitch_bytes": 64,
    "row_pitch_bytes": 1024,
}
VECTOR_LOAD = {"op": "DmaLoad", "bytes": 4096, "slices": 256, "per_slice_bytes": 16, "run_bytes": 16, "segments": 256, "unique_bytes": 4096}
REPLICATED = {"op": "DmaLoad", "bytes": 1 << 20, "slices": 256, "per_slice_bytes": 4096, "run_bytes": 4096, "replication": 256}


@pytest.mark.parametrize(
    ("row", "missing"),
    [
        (GEMM_STORE, ["run_bytes"]),
        (GEMM_STORE, ["slices"]),
        (GEMM_STORE, ["per_slice_bytes", "run_bytes"]),
        (VECTOR_LOAD, ["per_slice_bytes", "run_bytes"]),
        (VECTOR_LOAD, ["slices"]),
        (REPLICATED, ["per_slice_bytes"]),
    ],
)
def test_sizes_that_follow_from_others_may_be_left_out(row: dict[str, Any], missing: list[str]) -> None:
    """`bytes`, the places and the number of pieces give one another, in one cluster and in two."""
    for clusters in (1, 2):
        doubled = {name: row[name] * clusters for name in ("bytes", "pieces", "segments", "unique_bytes") if name in row}
        whole = {**row, **doubled, "clusters": clusters}
        if "replication" in row:
            whole["replication"] = row["replication"] * clusters
        source = "replicated" if "replication" in row else "distinct"
        short = {name: value for name, value in whole.items() if name not in missing}
        assert price_row(short, VENDOR) == price_row({**whole, "source": source}, VENDOR)


@pytest.mark.parametrize("replication", [2, 16, 128])
def test_copies_to_some_slices_do_not_tell_which_slices_share_a_block(replication: int) -> None:
    with pytest.raises(Skipped, match="lacks source"):
        price_row({**REPLICATED, "replication": replication}, VENDOR)


@pytest.mark.parametrize(
    ("row", "cycles"),
    [
        ({"op": "StoTrf", "per_slice_bytes": 4096}, 775),
        ({"op": "Sub StoTrf", "flits": 128}, 775),
        ({"op": "Main copy", "per_slice_bytes": 1024}, 264 + 32),
        ({"op": "Main contraction", "per_slice_bytes": 1600}, 315),
        ({"op": "Main VE pass", "elements": 1000, "dtype": "bf16->f32"}, 531),
        ({"op": "Main VE pass", "elements": 1000, "dtype": "i32"}, 281 + 125),
        ({"op": "Main table lookup", "elements": 1280, "dtype": "f8->bf16"}, 263 + 200),
        ({"op": "Main table lookup", "elements": 1280, "dtype": "f4->f8"}, 263 + 100),
        ({"op": "Main", "time_steps": 8, "description": "sum, then inter-slice reduce over 32 slices"}, 270 + 8 + 9 * 32),
        ({"op": "Main", "time_steps": 8, "description": "sum, then a 64-slice inter-slice reduction"}, 270 + 8 + 9 * 64),
        ({"op": "Main", "flits": 16, "reduce_slices": 8}, 270 + 16 + 9 * 8),
        ({"op": "Main table lookup", "flits": 16, "dtype": "f4->f8"}, 263 + 80),
        ({"op": "Main table lookup", "per_slice_bytes": 640, "dtype": "f8->bf16"}, 263 + 100),
        ({"op": "Sub", "packets": 900, "description": "cast and commit"}, 264 + 1800),
        ({"op": "Sub cast and commit", "elements": 7200}, 264 + 1800),
        ({"op": "Sub cast and commit", "per_slice_bytes": 14_400, "dtype": "bf16->f8"}, 264 + 1800),
        ({"op": "Main", "flits": 512.0}, 776),
        ({"op": "Core", "description": "ExplicitSync before an indexed DMA"}, 300),
    ],
)
def test_passes_of_other_schedules_are_priced_by_the_rules(row: dict[str, Any], cycles: int) -> None:
    """VT-001 to VT-005, VT-009 and VT-029, from sizes that no published row happens to have."""
    assert price_row(row, VENDOR) == cycles


def test_moves_inside_the_memory_may_be_given_by_slice() -> None:
    by_slice = {"op": "DmaStos", "slices": 64, "clusters": 2, "per_slice_bytes": 512}
    assert price_row(by_slice, VENDOR) == price_row({"op": "DmaStos", "bytes": 65_536}, VENDOR) > 441


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ({"op": "Main table lookup", "flits": 16}, "lacks elements"),
        ({"op": "Main VE pass", "flits": 16}, "lacks time_steps"),
        ({"op": "Main", "time_steps": 8, "description": "inter-slice reduce along the ring"}, "lacks reduce_slices"),
        ({"op": "Main", "flits": 1.5}, "not a size"),
    ],
)
def test_a_pass_is_not_priced_by_the_wrong_rule(row: dict[str, Any], reason: str) -> None:
    with pytest.raises(Skipped, match=reason):
        price_row(row, VENDOR)


@pytest.mark.parametrize("source", ["distinct", "replicated"])
@pytest.mark.parametrize("run", [1096, 1720, 2344, 2552, 4104, 4112, 5688, 7912, 8176, 8248, 8984, 16_392, 61_448])
def test_no_length_of_a_row_is_much_dearer_than_the_whole_lines_that_hold_it(run: int, source: str) -> None:
    """Rows off the lines cost 8 to 29 % more (VT-025), whatever their length divides by: 1,096 is 8 times a prime."""
    whole = -(-run // 256) * 256
    row, lines = ({**LOAD, "slices": 64, "source": source, "run_bytes": n, "per_slice_bytes": n, "pitch_bytes": n} for n in (run, whole))
    assert 1.0 <= price_row(row, VENDOR) / price_row(lines, VENDOR) <= 1.5


def test_a_row_without_cycles_is_compared_with_its_begin_and_end(tmp_path: Path) -> None:
    file = tmp_path / "rows.json"
    file.write_text(json.dumps({"rows": [{"op": "StoTrf", "per_slice_bytes": 4096, "begin": 1000, "end": 1775}]}))
    assert cost_document(file)["rows"] == [{"row": "row[0]", "predicted": 775, "published": 775, "error": 0.0}]


def test_the_manual_profile_prices_transfers_and_skips_passes() -> None:
    assert price_row(LOAD, MANUAL) > 500
    with pytest.raises(Skipped):
        price_row({"op": "Main", "flits": 32}, MANUAL)


def test_the_document_compares_and_sums_up(tmp_path: Path) -> None:
    file = tmp_path / "rows.json"
    file.write_text(json.dumps([{**LOAD, "cycles": 707}, {"op": "Main"}, 5, {"op": "Main", "flits": 32}]))
    document = cost_document(file)
    assert document["schema"] == "tcptune/cost/1"
    priced, skipped, wrong, unpublished = document["rows"]
    assert priced["error"] == pytest.approx(priced["predicted"] / 707 - 1)
    assert "skipped" in skipped and "skipped" in wrong
    assert (unpublished["predicted"], unpublished["error"]) == (296, None)
    assert document["summary"]["count"] == 1


@pytest.mark.parametrize("text", ["", "{", "7", '{"rows": 7}', '{"kernels": {"a": {}}}'])
def test_a_file_that_holds_no_rows_is_refused(tmp_path: Path, text: str) -> None:
    file = tmp_path / "rows.json"
    file.write_text(text)
    with pytest.raises(InputError):
        cost_document(file)

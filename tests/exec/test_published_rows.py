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
from tcptune.exec.published_rows import Skipped, price_row
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

"""How much evidence every constant of the transfer model has: which rest on one published shape, and what a shape says of the others.

Near the constants a price is linear in them. The rows of a least-squares fit then tell which share of what is known of a constant comes
from one shape, and how far a shape would be off were it left out: its error over one minus its leverage.
"""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import tcptune.exec
from tcptune.exec.published_rows import row_stream
from tcptune.model.memory.price import stream_cycles
from tcptune.model.timing.calibration import VENDOR, DmaTiming

DATA = Path(tcptune.exec.__path__[0]).parent / "data" / "published_transfers.json"
STEPS = ("near_distance", "mid_distance", "same_line_bytes", "window", "max_packet")
"""Constants that are no slopes: prices jump with them."""

NAMES = tuple(
    name for name in DmaTiming.__dataclass_fields__ if name not in (*STEPS, "dm_copy_bytes_per_cycle", "hbm_request", "hbm_row_switch")
)
Floats = npt.NDArray[np.float64]


def prices(rows: list[dict[str, Any]], timing: DmaTiming) -> Floats:
    return np.array([stream_cycles((row_stream(row),), timing, row["op"] == "DmaStore")[0] for row in rows])


@cache
def fit() -> tuple[list[str], Floats, Floats]:
    """Names of the shapes, their relative errors, and the weighted sensitivities of their prices to each constant (relative to both)."""
    rows = json.loads(DATA.read_text())["rows"]
    published = np.array([row["cycles"] for row in rows], dtype=np.float64)
    errors = prices(rows, VENDOR.dma) / published - 1
    columns = []
    for name in NAMES:
        constant = getattr(VENDOR.dma, name)
        up, down = (replace(VENDOR.dma, **{name: replace(constant, value=constant.value * factor)}) for factor in (1.01, 0.99))
        columns.append((prices(rows, up) - prices(rows, down)) / 0.02 / published)
    weights = 0.01 / np.maximum(np.abs(errors), 0.01)  # shapes that fit badly say less
    return [row["id"] for row in rows], errors, np.stack(columns, axis=1) * weights[:, None]


def strongest(name: str) -> tuple[str, float]:
    """The shape that says most of a constant, and its share, once the shape has said what it can of the other constants."""
    shapes, _, sensitivities = fit()
    column = sensitivities[:, NAMES.index(name)]
    others = np.delete(sensitivities, NAMES.index(name), axis=1)
    left = (column - others @ np.linalg.lstsq(others, column, rcond=None)[0]) ** 2
    return shapes[int(left.argmax())], float(left.max() / left.sum())


ONE_SHAPE = {
    "port": "d403",
    "partial_write_64": "d054",
    "partial_write_8": "d022",
    "sub_word_piece": "d006",
    "sub_word_queue": "d046",
}
"""What docs/cost-model.md says of them."""


@pytest.mark.parametrize("name", NAMES)
def test_constants_that_rest_on_one_shape_are_known(name: str) -> None:
    shape, share = strongest(name)
    assert (share > 0.75) == (name in ONE_SHAPE), (shape, share)
    assert ONE_SHAPE.get(name, shape) == shape


def test_what_is_known_of_a_constant_is_as_exact_as_it_says() -> None:
    """Two standard deviations for shapes within 1 %: the rates that searches live on are known best, the latency is free."""
    _, _, sensitivities = fit()
    spread = dict(zip(NAMES, 0.01 * np.sqrt(np.diag(np.linalg.inv(sensitivities.T @ sensitivities))), strict=True))
    assert all(2 * spread[name] <= 0.025 for name in ("start_load", "issue_far", "issue_mid", "issue_near", "same_line"))
    assert spread["latency"] > 1


def test_a_shape_left_out_is_priced_by_the_others() -> None:
    shapes, errors, sensitivities = fit()
    inverse = np.linalg.inv(sensitivities.T @ sensitivities)
    leverage = np.einsum("ij,jk,ik->i", sensitivities, inverse, sensitivities)
    left_out = {
        shape: abs(error / (1 - h))
        for shape, error, h in zip(shapes, errors, leverage, strict=True)
        if h < 0.95 and abs(error) <= 0.03  # the others rest on that shape, or are not explained with it either
    }
    assert len(left_out) >= 60
    assert sorted(left_out.values())[-2] <= 0.034
    assert max(left_out, key=lambda shape: left_out[shape]) == "d683"
    assert max(left_out.values()) <= 0.045

"""Runs `vcg` cases: the derived configuration of the Valid Count Generator, its counts, and what the data itself demands."""

from __future__ import annotations

from collections.abc import Iterable
from collections.abc import Mapping as Dict
from typing import Any

import numpy as np
import numpy.typing as npt

from tcptune.exec.conformance.kinds.compare import expect_verdict, matches
from tcptune.exec.conformance.registry import NO_RESULT, Case, Mismatch, expect_equal
from tcptune.ir.mappings.axes import Axes
from tcptune.ir.mappings.cells import joint_table
from tcptune.ir.mappings.mapping import Mapping, broadcast, factors, pair
from tcptune.model.engines.valid_count import TimeFilter, ValidCountConfig, derive, sequencer_index
from tcptune.model.hardware import RNGD
from tcptune.model.mappings.position_digits import position_digits

Counts = npt.NDArray[np.int64]


def run(case: Case) -> None:
    """Checks one case of kind `vcg`.

    Raises:
        Mismatch: verdict, rule, a field of the configuration or a count disagrees.
    """
    expect = case["expect"]
    axes = Axes(case["axes"])
    levels = {name: axes.mapping(case[name]) for name in ("slice", "time", "packet")}
    tracked = {axis: axes[axis] for axis in case.get("tracked", [case["reduce"]])}
    need = demanded_counts(levels["slice"], levels["time"], levels["packet"], tracked)
    for slice_id, step, want in expect.get("required_valid_size", ()):
        expect_equal(f"required valid_size at slice {slice_id}, step {step}", int(need[slice_id, step]), want)
    found: list[ValidCountConfig] = []

    def derive_case() -> None:
        found.append(derive(levels["slice"], levels["time"], levels["packet"], tracked, RNGD))

    expect_verdict(case, derive_case)
    if found:
        _compare(found[0], levels, expect, axes, case["reduce"])


def demanded_counts(slices: Mapping, time: Mapping, packet: Mapping, tracked: Iterable[str]) -> Counts:
    """Elements of every flit that are real as far as the tracked axes go, straight from the mapping: shape (slice, step).

    Factors of other axes count as real everywhere; a flit whose packet does not carry a tracked axis is real as a whole or not at all.
    """
    names = set(tracked)
    levels = [pair(*(m if names & set(m.axes) else broadcast(m.size) for m in factors(level))) for level in (slices, time, packet)]
    counts: Counts = joint_table(*levels).live.sum(axis=2, dtype=np.int64)
    return counts


def _compare(config: ValidCountConfig, levels: Dict[str, Mapping], expect: Dict[str, Any], axes: Axes, reduce: str) -> None:
    counts = config.valid_sizes(levels["slice"].size, levels["time"].size)
    filters = [_filter_fields(f, levels["time"]) for f in config.time_filters]
    derived: dict[str, Any] = {
        "time_filters": filters,
        "time_filters_disabled": RNGD.valid_count_time_filters - len(filters),
        "packet_clipper": {
            "sequencer": [list(e) for e in config.packet_clipper.sequencer],
            "axis_size": config.packet_clipper.axis_size,
            "packet_span": config.packet_clipper.packet_span,
            "enabled": config.packet_clipper.enabled,
        },
        "time_filter": filters[0] if filters else {"slice_mask": 0, "slice_thres": 1, "disabled": True},
        "valid_size_total": int(counts.sum()),
        "sawtooth": counts[0].tolist(),
        "rows": counts.tolist(),
    }
    if "rows_by_slice_contribution" in expect:
        derived["rows_by_slice_contribution"] = _rows_by_contribution(levels, counts, axes, reduce)
    for name, want in expect.items():
        if name in derived and not matches(derived[name], want):
            raise Mismatch(f"{name}: got {derived[name]!r}, expected {want!r}")
        if name not in derived and name not in _COMPARED_ELSEWHERE:
            raise Mismatch(f"nothing derives {name}")
    for slice_id, step, want in expect.get("valid_size", ()):
        expect_equal(f"valid_size at slice {slice_id}, step {step}", int(counts[slice_id, step]), want)
    for step, index, valid in expect.get("index_samples", ()):
        only = config.time_filters[0]
        at = int(sequencer_index(only.sequencer, np.array([step]))[0])
        expect_equal(f"index at step {step}", [at, at < only.time_thres], [index, valid])


_COMPARED_ELSEWHERE = (*NO_RESULT, "valid_size", "index_samples", "row_format", "heat_map", "required_valid_size")


def _filter_fields(time_filter: TimeFilter, time: Mapping) -> dict[str, Any]:
    return {
        "axis": time_filter.axis,
        "sequencer": [list(e) for e in time_filter.sequencer],
        "sequencer_terms": [str(m) for m in time.terms()],
        "slice_mask": time_filter.slice_mask,
        "slice_thres": time_filter.slice_thres,
        "time_thres": time_filter.time_thres,
        "mode": time_filter.mode,
        **dict(time_filter.facts),
    }


def _rows_by_contribution(levels: Dict[str, Mapping], counts: Counts, axes: Axes, reduce: str) -> list[list[Any]]:
    """For every value that Slice adds to the axis: that value, the axis index at every step, and the number of valid steps."""
    steps = _contribution(levels["time"], reduce)
    rows: dict[int, list[Any]] = {}
    for slice_id, base in enumerate(_contribution(levels["slice"], reduce)):
        rows[int(base)] = [int(base), [int(base + step) for step in steps], int(np.count_nonzero(counts[slice_id]))]
    return [rows[base] for base in sorted(rows)]


def _contribution(m: Mapping, axis: str) -> Counts:
    positions = np.arange(m.size, dtype=np.int64)
    total = np.zeros_like(positions)
    for digit in position_digits(m) or ():
        if digit.axis == axis:
            total = total + positions // digit.place % digit.extent * digit.weight
    return total

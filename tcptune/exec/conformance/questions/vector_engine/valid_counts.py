"""Answers the tables of the Valid Count Generator: capacities, counts behind Narrow and Widen, and counts of given placements.

A table over a placement names its axes and levels (``axes``, ``slice``, ``time``, ``packet``, ``tracked``); one that names none is about
the placement that the chapter works through.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tcptune.exec.conformance.kinds.compare import expect_derived, expect_rows
from tcptune.exec.conformance.registry import Case, Mismatch, table
from tcptune.ir.mappings.axes import Axes
from tcptune.ir.mappings.mapping import Mapping, pair
from tcptune.model.engines.valid_count import (
    ValidCountConfig,
    concat_counts,
    derive,
    pad_counts,
    sequencer_index,
    split_counts,
    trim_counts,
)
from tcptune.model.hardware import RNGD
from tcptune.model.mappings.position_digits import position_digits


@dataclass(frozen=True)
class Placement:
    """Where the tracked axes lie."""

    axes: Axes
    slice: Mapping
    time: Mapping
    packet: Mapping
    tracked: tuple[str, ...]

    @classmethod
    def of(cls, case: Case, axes: dict[str, int], levels: tuple[str, str, str], tracked: tuple[str, ...]) -> Placement:
        """The placement of a case, or the given one where the case names none."""
        known = Axes({**axes, **case.get("axes", {})})
        slices, time, packet = (known.mapping(case.get(n, text)) for n, text in zip(("slice", "time", "packet"), levels, strict=True))
        named = case.get("tracked", [case["reduce"]] if "reduce" in case else tracked)
        return cls(known, slices, time, packet, tuple(named))

    def config(self, *axes: str) -> ValidCountConfig:
        """The configuration that tracks `axes`, all tracked ones if none are named."""
        return derive(self.slice, self.time, self.packet, {a: self.axes[a] for a in axes or self.tracked}, RNGD)


_IMAGE = ({"W": 19, "C": 5, "H": 5}, ("[H # 8 / 2, C # 8 / 2]", "[H # 8 % 2, C # 8 % 2, W # 24 / 8]", "W # 24 % 8"), ("W", "C", "H"))
"""The worked placement of VCG-020: an image of 5 rows, 5 channels and 19 columns over 16 slices and 12 flits."""


@table("vcg_capacity")
def valid_count_capacity(case: Case) -> None:
    """Rows name a component; the number stands under the name that fits it."""
    filters, clippers = RNGD.valid_count_time_filters, RNGD.valid_count_packet_clippers
    facts = {
        "packet clipper": clippers,
        "time filter": filters,
        "sequencer": RNGD.valid_count_sequencer_entries,
        "axes": filters + clippers,
    }
    rows = []
    for row in case["rows"]:
        value = next((n for start, n in facts.items() if row["component"].startswith(start)), None)
        rows.append(dict.fromkeys(("instances", "entries", "max"), value))
    expect_rows(case, rows, ignore=("component", "note"))


@table("vcg_downstream")
def valid_count_downstream(case: Case) -> None:
    lanes = RNGD.vector_ways[1]
    counts = np.array([row["v"] for row in case["rows"]])
    halves, trimmed = split_counts(counts, lanes), trim_counts(counts, lanes)
    columns = {
        "v": counts,
        "narrow_split_low": halves[:, 0],
        "narrow_split_high": halves[:, 1],
        "narrow_trim": trimmed,
        "widen_concat_of_split": concat_counts(halves),
        "widen_pad_of_trim": pad_counts(trimmed),
    }
    expect_rows(case, [{name: int(column[i]) for name, column in columns.items()} for i in range(len(counts))])


@table("vcg_heat_map")
def valid_count_heat_map(case: Case) -> None:
    """valid_size over all slices at the steps of the rows; a row may spell its step out, one column a Time factor (``Hi``, ``Ci``, …)."""
    place = Placement.of(case, *_IMAGE)
    counts = place.config().valid_sizes(place.slice.size, place.time.size)
    sizes = [m.size for m in place.time.terms()]
    rows = []
    for row in case["rows"]:
        t = int(row["t"])
        names = [name for name in row if name not in ("t", "valid_size", "note")]
        digits = [int(d) for d in np.unravel_index(t, sizes)]
        rows.append({"t": t, **dict(zip(names, digits, strict=bool(names))), "valid_size": counts[:, t].tolist()})
    expect_rows(case, rows)
    expect_derived(case, {"total": int(counts.sum()), "nonzero": int(np.count_nonzero(counts))}, ignore=("note",))


@table("vcg_groups")
def valid_count_groups(case: Case) -> None:
    """Values of the Slice part of one axis (column ``Xo``): the side of the threshold, and which inner steps (``Xi0``, …) are open."""
    place = Placement.of(case, *_IMAGE)
    outer = next(key for key in case["rows"][0] if key.endswith("o") and key[:-1] in place.axes)
    axis = outer[:-1]
    (only,) = place.config(axis).time_filters
    slice_place = only.slice_mask & -only.slice_mask
    inner = next((d for d in position_digits(place.time) or () if d.axis == axis), None)
    if inner is None:
        raise Mismatch(f"Time holds no part of {axis}")
    steps = np.arange(inner.extent) * inner.place
    rows = []
    for row in case["rows"]:
        slice_id = int(row[outer]) * slice_place
        valid = only.valid(np.array([slice_id]), steps)[0]
        rows.append({outer: row[outer], "group": only.group(slice_id), "open": {f"{axis}i{i}": bool(v) for i, v in enumerate(valid)}})
    expect_rows(case, rows)


@table("vcg_flit_positions")
def valid_count_flit_positions(case: Case) -> None:
    """What the positions of the last slice's last flit hold, and whether they are real."""
    place = Placement.of(case, {"R": 2045}, ("R # 2048 / 8", "1", "R # 2048 % 8"), ("R",))
    joint = pair(place.slice, place.time, place.packet)
    base = joint.size - place.packet.size
    (axis,) = place.tracked
    first = sum(d.weight * (d.extent - 1) for m in (place.slice, place.time) for d in position_digits(m) or () if d.axis == axis)
    (part,) = (d for d in position_digits(place.packet) or () if d.axis == axis)
    rows = []
    for row in case["rows"]:
        at = int(row["position"])
        held = first + at // part.place * part.weight
        rows.append({"position": at, axis.lower(): held, "valid": joint.cell(base + at).to_json() == {axis: held}})
    expect_rows(case, rows)


@table("vcg_clipper")
def valid_count_clipper(case: Case) -> None:
    """Index and count of every flit of an axis over Time and Packet."""
    place = Placement.of(case, {"R": 10}, ("1", "R # 16 / 4", "R # 16 % 4 # 8"), ("R",))
    clipper = place.config().packet_clipper
    flits = np.array([row["flit"] for row in case["rows"]])
    expect_rows(
        case,
        [
            {"flit": int(flit), "idx": int(index), "valid_size": int(size)}
            for flit, index, size in zip(flits, sequencer_index(clipper.sequencer, flits), clipper.valid_sizes(flits), strict=True)
        ],
    )

"""Answers `cost` and `table` questions about contraction, cast, transpose and commit adapter from the model."""

from __future__ import annotations

from typing import Any

import numpy as np

from tcptune.exec.conformance.kinds.compare import expect_verdict
from tcptune.exec.conformance.registry import NO_RESULT, REMARKS, Case, Mismatch, asked, cost, expect_equal, table
from tcptune.ir.types import dtype
from tcptune.model.engines import cast, commit_adapter, transpose
from tcptune.model.engines.contraction import outer as contraction_outer
from tcptune.model.engines.contraction import reduce as contraction_reduce
from tcptune.model.hardware import RNGD
from tcptune.model.numerics.elements import bf16_relu, convert, from_bits, packing_bits, to_bits
from tcptune.model.pipeline import ENTRY_POSITIONS


def _compare(case: Case, got: dict[str, Any]) -> None:
    """Every expected number must be among the answers; ``approx`` only remarks that the manual says "about"."""
    for key, want in case.get("expect", {}).items():
        if key in NO_RESULT:
            continue
        if key not in got:
            raise Mismatch(f"no answer for {key!r}")
        expect_equal(key, got[key], want)


def _compare_rows(case: Case, derive: Any) -> None:
    """`derive` gives every cell of a row from its key cells; cells that only quote the manual are left out."""
    for row in case["rows"]:
        got = derive(row)
        for key, want in row.items():
            if key in REMARKS:
                continue
            if key not in got:
                raise Mismatch(f"no answer for {key!r} of {row}")
            expect_equal(f"{key} of {row}", got[key], want)


# --- contraction ------------------------------------------------------------------------------------------------------------------


@cost("stream_adapter")
def stream_adapter(case: Case) -> None:
    """Packing rate (OUTER-011, OUTER-012)."""
    flits = case["params"]["pack_size"]
    full = RNGD.contraction_packet_bytes[-1]
    width = flits * RNGD.flit_bytes
    _compare(case, {"flits_per_packet": flits, "cycles_per_packet": flits, "packet_bytes": width, "mac_fraction": width / full})


@cost("stream_adapter_bandwidth")
def stream_adapter_bandwidth(case: Case) -> None:
    """One flit a cycle (OUTER-014)."""
    _compare(case, {"max_fetch_bytes_per_cycle": RNGD.flit_bytes})


@cost("stream_adapter_fetch")
def stream_adapter_fetch(case: Case) -> None:
    """Fetched flits and emitted packets (OUTER-013)."""
    p = case["params"]
    fetched, sent = p["pack_time"] * p["pack_size"], p["pack_time"] * p["time_broadcast"]
    without_broadcast = p["pack_time"] * p["pack_size"]
    _compare(case, {"stream_flits": fetched, "packets_emitted": sent, "extra_flits_for_broadcast": fetched - without_broadcast})


@cost("trf_alignment")
def trf_alignment(case: Case) -> None:
    """Alignment of a read (OUTER-020)."""
    p = case["params"]

    def check() -> None:
        contraction_outer.require_aligned_read(p["read_bytes"], p.get("base_address", 0), tuple(p.get("strides", ())), RNGD)

    expect_verdict(case, check)


@cost("mac_utilization")
def mac_utilization(case: Case) -> None:
    """Live share of the multipliers (CE-012)."""
    p = case["params"]
    element = dtype(p["dtype"])
    share = contraction_outer.mac_utilization(p["live_packet_elements"], p.get("lane", RNGD.lanes_per_slice), element, RNGD)
    got = {"packet_fraction": share["packet"], "lane_fraction": share["lane"], "utilization": share["packet"] * share["lane"]}
    _compare(case, {**got, "multipliers_per_lane": contraction_outer.multipliers_per_lane(element, RNGD)})


@cost("spatial_cells")
def spatial_cells(case: Case) -> None:
    """Work that exceeds the cells of a chip goes to Time (CE-007)."""
    required = int(np.prod(list(case["params"].values())))
    available = RNGD.clusters_per_chip * RNGD.slices_per_cluster
    got = {"required": required, "available_per_chip": available, "fits": required <= available, "time_factor": -(-required // available)}
    _compare(case, got)


@cost("packet_reducer")
@cost("packet_reducer_depth")
def packet_reducer(case: Case) -> None:
    """Size, depth and latency of the tree (PACKETRED-003, PACKETRED-004, PACKETRED-009)."""
    element = dtype(case["params"]["dtype"])
    elements = case["params"].get("packet_bytes", RNGD.contraction_packet_bytes[-1]) * 8 // packing_bits(element)
    latency = contraction_reduce.tree_latency_cycles(element, RNGD)
    depth = contraction_reduce.max_tree_depth(elements)
    _compare(case, {"packet_elements": elements, "max_tree_depth": depth, "first_output_latency_cycles": latency, "packets_per_cycle": 1})


@cost("packet_reducer_throughput")
def packet_reducer_throughput(case: Case) -> None:
    """Idle lanes (PACKETRED-010)."""
    _compare(case, {"relative_throughput": case["params"]["lane"] / RNGD.lanes_per_slice})


@cost("accumulator_slots")
def accumulator_slots(case: Case) -> None:
    """Slots of the accumulator (TIMERED-006)."""
    p = case["params"]
    lanes, columns = p.get("lane", RNGD.lanes_per_slice), p.get("packet", 1)
    cells = contraction_reduce.cells_per_slot(p["mode"], lanes, columns, RNGD)
    capacity = contraction_reduce.slot_capacity(p["mode"], lanes, columns, RNGD)
    _compare(case, {"buffer_cells": RNGD.accumulator_cells, "cells_per_chunk": cells, "slot_capacity": capacity})


@cost("time_reducer_throughput")
def time_reducer_throughput(case: Case) -> None:
    """Rates of a sum over time (TIMERED-009)."""
    _compare(case, {"input_packets_per_cycle": 1, "output_per_input": 1 / case["params"]["reduce_factor"]})


@cost("time_reducer_latency")
def time_reducer_latency(case: Case) -> None:
    """Latency of a sum over time (TIMERED-010)."""
    _compare(case, {"cycles": contraction_reduce.time_latency_cycles(case["params"]["reduce_factor"])})


@cost("lane_folder_throughput")
def lane_folder_throughput(case: Case) -> None:
    """Filled bus positions: one column of all lanes when interleaved (LANE-007), the columns of one lane in sequence (LANE-008)."""
    params, bus = case["params"], RNGD.lane_bus_elements
    filled = min(params["lane"] if params["mode"] == "Interleaved" else params["packet"], bus)
    _compare(case, {"relative_throughput": filled / bus, "valid_elements_per_cycle": filled, "bus_elements": bus})


@cost("lane_folder_sequential")
def lane_folder_sequential(case: Case) -> None:
    """Cycles of one lane's packet in sequence (LANE-004, LANE-008)."""
    columns = case["params"]["packet"]
    cycles = contraction_reduce.drain_flits("Sequential", 1, 1, columns, RNGD)
    valid = min(columns, RNGD.lane_bus_elements)
    pad = contraction_reduce.padded_columns(columns, RNGD)
    _compare(case, {"pad_packet": pad, "cycles_per_lane_packet": cycles, "valid_elements_per_cycle": valid})


@cost("lane_folder_drain")
def lane_folder_drain(case: Case) -> None:
    """Flits of both modes (LANE-010)."""
    p = case["params"]
    flits = {m: contraction_reduce.drain_flits(m, p["time"], p["lane"], p["packet"], RNGD) for m in contraction_reduce.MODES}
    _compare(case, {"interleaved_flits": flits["Interleaved"], "sequential_flits": flits["Sequential"]})


@table("contraction_operand_pairs")
def contraction_operand_pairs(case: Case) -> None:
    """Accepted pairs and accumulators (OUTER-023)."""

    def derive(row: dict[str, Any]) -> dict[str, Any]:
        found = contraction_outer.pair_accumulator(dtype(row["stream"]), dtype(row["weight"]))
        return {**asked(row, "stream", "weight"), "accepted": found is not None, "accumulator": found.name if found else None}

    _compare_rows(case, derive)


@table("packet_reducer_depth")
def packet_reducer_depth_table(case: Case) -> None:
    """Depth and latency by type (PACKETRED-004)."""

    def derive(row: dict[str, Any]) -> dict[str, Any]:
        answers = []
        for name in row["dtypes"]:
            element = dtype(name)
            elements = contraction_outer.packet_elements(element, RNGD)[-1]
            depth, latency = contraction_reduce.max_tree_depth(elements), contraction_reduce.tree_latency_cycles(element, RNGD)
            answers.append({"packet_elements": elements, "max_depth": depth, "latency_cycles": latency})
        if any(a != answers[0] for a in answers):
            raise Mismatch(f"{row['dtypes']} differ: {answers}")
        return {"dtypes": row["dtypes"], **answers[0]}

    _compare_rows(case, derive)


@table("accumulator_slot_capacity")
def accumulator_slot_capacity(case: Case) -> None:
    """Slots by mode (TIMERED-006)."""
    lanes, columns, cells = RNGD.lanes_per_slice, RNGD.accumulator_columns, RNGD.accumulator_cells

    def derive(row: dict[str, Any]) -> dict[str, Any]:
        interleaved = row["mode"] == "Interleaved"
        counted, fixed = ("Packet", lanes) if interleaved else ("Lane", columns)
        sizes = {n: (lanes, int(n)) if interleaved else (int(n), 1) for n in row["values"]}
        return {
            "mode": row["mode"],
            "chunk": f"[Lane # {lanes}, Packet]" if interleaved else f"[Lane, Packet # {columns}]",
            "cells_per_chunk": f"{fixed} * {counted}" if interleaved else f"{counted} * {fixed}",
            "slot_capacity": f"{cells // fixed} / {counted}",
            "values": {n: contraction_reduce.slot_capacity(row["mode"], *size, RNGD) for n, size in sizes.items()},
        }

    _compare_rows(case, derive)


@table("lane_sizes")
def lane_sizes(case: Case) -> None:
    """Legal lane counts (OUTER-008)."""
    _compare_rows(case, lambda row: {"lane": row["lane"], "accepted": row["lane"] in RNGD.legal_lane_counts})


@table("outer_packet_elements")
def outer_packet_elements(case: Case) -> None:
    """Packet sizes by type (OUTER-004)."""

    def derive(row: dict[str, Any]) -> dict[str, Any]:
        one, two = contraction_outer.packet_elements(dtype(row["dtype"]), RNGD)
        return {"dtype": row["dtype"], "pack_size_1": one, "pack_size_2": two}

    _compare_rows(case, derive)


# --- cast and numerics ------------------------------------------------------------------------------------------------------------


@cost("cast")
def cast_cycles(case: Case) -> None:
    """One flit a cycle (CAST-006)."""
    _compare(case, {"cycles": case["params"]["flits"]})


@table("cast_engine_pairs")
def cast_engine_pairs(case: Case) -> None:
    """Supported casts (CAST-003)."""
    _compare_rows(case, lambda row: {**asked(row, "src", "dst"), "accepted": cast.has_cast(dtype(row["src"]), dtype(row["dst"]))})


@table("cast_output_elements")
def cast_output_elements(case: Case) -> None:
    """Elements of an output flit (CAST-004)."""
    _compare_rows(case, lambda row: {"dst": row["dst"], "elements": cast.flit_elements(dtype(row["dst"]), RNGD)})


@table("f32_to_bf16_bits")
def f32_to_bf16_bits(case: Case) -> None:
    """Rounding to bf16 (CAST-008, CADAPT-017)."""

    def derive(row: dict[str, Any]) -> dict[str, Any]:
        value = from_bits(np.array([int(row["x_bits"], 16)], np.uint32), "f32")
        return {"x_bits": row["x_bits"], "bf16_bits": f"0x{int(to_bits(convert(value, 'f32', 'bf16'), 'bf16')[0]):04x}"}

    _compare_rows(case, derive)


@table("f32_to_f8e4m3_bits")
@table("f32_to_f8e5m2_bits")
def f32_to_f8_bits(case: Case) -> None:
    """Rounding to the 8-bit floats (CAST-008)."""
    target = case["what"].split("_")[2]

    def derive(row: dict[str, Any]) -> dict[str, Any]:
        value = np.array([float(row["x"])], np.float32)
        return {"x": row["x"], "bits": f"0x{int(to_bits(convert(value, 'f32', target), target)[0]):02x}"}

    _compare_rows(case, derive)


@table("i32_narrow_wrap")
def i32_narrow_wrap(case: Case) -> None:
    """Narrowing of integers (CAST-008)."""

    def derive(row: dict[str, Any]) -> dict[str, Any]:
        value = np.array([row["x"]], np.int32)
        return {"x": row["x"], **{t: int(convert(value, "i32", t)[0]) for t in cast.TARGETS["i32"]}}

    _compare_rows(case, derive)


# --- transpose --------------------------------------------------------------------------------------------------------------------


@cost("transpose")
def transpose_cost(case: Case) -> None:
    """Flits, buffering and cycles of a transpose (TRANSPOSE-011 to TRANSPOSE-014), or the limit of the engine that it breaks."""
    p, expect = case["params"], case.get("expect", {})
    packets = p.get("packets_per_col", -(-p.get("in_cols", p["valid_size"]) // p["valid_size"]))
    columns = packets * p["valid_size"]
    expect_equal("in_cols", columns, p.get("in_cols", columns))
    broken = _broken_transpose_limits(p, columns)
    expect_equal("verdict", "reject" if broken else "accept", expect.get("verdict", "accept"))
    if broken:
        if not broken & {expect.get("rule"), *expect.get("also_violates", ())}:
            raise Mismatch(f"refused by {sorted(broken)}, expected {expect.get('rule')}")
        return
    in_flits = p["in_rows"] * packets
    double = transpose.is_double_buffered(columns, RNGD)
    cycles = transpose.transpose_cycles(p.get("n", 1), in_flits, p.get("out_rows", columns), double)
    _compare(case, {"in_cols": columns, "in_flits": in_flits, "buffering": "double" if double else "single", "cycles": cycles})


def _broken_transpose_limits(params: dict[str, Any], columns: int) -> set[str]:
    """Rules that the parameters of a transpose break (TRANSPOSE-003)."""
    limits = transpose.width_parameters(params["element_bits"], RNGD)
    checks = {
        "TRANSPOSE-004": params["valid_size"] in (limits.single_valid_size, limits.dual_valid_size),
        "TRANSPOSE-006": columns in limits.in_cols,
        "TRANSPOSE-007": 1 <= params["in_rows"] <= limits.max_in_rows,
        "TRANSPOSE-009": params.get("out_rows", columns) <= columns,
    }
    broken = {rule for rule, holds in checks.items() if not holds}
    return broken | {"TRANSPOSE-003"} if broken else broken


@table("transpose_parameters")
def transpose_parameters(case: Case) -> None:
    """Limits by element width (TRANSPOSE-003)."""

    def derive(row: dict[str, Any]) -> dict[str, Any]:
        limits = transpose.width_parameters(row["element_bits"], RNGD)
        return {
            "element_bits": row["element_bits"],
            "single_valid_size": limits.single_valid_size,
            "dual_valid_size": limits.dual_valid_size,
            "max_in_rows": limits.max_in_rows,
            "in_cols": list(limits.in_cols),
        }

    _compare_rows(case, derive)


@table("transpose_element_types")
def transpose_element_types(case: Case) -> None:
    """Types that can be transposed (TRANSPOSE-015)."""

    def derive(row: dict[str, Any]) -> dict[str, Any]:
        element = dtype(row["dtype"])
        return {"dtype": element.name, "accepted": transpose.takes_type(element), "element_bits": packing_bits(element)}

    _compare_rows(case, derive)


# --- commit adapter ---------------------------------------------------------------------------------------------------------------


@cost("commit_trim")
def commit_trim_cost(case: Case) -> None:
    """A trim is charged nothing (CADAPT-006)."""
    _compare(case, {"extra_latency_cycles": 0})


@table("commit_adapter_contexts")
def commit_adapter_contexts(case: Case) -> None:
    """Contexts of the functions (CADAPT-002)."""
    contexts = commit_adapter.CONTEXTS
    _compare_rows(case, lambda row: {"op": row["op"], **{c: c in contexts[row["op"]] for c in ("main", "sub")}})


@table("commit_trim_valid_elements")
def commit_trim_valid_elements(case: Case) -> None:
    """Sizes of trimmed packets (CADAPT-004)."""

    def derive(row: dict[str, Any]) -> dict[str, Any]:
        sizes = commit_adapter.valid_sizes(dtype(row["dtype"]), RNGD)
        return {"dtype": row["dtype"], "valid_elements": list(sizes), "valid_bytes": list(RNGD.commit_valid_bytes)}

    _compare_rows(case, derive)


@table("commit_cast_pairs")
def commit_cast_pairs(case: Case) -> None:
    """Conversions of the commit path (CADAPT-009)."""
    _compare_rows(case, lambda row: {**asked(row, "src", "dst"), "accepted": (row["src"], row["dst"]) in commit_adapter.CAST_PAIRS})


@table("relu_values")
def relu_values(case: Case) -> None:
    """f32 to bf16 with ReLU (CADAPT-010, CADAPT-017)."""

    def derive(row: dict[str, Any]) -> dict[str, Any]:
        value = float(bf16_relu(np.array([float(row["x"])], np.float32))[0])
        stated = row.get("y", 0.0)
        same = isinstance(stated, str) and repr(float(stated)) == repr(value)
        return {"x": row["x"], "y": stated if same else value}

    _compare_rows(case, derive)


@table("entry_positions")
def entry_positions(case: Case) -> None:
    """Positions at which an engine is entered (OUTER-025, CAST-001, TRANSPOSE-001, CADAPT-003); uncertain ones may be either."""
    for row in case["rows"]:
        accepted = set(ENTRY_POSITIONS[row["engine"]]) - set(row.get("uncertain", ()))
        spellings = {"CommitCastRelu": "CommitCast"}
        expect_equal(f"entries of {row['engine']}", sorted({spellings.get(p, p) for p in accepted}), sorted(row["accepts"]))

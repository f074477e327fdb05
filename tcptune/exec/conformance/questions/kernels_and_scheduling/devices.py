"""Tables of the device in the kernels chapter: capacities, bandwidths, levels and memories, all from `model.hardware`."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from fractions import Fraction
from math import prod
from typing import Any

from tcptune.errors import ParseError
from tcptune.exec.conformance.kinds.compare import matches
from tcptune.exec.conformance.registry import Case, Mismatch, table
from tcptune.ir.formula import evaluate
from tcptune.ir.types import TIER_LEVELS
from tcptune.model import practice
from tcptune.model.engines import dma
from tcptune.model.hardware import RNGD as HW
from tcptune.model.memory import dm, hbm
from tcptune.model.tensor_unit import ENGINES
from tcptune.model.timing.calibration import MANUAL_DMA

GIB, MIB = 2**30, 2**20


def expect_facts(case: Case, derived: list[dict[str, Any]]) -> None:
    """Compares the rows of a table cell by cell for the names that the model derives; other cells explain in words.

    A row is compared with the derived row of the same first cell (its key); a table may list some of the rows, in any order.

    Raises:
        Mismatch: no such row, a row twice, or a cell that differs.
    """
    left = list(derived)
    for number, want in enumerate(case["rows"]):
        got = min(_candidates(left, want), key=lambda row: len(_differences(row, want)), default=None)
        if got is None:
            raise Mismatch(f"the table has no row {want!r}")
        for name in _differences(got, want):
            raise Mismatch(f"row {number}, {name}: got {got[name]!r}, expected {want[name]!r}")
        left.remove(got)
    if case.get("complete") and left:
        raise Mismatch(f"{len(case['rows'])} rows, the table has {len(derived)}")


def _candidates(derived: list[dict[str, Any]], want: dict[str, Any]) -> list[dict[str, Any]]:
    """Derived rows with the key of `want`; where it has none, the next one."""
    keys = [next(iter(row)) for row in derived]
    if any(key in want for key in keys):
        return [row for row, key in zip(derived, keys, strict=True) if key in want and matches(row[key], want[key])]
    return derived[:1]


def _differences(got: dict[str, Any], want: dict[str, Any]) -> list[str]:
    return [name for name, value in got.items() if name in want and not matches(value, want[name])]


def _row_switch_cycles() -> list[int]:
    return [round(ns * HW.hbm_memory_ghz) for ns in HW.hbm_row_switch_ns]


def _tree_depth(bits: int) -> int:
    """Levels of a balanced tree over the elements of one packet of 64 bytes."""
    return (HW.multiplier_bits_per_lane // bits).bit_length() - 1


_RAW_TRF_BYTES = HW.lanes_per_slice * HW.trf_banks_per_lane * HW.trf_rows_per_bank * HW.trf_row_bits // 8
_CACHE_BYTES = HW.lanes_per_slice * HW.trf_banks_per_lane * HW.trf_cache_rows_per_bank * HW.trf_row_bits // 8
_ENGINES_PER_CHIP = HW.engines_per_cluster * HW.clusters_per_chip

FACTS: dict[str, Callable[[], Any]] = {
    "clusters_per_chip": lambda: HW.clusters_per_chip,
    "slices_per_cluster": lambda: HW.slices_per_cluster,
    "slices_per_chip": lambda: HW.slices_per_cluster * HW.clusters_per_chip,
    "lanes_per_slice": lambda: HW.lanes_per_slice,
    "pes_per_chip": lambda: HW.pes_per_chip,
    "tensor_units": lambda: HW.tensor_units_per_slice,
    "tensor_unit_engines": lambda: len(ENGINES),
    "execution_contexts": lambda: len(practice.CONTEXTS),
    "hbm_capacity": lambda: HW.hbm_bytes // GIB,
    "hbm_peak_bandwidth": lambda: HW.hbm_stated_tb_per_s,
    "hbm_stacks": lambda: HW.hbm_stacks,
    "hbm_channels_per_stack": lambda: HW.hbm_channels_per_stack,
    "hbm_channels": lambda: HW.hbm_channels,
    "hbm_slices_per_channel": lambda: HW.hbm_slices_per_channel,
    "hbm_bank_groups_per_slice": lambda: HW.hbm_bank_groups_per_slice,
    "hbm_banks_per_bank_group": lambda: HW.hbm_banks_per_group,
    "hbm_rows_per_bank": lambda: HW.hbm_rows_per_bank,
    "hbm_bytes_per_row": lambda: HW.hbm_row_bytes,
    "hbm_channel_bandwidth": lambda: HW.hbm_channel_gb_per_s,
    "hbm_channel_bytes_per_cycle": lambda: HW.hbm_controller_bytes_per_cycle,
    "hbm_controller_clock": lambda: HW.hbm_controller_ghz,
    "hbm_bursts_per_cycle": lambda: HW.hbm_bursts_per_controller_cycle,
    "hbm_effective_clock": lambda: HW.hbm_controller_ghz * HW.hbm_bursts_per_controller_cycle,
    "hbm_command_clock": lambda: HW.hbm_memory_ghz,
    "hbm_transfer_unit": lambda: HW.request_bytes,
    "hbm_transfer_unit_cycles": lambda: HW.request_bytes // HW.hbm_controller_bytes_per_cycle,
    "hbm_command_queue_entries": lambda: HW.hbm_controller_queue_entries,
    "hbm_alignment": lambda: HW.request_bytes,
    "hbm_unaligned_read_penalty": lambda: HW.unaligned_hbm_read_factor,
    "hbm_unaligned_write_penalty": lambda: HW.partial_hbm_write_factor,
    "hbm_row_switch_latency_ns": lambda: list(HW.hbm_row_switch_ns),
    "hbm_row_switch_latency_cycles": _row_switch_cycles,
    "hbm_row_switch_degradation": lambda: list(HW.hbm_row_switch_slowdown),
    "hbm_row_conflict_cost_dma_estimate": lambda: MANUAL_DMA.hbm_row_switch.value if MANUAL_DMA.hbm_row_switch else None,
    "hbm_worst_degradation": lambda: [HW.hbm_row_switch_slowdown[0], HW.partial_hbm_write_factor],
    "hbm_tccd_same_slice_diff_bank_group": lambda: hbm.TCCD[hbm.OTHER_BANK_GROUP],
    "hbm_tccd_diff_slice": lambda: hbm.TCCD[hbm.OTHER_SLICE],
    "hbm_tccd_same_slice_same_bank_group": lambda: hbm.TCCD[hbm.SAME_BANK_GROUP],
    "hbm_missing_stack_bit_channels": lambda: HW.hbm_channels // HW.hbm_stacks,
    "hbm_address_alignment_read": lambda: dma.READ_ALIGNMENT,
    "hbm_address_alignment_write": lambda: dma.HBM_WRITE_ALIGNMENT,
    "hbm_to_hbm_read_bandwidth_share": lambda: HW.hbm_stated_tb_per_s / 2,
    "dm_capacity": lambda: HW.dm_bytes_per_chip // MIB,
    "dm_capacity_per_slice": lambda: HW.dm_bytes_per_slice,
    "dm_peak_bandwidth": lambda: round(HW.dmns_per_chip * HW.dmn_bytes_per_cycle / 1024),
    "dm_dmns_per_cluster": lambda: HW.dmns_per_cluster,
    "dm_slices_per_dmn": lambda: HW.slices_per_dmn,
    "dm_banks_per_slice": lambda: HW.dm_banks_per_slice,
    "dm_rows_per_bank": lambda: HW.dm_rows_per_bank,
    "dm_bytes_per_row": lambda: HW.dm_word_bytes,
    "dm_slice_bandwidth": lambda: HW.dm_banks_per_slice * HW.dm_word_bytes,
    "dm_dmn_bandwidth": lambda: HW.dmn_bytes_per_cycle,
    "dm_interleaved_bandwidth": lambda: HW.dmn_bytes_per_cycle * HW.dmns_per_engine,
    "dm_single_dmn_loss": lambda: 1 / HW.dmns_per_engine,
    "dm_dma_command_queue_entries": lambda: HW.slice_dma_queue_entries,
    "dm_slice_address_span": lambda: HW.slice_window_bytes,
    "dm_address_alignment_read": lambda: dma.READ_ALIGNMENT,
    "dm_address_alignment_write": lambda: HW.dma_alignment_bytes,
    "dm_unaligned_access_cost": lambda: HW.unaligned_dm_access_factor,
    "hbm_dm_transfer_alignment": lambda: HW.dma_alignment_bytes,
    "same_bank_access_limit_exclusive": lambda: dm.max_consecutive_accesses() + 1,
    "noc_timeout": lambda: HW.noc_timeout_cycles,
    "tdma_io_byte": lambda: HW.request_bytes,
    "dmn_io_byte": lambda: HW.dmn_bytes_per_cycle,
    "dmn_size": lambda: HW.slices_per_dmn,
    "banks_taken_by_dma_at_once": lambda: HW.dm_banks_per_slice,
    "banks_taken_by_sub_fetch_or_commit": lambda: HW.sub_fetch_bytes // HW.dm_word_bytes,
    "dma_engines_per_chip": lambda: _ENGINES_PER_CHIP,
    "dma_engine_bandwidth": lambda: HW.engine_bytes_per_cycle,
    "dma_engine_bandwidth_gbps": lambda: HW.engine_bytes_per_cycle * HW.clock_ghz,
    "dma_startup_latency": lambda: MANUAL_DMA.start_load.value,
    "dma_max_packet": lambda: HW.max_packet_bytes,
    "dma_axi_request": lambda: HW.request_bytes,
    "axi_max_beats": lambda: HW.max_packet_bytes // HW.axi_beat_bytes,
    "axi_beat_width": lambda: HW.axi_beat_bytes,
    "pcie_dma_bandwidth": lambda: HW.pcie_bytes_per_cycle,
    "dma_example_clock": lambda: HW.clock_ghz,
    "flit": lambda: HW.flit_bytes,
    "outer_packet": lambda: list(HW.contraction_packet_bytes),
    "fetch_max_read_main": lambda: max(HW.fetch_access_bytes),
    "fetch_read_sub": lambda: HW.sub_fetch_bytes,
    "fetch_packet_alignment": lambda: HW.stream_alignment_bytes,
    "fetch_interleave_max_tensors": lambda: HW.interleaved_tensors,
    "fetch_cast_latency": lambda: list(HW.fetch_cast_latency_cycles),
    "fetch_slice_lift_base_alignment": lambda: HW.stream_alignment_bytes,
    "commit_write_main": lambda: max(HW.commit_valid_bytes),
    "commit_write_sub": lambda: HW.sub_commit_bytes,
    "commit_valid_bytes": lambda: list(HW.commit_valid_bytes),
    "commit_stride_alignment": lambda: HW.stream_alignment_bytes,
    "sequencer_max_entries": lambda: HW.sequencer_max_entries,
    "sequencer_max_iterations_per_entry": lambda: HW.sequencer_max_iterations,
    "sequencer_packet_bytes": lambda: list(HW.fetch_access_bytes),
    "trf_capacity_per_lane": lambda: HW.trf_bytes_per_slice // HW.lanes_per_slice,
    "trf_raw_capacity": lambda: _RAW_TRF_BYTES // 1024,
    "trf_banks_per_lane": lambda: HW.trf_banks_per_lane,
    "trf_rows_per_bank": lambda: HW.trf_rows_per_bank,
    "trf_row_bits": lambda: HW.trf_row_bits,
    "trf_half_capacity": lambda: _RAW_TRF_BYTES // 2 // 1024,
    "trf_narrow_read": lambda: HW.trf_row_bits,
    "trf_wide_read": lambda: HW.trf_row_bits * HW.trf_banks_per_lane,
    "trf_read_cache": lambda: _CACHE_BYTES / 1024,
    "trf_wide_read_alignment": lambda: HW.trf_wide_read_bytes,
    "vrf_capacity": lambda: HW.vrf_bytes_per_slice,
    "vrf_stash_reservation": lambda: HW.vrf_stash_bytes_per_slice,
    "contraction_tree_depth_i4": lambda: _tree_depth(4),
    "contraction_tree_depth_i8_f8": lambda: _tree_depth(8),
    "contraction_tree_depth_bf16": lambda: _tree_depth(16),
    "packet_elements_i4": lambda: HW.multiplier_bits_per_lane // 4,
    "packet_elements_i8_f8": lambda: HW.multiplier_bits_per_lane // 8,
    "packet_elements_bf16": lambda: HW.multiplier_bits_per_lane // 16,
    "time_reducer_cells": lambda: HW.accumulator_cells,
    "time_reducer_columns": lambda: HW.accumulator_columns,
    "lane_folder_bus": lambda: HW.lane_bus_elements,
    "vector_way8": lambda: HW.vector_ways[0],
    "vector_way4": lambda: HW.vector_ways[1],
    "vcg_max_tracked_axes": lambda: HW.valid_count_time_filters + HW.valid_count_packet_clippers,
    "inter_slice_reducer_span": lambda: HW.slices_per_cluster,
    "transpose_buffer_columns": lambda: HW.transpose_buffer_columns,
    "switch_ring_max": lambda: HW.slices_per_cluster,
}
"""Quantities of the full list that the model derives; the few others (rates of one a cycle, formulas, policies) are words or units."""

_IN_WORDS = {
    "chips",
    "hbm_scheduling_policy",
    "inter_slice_reduce_latency",
    "switch_cycles",
    "vector_alu_latency",
    "cast_engine_rate",
    "transpose_buffers",
    "table_lookup_f4_entries",
}


@table("rngd_hardware")
def check_hardware(case: Case) -> None:
    for row in case["rows"]:
        name, value = row["name"], row["value"]
        if name in FACTS:
            if not matches(FACTS[name](), value):
                raise Mismatch(f"{name}: got {FACTS[name]()!r}, expected {value!r}")
        elif name not in _IN_WORDS:
            raise Mismatch(f"nothing derives {name}")


@table("hierarchy")
def check_hierarchy(case: Case) -> None:
    counts = {"Cluster": (HW.clusters_per_chip, "Chip"), "Slice": (HW.slices_per_cluster, "Cluster"), "Lane": (HW.lanes_per_slice, "Slice")}
    rows = [{"level": "Chip"}] + [{"level": level, "count": f"{n} per {above}"} for level, (n, above) in counts.items()]
    expect_facts(case, rows)


@table("tensor_tiers")
def check_tiers(case: Case) -> None:
    per_lane = HW.trf_bytes_per_slice // HW.lanes_per_slice
    capacity = {
        "Hbm": f"{HW.hbm_bytes // GIB} GB",
        "Dm": f"{HW.dm_bytes_per_chip // MIB} MB total, {HW.dm_bytes_per_slice // 1024} KB per slice",
        "Trf": f"{per_lane // 1024} KB per lane, {HW.lanes_per_slice} lanes per slice",
        "Vrf": f"{HW.vrf_bytes_per_slice // 1024} KB per slice",
    }
    rows = [{"type": tier, "capacity": text} for tier, text in capacity.items()]
    rows[0]["bandwidth"] = f"{HW.hbm_stated_tb_per_s} TB/s"
    expect_facts(case, rows)


@table("element_capacity")
def check_element_capacity(case: Case) -> None:
    limits = (("Dm", "slice", HW.dm_bytes_per_slice), ("Trf", "lane", HW.trf_bytes_per_slice // HW.lanes_per_slice))
    rows = [{"type": t, "unit": u, "limit_bytes": n} for t, u, n in (*limits, ("Vrf", "slice", HW.vrf_bytes_per_slice))]
    expect_facts(case, rows)


@table("dm_request_priority")
def check_priority(case: Case) -> None:
    expect_facts(case, [{"priority": n, "requester": name} for n, name in enumerate(dm.BANK_PRIORITY, 1)])


@table("dm_address_bits")
def check_address_bits(case: Case) -> None:
    rows = [{"component": name, "bits": f"{first}-{last}"} for name, first, last in dm.address_fields()]
    expect_facts(case, rows)


@table("memory_rules")
def check_memory_rules(case: Case) -> None:
    rows = [{"memory": m, "issue": issue} for m, issue in _RULES]
    rows[0]["rule"] = f"fewer than {dm.max_consecutive_accesses() + 1} consecutive same-bank accesses"
    rows[1]["penalty"] = f"{100 // HW.dmns_per_engine}% bandwidth"
    rows[3]["penalty"] = f"{HW.unaligned_hbm_read_factor}x read, about {HW.partial_hbm_write_factor}x write"
    rows[4]["penalty"] = "-".join(map(str, HW.hbm_row_switch_slowdown)) + "x"
    rows[5]["rule"] = f"spread over {HW.hbm_channels} channels"
    expect_facts(case, rows)


_RULES = (
    ("DM", "bank starvation"),
    ("DM", "DMN interleaving"),
    ("DM", "slice interleaving"),
    ("HBM", "alignment"),
    ("HBM", "bank conflict"),
    ("HBM", "channel interleaving"),
)


@table("trf_active_lanes")
def check_active_lanes(case: Case) -> None:
    rows = []
    for row in case["rows"]:
        lanes = row["active_lanes"]
        more = HW.lanes_per_slice // lanes
        rows.append(
            {
                "active_lanes": lanes,
                "rows_per_bank": HW.trf_rows_per_bank * more,
                "bf16_payload_bytes_per_lane": HW.trf_bytes_per_slice // lanes,
            }
        )
    expect_facts(case, rows)


@table("tccd")
def check_tccd(case: Case) -> None:
    least = min(hbm.TCCD.values())
    rows = [{"relation": name, "tccd_cycles": n, "relative_performance": _fraction(least, n)} for name, n in hbm.TCCD.items()]
    expect_facts(case, rows)


def _fraction(a: int, b: int) -> str:
    return str(Fraction(a, b))


@table("dimension_placement")
def check_dimension_placement(case: Case) -> None:
    streams = {"Chip", "Cluster", "Slice", "Time", "Packet"}
    tiers = {"HBM": "Hbm", "DM": "Dm", "TRF": "Trf"}
    rows = []
    for dimension in ("Chip", "Cluster", "Slice", "Lane", "Time", "Packet"):
        stored = [name for name, tier in tiers.items() if dimension.lower() in TIER_LEVELS[tier]]
        if dimension != "Lane":
            stored = [name for name in stored if name != "TRF"] + (["Stream"] if dimension in streams else [])
        reduced = "DMA + Vector" if dimension in ("Chip", "Cluster") else "Vector" if dimension == "Slice" else "Contraction"
        kind = "temporal" if dimension == "Time" else "spatial"
        rows.append({"dimension": dimension, "type": kind, "defined_in": stored, "reduced_by": reduced})
    expect_facts(case, rows)


@table("pe_topologies")
def check_topologies(case: Case) -> None:
    for row in case["rows"]:
        clusters, slices = topology(int(row["pes"]))
        if (clusters, slices) != (row["clusters"], row["slices"]) or row.get("chips", 1) < 1:
            raise Mismatch(f"{row['pes']} PEs: got {clusters} x {slices}, expected {row['clusters']} x {row['slices']}")


def topology(pes: int) -> tuple[int, int]:
    """Clusters and slices a cluster of a device with so many PEs: one PE has a quarter of a cluster (HW-023)."""
    per_pe = HW.slices_per_cluster * HW.clusters_per_chip // HW.pes_per_chip
    clusters = max(1, pes * per_pe // HW.slices_per_cluster)
    return clusters, pes * per_pe // clusters


@table("capacity_identities")
def check_identities(case: Case) -> None:
    """Every product of capacities in a row equals a number beside it; names stand for the facts of the list.

    A product is written out, or it is a list or object of its factors; the number beside it may count in bits, KB, MB or GB instead.
    """
    names = {name: fact() for name, fact in FACTS.items()}
    computed = 0
    for row in case["rows"]:
        stated = [cell for cell in row.values() if isinstance(cell, int | float) and not isinstance(cell, bool)]
        for text, value in _products(row, names):
            if stated and not any(_same_quantity(value, number) for number in stated):
                raise Mismatch(f"{text}: got {value}, expected {stated}")
            computed += bool(stated)
    if not computed:
        raise Mismatch("no row has a product beside its number")


_UNIT = re.compile(r"(?<=\d)\s*[A-Za-z]+(?:\s+[A-Za-z]+)*")
_DIGIT_GROUPS = re.compile(r"(?<=\d),(?=\d{3})")


def _products(row: dict[str, Any], names: dict[str, Any]) -> Iterator[tuple[str, float]]:
    """Products that a row writes out (units and words behind numbers dropped) or whose factors it lists."""
    for cell in row.values():
        factors = list(cell.values()) if isinstance(cell, dict) else cell
        if isinstance(factors, list) and len(factors) > 1 and all(isinstance(f, int | float) for f in factors):
            yield " * ".join(map(str, factors)), prod(factors)
        elif isinstance(cell, str) and "*" in cell:
            for part in cell.split("="):
                try:
                    yield part.strip(), evaluate(_UNIT.sub("", _DIGIT_GROUPS.sub("", part)), names)
                except ParseError:
                    continue


def _same_quantity(value: float, number: float) -> bool:
    return any(matches(value / unit, number) or matches(value, number / unit) for unit in (1, 8, 2**10, 2**20, 2**30))

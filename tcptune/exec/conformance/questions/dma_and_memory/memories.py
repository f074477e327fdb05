"""Corpus questions about the memories: DM banks and DMNs, HBM addresses, channels and timing, PCIe."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from tcptune.exec.conformance.kinds.compare import expect_derived, expect_rows, expect_rows_among, expect_verdict, matches
from tcptune.exec.conformance.registry import Case, Mismatch, cost, expect_equal, table
from tcptune.model.hardware import RNGD
from tcptune.model.memory import dm, hbm, pcie
from tcptune.model.memory.penalties import MEMORY_PENALTIES
from tcptune.model.timing.calibration import MANUAL_DMA


def _expect_extra(case: Case, name: str, derived: dict[str, Any]) -> None:
    """Compares an extra object of a table case, for instance its ``derived``."""
    if name in case and not matches(derived, case[name]):
        raise Mismatch(f"{name}: got {derived!r}, expected {case[name]!r}")


@table("dm_geometry")
def dm_geometry(case: Case) -> None:
    hw = RNGD
    units = [
        ("cluster", hw.clusters_per_chip, "chip"),
        ("DMN", hw.dmns_per_cluster, "cluster"),
        ("slice", hw.slices_per_dmn, "DMN"),
        ("bank", hw.dm_banks_per_slice, "slice"),
        ("row", hw.dm_rows_per_bank, "bank"),
        ("byte", hw.dm_word_bytes, "row"),
    ]
    expect_rows_among(case, [{"unit": u, "count": n, "per": p} for u, n, p in units], ("unit",))
    slice_bytes = hw.dm_banks_per_slice * hw.dm_rows_per_bank * hw.dm_word_bytes
    slices = hw.dmns_per_cluster * hw.slices_per_dmn
    derived = {
        "slice_bytes": slice_bytes,
        "slices_per_cluster": slices,
        "cluster_bytes": slice_bytes * slices,
        "chip_bytes": slice_bytes * slices * hw.clusters_per_chip,
        "dmns_per_chip": hw.dmns_per_chip,
    }
    _expect_extra(case, "derived", derived)


@table("memory_peak_bandwidth")
def memory_peak_bandwidth(case: Case) -> None:
    exact = {"DM": RNGD.dmns_per_chip * RNGD.dmn_bytes_per_cycle / 1000, "HBM": RNGD.hbm_gb_per_s / 1000}
    stated = {"DM": float(int(exact["DM"])), "HBM": RNGD.hbm_stated_tb_per_s}
    expect_rows(
        case, [{"memory": r["memory"], "TB_per_s_per_chip": stated[r["memory"]], "derived_exact": exact[r["memory"]]} for r in case["rows"]]
    )


@table("memory_rules_and_penalties")
def memory_rules_and_penalties(case: Case) -> None:
    rows = [{"memory": p.memory, "issue": p.issue, "rule": p.rule, "penalty": p.penalty} for p in MEMORY_PENALTIES]
    expect_rows_among(case, rows, ("memory", "issue"))


@table("dm_slice_address_bits")
def dm_slice_address_bits(case: Case) -> None:
    fields = dm.address_fields()
    expect_rows_among(case, [{"bits": f"{low}-{high}", "field": name} for name, low, high in fields], ("field",))
    bits = fields[-1][2] + 1
    _expect_extra(case, "derived", {"total_bits": bits, "bytes": 2**bits})


@table("dm_slice_address_decode")
def dm_slice_address_decode(case: Case) -> None:
    def run() -> None:
        rows = []
        for row in case["rows"]:
            place = dm.decode(row["offset"])
            rows.append({"offset": row["offset"], "byte": place.byte, "bank": place.bank, "row": place.row})
        expect_rows(case, rows)

    expect_verdict(case, run)


@table("dm_slice_to_dmn")
def dm_slice_to_dmn(case: Case) -> None:
    rows = []
    for row in case["rows"]:
        place = dm.slice_place(row["slice"])
        rows.append({"slice": row["slice"], "dmn_in_cluster": place.dmn, "dmn_pair": place.engine, "slice_in_dmn": place.slice_in_dmn})
    expect_rows(case, rows)


@table("dmn_pipeline_schedule")
def dmn_pipeline_schedule(case: Case) -> None:
    requests = 2 * len(case["rows"])
    rows = []
    for row in case["rows"]:
        if isinstance(row["cycle"], int):
            work = dm.dmn_schedule(row["cycle"], requests)
            rows.append({"cycle": row["cycle"], **{f"dmn{i}": None if w is None else list(w) for i, w in enumerate(work)}})
        else:
            rows.append(_closing_cycle(row["cycle"], requests))
    expect_rows(case, rows)


def _closing_cycle(label: str, requests: int) -> dict[str, Any]:
    """The schedule near its end, with requests named relative to their number ``2n``."""
    work = dm.dmn_schedule(requests + {"2n-1": -1, "2n": 0}[label], requests)
    return {"cycle": label, **{f"dmn{i}": None if w is None else [f"2n-{requests - w[0]}", w[1]] for i, w in enumerate(work)}}


@cost("dmn_pipeline")
def dmn_pipeline(case: Case) -> None:
    p = case["params"]
    expect_derived(case, {"cycles": dm.dmn_cycles(p["requests"], p["interleaved"])})


@cost("dm_bank_span")
def dm_bank_span(case: Case) -> None:
    span = dm.bank_span(case["params"]["offset"], case["params"]["bytes"])
    expect_derived(case, {"banks_touched": list(span.banks), "rows_per_bank": span.rows_per_bank, "aligned_8": span.aligned})


@cost("bank_starvation")
def bank_starvation(case: Case) -> None:
    """With the widths, the DMN and the timeout that the case gives (DM-011)."""
    p = case["params"]
    fields = {
        "tdma_io_bytes": "request_bytes",
        "dmn_io_bytes": "dmn_bytes_per_cycle",
        "dmn_size": "slices_per_dmn",
        "noc_timeout": "noc_timeout_cycles",
    }
    hw = replace(RNGD, **{field: p[name] for name, field in fields.items() if name in p})
    accesses = p["max_consecutive_access"]
    expect_derived(case, {"worst_case_cycles": dm.starvation_cycles(accesses, hw)})
    expect_verdict(case, lambda: {"cycles": dm.check_starvation(accesses, hw)})


@table("dm_bank_priority")
def dm_bank_priority(case: Case) -> None:
    expect_rows_among(case, [{"rank": rank, "requester": name} for rank, name in enumerate(dm.BANK_PRIORITY, 1)], ("requester",))


@table("dm_constants")
def dm_constants(case: Case) -> None:
    values = {
        "slice_bytes": RNGD.dm_bytes_per_slice,
        "banks_per_slice": RNGD.dm_banks_per_slice,
        "bank_bytes_per_cycle": RNGD.dm_word_bytes,
        "slice_bytes_per_cycle": RNGD.dm_word_bytes * RNGD.dm_banks_per_slice,
        "dmn_bytes_per_cycle": RNGD.dmn_bytes_per_cycle,
        "dma_transfer_unit_bytes": RNGD.request_bytes,
        "slice_dma_queue_entries": RNGD.slice_dma_queue_entries,
        "noc_timeout_cycles": RNGD.noc_timeout_cycles,
        "saturated_bytes_per_cycle_two_dmns": RNGD.dmn_bytes_per_cycle * RNGD.dmns_per_engine,
    }
    expect_rows(case, [{"name": r["name"], "value": values.get(r["name"])} for r in case["rows"]])


@cost("dm_unaligned_write")
def dm_unaligned_write(case: Case) -> None:
    aligned = case["params"]["aligned_write_cycles"]
    expect_derived(case, {"cycles": aligned * RNGD.unaligned_dm_write_factor, "blocks_bank": RNGD.unaligned_dm_write_factor > 1})


@table("hbm_geometry")
def hbm_geometry(case: Case) -> None:
    hw = RNGD
    units = [
        ("stack", hw.hbm_stacks, "chip"),
        ("channel", hw.hbm_channels_per_stack, "stack"),
        ("slice", hw.hbm_slices_per_channel, "channel"),
        ("bank group", hw.hbm_bank_groups_per_slice, "slice"),
        ("bank", hw.hbm_banks_per_group, "bank group"),
        ("row", hw.hbm_rows_per_bank, "bank"),
        ("byte", hw.hbm_row_bytes, "row"),
    ]
    expect_rows_among(case, [{"unit": u, "count": n, "per": p} for u, n, p in units], ("unit",))
    banks = hw.hbm_slices_per_channel * hw.hbm_bank_groups_per_slice * hw.hbm_banks_per_group
    bank_bytes = hw.hbm_rows_per_bank * hw.hbm_row_bytes
    derived = {
        "chip_bytes": hw.hbm_channels * banks * bank_bytes,
        "channels_per_chip": hw.hbm_channels,
        "banks_per_channel": banks,
        "bank_bytes": bank_bytes,
    }
    _expect_extra(case, "derived", derived)


@table("hbm_bandwidth_chain")
def hbm_bandwidth_chain(case: Case) -> None:
    hw = RNGD
    controller_cycles = hw.request_bytes / hw.hbm_controller_bytes_per_cycle
    values = {
        "controller_GHz": hw.hbm_controller_ghz,
        "bytes_per_controller_cycle": hw.hbm_controller_bytes_per_cycle,
        "GB_per_s_per_channel": hw.hbm_channel_gb_per_s,
        "channels": hw.hbm_channels,
        "GB_per_s_per_chip": hw.hbm_gb_per_s,
        "request_bytes": hw.request_bytes,
        "controller_cycles_per_request": controller_cycles,
        "ns_per_request": controller_cycles / hw.hbm_controller_ghz,
        "dma_engine_GB_per_s": hw.engine_bytes_per_cycle,
        "controller_queue_entries": hw.hbm_controller_queue_entries,
        "bursts_per_controller_cycle": hw.hbm_bursts_per_controller_cycle,
        "effective_GHz": hw.hbm_bursts_per_controller_cycle * hw.hbm_controller_ghz,
    }
    stated = f"{hw.hbm_stated_tb_per_s} TB/s"
    expect_rows(case, [{"name": r["name"], "value": values.get(r["name"]), "stated": stated} for r in case["rows"]])


@table("hbm_address_bits")
def hbm_address_bits(case: Case) -> None:
    """Rows of bits with one field. A list names the second use of all of them; words name one that some of them have."""
    for row in case["rows"]:
        first, _, last = row["bits"].partition("-")
        uses = [hbm.bit_use(bit) for bit in range(int(first), int(last or first) + 1)]
        expect_equal(f"field of bits {row['bits']}", {use.field.replace("_", " ") for use in uses}, {row["main"]})
        seconds = {(*["channel"] * (use.xor_channel is not None), *["row"] * use.also_row) for use in uses}
        want = row.get("also")
        if isinstance(want, list):
            expect_equal(f"second use of bits {row['bits']}", seconds, {tuple(want)})
        elif want is not None:
            expect_equal(
                f"second use of bits {row['bits']}", {name for names in seconds for name in names}, set(want.split(" ")[:1]) - {""}
            )


@table("hbm_address_bit_feeds")
def hbm_address_bit_feeds(case: Case) -> None:
    rows = []
    for row in case["rows"]:
        use = hbm.bit_use(row["bit"])
        feeds = [f"{use.field}[{use.field_bit}]"]
        if use.xor_channel is not None:
            feeds.append(f"channel[{use.xor_channel}] (xor)")
        if use.also_row:
            top = hbm.bit_use(hbm.ROW_HIGH_BIT)
            feeds.append(f"{top.field}[{top.field_bit}] (only together with bit {hbm.SLICE_LOW_BIT})")
        rows.append({"bit": row["bit"], "feeds": feeds})
    expect_rows(case, rows)


@table("hbm_channel_xor")
def hbm_channel_xor(case: Case) -> None:
    expect_rows(case, [{"channel_bit": r["channel_bit"], "address_bits": list(hbm.channel_bits(r["channel_bit"]))} for r in case["rows"]])


@table("hbm_address_decode")
def hbm_address_decode(case: Case) -> None:
    def run() -> None:
        rows = []
        for row in case["rows"]:
            fields = hbm.decode(row["address"])
            names = ("stack", "channel", "bank_group", "bank", "slice", "row", "byte")
            values = {name: int(getattr(fields, name)) for name in names}
            rows.append({"address": row["address"], "address_hex": f"{row['address']:#x}", **values})
        expect_rows(case, rows)

    expect_verdict(case, run)


@table("hbm_consecutive_pair")
def hbm_consecutive_pair(case: Case) -> None:
    rows = []
    for row in case["rows"]:
        relation = hbm.pair_relation(int(row["first"], 16), int(row["second"], 16))
        names = ("same_channel", "same_slice", "same_bank_group", "same_bank", "row_switch", "tccd")
        rows.append({"first": row["first"], "second": row["second"], **{n: getattr(relation, n) for n in names}})
    expect_rows(case, rows)


@table("hbm_tccd")
def hbm_tccd(case: Case) -> None:
    best = min(hbm.TCCD.values())
    rows = [
        {"relation": name, "tccd_cycles_1_5GHz": cycles, "relative": best / cycles, "cause": hbm.TCCD_CAUSE[name]}
        for name, cycles in hbm.TCCD.items()
    ]
    expect_rows_among(case, rows, ("relation",))


@cost("hbm_tccd_rate")
def hbm_tccd_rate(case: Case) -> None:
    p = case["params"]
    ns = p["tccd"] / p["clock_GHz"]
    rates = {
        "ns_per_command": ns,
        "GB_per_s_per_channel": p["command_bytes"] / ns,
        "ns_per_256B_request": ns * RNGD.request_bytes / p["command_bytes"],
    }
    expect_derived(case, rates)


@cost("hbm_row_switch")
def hbm_row_switch(case: Case) -> None:
    p = case["params"]
    cycles = [ns * p["clock_GHz"] for ns in p["ns"]]
    open_row = min(hbm.TCCD.values())
    derived = {"cycles_1_5GHz": cycles, "ratio_to_open_row": [c / open_row for c in cycles], "open_row_cycles": open_row}
    expect_derived(case, derived)


@cost("hbm_channel_spread")
def hbm_channel_spread(case: Case) -> None:
    p = case["params"]
    address = np.array([p["base"]], np.int64)
    for count, stride in p["loops"]:
        address = (address[:, None] + np.arange(count, dtype=np.int64)[None, :] * stride).reshape(-1)
    block = RNGD.request_bytes
    parts = -(-p.get("access_bytes", block) // block)
    address = (address[:, None] + np.arange(parts, dtype=np.int64) * block).reshape(-1)

    def run() -> dict[str, Any]:
        load = hbm.profile_spread(address, MANUAL_DMA)
        if load is None:
            raise Mismatch("the manual profile has no HBM bound")
        return {
            "requests": load.requests,
            "channels_used": load.channels_used,
            "busiest_channel_requests": load.busiest_channel_requests,
            "row_switches_in_order": load.row_switches,
            "hit_cycles": load.hit_cycles,
            "address_level_cycles": load.address_level_cycles,
        }

    derived = expect_verdict(case, run)
    if derived is not None:
        expect_derived(case, derived)


@cost("hbm_read_transfers")
def hbm_read_transfers(case: Case) -> None:
    p = case["params"]
    transfers = hbm.lines_touched(p["offset"], p["bytes"])
    aligned = -(-p["bytes"] // RNGD.request_bytes)
    expect_derived(case, {"transfers": transfers, "penalty": transfers / aligned})


@cost("hbm_write")
def hbm_write(case: Case) -> None:
    written = hbm.write_cost(case["params"].get("offset", 0), case["params"]["bytes"])
    derived = {
        "requests": written.requests,
        "full_requests": written.full_requests,
        "partial_bytes": written.partial_bytes,
        "rmw_requests": written.rmw_requests,
        "relative_time_units": written.relative_time,
    }
    expect_derived(case, derived)


@cost("pcie")
def pcie_cost(case: Case) -> None:
    p = case["params"]
    hw = replace(RNGD, pcie_bytes_per_cycle=p.get("bytes_per_cycle", RNGD.pcie_bytes_per_cycle))
    expect_derived(case, {"data_cycles": pcie.transfer_cycles(p["bytes"], hw)})


@table("pcie_vs_tensor_dma")
def pcie_vs_tensor_dma(case: Case) -> None:
    rows = [
        {"engine": "PCIe DMA", "bytes_per_cycle": RNGD.pcie_bytes_per_cycle},
        {"engine": "Tensor DMA", "bytes_per_cycle": RNGD.engine_bytes_per_cycle, "ratio": pcie.slowdown()},
    ]
    expect_rows_among(case, rows, ("engine",))

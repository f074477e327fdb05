"""Corpus questions about the register files of a slice."""

from __future__ import annotations

from typing import Any

from tcptune.errors import RuleViolation
from tcptune.exec.conformance.kinds.compare import expect_derived, expect_rows, expect_rows_among
from tcptune.exec.conformance.registry import Case, Mismatch, asked, cost, expect_equal, table
from tcptune.ir.kernels.ops import ToVrf
from tcptune.ir.mappings.axes import Axes
from tcptune.ir.mappings.mapping import IDENTITY
from tcptune.ir.types import StreamType, dtype
from tcptune.model.engines import register_files as files
from tcptune.model.engines.contraction.outer import trf_banks
from tcptune.model.hardware import RNGD
from tcptune.model.pipeline import ENTRY_POSITIONS
from tcptune.model.stage import ChainEnv
from tcptune.model.tensor_unit import CONTEXTS

KIB = 1024


@table("trf_geometry")
def trf_geometry(case: Case) -> None:
    hw = RNGD
    size = files.physical_bytes(hw.trf_rows_per_bank, hw)
    row = {"lanes": hw.lanes_per_slice, "banks_per_lane": hw.trf_banks_per_lane, "rows_per_bank": hw.trf_rows_per_bank}
    expect_rows(case, [{**row, "row_bits": hw.trf_row_bits, "bytes_per_slice": size, "kib_per_slice": size // KIB}])


@table("trf_row_packing")
def trf_row_packing(case: Case) -> None:
    """Both chapters that print the row table; one writes a promotion as ``i4 -> i5``, the other as a column."""
    rows = []
    for row in case["rows"]:
        name = row["dtype"] if "dtype" in row else row["type"].split()[0]
        stored = row["stored_as"] if "dtype" in row else row["type"].split()[-1] if "->" in row["type"] else name
        promoted = stored != name
        packing = files.row_packing(dtype(name), RNGD, promoted)
        derived: dict[str, Any] = {
            "stored_as": packing.stored_as.name,
            "stored_bits": packing.stored_as.bits,
            "elements_per_row": packing.elements,
            "used_bits": packing.used_bits,
            "slack_bits": packing.slack_bits,
            "native_bytes_per_row": RNGD.flit_bytes,
            "row_bytes_used": packing.used_bits // 8,
            "needs_zero_point_headroom": promoted,
        }
        rows.append({**{k: row[k] for k in ("dtype", "type") if k in row}, **derived})
    expect_rows(case, rows)
    expect_equal("row_bits", RNGD.trf_row_bits, case.get("row_bits", RNGD.trf_row_bits))


@table("trf_rows_by_active_lanes")
def trf_rows_by_active_lanes(case: Case) -> None:
    rows = []
    for lanes in sorted(RNGD.legal_lane_counts, reverse=True):
        count = files.rows_per_bank(lanes, RNGD)
        payload = count * RNGD.trf_banks_per_lane * RNGD.flit_bytes
        rows.append({"active_lanes": lanes, "rows_per_bank_per_active_lane": count, "native_bytes_per_active_lane": payload})
    expect_rows_among(case, rows, ("active_lanes",))


@table("trf_address_modes")
def trf_address_modes(case: Case) -> None:
    """Both chapters that list the modes."""
    rows = []
    for mode in files.address_modes(RNGD):
        kib, payload = files.physical_bytes(mode.rows, RNGD) // KIB, files.native_bytes(mode, RNGD)
        span = {"first_row": mode.first_row, "last_row": mode.last_row, "rows": f"{mode.first_row}-{mode.last_row}"}
        sizes = {"kib_per_slice": kib, "raw_capacity_KB": kib, "native_bytes_per_slice": payload, "bf16_payload_bytes": payload}
        rows.append({"mode": mode.name, **span, "rows_per_bank": mode.rows, **sizes})
    expect_rows_among(case, rows, ("mode",))


@table("trf_element_capacity")
def trf_element_capacity(case: Case) -> None:
    full, half, _ = (files.native_bytes(mode, RNGD) for mode in files.address_modes(RNGD))
    rows = []
    for name in files.TRF_DTYPES:
        element = dtype(name)
        per_row = files.row_packing(element, RNGD).elements
        rows.append({"dtype": name, "per_row": per_row, "full": full * 8 // element.bits, "half": half * 8 // element.bits})
    expect_rows_among(case, rows, ("dtype",))


@cost("trf_read")
def trf_read(case: Case) -> None:
    """Reads of one or both banks; a case gives the banks, or the bytes of an operand packet."""
    params = case["params"]
    lanes = params.get("lanes", RNGD.lanes_per_slice)
    files.check_lane_count(lanes, RNGD)
    banks = params["banks"] if "banks" in params else trf_banks(params["read_bytes"], RNGD)
    bits = files.read_bits_per_lane(banks, RNGD)
    rates = {"bits_per_lane_per_cycle": bits, "bytes_per_slice_per_cycle": bits * lanes // 8}
    expect_derived(case, {"banks": banks, **rates, "out_packets_per_cycle": 1})  # one read feeds one packet, broadcast included (OUTER-022)


@table("trf_read_cache")
def trf_read_cache(case: Case) -> None:
    hw = RNGD
    size = files.physical_bytes(hw.trf_cache_rows_per_bank, hw)
    shape = {"lanes": hw.lanes_per_slice, "banks": hw.trf_banks_per_lane, "rows": hw.trf_cache_rows_per_bank}
    expect_rows(case, [{**shape, "row_bits": hw.trf_row_bits, "bytes": size, "kib": size / KIB}], ignore=("mapping",))


@table("trf_bank_contention")
def trf_bank_contention(case: Case) -> None:
    rows = []
    for row in case["rows"]:
        proceeds = files.store_proceeds(row["read"] == "wide", row["cache"] == "hit", row["store_bank"] != "other")
        rows.append({**asked(row, "read", "cache", "store_bank"), "store_proceeds": proceeds})
    expect_rows(case, rows)
    expect_equal("priority", "read", case.get("priority", "read"))


@table("trf_bank_of_narrow_read")
def trf_bank_of_narrow_read(case: Case) -> None:
    offset = "byte_offset_in_lane"
    expect_rows(case, [{offset: r[offset], "bank": files.bank_of_narrow_read(r[offset], RNGD)} for r in case["rows"]])
    expect_equal("granularity_bytes", RNGD.flit_bytes, case.get("granularity_bytes", RNGD.flit_bytes))


@table("trf_store_routes")
def trf_store_routes(case: Case) -> None:
    _expect_routes(case, "Trf")


@table("vrf_store_routes")
def vrf_store_routes(case: Case) -> None:
    _expect_routes(case, "Vrf")


def _expect_routes(case: Case, tier: str) -> None:
    routes = files.STORE_ROUTES[tier]
    rows = [{"route": r.name, "data_source": r.data_source, "bypasses": list(r.bypasses)} for r in routes]
    expect_rows_among(case, rows, ("route",), ignore=("layouts", "setup"))
    by_name = {route.name: route for route in routes}
    for row in case["rows"]:
        route = by_name[row["route"]]
        if route.contiguous_only != ("contiguous" in row.get("layouts", "")):
            raise Mismatch(f"{route.name}: layouts {row.get('layouts')!r}")
        expect_equal(f"set-up of {route.name}", "lower" if route.contiguous_only else None, row.get("setup"))


@table("vrf_store_sites")
def vrf_store_sites(case: Case) -> None:
    """Every site is asked of the check: does it need the sub context, and which contexts does it hold?"""
    handle = next(c.handle for c in CONTEXTS if c.name == "sub")
    rows = []
    for row in case["rows"]:
        expect_equal(f"to_vrf at {row['position']}", True, row["position"] in ENTRY_POSITIONS["to_vrf"])
        needs_handle = not _store(row["issued_from"], row["position"], passed=False)
        occupied = _store(row["issued_from"], row["position"], passed=needs_handle)
        argument = f"&mut {handle}" if needs_handle else None
        rows.append({"issued_from": row["issued_from"], "position": row["position"], "argument": argument, "occupies": list(occupied)})
    expect_rows(case, rows)


def _store(context: str, position: str, passed: bool) -> tuple[str, ...]:
    """Contexts that a store of one flit holds; nothing if it is refused."""
    axes = Axes(B=8)
    flit = axes.mapping("B")
    stream = StreamType(position, dtype("f32"), IDENTITY, axes.mapping("1 # 2"), axes.mapping("1 # 256"), IDENTITY, flit)
    try:
        step = files.check(stream, ToVrf(flit, sub_arg=passed), ChainEnv(context, axes))
    except RuleViolation as refusal:
        expect_equal("rule", "VRF-005", refusal.rule)
        return ()
    config: files.VrfStore = step.config
    return config.contexts


@table("register_file_limits")
def register_file_limits(case: Case) -> None:
    lanes = RNGD.lanes_per_slice
    rows = [
        {"tensor": "VrfTensor", "limit_bytes": RNGD.vrf_bytes_per_slice, "per": "slice"},
        {"tensor": "TrfTensor", "limit_bytes": RNGD.trf_bytes_per_slice // lanes, "per": "lane", "max_lanes": lanes},
    ]
    expect_rows_among(case, rows, ("tensor",))

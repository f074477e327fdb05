"""Corpus questions about the Tensor Unit, the Fetch Adapter, the Switch, the Collect Engine and the register files."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from typing import Any

import numpy as np

from tcptune.errors import RuleViolation
from tcptune.exec.conformance.kinds.compare import expect_derived, expect_rows, expect_rows_among
from tcptune.exec.conformance.registry import Case, Mismatch, asked, cost, expect_equal, table, table_matching
from tcptune.ir.kernels.ops import OPS, FetchCast, FetchTableLookup, FetchZeroPointSub, Op, SwitchConfig
from tcptune.ir.mappings.axes import Axes
from tcptune.ir.mappings.mapping import IDENTITY
from tcptune.ir.types import DType, StreamType, dtype
from tcptune.model.engines import collect, fetch_adapter
from tcptune.model.engines.switch import configurations as switch
from tcptune.model.engines.switch.bitmap import LAYOUTS, Routing
from tcptune.model.hardware import RNGD
from tcptune.model.numerics import elements as numerics
from tcptune.model.pipeline import ENTRY_POSITIONS, require_context
from tcptune.model.stage import ChainEnv
from tcptune.model.tensor_unit import CONTEXTS, ENGINES, ROUTES

FLOATS_BY_LOOKUP = [(s, t) for s, targets in fetch_adapter.LOOKUPS.items() for t in targets]


def expect_mentions(what: str, text: str, facts: Iterable[str]) -> None:
    """Raises `Mismatch` unless `text` states every fact."""
    missing = [fact for fact in facts if fact.lower() not in text.lower()]
    if missing:
        raise Mismatch(f"{what}: {missing[0]!r} is not in {text!r}")


# --- Tensor Unit ------------------------------------------------------------------------------------------------------------------


@table("tensor_unit_pipeline")
def tensor_unit_pipeline(case: Case) -> None:
    expect_equal("rows", [engine.name for engine in ENGINES], case["rows"])
    stores = {"TRF": "to_trf", "VRF": "to_vrf"}
    facts = {
        "side_stores": {"Collect": [f for f, op in stores.items() if "Collect" in ENTRY_POSITIONS[op]]},
        "register_readers": dict(_register_readers()),
        "reads_from": "DM",
        "writes_to": "DM",
    }
    for name, fact in facts.items():
        expect_equal(name, fact, case.get(name, fact))


def _register_readers() -> Iterable[tuple[str, str]]:
    """Which engine's operations take an operand from each register file: contract_outer names a TRF tensor, vector operations a VRF one."""
    for engine in ENGINES:
        if any("trf" in _fields(name) for name in engine.operations):
            yield "TRF", engine.name
    if any("operand" in _fields(name) for name in OPS if name.startswith("vector_")):
        yield "VRF", next(engine.name for engine in ENGINES if "vector_init" in engine.operations)


def _fields(operation: str) -> set[str]:
    return {f.name for f in dataclasses.fields(OPS[operation])}


@table("engine_constraints")
def engine_constraints(case: Case) -> None:
    """The demand of each engine, by the facts it must state."""
    facts = {
        "Fetch": (f"{RNGD.stream_alignment_bytes}-byte aligned", "axis lifting"),
        "Fetch Adapter": ("optional", "identity"),
        "Switching": ("ring network", "Slice"),
        "Collect": (f"exactly one {RNGD.flit_bytes}-byte flit",),
        "Contraction": ("one operand", "TRF", "other"),
        "Vector": ("i32 or f32 only",),
        "Cast": ("exactly one flit",),
        "Transpose": ("one flit only",),
        "Commit Adapter": ("optional", "before commit"),
        "Commit": ("flit-aligned",),
    }
    demands = {engine.name: engine.demands for engine in ENGINES}
    for row in case["rows"]:
        name = row["engine"]
        if name not in demands:
            raise Mismatch(f"there is no engine {name!r}")
        expect_mentions(f"our demand of {name}", demands[name], facts[name])
        expect_mentions(name, row["constraint"], facts[name])


@table("engines_that_change_spatial_dimensions")
def engines_that_change_spatial_dimensions(case: Case) -> None:
    """Operations outside the commits whose fields name a spatial level change it; lifts move nothing."""
    changes: dict[str, list[str]] = {"lift": [], "switch": [], "vector_inter_slice_reduce": []}
    for level in ("chip", "cluster", "slice"):
        for name in OPS:
            if level in _fields(name) and not name.startswith("commit"):
                changes["lift" if name.endswith("_lift") else name].append(level.capitalize())
    rows = [
        {"engine": "Fetch (axis lifting)", "may_change": changes["lift"], "moves_data": False},
        {"engine": "Switch", "may_change": changes["switch"], "moves_data": True},
        {
            "engine": "Vector inter-slice reducer",
            "may_change": changes["vector_inter_slice_reduce"],
            "moves_data": True,
            "combines_slices": RNGD.slices_per_cluster,
        },
    ]
    expect_rows_among(case, rows, ("engine",))


@table("compute_route")
def compute_route(case: Case) -> None:
    for row in case["rows"]:
        route = next((r for r in ROUTES if r.need.lower() in row["need"].lower()), None)
        if route is None:
            raise Mismatch(f"no route serves the need {row['need']!r}")
        expect_mentions(route.need, row["select"].replace("Fetch/Commit Adapter", "Fetch Adapter, Commit Adapter"), route.engines)


@table("execution_contexts")
def execution_contexts(case: Case) -> None:
    """Both chapters that list the contexts; what a context may do is asked of the checks."""
    facts = {"main": ("every", "engine"), "sub": ("pipeline", "register-file preloads"), "dma": ("tensor movement", "DMA Engine")}
    contexts = {context.name: context for context in CONTEXTS}
    for row in case["rows"]:
        context = contexts.get(str(row["context"]).lower())
        if context is None:
            raise Mismatch(f"there is no context {row['context']!r}")
        allowed = {"contraction": "contract_outer", "table_lookup": "fetch_table_lookup"}
        derived: dict[str, Any] = {"context": row["context"], "handle": context.handle, "drives": row["drives"]}
        derived |= {name: context.name != "dma" and _runs_in(operation, context.name) for name, operation in allowed.items()}
        expect_rows({"rows": [row]}, [derived])
        stated = [fact for fact in facts[context.name] if fact.lower() in row["drives"].lower()]
        if not stated:
            raise Mismatch(f"{context.name} drives {row['drives']!r}")


def _runs_in(operation: str, context: str) -> bool:
    try:
        require_context(operation, context)
    except RuleViolation:
        return False
    return True


def _convert(source: DType, op: Op) -> None:
    """Asks the Fetch Adapter for one conversion.

    Raises:
        RuleViolation: FA-002, FA-007, FA-008, FA-011 or FA-012.
    """
    axes = Axes(B=8)
    levels = {"chip": IDENTITY, "cluster": axes.mapping("1 # 2"), "slice": axes.mapping("1 # 256"), "time": IDENTITY}
    fetch_adapter.check(StreamType("Fetch", source, packet=axes.mapping("B"), **levels), op, ChainEnv("main", axes))


# --- Fetch Adapter ----------------------------------------------------------------------------------------------------------------


@table("table_lookup_pairs")
def table_lookup_pairs(case: Case) -> None:
    rows = []
    for source, target in FLOATS_BY_LOOKUP:
        shape = fetch_adapter.lookup_table(dtype(source))
        keys = {"key_bits": shape.key_bits, "paired": shape.paired, "elements_per_key": shape.elements_per_key}
        rows.append({"in": source, "out": target, **keys})
    expect_rows_among(case, rows, ("in", "out"))


@table("table_lookup_hardware")
def table_lookup_hardware(case: Case) -> None:
    e2m1 = dtype("f4e2m1")
    shape = fetch_adapter.lookup_table(e2m1)
    row = {
        "distinct_e2m1_codes": 1 << e2m1.bits,
        "paired_table_entries": shape.entries,
        "key_bytes_allowed": list(RNGD.lookup_key_bytes),
        "nibbles_per_key": shape.elements_per_key,
        "elements_decoded_per_key": shape.elements_per_key,
        "f4e2m1_bits": e2m1.bits,
        "context": next(c.name for c in CONTEXTS if c.name != "dma" and _runs_in("fetch_table_lookup", c.name)),
        "runtime_table_argument": "table" in _fields("fetch_table_lookup"),
        "per_call_staging": False,
        "block_scale_in_table": "scale" in _fields("fetch_table_lookup"),
    }
    expect_rows(case, [row])


@table("e2m1_decode")
def e2m1_decode(case: Case) -> None:
    e2m1 = dtype("f4e2m1")
    codes = np.arange(1 << e2m1.bits)
    values = numerics.from_bits(codes, e2m1)
    bits = {t: numerics.to_bits(numerics.convert(values, e2m1, t), t) for t in fetch_adapter.LOOKUPS["f4e2m1"]}
    rows = []
    for code in codes:
        number = float(values[code])
        value = "-0.0" if number == 0 and np.signbit(number) else number
        rows.append({"code": int(code), "value": value, **{f"{t}_bits": int(b[code]) for t, b in bits.items()}})
    expect_rows_among(case, rows, ("code",))


@table("e2m1_paired_table")
def e2m1_paired_table(case: Case) -> None:
    source = dtype("f4e2m1")
    rows = []
    for row in case["rows"]:
        targets = {name: dtype(name.removeprefix("out_")) for name in row if name.startswith("out_")}
        for target in targets.values():
            _convert(source, FetchTableLookup(target))
        outs = {name: list(fetch_adapter.paired_entry(row["key_byte"], source, target)) for name, target in targets.items()}
        rows.append({"key_byte": row["key_byte"], **outs})
    expect_rows(case, rows)
    entries = fetch_adapter.lookup_table(source).entries
    expect_equal("entries", entries, case.get("entries", entries))


@table("f8_to_bf16")
def f8_to_bf16(case: Case) -> None:
    rows = []
    for row in case["rows"]:
        source = dtype(row["in"])
        value = numerics.from_bits(np.array([row["bits"]]), source)
        wide = numerics.convert(value, source, "bf16")
        rows.append({**asked(row, "in", "bits"), "value": float(value[0]), "bf16_bits": int(numerics.to_bits(wide, "bf16")[0])})
    expect_rows(case, rows)


@table("fetch_cast_pairs")
def fetch_cast_pairs(case: Case) -> None:
    pairs = [(dtype(s), dtype(t)) for s, targets in fetch_adapter.CASTS.items() for t in targets]
    expect_rows_among(case, [{"in": s.name, "out": t.name, "widening": t.bits > s.bits} for s, t in pairs], ("in", "out"))


@table("fetch_cast_read_size")
def fetch_cast_read_size(case: Case) -> None:
    rows = []
    for row in case["rows"]:
        source, target = dtype(row["in"]), dtype(row["out"])
        _convert(source, FetchCast(target))
        fits = row["read_size"] <= fetch_adapter.read_size_cap(target, RNGD)
        derived = {"read_bytes": source.bytes_of(row["read_size"]), "output_bytes": target.bytes_of(row["read_size"])}
        rows.append({**asked(row, "in", "out", "read_size"), **derived, "verdict": "accept" if fits else "reject", "rule": "FA-010"})
    expect_rows(case, rows)


@table("fetch_cast_read_size_cap_main")
def fetch_cast_read_size_cap_main(case: Case) -> None:
    rows = []
    for row in case["rows"]:
        source, target = dtype(row["in"]), dtype(row["out"])
        _convert(source, FetchCast(target))
        sizes = [8 * b // source.bits for b in RNGD.fetch_access_bytes if 8 * b % source.bits == 0]
        largest = max(n for n in sizes if n <= fetch_adapter.read_size_cap(target, RNGD))
        derived = {"max_read_size": largest, "read_bytes": source.bytes_of(largest), "output_bytes": target.bytes_of(largest)}
        rows.append({**asked(row, "in", "out"), **derived})
    expect_rows(case, rows)


@cost("fetch_cast_latency")
def fetch_cast_latency(case: Case) -> None:
    least, most = RNGD.fetch_cast_latency_cycles
    expect_derived(case, {"added_cycles_min": least, "added_cycles_max": most})


@table("zero_point_pairs")
def zero_point_pairs(case: Case) -> None:
    rows = []
    for source, target in fetch_adapter.ZERO_POINTS.items():
        low, high = numerics.integer_range(source)
        least, most = fetch_adapter.residual_range(dtype(source))
        out_low, out_high = numerics.integer_range(target)
        limits = {"zero_point_min": low, "zero_point_max": high, "residual_min": least, "residual_max": most}
        rows.append({"in": source, "out": target, **limits, "out_min": out_low, "out_max": out_high})
    expect_rows_among(case, rows, ("in", "out"))


@table("zero_point_values")
def zero_point_values(case: Case) -> None:
    rows = []
    for row in case["rows"]:
        source = dtype(row["in"])
        target = fetch_adapter.ZERO_POINTS.get(source.name, row.get("out", source.name))
        _convert(source, FetchZeroPointSub(dtype(target), row["zero_point"]))
        value = np.array([row["value"]], numerics.numpy_dtype(source))
        result = fetch_adapter.subtract_zero_point(value, source, row["zero_point"])
        rows.append({**asked(row, "in", "value", "zero_point"), "out": target, "result": int(result[0])})
    expect_rows(case, rows)


# --- Switch and Collect -----------------------------------------------------------------------------------------------------------


def _routing(params: dict[str, Any]) -> Routing:
    """Routing of a canonical configuration from its sizes."""
    slices, steps = int(params.get("slices", RNGD.slices_per_cluster)), int(params["in_time_size"])
    return switch.canonical_routing(SwitchConfig.from_json(params["config"]), slices, steps, RNGD)


@table("switch_snoop_bitmap")
def switch_snoop_bitmap(case: Case) -> None:
    routing = _routing(case["params"])
    expect_equal("rows", routing.snoop_bitmap(), case["rows"])
    sizes = {"ring_size": routing.ring_size, "sub_rings": routing.sub_rings, "in_time_size": routing.in_steps}
    expect_derived({"expect": case.get("derived", {})}, {**routing.part_sizes, **sizes, "out_time_size": routing.out_steps})
    for out_slice, out_step, in_slice, in_step in case.get("route_one_ring", ()):
        expect_equal(f"source of slice {out_slice} step {out_step}", routing.source_of(out_slice, out_step), (in_slice, in_step))


@table_matching(r"switch_(\w+_)?(composition|equivalence)")
def switch_composition(case: Case) -> None:
    """Whether TransposedBroadcast1(slice1, slice0) moves data as Transpose and then Broadcast1 with exchanged sizes (SWITCH-017)."""
    rows = []
    for row in case["rows"]:
        sizes = {"slices": RNGD.slices_per_cluster, "in_time_size": 1, **asked(row, "slices", "in_time_size")}
        given, exchanged = ({"slice1": row[a], "slice0": row[b]} for a, b in (("slice1", "slice0"), ("slice0", "slice1")))
        direct = _routing({**sizes, "config": {"TransposedBroadcast1": given}})
        first, second = _routing({**sizes, "config": {"Transpose": given}}), _routing({**sizes, "config": {"Broadcast1": exchanged}})
        composed = first.sources_at(*second.route())
        rows.append({**sizes, **given, "ring_size": direct.ring_size, "equal": bool(np.array_equal(composed, direct.route()))})
    expect_rows(case, rows)


@table("switch_configurations")
def switch_configurations(case: Case) -> None:
    """The layout table of the model, row by row."""
    for row in case["rows"]:
        kind = row["config"]
        expect_equal(f"{kind} is a variant", kind in switch.CONFIGURATIONS, row["switch_config_variant"])
        expect_equal(f"parameters of {kind}", list(switch.CONFIGURATIONS.get(kind, ())), row["parameters"])
        if kind == "CustomBroadcast":
            continue
        layout = LAYOUTS[kind]
        derived = {
            "in_slice": list(layout.in_slice),
            "in_time": list(layout.in_time),
            "out_slice": list(layout.out_slice),
            "out_time": list(layout.out_time),
            "ring_size": "slice1*slice0" if row["switch_config_variant"] else "1",
        }
        for name, value in derived.items():
            expect_equal(f"{name} of {kind}", value, row.get(name, value))


@table("switch_config_occupancy")
def switch_config_occupancy(case: Case) -> None:
    canonical = Routing("Transpose", RNGD.slices_per_cluster, 4, 1, 1, 2, 2)
    custom = dataclasses.replace(canonical, kind="CustomBroadcast", sources=((0,),))
    for row in case["rows"]:
        routing = custom if row["config"] == custom.kind else canonical
        expect_equal(f"occupied while loading {row['config']}", list(routing.occupies_while_loading), row["occupies_while_loading"])
        expect_mentions(row["config"], row["configuration_data"], ["snoop bitmap" if routing.is_custom else "built-in"])
        expect_equal("fixed stall", None, row.get("fixed_stall_cycles"))


@table("switch_sub_rings")
def switch_sub_rings(case: Case) -> None:
    rows = []
    for row in case["rows"]:
        ring = row["ring_size"]
        rows.append({"ring_size": ring, "sub_rings": Routing("Transpose", RNGD.slices_per_cluster, ring, 1, 1).sub_rings})
    expect_rows(case, rows)


@cost("switch")
def switch_cost(case: Case) -> None:
    """Both chapters that price a switch; one gives flits, the other the packet."""
    params = case["params"]
    flits = params.get("flits_per_packet")
    if flits is None:
        bits = params["packet_elements"] * numerics.packing_bits(dtype(params["dtype"]))
        flits = collect.flits_of_bytes(-(-bits // 8), RNGD)
    steps = params["in_time_size"] if "in_time_size" in params else params["time_size"]
    ring, slices = params["ring_size"], params.get("slices", RNGD.slices_per_cluster)
    switch.check_sub_rings(ring, slices)
    sub_rings = Routing("Transpose", slices, ring, steps, steps).sub_rings
    expect_derived(case, {"flits_per_packet": flits, "cycles": switch.switch_cycles(ring, steps, flits), "sub_rings": sub_rings})


@table("elements_per_flit")
def elements_per_flit(case: Case) -> None:
    expect_rows(case, [{"dtype": r["dtype"], "elements": collect.flit_elements(dtype(r["dtype"]), RNGD)} for r in case["rows"]])
    expect_equal("flit_bytes", RNGD.flit_bytes, case.get("flit_bytes", RNGD.flit_bytes))


@table("collect_padding")
def collect_padding(case: Case) -> None:
    rows = []
    for row in case["rows"]:
        flits = collect.flits_of_bytes(row["packet_bytes"], RNGD)
        rows.append({"packet_bytes": row["packet_bytes"], "flits": flits, "pad_bytes": flits * RNGD.flit_bytes - row["packet_bytes"]})
    expect_rows(case, rows)

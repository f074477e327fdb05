"""Cost and table cases of the chapter on mappings, streams, Sequencer, Fetch and Commit, computed from the model."""

from __future__ import annotations

import re
from typing import Any

from tcptune.errors import RuleViolation
from tcptune.exec.conformance.compare import expect_derived, expect_rows
from tcptune.exec.conformance.registry import Case, Mismatch, cost, expect_equal, table, table_matching
from tcptune.ir.axes import Axes
from tcptune.ir.cells import Index, joint_table
from tcptune.ir.linear import parse_linear
from tcptune.ir.mapping import Mapping, PadKind, broadcast, pair, symbol
from tcptune.ir.ops import Fetch, FetchChipLift, FetchClusterLift, FetchSliceLift, Op
from tcptune.ir.types import DType, StreamType, dtype
from tcptune.model import dimensions
from tcptune.model.capacity import check_capacity, unit_capacity_bytes
from tcptune.model.engines import collect, fetch, lift
from tcptune.model.engines.commit import plan_write
from tcptune.model.hardware import RNGD
from tcptune.model.memory.dm import max_consecutive_accesses
from tcptune.model.sequencer import Entry, SequencerConfig
from tcptune.model.stage import ChainEnv

ACCESS = {PadKind.TOP: (True, "arbitrary"), PadKind.ZERO: (True, "0 (recorded"), PadKind.BOTTOM: (False, "access undefined")}


# --- costs ------------------------------------------------------------------------------------------------------------------------


@cost("sequencer_access")
def sequencer_access(case: Case) -> None:
    params = case["params"]
    config = SequencerConfig(tuple(Entry(*e) for e in params["entries"]), params["packet_size"])
    expect_derived(case, config.to_json())


@cost("flit_waste")
def flit_waste(case: Case) -> None:
    packet_bytes = case["params"]["packet_bytes"]
    flits = collect.flits_of_bytes(packet_bytes, RNGD)
    total = flits * RNGD.flit_bytes
    waste = (total - packet_bytes) / total
    expect_derived(case, {"flits": flits, "flit_bytes": total, "padding_bytes": total - packet_bytes, "waste": waste})


@cost("fetch")
def fetch_cost(case: Case) -> None:
    """A packet read in contiguous runs of the given access size."""
    params = case["params"]
    element, access, packet = dtype(params["dtype"]), params["max_access_size"], params["packet_size"]
    apart = (Entry(packet // access, 2 * access),) if packet > access else ()
    config = SequencerConfig((Entry(params["time_size"], 4 * packet), *apart, Entry(access, 1)), packet)
    expect_equal("max_access_size", config.max_access_size, access)
    size = fetch.read_size(config, element, params["context"], RNGD)
    expect_derived(case, fetch.FetchRead(broadcast(1), config, element, params["time_size"], size).derived())


@cost("commit")
def commit_cost(case: Case) -> None:
    """A stream of packets written contiguously."""
    params = case["params"]
    time, packet = symbol("T", params["time_size"]), symbol("P", params["valid_bytes"])
    write = plan_write(pair(time, packet), time, packet, dtype("i8"), params["context"], RNGD)
    expect_derived(case, write.derived())


@cost("commit_bandwidth")
def commit_bandwidth(case: Case) -> None:
    expect_derived(
        case,
        {"bytes_per_cycle_per_dmn": RNGD.dmn_bytes_per_cycle, "bytes_per_cycle": RNGD.dmn_bytes_per_cycle * RNGD.dmns_per_engine},
    )


@cost("dm_unaligned_access")
def dm_unaligned_access(case: Case) -> None:
    expect_derived(case, {"slowdown": RNGD.unaligned_dm_access_factor, "approx": True})


@cost("dm_bank_starvation")
def dm_bank_starvation(case: Case) -> None:
    """The manual calls the first count that starves the limit."""
    expect_derived(case, {"max_consecutive_same_bank_accesses": max_consecutive_accesses(RNGD) + 1})


@cost("capacity")
def capacity(case: Case) -> None:
    params, expect = case["params"], case["expect"]
    element, lanes = dtype(params["dtype"]), params.get("lane_size", 1)
    limit = unit_capacity_bytes(params["type"], RNGD, lanes)
    expect_derived(case, {"bytes": element.bytes_of(params["element_size"]), "limit_bytes": limit})
    try:
        check_capacity(params["type"], element, params["element_size"], lanes)
    except RuleViolation as refusal:
        expect_equal("verdict", "reject", expect.get("verdict", "accept"))
        if expect["rule"] not in (refusal.rule, *refusal.also):
            raise Mismatch(f"refused by {refusal.rule}, expected {expect['rule']}") from None
        return
    expect_equal("verdict", "accept", expect.get("verdict", "accept"))


# --- tables of the model's own facts ----------------------------------------------------------------------------------------------


@table("dimension placement and reduction")
def dimension_table(case: Case) -> None:
    rows = []
    for d in dimensions.DIMENSIONS:
        rows.append({"dimension": d.name, "type": d.kind, "defined_in": list(d.defined_in), "reduced_by": d.reduced_by})
    expect_rows(case, rows)


@table("routes between Time and spatial dimensions")
def axis_routes(case: Case) -> None:
    expect_rows(case, [{"route": r.name, "moves": r.moves, "when": r.available, "cost": r.cost} for r in dimensions.AXIS_ROUTES])


@table("spatial unit counts")
def spatial_units(case: Case) -> None:
    rows = []
    for unit in dimensions.spatial_units(RNGD):
        count = "system dependent" if unit.count is None else f"{unit.count} per {unit.per}"
        size = "NUM_CHIPS" if unit.count is None else unit.count
        row = {"unit": unit.name, "constraint": f"{unit.name}::SIZE {'==' if unit.exact else '<='} {size}", "padding_example": unit.padding}
        rows.append({**row, "count": count if unit.exact or unit.count is None else f"{count} (TRF)"})
    expect_rows(case, rows)


@table("storage capacity per unit")
def storage_capacity(case: Case) -> None:
    rows = []
    for tier, unit, lanes in (("Dm", "Slice", None), ("Trf", "Lane", RNGD.lanes_per_slice), ("Vrf", "Slice", None)):
        rows.append({"type": f"{tier}Tensor", "unit": unit, "bytes": unit_capacity_bytes(tier, RNGD, lanes), "lanes": lanes})
    expect_rows(case, rows)


@table("dimension sizes checked by the engines")
def accepted_sizes(case: Case) -> None:
    legal = {"Cluster": RNGD.legal_cluster_sizes, "Slice": RNGD.legal_slice_sizes}
    expect_rows(case, [{"dimension": name, "sizes": list(sizes)} for name, sizes in legal.items()])


@table("padding kinds")
def padding_kinds(case: Case) -> None:
    """The written forms are parsed; the kind decides what a cell holds."""
    axes = Axes(A=2)
    for row in case["rows"]:
        kind = PadKind(row["kind"])
        for text in row["syntax"]:
            expect_equal(text, axes.mapping(text.replace("m", "4")).cell(3).to_json(), f"padding:{kind.value}")
        accessible, holds = ACCESS[kind]
        expect_equal(f"{kind.value} accessible", accessible, row["accessible"])
        if not str(row["value"]).startswith(holds):
            raise Mismatch(f"{kind.value} holds {holds!r}, expected {row['value']!r}")


@table("major/minor combination of cells")
def cell_combination(case: Case) -> None:
    """Each row is built as a pair whose parts are such cells and read back."""
    axes = Axes(A=2, B=3)
    major = {"index": "A", "padding(k)": "1 #{0} 2"}
    minor = {"index": "B", "padding(k)": "1 #{!} 3", "any": "1 #{!} 3"}
    for row in case["rows"]:
        if "oob" in (row["major"], row["minor"]):
            expect_equal("cell", pair(axes.mapping("A"), axes.mapping("B")).cell(6).to_json(), "oob")
            expect_equal("result", "oob", row["result"])
            continue
        cell = pair(axes.mapping(major[row["major"]]), axes.mapping(minor[row["minor"]])).cell(5)
        if isinstance(cell, Index):
            expect_equal("sum", cell.to_json(), {"A": 1, "B": 2})
            expect_equal("result", "index (coordinates added)", row["result"])
        else:
            expect_equal("kind", cell.to_json(), "padding:zero" if row["major"].startswith("padding") else "padding:bottom")
            expect_equal("result", "padding(k)", row["result"])


@table("fill kind used when an out-of-bounds cell is finalized")
def out_of_bounds_kind(case: Case) -> None:
    """The kind of hole that views for reading and for writing have (MAP-024) is that of positions beyond the mapping."""
    kinds = {"read": PadKind.TOP, "write": PadKind.BOTTOM}
    expect_rows(case, [{"access": access, "kind": kind.value} for access, kind in kinds.items()])


@table("stream positions of a Tensor Unit tensor")
def stream_positions(case: Case) -> None:
    expect_rows(case, [{"position": p} for p in dimensions.STREAM_POSITIONS])


@table("movement routes")
def movement_routes(case: Case) -> None:
    expect_rows(
        case,
        [{"from": m.source, "to": m.destination, "op": m.operation, "context": m.contexts, "async": m.is_async} for m in dimensions.MOVES],
    )


@table("public DMA paths")
def dma_paths(case: Case) -> None:
    tiers = dimensions.DMA_TIERS
    rows: list[dict[str, Any]] = [{"from": a, "to": b, "supported": True} for a in tiers for b in tiers]
    rows.append({"from": "SPM", "to": "any", "supported": "SPM" in tiers})
    rows.append({"path": "unscaled gather", "supported": True, "index": "DmTensor of raw row positions"})
    rows.append({"path": "unscaled scatter", "supported": False})
    expect_rows(case, rows)


@table("sequencer limits")
def sequencer_limits(case: Case) -> None:
    facts: dict[str, dict[str, Any]] = {
        "entries": {"max": RNGD.sequencer_max_entries},
        "iterations per entry": {"max": RNGD.sequencer_max_iterations},
        "access bytes": {"allowed": list(RNGD.fetch_access_bytes)},
        "innermost entry": {"rule": "(stride 0 or 1) and size % packet_size == 0, or packet_size == 1"},
    }
    expect_rows(case, [{"limit": row["limit"], **facts[row["limit"]]} for row in case["rows"]])
    strided = SequencerConfig((Entry(8, 1), Entry(8, 8)), 8)
    expect_equal("access of a strided innermost entry", strided.access_size, 1)


@table("sequencers per engine")
def sequencer_users(case: Case) -> None:
    users = dimensions.SEQUENCER_USERS
    expect_rows(case, [{"engine": u.engine, "sequencers": u.sequencers, "memory": u.memory} for u in users])


@table("legal valid_size in bytes")
def commit_valid_bytes(case: Case) -> None:
    rows = []
    for size in RNGD.commit_valid_bytes:
        write = plan_write(symbol("P", size), broadcast(1), symbol("P", size), dtype("i8"), "sub", RNGD)
        rows.append({"bytes": size, "writes_sub": write.writes_per_packet})
    expect_rows(case, rows)


# --- tables over mappings ---------------------------------------------------------------------------------------------------------


@table_matching(r"\w+ / \d+ by \w+ % \d+ grid for \w+ = \d+")
def digit_grid(case: Case) -> None:
    axis, n = re.match(r"(\w+) / (\d+)", case["what"]).groups()  # type: ignore[union-attr]
    axes = Axes(case["axes"])
    cells = joint_table(axes.mapping(f"{axis} / {n}"), axes.mapping(f"{axis} % {n}"))
    expect_rows(case, [{f"{axis} / {n}": i, axis: row.tolist()} for i, row in enumerate(cells.coords[axis])])


@table_matching(r"coordinates of the element .*")
def representation_trace(case: Case) -> None:
    """The one position of every representation that holds the element."""
    axes = Axes(case["axes"])
    element = {name: int(value) for name, value in re.findall(r"(\w+) ?= ?(\d+)", case["what"])}
    for row in case["rows"]:
        levels = {name: axes.mapping(row[name]) for name in row["at"]}
        cells = joint_table(*levels.values())
        hits = cells.live
        for name, value in element.items():
            hits = hits & (cells.coords[name] == value)
        places = [dict(zip(levels, map(int, place), strict=True)) for place in zip(*hits.nonzero(), strict=True)]
        expect_equal(row["representation"], places, [row["at"]])


@table("sizes of the example stream type")
def stream_sizes(case: Case) -> None:
    axes = Axes(case["axes"])
    for row in case["rows"]:
        sizes = {name: axes.mapping(row[name]).size for name in ("slice", "time", "packet")}
        for name, size in sizes.items():
            expect_equal(f"{name} size", size, row[f"{name}_size"])
        expect_equal("elements per step", sizes["slice"] * sizes["packet"], row["channels_per_step"])


@table("sizes of example tensors")
def tensor_sizes(case: Case) -> None:
    axes = Axes(case["axes"])
    for row in case["rows"]:
        element = axes.mapping(row.get("mapping", row.get("element", "1")))
        chip: Mapping = axes.mapping(row.get("chip", "1"))
        facts = {"elements": chip.size * element.size, "chips": chip.size, "elements_per_chip": element.size}
        for name, value in facts.items():
            if name in row:
                expect_equal(f"{row['type']} {name}", value, row[name])


@table_matching(r"linear combination \$\(.*\).*")
def linear_combination(case: Case) -> None:
    text = re.search(r"\$\(.*\)", case["what"]).group(0)  # type: ignore[union-attr]
    combination = parse_linear(text, Axes(case["axes"]))
    if "size" in case:
        expect_equal("size", combination.size, case["size"])
    for row in case["rows"]:
        key = lambda index: sorted(index.items())
        got = sorted(combination.indices(row["position"]), key=key)
        expect_equal(f"position {row['position']}", got, sorted(row["coordinates"], key=key))


# --- tables of the engines --------------------------------------------------------------------------------------------------------


def _begin(axes: Axes, element: DType, packet: str, slice_: str) -> StreamType:
    spatial = {"chip": broadcast(1), "cluster": axes.mapping("1 # 2"), "slice": axes.mapping(slice_)}
    return StreamType("Begin", element, time=broadcast(1), packet=axes.mapping(packet), **spatial)


@table_matching(r"fetch packet padding comparison.*")
def packet_padding(case: Case) -> None:
    axes = Axes(case["axes"])
    env = ChainEnv("main", axes)
    named = re.search(r"\b(i4|i8|i16|i32|f4e2m1|f8e4m3|f8e5m2|bf16|f32)\b", case["what"])
    start = _begin(axes, dtype(named.group(1) if named else "i8"), ", ".join(axes), "1 # 256")
    rows = []
    for row in case["rows"]:
        step = fetch.check(start, Fetch(axes.mapping(row["time"]), axes.mapping(row["packet"])), env)
        after = step.after
        assert isinstance(after, StreamType)
        flits = collect.flits_of_bytes(after.packet_bytes, RNGD)
        rows.append(
            {
                **{name: row[name] for name in ("function", "time", "packet")},
                "packets": after.time.size,
                "packet_bytes": after.packet_bytes,
                "collect_padding_bytes": flits * RNGD.flit_bytes - after.packet_bytes,
                "cycles": step.derived["cycles"],
            }
        )
    expect_rows(case, rows)


@table("lift methods")
def lift_methods(case: Case) -> None:
    """Each lift of a broadcast of 2 is checked and its set-up counted."""
    axes = Axes(H=2, V=16, A=128)
    mapping = axes.mapping
    calls: dict[str, tuple[Op, dict[str, str]]] = {
        "fetch_chip_lift": (FetchChipLift(mapping("H"), mapping("1")), {"chip": "2"}),
        "fetch_cluster_lift": (FetchClusterLift(mapping("H"), mapping("1")), {"cluster": "2"}),
        "fetch_slice_lift": (FetchSliceLift(mapping("A, H"), mapping("1")), {"slice": "A, 2"}),
    }
    rows = []
    for name, (op, level) in calls.items():
        start = _begin(axes, dtype("bf16"), "H, V", "1 # 256").with_(**{n: mapping(m) for n, m in level.items()})
        env = ChainEnv("main", axes)
        fetched = fetch.check(start, Fetch(mapping("H"), mapping("V")), env).after
        assert isinstance(fetched, StreamType)
        setup = lift.check(fetched, op, env).derived["setup"]
        base = "one run-time base per slice" if setup else "static field of the read command"
        rows.append({"op": name, "dimension": next(iter(level)).capitalize(), "base": base})
        want = next(row["setup_ops"] for row in case["rows"] if row["op"] == name)
        expect_equal(f"set-up of {name}", len(setup), len(want) if isinstance(want, list) else want)
    expect_rows(case, rows, ignore=("setup_ops",))


@table_matching(r"reads per slice of the \w+ example.*")
def lift_reads(case: Case) -> None:
    """Which coordinates a slice reads before and after the lift, from the joint cells of slice and time."""
    axes = Axes(case["axes"])
    env = ChainEnv("main", axes)
    start = _begin(axes, dtype("bf16"), "Q, V", "A, 2")
    fetched = fetch.check(start, Fetch(axes.mapping("Q"), axes.mapping("V")), env).after
    assert isinstance(fetched, StreamType)
    lifted = lift.check(fetched, FetchSliceLift(axes.mapping("A, Q / 2"), axes.mapping("Q % 2")), env)
    after = lifted.after
    assert isinstance(after, StreamType)
    bases = list(lifted.derived["base_elements"].values())
    for row in case["rows"]:
        is_lifted = "lift" in row["placement"]
        stream = after if is_lifted else fetched
        place = 1 if "second" in row["placement"] else 0
        cells = joint_table(stream.slice, stream.time)
        for axis, values in row["reads"].items():
            expect_equal(f"reads of {row['placement']}", cells.coords[axis][place].tolist(), values)
        expect_equal("time steps", stream.time.size, row["time_steps"])
        base = bases[place] if is_lifted else 0
        expect_equal("base", base, row["base_elements"])
        if "base_bytes" in row:
            expect_equal("base bytes", stream.dtype.bytes_of(base), row["base_bytes"])


@table("declared choices of the end-to-end transfer")
def end_to_end_transfer(case: Case) -> None:
    """Every declared stream is derived from the tensor before it; the committed tensor holds what the last step names."""
    axes = Axes(case["axes"])
    rows = {row["step"]: row for row in case["rows"]}

    def at(step: str, key: str) -> Mapping:
        return axes.mapping(rows[step][key])

    read, cast = rows["HBM to DM"], rows["cast and collect"]
    start = _begin(axes, dtype(rows["input"]["dtype"]), read["element"], read["slice"])
    held = pair(start.slice, start.packet)
    expect_equal("DM holds the input", held.is_permutation_of(at("input", "element")), True)
    env = ChainEnv("main", axes)
    fetched = fetch.check(start, Fetch(at("fetch", "time"), at("fetch", "packet")), env).after
    assert isinstance(fetched, StreamType)
    time, packet, _ = collect.collected(fetched.with_(dtype=dtype(cast["dtype"])), RNGD)
    expect_equal("collect time", time.equivalent(at("cast and collect", "time")), True)
    expect_equal("collect packet", packet.equivalent(at("cast and collect", "packet")), True)
    last = "commit to DM to HBM"
    expect_equal("trim", at(last, "commit_trim").equivalent(packet), True)
    whole = pair(start.slice, plan_write(pair(time, packet), time, packet, dtype(rows[last]["dtype"]), "main", RNGD).buffer)
    expect_equal("tensor", whole.is_permutation_of(at(last, "dm_tensor")), True)
    expect_equal("HBM layout", whole.is_permutation_of(pair(at(last, "hbm_chip"), at(last, "hbm_element"))), True)

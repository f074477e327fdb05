"""Cost and table cases of the chapter on mappings, streams, Sequencer, Fetch and Commit, computed from the model."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from tcptune.exec.conformance.kinds.compare import expect_derived, expect_rows, expect_rows_among, expect_verdict
from tcptune.exec.conformance.registry import Case, Mismatch, cost, expect_equal, table, table_matching
from tcptune.ir.kernels.ops import Fetch, FetchChipLift, FetchClusterLift, FetchSliceLift, Op
from tcptune.ir.mappings.axes import Axes
from tcptune.ir.mappings.cells import joint_table
from tcptune.ir.mappings.linear import parse_linear
from tcptune.ir.mappings.literal import literal_cell
from tcptune.ir.mappings.mapping import Mapping, PadKind, broadcast, pair, symbol
from tcptune.ir.types import DType, StreamType, dtype
from tcptune.model.capacity import check_capacity, unit_capacity_bytes
from tcptune.model.engines import collect, fetch, lift
from tcptune.model.engines.commit import plan_write
from tcptune.model.hardware import RNGD
from tcptune.model.mappings import dimensions
from tcptune.model.memory.dm import max_consecutive_accesses
from tcptune.model.sequencer.configuration import Entry, SequencerConfig
from tcptune.model.stage import ChainEnv

ACCESS = {PadKind.TOP: (True, "arbitrary"), PadKind.ZERO: (True, "0 (recorded"), PadKind.BOTTOM: (False, "access undefined")}


# --- costs ------------------------------------------------------------------------------------------------------------------------


@cost("sequencer_access")
def sequencer_access(case: Case) -> None:
    params = case["params"]
    config = SequencerConfig(tuple(Entry(*e) for e in params["entries"]), params["packet_size"])

    def run() -> dict[str, Any]:
        config.check_limits()
        return {**config.to_json(), "accesses_per_packet": config.packet_size // config.access_size}

    _expect(case, run)


@cost("flit_waste")
def flit_waste(case: Case) -> None:
    packet_bytes = case["params"]["packet_bytes"]
    flits = collect.flits_of_bytes(packet_bytes, RNGD)
    total = flits * RNGD.flit_bytes
    waste = (total - packet_bytes) / total
    expect_derived(case, {"flits": flits, "flit_bytes": total, "padding_bytes": total - packet_bytes, "waste": waste})


@cost("fetch")
def fetch_cost(case: Case) -> None:
    """A packet read in contiguous runs of the given access size, cast on the way where the case names a dtype."""
    params = case["params"]
    element, access, packet = dtype(params["dtype"]), params["max_access_size"], params["packet_size"]
    output = dtype(params["cast"]) if params.get("cast") else None
    apart = (Entry(packet // access, 2 * access),) if packet > access else ()
    config = SequencerConfig((Entry(params["time_size"], 4 * packet), *apart, Entry(access, 1)), packet)
    expect_equal("max_access_size", config.max_access_size, access)

    def run() -> dict[str, Any]:
        size = fetch.read_size(config, element, params["context"], RNGD, output)
        return fetch.FetchRead(broadcast(1), config, element, params["time_size"], size).derived()

    _expect(case, run)


@cost("commit")
def commit_cost(case: Case) -> None:
    """A stream of packets whose pieces of `access_bytes` (by default whole packets) lie apart in DM."""
    params = case["params"]
    valid = params["valid_bytes"]
    time, packet = symbol("T", params["time_size"]), symbol("P", max(valid, 1))
    access = params.get("access_bytes", packet.size)
    buffer = pair(time, packet) if access == packet.size else pair(packet.stride(access), time, packet.modulo(access))
    _expect(case, lambda: plan_write(buffer, time, packet, dtype("i8"), params["context"], RNGD).derived())


def _expect(case: Case, run: Callable[[], dict[str, Any]]) -> None:
    """The verdict, and the numbers where the case accepts."""
    derived = expect_verdict(case, run)
    if derived is not None:
        expect_derived(case, derived)


@cost("commit_bandwidth")
def commit_bandwidth(case: Case) -> None:
    dmns = RNGD.dmns_per_engine if case["params"]["dmn_interleaving"] else 1
    expect_derived(case, {"bytes_per_cycle_per_dmn": RNGD.dmn_bytes_per_cycle, "bytes_per_cycle": RNGD.dmn_bytes_per_cycle * dmns})


@cost("dm_unaligned_access")
def dm_unaligned_access(case: Case) -> None:
    expect_derived(case, {"slowdown": RNGD.unaligned_dm_access_factor, "approx": True})


@cost("dm_bank_starvation")
def dm_bank_starvation(case: Case) -> None:
    """The manual calls the first count that starves the limit."""
    expect_derived(case, {"max_consecutive_same_bank_accesses": max_consecutive_accesses(RNGD) + 1})


@cost("capacity")
def capacity(case: Case) -> None:
    params = case["params"]
    element, lanes = dtype(params["dtype"]), params.get("lane_size", 1)
    limit = unit_capacity_bytes(params["type"], RNGD, lanes)
    expect_derived(case, {"bytes": element.bytes_of(params["element_size"]), "limit_bytes": limit})
    expect_verdict(case, lambda: check_capacity(params["type"], element, params["element_size"], lanes))


# --- tables of the model's own facts ----------------------------------------------------------------------------------------------


@table("dimension placement and reduction")
def dimension_table(case: Case) -> None:
    rows = []
    for d in dimensions.DIMENSIONS:
        rows.append({"dimension": d.name, "type": d.kind, "defined_in": list(d.defined_in), "reduced_by": d.reduced_by})
    expect_rows_among(case, rows, ("dimension",))


@table("routes between Time and spatial dimensions")
def axis_routes(case: Case) -> None:
    rows = [{"route": r.name, "moves": r.moves, "when": r.available, "cost": r.cost} for r in dimensions.AXIS_ROUTES]
    expect_rows_among(case, rows, ("route",))


@table("spatial unit counts")
def spatial_units(case: Case) -> None:
    rows = []
    for unit in dimensions.spatial_units(RNGD):
        count = "system dependent" if unit.count is None else f"{unit.count} per {unit.per}"
        size = "NUM_CHIPS" if unit.count is None else unit.count
        row = {"unit": unit.name, "constraint": f"{unit.name}::SIZE {'==' if unit.exact else '<='} {size}", "padding_example": unit.padding}
        rows.append({**row, "count": count if unit.exact or unit.count is None else f"{count} (TRF)"})
    expect_rows_among(case, rows, ("unit",))


@table("storage capacity per unit")
def storage_capacity(case: Case) -> None:
    rows = []
    for tier, unit, lanes in (("Dm", "Slice", None), ("Trf", "Lane", RNGD.lanes_per_slice), ("Vrf", "Slice", None)):
        rows.append({"type": f"{tier}Tensor", "unit": unit, "bytes": unit_capacity_bytes(tier, RNGD, lanes), "lanes": lanes})
    expect_rows_among(case, rows, ("type",))


@table("dimension sizes checked by the engines")
def accepted_sizes(case: Case) -> None:
    legal = {"Cluster": RNGD.legal_cluster_sizes, "Slice": RNGD.legal_slice_sizes}
    expect_rows_among(case, [{"dimension": name, "sizes": list(sizes)} for name, sizes in legal.items()], ("dimension",))


@table("padding kinds")
def padding_kinds(case: Case) -> None:
    """The written forms are parsed; the kind decides what a cell holds."""
    axes = Axes(A=2)
    for row in case["rows"]:
        kind = PadKind(row["kind"])
        for text in row["syntax"]:
            expect_equal(text, axes.mapping(text.replace("m", "4")).cell(3).to_json(), f"padding:{kind.value}")
        accessible, holds = ACCESS[kind]
        expect_equal(f"{kind.value} accessible", accessible, row.get("accessible", accessible))
        if not str(row.get("value", holds)).startswith(holds):
            raise Mismatch(f"{kind.value} holds {holds!r}, expected {row['value']!r}")


@table("major/minor combination of cells")
def cell_combination(case: Case) -> None:
    """Each row is built as a literal of two such cells, with its own kind of padding on either side (MAP-008, MAP-016)."""
    axes = Axes(A=2, B=3)
    axis, hole = axes.mapping("A"), axes.mapping("1 #{0} 2")
    major = {"index": (axis, 1), "padding(k)": (hole, 1), "oob": (axis, 2)}
    axis, hole = axes.mapping("B"), axes.mapping("1 #{!} 3")
    minor = {"index": (axis, 2), "padding(k)": (hole, 2), "oob": (axis, 3)}
    for row in case["rows"]:
        for name in minor if row["minor"] == "any" else (row["minor"],):
            got = literal_cell([major[row["major"]], minor[name]]).to_json()
            if row["result"] == "oob":
                expect_equal("cell", got, "oob")
            elif row["result"] == "padding(k)":
                expect_equal("kind", got, "padding:zero" if row["major"] == "padding(k)" else "padding:bottom")
            else:
                expect_equal("sum", got, {"A": 1, "B": 2})


@table("fill kind used when an out-of-bounds cell is finalized")
def out_of_bounds_kind(case: Case) -> None:
    """The kind of hole that views for reading and for writing have (MAP-024) is that of positions beyond the mapping."""
    kinds = {"read": PadKind.TOP, "write": PadKind.BOTTOM}
    expect_rows_among(case, [{"access": access, "kind": kind.value} for access, kind in kinds.items()], ("access",))


@table("stream positions of a Tensor Unit tensor")
def stream_positions(case: Case) -> None:
    expect_rows_among(case, [{"position": p} for p in dimensions.STREAM_POSITIONS], ("position",))


@table("movement routes")
def movement_routes(case: Case) -> None:
    rows = [
        {"from": m.source, "to": m.destination, "op": m.operation, "context": m.contexts, "async": m.is_async} for m in dimensions.MOVES
    ]
    expect_rows_among(case, rows, ("from", "to"))


@table("public DMA paths")
def dma_paths(case: Case) -> None:
    """A path over any other memory (the host has its own engine, SPM has no tensor) is none."""
    tiers = dimensions.DMA_TIERS
    named: dict[str, dict[str, Any]] = {
        "unscaled gather": {"supported": True, "index": "DmTensor of raw row positions"},
        "unscaled scatter": {"supported": False},
    }
    rows: list[dict[str, Any]] = []
    for row in case["rows"]:
        if "path" in row:
            rows.append({"path": row["path"], **named[row["path"]]})
        else:
            rows.append({"from": row["from"], "to": row["to"], "supported": {row["from"], row["to"]} - {"any"} <= set(tiers)})
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
    rows = [{"engine": u.engine, "sequencers": u.sequencers, "memory": u.memory} for u in users]
    expect_rows_among(case, rows, ("engine",))


@table("legal valid_size in bytes")
def commit_valid_bytes(case: Case) -> None:
    rows = []
    for size in RNGD.commit_valid_bytes:
        write = plan_write(symbol("P", size), broadcast(1), symbol("P", size), dtype("i8"), "sub", RNGD)
        rows.append({"bytes": size, "writes_sub": write.writes_per_packet})
    expect_rows_among(case, rows, ("bytes",))


# --- tables over mappings ---------------------------------------------------------------------------------------------------------


@table_matching(r"\w+ / \d+ by \w+ % \d+ grid for \w+ = \d+")
def digit_grid(case: Case) -> None:
    axis, n = re.match(r"(\w+) / (\d+)", case["what"]).groups()  # type: ignore[union-attr]  # `table_matching` calls this for texts of this form only
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
        sizes = {name: axes.mapping(row[name]).size for name in ("slice", "time", "packet") if name in row}
        facts = {f"{name}_size": size for name, size in sizes.items()}
        if "slice" in sizes and "packet" in sizes:
            facts["channels_per_step"] = sizes["slice"] * sizes["packet"]
        for name, want in row.items():
            if name not in sizes:
                expect_equal(name, facts.get(name), want)


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
    text = re.search(r"\$\(.*\)", case["what"]).group(0)  # type: ignore[union-attr]  # `table_matching` calls this for texts of this form only
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
    start = _begin(axes, _named_dtype(case["what"], "i8"), ", ".join(axes), "1 # 256")
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
        for want in (row["setup_ops"] for row in case["rows"] if row["op"] == name and "setup_ops" in row):
            expect_equal(f"set-up of {name}", len(setup), len(want) if isinstance(want, list) else want)
    expect_rows_among(case, rows, ("op",), ignore=("setup_ops",))


_ORDINALS = ("first", "second", "third", "fourth")


@table_matching(r"reads per slice of the \w+ example.*")
def lift_reads(case: Case) -> None:
    """Which coordinates a slice reads before and after the lift, from the joint cells of slice and time.

    A row of the fetch names the slices that hold the same data; its axis is read in Time, what else is not in Slice is the packet.
    """
    axes = Axes(case["axes"])
    env = ChainEnv("main", axes)
    plain = next(row for row in case["rows"] if "lift" not in row["placement"])
    axis = next(iter(plain["reads"]))
    held = axes.mapping(plain["slice"])
    local = [name for name in axes if name not in held.axes]
    start = _begin(axes, _named_dtype(case["what"], "bf16"), ", ".join(local), plain["slice"])
    rest = ", ".join(name for name in local if name != axis)
    fetched = fetch.check(start, Fetch(axes.mapping(axis), axes.mapping(rest)), env).after
    assert isinstance(fetched, StreamType)
    for row in case["rows"]:
        stream, base = fetched, 0
        place = next((i for i, word in enumerate(_ORDINALS) if word in row["placement"]), 0)
        if "lift" in row["placement"]:
            wanted = axes.mapping(row["slice"])
            moved = pair(*(t for t in wanted.terms() if axis in t.axes))
            step = lift.check(fetched, FetchSliceLift(wanted, fetched.time.divide(moved)), env)
            assert isinstance(step.after, StreamType)
            stream, base = step.after, list(step.derived["base_elements"].values())[place]
        cells = joint_table(stream.slice, stream.time)
        for name, values in row["reads"].items():
            expect_equal(f"reads of {row['placement']}", cells.coords[name][place].tolist(), values)
        facts = {"time_steps": stream.time.size, "base_elements": base, "base_bytes": stream.dtype.bytes_of(base)}
        for name, value in facts.items():
            expect_equal(name, value, row.get(name, value))


def _named_dtype(text: str, default: str) -> DType:
    """The element type that a title names."""
    named = re.search(r"\b(i4|i8|i16|i32|f4e2m1|f8e4m3|f8e5m2|bf16|f32)\b", text)
    return dtype(named.group(1) if named else default)


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

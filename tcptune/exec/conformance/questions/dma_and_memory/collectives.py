"""Corpus questions about redistribution, gather and scatter, and collectives over chips and clusters."""

from __future__ import annotations

from typing import Any

import numpy as np

from tcptune.exec.conformance.kinds.compare import expect_derived, expect_rows, expect_rows_among, expect_verdict
from tcptune.exec.conformance.registry import Case, Mismatch, cost, table
from tcptune.ir.kernels.steps import PlanEntry
from tcptune.ir.mappings.axes import Axes
from tcptune.ir.types import TensorType, dtype
from tcptune.model import collectives
from tcptune.model.collectives import Shape
from tcptune.model.engines.gather import INDIRECT_CALLS, row_bytes, scaled_index
from tcptune.model.engines.redistribute import REDISTRIBUTION_CALLS, check_routing
from tcptune.model.hardware import RNGD
from tcptune.model.redistribution import Syncs, check_plan

_EXAMPLE_AXES = {"P": 4, "K": 2, "B": 4, "C": 8, "D": 8}
"""Axes of the manual's redistribution examples: chips, clusters, and the local axes of `[B, C, D]`."""

_LOCAL = ("B", "C", "D")


# --- redistribution ------------------------------------------------------------------------------------------------------------------
@table("redistribution_api")
def redistribution_api(case: Case) -> None:
    rows = [
        {"call": c.call, "selects": c.selects, "element_change": c.element_change, "execution": c.execution, "on": c.works_on}
        for c in REDISTRIBUTION_CALLS
    ]
    expect_rows_among(case, rows, ("call",))


@table("redistribution_sync")
def redistribution_sync(case: Case) -> None:
    rows = []
    for row in case["rows"]:
        chips, clusters = [0, 1], [0, 1]
        if row["source_chip_changes"]:
            chips.reverse()
        if row["source_cluster_changes"]:
            clusters.reverse()
        syncs = check_routing([(chips[t], clusters[k]) for t in (0, 1) for k in (0, 1)], 2, 2)
        changes = {name: row[name] for name in ("source_chip_changes", "source_cluster_changes")}
        rows.append({**changes, **_sync_numbers(syncs)})
    expect_rows(case, rows)


def _sync_numbers(syncs: Syncs) -> dict[str, int]:
    return {"ChipSync": int(syncs.chip), "ClusterSync": int(syncs.cluster)}


@cost("redistribution_routing")
def redistribution_routing(case: Case) -> None:
    p = case["params"]

    def run() -> dict[str, Any]:
        return {"sync": _sync_numbers(check_routing([(c, k) for c, k in p["sources"]], p["chips"], p["clusters"]))}

    derived = expect_verdict(case, run)
    if derived is not None:
        expect_derived(case, derived)


@table("redistribution_value_table")
def redistribution_value_table(case: Case) -> None:
    """Rows give targets by number, or by a letter where every position does the same."""
    plan = _plan_of(case)
    axes = Axes(_axes_of(case))
    source = TensorType("Dm", dtype("i32"), axes.mapping("B, C, D"), axes.mapping("P"), axes.mapping("K"), axes.mapping("1 # 256"))
    route = check_plan(source, plan)
    sliced = {str(entry.axis): entry for entry in plan if entry.axis is not None}
    rows = []
    for row in case["rows"]:
        chip, cluster = row["target_chip"], row.get("target_cluster")
        element: list[Any] = []
        for axis in _LOCAL if "target_cluster" in row else ():
            entry = sliced.get(axis)
            position = axis.lower() if entry is None else entry.indices[chip if entry.op == "chip_slice" else cluster]
            element.append(position)
        found = {
            "target_chip": chip,
            "source_chip": route.chip_sources[chip] if isinstance(chip, int) else chip,
            "output_element": [axis.lower() for axis in _LOCAL if axis not in sliced] if element else ["e"],
            "source_element": element or ["e"],
        }
        if "target_cluster" in row:
            found |= {"target_cluster": cluster, "source_cluster": route.cluster_sources[cluster] if isinstance(cluster, int) else cluster}
        rows.append(found)
    expect_rows(case, rows)


def _axes_of(case: Case) -> dict[str, int]:
    """The example's axes with as many chips as the plan names and local axes that hold its indices."""
    axes = dict(_EXAMPLE_AXES)
    for entry in case.get("plan", [{"sources": case["sources"]}] if "sources" in case else []):
        if "sources" in entry:
            axes["P"] = len(entry["sources"])
        elif entry["op"] == "chip_slice":
            axes["P"] = len(entry["indices"])
        if entry.get("axis") in axes:
            axes[entry["axis"]] = max(axes[entry["axis"]], 1 + max(entry["indices"]))
    if "indices" in case:
        axes["B"] = max(axes["B"], 1 + max(case["indices"]))
        axes["P"] = len(case["indices"]) if isinstance(case["rows"][0]["target_chip"], int) else axes["P"]
    return axes


def _plan_of(case: Case) -> list[PlanEntry]:
    """The plan of a value table: given in full, or by the numbers of its only stage."""
    axes = Axes(_axes_of(case))
    if "plan" in case:
        return [PlanEntry.from_json(entry, axes) for entry in case["plan"]]
    if "sources" in case:
        return [PlanEntry("chip_shuffle", sources=tuple(case["sources"]))]
    if "indices" in case:
        level = "chip_slice" if isinstance(case["rows"][0]["target_chip"], int) else "cluster_slice"
        return [PlanEntry(level, axis=axes.mapping("B"), output=axes.mapping("C, D"), indices=tuple(case["indices"]))]
    return [PlanEntry("cluster_swap")]


# --- gather and scatter --------------------------------------------------------------------------------------------------------------
@table("indirect_dma_api")
def indirect_dma_api(case: Case) -> None:
    rows = [
        {
            "call": c.call,
            "direction": c.direction,
            "index_lives_in": c.index_tier,
            "index_dtype": c.index_dtype,
            "index_means": c.index_means,
            "result": c.result,
        }
        for c in INDIRECT_CALLS
    ]
    expect_rows_among(case, rows, ("call",))


@table("scaled_index_row_bytes")
def scaled_index_row_bytes(case: Case) -> None:
    rows = []
    for row in case["rows"]:
        element_type, elements = dtype(row["dtype"]), row["row_elements"]
        index = {r: scaled_index(int(r), elements, element_type) for r in row.get("index_for_row", ())}
        rows.append(
            {"row_elements": elements, "dtype": row["dtype"], "row_bytes": row_bytes(elements, element_type), "index_for_row": index}
        )
    expect_rows(case, rows)


# --- collectives ---------------------------------------------------------------------------------------------------------------------
@table("collective_shapes")
def collective_shapes(case: Case) -> None:
    whole, shard, local = Shape("R", ("P...", "S", "Q...")), Shape("S", ("P...", "Q...")), Shape("R", ("P...",))
    shapes = [
        ("ReduceScatter", whole, collectives.reduce_scatter_shape(whole, "S")),
        ("AllGather", shard, collectives.all_gather_shape(shard, 1, "N")),
        ("AllReduce", local, collectives.all_reduce_shape(local, "N")),
    ]
    expect_rows_among(case, [{"op": op, "in": _shape(a), "out": _shape(b)} for op, a, b in shapes], ("op",))


def _shape(shape: Shape) -> dict[str, str]:
    return {"dimension": shape.dimension, "local": ", ".join(shape.local)}


@table("collective_sync_counts")
def collective_sync_counts(case: Case) -> None:
    chips = _EXAMPLE_AXES["P"]
    scatter = collectives.cyclic_rounds(chips, local_first=True)
    cyclic = collectives.cyclic_rounds(chips, local_first=False)
    butterfly = [collectives.exchange(chips, d) for d in collectives.butterfly_distances(chips)]
    swap = [collectives.cluster_swap_sources()]
    gather = collectives.ALL_GATHER_SYNCS
    gather_text, both_text = "1 to_dm from dimension to element", "ReduceScatter and AllGather"
    crossing = collectives.crossing_rounds
    examples = [
        ("Chip ReduceScatter", f"{len(scatter)} chains chip_shuffle.chip_slice.to_dm", crossing(scatter), 0),
        ("Chip AllGather", gather_text, gather, 0),
        ("Chip AllGather after ReduceScatter", both_text, crossing(scatter) + gather, 0),
        ("Chip AllReduce", f"{len(cyclic)} chains chip_shuffle.to_dm", crossing(cyclic), 0),
        ("Chip butterfly AllReduce", f"{len(butterfly)} chains chip_shuffle.to_dm", crossing(butterfly), 0),
        ("Cluster ReduceScatter", f"{RNGD.clusters_per_chip} local slices and {len(swap)} chain cluster_swap.to_dm", 0, crossing(swap)),
        ("Cluster AllGather", gather_text, 0, gather),
        ("Cluster AllGather after ReduceScatter", both_text, 0, crossing(swap) + gather),
        ("Cluster AllReduce", f"{len(swap)} chain cluster_swap.to_dm", 0, crossing(swap)),
    ]
    rows = [{"example": e, "redistribution_calls": c, "ChipSync": x, "ClusterSync": y} for e, c, x, y in examples]
    expect_rows_among(case, rows, ("example",))


@cost("collective_sync_count")
def collective_sync_count(case: Case) -> None:
    """A case that asks for the cyclic forms alone may have any number of chips; only the butterfly wants a power of two."""
    expect = case["expect"]
    butterfly = "all_reduce_butterfly" in expect or expect.get("verdict") == "reject"

    def run() -> dict[str, Any]:
        counts = collectives.sync_counts(case["params"]["chips"], butterfly)
        return {name: getattr(counts, name) for name in counts.__slots__}

    derived = expect_verdict(case, run)
    if derived is not None:
        expect_derived(case, derived)


@table("collective_rounds")
def collective_rounds(case: Case) -> None:
    first = case["rows"][0]
    count = len(case["rows"])
    if "rounds" in first:
        rows = [{"target_chip": t, "rounds": r, "result": f"out[{t}]"} for t, r in enumerate(collectives.reduce_scatter_rounds(count))]
    elif "sources_by_rotation" in first:
        rows = [{"target_chip": t, "sources_by_rotation": r} for t, r in enumerate(collectives.all_reduce_rounds(count))]
    elif "swapped_peer" in first:
        rows = [{"target_cluster": k, "local": k, "swapped_peer": peer} for k, peer in enumerate(collectives.cluster_swap_sources())]
    elif "remote_before_swap" in first:
        rows = _cluster_reduce_scatter_rows()
    else:
        raise Mismatch(f"nothing derives rounds with {', '.join(first)}")
    expect_rows(case, rows)


def _cluster_reduce_scatter_rows() -> list[dict[str, Any]]:
    """[p, s] = in[p, s]: each cluster keeps its own shard and sends the other one across."""
    swap = collectives.cluster_swap_sources()
    sent = [(k, swap[k]) for k in range(len(swap))]
    return [
        {
            "target_cluster": k,
            "local": [k, k],
            "remote_before_swap": list(sent[k]),
            "remote_after_swap": list(sent[swap[k]]),
            "result": f"out[{k}]",
        }
        for k in range(len(swap))
    ]


@table("collective_placement")
def collective_placement(case: Case) -> None:
    name = next(key for key in case["rows"][0] if key.startswith("target_"))
    count = len(case["rows"])
    expect_rows(case, [{name: t, "local": list(range(count))} for t in range(count)])


@table("collective_butterfly")
def collective_butterfly(case: Case) -> None:
    count = len(case["rows"])
    near, *others = (collectives.exchange(count, d) for d in collectives.butterfly_distances(count))
    sums = [[near[t], t] for t in range(count)]
    rows: list[dict[str, Any]] = []
    for t in range(count):
        rows.append({"target_chip": t, "initial": t, "first_peer": near[t], "first_sum": sums[t], "result": f"sum of in[0..{count - 1}]"})
        if others:
            rows[-1] |= {"second_peer": others[0][t], "second_peer_sum": sums[others[0][t]]}
    expect_rows(case, rows)


@table("float_reduction_replicas")
def float_reduction_replicas(case: Case) -> None:
    rows = []
    for row in case["rows"]:
        values = [np.float32(v) for v in row["inputs_f32"]]
        name = "shards" if "shards" in row else "replicas"
        if row["algorithm"].startswith("butterfly"):
            found = collectives.butterfly_reduce(values, np.add)
        else:
            found = [collectives.cyclic_reduce(values, np.add, t) for t in range(len(values))]
        numbers = [float(v) for v in found]
        same = name == "shards" or len(set(numbers)) == 1
        rows.append({"algorithm": row["algorithm"], "inputs_f32": row["inputs_f32"], name: numbers, "identical": same})
    expect_rows(case, rows)


@table("collective_payload")
def collective_payload(case: Case) -> None:
    rows = []
    for row in case["rows"]:
        elements = int(np.prod(list(row["axes"].values())))
        rows.append({"axes": row["axes"], "dtype": row["dtype"], "payload_bytes": dtype(row["dtype"]).bytes_of(elements)})
    expect_rows(case, rows)

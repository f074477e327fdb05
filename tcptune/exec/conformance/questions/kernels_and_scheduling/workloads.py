"""Tables of the transformer and MNIST workloads, derived from `exec.library.decoder_step`."""

from __future__ import annotations

from math import prod
from typing import Any

from tcptune.exec.conformance.kinds.compare import matches
from tcptune.exec.conformance.questions.kernels_and_scheduling.devices import expect_facts
from tcptune.exec.conformance.registry import Case, Mismatch, expect_equal, table
from tcptune.exec.library import decoder_step as step
from tcptune.ir.mappings.axes import Axes
from tcptune.ir.types import dtype
from tcptune.model.hardware import RNGD
from tcptune.model.numerics.elements import accumulator

A = step.AXES


def _expect_named(case: Case, key: str, facts: dict[str, Any], value: str = "value") -> None:
    """Compares the rows that `facts` names, as far as the table lists them."""
    for row in case["rows"]:
        name = row.get(key)
        if name in facts and value in row and not matches(facts[name], row[value]):
            raise Mismatch(f"{name}: got {facts[name]!r}, expected {row[value]!r}")


@table("model_configuration")
def check_model(case: Case) -> None:
    facts = {
        "decoder_layers": step.LAYERS,
        "hidden_size": A["H"],
        "query_heads": A["N"] * A["G"],
        "kv_heads": A["N"],
        "query_heads_per_kv_head": A["G"],
        "head_dim": A["D"],
        "intermediate_size": A["L"],
        "rope_theta": step.ROPE_THETA,
        "vocabulary": A["W"],
        "model": step.MODEL,
        "tied_embedding_in_model": step.TIED_EMBEDDING,
        "tied_embedding_claimed_by_example": False,
        "tokens_per_launch": step.BOUNDARY_KERNELS["embedding"],
        **dict.fromkeys(("prefill", "sampling", "device_token_lookup"), False),
    }
    _expect_named(case, "name", facts)


@table("parameter_counts")
def check_parameters(case: Case) -> None:
    _expect_named(case, "component", {"decoder layers": step.LAYERS, "vocabulary": A["W"]})
    _expect_named(case, "component", {"embedding / tied LM head": [A["W"], A["H"]]}, "shape")
    counts = {"attention projections per layer": step.attention_parameters(), "SwiGLU MLP per layer": step.mlp_parameters()}
    _expect_named(case, "component", counts)
    computed = {"whole model": step.total_parameters()}
    _expect_named(case, "component", computed, "computed")
    _expect_named(case, "component", {"embedding / tied LM head": A["W"] * A["H"]}, "computed_parameters")


@table("axes")
def check_axes(case: Case) -> None:
    _expect_named(case, "axis", A, "size")
    rows, tile = A["W"], step.TILE_ROWS
    computed = {"Wp": A["Wp"], "padding_rows": A["Wp"] - rows, "full_tiles": rows // tile, "rows_in_last_live_tile": rows % tile}
    for name, value in case.get("computed", {}).items():
        expect_equal(name, computed.get(name), value)


@table("boundary_kernels")
def check_boundaries(case: Case) -> None:
    """Interfaces of the kernels: legal mappings and types, launches, weights of the contractions, and what one kernel hands the next."""
    tensors: dict[tuple[str, str], dict[str, Any]] = {}
    for row in case["rows"]:
        kernel, launches = row["kernel"], row["launches_per_token"]
        count = launches if isinstance(launches, int) else int(str(launches).split(" ")[0])
        expect_equal(f"{kernel}: launches a token", step.BOUNDARY_KERNELS.get(kernel), count)
        tensors |= {(kernel, tensor["name"]): tensor for tensor in row["tensors"]}
    axes = Axes(A)
    for (kernel, name), tensor in tensors.items():
        if tensor["direction"] not in ("in", "out", "inout"):
            raise Mismatch(f"{kernel}.{name}: no direction {tensor['direction']!r}")
        size = axes.mapping(tensor["element"]).size
        if dtype(tensor["dtype"]).bytes_of(size) < 1:
            raise Mismatch(f"{kernel}.{name} is empty")
    _check_weights({row["kernel"] for row in case["rows"]}, tensors, axes)
    _check_handed_on(tensors, axes)


def _check_weights(kernels: set[str], tensors: dict[tuple[str, str], dict[str, Any]], axes: Axes) -> None:
    """Every contraction with a weight reads one of its kernel: its axes in order, read only, in the element type."""
    for c in step.CONTRACTIONS:
        if c.kernel not in kernels or c.per_chunk:
            continue
        name = f"{c.name.removesuffix('_proj')}_weight"
        tensor = tensors.get((c.kernel, name))
        if tensor is None:
            raise Mismatch(f"{c.kernel} has no tensor {name}")
        stored, named = axes.mapping(tensor["element"]), axes.mapping(", ".join(c.weight))
        expect_equal(f"{c.kernel}.{name}", (stored.size, tensor["dtype"], tensor["direction"]), (named.size, step.ELEMENT.name, "in"))
        if set(stored.axes) == set(named.axes) and not stored.equivalent(named):
            raise Mismatch(f"{c.kernel}.{name}: stored as {stored}, the contraction takes {named}")


def _check_handed_on(tensors: dict[tuple[str, str], dict[str, Any]], axes: Axes) -> None:
    """What a kernel writes is what the next one reads: as many elements of one type, written there and read here."""
    for writer, written, reader, read in step.CHAINED:
        first, second = tensors.get((writer, written)), tensors.get((reader, read))
        if first is None or second is None:
            continue
        what = f"{writer}.{written} to {reader}.{read}"
        expect_equal(f"{what}: type", first["dtype"], second["dtype"])
        expect_equal(f"{what}: elements", *(axes.mapping(t["element"]).size for t in (first, second)))
        expect_equal(f"{what}: directions", ("out" in first["direction"], second["direction"].startswith("in")), (True, True))


def _placement(c: step.Contraction) -> dict[str, Any]:
    return {
        "slices_used_per_cluster": c.slices,
        "clusters_used": c.clusters,
        "slice": c.slice,
        "lane": c.lane,
        "lanes": c.lanes,
        "trf_element": c.element,
        "trf_bytes_per_lane": c.bytes_per_lane,
        "trf_bytes_per_slice": c.bytes_per_slice,
        "trf_fits_half": c.fits_half(),
        "pack_size": c.pack_size(),
        "stream_flits": c.stream_flits(),
        "outer_packets": c.outer_packets(),
        "contraction_cycles": c.contraction_cycles(),
        "register_store_cycles": c.store_cycles(),
        "tiles": c.tiles,
    }


def _letters(axes: tuple[str, ...]) -> str | list[str]:
    """Axes as an einsum writes them, where each is one letter."""
    return "".join(axes) if all(len(a) == 1 for a in axes) else list(axes)


def _einsum(c: step.Contraction) -> str:
    """The formula; an axis of a longer name is written V, and what V is."""
    long = [a for a in c.axes if len(a) > 1]
    sides = ("".join("V" if a in long else a for a in side) for side in (c.activation, c.weight, c.result))
    activation, weight, result = sides
    return f"{activation}, {weight} -> {result}" + "".join(f" with V = {a}" for a in long)


def _padded_rows() -> dict[str, int]:
    """Rows of the LM head: those of the vocabulary, those that the host pads them to, those of a tile (XFMR-011)."""
    return {"valid_rows": A["W"], "padded_rows": A["Wp"], "tile_rows": step.TILE_ROWS}


@table("contraction_workloads")
def check_contractions(case: Case) -> None:
    sums = accumulator(step.ELEMENT)
    bytes_per_cycle = RNGD.hbm_stated_tb_per_s * 1000
    rows = [
        {
            "id": f"xfmr.{c.name}",
            "axes": {a: A[a] for a in c.axes},
            "kernel": f"{c.kernel}_first / {c.kernel}" if c.per_chunk else c.kernel,
            "einsum": _einsum(c),
            "activation": {"axes": _letters(c.activation), "dtype": step.ELEMENT.name},
            "weight": {
                "axes": _letters(c.weight),
                "dtype": step.ELEMENT.name,
                **({"from": f"{c.name[-1].upper()} cache chunk"} if c.per_chunk else {}),
            },
            "launches_per_token": f"{c.launches} per chunk" if c.per_chunk else c.launches,
            "macs": c.macs,
            "weight_bytes": c.weight_bytes,
            "hbm_bound_cycles_at_1GHz": round(c.weight_bytes / bytes_per_cycle, 1),
            "accumulator": sums.name if sums else None,
            "reference_placement": _placement(c),
            **(_padded_rows() if c.tiles > 1 else {}),
        }
        for c in step.CONTRACTIONS
    ]
    expect_facts(case, rows)


@table("token_totals")
def check_totals(case: Case) -> None:
    weights = [c for c in step.CONTRACTIONS if not c.per_chunk]
    caches = [c for c in step.CONTRACTIONS if c.per_chunk]
    layer = sum(c.weight_bytes for c in weights if c.launches == step.LAYERS)
    token = sum(c.weight_bytes * c.launches for c in weights)
    chunk = sum(c.weight_bytes * c.launches for c in caches)
    totals = {
        "weight bytes per layer": layer,
        "weight bytes per token, 28 layers + padded LM head": token,
        "KV-cache bytes read per token per chunk, 28 layers": chunk,
        "multiply-accumulates per token, weights only (padded LM head)": sum(c.macs * c.launches for c in weights),
        "multiply-accumulates per token per KV chunk": sum(c.macs * c.launches for c in caches),
        "reference placement: register-store cycles per token, one chunk": step.per_token(
            {c.name: c.store_cycles() * c.tiles for c in step.CONTRACTIONS}
        ),
        "reference placement: contraction cycles per token, one chunk": step.per_token(
            {c.name: c.contraction_cycles() * c.tiles for c in step.CONTRACTIONS}
        ),
    }
    _expect_named(case, "quantity", totals)
    bound = round((token + chunk) / (RNGD.hbm_stated_tb_per_s * 1e6), 1)
    _expect_named(case, "quantity", {"HBM lower bound at 1.5 TB/s, one chunk": bound}, "value_microseconds")


@table("vector_stages", explained=True)
def check_vector_stages(case: Case) -> None:
    """Constants and sizes of the norms, the softmax and the rotary embedding between the contractions (XFMR-008, XFMR-009)."""
    facts: dict[str, Any] = {
        "epsilon": step.EPSILON,
        "scale": 1 / step.LOGIT_DIVISOR,
        "rope_half": A["D"] // 2,
        "kv_row_bytes": step.ELEMENT.bytes_of(A["P"]),
        "query_heads_per_kv_head": A["G"],
    }
    for row in case["rows"]:
        cells = {**facts, "axes": {axis: A[axis] for axis in row.get("axes", {}) if axis in A}}
        for name, got in cells.items():
            if name in row and not matches(got, row[name]):
                raise Mismatch(f"{row.get('stage', row)}: {name}: got {got!r}, expected {row[name]!r}")


@table("mnist_workload")
def check_mnist(case: Case) -> None:
    """Layers, and the kernel's tensors: the input, weight and bias of every layer, the result."""
    element = step.ELEMENT.name
    rows = []
    for name, einsum, axes in step.MNIST_LAYERS:
        sizes = {a: step.MNIST_AXES[a] for a in axes}
        rows.append({"layer": name, "einsum": einsum, "axes": sizes, "bias": axes[-1], "dtype": element, "macs": prod(sizes.values())})
    expect_facts(case, rows)
    (_, _, first), (_, _, last) = step.MNIST_LAYERS[0], step.MNIST_LAYERS[-1]
    tensors = [("input", first[0], "in")]
    for name, _, (read, made) in step.MNIST_LAYERS:
        tensors += [(f"{name}_weight", f"{made}, {read}", "in"), (f"{name}_bias", made, "in")]
    tensors.append(("out", last[-1], "out"))
    signature = [{"name": n, "dtype": element, "element": e, "direction": d} for n, e, d in tensors]
    expect_equal("signature", signature, case.get("signature", signature))

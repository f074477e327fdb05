"""Corpus questions about whole DMA transfers given by their mappings: packets, descriptors and aggregates over engines."""

from __future__ import annotations

from typing import Any

from tcptune.exec.conformance.kinds.compare import expect_derived, expect_rows_among, expect_verdict
from tcptune.exec.conformance.registry import Case, Mismatch, cost, table
from tcptune.ir.mappings.axes import Axes
from tcptune.ir.types import TIER_LEVELS, TensorType, dtype
from tcptune.model.hardware import RNGD
from tcptune.model.memory import command_model, hbm
from tcptune.model.memory.command_model import DMN_STRIDE, SLICE_STRIDE, Command, Side
from tcptune.model.memory.descriptors import EngineKey, engine_commands
from tcptune.model.memory.layout import box_runs
from tcptune.model.memory.transfer import ELEMENT, Move, move_boxes, prove_move
from tcptune.model.timing.calibration import MANUAL_DMA

TIERS = {"HBM": "Hbm", "DM": "Dm", "Host": "Host"}

EXAMPLE_6_SOURCE = {
    "tier": "DM",
    "chip": "D / 2",
    "cluster": "D % 2",
    "slice": "A # 16 / 4, A # 16 / 2 % 2, B",
    "element": "A # 16 % 2, C",
}
EXAMPLE_6_DESTINATION = {"tier": "HBM", "chip": "D / 2", "element": "D % 2, B, A, C"}
"""Mappings of the manual's example 6, whose descriptors a table case lists."""


def tensor(raw: dict[str, Any], axes: Axes, element_type: str) -> TensorType:
    """A tensor of a cost case; a cluster given as a number is that one position."""
    tier = TIERS[raw["tier"]]
    levels = {name: axes.mapping(raw[name]) for name in TIER_LEVELS[tier] if isinstance(raw.get(name), str)}
    return TensorType(tier, dtype(element_type), **levels)


@cost("dma_packet_inference")
def dma_packet_inference(case: Case) -> None:
    p, axes = case["params"], Axes(case["axes"])
    source, dest = (TensorType("Hbm", dtype(p["dtype"]), axes.mapping(p[name])) for name in ("source_element", "destination_element"))
    runs = [box_runs(box, source, dest) for box in move_boxes(source, dest)]
    run = min(dest.dtype.bytes_of(r.live_elements) for r in runs)
    packet = command_model.stride0(run)
    expect_derived(case, {"common_run_bytes": run, "stride0": packet, "requests_per_packet": command_model.requests_per_packet(packet)})


# --- aggregates over engines ---------------------------------------------------------------------------------------------------------
@cost("dma_aggregate")
def dma_aggregate(case: Case) -> None:
    p = case["params"]
    if "engines" in p:
        pairs = [(TIERS[e["read_tier"]], TIERS[e["write_tier"]]) for e in p["engines"]]
        expect_verdict(case, lambda: command_model.check_media(pairs))
        return
    axes = Axes(case["axes"])
    source, dest = (tensor(p[side], axes, p["dtype"]) for side in ("source", "destination"))
    derived = expect_verdict(case, lambda: _aggregate(prove_move(source, dest)))
    if derived is not None:
        expect_derived(case, derived)


def _aggregate(move: Move) -> dict[str, Any]:
    """Commands of the engines of one cluster, and the cost of the whole, with all clusters of a chip at work."""
    commands = engine_commands(move)
    groups = [commands.get(EngineKey(0, 0, k), ()) for k in range(RNGD.engines_per_cluster)]
    total = command_model.cost([list(c) for c in commands.values()])
    start = MANUAL_DMA.start_load.value
    per_engine = [sum(start + c.data_cycles for c in group) for group in groups]
    spreads = {"read_per_chip": total.read_spread, "write_per_chip": total.write_spread}
    alike = len({tuple((c.counts, c.packet_bytes) for c in group) for group in groups}) == 1
    return {
        "aggregate": "homogeneous" if alike else "heterogeneous",
        "commands_by_group": [len(group) for group in groups],
        "requests_by_group": [[c.requests for c in group] for group in groups],
        "engine_total_by_group": per_engine,
        "hbm": {name: spread_numbers(s) for name, s in spreads.items() if s is not None},
        "total_cycles": total.total_cycles,
    }


def spread_numbers(spread: hbm.ChannelSpread) -> dict[str, Any]:
    """Channel load under the corpus's names."""
    return {
        "requests": spread.requests,
        "channels_used": spread.channels_used,
        "busiest_channel_requests": spread.busiest_channel_requests,
        "row_switches": spread.row_switches,
        "hit_cycles": spread.hit_cycles,
        "address_level_cycles": spread.address_level_cycles,
    }


@table("dma_descriptor_set")
def dma_descriptor_set(case: Case) -> None:
    axes, p = Axes(case["axes"]), case.get("params", {})
    sides = (p.get("source", EXAMPLE_6_SOURCE), p.get("destination", EXAMPLE_6_DESTINATION))
    source, dest = (tensor(side, axes, p.get("dtype", "i8")) for side in sides)
    move = prove_move(source, dest)
    commands = engine_commands(move)
    engines = range(RNGD.engines_per_cluster)
    groups: list[tuple[list[int], tuple[Command, ...]]] = []
    for k in engines:
        mine = commands[EngineKey(0, 0, k)]
        if groups and _form(groups[-1][1]) == _form(mine):
            groups[-1][0].append(k)
        else:
            groups.append(([k], mine))
    cluster_step = commands[EngineKey(0, 1, 0)][0].write.base
    rows = [
        _descriptor_row(ks, number, command, mine, commands, cluster_step) for ks, mine in groups for number, command in enumerate(mine)
    ]
    expect_rows_among(case, rows, ("dmn_group_k", "command"))


def _form(commands: tuple[Command, ...]) -> tuple[Any, ...]:
    """What a descriptor template is, its addresses apart."""
    return tuple((c.counts, c.packet_bytes, c.read.strides, c.write.strides) for c in commands)


def _descriptor_row(
    engines: list[int],
    number: int,
    command: Command,
    own: tuple[Command, ...],
    commands: dict[EngineKey, tuple[Command, ...]],
    cluster_step: int,
) -> dict[str, Any]:
    base = command.write.base
    if len(engines) > 1:
        engine_step = commands[EngineKey(0, 0, engines[1])][number].write.base - base
        place = f"k*{engine_step}" if base == engines[0] * engine_step else f"{base}"
    else:
        place = f"{base}"
    row = {
        "dmn_group_k": ",".join(str(k) for k in engines),
        "command": number,
        "loops": [[term.replace("A", "A'"), count] for term, count in zip(command.terms, command.counts, strict=True)],
        "packet_bytes": command.packet_bytes,
        "requests": command.requests,
        "elements_of_A": command.requests // _count_of(command, "B"),
        "hbm_strides": list(command.write.strides),
        "hbm_base": f"j*{cluster_step} + {place}",
        "dm_strides": [dm_symbol(s) for s in command.read.strides],
    }
    offset = command.read.base - own[0].read.base
    return {**row, "dm_offset": dm_symbol(offset)} if offset else row


def _count_of(command: Command, term: str) -> int:
    return dict(zip(command.terms, command.counts, strict=True))[term]


def dm_symbol(stride: int) -> int | str:
    """A DM stride as the manual writes it: slices and DMNs by symbol (DMA-033)."""
    return {SLICE_STRIDE: "slice_stride", DMN_STRIDE: "DMN_stride"}.get(stride, stride)


# --- commands from stream terms ------------------------------------------------------------------------------------------------------
def stream_command(case: Case) -> Command:
    """The command of a case that gives both tensors and the stream instead of loops (DMA-013)."""
    p, axes = case["params"], Axes(case["axes"])
    source, dest = (tensor(p[name], axes, p["dtype"]) for name in ("source", "destination"))
    counts: list[int] = []
    strides: tuple[list[int], list[int]] = ([], [])
    for term in axes.mapping(p["stream"]["time"]).terms():
        counts.append(term.size)
        for side, type_ in zip(strides, (source, dest), strict=True):
            side.append(_stride_of(term, type_))
    packet = source.dtype.bytes_of(axes.mapping(p["stream"]["packet"]).size)
    sides = [
        Side(TIERS[p[name]["tier"]], p[name].get("offset", 0), tuple(side), p[name].get("cluster", 0))
        for name, side in zip(("source", "destination"), strides, strict=True)
    ]
    return Command(tuple(counts), packet, sides[0], sides[1])


def _stride_of(term: Any, type_: TensorType) -> int:
    """Byte step of one count of a stream term in a tensor: its place in Slice and in Element."""
    stream = TensorType("Hbm", type_.dtype, term)
    box = move_boxes(TensorType(type_.tier, type_.dtype, type_.element, slice=type_.slice), stream)
    if len(box) != 1 or len(box[0].digits) != 1:
        raise Mismatch(f"the stream term {term} is no single loop of the tensor")
    step = box[0].digits[0].source
    return step[2] * SLICE_STRIDE + type_.dtype.bytes_of(step[ELEMENT])

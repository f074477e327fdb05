"""Corpus questions of the chapter on DMA and memory: commands, splits, aggregates and the interface of the movers."""

from __future__ import annotations

from typing import Any

from tcptune.exec.conformance.kinds.compare import expect_derived, expect_rows, expect_rows_among, expect_verdict, matches
from tcptune.exec.conformance.questions.dma_and_memory.aggregates import TIERS, spread_numbers, stream_command
from tcptune.exec.conformance.registry import Case, Mismatch, cost, table
from tcptune.exec.conformance.runner import corpus_files, load_cases
from tcptune.ir.types import TIER_LEVELS
from tcptune.model.engines import dma
from tcptune.model.hardware import RNGD
from tcptune.model.memory import command_model, dm
from tcptune.model.memory.command_model import DMN_STRIDE, SLICE_STRIDE, Command, CommandCost, Side
from tcptune.model.timing.calibration import MANUAL_DMA

CHAPTER = "dma_and_memory"
"""File of the corpus that holds this chapter's cases."""

_SYMBOLS = {"slice_stride": SLICE_STRIDE, "DMN_stride": DMN_STRIDE}


def _bytes(value: int | str) -> int:
    """A stride or address of the corpus, where slices and DMNs have symbols (DMA-033)."""
    return _SYMBOLS[value] if isinstance(value, str) else value


def _command(raw: dict[str, Any]) -> Command:
    sides = []
    for name in ("read", "write"):
        side = raw[name]
        strides = tuple(_bytes(loop[2]) for loop in side["loops"])
        sides.append(Side(TIERS[side["tier"]], _bytes(side.get("base", 0)), strides, side.get("cluster", 0)))
    counts = tuple(loop[1] for loop in raw["read"]["loops"])
    return Command(counts, raw["packet_bytes"], sides[0], sides[1])


# --- commands and splits -------------------------------------------------------------------------------------------------------------
@cost("dma_packet_split")
def dma_packet_split(case: Case) -> None:
    p = case["params"]
    length = p.get("packet_bytes", p.get("contiguous_bytes"))

    def run() -> dict[str, Any]:
        if p.get("as_single_packet"):
            command_model.check_packet(length)
        split = command_model.split_length(length, p.get("factorable", True))
        return {
            "axi_requests": split.requests,
            "full_requests": split.full_requests,
            "tail_bytes": split.tail_bytes,
            "commands": split.commands,
            "min_commands": split.commands,
            "single_command": split.commands == 1,
            "exceeds_max_packet": length > RNGD.max_packet_bytes,
            "max_packet_bytes": RNGD.max_packet_bytes,
            "iterations_at_max_packet": split.iterations,
            "startup_cycles": int(MANUAL_DMA.start_load.value) * split.commands,
        }

    derived = expect_verdict(case, run)
    if derived is not None:
        expect_derived(case, derived)


@cost("dma_hbm_share")
def dma_hbm_share(case: Case) -> None:
    share = command_model.hbm_share(case["params"]["engines"], case["params"].get("hbm_TB_per_s"))
    derived = {
        "read_bandwidth_TB_per_s": share.read_tb_per_s,
        "per_engine_read_TB_per_s": share.engine_tb_per_s,
        "bytes_per_cycle_at_1GHz": share.bytes_per_cycle,
        "cycles_per_256B_request": share.cycles_per_request,
        "one_request_per_cycle": share.cycles_per_request == 1,
    }
    expect_derived(case, derived)


@cost("bandwidth_ratio")
def bandwidth_ratio(case: Case) -> None:
    p = case["params"]
    channels = p["engine_GB_per_s"] / RNGD.hbm_channel_gb_per_s
    derived = {
        "engines_needed": command_model.engines_to_saturate(p["hbm_GB_per_s"], p["engine_GB_per_s"]),
        "channels_to_saturate_one_engine": command_model.engines_to_saturate(p["engine_GB_per_s"], RNGD.hbm_channel_gb_per_s),
        "channels_exact": channels,
    }
    expect_derived(case, derived)


@cost("dma_startup")
def dma_startup(case: Case) -> None:
    commands = case["params"]["commands_on_one_engine"]
    expect_derived(case, {"startup_cycles": int(MANUAL_DMA.start_load.value) * commands})


@table("dma_counter_addresses")
def dma_counter_addresses(case: Case) -> None:
    sequencer = case["sequencer"]
    loops = sequencer["loops"]
    sides = [Side("Hbm", sequencer[f"{name}_base"], tuple(loop[place] for loop in loops)) for name, place in (("read", 2), ("write", 3))]
    command = Command(tuple(loop[1] for loop in loops), 1, sides[0], sides[1])
    rows = []
    for row in case["rows"]:
        rest = row["iteration"]
        counters: list[int] = []
        for count in reversed(command.counts):
            rest, digit = divmod(rest, count)
            counters.insert(0, digit)
        read, write = (int(command.addresses(side, row["iteration"], 1)[0]) for side in (command.read, command.write))
        rows.append({"iteration": row["iteration"], "counters": counters, "read": read, "write_minus_base": write - command.write.base})
    expect_rows(case, rows)


# --- the unified cost model ----------------------------------------------------------------------------------------------------------
@cost("dma")
def dma_cost(case: Case) -> None:
    def run() -> dict[str, Any]:
        commands = _commands(case)
        total = command_model.cost(commands)
        return {**_derived(case, commands, total), **_groups(commands, total)}

    derived = expect_verdict(case, run)
    if derived is not None:
        expect_derived(case, derived, ignore=("slowdown_vs",))
        for other, want in case["expect"].get("slowdown_vs", {}).items():
            slowdown = derived["total_cycles"] / _total_of(other)
            if not matches(slowdown, want):
                raise Mismatch(f"slowdown against {other}: got {slowdown:.4f}, expected {want}")


def _commands(case: Case) -> list[list[Command]]:
    """Commands by engine: given one by one, or the one of the streamed transfer."""
    p = case["params"]
    engines = p.get("engines", p.get("engines_per_chip"))
    return [[_command(c) for c in e["commands"]] for e in engines] if engines else [[stream_command(case)]]


def _total_of(case_id: str) -> float:
    """Total of another transfer of the corpus.

    Raises:
        Mismatch: the corpus has no such transfer.
    """
    for case in (case for file in corpus_files() if file.stem == CHAPTER for case in load_cases(file)):
        if case["id"] == case_id and case.get("what") == "dma":
            return command_model.cost(_commands(case)).total_cycles
    raise Mismatch(f"the corpus has no transfer {case_id!r} to compare with")


def _groups(engines: list[list[Command]], total: CommandCost) -> dict[str, Any]:
    """Engines of one cluster by what they do: a group of several is named by its range, as in ``groups_0_to_2``."""
    found: list[tuple[int, int]] = []
    for k in range(min(len(engines), RNGD.engines_per_cluster)):
        same = found and [c.counts for c in engines[k]] == [c.counts for c in engines[found[-1][0]]]
        if same:
            found[-1] = (found[-1][0], k)
        else:
            found.append((k, k))
    groups = {}
    for first, last in found:
        commands = engines[first]
        requests = [c.requests for c in commands]
        dm_sides = [(c, s) for c in commands for s in (c.read, c.write) if s.tier == "Dm"]
        groups[f"groups_{first}_to_{last}" if last > first else f"group_{first}"] = {
            "commands": len(commands),
            "requests": requests if len(requests) > 1 else requests[0],
            "dm_cycles_per_request": max((c.dm_cycles_per_request(s) for c, s in dm_sides), default=1),
            "data_cycles": sum(c.data_cycles for c in commands),
            "startup_cycles": total.startup_cycles * len(commands),
            "total_cycles": total.engine_cycles[first],
        }
    return groups


def _derived(case: Case, engines: list[list[Command]], total: CommandCost) -> dict[str, Any]:
    first = engines[0][0]
    busiest = max(range(len(engines)), key=lambda i: total.engine_cycles[i])
    data = sum(c.data_cycles for c in engines[busiest])
    startup = total.startup_cycles * len(engines[busiest])
    dm_sides = [(c, s) for c in engines[0] for s in (c.read, c.write) if s.tier == "Dm"]
    spreads = {name: s for name, s in (("read", total.read_spread), ("write", total.write_spread)) if s is not None}
    derived: dict[str, Any] = {
        "requests_read": sum(c.requests for c in engines[busiest]),
        "requests_write": sum(c.requests for c in engines[busiest]),
        "iterations_per_direction": sum(c.packets for c in engines[busiest]),
        "packet_bytes": first.packet_bytes,
        "requests_per_packet": command_model.requests_per_packet(first.packet_bytes),
        "requests_per_engine": sum(c.requests for c in engines[0]),
        "requests_total": sum(c.requests for commands in engines for c in commands),
        "engines": len(engines),
        "read_cycles": sum(c.side_cycles(c.read) for c in engines[busiest]),
        "write_cycles": sum(c.side_cycles(c.write) for c in engines[busiest]),
        "combine": "sum" if first.is_serial else "max",
        "data_cycles": data,
        "startup_cycles": startup,
        "total_cycles": total.total_cycles,
        "address_level_total_cycles": total.total_cycles,
        "hbm": {_spread_name(case, name): spread_numbers(s) for name, s in spreads.items()},
    }
    if dm_sides:
        derived["dm_cycles_per_request"] = max(c.dm_cycles_per_request(s) for c, s in dm_sides)
        derived["dm_write_cycles_per_engine"] = sum(c.side_cycles(c.write) for c in engines[0])
    if spreads:
        busiest_spread = max(spreads.values(), key=lambda s: s.address_level_cycles)
        per_request = case["params"].get("hbm_cycles_per_request", MANUAL_DMA.hbm_request.value if MANUAL_DMA.hbm_request else 0)
        derived["channels_used"] = busiest_spread.channels_used
        derived["requests_per_channel"] = busiest_spread.busiest_channel_requests
        derived["hbm_cycles"] = busiest_spread.busiest_channel_requests * per_request
    derived["bottleneck"] = _bottleneck(engines, total)
    derived.update(_dm_use(case, engines))
    return derived


def _spread_name(case: Case, direction: str) -> str:
    """Transfers on several chips are given for one chip."""
    return f"{direction}_per_chip" if case["params"].get("chips", 1) > 1 else direction


def _bottleneck(engines: list[list[Command]], total: CommandCost) -> str:
    """What sets the total: the HBM (and how), the banks of one cluster, one DMN, or the engine."""
    first = engines[0][0]
    if total.is_hbm_bound:
        worst = max((s for s in (total.read_spread, total.write_spread) if s is not None), key=lambda s: s.address_level_cycles)
        if 2 * worst.row_switches > worst.requests:
            return "HBM row switches"
        return f"HBM ({worst.channels_used} of {RNGD.hbm_channels} channels)"
    if first.is_serial and first.read.tier == "Dm":
        return "DM banks"
    slowest = max((first.read, first.write), key=first.side_cycles)
    return "DMN" if slowest.tier == "Dm" and first.side_cycles(slowest) > first.requests else "engine"


def _dm_use(case: Case, engines: list[list[Command]]) -> dict[str, Any]:
    """Slices, DMNs and bytes a slice that the commands touch on their DM sides."""
    per_slice: dict[tuple[str, int, int], int] = {}
    for commands in engines:
        for command in commands:
            for name, side in (("read", command.read), ("write", command.write)):
                if side.tier == "Dm":
                    packets = command.addresses(side)[:: command_model.requests_per_packet(command.packet_bytes)] // SLICE_STRIDE
                    for index in set(packets.tolist()):
                        key = (name, side.cluster, int(index))
                        per_slice[key] = per_slice.get(key, 0) + int((packets == index).sum()) * command.packet_bytes
    if not per_slice:
        return {}
    places = {(cluster, index) for _, cluster, index in per_slice}
    both = sum(max((b for (n, _, _), b in per_slice.items() if n == name), default=0) for name in ("read", "write"))
    same = all(c.read.cluster == c.write.cluster for commands in engines for c in commands)
    return {
        "dm_bytes_per_slice": max(per_slice.values()),
        "dm_bytes_per_slice_total": both,
        "fits_slice_capacity": both <= RNGD.dm_bytes_per_slice,
        "slices_used": len(places),
        "dmns_used": len({(cluster, dm.slice_place(index).dmn) for cluster, index in places}),
        "same_cluster": same,
    }


# --- interface and constants ---------------------------------------------------------------------------------------------------------
@table("dma_address_alignment_bytes")
def dma_address_alignment_bytes(case: Case) -> None:
    word = RNGD.dma_alignment_bytes
    rows = [
        {"tier": "HBM", "read": dma.READ_ALIGNMENT, "write": dma.HBM_WRITE_ALIGNMENT},
        {"tier": "DM", "read": dma.READ_ALIGNMENT, "write": word},
        {"tier": "HBM<->DM", "read_address": word, "write_address": word, "packet_size": word},
    ]
    expect_rows_among(case, rows, ("tier",))


@table("dma_peak_bandwidth")
def dma_peak_bandwidth(case: Case) -> None:
    hw = RNGD
    rows = [
        {
            "tier": "HBM",
            "per": "chip",
            "TB_per_s": hw.hbm_stated_tb_per_s,
            "channels": hw.hbm_channels,
            "GB_per_s_per_channel": hw.hbm_channel_gb_per_s,
            "controller_GHz": hw.hbm_controller_ghz,
            "exact_TB_per_s": hw.hbm_gb_per_s / 1000,
        },
        {
            "tier": "DM",
            "per": "cluster",
            "bytes_per_cycle": hw.dmn_bytes_per_cycle * hw.dmns_per_engine,
            "per_dmn_bytes_per_cycle": hw.dmn_bytes_per_cycle,
        },
        {"tier": "PCIe", "direction": "read and write", "bytes_per_cycle": hw.pcie_bytes_per_cycle},
        {"tier": "DMA engine", "per": "engine", "bytes_per_cycle": hw.engine_bytes_per_cycle},
    ]
    expect_rows_among(case, rows, ("tier",))


@table("dma_cost_constants")
def dma_cost_constants(case: Case) -> None:
    hw, timing = RNGD, MANUAL_DMA
    values = {
        "startup_cycles_per_command": timing.start_load.value,
        "request_bytes": hw.request_bytes,
        "max_packet_bytes": hw.max_packet_bytes,
        "axi_beats_max": command_model.axi_beats(),
        "axi_beat_bytes": hw.axi_beat_bytes,
        "engine_requests_per_cycle": 1 / timing.issue_far.value,
        "dmn_bytes_per_cycle": hw.dmn_bytes_per_cycle,
        "hbm_channels": hw.hbm_channels,
        "hbm_controller_cycles_per_request": hw.request_bytes / hw.hbm_controller_bytes_per_cycle,
        "hbm_controller_GHz": hw.hbm_controller_ghz,
        "hbm_request_cycles_at_1GHz": timing.hbm_request and timing.hbm_request.value,
        "hbm_row_switch_cycles_per_request": timing.hbm_row_switch and timing.hbm_row_switch.value,
        "hbm_rmw_write_factor": hw.partial_hbm_write_factor,
        "hbm_unaligned_read_factor": hw.unaligned_hbm_read_factor,
        "dm_unaligned_write_factor": hw.unaligned_dm_write_factor,
        "pcie_bytes_per_cycle": hw.pcie_bytes_per_cycle,
    }
    expect_rows(case, [{"name": r["name"], "value": values.get(r["name"])} for r in case["rows"]])


@table("dma_media_pairs")
def dma_media_pairs(case: Case) -> None:
    """A pair that no engine connects has no context."""
    rows = []
    for row in case["rows"]:
        contexts = dma.CONTEXTS.get((TIERS[row["from"]], TIERS[row["to"]]), ())
        rows.append({"from": row["from"], "to": row["to"], "tdma": "tdma" in contexts, "pdma": "pdma" in contexts})
    expect_rows(case, rows)


@table("dma_destination_type_parameters")
def dma_destination_type_parameters(case: Case) -> None:
    rows = []
    for row in case["rows"]:
        dest = TIERS[row["to"]]
        kept = dma.KEPT_LEVELS.get((TIERS.get(row["from"], ""), dest), ())
        named = [level for level in TIER_LEVELS[dest] if level not in kept]
        rows.append({"from": row["from"], "to": row["to"], "kept": list(kept), "specified": named})
    expect_rows(case, rows)


@table("dma_address_symbols")
def dma_address_symbols(case: Case) -> None:
    meanings = {"slice_stride": "virtual span of one slice partition", "DMN_stride": "span between the two DMNs of a pair in one cluster"}
    stated = {"slice_stride": SLICE_STRIDE}
    rows = [{"symbol": r["symbol"], "bytes": stated.get(r["symbol"]), "meaning": meanings.get(r["symbol"])} for r in case["rows"]]
    for row in rows:
        if row["bytes"]:
            row["stated"] = f"{row['bytes'] // 2**20} MB"
    expect_rows(case, rows)

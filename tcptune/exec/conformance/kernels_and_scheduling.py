"""Corpus questions of the chapter on kernels and scheduling: schedules, banks, double buffering, register stores, the viewer."""

from __future__ import annotations

from typing import Any

from tcptune.exec.bank_runs import bank_of, run_of_loops
from tcptune.exec.conformance.compare import expect_derived
from tcptune.exec.conformance.device_tables import check_hardware as _registers_device_tables  # noqa: F401
from tcptune.exec.conformance.kernel_tables import check_hazards as _registers_kernel_tables  # noqa: F401
from tcptune.exec.conformance.registry import Case, cost, expect_equal
from tcptune.exec.conformance.tool_tables import check_filter as _registers_tool_tables  # noqa: F401
from tcptune.exec.conformance.workload_tables import check_model as _registers_workload_tables  # noqa: F401
from tcptune.exec.schedule import schedule_program
from tcptune.exec.schedule_json import LANES, from_json, lanes_of, visible
from tcptune.ir.schedule import DMA, MAIN, PCIE, SUB, VECTOR, Instruction, Launch, Program, Region, Repeat, Schedule
from tcptune.model.hardware import RNGD
from tcptune.model.memory import dm
from tcptune.model.overlap import contended_cycles, double_buffered_cycles, fits_trf_half, register_store_cycles

_RESOURCES = {"main": MAIN, "sub": SUB, "dma": DMA, "tdma": DMA, "pdma": PCIE, "VE": VECTOR, "ve": VECTOR}
_AT_ZERO = Launch(0, 0, 0)


def _instruction(raw: dict[str, Any]) -> Instruction:
    contexts = [_RESOURCES[name] for name in (raw["context"], *raw.get("also_occupies", ()))]
    accesses = int(raw.get("bank_accesses", 0))
    if accesses > dm.max_consecutive_accesses() and DMA not in contexts:
        contexts.append(DMA)
    reads, writes = (tuple(Region(name) for name in raw.get(key, ())) for key in ("reads", "writes"))
    return Instruction(raw["id"], "Main", tuple(contexts), int(raw["duration"]), reads, writes, bank_accesses=accesses)


def _final_writers(instructions: list[Instruction]) -> dict[str, str]:
    """Who wrote each buffer last, in program order, which overlapping writes keep (SCHED-016)."""
    return {region.buffer: i.id for i in instructions for region in i.writes}


@cost("schedule")
def check_schedule_case(case: Case) -> None:
    instructions = [_instruction(raw) for raw in case["params"]["ops"]]
    program = Program(tuple(instructions), (), _AT_ZERO)
    best = schedule_program(program, closing=False)
    in_source_order = schedule_program(program, ranks={i.id: n for n, i in enumerate(instructions)}, closing=False)
    writers = _final_writers(instructions)
    derived = {
        "makespan": best.makespan,
        "starts": {o.id: o.begin for o in best.operations},
        "source_order_makespan": in_source_order.makespan,
        "final_writer": writers,
        "dma_blocked": any(DMA in i.contexts and i.bank_accesses for i in instructions),
    }
    expect_derived(case, derived, ignore=("note", "formula", "reason"))


@cost("bank_contention")
def check_bank_contention(case: Case) -> None:
    p = case["params"]
    shared = min(p["main_cycles"], p["sub_cycles"]) if p["same_bank"] else 0
    expect_derived(case, {"total_cycles": contended_cycles(p["main_cycles"], p["sub_cycles"], shared)}, ignore=("formula", "note"))


@cost("bank_access_total")
def check_bank_total(case: Case) -> None:
    p = case["params"]
    total = sum(int(p[name]) for name in ("main", "sub", "dma") if name in p)
    expect_derived(case, {"total": total, "safe": total <= dm.max_consecutive_accesses()}, ignore=("note",))


@cost("bank_limit")
def check_bank_limit(case: Case) -> None:
    limit = dm.max_consecutive_accesses() + 1
    derived = {
        "max_consecutive_access_exclusive": limit,
        "product_at_63": dm.starvation_cycles(limit - 1),
        "product_at_64": dm.starvation_cycles(limit),
    }
    p = case["params"]
    facts = (RNGD.request_bytes, RNGD.dmn_bytes_per_cycle, RNGD.slices_per_dmn, RNGD.noc_timeout_cycles)
    expect_equal("parameters", facts, (p["tdma_io_byte"], p["dmn_io_byte"], p["dmn_size"], p["noc_timeout_cycles"]))
    expect_derived(case, derived, ignore=("note",))


@cost("same_bank_run")
def check_bank_run(case: Case) -> None:
    p = case["params"]
    count, stride = int(p["count"]), int(p["stride_bytes"])
    run = run_of_loops([(count, stride)])
    banks = {bank_of(i * stride) for i in range(min(count, RNGD.dm_banks_per_slice * RNGD.dm_word_bytes))}
    derived = {"longest_same_bank_run": run, "distinct_banks": len(banks), "violates_limit": run > dm.max_consecutive_accesses()}
    expect_derived(case, derived, ignore=("bank_of_address", "note"))


@cost("register_store")
def check_register_store(case: Case) -> None:
    size = int(case["params"]["bytes_per_slice"])
    derived = {
        "stream_cycles": register_store_cycles(size),
        "flits": -(-size // RNGD.flit_bytes),
        "fits_trf_half": fits_trf_half(size),
    }
    expect_derived(case, derived, ignore=("note",))


def _double_buffered(groups: int, store: int, contract: int, visible_groups: int, halves: int) -> Schedule:
    """The schedule of staging and contracting `groups` groups with `visible_groups` a scheduling unit."""

    def unit(size: int) -> tuple[Instruction, ...]:
        made = []
        for g in range(size):
            half = Region(f"half {g % halves}")
            made.append(Instruction(f"store {g}", "Sub", (SUB,), store, writes=(half,)))
            made.append(Instruction(f"contract {g}", "Main", (MAIN,), contract, reads=(half,)))
        return tuple(made)

    if visible_groups >= groups:
        return schedule_program(Program(unit(groups), (), _AT_ZERO), closing=False)
    loop = Repeat(groups // visible_groups, unit(visible_groups))
    return schedule_program(Program((loop,), (), _AT_ZERO), closing=False)


@cost("double_buffer")
def check_double_buffer(case: Case) -> None:
    p = case["params"]
    store, contract, visible_groups = p["store_cycles"], p["contract_cycles"], p["groups_per_scheduling_unit"]
    scheduled = _double_buffered(p["groups"], store, contract, visible_groups, p["trf_halves"]).makespan
    expect_equal("formula and schedule", double_buffered_cycles(p["groups"], store, contract, visible_groups), scheduled)
    expect_derived(case, {"makespan": scheduled}, ignore=("formula", "note"))


@cost("schedule_makespan")
def check_makespan(case: Case) -> None:
    schedule = from_json(case["params"]["schedule"])
    ends = [o.end for o in schedule.operations]
    last = ends.index(max(ends)) if ends else None
    expect_derived(case, {"makespan": schedule.makespan, "last_instruction": last}, ignore=("note",))


@cost("viewer_lanes_of_instruction")
def check_lanes(case: Case) -> None:
    raw = case["params"]["instruction"]
    (operation,) = from_json({"instructions": [raw]}).operations
    lanes = [lane for lane in LANES.values() if lane in lanes_of(operation.contexts, operation.kind)]
    expect_derived(case, {"lanes": lanes}, ignore=("note",))


@cost("viewer_window")
def check_window(case: Case) -> None:
    first, last = case["params"]["window"]
    clipped = [visible(begin, end, first, last) for begin, end in case["params"]["intervals"]]
    derived = {"visible": [c is not None for c in clipped], "clipped": [None if c is None else list(c) for c in clipped]}
    expect_derived(case, derived, ignore=("note",))

"""Corpus questions of the chapter on kernels and scheduling: schedules, banks, double buffering, register stores, the viewer."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tcptune.exec.conformance.kinds.compare import expect_derived
from tcptune.exec.conformance.registry import Case, cost, expect_equal
from tcptune.exec.scheduling.active_schedules import is_legal
from tcptune.exec.scheduling.bank_runs import run_of_loops
from tcptune.exec.scheduling.dependences import dependences
from tcptune.exec.scheduling.schedule import schedule_program
from tcptune.exec.scheduling.schedule_json import LANES, from_json, lanes_of, visible
from tcptune.ir.schedule import DMA, MAIN, PCIE, SUB, VECTOR, Instruction, Launch, Program, Region, Repeat, Schedule
from tcptune.model.hardware import RNGD
from tcptune.model.memory import dm
from tcptune.model.timing.overlap import contended_cycles, double_buffered_cycles, fits_trf_half, register_store_cycles

_RESOURCES = {"main": MAIN, "sub": SUB, "dma": DMA, "tdma": DMA, "pdma": PCIE, "ve": VECTOR}
_AT_ZERO = Launch(0, 0, 0)
_IN_WORDS = ("note", "formula", "reason")


def _resource(name: str) -> str:
    """The resource of this name; other names stand for resources of their own."""
    return _RESOURCES.get(name.lower(), name)


def _instruction(raw: dict[str, Any]) -> Instruction:
    """An operation of the case; one that would reach the limit of accesses to a bank holds DMA as well (SCHED-005)."""
    contexts = [_resource(name) for name in (raw["context"], *raw.get("also_occupies", ()))]
    accesses = int(raw.get("bank_accesses", 0))
    if accesses > dm.max_consecutive_accesses():
        contexts.append(DMA)
    reads, writes = (tuple(Region(name) for name in raw.get(key, ())) for key in ("reads", "writes"))
    return Instruction(raw["id"], "Main", tuple(dict.fromkeys(contexts)), int(raw["duration"]), reads, writes, bank_accesses=accesses)


def _final_writers(instructions: list[Instruction]) -> dict[str, str]:
    """Who wrote each buffer last, in program order, which overlapping writes keep (SCHED-016)."""
    return {region.buffer: i.id for i in instructions for region in i.writes}


def _starts(instructions: list[Instruction], found: Schedule, wanted: dict[str, int]) -> dict[str, int]:
    """First cycles of our schedule; the wanted ones where they are legal and as short, for there may be several such schedules."""
    begins = {o.id: o.begin for o in found.operations}
    named = {**begins, **{name: at for name, at in wanted.items() if name in begins}}
    return named if is_legal(instructions, named) and _makespan(instructions, named) == found.makespan else begins


def _makespan(instructions: list[Instruction], begins: dict[str, int]) -> int:
    return max((begins[i.id] + i.duration_cycles for i in instructions), default=0)


def _ends_in_source_order(instructions: list[Instruction]) -> list[int]:
    """Ends where every resource takes its operations in program order (SCHED-004, SCHED-013)."""
    begins: list[int] = []
    ends: list[int] = []
    free: dict[str, int] = {}
    for instruction, edges in zip(instructions, dependences(instructions), strict=True):
        ready = [(begins if e.from_begin else ends)[e.before] + e.lag_cycles for e in edges]
        begins.append(max([*ready, *(free.get(c, 0) for c in instruction.contexts)], default=0))
        ends.append(begins[-1] + instruction.duration_cycles)
        free.update(dict.fromkeys(instruction.contexts, ends[-1]))
    return ends


@cost("schedule")
def check_schedule_case(case: Case) -> None:
    instructions = [_instruction(raw) for raw in case["params"]["ops"]]
    program = Program(tuple(instructions), (), _AT_ZERO)
    ours = schedule_program(program, closing=False)
    starts = _starts(instructions, ours, case.get("expect", {}).get("starts", {}))
    derived = {
        "makespan": ours.makespan,
        "starts": starts,
        "ends": {i.id: starts[i.id] + i.duration_cycles for i in instructions},
        "source_order_makespan": max(_ends_in_source_order(instructions), default=0),
        "final_writer": _final_writers(instructions),
        "dma_blocked": any(i.bank_accesses > dm.max_consecutive_accesses() for i in instructions),
    }
    expect_derived(case, derived, ignore=_IN_WORDS)


@cost("bank_contention")
def check_bank_contention(case: Case) -> None:
    p = case["params"]
    shared = min(p["main_cycles"], p["sub_cycles"]) if p["same_bank"] else 0
    expect_derived(case, {"total_cycles": contended_cycles(p["main_cycles"], p["sub_cycles"], shared)}, ignore=_IN_WORDS)


@cost("bank_access_total")
def check_bank_total(case: Case) -> None:
    """Accesses of all requesters to one bank add up; the total stays below the limit (SCHED-006)."""
    p = case["params"]
    limit = int(p.get("limit", dm.max_consecutive_accesses() + 1))
    total = sum(int(value) for name, value in p.items() if name != "limit")
    expect_derived(case, {"total": total, "safe": total < limit}, ignore=_IN_WORDS)


@cost("bank_limit")
def check_bank_limit(case: Case) -> None:
    """The limit that the parameters give; parameters a case does not name are the device's (HW-017)."""
    p = case["params"]
    hw = replace(
        RNGD,
        request_bytes=p.get("tdma_io_byte", RNGD.request_bytes),
        dmn_bytes_per_cycle=p.get("dmn_io_byte", RNGD.dmn_bytes_per_cycle),
        slices_per_dmn=p.get("dmn_size", RNGD.slices_per_dmn),
        noc_timeout_cycles=p.get("noc_timeout_cycles", RNGD.noc_timeout_cycles),
    )
    derived = {"max_consecutive_access_exclusive": dm.max_consecutive_accesses(hw) + 1}
    for name in case.get("expect", {}):
        start, _, accesses = name.rpartition("_")
        if start == "product_at":
            derived[name] = dm.starvation_cycles(int(accesses), hw)
    expect_derived(case, derived, ignore=_IN_WORDS)


@cost("same_bank_run")
def check_bank_run(case: Case) -> None:
    """Accesses of some bytes at a stride: how long the busiest bank is hit by one access after the other, and how many banks are hit."""
    p = case["params"]
    count, stride, first = int(p["count"]), int(p["stride_bytes"]), int(p.get("base_address", 0))
    words = range(0, max(int(p.get("access_bytes", RNGD.dm_word_bytes)), 1), RNGD.dm_word_bytes)
    hit = [{dm.bank_of(first + i * stride + at) for at in words} for i in range(min(count, _COUNTED))]
    run = _longest_run(hit) if count <= _COUNTED else run_of_loops([(count, stride)])
    derived = {
        "longest_same_bank_run": run,
        "distinct_banks": len(set().union(*hit)),
        "violates_limit": run > dm.max_consecutive_accesses(),
    }
    expect_derived(case, derived, ignore=("bank_of_address", *_IN_WORDS))


_COUNTED = 1 << 14
"""Accesses that are counted one by one."""


def _longest_run(hit: list[set[int]]) -> int:
    """Most accesses in a row that hit one bank, each access hitting a set of banks."""
    longest = 0
    running: dict[int, int] = {}
    for banks in hit:
        running = {bank: running.get(bank, 0) + 1 for bank in banks}
        longest = max(longest, *running.values())
    return longest


@cost("register_store")
def check_register_store(case: Case) -> None:
    size = int(case["params"]["bytes_per_slice"])
    derived = {
        "stream_cycles": register_store_cycles(size),
        "flits": -(-size // RNGD.flit_bytes),
        "fits_trf_half": fits_trf_half(size),
    }
    expect_derived(case, derived, ignore=_IN_WORDS)


_TRF_HALVES = 2
"""Halves of the register file; with one, a store waits for the contraction before it (HW-019)."""


def _double_buffered(groups: int, store: int, contract: int, visible_groups: int, halves: int) -> Schedule:
    """The schedule of staging and contracting `groups` groups with `visible_groups` a scheduling unit."""

    def unit(size: int, mark: str = "") -> tuple[Instruction, ...]:
        made = []
        for g in range(size):
            half = Region(f"half {g % halves}")
            made.append(Instruction(f"store {g}{mark}", "Sub", (SUB,), store, writes=(half,)))
            made.append(Instruction(f"contract {g}{mark}", "Main", (MAIN,), contract, reads=(half,)))
        return tuple(made)

    units, rest = divmod(groups, visible_groups)
    loop = (Repeat(units, unit(visible_groups)),) if units > 1 else unit(visible_groups) if units else ()
    return schedule_program(Program((*loop, *unit(rest, f" of {units}")), (), _AT_ZERO), closing=False)


@cost("double_buffer")
def check_double_buffer(case: Case) -> None:
    p = case["params"]
    store, contract, visible_groups = p["store_cycles"], p["contract_cycles"], p["groups_per_scheduling_unit"]
    halves = int(p.get("trf_halves", _TRF_HALVES))
    scheduled = _double_buffered(p["groups"], store, contract, visible_groups, halves).makespan
    if halves >= _TRF_HALVES:
        expect_equal("formula and schedule", double_buffered_cycles(p["groups"], store, contract, visible_groups), scheduled)
    expect_derived(case, {"makespan": scheduled}, ignore=_IN_WORDS)


@cost("schedule_makespan")
def check_makespan(case: Case) -> None:
    schedule = from_json(case["params"]["schedule"])
    ends = [o.end for o in schedule.operations]
    last = ends.index(max(ends)) if ends else None
    expect_derived(case, {"makespan": schedule.makespan, "last_instruction": last}, ignore=_IN_WORDS)


@cost("viewer_lanes_of_instruction")
def check_lanes(case: Case) -> None:
    raw = case["params"]["instruction"]
    (operation,) = from_json({"instructions": [raw]}).operations
    lanes = [lane for lane in LANES.values() if lane in lanes_of(operation.contexts, operation.kind)]
    expect_derived(case, {"lanes": lanes}, ignore=_IN_WORDS)


@cost("viewer_window")
def check_window(case: Case) -> None:
    first, last = case["params"]["window"]
    clipped = [visible(begin, end, first, last) for begin, end in case["params"]["intervals"]]
    derived = {"visible": [c is not None for c in clipped], "clipped": [None if c is None else list(c) for c in clipped]}
    expect_derived(case, derived, ignore=_IN_WORDS)

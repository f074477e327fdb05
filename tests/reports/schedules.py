"""A small schedule and a search result made by hand for the tests of reports."""

from __future__ import annotations

from pathlib import Path

from tcptune.exec.compile import compile_kernel
from tcptune.exec.lowering.lower import lower
from tcptune.ir.schedule import CORE, DMA, MAIN, SUB, VECTOR, Buffer, Lifetime, Operation, Schedule
from tcptune.ir.workload import einsum
from tcptune.search.result import Fates, OracleSummary, Plan, SearchResult, TraceRow
from tcptune.search.template import template

OPERATIONS = (
    Operation("load a", "DmaLoad", (DMA,), 100, 300, reads=("a",), writes=("a_dm",), moved_bytes=4096, cause="start"),
    Operation("load b", "DmaLoad", (DMA,), 300, 450, reads=("b",), writes=("b_dm",), cause="resource", blocker="load a"),
    Operation("stage", "Sub", (SUB,), 300, 400, reads=("a_dm",), writes=("w",), cause="data", blocker="load a"),
    Operation("contract", "Main", (MAIN, VECTOR), 450, 700, reads=("b_dm", "w"), writes=("r",), cause="data", blocker="load b"),
    Operation("store", "DmaStore", (DMA,), 700, 900, reads=("r",), writes=("out",), cause="data", blocker="contract"),
    Operation("sync", "Core", (CORE,), 900, 1000, cause="data", blocker="store"),
)
LIFETIMES = (Lifetime(Buffer("a_dm", "Sram", 512), 0, 100, 400), Lifetime(Buffer("b_dm", "Sram", 256), 512, 300, 700))
SCHEDULE = Schedule(OPERATIONS, LIFETIMES)


def search_result() -> SearchResult:
    """A result around the template of a small GEMM, with a made-up second plan."""
    workload = einsum("ik,jk->ij", i=32, j=16, k=64, dtype="bf16")
    candidate = template(workload)
    assert candidate is not None
    compiled = compile_kernel(lower(candidate, "small"))
    terms = {"start": 1003, "load": 700, "contraction": compiled.makespan - 1703}
    placement, knobs = candidate.placement.to_json(), candidate.knobs.to_json()
    best = Plan(compiled.makespan, 2000, placement, knobs, terms, compiled.kernel, compiled.schedule, compiled.busy)
    slower = {**terms, "load": 750}
    other = compile_kernel(lower(candidate, "second"))
    second = Plan(
        best.makespan + 50,
        2000,
        {**placement, "k": {"Time": 64}},
        {**knobs, "staging": "main"},
        slower,
        other.kernel,
        other.schedule,
        other.busy,
    )
    return SearchResult(
        workload=workload.to_json(),
        hardware="RNGD",
        profile="vendor",
        seed=0,
        trials=50,
        best=best,
        top=(best, second),
        lower_bound=2000,
        proven=False,
        default=best,
        what_default="the manual's <template>",
        oracle=OracleSummary(True, 9, 0.5, 0.01, 0),
        fates=Fates(pruned=30, duplicates=2, rejected=8, scheduled=10),
        rejections={"SWITCH-003": 5, "COLLECT-003": 3},
        knob_worth={"staging": best.makespan + 120, "cast": None},
        trace=(TraceRow(1, best.makespan + 400, 2000, 0.25), TraceRow(7, best.makespan, 2000, 0.5)),
        stopped="trials",
        wall_time_s=1.5,
        command="tcptune search einsum 'ik,jk->ij' -s i=32",
    )


def files_below(folder: Path) -> set[str]:
    return {str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file()}

"""Tables of kernel patterns, oracles, scheduling and tuning."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from tcptune.errors import RuleViolation
from tcptune.exec.conformance.kinds.kernel_facts import unit_groups
from tcptune.exec.conformance.questions.kernels_and_scheduling.devices import expect_facts
from tcptune.exec.conformance.questions.kernels_and_scheduling.wording import spoken_of
from tcptune.exec.conformance.registry import Case, Mismatch, expect_equal, table
from tcptune.exec.library import patterns
from tcptune.exec.program.check import check_kernel, trip_count
from tcptune.exec.scheduling import dependences
from tcptune.exec.scheduling.instructions import lower
from tcptune.exec.scheduling.schedule_json import LANES
from tcptune.exec.validate import LOOPS, published
from tcptune.ir.formula import evaluate
from tcptune.ir.kernels.kernel import Kernel, Loop
from tcptune.ir.kernels.steps import RuntimeCount
from tcptune.ir.mappings.axes import Axes
from tcptune.ir.schedule import Repeat
from tcptune.ir.types import dtype
from tcptune.ir.workload import einsum
from tcptune.model import practice
from tcptune.model.engines import dma
from tcptune.model.numerics.elements import accumulator
from tcptune.model.timing.overlap import register_reuse

_PICTURE_CYCLES = 10
"""Uncertainty of numbers read off a picture."""


@table("double_buffer_makespans")
def check_double_buffer(case: Case) -> None:
    rows: list[dict[str, Any]] = []
    _, makespans = published()
    for name, build in LOOPS.items():
        kernel = build()
        loops = [step for step in kernel.walk() if isinstance(step, Loop)]
        kept = sum(int(loop.count) for loop in loops if not loop.unroll and isinstance(loop.count, int))
        visible = unit_groups(check_kernel(kernel))
        rows.append(
            {
                "kernel": name,
                "loop_iterations": kept,
                "visible_groups_per_scheduling_unit": visible,
                "overlap_across_iterations": visible > 1,
                "makespan_cycles": makespans[name],
                "weight_groups": max(kept, 1) * visible,
            }
        )
    expect_facts(case, rows)
    rolled, pipelined, unrolled = (makespans[name] for name in LOOPS)
    computed = {
        "saving_pipelined_vs_rolled": rolled - pipelined,
        "saving_unrolled_vs_rolled": rolled - unrolled,
        "saving_unrolled_vs_pipelined": pipelined - unrolled,
        "speedup_pipelined": round(rolled / pipelined, 4),
        "speedup_unrolled": round(rolled / unrolled, 4),
        "saving_per_pair_iteration": (rolled - pipelined) / (rows[1]["loop_iterations"]),
        "saving_per_group_unrolled": (rolled - unrolled) / rows[2]["visible_groups_per_scheduling_unit"],
    }
    for name, value in case.get("computed", {}).items():
        expect_equal(name, computed.get(name), value)


@table("contraction_definitions")
def check_definitions(case: Case) -> None:
    for row in case["rows"]:
        left, right = row["einsum"].replace(" ", "").lower().split("->")
        workload = einsum(f"{left}->{'' if right == '1' else right}", sizes=dict.fromkeys(sorted(set(left) - {","}), 8))
        summed = {axis for axis, role in workload.roles().items() if role == "k"}
        operands = left.split(",")
        expect_equal(f"{row['operation']}: summed axes", set(_SUMMED.findall(row["reduce"])), summed)
        expect_equal(f"{row['operation']}: subscripts of the factors", _SUBSCRIPT.findall(row["multiply"]) or operands, operands)
        every = set("".join(operands))
        missing = {axis for operand in operands for axis in every - set(operand)}
        expect_equal(
            f"{row['operation']}: broadcast axes", set(", ".join(_OVER.findall(row["broadcast"] or "")).lower().replace(", ", "")), missing
        )


_SUMMED, _SUBSCRIPT, _OVER = re.compile(r"sum_([a-z])"), re.compile(r"_([a-z]+)"), re.compile(r"over ([A-Z](?:, [A-Z])*)")


@table("tensor_examples")
def check_examples(case: Case) -> None:
    for row in case["rows"]:
        axes = Axes(dict(row["named_shape"]))
        expect_equal(f"rank of {row['tensor']}", len(axes), row["rank"])
        told = _sizes_of(row["example"]) if len(axes) else []
        expect_equal(f"sizes of {row['tensor']} in words", told, list(axes.values())[: len(told)])


def _sizes_of(example: str) -> list[int]:
    """Sizes that an example tells: those it counts (``2 x 4 grid``, ``4 RGB images``), or the length of a list it writes out."""
    if example.startswith("["):
        return [len(example.split(","))]
    channels = [len("RGB")] if "RGB" in example else []
    return [int(n) for n in _COUNT.findall(example)] + channels


_COUNT = re.compile(r"\b\d+\b")


@table("contraction_operand_types")
def check_operand_types(case: Case) -> None:
    for row in case["rows"]:
        for side in ("stream", "weight"):
            for name in row[side]:
                found = accumulator(dtype(name))
                expect_equal(f"accumulator of {name}", found.name if found else None, row["accumulator"])


@table("mapping_operators")
def check_operators(case: Case) -> None:
    axes = Axes({"S": 24})
    sizes = {
        "/": axes.mapping("S / 4").size * 4,
        "%": axes.mapping("S % 4").size,
        "#": axes.mapping("S # 32").size,
        "=": axes.mapping("S = 4").size,
    }
    expect_equal("sizes", sizes, {"/": 24, "%": 4, "#": 32, "=": 4})
    for row in case["rows"]:
        if row["operator"] not in sizes:
            raise Mismatch(f"no operator {row['operator']!r}")
        _expect_divides(axes, row["operator"], must="divide" in row["size"])
        size = evaluate(row["size"].split(",")[0], {"SIZE": 24, "n": 32 if row["operator"] == "#" else 4})
        expect_equal(f"size of S {row['operator']} n", sizes[row["operator"]] // (4 if row["operator"] == "/" else 1), size)


def _expect_divides(axes: Axes, operator: str, *, must: bool) -> None:
    try:
        axes.mapping(f"S {operator} {'5' if operator in '/%' else '32' if operator == '#' else '5'}")
        refused = False
    except RuleViolation:
        refused = True
    expect_equal(f"{operator} needs a divisor", refused, must)


@table("movement_paths")
def check_paths(case: Case) -> None:
    tiers = {"Host", "Hbm", "Dm"}
    for row in case["rows"]:
        if row["from"] in tiers and row["to"] in tiers:
            contexts = dma.CONTEXTS.get((row["from"], row["to"]))
            if contexts is None:
                raise Mismatch(f"no DMA moves {row['from']} to {row['to']}")
            named = row["context"].split(",")[0].split(" or ")
            expect_equal(f"contexts of {row['from']} to {row['to']}", sorted(contexts), sorted(named))
            expect_equal("asynchronous", "Host" in (row["from"], row["to"]), row["asynchronous"])
            continue
        path = f"{row['from']} to {row['to']}"
        expect_equal(f"contexts of {path}", " or ".join(("main", "sub")), row["context"])
        expect_equal(f"{path} is asynchronous", False, row["asynchronous"])


@table("next_pattern")
def check_next_pattern(case: Case) -> None:
    expect_facts(case, [{"constraint": text} for text in practice.NEXT_PATTERNS])


_TOLERANCES: dict[str, Callable[[], Kernel]] = {
    "constant_add": patterns.constant_add,
    "elementwise_mul": patterns.elementwise_mul,
    "dot_product": patterns.dot,
    "gemv": patterns.gemv,
    "gemm": patterns.gemm,
    "fetch_commit_simple": patterns.fetch_commit,
}


@table("oracle_tolerances")
def check_tolerances(case: Case) -> None:
    rows: list[dict[str, Any]] = []
    for name, build in _TOLERANCES.items():
        tolerance = build().tolerance
        if tolerance is None:
            raise Mismatch(f"{name} has no tolerance")
        exact = tolerance.form == "exact"
        rows.append({"kernel": name, "compare": "exact"} if exact else {"kernel": name, "rel": tolerance.rel, "abs": tolerance.abs})
    expect_facts(case, rows)


@table("evidence_kinds")
def check_evidence(case: Case) -> None:
    expect_facts(case, [{"order": n, "evidence": e.name, "executes": e.executes} for n, e in enumerate(practice.EVIDENCE, 1)])


@table("schedule_timeline")
def check_timeline(case: Case) -> None:
    """The picture's rows against the published schedule, within its resolution."""
    entry = published()[0]["mnist"]
    lanes = {"Main": "Main", "Sub": "Sub", "DmaLoad": "TDMA", "DmaStore": "TDMA"}
    for row in case["rows"]:
        if row["lane"] not in LANES.values():
            raise Mismatch(f"no lane {row['lane']!r}")
        if row["cycles"] != row["end"] - row["begin"]:
            raise Mismatch(f"{row['what']}: {row['cycles']} cycles from {row['begin']} to {row['end']}")
        if row["lane"] == "Core":
            continue
        near = [o for o in entry.operations if lanes[o.kind] == row["lane"] and abs(o.begin - row["begin"]) <= _PICTURE_CYCLES]
        if not any(abs(o.end - row["end"]) <= _PICTURE_CYCLES for o in near):
            raise Mismatch(f"{row['what']}: no published operation at {row['begin']} to {row['end']}")


@table("tuning_protocol")
def check_protocol(case: Case) -> None:
    _check_steps(case, practice.PROTOCOL)


@table("diagnosis_steps")
def check_diagnosis(case: Case) -> None:
    _check_steps(case, practice.DIAGNOSIS)


def _check_steps(case: Case, steps: tuple[str, ...]) -> None:
    """Every row speaks of the step of its number."""
    for row in case["rows"]:
        number = row["step"]
        if not 1 <= number <= len(steps):
            raise Mismatch(f"there is no step {number} of {len(steps)}")
        expect_equal(f"step {number}: {row['do']}", spoken_of(row["do"], steps), steps[number - 1])


@table("tuning_levers")
def check_levers(case: Case) -> None:
    expect_facts(case, [{"diagnosis": d, "lever": lever} for d, lever in practice.LEVERS.items()])


@table("comparison_record")
def check_record(case: Case) -> None:
    expect_facts(case, [{"field": f, "must_match_between_candidates": same} for f, same in practice.COMPARISON_FIELDS.items()])


@table("unroll_rules")
def check_unroll(case: Case) -> None:
    """Loops are checked and lowered; helpers are inlined before that, so a loop in one is a loop of the kernel."""
    at_compile_time, at_run_time = _can_unroll(4), _can_unroll(RuntimeCount("n"))
    facts: dict[str, tuple[str, bool]] = {
        "trip count is a compile-time constant": ("unroll_allowed", at_compile_time),
        "trip count known only at run time": ("unroll_allowed", at_run_time),
        "loop in the device entry point": ("unroll_allowed", at_compile_time),
        "loop in a helper called from the entry point": ("unroll_allowed", at_compile_time),
        "outer loop unrolled, inner loop not marked": ("inner_unrolled", not _kept_loops(_in_unrolled_loop(LOOPS["rolled"]()))),
        "any loop left in the kernel": ("register_file_reuse", register_reuse(_kept_loops(LOOPS["rolled"]()))),
        "no loop left in the kernel": ("register_file_reuse", register_reuse(_kept_loops(LOOPS["unrolled"]()))),
    }
    for row in case["rows"]:
        if row["situation"] not in facts:
            raise Mismatch(f"nothing says what happens when {row['situation']}")
        name, value = facts[row["situation"]]
        expect_equal(f"{row['situation']}: {name}", value, row[name])


def _can_unroll(count: int | RuntimeCount) -> bool:
    try:
        trip_count(Loop("i", count, (), unroll=True))
    except RuleViolation as refusal:
        expect_equal("rule", refusal.rule, "TUNE-009")
        return False
    return True


def _in_unrolled_loop(kernel: Kernel) -> Kernel:
    """The kernel with each of its loops inside an unrolled one of two iterations."""
    steps = tuple(Loop(f"outer_{step.var}", 2, (step,), unroll=True) if isinstance(step, Loop) else step for step in kernel.steps)
    return replace(kernel, steps=steps)


def _kept_loops(kernel: Kernel) -> int:
    """Loops that are left once the unrolled ones are written out."""
    return sum(isinstance(part, Repeat) for part in lower(check_kernel(kernel)).parts)


@table("hazards")
def check_hazards(case: Case) -> None:
    expect_facts(case, [{"hazard": name} for name in (dependences.RAW, dependences.WAR, dependences.WAW)])

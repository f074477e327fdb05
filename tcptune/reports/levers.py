"""The lever of a schedule in terms of its longest operation: what it moves or streams, the rule that prices it, what would shorten it.

A lever is a hypothesis to be tried alone (TUNE-005); what it says of the operation is a fact of this schedule.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from tcptune.ir.schedule import DMA, PCIE, Operation
from tcptune.model.hardware import RNGD
from tcptune.reports.kernel_costs import StepCost
from tcptune.reports.schedule_analysis import Analysis

_INSTANCE = re.compile(r"(\.\d+)?(@\d+)*\Z")
"""What the operations of a loop have behind the name of their step."""

_START = "start"


def longest(analysis: Analysis) -> Operation | None:
    """The working operation that takes the most of the critical path; the first of those that take as long."""
    working = [o for o in analysis.critical if o.kind != "Core" and o.duration_cycles]
    return max(working, key=lambda o: o.duration_cycles, default=None)


def lever_text(analysis: Analysis, costs: Sequence[StepCost] = ()) -> str:
    """The longest operation of the critical path, its share, what its cycles are made of, and the change to try; empty if nothing works.

    Args:
        costs: prices of the kernel's steps, where the schedule is that of a kernel; a schedule file has none.
    """
    operation = longest(analysis)
    if operation is None:
        return ""
    cycles = operation.duration_cycles
    head = f"longest: {operation.id} ({operation.kind}), {cycles:,} of {analysis.makespan:,} cycles ({cycles / analysis.makespan:.0%})"
    cost = next((c for c in costs if c.step == _INSTANCE.sub("", operation.id) and c.cycles is not None), None)
    if cost is None:
        moved = f": {operation.moved_bytes:,} B" if operation.moved_bytes else ""
        return f"{head}{moved}; the file does not say what they are made of, tcptune cost says it of the kernel"
    if {DMA, PCIE}.isdisjoint(operation.contexts):
        return f"{head}: {_pass(cost)}"
    return f"{head}: {cost.facts['pieces']:,} pieces of {cost.facts['run_bytes']:,} B; {_transfer(cost)}"


def _largest(cost: StepCost) -> tuple[str, float]:
    """The term of a price that counts the most."""
    return max(cost.terms, key=lambda term: term[1])


def _transfer(cost: StepCost) -> str:
    """The rule that prices a transfer, and what would shorten it."""
    term, _ = _largest(cost)
    run, line = int(cost.facts["run_bytes"]), RNGD.request_bytes
    if term == _START:
        return "most of it is the start, which every transfer has (VT-024): move more with one transfer, or hide it behind a pass"
    if run < line and cost.kind == "to_hbm":
        return f"pieces under {line} B are read, changed and written one by one (VT-027): gather or transpose first, for pieces of {line} B"
    if run < line and cost.kind == "to_dm":
        return f"pieces under {line} B take a packet each (VT-021): cut the axes so that every slice loads runs of {line} B or more"
    if cost.kind == "to_hbm":
        return "its pieces are long (VT-026): use both clusters if it does not, or let it overlap with passes on other tiles"
    if cost.kind == "to_dm":
        return (
            "its pieces are long (VT-020, VT-022): use both clusters if it does not, or let it overlap with passes on other tiles; where "
            "slices hold equal data, load fewer copies and distribute them in the Switch Engine"
        )
    return "move fewer bytes or copies, or let it overlap with passes (VT-030)"


def _pass(cost: StepCost) -> str:
    """What bounds a pass, and what would shorten it."""
    term, cycles = _largest(cost)
    if term == _START:
        return f"{cycles:,.0f} of {cost.cycles:,} cycles are its start ({cost.facts['rule']}), which every pass has: do more in one pass"
    what = f"{cycles:,.0f} of {cost.cycles:,} cycles are {term.removeprefix('+')} ({cost.facts['rule']})"
    return f"{what}: spread the work over more slices, or stream fewer packets of it"

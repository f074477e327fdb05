"""The lever names the longest operation of the critical path, its pieces, the rule and the change to try."""

from dataclasses import replace

from tcptune.cli.analyse import longest_gaps
from tcptune.exec.compile import compile_checked
from tcptune.exec.library import patterns
from tcptune.exec.program.check import check_kernel
from tcptune.ir.schedule import CORE, DMA, MAIN, VECTOR, Operation, Schedule
from tcptune.reports.diagnosis import diagnose
from tcptune.reports.kernel_costs import StepCost, kernel_costs
from tcptune.reports.levers import lever_text, longest
from tcptune.reports.schedule_analysis import analyse
from tests.reports.schedules import SCHEDULE


def advice(kernel):
    checked = check_kernel(kernel)
    return lever_text(analyse(compile_checked(checked).schedule), kernel_costs(checked))


def test_a_store_of_single_elements_is_told_to_gather():
    """The manual's GEMV stores one bf16 of 2 B from each of 256 slices (VT-027)."""
    text = advice(patterns.gemv(256, 2048))
    assert "out (DmaStore)" in text and "256 pieces of 2 B" in text and "VT-027" in text and "gather or transpose" in text


def test_the_share_is_that_of_the_makespan():
    assert longest(analyse(SCHEDULE)).id == "contract"
    assert "250 of 1,000 cycles (25%)" in lever_text(analyse(SCHEDULE))


def _pass_cost(terms):
    return StepCost("contract", "main", 250, tuple(terms.items()), {"rule": "VT-001", "bound": "flits"}, (("fetch", 1, {}),))


def test_a_pass_is_told_apart_by_what_bounds_it():
    start = lever_text(analyse(SCHEDULE), [_pass_cost({"start": 200.0, "flits": 50.0})])
    assert "200 of 250 cycles are its start (VT-001)" in start
    flits = lever_text(analyse(SCHEDULE), [_pass_cost({"start": 50.0, "flits": 200.0})])
    assert "200 of 250 cycles are flits" in flits and "more slices" in flits


def test_the_operations_of_a_loop_have_the_price_of_their_step():
    looped = Schedule(tuple(replace(o, id="contract.3@1") if o.id == "contract" else o for o in SCHEDULE.operations))
    assert "VT-001" in lever_text(analyse(looped), [_pass_cost({"start": 200.0})])


def test_fixed_cycles_that_are_the_largest_part_are_no_ill_fitting_reduction():
    load = Operation("load", "DmaLoad", (DMA,), 1000, 1500, writes=("x",), cause="start")
    short = Operation("pass", "Main", (MAIN, VECTOR), 1500, 1600, reads=("x",), writes=("y",), cause="data", blocker="load")
    sync = Operation("sync", "Core", (CORE,), 1600, 2200, cause="data", blocker="pass")
    assert "reduction" not in diagnose(analyse(Schedule((load, short, sync)))).words


def test_stalls_between_work_come_before_the_wait_of_the_core_and_the_end_of_work():
    gaps = longest_gaps(analyse(SCHEDULE))
    kinds = [gap.resource == CORE or not gap.before for gap in gaps]
    assert kinds == sorted(kinds) and not kinds[0]
    stalls = [gap.cycles for gap, late in zip(gaps, kinds, strict=True) if not late]
    assert stalls == sorted(stalls, reverse=True)

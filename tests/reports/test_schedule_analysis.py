"""Where the cycles of a schedule go: expected numbers are counted by hand or cycle by cycle."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from tcptune.ir.schedule import CORE, DMA, MAIN, RESOURCES, SUB, VECTOR, Operation, Schedule
from tcptune.reports.schedule_analysis import analyse
from tests.reports.schedules import OPERATIONS, SCHEDULE


def test_busy_and_exclusive_cycles_are_those_counted_by_hand() -> None:
    shares = {s.resource: (s.operations, s.busy, s.exclusive) for s in analyse(SCHEDULE).shares}
    # load b runs beside stage for 100 of its 150 cycles
    assert shares == {MAIN: (1, 250, 250), SUB: (1, 100, 0), VECTOR: (1, 250, 250), DMA: (3, 550, 450), CORE: (1, 100, 100)}
    assert analyse(SCHEDULE).idle == 100


def test_the_critical_path_leads_from_the_start_to_the_makespan() -> None:
    path = analyse(SCHEDULE).critical
    assert [o.id for o in path] == ["load a", "load b", "contract", "store", "sync"]
    assert path[-1].end == SCHEDULE.makespan


def test_the_critical_path_is_found_without_recorded_causes() -> None:
    bare = Schedule(tuple(replace(o, cause="", blocker="") for o in OPERATIONS))
    assert [o.id for o in analyse(bare).critical] == ["load a", "load b", "contract", "store", "sync"]


def test_every_gap_says_what_it_waits_for() -> None:
    gaps = {(g.resource, g.begin, g.end): (g.before, g.reason) for g in analyse(SCHEDULE).gaps}
    assert gaps[DMA, 450, 700] == ("store", "data of contract")
    assert gaps[MAIN, 0, 450] == ("contract", "data of load b")
    assert gaps[DMA, 0, 100] == ("load a", "launch offset")
    assert gaps[SUB, 400, 1000] == ("", "nothing left to do")


def test_slack_is_the_time_to_the_first_use() -> None:
    slack = analyse(SCHEDULE).slack
    assert slack["stage"] == 50  # ends at 400, contract begins at 450
    assert slack["load a"] == 0 and slack["contract"] == 0
    assert slack["store"] == 0  # the closing sync reads nothing, but waits for it


def test_causes_that_a_file_does_not_record_are_inferred() -> None:
    bare = Schedule(tuple(replace(o, cause="", blocker="") for o in OPERATIONS))
    gaps = {(g.resource, g.begin, g.end): (g.before, g.reason) for g in analyse(bare).gaps}
    assert gaps[DMA, 450, 700] == ("store", "data of contract")
    assert gaps[DMA, 0, 100] == ("load a", "launch offset")


def test_the_document_has_the_declared_keys() -> None:
    document = analyse(SCHEDULE).to_json()
    assert document["schema"] == "tcptune/schedule-analysis/1"
    assert {"makespan", "operations", "busy", "exclusive", "gaps", "critical", "memory"} <= document.keys()
    assert document["memory"][0] == {"name": "a_dm", "tier": "Sram", "address": 0, "size": 512, "begin": 100, "end": 400}


def test_an_empty_schedule_has_nothing_to_show() -> None:
    empty = analyse(Schedule(()))
    assert (empty.makespan, empty.idle, empty.critical, empty.gaps) == (0, 0, (), ())


_SPANS = st.lists(st.tuples(st.integers(0, 30), st.integers(1, 12), st.sampled_from([(DMA,), (SUB,), (MAIN,), (MAIN, VECTOR)])), max_size=8)


@given(_SPANS)
def test_exclusive_and_idle_cycles_agree_with_a_count_cycle_by_cycle(spans: list[tuple[int, int, tuple[str, ...]]]) -> None:
    operations = tuple(Operation(str(i), "Main", contexts, begin, begin + length) for i, (begin, length, contexts) in enumerate(spans))
    analysis = analyse(Schedule(operations))
    counted = dict.fromkeys(RESOURCES, 0)
    idle = 0
    for cycle in range(analysis.makespan):
        running = [o for o in operations if o.begin <= cycle < o.end]
        idle += not running
        for resource in RESOURCES:
            counted[resource] += bool(running) and all(resource in o.contexts for o in running)
    assert analysis.idle == idle
    assert {s.resource: s.exclusive for s in analysis.shares} == {
        r: counted[r] for r in RESOURCES if any(r in o.contexts for o in operations)
    }

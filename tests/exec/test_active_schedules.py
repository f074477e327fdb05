"""Shortest schedules of small units, against every order of placing the instructions one by one."""

from itertools import permutations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tcptune.exec.scheduling.active_schedules import is_legal, shortest_begins
from tcptune.exec.scheduling.dependences import dependences
from tcptune.exec.scheduling.schedule import schedule_program
from tcptune.ir.schedule import DMA, MAIN, SUB, VECTOR, Instruction, Launch, Program, Region


def op(name, contexts, cycles, reads="", writes=""):
    return Instruction(name, "Main", tuple(contexts), cycles, tuple(map(Region, reads)), tuple(map(Region, writes)))


def shortest(unit):
    return dict(zip((i.id for i in unit), shortest_begins(unit, dependences(unit)), strict=True))


def makespan(unit, begins):
    return max(begins[i.id] + i.duration_cycles for i in unit)


def shortest_of_all_orders(unit):
    edges = dependences(unit)
    best = None
    for order in permutations(range(len(unit))):
        if any(order.index(e.before) > order.index(i) for i in order for e in edges[i]):
            continue
        free, ends = {}, {}
        for i in order:
            at = max([0, *(ends[e.before] for e in edges[i]), *(free.get(c, 0) for c in unit[i].contexts)])
            ends[i] = at + unit[i].duration_cycles
            free |= dict.fromkeys(unit[i].contexts, ends[i])
        best = min(best or max(ends.values()), max(ends.values()))
    return best


instructions = st.builds(
    op,
    st.just(""),
    st.sampled_from([(MAIN,), (SUB,), (DMA,), (MAIN, VECTOR), (SUB, VECTOR), (MAIN, SUB), (MAIN, DMA)]),
    st.integers(1, 100),
    st.lists(st.sampled_from("ABC"), max_size=2),
    st.lists(st.sampled_from("ABC"), max_size=1),
)


@settings(max_examples=80, deadline=None)
@given(st.lists(instructions, min_size=1, max_size=5))
def test_no_order_is_shorter(drawn):
    unit = [Instruction(f"i{n}", d.kind, d.contexts, d.duration_cycles, d.reads, d.writes) for n, d in enumerate(drawn)]
    begins = shortest(unit)
    assert is_legal(unit, begins)
    assert makespan(unit, begins) == shortest_of_all_orders(unit)


def test_a_resource_is_left_idle_where_that_is_shorter():
    """`long` is ready at once, and starting it would hold back the chain behind `load` (10 + 100 + 100 cycles) on main."""
    unit = [op("load", [DMA], 10, writes="A"), op("long", [MAIN], 90), op("pass", [MAIN], 100, "A", "B"), op("store", [DMA], 100, "B")]
    begins = shortest(unit)
    assert begins["pass"] == 10
    assert makespan(unit, begins) == 210


def test_busy_resources_and_releases_are_respected():
    unit = [op("load", [DMA], 10, writes="A"), op("pass", [MAIN], 20, "A")]
    assert shortest_begins(unit, dependences(unit), {DMA: 100, MAIN: 40}, [0, 150]) == [100, 150]


def test_the_scheduler_finds_the_schedule_that_no_priority_rule_finds():
    """Every rule starts `long` at once; the shortest schedule leaves main idle until `pass` can run."""
    unit = [op("load", [DMA], 10, writes="A"), op("long", [MAIN], 90), op("pass", [MAIN], 100, "A", "B"), op("store", [DMA], 100, "B")]
    assert schedule_program(Program(tuple(unit), (), Launch(0, 0, 0)), closing=False).makespan == 210


def test_nothing_to_schedule():
    assert shortest([]) == {}


@pytest.mark.parametrize(
    "begins",
    [
        {"w": 0, "r": 4},  # reads before the write has ended
        {"w": 0, "r": -1},
    ],
)
def test_broken_schedules_are_recognised(begins):
    unit = [op("w", [DMA], 5, writes="A"), op("r", [MAIN], 5, "A")]
    assert not is_legal(unit, begins)
    assert is_legal(unit, {"w": 0, "r": 5})


def test_one_resource_is_held_once():
    unit = [op("a", [MAIN, VECTOR], 5), op("b", [SUB, VECTOR], 5)]
    assert not is_legal(unit, {"a": 0, "b": 4})
    assert is_legal(unit, {"a": 0, "b": 5})

"""Scheduling: hazards, contexts, loops and orders; every schedule is passed to the independent checker."""

from dataclasses import replace
from itertools import permutations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tcptune.errors import WorkError
from tcptune.exec.scheduling.allocate import lifetimes, plan_memory
from tcptune.exec.scheduling.check_schedule import check_schedule
from tcptune.exec.scheduling.dependences import dependence_graph
from tcptune.exec.scheduling.schedule import schedule_program
from tcptune.ir.schedule import Lag, Launch, Region, Repeat
from tests.exec.programs import CONTEXTS, begins, op, program


def scheduled(*parts, **options):
    p = program(*parts)
    schedule = schedule_program(p, **options)
    check_schedule(p, schedule)
    return schedule


def makespan(schedule):
    """Without the closing sync of 600."""
    return schedule.makespan - 600


class TestHazards:
    def test_a_consumer_waits_for_its_producer(self):
        s = scheduled(op("w", "dma", 100, writes="X"), op("r", "main", 50, reads="X"))
        assert begins(s)["r"] == 100

    def test_an_overwrite_waits_for_earlier_reads(self):
        s = scheduled(op("r", "main", 100, reads="X"), op("w", "dma", 60, writes="X"))
        assert begins(s)["w"] == 100

    def test_overlapping_writes_keep_program_order(self):
        s = scheduled(op("a", "dma", 50, writes="X"), op("b", "main", 60, writes="X"))
        assert begins(s)["b"] == 50

    def test_two_reads_are_independent(self):
        assert makespan(scheduled(op("a", "main", 100, reads="X"), op("b", "sub", 60, reads="X"))) == 100

    def test_disjoint_parts_of_a_buffer_are_independent(self):
        s = scheduled(
            op("a", "main", 100, writes=[Region("X", 0, 64)]),
            op("b", "sub", 70, writes=[Region("X", 64, 128)]),
            op("c", "dma", 10, reads=[Region("X", 32, 48)]),
            op("d", "dma", 10, reads=[Region("X", 60, 70)]),
        )
        assert begins(s)["b"] == 0
        assert begins(s)["d"] == 110

    def test_an_explicit_wait_counts_from_the_end(self):
        s = scheduled(op("a", "main", 100), op("b", "dma", 10, waits=(Lag("a", 1000),)))
        assert begins(s)["b"] == 1100


class TestResources:
    def test_operations_of_one_context_touch_without_a_gap(self):
        assert begins(scheduled(op("a", "main", 100), op("b", "main", 60))) == {"a": 0, "b": 100, "result node": 160, "closing sync": 160}

    def test_main_and_sub_share_the_vector_engine(self):
        assert makespan(scheduled(op("a", "main+ve", 100), op("b", "sub+ve", 60))) == 160
        assert makespan(scheduled(op("a", "main+ve", 100), op("b", "sub", 60))) == 100

    def test_a_register_store_from_main_takes_sub(self):
        assert makespan(scheduled(op("a", "main+sub", 100), op("b", "sub", 60))) == 160

    def test_the_cause_of_a_wait_tells_data_from_resources(self):
        s = scheduled(op("a", "main", 100, writes="X"), op("b", "main", 60), op("c", "sub", 10, reads="X"))
        causes = {o.id: (o.cause, o.blocker) for o in s.operations}
        first, second = sorted(("a", "b"), key=lambda n: begins(s)[n])
        assert causes[second] == ("resource", first)
        assert causes["c"] == ("data", "a")


class TestLoops:
    BODY = (op("store", "sub", 50, writes="T"), op("contract", "main", 80, reads="T"))

    def test_a_kept_loop_repeats_one_schedule_with_a_barrier(self):
        s = scheduled(Repeat(20, self.BODY))
        assert makespan(s) == 20 * (50 + 80)
        assert begins(s)["store@3"] == 3 * 130

    def test_every_iteration_pays_the_overhead(self):
        assert makespan(scheduled(Repeat(20, self.BODY, 256))) == 20 * (50 + 80 + 256)

    def test_code_after_a_loop_waits_for_it(self):
        s = scheduled(op("before", "dma", 500), Repeat(2, self.BODY), op("after", "dma", 10))
        assert begins(s)["store@0"] == 500
        assert begins(s)["after"] == 500 + 260

    def test_loops_nest(self):
        inner = Repeat(3, self.BODY, 10)
        s = scheduled(Repeat(2, (op("load", "dma", 100, writes="W"), inner), 1000))
        assert makespan(s) == 2 * (100 + 3 * 140 + 1000)
        assert begins(s)["store@2@1"] == 1520 + 100 + 280


class TestOrders:
    PARTS = (op("load", "dma", 500, writes="IN"), op("mm", "main", 300, reads="IN"), op("bias", "main", 200))

    def test_our_order_is_at_least_as_good_as_the_source_order(self):
        free = scheduled(*self.PARTS)
        source = scheduled(*self.PARTS, ranks={"load": 0, "mm": 1, "bias": 2})
        assert makespan(free) == 800
        assert makespan(source) == 1000

    def test_a_dma_issued_beside_a_sub_operation_starts_200_cycles_later(self):
        parts = (op("sub", "sub", 700), op("dma", "dma", 100))
        assert begins(scheduled(*parts, ranks={"sub": 0, "dma": 1}))["dma"] == 200
        assert begins(scheduled(*parts, ranks={"sub": 0, "dma": 0}))["dma"] == 0

    def test_instructions_without_a_rank_fill_in(self):
        s = scheduled(*self.PARTS, ranks={"mm": 1, "load": 0})
        assert begins(s)["bias"] == 0

    def test_an_order_that_breaks_a_dependence_yields_to_it(self):
        assert begins(scheduled(*self.PARTS, ranks={"mm": 0, "load": 1, "bias": 2}))["mm"] == 500


def test_the_launch_offsets_hold_for_core_and_the_rest():
    p = replace(program(op("a", "dma", 10)), launch=Launch(1000, 1003, 600))
    s = schedule_program(p)
    assert begins(s)["a"] == 1003
    assert s.makespan == 1003 + 10 + 600


def test_an_empty_program_still_ends_with_its_sync():
    assert schedule_program(program()).makespan == 600


@st.composite
def programs(draw, most=9):
    names = st.sampled_from("ABCDE")
    parts = []
    for i in range(draw(st.integers(1, most))):
        context = draw(st.sampled_from(sorted(CONTEXTS)))
        reads, writes = draw(st.lists(names, max_size=2)), draw(st.lists(names, max_size=1))
        parts.append(op(f"o{i}", context, draw(st.integers(1, 50)), reads, writes))
    return parts


@settings(max_examples=150, deadline=None)
@given(programs())
def test_every_schedule_passes_the_independent_checker(parts):
    p = program(*parts)
    for options in ({}, {"ranks": {o.id: i for i, o in enumerate(parts)}}, {"ranks": {o.id: -i for i, o in enumerate(parts)}}):
        check_schedule(p, schedule_program(p, **options))


@settings(max_examples=40, deadline=None)
@given(programs(most=5))
def test_no_order_of_a_small_program_is_much_better(parts):
    """Serial placement in every order contains an optimum; ours is within a fifth of it."""
    p = program(*parts)
    best = min(schedule_program(p, ranks={o.id: r for r, o in enumerate(order)}).makespan for order in permutations(parts))
    ours = schedule_program(p).makespan
    assert ours - 600 <= 1.2 * (best - 600) + 1


@settings(max_examples=60, deadline=None)
@given(programs(), st.integers(1, 3), programs(most=4))
def test_loops_and_memory_plans_pass_the_checker(parts, count, body):
    renamed = tuple(replace(o, id=f"body {o.id}") for o in body)
    p = program(*parts, Repeat(count, renamed, 7))
    plan = plan_memory(p)
    schedule = schedule_program(plan.program)
    check_schedule(plan.program, replace(schedule, lifetimes=lifetimes(plan, schedule)))


def test_the_dependence_graph_says_why():
    parts = (op("load", "dma", 5, writes="X"), op("use", "main", 7, reads="X", writes="Y"), op("again", "dma", 5, writes="X"))
    graph = dependence_graph(parts)
    assert {(a, b): d["why"] for a, b, d in graph.edges(data=True)} == {
        ("load", "use"): "read after write",
        ("load", "again"): "write after write",
        ("use", "again"): "write after read",
    }
    assert graph.nodes["use"]["cycles"] == 7


class TestTheChecker:
    PROGRAM = program(op("w", "dma", 100, writes="X"), op("r", "main", 50, reads="X"))

    def moved(self, name, by):
        s = schedule_program(self.PROGRAM)
        return replace(s, operations=tuple(replace(o, begin=o.begin + by, end=o.end + by) if o.id == name else o for o in s.operations))

    def test_it_sees_a_broken_dependence(self):
        with pytest.raises(WorkError, match="RAW on X"):
            check_schedule(self.PROGRAM, self.moved("r", -1))

    def test_it_sees_an_overlap_on_a_resource(self):
        p = program(op("a", "main", 100), op("b", "main", 50))
        s = schedule_program(p)
        broken = replace(s, operations=tuple(replace(o, begin=0, end=o.duration_cycles) for o in s.operations))
        with pytest.raises(WorkError, match="both hold MainContext"):
            check_schedule(p, broken)

    def test_it_sees_a_missing_operation(self):
        s = schedule_program(self.PROGRAM)
        with pytest.raises(WorkError, match="r is not scheduled"):
            check_schedule(self.PROGRAM, replace(s, operations=tuple(o for o in s.operations if o.id != "r")))

    def test_it_sees_a_sync_that_comes_too_early(self):
        with pytest.raises(WorkError, match="closing sync"):
            check_schedule(self.PROGRAM, self.moved("closing sync", -1))

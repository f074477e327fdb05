"""CP-SAT models against the tables and against enumeration."""

import itertools

import pytest

from tcptune.ir.placement import AxisPlacement, Placement
from tcptune.ir.workload import einsum
from tcptune.model.timing.calibration import VENDOR
from tcptune.solver.bounds import table_bounds
from tcptune.solver.order import Job, best_order
from tcptune.solver.placement import PlacementModel
from tcptune.solver.pricing import FixedCosts
from tcptune.solver.tables import Family, placement_table

FIXED = FixedCosts.of("vendor")
GEMM = Family(einsum("ik,jk->ij", i=64, j=64, k=32), 1, ("", ""))


def test_the_proven_bound_is_below_every_row_of_the_table():
    table = placement_table(GEMM)
    solved = PlacementModel(GEMM).best_bound(FIXED, VENDOR.dma)
    assert solved is not None
    assert solved.optimal
    assert solved.bound <= table_bounds(table, FIXED, VENDOR.dma).total.min()


def test_a_workload_without_legal_placement_is_proven_infeasible():
    family = Family(einsum("i,i->", i=200_000), 1, ("", ""))
    assert PlacementModel(family).best_bound(FIXED, VENDOR.dma) is None


def test_a_solve_without_time_still_gives_a_valid_bound(monkeypatch):
    monkeypatch.setattr("tcptune.solver.placement._DETERMINISTIC_LIMIT", 0.0)
    solved = PlacementModel(GEMM).best_bound(FIXED, VENDOR.dma)
    assert solved is not None and not solved.optimal
    assert solved.bound <= table_bounds(placement_table(GEMM), FIXED, VENDOR.dma).total.min()


def test_a_legal_placement_is_its_own_repair():
    placement = placement_table(GEMM).placement(17)
    solved = PlacementModel(GEMM).repair(placement)
    assert solved is not None
    assert (solved.placement, solved.objective) == (placement, 0)


def test_an_illegal_placement_is_repaired_to_a_nearest_legal_one():
    wanted = Placement(
        (AxisPlacement("i", cluster=2, slice=32, time=1), AxisPlacement("k", packet=32), AxisPlacement("j", slice=16, lane=4))
    )
    table = placement_table(GEMM)
    solved = PlacementModel(GEMM).repair(wanted)
    assert solved is not None

    def binades(a: int, b: int) -> int:
        return abs((a.bit_length() - 1) - (b.bit_length() - 1))

    def distance(p: Placement) -> int:
        levels = ("cluster", "slice", "lane", "time", "packet")
        return sum(binades(getattr(x, n), getattr(y, n)) for x, y in zip(p.axes, wanted.axes, strict=True) for n in levels)

    assert solved.placement is not None
    nearest = min(distance(table.placement(r)) for r in range(table.rows))
    assert distance(solved.placement) == nearest
    assert solved.objective == 8 * nearest


JOB_SETS = [
    [Job(824, ("dma",)), Job(731, ("dma",)), Job(775, ("sub",), (1,)), Job(393, ("main", "vector"), (0, 2)), Job(864, ("dma",), (3,))],
    [Job(5, ("a",)), Job(3, ("b",), (0,)), Job(4, ("a", "b")), Job(2, ("b",), (2,)), Job(6, ("a",), (1,))],
    [Job(7, ("a",), release=3), Job(2, ("a",)), Job(4, ("b",), (1,)), Job(1, ("a", "b"), (0, 2))],
]


@pytest.mark.parametrize("jobs", JOB_SETS)
def test_the_best_order_is_that_of_trying_all_orders(jobs):
    def serial(order: tuple[int, ...]) -> int:
        free: dict[str, int] = {}
        ends: dict[int, int] = {}
        for n in order:
            job = jobs[n]
            if any(before not in ends for before in job.after):
                return 1 << 30
            begin = max([job.release, *(free.get(c, 0) for c in job.contexts), *(ends[b] for b in job.after)])
            ends[n] = begin + job.duration_cycles
            free.update(dict.fromkeys(job.contexts, ends[n]))
        return max(ends.values())

    solved = best_order(jobs)
    assert solved.optimal
    assert solved.makespan == solved.bound == min(serial(order) for order in itertools.permutations(range(len(jobs))))


def test_a_job_may_only_wait_for_earlier_ones():
    with pytest.raises(ValueError, match="waits for a job that is not before it"):
        best_order([Job(1, ("a",), (0,))])

"""CP-SAT over the levels of the machine: the placement with the least bound, proof that none is legal, repair of an illegal suggestion.

Every axis chooses one of its options (`solver.tables.axis_options`); capacities couple them. Products of extents become sums of logarithms,
rounded down to an eighth of a binade in the objective (so a bound stays a bound) and to 2^-30 in the capacities (finer than any two
products that fit a memory). Linear sums of logarithms solve an order of magnitude faster than multiplication chains.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import floor, log2
from operator import attrgetter

from ortools.sat.python import cp_model

from tcptune.ir.placement import AxisPlacement, Placement
from tcptune.ir.types import DType
from tcptune.model.hardware import RNGD
from tcptune.model.timing.calibration import DmaTiming
from tcptune.solver.bounds import live_bytes, tensor_transfers, transfer_floor
from tcptune.solver.pricing import FixedCosts
from tcptune.solver.tables import Family, axis_options

_FINE = 1 << 30
_EIGHTHS = 8
_LEVELS = ("cluster", "slice", "lane", "time", "packet")
_DETERMINISTIC_LIMIT = 20.0
"""Deterministic time units of one solve: the same on every machine."""

_ROUNDING = 1e-6
"""Floating-point noise of a bound that is a whole number."""


@dataclass(frozen=True, slots=True)
class Solved:
    """A placement and a proven bound: no legal placement has a smaller objective than `bound` (cycles, or distance for a repair).

    `placement` is None where the limit came before any was found; the bound holds all the same.
    """

    placement: Placement | None
    objective: int
    bound: int
    optimal: bool


class PlacementModel:
    """The constraints of one family; each question adds its objective and solves once."""

    def __init__(self, family: Family) -> None:
        self.family = family
        self.options = {axis: axis_options(family, axis) for axis in family.workload.axes}
        self.model = cp_model.CpModel()
        self.chosen = {axis: [self.model.new_bool_var(f"{axis}{n}") for n in range(len(options))] for axis, options in self.options.items()}
        for choice in self.chosen.values():
            self.model.add_exactly_one(choice)
        self._capacities()

    def _sum(self, axes: tuple[str, ...], level: str, scale: int) -> cp_model.LinearExpr:
        """Logarithm of the product of the extents of `axes` at `level`, rounded down, in units of 1 / `scale` binades."""
        return self._sum_of(axes, attrgetter(level), scale)

    def _sum_of(self, axes: tuple[str, ...], extent: Callable[[AxisPlacement], int], scale: int) -> cp_model.LinearExpr:
        terms = [floor(log2(extent(option)) * scale) * chosen for axis in axes for option, chosen in self._options(axis)]
        return cp_model.LinearExpr.sum(terms) if terms else cp_model.LinearExpr.constant(0)

    def _capacities(self) -> None:
        """HW-001 (clusters, slices, one lane axis) and what every plan holds in the memories (`Family.demands`)."""
        hw, model, axes = self.family.hw, self.model, self.family.workload.axes
        model.add(self._sum(axes, "cluster", _FINE) <= _limit(hw.clusters_per_chip))
        model.add(self._sum(axes, "slice", _FINE) <= _limit(hw.slices_per_cluster))
        lanes = [c for axis in axes for o, c in self._options(axis) if o.lane > 1]
        if lanes:
            model.add_at_most_one(lanes)
        for demand in self.family.demands:
            model.add(self._sum_of(demand.axes, demand.extent, _FINE) <= _limit(demand.capacity))

    def best_bound(self, fixed: FixedCosts, timing: DmaTiming) -> Solved | None:
        """The placement with the least lower bound of its makespan; None if the solver proves that none is legal."""
        workload, family, model = self.family.workload, self.family, self.model
        others = tuple(a for a in workload.output if a not in workload.inputs[family.stream])
        flit = log2(workload.dtype.elements_in(family.hw.flit_bytes))
        streamed = self._sum(workload.inputs[family.stream], "in_slice", _EIGHTHS)
        repeats = self._sum(others, "in_slice", _EIGHTHS) - self._sum(workload.axes, "lane", _EIGHTHS)
        pack = 2 if family.packet_axis else 1
        busiest = [streamed - floor(flit * _EIGHTHS), streamed + repeats - floor((flit + log2(pack)) * _EIGHTHS)]
        cycles = model.new_int_var(0, 1 << 40, "pass")
        table = [floor(2 ** (n / _EIGHTHS)) for n in range(40 * _EIGHTHS)]
        for number, eighths in enumerate(busiest):
            index = model.new_int_var(0, len(table) - 1, f"index{number}")
            model.add(index >= eighths)
            power = model.new_int_var(0, table[-1], f"power{number}")
            model.add_element(index, table, power)
            model.add(cycles >= power)
        moved = [self._transfer(axes, element, store, timing) for axes, element, store in tensor_transfers(workload)]
        exchanged = floor(timing.start_load.value + fixed.vector_pass)  # partial sums of two clusters take a DMA and a pass that adds them
        summed = [exchanged * c for axis in self._summed for o, c in self._options(axis) if o.cluster > 1]
        model.minimize(fixed.start + fixed.contraction_pass + fixed.sync + cycles + sum(moved) + cp_model.LinearExpr.sum(summed))
        return self._solve()

    @property
    def _summed(self) -> tuple[str, ...]:
        return tuple(a for a in self.family.workload.axes if a not in self.family.workload.output)

    def _options(self, axis: str) -> zip[tuple[AxisPlacement, cp_model.IntVar]]:
        return zip(self.options[axis], self.chosen[axis], strict=True)

    def _transfer(self, axes: tuple[str, ...], element: DType, store: bool, timing: DmaTiming) -> cp_model.LinearExpr:
        """Bound of one DMA: startup and the cheapest rate for the lines of its busiest engine; two clusters share what they split.

        They may also share the store of results whose partial sums they exchange.
        """
        w = self.family.workload
        moved = live_bytes(w, axes, element)
        whole, half = (floor(transfer_floor(moved, timing, store=store, clusters=n)) for n in (1, RNGD.clusters_per_chip))
        split = [c for a in (w.axes if store else axes) for o, c in self._options(a) if o.cluster > 1]
        return whole - (whole - half) * cp_model.LinearExpr.sum(split) if split else cp_model.LinearExpr.constant(whole)

    def repair(self, wanted: Placement) -> Solved | None:
        """The legal placement nearest to `wanted` in binades over all levels; None if the solver proves that none is legal."""
        distance = []
        for axis, options in self.options.items():
            target = wanted.of(axis)
            distance += [_binades(option, target) * chosen for option, chosen in zip(options, self.chosen[axis], strict=True)]
        self.model.minimize(cp_model.LinearExpr.sum(distance))
        return self._solve()

    def _solve(self) -> Solved | None:
        """The best placement within the deterministic limit; None only if the solver proves that none is legal."""
        solver = cp_model.CpSolver()
        solver.parameters.num_workers = 1
        solver.parameters.catch_sigint_signal = False  # an interrupt stays with Python, also after the solve
        solver.parameters.random_seed = 0
        solver.parameters.max_deterministic_time = _DETERMINISTIC_LIMIT
        status = solver.solve(self.model)
        if status == cp_model.INFEASIBLE:
            return None
        bound = floor(solver.best_objective_bound + _ROUNDING)
        if status == cp_model.UNKNOWN:
            return Solved(None, 0, bound, False)
        picked = []
        for axis, options in self.options.items():
            picked.append(next(o for o, c in zip(options, self.chosen[axis], strict=True) if solver.boolean_value(c)))
        placement = Placement(tuple(picked))
        return Solved(placement, round(solver.objective_value), bound, status == cp_model.OPTIMAL)


def _limit(most: float) -> int:
    return floor(log2(most) * _FINE)


def _binades(option: AxisPlacement, wanted: AxisPlacement) -> int:
    """Distance of two placements of one axis, in eighths of a binade summed over the levels."""
    return sum(abs(round(_EIGHTHS * (log2(getattr(option, level)) - log2(getattr(wanted, level))))) for level in _LEVELS)

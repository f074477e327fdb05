"""Optuna's part: ask for knob settings of the best placements found, tell their makespans."""

from __future__ import annotations

import warnings
import zlib
from dataclasses import dataclass, field
from typing import Any

import optuna
from optuna.distributions import BaseDistribution, CategoricalDistribution, IntDistribution

from tcptune.errors import InputError
from tcptune.exec.lowering.layout import Layout
from tcptune.exec.lowering.partial_sums import CLUSTER_SUMS, SLICE_SUMS
from tcptune.exec.lowering.routes import copies_choices, route_choices
from tcptune.ir.candidate import REPLICATED, Candidate, Knobs
from tcptune.search.knobs import gather_choices, slice_orders, sum_choices
from tcptune.search.space import Space

PLACEMENTS = 8
"""Placements among which knob settings are suggested."""

_LARGE = 1 << 16
DISTRIBUTIONS: dict[str, BaseDistribution] = {
    "placement": IntDistribution(0, PLACEMENTS - 1),
    "slice_order": IntDistribution(0, _LARGE),
    "ring_0": IntDistribution(0, 15),
    "ring_1": IntDistribution(0, 15),
    "spread_0": CategoricalDistribution(("outer", "inner", "lane")),
    "spread_1": CategoricalDistribution(("outer", "inner", "lane")),
    "copies_0": IntDistribution(0, 15),
    "copies_1": IntDistribution(0, 15),
    "refetch": CategoricalDistribution((False, True)),
    "k_inner": CategoricalDistribution((True, False)),
    "lane_mode": CategoricalDistribution(("Interleaved", "Sequential")),
    "transpose": CategoricalDistribution((False, True)),
    "gather": IntDistribution(0, 31),
    "cast": CategoricalDistribution(("engine", "commit")),
    "staging": CategoricalDistribution(("sub", "main")),
    "slice_sum": CategoricalDistribution(SLICE_SUMS),
    "cluster_sum": CategoricalDistribution(CLUSTER_SUMS),
}


def draw_seed(seed: int, step: int) -> int:
    """Seed of one draw, from the study's seed and the step: a resumed study draws the same without replaying."""
    return zlib.crc32(f"{seed}:{step}".encode())


@dataclass
class Suggester:
    """Optuna over the knobs of a few placements; what it suggests follows from what it was told, so a resumed search goes on alike."""

    space: Space
    entries: list[int]
    seed: int
    told: list[optuna.trial.FrozenTrial] = field(default_factory=list)

    def ask(self, step: int) -> dict[str, Any]:
        """Parameters of the next suggestion: a function of the seed, the step and the results told so far.

        The study is made anew, because a trial that was asked for stays in it and would tell an uninterrupted search from a resumed one.
        """
        optuna.logging.set_verbosity(optuna.logging.ERROR)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
            sampler = optuna.samplers.TPESampler(seed=draw_seed(self.seed, step), multivariate=True)
        study = optuna.create_study(direction="minimize", sampler=sampler)
        study.add_trials(self.told)
        return dict(study.ask(DISTRIBUTIONS).params)

    def tell(self, params: dict[str, Any], makespan: float) -> None:
        """Raises:
        InputError: a journal holds parameters that no suggestion has.
        """
        try:
            self.told.append(optuna.trial.create_trial(params=params, distributions=DISTRIBUTIONS, value=makespan))
        except (TypeError, ValueError) as error:
            raise InputError(f"the study holds a suggestion with other parameters: {error}"[:200]) from error

    def candidate(self, params: dict[str, Any]) -> Candidate:
        """The candidate of a suggestion; numbers choose among what the placement allows."""
        entry = self.entries[params["placement"] % len(self.entries)]
        placement, start = self.space.placement(entry), self.space.start_knobs(entry)
        orders = slice_orders(placement, self.space.workload.output)
        order = orders[params["slice_order"] % len(orders)]
        knobs = Knobs(
            stationary=start.stationary,
            relayout=start.relayout,
            slice_order=order,
            refetch=params["refetch"],
            k_inner=params["k_inner"],
            lane_mode=params["lane_mode"],
            transpose=params["transpose"],
            cast=params["cast"],
            staging=params["staging"],
        )
        chosen = _choices_of(Layout(Candidate(self.space.workload, placement, knobs)), params)
        return Candidate(self.space.workload, placement, Knobs.from_json({**knobs.to_json(), **chosen}))


def _choices_of(layout: Layout, params: dict[str, Any]) -> dict[str, Any]:
    """Routes, sums and gather: those of a suggestion that the placement allows; copies are read where the load replicates."""
    routes = [route_choices(layout, n) for n in (0, 1)]
    rings, spread, copies = [], [], []
    for n in (0, 1):
        sizes = list(dict.fromkeys(size for size, _ in routes[n]))
        ring = sizes[params[f"ring_{n}"] % len(sizes)]
        rings.append(ring)
        spread.append(_wanted(params[f"spread_{n}"], [how for size, how in routes[n] if size == ring]))
        counts = copies_choices(layout, n) if ring == REPLICATED else [1]
        copies.append(counts[params[f"copies_{n}"] % len(counts)])
    sums = sum_choices(layout)
    slice_sum = _wanted(params["slice_sum"], [slices for slices, _ in sums])
    cluster_sum = _wanted(params["cluster_sum"], [clusters for slices, clusters in sums if slices == slice_sum])
    gathers = gather_choices(layout)
    gather, gather_ring = gathers[params["gather"] % len(gathers)]
    return {
        "rings": rings,
        "spread": spread,
        "copies": copies,
        "gather": gather,
        "gather_ring": gather_ring,
        "slice_sum": slice_sum,
        "cluster_sum": cluster_sum,
    }


def _wanted(name: str, allowed: list[str]) -> str:
    """The choice of that name, or the first where it is not allowed."""
    return name if name in allowed else allowed[0]

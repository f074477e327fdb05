"""The search against random sampling of its own space, and two worker processes against one.

Random sampling draws a placement and every knob uniformly, with the same number of compiled candidates; the makespan ratio search / random
is over eight workloads and five seeds, its median must be below 0.9. Two jobs must reach 1.6 times the candidates a second of one (on two
idle cores). Both are ratios within one run.
"""

from __future__ import annotations

import os
import random
import sys
from dataclasses import replace
from statistics import median
from time import perf_counter

from tcptune.exec.lowering.layout import Layout
from tcptune.exec.lowering.routes import route_choices
from tcptune.ir.candidate import Candidate
from tcptune.ir.workload import Workload, einsum
from tcptune.search.entry import tune
from tcptune.search.knobs import gather_choices, slice_orders, sum_choices
from tcptune.search.parallel import Workers, evaluate
from tcptune.search.space import Space
from tcptune.search.tuner import CHUNK

RANDOM_RATIO, JOBS_RATIO = 0.9, 1.6
TRIALS, SEEDS = 30, 5
WORKLOADS = [
    einsum("i,i->", i=2048),
    einsum("ij,j->i", i=128, j=512),
    einsum("ik,jk->ij", i=128, j=128, k=64),
    einsum("ik,kj->ij", i=128, j=128, k=64),
    einsum("vmk,kn->vmn", v=16, m=16, k=32, n=8),
    einsum("bhqd,bhkd->bhqk", b=2, h=2, q=16, k=16, d=32),
    einsum("ik,jk->ij", i=64, j=64, k=64, dtype="i8"),
    einsum("i,i->i", i=2048),
]


def random_candidate(space: Space, rng: random.Random) -> Candidate:
    """A placement and a setting of every knob, drawn uniformly."""
    entry = rng.randrange(space.entries)
    placement, start = space.placement(entry), space.start_knobs(entry)
    base = Candidate(space.workload, placement, replace(start, slice_order=rng.choice(slice_orders(placement, space.workload.output))))
    layout = Layout(base)
    gather, ring = rng.choice(gather_choices(layout))
    slice_sum, cluster_sum = rng.choice(sum_choices(layout))
    (ring_a, spread_a), (ring_b, spread_b) = (rng.choice(route_choices(layout, index)) for index in (0, 1))
    knobs = replace(
        base.knobs,
        rings=(ring_a, ring_b),
        spread=(spread_a, spread_b),
        refetch=rng.random() < 0.5,
        k_inner=rng.random() < 0.5,
        lane_mode=rng.choice(("Interleaved", "Sequential")),
        transpose=rng.random() < 0.5,
        cast=rng.choice(("engine", "commit")),
        staging=rng.choice(("sub", "main")),
        gather=gather,
        gather_ring=ring,
        slice_sum=slice_sum,
        cluster_sum=cluster_sum,
    )
    return replace(base, knobs=knobs)


def random_best(workload: Workload, seed: int, trials: int = TRIALS) -> int | None:
    """Best makespan of `trials` random candidates; refused ones count."""
    space, rng = Space(workload), random.Random(seed)
    spans = [evaluate(random_candidate(space, rng), "vendor").makespan for _ in range(trials)]
    return min((s for s in spans if s), default=None)


def against_random() -> float:
    """Median ratio of makespans, search over random sampling; random runs without any legal plan are left out."""
    ratios = []
    print(f"{'workload':<24}{'search':>10}{'random (median)':>18}{'ratio':>8}")
    for workload in WORKLOADS:
        found = [tune(workload, trials=TRIALS, seed=seed).makespan for seed in range(SEEDS)]
        drawn = [random_best(workload, seed) for seed in range(SEEDS)]
        pairs = [s / r for s, r in zip(found, drawn, strict=True) if r]
        ratios += pairs
        legal = [r for r in drawn if r]
        middle = f"{median(legal):,.0f}" if legal else "none legal"
        print(f"{workload.text:<24}{median(found):>10,.0f}{middle:>18}{median(pairs) if pairs else float('nan'):>8.2f}")
    return median(ratios)


def candidates_per_second(jobs: int, entries: int = 160) -> float:
    """Placements that are priced and compiled in a second, the start of the workers apart."""
    space = Space(einsum("bhqd,bhkd->bhqk", b=2, h=4, q=16, k=48, d=32))
    count = min(entries, space.entries)
    with Workers(space, jobs) as workers:
        workers.wait_started()
        workers.explore(range(space.entries - 8, space.entries), 1 << 40, {})
        began = perf_counter()
        for first in range(0, count, CHUNK):
            workers.explore(range(first, min(first + CHUNK, count)), 1 << 40, {})
        return count / (perf_counter() - began)


def main() -> int:
    ratio = against_random()
    one, two = candidates_per_second(1), candidates_per_second(2)
    print(f"search / random sampling, median of makespan ratios: {ratio:.2f} (below {RANDOM_RATIO})")
    print(f"placements a second: {one:.1f} with 1 job, {two:.1f} with 2: {two / one:.2f} times (at least {JOBS_RATIO} on two idle cores)")
    idle = os.getloadavg()[0] < (os.cpu_count() or 1) + 1
    return 0 if ratio < RANDOM_RATIO and (two / one >= JOBS_RATIO or not idle) else 1


if __name__ == "__main__":
    sys.exit(main())

"""Plans of tiny workloads by brute force, with choices of its own: what the search must not overlook.

Nothing here asks the search or the solver what it would try. Axes are cut by listing factors, knobs take every value that their dataclass
documents, and the lowering and the checker of kernels decide what is legal. A knob without effect, by its documentation, keeps its
default: the spread of an operand that is not spread, the ring of no gather, the sum of axes that are not split, a cast without need.
"""

import itertools
from collections.abc import Iterator
from dataclasses import replace

from tcptune.errors import RuleViolation
from tcptune.exec.lowering.layout import Layout
from tcptune.exec.lowering.partial_sums import stored_result
from tcptune.exec.lowering.result import stored_digits
from tcptune.ir.candidate import FILLER, Candidate, Knobs
from tcptune.ir.placement import AxisPlacement, Placement
from tcptune.ir.workload import Workload

CLUSTERS = (1, 2)
SLICES = tuple(1 << n for n in range(9))
LANES = (1, 2, 4, 8)
RINGS = SLICES
ACCUMULATORS = {True: "f32", False: "i32"}


def axis_cuts(size: int, lanes: tuple[int, ...], packets: tuple[int, ...]) -> Iterator[tuple[int, int, int, int, int]]:
    """(cluster, slice, lane, time, packet) of an axis, padded below twice its size, or to one packet or one set of lanes.

    A cut with more clusters and slices than live positions is left out: the same plan with fewer of them exists.
    """
    for cluster, slices, lane, packet in itertools.product(CLUSTERS, SLICES, lanes, packets):
        time = -(-size // (cluster * slices * lane * packet))
        if cluster * slices <= size and cluster * slices * lane * packet * time < max(2 * size, 2 * lane * packet):
            yield cluster, slices, lane, time, packet


def placements(workload: Workload, knobs: Knobs) -> Iterator[Placement]:
    """Every placement that fits the machine. Packets count on the innermost axis of an operand, lanes on axes of the result (`Knobs`)."""
    word, most = 64 // workload.dtype.bits, 512 // workload.dtype.bits
    innermost = [relaid or axes[-1] for relaid, axes in zip(knobs.relayout, workload.inputs, strict=True)]
    packets = tuple(p for p in SLICES if word <= p <= most)
    per_axis = []
    for axis, size in workload.sizes:
        lanes = LANES if axis in workload.output and axis in workload.inputs[knobs.stationary] else (1,)
        cuts = axis_cuts(size, lanes, (1, *packets) if axis in innermost else (1,))
        per_axis.append([AxisPlacement(axis, *cut) for cut in cuts])
    for chosen in itertools.product(*per_axis):
        placement = Placement(chosen)
        if placement.live_clusters <= CLUSTERS[-1] and placement.live_slices <= SLICES[-1] and sum(a.lane > 1 for a in chosen) <= 1:
            yield placement


def relayouts(workload: Workload) -> Iterator[tuple[str, str]]:
    """For either input no copy, or any of its axes made innermost."""
    yield from itertools.product(*[("", *axes[:-1]) for axes in workload.inputs])


def orders(placement: Placement) -> Iterator[tuple[str, ...]]:
    """Every order of the axes over slices, idle slices included."""
    names = [a.axis for a in placement.axes if a.slice > 1]
    yield from itertools.permutations([*names, FILLER] if placement.live_slices < SLICES[-1] else names)


def routes(base: Candidate, index: int) -> Iterator[tuple[int, str, int]]:
    """Every ring, spread and number of copies in HBM of one operand that the lowering takes."""
    spreads = ("outer", "inner", "lane") if base.knobs.stationary == index else ("outer", "inner")
    replicated = [(1, "outer", copies) for copies in RINGS if copies <= base.workload.hbm_copies]
    for ring, spread, copies in [*replicated, *((ring, spread, 1) for ring in RINGS[1:] for spread in spreads)]:
        try:
            Layout(routed(base, index, ring, spread, copies)).route(index)
        except RuleViolation:
            continue
        yield ring, spread, copies


def routed(base: Candidate, index: int, ring: int, spread: str, copies: int) -> Candidate:
    """The same plan with another route of one operand."""

    def put(values: tuple, value: object) -> tuple:
        return (value, values[1]) if index == 0 else (values[0], value)

    knobs = base.knobs
    return replace(
        base,
        knobs=replace(knobs, rings=put(knobs.rings, ring), spread=put(knobs.spread, spread), copies=put(knobs.copies, copies)),
    )


def finishes(base: Candidate) -> Iterator[Knobs]:
    """Every setting of pass, sum and gather for which the lowering knows where the result lies."""
    workload, placement = base.workload, base.placement
    summed = [placement.of(a) for a in workload.axes if a not in workload.output]
    outputs = [placement.of(a) for a in workload.output]
    repeated = [a for a in outputs if a.axis not in workload.inputs[1 - base.knobs.stationary] and a.in_slice > a.lane]
    refetches = (False, True) if repeated else (False,)
    nestings = (True, False) if any(a.in_slice > 1 for a in summed) and any(a.in_slice > 1 for a in outputs) else (True,)
    slice_sums = ("reducer", "gather", "exchange", "transfer") if any(a.slice > 1 for a in summed) else ("reducer",)
    cluster_sums = ("one", "scatter") if any(a.cluster > 1 for a in summed) else ("one",)
    casts = ("engine", "commit") if workload.out_dtype.name != ACCUMULATORS[workload.dtype.is_float] else ("engine",)
    gathers = [("none", 1), *itertools.product(("exchange", "collect"), RINGS[1:] if workload.output else ())]
    transposes = (False, True) if workload.output else (False,)
    for refetch, k_inner, mode, transpose, slice_sum, cluster_sum, (gather, ring) in itertools.product(
        refetches, nestings, ("Interleaved", "Sequential"), transposes, slice_sums, cluster_sums, gathers
    ):
        knobs = replace(
            base.knobs, refetch=refetch, k_inner=k_inner, lane_mode=mode, transpose=transpose, gather=gather, gather_ring=ring,
            slice_sum=slice_sum, cluster_sum=cluster_sum,
        )  # fmt: skip
        layout = Layout(replace(base, knobs=knobs))
        try:
            stored_digits(layout, stored_result(layout))
        except RuleViolation:
            continue
        for cast in casts:
            yield replace(knobs, cast=cast)


def plans(workload: Workload) -> Iterator[Candidate]:
    """Every plan for which there are routes and a place of the result; whether it is legal the checker of kernels decides."""
    for stationary, relayout in itertools.product((0, 1), relayouts(workload)):
        start = Knobs(stationary, relayout=relayout)
        for placement in placements(workload, start):
            for order in orders(placement):
                base = Candidate(workload, placement, replace(start, slice_order=order))
                first, second = list(routes(base, 0)), list(routes(base, 1))
                for one, other, staging in itertools.product(first, second, ("sub", "main")):
                    plan = routed(routed(base, 0, *one), 1, *other)
                    plan = replace(plan, knobs=replace(plan.knobs, staging=staging))
                    for knobs in finishes(plan):
                        yield replace(plan, knobs=knobs)

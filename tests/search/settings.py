"""Every setting of the knobs of a placement, by brute force: what the search must not overlook."""

import itertools
from collections.abc import Iterator
from dataclasses import replace

from tcptune.exec.lowering.layout import Layout
from tcptune.exec.lowering.routes import route_choices
from tcptune.ir.candidate import Candidate
from tcptune.search.knobs import gather_choices, slice_orders, sum_choices
from tcptune.search.space import Space


def routes(base: Candidate) -> Iterator[Candidate]:
    """All rings and spreads of both operands that have a route at all."""
    layout = Layout(base)
    choices = []
    for index in (0, 1):
        found = route_choices(layout, index)
        choices.append(found)
    for (r0, s0), (r1, s1) in itertools.product(*choices):
        yield replace(base, knobs=replace(base.knobs, rings=(r0, r1), spread=(s0, s1)))


def all_settings(space: Space, entry: int) -> Iterator[Candidate]:
    placement, start = space.placement(entry), space.start_knobs(entry)
    for order in slice_orders(placement, space.workload.output):
        base = Candidate(space.workload, placement, replace(start, slice_order=order))
        for routed in routes(base):
            for refetch, k_inner, mode, transpose, (gather, ring), (slice_sum, cluster_sum), staging, cast in itertools.product(
                (False, True),
                (True, False),
                ("Interleaved", "Sequential"),
                (False, True),
                gather_choices(Layout(base)),
                sum_choices(Layout(base)),
                ("sub", "main"),
                ("engine", "commit"),
            ):
                knobs = replace(
                    routed.knobs,
                    refetch=refetch,
                    k_inner=k_inner,
                    lane_mode=mode,
                    transpose=transpose,
                    gather=gather,
                    gather_ring=ring,
                    slice_sum=slice_sum,
                    cluster_sum=cluster_sum,
                    staging=staging,
                    cast=cast,
                )
                yield replace(routed, knobs=knobs)

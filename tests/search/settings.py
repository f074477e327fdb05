"""Every setting of the knobs of a placement, by brute force: what the search must not overlook."""

import itertools
from collections.abc import Iterator
from dataclasses import replace

from tcptune.errors import RuleViolation
from tcptune.exec.lowering.layout import Layout
from tcptune.ir.candidate import Candidate
from tcptune.search.knobs import gather_choices, ring_choices, slice_orders, sum_choices
from tcptune.search.space import Space

SPREADS = ("outer", "inner", "lane")


def routes(base: Candidate) -> Iterator[Candidate]:
    """All rings and spreads of both operands that have a route at all."""
    layout = Layout(base)
    choices = []
    for index in (0, 1):
        found = []
        for ring, spread in itertools.product(ring_choices(layout, index), SPREADS):
            if ring == 1 and spread != "outer":
                continue
            rings, spreads = [1, 1], ["outer", "outer"]
            rings[index], spreads[index] = ring, spread
            try:
                Layout(replace(base, knobs=replace(base.knobs, rings=tuple(rings), spread=tuple(spreads)))).route(index)
            except RuleViolation:
                continue
            found.append((ring, spread))
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

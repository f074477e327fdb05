"""Redistribution as the device API offers it, and the routings that have a synchronisation protocol (REDIST-002, REDIST-017, REDIST-019).

Plans and their meaning are in `model.redistribution`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tcptune.errors import RuleViolation
from tcptune.model.redistribution import Syncs

Place = tuple[int, int]
"""Chip and cluster."""


@dataclass(frozen=True, slots=True)
class RedistributionCall:
    """One call of the redistribution API (REDIST-002)."""

    call: str
    selects: str
    element_change: str
    execution: str
    works_on: str


_DEFERRED, _SUB = "deferred tensor DMA", "immediate sub-context parallel copy"
_TENSOR_OR_VIEW, _TENSOR = "Dm tensor or view", "Dm tensor"
_OUTPUT, _REMOVED = "Element becomes Output", "Axis removed from Element"

REDISTRIBUTION_CALLS = (
    RedistributionCall("chip_shuffle(sources)", "one source chip per target chip", "none", _DEFERRED, _TENSOR_OR_VIEW),
    RedistributionCall("cluster_swap()", "exchanges clusters 0 and 1 in every chip", "none", _DEFERRED, _TENSOR_OR_VIEW),
    RedistributionCall("chip_slice<Axis, Output>(indices)", "one Axis coordinate per target chip", _OUTPUT, _DEFERRED, _TENSOR_OR_VIEW),
    RedistributionCall(
        "cluster_slice<Axis, Output>(indices)", "one Axis coordinate per target cluster", _OUTPUT, _DEFERRED, _TENSOR_OR_VIEW
    ),
    RedistributionCall("asymmetric_chip_slice<Axis, Output>(sub, indices)", "one local Axis coordinate per chip", _REMOVED, _SUB, _TENSOR),
    RedistributionCall(
        "asymmetric_cluster_slice<Axis, Output>(sub, indices)", "one local Axis coordinate per cluster", _REMOVED, _SUB, _TENSOR
    ),
    RedistributionCall(
        "hbm_chip_shuffle(dma, sources)", "one source chip per target HBM chip", "none", "immediate HBM DMA", "Hbm tensor or view"
    ),
)
"""The calls in the manual's order."""


def check_routing(sources: Sequence[Place], chips: int, clusters: int) -> Syncs:
    """Syncs of a routing that gives the source place of every target, chip-major.

    Raises:
        RuleViolation: REDIST-017 where the source chip depends on the target's cluster, the source cluster on the target's chip, or one
            place feeds two targets: no protocol synchronises such a routing.
    """
    targets = [(t, k) for t in range(chips) for k in range(clusters)]
    if len(sources) != len(targets):
        raise RuleViolation("REDIST-017", "a routing names one source for every target", got=len(sources), expected=len(targets))
    chip_of: dict[int, int] = {}
    cluster_of: dict[int, int] = {}
    for (t, k), (source_chip, source_cluster) in zip(targets, sources, strict=True):
        for seen, target, source, what in ((chip_of, t, source_chip, "chip"), (cluster_of, k, source_cluster, "cluster")):
            if seen.setdefault(target, source) != source:
                raise RuleViolation(
                    "REDIST-017",
                    f"{what} {target} would read {what} {seen[target]} and {what} {source}",
                    got=list(sources),
                    expected=f"one source {what} for every target {what}",
                )
    if len(set(chip_of.values())) != chips or len(set(cluster_of.values())) != clusters:
        raise RuleViolation(
            "REDIST-017",
            "one place feeds two targets",
            got=list(sources),
            expected="a permutation of chips and one of clusters",
            also=("REDIST-015",),
        )
    return Syncs(any(t != s for t, s in chip_of.items()), any(k != s for k, s in cluster_of.items()))

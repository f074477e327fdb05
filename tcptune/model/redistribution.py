"""Redistribution between chips and clusters: plans, their routing, their demands on the source, and the syncs they insert (REDIST, COLL).

A plan is at most one chip shuffle, at most one cluster swap, then chip slices, then cluster slices (REDIST-009). Its meaning (REDIST-010),
with shuffle s, chip slices (a, u) and cluster slices (b, v): ``out[t, k, rest] = in[s[t], swap ? 1 - k : k, a = u[t], b = v[k], rest]``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from tcptune.errors import InputError, RuleViolation
from tcptune.ir.kernels.steps import PlanEntry
from tcptune.ir.mappings.mapping import Mapping, broadcast, pair
from tcptune.ir.types import TensorType
from tcptune.model.mappings.movement import Digits, carried_digits
from tcptune.model.mappings.tiles import positions, split_out

STAGES = ("chip_shuffle", "cluster_swap", "chip_slice", "cluster_slice")
ONCE = ("chip_shuffle", "cluster_swap")


@dataclass(frozen=True)
class AxisSlice:
    """One axis taken out of Element: `before` x `count` x `after` positions, of which target p of `level` keeps `indices[p]`."""

    level: str
    before: int
    count: int
    after: int
    indices: tuple[int, ...]


@dataclass(frozen=True)
class Syncs:
    """Synchronisation protocols of one transfer (REDIST-019)."""

    chip: bool = False
    cluster: bool = False


@dataclass(frozen=True)
class Route:
    """A checked plan.

    Attributes:
        chip_sources: source chip of every target chip.
        cluster_sources: source cluster of every target cluster.
        slices: axes taken out, in order.
        result: type of the plan's result in the source's layout, before the terminal lays it out anew.
        footprint: the same with the places of the removed axes kept, as the read side of the transfer steps through them.
    """

    chip_sources: tuple[int, ...]
    cluster_sources: tuple[int, ...]
    slices: tuple[AxisSlice, ...]
    result: TensorType
    footprint: TensorType

    @property
    def syncs(self) -> Syncs:
        chip = any(t != s for t, s in enumerate(self.chip_sources))
        cluster = any(k != s for k, s in enumerate(self.cluster_sources))
        return Syncs(chip, cluster)


def _live(level: Mapping) -> list[bool]:
    return [bool(x) for x in level.table().live]


def check_sources(level: Mapping, sources: Sequence[int], what: str, also: tuple[str, ...] = ()) -> None:
    """One source per position, a permutation, and every live target reads a live source.

    Raises:
        RuleViolation: REDIST-015.
    """
    if len(sources) != level.size or sorted(sources) != list(range(level.size)):
        raise RuleViolation(
            "REDIST-015", f"{what} has to be a permutation of {level.size} positions", expected=f"each of 0 to {level.size - 1} once",
            got=list(sources), also=also,
        )  # fmt: skip
    live = _live(level)
    for target, source in enumerate(sources):
        if live[target] and not live[source]:
            raise RuleViolation(
                "REDIST-015", f"live position {target} reads the padding position {source} of {level}", got=list(sources), also=also
            )


def take_axis(element: Mapping, axis: Mapping, output: Mapping, indices: Sequence[int], targets: int, level: str) -> AxisSlice:
    """The slice that removes `axis` from `element`.

    Raises:
        RuleViolation: REDIST-018 if the joined axes are apart; REDIST-007 or REDIST-008 for a wrong output; REDIST-016 for indices.
    """
    owner = "REDIST-007" if level == "chip" else "REDIST-008"
    ways = split_out(element, axis)
    if not ways:
        if len(axis.terms()) > 1 and all(split_out(element, term) for term in axis.terms()):
            raise RuleViolation("REDIST-018", f"the axes {axis} are not adjacent in {element}", got=axis, also=(owner,))
        raise RuleViolation(owner, f"{axis} is not a part of {element}", expected=f"a factor of {element}", got=axis, also=("REDIST-018",))
    way = next((w for w in ways if pair(*w[0], *w[1]).equivalent(output)), None)
    if way is None:
        expected = pair(*ways[0][0], *ways[0][1])
        message = f"the output must be {element} without {axis}"
        raise RuleViolation(owner, message, expected=expected, got=output, nearest=expected, also=("REDIST-002",))
    live = _live(axis)
    if len(indices) != targets:
        raise RuleViolation(
            "REDIST-016", f"{targets} {level} positions need one index each", expected=targets, got=list(indices), also=("COLL-002",)
        )
    for index in indices:
        if not 0 <= index < axis.size or not live[index]:
            message = f"index {index} is not a live position of {axis}"
            raise RuleViolation(
                "REDIST-016", message, expected=f"0 to {axis.live_size - 1}", got=list(indices), also=("COLL-002", "REDIST-013")
            )
    before, after = way
    return AxisSlice(level, positions(before), axis.size, positions(after), tuple(indices))


def without_axis(element: Mapping, axis: Mapping) -> Mapping:
    """`element` with one position of `axis` left and its footprint kept; holes of axes taken out before may lie between its parts."""
    ways = split_out(element, axis)
    if ways:
        before, after = ways[0]
        return pair(*before, broadcast(1).pad(axis.size), *after)
    taken = carried_digits((axis,))
    return pair(*(broadcast(1).pad(term.size) if term.axes and _is_within(term, taken) else term for term in element.terms()))


def _is_within(term: Mapping, taken: dict[str, Digits]) -> bool:
    """Whether every digit of a term belongs to the digits `taken`."""
    return all(
        any(w <= weight and weight * extent <= w * n for w, n in taken.get(axis, ()))
        for axis, digits in carried_digits((term,)).items()
        for weight, extent in digits
    )


def check_order(plan: Sequence[PlanEntry]) -> None:
    """Raises:
    RuleViolation: REDIST-009 if stages are out of order or a shuffle or swap comes twice.
    """
    seen: list[str] = []
    for entry in plan:
        if entry.op in ONCE and entry.op in seen:
            raise RuleViolation(
                "REDIST-009", f"a plan has at most one {entry.op}", got=[e.op for e in plan], expected=" then ".join(STAGES)
            )
        if any(STAGES.index(before) > STAGES.index(entry.op) for before in seen):
            message = f"{entry.op} cannot follow {seen[-1]}"
            raise RuleViolation("REDIST-009", message, got=[e.op for e in plan], expected=" then ".join(STAGES))
        seen.append(entry.op)


def check_plan(source: TensorType, plan: Sequence[PlanEntry], source_levels: Sequence[str] = ()) -> Route:
    """Routing of a plan that starts from a tensor of type `source`.

    Args:
        source_levels: levels on which the source is a tile.

    Raises:
        RuleViolation: REDIST-001, 003, 007 to 009, 014 to 016, 018.
    """
    if source.tier != "Dm":
        raise RuleViolation(
            "REDIST-001", f"a redistribution starts from a DM tensor, not from {source.tier}", got=source.tier, also=("REDIST-003",)
        )
    for level in source_levels:
        if level != "element":
            raise RuleViolation(
                "REDIST-003", f"a {level} tile cannot be redistributed", got=f"{level} tile", expected="a tensor or an Element tile"
            )
    check_order(plan)
    chips: tuple[int, ...] = tuple(range(source.chip.size))
    clusters: tuple[int, ...] = tuple(range(source.cluster.size))
    element = footprint = source.element
    slices: list[AxisSlice] = []
    for entry in plan:
        if entry.op == "chip_shuffle":
            check_sources(source.chip, entry.sources, "the source list", ("REDIST-004",))
            chips = entry.sources
        elif entry.op == "cluster_swap":
            if source.cluster.size != 2:
                raise RuleViolation(
                    "REDIST-014", "cluster_swap exchanges two clusters", expected=2, got=source.cluster.size, also=("REDIST-006",)
                )
            check_sources(source.cluster, (1, 0), "a swap", ("REDIST-014", "REDIST-006"))
            clusters = (1, 0)
        else:
            level = "chip" if entry.op == "chip_slice" else "cluster"
            if entry.axis is None or entry.output is None:
                raise InputError(f"{entry.op} needs axis and output")
            targets = len(chips) if level == "chip" else len(clusters)
            slices.append(take_axis(element, entry.axis, entry.output, entry.indices, targets, level))
            element = entry.output
            footprint = without_axis(footprint, entry.axis)
    return Route(chips, clusters, tuple(slices), replace(source, element=element), replace(source, element=footprint))


def check_asymmetric(source: TensorType, level: str, axis: Mapping, output: Mapping, indices: Sequence[int]) -> Route:
    """Routing of a slice on the sub context: every chip or cluster keeps its own index, no data crosses (REDIST-013).

    Raises:
        RuleViolation: REDIST-013 outside DM; the rules of `take_axis`.
    """
    if source.tier != "Dm":
        raise RuleViolation("REDIST-013", f"an asymmetric slice works on a DM tensor, not on {source.tier}", got=source.tier)
    targets = getattr(source, level).size
    taken = take_axis(source.element, axis, output, indices, targets, level)
    return Route(tuple(range(source.chip.size)), tuple(range(source.cluster.size)), (taken,), replace(source, element=output), source)


def check_hbm_shuffle(source: TensorType, sources: Sequence[int]) -> Route:
    """Routing of an HBM chip shuffle (REDIST-005).

    Raises:
        RuleViolation: REDIST-005 outside HBM, REDIST-015 for a bad source list.
    """
    if source.tier != "Hbm":
        raise RuleViolation("REDIST-005", f"hbm_chip_shuffle works on an HBM tensor, not on {source.tier}", got=source.tier)
    check_sources(source.chip, sources, "the source list", ("REDIST-005",))
    return Route(tuple(sources), (0,), (), source, source)


def syncs_of_move(source: TensorType, destination: TensorType) -> Syncs:
    """Syncs of a plain DM to DM transfer: data cross chips or clusters where their mapping changes (COLL-005)."""
    if source.tier != "Dm" or destination.tier != "Dm":
        return Syncs()
    chip = not source.chip.equivalent(destination.chip)
    return Syncs(chip, not source.cluster.equivalent(destination.cluster))

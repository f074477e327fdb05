"""Redistribution plans: routing, order, axes and syncs."""

import pytest

from tcptune.errors import RuleViolation
from tcptune.ir.kernels.steps import PlanEntry
from tcptune.ir.mappings.axes import Axes
from tcptune.ir.types import TensorType, dtype
from tcptune.model.redistribution import check_asymmetric, check_hbm_shuffle, check_plan, syncs_of_move

AXES = Axes(P=4, K=2, B=4, C=8, D=8)


def tensor(tier="Dm", chip="P", cluster="K", element="B, C, D"):
    levels = {"chip": AXES.mapping(chip), "element": AXES.mapping(element)}
    if tier == "Dm":
        levels |= {"cluster": AXES.mapping(cluster), "slice": AXES.mapping("1 # 256")}
    return TensorType(tier, dtype("i32"), **levels)


def plan(*entries):
    return [PlanEntry.from_json(e, AXES) for e in entries]


SHUFFLE = {"op": "chip_shuffle", "sources": [1, 2, 3, 0]}
SWAP = {"op": "cluster_swap"}
CHIP_B = {"op": "chip_slice", "axis": "B", "output": "C, D", "indices": [0, 1, 2, 3]}
CLUSTER_C = {"op": "cluster_slice", "axis": "C", "output": "D", "indices": [3, 7]}


def test_the_full_plan_of_the_manual():
    route = check_plan(tensor(), plan(SHUFFLE, SWAP, CHIP_B, CLUSTER_C))
    assert route.chip_sources == (1, 2, 3, 0)
    assert route.cluster_sources == (1, 0)
    assert [(s.level, s.before, s.count, s.after, s.indices) for s in route.slices] == [
        ("chip", 1, 4, 64, (0, 1, 2, 3)),
        ("cluster", 1, 8, 8, (3, 7)),
    ]
    assert str(route.result.element) == "D"
    assert route.footprint.element.size == 256
    assert (route.syncs.chip, route.syncs.cluster) == (True, True)


@pytest.mark.parametrize(
    ("entries", "chip", "cluster"),
    [((SHUFFLE,), True, False), ((SWAP,), False, True), ((CHIP_B,), False, False), (({**SHUFFLE, "sources": [0, 1, 2, 3]},), False, False)],
)
def test_syncs_follow_what_moves(entries, chip, cluster):
    syncs = check_plan(tensor(), plan(*entries)).syncs
    assert (syncs.chip, syncs.cluster) == (chip, cluster)


def test_a_plain_move_syncs_where_a_level_changes():
    assert syncs_of_move(tensor(), tensor(chip="4", element="P, B, C, D")).chip
    assert not syncs_of_move(tensor("Hbm"), tensor()).chip


@pytest.mark.parametrize(
    ("rule", "entries"),
    [
        ("REDIST-009", (SWAP, SHUFFLE)),
        ("REDIST-009", (SHUFFLE, SHUFFLE)),
        ("REDIST-009", (CLUSTER_C, CHIP_B)),
        ("REDIST-015", ({**SHUFFLE, "sources": [0, 0, 1, 2]},)),
        ("REDIST-015", ({**SHUFFLE, "sources": [1, 0]},)),
        ("REDIST-016", ({**CHIP_B, "indices": [0, 1, 2, 4]},)),
        ("REDIST-016", ({**CHIP_B, "indices": [0, 1]},)),
        ("REDIST-007", ({**CHIP_B, "output": "D, C"},)),
        ("REDIST-018", ({**CHIP_B, "axis": "B, D", "output": "C"},)),
    ],
)
def test_a_plan_that_breaks_a_rule(rule, entries):
    with pytest.raises(RuleViolation) as caught:
        check_plan(tensor(), plan(*entries))
    assert rule in (caught.value.rule, *caught.value.also)


def test_joined_axes_are_one_linear_index():
    joined = {"op": "chip_slice", "axis": "B, C", "output": "D", "indices": [0, 9, 18, 31]}
    (taken,) = check_plan(tensor(), plan(joined)).slices
    assert (taken.before, taken.count, taken.after) == (1, 32, 8)


def test_padding_is_no_source_and_no_index():
    axes = Axes(P=3, B=3, D=8)
    source = TensorType("Dm", dtype("i32"), axes.mapping("B # 4, D"), axes.mapping("P # 4"), axes.mapping("1 # 2"), axes.mapping("1 # 256"))
    for entry in (
        {"op": "chip_shuffle", "sources": [3, 1, 2, 0]},
        {"op": "chip_slice", "axis": "B # 4", "output": "D", "indices": [0, 1, 3, 2]},
    ):
        with pytest.raises(RuleViolation) as caught:
            check_plan(source, [PlanEntry.from_json(entry, axes)])
        assert caught.value.rule in ("REDIST-015", "REDIST-016")


def test_chip_and_cluster_tiles_are_no_source():
    with pytest.raises(RuleViolation) as caught:
        check_plan(tensor(), plan(SWAP), ["chip"])
    assert caught.value.rule == "REDIST-003"
    assert check_plan(tensor(), plan(SWAP), ["element"])


def test_a_swap_needs_two_clusters():
    with pytest.raises(RuleViolation) as caught:
        check_plan(tensor(cluster="1"), plan(SWAP))
    assert caught.value.rule == "REDIST-014"


def test_slices_on_sub_move_nothing_between_chips():
    route = check_asymmetric(tensor(), "cluster", AXES.mapping("B"), AXES.mapping("C, D"), [1, 0])
    assert (route.syncs.chip, route.syncs.cluster) == (False, False)
    with pytest.raises(RuleViolation):
        check_asymmetric(tensor(), "cluster", AXES.mapping("B"), AXES.mapping("C, D"), [1, 0, 1])


def test_an_hbm_shuffle_is_a_permutation_of_chips():
    assert check_hbm_shuffle(tensor("Hbm"), [1, 2, 3, 0]).chip_sources == (1, 2, 3, 0)
    with pytest.raises(RuleViolation):
        check_hbm_shuffle(tensor("Hbm"), [1, 1, 3, 0])
    with pytest.raises(RuleViolation):
        check_hbm_shuffle(tensor(), [1, 2, 3, 0])

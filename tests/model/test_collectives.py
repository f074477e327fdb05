"""Collectives over chips: who reads whom, how often they synchronise, and what rounding does."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tcptune.errors import RuleViolation
from tcptune.ir.types import dtype
from tcptune.model import collectives
from tcptune.model.engines.gather import row_bytes, scaled_index
from tcptune.model.engines.redistribute import check_routing


@pytest.mark.parametrize("chips", [2, 4, 8])
def test_every_round_of_a_reduce_scatter_is_a_permutation_and_all_shards_arrive(chips: int) -> None:
    rounds = collectives.reduce_scatter_rounds(chips)
    for target, sources in enumerate(rounds):
        assert {chip for chip, _ in sources} == set(range(chips))
        assert {shard for _, shard in sources} == {target}
    for r in range(chips):
        assert len({rounds[t][r][0] for t in range(chips)}) == chips


@given(st.lists(st.integers(-100, 100), min_size=8, max_size=8))
def test_integer_sums_agree_in_every_algorithm(values: list[int]) -> None:
    add: Callable[[int, int], int] = lambda a, b: a + b
    assert collectives.butterfly_reduce(values, add) == [sum(values)] * 8
    assert [collectives.cyclic_reduce(values, add, t) for t in range(8)] == [sum(values)] * 8


def test_float_replicas_differ_in_the_cyclic_form_only() -> None:
    values = [np.float32(v) for v in (1e8, 1.0, -1e8, 1.0)]
    assert [float(collectives.cyclic_reduce(values, np.add, t)) for t in range(4)] == [1, 0, 1, 0]
    assert {float(v) for v in collectives.butterfly_reduce(values, np.add)} == {0}


def test_synchronisations_of_four_chips() -> None:
    counts = collectives.sync_counts(4)
    assert (counts.reduce_scatter_cyclic, counts.all_gather, counts.all_reduce_cyclic, counts.all_reduce_butterfly) == (3, 1, 3, 2)


def test_a_butterfly_needs_a_power_of_two() -> None:
    with pytest.raises(RuleViolation) as refusal:
        collectives.sync_counts(6)
    assert refusal.value.rule == "COLL-012"


def test_a_uniform_routing_synchronises_what_changes() -> None:
    syncs = check_routing([(1, 1), (1, 0), (0, 1), (0, 0)], chips=2, clusters=2)
    assert (syncs.chip, syncs.cluster) == (True, True)
    assert not check_routing([(0, 0), (0, 1), (1, 0), (1, 1)], chips=2, clusters=2).chip


@pytest.mark.parametrize("sources", [[(0, 0), (1, 0), (0, 1), (1, 1)], [(0, 0), (0, 1), (1, 1), (1, 0)], [(0, 0), (0, 0), (1, 0), (1, 1)]])
def test_other_routings_are_refused(sources: list[tuple[int, int]]) -> None:
    with pytest.raises(RuleViolation) as refusal:
        check_routing(sources, chips=2, clusters=2)
    assert refusal.value.rule == "REDIST-017"


def test_a_scaled_index_addresses_rows_in_bytes() -> None:
    assert scaled_index(3, 128, dtype("bf16")) == 768
    assert row_bytes(2, dtype("i32")) == 8

"""Symbolic results against brute force, on random nested expressions. More examples: ``TCPTUNE_EXAMPLES=200000``."""

from __future__ import annotations

import os

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tcptune.ir.algebra_cases import same_cells
from tcptune.ir.algebra_terms import simplify
from tcptune.ir.mapping import Mapping
from tests.properties.expressions import divisors, mappings, nearby, rewritten

EXAMPLES = int(os.environ.get("TCPTUNE_EXAMPLES", "0"))


def examples(share: int):
    """Settings for `share` examples in the ordinary run; the environment's count overrides."""
    slow = [HealthCheck.too_slow, HealthCheck.filter_too_much]
    return settings(max_examples=EXAMPLES or share, deadline=None, database=None, suppress_health_check=slow)


def same_tables(a: Mapping, b: Mapping) -> bool:
    """Equality by enumeration."""
    if a.size != b.size:
        return False
    ta, tb = a.table(), b.table()
    zeros = np.zeros(a.size, np.int64)
    return np.array_equal(ta.kind, tb.kind) and all(
        np.array_equal(ta.coords.get(n, zeros), tb.coords.get(n, zeros)) for n in {*ta.coords, *tb.coords}
    )


@examples(400)
@given(st.data())
def test_rewriting_by_the_identities_keeps_every_cell(data):
    m = data.draw(mappings())
    other = data.draw(rewritten(m))
    assert same_tables(m, other)
    assert same_cells(m, other)


@examples(600)
@given(st.data())
def test_symbolic_equivalence_agrees_with_enumeration(data):
    m = data.draw(mappings())
    other = data.draw(nearby(m))
    assert same_cells(m, other) == same_tables(m, other)


@examples(400)
@given(st.data())
def test_simplified_mappings_have_the_same_cells(data):
    m = data.draw(mappings())
    assert same_tables(m, simplify(m))


@examples(400)
@given(st.data())
def test_split_halves_are_the_quotient_and_the_remainder(data):
    m = data.draw(mappings())
    n = data.draw(st.sampled_from(divisors(m.size)))
    outer, inner = m.split_at(n)
    assert same_tables(outer, m.stride(n))
    assert same_tables(inner, m.modulo(n))


@examples(200)
@given(st.data())
def test_live_size_counts_live_cells(data):
    m = data.draw(mappings())
    assert m.live_size == int(np.count_nonzero(m.table().kind == 0))


@examples(400)
@given(st.data())
def test_normal_form_gives_the_coordinates_and_the_live_cells(data):
    m = data.draw(mappings())
    form = m.normal_form()
    if not form.is_decoded:
        return
    position = np.arange(m.size, dtype=np.int64)
    value = lambda p: position // p.stride % p.size // p.place % p.extent
    live = np.ones(m.size, bool)
    for guard in form.guards:
        live &= sum(w * value(p) for w, p in guard.terms) < guard.bound
    table = m.table()
    assert np.array_equal(live, table.live)
    for name, coordinate in table.coords.items():
        total = sum(
            (d.weight * value(d.place) for d in form.digits if d.operand is not None and d.operand.name == name), np.zeros_like(position)
        )
        assert np.array_equal(total[live], coordinate[live])

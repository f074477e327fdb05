"""Symbolic results against brute force, on random nested expressions.

The ordinary run draws about 2,700 examples; ``TCPTUNE_EXAMPLES=15000`` gives each of the tests so many (about 200,000 together).
"""

from __future__ import annotations

import os

import numpy as np
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from tcptune.errors import RuleViolation
from tcptune.ir.mappings.algebra_cases import first_difference, same_cells
from tcptune.ir.mappings.algebra_terms import regular, simplify
from tcptune.ir.mappings.cells import Index, joint_table
from tcptune.ir.mappings.mapping import Mapping, factors, pair
from tcptune.model.mappings.movement import carried_digits
from tcptune.model.sequencer.derivation import derive_read, derive_write
from tests.properties import oracle
from tests.properties.expressions import AXES, divisors, mappings, nearby, rewritten, streams

EXAMPLES = int(os.environ.get("TCPTUNE_EXAMPLES", "0"))
SMALL = 600
"""Positions up to which a test looks at every one of them in Python."""


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


def plain(cell) -> oracle.Cell:
    """A cell as the oracle writes it."""
    if isinstance(cell, Index):
        return {name: value for name, value in cell.coords.items() if value}
    return cell.to_json().removeprefix("padding:")


@examples(250)
@given(st.data())
def test_cells_and_tables_are_those_of_the_rules(data):
    m = data.draw(mappings())
    assume(m.size <= SMALL)
    wanted = oracle.cells(m)
    table = m.table()
    assert [plain(table.cell(i)) for i in range(m.size)] == wanted
    position = data.draw(st.integers(0, m.size))
    assert plain(m.cell(position)) == oracle.cell(m, position)


@examples(250)
@given(st.data())
def test_rewriting_by_the_identities_keeps_every_cell(data):
    m = data.draw(mappings())
    other = data.draw(rewritten(m))
    assert same_tables(m, other)
    assert same_cells(m, other)


@examples(450)
@given(st.data())
def test_symbolic_equivalence_agrees_with_enumeration(data):
    m = data.draw(mappings())
    other = data.draw(nearby(m))
    equal = same_tables(m, other)
    assert same_cells(m, other) == equal
    assert m.equivalent(other) == equal


@examples(100)
@given(st.data())
def test_the_first_difference_is_the_first(data):
    m = data.draw(mappings(4))
    other = data.draw(nearby(m))
    assume(m.size <= SMALL)
    differing = [i for i in range(m.size) if oracle.cell(m, i) != oracle.cell(other, i)]
    assert first_difference(m, other) == (differing[0] if differing else None)


@examples(150)
@given(st.data())
def test_simplified_mappings_have_the_same_cells_and_stay_as_they_are(data):
    m = data.draw(mappings())
    simple = simplify(m)
    assert same_tables(m, simple)
    assert simplify(simple) is simple
    assert same_cells(AXES.mapping(str(m)), m)


@examples(250)
@given(st.data())
def test_split_halves_are_the_quotient_and_the_remainder(data):
    m = data.draw(mappings())
    n = data.draw(st.sampled_from(divisors(m.size)))
    outer, inner = m.split_at(n)
    assert same_tables(outer, m.stride(n))
    assert same_tables(inner, m.modulo(n))
    assert same_tables(pair(outer, inner), m) or not regular(m)


@st.composite
def padded_twice(draw: st.DrawFn) -> Mapping:
    """Digits of two axes, padded by the host with zeros and by a placement at the top, as the slices of a contraction hold them."""
    low, high = draw(st.sampled_from([(1, 12), (2, 6), (4, 3), (3, 4)])), draw(st.sampled_from([(1, 16), (4, 4), (8, 2)]))
    zero = AXES.mapping(f"D #{{0}} 12 / {low[0]} % {low[1]}")
    top = AXES.mapping(f"F # 16 / {high[0]} % {high[1]}")
    return pair(*draw(st.permutations([zero, top, AXES.mapping("C")])))


@given(m=padded_twice(), data=st.data())
@examples(60)
def test_mappings_with_two_kinds_of_padding_split_into_the_axes_of_either_part(m: Mapping, data: st.DataObject) -> None:
    parts = [f.size for f in factors(m)]
    n = data.draw(st.sampled_from([parts[2], parts[1] * parts[2]]))
    outer, inner = m.split_at(n)
    assert same_tables(outer, m.stride(n)) and same_tables(inner, m.modulo(n))
    assert not set(outer.axes) & set(inner.axes)


@examples(100)
@given(st.data())
def test_live_size_and_repetition_are_counted(data):
    m = data.draw(mappings())
    assume(m.size <= SMALL)
    held = oracle.held(m)
    assert m.live_size == held.total()
    if m.is_broadcast_free:
        assert max(held.values()) == 1
    elif regular(m):
        assert max(held.values()) > 1


@examples(150)
@given(st.data())
def test_dividing_out_a_part_leaves_the_rest(data):
    m = data.draw(mappings())
    assume(m.size <= SMALL and regular(m) and m.terms())
    chosen = data.draw(st.lists(st.sampled_from(m.terms()), min_size=1, max_size=2, unique=True))
    part = pair(*chosen)
    if data.draw(st.booleans()):
        n = data.draw(st.sampled_from(divisors(part.size)))
        part = data.draw(st.sampled_from(part.split_at(n)))
    try:
        rest = m.divide(part)
    except RuleViolation:
        return
    assert part.size * rest.size == m.size
    assert oracle.held(pair(simplify(part), rest)) == oracle.held(m)  # simplified: both must write an operand alike
    assert m.contains(part)


@examples(100)
@given(st.data())
def test_permutations_hold_the_same_indices(data):
    m = data.draw(mappings())
    assume(m.size <= SMALL)
    other = data.draw(nearby(m)) if data.draw(st.booleans()) else pair(*data.draw(st.permutations(factors(m))))
    assume(other.size == m.size)
    same = oracle.held(m) == oracle.held(other)
    if m.is_permutation_of(other):
        assert same
    elif regular(m) and sorted(map(str, factors(m))) == sorted(map(str, factors(other))):
        raise AssertionError("a shuffled list is a permutation")


@examples(250)
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
        mine = [d for d in form.digits if d.operand is not None and d.operand.name == name]
        total = sum((d.weight * value(d.place) for d in mine), np.zeros_like(position))
        assert np.array_equal(total[live], coordinate[live])


def sources(buffer: Mapping, time: Mapping, packet: Mapping, addresses: np.ndarray) -> bool:
    """Whether every live position of the stream reads a live cell of the buffer with its coordinates, digit by carried digit."""
    stream, held = joint_table(time, packet).reshaped((time.size * packet.size,)), buffer.table()
    live = stream.live
    at = addresses[live]
    if (at >= buffer.size).any() or not held.live[at].all():
        return False
    for axis, digits in carried_digits((buffer,)).items():
        wanted = stream.coords.get(axis, np.zeros(live.size, np.int64))[live]
        for weight, extent in digits:
            if not np.array_equal(wanted // weight % extent, held.coords[axis][at] // weight % extent):
                return False
    return True


@examples(250)
@given(st.data())
def test_a_derived_read_visits_the_address_of_every_element(data):
    buffer, time, packet = data.draw(streams())
    try:
        config = derive_read(buffer, time, packet).config
    except RuleViolation as refusal:
        assert refusal.rule in ("SEQ-005", "SEQ-017")
        return
    assert config.iterations == time.size * packet.size
    assert sources(buffer, time, packet, config.addresses())
    if config.iterations <= SMALL:
        assert list(config.steps()) == config.addresses().tolist()


@examples(150)
@given(st.data())
def test_a_derived_write_gives_every_live_slot_one_source(data):
    buffer, time, packet = data.draw(streams())
    try:
        config = derive_write(buffer, time, packet).config
    except RuleViolation as refusal:
        assert refusal.rule in ("SEQ-005", "SEQ-017", "SEQ-018")
        return
    live = joint_table(time, packet).live.reshape(-1)
    written = np.sort(config.addresses()[live])
    assert np.array_equal(written, np.flatnonzero(buffer.table().live))


@examples(100)
@given(st.data())
def test_merging_keeps_the_addresses_and_the_run(data):
    buffer, time, packet = data.draw(streams())
    try:
        config = derive_read(buffer, time, packet).config
    except RuleViolation:
        return
    merged = type(config)(config.merged, config.packet_size)
    assert np.array_equal(merged.addresses(), config.addresses())
    if config.innermost_stride == 1:
        assert merged.contiguous_run == config.contiguous_run
        steps = np.diff(config.addresses()[: config.contiguous_run])
        assert (steps == 1).all()

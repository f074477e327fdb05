"""Routes of operands over rings: which rings there are, that kernels on them compute the einsum, and what they cost."""

from dataclasses import replace
from functools import lru_cache
from math import prod

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tcptune.errors import InputError, RuleViolation
from tcptune.exec.compile import compile_kernel
from tcptune.exec.lowering.layout import Layout
from tcptune.exec.lowering.lower import lower
from tcptune.exec.lowering.routes import copies_choices, piece_bytes, rings_of, route_choices
from tcptune.exec.running.oracle import verify
from tcptune.exec.rust import read_kernel
from tcptune.ir.candidate import Candidate, Knobs
from tcptune.ir.kernels.kernel import Kernel
from tcptune.ir.placement import AxisPlacement, Digit, Placement
from tcptune.ir.workload import einsum
from tcptune.reports.rust import kernel_to_rust
from tcptune.search.knobs import slice_orders
from tcptune.search.space import Space
from tcptune.solver.pricing import FixedCosts, load_cycles, load_floor, price

SLICES = (Digit("j", 6, 16), Digit("", 1, 4), Digit("i", 3, 4))


def spans_of(slices: tuple[Digit, ...], own: str) -> set[tuple[int, int]]:
    """(size, slices inside) of every ring, over bits of a slice number: neighbouring ones that no own axis decides, from a digit's end."""
    bits = [(d.axis, n) for d in reversed(slices) for n in range(d.extent.bit_length() - 1)]
    found = set()
    for low, (_, step) in enumerate(bits):
        if step:
            continue  # not the inner end of a digit
        for high in range(low + 1, len(bits) + 1):
            if any(axis in own for axis, _ in bits[low:high] if axis):
                break
            found.add((2 ** (high - low), 2**low))
    return found


def test_rings_are_all_stretches_of_shared_slices_the_innermost_of_each_size():
    rings = rings_of(SLICES, ("k",), (("i", 12), ("j", 96)))
    expected: dict[int, int] = {}
    for size, inside in sorted(spans_of(SLICES, "k"), reverse=True):
        expected[size] = min(inside, expected.get(size, inside))
    assert {r.size for r in rings} == set(expected)
    for ring in rings:
        assert ring.size * prod(d.extent for d in (*ring.outside, *ring.inside)) == 256
        if not ring.is_partial:
            assert ring.cut is None
    assert [r.size for r in rings if r.cut] == [2, 32, 64, 128]


def test_rings_take_no_slice_of_an_own_axis():
    assert [(r.size, r.inside) for r in rings_of(SLICES, ("i", "k"), (("j", 96),))] == [
        (2, SLICES[2:]),
        (4, SLICES[2:]),
        (8, SLICES[2:]),
        (16, SLICES[2:]),
        (32, SLICES[2:]),
        (64, SLICES[2:]),
    ]


def test_an_axis_that_no_cut_divides_is_taken_whole():
    sizes = [r.size for r in rings_of((Digit("j", 5, 64), Digit("i", 1, 4)), ("i",), (("j", 315),))]
    assert sizes == [64]


WORKLOADS = [
    ("ij,j->i", {"i": 64, "j": 256}, "bf16"),
    ("ik,jk->ij", {"i": 96, "j": 24, "k": 64}, "bf16"),
    ("ik,jk->ij", {"i": 48, "j": 80, "k": 61}, "bf16"),
    ("ik,kj->ij", {"i": 40, "j": 64, "k": 33}, "i8"),
    ("ik,jk->ij", {"i": 64, "j": 36, "k": 96}, "f8e4m3"),
    ("vmk,kn->vmn", {"v": 6, "m": 8, "k": 32, "n": 12}, "bf16"),
]


@lru_cache(maxsize=16)
def space(number: int) -> Space:
    text, sizes, element = WORKLOADS[number]
    return Space(einsum(text, sizes=sizes, dtype=element))


@st.composite
def routed(draw: st.DrawFn, partial: bool = True) -> tuple[Candidate, int]:
    """A candidate with random routes, and its entry; `partial`: one of the rings ends inside of a digit."""
    searched = space(draw(st.integers(0, len(WORKLOADS) - 1)))
    entry = draw(st.integers(0, searched.entries - 1))
    placement, start = searched.placement(entry), searched.start_knobs(entry)
    order = draw(st.sampled_from(slice_orders(placement, searched.workload.output)))
    base = Candidate(searched.workload, placement, replace(start, slice_order=order, refetch=draw(st.booleans())))
    choices = [route_choices(Layout(base), n) for n in (0, 1)]
    if partial:
        first = draw(st.integers(0, 1))
        ends_inside = {r.size for r in Layout(base).rings(first) if r.is_partial}
        choices[first] = [c for c in choices[first] if c[0] in ends_inside] or choices[first]
    chosen = [draw(st.sampled_from(c)) for c in choices]
    knobs = replace(base.knobs, rings=(chosen[0][0], chosen[1][0]), spread=(chosen[0][1], chosen[1][1]))
    return replace(base, knobs=knobs), entry


QUICK = settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)


@given(routed())
@QUICK
def test_kernels_on_partial_rings_cost_their_price_no_less_than_the_bound_and_compute_the_einsum(drawn):
    candidate, entry = drawn
    number = next(n for n, w in enumerate(WORKLOADS) if space(n).workload == candidate.workload)
    try:
        compiled = compile_kernel(lower(candidate), "vendor")
    except RuleViolation:
        return  # a ring that some other part of the candidate does not allow
    priced = price(Layout(candidate), space(number).fixed).makespan
    assert priced <= compiled.makespan
    if not any(candidate.knobs.relayout):  # copies may also hold the DMA engine (SCHED-005)
        assert priced == compiled.makespan
    assert space(number).bound(entry) <= compiled.makespan
    assert verify(compiled.checked).passed


@given(routed(partial=False), st.sampled_from(["vendor", "manual"]))
@QUICK
def test_the_bound_of_a_load_is_below_its_price(drawn, profile):
    layout = Layout(drawn[0])
    for index in (0, 1):
        try:
            cycles = load_cycles(layout, index, profile)
        except RuleViolation:
            continue
        assert load_floor(layout, index, profile) <= cycles


GEMV = einsum("ij,j->i", i=512, j=512)


def gemv(ring: int) -> Candidate:
    """512 rows over all slices of one cluster, the vector over rings of so many slices."""
    placement = Placement((AxisPlacement("i", slice=256, lane=2), AxisPlacement("j", time=16, packet=32)))
    return Candidate(GEMV, placement, Knobs(stationary=0, slice_order=("i",), rings=(1, ring), spread=("outer", "outer")))


def test_a_ring_inside_of_an_axis_writes_it_as_two():
    kernel = lower(gemv(16))
    # 256 slices of 2 rows: a ring of 16 slices holds 32 rows, so I is 16 times 32
    assert dict(kernel.axes.items()) == {"I": 16, "A": 32, "J": 512}
    assert str(kernel.inputs[0].type.element) == "I, A, J"
    assert str(kernel.inputs[1].type.element) == "J"
    assert kernel.oracle == "einsum iaj, j -> ia"
    load = next(s for s in kernel.steps if getattr(s, "source", "") == "b")
    assert str(load.slice) == "I, J / 32"
    assert str(load.element) == "J % 32"


def test_a_larger_ring_costs_the_switch_nothing_and_saves_the_load_until_pieces_are_a_line():
    parts = {ring: price(Layout(gemv(ring)), FixedCosts.of("vendor")) for ring in (2, 4, 8, 16)}
    assert len({p.contraction for p in parts.values()}) == 1
    loads = {ring: p.load_stream for ring, p in parts.items()}
    assert loads[2] > loads[4] == min(loads.values())  # 512 * 2 bytes over four slices are 256 each


@pytest.mark.parametrize("ring", [2, 8, 16])
def test_partial_rings_load_pieces_of_the_spread_block(ring):
    layout = Layout(gemv(ring))
    assert piece_bytes(layout, 1, layout.route(1).spread) == 512 * 2 // ring


@pytest.mark.parametrize(("rows", "legal"), [(64, True), (60, False)])
def test_a_stream_that_is_fetched_again_has_its_ring_filled_by_a_part_of_the_axis(rows, legal):
    """Two slices of 32 rows each: the ring is filled by J / 32, while Time repeats the stream for every J % 32 (SWITCH-005)."""
    workload = einsum("ik,jk->ij", i=16, j=rows, k=64)
    i, j, k = AxisPlacement("i", slice=2, time=8), AxisPlacement("j", slice=2, time=32), AxisPlacement("k", time=2, packet=32)
    knobs = Knobs(stationary=1, slice_order=("i", "_", "j"), rings=(2, 1), refetch=True)
    candidate = Candidate(workload, Placement((i, k, j)), knobs)
    if legal:
        kernel = lower(candidate)
        assert dict(kernel.axes.items()) == {"I": 16, "K": 64, "J": 2, "A": 32}
        compiled = compile_kernel(kernel)
        assert verify(compiled.checked).passed
        assert compiled.makespan == price(Layout(candidate), FixedCosts.of("vendor")).makespan
    else:
        with pytest.raises(RuleViolation) as refusal:
            lower(candidate)
        assert refusal.value.rule == "SWITCH-005"


def test_axes_of_a_tile_are_not_cut():
    whole = einsum("ij,j->i", i=2048, j=512)
    body = replace(gemv(16), whole=whole)
    assert [r.size for r in Layout(body).rings(1)] == [256]
    with pytest.raises(RuleViolation) as refusal:
        Layout(body).route(1)
    assert refusal.value.rule == "SWITCH-003"


# copies in HBM

COPIED = [
    ("ij,j->i", {"i": 64, "j": 256}, "bf16"),
    ("ik,jk->ij", {"i": 96, "j": 24, "k": 64}, "i8"),
    ("ik,jk->ij", {"i": 48, "j": 80, "k": 61}, "bf16"),
    ("vmk,kn->vmn", {"v": 8, "m": 6, "k": 32, "n": 12}, "f8e4m3"),
]


@lru_cache(maxsize=8)
def copied_space(number: int) -> Space:
    text, sizes, element = COPIED[number]
    return Space(einsum(text, sizes=sizes, dtype=element, hbm_copies=8))


@st.composite
def from_copies(draw: st.DrawFn) -> tuple[Candidate, int, int]:
    """A candidate of which an operand is loaded from several copies if its slices allow, its entry, and its workload."""
    number = draw(st.integers(0, len(COPIED) - 1))
    searched = copied_space(number)
    entry = draw(st.integers(0, searched.entries - 1))
    placement, start = searched.placement(entry), searched.start_knobs(entry)
    order = draw(st.sampled_from(slice_orders(placement, searched.workload.output)))
    base = Candidate(searched.workload, placement, replace(start, slice_order=order))
    copies = tuple(draw(st.sampled_from(copies_choices(Layout(base), n)[-2:])) for n in (0, 1))
    return replace(base, knobs=replace(base.knobs, copies=copies)), entry, number


@given(from_copies())
@QUICK
def test_kernels_that_load_from_copies_cost_their_price_no_less_than_the_bound_and_compute_the_einsum(drawn):
    candidate, entry, number = drawn
    try:
        compiled = compile_kernel(lower(candidate), "vendor")
    except RuleViolation:
        return  # something that has nothing to do with the copies
    for index, copies in enumerate(candidate.knobs.copies):
        layout = Layout(candidate)
        whole = copied_space(number).workload.bytes_of(layout.operand(index), layout.dtype)
        stored = compiled.kernel.inputs[index].type.element.size * layout.dtype.bits // 8
        assert stored == copies * whole
        assert load_floor(layout, index, "vendor") <= load_cycles(layout, index, "vendor")
    priced = price(Layout(candidate), copied_space(number).fixed).makespan
    assert priced <= compiled.makespan
    if not any(candidate.knobs.relayout):
        assert priced == compiled.makespan
    assert copied_space(number).bound(entry) <= compiled.makespan
    assert verify(compiled.checked).passed


def replicated(copies: int) -> Candidate:
    """The vector of `GEMV` loaded to all 256 slices of a cluster from so many copies."""
    workload = replace(GEMV, hbm_copies=copies)
    candidate = gemv(1)
    return replace(candidate, workload=workload, knobs=replace(candidate.knobs, copies=(1, copies)))


def test_slices_beside_one_another_read_different_copies():
    kernel = lower(replicated(8))
    # row = (32 * I + A) * 2 + B: eight neighbouring slices have another A each
    assert dict(kernel.axes.items()) == {"I": 32, "A": 8, "B": 2, "J": 512}
    assert str(kernel.inputs[0].type.element) == "I, A, B, J"
    assert str(kernel.inputs[1].type.element) == "A, J"
    assert kernel.oracle == "einsum iabj, aj -> iab"
    load = next(s for s in kernel.steps if getattr(s, "source", "") == "b")
    assert (str(load.slice), str(load.element)) == ("I, A", "J")


@pytest.mark.parametrize("candidate", [gemv(16), replicated(8)], ids=["ring", "copies"])
def test_kernels_with_cut_axes_are_read_back_from_text_and_rust(candidate):
    kernel = lower(candidate)
    assert Kernel.from_text(kernel.to_text()).to_json() == kernel.to_json()
    assert compile_kernel(read_kernel(kernel_to_rust(kernel).text)).makespan == compile_kernel(kernel).makespan


def test_copies_spare_the_wait_for_a_line_that_was_just_read():
    cycles = {copies: load_cycles(Layout(replicated(copies)), 1, "vendor") for copies in (1, 2, 4, 8)}
    assert cycles[1] > cycles[2] > cycles[4]
    assert cycles[8] < cycles[1] / 2
    lines = 256 * 512 * 2 / 256 / 4  # of an engine, each read for a slice of its own
    assert cycles[8] > 440 + 1.68 * lines


def test_an_operand_on_a_ring_has_one_copy():
    candidate = gemv(16)
    with pytest.raises(RuleViolation) as refusal:
        Layout(replace(candidate, knobs=replace(candidate.knobs, copies=(1, 2)))).route(1)
    assert refusal.value.rule == "SWITCH-003"


def test_inputs_are_stored_once_unless_the_workload_allows_more():
    assert copies_choices(Layout(gemv(1)), 1) == [1]
    assert copies_choices(Layout(replicated(4)), 1) == [1, 2, 4]
    for wrong in (0, 3, 128, True, "2", 1.5):
        with pytest.raises(InputError):
            einsum("ij,j->i", i=8, j=8, hbm_copies=wrong)
    with pytest.raises(InputError, match="contraction"):
        einsum("ij->i", i=8, j=8, hbm_copies=2)

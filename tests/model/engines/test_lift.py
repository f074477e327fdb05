"""Axis lifting: bases, what may change, and the proof that the source is replicated."""

from __future__ import annotations

import numpy as np
import pytest

from tcptune.errors import RuleViolation
from tcptune.ir.mappings.axes import Axes
from tcptune.model.pipeline import apply_chain
from tcptune.model.values import Values
from tests.model.chains import refused, run, stream

AXES = Axes(A=128, Q=4, V=16, T=3)


def begin(slice_: str = "A, 2", packet: str = "Q, V", chip: str = "1"):
    return stream(AXES, "bf16", "Begin", slice=slice_, packet=packet, chip=chip)


FETCH = {"op": "fetch", "time": "Q", "packet": "V"}


def slice_lift(slice_: str, time: str) -> dict[str, str]:
    return {"op": "fetch_slice_lift", "slice": slice_, "time": time}


def test_the_second_slice_starts_two_rows_later():
    derived = run(begin(), AXES, FETCH, slice_lift("A, Q / 2", "Q % 2")).derived
    assert derived["base_elements"] == {"Q / 2 = 0": 0, "Q / 2 = 1": 2 * 16}
    assert derived["base_bytes"] == {"Q / 2 = 0": 0, "Q / 2 = 1": 64}
    assert (derived["time_steps_before_lift"], derived["time_steps"], derived["fetch_cycles"]) == (4, 2, 2)
    assert len(derived["setup"]) == 3


def test_a_lift_shortens_the_read():
    assert run(begin(), AXES, FETCH).cost.cycles == 4
    assert run(begin(), AXES, FETCH, slice_lift("A, Q / 2", "Q % 2")).cost.cycles == 2


def test_bases_follow_the_layout_in_dm_not_the_order_of_the_stream():
    fetch = {"op": "fetch", "time": "Q, V / 4", "packet": "V % 4"}
    derived = run(begin(packet="V, Q"), AXES, fetch, slice_lift("A, V / 8", "Q, V / 4 % 2")).derived
    assert derived["base_elements"] == {"V / 8 = 0": 0, "V / 8 = 1": 8 * 4}


def test_a_broadcast_of_four_is_two_groups():
    derived = run(stream(AXES, "bf16", "Begin", slice="A / 2, 4", packet="Q, V"), AXES, FETCH, slice_lift("A / 2, Q", "1")).derived
    assert derived["base_elements"] == {f"Q = {q}": 16 * q for q in range(4)}


def test_a_broadcast_beside_idle_slices_is_lifted():
    start = stream(AXES, "bf16", "Begin", slice="A / 2, 2 # 4", packet="Q, V")
    derived = run(start, AXES, FETCH, slice_lift("A / 2, Q / 2 # 4", "Q % 2")).derived
    assert derived["base_elements"] == {"Q / 2 = 0": 0, "Q / 2 = 1": 32}
    assert refused(start, AXES, FETCH, slice_lift("A / 2, Q", "1")).rule == "LIFT-006"


@pytest.mark.parametrize(
    ("slice_", "time", "rule"),
    [
        ("A, Q", "1", "LIFT-007"),
        ("A, Q / 2", "Q", "LIFT-009"),
        ("A, 1 # 2", "Q", "LIFT-006"),
        ("A % 64, Q", "1", "LIFT-006"),
        ("A, 2", "Q", "LIFT-001"),
        ("A, V / 8", "Q", "LIFT-009"),
    ],
)
def test_only_a_broadcast_becomes_an_axis_of_time(slice_, time, rule):
    assert refused(begin(), AXES, FETCH, slice_lift(slice_, time)).rule == rule


def test_time_that_keeps_the_lifted_digit_is_told_what_is_left():
    assert str(refused(begin(), AXES, FETCH, slice_lift("A, Q / 2", "Q")).nearest) == "Q % 2"


def test_a_broadcast_of_three_stays():
    start = stream(AXES, "bf16", "Begin", chip="3", slice="A, 1 # 2", packet="T, V")
    lift = {"op": "fetch_chip_lift", "chip": "T", "time": "1"}
    assert refused(start, AXES, {"op": "fetch", "time": "T", "packet": "V"}, lift).rule == "LIFT-006"


def test_bases_are_whole_words():
    axes = Axes(A=128, Q=4, V=6)
    start = stream(axes, "bf16", "Begin", slice="A, 2", packet="Q, V")
    assert refused(start, axes, FETCH, slice_lift("A, Q % 2", "Q / 2")).rule == "LIFT-010"


def replicated() -> Values:
    """Contents of DM with both slices of a pair equal."""
    rows = np.arange(128 * 64, dtype=np.float32).reshape(1, 1, 128, 1, 1, 64)
    data = np.ascontiguousarray(np.broadcast_to(rows, (1, 2, 128, 2, 1, 64))).reshape(1, 2, 256, 1, 64)
    return Values(data, np.ones(data.shape, bool))


def test_every_slice_reads_its_own_values_of_the_lifted_digit():
    chain = run(stream(AXES, "f32", "Begin", slice="A, 2", packet="Q, V"), AXES, FETCH, slice_lift("A, Q / 2", "Q % 2"))
    source = replicated()
    got = apply_chain(chain, source)
    held = source.data[0, 0].reshape(128, 2, 2, 2, 16)  # A, pair member, Q / 2, Q % 2, V
    assert np.array_equal(got.data[0, 0].reshape(128, 2, 2, 16), np.stack([held[:, 0, 0], held[:, 1, 1]], axis=1))
    assert not got.defined[0, 1].any()


def test_a_broadcast_that_holds_different_data_is_refused():
    chain = run(stream(AXES, "f32", "Begin", slice="A, 2", packet="Q, V"), AXES, FETCH, slice_lift("A, Q / 2", "Q % 2"))
    source = replicated()
    source.data[0, 0, 7, 0, 0] += 1
    with pytest.raises(RuleViolation) as caught:
        apply_chain(chain, source)
    assert caught.value.rule == "LIFT-011"

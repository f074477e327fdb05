"""Data Memory: banks, DMNs and starvation."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tcptune.errors import RuleViolation
from tcptune.model.memory import dm


@given(st.integers(0, 524_287))
def test_an_offset_is_byte_bank_and_row(offset: int) -> None:
    place = dm.decode(offset)
    assert place.row * 128 + place.bank * 8 + place.byte == offset


@given(st.integers(0, 600), st.integers(1, 600))
def test_the_banks_of_an_access_are_those_of_its_bytes(offset: int, length: int) -> None:
    words = {byte // 8 for byte in range(offset, offset + length)}
    span = dm.bank_span(offset, length)
    assert set(span.banks) == {w % 16 for w in words}
    assert span.rows_per_bank == max(sum(w % 16 == bank for w in words) for bank in span.banks)


def test_an_engine_serves_two_dmns_of_32_slices() -> None:
    assert [dm.slice_place(s).dmn for s in (0, 31, 32, 255)] == [0, 0, 1, 7]
    assert [dm.slice_place(s).engine for s in (0, 63, 64, 255)] == [0, 0, 1, 3]


@pytest.mark.parametrize("requests", [1, 2, 5, 64])
def test_alternating_requests_finish_when_the_schedule_falls_idle(requests: int) -> None:
    cycle = 0
    while any(work is not None for work in dm.dmn_schedule(cycle, requests)):
        cycle += 1
    assert dm.dmn_cycles(requests, interleaved=True) == cycle
    assert dm.dmn_cycles(requests, interleaved=False) == 2 * requests


def test_63_accesses_in_a_row_are_the_most() -> None:
    assert dm.check_starvation(63) == 4_032
    with pytest.raises(RuleViolation) as refusal:
        dm.check_starvation(64)
    assert (refusal.value.rule, refusal.value.nearest) == ("DM-011", 63)


def test_a_slice_holds_524288_bytes() -> None:
    dm.check_capacity(524_288)
    with pytest.raises(RuleViolation) as refusal:
        dm.check_capacity(524_289)
    assert refusal.value.rule == "DM-003"

"""Runs of accesses to one DM bank, against counting them one by one."""

from itertools import pairwise, product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tcptune.exec.compile import compile_kernel
from tcptune.exec.library import patterns, vector_rows
from tcptune.exec.scheduling.bank_runs import run_of_loops, starvation_notes
from tcptune.exec.scheduling.schedule import schedule_program
from tcptune.model.memory.dm import bank_of
from tests.exec.programs import op, program


def counted(loops):
    """Longest run of equal banks in the sequence of accesses."""
    banks = [bank_of(sum(i * stride for i, (_, stride) in zip(at, loops, strict=True))) for at in product(*(range(n) for n, _ in loops))]
    longest = run = 1
    for a, b in pairwise(banks):
        run = run + 1 if a == b else 1
        longest = max(longest, run)
    return longest


def test_bits_three_to_six_of_an_address_are_its_bank():
    assert [bank_of(a) for a in (0, 7, 8, 127, 128, 136)] == [0, 0, 1, 15, 0, 1]


@pytest.mark.parametrize(("stride", "run"), [(8, 1), (16, 1), (64, 1), (128, 63), (256, 63), (0, 63)])
def test_a_stride_of_whole_bank_rows_stays_in_its_bank(stride, run):
    assert run_of_loops([(63, stride)]) == run


@settings(max_examples=300, deadline=None)
@given(st.lists(st.tuples(st.integers(1, 5), st.sampled_from([0, 8, 16, 24, 64, 120, 128, 256])), min_size=1, max_size=3))
def test_the_run_of_a_nest_is_what_counting_gives(loops):
    assert run_of_loops(loops) == counted(loops)


def test_a_long_nest_is_not_enumerated():
    assert run_of_loops([(65_536, 0), (65_536, 128)]) == 65_536**2
    assert run_of_loops([(65_536, 4096), (65_536, 8)]) == 1


def test_runs_of_main_and_sub_that_add_up_beside_dma_are_noted():
    parts = (op("m", "main", 100, bank_accesses=40), op("s", "sub", 60, bank_accesses=23), op("d", "dma", 500))
    p = program(*parts)
    (note,) = starvation_notes(p, schedule_program(p))
    assert "64 accesses" in note
    assert "m and s" in note
    p = program(parts[0], op("s", "sub", 60, bank_accesses=22), parts[2])
    assert not starvation_notes(p, schedule_program(p))
    p = program(*parts[:2])
    assert not starvation_notes(p, schedule_program(p))


@pytest.mark.parametrize("build", [patterns.gemm, patterns.gemv, vector_rows.softmax])
def test_library_kernels_never_hold_a_bank_long_enough_to_block_dma(build):
    assert all(i.bank_accesses < 64 for i in compile_kernel(build()).instructions)

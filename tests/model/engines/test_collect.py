"""The Collect Engine as the manual describes it: pad to flits, split, join the flits to Time."""

import numpy as np
import pytest

from tcptune.ir.mappings.axes import Axes
from tcptune.model.pipeline import apply_chain
from tcptune.model.values import Values
from tests.model.chains import collect, refused, run, stream

AX = Axes(A=8, B=56, C=32, D=16)


@pytest.mark.parametrize(
    ("dt", "packet", "time", "flit", "flits", "pad"),
    [
        ("i8", "C", "A", "C", 1, 0),
        ("i8", "D", "A", "D # 32", 1, 16),
        ("bf16", "C", "A, C / 16", "C % 16", 2, 0),
        ("f32", "C", "A, C / 8", "C % 8", 4, 0),
        ("i8", "B", "A, B # 64 / 32", "B # 64 % 32", 2, 8),
        ("i4", "C", "A", "C # 64", 1, 16),
    ],
)
def test_a_packet_is_padded_to_flits_and_split(dt, packet, time, flit, flits, pad):
    chain = run(stream(AX, dt, time="A", packet=packet), AX, collect(time, flit))
    assert chain.final.position == "Collect"
    assert (chain.derived["flits_per_packet"], chain.derived["pad_bytes"]) == (flits, pad)
    assert chain.steps[0].cost.cycles == 8 * flits, "one flit a cycle"


def test_the_new_packet_must_be_one_flit():
    error = refused(stream(AX, "i8", time="A", packet="D"), AX, collect("A", "D"))
    assert error.rule == "COLLECT-002"
    assert "D # 32" in str(error.nearest)


def test_the_new_packet_must_be_the_inner_part():
    error = refused(stream(AX, "bf16", time="A", packet="C"), AX, collect("A, C % 2", "C / 2"))
    assert error.rule == "COLLECT-003"
    assert error.expected.equivalent(AX.mapping("C % 16"))


def test_the_flits_must_be_innermost_in_time():
    error = refused(stream(AX, "bf16", time="A", packet="C"), AX, collect("C / 16, A", "C % 16"))
    assert error.rule == "COLLECT-004"
    assert error.nearest.equivalent(AX.mapping("A, C / 16"))


def test_a_packet_that_is_no_multiple_of_8_bytes_is_refused_before_the_split():
    axes = Axes(K=12)
    error = refused(stream(axes, "i8", packet="K"), axes, collect("1", "K # 32"))
    assert error.rule == "TU-004"


def test_zero_point_residuals_count_as_their_source_type():
    chain = run(stream(AX, "i9", "FetchZeroPointSub", time="A", packet="C"), AX, collect("A", "C"))
    assert chain.derived["flit_elements"] == 32


def test_position_f_e_of_a_padded_packet_is_live_iff_32f_plus_e_is_below_its_size():
    chain = run(stream(AX, "i8", slice="1 # 64", time="A", packet="B"), AX, collect("A, B # 64 / 32", "B # 64 % 32"))
    data = np.arange(2 * 64 * 8 * 56).reshape(1, 2, 64, 8, 56).astype(np.int8)
    out = apply_chain(chain, Values(data, np.ones(data.shape, bool)))
    assert out.data.shape == (1, 2, 64, 16, 32)
    for flit in range(2):
        for element in range(32):
            alive = 32 * flit + element < 56
            assert out.defined[0, 1, 5, 2 * 3 + flit, element] == alive
            if alive:
                assert out.data[0, 1, 5, 2 * 3 + flit, element] == data[0, 1, 5, 3, 32 * flit + element]

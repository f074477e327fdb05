"""Sequencer: loops of a buffer against a stream, what follows from them, limits, and the executor. Numbers are the manual's."""

from __future__ import annotations

import numpy as np
import pytest

from tcptune.errors import RuleViolation
from tcptune.ir.mappings.axes import Axes
from tcptune.ir.types import dtype
from tcptune.model.sequencer.configuration import Entry, SequencerConfig
from tcptune.model.sequencer.derivation import derive_read, derive_write
from tcptune.model.sequencer.trace import trace


def read(buffer: str, time: str, packet: str, **sizes: int):
    axes = Axes(sizes)
    return derive_read(axes.mapping(buffer), axes.mapping(time), axes.mapping(packet))


def write(buffer: str, time: str, packet: str, **sizes: int):
    axes = Axes(sizes)
    return derive_write(axes.mapping(buffer), axes.mapping(time), axes.mapping(packet))


def refusal(call, *args, **sizes) -> RuleViolation:
    with pytest.raises(RuleViolation) as caught:
        call(*args, **sizes)
    return caught.value


@pytest.mark.parametrize(
    ("buffer", "time", "packet", "sizes", "loops"),
    [
        ("A, B", "A, B / 32", "B % 32", {"A": 8, "B": 512}, "[8:512, 16:32, 32:1] : 32"),
        ("N, C, H, W", "W, H, C, N", "1", {"N": 4, "C": 3, "H": 8, "W": 8}, "[8:1, 8:8, 3:64, 4:192] : 1"),
        ("A, B, C # 32", "B, A", "C # 16", {"A": 8, "B": 8, "C": 8}, "[8:32, 8:256, 16:1] : 16"),
        ("A, B, C", "A / 4, A % 4 = 3, B / 4, B % 4 = 2", "C", {"A": 16, "B": 8, "C": 8}, "[4:256, 3:64, 2:32, 2:8, 8:1] : 8"),
        ("A", "T, A", "P", {"A": 16, "T": 4, "P": 4}, "[4:0, 16:1, 4:0] : 4"),
        ("N % 512", "N / 512", "N % 512", {"N": 2048}, "[4:0, 512:1] : 512"),
        ("A, B, C", "A", "[B, C] # 16", {"A": 3, "B": 5, "C": 2}, "[3:10, 16:1] : 16"),
        ("A % 4, A / 4", "1", "A", {"A": 8}, "[2:1, 4:2] : 8"),
        ("R # 16 / 4, B, R # 16 % 4", "R # 16", "B", {"R": 12, "B": 8}, "[4:32, 4:1, 8:4] : 8"),
        ("[A, B] # 16", "A", "B", {"A": 3, "B": 5}, "[3:5, 5:1] : 5"),
        ("1 # 20, A", "A", "1", {"A": 8}, "[8:1] : 1"),
    ],
)
def test_loops_of_a_read(buffer, time, packet, sizes, loops):
    assert str(read(buffer, time, packet, **sizes).config) == loops


def test_strides_do_not_depend_on_sizes_being_small():
    assert str(read("N / 16, B, N % 16", "N", "B", N=2**30, B=8).config) == f"[{2**26}:128, 16:1, 8:16] : 8"


@pytest.mark.parametrize(
    ("buffer", "time", "packet", "sizes"),
    [
        ("A % 5, A / 5", "1", "A % 3, A / 3", {"A": 15}),
        ("A % 4, A / 4", "1", "A % 3, A / 3", {"A": 12}),
        ("B = 2 # 8", "B", "1", {"B": 8}),
    ],
)
def test_positions_without_a_source_are_refused(buffer, time, packet, sizes):
    assert refusal(read, buffer, time, packet, **sizes).rule == "SEQ-017"


def test_a_padded_group_that_is_no_run_is_refused_with_a_size_that_works():
    found = refusal(read, "A, B # 8", "1", "[A, B] # 16", A=2, B=6)
    assert (found.rule, str(found.nearest)) == ("SEQ-005", "A, B")


@pytest.mark.parametrize(
    ("buffer", "time", "packet", "sizes"),
    [
        ("A", "T, A", "1", {"A": 8, "T": 2}),
        ("A, B", "1", "B", {"A": 2, "B": 8}),
        ("B", "T", "B", {"T": 2, "B": 8}),
        ("A, B", "A % 2, B", "1", {"A": 4, "B": 8}),
    ],
)
def test_a_slot_needs_exactly_one_source(buffer, time, packet, sizes):
    assert refusal(write, buffer, time, packet, **sizes).rule == "SEQ-018"


def test_padding_of_buffer_and_stream_needs_no_source():
    assert str(write("M, N # 16", "M", "N", M=16, N=8).config) == "[16:16, 8:1] : 8"
    assert str(write("A, B, C # 8", "A, B", "C # 32", A=8, B=512, C=3).config) == "[8:4096, 512:8, 32:1] : 32"


def test_zeros_are_claimed_only_where_there_are_zeros():
    assert str(read("A, B #{0} 8", "A", "B #{0} 8", A=4, B=5).config) == "[4:8, 8:1] : 8"
    assert refusal(read, "A, B # 8", "A", "B #{0} 8", A=4, B=5).rule == "SEQ-017"
    assert str(write("A, B #{0} 8", "A", "B #{0} 8", A=4, B=5).config) == "[4:8, 8:1] : 8"
    assert refusal(write, "A, B #{0} 8", "A", "B", A=4, B=5).rule == "SEQ-018"


def test_nine_loops_merge_to_six():
    time = "W / 16, H % 2, H / 2, C / 2, C % 2, N / 2, N % 2, W / 8 % 2"
    config = read("N, C, H, W", time, "W % 8", N=8, C=8, H=8, W=32).config
    assert config.merged == tuple(Entry(*e) for e in ((2, 16), (2, 32), (4, 64), (8, 256), (8, 2048), (16, 1)))
    config.check_limits()


def test_more_than_eight_loops_are_refused():
    names = "ABCDEFGHI"
    config = read(", ".join(names), ", ".join(reversed(names)), "1", **dict.fromkeys(names, 2)).config
    assert refusal(config.check_limits).rule == "SEQ-010"


def test_merging_stops_at_65536_iterations():
    config = read("A", "A / 32", "A % 32", A=2**21).config
    config.check_limits()
    assert config.merged == (Entry(65_536, 32), Entry(32, 1))
    too_long = refusal(read("A, B", "A", "B", A=131_072, B=32).config.check_limits)
    assert (too_long.rule, too_long.nearest) == ("SEQ-011", "two terms: 2:2097152, 65536:32")


def test_contiguous_run_and_access():
    config = SequencerConfig((Entry(4, 192), Entry(3, 64), Entry(8, 8), Entry(8, 1)), 8)
    assert (config.contiguous_run, config.max_access_size) == (768, 8)
    gap = read("N, C, H, W", "C", "N, H, W", N=4, C=3, H=4, W=8).config
    assert (gap.contiguous_run, gap.max_access_size) == (32, 32)


def test_a_strided_packet_is_accessed_element_by_element():
    config = read("A, B", "B", "A", A=8, B=8).config
    assert (config.is_discrete, config.access_size) == (True, 1)
    assert config.largest_access(dtype("i8"), (1, 2, 4)) == 1
    assert config.largest_access(dtype("i4"), (1, 2, 4)) is None


def test_the_executor_steps_through_the_loops_like_an_odometer():
    config = SequencerConfig((Entry(2, 10), Entry(3, -1)), 3, base=5)
    wanted = [5 + 10 * i - j for i in range(2) for j in range(3)]
    assert list(config.steps()) == wanted
    assert config.addresses().tolist() == wanted
    assert config.packets().tolist() == [wanted[:3], wanted[3:]]
    assert list(SequencerConfig((), 1).steps()) == [0]


def test_reading_by_address_moves_the_elements_of_the_coordinates():
    axes = Axes(A=3, B=4, C=5)
    buffer = np.arange(3 * 4 * 8).reshape(3, 4, 8)
    found = read("A, B, C # 8", "C, A", "B", **axes)
    assert np.array_equal(buffer.reshape(-1)[found.config.packets()].reshape(5, 3, 4), buffer[:, :, :5].transpose(2, 0, 1))


def test_the_trace_leaves_holes_where_terms_were_taken():
    steps = trace(read("A, B, C # 8", "A % 2, B % 4, A / 2, B / 4", "C # 32", A=8, B=8, C=4))
    assert [str(step.buffer_after) for step in steps] == [
        "A / 2, 1 # 2, B, C # 8",
        "A / 2, 1 # 2, B / 4, 1 # 4, C # 8",
        "1 # 8, B / 4, 1 # 4, C # 8",
        "1 # 64, C # 8",
        "1 # 512",
    ]

"""The names and rules of the vendor's tools, and the simple overlap models."""

import pytest

from tcptune.model.timing.overlap import contended_cycles, double_buffered_cycles, fits_trf_half, register_store_cycles
from tcptune.model.vendor_tools import runs_pre_step, selected, type_display


def test_any_filter_is_a_substring_of_the_path_and_none_takes_all():
    functions = ["a::gemm", "a::gemv", "b::add"]
    assert selected(functions, []) == functions
    assert selected(functions, ["gem"]) == ["a::gemm", "a::gemv"]
    assert selected(functions, ["gemm", "add"]) == ["a::gemm", "b::add"]
    assert selected(functions, ["conv"]) == []


@pytest.mark.parametrize(
    ("arguments", "runs"), [("build --release", True), ("test -h", False), ("run --help", False), ("clean", False), ("", False)]
)
def test_kernels_are_compiled_before_building_commands(arguments, runs):
    assert runs_pre_step(arguments.split()) == runs


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("Stride<Symbol<A>, 8>", "m![A / 8]"),
        ("Padding<Modulo<Stride<Symbol<A>, 8>, 2>, 256>", "m![A / 8 % 2 # 256]"),
        ("Padding<Symbol<D>, 64, { PaddingKind::Bottom }>", "m![D #{!} 64]"),
        ("Pair<Symbol<A>, Pair<Symbol<B>, Broadcast<4>>>", "m![A, B, 4]"),
        ("Resize<Pair<Symbol<A>, Symbol<B>>, 4>", "m![[A, B] = 4]"),
        ("Identity", "m![1]"),
    ],
)
def test_mapping_types_are_shown_in_mapping_notation(text, shown):
    assert type_display(text) == shown


def test_what_is_no_mapping_type_is_refused():
    with pytest.raises(ValueError, match="Vector"):
        type_display("Vector<A>")


def test_double_buffering_by_hand():
    assert double_buffered_cycles(20, 383, 264, 1) == 20 * (383 + 264)
    assert double_buffered_cycles(20, 383, 264, 2) == 10 * (383 + 383 + 264)
    assert double_buffered_cycles(20, 383, 264, 20) == 383 + 19 * 383 + 264
    assert double_buffered_cycles(5, 10, 30, 2) == 2 * (10 + 30 + 30) + 40


def test_register_stores_stream_eight_bytes_a_cycle():
    assert register_store_cycles(4096) == 512
    assert register_store_cycles(20) == 3
    assert fits_trf_half(32_768)
    assert not fits_trf_half(32_769)


def test_contention_lies_between_the_maximum_and_the_sum():
    assert contended_cycles(100, 60, 0) == 100
    assert contended_cycles(100, 60, 60) == 160

"""transpose: parameters, derivation, cycles, values, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

from tcptune.ir.mappings.axes import Axes
from tcptune.ir.types import dtype
from tcptune.model.engines.transpose import is_double_buffered, takes_type, transpose_cycles, width_parameters
from tcptune.model.hardware import RNGD
from tcptune.model.pipeline import apply_chain
from tests.model.chains import refused, run, stream
from tests.reference.cells import random_values

AX = Axes(P=256, A=3, B=2, C=8, D=2, E=8, F=16, G=4, H=24, I=32, J=12)


def transpose(time: str, packet: str) -> dict:
    return {"op": "transpose", "time": time, "packet": packet}


def start(dt: str, time: str, packet: str):
    return stream(AX, dt, "Collect", slice="P", time=time, packet=packet)


def test_the_manuals_running_example() -> None:
    got = run(start("i8", "B, C, D", "E # 32"), AX, transpose("B, D, E", "C # 32")).derived
    assert (got["in_cols"], got["in_rows"], got["out_rows"], got["in_flits"], got["n"]) == (16, 8, 16, 16, 2)
    assert (got["packing"], got["buffering"], got["cycles"]) == ("single", "double", 48)


@pytest.mark.parametrize(
    ("dt", "time", "packet", "to_time", "to_packet", "cycles"),
    [
        ("i8", "G", "B # 32", "B", "G # 32", 6),
        ("i8", "B, C, G", "E # 32", "B, G, E", "C # 32", 128),
        ("bf16", "C, G", "E # 16", "C, E", "G # 16", 68),
        ("i4", "G, F", "[C, B] # 64", "G, C, B", "F # 64", 80),
        ("f32", "G, D", "E", "G, E", "D # 8", 34),
    ],
)
def test_cycles_of_the_manuals_examples(dt: str, time: str, packet: str, to_time: str, to_packet: str, cycles: int) -> None:
    assert run(start(dt, time, packet), AX, transpose(to_time, to_packet)).derived["cycles"] == cycles


def test_more_than_eight_live_elements_take_dual_packing() -> None:
    got = run(start("i8", "C", "F # 32"), AX, transpose("F", "C # 32")).derived
    assert (got["valid_size"], got["packing"], got["in_flits"]) == (16, "dual", 8)
    got = run(start("i8", "C, F / 8", "F % 8 # 32"), AX, transpose("F", "C # 32")).derived
    assert (got["valid_size"], got["packing"], got["in_flits"]) == (8, "single", 16)


def test_rows_of_padding_may_go_or_stay() -> None:
    for time, rows in (("J", 12), ("J # 14", 14), ("J # 16", 16)):
        assert run(start("i8", "C", "J # 32"), AX, transpose(time, "C # 32")).derived["out_rows"] == rows


def test_padding_inside_a_gathered_row_may_be_dropped_everywhere() -> None:
    chain = run(start("i8", "C, D", "A # 32"), AX, transpose("D, A", "C # 32"))
    assert (chain.derived["in_cols"], chain.derived["out_rows"]) == (16, 6)
    values = random_values(chain.start, np.random.default_rng(0))
    got = apply_chain(chain, values)
    want = values.data[0, 0, 7].reshape(8, 2, 32)[:, :, :3].transpose(1, 2, 0).reshape(6, 8)
    assert (got.data[0, 0, 7, :, :8] == want).all()
    assert got.defined[0, 0, 7, :, :8].all()


def test_values_are_permuted_inside_every_slice() -> None:
    chain = run(start("i8", "B, C, D", "E # 32"), AX, transpose("B, D, E", "C # 32"))
    values = random_values(chain.start, np.random.default_rng(0))
    got = apply_chain(chain, values)
    live = values.data[0, 0].reshape(256, 2, 8, 2, 32)[..., :8]
    assert (got.data[0, 0, ..., :8].reshape(256, 2, 2, 8, 8) == live.transpose(0, 1, 3, 4, 2)).all()
    assert not got.defined[..., 8:].any()


@pytest.mark.parametrize(
    ("dt", "time", "packet", "to_time", "to_packet", "rule"),
    [
        ("i8", "F", "E # 32", "E", "F # 32", "TRANSPOSE-007"),
        ("bf16", "C", "E # 16", "E", "C # 16", "TRANSPOSE-007"),
        ("i8", "C, A", "E # 32", "A, E", "C # 32", "TRANSPOSE-006"),
        ("i8", "C, G", "F # 32", "G, F", "C # 32", "TRANSPOSE-006"),
        ("i8", "C, B, G", "E # 32", "B, G, E", "C # 32", "TRANSPOSE-006"),
        ("i8", "C", "H # 32", "H", "C # 32", "TRANSPOSE-004"),
        ("i8", "C", "I", "I", "C # 32", "TRANSPOSE-004"),
        ("i4", "C", "I # 64", "I", "C # 64", "TRANSPOSE-004"),
        ("i8", "C", "E # 32", "E", "C # 16", "TRANSPOSE-016"),
        ("i8", "C", "E # 16", "E", "C # 32", "TRANSPOSE-016"),
        ("i8", "B, C, D", "E # 32", "B, E, D", "C # 32", "TRANSPOSE-017"),
        ("i8", "B, C, D", "E # 32", "D, E, B", "C # 32", "TRANSPOSE-017"),
        ("i8", "A, B, C", "E # 32", "B, A, E", "C # 32", "TRANSPOSE-017"),
        ("i8", "B, C", "E # 32", "B, C", "E # 32", "TRANSPOSE-017"),
        ("i8", "B, C", "E # 32", "B, E", "G # 32", "TRANSPOSE-017"),
        ("i8", "B, C", "E # 32", "B, E = 4", "C # 32", "TRANSPOSE-009"),
    ],
)
def test_what_the_engine_cannot_do_is_refused(dt: str, time: str, packet: str, to_time: str, to_packet: str, rule: str) -> None:
    assert refused(start(dt, time, packet), AX, transpose(to_time, to_packet)).rule == rule


@pytest.mark.parametrize("dt", ["i5", "i9"])
def test_residual_types_are_refused(dt: str) -> None:
    error = refused(start(dt, "C", "E # 64" if dt == "i5" else "E # 32"), AX, transpose("E", "C # 32"))
    assert "TRANSPOSE-015" in (error.rule, *error.also)
    assert not takes_type(dtype(dt))


def test_a_contraction_may_feed_it() -> None:
    after = stream(AX, "f32", "Contract", slice="P", time="G, D", packet="E")
    assert run(after, AX, transpose("G, E", "D # 8")).final.position == "Transpose"


@pytest.mark.parametrize(
    ("bits", "single", "dual", "rows", "columns"),
    [(4, 16, None, 16, (16, 32)), (8, 8, 16, 8, (8, 16, 32)), (16, 8, 16, 4, (8, 16, 32)), (32, 8, None, 2, (8, 16, 32))],
)
def test_the_manuals_table(bits: int, single: int, dual: int | None, rows: int, columns: tuple[int, ...]) -> None:
    limits = width_parameters(bits, RNGD)
    assert (limits.single_valid_size, limits.dual_valid_size, limits.max_in_rows, limits.in_cols) == (single, dual, rows, columns)


def test_buffering_and_cycles() -> None:
    assert [is_double_buffered(c, RNGD) for c in (8, 16, 32)] == [True, True, False]
    assert transpose_cycles(2, 32, 32, double=False) == 128
    assert transpose_cycles(64, 16, 3, double=True) == 16 + 63 * 16 + 3
    assert transpose_cycles(1, 4, 2, double=True) == 6


def test_a_long_time_is_derived_without_walking_it() -> None:
    axes = Axes(P=256, T=1 << 20, C=8, E=8)
    long = stream(axes, "i8", "Collect", slice="P", time="T, C", packet="E # 32")
    assert run(long, axes, transpose("T, E", "C # 32")).derived["n"] == 1 << 20

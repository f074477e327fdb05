"""commit_trim, commit_cast and commit_cast_relu: sizes, prefixes, contexts, values, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

from tcptune.errors import RuleViolation
from tcptune.ir.mappings.axes import Axes
from tcptune.ir.types import dtype
from tcptune.model.engines.commit_adapter import CONTEXTS, require_context, valid_sizes
from tcptune.model.hardware import RNGD
from tcptune.model.numerics.elements import to_bits
from tcptune.model.pipeline import apply_chain
from tcptune.model.values import Values
from tests.model.chains import refused, run, stream

AX = Axes(M=4, W=8, N=16, X=32, Z=8, A=2, B=4, V=12)
CAST = {"op": "commit_cast", "dtype": "bf16"}
RELU = {"op": "commit_cast_relu", "dtype": "bf16"}


def trim(packet: str) -> dict:
    return {"op": "commit_trim", "packet": packet}


def start(dt: str, packet: str, position: str = "Collect"):
    return stream(AX, dt, position, time="M", packet=packet)


@pytest.mark.parametrize(
    ("dt", "packet", "kept", "size"),
    [("i8", "W # 32", "W", 8), ("i8", "W # 32", "W # 16", 16), ("f32", "W", "W = 4", 4), ("f32", "W", "W % 4", 4), ("bf16", "N", "N", 16)],
)
def test_a_trim_keeps_a_prefix(dt: str, packet: str, kept: str, size: int) -> None:
    got = run(start(dt, packet), AX, trim(kept)).derived
    assert got == {"valid_size": size, "valid_bytes": size * dtype(dt).bits // 8}


@pytest.mark.parametrize("kept", ["W / 2", "B, A", "Z = 4", "[A, B] = 4"])
def test_anything_else_is_no_prefix(kept: str) -> None:
    assert refused(start("f32", "W"), AX, trim(kept)).rule == "CADAPT-005"


@pytest.mark.parametrize(("dt", "packet", "kept"), [("i8", "V # 32", "V"), ("f32", "W", "W = 3"), ("bf16", "N", "N = 2"), ("i8", "X", "1")])
def test_sizes_off_the_eight_byte_grid_are_refused(dt: str, packet: str, kept: str) -> None:
    assert refused(start(dt, packet), AX, trim(kept)).rule == "CADAPT-004"


def test_a_trim_cannot_grow_the_packet() -> None:
    error = refused(start("i8", "W"), AX, trim("W # 32"))
    assert error.rule == "CADAPT-005"


@pytest.mark.parametrize(
    ("name", "sizes"), [("i4", (16, 32, 48, 64)), ("i8", (8, 16, 24, 32)), ("bf16", (4, 8, 12, 16)), ("f32", (2, 4, 6, 8))]
)
def test_sizes_of_a_trimmed_packet(name: str, sizes: tuple[int, ...]) -> None:
    assert valid_sizes(dtype(name), RNGD) == sizes


def test_the_cast_halves_the_bytes_and_keeps_the_packet() -> None:
    chain = run(start("f32", "W", "Contract"), AX, trim("W"), CAST)
    assert chain.final.packet.equivalent(AX.mapping("W"))
    assert (chain.final.dtype.name, chain.derived["commit_bytes"]) == ("bf16", 16)


@pytest.mark.parametrize("kept", ["W = 2", "W = 6"])
def test_the_cast_packet_is_on_the_grid_again(kept: str) -> None:
    assert refused(start("f32", "W", "Contract"), AX, trim(kept), CAST).rule == "CADAPT-015"


@pytest.mark.parametrize("op", [CAST, RELU])
def test_casts_run_in_the_main_context(op: dict) -> None:
    assert refused(start("f32", "W"), AX, trim("W"), op, context="sub").rule == "CADAPT-002"
    assert run(start("f32", "W"), AX, trim("W"), context="sub").derived["valid_size"] == 8


@pytest.mark.parametrize(("dt", "to"), [("i32", "bf16"), ("f32", "f8e4m3"), ("f32", "f32"), ("i32", "i8")])
def test_other_conversions_are_refused(dt: str, to: str) -> None:
    assert refused(start(dt, "W", "Contract"), AX, trim("W"), {**CAST, "dtype": to}).rule == "CADAPT-009"


def test_one_trim_then_one_cast() -> None:
    contracted = start("f32", "W", "Contract")
    assert refused(contracted, AX, CAST).rule == "CADAPT-011"
    assert refused(contracted, AX, trim("W"), CAST, RELU).rule == "CADAPT-011"
    assert refused(contracted, AX, trim("W"), trim("W = 4")).rule == "CADAPT-003"


def test_generate_mode_belongs_to_the_sub_context() -> None:
    assert CONTEXTS["generate_mode"] == ("sub",)
    require_context("generate_mode", "sub")
    with pytest.raises(RuleViolation, match="generate_mode") as caught:
        require_context("generate_mode", "main")
    assert caught.value.rule == "CADAPT-014"


def filled(chain, row: list[float]) -> Values:
    data = np.zeros(chain.start.shape, np.float32)
    data[...] = row
    return Values(data, np.ones(chain.start.shape, bool))


def test_relu_clears_negative_values_on_the_way() -> None:
    chain = run(start("f32", "W", "Contract"), AX, trim("W = 4"), RELU)
    got = apply_chain(chain, filled(chain, [-5.0, -0.1, 0.0, 3.7, 1, 1, 1, 1]))
    assert to_bits(got.data[0, 0, 0, 0], "bf16").tolist() == [0, 0, 0, 0x406D]


def test_a_plain_cast_rounds_to_even() -> None:
    chain = run(start("f32", "W", "Contract"), AX, trim("W = 4"), CAST)
    got = apply_chain(chain, filled(chain, [1.00390625, 1.01171875, -0.0, np.inf, 1, 1, 1, 1]))
    assert to_bits(got.data[0, 0, 0, 0], "bf16").tolist() == [0x3F80, 0x3F82, 0x8000, 0x7F80]

"""cast: pairs, padding of the narrow flit, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

from tcptune.ir.mappings.axes import Axes
from tcptune.ir.types import dtype
from tcptune.model.engines.cast import flit_elements, has_cast
from tcptune.model.hardware import RNGD
from tcptune.model.pipeline import apply_chain
from tests.model.chains import refused, run, stream
from tests.reference.cells import random_values

AX = Axes(A=8, B=4, C=4, D=2, Q=3)


def cast(to: str, packet: str) -> dict:
    return {"op": "cast", "dtype": to, "packet": packet}


def test_six_pairs() -> None:
    names = ("i4", "i5", "i8", "i9", "i16", "i32", "f4e2m1", "f8e4m3", "f8e5m2", "bf16", "f32")
    pairs = {(a, b) for a in names for b in names if has_cast(dtype(a), dtype(b))}
    assert pairs == {("i32", "i4"), ("i32", "i8"), ("i32", "i16"), ("f32", "f8e4m3"), ("f32", "f8e5m2"), ("f32", "bf16")}


@pytest.mark.parametrize(("to", "elements"), [("i4", 64), ("i8", 32), ("i16", 16)])
def test_the_packet_is_padded_to_a_flit_of_the_narrow_type(to: str, elements: int) -> None:
    chain = run(stream(AX, "i32", "Collect", time="B", packet="A"), AX, cast(to, f"A # {elements}"))
    assert flit_elements(dtype(to), RNGD) == chain.final.packet.size == elements
    assert chain.derived["cast_cycles"] == 4


def test_padding_of_the_input_counts() -> None:
    chain = run(stream(AX, "f32", "Collect", time="1", packet="Q # 8"), AX, cast("bf16", "Q # 16"))
    assert chain.final.packet.equivalent(AX.mapping("Q # 16"))


@pytest.mark.parametrize("packet", ["A", "A # 8", "[C, D] # 32", "B, A"])
def test_other_packets_are_refused(packet: str) -> None:
    assert refused(stream(AX, "i32", "Collect", time="B", packet="D, C"), AX, cast("i8", packet)).rule == "CAST-004"


def test_the_input_is_one_flit() -> None:
    assert refused(stream(AX, "i32", "Collect", time="B", packet="C"), AX, cast("i8", "C # 32")).rule == "CAST-002"


@pytest.mark.parametrize(("source", "to"), [("i32", "bf16"), ("i32", "i32"), ("f32", "i8"), ("f32", "f4e2m1")])
def test_other_pairs_are_refused(source: str, to: str) -> None:
    assert refused(stream(AX, source, "Collect", time="B", packet="A"), AX, cast(to, "A # 32")).rule == "CAST-003"


def test_narrow_inputs_are_refused_for_both_reasons() -> None:
    axes = Axes(A=16)
    error = refused(stream(axes, "i16", "Collect", packet="A"), axes, cast("i8", "A # 32"))
    assert (error.rule, "CAST-009" in error.also) == ("CAST-003", True)


def test_values_are_narrowed_and_the_padding_is_undefined() -> None:
    chain = run(stream(AX, "i32", "Collect", time="B", packet="A", slice="1 # 256"), AX, cast("i8", "A # 32"))
    start = random_values(chain.start, np.random.default_rng(0))
    got = apply_chain(chain, start)
    assert (got.data[..., :8] == start.data.astype(np.int8)).all()
    assert got.defined[0, 0, 0].tolist() == [[True] * 8 + [False] * 24] * 4

"""Cast Engine and Commit Adapter on every element type, position, context and packet: the whole product of what the manual's tables allow.

CAST-001, CAST-003, CAST-004, CADAPT-002, CADAPT-004, CADAPT-008, CADAPT-009, CADAPT-015.
"""

from __future__ import annotations

from itertools import product

import pytest

from tcptune.errors import RuleViolation
from tcptune.ir.kernels.ops import op_from_json
from tcptune.ir.mappings.axes import Axes
from tcptune.ir.types import StreamType, dtype
from tcptune.model.pipeline import check_chain
from tcptune.model.stage import ChainEnv

BITS = {"i4": 4, "i5": 4, "i8": 8, "i9": 8, "i16": 16, "i32": 32, "f8e4m3": 8, "f8e5m2": 8, "bf16": 16, "f32": 32, "f4e2m1": 4}
"""Bits that an element takes in a packet."""
CASTS = {"i32": ("i4", "i8", "i16"), "f32": ("f8e5m2", "f8e4m3", "bf16")}
CASTABLE = ("Collect", "Contract", "VectorFinal")
POSITIONS = (*CASTABLE, "Cast", "Transpose")
FLIT_BITS, COMMIT_BYTES = 256, (8, 16, 24, 32)
SIZES = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64)


def _stream(name: str, position: str, live: int) -> tuple[StreamType, Axes]:
    axes = Axes(A=64, T=3)
    texts = ("1", "1 # 2", "1 # 256", "T", f"A = {live} # {FLIT_BITS // BITS[name]}")
    return StreamType(position, dtype(name), *(axes.mapping(text) for text in texts)), axes


def _refusal(stream: StreamType, axes: Axes, context: str, ops: list[dict[str, str]]) -> set[str]:
    """Rules that a refusal names; none if it is accepted."""
    try:
        check_chain(stream, [op_from_json(op, axes) for op in ops], ChainEnv(context, axes))
    except RuleViolation as refusal:
        return {refusal.rule, *refusal.also}
    return set()


def _agrees(named: set[str], broken: set[str], what: object) -> None:
    assert bool(named) == bool(broken), (what, named, broken)
    assert not broken or named & broken, (what, named, broken)


@pytest.mark.parametrize("name", BITS)
def test_the_commit_adapter_takes_whole_eight_bytes_and_casts_f32_in_the_main_context(name: str) -> None:
    flit = FLIT_BITS // BITS[name]
    for live, size, position, context, cast in product(
        (1, 8, 12), SIZES, POSITIONS, ("main", "sub"), (None, "commit_cast", "commit_cast_relu")
    ):
        if max(live, size) > flit:
            continue
        stream, axes = _stream(name, position, live)
        kept = f"A = {live} # {size}" if size > live else f"A = {size}"
        trimmed = size * BITS[name] / 8
        broken = {"CADAPT-008"} if name in ("i5", "i9") else set()
        broken |= set() if trimmed in COMMIT_BYTES else {"CADAPT-004"}
        if cast:
            broken |= {"CADAPT-002"} if context == "sub" else set()
            broken |= {"CADAPT-009", "CADAPT-010"} if name != "f32" else set() if trimmed / 2 in COMMIT_BYTES else {"CADAPT-015"}
        ops = [{"op": "commit_trim", "packet": kept}, *([{"op": cast, "dtype": "bf16"}] if cast else [])]
        _agrees(_refusal(stream, axes, context, ops), broken, (name, live, size, position, context, cast))


@pytest.mark.parametrize("name", BITS)
def test_the_cast_engine_casts_its_six_pairs_into_one_flit(name: str) -> None:
    flit = FLIT_BITS // BITS[name]
    for live, target, position, context, factor in product((1, 5, 8), BITS, POSITIONS, ("main", "sub"), (0.5, 1, 2)):
        size = int(FLIT_BITS // BITS[target] * factor)
        if live > min(flit, size):
            continue
        stream, axes = _stream(name, position, live)
        broken = set() if position in CASTABLE else {"CAST-001"}
        broken |= set() if target in CASTS.get(name, ()) else {"CAST-003"}
        broken |= set() if factor == 1 else {"CAST-004"}
        ops = [{"op": "cast", "dtype": target, "packet": f"A = {live} # {size}"}]
        _agrees(_refusal(stream, axes, context, ops), broken, (name, live, target, position, context, size))

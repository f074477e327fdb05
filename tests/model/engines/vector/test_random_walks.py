"""Random walks through the Vector Engine: every call is accepted exactly where the manual's stages, ways, ALUs, stash and phases allow it.

The walker keeps its own account (VE-011 to VE-015, ALU-001, STASH-002 to STASH-006, PAIR-003 to PAIR-014); shapes are always legal.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random
from typing import Any

import pytest

from tcptune.errors import RuleViolation
from tcptune.ir.kernels.ops import op_from_json
from tcptune.ir.mappings.axes import Axes
from tcptune.ir.types import StreamType, dtype
from tcptune.model.pipeline import check_chain
from tcptune.model.stage import ChainEnv

AXES = Axes(A=512, B=2, I=2, R=4, S=2, U=2)
ENV = ChainEnv("main", AXES)

ORDER = ("Init", "Entry", "Logic", "Fxp", "FxpToFp", "Narrow", "Float", "Reduce", "FpDiv", "Widen", "FpToFxp", "Clip", "Filter")
SEVERAL_OPS = {"Logic", "Fxp", "Float", "Clip"}
FOUR_WAY = {"Float", "Reduce", "FpDiv", "Widen"}
STASHABLE = {"Entry", "Logic", "Fxp", "Narrow", "Float", "FpDiv", "Clip"}
TO_REDUCER = {"Logic", "Fxp", "FxpToFp", "Widen", "FpToFxp", "Clip"}
BOTH, INTEGER, REAL = ("i32", "f32"), ("i32",), ("f32",)

FUNCTIONS: dict[str, tuple[str, dict[tuple[str, str | None], tuple[str, tuple[str, ...]]]]] = {
    "vector_logic": (
        "Logic",
        {
            ("BitAnd", None): ("LogicAnd", BOTH),
            ("BitXor", None): ("LogicXor", BOTH),
            ("LogicRightShift", None): ("LogicRshift", INTEGER),
            ("ArithRightShift", None): ("LogicRshift", INTEGER),
        },
    ),
    "vector_fxp": (
        "Fxp",
        {
            ("AddFxp", None): ("FxpAdd", INTEGER),
            ("SubFxpSat", None): ("FxpAdd", INTEGER),
            ("MulInt", None): ("FxpMul", INTEGER),
            ("MulFxp", None): ("FxpMul", INTEGER),
            ("LeftShiftSat", None): ("FxpLshift", INTEGER),
        },
    ),
    "vector_fp_unary": ("Float", {("Exp", None): ("FpExp", REAL), ("NegExp", None): ("FpExp", REAL), ("Erf", None): ("FpFpu", REAL)}),
    "vector_fp_binary": (
        "Float",
        {
            ("AddF", None): ("FpFma", REAL),
            ("MulF", "Mul0"): ("FpMul0", REAL),
            ("MulF", "Fma"): ("FpFma", REAL),
            ("DivF", None): ("FpFpu", REAL),
        },
    ),
    "vector_fp_ternary": ("Float", {("FmaF", None): ("FpFma", REAL)}),
    "vector_fp_div": ("FpDiv", {("", None): ("ReduceFpDiv", REAL)}),
    "vector_clip": (
        "Clip",
        {
            ("Min", None): ("ClipMin", BOTH),
            ("AbsMin", None): ("ClipMin", BOTH),
            ("Max", None): ("ClipMax", BOTH),
            ("AddFxp", None): ("ClipAdd", INTEGER),
            ("Add", None): ("ClipAdd", REAL),
        },
    ),
}
"""Methods with a function: their stage, and of (function, selected ALU) the ALU and the element types."""

PLAIN: dict[str, tuple[str, tuple[str, ...], dict[str, Any]]] = {
    "vector_fxp_to_fp": ("FxpToFp", INTEGER, {"int_width": 31}),
    "vector_fp_to_fxp": ("FpToFxp", REAL, {"int_width": 31}),
    "vector_narrow_trim": ("Narrow", BOTH, {"packet": "A % 2 # 4"}),
    "vector_widen_pad": ("Widen", BOTH, {"packet": "A % 2 # 8"}),
    "vector_filter": ("Filter", BOTH, {"guard": {"group": 0}}),
}
"""Methods without a function: their stage, the element types, and legal arguments."""

OTHERS = (
    "vector_intra_slice_tag",
    "vector_intra_slice_unzip",
    "vector_stash",
    "vector_reinterpret",
    "vector_inter_slice_reduce",
    "vector_logic_zip",
    "vector_clip_zip",
    "vector_final",
)


@dataclass
class Walk:
    """Where a chain stands."""

    dtype: str
    stage: str = "Init"
    four_way: bool = False
    phase: str = "single"
    reduced: bool = False
    after_reducer: str | None = None
    alus: set[str] = field(default_factory=set)
    stash: tuple[str, bool] | str | None = None
    time: str = "[S, U, I]"
    done: bool = False

    def enters(self, stage: str) -> bool:
        """Whether the stages and ways allow to enter `stage` now."""
        if self.after_reducer is not None:
            return stage == "Filter"
        here, there = ORDER.index(self.stage), ORDER.index(stage)
        later = here < there or (here == there and stage in SEVERAL_OPS)
        return self.stage != "Init" and later and self.four_way == (stage in FOUR_WAY)


def _function_call(walk: Walk, method: str, rng: Random) -> tuple[dict[str, Any], bool]:
    """A call of a method with a function, and whether it is allowed."""
    stage, functions = FUNCTIONS[method]
    (fn, selected), (alu, types) = rng.choice(list(functions.items()))
    one: Any = 1.0 if walk.dtype == "f32" else 1
    one = [1.0, 2.0] if method == "vector_fp_ternary" else one
    raw: dict[str, Any] = {"op": method, **({"fn": fn} if fn else {}), **({"alu": selected} if selected else {})}
    paired, reads_stash = walk.phase == "pair", False
    if method == "vector_fp_unary":
        raw |= {"group0_apply": True, "group1_apply": False} if paired else {}
    elif paired:
        raw |= {"group0": one, "group1": one}
    else:
        reads_stash = method != "vector_fp_ternary" and rng.random() < 0.25
        raw["operand"] = "Stash" if reads_stash else one
    readable = walk.phase == "single" and walk.stash == (walk.dtype, walk.four_way)
    allowed = walk.enters(stage) and walk.dtype in types and alu not in walk.alus and (readable or not reads_stash)
    if allowed:
        walk.stage = stage
        walk.alus.add(alu)
        walk.stash = "read" if reads_stash else walk.stash
    return raw, allowed


def _plain_call(walk: Walk, method: str) -> tuple[dict[str, Any], bool]:
    stage, types, arguments = PLAIN[method]
    offered = walk.phase == "single" if stage == "Filter" else walk.phase != "pair" if stage in ("Narrow", "Widen") else True
    allowed = walk.enters(stage) and walk.dtype in types and offered
    if allowed:
        walk.stage = stage
        walk.after_reducer = None
        walk.four_way = stage == "Narrow" or (walk.four_way and stage != "Widen")
        walk.dtype = {"FxpToFp": "f32", "FpToFxp": "i32"}.get(stage, walk.dtype)
    return {"op": method, **arguments}, allowed


def _other_call(walk: Walk, method: str, rng: Random) -> tuple[dict[str, Any], bool]:
    chain_open = walk.stage == "Init" and walk.after_reducer in (None, "first") and not walk.done
    if method == "vector_intra_slice_tag":
        if chain_open:
            walk.stage, walk.after_reducer = "Entry", None
        return {"op": method, "mode": "Zero"}, chain_open
    if method == "vector_intra_slice_unzip":
        raw = {"op": method, "axis": "I", "time": walk.time.replace(", I", "")}
        allowed = walk.stage == "Init" and walk.after_reducer is None
        if allowed:
            walk.stage, walk.phase, walk.time = "Entry", "pair", raw["time"]
        return raw, allowed
    if method == "vector_stash":
        allowed = walk.phase == "single" and walk.after_reducer is None and walk.stage in STASHABLE and walk.stash is None
        walk.stash = (walk.dtype, walk.four_way) if allowed else walk.stash
        return {"op": method}, allowed
    if method == "vector_reinterpret":
        to = rng.choice(BOTH)
        allowed = walk.stage != "Init" or walk.after_reducer is not None
        walk.dtype = to if allowed else walk.dtype
        return {"op": method, "to": to}, allowed
    if method == "vector_final":
        walk.done = (walk.stage != "Init" or walk.after_reducer is not None) and not walk.four_way and walk.phase != "pair"
        return {"op": method}, walk.done
    if method == "vector_inter_slice_reduce":
        from_chain = walk.stage in TO_REDUCER and not walk.four_way and walk.phase != "pair"
        allowed = not walk.reduced and (walk.stage == "Init" or from_chain)
        if allowed:
            walk.after_reducer = "first" if walk.stage == "Init" else "last"
            walk.reduced, walk.stash = True, None
        return {"op": method, "slice": "[A / 8, 1 # 4]", "time": walk.time, "fn": "Add"}, allowed
    stage, fn, alu = ("Logic", "BitOr", "LogicOr") if method == "vector_logic_zip" else ("Clip", "Max", "ClipMax")
    allowed = walk.phase == "pair" and walk.enters(stage) and alu not in walk.alus
    if allowed:
        walk.stage, walk.phase = stage, "merged"
        walk.alus.add(alu)
    return {"op": method, "fn": fn}, allowed


def _call(walk: Walk, rng: Random) -> tuple[dict[str, Any], bool]:
    method = rng.choice((*FUNCTIONS, *PLAIN, *OTHERS))
    if method in FUNCTIONS:
        return _function_call(walk, method, rng)
    return _plain_call(walk, method) if method in PLAIN else _other_call(walk, method, rng)


def _start(name: str) -> StreamType:
    levels = (AXES.mapping(text) for text in ("1", "B", "[A / 8, R]", "[S, U, I]", "A % 2 # 8"))
    stream = StreamType("Collect", dtype(name), *levels)
    after = check_chain(stream, [op_from_json({"op": "vector_init"}, AXES)], ENV).final
    assert isinstance(after, StreamType)
    return after


@pytest.mark.parametrize("block", range(4))
def test_every_call_is_offered_exactly_where_the_stages_allow_it(block: int) -> None:
    rng = Random(block)
    accepted = refused = 0
    for _ in range(60):
        name = rng.choice(BOTH)
        walk, stream, calls = Walk(name), _start(name), []
        for _ in range(40):
            if walk.done:
                break
            raw, allowed = _call(walk, rng)
            calls.append(raw)
            try:
                after = check_chain(stream, [op_from_json(raw, AXES)], ENV).final
            except RuleViolation as refusal:
                assert not allowed, (calls, refusal.render())
                refused += 1
                continue
            assert allowed, (calls, walk)
            assert isinstance(after, StreamType)
            assert after.dtype.name == walk.dtype, calls
            stream, accepted = after, accepted + 1
    assert min(accepted, refused) > 100

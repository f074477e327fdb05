"""Rust text of Vector Engine arguments: operands, guards, tag modes, operators (the reader is `exec.rust.syntax.operands`)."""

from __future__ import annotations

import math
from collections.abc import Callable

from tcptune.exec.rust.syntax.constants import FLOAT_CONSTANTS
from tcptune.ir.kernels.vector_operands import (
    Branched,
    Constant,
    Operand,
    StashOperand,
    TagGuard,
    TagMode,
    TernaryOperand,
    VrfOperand,
)
from tcptune.reports.rust.layout import Call, Chain, Expr, Sequence, Struct

NameOf = Callable[[str], str]


def number_text(value: int | float) -> str:
    """A literal that reads back to the same number: ``100``, ``2.5f32``, ``f32::NEG_INFINITY``.

    >>> number_text(-0.5), number_text(7), number_text(float("inf"))
    ('-0.5f32', '7', 'f32::INFINITY')
    """
    if isinstance(value, int):
        return str(value)
    if math.isnan(value):
        return "f32::NAN"
    if math.isinf(value):
        return "f32::INFINITY" if value > 0 else "f32::NEG_INFINITY"
    for name in ("MAX", "MIN"):
        if value == FLOAT_CONSTANTS[name]:
            return f"f32::{name}"
    return f"{value!r}f32"


def operand_text(operand: Operand | None, name_of: NameOf) -> Expr:
    """An operand; None is ``()``, the group that is skipped."""
    if operand is None:
        return "()"
    if isinstance(operand, Constant):
        return number_text(operand.value)
    if isinstance(operand, VrfOperand):
        return f"&{name_of(operand.name)}"
    if isinstance(operand, StashOperand):
        return "Stash"
    if isinstance(operand, TernaryOperand):
        return Sequence((operand_text(operand.operand0, name_of), operand_text(operand.operand1, name_of)), "", "()")
    return _branched(operand, name_of)


def _branched(operand: Branched, name_of: NameOf) -> Expr:
    calls = [Call(s.slot, (), (guard_text(s.guard), operand_text(s.value, name_of))) for s in operand.slots]
    first = calls[0]
    root = Sequence(first.arguments or (), f"Branched::{first.name}", "()")
    return Chain(root, tuple(calls[1:])) if len(calls) > 1 else root


def guard_text(guard: TagGuard) -> Expr:
    raw = guard.to_json()
    if raw == "all":
        return "TagGuard::all()"
    ((kind, value),) = raw.items()
    if kind == "group":
        return f"TagGuard::group({value})"
    return Sequence((Sequence(tuple(f"BitReq::{bit}" for bit in value)),), f"TagGuard::{kind}", "()")


def tag_mode_text(mode: TagMode) -> Expr:
    if mode.kind == "Comparison":
        tests = tuple(f"Cmp::{c.test}" if c.boundary is None else f"Cmp::{c.test}({number_text(c.boundary)})" for c in mode.comparisons)
        return Sequence((Sequence(tests),), "TagMode::Comparison", "()")
    if mode.axis is not None:
        return Struct(f"TagMode::{mode.kind}", (("axis", mode.axis),))
    return f"TagMode::{mode.kind}"

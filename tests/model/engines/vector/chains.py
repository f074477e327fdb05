"""Shorthand for Vector Engine tests: streams of a flit a slice, operations as JSON, contents of one number everywhere."""

from __future__ import annotations

from typing import Any

import numpy as np

from tcptune.ir.mappings.axes import Axes
from tcptune.ir.types import TensorType, dtype
from tcptune.model.numerics.elements import numpy_dtype
from tcptune.model.pipeline import Chain, apply_chain
from tcptune.model.values import Values
from tests.model.chains import refused, run, stream

AXES = Axes(A=2048, B=2, C=4, I=2, N=224, P=8, R=4, S=2, V=4, W=64)

INIT = {"op": "vector_init"}
TAG = {"op": "vector_intra_slice_tag", "mode": "Zero"}
FINAL = {"op": "vector_final"}
TRIM = {"op": "vector_narrow_trim", "packet": "A % 2 # 4"}
PAD = {"op": "vector_widen_pad", "packet": "A % 2 # 8"}
STASH = {"op": "vector_stash"}
UNZIP = {"op": "vector_intra_slice_unzip", "axis": "I", "time": "1"}
DUMMY = {"op": "vector_inter_slice_reduce", "slice": "[W, 1 # 4]", "time": "1", "fn": "Add"}


def comparison(*tests: Any) -> dict[str, Any]:
    return {"op": "vector_intra_slice_tag", "mode": {"Comparison": list(tests)}}


def branched(*slots: tuple[str, Any, Any]) -> dict[str, Any]:
    return {"branched": [{"slot": slot, "guard": guard, "value": value} for slot, guard, value in slots]}


def bits(*pattern: str) -> dict[str, list[str]]:
    return {"matches": list(pattern)}


def flit(dt: str = "i32", **levels: str) -> Any:
    """A collected stream with one full flit a slice (or as `levels` say)."""
    return stream(AXES, dt, "Collect", **{"cluster": "B", "slice": "A / 8", "packet": "A % 8", **levels})


def half(dt: str = "f32", **levels: str) -> Any:
    """A collected stream whose flits hold two elements."""
    return flit(dt, **{"slice": "A / 2 % 256", "packet": "A % 2 # 8", **levels})


def grouped(dt: str = "i32", **levels: str) -> Any:
    """A collected stream over 64 groups of four slices."""
    return flit(dt, **{"slice": "[W, R]", "packet": "P", **levels})


def chain(start: Any, *ops: dict[str, Any], **kwargs: Any) -> Chain:
    return run(start, AXES, INIT, *ops, **kwargs)


def rule_of(start: Any, *ops: dict[str, Any]) -> str:
    return refused(start, AXES, INIT, *ops).rule


def register(element: str, dt: str = "i32", **levels: str) -> TensorType:
    filled = {"chip": "1", "cluster": "B", "slice": "A / 8", **levels, "element": element}
    return TensorType("Vrf", dtype(dt), **{n: AXES.mapping(m) for n, m in filled.items()})


def everywhere(kind: Any, number: Any) -> Values:
    shape = kind.shape
    return Values(np.full(shape, number, numpy_dtype(kind.dtype)), np.ones(shape, bool))


def result_of(start: Any, number: Any, *ops: dict[str, Any]) -> Any:
    """The one number that a chain makes of `number` in every element; a pair of numbers fills the two steps of Time."""
    checked = chain(start, *ops)
    values = everywhere(start, 0)
    if isinstance(number, tuple):
        for step, n in enumerate(number):
            values.data[..., step, :] = n
    else:
        values.data[...] = number
    out = apply_chain(checked, values)
    found = np.unique(out.data[out.defined])
    assert found.size == 1, found
    return found[0].item()

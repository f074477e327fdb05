"""Inter-Slice Reducer: random slices, fills and promotions against a plain numpy sum, and what breaks their shape (XSR-001 to XSR-010)."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from random import Random

import numpy as np
import pytest

from tcptune.errors import RuleViolation
from tcptune.ir.kernels.ops import op_from_json
from tcptune.ir.mappings.axes import Axes
from tcptune.ir.types import StreamType, dtype
from tcptune.model.pipeline import Chain, apply_chain, check_chain
from tcptune.model.stage import ChainEnv
from tcptune.model.values import Values

SLICES, LANES = 64, 8


@dataclass
class Shape:
    """Factors of a reduction, major first: kept and reduced ones of Slice, what fills the freed places, Time before and after."""

    sizes: dict[str, int]
    kept: list[str]
    reduced: list[str]
    fill: list[str]
    time: list[str]
    out_time: list[str]

    def size(self, factor: str) -> int:
        return self.sizes[factor] if factor in self.sizes else int(factor.removeprefix("1 # "))

    def check(self, out_slice: list[str], out_time: list[str]) -> Chain:
        axes = Axes(self.sizes)
        levels = ("1", "C", _listed(self.kept + self.reduced), _listed(self.time), "P")
        stream = StreamType("Collect", dtype("i32"), *(axes.mapping(text) for text in levels))
        reduce = {"op": "vector_inter_slice_reduce", "slice": _listed(out_slice), "time": _listed(out_time), "fn": "Add"}
        ops = [op_from_json(raw, axes) for raw in ({"op": "vector_init"}, reduce)]
        return check_chain(stream, ops, ChainEnv("main", axes))

    def expected(self, data: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Sums at their places, and which places hold one: a dummy holds its value at position 0."""
        before = ["C", *self.kept, *self.reduced, *self.time, "P"]
        after = ["C", *self.kept, *self.fill, *self.out_time, "P"]
        sums = data.reshape([self.size(f) for f in before]).sum(axis=tuple(before.index(f) for f in self.reduced))
        left = [f for f in before if f not in self.reduced]
        moved = sums.transpose([left.index(f) for f in after if f in left])
        shape = [self.size(f) for f in after]
        placed = moved.reshape([self.size(f) if f in left else 1 for f in after])
        defined = np.ones(shape, bool)
        for place, factor in enumerate(after):
            if factor.startswith("1 #"):
                defined[(slice(None),) * place + (slice(1, None),)] = False
        return np.broadcast_to(placed, shape).copy(), defined


def _listed(factors: list[str]) -> str:
    return f"[{', '.join(factors)}]" if factors else "1"


def _drawn(rng: Random) -> Shape:
    sizes, slices, left = {"C": 2, "P": LANES}, [], SLICES
    while left > 1:
        size = rng.choice([n for n in (2, 4, 8) if left % n == 0])
        slices.append(f"S{len(slices)}")
        sizes[slices[-1]], left = size, left // size
    time = [f"T{i}" for i in range(rng.randint(0, 3))]
    sizes |= {axis: rng.choice((2, 3, 4)) for axis in time}
    cut = rng.randint(0, len(slices) - 1)
    fill: list[str] = []
    free = prod(sizes[axis] for axis in slices[cut:])
    while free > 1:
        promoted = [axis for axis in time if axis not in fill and free % sizes[axis] == 0]
        kind = rng.choice(("dummy", "broadcast", "promotion" if promoted else "dummy"))
        size = rng.choice([n for n in (2, 4, 8, 16, 64) if free % n == 0])
        factor = rng.choice(promoted) if kind == "promotion" else f"1 # {size}" if kind == "dummy" else f"X{len(fill)}"
        sizes |= {factor: size} if kind == "broadcast" else {}
        fill.append(factor)
        free //= sizes.get(factor, size)
    rng.shuffle(fill)
    return Shape(sizes, slices[:cut], slices[cut:], fill, time, [axis for axis in time if axis not in fill])


@pytest.mark.parametrize("seed", range(40))
def test_sums_go_to_the_places_that_the_slices_name(seed: int) -> None:
    rng = Random(seed)
    shape = _drawn(rng)
    chain = shape.check(shape.kept + shape.fill, shape.out_time)
    assert chain.derived["reduction_ratio"] == prod(shape.size(f) for f in shape.reduced)
    data = np.random.default_rng(seed).integers(-(2**20), 2**20, chain.start.shape)
    result = apply_chain(chain, Values(data.astype(np.int32), np.ones(data.shape, bool)), {})
    sums, defined = shape.expected(data)
    assert np.array_equal(result.defined, defined.reshape(result.defined.shape))
    assert np.array_equal(result.data[result.defined], sums[defined].astype(np.int32))


@pytest.mark.parametrize("seed", range(40))
def test_other_slices_and_times_are_refused(seed: int) -> None:
    shape = _drawn(Random(seed))
    out_slice, out_time = shape.kept + shape.fill, shape.out_time
    changes: list[tuple[str, list[str], list[str]]] = [("XSR-008", [*out_slice, "1 # 2"], out_time)]
    if len(shape.kept) > 1:
        changes.append(("XSR-001", shape.kept[::-1] + shape.fill, out_time))
    if shape.kept:
        outer = f"1 # {shape.size(shape.kept[0])}"
        changes.append(("XSR-001", [outer, *shape.kept[1:], *shape.reduced], shape.time))
    if len(out_time) > 1:
        changes.append(("XSR-004", out_slice, out_time[::-1]))
    if out_time:
        changes.append(("XSR-010", out_slice, out_time[1:]))
    if len(out_time) < len(shape.time):
        changes.append(("XSR-010", out_slice, shape.time))
    for rule, slices, time in changes:
        with pytest.raises(RuleViolation) as refused:
            shape.check(slices, time)
        assert rule in (refused.value.rule, *refused.value.also), (rule, slices, time, refused.value.render())

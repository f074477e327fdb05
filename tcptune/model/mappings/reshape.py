"""Reshape: new mappings for a tensor at the same address, with the proof that no element changes its name (DMA-006).

A reshape moves nothing, so every axis that occurs before and after must have the same coordinate at every position that is live in both.
Axes may be merged, split or renamed; what a new name or a broadcast claims about the data is not checked here (LIFT-011).
"""

from __future__ import annotations

from functools import lru_cache

from tcptune.errors import RuleViolation
from tcptune.ir.mappings.algebra_cases import Box, Form, evaluate, explore
from tcptune.ir.mappings.mapping import Mapping, pair
from tcptune.ir.types import TensorType


def check_wire_order(before: TensorType, after: TensorType) -> None:
    """Refuses a reshape that permutes elements.

    Raises:
        RuleViolation: DMA-006, an axis of both types lies elsewhere afterwards.
    """
    for axis in moved_axes(pair(*(m for _, m in before.levels)), pair(*(m for _, m in after.levels))):
        raise RuleViolation(
            "DMA-006",
            f"axis {axis} would lie elsewhere, but a reshape moves no data",
            expected=_written(before),
            got=_written(after),
            nearest="a transfer (to_dm, to_hbm) with the new mappings, which moves the data",
        )


@lru_cache(maxsize=1024)
def moved_axes(before: Mapping, after: Mapping) -> tuple[str, ...]:
    """Axes of both mappings whose coordinate differs at some position that is live in both."""
    shared = [name for name in before.axes if name in after.axes]
    if not shared or before.size != after.size:
        return ()
    zero = Form(0, {})
    moved: set[str] = set()

    def compare(box: Box) -> None:
        old, new = evaluate(box, before), evaluate(box, after)
        if old.kind is None and new.kind is None:
            moved.update(n for n in shared if box.leaves(old.coords.get(n, zero)) != box.leaves(new.coords.get(n, zero)))

    for _ in explore(before.size, compare):
        pass
    return tuple(name for name in shared if name in moved)


def _written(tensor: TensorType) -> str:
    return "; ".join(f"{name} {mapping}" for name, mapping in tensor.levels)

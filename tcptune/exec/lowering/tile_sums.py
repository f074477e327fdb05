"""Partial sums of tiles of summed axes: each tile's pass commits its own, side by side in data memory; one pass adds those of a result.

The terms are written through a mutable view, one position of the axis `PART` a tile (COMMIT-010, MAP-024), in the accumulator's element
type, and lie in the slice in which they are added: two as a pair (PAIR-001), more by the Intra-Slice Reducer (ISR-001). Where summed axes
lie over slices or clusters as well, the sums of the tiles are what `exec.lowering.partial_sums` adds.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from tcptune.errors import RuleViolation
from tcptune.exec.lowering.layout import Layout
from tcptune.exec.lowering.partial_sums import PAIR, Summation, accumulating, addition_ops, check_no_saturation
from tcptune.exec.lowering.passes import contraction_ops, contraction_result
from tcptune.exec.lowering.result import write_width
from tcptune.ir.placement import AxisText, Digit, expression, positions

PART = "part"
"""Axis of the partial sums of the tiles; longer than any axis of an einsum, so that none has its name."""

PARTS = "parts"
"""Name of the tensor that holds them."""

Steps = list[dict[str, Any]]


def plan_tile_sum(layout: Layout) -> Summation:
    """How the partial sums of the tiles are added in the slices that committed them.

    Raises:
        RuleViolation: TRANSPOSE-017 for a transpose before the sum, ISR-003 where sums of integers may saturate.
    """
    return _planned(layout)


@lru_cache(maxsize=256)
def _planned(layout: Layout) -> Summation:
    if layout.candidate.knobs.transpose:
        raise RuleViolation("TRANSPOSE-017", "partial sums are added in the order of the Lane Folder, without a transpose", got="transpose")
    count = layout.candidate.parts
    if count != PAIR:
        check_no_saturation(layout)
    held = contraction_result(accumulating(layout))
    rest, packet = held.element(accumulating(layout))
    width = write_width(layout, positions(packet), layout.accumulator)
    time = (*rest, Digit(PART, 1, count))
    result = contraction_result(layout)
    return Summation(held, count, (), held.clusters, held.slices, tuple(rest), tuple(packet), width, time, time, None, result, PART)


def tile_sum_steps(layout: Layout, stream_dm: str, target: str, *, is_whole: bool) -> Steps:
    """The tensor of the partial sums, the pass of one tile that commits its own, and the pass that adds them, whose result is `target`.

    `is_whole`: nothing is left to add, so that the sum is committed in the result's element type. `exec.lowering.tiled` puts the steps
    around and inside of the loops, and knows the number of the tile.
    """
    held, plan = accumulating(layout), plan_tile_sum(layout)
    texts = {**layout.texts(None), PART: AxisText(PART.upper(), plan.count)}
    inner = plan.held.element_text(held)
    levels = {"cluster": expression(plan.clusters, texts), "slice": expression(plan.slices, texts)}
    tensor = {"let": PARTS, "op": "new_dm", "dtype": layout.accumulator.name, "chip": "1", **levels, "element": f"{PART.upper()}, {inner}"}
    *ops, _ = contraction_ops(held)
    tile = {"axis": PART.upper(), "len": 1, "start": "0", "element": f"1 #{{!}} {plan.count}, {inner}", "mutable": True}
    one = {"context": "main", "begin": stream_dm, "ops": [*ops, {"op": "commit_view", "into": PARTS, "tile": tile}]}
    written = layout if is_whole else held
    return [tensor, one, {"let": target, "context": "main", "begin": PARTS, "ops": addition_ops(written, plan, texts)}]

"""Runs `mapping` cases: size, tree, canonical text, cells, equivalences and tiles."""

from __future__ import annotations

from typing import Any

from tcptune.errors import ParseError, RuleViolation
from tcptune.exec.conformance.kinds.compare import expect_refusal
from tcptune.exec.conformance.registry import Case, Mismatch, expect_equal
from tcptune.ir.mappings.axes import Axes
from tcptune.ir.mappings.cells import Index
from tcptune.ir.mappings.mapping import Mapping, PadKind
from tcptune.model.mappings.tiles import check_start, tile_stride


def run(case: Case) -> None:
    """Checks one case of kind `mapping`.

    Raises:
        Mismatch: the verdict, the rule or a fact of the mapping disagrees.
    """
    expect = case["expect"]
    try:
        axes = Axes(case["axes"])
        mapping = axes.mapping(case["expr"])
        offset = _tile_offset(case["tile"], mapping, axes) if "tile" in case else {}
    except (RuleViolation, ParseError) as refusal:
        expect_refusal(refusal, expect)
        return
    if expect.get("verdict", "accept") != "accept":
        raise Mismatch(f"accepted, expected refusal by {expect['rule']}")
    if "size" in expect:
        expect_equal("size", mapping.size, expect["size"])
    if "ast" in expect:
        expect_equal("ast", mapping.ast(), expect["ast"])
    if "canonical" in expect:
        expect_equal("canonical", str(mapping), expect["canonical"])
        if not axes.mapping(str(mapping)).equivalent(mapping):
            raise Mismatch(f"the canonical text {mapping} reads as another mapping")
    for position, want in expect.get("cells", ()):
        expect_equal(f"cell {position}", _plain_cell(_shifted(mapping, position, offset)), _plain_cell(want))
    for other in expect.get("equivalent_to", ()):
        expect_equal(f"equivalent to {other}", mapping.equivalent(axes.mapping(other)), True)
    for other in expect.get("not_equivalent_to", ()):
        expect_equal(f"equivalent to {other}", mapping.equivalent(axes.mapping(other)), False)


def _tile_offset(tile: dict[str, Any], view: Mapping, axes: Axes) -> dict[str, int]:
    """Coordinates that the start of a tile adds to the cells of its view.

    Raises:
        RuleViolation: MAP-023 to MAP-026.
    """
    index = axes.mapping(tile["index"])
    tile_stride(axes.mapping(tile["source"]), index, tile["len"], view, tile["mutable"])
    check_start(index, tile["len"], tile["start"], tile["start"])
    start = index.cell(tile["start"])
    assert isinstance(start, Index)
    return start.coords


def _shifted(mapping: Mapping, position: int, offset: dict[str, int]) -> Any:
    cell = mapping.cell(position)
    if not isinstance(cell, Index):
        return cell.to_json()
    names = {**cell.coords, **offset}
    return {name: cell.coords.get(name, 0) + offset.get(name, 0) for name in names}


def _plain_cell(cell: Any) -> Any:
    """A cell in which coordinate 0 and a missing axis are the same."""
    if isinstance(cell, dict):
        return {name: value for name, value in cell.items() if value}
    known = {f"padding:{kind.value}" for kind in PadKind} | {"oob"}
    return cell if cell in known else f"unknown cell {cell!r}"

"""`tcptune tilings LAYOUT`: every way to lay an HBM tensor over the slices, with the predicted cost of its load or store."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.table import Table

from tcptune.cli.output import print_document, text_console
from tcptune.errors import WorkError
from tcptune.ir.mappings.axes import Axes
from tcptune.ir.types import dtype
from tcptune.model.timing.calibration import profile as profile_of
from tcptune.reports.tilings import Tilings, tilings


def command(
    layout: Annotated[str, typer.Argument(metavar="LAYOUT", help='the tensor in HBM as a list of axes, e.g. "I, K"')],
    sizes: Annotated[list[str], typer.Option("-s", "--size", help="axis sizes, e.g. -s I=512 (repeatable)")],
    element_type: Annotated[str, typer.Option("--dtype", help="element type")] = "bf16",
    store: Annotated[bool, typer.Option("--store", help="price the store to HBM instead of the load")] = False,
    top: Annotated[int, typer.Option(help="how many are shown", min=1)] = 12,
    profile: Annotated[str, typer.Option(help="timing constants: vendor or manual")] = "vendor",
    json: Annotated[bool, typer.Option("--json", help="one JSON document on standard output, with all of them")] = False,
) -> None:
    """Enumerate the legal tilings of a load or store, cheapest first. Exit status 1 if none is legal."""
    axes = Axes.parse(*sizes)
    found = tilings(axes.mapping(layout), axes, dtype(element_type), store=store, profile=profile_of(profile).name)
    if json:
        print_document(found.to_json())
    else:
        print_tilings(found, top)
    if not found.found:
        raise WorkError(f"no tiling of {layout} is legal", hint="pad its rows in HBM to a multiple of 8 bytes (tcptune explain DMA-005)")


def print_tilings(found: Tilings, top: int) -> None:
    """The cheapest ones, then how many there are and which rules refuse the others."""
    console = text_console()
    table = Table("cluster", "slice", "element", "cycles", "pieces", "run bytes", "descriptors", "bytes a slice")
    for column in table.columns[3:]:
        column.justify = "right"
    for t in found.found[:top]:
        numbers = (t.cycles, t.pieces, t.run_bytes, t.descriptors, t.bytes_per_slice)
        table.add_row(t.cluster, t.slice, t.element, *(f"{n:,}" for n in numbers))
    console.print(table)
    refused = ", ".join(f"{rule} {count}" for rule, count in found.refused.items()) or "none"
    unpriced = found.enumerated - len(found.found) - sum(found.refused.values())
    rest = f"; {unpriced:,} that use fewer slices are not priced" if unpriced else ""
    console.print(f"{found.enumerated:,} tilings, {len(found.found):,} legal, refused by rule: {refused}{rest}", soft_wrap=True)

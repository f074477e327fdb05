"""`tcptune map EXPR`: a workbench for mapping expressions, their equivalence and the Sequencer between a buffer and a stream."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
import typer

from tcptune.cli.output import print_document
from tcptune.errors import InputError
from tcptune.ir.mappings.algebra_cases import first_difference
from tcptune.ir.mappings.axes import Axes
from tcptune.ir.mappings.cells import cells_at
from tcptune.ir.mappings.linear import LinearCombination, parse_linear
from tcptune.ir.mappings.mapping import Mapping, factors
from tcptune.ir.types import DType, dtype
from tcptune.model.engines.commit import CommitWrite, plan_write
from tcptune.model.engines.fetch import FetchRead, read_size
from tcptune.model.hardware import RNGD
from tcptune.model.sequencer.derivation import Derivation, derive_read, derive_write
from tcptune.model.sequencer.trace import trace

DEFAULT_CELLS = 16
_GRID_COLUMNS = 16


@dataclass(frozen=True)
class Stream:
    """The stream that the mapping, taken as a buffer, is read into or written from."""

    time: Mapping
    packet: Mapping
    dtype: DType
    context: str
    write: bool


def command(
    expression: Annotated[str, typer.Argument(metavar="EXPR", help='a mapping, e.g. "A / 8 # 256", or a linear combination "$(N:1, F:2)"')],
    other: Annotated[str | None, typer.Argument(metavar="OTHER", help="a second mapping to compare with")] = None,
    sizes: Annotated[list[str] | None, typer.Option("-s", "--size", help="axis sizes, e.g. -s A=2048 (repeatable)")] = None,
    cells: Annotated[int, typer.Option(help="how many positions to show", min=0, max=65_536)] = DEFAULT_CELLS,
    start: Annotated[int, typer.Option(help="first position to show", min=0)] = 0,
    time: Annotated[str, typer.Option(help="Time of a stream: EXPR is the buffer")] = "1",
    packet: Annotated[str | None, typer.Option(help="Packet of the stream")] = None,
    element_type: Annotated[str, typer.Option("--dtype", help="element type of the stream")] = "bf16",
    context: Annotated[str, typer.Option(help="main or sub")] = "main",
    write: Annotated[bool, typer.Option("--write", help="the stream is committed to the buffer instead of fetched from it")] = False,
    json: Annotated[bool, typer.Option("--json", help="one JSON document on standard output")] = False,
) -> None:
    """Normal form, cells, equivalence and Sequencer of mapping expressions."""
    axes = Axes.parse(*(sizes or ()))
    if expression.lstrip().startswith("$"):
        related = linear_document(expression, parse_linear(expression, axes), start, cells)
        if json:
            print_document(related)
        else:
            print(linear_text(related))
        return
    mapping = axes.mapping(expression)
    compared = None if other is None else axes.mapping(other)
    if context not in ("main", "sub"):
        raise InputError(f"unknown context {context!r}", hint="contexts of the Tensor Unit: main, sub")
    if packet is None and (time != "1" or write):
        raise InputError("a stream needs --packet", hint='for example --time "A" --packet "B"')
    stream = None if packet is None else Stream(axes.mapping(time), axes.mapping(packet), dtype(element_type), context, write)
    found = document(expression, mapping, compared, stream, start, cells)
    if json:
        print_document(found)
    else:
        print(text(found))


def document(
    expression: str,
    mapping: Mapping,
    compared: Mapping | None = None,
    stream: Stream | None = None,
    start: int = 0,
    count: int = DEFAULT_CELLS,
) -> dict[str, Any]:
    """The map/1 document.

    Raises:
        RuleViolation: the stream cannot be read from or written to the mapping.
    """
    form = mapping.normal_form()
    found: dict[str, Any] = {
        "schema": "tcptune/map/1",
        "expr": expression,
        "canonical": str(mapping),
        "axes": mapping.axes,
        "size": mapping.size,
        "live": mapping.live_size,
        "cells": _cells(mapping, start, count),
        "normal_form": [digit.to_json() for digit in form.digits],
        "guards": [guard.to_json() for guard in form.guards],
        "factors": [{"expr": str(f), "size": f.size} for f in factors(mapping)],
    }
    if compared is not None:
        found["other"] = str(compared)
        found["equivalent"] = mapping.equivalent(compared)
        if not found["equivalent"]:
            found["difference"] = _difference(mapping, compared)
    if stream is not None:
        found["sequencer"] = sequencer(mapping, stream)
    return found


def linear_document(expression: str, combination: LinearCombination, start: int = 0, count: int = DEFAULT_CELLS) -> dict[str, Any]:
    """The map/1 document of a linear combination: `cells` lists all indices of each position (SEM-004)."""
    positions = range(start, min(start + count, combination.size))
    return {
        "schema": "tcptune/map/1",
        "expr": expression,
        "canonical": str(combination),
        "size": combination.size,
        "one_to_one": combination.is_one_to_one(),
        "cells": [[position, combination.indices(position)] for position in positions],
    }


def linear_text(found: dict[str, Any]) -> str:
    """The document of a linear combination as a person reads it."""
    kind = "at most one index a position" if found["one_to_one"] else "several indices may meet at a position"
    lines = [found["canonical"], f"  {found['size']:,} positions, {kind}", ""]
    for position, indices in found["cells"]:
        lines.append(f"  {position:>8}  {' | '.join(_cell_text(i) for i in indices) or 'nothing'}")
    return "\n".join(lines)


def _cells(mapping: Mapping, start: int, count: int) -> list[list[Any]]:
    if start >= mapping.size:
        return []
    positions = np.arange(start, min(start + count, mapping.size), dtype=np.int64)
    table = cells_at(mapping, positions)
    return [[int(p), table.cell(i).to_json()] for i, p in enumerate(positions)]


def _difference(mapping: Mapping, compared: Mapping) -> dict[str, Any]:
    at = first_difference(mapping, compared)
    assert at is not None
    return {
        "position": at,
        "first": mapping.cell(at).to_json(),
        "second": compared.cell(at).to_json(),
        "sizes": [mapping.size, compared.size],
    }


def sequencer(buffer: Mapping, stream: Stream) -> dict[str, Any]:
    """Loops, accesses and cycles of a stream over a buffer.

    Raises:
        RuleViolation: SEQ, FETCH or COMMIT rules that it breaks.
    """
    access: FetchRead | CommitWrite
    if stream.write:
        found = derive_write(buffer, stream.time, stream.packet)
        access = plan_write(buffer, stream.time, stream.packet, stream.dtype, stream.context, RNGD)
    else:
        found = derive_read(buffer, stream.time, stream.packet)
        found.config.check_limits()
        size = read_size(found.config, stream.dtype, stream.context, RNGD)
        access = FetchRead(buffer, found.config, stream.dtype, stream.time.size, size)
    per_packet = access.writes_per_packet if isinstance(access, CommitWrite) else access.reads_per_packet
    return {
        "direction": "write" if stream.write else "read",
        "context": stream.context,
        "dtype": stream.dtype.name,
        "time": str(stream.time),
        "packet": str(stream.packet),
        **found.config.to_json(),
        **access.derived(),
        "accesses_per_packet": per_packet,
        "terms": _terms(found),
    }


def _terms(found: Derivation) -> list[dict[str, Any]]:
    return [
        {"term": str(step.term), "entries": [[e.size, e.stride] for e in step.entries], "buffer_after": str(step.buffer_after)}
        for step in trace(found)
    ]


# --- text -------------------------------------------------------------------------------------------------------------------------


def text(found: dict[str, Any]) -> str:
    """The document as a person reads it."""
    lines = [f"{found['canonical']}", f"  {found['size']:,} positions, {found['live']:,} live"]
    lines += ["", "digits (major first)"]
    lines += [f"  {_digit_text(d)}" for d in found["normal_form"]] or ["  none"]
    if found["guards"]:
        lines += ["", "padding where (i is the position)", *(f"  {_guard_text(g)}" for g in found["guards"])]
    if found["cells"]:
        lines += ["", "cells", *_grid(found["cells"])]
    if "equivalent" in found:
        lines += ["", f"{'equivalent' if found['equivalent'] else 'not equivalent'} to {found['other']}"]
        if "difference" in found:
            d = found["difference"]
            lines.append(f"  position {d['position']}: {_cell_text(d['first'])} against {_cell_text(d['second'])}")
    if "sequencer" in found:
        lines += ["", *_sequencer_text(found["sequencer"])]
    return "\n".join(lines)


def _digit_text(d: dict[str, Any]) -> str:
    axis = d["axis"]
    what = "repeats" if axis is None else f"{f'[{axis}]' if ',' in axis else axis} += {d['weight']}"
    place = f", place {d['place']} of {d['of']}" if "of" in d else ""
    return f"{d['extent']:>8} x every {d['stride']:<8} {what}{place}"


def _guard_text(g: dict[str, Any]) -> str:
    terms = []
    for t in g["sum"]:
        step = "i" if t["stride"] == 1 else f"i / {t['stride']}"
        terms.append(f"{step} % {t['extent']}" if t["weight"] == 1 else f"{t['weight']} * ({step} % {t['extent']})")
    return f"{' + '.join(terms)} >= {g['below']}: {g['else']}"


def _cell_text(cell: Any) -> str:
    if isinstance(cell, dict):
        return " ".join(f"{axis}={value}" for axis, value in cell.items()) or "·"
    return {"padding:top": "#", "padding:zero": "#{0}", "padding:bottom": "#{!}", "oob": "out of bounds"}[cell]


def _grid(cells: list[list[Any]]) -> list[str]:
    """Cells in lines of at most 16, each line headed by its first position."""
    texts = [_cell_text(c) for _, c in cells]
    width = max(len(t) for t in texts)
    columns = max(1, min(_GRID_COLUMNS, 120 // (width + 2)))
    columns = 1 << (columns.bit_length() - 1)
    return [
        f"  {cells[i][0]:>8}  " + "  ".join(t.ljust(width) for t in texts[i : i + columns]).rstrip() for i in range(0, len(texts), columns)
    ]


def _sequencer_text(s: dict[str, Any]) -> list[str]:
    def loops(entries: list[list[int]]) -> str:
        return "[" + ", ".join(f"{n}:{stride}" for n, stride in entries) + "]"

    lines = [f"sequencer, {s['direction']} of {s['dtype']} on {s['context']}: {loops(s['entries'])} : {s['packet_size']}"]
    for term in s["terms"]:
        lines.append(f"  {term['term']:<20} {loops(term['entries']):<20} buffer left: {term['buffer_after']}")
    size = s["write_size" if s["direction"] == "write" else "read_size"]
    size_bytes = s["write_bytes" if s["direction"] == "write" else "read_bytes"]
    lines.append(f"  merged {loops(s['merged_entries'])}, contiguous run {s['contiguous_run']}, largest access {s['max_access_size']}")
    lines.append(f"  {size} elements ({size_bytes} bytes) an access, accesses a packet: {s['accesses_per_packet']}, {s['cycles']:,} cycles")
    return lines

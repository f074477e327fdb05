"""Numbers that follow from a contraction's mappings, counted cell by cell (OUTER-003 to OUTER-019, PACKETRED-003, TIMERED-004, CE-012).

Random legal contractions; every number is counted from single cells and from how the contraction was drawn, never from a normal form.
"""

from __future__ import annotations

from math import prod
from random import Random
from typing import Any

import pytest

from tcptune.errors import RuleViolation
from tcptune.ir.mappings.cells import Index
from tcptune.ir.mappings.mapping import Mapping
from tcptune.model.numerics.elements import packing_bits
from tcptune.model.pipeline import Chain
from tests.properties.contractions import Drawn, draw

FLIT_BITS, WIDE_BITS, PHYSICAL_BITS = 256, 512, 512
BUFFER_CELLS, LANES, COLUMNS, BUS = 1024, 8, 32, 8


def _cells(m: Mapping, step: int = 1) -> list[dict[str, int] | str]:
    """Coordinates of every `step`-th position, zeros left out, or ``padding``."""
    found: list[dict[str, int] | str] = []
    for position in range(0, m.size, step):
        cell = m.cell(position)
        found.append({a: c for a, c in cell.coords.items() if c} if isinstance(cell, Index) else "padding")
    return found


def _live(m: Mapping) -> int:
    return sum(cell != "padding" for cell in _cells(m))


def _without_outer_padding(cells: list[dict[str, int] | str]) -> list[dict[str, int] | str]:
    while cells and cells[-1] == "padding":
        cells = cells[:-1]
    return cells


def _read_size(element: Mapping, packet: Mapping, bits: int) -> int:
    """The longest common beginning of a stored row and the packet that divides both and fits a wide read (OUTER-016)."""
    stored, wanted = _cells(element), _cells(packet)
    fits = [r for r in range(1, min(len(stored), len(wanted)) + 1) if r * bits <= WIDE_BITS and not (len(stored) % r or len(wanted) % r)]
    return max(r for r in fits if stored[:r] == wanted[:r])


def _entries(time: Mapping, element: Mapping) -> list[list[int]]:
    """Size and stride of every factor of Time: where the element lies to which its first step leads, 0 if nowhere (OUTER-019)."""
    stored = _cells(element)
    entries = []
    for term in time.terms():
        if term.size > 1:
            second = _cells(term)[1]
            entries.append([term.size, stored.index(second) if second in stored and second != "padding" else 0])
    return entries


def _depth(packet: Mapping, declared: Mapping) -> int:
    """The smallest depth that leaves what was declared (PACKETRED-003, PACKETRED-006)."""
    want = _without_outer_padding(_cells(declared))
    for depth in range(packet.size.bit_length()):
        left = _cells(packet, 1 << depth)
        if _without_outer_padding(left) == want or _without_outer_padding(left[:COLUMNS]) == want:
            return depth
    raise AssertionError("no depth leaves what was declared")


def _counted(drawn: Drawn) -> dict[str, Any]:
    """The numbers of a contraction."""
    outer, packet_reducer, time_reducer, folder = (op.to_json() for op in drawn.ops)
    time, packet = (drawn.axes.mapping(outer[level]) for level in ("time", "packet"))
    left, kept, out_time = (
        drawn.axes.mapping(op[level]) for op, level in ((packet_reducer, "packet"), (time_reducer, "time"), (folder, "time"))
    )
    bits, lane, element = packing_bits(drawn.start.dtype), drawn.weight.lane, drawn.weight.element
    read = _read_size(element, packet, bits)
    pack = packet.size * bits // FLIT_BITS
    depth = _depth(packet, left)
    survivors = [str(t) for t in kept.terms()]
    summed = [str(t) not in survivors and t.size > 1 for t in time.terms()]
    inner = prod(t.size for t, gone in list(zip(time.terms(), summed, strict=True))[summed.index(True) :] if not gone) if any(summed) else 1
    interleaved = folder["mode"] == "Interleaved"
    chunk = LANES * left.size if interleaved else lane.size * COLUMNS
    return {
        "pack_size": pack,
        "lane_broadcast": lane.size,
        "time_broadcast": time.size * pack // drawn.start.time.size,
        "stream_flits": drawn.start.time.size,
        "outer_steps": time.size,
        "read_size": read,
        "read_bytes": read * bits / 8,
        "trf_banks": 2 if read * bits > FLIT_BITS else 1,
        "packet_broadcast": packet.size // read,
        "trf_reads_per_pass": element.size // read,
        "trf_time_entries": _entries(time, element),
        "tree_depth": depth,
        "reduce_packet_size": packet.size >> depth,
        "inner_time": inner,
        "time_reduce_factor": prod(t.size for t, gone in zip(time.terms(), summed, strict=True) if gone),
        "cells_per_chunk": chunk,
        "slot_capacity": BUFFER_CELLS // chunk,
        "out_flits": out_time.size,
        "mac_utilization": {"packet": _live(packet) * bits / PHYSICAL_BITS, "lane": _live(lane) / LANES},
    }


def _derived(chain: Chain) -> dict[str, Any]:
    found = dict(chain.derived)
    found["trf_time_entries"] = [list(entry) for entry in found["trf_time_entries"]]
    return found


@pytest.mark.parametrize("block", range(2))
def test_numbers_of_random_contractions_are_those_counted_from_cells(block: int) -> None:
    checked = 0
    for seed in range(block * 40, block * 40 + 40):
        drawn = draw(Random(seed))
        try:
            chain = drawn.check()
        except RuleViolation as refusal:
            assert refusal.rule == "TIMERED-006", (seed, refusal.render())
            counted = _counted(drawn)
            assert counted["inner_time"] > counted["slot_capacity"], seed
            continue
        derived, counted = _derived(chain), _counted(drawn)
        differing = {name: (derived[name], want) for name, want in counted.items() if derived[name] != want}
        assert not differing, (seed, differing, [op.to_json() for op in drawn.ops], str(drawn.weight.element))
        assert counted["inner_time"] <= counted["slot_capacity"], seed
        checked += 1
    assert checked > 20

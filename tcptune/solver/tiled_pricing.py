"""Closed-form price of a nest of tile loops around a body: steady state, prologue and epilogue.

The unrolled loops inside are one scheduling unit: there the DMA engine, Main and Sub work side by side, and the unit takes as long as the
busiest of them, after the first tile's loads and before the last tile's store (TUNE-011). A kept loop repeats the unit inside of it with a
barrier (VT-046). Prices rank; the compiled schedule is the authority.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from tcptune.ir.candidate import Tiles
from tcptune.model.timing.kernels import kernel_timing
from tcptune.solver.pricing import Terms


@dataclass(frozen=True, slots=True)
class Nest:
    """What the price of a body's terms depends on besides the terms.

    Attributes:
        tiles: the loops.
        stationary, stream: loops around the load (and staging) of either operand.
        result: loops around the store of a result, and the addition of its partial sums; inner ones are over summed axes.
        overlaps: whether data memory holds two tiles at once, so that a load need not wait for the pass before it.
    """

    tiles: Tiles
    stationary: int
    stream: int
    result: int
    overlaps: bool = True

    @property
    def kept(self) -> int:
        """Kept loops, which are the outer ones."""
        return sum(1 for loop in self.tiles.loops if not loop.unroll)


def nest_cycles(nest: Nest, terms: Terms, profile: str) -> int:
    """Cycles of a whole kernel whose body has these terms."""
    timing = kernel_timing(profile)
    kept = nest.kept
    saved = int(timing.loop_pass_saving.value) if kept else 0
    total = 0
    for depth in range(kept):  # operands that stay across kept loops are loaded in units of their own
        runs = nest.tiles.runs(depth)
        if nest.stationary == depth:
            total += runs * (terms.load_stationary + terms.relayout_stationary + terms.staging)
        if nest.stream == depth:
            total += runs * (terms.load_stream + terms.relayout_stream)
    behind = terms.addition + terms.exchange + sum(part.cycles for part in terms.epilogue) + terms.gather + terms.store
    if nest.result < kept:  # behind kept loops that add up
        total += nest.tiles.runs(nest.result) * behind
        terms = replace(terms, addition=0, exchange=0, epilogue=(), gather=0, store=0)
    inside = replace(
        terms,
        load_stationary=terms.load_stationary if nest.stationary >= kept else 0,
        relayout_stationary=max(0, terms.relayout_stationary - saved) if nest.stationary >= kept else 0,
        staging=max(0, terms.staging - saved) if nest.stationary >= kept else 0,
        load_stream=terms.load_stream if nest.stream >= kept else 0,
        relayout_stream=max(0, terms.relayout_stream - saved) if nest.stream >= kept else 0,
        contraction=max(0, terms.contraction - saved),
        gather=max(0, terms.gather - saved),
        addition=max(0, terms.addition - saved),
    )
    units = nest.tiles.runs(kept)
    total += units * _unit_cycles(nest, inside)
    iterations = sum(nest.tiles.runs(depth + 1) for depth in range(kept))
    return terms.start + total + iterations * int(timing.loop_iteration.value) + terms.sync


def _unit_cycles(nest: Nest, terms: Terms) -> int:
    """Cycles of one run of the unrolled loops: the longest of what a resource does, and of what follows a tile's last load."""
    units = nest.tiles.runs(nest.kept)
    count = nest.tiles.tiles // units
    loads_w = max(1, nest.tiles.runs(nest.stationary) // units)
    loads_x = max(1, nest.tiles.runs(nest.stream) // units)
    loads = loads_w * terms.load_stationary + loads_x * terms.load_stream
    staging = loads_w * terms.staging
    results = max(1, nest.tiles.runs(nest.result) // units)
    finish = terms.addition + sum(part.cycles for part in terms.epilogue) + terms.gather
    passes = terms.contraction + finish
    main, stores = count * terms.contraction + results * finish, results * (terms.exchange + terms.store)
    copies = (loads_w - 1) * terms.relayout_stationary + (loads_x - 1) * terms.relayout_stream  # beside those before the first tile
    end = passes + terms.exchange + terms.store
    first = terms.front + main + copies + terms.exchange + terms.store
    if not nest.overlaps:
        return first + (loads - terms.load_stationary - terms.load_stream) + (staging - terms.staging) + stores - stores // results
    if terms.staging_on_main:
        return max(loads + stores, first + staging - terms.staging, loads + end)
    return max(loads + stores, first, loads + end, terms.load_stationary + staging + end)

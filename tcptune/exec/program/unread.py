"""Live values that a kernel loads and no pass reads: legal for the machine (SEQ-007), and often a forgotten term of a fetch.

The published verifier wants a tile where a fetch reads a part; here it is a note beside the result, for tensors small enough to look at
every cell.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

import numpy as np
import numpy.typing as npt

from tcptune.exec.program.checked import Bound, CheckedKernel, CheckedStep
from tcptune.ir.kernels.ops import Fetch
from tcptune.ir.mappings.cells import table
from tcptune.ir.mappings.mapping import Mapping, pair
from tcptune.ir.types import StreamType

MOST_CELLS = 1 << 20
"""Positions of an element or stream up to which its cells are compared."""

_LIVE = 0


def unread_notes(checked: CheckedKernel) -> tuple[str, ...]:
    """A line for every DM tensor of which the passes that begin on it leave live values of a slice unread.

    Tensors that another kind of step reads too, that are viewed, or that are results are left out, as are passes that begin with another
    operation than a plain fetch.
    """
    passes: dict[str, list[CheckedStep]] = {}
    others: set[str] = {bound.storage for bound in checked.outputs}
    bounds: dict[str, Bound] = {}
    for step in _steps(checked.steps):
        plain = step.chain is not None and step.chain.steps and isinstance(step.chain.steps[0].op, Fetch)
        for place, bound in enumerate(step.sources):
            if plain and place == 0 and not bound.views and bound.name == bound.storage and bound.type.tier == "Dm":
                passes.setdefault(bound.storage, []).append(step)
                bounds[bound.storage] = bound
            else:
                others.add(bound.storage)
    notes = (_note(bounds[name], found) for name, found in passes.items() if name not in others)
    return tuple(note for note in notes if note)


def _steps(steps: tuple[CheckedStep, ...]) -> Iterator[CheckedStep]:
    for step in steps:
        yield step
        yield from _steps(step.body)


def _note(bound: Bound, passes: list[CheckedStep]) -> str:
    element = bound.type.element
    fetched = [p.chain.steps[0].after for p in passes if p.chain is not None]
    streams = [pair(stream.time, stream.packet) for stream in fetched if isinstance(stream, StreamType)]
    if element.size > MOST_CELLS or any(stream.size > MOST_CELLS for stream in streams):
        return ""
    held = _live_keys(element, element.axes)
    read = np.unique(np.concatenate([_live_keys(stream, element.axes) for stream in streams]))
    unread = len(np.setdiff1d(held, read))
    return f"no pass reads {unread:,} of the {len(held):,} live values a slice of {bound.name} (SEQ-007)" if unread else ""


def _live_keys(mapping: Mapping, axes: dict[str, int]) -> npt.NDArray[np.int64]:
    """The live indices of a mapping as mixed-radix numbers over `axes`, each once."""
    cells = table(mapping)
    keys = np.zeros(mapping.size, np.int64)
    weight = prod(axes.values())
    for name, size in axes.items():
        weight //= size
        if name in cells.coords:
            keys += np.asarray(cells.coords[name], np.int64) * weight
    return np.unique(keys[np.asarray(cells.kind) == _LIVE])

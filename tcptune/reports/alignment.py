"""Operations of several schedules under one name: those that files or kernels call differently are matched by what they do.

Names are matched first. What is left is matched in order: one kind, and reads and writes that do not contradict, with tensors known by the
operations that were matched before; most tensors in common first, then equal bytes, then order.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace

from tcptune.ir.schedule import Operation, Schedule

_UNNAMED = re.compile(r"T\d+\Z")
"""Tensors that a file knows by number only, as those in HBM."""


def aligned(base: Schedule, other: Schedule) -> Schedule:
    """`other`, its operations called as those of `base` that they correspond to; the rest keep their names."""
    working = [o for o in base.operations if o.duration_cycles]
    own = {o.id for o in other.operations}
    free = [o for o in working if o.id not in own]
    named = {o.id: o for o in working}
    tensors = _tensors((named[o.id], o) for o in other.operations if o.id in named)
    new: dict[str, str] = {}
    for operation in sorted((o for o in other.operations if o.duration_cycles and o.id not in named), key=lambda o: (o.begin, o.end)):
        fitting = [o for o in free if o.kind == operation.kind and _agree(o, operation, tensors)]
        if fitting:
            found = max(fitting, key=lambda o: (_common(o, operation, tensors), o.moved_bytes == operation.moved_bytes))
            free.remove(found)
            new[operation.id] = found.id
            tensors |= _tensors([(found, operation)])
    renamed = (replace(o, id=new.get(o.id, o.id), blocker=new.get(o.blocker, o.blocker)) for o in other.operations)
    return replace(other, operations=tuple(renamed))


def _tensors(pairs: Iterable[tuple[Operation, Operation]]) -> dict[str, str]:
    """Tensor of the base by the tensor of the other schedule that the same operations read and write, where both have one of each."""
    found: dict[str, str] = {}
    for base, other in pairs:
        for ours, theirs in ((base.reads, other.reads), (base.writes, other.writes)):
            if len(ours) == len(theirs):
                found.update(zip(theirs, ours, strict=True))
    return found


def _named(names: tuple[str, ...], tensors: dict[str, str]) -> set[str]:
    """The tensors as the base calls them, without those that only have numbers."""
    called = (tensors.get(name, name) for name in names)
    return {name for name in called if not _UNNAMED.match(name)}


def _common(base: Operation, other: Operation, tensors: dict[str, str]) -> int:
    """Tensors that both read and that both write."""
    return len(_named(base.reads, {}) & _named(other.reads, tensors)) + len(_named(base.writes, {}) & _named(other.writes, tensors))


def _agree(base: Operation, other: Operation, tensors: dict[str, str]) -> bool:
    """Whether the two can be one operation: what both are known to read is not disjoint."""
    ours, theirs = _named(base.reads, {}), {tensors[name] for name in other.reads if name in tensors}
    return not ours or not theirs or not ours.isdisjoint(theirs)

"""Holds the simulator against published schedules: makespans in our order and in theirs, and every operation (`tcptune validate`)."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from math import ceil
from pathlib import Path
from statistics import median
from typing import Any

from tcptune.errors import InputError
from tcptune.exec.compile import Compiled, compile_checked, compile_kernel
from tcptune.exec.library import double_buffer, patterns, perceptron, vector_rows
from tcptune.exec.likeness import Likeness, likeness
from tcptune.exec.program.checked import CheckedKernel
from tcptune.exec.scheduling.impose import SourceLines, imposed_ranks, match, ranks_of
from tcptune.ir.kernels.kernel import Kernel
from tcptune.ir.schedule import DMA, Schedule

PUBLISHED_SCHEDULES = Path(__file__).parents[1] / "data" / "published_schedules.json"
"""Shipped rows: published makespans and operations of every kernel."""

KERNELS: dict[str, Callable[[], Kernel]] = {
    "add": vector_rows.add,
    "mul": vector_rows.mul,
    "dot": patterns.dot,
    "gemv": patterns.gemv,
    "gemm": patterns.gemm,
    "reduce_sum": vector_rows.reduce_sum,
    "reduce_sum_ragged": vector_rows.reduce_sum_ragged,
    "reduce_sum_exp": vector_rows.reduce_sum_exp,
    "softmax": vector_rows.softmax,
    "rmsnorm": vector_rows.rmsnorm,
    "mnist": perceptron.mnist,
}
"""Library kernels with a published schedule."""

LOOPS: dict[str, Callable[[], Kernel]] = {
    "rolled": double_buffer.rolled,
    "software_pipelined": double_buffer.software_pipelined,
    "unrolled": double_buffer.unrolled,
}
"""The double-buffer trio, of which the manual publishes makespans."""

TENSOR_UNIT_CYCLES = 2
"""A Tensor Unit operation counts as exact within so many cycles (the picture's resolution)."""


@dataclass(frozen=True)
class PublishedOperation:
    """One operation of a published schedule, named by the step of our kernel that it is."""

    step: str
    kind: str
    begin: int
    end: int
    bytes: int = 0

    @property
    def cycles(self) -> int:
        return self.end - self.begin


@dataclass(frozen=True)
class Published:
    """A published schedule."""

    kernel: str
    makespan: int
    first_begin: int
    operations: tuple[PublishedOperation, ...]


@cache
def published() -> tuple[dict[str, Published], dict[str, int]]:
    """Published schedules by kernel, and the makespans of the loops."""
    document = json.loads(PUBLISHED_SCHEDULES.read_text(encoding="utf-8"))
    kernels = {
        k["kernel"]: Published(k["kernel"], k["makespan"], k["first_begin"], tuple(PublishedOperation(**o) for o in k["operations"]))
        for k in document["kernels"]
    }
    return kernels, dict(document["loops"])


@dataclass(frozen=True)
class OperationRow:
    """A published operation beside ours."""

    kernel: str
    step: str
    kind: str
    published_cycles: int
    predicted_cycles: int

    @property
    def difference(self) -> int:
        return self.predicted_cycles - self.published_cycles

    @property
    def error_percent(self) -> float:
        return 100 * self.difference / self.published_cycles


@dataclass(frozen=True)
class KernelRow:
    """A published makespan beside ours: in our own order, and with the published one imposed (manual loops: transfers in program order)."""

    kernel: str
    published: int
    own_order: int
    imposed: int

    @property
    def own_percent(self) -> float:
        return 100 * (self.own_order - self.published) / self.published

    @property
    def imposed_percent(self) -> float:
        return 100 * (self.imposed - self.published) / self.published


@dataclass(frozen=True)
class Validation:
    """All comparisons."""

    kernels: tuple[KernelRow, ...]
    operations: tuple[OperationRow, ...]
    likeness: Likeness | None = None
    """Of a kernel and a schedule file: whether they can be of one kernel."""

    def _of(self, tensor_unit: bool) -> list[OperationRow]:
        return [o for o in self.operations if (o.kind in ("Main", "Sub")) == tensor_unit]

    @property
    def tensor_unit_exact_share(self) -> float:
        """Share of Tensor Unit operations within `TENSOR_UNIT_CYCLES`."""
        rows = self._of(tensor_unit=True)
        return sum(abs(o.difference) <= TENSOR_UNIT_CYCLES for o in rows) / max(len(rows), 1)

    @property
    def worst_dma_percent(self) -> float:
        return max((abs(o.error_percent) for o in self._of(tensor_unit=False)), default=0.0)

    @property
    def worst_imposed_percent(self) -> float:
        return max((abs(k.imposed_percent) for k in self.kernels), default=0.0)

    @property
    def median_imposed_percent(self) -> float:
        return median([abs(k.imposed_percent) for k in self.kernels] or [0.0])

    @property
    def worst_own_percent(self) -> float:
        """How far our own order is above a published makespan, at worst (negative: always below)."""
        return max((k.own_percent for k in self.kernels), default=0.0)


def error_summary(errors: Sequence[float]) -> dict[str, Any]:
    """Count, median and 90th percentile of relative errors, by size; None for both where there are none."""
    ordered = sorted(abs(e) for e in errors)
    return {
        "count": len(ordered),
        "median_abs_error": median(ordered) if ordered else None,
        "p90_abs_error": ordered[ceil(0.9 * len(ordered)) - 1] if ordered else None,
    }


def _compare(name: str, entry: Published) -> tuple[KernelRow, list[OperationRow]]:
    kernel = KERNELS[name]()
    own = compile_kernel(kernel, first_begin=entry.first_begin)
    ranks = ranks_of({o.step: o.begin for o in entry.operations})
    imposed = compile_kernel(kernel, ranks=ranks, first_begin=entry.first_begin)
    row = KernelRow(name, entry.makespan, own.makespan, imposed.makespan)
    return row, _operations(name, entry, own)


def _compare_loop(name: str, makespan: int) -> KernelRow:
    """A loop of the manual, of which only the makespan is published; its transfers are imposed in program order."""
    own = compile_kernel(LOOPS[name]())
    order = {i.id: rank for rank, i in enumerate(own.instructions) if DMA in i.contexts}
    in_program_order = compile_kernel(LOOPS[name](), ranks=order)
    return KernelRow(name, makespan, own.makespan, in_program_order.makespan)


def _operations(name: str, entry: Published, compiled: Compiled) -> list[OperationRow]:
    cycles = {i.id: i.duration_cycles for i in compiled.instructions}
    missing = [o.step for o in entry.operations if o.step not in cycles]
    if missing:
        raise InputError(f"the published schedule of {name} names the step {missing[0]!r}, which our kernel has not")
    return [OperationRow(name, o.step, o.kind, o.cycles, cycles[o.step]) for o in entry.operations]


def compare_with_schedule(checked: CheckedKernel, schedule: Schedule, lines: Mapping[str, SourceLines] | None = None) -> Validation:
    """Compares any kernel with the schedule that the vendor's compiler gave it; operations are matched as `exec.scheduling.impose` does.

    Args:
        lines: where the statements of the kernel stand in its source, if it has one.

    Raises:
        InputError: the schedule holds no operation of the kernel.
        WorkError: nothing prices an operation of the kernel.
    """
    name = checked.kernel.name
    begins = [o.begin for o in schedule.operations if o.kind != "Core" and o.duration_cycles]
    first_begin = min(begins, default=None)
    own = compile_checked(checked, first_begin=first_begin)
    ranks = imposed_ranks(schedule, own.program, lines)
    imposed = compile_checked(checked, ranks=ranks, first_begin=first_begin)
    cycles = {i.id: i.duration_cycles for i in own.instructions}
    matched = match(schedule, own.program, lines)
    operations = [OperationRow(name, i, o.kind, o.duration_cycles, cycles[i]) for i, o in matched.items()]
    row = KernelRow(name, schedule.makespan, own.makespan, imposed.makespan)
    return Validation((row,), tuple(operations), likeness(schedule, own.program, matched))


def validate(names: Sequence[str] = ()) -> Validation:
    """Compares kernels with their published schedules.

    Args:
        names: kernels to compare; all of them if empty.

    Raises:
        InputError: a kernel without published schedule.
    """
    kernels, loops = published()
    chosen = tuple(names) or (*KERNELS, *LOOPS)
    rows: list[KernelRow] = []
    operations: list[OperationRow] = []
    for name in chosen:
        if name in KERNELS:
            row, compared = _compare(name, kernels[name])
            rows.append(row)
            operations.extend(compared)
        elif name in LOOPS:
            rows.append(_compare_loop(name, loops[name]))
        else:
            raise InputError(f"no schedule of {name!r} is published", hint=f"known: {', '.join((*KERNELS, *LOOPS))}")
    return Validation(tuple(rows), tuple(operations))

"""Equality of kernels up to what Rust does not write: levels of a tensor type that merely repeat those of the source."""

from __future__ import annotations

from dataclasses import replace

from tcptune.exec.program.check import check_kernel
from tcptune.exec.program.checked import CheckedStep
from tcptune.ir.kernels import steps as s
from tcptune.ir.kernels.kernel import Kernel
from tcptune.ir.kernels.steps import KernelStep


def explicit(kernel: Kernel) -> tuple[KernelStep, ...]:
    """The steps with every level of every new tensor written out."""
    return tuple(_explicit(step) for step in check_kernel(kernel).steps)


def _explicit(checked: CheckedStep) -> KernelStep:
    step = checked.step
    if isinstance(step, s.Loop):
        return replace(step, body=tuple(_explicit(inner) for inner in checked.body))
    if checked.result is None:
        return step
    levels = dict(checked.result.type.levels)
    if isinstance(step, s.ToDm | s.ToHbm):
        return replace(step, chip=levels["chip"])
    if isinstance(step, s.Reshape):
        return replace(step, unsafe=True, **levels)
    if isinstance(step, s.Redistribute):
        return replace(step, **levels)
    return step

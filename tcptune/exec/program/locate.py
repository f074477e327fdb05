"""Where a kernel breaks a rule: the first input, step or operation of a chain that a fresh checker refuses.

`check_kernel` says what is wrong; this says where, for the border that read the kernel from a text. It replays the kernel, so the search,
which refuses thousands of candidates, does not ask.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from tcptune.errors import InputError, RuleViolation
from tcptune.exec.program.check import Checker, trip_count
from tcptune.ir.kernels.kernel import Kernel
from tcptune.ir.kernels.steps import KernelStep, Loop, TensorUnit
from tcptune.model.hardware import RNGD, Hardware

StepPath = tuple[int, ...]
"""Position of a step: its index, within loops the indices of the loops around it first."""


@dataclass(frozen=True, slots=True)
class FailingPlace:
    """What is refused: an input by name, a step by its path, or neither, where the outputs are at fault.

    Attributes:
        op: index of the refused operation in the chain of a Tensor Unit step.
        step: the step itself.
    """

    input: str = ""
    path: StepPath | None = None
    op: int | None = None
    step: KernelStep | None = None

    def words(self) -> str:
        """The place as a person says it: ``step 3, .collect``; steps count from 1, those of a loop as ``2.1``."""
        if self.input:
            return f"input {self.input}"
        if self.path is None or self.step is None:
            return "the output"
        number = ".".join(str(index + 1) for index in self.path)
        if isinstance(self.step, TensorUnit) and self.op is not None and self.step.ops:
            return f"step {number}, .{self.step.ops[self.op].NAME}"
        return f"step {number}"


def failing_place(kernel: Kernel, hw: Hardware = RNGD) -> FailingPlace:
    """The place that `check_kernel` refuses; call it for kernels that it does refuse."""
    checker = Checker(replace(kernel, inputs=()), hw)
    for entry in kernel.inputs:
        try:
            checker.add_input(entry.name, entry.type)
        except (RuleViolation, InputError):
            return FailingPlace(input=entry.name)
    return _first_failing(checker, kernel.steps, ()) or FailingPlace()


def _first_failing(checker: Checker, steps: tuple[KernelStep, ...], path: StepPath) -> FailingPlace | None:
    for index, step in enumerate(steps):
        here = (*path, index)
        if isinstance(step, Loop):
            try:
                checker.enter_loop(step.var, trip_count(step))
            except (RuleViolation, InputError):
                return FailingPlace(path=here, step=step)
            inner = _first_failing(checker, step.body, here)
            if inner is not None:
                return inner
            checker.leave_loop()
            continue
        try:
            checker.step(step)
        except (RuleViolation, InputError):
            op = _failing_op(checker, step) if isinstance(step, TensorUnit) and step.ops else None
            return FailingPlace(path=here, op=op, step=step)
    return None


def _failing_op(checker: Checker, step: TensorUnit) -> int | None:
    """Index of the first operation whose chain up to it is refused; the last one where only the end is, None where the begin is."""
    try:
        checker.begin(step)
    except (RuleViolation, InputError):
        return None
    for count in range(1, len(step.ops)):
        prefix = TensorUnit(step.context, step.begin, step.ops[:count], step.let)
        try:
            checker.check_prefix(prefix)
        except (RuleViolation, InputError):
            return count - 1
    return len(step.ops) - 1

"""From a kernel to its schedule: check, lower to instructions, plan memory, schedule."""

from __future__ import annotations

from collections.abc import Mapping as Dict
from dataclasses import dataclass, replace

from tcptune.exec.program.check import check_kernel
from tcptune.exec.program.checked import CheckedKernel
from tcptune.exec.scheduling.allocate import MemoryPlan, lifetimes, plan_memory
from tcptune.exec.scheduling.bank_runs import starvation_notes
from tcptune.exec.scheduling.instructions import lower, with_launch
from tcptune.exec.scheduling.schedule import schedule_program
from tcptune.ir.kernels.kernel import Kernel
from tcptune.ir.schedule import Instruction, Program, Schedule
from tcptune.model.hardware import RNGD, Hardware


@dataclass(frozen=True, repr=False)
class Compiled:
    """A kernel with its instructions and schedule.

    Attributes:
        program: instructions in program order, with the waits that memory reuse needs.
        plan: addresses of the buffers.
        schedule: operations with times, and buffer lifetimes.
    """

    kernel: Kernel
    checked: CheckedKernel
    program: Program
    plan: MemoryPlan
    schedule: Schedule

    def __repr__(self) -> str:
        return f"<Compiled {self.kernel.name}: {len(self.instructions)} instructions, makespan {self.makespan:,} cycles>"

    @property
    def instructions(self) -> tuple[Instruction, ...]:
        """Every instruction once, in program order."""
        return tuple(self.program.instructions())

    @property
    def makespan(self) -> int:
        return self.schedule.makespan

    @property
    def busy(self) -> dict[str, int]:
        """Cycles each resource is held."""
        return self.schedule.busy_cycles()


def compile_checked(
    checked: CheckedKernel,
    profile: str = "vendor",
    *,
    ranks: Dict[str, int] | None = None,
    first_begin: int | None = None,
    hw: Hardware = RNGD,
) -> Compiled:
    """Compiles a kernel that was checked already; see `compile_kernel`."""
    program = lower(checked, profile, hw)
    if first_begin is not None:
        program = with_launch(program, first_begin)
    plan = plan_memory(program, hw)
    schedule = schedule_program(plan.program, ranks=ranks)
    notes = starvation_notes(plan.program, schedule, hw)
    return Compiled(checked.kernel, checked, plan.program, plan, replace(schedule, lifetimes=lifetimes(plan, schedule), notes=notes))


def compile_kernel(
    kernel: Kernel,
    profile: str = "vendor",
    *,
    ranks: Dict[str, int] | None = None,
    first_begin: int | None = None,
    hw: Hardware = RNGD,
) -> Compiled:
    """Checks, lowers, places and schedules a kernel.

    Args:
        profile: timing profile, ``vendor`` or ``manual``.
        ranks: instruction id to issue rank, to impose an order (`exec.scheduling.impose` reads one from a schedule file).
        first_begin: first cycle of the launch, where it differs from the profile's.

    Raises:
        RuleViolation: a rule of the machine is broken, or the tensors do not fit a memory.
        WorkError: something in it has no price in this profile.
    """
    return compile_checked(check_kernel(kernel, hw), profile, ranks=ranks, first_begin=first_begin, hw=hw)

"""The Python interface.

`einsum` describes a workload and `tune` searches a kernel for it; `axes` declares the axes of mappings; `load_kernel`, `Kernel` and
`KernelBuilder` give kernels by hand, which `check_kernel`, `compile_kernel` and `verify` check, schedule and compare with their oracle;
`analyse` says where the cycles of a schedule go, `rule` what a rule demands. Errors derive from `TcptuneError`; `render()` is their text.
"""

from __future__ import annotations

from collections.abc import Mapping as Dict
from collections.abc import Sequence
from pathlib import Path

from tcptune.errors import InputError, RuleViolation, TcptuneError, WorkError
from tcptune.exec.compile import Compiled, compile_kernel
from tcptune.exec.kernel_file import load_checked
from tcptune.exec.program.build import KernelBuilder
from tcptune.exec.program.check import check_kernel
from tcptune.exec.running.fill import SEED
from tcptune.exec.running.oracle import verify as verify_checked
from tcptune.exec.running.verification import Verification
from tcptune.ir.kernels.kernel import Kernel
from tcptune.ir.mappings.axes import Axes
from tcptune.ir.schedule import Schedule
from tcptune.ir.workload import Workload, einsum
from tcptune.model.rules import rule
from tcptune.reports.schedule_analysis import Analysis, analyse
from tcptune.search.entry import tune
from tcptune.search.result import SearchResult


def axes(sizes: Dict[str, int] | None = None, /, **more: int) -> Axes:
    """Axes with their sizes, by keyword or as a dictionary; the entry to mapping expressions.

    >>> m = axes(A=8, B=512).mapping("B / 64, B % 64")
    >>> m.size, m.equivalent(axes(A=8, B=512).mapping("B"))
    (512, True)

    Raises:
        RuleViolation: MAP-003, a name or size that is not allowed.
    """
    return Axes({**Axes(sizes), **more})


def load_kernel(path: str | Path, function: str | None = None) -> Kernel:
    """The kernel in a `.visa`, `.rs` or `.json` file, checked against every rule.

    Args:
        function: device function of a `.rs` file that holds several.

    Raises:
        InputError, RuleViolation: the file cannot be used; the message has file, line and operation.
    """
    return load_checked(Path(path), function).kernel


def verify(kernel: Kernel, seeds: Sequence[int] = (SEED, SEED + 1, SEED + 2)) -> Verification:
    """Runs a kernel on adversarial and drawn inputs and compares with its oracle.

    Raises:
        InputError: the kernel has no oracle that can be computed. RuleViolation: it breaks a rule.
    """
    return verify_checked(check_kernel(kernel), tuple(seeds))


__all__ = [
    "Analysis",
    "Axes",
    "Compiled",
    "InputError",
    "Kernel",
    "KernelBuilder",
    "RuleViolation",
    "Schedule",
    "SearchResult",
    "TcptuneError",
    "Verification",
    "WorkError",
    "Workload",
    "analyse",
    "axes",
    "check_kernel",
    "compile_kernel",
    "einsum",
    "load_kernel",
    "rule",
    "tune",
    "verify",
]

"""tcptune finds, proves and schedules fast kernels for FuriosaAI's RNGD Tensor Contraction Processor, without an NPU.

>>> import tcptune as tt
>>> tt.axes(A=8, B=512).mapping("B / 64, B % 64").size
512

The names of `tcptune.api` are loaded on first use, so that ``import tcptune.ir`` stays light.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tcptune.api import (
        Analysis,
        Axes,
        Compiled,
        InputError,
        Kernel,
        KernelBuilder,
        RuleViolation,
        Schedule,
        SearchResult,
        TcptuneError,
        Verification,
        WorkError,
        Workload,
        analyse,
        axes,
        check_kernel,
        compile_kernel,
        einsum,
        load_kernel,
        rule,
        tune,
        verify,
    )

__version__ = "0.1.0"

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


def __getattr__(name: str) -> Any:
    if name in __all__:
        from tcptune import api

        return getattr(api, name)
    raise AttributeError(f"module 'tcptune' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})

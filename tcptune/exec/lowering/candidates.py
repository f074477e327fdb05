"""The way from any candidate to its kernel: which engine does a workload's products or reductions, and whether tiles are cut."""

from __future__ import annotations

from tcptune.exec.lowering.float_products import lower_float
from tcptune.exec.lowering.lower import lower
from tcptune.exec.lowering.tiled import lower_tiled
from tcptune.exec.lowering.vector import lower_vector
from tcptune.ir.candidate import Candidate
from tcptune.ir.kernels.kernel import Kernel
from tcptune.ir.workload import Workload


def is_contraction(workload: Workload) -> bool:
    """Whether the Contraction Engine does the work: two inputs, of a type that it multiplies (f32 has no multiplier there, CE-014)."""
    return len(workload.inputs) == 2 and workload.dtype.name != "f32"


def lower_candidate(candidate: Candidate, name: str = "kernel") -> Kernel:
    """The kernel of a candidate.

    Raises:
        RuleViolation: the candidate cannot be lowered.
    """
    if candidate.tiles.loops:
        return lower_tiled(candidate, name)
    if is_contraction(candidate.workload):
        return lower(candidate, name)
    return lower_float(candidate, name) if len(candidate.workload.inputs) == 2 else lower_vector(candidate, name)

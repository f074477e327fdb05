"""The way from any candidate to its kernel: which engine does a workload's products or reductions, and whether tiles are cut."""

from __future__ import annotations

from tcptune.exec.lowering.float_products import lower_float
from tcptune.exec.lowering.layout import is_contraction as is_contraction
from tcptune.exec.lowering.lower import lower
from tcptune.exec.lowering.tiled import lower_tiled
from tcptune.exec.lowering.vector import lower_vector
from tcptune.ir.candidate import Candidate
from tcptune.ir.kernels.kernel import Kernel


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

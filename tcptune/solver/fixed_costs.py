"""Cycles that every operation of a kind pays before its data, as closed forms and bounds use them (VT-001 to VT-012, VT-040)."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from tcptune.model.engines.inter_slice_reduce import tail_cycles
from tcptune.model.timing import calibration
from tcptune.model.timing.kernels import kernel_timing


@dataclass(frozen=True, slots=True)
class FixedCosts:
    """Cycles that every operation of a kind pays before its data, and the frame of a kernel; 0 where a profile states none.

    `stage_latencies`: whether a pass pays the latencies of its stages instead (`solver.pass_latencies`).
    """

    start: int
    sync: int
    staging_pass: int
    contraction_pass: int
    copy_pass: int
    switch_pass: int
    transpose_pass: int
    whole_ring: int
    reduce_pass: int
    reduce_per_slice: int
    reduce_least: int
    vector_pass: int
    stage_latencies: bool = field(default=False, kw_only=True)

    @classmethod
    def of(cls, profile: str) -> FixedCosts:
        """The fixed costs of a timing profile (VT-001 to VT-012, VT-040)."""
        frame, passes = kernel_timing(profile), calibration.profile(profile).passes
        whole = (int(frame.first_begin.value), int(frame.closing_sync.value))
        if passes is None:
            nothing = cls(*whole, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, stage_latencies=True)
            return replace(nothing, reduce_per_slice=tail_cycles(1))
        constants = (
            passes.stage,
            passes.contract,
            passes.copy,
            passes.stage,
            passes.transpose,
            passes.whole_ring,
            passes.inter_slice_reduce,
            passes.reduce_per_slice,
            passes.reduce_steps_least,
            passes.vector,
        )
        return cls(*whole, *(int(c.value) for c in constants))

"""Cycles until the first result of a pass, which the manual's stage formulas add to the busiest stage; the vendor's pass starts hold them.

Latencies are the sum over the stages of a pass that buffer or compute before they deliver: fetch casts (FA-009), the adder tree
(PACKETRED-009), sums over Time (TIMERED-010, ISR-009), the ring of the Inter-Slice Reducer (XSR-007, `FixedCosts.reduce_per_slice`), and
ALUs (VE-041).
"""

from __future__ import annotations

from tcptune.exec.lowering.epilogue import EpiloguePass
from tcptune.exec.lowering.layout import Layout
from tcptune.exec.lowering.partial_sums import Summation
from tcptune.exec.lowering.passes import outer_time
from tcptune.ir.placement import positions
from tcptune.ir.workload import K
from tcptune.model.engines.contraction.reduce import time_latency_cycles, tree_latency_cycles
from tcptune.model.engines.transpose import is_double_buffered, transpose_cycles, width_parameters
from tcptune.model.engines.vector.reduce import first_output_delay_flits
from tcptune.model.hardware import RNGD


def contraction_latency(layout: Layout) -> int:
    """Adder tree and Time Reducer; without slices that are summed and without a fused epilogue."""
    summed = positions(d for d in outer_time(layout) if layout.roles[d.axis] == K)
    return tree_latency_cycles(layout.dtype, layout.hw) + time_latency_cycles(summed)


def addition_latency(plan: Summation) -> int:
    """One ALU for a pair; the Intra-Slice Reducer holds back what lies inside of the outermost summed loop, half flits included."""
    if plan.is_pair:
        return 1
    narrow = RNGD.vector_ways[1]
    first = next(n for n, digit in enumerate(plan.out_time) if digit.axis == plan.axis)
    inner = positions(d for d in plan.out_time[first:] if d.axis != plan.axis)
    return 1 + first_output_delay_flits(plan.count, inner * -(-positions(plan.packet) // narrow))


def epilogue_latency(plan: EpiloguePass) -> int:
    """One cycle an ALU."""
    return sum(1 for call in plan.calls if call.alu)


def fetch_cast_latency() -> int:
    """A cast at the fetch."""
    return RNGD.fetch_cast_latency_cycles[1]


def transposed_rows(layout: Layout, rows: int, columns: int, written: int) -> int:
    """Cycles of the Transpose Engine, which reads a burst of `rows` flits with `columns` live elements before it writes them.

    Args:
        written: rows that all bursts write, `columns` each.
    """
    limits = width_parameters(layout.candidate.workload.out_dtype.bits, layout.hw)
    held = limits.single_valid_size if columns <= limits.single_valid_size else limits.dual_valid_size or columns
    return transpose_cycles(written // columns, rows, columns, is_double_buffered(held, layout.hw))

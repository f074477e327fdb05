"""Passes beside which loads run: copies that change an operand's innermost axis (`Knobs.relayout`), and whether they or staging hold the
DMA engine, because they access one bank too often in a row (SCHED-005).
"""

from __future__ import annotations

from functools import lru_cache

from tcptune.exec.lowering.layout import Layout, remove
from tcptune.exec.lowering.lower import copy_ops
from tcptune.exec.lowering.passes import staging_ops
from tcptune.exec.scheduling.bank_runs import longest_bank_run
from tcptune.ir.kernels.ops import op_from_json
from tcptune.ir.mappings.axes import Axes
from tcptune.ir.mappings.mapping import IDENTITY
from tcptune.ir.placement import expression, positions
from tcptune.ir.types import DType, StreamType
from tcptune.model.hardware import RNGD
from tcptune.model.memory.dm import max_consecutive_accesses
from tcptune.model.pipeline import check_chain
from tcptune.model.stage import ChainEnv
from tcptune.solver.fixed_costs import FixedCosts


def relayout_cycles(layout: Layout, index: int, fixed: FixedCosts) -> int:
    """A copy pass over what the load left in a slice: it reads single elements (SEQ-016), or words where they lie side by side already."""
    wanted = layout.candidate.knobs.relayout[index]
    if not wanted:
        return 0
    held = remove(layout.held(index), layout.route(index).spread)
    last = max((n for n, digit in enumerate(held) if digit.axis == wanted), default=len(held))
    together = positions(held[last + 1 :]) == 1
    word = min(layout.word_elements(layout.dtype), layout.in_slice(wanted)) if together else 1
    return fixed.copy_pass + positions(held) // word


def copy_holds_dma(layout: Layout, index: int) -> bool:
    """Whether no DMA may run beside the copy of an operand.

    Raises:
        RuleViolation: the copy breaks a rule.
    """
    if not layout.candidate.knobs.relayout[index]:
        return False
    held = remove(layout.held(index), layout.route(index).spread)
    return _holds_dma(layout, expression(held, layout.texts(index, stored=True)), "main", copy_ops(layout, index))


def staging_holds_dma(layout: Layout) -> bool:
    """Whether no DMA may run beside staging: only if single accesses jump from packet to packet.

    Raises:
        RuleViolation: the fetch breaks a rule.
    """
    index, on_sub = layout.stationary, layout.candidate.knobs.staging == "sub"
    packet_bytes = layout.staging_packet.extent * layout.dtype.bits // 8
    if packet_bytes > (RNGD.stream_alignment_bytes if on_sub else RNGD.flit_bytes):
        return False
    held = remove(layout.held(index, layout.candidate.knobs.relayout[index]), layout.route(index).spread)
    if positions(held) // layout.staging_packet.extent <= max_consecutive_accesses(RNGD):
        return False
    return _holds_dma(layout, expression(held, layout.texts(index, stored=True)), layout.candidate.knobs.staging, staging_ops(layout)[:1])


def _holds_dma(layout: Layout, held: str, context: str, ops: list[dict[str, str]]) -> bool:
    workload = layout.candidate.whole or layout.candidate.workload
    axes = Axes({a.upper(): n for a, n in workload.sizes})
    return _starves(axes, layout.dtype, context, held, tuple(tuple(op.items()) for op in ops))


@lru_cache(maxsize=16_384)
def _starves(axes: Axes, element: DType, context: str, held: str, ops: tuple[tuple[tuple[str, str], ...], ...]) -> bool:
    """Whether a pass over what every slice holds reaches the limit; which slices it has does not matter to its accesses."""
    cluster, slices = (IDENTITY.pad(n) for n in (RNGD.clusters_per_chip, RNGD.slices_per_cluster))
    start = StreamType("Begin", element, IDENTITY, cluster, slices, IDENTITY, axes.mapping(held))
    chain = check_chain(start, [op_from_json(dict(op), axes) for op in ops], ChainEnv(context, axes))
    return longest_bank_run(chain) > max_consecutive_accesses(RNGD)

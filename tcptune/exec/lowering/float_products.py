"""Lowering of products of two f32 inputs, which have no multiplier in the Contraction Engine (CE-014): the Vector Engine does the work.

One operand waits in the vector register file, the other streams past it, once for every output position that only the first has. Four
products are formed at a time: of neighbours along the innermost axis of the stream, which the waiting operand has innermost, too, or lacks
(then one value of it meets all four). Sums and epilogue follow as for workloads of one input (`exec.lowering.vector`).
"""

from __future__ import annotations

from tcptune.errors import RuleViolation
from tcptune.exec.lowering.epilogue import plan_epilogue
from tcptune.exec.lowering.fused_epilogue import Steps, named, stage_operand
from tcptune.exec.lowering.layout import Layout, store_step
from tcptune.exec.lowering.lower import INPUT_NAMES, assembled
from tcptune.exec.lowering.vector import Stored, axis_texts, folding_order, passes
from tcptune.ir.candidate import Candidate
from tcptune.ir.kernels.kernel import Kernel
from tcptune.ir.placement import Digit, expression, merged, without
from tcptune.ir.workload import EpilogueOp, K


def lower_float(candidate: Candidate, name: str = "kernel") -> Kernel:
    """The kernel of a candidate whose inputs are f32.

    Raises:
        RuleViolation: the placement, or the layout of the inputs, cannot be lowered.
    """
    return assembled(candidate.workload, name, float_steps(candidate))


def float_steps(candidate: Candidate) -> Steps:
    """The steps of a candidate whose inputs are f32, the store last.

    Raises:
        RuleViolation: the placement, or the layout of the inputs, cannot be lowered.
    """
    layout, workload = Layout(candidate), candidate.workload
    texts, axes = axis_texts(layout), [layout.operand(n) for n in (0, 1)]
    held = _stream(layout)
    waiting = axes[layout.stationary]
    if held.piece[0].axis in waiting[:-1]:
        raise RuleViolation(
            "VRF-007",
            "four neighbours of the stream meet four neighbours of the operand in the register file",
            expected=f"an operand with {held.piece[0].axis} innermost, or without it",
            got=", ".join(waiting),
        )
    step = EpilogueOp("mul", operand=INPUT_NAMES[layout.stationary], axes=waiting)
    product = plan_epilogue((step,), layout.accumulator)
    place = {"cluster": expression(layout.clusters, texts), "slice": expression(layout.slices, texts)}
    stream = INPUT_NAMES[layout.stream]
    steps: Steps = []
    epilogue = list(plan_epilogue(named(workload), layout.accumulator))
    if folding_order(layout):
        order = merged([d for d in (*held.rest, *held.piece) if d.axis in step.axes])
        steps += stage_operand(step, order, layout.slices, layout, texts, workload.dtype)
        following, source = passes(layout, held, epilogue, f"{stream}_dm", [c.raw for plan in product for c in plan.calls])
    else:
        following, source = passes(layout, held, [*product, *epilogue], f"{stream}_dm")
    block = layout.block(axes[layout.stream])
    steps.append({"let": f"{stream}_dm", "op": "to_dm", "from": stream, **place, "element": expression(block, texts)})
    return [*steps, *following, store_step(workload, source)]


def _stream(layout: Layout) -> Stored:
    """Time of the stream, output positions outside of summed ones, and the four (or fewer) elements of its packet.

    Among the summed axes the one that is folded first is innermost.
    """
    axes = layout.operand(layout.stream)
    last = axes[-1]
    narrow = layout.hw.vector_ways[1]
    extent = layout.in_slice(last)
    piece = Digit(last, 1, min(narrow, extent & -extent))
    folded = folding_order(layout)
    sums = [a for a in axes if layout.roles[a] == K and a not in folded[:1]]
    time = [Digit(a, 1, layout.in_slice(a)) for a in (*layout.output, *sums, *folded[:1])]
    width = max(piece.extent, layout.word_elements(layout.dtype))
    return Stored(tuple(merged(without(time, piece))), (piece,), width, layout.slices)

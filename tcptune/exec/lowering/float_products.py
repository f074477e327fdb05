"""Lowering of products of two f32 inputs, which have no multiplier in the Contraction Engine (CE-014): the Vector Engine does the work.

One operand waits in the vector register file, the other streams past it, once for every output position that only the first has. Products
are formed four at a time and folded by the Intra-Slice Reducer, then over neighbouring slices where the placement spreads the summed axis.
"""

from __future__ import annotations

from tcptune.errors import RuleViolation
from tcptune.exec.lowering.epilogue import plan_epilogue
from tcptune.exec.lowering.fused_epilogue import Steps, named, stage_operand
from tcptune.exec.lowering.layout import Layout, hbm_input, store_step
from tcptune.exec.lowering.lower import INPUT_NAMES, oracle_text, tolerance
from tcptune.exec.lowering.result import padded_packet
from tcptune.exec.lowering.vector import axis_texts, committed
from tcptune.ir.candidate import Candidate
from tcptune.ir.kernels.kernel import Kernel
from tcptune.ir.placement import Digit, expression, merged, without
from tcptune.ir.workload import EpilogueOp, K


def lower_float(candidate: Candidate, name: str = "kernel") -> Kernel:
    """The kernel of a candidate whose inputs are f32.

    Raises:
        RuleViolation: the placement, or the layout of the inputs, cannot be lowered.
    """
    layout, workload = Layout(candidate), candidate.workload
    if named(workload):
        raise RuleViolation("CE-014", "products of f32 take no epilogue", got=str(workload.epilogue[0]), expected="bf16 inputs")
    texts, axes = axis_texts(layout), [layout.operand(n) for n in (0, 1)]
    if axes[0][-1] != axes[1][-1]:
        raise RuleViolation("VRF-007", "both f32 inputs need the same innermost axis", expected=axes[0][-1], got=axes[1][-1])
    time, piece = _stream(layout)
    step = EpilogueOp("mul", operand=INPUT_NAMES[layout.stationary], axes=axes[layout.stationary])
    held = merged([*(d for d in time if d.axis in step.axes), piece])
    place = {"cluster": expression(layout.clusters, texts), "slice": expression(layout.slices, texts)}
    stream = INPUT_NAMES[layout.stream]
    block = layout.block(axes[layout.stream])
    steps: Steps = [
        *stage_operand(step, held, layout.slices, layout, texts, workload.dtype),
        {"let": f"{stream}_dm", "op": "to_dm", "from": stream, **place, "element": expression(block, texts)},
        {"let": "r", "context": "main", "begin": f"{stream}_dm", "ops": _pass(layout, step, time, piece)},
        store_step(workload, "r"),
    ]
    inputs = {INPUT_NAMES[n]: hbm_input(workload, axes[n], workload.dtype) for n in (0, 1)}
    return Kernel.from_json(
        {
            "name": name,
            "axes": {axis.upper(): size for axis, size in workload.sizes},
            "chips": 1,
            "inputs": inputs,
            "steps": steps,
            "output": "out",
            "oracle": oracle_text(workload),
            "tolerance": tolerance(workload),
        }
    )


def _stream(layout: Layout) -> tuple[list[Digit], Digit]:
    """Time of the stream, output positions outside of summed ones, and the four (or fewer) elements of its packet."""
    axes = layout.operand(layout.stream)
    last = axes[-1]
    narrow = layout.hw.vector_ways[1]
    extent = layout.in_slice(last)
    piece = Digit(last, 1, min(narrow, extent & -extent))
    outputs = [Digit(a, 1, layout.in_slice(a)) for a in layout.output]
    sums = [Digit(a, 1, layout.in_slice(a)) for a in axes if layout.roles[a] == K]
    return merged(without([*outputs, *sums], piece)), piece


def _pass(layout: Layout, step: EpilogueOp, time: list[Digit], piece: Digit) -> Steps:
    """Multiply by the register tensor, fold, commit."""
    texts, workload = axis_texts(layout), layout.candidate.workload
    wide, narrow = layout.hw.vector_ways
    flit = padded_packet([piece], wide, texts)
    word = max(piece.extent, layout.word_elements(workload.dtype))
    ops: Steps = [
        {"op": "fetch", "time": expression(time, texts), "packet": padded_packet([piece], word, texts)},
        {"op": "collect", "time": expression(time, texts), "packet": flit},
        {"op": "vector_init"},
        {"op": "vector_intra_slice_tag", "mode": "Zero"},
        {"op": "vector_narrow_trim", "packet": f"[{flit}] = {narrow}"},
        *(call.raw for plan in plan_epilogue((step,), layout.accumulator) for call in plan.calls),
    ]
    summed = [a for a in workload.axes if layout.roles[a] == K]
    kept, live = time, [piece]
    if summed:
        if len(summed) > 1 or piece.axis != summed[0]:
            raise RuleViolation("ISR-002", "one call folds one axis, the innermost of both inputs", expected="one summed axis", got=summed)
        kept, live = [d for d in time if d.axis != summed[0]], []
        fold = {"axis": summed[0].upper(), "time": expression(kept, texts), "packet": f"1 # {narrow}", "fn": "Add"}
        ops.append({"op": "vector_intra_slice_reduce", **fold})
        flit = f"1 # {wide}"
    ops.append({"op": "vector_widen_pad", "packet": flit})
    if layout.reduced > 1:
        slices = expression(layout.result_slices, texts)
        ops.append({"op": "vector_inter_slice_reduce", "slice": slices, "time": expression(kept, texts), "fn": "Add"})
    ops.append({"op": "vector_final"})
    commits, _ = committed(layout, kept, live, workload.out_dtype)
    return [*ops, *commits]

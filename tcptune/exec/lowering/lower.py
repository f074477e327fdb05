"""Lowering: a candidate becomes a kernel (loads, staging, contraction, gather, store) in the vocabulary of `ir.kernels.kernel`.

The kernel is built as plain steps and checked by the same rules as any other (`exec.program.build`); nothing here decides legality.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tcptune.errors import WorkError
from tcptune.exec.lowering.fused_epilogue import named, operand_dtype, oracle_stages, result_steps
from tcptune.exec.lowering.layout import Layout, hbm_input, remove, store_step
from tcptune.exec.lowering.partial_sums import extra_axes, stored_result
from tcptune.exec.lowering.passes import staging_ops
from tcptune.exec.lowering.result import gather_ops, plan_gather
from tcptune.exec.running.oracle import FLUSHED
from tcptune.ir.candidate import Candidate
from tcptune.ir.kernels.cut import cut_axes, minor_names
from tcptune.ir.kernels.kernel import Kernel
from tcptune.ir.mappings.mapping import pair, symbol
from tcptune.ir.placement import Digit, expression, without
from tcptune.ir.workload import Workload

INPUT_NAMES = ("a", "b")


def lower(candidate: Candidate, name: str = "kernel") -> Kernel:
    """The kernel of `candidate`.

    Raises:
        RuleViolation: the candidate's knobs do not fit its placement.
    """
    kernel = assembled(candidate.workload, name, pass_steps(candidate), extra_axes(Layout(candidate)))
    return _with_axes_cut(kernel, Layout(candidate))


def assembled(workload: Workload, name: str, steps: list[dict[str, Any]], more_axes: dict[str, int] | None = None) -> Kernel:
    """The kernel of a workload that `steps` compute into ``out``, with its operands, its oracle and what that allows.

    Args:
        more_axes: sizes of axes that the mappings of `steps` have beside those of the workload.
    """
    return Kernel.from_json(
        {
            "name": name,
            "axes": {axis.upper(): size for axis, size in workload.sizes} | (more_axes or {}),
            "chips": 1,
            "inputs": kernel_inputs(workload),
            "steps": steps,
            "output": "out",
            "oracle": oracle_text(workload),
            "tolerance": tolerance(workload),
        }
    )


def _with_axes_cut(kernel: Kernel, layout: Layout) -> Kernel:
    """The kernel with the axes written as several that routes cut, and inputs as often in HBM as their routes say.

    Inputs and result keep their bytes. The copies of an input lie along the part of an axis over which the slices lie that read them: as
    far as the kernel is concerned they may differ, and its oracle says so.
    """
    routes, workload = [layout.route(index) for index in (0, 1)], layout.candidate.workload
    cuts = [cut for r in routes for cut in r.cuts]
    if not cuts and not any(r.copies for r in routes):
        return kernel
    free = iter(minor_names(kernel.axes, sum(len(c.below) for c in cuts)))
    parts = {c.axis: (c.axis.upper(), *(next(free) for _ in c.below)) for c in cuts}
    sizes = {c.axis: c.parts(workload.size(c.axis)) for c in cuts}
    kernel = cut_axes(kernel, {a.upper(): tuple(zip(parts[a], sizes[a], strict=True))[1:] for a in parts})
    inputs = list(kernel.inputs)
    labels = []
    for index, axes in enumerate(workload.inputs):
        copies = routes[index].copies
        of_copies = "" if copies is None else _part_of(copies, parts, sizes)
        if of_copies:
            element = pair(symbol(of_copies, kernel.axes[of_copies]), inputs[index].type.element)
            inputs[index] = replace(inputs[index], type=replace(inputs[index].type, element=element))
        labels.append((*of_copies.lower(), *_labels(axes, parts)))
    named_so = replace(
        workload,
        inputs=tuple(labels),
        output=_labels(workload.output, parts),
        epilogue=tuple(replace(step, axes=_labels(step.axes, parts)) for step in workload.epilogue),
    )
    return replace(kernel, inputs=tuple(inputs), oracle=oracle_text(named_so))


def _labels(axes: tuple[str, ...], parts: dict[str, tuple[str, ...]]) -> tuple[str, ...]:
    """Labels of the axes in the oracle, cut ones by their parts."""
    return tuple(part.lower() for axis in axes for part in parts.get(axis, (axis,)))


def _part_of(digit: Digit, parts: dict[str, tuple[str, ...]], sizes: dict[str, tuple[int, ...]]) -> str:
    """Name of the part of a cut axis that is `digit`."""
    names, extents = parts.get(digit.axis, (digit.axis.upper(),)), sizes.get(digit.axis, (digit.extent,))
    stride = 1
    for name, size in reversed(list(zip(names, extents, strict=True))):
        if stride == digit.stride:
            return name
        stride *= size
    raise WorkError(f"internal: no part of axis {digit.axis} begins at {digit.stride}")


def pass_steps(candidate: Candidate) -> list[dict[str, Any]]:
    """The steps of a candidate, from the loads of its inputs to the store of the result, which the last step names ``out``.

    Raises:
        RuleViolation: the candidate's knobs do not fit its placement.
    """
    layout = Layout(candidate)
    steps = []
    for index in (layout.stationary, layout.stream):
        steps += _load(layout, index)
    steps.append(
        {
            "let": "w",
            "context": candidate.knobs.staging,
            "begin": f"{INPUT_NAMES[layout.stationary]}_dm",
            "ops": staging_ops(layout),
        }
    )
    steps += result_steps(layout, f"{INPUT_NAMES[layout.stream]}_dm")
    steps += _finish(layout)
    return steps


def oracle_text(workload: Workload) -> str:
    """What a kernel computes: its einsum (``maximum ij -> i`` for a maximum), and the epilogue."""
    word = "maximum" if workload.reduce == "max" else "einsum"
    inputs = ", ".join("".join(i) for i in workload.inputs)
    return f"{word} {inputs} -> {''.join(workload.output)}{oracle_stages(workload)}"


def tolerance(workload: Workload) -> dict[str, Any]:
    """Integers are exact; of floats the oracle adds the bound of the arithmetic itself, so only flushed products are stated."""
    if not workload.dtype.is_float:
        return {"form": "exact", "rel": 0, "abs": 0}
    return {"form": "sum", "rel": 0, "abs": FLUSHED if len(workload.inputs) > 1 else 0}


def kernel_inputs(workload: Workload) -> dict[str, dict[str, str]]:
    """Operands of the einsum, then those of the epilogue, all row-major."""
    found = {INPUT_NAMES[n]: hbm_input(workload, axes, workload.dtype) for n, axes in enumerate(workload.inputs)}
    for step in named(workload):
        if step.operand:
            found[step.operand] = hbm_input(workload, step.axes, operand_dtype(workload))
    return found


def _load(layout: Layout, index: int) -> list[dict[str, Any]]:
    """The DMA of one operand, and the copy pass that changes its innermost axis where the candidate asks for it."""
    name, texts, route = INPUT_NAMES[index], layout.texts(index, stored=True), layout.route(index)
    slices, cluster = expression(route.load_slices, texts), expression(layout.clusters, texts)
    natural = remove(layout.held(index), route.spread)
    relaid = layout.candidate.knobs.relayout[index]
    target = f"{name}_rows" if relaid else f"{name}_dm"
    steps: list[dict[str, Any]] = [
        {"let": target, "op": "to_dm", "from": name, "cluster": cluster, "slice": slices, "element": expression(natural, texts)}
    ]
    if relaid:
        steps.append({"let": f"{name}_dm", "context": "main", "begin": target, "ops": copy_ops(layout, index)})
    return steps


def copy_ops(layout: Layout, index: int) -> list[dict[str, str]]:
    """Operations of the pass that makes another axis of an operand the innermost one: it fetches words, or what of a word lies together."""
    relaid, texts, route = layout.candidate.knobs.relayout[index], layout.texts(index, stored=True), layout.route(index)
    block = remove(layout.held(index, relaid), route.spread)
    word = Digit(relaid, 1, min(layout.word_elements(layout.dtype), layout.in_slice(relaid)))
    flit = layout.flit_elements(layout.dtype)
    time, packet = expression(without(block, word), texts), expression([word], texts)
    return [
        {"op": "fetch", "time": time, "packet": packet},
        {"op": "collect", "time": time, "packet": f"{packet} # {flit}"},
        {"op": "commit_trim", "packet": packet},
        {"op": "commit", "element": expression(block, texts)},
    ]


def _finish(layout: Layout) -> list[dict[str, Any]]:
    """Gather pass, if any, and the store."""
    steps = []
    source = "r"
    if layout.candidate.knobs.gather != "none":
        steps.append({"let": "g", "context": "main", "begin": "r", "ops": gather_ops(layout, plan_gather(layout, stored_result(layout)))})
        source = "g"
    return [*steps, store_step(layout.candidate.workload, source)]

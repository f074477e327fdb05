"""Lowering of workloads of one input: element-wise ones (``i->i`` with an epilogue) and reductions (``ij->i``, sum or max).

The Vector Engine does all of the work. A reduction folds its axis over Packet and Time of every slice, and over neighbouring slices where
the placement spreads it; what of the epilogue does not fit behind it in the same pass follows in passes of its own.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from tcptune.errors import RuleViolation
from tcptune.exec.lowering.epilogue import EpiloguePass, pass_ops, plan_epilogue
from tcptune.exec.lowering.fused_epilogue import named, stage_operand
from tcptune.exec.lowering.layout import Layout, store_step
from tcptune.exec.lowering.lower import INPUT_NAMES, assembled
from tcptune.exec.lowering.result import padded_packet, write_width
from tcptune.ir.candidate import Candidate
from tcptune.ir.kernels.kernel import Kernel
from tcptune.ir.placement import AxisText, Digit, expression, merged, positions, without
from tcptune.ir.types import DType
from tcptune.ir.workload import K

Steps = list[dict[str, Any]]
INPUT = "a"
REDUCTIONS = {("sum", True): "Add", ("max", True): "Max", ("sum", False): "AddSat", ("max", False): "Max"}
"""Function of a row reduction on floats (True) and integers (ISR-003); sums of i8 do not reach saturation."""


@dataclass(frozen=True)
class Stored:
    """A tensor in DM between two passes: its digits in a slice and how its last piece is padded.

    Attributes:
        rest, piece: digits of the element, the piece (at most one packet) last.
        width: positions of the stored piece.
        slices: Slice level.
    """

    rest: tuple[Digit, ...]
    piece: tuple[Digit, ...]
    width: int
    slices: tuple[Digit, ...]

    def element(self, texts: dict[str, AxisText]) -> str:
        if self.width == positions(self.piece):
            return expression([*self.rest, *self.piece], texts)
        tail = padded_packet(list(self.piece), self.width, texts)
        return f"{expression(self.rest, texts)}, {tail}" if self.rest else tail


def lower_vector(candidate: Candidate, name: str = "kernel") -> Kernel:
    """The kernel of a candidate whose workload has one input.

    Raises:
        RuleViolation: the placement cannot be lowered.
    """
    return assembled(candidate.workload, name, vector_steps(candidate))


def vector_steps(candidate: Candidate) -> Steps:
    """The steps of a candidate whose workload has one input, from its load to the store, which is the last one.

    Raises:
        RuleViolation: the placement cannot be lowered.
    """
    layout, workload = Layout(candidate), candidate.workload
    texts = axis_texts(layout)
    place = {"cluster": expression(layout.clusters, texts), "slice": expression(layout.slices, texts)}
    held = _loaded(layout)
    load = {"let": "a_dm", "op": "to_dm", "from": INPUT, **place, "element": held.element(texts)}
    plans = list(plan_epilogue(named(workload), layout.accumulator))
    following, source = passes(layout, held, plans, "a_dm")
    return [load, *following, store_step(workload, source)]


def passes(layout: Layout, held: Stored, plans: list[EpiloguePass], source: str, through: Steps | None = None) -> tuple[Steps, str]:
    """The passes from the loaded input to the result, folds first, then the epilogue; and the name of the result.

    `through` are calls on every element before the first fold.
    """
    workload, element = layout.candidate.workload, layout.dtype
    steps: Steps = []
    summed = folding_order(layout)
    for number, axis in enumerate(summed):
        last = number == len(summed) - 1
        behind = _behind_reduction(layout, plans) if last else []
        final = last and len(plans) == len(behind)
        kept = [[d for d in digits if layout.roles[d.axis] != K] for digits in (held.rest, held.piece)]
        steps += _operands(layout, behind, kept[0], kept[1], held.slices)
        fold = _Fold(axis, element, workload.out_dtype if final else layout.accumulator, last, tuple(through or ()) if not number else ())
        ops, held = _reduction(layout, fold, held, behind)
        folded = "r0" if last else f"sum_{axis}"
        steps.append({"let": folded, "context": "main", "begin": source, "ops": ops})
        source, element, plans = folded, layout.accumulator, plans[len(behind) :]
    for number, plan in enumerate(plans, 1):
        target = workload.out_dtype if number == len(plans) else layout.accumulator
        steps += _operands(layout, [plan], list(held.rest), list(held.piece), held.slices)
        ops, held = _elementwise(layout, held, plan, element, target)
        steps.append({"let": f"r{number}", "context": "main", "begin": source, "ops": ops})
        source, element = f"r{number}", layout.accumulator
    return steps, source


def axis_texts(layout: Layout) -> dict[str, AxisText]:
    """How mappings write each axis: with top padding wherever the placement holds more positions than there are."""
    placement = layout.candidate.placement
    found = {}
    for axis, size in layout.candidate.workload.sizes:
        padded = placement.of(axis).padded
        name = layout.symbol(axis)
        found[axis] = AxisText(f"{name} # {padded}" if padded > size else name, padded)
    return found


def _operands(layout: Layout, plans: list[EpiloguePass], time: list[Digit], live: list[Digit], slices: tuple[Digit, ...]) -> Steps:
    steps: Steps = []
    for plan in plans:
        for step in plan.operands:
            held = merged([d for d in (*time, *live) if d.axis in step.axes])
            element = layout.dtype if step.operand in INPUT_NAMES else None  # an input of the product itself
            steps += stage_operand(step, held, slices, layout, axis_texts(layout), element)
    return steps


def _loaded(layout: Layout) -> Stored:
    """A slice's part of the input, row-major, cut into pieces of one flit of the accumulator."""
    block = layout.block(layout.operand(0))
    last = block[-1]
    lanes = layout.hw.vector_ways[1 if layout.roles[last.axis] == K else 0]
    piece = last.inner(min(lanes, last.extent & -last.extent))
    return Stored(tuple(without(block, piece)), (piece,), piece.extent, layout.slices)


def _entered(layout: Layout, time: list[Digit], held: Stored, element: DType) -> Steps:
    """Fetch, cast and collect: one flit of the accumulator's type for every piece."""
    texts = axis_texts(layout)
    piece = list(held.piece)
    fetched = padded_packet(piece, max(held.width, write_width(layout, held.width, element)), texts)
    ops: Steps = [{"op": "fetch", "time": expression(time, texts), "packet": fetched}]
    if element != layout.accumulator:
        ops.append({"op": "fetch_cast", "dtype": layout.accumulator.name})
    ops.append({"op": "collect", "time": expression(time, texts), "packet": padded_packet(piece, layout.hw.vector_ways[0], texts)})
    return ops


def committed(layout: Layout, time: list[Digit], piece: list[Digit], element: DType) -> tuple[Steps, Stored]:
    """Cast, transpose of single values, trim and commit; and what is stored then."""
    texts = axis_texts(layout)
    ops: Steps = []
    if element != layout.accumulator:
        ops.append({"op": "cast", "dtype": element.name, "packet": padded_packet(piece, layout.flit_elements(element), texts)})
    word = layout.word_elements(element)
    last = time[-1] if time else None
    if not piece and last is not None and last.extent % word == 0:
        rows = last.inner(word)
        time, piece = without(time, rows), [rows]
        packet = padded_packet(piece, layout.flit_elements(element), texts)
        ops.append({"op": "transpose", "time": expression(time, texts), "packet": packet})
    width = write_width(layout, positions(piece), element)
    stored = Stored(tuple(merged(time)), tuple(piece), width, layout.slices)
    ops.append({"op": "commit_trim", "packet": padded_packet(piece, width, texts)})
    ops.append({"op": "commit", "element": stored.element(texts)})
    return ops, stored


def _elementwise(layout: Layout, held: Stored, plan: EpiloguePass, element: DType, target: DType) -> tuple[Steps, Stored]:
    texts = axis_texts(layout)
    time, piece = list(held.rest), list(held.piece)
    wide, narrow = layout.hw.vector_ways
    packet = padded_packet(piece, wide, texts)
    ops = _entered(layout, time, held, element)
    ops += pass_ops(plan, expression(time, texts), packet, positions(piece), (wide, narrow))
    commits, stored = committed(layout, time, piece, target)
    return [*ops, *commits], replace(stored, slices=held.slices)


# reductions


@dataclass(frozen=True)
class _Fold:
    """One pass of a reduction: the axis that it folds inside of slices, the types before and after it, and whether it adds slices up.

    `through` are calls on every element before it is folded.
    """

    axis: str
    element: DType
    target: DType
    last: bool
    through: tuple[dict[str, Any], ...] = ()


def folding_order(layout: Layout) -> list[str]:
    """Summed axes in the order in which passes fold them inside of slices, one each (ISR-002), the innermost of the stream first.

    Its tree takes a packet. An axis that fills its slices with one position each needs no pass of its own: the last pass adds up slices,
    over all axes at once; only padding must be replaced by the identity first (ISR-008).
    """
    summed = [axis for axis in reversed(layout.operand(streamed(layout))) if layout.roles[axis] == K]
    return [axis for axis in summed if layout.in_slice(axis) > 1 or _is_padded(layout, axis)] or summed[:1]


def _is_padded(layout: Layout, axis: str) -> bool:
    return layout.candidate.placement.of(axis).padded > layout.candidate.workload.size(axis)


def streamed(layout: Layout) -> int:
    """The input that streams: the only one, or that which does not wait in the register file."""
    return layout.stream if len(layout.candidate.workload.inputs) == 2 else 0


def _behind_reduction(layout: Layout, plans: list[EpiloguePass]) -> list[EpiloguePass]:
    """The first part of the epilogue, if it can follow the last fold in its pass: Clip calls only, and no Inter-Slice Reducer there."""
    spread = any(layout.roles[d.axis] == K for d in layout.slices if d.axis)
    fits = plans and layout.candidate.workload.fuse and not spread and all(c.stage == "Clip" for c in plans[0].calls)
    return plans[:1] if fits else []


def _reduction(layout: Layout, fold: _Fold, held: Stored, behind: list[EpiloguePass]) -> tuple[Steps, Stored]:
    """A pass that folds an axis, over the packet's tree where it is innermost, else lane by lane.

    Raises:
        RuleViolation: ISR-003, a slice would add numbers of i32.
    """
    workload, texts, axis = layout.candidate.workload, axis_texts(layout), fold.axis
    inside = positions(d for d in (*held.rest, *held.piece) if d.axis == axis)
    spread = positions(d for d in held.slices if d.axis and layout.roles[d.axis] == K) if fold.last else 1
    wrapping = (workload.dtype.name, workload.reduce) == ("i32", "sum")
    if wrapping and (inside > 1 or _is_padded(layout, axis)):
        raise RuleViolation(
            "ISR-003",
            f"sums of i32 saturate inside a slice, which holds {inside} positions of {axis}",
            expected="one position a slice and no padding (the Inter-Slice Reducer wraps), or i8 inputs, whose sums are exact",
            got="i32",
        )
    wide, narrow = layout.hw.vector_ways
    fn = REDUCTIONS[workload.reduce, layout.accumulator.is_float]
    kept = [d for d in held.rest if d.axis != axis]
    time = [*kept, *(d for d in held.rest if d.axis == axis)]
    flit = padded_packet(list(held.piece), wide, texts)
    ops = [*_entered(layout, time, held, fold.element), {"op": "vector_init"}]
    tree = bool(held.piece) and held.piece[0].axis == axis
    piece = [] if tree else list(held.piece)
    after = expression(kept, texts)
    slices_only = inside == 1 and spread > 1 and not _is_padded(layout, axis)
    if slices_only and not fold.through:
        fn = "Add" if wrapping else fn  # straight to the Inter-Slice Reducer
    elif positions(held.piece) <= narrow:
        ops.append({"op": "vector_intra_slice_tag", "mode": "Zero"})
        ops += [{"op": "vector_narrow_trim", "packet": f"[{flit}] = {narrow}"}, *fold.through]
        packet = f"1 # {narrow}" if tree else f"[{flit}] = {narrow}"
        if not slices_only:
            ops.append({"op": "vector_intra_slice_reduce", "axis": axis.upper(), "time": after, "packet": packet, "fn": fn})
        flit = f"1 # {wide}" if tree else flit
        ops.append({"op": "vector_widen_pad", "packet": flit})
    else:
        inner = held.piece[0].inner(narrow)
        halves = [held.piece[0].outer(held.piece[0].extent // narrow)]
        split, packet = expression([*time, *halves], texts), expression([inner], texts)
        ops.append({"op": "vector_intra_slice_tag", "mode": "Zero"})
        ops += [{"op": "vector_narrow_split", "time": split, "packet": packet}, *fold.through]
        reduced = expression([*kept, *halves], texts)
        ops.append({"op": "vector_intra_slice_reduce", "axis": axis.upper(), "time": reduced, "packet": packet, "fn": fn})
        ops.append({"op": "vector_widen_concat", "time": after, "packet": flit})
    for plan in behind:
        ops += [c.raw for c in plan.calls]
    slices = held.slices
    if spread > 1:
        slices = tuple(Digit("", 1, d.extent) if d.axis and layout.roles[d.axis] == K else d for d in slices)
        ops.append({"op": "vector_inter_slice_reduce", "slice": expression(slices, texts), "time": after, "fn": fn})
    ops.append({"op": "vector_final"})
    commits, stored = committed(layout, kept, piece, fold.target)
    return [*ops, *commits], replace(stored, slices=slices)

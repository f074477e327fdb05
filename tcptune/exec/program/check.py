"""The checker of kernels: replays a program step by step through the rules of the machine (KERNEL, SCHED-018, MOVE, DMA, REDIST, GATHER).

`Checker` takes steps one at a time, so the builder is checked as it is written; `check_kernel` replays a kernel that was read.
"""

from __future__ import annotations

from dataclasses import replace
from functools import singledispatchmethod
from math import prod

import numpy as np
import numpy.typing as npt

from tcptune.errors import InputError, RuleViolation
from tcptune.exec.program import moves, views
from tcptune.exec.program.checked import Bound, CheckedKernel, CheckedStep, Scope
from tcptune.ir.kernels import steps as s
from tcptune.ir.kernels.kernel import Kernel
from tcptune.ir.kernels.ops import BeginInterleaved, CommitView, ContractOuter, Op
from tcptune.ir.kernels.vector_operands import Branched, Operand, TernaryOperand, VrfOperand
from tcptune.ir.kernels.vector_ops import OperandFields
from tcptune.ir.mappings.mapping import IDENTITY, Mapping, Padding, Stride
from tcptune.ir.types import StreamType, TensorType
from tcptune.model.hardware import RNGD, Hardware
from tcptune.model.memory import dm
from tcptune.model.pipeline import Chain, check_chain
from tcptune.model.stage import ChainEnv

MOST_ITERATIONS = 1 << 20
"""Most iterations of a nest of loops."""

TENSOR_UNIT_CONTEXTS = ("main", "sub")
_LIFTS = {"fetch_chip_lift": "chip", "fetch_cluster_lift": "cluster", "fetch_slice_lift": "slice"}


def _cut_to(level: Mapping, size: int) -> Mapping:
    """The outermost blocks of a level that has too many positions: what it cuts, in so many blocks of equal size, padded if need be."""
    cut = level.inner if isinstance(level, Stride) else level
    while isinstance(cut, Padding) and cut.size != size:
        cut = cut.inner
    block = -(-cut.size // size)
    whole = cut if cut.size == block * size else cut.pad(block * size)
    return whole.stride(block)


def require_placement(name: str, type_: TensorType, chips: int, hw: Hardware = RNGD) -> None:
    """Level sizes must be those of the device, and the tensor must fit its memory.

    Raises:
        RuleViolation: HW-006 (Cluster), HW-007 (Slice), HW-008 (Chip), HW-003 (DM capacity), HBM-002.
    """
    also = ("MAP-031", "MOVE-007", "TU-007", "FETCH-002")
    if type_.tier == "Dm":
        for rule, level, size, unit in (
            ("HW-006", type_.cluster, hw.clusters_per_chip, "Cluster"),
            ("HW-007", type_.slice, hw.slices_per_cluster, "Slice"),
        ):
            if level.size != size:
                nearest = level.pad(size) if level.size < size else _cut_to(level, size)
                raise RuleViolation(
                    rule,
                    f"{unit} of {name} has {level.size} positions",
                    expected=f"{size} positions",
                    got=level,
                    nearest=nearest,
                    also=also,
                )
        dm.check_capacity(type_.element_bytes, hw, name)
    if type_.tier in ("Dm", "Hbm") and type_.chip.size != chips:
        raise RuleViolation(
            "HW-008",
            f"Chip of {name} has {type_.chip.size} positions",
            expected=f"{chips} positions",
            got=type_.chip,
            also=("MAP-031", *also[1:]),
        )
    if type_.tier == "Hbm" and type_.element_bytes > hw.hbm_bytes:
        raise RuleViolation(
            "HBM-002", f"{name} needs {type_.element_bytes:,} B of HBM", expected=f"at most {hw.hbm_bytes:,} B", also=("HW-002",)
        )


class Checker:
    """Checks steps one after the other; the life of a kernel while it is being written."""

    def __init__(self, kernel: Kernel, hw: Hardware = RNGD) -> None:
        self.axes = kernel.axes
        self.chips = kernel.chips
        self.hw = hw
        self.scope = Scope()
        self.inputs: list[Bound] = []
        for entry in kernel.inputs:
            self.add_input(entry.name, entry.type)

    def add_input(self, name: str, type_: TensorType) -> Bound:
        require_placement(name, type_, self.chips, self.hw)
        bound = self.scope.bind(Bound(name, type_, name))
        self.inputs.append(bound)
        return bound

    def require_placement(self, name: str, type_: TensorType) -> None:
        """`require_placement` on this checker's device."""
        require_placement(name, type_, self.chips, self.hw)

    # scopes

    def enter_loop(self, var: str, count: int) -> None:
        ranges = self.scope.loop_ranges()
        if var in ranges:
            raise InputError(f"the loop variable {var!r} is in use")
        if prod(ranges.values()) * count > MOST_ITERATIONS:
            raise InputError(f"the body of loop {var!r} runs more than {MOST_ITERATIONS:,} times")
        self.scope = Scope(self.scope, loops={var: count})

    def leave_loop(self) -> None:
        if self.scope.outer is None:
            raise InputError("no loop is open")
        self.scope = self.scope.outer

    def start_values(self, start: int | str) -> npt.NDArray[np.int64]:
        """All values a tile's start takes over the enclosing loops."""
        return views.start_values(start, self.scope.loop_ranges())

    # steps

    def step(self, step: s.KernelStep) -> CheckedStep:
        """Checks one step and binds its result.

        Raises:
            RuleViolation: a rule of the machine is broken.
            InputError: an unknown or repeated name, or a step that makes no sense.
        """
        checked = self._check(step)
        if checked.result is not None:
            require_placement(checked.result.name, checked.result.type, self.chips, self.hw)
            self.scope.bind(checked.result)
        return checked

    @singledispatchmethod
    def _check(self, step: s.KernelStep) -> CheckedStep:
        return moves.check_move(self, step)

    @_check.register
    def _(self, step: s.NewDm) -> CheckedStep:
        type_ = TensorType("Dm", step.dtype, step.element, step.chip, step.cluster, step.slice)
        return CheckedStep(step, result=Bound(step.let, type_, step.let))

    @_check.register
    def _(self, step: s.NewHbm) -> CheckedStep:
        type_ = TensorType("Hbm", step.dtype, step.element, step.chip)
        return CheckedStep(step, result=Bound(step.let, type_, step.let))

    @_check.register
    def _(self, step: s.Reshape) -> CheckedStep:
        return views.check_reshape(self.scope.find(step.source), step)

    @_check.register(s.Tile)
    @_check.register(s.ChipTile)
    @_check.register(s.ClusterTile)
    def _(self, step: s.Tile | s.ChipTile | s.ClusterTile) -> CheckedStep:
        source = self.scope.find(step.source)
        return CheckedStep(step, (source,), views.tile_of(source, step, self.start_values(step.start), step.let))

    @_check.register
    def _(self, step: s.Loop) -> CheckedStep:
        count = trip_count(step)
        self.enter_loop(step.var, count)
        body = tuple(self.step(inner) for inner in step.body)
        self.leave_loop()
        return CheckedStep(step, body=body)

    @_check.register
    def _(self, step: s.TensorUnit) -> CheckedStep:
        return self._pass(step)

    # passes

    def begin(self, step: s.TensorUnit) -> tuple[tuple[Bound, ...], StreamType]:
        """The tensors a pass begins on, and its first stream.

        Raises:
            RuleViolation: SCHED-018 for a tensor outside DM; FETCH-008 for an interleaved pair that differs.
        """
        if step.context not in TENSOR_UNIT_CONTEXTS:
            raise RuleViolation(
                "KERNEL-002", f"a Tensor Unit pass runs on main or sub, not on {step.context!r}", also=("TU-009", "DMA-003")
            )
        begins = tuple(self.scope.find(name) for name in step.begins_on)
        for bound in begins:
            if bound.type.tier != "Dm":
                raise RuleViolation(
                    "SCHED-018",
                    f"a Tensor Unit stream begins on a DM tensor; {bound.name} is in {bound.type.tier}",
                    expected="Dm",
                    got=bound.type.tier,
                    nearest=f"{bound.name}.to_dm(…) first",
                    also=("MOVE-001", "KERNEL-001"),
                )
        type_ = begins[0].type
        return begins, StreamType("Begin", type_.dtype, type_.chip, type_.cluster, type_.slice, IDENTITY, type_.element)

    def environment(self, step: s.TensorUnit, begins: tuple[Bound, ...]) -> tuple[ChainEnv, tuple[Bound, ...]]:
        """Surroundings of the pass: types of every tensor its operations may name."""
        named = {name: self.scope.find(name) for op in step.ops for name in operand_names(op)}
        types = {**{b.name: b.type for b in begins}, **{name: b.type for name, b in named.items()}}
        return ChainEnv(step.context, self.axes, types, self.hw), tuple(named.values())

    def check_prefix(self, step: s.TensorUnit) -> Chain:
        """Checks the beginning of a pass that does not end yet."""
        return self._chain(step)[0]

    def _pass(self, step: s.TensorUnit) -> CheckedStep:
        chain, sources, target = self._chain(step)
        return self._finish(step, sources, chain, target)

    def _chain(self, step: s.TensorUnit) -> tuple[Chain, tuple[Bound, ...], Bound | None]:
        """The checked chain of a pass, the tensors it reads and the view it ends in."""
        begins, start = self.begin(step)
        env, operands = self.environment(step, begins)
        ops: tuple[Op, ...] = step.ops
        if isinstance(step.begin, BeginInterleaved):
            ops = (step.begin, *ops)
        ops, target = self._resolve_view(ops)
        for op in ops:
            level = _LIFTS.get(op.NAME)
            if level is not None:
                views.require_replicated(begins[0], level)
        return check_chain(start, ops, env), (*begins, *operands), target

    def _resolve_view(self, ops: tuple[Op, ...]) -> tuple[tuple[Op, ...], Bound | None]:
        """Replaces ``commit_view(into, tile)`` at the end by the explicit view of its destination; without a tile that is all of `into`."""
        if not ops or not isinstance(ops[-1], CommitView):
            return ops, None
        last = ops[-1]
        if last.into is None:
            raise InputError("commit_view in a kernel needs `into`")
        source = self.scope.find(last.into)
        if source.type.tier != "Dm":
            raise RuleViolation("COMMIT-010", f"commit_view writes a DM tensor; {source.name} is in {source.type.tier}", also=("MOVE-001",))
        if last.tile is None:
            view = views.whole_view(source)
            return (*ops[:-1], replace(last, slice=source.type.slice, element=source.type.element, view=view)), source
        starts = self.start_values(last.tile.start)
        target = views.tile_of(source, last.tile, starts, f"{source.name} tile")
        view = views.view_spec(source, last.tile, int(starts.flat[0]))
        resolved = replace(last, slice=source.type.slice, element=last.tile.element, view=view)
        return (*ops[:-1], resolved), target

    def _finish(self, step: s.TensorUnit, sources: tuple[Bound, ...], chain: Chain, target: Bound | None) -> CheckedStep:
        final = chain.final
        if not isinstance(final, TensorType):
            raise RuleViolation(
                "KERNEL-041" if final.position != "Begin" else "TU-001",
                f"the pass ends in a stream at position {final.position}",
                expected="commit, commit_view, to_trf or to_vrf at the end",
                got=final.position,
                also=("TU-011", "CADAPT-003", "CADAPT-001", "COMMIT-002"),
            )
        if target is not None:
            views.require_same_dtype(target, final)
            return CheckedStep(step, sources, target=target, chain=chain)
        if step.let is None:
            raise InputError("the pass makes a tensor, so it needs a let")
        return CheckedStep(step, sources, Bound(step.let, final, step.let), chain=chain)


def trip_count(step: s.Loop) -> int:
    """Compile-time trip count of a loop.

    Raises:
        RuleViolation: TUNE-009 where it is known at run time only.
        InputError: it is not positive.
    """
    if isinstance(step.count, s.RuntimeCount):
        raise RuleViolation(
            "TUNE-009",
            f"the trip count {step.count.name!r} of loop {step.var!r} is known at run time only",
            expected="a compile-time constant",
            got=step.count.name,
        )
    if not 1 <= step.count <= MOST_ITERATIONS:
        raise InputError(f"loop {step.var!r} runs {step.count} times", hint=f"1 to {MOST_ITERATIONS:,}")
    return step.count


def operand_names(op: Op) -> tuple[str, ...]:
    """Names of register and DM tensors that an operation reads besides the stream."""
    found = [op.trf] if isinstance(op, ContractOuter) else []
    if isinstance(op, OperandFields):
        for value in (op.operand, op.group0, op.group1):
            found.extend(_tensor_names(value))
    return tuple(dict.fromkeys(found))


def _tensor_names(operand: Operand | None) -> list[str]:
    if isinstance(operand, VrfOperand):
        return [operand.name]
    if isinstance(operand, TernaryOperand):
        return [*_tensor_names(operand.operand0), *_tensor_names(operand.operand1)]
    if isinstance(operand, Branched):
        return [name for slot in operand.slots for name in _tensor_names(slot.value)]
    return []


def check_kernel(kernel: Kernel, hw: Hardware = RNGD) -> CheckedKernel:
    """Checks a whole kernel.

    Raises:
        RuleViolation: the first broken rule.
        InputError: names or steps that make no sense.
    """
    checker = Checker(kernel, hw)
    steps = tuple(checker.step(step) for step in kernel.steps)
    return CheckedKernel(kernel, tuple(checker.inputs), steps, tuple(checker.scope.find(name) for name in kernel.outputs))

"""Checked kernels: every step with its types, chain or transfer, as the interpreter and the instruction lowering read it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from tcptune.errors import InputError
from tcptune.ir.kernels.kernel import Kernel
from tcptune.ir.kernels.steps import KernelStep
from tcptune.ir.types import TensorType
from tcptune.model.pipeline import Chain


def buffer_bytes(type_: TensorType) -> int:
    """Bytes a slice that a tensor takes (lanes included)."""
    return type_.element_bytes * type_.lane.size


@dataclass(frozen=True)
class View:
    """One tile of a tensor: `level` positions shifted by `stride` times the start coordinate.

    Attributes:
        level: ``element``, ``chip`` or ``cluster``.
        stride: positions between neighbouring coordinates of the indexed axis.
        start: number or formula in loop variables.
        length: coordinates the view covers.
        contiguous: whether the covered positions lie in one piece (the indexed axis is outermost).
    """

    level: str
    stride: int
    start: int | str
    length: int
    contiguous: bool = False


@dataclass(frozen=True)
class Bound:
    """What a name stands for.

    Attributes:
        name: the name.
        type: type as the program sees it.
        storage: name of the tensor whose bytes it is (itself, unless it is a view or reshape).
        views: tiles between the storage and this, outermost first.
        mutable: whether a program may write through it.
        unproven: broadcast levels that a reshape merely claims (LIFT-011).
    """

    name: str
    type: TensorType
    storage: str
    views: tuple[View, ...] = ()
    mutable: bool = True
    unproven: tuple[str, ...] = ()
    replicated_axes: frozenset[str] = frozenset()


@dataclass(frozen=True)
class CheckedStep:
    """A step with what the checker derived.

    Attributes:
        sources: what its names stand for, in the step's order (begin or from first, then operands).
        result: the new tensor, if it binds one.
        target: the existing tensor or view it writes into, if any.
        chain: the checked pass of a Tensor Unit step.
        transfers: the checked DMA transfers of a move.
        route: the routing of a redistribution.
        body: steps of a loop.
    """

    step: KernelStep
    sources: tuple[Bound, ...] = ()
    result: Bound | None = None
    target: Bound | None = None
    chain: Chain | None = None
    transfers: tuple[Any, ...] = ()
    route: Any = None
    body: tuple[CheckedStep, ...] = ()


@dataclass(frozen=True, repr=False)
class CheckedKernel:
    """A kernel that passed every rule.

    Attributes:
        inputs: the bound inputs.
        steps: checked steps in program order.
        outputs: the results, in order.
    """

    kernel: Kernel
    inputs: tuple[Bound, ...]
    steps: tuple[CheckedStep, ...]
    outputs: tuple[Bound, ...]

    def __repr__(self) -> str:
        return f"<CheckedKernel {self.kernel.name}: {len(self.steps)} steps, output {', '.join(o.name for o in self.outputs)}>"


@dataclass
class Scope:
    """Names in force; a loop body has its own scope."""

    outer: Scope | None = None
    names: dict[str, Bound] = field(default_factory=dict)
    loops: dict[str, int] = field(default_factory=dict)

    def find(self, name: str) -> Bound:
        """What `name` stands for.

        Raises:
            InputError: nothing is called so.
        """
        scope: Scope | None = self
        while scope is not None:
            if name in scope.names:
                return scope.names[name]
            scope = scope.outer
        known = ", ".join(self.known()) or "nothing"
        raise InputError(f"no tensor is called {name!r} here", hint=f"known: {known}")

    def known(self) -> list[str]:
        """All names, innermost first."""
        return [*self.names, *(self.outer.known() if self.outer else [])]

    def bind(self, bound: Bound) -> Bound:
        """Adds a name.

        Raises:
            InputError: the name is taken in this scope.
        """
        if bound.name in self.known():
            raise InputError(f"the name {bound.name!r} is bound twice", hint="every let gives a new name")
        self.names[bound.name] = bound
        return bound

    def loop_ranges(self) -> dict[str, int]:
        """Trip count of every enclosing loop variable."""
        return {**(self.outer.loop_ranges() if self.outer else {}), **self.loops}

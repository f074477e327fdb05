"""The fluent builder of kernels: methods named as the vendor's, every call checked as it is made.

Example::

    b = KernelBuilder("gemv", {"I": 256, "J": 2048})
    matrix = b.input("matrix", "Hbm", "bf16", element="I, J")
    rows = matrix.to_dm(cluster="1 # 2", slice="I", element="J")
    ...
    weights = b.sub.begin(vector).fetch("1", "J").collect("J / 16", "J % 16").to_trf("1", "J")
    result = b.main.begin(rows).fetch("J / 16", "J % 16")....contract_outer("J / 32", "J % 32", weights)....commit("1 # 4")
    kernel = b.build(result.to_hbm(element="I"))

A builder cannot hold an illegal kernel: the call that breaks a rule raises and changes nothing.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from collections.abc import Mapping as Dict
from contextlib import contextmanager
from typing import Any, cast

from tcptune.errors import InputError
from tcptune.exec.program.check import Checker, check_kernel
from tcptune.exec.program.checked import Bound, CheckedKernel
from tcptune.ir.kernels.kernel import Kernel, KernelInput, KernelStep, Loop, TensorUnit, Tolerance, step_from_json
from tcptune.ir.kernels.ops import OPS
from tcptune.ir.kernels.vector_operands import Operand
from tcptune.ir.mappings.axes import Axes
from tcptune.ir.types import TensorType
from tcptune.model.hardware import RNGD, Hardware

__all__ = ["KernelBuilder", "Stream", "Tensor", "check_kernel"]


@dataclasses.dataclass(frozen=True)
class Tensor:
    """A named tensor of a kernel under construction; its methods add the steps that start from it."""

    builder: KernelBuilder
    bound: Bound

    @property
    def name(self) -> str:
        return self.bound.name

    @property
    def type(self) -> TensorType:
        return self.bound.type

    def to_dm(self, *, cluster: str, slice: str, element: str, chip: str | None = None, let: str | None = None) -> Tensor:
        """DMA to a new DM tensor."""
        return self._make("to_dm", let, cluster=cluster, slice=slice, element=element, chip=chip)

    def to_hbm(self, *, element: str, chip: str | None = None, let: str | None = None) -> Tensor:
        """DMA to a new HBM tensor."""
        return self._make("to_hbm", let, element=element, chip=chip)

    def to_hbm_view(self, into: Tensor) -> None:
        """DMA into an existing HBM tensor."""
        self.builder.add({"op": "to_hbm_view", "from": self.name, "into": into.name})

    def reshape(self, let: str | None = None, **levels: str | bool) -> Tensor:
        """Same address, new mappings."""
        return self._make("reshape", let, **levels)

    def tile(self, axis: str, len: int, start: int | str, element: str, *, mutable: bool = False, let: str | None = None) -> Tensor:
        """View of `len` positions of `axis` from coordinate `start`."""
        return self._make("tile", let, axis=axis, len=len, start=start, element=element, mutable=mutable)

    def redistribute(self, plan: list[dict[str, Any]], *, let: str | None = None, **levels: str) -> Tensor:
        """A plan of moves between chips and clusters, ended by ``to_dm``."""
        return self._make("redistribute", let, plan=plan, finish="to_dm", **levels)

    def dma_gather_scaled(self, index: Tensor, *, cluster: str, slice: str, element: str, let: str | None = None) -> Tensor:
        """Rows of this HBM table, by byte offsets in HBM."""
        return self._make("dma_gather_scaled", let, index=index.name, cluster=cluster, slice=slice, element=element)

    def dma_gather_unscaled(self, index: Tensor, *, cluster: str, slice: str, element: str, let: str | None = None) -> Tensor:
        """Rows of this HBM table, by row numbers in DM."""
        return self._make("dma_gather_unscaled", let, index=index.name, cluster=cluster, slice=slice, element=element)

    def _make(self, op: str, let: str | None, **fields: Any) -> Tensor:
        given = {k: v for k, v in fields.items() if v is not None}
        return self.builder.add_tensor({"let": let or self.builder.fresh_name(op), "op": op, "from": self.name, **given})


class Stream:
    """A Tensor Unit pass under construction. Every operation of `ir.kernels.ops` is a method, its fields positional or by name."""

    def __init__(self, builder: KernelBuilder, raw: dict[str, Any], let: str | None) -> None:
        self._builder = builder
        self._raw = raw
        self._let = let

    def __getattr__(self, name: str) -> Callable[..., Stream]:
        if name not in OPS:
            raise AttributeError(f"the Tensor Unit has no operation {name!r}")

        def call(*values: Any, **fields: Any) -> Stream:
            raw = self._with(name, values, fields)
            self._builder.check_prefix(raw)
            return Stream(self._builder, raw, self._let)

        return call

    def to_trf(self, lane: str, element: str, *, let: str | None = None) -> Tensor:
        """Ends in the tensor register file."""
        return self._end("to_trf", (lane, element), {}, let)

    def to_vrf(self, element: str, *, sub_arg: bool = False, let: str | None = None) -> Tensor:
        """Ends in the vector register file; on main the sub context is passed along (`sub_arg`)."""
        return self._end("to_vrf", (element,), {"sub_arg": sub_arg}, let)

    def commit(self, element: str, *, let: str | None = None) -> Tensor:
        """Ends in a new DM tensor."""
        return self._end("commit", (element,), {}, let)

    def commit_view(self, into: Tensor, tile: dict[str, Any]) -> None:
        """Ends in a mutable tile of an existing DM tensor."""
        self._builder.add(self._with("commit_view", (), {"into": into, "tile": tile}))

    def _end(self, name: str, values: tuple[Any, ...], fields: dict[str, Any], let: str | None) -> Tensor:
        raw = self._with(name, values, fields)
        return self._builder.add_tensor({"let": let or self._let or self._builder.fresh_name(name), **raw})

    def _with(self, name: str, values: tuple[Any, ...], fields: dict[str, Any]) -> dict[str, Any]:
        """The pass with one more operation, as a step in the corpus's vocabulary."""
        names = [f.name for f in dataclasses.fields(OPS[name]) if not f.kw_only]
        if len(values) > len(names):
            raise InputError(f"{name} takes {len(names)} values, got {len(values)}", hint=f"fields: {', '.join(names) or 'none'}")
        op = {"op": name, **{n: _plain(v) for n, v in zip(names, values, strict=False)}, **{n: _plain(v) for n, v in fields.items()}}
        return {**self._raw, "ops": [*self._raw["ops"], op]}


def _plain(value: Any) -> Any:
    if isinstance(value, Tensor):
        return value.name
    if isinstance(value, dict):
        return {k: _plain(v) for k, v in value.items()}
    if isinstance(value, tuple | list):
        return [_plain(v) for v in value]
    if isinstance(value, Operand):
        return value.to_json()
    return value


@dataclasses.dataclass(frozen=True)
class Context:
    """``main`` or ``sub`` of the device."""

    builder: KernelBuilder
    name: str

    def begin(self, tensor: Tensor, let: str | None = None) -> Stream:
        """Starts a pass on a DM tensor or tile."""
        return self._start({"context": self.name, "begin": tensor.name, "ops": []}, let)

    def begin_interleaved(self, axis: str, lhs: Tensor, rhs: Tensor, let: str | None = None) -> Stream:
        """Starts a pass that reads two equal tensors in turn; `axis` joins Time."""
        pair = {"axis": axis, "lhs": lhs.name, "rhs": rhs.name}
        return self._start({"context": self.name, "begin_interleaved": pair, "ops": []}, let)

    def _start(self, raw: dict[str, Any], let: str | None) -> Stream:
        self.builder.check_prefix(raw)
        return Stream(self.builder, raw, let)


class KernelBuilder:
    """A kernel under construction.

    Args:
        axes: sizes of the axes.
        chips: chips of the device.
    """

    def __init__(self, name: str, axes: Dict[str, int], chips: int = 1, hw: Hardware = RNGD) -> None:
        self.name = name
        self.axes = Axes(dict(axes))
        self.chips = chips
        self._inputs: list[KernelInput] = []
        self._checker = Checker(Kernel(name, self.axes, (), (), (), chips), hw)
        self._blocks: list[list[KernelStep]] = [[]]
        self._counts: dict[str, int] = {}

    @property
    def main(self) -> Context:
        return Context(self, "main")

    @property
    def sub(self) -> Context:
        return Context(self, "sub")

    def input(self, name: str, tier: str, dtype: str, *, element: str, fill: str | None = None, **levels: str) -> Tensor:
        """An argument of the kernel."""
        raw = {"type": tier, "dtype": dtype, "element": element, **levels} | ({"fill": fill} if fill is not None else {})
        entry = KernelInput.from_json(name, raw, self.axes)
        bound = self._checker.add_input(name, entry.type)
        self._inputs.append(entry)
        return Tensor(self, bound)

    def new_dm(self, dtype: str, *, cluster: str, slice: str, element: str, chip: str = "1", let: str | None = None) -> Tensor:
        """A DM tensor that nothing has written yet."""
        raw = {"op": "new_dm", "dtype": dtype, "chip": chip, "cluster": cluster, "slice": slice, "element": element}
        return self.add_tensor({"let": let or self.fresh_name("new_dm"), **raw})

    def new_hbm(self, dtype: str, *, element: str, chip: str = "1", let: str | None = None) -> Tensor:
        """An HBM tensor that nothing has written yet."""
        return self.add_tensor(
            {"let": let or self.fresh_name("new_hbm"), "op": "new_hbm", "dtype": dtype, "chip": chip, "element": element}
        )

    @contextmanager
    def loop(self, count: int, *, unroll: bool = False, var: str | None = None) -> Iterator[str]:
        """A loop; yields the name of its variable, to be used in starts of tiles."""
        name = var or f"i{len(self._blocks) - 1}"
        if count < 1:
            raise InputError(f"a loop runs at least once, not {count} times")
        self._checker.enter_loop(name, count)
        self._blocks.append([])
        try:
            yield name
        finally:
            self._checker.leave_loop()
            body = tuple(self._blocks.pop())
        self._blocks[-1].append(Loop(name, count, body, unroll))

    def fresh_name(self, op: str) -> str:
        """An unused name that says what made it."""
        stem = {"to_dm": "dm", "to_hbm": "hbm", "to_trf": "trf", "to_vrf": "vrf"}.get(op, op)
        taken = self._checker.scope.known()
        while True:
            self._counts[stem] = self._counts.get(stem, 0) + 1
            name = f"{stem}{self._counts[stem]}"
            if name not in taken:
                return name

    def add(self, raw: Dict[str, Any]) -> KernelStep:
        """Checks and adds a step given in the corpus's vocabulary."""
        step = step_from_json(raw, self.axes)
        self._checker.step(step)
        self._blocks[-1].append(step)
        return step

    def add_tensor(self, raw: Dict[str, Any]) -> Tensor:
        """Adds a step that binds ``raw["let"]``."""
        self.add(raw)
        return Tensor(self, self._checker.scope.find(raw["let"]))

    def check_prefix(self, raw: Dict[str, Any]) -> None:
        """Checks the beginning of a pass without adding it."""
        self._checker.check_prefix(cast(TensorUnit, step_from_json(raw, self.axes)))

    def build(self, *outputs: Tensor, oracle: str | None = None, tolerance: Tolerance | None = None) -> Kernel:
        """The finished kernel.

        Raises:
            InputError: no output, or a loop is still open.
        """
        if not outputs:
            raise InputError("a kernel needs an output")
        if len(self._blocks) > 1:
            raise InputError("a loop is still open")
        names = tuple(t.name for t in outputs)
        return Kernel(self.name, self.axes, tuple(self._inputs), tuple(self._blocks[0]), names, self.chips, oracle, tolerance)

    def checked(self, *outputs: Tensor) -> CheckedKernel:
        """The finished kernel with all that the checker derived."""
        return check_kernel(self.build(*outputs))

"""Writes a kernel as a device function in the vendor's Rust: axes, type aliases, one statement a step, laid out as rustfmt does.

`exec.rust` reads the text back to an equal kernel. What Rust has no place for (oracle, tolerance, contents of inputs) stands in header
lines ``//! tcptune …``.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tcptune.errors import InputError
from tcptune.exec.program.check import check_kernel
from tcptune.exec.program.checked import CheckedKernel, CheckedStep
from tcptune.exec.rust.reader import SUFFIX
from tcptune.exec.rust.syntax.index import parse_start
from tcptune.ir.kernels import steps as s
from tcptune.ir.kernels.kernel import Kernel, KernelInput
from tcptune.ir.kernels.ops import BeginInterleaved, CommitView
from tcptune.ir.mappings.mapping import Mapping, Symbol
from tcptune.ir.types import TensorType
from tcptune.model.hardware import RNGD, Hardware
from tcptune.model.timing.calibration import VENDOR
from tcptune.reports.rust.chain import ChainWriter
from tcptune.reports.rust.layout import INDENT, MAX_WIDTH, Call, Chain, Expr, binding, bracket_list, statement
from tcptune.reports.rust.mapping_text import split_list
from tcptune.reports.rust.names import Aliases, Identifiers, identifier
from tcptune.reports.rust.step_text import StepText, commented

StepPath = tuple[int, ...]


@dataclass(frozen=True)
class RustText:
    """A kernel as Rust.

    Attributes:
        text: the file.
        function: name of the device function.
        lines: line (from 1) of the statement of every step, by the step's path.
        axes: axes that the file declares.
    """

    text: str
    function: str
    lines: dict[StepPath, int]
    axes: tuple[str, ...]


def function_name(kernel: Kernel) -> str:
    """Name of the device function: that of the kernel with the starter's ending."""
    base = identifier(kernel.name.rsplit(".", 1)[-1]).lower()
    return base if base.endswith(SUFFIX) else base + SUFFIX


def kernel_to_rust(kernel: Kernel, hw: Hardware = RNGD, *, checked: CheckedKernel | None = None, profile: str = VENDOR.name) -> RustText:
    """The Rust file of a kernel; `checked` spares checking it again, `profile` names the timing constants it was found with.

    Raises:
        InputError: a step has no place in a device function (a transfer with the host).
        RuleViolation: the kernel breaks a rule of the machine.
    """
    return _DeviceWriter(kernel, checked if checked is not None else check_kernel(kernel, hw), profile).write()


class _DeviceWriter:
    """One run of the writer over one kernel."""

    def __init__(self, kernel: Kernel, checked: CheckedKernel, profile: str) -> None:
        self.kernel = kernel
        self.profile = profile
        self.checked = checked
        self.types = _types(checked)
        self.names = Identifiers()
        self.views = {step.let for step in kernel.walk() if isinstance(step, s.Tile | s.ChipTile | s.ClusterTile)}
        self.mutable = _written(kernel)
        self.inputs = {entry.name for entry in kernel.inputs}
        self.aliases = Aliases.for_levels(kernel.axes, _levels(self.types))
        self.lines: dict[StepPath, int] = {}
        for entry in kernel.inputs:
            self.names(entry.name)
        self.writer = ChainWriter(self.aliases, self.names, self.index_text, self.view_mut)
        self.steps = StepText(self)

    def write(self) -> RustText:
        """The whole file; the body comes first, because it decides which aliases there are."""
        body = self._body()
        head = [*self._header(), "use furiosa_opt_std::prelude::*;", ""]
        head += bracket_list("axes!", [f"{name} = {size}" for name, size in self.kernel.axes.items()]) if len(self.kernel.axes) else []
        signature = self._signature()
        aliases = [line for text, name in self.aliases.by_text.items() for line in _alias(name, text)]
        head += ["", *aliases] if aliases else []
        head += ["", f"/// {self._summary()}", f"#[device(chip = {self.kernel.chips})]", *signature]
        lines = {path: line + len(head) for path, line in self.lines.items()}
        text = "\n".join([*head, *body, "}", ""])
        return RustText(text, function_name(self.kernel), lines, tuple(self.kernel.axes))

    def _header(self) -> list[str]:
        kernel = self.kernel
        notes = ["//! Written by tcptune; `tcptune run` reads it back."]
        if identifier(kernel.name) != function_name(kernel).removesuffix(SUFFIX):
            notes.append(f"//! tcptune kernel: {kernel.name}")
        if self.profile != VENDOR.name:
            notes.append(f"//! tcptune profile: {self.profile}")
        if kernel.oracle is not None:
            notes.append(f"//! tcptune oracle: {kernel.oracle.replace(chr(10), ' ').strip()}")
        if kernel.tolerance is not None:
            t = kernel.tolerance
            notes.append(f"//! tcptune tolerance: form={t.form} rel={t.rel!r} abs={t.abs!r}")
        for entry in kernel.inputs:
            if entry.fill is not None:
                notes.append(f"//! tcptune fill {self.names(entry.name)}: {entry.fill}")
            if entry.init is not None:
                notes.append(f"//! tcptune init {self.names(entry.name)}: {entry.init}")
            if entry.values is not None:
                notes.append(f"//! tcptune values {self.names(entry.name)}: [{', '.join(map(repr, entry.values))}]")
        return [*notes, ""]

    def _summary(self) -> str:
        outputs = ", ".join(str(self.types[name].element) for name in self.kernel.outputs)
        inputs = ", ".join(f"{self.names(i.name)} [{i.type.element}]" for i in self.kernel.inputs)
        return f"{inputs} -> [{outputs}]"

    def _signature(self) -> list[str]:
        name = function_name(self.kernel)
        counts = [step.count.name for step in self.kernel.walk() if isinstance(step, s.Loop) and isinstance(step.count, s.RuntimeCount)]
        parameters = ["device: &mut Device", *(self._parameter(entry) for entry in self.kernel.inputs)]
        parameters += [f"{identifier(count)}: usize" for count in dict.fromkeys(counts)]
        returned = [self.tensor_type(self.types[n]) for n in self.kernel.outputs if n not in self.inputs]
        arrow = "" if not returned else f" -> {returned[0] if len(returned) == 1 else '(' + ', '.join(returned) + ')'}"
        flat = f"pub fn {name}({', '.join(parameters)}){arrow} {{"
        if len(flat) <= MAX_WIDTH:
            return [flat]
        return [f"pub fn {name}(", *(f"{' ' * INDENT}{p}," for p in parameters), f"){arrow} {{"]

    def _parameter(self, entry: KernelInput) -> str:
        reference = "&mut " if entry.name in self.mutable else "&"
        return f"{self.names(entry.name)}: {reference}{self.tensor_type(entry.type)}"

    def tensor_type(self, type_: TensorType) -> str:
        """``HbmTensor<bf16, Chip, m![I, K]>``."""
        head, arguments = self.annotation(type_)
        return f"{head}<{', '.join(arguments)}>"

    def annotation(self, type_: TensorType) -> tuple[str, tuple[str, ...]]:
        """Head and type arguments of a tensor type."""
        return f"{type_.tier}Tensor", (type_.dtype.name, *(self.aliases.level(m) for _, m in type_.levels))

    def index_text(self, start: int | str) -> str:
        """A tile's start in Rust: ``2 * pair + 1``."""
        linear = parse_start(start)
        if linear is None:
            raise InputError(f"the start {start!r} of a tile is not linear in loop variables", hint="write it like 2*pair+1")
        terms = [self.names(n) if c == 1 else f"{c} * {self.names(n)}" for n, c in linear.terms]
        text = " + ".join([*terms, *([str(linear.constant)] if linear.constant or not terms else [])])
        return text.replace("+ -", "- ")

    def view(self, name: str) -> Chain:
        """The read view of a tensor; a tile is one already."""
        return Chain(self.names(name), () if name in self.views else (Call("view"),))

    def view_mut(self, name: str) -> Chain:
        """The mutable view of a tensor; a mutable tile is one already."""
        return Chain(self.names(name), () if name in self.views else (Call("view_mut"),))

    # body

    def _body(self) -> list[str]:
        lines: list[str] = []
        last = self.kernel.steps[-1] if self.kernel.steps else None
        tail = _is_tail(self.kernel, last, self.names)
        for index, checked in enumerate(self.checked.steps):
            if checked.step is last and tail:
                continue
            self._add(lines, checked, (index,), INDENT)
        if tail and isinstance(last, s.ToHbm):
            comment = commented(self.checked.steps[-1], self.names)
            lines += ["", f"{' ' * INDENT}// {comment}"] if lines else []
            self.lines[(len(self.kernel.steps) - 1,)] = len(lines) + 1
            lines += statement(self.steps.move(last), INDENT, "")
        elif returned := [self.names(n) for n in self.kernel.outputs if n not in self.inputs]:
            lines += ["", " " * INDENT + (returned[0] if len(returned) == 1 else f"({', '.join(returned)})")]
        return lines

    def _add(self, lines: list[str], checked: CheckedStep, path: StepPath, indent: int) -> None:
        """Appends one step, a blank line and a comment before it."""
        step = checked.step
        if lines and not lines[-1].endswith("{"):
            lines.append("")
        lines.append(f"{' ' * indent}// {commented(checked, self.names)}")
        if isinstance(step, s.Loop):
            if step.unroll:
                lines.append(f"{' ' * indent}#[unroll]")
            self.lines[path] = len(lines) + 1
            lines.append(f"{' ' * indent}for {self.names(step.var)} in 0..{self._count(step)} {{")
            for index, inner in enumerate(checked.body):
                self._add(lines, inner, (*path, index), indent + INDENT)
            lines.append(f"{' ' * indent}}}")
            return
        self.lines[path] = len(lines) + 1
        lines += self.steps.lines(checked, indent)

    def _count(self, loop: s.Loop) -> str:
        """The trip count, by the name of the axis it runs over where there is one."""
        if isinstance(loop.count, s.RuntimeCount):
            return identifier(loop.count.name)
        for step in _walk(loop.body):
            tiles = [op.tile for op in step.ops if isinstance(op, CommitView)] if isinstance(step, s.TensorUnit) else []
            axes = [step.axis] if isinstance(step, s.Tile) else [t.axis for t in tiles if t is not None]
            for axis in axes:
                if isinstance(axis, Symbol) and axis.size == loop.count:
                    return f"{axis.name}::SIZE"
        return str(loop.count)

    # pieces that `StepText` needs

    def bind(self, name: str, expr: Expr, indent: int, type_: TensorType | None = None) -> list[str]:
        """``let name: T = expr;``, annotated where the type is given."""
        annotation = None if type_ is None else self.annotation(type_)
        return binding(self.names(name), annotation, expr, indent, mutable=name in self.mutable and name not in self.views)

    def begin(self, step: s.TensorUnit) -> tuple[Call, ...]:
        """``.main.begin(x.view())`` on the device."""
        if isinstance(step.begin, BeginInterleaved):
            pair = step.begin
            views = (self.view(pair.lhs or ""), self.view(pair.rhs))
            return (Call(step.context, (), None), Call("begin_interleaved", (pair.axis, "_", "_", "_", "_", "_"), views))
        return (Call(step.context, (), None), Call("begin", (), (self.view(step.begin),)))

    def chain(self, step: s.TensorUnit) -> Chain:
        """The whole pass."""
        first = step.begin if isinstance(step.begin, str) else step.begin.rhs
        return Chain("device", (*self.begin(step), *self.writer.calls(step.ops, self.types[first].dtype)))


def _alias(name: str, text: str) -> list[str]:
    return bracket_list(f"pub type {name} = m!", split_list(text))


def _types(checked: CheckedKernel) -> dict[str, TensorType]:
    """The type of every name."""
    types = {bound.name: bound.type for bound in checked.inputs}
    for step in _checked_walk(checked.steps):
        if step.result is not None:
            types[step.result.name] = step.result.type
    return types


def _checked_walk(steps: tuple[CheckedStep, ...]) -> Iterator[CheckedStep]:
    for step in steps:
        yield step
        yield from _checked_walk(step.body)


def _walk(steps: tuple[s.KernelStep, ...]) -> Iterator[s.KernelStep]:
    for step in steps:
        yield step
        if isinstance(step, s.Loop):
            yield from _walk(step.body)


def _levels(types: dict[str, TensorType]) -> dict[str, list[Mapping]]:
    """The mappings of the spatial levels of all tensors."""
    found: dict[str, list[Mapping]] = {}
    for type_ in types.values():
        for level, mapping in type_.levels:
            found.setdefault(level, []).append(mapping)
    return found


def _written(kernel: Kernel) -> set[str]:
    """Names that a step writes through a mutable view."""
    written: set[str] = set()
    for step in kernel.walk():
        if isinstance(step, s.ToHbmView | s.DmaScatter | s.DmaScatterUnscaled):
            written.add(step.into)
        elif isinstance(step, s.Redistribute) and step.into is not None:
            written.add(step.into.tensor)
        elif isinstance(step, s.Tile | s.ChipTile | s.ClusterTile) and step.mutable:
            written.add(step.source)
        elif isinstance(step, s.TensorUnit):
            written |= {op.into for op in step.ops if isinstance(op, CommitView) and op.into is not None}
    return written


def _is_tail(kernel: Kernel, last: s.KernelStep | None, names: Identifiers) -> bool:
    """Whether the last step is the move that makes the only result, under the name that the reader gives it."""
    return isinstance(last, s.ToHbm) and kernel.outputs == (last.let,) and last.let == "out"

"""Lowering of tiled candidates: the body's steps on views of HBM, each inside of the loops that its data depend on (MAP-023, TUNE-008).

The body is lowered as any one-pass candidate (`exec.lowering.lower.pass_steps`), its axes shortened to one tile. A step then moves out of
every loop that changes nothing of what it reads: an operand that the innermost loop does not cut is loaded and staged once, before that
loop. In unrolled loops the scheduler overlaps the load of the next tile with the pass of this one (TUNE-011); a kept loop ends each
iteration with a barrier.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tcptune.exec.lowering.float_products import float_steps
from tcptune.exec.lowering.fused_epilogue import named
from tcptune.exec.lowering.layout import Layout, hbm_element, is_contraction, tile_symbol
from tcptune.exec.lowering.lower import INPUT_NAMES, assembled, kernel_inputs, pass_steps
from tcptune.exec.lowering.partial_sums import extra_axes
from tcptune.exec.lowering.tile_sums import PART, PARTS
from tcptune.exec.lowering.vector import vector_steps
from tcptune.ir.candidate import Candidate, Tiles
from tcptune.ir.kernels.kernel import Kernel
from tcptune.ir.types import DType
from tcptune.ir.workload import Workload

Steps = list[dict[str, Any]]

READ_HOLES, WRITE_HOLES = "#", "#{!}"
"""Cells outside of a tile: Top in a read view, Bottom in a mutable one (MAP-024)."""


def lower_tiled(candidate: Candidate, name: str = "kernel") -> Kernel:
    """The kernel of a tiled candidate.

    Raises:
        RuleViolation: the body's knobs do not fit its placement.
        InputError: the tiles do not cover an axis.
    """
    workload, tiles = candidate.workload, candidate.tiles
    nest = _Nest(workload, tiles)
    *body, store = _body_steps(candidate.body)
    for tensor, axes in operand_axes(workload).items():
        nest.view(tensor, axes, READ_HOLES)
    for step in body:
        nest.add(step)
    parts = {PART.upper(): candidate.body.parts} if candidate.body.parts > 1 else {}
    result = {"let": "out", "op": "new_hbm", "dtype": workload.out_dtype.name, "chip": "1", "element": nest.whole("out")}
    nest.levels[0].insert(0, result)
    nest.depth["out"] = 0
    view = nest.view("out", workload.output, WRITE_HOLES)
    nest.add({"op": "to_hbm_view", "from": store["from"], "into": view})
    return assembled(workload, name, nest.steps(), extra_axes(Layout(candidate.body)) | parts)


def _body_steps(body: Candidate) -> Steps:
    """The steps of the pass, or passes, that do one tile."""
    if is_contraction(body.workload):
        return pass_steps(body)
    return float_steps(body) if len(body.workload.inputs) > 1 else vector_steps(body)


def operand_axes(workload: Workload) -> dict[str, tuple[str, ...]]:
    """Axes of every HBM input of the kernel: the einsum's operands, then the epilogue's."""
    found = dict(zip(INPUT_NAMES, workload.inputs, strict=False))
    found |= {str(step.operand): step.axes for step in named(workload) if step.operand}
    return found


def cuttable(workload: Workload, axis: str) -> bool:
    """Whether tiles may cut an axis: not one whose rows the host pads in some tensor (MAP-023: it is no factor there).

    Nor a summed one before an epilogue, which follows a whole sum, or one that the Vector Engine sums.
    """
    if axis not in workload.output and (workload.epilogue or not is_contraction(workload)):
        return False
    tensors: list[tuple[tuple[str, ...], DType]] = [(axes, workload.dtype) for axes in operand_axes(workload).values()]
    tensors.append((workload.output, workload.out_dtype))
    return all(axes[-1] != axis or workload.row_elements(axes, element) == workload.size(axis) for axes, element in tensors if axes)


class _Nest:
    """Steps by the number of loops around them, while the kernel is put together."""

    def __init__(self, workload: Workload, tiles: Tiles) -> None:
        self.workload = workload
        self.tiles = tiles
        self.levels: list[Steps] = [[] for _ in range(len(tiles.loops) + 1)]
        self.behind: list[Steps] = [[] for _ in range(len(tiles.loops) + 1)]
        self.summed: set[str] = {PARTS}
        self.depth: dict[str, int] = dict.fromkeys(operand_axes(workload), 0)
        self.views: dict[str, str] = {}

    def view(self, tensor: str, axes: tuple[str, ...], holes: str) -> str:
        """The tile of an HBM tensor that the body's loops stand at; one view an axis that is cut, outer loops first."""
        cut = sorted((a for a in axes if a in self.tiles.axes), key=lambda a: self.tiles.depth((a,)))
        name, done = tensor, ""
        for axis in cut:
            done += axis
            source, name = name, self._unused(f"{tensor}_{done}")
            step = {
                "let": name,
                "op": "tile",
                "from": source,
                "axis": axis.upper(),
                "len": self.tiles.length(axis),
                "start": self.start(axis),
                "element": self._element(tensor, axes, done, holes),
                "mutable": holes == WRITE_HOLES,
            }
            self.depth[name] = max(self.depth[source], self.tiles.depth((axis,)))
            self.levels[self.depth[name]].append(step)
        self.views[tensor] = name
        return name

    def _unused(self, name: str) -> str:
        while name in self.depth:
            name += "_"
        return name

    def _element(self, tensor: str, axes: tuple[str, ...], cut: str, holes: str) -> str:
        """Element mapping of a view: the axes in `cut` shortened to a tile, their footprint kept (MAP-023)."""
        terms = self.whole(tensor).split(", ")
        for place, axis in enumerate(axes):
            size = self.workload.size(axis)
            if axis in cut and self.tiles.length(axis) < size:
                terms[place] = f"{tile_symbol(axis, self.tiles.length(axis), size)} {holes} {size}"
        return ", ".join(terms)

    def whole(self, tensor: str) -> str:
        """Element mapping of a whole HBM tensor."""
        if tensor == "out":
            return hbm_element(self.workload, self.workload.output, self.workload.out_dtype, zero=False)
        return kernel_inputs(self.workload)[tensor]["element"]

    def start(self, axis: str) -> str:
        """First coordinate of the current tile along an axis, in the variables of its loops."""
        return self._counted((axis,), self.tiles.pitch(axis, self.workload.size(axis)))

    def part(self) -> str:
        """Number of the current tile among those whose partial sums are added."""
        return self._counted(tuple(axis for axis in self.tiles.axes if axis not in self.workload.output), 1)

    def _counted(self, axes: tuple[str, ...], pitch: int) -> str:
        """The loops over some axes as one count, times `pitch`."""
        terms = []
        for n, loop in reversed(list(enumerate(self.tiles.loops))):
            if loop.axis in axes:
                terms.append(f"{pitch} * {self.variable(n)}")
                pitch *= loop.count
        return " + ".join(reversed(terms))

    def variable(self, number: int) -> str:
        """Name of the variable of a loop, counted from outside."""
        axis = self.tiles.loops[number].axis
        before = sum(1 for loop in self.tiles.loops[:number] if loop.axis == axis)
        return f"{axis}_tile" + (str(before + 1) if before else "")

    def add(self, step: dict[str, Any]) -> None:
        """Puts a step inside of the loops on which anything that it reads depends; behind the inner ones if it reads their sum."""
        step = dict(step)
        if step.get("from") in self.views:
            step["from"] = self.views[step["from"]]
        if step.get("let") == PARTS:
            self.depth[PARTS] = self.tiles.depth(self.workload.output)
            self.levels[self.depth[PARTS]].append(step)
            return
        read = set(_texts(step))
        depth = max((self.depth[name] for name in read if name in self.depth), default=0)
        if "let" in step:
            self.depth[step["let"]] = depth
        elif step.get("ops", [{}])[-1].get("into") == PARTS:
            *ops, commit = step["ops"]
            step["ops"] = [*ops, {**commit, "tile": {**commit["tile"], "start": self.part()}}]
            self.levels[-1].append(step)
            return
        if read & self.summed:
            self.summed |= {step["let"]} if "let" in step else set()
            self.behind[depth].append(step)
        else:
            self.levels[depth].append(step)

    def steps(self) -> Steps:
        """The nest: a loop follows the steps beside it, none of which reads what it makes, and goes before those that read its sum."""
        inner = self.levels[-1]
        for n in reversed(range(len(self.tiles.loops))):
            loop = self.tiles.loops[n]
            nested = {"for": self.variable(n), "count": loop.count, "unroll": loop.unroll, "body": inner}
            inner = [*self.levels[n], nested, *self.behind[n]]
        return inner


def _texts(value: Any) -> Iterable[str]:
    """Every text in a step, among them the names of all that it reads."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, inner in value.items():
            if key != "let":
                yield from _texts(inner)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from _texts(inner)

"""The digits behind a candidate: what every slice holds of each tensor, and the route of each operand to its slices."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from tcptune.errors import RuleViolation
from tcptune.exec.lowering.routes import Ring, Route, rings_of, route_of
from tcptune.ir.candidate import FILLER, Candidate
from tcptune.ir.placement import AxisText, Digit, expression, merged, positions, without
from tcptune.ir.types import DType, dtype
from tcptune.ir.workload import BATCH, K, Workload
from tcptune.model.hardware import RNGD, Hardware

ACCUMULATORS = {True: "f32", False: "i32"}


def is_contraction(workload: Workload) -> bool:
    """Whether the Contraction Engine does the work: two inputs, of a type that it multiplies (f32 has no multiplier there, CE-014)."""
    return len(workload.inputs) == 2 and workload.dtype.name != "f32"


def hbm_element(workload: Workload, axes: tuple[str, ...], element: DType, *, zero: bool) -> str:
    """Row-major HBM mapping of a tensor over `axes`; the innermost axis padded as the host does it (`Workload.row_elements`)."""
    if not axes:
        return "1"
    terms = [a.upper() for a in axes]
    stored = workload.row_elements(axes, element)
    if stored > workload.size(axes[-1]):
        terms[-1] += f" #{{0}} {stored}" if zero else f" # {stored}"
    return ", ".join(terms)


def summed_row(workload: Workload, index: int, axis: str) -> int:
    """Stored elements of the rows of operand `index` along a summed axis; 0 where its rows run along another one.

    Where that is more than the positions that a placement gives the axis, only this operand is padded by the host: it lies half-padded.
    """
    axes = workload.inputs[index]
    if axis in workload.output or axes[-1] != axis:
        return 0
    return workload.row_elements(axes, workload.dtype)


def tile_symbol(axis: str, length: int, size: int) -> str:
    """`length` positions of an axis in a mapping; a single one is no axis any more (MAP-026)."""
    if length == size:
        return axis.upper()
    return "1" if length == 1 else f"{axis.upper()} = {length}"


def hbm_input(workload: Workload, axes: tuple[str, ...], element: DType) -> dict[str, str]:
    """The declaration of a row-major kernel input over `axes`."""
    return {"type": "Hbm", "dtype": element.name, "chip": "1", "element": hbm_element(workload, axes, element, zero=True)}


def store_step(workload: Workload, source: str) -> dict[str, str]:
    """The store of the result from the DM tensor `source`."""
    element = hbm_element(workload, workload.output, workload.out_dtype, zero=False)
    return {"let": "out", "op": "to_hbm", "from": source, "chip": "1", "element": element}


@dataclass(frozen=True)
class Layout:
    """Digits of a candidate. Digit lists are outermost first; *own* axes of an operand are those it has."""

    candidate: Candidate
    hw: Hardware = RNGD

    @cached_property
    def roles(self) -> dict[str, str]:
        return self.candidate.workload.roles()

    @property
    def stationary(self) -> int:
        return self.candidate.knobs.stationary

    @property
    def stream(self) -> int:
        return 1 - self.candidate.knobs.stationary

    @property
    def dtype(self) -> DType:
        return self.candidate.workload.dtype

    @property
    def accumulator(self) -> DType:
        return dtype(ACCUMULATORS[self.dtype.is_float])

    def operand(self, index: int) -> tuple[str, ...]:
        return self.candidate.workload.inputs[index]

    @property
    def output(self) -> tuple[str, ...]:
        return self.candidate.workload.output

    @cached_property
    def _in_slice(self) -> dict[str, int]:
        return {placed.axis: placed.in_slice for placed in self.candidate.placement.axes}

    def in_slice(self, axis: str) -> int:
        """Positions of an axis that one slice holds."""
        return self._in_slice[axis]

    def flit_elements(self, element: DType) -> int:
        return element.elements_in(self.hw.flit_bytes)

    def word_elements(self, element: DType) -> int:
        """Elements in the 8 bytes that streams and DM writes are aligned to."""
        return element.elements_in(self.hw.stream_alignment_bytes)

    def innermost(self, index: int) -> str:
        """The axis that runs fastest in an operand when it is fetched."""
        return self.candidate.knobs.relayout[index] or self.operand(index)[-1]

    @cached_property
    def packet(self) -> Digit:
        """The packet of the stream; extent 1 if its innermost axis does not fit the stationary operand's."""
        axis = self.innermost(self.stream)
        extent = self.candidate.placement.of(axis).packet
        if self.roles[axis] in (K, BATCH) and self.innermost(self.stationary) != axis:
            extent = 1
        return Digit(axis, 1, extent)

    @cached_property
    def sums_packet(self) -> bool:
        """Whether the packet is a summed axis (else it is an output axis)."""
        return self.roles[self.packet.axis] == K

    @cached_property
    def staging_packet(self) -> Digit:
        axis = self.innermost(self.stationary)
        if self.is_half_padded(self.stationary, axis):
            return Digit(axis, 1, self.flit_elements(self.dtype))
        return Digit(axis, 1, self.candidate.placement.of(axis).packet)

    @cached_property
    def lane(self) -> Digit | None:
        for a in self.candidate.placement.axes:
            if a.lane > 1:
                return Digit(a.axis, a.packet, a.lane)
        return None

    @cached_property
    def slices(self) -> tuple[Digit, ...]:
        """The Slice level during the contraction, outermost first, the idle part as filler."""
        placement = self.candidate.placement
        filler = self.hw.slices_per_cluster // placement.live_slices
        digits = []
        for name in self.candidate.knobs.slice_order:
            if name == FILLER:
                digits.append(Digit("", 1, filler))
            else:
                digits.append(Digit(name, self.in_slice(name), placement.of(name).slice))
        digits = [d for d in digits if d.extent > 1]
        if positions(digits) != self.hw.slices_per_cluster:
            raise RuleViolation(
                "HW-007", "the Slice level must have 256 positions", expected=self.hw.slices_per_cluster, got=positions(digits)
            )
        return tuple(digits)

    @cached_property
    def reduced(self) -> int:
        """Slices whose partial sums the Inter-Slice Reducer adds: those over which summed axes lie, innermost (XSR-001)."""
        if self.candidate.knobs.slice_sum != "reducer":
            return 1
        ratio = positions(d for d in self.slices if d.axis and self.roles[d.axis] == K)
        if any(d.axis and self.roles[d.axis] == K for d in self.slices[: -self._summed_digits() or None]):
            raise RuleViolation("XSR-001", "summed axes must be innermost in Slice", got=expression(self.slices, self.texts(None)))
        return ratio

    def _summed_digits(self) -> int:
        return sum(1 for d in self.slices if d.axis and self.roles[d.axis] == K)

    @cached_property
    def result_slices(self) -> tuple[Digit, ...]:
        """The Slice level of the result: position 0 of every reduced group holds it, the rest is idle (XSR-002)."""
        if self.reduced == 1:
            return self.slices
        return (*self.slices[: -self._summed_digits()], Digit("", 1, self.reduced))

    @cached_property
    def clusters(self) -> tuple[Digit, ...]:
        digits = [Digit(a.axis, a.slice * a.in_slice, a.cluster) for a in self.candidate.placement.axes if a.cluster > 1]
        return tuple(digits) or (Digit("", 1, self.hw.clusters_per_chip),)

    def block(self, axes: tuple[str, ...], innermost: str = "") -> list[Digit]:
        """What a slice holds of a tensor over `axes`, row-major, with `innermost` last."""
        order = [a for a in axes if a != innermost] + ([innermost] if innermost in axes else [])
        return [Digit(a, 1, self.in_slice(a)) for a in order]

    def is_half_padded(self, index: int, axis: str) -> bool:
        """Whether the host pads rows of a summed axis in this operand, but not in the other: then its placement covers live ones only."""
        return summed_row(self.candidate.workload, index, axis) > self.candidate.placement.of(axis).padded

    def held(self, index: int, innermost: str = "") -> list[Digit]:
        """What a slice holds of an operand in data memory: its block, rows that only this operand pads in full."""
        workload = self.candidate.workload
        rows = workload.row_elements(self.operand(index), self.dtype)
        block = self.block(self.operand(index), innermost)
        return [Digit(d.axis, 1, rows) if self.is_half_padded(index, d.axis) else d for d in block]

    def symbol(self, axis: str) -> str:
        """An axis in mappings: its identifier; where the candidate does one tile of a workload, cut to the tile (MAP-023, MAP-026)."""
        whole = self.candidate.whole
        length = self.candidate.workload.size(axis)
        return axis.upper() if whole is None else tile_symbol(axis, length, whole.size(axis))

    def texts(self, index: int | None, *, stored: bool = False) -> dict[str, AxisText]:
        """How mappings of operand `index` (None: of the result) write each axis.

        A summed axis keeps the host's zero padding where it is the innermost of that operand (in a stream only where both operands have it,
        unless `stored`, as data memory has it); the others get top padding.
        """
        workload, placement = self.candidate.workload, self.candidate.placement
        out = {}
        for axis, size in workload.sizes:
            name, padded = self.symbol(axis), placement.of(axis).padded
            if self.roles[axis] == K:
                row = size
                streamed = index == self.stream and not stored and self.is_half_padded(self.stream, axis)
                if index is not None and self.operand(index)[-1] == axis and not streamed:
                    row = workload.row_elements(self.operand(index), self.dtype)
                out[axis] = AxisText(f"{name} #{{0}} {row}" if row > size else name, row)
            else:
                out[axis] = AxisText(f"{name} # {padded}" if padded > size else name, padded)
        return out

    @cached_property
    def stationary_outputs(self) -> list[Digit]:
        """Output positions that only the stationary operand has and that are neither in lanes nor over slices: the time broadcast."""
        digits: list[Digit] = []
        for axis in self.output:
            if axis in self.operand(self.stationary) and axis not in self.operand(self.stream):
                block = [Digit(axis, 1, self.in_slice(axis))]
                digits += without(block, self.lane) if self.lane else block
        return merged(digits)

    @cached_property
    def _routes(self) -> dict[int, Route]:
        return {}

    def route(self, index: int) -> Route:
        """How operand `index` gets to its slices.

        Raises:
            RuleViolation: the knobs ask for a ring that there is not.
        """
        if index not in self._routes:
            self._routes[index] = route_of(self, index)
        return self._routes[index]

    def rings(self, index: int) -> tuple[Ring, ...]:
        """Every ring over which operand `index` can be spread; axes of a workload that is one tile are not cut."""
        sizes = self.candidate.workload.sizes if self.candidate.whole is None else ()
        return rings_of(self.slices, self.operand(index), sizes)


def remove(digits: list[Digit], taken: tuple[Digit, ...] | list[Digit]) -> list[Digit]:
    """`digits` without the positions of all of `taken`."""
    for digit in taken:
        digits = without(digits, digit)
    return digits

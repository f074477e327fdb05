"""Candidates: a placement and the knobs it leaves open; enough to lower one kernel."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping as Dict
from dataclasses import dataclass
from typing import Any

from tcptune.ir.placement import Placement
from tcptune.ir.workload import Workload

FILLER = "_"
"""Name of the idle slices in `Knobs.slice_order`."""

REPLICATED = 1


@dataclass(frozen=True, slots=True)
class Knobs:
    """What a placement leaves open. The defaults are the manual's choices.

    Attributes:
        stationary: input (0 or 1) that waits in the register file; the other is streamed.
        slice_order: axes of the Slice level, outermost first, with the idle part as ``_``.
        rings: for each input, the slices over which its block is spread and then broadcast by the Switch Engine (1: the load replicates).
        spread: for each input, ``outer`` or ``inner``: which end of the row-major order is spread over the ring first.
        relayout: for each input, the axis that a copy pass makes innermost before use, or empty.
        refetch: the stream is fetched again for every output position of the stationary operand (else the Stream Adapter repeats it).
        k_inner: summed axes run inside of the output axes in Time (else outside).
        lane_mode: ``Interleaved`` or ``Sequential``.
        transpose: the Transpose Engine makes the innermost output axis the packet.
        cast: ``engine`` or ``commit`` (where the result needs one).
        staging: context that fills the register file, ``sub`` or ``main``.
        gather: ``none``, ``exchange`` (swap slice and time digits) or ``collect`` (all to one slice of each ring), before the store.
        gather_ring: positions of the innermost output axis that one slice receives from others.
        slice_sum: how partial sums of summed axes over slices are added: ``reducer`` (Inter-Slice Reducer), ``gather`` (every slice of a
            ring receives all of them and adds), ``exchange`` (each slice of the ring adds its share of the outputs), ``transfer`` (one DMA
            brings them into one slice).
        cluster_sum: where the partial sums of two clusters are added: ``one`` (cluster 0 receives both) or ``scatter`` (half in either).
    """

    stationary: int = 1
    slice_order: tuple[str, ...] = ()
    rings: tuple[int, int] = (REPLICATED, REPLICATED)
    spread: tuple[str, str] = ("outer", "outer")
    relayout: tuple[str, str] = ("", "")
    refetch: bool = False
    k_inner: bool = True
    lane_mode: str = "Interleaved"
    transpose: bool = False
    cast: str = "engine"
    staging: str = "sub"
    gather: str = "none"
    gather_ring: int = 1
    slice_sum: str = "reducer"
    cluster_sum: str = "one"

    def to_json(self) -> dict[str, Any]:
        return {f.name: list(v) if isinstance(v := getattr(self, f.name), tuple) else v for f in dataclasses.fields(self)}

    @classmethod
    def from_json(cls, raw: Dict[str, Any]) -> Knobs:
        values: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in raw.items()}
        return cls(**values)


@dataclass(frozen=True)
class Candidate:
    """One point of the search space; `exec.lowering.lower` turns it into a kernel."""

    workload: Workload
    placement: Placement
    knobs: Knobs

    def to_json(self) -> dict[str, Any]:
        return {"placement": self.placement.to_json(), "knobs": self.knobs.to_json()}

    @classmethod
    def from_json(cls, workload: Workload, raw: Dict[str, Any]) -> Candidate:
        return cls(workload, Placement.from_json(raw["placement"]), Knobs.from_json(raw["knobs"]))

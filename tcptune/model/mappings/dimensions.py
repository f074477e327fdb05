"""Where data can live and how it gets there: dimensions, spatial units, routes and moves (MAP-030, MAP-031, MAP-037, MOVE-001, MOVE-005).

The rule texts and `tcptune explain` print these tables; counts come from the hardware.
"""

from __future__ import annotations

from dataclasses import dataclass

from tcptune.ir.mappings.mapping import Mapping, broadcast
from tcptune.model.hardware import RNGD, Hardware


@dataclass(frozen=True, slots=True)
class Dimension:
    """One dimension of tensors and streams (MAP-030).

    Attributes:
        kind: ``space`` or ``time``.
        defined_in: what has it.
        reduced_by: the engines that sum over it.
    """

    name: str
    kind: str
    defined_in: tuple[str, ...]
    reduced_by: str


DIMENSIONS = (
    Dimension("Chip", "space", ("HBM", "DM", "Stream"), "DMA + Vector"),
    Dimension("Cluster", "space", ("DM", "Stream"), "DMA + Vector"),
    Dimension("Slice", "space", ("DM", "Stream"), "Vector"),
    Dimension("Lane", "space", ("TRF",), "Contraction"),
    Dimension("Time", "time", ("Stream",), "Contraction"),
    Dimension("Packet", "space", ("Stream",), "Contraction"),
)


@dataclass(frozen=True, slots=True)
class SpatialUnit:
    """One level of units (MAP-031).

    Attributes:
        count: units per unit above; None: set by the system.
        per: the unit above.
        exact: whether a mapping of the level has exactly that size, or at most.
        padding: the mapping that leaves all but one unit idle, or one axis on part of them.
    """

    name: str
    count: int | None
    per: str
    exact: bool
    padding: str | None

    def idle(self) -> Mapping:
        """All units but the first idle."""
        return broadcast(1).pad(self.count or 1)


def spatial_units(hw: Hardware = RNGD) -> tuple[SpatialUnit, ...]:
    """Chip, Cluster, Slice and Lane of a device."""
    clusters, slices = hw.clusters_per_chip, hw.slices_per_cluster
    return (
        SpatialUnit("Chip", None, "system", True, "1 # NUM_CHIPS"),
        SpatialUnit("Cluster", clusters, "Chip", True, f"1 # {clusters}"),
        SpatialUnit("Slice", slices, "Cluster", True, f"X / N # {slices}"),
        SpatialUnit("Lane", hw.lanes_per_slice, "Slice", False, None),
    )


@dataclass(frozen=True, slots=True)
class AxisRoute:
    """One way to move an axis between Time and space (MAP-037)."""

    name: str
    moves: str
    available: str
    cost: str


AXIS_ROUTES = (
    AxisRoute(
        "Switch Engine",
        "one axis between Slice and Time, either direction",
        "a configuration expresses the Slice placement",
        "ring_size * Time::SIZE * flits_per_packet cycles",
    ),
    AxisRoute("DMA", "one axis to Chip, Cluster or Slice by writing the wanted placement", "always", "transfer of the whole tensor"),
    AxisRoute(
        "Inter-Slice Reducer",
        "an axis from Time into the Slice slot vacated by the reduced axis",
        "the stream reduces over a Slice axis anyway",
        "none beyond that reduction",
    ),
    AxisRoute(
        "axis lifting at fetch",
        "an axis from Time to Chip, Cluster or Slice",
        "the chosen dimension contains a broadcast",
        "on top of the original read: for Slice a DMA, a context-local add and an SFR store",
    ),
)


@dataclass(frozen=True, slots=True)
class Move:
    """One way to move a tensor (MOVE-001).

    Attributes:
        operation: the calls that do it.
        contexts: what they run in.
        is_async: whether the call must be awaited (MOVE-004); None where a stream, not a transfer, is meant.
    """

    source: str
    destination: str
    operation: str
    contexts: str
    is_async: bool | None


MOVES = (
    Move("HostTensor", "HbmTensor", "to_hbm", "pdma", True),
    Move("HbmTensor", "HostTensor", "to_host", "pdma", True),
    Move("HbmTensor", "DmTensor", "to_dm", "tdma", False),
    Move("DmTensor", "HbmTensor", "to_hbm", "tdma", False),
    Move("HbmTensor", "HbmTensor", "to_hbm", "the DMA context the call needs", False),
    Move("DmTensor", "DmTensor", "to_dm or fetch/commit round trip", "tdma or Tensor Unit", False),
    Move("DmTensorView", "stream", "begin then fetch", "main or sub", None),
    Move("stream", "DmTensor", "commit, or commit_view into a mutable view", "main or sub", None),
)

DMA_TIERS = ("HBM", "DM")
"""Memories that DMA moves between in any combination; SPM has no public tensor type (MOVE-005)."""


@dataclass(frozen=True, slots=True)
class SequencerUser:
    """An engine with its sequencers (SEQ-020)."""

    engine: str
    sequencers: int
    memory: str


SEQUENCER_USERS = (SequencerUser("Fetch", 1, "DM"), SequencerUser("Commit", 1, "DM"), SequencerUser("DMA", 2, "DM and HBM"))

STREAM_POSITIONS = ("Begin", "Fetch", "Switch", "Collect", "Contraction", "Reduce", "Cast", "Transpose")
"""Typed stages of a stream outside the Vector Engine (MAP-036); Commit ends in a DM tensor."""

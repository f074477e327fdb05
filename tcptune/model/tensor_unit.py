"""The Tensor Unit at a glance: its engines in pipeline order, what each demands, its contexts, and which route serves which need.

`model.pipeline` enforces the order; rule texts and the documentation print these tables (TU-001, TU-004, TU-008, TU-010).
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class EngineSummary:
    """One engine of the pipeline.

    Attributes:
        name: as the manual calls it.
        operations: the chain operations it runs, in order; the Vector Engine's inner operations are not listed.
        demands: its key constraint (TU-004).
        optional: whether a stream may bypass it on the way from DM to DM.
    """

    name: str
    operations: tuple[str, ...]
    demands: str
    optional: bool = True


ENGINES = (
    EngineSummary(
        "Fetch",
        ("begin_interleaved", "fetch", "fetch_chip_lift", "fetch_cluster_lift", "fetch_slice_lift"),
        "packets are 8-byte aligned, Slice stays unless axis lifting replaces a broadcast by an axis of Time",
        optional=False,
    ),
    EngineSummary("Fetch Adapter", ("fetch_table_lookup", "fetch_cast", "fetch_zero_point_sub"), "optional, the identity when skipped"),
    EngineSummary("Switching", ("switch",), "moves data over the ring network, Slice may change"),
    EngineSummary("Collect", ("collect", "to_trf", "to_vrf"), "emits exactly one 32-byte flit", optional=False),
    EngineSummary(
        "Contraction",
        ("contract_outer", "contract_packet", "contract_time", "contract_lane"),
        "one operand is resident in the TRF, the other streams",
    ),
    EngineSummary("Vector", ("vector_init", "vector_final"), "takes i32 or f32 only"),
    EngineSummary("Cast", ("cast",), "emits exactly one flit"),
    EngineSummary("Transpose", ("transpose",), "reorders within one flit only"),
    EngineSummary(
        "Commit Adapter", ("commit_trim", "commit_cast", "commit_cast_relu"), "optional stages chained before commit", optional=False
    ),
    EngineSummary("Commit", ("commit", "commit_view"), "writes are flit-aligned", optional=False),
)
"""The ten engines in pipeline order (TU-001)."""


def engine_name(operation: str) -> str:
    """Name of the engine that runs an operation of a chain."""
    for engine in ENGINES:
        if operation in engine.operations:
            return engine.name
    return "Vector"


@dataclass(frozen=True, slots=True)
class ContextSummary:
    """One execution context (TU-008).

    Attributes:
        name: as operations name it.
        handle: how the vendor's interface calls it.
        drives: what its operations use.
    """

    name: str
    handle: str
    drives: str


CONTEXTS = (
    ContextSummary("main", "device.main", "the Tensor Unit pipeline, every engine"),
    ContextSummary("sub", "device.sub", "a part of the same pipeline, mostly register-file preloads, no contraction, no table lookup"),
    ContextSummary("dma", "device.tdma", "the DMA Engine only: movement between HBM, DM and other tiers"),
)


@dataclass(frozen=True, slots=True)
class Route:
    """Which engines serve a need (TU-010)."""

    need: str
    engines: tuple[str, ...]


ROUTES = (
    Route("elementwise operation or reduction", ("Vector Engine",)),
    Route("contraction", ("TRF", "Contraction Engine")),
    Route("redistribution or reduction across slices", ("Switch Engine", "Inter-Slice Reducer")),
    Route("layout or precision change", ("Fetch Adapter", "Commit Adapter", "Cast Engine", "Transpose Engine")),
)

"""The manual's table of memory rules and what breaking them costs (HBM-015)."""

from __future__ import annotations

from dataclasses import dataclass

from tcptune.model.hardware import RNGD
from tcptune.model.memory import dm


@dataclass(frozen=True, slots=True)
class Penalty:
    """One rule of the table."""

    memory: str
    issue: str
    rule: str
    penalty: str


_SINGLE_DMN_PERCENT = 100 * dm.port_cycles_per_request() // (2 * RNGD.dmns_per_engine)

MEMORY_PENALTIES = (
    Penalty(
        "DM",
        "bank starvation",
        f"fewer than {dm.max_consecutive_accesses() + 1} consecutive accesses to one bank",
        "NoC timeout, hardware reset",
    ),
    Penalty(
        "DM",
        "DMN interleaving",
        f"alternate between {RNGD.dmns_per_engine} DMNs (per cluster as printed)",
        f"{_SINGLE_DMN_PERCENT} % bandwidth",
    ),
    Penalty("DM", "slice interleaving", f"spread over the {RNGD.slices_per_dmn} slices of a DMN", "command queue contention"),
    Penalty(
        "HBM",
        "alignment",
        f"{RNGD.request_bytes}-byte aligned access",
        f"unaligned read {RNGD.unaligned_hbm_read_factor}x, unaligned write about {RNGD.partial_hbm_write_factor}x (RMW)",
    ),
    Penalty(
        "HBM",
        "bank conflict",
        "avoid row switches inside a bank",
        f"{RNGD.hbm_row_switch_slowdown[0]} to {RNGD.hbm_row_switch_slowdown[1]}x",
    ),
    Penalty("HBM", "channel interleaving", f"spread over {RNGD.hbm_channels} channels", "less parallelism"),
)
"""What to look at first in a slow transfer, in the manual's order."""

"""DMA Engine: which memories it connects, which levels a destination names, and which layouts it accepts (DMA-001 to DMA-033, PCIE-001)."""

from __future__ import annotations

from tcptune.errors import RuleViolation

CONTEXTS: dict[tuple[str, str], tuple[str, ...]] = {
    ("Hbm", "Hbm"): ("tdma", "pdma"),
    ("Hbm", "Dm"): ("tdma",),
    ("Dm", "Hbm"): ("tdma",),
    ("Dm", "Dm"): ("tdma",),
    ("Host", "Hbm"): ("pdma",),
    ("Hbm", "Host"): ("pdma",),
}
"""DMA-001, DMA-003, PCIE-001: contexts that move between two memories."""

KEPT_LEVELS: dict[tuple[str, str], tuple[str, ...]] = {("Hbm", "Dm"): ("chip",)}
"""DMA-004: levels that a destination takes over from its source; all its other levels are named by the call."""


READ_ALIGNMENT = 1
"""DMA-019: reads of any memory may start at any byte; between HBM and DM `Hardware.dma_alignment_bytes` applies (DMA-020)."""

HBM_WRITE_ALIGNMENT = 1
"""DMA-019: so may writes to HBM."""


def check_context(source_tier: str, dest_tier: str, context: str) -> None:
    """Raises:
    RuleViolation: DMA-001 where no engine connects the memories, DMA-003 where the context does not drive that engine.
    """
    contexts = CONTEXTS.get((source_tier, dest_tier))
    if contexts is None:
        known = ", ".join(f"{a} to {b}" for a, b in CONTEXTS)
        raise RuleViolation("DMA-001", f"no DMA moves {source_tier} to {dest_tier}", got=f"{source_tier} to {dest_tier}", expected=known)
    if context not in contexts:
        raise RuleViolation(
            "DMA-003",
            f"{source_tier} to {dest_tier} is driven by {' or '.join(contexts)}",
            got=context,
            expected=" or ".join(contexts),
            nearest=contexts[0],
            also=("PCIE-001", "PCIE-002"),
        )

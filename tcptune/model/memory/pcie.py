"""PCIe DMA: what host transfers cost (PCIE-004)."""

from __future__ import annotations

from tcptune.model.hardware import RNGD, Hardware


def transfer_cycles(length_bytes: int, hw: Hardware = RNGD) -> int:
    """Data cycles of a host transfer of `length_bytes`; the manual gives no startup figure."""
    return -(-length_bytes // hw.pcie_bytes_per_cycle)


def slowdown(hw: Hardware = RNGD) -> float:
    """How many times slower than one tensor DMA engine PCIe is."""
    return hw.engine_bytes_per_cycle / hw.pcie_bytes_per_cycle

"""Indirect DMA: what index tensors mean and where they live (GATHER-001 to GATHER-007)."""

from __future__ import annotations

from dataclasses import dataclass

from tcptune.ir.types import DType


@dataclass(frozen=True, slots=True)
class IndirectCall:
    """One indirect transfer of the device API (GATHER-001, GATHER-007)."""

    call: str
    direction: str
    index_tier: str
    index_dtype: str
    index_means: str
    result: str


_ROWS_IN, _ROWS_OUT = "HBM rows -> DM", "DM -> HBM rows"

INDIRECT_CALLS = (
    IndirectCall(
        "DmTensor::dma_scatter<Key>(index, output)", _ROWS_OUT, "HBM", "i32", "byte offset along the scatter axis", "in place in output"
    ),
    IndirectCall("HbmTensor::dma_gather_scaled(index)", _ROWS_IN, "HBM", "i32", "byte offset along the gather axis", "new DmTensor"),
    IndirectCall("HbmTensor::dma_gather_unscaled(index)", _ROWS_IN, "DM", "i32", "row position", "new DmTensor"),
    IndirectCall("DmTensor::dma_scatter_unscaled", _ROWS_OUT, "DM", "i32", "row position", "not implemented"),
)
"""The calls in the manual's order; nothing implements the last one."""


def row_bytes(row_elements: int, dtype: DType) -> int:
    """Bytes of one table row, the unit of a scaled index (GATHER-002)."""
    return dtype.bytes_of(row_elements)


def scaled_index(row: int, row_elements: int, dtype: DType) -> int:
    """Index value that addresses `row` in a scaled gather or a scatter."""
    return row * row_bytes(row_elements, dtype)

"""Data Memory: banks of a slice, DMNs and their pairs, and what keeps a bank from starving the DMA (DM-001 to DM-012)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tcptune.errors import RuleViolation
from tcptune.model.hardware import RNGD, Hardware

BANK_PRIORITY = ("main fetch", "main commit", "sub fetch", "sub commit", "DMA")
"""DM-008: who gets a bank first."""


@dataclass(frozen=True, slots=True)
class SliceAddress:
    """Place of a byte inside a slice (DM-004)."""

    byte: int
    bank: int
    row: int


def _bits(count: int) -> int:
    return count.bit_length() - 1


def address_fields(hw: Hardware = RNGD) -> tuple[tuple[str, int, int], ...]:
    """(field, lowest bit, highest bit) of a slice address, lowest first (DM-004)."""
    fields = []
    low = 0
    for name, count in (("byte", hw.dm_word_bytes), ("bank", hw.dm_banks_per_slice), ("row", hw.dm_rows_per_bank)):
        fields.append((name, low, low + _bits(count) - 1))
        low += _bits(count)
    return tuple(fields)


def decode(offset: int, hw: Hardware = RNGD) -> SliceAddress:
    """Byte, bank and row of an offset in a slice.

    Raises:
        RuleViolation: DM-003 outside the slice.
    """
    if not 0 <= offset < hw.dm_bytes_per_slice:
        raise RuleViolation("DM-003", f"offset {offset} is outside the slice", expected=f"0 to {hw.dm_bytes_per_slice - 1}", got=offset)
    word, byte = divmod(offset, hw.dm_word_bytes)
    row, bank = divmod(word, hw.dm_banks_per_slice)
    return SliceAddress(byte, bank, row)


def bank_of(address: Any, hw: Hardware = RNGD) -> Any:
    """Bank of a byte address of a slice, or of an array of them (DM-004)."""
    return address // hw.dm_word_bytes % hw.dm_banks_per_slice


@dataclass(frozen=True, slots=True)
class BankSpan:
    """Banks that a contiguous access touches, and the rows it touches in the busiest of them (DM-004, DM-012)."""

    banks: tuple[int, ...]
    rows_per_bank: int
    aligned: bool


def bank_span(offset: int, length_bytes: int, hw: Hardware = RNGD) -> BankSpan:
    """Banks touched by `length_bytes` at `offset`; `aligned` is whether both are whole bank words.

    Raises:
        RuleViolation: DM-003 where the access leaves the slice.
    """
    for end in (offset, offset + length_bytes - 1):
        decode(end, hw)
    first, last = offset // hw.dm_word_bytes, (offset + length_bytes - 1) // hw.dm_word_bytes
    words = last - first + 1
    banks = tuple(sorted({word % hw.dm_banks_per_slice for word in range(first, min(last + 1, first + hw.dm_banks_per_slice))}))
    aligned = offset % hw.dm_word_bytes == 0 and length_bytes % hw.dm_word_bytes == 0
    return BankSpan(banks, -(-words // hw.dm_banks_per_slice), aligned)


@dataclass(frozen=True, slots=True)
class SlicePlace:
    """Where a slice sits in its cluster (DM-005, DMA-009)."""

    dmn: int
    engine: int
    slice_in_dmn: int


def slice_place(slice_index: int, hw: Hardware = RNGD) -> SlicePlace:
    """DMN, DMA engine (DMN pair) and position in the DMN of a slice of a cluster.

    Raises:
        RuleViolation: DM-001 if a cluster has no such slice.
    """
    if not 0 <= slice_index < hw.slices_per_cluster:
        raise RuleViolation(
            "DM-001",
            f"a cluster has {hw.slices_per_cluster} slices",
            expected=f"0 to {hw.slices_per_cluster - 1}",
            got=slice_index,
            also=("DM-005", "HW-007"),
        )
    dmn, inside = divmod(slice_index, hw.slices_per_dmn)
    return SlicePlace(dmn, slice_index // hw.slices_per_engine, inside)


def port_cycles_per_request(hw: Hardware = RNGD) -> int:
    """Cycles a DMN port is busy with one 256-byte request (DM-005)."""
    return hw.request_bytes // hw.dmn_bytes_per_cycle


def dmn_cycles(requests: int, interleaved: bool, hw: Hardware = RNGD) -> int:
    """Cycles for 256-byte requests that alternate between the DMNs of a pair, or stay on one (DM-006)."""
    busy = port_cycles_per_request(hw)
    if not requests:
        return 0
    return requests - 1 + busy if interleaved else requests * busy


def dmn_schedule(cycle: int, requests: int, hw: Hardware = RNGD) -> tuple[tuple[int, int] | None, ...]:
    """What each DMN of a pair does in `cycle` when `requests` alternate: (request, part from 1) or None when idle (DM-006).

    Request r starts in cycle r on DMN ``r % 2`` and keeps it for two cycles.
    """
    work: list[tuple[int, int] | None] = []
    for dmn in range(hw.dmns_per_engine):
        found = None
        for part in range(1, port_cycles_per_request(hw) + 1):
            request = cycle - part + 1
            if 0 <= request < requests and request % hw.dmns_per_engine == dmn:
                found = (request, part)
        work.append(found)
    return tuple(work)


def starvation_cycles(consecutive_accesses: int, hw: Hardware = RNGD) -> int:
    """Longest wait of a DMA request when one bank is held for so many accesses in a row (DM-011)."""
    return -(-hw.request_bytes * consecutive_accesses * hw.slices_per_dmn // hw.dmn_bytes_per_cycle)


def max_consecutive_accesses(hw: Hardware = RNGD) -> int:
    """Most accesses in a row to one bank that DMA survives (DM-010): 63."""
    return (hw.noc_timeout_cycles * hw.dmn_bytes_per_cycle - 1) // (hw.request_bytes * hw.slices_per_dmn)


def check_starvation(consecutive_accesses: int, hw: Hardware = RNGD) -> int:
    """Longest wait of a DMA request, in cycles.

    Raises:
        RuleViolation: DM-011 where it reaches the NoC timeout.
    """
    wait = starvation_cycles(consecutive_accesses, hw)
    if wait >= hw.noc_timeout_cycles:
        raise RuleViolation(
            "DM-011",
            f"{consecutive_accesses} accesses in a row to one bank keep a DMA request waiting {wait} cycles, "
            f"the NoC gives up at {hw.noc_timeout_cycles}",
            got=consecutive_accesses,
            expected=f"at most {max_consecutive_accesses(hw)}",
            nearest=max_consecutive_accesses(hw),
            also=("DM-010", "DMA-031", "SCHED-005"),
        )
    return wait


def check_capacity(element_bytes: int, hw: Hardware = RNGD, name: str = "the tensor") -> None:
    """Refuses a DM tensor of more bytes a slice than a slice has.

    Raises:
        RuleViolation: DM-003.
    """
    if element_bytes > hw.dm_bytes_per_slice:
        raise RuleViolation(
            "DM-003",
            f"{name} needs {element_bytes:,} B a slice",
            expected=f"at most {hw.dm_bytes_per_slice:,} B",
            got=f"{element_bytes:,} B",
            also=("HW-003", "MAP-033"),
        )

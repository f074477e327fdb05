"""Simple models of overlap: double buffering, register stores and bank contention (SCHED-010, TUNE-010 to TUNE-018)."""

from __future__ import annotations

from tcptune.model.hardware import RNGD, Hardware


def double_buffered_cycles(groups: int, store_cycles: int, contract_cycles: int, groups_per_unit: int) -> int:
    """Cycles to stage and contract `groups` weight groups when one scheduling unit shows `groups_per_unit` of them (TUNE-017).

    Inside a unit a store overlaps the contraction before it; units follow one another.
    """
    units, rest = divmod(groups, groups_per_unit)
    overlapped = max(store_cycles, contract_cycles)

    def unit(size: int) -> int:
        return store_cycles + (size - 1) * overlapped + contract_cycles

    return units * unit(groups_per_unit) + (unit(rest) if rest else 0)


def register_store_cycles(bytes_per_slice: int, hw: Hardware = RNGD) -> int:
    """Cycles that a register store streams: Sub fetches 8 B a cycle (TUNE-018); the command's fixed cost is not included."""
    return -(-bytes_per_slice // hw.sub_fetch_bytes)


def fits_trf_half(bytes_per_slice: int, hw: Hardware = RNGD) -> bool:
    """Whether a TRF tensor can be double buffered (HW-019)."""
    return bytes_per_slice <= hw.trf_half_bytes_per_slice


def contended_cycles(main_cycles: int, sub_cycles: int, same_bank_cycles: int) -> int:
    """Length of a main and a sub operation side by side: the longer one, plus the cycles in which both want one bank (SCHED-010)."""
    return max(main_cycles, sub_cycles) + same_bank_cycles


def register_reuse(kept_loops: int) -> bool:
    """Whether register-file reuse is on: only if no loop is left anywhere in the kernel (TUNE-010)."""
    return kept_loops == 0

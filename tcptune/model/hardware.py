"""Every capacity, width and count of the device, once (HW-001 to HW-028 and the engine chapters of the manual).

Timing constants are in `model.calibration`; rule texts in `model.rules`.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Hardware:
    """Facts of one device. Sizes in bytes unless the name says otherwise; each line names the rule it comes from."""

    name: str = "RNGD"

    # spatial hierarchy
    clusters_per_chip: int = 2  # HW-001
    slices_per_cluster: int = 256  # HW-001
    lanes_per_slice: int = 8  # HW-001
    legal_lane_counts: tuple[int, ...] = (1, 2, 4, 8)  # HW-001, TRF-003
    legal_cluster_sizes: tuple[int, ...] = (1, 2)  # MOVE-007
    legal_slice_sizes: tuple[int, ...] = (64, 128, 256)  # MOVE-007
    pes_per_chip: int = 8  # HW-023

    # memories
    hbm_bytes: int = 48 * 2**30  # HW-002, HW-012
    dm_bytes_per_slice: int = 524_288  # HW-003
    trf_bytes_per_slice: int = 65_536  # HW-004: 8 KB a lane with 8 lanes, native 32 B rows
    trf_half_bytes_per_slice: int = 32_768  # HW-019
    vrf_bytes_per_slice: int = 8_192  # HW-005
    vrf_stash_bytes_per_slice: int = 1_024  # HW-026

    # streams
    flit_bytes: int = 32  # HW-014
    contraction_packet_bytes: tuple[int, ...] = (32, 64)  # HW-014, OUTER-004
    fetch_access_bytes: tuple[int, ...] = (1, 2, 4, 8, 16, 32)  # SEQ-015, FETCH-003
    sub_fetch_bytes: int = 8  # FETCH-004
    sub_commit_bytes: int = 8  # COMMIT-009
    commit_valid_bytes: tuple[int, ...] = (8, 16, 24, 32)  # COMMIT-006
    stream_alignment_bytes: int = 8  # COMMIT-005, FETCH-017, LIFT-010

    # sequencer
    sequencer_max_entries: int = 8  # SEQ-010
    sequencer_max_iterations: int = 65_536  # SEQ-011


RNGD = Hardware()

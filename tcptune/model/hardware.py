"""Every capacity, width and count of the device, once (HW-001 to HW-028 and the engine chapters of the manual).

Timing constants are in `model.timing.calibration`; rule texts in `model.rules`.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Hardware:
    """Facts of one device. Sizes in bytes unless the name says otherwise; each line names the rule it comes from."""

    name: str = "RNGD"
    clock_ghz: float = 1.0  # DMA-024, VT-040: clock of engines, Tensor Units and schedules

    # spatial hierarchy
    clusters_per_chip: int = 2  # HW-001
    slices_per_cluster: int = 256  # HW-001
    tensor_units_per_slice: int = 1  # HW-001
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
    interleaved_tensors: int = 2  # FETCH-008: tensors that one fetch can take in turn
    sub_commit_bytes: int = 8  # COMMIT-009
    commit_valid_bytes: tuple[int, ...] = (8, 16, 24, 32)  # COMMIT-006
    stream_alignment_bytes: int = 8  # COMMIT-005, FETCH-017, LIFT-010

    # fetch adapter
    fetch_cast_latency_cycles: tuple[int, int] = (1, 2)  # FA-009: least and most
    lookup_key_bytes: tuple[int, ...] = (1, 2)  # FA-005: widths of a table key
    loaded_table_bytes: int = 8  # schedule documents: DM a slice gives to a lookup table as it is loaded
    stored_table_bytes: int = 16_384  # schedule documents: DM a slice gives to a lookup table in place
    switch_bitmap_bytes: int = 32  # schedule documents: DM a slice gives to the bitmap of a CustomBroadcast

    # tensor register file
    trf_banks_per_lane: int = 2  # TRF-007
    trf_rows_per_bank: int = 128  # TRF-007: with all lanes active
    trf_row_bits: int = 320  # TRF-007: holds one flit of any element type
    trf_cache_rows_per_bank: int = 4  # TRF-013

    # sequencer
    sequencer_max_entries: int = 8  # SEQ-010
    sequencer_max_iterations: int = 65_536  # SEQ-011

    # contraction engine
    multiplier_bits_per_lane: int = 512  # CE-012, OUTER-010: the datapath always moves 64 B
    trf_wide_read_bytes: int = 64  # OUTER-018, OUTER-020: both banks
    trf_narrow_read_bytes: int = 32  # OUTER-018: one bank
    accumulator_columns: int = 32  # PACKETRED-005
    accumulator_cells: int = 1_024  # TIMERED-006
    lane_bus_elements: int = 8  # LANE-002

    # transpose engine
    transpose_row_bytes: int = 8  # TRANSPOSE-003: rows of one burst, in bytes of elements
    transpose_columns: tuple[int, ...] = (8, 16, 32)  # TRANSPOSE-003
    transpose_element_bits: tuple[int, ...] = (4, 8, 16, 32)  # TRANSPOSE-015
    transpose_buffer_columns: int = 16  # TRANSPOSE-012: of each of the two buffers
    transpose_dual_elements: int = 16  # TRANSPOSE-004: elements of a flit with dual packing
    transpose_dual_bits: tuple[int, ...] = (8, 16)  # TRANSPOSE-004: element widths that have it

    # memory system
    slices_per_dmn: int = 32  # DM-001
    dmns_per_engine: int = 2  # DMA-009: one DMA engine per DMN pair
    dm_banks_per_slice: int = 16  # DM-001
    dm_rows_per_bank: int = 4_096  # DM-001
    dm_word_bytes: int = 8  # DM-001: width of a bank
    dmn_bytes_per_cycle: int = 128  # DM-005
    slice_dma_queue_entries: int = 2  # DM-007
    noc_timeout_cycles: int = 4_096  # DM-009
    slice_window_bytes: int = 4 * 2**20  # DMA-033: virtual span of one slice
    dm_granule_bytes: int = 256  # VT-044: DM addresses are multiples of it
    hbm_stacks: int = 2  # HBM-001
    hbm_channels_per_stack: int = 16  # HBM-001
    hbm_slices_per_channel: int = 3  # HBM-001
    hbm_bank_groups_per_slice: int = 4  # HBM-001
    hbm_banks_per_group: int = 4  # HBM-001
    hbm_rows_per_bank: int = 16_384  # HBM-001
    hbm_row_bytes: int = 2_048  # HBM-001
    hbm_controller_ghz: float = 0.75  # HBM-003
    hbm_memory_ghz: float = 1.5  # HBM-013: clock of tCCD and of row switches
    hbm_controller_bytes_per_cycle: int = 64  # HBM-003
    hbm_bursts_per_controller_cycle: int = 8  # HBM-003
    hbm_controller_queue_entries: int = 64  # HBM-004
    hbm_stated_tb_per_s: float = 1.5  # HBM-003: the rounded figure the manual divides by
    hbm_row_switch_ns: tuple[int, int] = (40, 50)  # HBM-011
    hbm_row_switch_slowdown: tuple[int, int] = (30, 40)  # HBM-011: against an open row
    request_bytes: int = 256  # DMA-027, HBM-004: one AXI request, one HBM access
    max_packet_bytes: int = 4_096  # DMA-022
    axi_beat_bytes: int = 16  # DMA-022
    engine_bytes_per_cycle: int = 256  # DMA-024
    pcie_bytes_per_cycle: int = 30  # PCIE-004
    reported_peak_bytes_per_cycle: int = 1_360  # VT-028: peak that the vendor's utilisation figures divide by
    dma_alignment_bytes: int = 8  # DMA-005, DMA-019, DMA-020
    unaligned_dm_write_factor: int = 3  # DMA-021
    unaligned_dm_access_factor: int = 50  # MAP-029: "about", observed on read-modify-write
    unaligned_hbm_read_factor: int = 2  # HBM-009
    partial_hbm_write_factor: int = 50  # HBM-010: "about"
    unscaled_index_bytes: int = 4_096  # GATHER-003: budget of one processing element

    # vector engine
    vector_element_bytes: int = 4  # VE-001: i32 and f32 only
    vector_ways: tuple[int, ...] = (8, 4)  # VE-003: elements a step before and after narrowing
    vector_int_widths: int = 32  # VE-020: int_width lies in 0..31
    operand_immediates: int = 3  # TAG-008
    operand_register_ports: int = 1  # TAG-008
    reduce_slots: int = 8  # ISR-004: temporal accumulator of the intra-slice reducer
    valid_count_time_filters: int = 3  # VCG-018
    valid_count_packet_clippers: int = 1  # VCG-018
    valid_count_sequencer_entries: int = 8  # VCG-019

    @property
    def slices_per_engine(self) -> int:
        """Slices that one DMA engine serves (DMA-009)."""
        return self.slices_per_dmn * self.dmns_per_engine

    @property
    def engines_per_cluster(self) -> int:
        return self.slices_per_cluster // self.slices_per_engine

    @property
    def dmns_per_cluster(self) -> int:
        return self.slices_per_cluster // self.slices_per_dmn

    @property
    def dmns_per_chip(self) -> int:
        return self.dmns_per_cluster * self.clusters_per_chip

    @property
    def dm_bytes_per_chip(self) -> int:
        """Data memory of a chip (DM-003)."""
        return self.dm_bytes_per_slice * self.slices_per_cluster * self.clusters_per_chip

    @property
    def hbm_channels(self) -> int:
        """Channels of a chip, both stacks."""
        return self.hbm_stacks * self.hbm_channels_per_stack

    @property
    def hbm_channel_gb_per_s(self) -> float:
        return self.hbm_controller_bytes_per_cycle * self.hbm_controller_ghz

    @property
    def hbm_gb_per_s(self) -> float:
        return self.hbm_channel_gb_per_s * self.hbm_channels


RNGD = Hardware()

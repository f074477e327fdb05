"""Every timing constant once, with unit, evidence and error, in two profiles.

``vendor`` reproduces the static schedules that the vendor's compiler publishes (1 GHz clock); ``manual`` reproduces the worked examples of
the manual. A profile is a set of sections, one for each part of the machine: `DmaTiming` prices transfers (`model.memory`), `PassConstants`
the passes of the Tensor Unit (`model.timing.passes`). Rules: VT-001 to VT-012, VT-020 to VT-046, DMA-023 to DMA-043, DM-006, HBM-004 to
HBM-013. `docs/cost-model.md` shows the residuals.
"""

from __future__ import annotations

from dataclasses import dataclass

from tcptune.errors import InputError


@dataclass(frozen=True, slots=True)
class Constant:
    """One timing constant.

    Attributes:
        value: the number.
        unit: e.g. ``cycles``, ``cycles/line``, ``packets``.
        evidence: what it was read off.
        error: how far it may be off, in words or percent.
    """

    value: float
    unit: str
    evidence: str
    error: str


@dataclass(frozen=True, slots=True)
class DmaTiming:
    """Constants of the one engine model of transfers between HBM and DM (`model.memory.engine_model`).

    A *line* is one 256-byte block of HBM, a *port* the data path of one 32-slice half of an engine's 64 slices. Packets that follow each
    other less than `near_distance` apart are issued at `issue_near`, less than `mid_distance` apart at `issue_mid`, else at `issue_far`. A
    packet that starts in the same `same_line_bytes` as one before it waits `same_line`.
    """

    start_load: Constant
    start_store: Constant
    skew_engine: Constant
    skew_cluster: Constant
    issue_far: Constant
    issue_mid: Constant
    issue_near: Constant
    near_distance: Constant
    mid_distance: Constant
    same_line: Constant
    same_line_bytes: Constant
    window: Constant
    latency: Constant
    port: Constant
    slice_gap: Constant
    partial_write_64: Constant
    partial_write_8: Constant
    partial_write_join: Constant
    partial_write_tail: Constant
    sub_word_piece: Constant
    sub_word_queue: Constant
    max_packet: Constant
    dm_copy_bytes_per_cycle: Constant | None
    hbm_request: Constant | None
    hbm_row_switch: Constant | None

    @property
    def pays_every_command(self) -> bool:
        """Whether each command of an engine pays its own startup (DMA-026); the vendor's schedules show one start a transfer."""
        return self.hbm_request is not None


_FIT = "in-sample fit to 60 load and 15 store shapes of published schedules"

VENDOR_DMA = DmaTiming(
    start_load=Constant(441, "cycles", "one 32 B request to one slice costs 447 (VT-024)", "±1 cycle"),
    start_store=Constant(330, "cycles", "1,024 B from one slice costs 343", "±2 cycles"),
    skew_engine=Constant(34, "cycles/engine", "single rows that end on engines 0 to 3 of a cluster (VT-024)", "±2 cycles"),
    skew_cluster=Constant(74, "cycles/cluster", "4 B to slice 0 of both clusters costs 521, of one 447", "±1 cycle"),
    issue_far=Constant(
        1.68, "cycles/line", "contiguous blocks of 15 to 115 KB a slice, both directions of one or two clusters (VT-021)", "0.5 %"
    ),
    issue_mid=Constant(2.19, "cycles/line", "2,048 B rows, 1,600 B rows (VT-020)", "2 %"),
    issue_near=Constant(2.94, "cycles/line", "rows of 240 to 960 B in neighbouring slices", "5 %; packets below 256 B rather 2.5"),
    near_distance=Constant(2_048, "bytes", "rows 1,024 B apart cost the near rate, 2,048 B apart the middle one", "1,025 to 2,048"),
    mid_distance=Constant(
        98_304, "bytes", "rows 64,000 and 65,536 B apart cost the middle rate, 126,976 B apart the far one", "65,536 to 126,975"
    ),
    same_line=Constant(10.1, "cycles/line", "replicated loads of 2,048 to 7,680 B (VT-022); close to 16/1.5", "1 %"),
    same_line_bytes=Constant(
        128, "bytes", "64, 32, 16 and 8 B rows in neighbouring slices: half a line; a whole one costs them 3 to 6 % more", "65 to 255"
    ),
    window=Constant(6, "packets", "replicated loads: 64 readers of a line cost 595; 5 and 7 fit about as well", "±1 packet"),
    latency=Constant(1.5, "cycles", _FIT, "50 %"),
    port=Constant(2.4, "cycles/line", "32 pieces of 120 B into 8 slices of one half cost 1,055; the manual has 2", "2 %, one shape"),
    slice_gap=Constant(3.5, "cycles/line", "4,096 B into one slice costs 499; held-out fit gives 3.2", "10 %"),
    partial_write_64=Constant(35.2, "cycles/packet", "8,192 pieces of 64 B cost 72,731 (VT-027)", "1 %, one shape"),
    partial_write_8=Constant(136.4, "cycles/packet", "16 B and 2,000 B pieces from 256 slices (VT-027)", "7 %, mostly the first"),
    partial_write_join=Constant(3.6, "cycles/packet", "240 to 960 B pieces of neighbouring slices", "10 %"),
    partial_write_tail=Constant(173.0, "cycles", "8 B from one slice costs 506, a whole line 343", "2 %"),
    sub_word_piece=Constant(
        120.0, "cycles/piece", "two shapes of 2 B pieces (16 and 128 in one line): an interpolation", "unknown elsewhere"
    ),
    sub_word_queue=Constant(4.75, "cycles/piece²", "the same two shapes", "unknown elsewhere"),
    max_packet=Constant(
        1024, "bytes", "rows of 1,600, 1,920, 2,000, 14,400 and 28,800 B: packets of 800, 960, 1,000, 800, 960", "exact on those"
    ),
    dm_copy_bytes_per_cycle=Constant(76, "bytes/cycle", "few DM to DM replications (VT-030)", "unknown, few data"),
    hbm_request=None,
    hbm_row_switch=None,
)

REPLICATED_LOAD = Constant(
    110, "bytes/cycle", "16 B rows into every slice of a cluster (VT-022)", "a guide to routes; it prices no transfer"
)
"""Rate of a load that gives every slice of a cluster the same few bytes."""

_MANUAL_RMW = Constant(
    50 * 16 / 3, "cycles/packet", "a partial write takes about 50 times an aligned one (HBM-010)", "the manual's 'about'"
)
_NONE = Constant(0, "cycles", "the manual charges nothing", "n/a")

MANUAL_DMA = DmaTiming(
    start_load=Constant(500, "cycles", "startup per command (DMA-026)", "the manual's 'about'"),
    start_store=Constant(500, "cycles", "startup per command (DMA-026)", "the manual's 'about'"),
    skew_engine=_NONE,
    skew_cluster=_NONE,
    issue_far=Constant(1, "cycles/line", "one 256 B request a cycle and engine (DMA-024)", "exact in examples 1 to 3"),
    issue_mid=Constant(1, "cycles/line", "the same at any address", "exact in examples 1 to 3"),
    issue_near=Constant(1, "cycles/line", "the same at any address", "exact in examples 1 to 3"),
    near_distance=Constant(0, "bytes", "no such class: one rate at any address", "n/a"),
    mid_distance=Constant(0, "bytes", "no such class", "n/a"),
    same_line=_NONE,
    same_line_bytes=Constant(256, "bytes", "the manual charges nothing", "n/a"),
    window=Constant(64, "packets", "entries of a channel's command queue (HBM-004)", "not limiting in the examples"),
    latency=_NONE,
    port=Constant(2, "cycles/line", "128 B a cycle and DMN (DM-005, DM-006)", "exact in example 2"),
    slice_gap=Constant(2, "cycles/line", "a slice takes 128 B a cycle (DM-003)", "not limiting in the examples"),
    partial_write_64=_MANUAL_RMW,
    partial_write_8=_MANUAL_RMW,
    partial_write_join=_MANUAL_RMW,
    partial_write_tail=_NONE,
    sub_word_piece=_MANUAL_RMW,
    sub_word_queue=Constant(0, "cycles/piece²", "the manual knows no queue", "n/a"),
    max_packet=Constant(4096, "bytes", "256 beats of 16 B (DMA-022)", "exact"),
    dm_copy_bytes_per_cycle=None,
    hbm_request=Constant(16 / 3, "cycles/request", "4 controller cycles at 0.75 GHz (HBM-004)", "example 5 prints 5.3"),
    hbm_row_switch=Constant(40, "cycles/request", "example 4 (HBM-011, DMA-029)", "the manual's 'about'"),
)


@dataclass(frozen=True, slots=True)
class PassConstants:
    """Constants of Tensor Unit passes: what a pass costs besides the flits, steps or bytes that it streams.

    The first group are cycles before the first flit, by what the pass does; the second are rates and extra terms.
    """

    stage: Constant
    contract: Constant
    copy: Constant
    transpose: Constant
    vector: Constant
    vector_to_vrf: Constant
    inter_slice_reduce: Constant

    sub_fetch_bytes_per_cycle: Constant
    sub_cycles_per_cast_packet: Constant
    lookup_f8_per_cycle: Constant
    lookup_bf16_per_cycle: Constant
    reduce_per_slice: Constant
    reduce_steps_least: Constant
    whole_ring: Constant


VENDOR_PASS = PassConstants(
    stage=Constant(263, "cycles", "staging of 16 to 15,360 B, 30+ rows (VT-001); VT-003, VT-006, VT-010", "exact"),
    contract=Constant(265, "cycles", "contractions of 16 to 960 flits (VT-002)", "exact where fetching dominates"),
    copy=Constant(264, "cycles", "copies of 265 to 296 cycles (VT-004); cast and commit (VT-008)", "exact"),
    transpose=Constant(266, "cycles", "8, 128 and 256 rows written (VT-012)", "exact"),
    vector=Constant(281, "cycles", "vector passes, 40+ rows (VT-005); on Sub (VT-007)", "exact"),
    vector_to_vrf=Constant(280, "cycles", "340 and 281 cycles (VT-006)", "exact"),
    inter_slice_reduce=Constant(270, "cycles", "groups of 8, 32 and 256 slices: 347, 563, 2,579 (VT-009)", "exact"),
    sub_fetch_bytes_per_cycle=Constant(8, "bytes/cycle", "16 B to 15,360 B a slice (VT-001, VT-007)", "exact"),
    sub_cycles_per_cast_packet=Constant(2, "cycles/packet", "2,064 cycles for 900 packets of 8 elements (VT-008)", "exact"),
    lookup_f8_per_cycle=Constant(12.8, "elements/cycle", "f4 to f8, 7 rows (VT-003)", "exact"),
    lookup_bf16_per_cycle=Constant(6.4, "elements/cycle", "f8 to bf16, 7 rows (VT-003)", "exact"),
    reduce_per_slice=Constant(9, "cycles/slice", "groups of 8, 32 and 256 slices (VT-009)", "exact"),
    reduce_steps_least=Constant(5, "cycles", "one-step reductions (VT-009)", "exact"),
    whole_ring=Constant(512, "cycles", "switches with a ring of 256 (VT-010)", "exact; by analogy with vector work and staging"),
)


@dataclass(frozen=True, slots=True)
class Profile:
    """All timing constants of one source.

    `passes` is None where a pass costs what the manual's stage formulas give and nothing else.
    """

    name: str
    dma: DmaTiming
    passes: PassConstants | None = None


VENDOR = Profile("vendor", VENDOR_DMA, VENDOR_PASS)
MANUAL = Profile("manual", MANUAL_DMA)
PROFILES = {p.name: p for p in (VENDOR, MANUAL)}


def profile(name: str | Profile) -> Profile:
    """The profile called `name`.

    Raises:
        InputError: no such profile; the hint lists them.
    """
    if isinstance(name, Profile):
        return name
    try:
        return PROFILES[name]
    except KeyError:
        raise InputError(f"unknown timing profile {name!r}", hint=f"known: {', '.join(PROFILES)}") from None

"""Timing of whole kernels: launch offsets, syncs, inserted work and loops, each with its evidence (VT-013, 014, 029, 040 to 046)."""

from __future__ import annotations

from dataclasses import dataclass

from tcptune.model.timing.calibration import Constant, Profile, profile


@dataclass(frozen=True, slots=True)
class KernelTiming:
    """Constants of one profile that belong to no single operation; all in cycles.

    Attributes:
        core_begin, first_begin: first cycle of Core operations and of all others (VT-040).
        closing_sync: the sync that ends a kernel.
        store_sync, load_after_sync, gather_after_sync: between a store and a read of the same HBM buffer (VT-029).
        buffer_reuse: before an HBM buffer is overwritten in place.
        table_load, table_store: of a lookup table (VT-013).
        bitmap_load: of a custom switch bitmap (VT-014).
        index_stage: copy of a gather index from DM (spec of the schedule JSON).
        dma_beside_sub: a DMA issued after a Sub operation that is just beginning starts this much later (VT-043).
        view_address, view_bind: Core work of a tile view (VT-045).
        loop_pass_saving: what a pass inside a kept loop does not pay (VT-046).
        loop_iteration: what every iteration of a kept loop costs on top (VT-046).
    """

    core_begin: Constant
    first_begin: Constant
    closing_sync: Constant
    store_sync: Constant
    load_after_sync: Constant
    gather_after_sync: Constant
    buffer_reuse: Constant
    table_load: Constant
    table_store: Constant
    bitmap_load: Constant
    index_stage: Constant
    dma_beside_sub: Constant
    view_address: Constant
    view_bind: Constant
    loop_pass_saving: Constant
    loop_iteration: Constant


_DUMPS = "published schedule dumps"
_TRIO = "the manual's double-buffer trio (three makespans, two constants): a hypothesis"

VENDOR_KERNEL = KernelTiming(
    core_begin=Constant(1000, "cycles", _DUMPS, "exact"),
    first_begin=Constant(1003, "cycles", "ten published kernels; the MNIST picture has 2,003", "exact"),
    closing_sync=Constant(600, "cycles", "every published kernel", "exact"),
    store_sync=Constant(600, "cycles", _DUMPS, "exact"),
    load_after_sync=Constant(1000, "cycles", _DUMPS, "exact"),
    gather_after_sync=Constant(300, "cycles", _DUMPS, "exact"),
    buffer_reuse=Constant(600, "cycles", "newest dumps; an older release has 708", "one release"),
    table_load=Constant(838, "cycles", "4 KB table, all dumps", "exact"),
    table_store=Constant(1293, "cycles", "all dumps", "exact"),
    bitmap_load=Constant(719, "cycles", "16 KB bitmap, all dumps", "exact"),
    index_stage=Constant(484, "cycles", _DUMPS, "exact"),
    dma_beside_sub=Constant(200, "cycles", "two dumps (VT-043)", "seen with imposed orders only"),
    view_address=Constant(10, "cycles/view", _DUMPS, "exact"),
    view_bind=Constant(6, "cycles/view", _DUMPS, "exact"),
    loop_pass_saving=Constant(148, "cycles/pass", _TRIO, "1 %"),
    loop_iteration=Constant(256, "cycles/iteration", _TRIO, "1 %"),
)

_NOTHING = Constant(0, "cycles", "the manual states none", "n/a")

MANUAL_KERNEL = KernelTiming(**dict.fromkeys(KernelTiming.__dataclass_fields__, _NOTHING))

_BY_PROFILE = {"vendor": VENDOR_KERNEL, "manual": MANUAL_KERNEL}


def kernel_timing(name: str | Profile) -> KernelTiming:
    """The constants of a profile.

    Raises:
        InputError: no such profile.
    """
    return _BY_PROFILE[profile(name).name]

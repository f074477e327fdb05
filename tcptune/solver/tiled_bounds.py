"""Lower bounds of kernels that work in tiles, whatever the tiles, loops, placements and knobs are.

Every plan loads each input once at least and stores the result, one transfer at a time (VT-042); and it forms all products, at most a
packet a cycle in each lane of each slice (VT-004, VT-005). A kept loop makes a pass cheaper (VT-046), so that no fixed cost of a pass is
mandatory.
"""

from __future__ import annotations

import math

from tcptune.ir.candidate import Tiles
from tcptune.ir.types import DType
from tcptune.ir.workload import Workload
from tcptune.model.hardware import RNGD
from tcptune.model.timing.calibration import profile as profile_named
from tcptune.solver.bounds import transfers_of as transfers_of
from tcptune.solver.pricing import FixedCosts


def packet_elements(element: DType) -> int:
    """Elements of one packet of a contraction, two flits: lengths that are multiples of it need no padding in packets."""
    return RNGD.multiplier_bits_per_lane // element.bits


def products_floor(workload: Workload) -> int:
    """Cycles in which all slices together can form the products of a contraction at the earliest."""
    packet = packet_elements(workload.dtype)
    at_once = RNGD.clusters_per_chip * RNGD.slices_per_cluster * RNGD.lanes_per_slice * packet
    return -(-math.prod(size for _, size in workload.sizes) // at_once)


def tiles_bound(workload: Workload, tiles: Tiles, fixed: FixedCosts, profile: str) -> int:
    """Lower bound of every plan with these tiles, in cycles (no loops: of every plan at all).

    A kernel does not end before its transfers have followed one another, nor before the products of all tiles, after a first load and
    before a last store.
    """
    timing = profile_named(profile).dma
    products = tiles.tiles * products_floor(tiles.body_workload(workload))
    passes = timing.start_load.value + products + timing.start_store.value
    return math.floor(fixed.start + max(transfers_of(workload, tiles, timing), passes) + fixed.sync)

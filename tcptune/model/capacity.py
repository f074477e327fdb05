"""What fits where: bytes of a tensor against its unit, padding counted (MAP-033)."""

from __future__ import annotations

from tcptune.errors import RuleViolation
from tcptune.ir.types import DType, TensorType
from tcptune.model.hardware import RNGD, Hardware


def unit_capacity_bytes(tier: str, hw: Hardware = RNGD, lanes: int | None = None) -> int | None:
    """Bytes that one unit holds: a slice for Dm and Vrf, one of `lanes` lanes for Trf; None without a bound of its own.

    The register file of a slice is shared by the lanes in use, so fewer lanes see more of it (TRF-006).
    """
    if tier == "Dm":
        return hw.dm_bytes_per_slice
    if tier == "Vrf":
        return hw.vrf_bytes_per_slice
    if tier == "Trf":
        return hw.trf_bytes_per_slice // min(lanes or hw.lanes_per_slice, hw.lanes_per_slice)
    return None


def check_capacity(tier: str, dtype: DType, elements: int, lanes: int = 1, hw: Hardware = RNGD) -> None:
    """Refuses a tensor of `elements` elements a unit that does not fit.

    Raises:
        RuleViolation: MAP-033.
    """
    if tier == "Trf" and lanes > hw.lanes_per_slice:
        raise RuleViolation("MAP-033", f"{lanes} lanes", expected=f"at most {hw.lanes_per_slice}", got=lanes, also=("TRF-003", "HW-001"))
    limit = unit_capacity_bytes(tier, hw, lanes)
    size_bytes = dtype.bytes_of(elements)
    if limit is not None and size_bytes > limit:
        unit = "lane" if tier == "Trf" else "slice"
        raise RuleViolation(
            "MAP-033",
            f"the {tier} tensor takes {size_bytes:,} bytes of a {unit}",
            expected=f"at most {limit:,} bytes, {limit * 8 // dtype.bits:,} elements of {dtype}",
            got=f"{elements:,} elements",
            also={"Dm": ("HW-003", "DM-003"), "Trf": ("HW-004", "TRF-006"), "Vrf": ("HW-005", "VRF-004")}[tier],
        )


def check_tensor(tensor: TensorType, hw: Hardware = RNGD) -> None:
    """Raises:
    RuleViolation: MAP-033 if the tensor does not fit its unit.
    """
    check_capacity(tensor.tier, tensor.dtype, tensor.element.size, tensor.lane.size, hw)

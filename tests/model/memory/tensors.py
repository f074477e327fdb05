"""Shorthand for tensor types in tests."""

from __future__ import annotations

from tcptune.ir.mappings.axes import Axes
from tcptune.ir.types import TensorType, dtype


def hbm(axes: Axes, element: str, dt: str = "i8", chip: str = "1") -> TensorType:
    """An HBM tensor."""
    return TensorType("Hbm", dtype(dt), axes.mapping(element), axes.mapping(chip))


def dm(axes: Axes, slice_: str, element: str, dt: str = "i8", cluster: str = "1 # 2", chip: str = "1") -> TensorType:
    """A DM tensor, one live cluster unless given."""
    return TensorType("Dm", dtype(dt), axes.mapping(element), axes.mapping(chip), axes.mapping(cluster), axes.mapping(slice_))

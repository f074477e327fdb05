"""Contents of tensors and streams: a numpy array and the mask of what the hardware really knows there."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt


@dataclass(frozen=True)
class Values:
    """Contents of a stored tensor or of a stream.

    Attributes:
        data: numpy array whose axes are the levels of the type, outermost first (see `TensorType.shape`, `StreamType.shape`).
        defined: same shape; False where nothing known was ever written (idle positions of ``1 # n``, padding).
    """

    data: npt.NDArray[np.generic]
    defined: npt.NDArray[np.bool_]

    def __post_init__(self) -> None:
        if self.data.shape != self.defined.shape:
            raise ValueError(f"data has shape {self.data.shape}, defined {self.defined.shape}")

"""The moment at which a search with a time limit begins nothing more."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass


class TimeIsUp(Exception):
    """Raised between two pieces of work when the time limit is over; what was begun and not finished is dropped."""


@dataclass(frozen=True, slots=True)
class Deadline:
    """A moment of the monotonic clock, in seconds; it is the same clock in every process of the machine."""

    at_s: float = math.inf

    @classmethod
    def after(cls, seconds: float | None) -> Deadline:
        """The deadline that far from now, or none."""
        return cls() if seconds is None else cls(time.monotonic() + seconds)

    @property
    def passed(self) -> bool:
        return self.at_s < math.inf and time.monotonic() >= self.at_s

    def check(self) -> None:
        """Raises:
        TimeIsUp: the moment is over.
        """
        if self.passed:
            raise TimeIsUp

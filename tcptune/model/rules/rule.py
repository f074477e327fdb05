"""What one rule of the machine says."""

from __future__ import annotations

from dataclasses import dataclass

_NO_FIX = "nothing to "
_OF_COSTS = ("VT", "TUNE")
"""Groups whose rules say what something costs."""


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule of the catalogue.

    Attributes:
        id: e.g. ``SWITCH-011``.
        title: a short name.
        text: what the rule demands, with its numbers and units.
        breaks: an example that breaks it (or that shows its effect, where nothing can break it).
        fix: what to do instead.
        manual: section of the manual it comes from.
    """

    id: str
    title: str
    text: str
    breaks: str
    fix: str
    manual: str

    @property
    def group(self) -> str:
        """The letters before the number: ``SWITCH`` of ``SWITCH-011``."""
        return self.id.split("-")[0]

    @property
    def needs_no_fix(self) -> bool:
        """Whether nothing can break it, so that `breaks` shows its effect."""
        return self.fix.startswith(_NO_FIX)

    @property
    def is_advice(self) -> bool:
        """Whether it says what something costs or shows, so that `breaks` is an example and `fix` is advice."""
        return self.needs_no_fix or self.group in _OF_COSTS

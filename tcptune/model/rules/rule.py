"""What one rule of the machine says."""

from __future__ import annotations

from dataclasses import dataclass


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

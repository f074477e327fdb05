"""Options of a search, one value for every kind of it, checked once at the border; what a progress display sees of a search."""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Mapping as Dict
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from tcptune.errors import InputError
from tcptune.model.timing.calibration import profile as profile_named

_LIMIT_HINT = "a number of seconds, for example 60, or no limit"


@dataclass(frozen=True, slots=True)
class Progress:
    """State after a step, for a progress display. `bound` and `makespan` in cycles, `makespan` None before the first plan."""

    step: int
    trials: int
    budget: int
    makespan: int | None
    bound: int
    elapsed_s: float


@dataclass(frozen=True)
class Options:
    """What a user may set of a search.

    Attributes:
        trials: candidates that are tried at most, beside the manual's template, which is always measured.
        seed: seed of what is drawn.
        jobs: worker processes.
        time_limit: seconds from the start of the search after which it begins nothing more and reports the best so far.
        study: journal of the search; a killed one goes on from it.
        profile: timing constants, ``vendor`` or ``manual``.
        progress: called after every step.
        command: the command line, for the report.

    Raises:
        InputError: a value that no search can use.
    """

    trials: int = 200
    seed: int = 0
    jobs: int = 1
    time_limit: float | None = None
    study: Path | None = None
    profile: str = "vendor"
    progress: Callable[[Progress], None] | None = None
    command: str = ""

    def __post_init__(self) -> None:
        for name, least in (("trials", 1), ("seed", 0), ("jobs", 1)):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int):
                raise InputError(f"{name} must be a whole number, got {value!r:.60}")
            if value < least:
                raise InputError(f"{name} must be at least {least}, got {value}")
        limit = self.time_limit
        if limit is not None and (isinstance(limit, bool) or not isinstance(limit, int | float)):
            raise InputError(f"time_limit must be a number of seconds, got {limit!r:.60}", hint=_LIMIT_HINT)
        if limit is not None and not limit > 0:  # neither is a NaN
            raise InputError(f"the time limit must be above 0 s, got {limit:g}", hint=_LIMIT_HINT)
        for name in ("profile", "command"):
            if not isinstance(getattr(self, name), str):
                raise InputError(f"{name} must be a text, got {getattr(self, name)!r:.60}")
        if self.study is not None and not isinstance(self.study, str | Path):
            raise InputError(f"study must be the path of a journal file, got {self.study!r:.60}")
        if self.progress is not None and not callable(self.progress):
            raise InputError(f"progress must be a function of the search's state, got {self.progress!r:.60}")
        object.__setattr__(self, "profile", profile_named(self.profile).name)
        object.__setattr__(self, "study", None if self.study is None else Path(self.study))

    @classmethod
    def of(cls, given: Dict[str, Any]) -> Options:
        """The options of a call by keyword.

        Raises:
            InputError: an option of another name, or a value that no search can use.
        """
        known = [field.name for field in fields(cls)]
        for name in given:
            if name not in known:
                raise InputError(f"there is no search option {name!r}", hint=f"options: {', '.join(known)}")
        return cls(**given)

"""Options of a search, one value for every kind of it, checked once at the border; what a progress display sees of a search."""

from __future__ import annotations

import os
from collections.abc import Callable
from collections.abc import Mapping as Dict
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from tcptune.errors import InputError
from tcptune.model.timing.calibration import profile as profile_named

LONGEST_S = 1e9
"""Longest time limit, some thirty years, so that every clock can hold its end."""

NUMBER_LIMIT = 1 << 63
"""Above every number of trials and every seed."""

JOBS_PER_CPU = 4
"""Worker processes a processor at most: each builds the tables of the space, and more only wait for each other."""

FEWEST_MOST_JOBS = 16
"""Worker processes that are always allowed."""

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


def most_jobs() -> int:
    """Worker processes of one search at most, on this machine."""
    return max(FEWEST_MOST_JOBS, JOBS_PER_CPU * (os.cpu_count() or 1))


def _short(value: float) -> str:
    """A number of a user in a few characters; thousands of digits have no text in Python."""
    if isinstance(value, int) and abs(value) >= 10**18:
        return f"a number of {value.bit_length()} bits"
    return f"{value:g}" if isinstance(value, float) else str(value)


@dataclass(frozen=True)
class Options:
    """What a user may set of a search.

    Attributes:
        trials: candidates that are tried at most, beside the manual's template, which is always measured.
        seed: seed of what is drawn.
        jobs: worker processes, `most_jobs` at most; any number gives the same document.
        time_limit: seconds after its start at which a search begins nothing more and reports the best so far; `LONGEST_S` at most.
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
                raise InputError(f"{name} must be at least {least}, got {_short(value)}")
            if value >= NUMBER_LIMIT:
                raise InputError(f"{name} must be at most {NUMBER_LIMIT - 1}, got {_short(value)}")
        if self.jobs > most_jobs():
            cpus = os.cpu_count() or 1
            raise InputError(
                f"jobs must be at most {most_jobs()}, got {_short(self.jobs)}", hint=f"this machine has {cpus} processors; try {cpus}"
            )
        limit = self.time_limit
        if limit is not None and (isinstance(limit, bool) or not isinstance(limit, int | float)):
            raise InputError(f"time_limit must be a number of seconds, got {limit!r:.60}", hint=_LIMIT_HINT)
        if limit is not None and not limit > 0:  # neither is a NaN
            raise InputError(f"the time limit must be above 0 s, got {_short(limit)}", hint=_LIMIT_HINT)
        if limit is not None and limit > LONGEST_S:
            raise InputError(f"the time limit must be at most {LONGEST_S:g} s, got {_short(limit)}", hint=_LIMIT_HINT)
        for name in ("profile", "command"):
            if not isinstance(getattr(self, name), str):
                raise InputError(f"{name} must be a text, got {getattr(self, name)!r:.60}")
        if self.study is not None and not isinstance(self.study, str | Path):
            raise InputError(f"study must be the path of a journal file, got {self.study!r:.60}")
        if self.study is not None and "\0" in str(self.study):
            raise InputError(f"study must be the path of a journal file, got {str(self.study)!r:.60}: no path holds a zero byte")
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

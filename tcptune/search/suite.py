"""Suites: several searches from one TOML file, each in its own folder, resumable search by search and trial by trial.

The form of a file::

    title = "GEMM"
    question = "What does doubling K cost?"
    [defaults]                      # any option of a run
    trials = 100
    [[run]]
    name = "gemm"                   # letters, digits, - and _
    einsum = "ik,jk->ij"
    sizes = { i = 512, j = 512, k = [64, 128] }     # lists run every combination
    dtype = "bf16"
    seed = [0, 1]
"""

from __future__ import annotations

import itertools
import math
import re
import tomllib
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from tcptune.errors import InputError, TcptuneError, WorkError
from tcptune.ir.fields import did_you_mean
from tcptune.ir.files import read_json, read_text
from tcptune.ir.workload import Workload, einsum
from tcptune.search.entry import tuner_for
from tcptune.search.options import Progress
from tcptune.search.result import SearchResult
from tcptune.search.store import OtherStudy, has_outcomes, is_journal

RESULT_FILE = "result.json"
STUDY_FILE = "study.journal"
MOST_RUNS = 10_000
"""Searches of one suite: a week of minutes."""

_LONGEST_NAME = 200
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*\Z")


class _Options(BaseModel):
    """Options that a run may set and that ``[defaults]`` sets for all runs."""

    model_config = ConfigDict(extra="forbid", strict=True)

    dtype: str = "bf16"
    out_dtype: str | None = None
    layout: str = "padded"
    epilogue: str | None = None
    fuse: bool = True
    hbm_copies: int = 1
    reduce: str = "sum"
    profile: str = "vendor"
    trials: int = Field(200, ge=1)
    time_limit: float | None = Field(None, gt=0, allow_inf_nan=False)
    jobs: int = Field(1, ge=1)
    seed: int | list[int] = 0


class _Run(_Options):
    name: str
    einsum: str
    sizes: dict[str, int | list[int]]


class _File(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    title: str = ""
    question: str = ""
    defaults: dict[str, Any] = Field(default_factory=dict)
    run: list[dict[str, Any]] = Field(min_length=1)


@dataclass(frozen=True)
class SuiteRun:
    """One search of a suite; `options` are some of the fields of `search.options.Options`."""

    name: str
    workload: Workload
    options: dict[str, Any]

    def identity(self) -> dict[str, Any]:
        """What must be equal for a finished search to be this one."""
        kept = {k: self.options[k] for k in ("trials", "seed", "profile")}
        return {"workload": self.workload.to_json(), **kept}


@dataclass(frozen=True)
class SuiteFailure:
    """A search of a suite that found nothing: no legal plan, too large, or a file in the place of its journal that is none."""

    name: str
    error: TcptuneError


@dataclass(frozen=True)
class SuiteOutcome:
    """What became of the searches of a suite, in order.

    Attributes:
        finished: folders with whole results.
        failures: searches that found nothing; they do not stop the others.
        interrupted: whether the user ended it before its last search.
    """

    finished: tuple[Path, ...]
    failures: tuple[SuiteFailure, ...]
    interrupted: bool = False


@dataclass(frozen=True)
class Suite:
    """A validated suite; `config` is the file as it was read."""

    title: str
    question: str
    runs: tuple[SuiteRun, ...]
    config: dict[str, Any]


def load_suite(path: Path) -> Suite:
    """Reads and validates a suite; every workload is checked before the first search starts.

    Raises:
        InputError: the file cannot be read, is no TOML, has an unknown or wrong field, or two runs of one name.
    """
    text = read_text(path)
    try:
        raw = tomllib.loads(text)
    except RecursionError as error:
        raise InputError(f"{path} nests too deeply to be read") from error
    except ValueError as error:
        raise InputError(f"{path} is not TOML: {error}") from error
    file = _validated(_File, raw, str(path))
    entries = [_validated(_Run, {**file.defaults, **entry}, _where(entry, path)) for entry in file.run]
    count = sum(_combinations(entry) for entry in entries)
    if count > MOST_RUNS:
        largest = max(entries, key=_combinations)
        raise InputError(
            f"{path} has {count:,} searches, at most {MOST_RUNS:,} are allowed",
            hint=f"run {largest.name!r:.60} alone has {_combinations(largest):,}: every combination of its lists; shorten them",
        )
    runs = tuple(run for entry in entries for run in _expanded(entry))
    if not runs:
        raise InputError(f"{path} has no search", hint="a list of sizes or seeds is empty")
    for name, times in Counter(run.name for run in runs).items():
        if times > 1:
            raise InputError(f"{path} has two runs called {name!r}")
    return Suite(file.title or path.stem, file.question, runs, raw)


def _validated(model: type[Any], raw: dict[str, Any], where: str) -> Any:
    try:
        return model.model_validate(raw)
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(str(part) for part in first["loc"]) or "the file"
        if first["type"] == "extra_forbidden":
            raise InputError(f"{where}: {field} is no key of it", hint=did_you_mean(field, model.model_fields)) from error
        raise InputError(f"{where}: {field}: {first['msg']}") from error


def _where(entry: dict[str, Any], path: Path) -> str:
    """A run in words, by its name where it has one."""
    return f"run {entry['name']!r:.60} of {path}" if "name" in entry else f"a run of {path}"


def _combinations(run: _Run) -> int:
    lists = [*run.sizes.values(), run.seed]
    return math.prod(len(values) for values in lists if isinstance(values, list))


def _expanded(run: _Run) -> Iterator[SuiteRun]:
    """One search for every combination of listed sizes and seeds; the name says which."""
    if not _NAME.match(run.name):
        raise InputError(f"run name {run.name!r}: letters, digits, - and _ only")
    axes = {axis: value if isinstance(value, list) else [value] for axis, value in run.sizes.items()}
    seeds = run.seed if isinstance(run.seed, list) else [run.seed]
    listed = [axis for axis, value in run.sizes.items() if isinstance(value, list)]
    for *sizes, seed in itertools.product(*axes.values(), seeds):
        chosen = dict(zip(axes, sizes, strict=True))
        name = "-".join([run.name, *(f"{axis}{chosen[axis]}" for axis in listed), *([f"s{seed}"] if isinstance(run.seed, list) else [])])
        workload = einsum(
            run.einsum, sizes=chosen, dtype=run.dtype, out_dtype=run.out_dtype, layout=run.layout, reduce=run.reduce,
            epilogue=run.epilogue, fuse=run.fuse, hbm_copies=run.hbm_copies,
        )  # fmt: skip
        options = {"trials": run.trials, "seed": seed, "jobs": run.jobs, "time_limit": run.time_limit, "profile": run.profile}
        if len(name) > _LONGEST_NAME:
            raise InputError(f"run name {name[:40]!r}… has {len(name)} characters", hint=f"at most {_LONGEST_NAME}: it becomes a folder")
        tuner_for(workload, **options)  # refuses options that no search can use
        yield SuiteRun(name, workload, options)


def finished(run: SuiteRun, folder: Path) -> bool:
    """Whether `folder` holds the whole result of this very search: nothing interrupted it, and its journal is gone.

    A search that its time limit ended is whole only for limits within the time that it took: a longer one may find more.
    """
    if (folder / STUDY_FILE).exists():
        return False
    try:
        document = read_json(folder / RESULT_FILE)
    except InputError:
        return False
    if not isinstance(document, dict) or document.get("stopped") == "interrupt":
        return False
    if document.get("stopped") == "time" and not _took(document, run.options["time_limit"]):
        return False
    return all(document.get(key) == value for key, value in run.identity().items())


def _took(document: dict[str, Any], limit: float | None) -> bool:
    """Whether the search of a result took all of a time limit."""
    taken = document.get("wall_time_s")
    return limit is not None and isinstance(taken, int | float) and limit <= taken


def run_suite(
    suite: Suite,
    folder: Path,
    save: Callable[[SearchResult, Path], object],
    *,
    resume: bool = True,
    watch: Callable[[SuiteRun, Progress | None], None] | None = None,
) -> SuiteOutcome:
    """Runs every search of a suite; one that finds nothing, or whose journal is none, is a failure in the outcome; the others go on.

    Args:
        folder: each run gets a folder of its name in it, with its study journal.
        save: writes a result into a folder; the result document comes to lie in ``result.json`` there.
        resume: finished searches are kept and journals continued (else everything starts anew).
        watch: called before each search with None (not for kept ones), and with its progress.

    Raises:
        InputError: a folder cannot be used; what is finished stays.
    """
    folders: list[Path] = []
    failures: list[SuiteFailure] = []
    for run in suite.runs:
        place = folder / run.name
        if resume and finished(run, place):
            folders.append(place)
            continue
        journal = place / STUDY_FILE
        _make(place)
        if not resume and is_journal(journal):
            journal.unlink()
        if watch is not None:
            watch(run, None)
        try:
            result = _search(run, journal, watch)
        except WorkError as error:
            failures.append(SuiteFailure(run.name, error))
            _remove_if_empty(place, journal)
            continue
        except InputError as error:  # its journal cannot be used
            failures.append(SuiteFailure(run.name, error))
            continue
        save(result, place)
        if result.stopped == "interrupt":
            return SuiteOutcome(tuple(folders), tuple(failures), interrupted=True)
        journal.unlink(missing_ok=True)
        folders.append(place)
    return SuiteOutcome(tuple(folders), tuple(failures))


def _remove_if_empty(place: Path, journal: Path) -> None:
    """A search that failed without having tried anything leaves nothing behind."""
    if is_journal(journal) and not has_outcomes(journal):
        journal.unlink()
    if not any(place.iterdir()):
        place.rmdir()


def _make(place: Path) -> None:
    try:
        place.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"cannot write {place}: {error.strerror}") from error


def _search(run: SuiteRun, journal: Path, watch: Callable[[SuiteRun, Progress | None], None] | None) -> SearchResult:
    tuner = tuner_for(run.workload, study=journal, **run.options)
    if watch is not None:
        tuner.progress = lambda state: watch(run, state)
    try:
        return tuner.run()
    except OtherStudy:
        journal.unlink()  # the suite or the program was changed: the old journal, one of ours, is of another search
        return tuner_for(run.workload, study=journal, **run.options).run()

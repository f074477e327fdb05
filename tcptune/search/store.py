"""The journal of a study: one checksummed line a step, appended and flushed, so that a kill loses at most the running trial.

The first line names the study (workload, seed, profile, the program's own text). A torn or corrupt tail is cut off when the journal is
opened; nothing before it is ever rewritten. A line with the right checksum that holds no step of ours refuses the whole file.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
import zlib
from collections.abc import Mapping as Dict
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, BinaryIO

from pydantic import ValidationError

from tcptune.errors import InputError, WorkError
from tcptune.ir.files import LARGEST_BYTES
from tcptune.search.journal_form import Step

SCHEMA = "tcptune/study/1"
DUPLICATE, REJECTED, SCHEDULED = "duplicate", "rejected", "scheduled"
"""Fates of candidates that were compiled; entries that were pruned have no outcome."""

UNPRICED = "unpriced"
"""Stands for the rule where a kernel is legal and no data prices one of its steps; such a candidate could have any makespan."""


@dataclass(frozen=True, slots=True)
class StepRecord:
    """One step of a search and what became of its candidates.

    Attributes:
        number: step number, from 0.
        kind: ``template``, ``explore``, ``fill``, ``suggest``, ``enumerate`` or ``tile``.
        entries: entries of the space that were explored.
        outcomes: for each entry (or the one candidate) the outcomes as documents; none for a pruned entry.
        params: the suggestion as the sampler's parameters.
    """

    number: int
    kind: str
    entries: list[int]
    outcomes: list[list[dict[str, Any]]]
    params: dict[str, Any]


class OtherStudy(InputError):
    """The file is a whole journal of ours, of a search that is not this one."""


@lru_cache(maxsize=1)
def program_version() -> str:
    """A digest of the text of every module that decides what a step is: what other text recorded would not be repeated by this one."""
    root = Path(__file__).parents[1]
    digest = hashlib.sha256()
    for place in (root / "errors.py", *(root / layer for layer in ("ir", "model", "exec", "solver", "search"))):
        for module in sorted(place.rglob("*.py")) if place.is_dir() else [place]:
            digest.update(module.relative_to(root).as_posix().encode() + b"\0" + module.read_bytes() + b"\0")
    return digest.hexdigest()[:16]


class Study:
    """An open journal; also works without a file (`path` None), then nothing is kept."""

    def __init__(self, path: Path | None, identity: Dict[str, Any]) -> None:
        """Opens or creates the journal.

        Raises:
            OtherStudy: the file is the journal of another study.
            InputError: it is no journal, holds what is no step, or cannot be opened.
            WorkError: its first line cannot be written.
        """
        self.identity = json.loads(json.dumps(identity))
        self.path = path
        self.records: dict[int, StepRecord] = {}
        self._file: BinaryIO | None = None
        if path is not None:
            self._open(path)

    def _open(self, path: Path) -> None:
        data = _content(path)
        lines, valid_bytes = _lines_of(data, path)
        first = {"schema": SCHEMA, "identity": self.identity}
        if not lines and not _line(first).startswith(data):  # a kill may tear the first line; anything else is not ours to overwrite
            raise InputError(f"{path} is not a study journal", hint=_likely_cause(data))
        if lines:
            _require_identity(lines[0], self.identity, path)
        records = [_record(line, number, path, self._axes()) for number, line in enumerate(lines[1:])]
        try:
            self._file = path.open("r+b" if path.exists() else "w+b", buffering=0)
            self._file.truncate(valid_bytes)
            self._file.seek(valid_bytes)
        except OSError as error:
            raise InputError(f"cannot use the study file {path}: {error.strerror}") from error
        if not lines:
            self._append(first)
        self.records = {record.number: record for record in records}

    def _axes(self) -> tuple[str, ...] | None:
        """The axes that every candidate of this study places, if its identity says so."""
        sizes = self.identity.get("workload", {}).get("sizes")
        return None if sizes is None else tuple(sorted(sizes))

    def record(self, step: StepRecord) -> None:
        """Keeps one finished step; it is on disk when this returns.

        Raises:
            WorkError: it cannot be written.
        """
        self.records[step.number] = step
        self._append(asdict(step))

    def _append(self, document: dict[str, Any]) -> None:
        if self._file is None:
            return
        left = memoryview(_line(document))
        try:
            while left:
                left = left[self._file.write(left) :]
            os.fsync(self._file.fileno())
        except OSError as error:
            raise WorkError(
                f"cannot write the study file {self.path}: {error.strerror}",
                hint="its whole steps are kept: make room, and the same command goes on from them",
            ) from error

    def close(self) -> None:
        if self._file is not None:
            file, self._file = self._file, None
            file.close()

    def __enter__(self) -> Study:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()


def has_outcomes(path: Path) -> bool:
    """Whether a journal holds a step that tried a candidate.

    Raises:
        InputError: it is no journal of ours.
    """
    lines, _ = _lines_of(_content(path), path)
    return any(outcomes for number, line in enumerate(lines[1:]) for outcomes in _record(line, number, path).outcomes)


def is_journal(path: Path) -> bool:
    """Whether a file begins as a journal of ours, so that nobody else misses it."""
    try:
        data = _content(path).partition(b"\n")
        lines, _ = _lines_of(data[0] + data[1], path)
    except InputError:
        return False
    return bool(lines) and lines[0].get("schema") == SCHEMA


def require_place(path: Path) -> None:
    """Refuses a path that no journal can have, before anything else is made.

    Raises:
        InputError: its folder is missing, or it is there and no regular file of a length that is read.
    """
    if not path.parent.is_dir():
        raise InputError(f"cannot use the study file {path}: there is no folder {path.parent}", hint="make it, or choose another place")
    try:
        kind = path.stat()
    except FileNotFoundError:
        return
    except OSError as error:
        raise InputError(f"cannot use the study file {path}: {error.strerror}") from error
    if stat.S_ISDIR(kind.st_mode):
        raise InputError(f"cannot use the study file {path}: it is a folder", hint="give the name of a file")
    if not stat.S_ISREG(kind.st_mode):
        raise InputError(
            f"cannot use the study file {path}: it is a device or a pipe",
            hint="a journal is a regular file; leave --study away to keep none",
        )
    if kind.st_size > LARGEST_BYTES:
        raise InputError(f"cannot use the study file {path}: it is longer than {LARGEST_BYTES >> 20} MiB")


def _content(path: Path) -> bytes:
    require_place(path)
    try:
        return path.read_bytes() if path.exists() else b""
    except OSError as error:
        raise InputError(f"cannot use the study file {path}: {error.strerror}") from error


def _require_identity(head: dict[str, Any], identity: Dict[str, Any], path: Path) -> None:
    if head.get("schema") != SCHEMA or not isinstance(head.get("identity"), dict):
        raise InputError(f"{path} is not a study journal")
    found = head["identity"]
    if found != identity:
        changed = sorted(k for k in {*found, *identity} if found.get(k) != identity.get(k))
        hint = f"it differs in: {', '.join(changed)}"
        if changed == ["program"]:
            hint = "another version of tcptune wrote it: start with another study file"
        raise OtherStudy(f"{path} belongs to another study", hint=hint)


def _likely_cause(data: bytes) -> str | None:
    """Why a file without a whole first line is none, where that can be seen."""
    if data.startswith(b"\xef\xbb\xbf"):
        return "it begins with a mark of byte order: an editor has rewritten it"
    checksum, _, body = data.partition(b"\r\n")[0].partition(b" ")
    if b"\r\n" in data and checksum == b"%08x" % zlib.crc32(body):
        return "its lines end in CR LF: an editor or a transfer has rewritten it; they end in LF"
    return None


def _line(document: dict[str, Any]) -> bytes:
    body = json.dumps(document, separators=(",", ":")).encode()
    return b"%08x %s\n" % (zlib.crc32(body), body)


def _record(line: dict[str, Any], number: int, path: Path, axes: tuple[str, ...] | None = None) -> StepRecord:
    """The step that a line holds; step `number` stands in line `number + 2`. `axes`: those that its candidates place, if known.

    Raises:
        InputError: it is no step, or another one.
    """
    where = f"line {number + 2} of {path}"
    try:
        step = Step.model_validate_json(json.dumps(line))
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(str(part) for part in first["loc"]) or "the step"
        raise InputError(f"{where} holds a step of another form: {field}: {first['msg']}", hint=_ANOTHER_FILE) from error
    if step.number != number:
        raise InputError(f"{where} holds step {step.number}, expected step {number}", hint=_ANOTHER_FILE)
    if axes is not None and (strange := step.axes() - {axes}):
        raise InputError(f"{where} places the axes {', '.join(strange.pop())}, expected {', '.join(axes)}", hint=_ANOTHER_FILE)
    return StepRecord(**line)


_ANOTHER_FILE = "it was edited, or another program wrote it: start with another study file"


def _lines_of(data: bytes, path: Path) -> tuple[list[dict[str, Any]], int]:
    try:
        return _valid_lines(data)
    except InputError as error:
        raise InputError(f"{path}: {error.message}", hint=error.hint) from error


def _valid_lines(data: bytes) -> tuple[list[dict[str, Any]], int]:
    """Documents of the leading intact lines, and how many bytes they take.

    Raises:
        InputError: a line with the right checksum is no JSON object.
    """
    documents: list[dict[str, Any]] = []
    end = 0
    while (newline := data.find(b"\n", end)) >= 0:
        checksum, _, body = data[end:newline].partition(b" ")
        if checksum != b"%08x" % zlib.crc32(body):
            break
        try:
            document = json.loads(body)
        except (RecursionError, ValueError) as error:  # no JSON, no text, or integers of thousands of digits
            raise InputError(f"line {len(documents) + 1} is not JSON that can be read", hint=_ANOTHER_FILE) from error
        if not isinstance(document, dict):
            raise InputError(f"line {len(documents) + 1} holds no object", hint=_ANOTHER_FILE)
        documents.append(document)
        end = newline + 1
    return documents, end

"""The journal of a study: one checksummed line a step, appended and flushed, so that a kill loses at most the running trial.

The first line names the study (workload, seed, profile, version). A torn or corrupt tail is cut off when the journal is opened; nothing
before it is ever rewritten.
"""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Mapping as Dict
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, BinaryIO

from tcptune.errors import InputError

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


class Study:
    """An open journal; also works without a file (`path` None), then nothing is kept."""

    def __init__(self, path: Path | None, identity: Dict[str, Any]) -> None:
        """Opens or creates the journal.

        Raises:
            InputError: the file belongs to another study, is no journal, or cannot be written.
        """
        self.identity = json.loads(json.dumps(identity))
        self.records: dict[int, StepRecord] = {}
        self._file: BinaryIO | None = None
        if path is None:
            return
        try:
            self._open(path)
        except OSError as error:
            raise InputError(f"cannot use the study file {path}: {error.strerror}") from error

    def _open(self, path: Path) -> None:
        data = path.read_bytes() if path.exists() else b""
        lines, valid_bytes = _valid_lines(data)
        first = {"schema": SCHEMA, "identity": self.identity}
        if not lines and not _line(first).startswith(data):  # a kill may tear the first line; anything else is not ours to overwrite
            raise InputError(f"{path} is not a study journal")
        if lines:
            head = lines[0]
            if head.get("schema") != SCHEMA or not isinstance(head.get("identity"), dict):
                raise InputError(f"{path} is not a study journal")
            if head["identity"] != self.identity:
                changed = sorted(k for k in {*head["identity"], *self.identity} if head["identity"].get(k) != self.identity.get(k))
                raise InputError(f"{path} belongs to another study", hint=f"it differs in: {', '.join(changed)}")
        records = [_record(line, path) for line in lines[1:]]
        self._file = path.open("r+b" if path.exists() else "w+b")
        self._file.truncate(valid_bytes)
        self._file.seek(valid_bytes)
        if not lines:
            self._append(first)
        self.records = {record.number: record for record in records}

    def record(self, step: StepRecord) -> None:
        """Keeps one finished step; it is on disk when this returns."""
        self.records[step.number] = step
        self._append(asdict(step))

    def _append(self, document: dict[str, Any]) -> None:
        if self._file is None:
            return
        self._file.write(_line(document))
        self._file.flush()
        os.fsync(self._file.fileno())

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def __enter__(self) -> Study:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()


def has_outcomes(path: Path) -> bool:
    """Whether a journal holds a step that tried a candidate."""
    lines, _ = _valid_lines(path.read_bytes())
    return any(outcomes for line in lines[1:] for outcomes in line["outcomes"])


def _line(document: dict[str, Any]) -> bytes:
    body = json.dumps(document, separators=(",", ":")).encode()
    return b"%08x %s\n" % (zlib.crc32(body), body)


def _record(line: dict[str, Any], path: Path) -> StepRecord:
    """The step that a line holds.

    Raises:
        InputError: another program wrote it.
    """
    if line.keys() != {f.name for f in fields(StepRecord)} or not isinstance(line["outcomes"], list):
        raise InputError(f"{path} holds steps of another form", hint="start with another study file")
    return StepRecord(**line)


def _valid_lines(data: bytes) -> tuple[list[dict[str, Any]], int]:
    """Documents of the leading intact lines, and how many bytes they take."""
    documents: list[dict[str, Any]] = []
    end = 0
    while (newline := data.find(b"\n", end)) >= 0:
        checksum, _, body = data[end:newline].partition(b" ")
        if checksum != b"%08x" % zlib.crc32(body):
            break
        document = json.loads(body)
        if not isinstance(document, dict):
            break
        documents.append(document)
        end = newline + 1
    return documents, end

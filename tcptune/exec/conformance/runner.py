"""The corpus runner: loads files, picks the handler of each case's kind and collects pass, fail and known.

A kind or a `what` that nothing can run counts as failed, never as skipped.
"""

from __future__ import annotations

import difflib
import importlib
import tomllib
import traceback
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from tcptune.errors import InputError, RuleViolation, TcptuneError
from tcptune.exec.conformance.kinds.compare import expect_refusal
from tcptune.exec.conformance.registry import (
    COSTS,
    Case,
    Handler,
    Mismatch,
    expect_nothing_unread,
    find_table,
    watched,
)
from tcptune.ir.files import read_json

CHAPTERS = (
    "mapping_and_streams",
    "dma_and_memory",
    "adapter_switch_registers",
    "contraction_cast_transpose_commit",
    "vector_engine",
    "kernels_and_scheduling",
)
KIND_MODULES = ("mapping", "sequencer", "chain", "kernel", "vcg")
"""Modules of `kinds` with a function ``run(case)`` for the kind of the same name."""

_PACKAGE = __name__.rpartition(".")[0]


@dataclass(frozen=True, slots=True)
class CaseResult:
    """Outcome of one case: ``passed``, ``failed`` or ``known`` (listed with its reason in data/known_issues.toml)."""

    id: str
    chapter: str
    outcome: str
    why: str = ""


@cache
def _kind_handlers() -> dict[str, Handler]:
    """Handlers of the kinds with a module of their own; importing a chapter's module registers its questions."""
    for chapter in CHAPTERS:
        importlib.import_module(f"{_PACKAGE}.questions.{chapter}")
    return {kind: importlib.import_module(f"{_PACKAGE}.kinds.{kind}").run for kind in KIND_MODULES}


@cache
def known_issues() -> dict[str, str]:
    """Case ids that are wrong in the corpus, with the reason."""
    path = Path(__file__).parents[2] / "data" / "known_issues.toml"
    with path.open("rb") as file:
        return {entry["id"]: entry["reason"] for entry in tomllib.load(file).get("case", [])}


def _handler(case: Case) -> Handler:
    kinds = _kind_handlers()
    kind = case["kind"]
    if kind in ("cost", "table"):
        what = str(case["what"])
        found = COSTS.get(what) if kind == "cost" else find_table(what)
        if found is None:
            raise Mismatch(f"nothing answers the {kind} question {what!r:.200}")
        return found
    if not isinstance(kind, str) or kind not in kinds:
        known = ", ".join([*kinds, "cost", "table"])
        raise Mismatch(f"nothing runs cases of kind {kind!r:.60} (kinds: {known})")
    return kinds[kind]


def _answer(case: Case) -> None:
    """Runs the case's question; a refusal that it does not judge itself is the model's answer, held against the case's verdict.

    Raises:
        Mismatch: the model and the case disagree.
    """
    try:
        _handler(case)(case)
    except RuleViolation as refusal:
        if case.get("expect", {}).get("verdict", "accept") != "reject":
            raise
        expect_refusal(refusal, case["expect"])
        return
    expect_nothing_unread(case)


def run_case(raw: Any, chapter: str = "", place: int = 0) -> CaseResult:
    """Runs one case; a crash of the model is a failure with its place, not an exception.

    `place` is where the case stands in its file; it names cases that have no id.
    """
    if not isinstance(raw, dict):
        return CaseResult(f"{chapter}[{place}]", chapter, "failed", f"a case is an object, got {raw!r:.60}")
    case = watched(raw)
    case_id = str(case.get("id", f"{chapter}[{place}]"))
    try:
        _answer(case)
    except Mismatch as error:
        outcome, why = "failed", str(error)
    except TcptuneError as error:
        outcome, why = "failed", error.render().replace("\n", " | ")
    except (
        ArithmeticError,
        AssertionError,
        AttributeError,
        LookupError,
        RuntimeError,
        StopIteration,
        TypeError,
        ValueError,
    ) as error:
        at = traceback.extract_tb(error.__traceback__)[-1]
        why = f"a field has a value that nothing can use ({type(error).__name__}: {error!s:.300} at {Path(at.filename).name}:{at.lineno})"
        outcome = "failed"
    else:
        return CaseResult(case_id, chapter, "passed")
    if case_id in known_issues():
        return CaseResult(case_id, chapter, "known", known_issues()[case_id])
    return CaseResult(case_id, chapter, outcome, why)


def corpus_files(path: Path | None = None) -> list[Path]:
    """Files of the corpus: `path` (a file or folder), else the shared folder beside the project, else the project's own copy.

    Raises:
        InputError: nothing there.
    """
    root = Path(__file__).parents[3]
    places = [path] if path else [root.parent / "shared" / "conformance", root / "tests" / "conformance" / "data"]
    for place in places:
        try:
            if place.is_file():
                return [place]
            files = sorted(place.glob("*.json")) if place.is_dir() else []
        except (OSError, ValueError) as cause:  # a name that no file can have
            raise InputError(f"cannot read {str(place)[:200]!r}: {cause.args[-1]}") from cause
        if files:
            return files
    raise InputError(f"no conformance cases in {', '.join(str(p) for p in places)}", hint="give a corpus file or a folder of .json files")


def load_cases(file: Path) -> list[Any]:
    """Cases of one file; what is no object among them is for `run_case` to refuse.

    Raises:
        InputError: not JSON, or no list of cases in it.
    """
    document = read_json(file)
    cases = document.get("cases") if isinstance(document, dict) else None
    if not isinstance(cases, list):
        raise InputError(f"{file} holds no list of cases", hint='the form is {"cases": [{"id": …, "kind": …}, …]}')
    return cases


@dataclass(frozen=True, slots=True)
class Question:
    """A case of the corpus with where it stands; `unread` says why its whole file could not be read."""

    chapter: str
    place: int
    case: Any
    unread: str = ""

    @property
    def id(self) -> str:
        """The case's id, or the name of its file and its place there."""
        if self.unread:
            return self.chapter
        return str(self.case.get("id", "")) if isinstance(self.case, dict) else f"{self.chapter}[{self.place}]"

    def answer(self) -> CaseResult:
        """Runs the case; of a file that cannot be read, its failure."""
        if self.unread:
            return CaseResult(self.id, self.chapter, "failed", self.unread)
        return run_case(self.case, self.chapter, self.place)


def questions_in(files: Sequence[Path], ids: str = "") -> list[Question]:
    """Every case whose id starts with `ids`; a file among several that cannot be read is one that fails.

    Raises:
        InputError: a single file that cannot be read, or no case has such an id.
    """
    found: list[Question] = []
    for file in files:
        try:
            cases = load_cases(file)
        except InputError as error:
            if len(files) == 1:
                raise
            found.append(Question(file.stem, 0, None, error.message))
            continue
        found.extend(Question(file.stem, place, case) for place, case in enumerate(cases))
    chosen = [question for question in found if question.id.startswith(ids)]
    if ids and not chosen:
        near = difflib.get_close_matches(ids, [question.id for question in found], n=3, cutoff=0.3)
        raise InputError(f"no case has an id that starts with {ids[:60]!r}", hint=f"ids like it: {', '.join(near)}" if near else None)
    return chosen


def run_corpus(files: Sequence[Path], ids: str = "") -> Iterator[CaseResult]:
    """Runs every case whose id starts with `ids`; see `questions_in`."""
    for question in questions_in(files, ids):
        yield question.answer()

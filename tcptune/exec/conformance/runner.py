"""The corpus runner: loads files, picks the handler of each case's kind and collects pass, fail and known.

A kind or a `what` that nothing can run counts as failed, never as skipped.
"""

from __future__ import annotations

import importlib
import tomllib
import traceback
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tcptune.errors import InputError, TcptuneError
from tcptune.exec.conformance.registry import COSTS, Case, Handler, Mismatch, find_table
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
    kind = case.get("kind")
    if kind in ("cost", "table"):
        what = str(case.get("what", ""))
        found = COSTS.get(what) if kind == "cost" else find_table(what)
        if found is None:
            raise Mismatch(f"nothing answers the {kind} question {case.get('what')!r}")
        return found
    if kind not in kinds:
        raise Mismatch(f"nothing runs cases of kind {kind!r}")
    return kinds[kind]


def run_case(case: Case, chapter: str = "") -> CaseResult:
    """Runs one case; a crash of the model is a failure with its place, not an exception."""
    case_id = str(case.get("id", "?"))
    try:
        _handler(case)(case)
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
        TypeError,
        ValueError,
    ) as error:
        place = traceback.extract_tb(error.__traceback__)[-1]
        outcome, why = "failed", f"crash: {type(error).__name__}: {error} at {Path(place.filename).name}:{place.lineno}"
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
        if place.is_file():
            return [place]
        files = sorted(place.glob("*.json")) if place.is_dir() else []
        if files:
            return files
    raise InputError(f"no conformance cases in {', '.join(str(p) for p in places)}")


def load_cases(file: Path) -> list[Case]:
    """Cases of one file.

    Raises:
        InputError: not JSON, or no list of cases in it.
    """
    document = read_json(file)
    cases = document.get("cases") if isinstance(document, dict) else None
    if not isinstance(cases, list) or not all(isinstance(c, dict) for c in cases):
        raise InputError(f"{file} holds no list of cases")
    return cases


def run_corpus(files: Iterable[Path], ids: str = "") -> Iterator[CaseResult]:
    """Runs every case whose id starts with `ids`."""
    for file in files:
        for case in load_cases(file):
            if str(case.get("id", "")).startswith(ids):
                yield run_case(case, file.stem)

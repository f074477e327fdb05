"""Entry to the search: contractions and products go to `search.tuner`, workloads of one input or of f32 to `search.vector_search`."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import Any

from tcptune.errors import InputError
from tcptune.ir.workload import Workload
from tcptune.search.result import SearchResult
from tcptune.search.tuner import Tuner
from tcptune.search.vector_search import VectorTuner

AnyTuner = Tuner | VectorTuner


def tuner_for(workload: Workload, **options: Any) -> AnyTuner:
    """The search that suits a workload; the options are the fields of `Tuner`.

    Raises:
        InputError: an option cannot be used.
    """
    if not isinstance(workload, Workload):
        raise InputError(f"tune takes a workload, got {workload!r:.60}", hint='make one with einsum("ik,jk->ij", i=512, j=512, k=64)')
    contracts = len(workload.inputs) == 2 and workload.dtype.name != "f32"  # f32 has no multiplier in the Contraction Engine (CE-014)
    kind: type[Tuner] | type[VectorTuner] = Tuner if contracts else VectorTuner
    return kind(workload, **_checked(options, kind))


def _checked(options: dict[str, Any], kind: type[AnyTuner]) -> dict[str, Any]:
    """Options by name and kind; ranges are for the tuner to check."""
    known = [field.name for field in fields(kind) if field.init and field.name != "workload"]
    for name, value in options.items():
        if name not in known:
            raise InputError(f"there is no search option {name!r}", hint=f"options: {', '.join(known)}")
        if name == "time_limit" and value is not None and (isinstance(value, bool) or not isinstance(value, int | float)):
            raise InputError(f"time_limit must be a number of seconds, got {value!r:.60}")
        if name in ("profile", "command") and not isinstance(value, str):
            raise InputError(f"{name} must be a text, got {value!r:.60}")
        if name == "study" and value is not None and not isinstance(value, str | Path):
            raise InputError(f"study must be the path of a journal file, got {value!r:.60}")
        if name == "progress" and value is not None and not callable(value):
            raise InputError(f"progress must be a function of the search's state, got {value!r:.60}")
    study = options.get("study")
    return {**options, "study": Path(study)} if isinstance(study, str) else options


def tune(workload: Workload, **options: Any) -> SearchResult:
    """Searches a fast kernel for a workload; the options are the fields of `Tuner`.

    >>> from tcptune.ir.workload import einsum
    >>> tune(einsum("i->i", i=2048, dtype="i32", epilogue="add 1")).makespan < 12_602 // 2
    True

    Raises:
        InputError: an option cannot be used. WorkError: no legal plan.
    """
    return tuner_for(workload, **options).run()

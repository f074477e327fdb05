"""Entry to the search: contractions and products go to `search.tuner`, workloads of one input or of f32 to `search.vector_search`."""

from __future__ import annotations

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
    contracts = len(workload.inputs) == 2 and workload.dtype.name != "f32"  # f32 has no multiplier in the Contraction Engine (CE-014)
    kind: type[Tuner] | type[VectorTuner] = Tuner if contracts else VectorTuner
    try:
        return kind(workload, **options)
    except TypeError as error:
        raise InputError(f"unknown search option: {error}") from error


def tune(workload: Workload, **options: Any) -> SearchResult:
    """Searches a fast kernel for a workload; the options are the fields of `Tuner`.

    >>> from tcptune.ir.workload import einsum
    >>> tune(einsum("i->i", i=2048, dtype="i32", epilogue="add 1")).makespan < 12_602 // 2
    True

    Raises:
        InputError: an option cannot be used. WorkError: no legal plan.
    """
    return tuner_for(workload, **options).run()

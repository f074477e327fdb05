"""Entry to the search: contractions and products go to `search.tuner`, workloads of one input or of f32 to `search.vector_search`."""

from __future__ import annotations

from typing import Any

from tcptune.errors import InputError, WorkError
from tcptune.exec.lowering.candidates import is_contraction
from tcptune.ir.workload import Workload
from tcptune.search.frame import Search
from tcptune.search.options import Options
from tcptune.search.result import SearchResult
from tcptune.search.space import Space
from tcptune.search.tiled.tuner import TiledTuner
from tcptune.search.tuner import Tuner
from tcptune.search.vector_search import VectorTuner


def tuner_for(workload: Workload, **options: Any) -> Search:
    """The search that suits a workload; the options are the fields of `Options`.

    Raises:
        InputError: an option cannot be used.
    """
    if not isinstance(workload, Workload):
        raise InputError(f"tune takes a workload, got {workload!r:.60}", hint='make one with einsum("ik,jk->ij", i=512, j=512, k=64)')
    chosen = Options.of(options)
    if not is_contraction(workload):
        return VectorTuner(workload, chosen)
    return Tuner(workload, chosen) if fits_one_pass(workload) else TiledTuner(workload, chosen)


def fits_one_pass(workload: Workload) -> bool:
    """Whether some placement holds a whole contraction in the memories at once."""
    try:
        Space(workload).prepare()
    except WorkError:
        return False
    return True


def tune(workload: Workload, **options: Any) -> SearchResult:
    """Searches a fast kernel for a workload; the options are the fields of `Options`.

    >>> from tcptune.ir.workload import einsum
    >>> tune(einsum("i->i", i=2048, dtype="i32", epilogue="add 1")).makespan < 12_602 // 2
    True

    Raises:
        InputError: an option cannot be used. WorkError: no legal plan.
    """
    return tuner_for(workload, **options).run()

"""Entry to the search: contractions and products go to `search.tuner`, which hands on what no pass holds, long ones to `search.tiled`;
workloads of one input or of f32 go to `search.vector_search`.
"""

from __future__ import annotations

import math
from typing import Any

from tcptune.errors import InputError
from tcptune.exec.lowering.candidates import is_contraction
from tcptune.ir.workload import Workload
from tcptune.search.frame import Search
from tcptune.search.options import Options
from tcptune.search.result import SearchResult
from tcptune.search.tiled.tuner import TiledTuner
from tcptune.search.tuner import Tuner
from tcptune.search.vector_search import VectorTuner

ONE_PASS_PRODUCTS = 1 << 27
"""Products of a contraction that is searched in one pass: above, tiles win more by overlap than their transfers cost in startups."""

ONE_PASS_BYTES = 1 << 25
"""Bytes of its largest tensor, likewise."""


def tuner_for(workload: Workload, **options: Any) -> Search[Any, Any]:
    """The search that suits a workload; the options are the fields of `Options`.

    Raises:
        InputError: an option cannot be used.
    """
    if not isinstance(workload, Workload):
        raise InputError(f"tune takes a workload, got {workload!r:.60}", hint='make one with einsum("ik,jk->ij", i=512, j=512, k=64)')
    chosen = Options.of(options)
    if not is_contraction(workload):
        return VectorTuner(workload, chosen)
    return TiledTuner(workload, chosen) if is_large(workload) else Tuner(workload, chosen)


def is_large(workload: Workload) -> bool:
    """Whether a contraction takes so long that tiles, whose loads run beside passes, are tried beside one pass; its oracle is long, too."""
    stored = max(workload.bytes_of(axes, element) for axes, element in workload.tensors())
    return math.prod(size for _, size in workload.sizes) > ONE_PASS_PRODUCTS or stored > ONE_PASS_BYTES


def tune(workload: Workload, **options: Any) -> SearchResult:
    """Searches a fast kernel for a workload; the options are the fields of `Options`.

    >>> from tcptune.ir.workload import einsum
    >>> tune(einsum("i->i", i=2048, dtype="i32", epilogue="add 1")).makespan < 12_602 // 2
    True

    Raises:
        InputError: an option cannot be used. WorkError: no legal plan.
    """
    return tuner_for(workload, **options).run()

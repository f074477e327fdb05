"""The Python interface: `tt.einsum` describes a workload, `tt.tune` searches a kernel for it, `tt.axes` declares axes of mappings."""

from __future__ import annotations

from collections.abc import Mapping as Dict

from tcptune.ir.mappings.axes import Axes
from tcptune.ir.workload import Workload, einsum
from tcptune.search.entry import tune
from tcptune.search.result import SearchResult


def axes(sizes: Dict[str, int] | None = None, /, **more: int) -> Axes:
    """Axes with their sizes, by keyword or as a dictionary; the entry to mapping expressions.

    >>> m = axes(A=8, B=512).mapping("B / 64, B % 64")
    >>> m.size, m.equivalent(axes(A=8, B=512).mapping("B"))
    (512, True)

    Raises:
        RuleViolation: MAP-003, a name or size that is not allowed.
    """
    return Axes({**Axes(sizes), **more})


__all__ = ["Axes", "SearchResult", "Workload", "axes", "einsum", "tune"]

"""Repeated searches of one workload: median and spread of their makespans over the seeds."""

from __future__ import annotations

import json
from collections.abc import Sequence
from statistics import median
from typing import Any

from tcptune.reports.tables import columns

SPREAD = columns(
    "workload:workload",
    "runs:runs#",
    "seeds:seeds",
    "median:median (cycles)#",
    "least:least (cycles)#",
    "most:most (cycles)#",
    "spread:most / least - 1 (%)#",
)
_OPTIONS = ("workload", "profile", "trials")


def spread_rows(results: Sequence[dict[str, Any]], titles: Sequence[str]) -> list[dict[str, Any]]:
    """A row for every workload that was searched with several seeds and otherwise equal options.

    Args:
        results: ``search-result/1`` documents.
        titles: how each is called.
    """
    groups: dict[str, list[int]] = {}
    for place, result in enumerate(results):
        key = json.dumps({name: result.get(name) for name in _OPTIONS}, sort_keys=True)
        groups.setdefault(key, []).append(place)
    rows = []
    for places in groups.values():
        seeds = sorted({int(results[place].get("seed", 0)) for place in places})
        if len(seeds) < 2:
            continue
        makespans = [int(results[place]["makespan"]) for place in places]
        least, most = min(makespans), max(makespans)
        rows.append(
            {
                "workload": titles[places[0]],
                "runs": len(places),
                "seeds": seeds,
                "median": median(makespans),
                "least": least,
                "most": most,
                "spread": round(100 * (most / least - 1), 2),
            }
        )
    return rows

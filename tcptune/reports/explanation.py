"""Why the best plan is the best and what limits it now, as data: what the documents of a search say beside its figures."""

from __future__ import annotations

from typing import Any

from tcptune.reports.result_view import differences, limit_words, runner_up, runner_up_words
from tcptune.reports.schedule_analysis import analyse
from tcptune.search.result import SearchResult


def result_document(result: SearchResult, files: dict[str, str]) -> dict[str, Any]:
    """The ``search-result/1`` document with its explanation; `files` maps a name to its path relative to the result folder."""
    return {**result.to_json(files), "explanation": explanation(result)}


def explanation(result: SearchResult) -> dict[str, Any]:
    """What limits the best plan, and how the runner-up differs.

    ``runner_up.terms`` are the cycles that each part takes more in the runner-up (parts that differ, the largest first); the worth of every
    choice is ``knob_worth`` of the document.
    """
    second = runner_up(result)
    if second is None:
        return {"limits": limit_words(analyse(result.schedule)), "runner_up": None}
    rows = [row for row in differences(result.best, second)[:-1] if row["difference"]]
    return {
        "limits": limit_words(analyse(result.schedule)),
        "runner_up": {
            "makespan": second.makespan,
            "terms": {row["part"]: row["difference"] for row in rows},
            "why": runner_up_words(result.best, second),
        },
    }

"""Repeats of a search with several seeds are summed up by their median and spread."""

from dataclasses import replace
from statistics import median

from tcptune.reports.compare import Run, comparison_html, comparison_text, repeated
from tests.reports.schedules import search_result

MAKESPANS = {0: 1000, 1: 1100, 2: 1040}


def run(name: str, seed: int, makespan: int, **changes) -> Run:
    document = search_result().to_json()
    document.update({"seed": seed, "makespan": makespan, "lower_bound": 900, "gap": makespan / 900 - 1, **changes})
    return Run(name, document)


def test_median_and_spread_over_the_seeds():
    runs = [run(f"s{seed}", seed, makespan) for seed, makespan in MAKESPANS.items()]
    other = run("other", 0, 5000, workload={**runs[0].result["workload"], "sizes": {"i": 1, "j": 1, "k": 1}})
    (row,) = repeated([*runs, other])
    assert (row["runs"], row["seeds"], row["least"], row["most"]) == (3, [0, 1, 2], 1000, 1100)
    assert row["median"] == median(MAKESPANS.values()) == 1040
    assert row["spread"] == 10.0
    assert "1,040" in comparison_text([*runs, other])
    assert "Over the seeds" in comparison_html([*runs, other])


def test_one_seed_has_no_spread():
    first = run("a", 0, 1000)
    assert repeated([first, replace(first, name="b")]) == []
    assert repeated([first, run("longer", 1, 900, trials=1)]) == []
    assert "median" not in comparison_text([first])

"""Compares finished searches by their result folders: one table (terminal, CSV, HTML), schedules on one scale, what differs.

A sweep's table is the same comparison over the runs of the sweep.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping as Dict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from tcptune.errors import InputError
from tcptune.exec.scheduling.schedule_json import LANES, read_schedule
from tcptune.ir.files import is_file, read_json, read_text, write_text
from tcptune.ir.schedule import Schedule
from tcptune.reports.html import picture, render
from tcptune.reports.result_view import placement_words, workload_words
from tcptune.reports.schedule_analysis import Analysis, analyse, named
from tcptune.reports.spread import SPREAD, spread_rows
from tcptune.reports.tables import Column, columns, csv_text, text_table
from tcptune.reports.timeline import timeline
from tcptune.search.result import SCHEMA, kernel_hash

NEAR_THE_END = 1.05
"""A plan within this factor of the final makespan counts as found."""

SUMMARY = columns(
    "name:run",
    "workload:workload",
    "sizes:sizes",
    "dtype:type",
    "makespan:makespan (cycles)#",
    "lower_bound:lower bound (cycles)#",
    "gap:gap (%)#",
    "proven:proven",
    "default:default (cycles)#",
    "speedup:default / makespan#",
    "against_first:against first#",
    "oracle:oracle",
    "scheduled:scheduled#",
    "near_end_s:within 5 % after (s)#",
    "wall_time_s:search (s)#",
    "kernel_hash:kernel",
)
TERMINAL = tuple(c for c in SUMMARY if c.key not in ("sizes", "scheduled", "kernel_hash", "against_first"))
PAGE = columns(
    "name:run",
    "what:workload",
    "makespan:makespan#",
    "lower_bound:bound#",
    "gap:gap %#",
    "proven:proven",
    "default:default#",
    "speedup:default / makespan#",
    "against_first:against first#",
    "oracle:oracle",
    "near_end_s:5 % in s#",
    "wall_time_s:search s#",
    "kernel_hash:kernel",
)
_OPERATIONS = 80


class _Strict(BaseModel):
    model_config = ConfigDict(strict=True)


class _Best(_Strict):
    placement: dict[str, dict[str, int]] = {}
    knobs: dict[str, Any] = {}
    terms: dict[str, int] = {}
    busy: dict[str, int] = {}


class _Default(_Strict):
    makespan: int | None = Field(None, gt=0)


class _Workload(_Strict):
    sizes: dict[str, int] = {}


class _Document(_Strict):
    """The fields of a search result that comparisons read."""

    workload: _Workload
    seed: int = 0
    makespan: int = Field(gt=0)
    lower_bound: int = Field(gt=0)
    gap: float = Field(allow_inf_nan=False)
    default: _Default | None = None
    oracle: dict[str, Any] | None = None
    candidates: dict[str, Any] | None = None
    best: _Best | None = None
    wall_time_s: float = Field(0.0, allow_inf_nan=False)


@dataclass(frozen=True)
class Run:
    """One finished search.

    Attributes:
        name: how tables call it.
        result: its ``search-result/1`` document.
        folder: where its files are, None if only the document is known.
    """

    name: str
    result: dict[str, Any]
    folder: Path | None = None

    @classmethod
    def load(cls, folder: Path) -> Run:
        """The run in a result folder.

        Raises:
            InputError: there is no readable result of the right schema.
        """
        path = folder / "result.json"
        if not is_file(path):
            raise InputError(f"{folder} is no result folder: cannot read result.json", hint="give folders that `tcptune search` wrote")
        document = read_json(path)
        if not isinstance(document, dict) or document.get("schema") != SCHEMA:
            raise InputError(f"{path} is no search result", hint=f"its schema must be {SCHEMA}")
        try:
            _Document.model_validate(document)
        except ValidationError as error:
            first = error.errors()[0]
            raise InputError(f"{path} is no whole search result: {'.'.join(map(str, first['loc']))}: {first['msg']}") from error
        return cls(folder.name, document, folder)

    @cached_property
    def schedule(self) -> Schedule | None:
        """The schedule beside the result, None if it is not there."""
        if self.folder is None or not is_file(path := self.folder / "schedule.json"):
            return None
        return named(read_schedule(path))

    @property
    def makespan(self) -> int:
        return int(self.result["makespan"])

    @property
    def best(self) -> dict[str, Any]:
        return self.result.get("best") or {}

    def near_end_s(self) -> float | None:
        """Seconds until the best plan was within 5 % of the final one, None without a trace."""
        if self.folder is None or not is_file(path := self.folder / "trace.csv"):
            return None
        for row in csv.DictReader(read_text(path).splitlines()):
            try:
                makespan, elapsed_s = int(row["makespan"]), float(row["elapsed_s"])
            except (KeyError, TypeError, ValueError) as cause:
                raise InputError(f"{path} is no trace of a search") from cause
            if makespan <= NEAR_THE_END * self.makespan:
                return elapsed_s
        return None

    def kernel_hash(self) -> str:
        """The first eight digits of the kernel's hash: equal digits, equal kernels; empty without a kernel."""
        text = str(self.best.get("kernel", ""))
        return kernel_hash(text)[:8] if text else ""


def load_runs(folders: Sequence[Path]) -> list[Run]:
    """The runs of several folders; equal folder names are told apart by their parents."""
    for folder in folders:
        if is_file(folder) and folder.name == "result.json":
            raise InputError(f"{folder} is a file of a result folder", hint=f"give the folder: {folder.parent}")
    runs = [Run.load(folder) for folder in folders]
    names = [run.name for run in runs]
    return [run if names.count(run.name) == 1 or run.folder is None else Run(str(run.folder), run.result, run.folder) for run in runs]


def summary_rows(runs: Sequence[Run]) -> list[dict[str, Any]]:
    """One row a run; ratios are against its default and against the first run."""
    first = runs[0].makespan if runs else 1
    return [_summary(run, first) for run in runs]


def _summary(run: Run, first: int) -> dict[str, Any]:
    result = run.result
    words = workload_words(result["workload"])
    default = (result.get("default") or {}).get("makespan")
    oracle = result.get("oracle") or {}
    return {
        "name": run.name,
        "workload": words["title"],
        "sizes": words["sizes"],
        "what": f"{words['title']} {words['sizes'].replace(' = ', '=')} {result['workload'].get('dtype')}",
        "dtype": result["workload"].get("dtype"),
        "makespan": run.makespan,
        "lower_bound": result["lower_bound"],
        "gap": round(100 * float(result["gap"]), 2),
        "proven": bool(result.get("proven")),
        "default": default,
        "speedup": round(default / run.makespan, 2) if default else None,
        "against_first": round(run.makespan / first, 3),
        "oracle": "passed" if oracle.get("passed") else "FAILED",
        "scheduled": (result.get("candidates") or {}).get("scheduled"),
        "near_end_s": run.near_end_s(),
        "wall_time_s": round(float(result.get("wall_time_s", 0.0)), 2),
        "kernel_hash": run.kernel_hash(),
    }


def comparison_text(runs: Sequence[Run]) -> str:
    """The table for the terminal; a second one where workloads were searched with several seeds."""
    spread = repeated(runs)
    return text_table(summary_rows(runs), TERMINAL) + ("\n" + text_table(spread, SPREAD) if spread else "")


def repeated(runs: Sequence[Run]) -> list[dict[str, Any]]:
    """Median and spread over the seeds of every workload that was searched with several."""
    return spread_rows([run.result for run in runs], [row["what"] for row in summary_rows(runs)])


def comparison_csv(runs: Sequence[Run], failed: Dict[str, str] | None = None) -> str:
    """The table as CSV; searches that found nothing are rows with the reason in the column ``failed``."""
    if not failed:
        return csv_text(summary_rows(runs), SUMMARY)
    rows = [*summary_rows(runs), *({"name": name, "failed": why} for name, why in failed.items())]
    return csv_text(rows, (*SUMMARY, *columns("failed:found nothing because")))


def write_comparison(
    runs: Sequence[Run],
    folder: Path,
    title: str = "Comparison",
    stem: str = "comparison",
    question: str = "",
    failed: Dict[str, str] | None = None,
) -> dict[str, str]:
    """Writes ``<stem>.html`` and ``<stem>.csv`` into `folder`; returns their names. `failed`: why other searches found nothing, by name.

    Raises:
        InputError: nothing to compare, or the folder cannot be written.
    """
    if not runs and not failed:
        raise InputError("nothing to compare", hint="give at least one result folder")
    files = {"html": f"{stem}.html", "csv": f"{stem}.csv"}
    write_text(folder / files["csv"], comparison_csv(runs, failed))
    write_text(folder / files["html"], comparison_html(runs, title, question, failed))
    return files


def comparison_html(runs: Sequence[Run], title: str = "Comparison", question: str = "", failed: Dict[str, str] | None = None) -> str:
    """The page: summary, parts of the makespan, resources, timelines on one scale, choices, operations side by side."""
    analyses = {run.name: analyse(run.schedule) for run in runs if run.schedule is not None}
    last = max((a.makespan for a in analyses.values()), default=1)
    shown = [(name, a.makespan, picture(timeline(a, last=last, memory=False))) for name, a in analyses.items()]
    same = _identical(runs)
    return render(
        "compare.html.j2",
        title=title,
        question=question,
        failed=[{"name": name, "why": why} for name, why in (failed or {}).items()],
        failed_columns=columns("name:search", "why:found nothing because"),
        rows=summary_rows(runs),
        summary_columns=PAGE,
        identical=same,
        spread=repeated(runs),
        spread_columns=SPREAD,
        parts=_matrix(runs, lambda run: run.best.get("terms") or {}),
        resources=_matrix(runs, lambda run: _busy(run, analyses.get(run.name))),
        run_columns=_run_columns(runs, "part"),
        resource_columns=_run_columns(runs, "resource"),
        timelines=shown,
        choices=_choices(runs),
        choice_columns=columns("choice:choice", *(f"{run.name}:{run.name}" for run in runs)),
        operations=_operations(analyses),
        operation_columns=_run_columns([r for r in runs if r.name in analyses], "operation"),
    )


def _run_columns(runs: Sequence[Run], first: str) -> tuple[Column, ...]:
    return (Column("row", first), *(Column(run.name, run.name, True) for run in runs))


def _matrix(runs: Sequence[Run], values: Any) -> list[dict[str, Any]]:
    """Rows by key, a column a run; only rows in which something is not zero."""
    tables = {run.name: values(run) for run in runs}
    keys = dict.fromkeys(key for table in tables.values() for key in table)
    rows = [{"row": key, **{name: table.get(key) for name, table in tables.items()}} for key in keys]
    return [row for row in rows if any(value for key, value in row.items() if key != "row")]


def _busy(run: Run, analysis: Analysis | None) -> dict[str, int]:
    """Busy cycles by lane, and the exclusive ones where the schedule is at hand."""
    busy = {f"{LANES.get(resource, resource)} busy": cycles for resource, cycles in (run.best.get("busy") or {}).items()}
    if analysis is None:
        return busy
    return busy | {f"{LANES[s.resource]} exclusive": s.exclusive for s in analysis.shares} | {"nothing runs": analysis.idle}


def _choices(runs: Sequence[Run]) -> list[dict[str, Any]]:
    """Placement and knobs of every run; knobs only where the runs differ."""
    rows: list[dict[str, Any]] = [{"choice": "placement", **{run.name: placement_words(run.best.get("placement") or {}) for run in runs}}]
    names = dict.fromkeys(name for run in runs for name in run.best.get("knobs") or {})
    for name in names:
        values = {run.name: (run.best.get("knobs") or {}).get(name) for run in runs}
        if len({json.dumps(v) for v in values.values()}) > 1 or len(runs) == 1:
            rows.append({"choice": name, **values})
    return rows


def _operations(analyses: dict[str, Analysis]) -> list[dict[str, Any]]:
    """Cycles of every operation, aligned by name; in the order of the first schedule that has it."""
    cycles = {name: {o.id: o.duration_cycles for o in a.schedule.operations if o.duration_cycles} for name, a in analyses.items()}
    names = list(dict.fromkeys(op for table in cycles.values() for op in table))[:_OPERATIONS]
    return [{"row": op, **{name: table.get(op) for name, table in cycles.items()}} for op in names]


def _identical(runs: Sequence[Run]) -> list[str]:
    """Groups of runs whose kernels are the same text."""
    by_hash: dict[str, list[str]] = {}
    for run in runs:
        by_hash.setdefault(run.kernel_hash(), []).append(run.name)
    return [", ".join(names) for digest, names in by_hash.items() if digest and len(names) > 1]

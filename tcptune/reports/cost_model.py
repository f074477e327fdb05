"""The cost model on paper: every timing constant with its evidence, residuals against published durations, and a plot of both.

``python -m tcptune.reports.cost_model --update docs/cost-model.md --plot cost-model.html`` rewrites the tables of the page between their
markers and draws the plot.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import tcptune.exec
from tcptune.errors import InputError
from tcptune.exec.published_rows import price_row
from tcptune.exec.validate import error_summary
from tcptune.model.timing.calibration import MANUAL, VENDOR, Constant, Profile
from tcptune.model.timing.kernels import kernel_timing

PUBLISHED_TRANSFERS = Path(tcptune.exec.__path__[0]).parent / "data" / "published_transfers.json"


@dataclass(frozen=True, slots=True)
class Residual:
    """A published shape and what the vendor profile makes of it; `error` is predicted over published minus one."""

    id: str
    what: str
    store: bool
    guessed: bool
    published: int
    predicted: int

    @property
    def error(self) -> float:
        return self.predicted / self.published - 1


def residuals(path: Path = PUBLISHED_TRANSFERS) -> list[Residual]:
    """Residuals of the published transfer shapes, in the order of the file."""
    rows = json.loads(path.read_text(encoding="utf-8"))["rows"]
    return [_residual(row) for row in rows]


def _residual(row: dict[str, Any]) -> Residual:
    predicted = price_row(row, VENDOR)
    return Residual(row["id"], row["description"], row["op"] == "DmaStore", "layout" in row, row["cycles"], predicted)


def constants(profile: Profile) -> Iterator[tuple[str, str, Constant]]:
    """(section, name, constant) of everything that a profile charges."""
    sections = {"dma": profile.dma, "pass": profile.passes, "kernel": kernel_timing(profile)}
    for section, values in sections.items():
        for field in fields(values) if values is not None else ():
            constant = getattr(values, field.name)
            if isinstance(constant, Constant):
                yield section, field.name, constant


def _number(value: float) -> str:
    return f"{value:,.0f}" if value == int(value) else f"{value:g}"


def constants_table(profile: Profile) -> str:
    """Markdown table of the constants of a profile."""
    lines = ["| section | constant | value | unit | evidence | error |", "|---|---|---|---|---|---|"]
    for section, name, c in constants(profile):
        lines.append(f"| {section} | `{name}` | {_number(c.value)} | {c.unit} | {c.evidence} | {c.error} |")
    return "\n".join(lines)


def residuals_table(found: list[Residual]) -> str:
    """Markdown table of published and predicted durations."""
    lines = ["| row | transfer | published | predicted | error | layout |", "|---|---|---|---|---|---|"]
    for r in found:
        note = "guessed" if r.guessed else "known"
        lines.append(
            f"| {r.id} | {'store' if r.store else 'load'}: {r.what} | {r.published:,} | {r.predicted:,} | {100 * r.error:+.1f} % | {note} |"
        )
    return "\n".join(lines)


def summary_table(found: list[Residual]) -> str:
    """Median, 90th percentile and largest error by kind of transfer."""
    lines = ["| transfers | shapes | median | 90 % within | largest |", "|---|---|---|---|---|"]
    for name, store, only_known in (("loads", False, True), ("loads, guessed layouts too", False, False), ("stores", True, True)):
        errors = [r.error for r in found if r.store == store and not (only_known and r.guessed)]
        middle, p90 = (100 * error_summary(errors)[key] for key in ("median_abs_error", "p90_abs_error"))
        lines.append(f"| {name} | {len(errors)} | {middle:.2f} % | {p90:.1f} % | {100 * max(map(abs, errors)):.1f} % |")
    return "\n".join(lines)


def tables() -> dict[str, str]:
    """The generated tables of the page by marker."""
    found = residuals()
    return {
        "vendor-constants": constants_table(VENDOR),
        "manual-constants": constants_table(MANUAL),
        "summary": summary_table(found),
        "residuals": residuals_table(found),
    }


def with_tables(page: str) -> str:
    """The page with every ``<!-- begin NAME -->`` … ``<!-- end NAME -->`` block replaced by its table.

    Raises:
        InputError: a marker is missing.
    """
    for name, table in tables().items():
        block = re.search(rf"<!-- begin {name} -->\n(.*?)<!-- end {name} -->", page, re.DOTALL)
        if block is None:
            raise InputError(f"the page has no block {name!r}", hint=f"<!-- begin {name} --> and <!-- end {name} -->")
        page = f"{page[: block.start(1)]}{table}\n{page[block.end(1) :]}"
    return page


def plot(found: list[Residual], path: Path) -> None:
    """Writes one HTML file: predicted against published cycles, both logarithmic, with the 8 % band; hover names the shape."""
    from bokeh.models import ColumnDataSource, HoverTool
    from bokeh.plotting import figure, output_file, save
    from bokeh.resources import INLINE

    picture = figure(
        title="Transfers: predicted against published",
        x_axis_type="log",
        y_axis_type="log",
        x_axis_label="published cycles",
        y_axis_label="predicted cycles",
        width=820,
        height=640,
    )
    ends = [min(r.published for r in found) * 0.9, max(r.published for r in found) * 1.1]
    picture.varea(x=ends, y1=[e * 0.92 for e in ends], y2=[e * 1.08 for e in ends], alpha=0.15, legend_label="within 8 %")
    picture.line(ends, ends, line_dash="dashed")
    for label, store, marker, colour in (("loads", False, "circle", "#1f77b4"), ("stores", True, "square", "#d62728")):
        mine = [r for r in found if r.store == store]
        source = ColumnDataSource(
            {
                "published": [r.published for r in mine],
                "predicted": [r.predicted for r in mine],
                "what": [f"{r.id}: {r.what}" for r in mine],
                "error": [f"{100 * r.error:+.1f} %" for r in mine],
                "alpha": [0.35 if r.guessed else 0.9 for r in mine],
            }
        )
        picture.scatter("published", "predicted", source=source, marker=marker, size=8, color=colour, alpha="alpha", legend_label=label)
    picture.add_tools(
        HoverTool(tooltips=[("", "@what"), ("published", "@published{0,0}"), ("predicted", "@predicted{0,0}"), ("error", "@error")])
    )
    picture.legend.location = "top_left"
    output_file(str(path), title="tcptune: cost model", mode="inline")
    save(picture, resources=INLINE)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tcptune.reports.cost_model", description="Tables and plot of the cost model.")
    parser.add_argument("--update", type=Path, help="page whose tables are rewritten")
    parser.add_argument("--plot", type=Path, help="HTML file to write")
    options = parser.parse_args()
    if options.update:
        options.update.write_text(with_tables(options.update.read_text(encoding="utf-8")), encoding="utf-8")
    if options.plot:
        plot(residuals(), options.plot)
    if not options.update and not options.plot:
        print(summary_table(residuals()))
    return 0


if __name__ == "__main__":
    sys.exit(main())

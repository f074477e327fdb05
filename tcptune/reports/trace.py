"""The improvements of a search as CSV rows and as a small step plot."""

from __future__ import annotations

from typing import Any

from tcptune.reports.tables import columns, csv_text
from tcptune.reports.timeline import nice_step

COLUMNS = columns("trial:trial#", "makespan:makespan#", "bound:bound#", "elapsed_s:elapsed (s)#")
_WIDTH, _HEIGHT, _LEFT, _BOTTOM = 420, 170, 62, 22


def trace_csv(rows: list[dict[str, Any]]) -> str:
    """``trace.csv``: trial, makespan, bound, elapsed_s."""
    return csv_text(rows, COLUMNS)


def trace_picture(rows: list[dict[str, Any]], wall_time_s: float) -> str:
    """Best makespan over elapsed seconds as SVG, to the end of the search, with the lower bound dashed."""
    last = max(wall_time_s, *(float(row["elapsed_s"]) for row in rows)) or 1.0
    top = max(int(row["makespan"]) for row in rows)
    bound = int(rows[-1]["bound"])
    low = min(bound, *(int(row["makespan"]) for row in rows))
    span = max(1, top - low)

    def x(seconds: float) -> float:
        return _LEFT + (_WIDTH - _LEFT - 8) * seconds / last

    def y(cycles: float) -> float:
        return 8 + (_HEIGHT - _BOTTOM - 12) * (top - cycles) / span

    points = [f"M{x(float(rows[0]['elapsed_s'])):.1f},{y(int(rows[0]['makespan'])):.1f}"]
    for row in rows[1:]:
        points.append(f"H{x(float(row['elapsed_s'])):.1f}V{y(int(row['makespan'])):.1f}")
    points.append(f"H{x(last):.1f}")
    step = nice_step(span, 4)
    ticks = range(-(-low // step) * step, top + 1, step)
    parts = [f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" width="{_WIDTH}" height="{_HEIGHT}" role="img">']
    for tick in ticks:
        parts.append(f'<line class="grid" x1="{_LEFT}" x2="{_WIDTH - 8}" y1="{y(tick):.1f}" y2="{y(tick):.1f}"/>')
        parts.append(f'<text class="tick left" x="0" y="{y(tick) + 4:.1f}">{tick:,}</text>')
    parts.append(f'<path class="bound" d="M{_LEFT},{y(bound):.1f}H{_WIDTH - 8}"/>')
    parts.append(f'<path class="trace" d="{"".join(points)}"/>')
    for fraction in (0.0, 0.5, 1.0):
        at = x(last * fraction) - (12 if fraction == 1.0 else 0)
        parts.append(f'<text class="tick" x="{at:.1f}" y="{_HEIGHT - 6}">{last * fraction:.3g} s</text>')
    return "".join([*parts, "</svg>"])

"""The timeline of a schedule as one SVG: a lane per resource, the critical path marked, DM addresses over time below.

Every operation carries its numbers as data attributes, which the page's script shows on hover; without script the tooltips remain.
"""

from __future__ import annotations

from dataclasses import dataclass
from html import escape

from tcptune.exec.scheduling.schedule_json import LANES
from tcptune.ir.schedule import Lifetime, Operation, Schedule
from tcptune.reports.schedule_analysis import Analysis

WIDTH = 1120
_LABEL = 56
_LANE = 26
_BAR = 18
_AXIS = 22
_MEMORY = 120
_TICKS = 8
_MIN_LABELLED = 46
_CHARACTER = 6.4
_SEPARATOR = "|"
_KIND_CLASS = {"DmaLoad": "load", "DmaStore": "store", "DmaStos": "move", "DmaGather": "load", "DmaScatter": "store", "DmaOther": "move"}


@dataclass(frozen=True)
class Scale:
    """Cycles to pixels."""

    last: int
    width: int = WIDTH

    def x(self, cycle: int) -> float:
        return _LABEL + (self.width - _LABEL - 8) * cycle / max(1, self.last)


def nice_step(last: int, ticks: int = _TICKS) -> int:
    """A round distance between ticks.

    >>> nice_step(9500), nice_step(800)
    (2000, 100)
    """
    rough = max(1, last / ticks)
    power = 10 ** (len(str(int(rough))) - 1)
    return next(int(m * power) for m in (1, 2, 5, 10) if m * power >= rough)


def timeline(analysis: Analysis, *, last: int | None = None, memory: bool = True, width: int = WIDTH) -> str:
    """The SVG of a schedule.

    Args:
        last: cycle at the right edge, to compare schedules on one scale (default: the makespan).
        memory: whether to draw DM addresses over time.
    """
    schedule = analysis.schedule
    scale = Scale(last or schedule.makespan, width)
    lanes = [resource for resource in LANES if schedule.on(resource)]
    lives = [life for life in schedule.lifetimes if life.buffer.tier == "Sram" and life.end > life.begin]
    height = _AXIS + _LANE * len(lanes) + (_MEMORY + 16 if memory and lives else 0) + 4
    parts = [f'<svg class="timeline" viewBox="0 0 {width} {height}" width="{width}" height="{height}" role="img">']
    parts += _axis(scale, height)
    critical = {o.id for o in analysis.critical}
    for row, resource in enumerate(lanes):
        parts += _lane(schedule, resource, scale, _AXIS + row * _LANE, critical, analysis)
    if memory and lives:
        parts += _memory(lives, scale, _AXIS + _LANE * len(lanes) + 12)
    return "\n".join([*parts, "</svg>"])


def _axis(scale: Scale, height: int) -> list[str]:
    step = nice_step(scale.last)
    parts = []
    for cycle in range(0, scale.last + 1, step):
        x = scale.x(cycle)
        parts.append(f'<line class="grid" x1="{x:.1f}" x2="{x:.1f}" y1="{_AXIS - 4}" y2="{height}"/>')
        parts.append(f'<text class="tick" x="{x:.1f}" y="{_AXIS - 9}">{cycle:,}</text>')
    return parts


def _lane(schedule: Schedule, resource: str, scale: Scale, y: int, critical: set[str], analysis: Analysis) -> list[str]:
    """The operations that hold one resource."""
    parts = [f'<text class="lane" x="0" y="{y + 14}">{LANES[resource]}</text>']
    parts.append(f'<line class="base" x1="{_LABEL}" x2="{scale.width - 8}" y1="{y + _BAR + 2}" y2="{y + _BAR + 2}"/>')
    for operation in schedule.on(resource):
        if operation.duration_cycles:
            parts.append(_bar(operation, scale, y, operation.id in critical, analysis.slack.get(operation.id)))
    return parts


def _bar(operation: Operation, scale: Scale, y: int, critical: bool, slack: int | None) -> str:
    x, end = scale.x(operation.begin), scale.x(operation.end)
    width = max(0.8, end - x - 0.6)
    kind = kind_class(operation.kind)
    name = escape(_short(operation.id))
    tip = escape(_tip(operation, slack))
    room = int((width - 6) / _CHARACTER)
    shown = name if len(name) <= room else name[: max(1, room - 1)] + "…"
    label = f'<text x="{x + 4:.1f}" y="{y + 13}">{shown}</text>' if width > _MIN_LABELLED else ""
    marked = " critical" if critical else ""
    reads, writes = escape(_SEPARATOR.join(operation.reads)), escape(_SEPARATOR.join(operation.writes))
    data = f'data-id="{escape(operation.id)}" data-reads="{reads}" data-writes="{writes}"'
    bar = f'<rect x="{x:.1f}" y="{y}" width="{width:.1f}" height="{_BAR}" rx="2"/>'
    return f'<g class="op {kind}{marked}" {data}>{bar}{label}<title>{tip}</title></g>'


def kind_class(kind: str) -> str:
    """Colour class of an operation: load, store, move, main, sub or core."""
    return _KIND_CLASS.get(kind, kind.lower() or "main")


def _short(name: str) -> str:
    return name.rsplit("/", 1)[-1]


def _tip(operation: Operation, slack: int | None) -> str:
    lines = [f"{operation.id}: {operation.begin:,} to {operation.end:,}, {operation.duration_cycles:,} cycles"]
    if operation.moved_bytes:
        rate = operation.moved_bytes / max(1, operation.duration_cycles)
        lines.append(f"{operation.moved_bytes:,} B, {rate:,.0f} B/cycle")
    if operation.cause and operation.cause != "start":
        lines.append(f"began by {operation.cause}{' of ' + operation.blocker if operation.blocker else ''}")
    if slack:
        lines.append(f"slack {slack:,} cycles")
    if operation.description:
        lines.append(operation.description[:600])
    return "\n".join(lines)


def _memory(lives: list[Lifetime], scale: Scale, y: int) -> list[str]:
    """DM addresses (upwards) over time; each buffer a rectangle from its first write to its last read."""
    top = max(life.address + life.buffer.size_bytes for life in lives)
    parts = [f'<text class="lane" x="0" y="{y + 14}">DM</text>', f'<text class="tick left" x="0" y="{y + 28}">{top:,} B</text>']
    for life in lives:
        x, end = scale.x(life.begin), scale.x(life.end)
        height = max(1.5, _MEMORY * life.buffer.size_bytes / top)
        bottom = y + _MEMORY - _MEMORY * life.address / top
        where = f"{life.buffer.size_bytes:,} B a slice at {life.address:,}, cycles {life.begin:,} to {life.end:,}"
        tip = f"{life.buffer.name}: {where}\n{life.buffer.shape}"
        box = f'<rect x="{x:.1f}" y="{bottom - height:.1f}" width="{max(1.0, end - x):.1f}" height="{height:.1f}"/>'
        name = escape(_short(life.buffer.name))
        fits = height > 12 and end - x > _CHARACTER * len(name) + 8
        label = f'<text x="{x + 4:.1f}" y="{bottom - height + 11:.1f}">{name}</text>' if fits else ""
        parts.append(f'<g class="buffer" data-buffer="{escape(life.buffer.name)}">{box}{label}<title>{escape(tip)}</title></g>')
    parts.append(f'<line class="base" x1="{_LABEL}" x2="{scale.width - 8}" y1="{y + _MEMORY}" y2="{y + _MEMORY}"/>')
    return parts

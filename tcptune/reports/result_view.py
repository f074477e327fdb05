"""What the page of one search shows, as plain rows: the reading of a `SearchResult` that the template prints."""

from __future__ import annotations

from typing import Any

from tcptune.errors import InputError
from tcptune.exec.program.check import check_kernel
from tcptune.exec.program.checked import CheckedStep
from tcptune.exec.scheduling.schedule_json import LANES
from tcptune.ir.types import TensorType
from tcptune.model.hardware import RNGD, Hardware
from tcptune.model.rules import rule
from tcptune.reports.html import picture
from tcptune.reports.schedule_analysis import Analysis, analyse
from tcptune.reports.tables import columns
from tcptune.reports.timeline import kind_class, timeline
from tcptune.reports.trace import trace_picture
from tcptune.search.result import Plan, SearchResult

LEVELS = ("Chip", "Cluster", "Slice", "Lane", "Time", "Packet", "Tile")
_KIND_COLORS = {"load": "var(--load)", "store": "var(--store)", "move": "var(--move)", "main": "var(--main)", "sub": "var(--sub)"}
_FATES = {"scheduled": "var(--good)", "pruned": "var(--core)", "duplicates": "var(--move)", "rejected": "var(--bad)"}
_FATE_WORDS = {
    "scheduled": "compiled, with a makespan",
    "pruned": "lower bound not below the best makespan",
    "duplicates": "same kernel as an earlier one",
    "rejected": "refused by a rule of the machine",
}
_LONGEST_GAPS = 40
_GAP_CYCLES = 10


def result_context(result: SearchResult, command: str, files: dict[str, str], rust: str, hw: Hardware = RNGD) -> dict[str, Any]:
    """Everything the template of a result asks for."""
    analysis = analyse(result.schedule)
    document = result.to_json()
    return {
        "workload": workload_words(document["workload"]),
        **{key: document[key] for key in ("hardware", "profile", "seed", "trials", "makespan", "lower_bound", "gap", "proven", "oracle")},
        "stopped": stopped_words(result.stopped, result.trials),
        "default": document["default"]["makespan"],
        "what_default": document["default"]["what"],
        "wall_time_s": result.wall_time_s,
        "command": command,
        "files": list(files.items()),
        "timeline": picture(timeline(analysis)),
        **_cycles(result.best, analysis),
        **_placement(result, hw),
        **_choices(result),
        **_candidates(result),
        "trace": picture(trace_picture(result.trace_rows(), result.wall_time_s)) if result.trace else "",
        "rust": rust,
        "visa": result.kernel.to_text(),
    }


def stopped_words(stopped: str, trials: int) -> str:
    """What ended a search, and what would take it further."""
    return {
        "proven": "the proof that nothing in the declared space is faster",
        "trials": f"the budget of {trials:,} trials; more of them may still narrow the gap",
        "exhausted": "the end of the declared space; its bound leaves the gap",
        "time": "the time limit; a longer search may still narrow the gap",
        "interrupt": "an interrupt; this is the best so far",
    }.get(stopped, stopped)


def workload_words(workload: dict[str, Any]) -> dict[str, str]:
    """Title, sizes and types of a workload in words."""
    sizes = ", ".join(f"{axis} = {size}" for axis, size in workload.get("sizes", {}).items())
    types = f"{workload.get('dtype', '?')} to {workload.get('out_dtype', '?')}"
    if workload.get("layout"):
        types += f", layout {workload['layout']}"
    if workload.get("hbm_copies"):
        types += f", up to {workload['hbm_copies']} copies of an input in HBM"
    if workload.get("epilogue"):
        types += f", then {workload['epilogue']}"
    return {"title": str(workload.get("einsum", "kernel")), "sizes": sizes, "types": types}


def _cycles(best: Plan, analysis: Analysis) -> dict[str, Any]:
    """Parts of the makespan, resources, critical path, gaps."""
    total = max(1, analysis.makespan)
    terms = [{"name": name, "cycles": cycles, "share": f"{100 * cycles / total:.1f} %"} for name, cycles in best.terms.items() if cycles]
    shares = [
        {
            "resource": LANES[s.resource],
            "operations": s.operations,
            "busy": s.busy,
            "share": f"{100 * s.busy / total:.1f} %",
            "exclusive": s.exclusive,
        }
        for s in analysis.shares
    ]
    critical = [
        {
            "id": o.id,
            "kind": o.kind,
            "begin": o.begin,
            "cycles": o.duration_cycles,
            "share": f"{100 * o.duration_cycles / total:.1f} %",
            "rate": round(o.moved_bytes / o.duration_cycles) if o.moved_bytes and o.duration_cycles else None,
        }
        for o in analysis.critical
    ]
    gaps = sorted((g for g in analysis.gaps if g.cycles >= _GAP_CYCLES), key=lambda g: -g.cycles)[:_LONGEST_GAPS]
    return {
        "terms": terms,
        "term_columns": columns("name:part", "cycles:cycles#", "share:of makespan#"),
        "shares": shares,
        "share_columns": columns("resource:resource", "operations:operations#", "busy:busy#", "share:of makespan#", "exclusive:exclusive#"),
        "idle": analysis.idle,
        "segments": _segments(analysis),
        "limits": limit_words(analysis),
        "critical": critical,
        "critical_columns": columns("id:operation", "kind:kind", "begin:begin#", "cycles:cycles#", "share:of makespan#", "rate:B/cycle#"),
        "gaps": [
            {"resource": LANES[g.resource], "begin": g.begin, "cycles": g.cycles, "before": g.before, "reason": g.reason} for g in gaps
        ],
        "gap_columns": columns("resource:resource", "begin:from#", "cycles:cycles#", "before:until", "reason:waits for"),
    }


def _segments(analysis: Analysis) -> list[dict[str, Any]]:
    """The makespan from left to right: the operations of the critical path and the waits between them."""
    segments: list[dict[str, Any]] = []
    at = 0
    for operation in analysis.critical:
        if operation.begin > at:
            segments.append({"name": "launch" if not segments else "wait", "cycles": operation.begin - at, "color": "var(--core)"})
        color = _KIND_COLORS.get(kind_class(operation.kind), "var(--core)")
        segments.append({"name": operation.id, "cycles": operation.duration_cycles, "color": color})
        at = max(at, operation.end)
    return segments


def limit_words(analysis: Analysis) -> str:
    """In a sentence or two what limits the schedule now: the longest part of its critical path and the resource that is exposed most."""
    segments = _segments(analysis)
    if not segments:
        return "Nothing runs."
    total = max(1, analysis.makespan)
    longest = max(segments, key=lambda s: int(s["cycles"]))
    exposed = max(analysis.shares, key=lambda s: s.exclusive)
    words = f"The longest part of the critical path is {longest['name']}: {longest['cycles']:,} of {total:,} cycles. "
    share = f"{100 * exposed.exclusive / total:.0f} % of the time"
    return words + f"{LANES[exposed.resource]} runs alone for {exposed.exclusive:,} cycles ({share}), with nothing beside it."


def placement_rows(placement: dict[str, dict[str, int]]) -> tuple[list[dict[str, Any]], tuple[str, ...]]:
    """Axes against levels, and the levels that any axis uses."""
    used = [level for level in LEVELS if any(level in cut for cut in placement.values())]
    other = sorted({level for cut in placement.values() for level in cut} - set(LEVELS))
    rows = [{"axis": axis, **cut, "size": _product(cut)} for axis, cut in placement.items()]
    return rows, (*used, *other)


def _product(cut: dict[str, int]) -> int:
    size = 1
    for extent in cut.values():
        size *= extent
    return size


def _placement(result: SearchResult, hw: Hardware) -> dict[str, Any]:
    rows, levels = placement_rows(result.best.placement)
    tensors = [_tensor_row(name, type_, hw) for name, type_ in tensor_types(result).items()]
    return {
        "placement": rows,
        "placement_columns": columns("axis:axis", *(f"{level}:{level}#" for level in levels), "size:padded size#"),
        "tensors": tensors,
        "tensor_columns": columns(
            "name:tensor",
            "tier:memory",
            "dtype:type",
            "chip:Chip",
            "cluster:Cluster",
            "slice:Slice",
            "lane:Lane",
            "element:Element",
            "bytes:B#",
            "share:of capacity#",
        ),
    }


def tensor_types(result: SearchResult) -> dict[str, TensorType]:
    """Types of all tensors of the best kernel, in program order."""
    checked = check_kernel(result.kernel)
    types = {bound.name: bound.type for bound in checked.inputs}
    pending = list(checked.steps)
    while pending:
        step: CheckedStep = pending.pop(0)
        if step.result is not None:
            types[step.result.name] = step.result.type
        pending = [*step.body, *pending]
    return types


def _tensor_row(name: str, type_: TensorType, hw: Hardware) -> dict[str, Any]:
    """One tensor; bytes are per slice on the chip (all lanes of a TRF tensor), per chip in HBM."""
    capacity = {"Dm": hw.dm_bytes_per_slice, "Trf": hw.trf_bytes_per_slice, "Vrf": hw.vrf_bytes_per_slice}.get(type_.tier)
    size = type_.element_bytes * type_.lane.size
    return {
        "name": name,
        "tier": type_.tier,
        "dtype": type_.dtype.name,
        **dict.fromkeys(("chip", "cluster", "slice", "lane")),
        **{level: str(mapping) for level, mapping in type_.levels},
        "bytes": size,
        "share": f"{100 * size / capacity:.1f} %" if capacity else None,
    }


def _choices(result: SearchResult) -> dict[str, Any]:
    """Knobs with their worth, and the comparison with the second-best plan."""
    worth = result.knob_worth
    cuts = {f"placement of {axis}": _cut_words(cut) for axis, cut in result.best.placement.items()}
    choices = {**result.best.knobs, **{name: cuts.get(name, "") for name in worth if name not in result.best.knobs}}
    knobs = [{"knob": name, "value": _knob(value), "worth": _worth(worth, name, result.makespan)} for name, value in choices.items()]
    second = runner_up(result)
    extra = ("worth:worth (cycles)#",) if worth else ()
    return {
        "knobs": knobs,
        "knob_columns": columns("knob:knob", "value:value", *extra),
        "knob_worth_known": bool(worth),
        "runner_up": [] if second is None else differences(result.best, second),
        "runner_up_columns": columns("part:part", "best:best#", "second:runner-up#", "difference:difference#"),
        "runner_up_text": "" if second is None else runner_up_words(result.best, second),
    }


def runner_up(result: SearchResult) -> Plan | None:
    """The second-best plan of the report, None if there is no other kernel in it."""
    return next((plan for plan in result.top[1:] if plan.makespan >= result.makespan and plan.kernel != result.kernel), None)


def _worth(worth: dict[str, int | None], name: str, makespan: int) -> str | int | None:
    if name not in worth:
        return None
    at_default = worth[name]
    return "not legal" if at_default is None else at_default - makespan


def differences(best: Plan, second: Plan) -> list[dict[str, Any]]:
    """Cycles of each part in both plans, parts that differ first."""
    rows: list[dict[str, Any]] = []
    for name in dict.fromkeys([*best.terms, *second.terms]):
        ours, theirs = best.terms.get(name, 0), second.terms.get(name, 0)
        rows.append({"part": name, "best": ours, "second": theirs, "difference": theirs - ours})
    rows.sort(key=lambda row: -abs(int(row["difference"])))
    total = {"part": "makespan", "best": best.makespan, "second": second.makespan, "difference": second.makespan - best.makespan}
    return [*rows, total]


def runner_up_words(best: Plan, second: Plan) -> str:
    """In one sentence which part and which choices make the difference."""
    rows = differences(best, second)[:-1]
    lead = rows[0] if rows and rows[0]["difference"] else None
    differing = [f"{k} {_knob(v)} instead of {_knob(second.knobs.get(k))}" for k, v in best.knobs.items() if second.knobs.get(k) != v]
    axes = [axis for axis, cut in best.placement.items() if second.placement.get(axis) != cut]
    if axes:
        differing.append(f"another placement of {', '.join(axes)}")
    why = (
        f"The largest difference is {lead['part']} ({lead['difference']:+,} cycles in the runner-up). "
        if lead
        else "All parts take the same time. "
    )
    return why + (f"The best has {'; '.join(differing)}." if differing else "Placement and knobs are the same.")


def _knob(value: Any) -> str:
    if isinstance(value, list | tuple):
        return ", ".join(_knob(v) or "none" for v in value)
    return "yes" if value is True else "no" if value is False else str(value)


def _candidates(result: SearchResult) -> dict[str, Any]:
    """Candidates by fate, refusals by rule, the ten best plans."""
    counts = result.fates.to_json()
    total = max(1, counts["enumerated"])
    fates = [
        {
            "name": name,
            "count": counts[name],
            "share": counts[name] / total,
            "percent": f"{100 * counts[name] / total:.1f} %",
            "meaning": _FATE_WORDS[name],
            "color": color,
        }
        for name, color in _FATES.items()
    ]
    fates.append(
        {"name": "enumerated", "count": counts["enumerated"], "share": 0, "percent": "", "meaning": "all of them", "color": "transparent"}
    )
    refused = sorted(result.rejections.items(), key=lambda item: (-item[1], item[0]))
    top = [
        {
            "rank": rank + 1,
            "makespan": plan.makespan,
            "behind": plan.makespan - result.makespan,
            "bound": plan.lower_bound,
            "placement": placement_words(plan.placement),
            "knobs": _differing(plan.knobs, result.best.knobs) if rank else "(the best)",
        }
        for rank, plan in enumerate(result.top)
    ]
    return {
        "fates": fates,
        "fate_columns": columns("name:fate", "count:candidates#", "percent:share#", "meaning:meaning"),
        "rejections": [{"rule": rule_id, "count": count, "title": _title(rule_id)} for rule_id, count in refused],
        "rejection_columns": columns("rule:rule", "count:candidates#", "title:what it demands"),
        "top": top,
        "top_columns": columns(
            "rank:rank#",
            "makespan:makespan#",
            "behind:behind#",
            "bound:its bound#",
            "placement:placement",
            "knobs:knobs that differ from the best",
        ),
    }


def placement_words(placement: dict[str, dict[str, int]]) -> str:
    """A placement in one line: ``i: Slice 64, Time 8; k: Packet 32``."""
    return "; ".join(f"{axis}: {_cut_words(cut)}" for axis, cut in placement.items())


def _cut_words(cut: dict[str, int]) -> str:
    return ", ".join(f"{level} {n}" for level, n in cut.items())


def _differing(knobs: dict[str, Any], best: dict[str, Any]) -> str:
    return "; ".join(f"{name} {_knob(value)}" for name, value in knobs.items() if best.get(name) != value) or "none"


def _title(rule_id: str) -> str:
    try:
        return rule(rule_id).title
    except InputError:
        return ""

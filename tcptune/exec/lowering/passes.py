"""The two passes of a contraction: staging of the stationary operand into the register file, and the pass that streams the other one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tcptune.exec.lowering.layout import Layout, remove
from tcptune.exec.lowering.result import Result, padded_packet
from tcptune.exec.lowering.routes import Route
from tcptune.ir.placement import AxisText, Digit, expression, merged, positions, without
from tcptune.ir.workload import K


def _switch(
    layout: Layout, route: Route, in_time: list[Digit], lane_first: bool, texts: dict[str, AxisText]
) -> tuple[list[Any], list[Digit]]:
    """The switch operation of a route (none: no operation) and the Time it leaves behind."""
    if not route.uses_switch:
        return [], in_time
    if lane_first:
        lane, rest = route.spread[0], list(route.spread[1:])
        inner = positions(rest)
        config = {"Broadcast01": {"slice1": lane.extent, "slice0": inner, "time0": positions(in_time)}}
        time = [lane, *in_time, *rest]
    else:
        config = {"Broadcast1": {"slice1": route.ring_outer, "slice0": route.ring_inner}}
        time = [*in_time, *route.spread]
    return [{"op": "switch", "slice": expression(layout.slices, texts), "time": expression(time, texts), "config": config}], time


def _fetch_and_collect(
    layout: Layout, route: Route, in_time: list[Digit], packet: Digit, lane_first: bool, texts: dict[str, AxisText]
) -> tuple[list[dict[str, Any]], list[Digit], str]:
    """Operations up to Collect, the Time digits after it, and the text of a flit."""
    flit = layout.flit_elements(layout.dtype)
    word = layout.word_elements(layout.dtype)
    whole = expression([packet], texts)
    if packet.extent < word:
        whole = f"[{whole}] # {word}" if "," in whole else f"{whole} # {word}"
    switch, time = _switch(layout, route, in_time, lane_first, texts)
    ops: list[dict[str, Any]] = [{"op": "fetch", "time": expression(in_time, texts), "packet": whole}, *switch]
    if packet.extent > flit:
        time = [*time, packet.outer(packet.extent // flit)]
        one = expression([packet.inner(flit)], texts)
    else:
        one = f"{expression([packet], texts)} # {flit}" if packet.extent < flit else whole
    ops.append({"op": "collect", "time": expression(time, texts), "packet": one})
    return ops, time, one


def staging_ops(layout: Layout) -> list[dict[str, Any]]:
    """Operations of the pass that fills the register file; the lane is outermost in Time (TRF-002)."""
    index = layout.stationary
    route, texts = layout.route(index), layout.texts(index)
    lane_first = layout.candidate.knobs.spread[index] == "lane" and route.uses_switch
    lane = layout.lane
    block = without(layout.held(index, layout.innermost(index)), layout.staging_packet)
    in_time = remove(block, route.spread)
    if lane is not None and not lane_first:
        in_time = [lane, *without(in_time, lane)]
    packet = layout.staging_packet
    ops, time, flit = _fetch_and_collect(layout, route, in_time, packet, lane_first, texts)
    element = time[1:] if lane is not None else time
    per_flit = layout.flit_elements(layout.dtype)
    if packet.extent >= per_flit:
        element_text = expression([*element, packet.inner(per_flit)], texts)
    elif element:
        element_text = f"{expression(element, texts)}, {flit}"
    else:
        element_text = flit
    ops.append({"op": "to_trf", "lane": expression([lane] if lane else [], texts), "element": element_text})
    return ops


def stream_time(layout: Layout, route: Route) -> list[Digit]:
    """Time of the streamed fetch: output positions in output order (with `refetch` all of them), and summed ones."""
    index = layout.stream
    held = remove(without(layout.block(layout.operand(index)), layout.packet), route.spread)
    outputs: list[Digit] = []
    for axis in layout.output:
        outputs += [d for d in held if d.axis == axis]
        if layout.candidate.knobs.refetch:
            outputs += [d for d in layout.stationary_outputs if d.axis == axis]
    sums = [d for d in held if layout.roles[d.axis] == K]
    return merged([*outputs, *sums] if layout.candidate.knobs.k_inner else [*sums, *outputs])


def outer_time(layout: Layout) -> list[Digit]:
    """Time after the outer product: the stream's, then the positions over which the Stream Adapter repeats it (OUTER-007)."""
    route = layout.route(layout.stream)
    broadcast = [] if layout.candidate.knobs.refetch else layout.stationary_outputs
    return [*stream_time(layout, route), *route.spread, *broadcast]


def folded(layout: Layout) -> tuple[list[Digit], list[Digit]]:
    """Time and live packet after the Lane Folder (LANE-003, LANE-004)."""
    kept = [d for d in outer_time(layout) if layout.roles[d.axis] != K]
    lane = [layout.lane] if layout.lane else []
    packet = layout.packet
    if layout.candidate.knobs.lane_mode == "Interleaved":
        return kept + ([] if layout.sums_packet else [packet]), lane
    if layout.sums_packet:
        return [*kept, *lane], []
    bus = min(layout.hw.lane_bus_elements, packet.extent)
    return [*kept, *lane, packet.outer(packet.extent // bus)], [packet.inner(bus)]


def contraction_result(layout: Layout) -> Result:
    """Where the result of the streaming pass lies when it is committed."""
    time, live = folded(layout)
    return Result.of(layout, merged(time), live)


def contraction_ops(layout: Layout, epilogue: Sequence[dict[str, Any]] = ()) -> list[dict[str, Any]]:
    """Operations of the streaming pass up to its commit; `epilogue` runs on what the Lane Folder delivers."""
    index = layout.stream
    route, texts = layout.route(index), layout.texts(index)
    packet = layout.packet
    ops, _, _ = _fetch_and_collect(layout, route, stream_time(layout, route), packet, False, texts)
    flit = layout.flit_elements(layout.dtype)
    whole = padded_packet([packet], max(flit, packet.extent), texts)
    outer = outer_time(layout)
    ops += [
        {"op": "contract_outer", "time": expression(outer, texts), "packet": whole, "trf": "w"},
        {"op": "contract_packet", "packet": expression([] if layout.sums_packet else [packet], texts)},
        {"op": "contract_time", "time": expression([d for d in outer if layout.roles[d.axis] != K], texts)},
    ]
    time, live = folded(layout)
    packet_text = padded_packet(live, layout.hw.lane_bus_elements, texts)
    ops.append({"op": "contract_lane", "time": expression(time, texts), "packet": packet_text, "mode": layout.candidate.knobs.lane_mode})
    return [*ops, *_slice_reduction(layout, expression(time, texts)), *epilogue, *contraction_result(layout).commit_ops(layout)]


def _slice_reduction(layout: Layout, time: str) -> list[dict[str, Any]]:
    """Sum over the slices among which summed axes are split (XSR-001 to XSR-006)."""
    if layout.reduced == 1:
        return []
    slices = expression(layout.result_slices, layout.texts(None))
    reduce = {"op": "vector_inter_slice_reduce", "slice": slices, "time": time, "fn": "Add"}
    return [{"op": "vector_init"}, reduce, {"op": "vector_final"}]

"""Switch Engine: moves data between the slices of a cluster over a ring (SWITCH-001 to SWITCH-036).

Five canonical configurations are checked by rebuilding their layout from the sizes they name; CustomBroadcast is checked by its seven
constraints in `engines.switch.custom`. Forwarding is no configuration: a stream that needs no movement skips the engine.
"""

from __future__ import annotations

from collections.abc import Mapping as Dict
from math import prod

from tcptune.errors import InputError, RuleViolation
from tcptune.ir.kernels.ops import Op, Switch, SwitchConfig
from tcptune.ir.mappings.cells import joint_table
from tcptune.ir.mappings.mapping import Mapping, pair
from tcptune.ir.types import StreamType
from tcptune.model.engines.collect import aligned_packet_bytes, flits_of_bytes
from tcptune.model.engines.switch.bitmap import LAYOUTS, NO_SOURCE, Routing, is_new, part_sizes
from tcptune.model.engines.switch.custom import check_added_axes, custom_routing, overlapping_symbol
from tcptune.model.hardware import Hardware
from tcptune.model.stage import ChainEnv, StageCost, Step
from tcptune.model.values import Values

HANDLES = (Switch,)

CONFIGURATIONS: dict[str, tuple[str, ...]] = {
    "Broadcast01": ("slice1", "slice0", "time0"),
    "Broadcast1": ("slice1", "slice0"),
    "Transpose": ("slice1", "slice0"),
    "InterTranspose": ("slice1", "slice0", "time0"),
    "TransposedBroadcast1": ("slice1", "slice0"),
    "CustomBroadcast": ("ring_size",),
}
"""Configurations and the sizes each names (SWITCH-034)."""

RULE_OF = {
    "Broadcast01": "SWITCH-007",
    "Broadcast1": "SWITCH-009",
    "Transpose": "SWITCH-010",
    "InterTranspose": "SWITCH-012",
    "TransposedBroadcast1": "SWITCH-016",
}
"""Rule under which a wrong layout of a canonical configuration is reported (SWITCH-032)."""


def check_sub_rings(ring_size: int, slices: int) -> None:
    """Refuses a ring that does not cut the slices into sub-rings.

    Raises:
        RuleViolation: SWITCH-029 or SWITCH-004.
    """
    if ring_size < 1 or ring_size & (ring_size - 1):
        raise RuleViolation(
            "SWITCH-029", f"the ring size {ring_size} is not a power of two", expected="a power of two", got=ring_size, also=("SWITCH-004",)
        )
    if slices % ring_size:
        message = f"a ring of {ring_size} slices does not divide the {slices} slices"
        raise RuleViolation("SWITCH-004", message, expected=f"a divisor of {slices}", got=ring_size, also=("SWITCH-003",))


def switch_cycles(ring_size: int, in_steps: int, flits_per_packet: int) -> int:
    """Cycles of a switch: all sub-rings run in parallel (SWITCH-018)."""
    return ring_size * in_steps * flits_per_packet


def check(stream: StreamType, op: Op, env: ChainEnv) -> Step:
    """Slice and Time after the switch; everything else is kept (SWITCH-001).

    Raises:
        RuleViolation: TU-004 for unaligned packets, SWITCH-002 if the slice count changes, SWITCH-003 for sizes that do not split the
            slices, SWITCH-005 to SWITCH-016 for a canonical configuration, SWITCH-020 to SWITCH-033 for CustomBroadcast.
    """
    assert isinstance(op, Switch)
    _check_sizes(op.config)
    flits = flits_of_bytes(aligned_packet_bytes(stream, env.hw), env.hw)
    if op.slice.size != stream.slice.size:
        raise RuleViolation(
            "SWITCH-002",
            "the output Slice has another number of positions than the input Slice",
            expected=stream.slice.size,
            got=f"{op.slice} ({op.slice.size})",
            also=_layout_rules(stream, op),
        )
    routing = custom_routing(stream, op) if op.config.kind == "CustomBroadcast" else _canonical(stream, op, env)
    cycles = switch_cycles(routing.ring_size, routing.in_steps, flits)
    derived: dict[str, object] = {
        "cycles": cycles,
        "ring_size": routing.ring_size,
        "sub_rings": routing.sub_rings,
        "in_time_size": routing.in_steps,
        "out_time_size": routing.out_steps,
        "flits_per_packet": flits,
        **_named_sizes(routing),
    }
    after = stream.with_(position="Switch", slice=op.slice, time=op.time)
    return Step(op, stream, after, routing, derived, StageCost(cycles=cycles))


def apply(values: Values, step: Step, env: ChainEnv, operands: Dict[str, Values]) -> Values:
    """One gather over Slice and Time; what the result's mappings call padding is not defined."""
    routing: Routing = step.config
    in_slice, in_step = routing.route()
    live = (in_slice != NO_SOURCE) & joint_table(step.after.slice, step.after.time).live  # type: ignore[union-attr]  # a switch gives a stream, never a tensor
    return Values(values.data[:, :, in_slice, in_step], values.defined[:, :, in_slice, in_step] & live[:, :, None])


def canonical_routing(config: SwitchConfig, slices: int, in_steps: int, hw: Hardware) -> Routing:
    """The routing of a canonical configuration, from its sizes alone (relation table of the Switch Engine).

    Raises:
        RuleViolation: SWITCH-034 no such configuration, SWITCH-003, SWITCH-008, SWITCH-013 or SWITCH-015 for sizes that do not split.
    """
    _check_sizes(config)
    _check_split(config, slices, in_steps, hw)
    assert config.slice1 is not None and config.slice0 is not None
    sizes = part_sizes(config.kind, slices, in_steps, config.slice1, config.slice0, config.time0 or 1)
    out_steps = prod(sizes[p] for p in LAYOUTS[config.kind].out_time)
    ring = config.slice1 * config.slice0
    return Routing(config.kind, slices, ring, in_steps, out_steps, config.slice1, config.slice0, config.time0 or 1)


def _check_sizes(config: SwitchConfig) -> None:
    kind = config.kind
    if kind not in CONFIGURATIONS:
        raise RuleViolation(
            "SWITCH-034",
            f"there is no switch configuration {kind!r}",
            expected=", ".join(CONFIGURATIONS),
            got=kind,
            nearest="omit the switch to forward" if kind == "Forwarding" else None,
            also=("SWITCH-006",) if kind == "Forwarding" else (),
        )
    named = CONFIGURATIONS[kind]
    for name in ("slice1", "slice0", "time0", "ring_size"):
        size = getattr(config, name)
        if (size is None) != (name not in named):
            problem = f"needs the size {name!r}" if name in named else f"has no size {name!r}"
            raise InputError(f"switch configuration {kind} {problem}", hint=f"sizes of {kind}: {', '.join(named)}")
        if size is None or name == "ring_size":
            continue
        if not isinstance(size, int) or isinstance(size, bool) or size < 1:
            also = ("SWITCH-015",) if kind == "InterTranspose" and name == "time0" else ("SWITCH-008",) if name == "time0" else ()
            raise RuleViolation("SWITCH-003", f"{name} must be a positive number", got=size, expected="1 or more", also=also)


def _named_sizes(routing: Routing) -> dict[str, int]:
    """Sizes of a canonical configuration under the names of its examples; Time is named where the configuration cuts it."""
    if routing.is_custom:
        return {}
    cuts_time = "time0" in CONFIGURATIONS[routing.kind]
    names = ("slice2", "slice1", "slice0", *(LAYOUTS[routing.kind].in_time if cuts_time else ()))
    return {name: routing.part_sizes[name] for name in names}


# --- canonical configurations -----------------------------------------------------------------------------------------------------


def _canonical(stream: StreamType, op: Switch, env: ChainEnv) -> Routing:
    """Checks a canonical configuration against the layout rebuilt from its sizes (SWITCH-032)."""
    layout = LAYOUTS[op.config.kind]
    routing = canonical_routing(op.config, stream.slice.size, stream.time.size, env.hw)
    sizes = routing.part_sizes
    parts = {**_cut(stream.slice, layout.in_slice, sizes), **_cut(stream.time, layout.in_time, sizes)}
    time = pair(*(parts[p] for p in layout.out_time))
    wanted = ", ".join(f"[{sizes[p]} new positions]" if is_new(p) else f"[{parts[p]}]" for p in layout.out_slice if sizes[p] > 1)
    out_parts = _cut(op.slice, layout.out_slice, sizes)
    found = [] if op.time.equivalent(time) else [_wrong_layout(stream, op, "time", time)]
    if not all(is_new(p) or out_parts[p].equivalent(parts[p]) for p in layout.out_slice):
        exact = None if any(is_new(p) for p in layout.out_slice) else pair(*(parts[p] for p in layout.out_slice))
        found.append(_wrong_layout(stream, op, "slice", exact or wanted))
    not_new = _not_new(stream, op, pair(*(out_parts[p] for p in layout.out_slice if is_new(p))), wanted)
    if not_new:
        found.append(not_new)
    if found:
        raise _first_of(found)
    return routing


def _first_of(found: list[RuleViolation]) -> RuleViolation:
    """The first violation; the others are equally right diagnoses."""
    first = found[0]
    first.also = tuple(dict.fromkeys(rule for v in found for rule in (v.rule, *v.also) if rule != first.rule))
    return first


def _layout_rules(stream: StreamType, op: Switch) -> tuple[str, ...]:
    """Rules besides SWITCH-002 that an output Slice of another size breaks."""
    if op.config.kind != "CustomBroadcast":
        return (RULE_OF[op.config.kind], "SWITCH-032", *_swap_sizes_differ(stream, op))
    try:
        check_added_axes(stream, op)
    except RuleViolation as refusal:
        return (refusal.rule, *refusal.also)
    return ()


def _cut(mapping: Mapping, parts: tuple[str, ...], sizes: dict[str, int]) -> dict[str, Mapping]:
    """The parts of a mapping by position, whatever axes they come from (SWITCH-003)."""
    found: dict[str, Mapping] = {}
    for part in reversed(parts[1:]):
        mapping, found[part] = mapping.split_at(sizes[part])
    return {**found, parts[0]: mapping}


def _wrong_layout(stream: StreamType, op: Switch, level: str, expected: object) -> RuleViolation:
    kind = op.config.kind
    got = op.time if level == "time" else op.slice
    return RuleViolation(
        "SWITCH-011" if kind == "Transpose" and level == "time" else RULE_OF[kind],
        f"the {level} is not the one that {kind} gives",
        expected=expected,
        got=got,
        nearest=f"{level} = {expected}",
        also=(*_swap_sizes_differ(stream, op), "SWITCH-032"),
    )


def _swap_sizes_differ(stream: StreamType, op: Switch) -> tuple[str, ...]:
    """SWITCH-014 where the part of Time that an InterTranspose takes into Slice has another size than slice1."""
    if op.config.kind != "InterTranspose":
        return ()
    from_time = set(stream.time.axes) - set(stream.slice.axes)
    entering = [m.size for m in op.slice.terms() if from_time & set(m.axes)]
    return ("SWITCH-014",) if entering and prod(entering) != op.config.slice1 else ()


def _check_split(config: SwitchConfig, slices: int, steps: int, hw: Hardware) -> None:
    """SWITCH-003 and the divisibility rules of the configurations with a time split (SWITCH-008, SWITCH-013, SWITCH-015)."""
    assert config.slice1 is not None and config.slice0 is not None
    ring = config.slice1 * config.slice0
    if config.kind == "InterTranspose" and (slices != hw.slices_per_cluster or slices % ring):
        raise RuleViolation(
            "SWITCH-013",
            f"slice1 = {config.slice1} and slice0 = {config.slice0} do not split {slices} slices into slice2 * slice1 * slice0 = 256",
            expected=hw.slices_per_cluster,
            got=slices,
            also=("SWITCH-003",) if slices % ring else (),
        )
    if slices % ring:
        raise RuleViolation(
            "SWITCH-003", f"slice1 * slice0 = {ring} does not divide the {slices} slices", expected=f"a divisor of {slices}", got=ring
        )
    if config.time0 is None:
        return
    unit = config.time0 * (config.slice1 if config.kind == "InterTranspose" else 1)
    if steps % unit:
        rule, what = ("SWITCH-015", "slice1 * time0") if config.kind == "InterTranspose" else ("SWITCH-008", "time0")
        raise RuleViolation(rule, f"{what} = {unit} does not divide the {steps} time steps", expected=f"a divisor of {steps}", got=unit)


def _not_new(stream: StreamType, op: Switch, slot: Mapping, wanted: str) -> RuleViolation | None:
    """SWITCH-005 where the filling of the vacated slot is not new."""
    old = [name for name in slot.axes if name in stream.slice.axes or name in stream.time.axes]
    twice = overlapping_symbol(slot)
    if not old and not twice:
        return None
    problem = f"axis {old[0]} is in the input already" if old else f"axis {twice} fills two places"
    return RuleViolation(
        "SWITCH-005",
        f"the vacated slice positions take new axes, a broadcast or padding; {problem}",
        expected=wanted,
        got=op.slice,
        nearest=f"fill the slot with 1 # {slot.size} or a new axis of {slot.size}",
        also=("SWITCH-036", RULE_OF[op.config.kind]),
    )

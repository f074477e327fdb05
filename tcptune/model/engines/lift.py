"""Axis lifting: moves an axis of Time to Chip, Cluster or Slice by giving every unit its own read base (LIFT-001 to LIFT-011).

``Slice A, 2`` and ``Time Q`` become ``Slice A, Q / 2`` and ``Time Q % 2``: nothing is transferred, each of the two slices that held the
same data starts its read at another element.
"""

from __future__ import annotations

from collections.abc import Mapping as Dict
from dataclasses import dataclass, replace

import numpy as np

from tcptune.errors import RuleViolation
from tcptune.ir.kernels.ops import FetchChipLift, FetchClusterLift, FetchSliceLift, Op
from tcptune.ir.mappings.algebra_terms import Term, joined, terms_of
from tcptune.ir.mappings.mapping import IDENTITY, Mapping, Padding, pair
from tcptune.ir.types import StreamType
from tcptune.model.engines.fetch import FetchRead
from tcptune.model.mappings.movement import gather_within_slice
from tcptune.model.sequencer.configuration import Entry
from tcptune.model.sequencer.derivation import entries_of
from tcptune.model.stage import ChainEnv, StageCost, Step
from tcptune.model.values import Values

HANDLES = (FetchChipLift, FetchClusterLift, FetchSliceLift)

GROUP = 2
"""The verifier compares the dimension in groups of this size (LIFT-006)."""

SLICE_SETUP = ("dma of relative offsets", "add of the source address in the fetch context", "SFR store")
"""What a slice lift runs before the fetch (LIFT-004); chip and cluster bases are part of the read command (LIFT-003)."""


@dataclass(frozen=True)
class LiftConfig:
    """A checked lift.

    Attributes:
        level: ``chip``, ``cluster`` or ``slice``.
        lifted: the digits that left Time, major first.
        entries: loops over the buffer that each lifted digit stands for.
    """

    level: str
    lifted: tuple[Mapping, ...]
    entries: tuple[tuple[Entry, ...], ...]

    def bases(self) -> dict[str, int]:
        """Base of a unit in elements, by the value of each lifted digit (LIFT-002)."""
        found = {}
        for digit, entries in zip(self.lifted, self.entries, strict=True):
            for value in range(digit.size):
                found[f"{digit} = {value}"] = _base(value, entries)
        return found


def _base(value: int, entries: tuple[Entry, ...]) -> int:
    base = 0
    for entry in reversed(entries):
        value, index = divmod(value, entry.size)
        base += index * entry.stride
    return base


def _target(op: Op) -> tuple[str, Mapping, Mapping]:
    if isinstance(op, FetchChipLift):
        return "chip", op.chip, op.time
    if isinstance(op, FetchClusterLift):
        return "cluster", op.cluster, op.time
    assert isinstance(op, FetchSliceLift)
    return "slice", op.slice, op.time


def check(stream: StreamType, op: Op, env: ChainEnv) -> Step:
    """The stream with the lifted digits in space.

    Raises:
        RuleViolation: LIFT-007 sizes, LIFT-006 something else than a broadcast changes, LIFT-001 nothing is lifted, LIFT-009 the digits are
            not in Time or stay there, LIFT-010 a base is not aligned.
    """
    level, wanted, time = _target(op)
    given: Mapping = getattr(stream, level)
    if wanted.size != given.size:
        raise RuleViolation("LIFT-007", f"{level} changes its size", expected=f"{given.size} positions", got=f"{wanted} ({wanted.size})")
    lifted = _changed_digits(level, given, wanted)
    if not lifted:
        raise RuleViolation(
            "LIFT-001",
            f"{level} does not change, so nothing is lifted",
            expected=f"an axis of Time in place of a broadcast of {given}",
            got=wanted,
        )
    _check_time(stream, lifted, time)
    read = stream.details if isinstance(stream.details, FetchRead) else None
    digits = tuple(t.mapping() for t in lifted)
    entries = tuple(entries_of(read.buffer, d) for d in digits) if read else tuple(() for _ in digits)
    config = LiftConfig(level, digits, entries)
    bases = config.bases()
    _check_bases(stream, bases, env)
    details = None
    if read is not None:
        strides = tuple((str(d), e[-1].stride) for d, e in zip(digits, entries, strict=True) if e)
        details = replace(read, steps=time.size, lifted_strides=(*read.lifted_strides, *strides))
    derived: dict[str, object] = {
        "base_elements": bases,
        "base_bytes": {name: stream.dtype.bytes_of(base) for name, base in bases.items()},
        "time_steps_before_lift": stream.time.size,
        "time_steps": time.size,
        "setup": list(SLICE_SETUP) if level == "slice" else [],
        "restores_fetch_parameters": level == "slice" and env.context == "sub",
    }
    if details is not None:
        derived.update(stride_elements=dict(details.lifted_strides), cycles=details.cycles, fetch_cycles=details.cycles)
    position = {"chip": "FetchChipLift", "cluster": "FetchClusterLift", "slice": "FetchSliceLift"}[level]
    after = stream.with_(position=position, time=time, details=details, **{level: wanted})
    return Step(op, stream, after, config, derived, StageCost(cycles=details.cycles if details is not None else 0))


def _changed_digits(level: str, given: Mapping, wanted: Mapping) -> list[Term]:
    """Digits of `wanted` that stand where `given` has a broadcast; everything else must be the same."""
    before, after = _opened(terms_of(given)), _opened(terms_of(wanted))
    changed: list[Term] = []
    while before and after:
        old, new = before.pop(), after.pop()
        if old == new:
            continue
        size = min(old.extent, new.extent)
        old_rest, old_low = _cut(old, size)
        new_rest, new_low = _cut(new, size)
        if old_low is None or new_low is None:
            raise _not_a_broadcast(level, old, new, given)
        if old_low != new_low:
            if not _is_liftable(old_low, new_low):
                raise _not_a_broadcast(level, old_low, new_low, given)
            changed.insert(0, new_low)
        before += [old_rest] if old_rest else []
        after += [new_rest] if new_rest else []
    return joined(changed)


def _opened(terms: list[Term]) -> list[Term]:
    """Terms with padding apart from what it pads where sizes allow: ``2 # 4`` as ``1 # 2, 2``."""
    out: list[Term] = []
    for term in terms:
        operand = term.operand
        if isinstance(operand, Padding) and term.extent == operand.size and operand.n % operand.inner.size == 0 and operand.inner.size > 1:
            idle = IDENTITY.pad(operand.n // operand.inner.size, operand.kind)
            out += [Term(idle, 1, idle.size), *terms_of(operand.inner)]
        else:
            out.append(term)
    return out


def _cut(term: Term, size: int) -> tuple[Term | None, Term | None]:
    """Major and minor part of a term at `size`; minor None if the cut is not possible."""
    if term.extent == size:
        return None, term
    if term.extent % size:
        return None, None
    if term.operand is None:
        return Term(None, 1, term.extent // size), Term(None, 1, size)
    return Term(term.operand, term.weight * size, term.extent // size), Term(term.operand, term.weight, size)


def _is_liftable(old: Term, new: Term) -> bool:
    groups = old.extent
    while groups % GROUP == 0:
        groups //= GROUP
    return groups == 1 and old.operand is None and new.operand is not None and not isinstance(new.operand, Padding)


def _not_a_broadcast(level: str, old: Term, new: Term, given: Mapping) -> RuleViolation:
    return RuleViolation(
        "LIFT-006",
        f"{level} changes {old.mapping()} into {new.mapping()}",
        expected=f"only broadcasts of {GROUP} become digits of an axis; everything else of {given} stays",
        got=new.mapping(),
    )


def _check_time(stream: StreamType, lifted: list[Term], time: Mapping) -> None:
    digits = pair(*(t.mapping() for t in lifted))
    try:
        rest = stream.time.divide(digits)
    except RuleViolation:
        raise RuleViolation(
            "LIFT-009", f"{digits} is not in Time, so it cannot be lifted", expected=f"digits of Time {stream.time}", got=digits
        ) from None
    if not time.equivalent(rest):
        raise RuleViolation("LIFT-009", f"Time must lose {digits} and keep everything else", expected=rest, got=time, nearest=rest)


def _check_bases(stream: StreamType, bases: dict[str, int], env: ChainEnv) -> None:
    for name, base in bases.items():
        bits = base * stream.dtype.bits
        if bits % (8 * env.hw.stream_alignment_bytes):
            raise RuleViolation(
                "LIFT-010",
                f"the base of the unit with {name} is {base} {stream.dtype} elements, {bits / 8:g} bytes",
                expected=f"a multiple of {env.hw.stream_alignment_bytes} bytes",
                got=f"{bits / 8:g} bytes",
                nearest="pad the rows of the DM tensor to a multiple of 8 bytes",
            )


def require_replicated(values: Values, stream: StreamType, level: str, lifted: tuple[Mapping, ...]) -> None:
    """Refuses a broadcast that a reshape merely claimed: known data must be the same at all its positions (LIFT-011).

    Raises:
        RuleViolation: LIFT-011.
    """
    given: Mapping = getattr(stream, level)
    axis = {"chip": 0, "cluster": 1, "slice": 2}[level]
    groups: dict[tuple[tuple[str, int], ...], list[int]] = {}
    cells = given.table()
    for position in np.flatnonzero(cells.live):
        groups.setdefault(tuple((n, int(c[position])) for n, c in cells.coords.items()), []).append(int(position))
    patterns = np.ascontiguousarray(values.data).view(f"u{values.data.dtype.itemsize}")
    data, defined = np.moveaxis(patterns, axis, 0), np.moveaxis(values.defined, axis, 0)
    for positions in groups.values():
        first = positions[0]
        for other in positions[1:]:
            differ = defined[first] & defined[other] & (data[first] != data[other])
            if differ.any():
                raise RuleViolation(
                    "LIFT-011",
                    f"{level} {first} and {other} hold different data, but {given} calls them a broadcast",
                    expected=f"the same source on every unit before {', '.join(map(str, lifted))} is lifted",
                    got=f"{int(differ.sum())} different elements",
                )


def apply(values: Values, step: Step, env: ChainEnv, operands: Dict[str, Values]) -> Values:
    """Every unit keeps the packets of its own value of the lifted digits.

    Raises:
        RuleViolation: LIFT-011, the source is not replicated.
    """
    config: LiftConfig = step.config
    before, after = step.before, step.after
    assert isinstance(after, StreamType)
    require_replicated(values, before, config.level, config.lifted)
    index, live = gather_within_slice(replace(before, details=None), replace(after, details=None))
    return Values(values.data.reshape(-1)[index], values.defined.reshape(-1)[index] & live)

"""Valid Count Generator: how many elements of every 8-lane flit are real, for the axes a call tracks (VCG-001 to VCG-024).

The generator is set up from the mapping at `vector_init`. A tracked axis of size N that is padded to P lies in digits
``R # P / n % m`` of Slice, Time and Packet. A packet digit drives the clipper; any other placement takes a time filter, which
compares a masked slice id with a threshold and a sequencer's index with another. `derive` finds the configuration for every placement
the hardware can express and refuses the rest with the reason; `ValidCountConfig.valid_sizes` is what the hardware then counts.
"""

from __future__ import annotations

from collections.abc import Iterable
from collections.abc import Mapping as Dict
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from tcptune.errors import RuleViolation
from tcptune.ir.mappings.mapping import Mapping
from tcptune.model.hardware import Hardware
from tcptune.model.mappings.position_digits import Digits, PlacedDigit, joined_digits, position_digits

SLICE_MAJOR, TIME_MAJOR = "SliceMajor", "TimeMajor"

Counts = npt.NDArray[np.int64]
Sequencer = tuple[tuple[int, int], ...]
"""Entries (size, stride), outermost first."""


def sequencer_index(sequencer: Sequencer, steps: Counts) -> Counts:
    """Index at every step: the step is decomposed over the entries, outermost first, and the counters are weighted by the strides."""
    index = np.zeros_like(steps)
    for size, stride in reversed(sequencer):
        index = index + steps % size * stride
        steps = steps // size
    return index


@dataclass(frozen=True, slots=True)
class TimeFilter:
    """Decides which steps of a slice are valid for one axis (VCG-004).

    Attributes:
        axis: the axis it tracks.
        slice_mask, slice_thres: bits of the slice id that carry the axis, and the value they are compared with.
        time_thres: steps with a smaller index are valid where the slice does not decide.
        mode: ``SliceMajor`` (slices above the threshold are empty) or ``TimeMajor``.
        facts: how the fields were found, under the names of the manual (spans, over-padding, boundary).
    """

    axis: str
    sequencer: Sequencer
    slice_mask: int
    slice_thres: int
    time_thres: int
    mode: str
    facts: tuple[tuple[str, int], ...] = ()

    def group(self, slice_id: int) -> str:
        """Where a slice lies: ``below`` (all steps valid), ``boundary``, or ``above`` the threshold."""
        masked = slice_id & self.slice_mask
        return "below" if masked < self.slice_thres else "above" if masked > self.slice_thres else "boundary"

    def valid(self, slices: Counts, steps: Counts) -> npt.NDArray[np.bool_]:
        """Validity over (slice, step)."""
        masked = (slices & self.slice_mask)[:, None]
        in_time = (sequencer_index(self.sequencer, steps) < self.time_thres)[None, :]
        closed = (masked > self.slice_thres) & (self.mode == SLICE_MAJOR)
        result: npt.NDArray[np.bool_] = (masked < self.slice_thres) | (~closed & in_time)
        return result


@dataclass(frozen=True, slots=True)
class PacketClipper:
    """Real elements at the front of a flit, the same for all slices: clamp(axis_size - index, 0, packet_span) (VCG-017)."""

    sequencer: Sequencer
    axis_size: int
    packet_span: int
    enabled: bool

    def valid_sizes(self, steps: Counts) -> Counts:
        """Count at every step."""
        return np.clip(self.axis_size - sequencer_index(self.sequencer, steps), 0, self.packet_span)


@dataclass(frozen=True, slots=True)
class ValidCountConfig:
    """Configuration of one call: the enabled time filters and the clipper."""

    time_filters: tuple[TimeFilter, ...]
    packet_clipper: PacketClipper

    def valid_sizes(self, slices: int, steps: int) -> Counts:
        """valid_size over (slice, step): the clipper's count where all filters report valid, else 0 (VCG-003)."""
        step, slice_id = np.arange(steps, dtype=np.int64), np.arange(slices, dtype=np.int64)
        counts = np.broadcast_to(self.packet_clipper.valid_sizes(step), (slices, steps)).copy()
        for time_filter in self.time_filters:
            counts[~time_filter.valid(slice_id, step)] = 0
        return counts

    def summary(self) -> dict[str, Any]:
        """The numbers a chain derives: enabled filters, and whether the clipper is in use."""
        return {"time_filters": len(self.time_filters), "packet_clipper": self.packet_clipper.enabled}


# --- propagation (VCG-022) --------------------------------------------------------------------------------------------


def split_counts(counts: Counts, lanes: int) -> Counts:
    """Counts after vector_narrow_split: a new last axis with the front half min(v, lanes) and the back half max(v - lanes, 0)."""
    return np.stack([np.minimum(counts, lanes), np.maximum(counts - lanes, 0)], axis=-1)


def trim_counts(counts: Counts, lanes: int) -> Counts:
    """Counts after vector_narrow_trim: min(v, lanes)."""
    return np.minimum(counts, lanes)


def concat_counts(halves: Counts) -> Counts:
    """Counts after vector_widen_concat: the halves (last axis) add up."""
    return np.asarray(halves.sum(axis=-1))


def pad_counts(counts: Counts) -> Counts:
    """Counts after vector_widen_pad: the added lanes hold nothing."""
    return counts


# --- derivation -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Placement:
    """Where the digits of one axis lie, each part outermost first."""

    axis: str
    size: int
    slice: Digits
    time: Digits
    packet: Digits
    elsewhere: Digits

    @property
    def parts(self) -> Digits:
        return (*self.slice, *self.time, *self.packet, *self.elsewhere)

    @property
    def is_padded(self) -> bool:
        """Whether some position of the parts lies beyond the axis."""
        return any(d.span > self.size for d in self.parts)


def derive(
    slices: Mapping, time: Mapping, packet: Mapping, tracked: Dict[str, int], hw: Hardware, *, elsewhere: Iterable[Mapping] = ()
) -> ValidCountConfig:
    """The configuration that counts the real elements of the `tracked` axes.

    Args:
        slices, time, packet: the stream at `vector_init`, packet of one flit.
        tracked: sizes of the axes to track, the reduce axis first.
        elsewhere: mappings of Chip and Cluster; a padded axis must not lie there.

    Raises:
        RuleViolation: VCG-002, 006, 007, 010, 011, 013 to 016, 018 or 019, with the reason why the placement cannot be expressed.
    """
    disabled = PacketClipper((), packet.size, packet.size, enabled=False)
    clippers: list[PacketClipper] = []
    filters: list[TimeFilter] = []
    for axis, size in tracked.items():
        place = _placement(axis, size, slices, time, packet, elsewhere)
        clipper, time_filter = _axis_configuration(place, time, packet, hw)
        if clipper is not None:
            clippers.append(clipper)
        if time_filter is not None:
            filters.append(time_filter)
    if len(filters) > hw.valid_count_time_filters or len(clippers) > hw.valid_count_packet_clippers:
        raise RuleViolation(
            "VCG-018",
            f"{len(filters)} axes need a time filter and {len(clippers)} the packet clipper",
            expected=f"at most {hw.valid_count_time_filters} filters and {hw.valid_count_packet_clippers} clipper",
            got=", ".join(tracked),
        )
    for owner, sequencer in [*((f.axis, f.sequencer) for f in filters), *(("the packet clipper", c.sequencer) for c in clippers)]:
        _require_entries(owner, sequencer, hw)
    return ValidCountConfig(tuple(filters), clippers[0] if clippers else disabled)


def _placement(axis: str, size: int, slices: Mapping, time: Mapping, packet: Mapping, elsewhere: Iterable[Mapping]) -> _Placement:
    def of_axis(m: Mapping) -> Digits:
        digits = position_digits(m)
        if digits is None:
            if axis not in m.axes:
                return ()
            raise RuleViolation("VCG-002", f"{m} is no list of factors {axis} # P / n % m", expected=f"{axis} # P / n % m", got=str(m))
        return tuple(d for d in digits if d.axis == axis)

    in_packet = joined_digits(of_axis(packet))
    return _Placement(axis, size, of_axis(slices), of_axis(time), in_packet, tuple(d for m in elsewhere for d in of_axis(m)))


def _axis_configuration(place: _Placement, time: Mapping, packet: Mapping, hw: Hardware) -> tuple[PacketClipper | None, TimeFilter | None]:
    span = 1
    clipper = None
    if place.is_padded:
        _require_home(place)
    if place.packet:
        reason = _packet_reason(place, packet)
        if reason is not None and (place.is_padded or _has_idle_lanes(packet, hw)):
            raise reason
        if reason is None:
            span = place.packet[0].extent
            if not place.slice:
                return PacketClipper(_sequencer(time, place.axis), place.size, span, enabled=True), None
            clipper = PacketClipper((), span, span, enabled=True)
    if not place.is_padded:
        return clipper, None
    if place.packet and place.size % span:
        raise RuleViolation(
            "VCG-016",
            f"{place.axis} lies in Slice and Packet, and the clipper does not depend on the slice",
            expected=f"a size of {place.axis} that {span} divides",
            got=place.size,
            nearest=f"move the {place.axis} part out of Slice or out of Packet",
            also=("VCG-007",) if not all(_is_power_of_two(d) for d in place.slice) else (),
        )
    return clipper, _time_filter(place, time, span)


def _has_idle_lanes(packet: Mapping, hw: Hardware) -> bool:
    """Whether lanes without data are left beside those with data: neither a full flit nor the front half that a trim keeps."""
    real = prod(d.extent for d in position_digits(packet) or ())
    return real not in hw.vector_ways


def _packet_reason(place: _Placement, packet: Mapping) -> RuleViolation | None:
    """Why the clipper cannot count the packet's part of the axis; None if it can."""
    digits = joined_digits(position_digits(packet) or ())
    axis = place.axis
    if len(place.packet) > 1:
        return RuleViolation("VCG-015", f"{axis} has {len(place.packet)} parts in the packet", expected="one part", got=str(packet))
    if len(digits) > 1:
        return RuleViolation("VCG-014", f"another axis lies beside {axis} in the packet", expected=f"{axis} alone", got=str(packet))
    part = place.packet[0]
    if part.weight != 1 or part.place != 1:
        return RuleViolation(
            "VCG-013",
            f"the packet holds {axis} in steps of {part.weight}",
            expected=f"{axis} # P % packet_span # {packet.size}",
            got=str(packet),
        )
    return None


def _sequencer(time: Mapping, axis: str, divisor: int = 1) -> Sequencer:
    """One entry a digit of Time; digits of other axes have stride 0 (VCG-008). Padding behind a digit counts on with its stride."""
    entries: list[tuple[int, int]] = []
    digits = position_digits(time) or ()
    for major, digit in zip((None, *digits), digits, strict=False):
        size = (time.size if major is None else major.place) // digit.place
        is_tracked = digit.axis == axis
        if is_tracked and size > digit.extent and not digit.is_top:
            raise RuleViolation(
                "VCG-002", f"{time} pads a part of {axis} that is not its last", expected=f"{axis} # P / n % m", got=str(time)
            )
        entries.append((size, digit.weight // divisor if is_tracked else 0))
    innermost = digits[-1].place if digits else time.size
    return (*entries, (innermost, 0)) if innermost > 1 else tuple(entries)


def _time_filter(place: _Placement, time: Mapping, unit: int) -> TimeFilter:
    """The filter of a padded axis whose packet part, if any, has `unit` elements in every real flit."""
    _require_tiling(place)
    _check_slice_parts(place)
    if not place.slice:
        return TimeFilter(place.axis, _sequencer(time, place.axis), 0, 0, place.size, SLICE_MAJOR)
    if not place.time or min(d.weight for d in place.slice) > max(d.weight for d in place.time):
        return _slice_major(place, time)
    if max(d.weight for d in place.slice) < min(d.weight for d in place.time):
        return _time_major(place, time, unit)
    raise RuleViolation(
        "VCG-011",
        f"strides of {place.axis} in Slice lie between those in Time",
        expected="all Slice strides above all Time strides, or all below",
        got=f"Slice {[d.weight for d in place.slice]}, Time {[d.weight for d in place.time]}",
    )


def _require_home(place: _Placement) -> None:
    if place.elsewhere:
        raise RuleViolation(
            "VCG-002", f"the padded axis {place.axis} lies in Chip or Cluster", expected="parts in Slice, Time and Packet only"
        )


def _require_tiling(place: _Placement) -> None:
    """The parts must cover the padded axis without gaps."""
    edge = 1
    for digit in sorted(place.parts, key=lambda d: d.weight):
        if digit.weight != edge:
            raise RuleViolation("VCG-002", f"no part of {place.axis} covers the stride {edge}", expected=edge, got=digit.weight)
        edge = digit.span


def _is_power_of_two(digit: PlacedDigit) -> bool:
    return all(n & (n - 1) == 0 for n in (digit.extent, digit.weight, digit.place))


def _check_slice_parts(place: _Placement) -> None:
    weights = [d.weight for d in place.slice]
    if weights != sorted(weights, reverse=True):
        raise RuleViolation(
            "VCG-006", f"the Slice parts of {place.axis} are not in descending stride", expected=sorted(weights, reverse=True), got=weights
        )
    for digit in place.slice:
        if not _is_power_of_two(digit):
            raise RuleViolation(
                "VCG-007",
                f"a Slice part of {place.axis} has size {digit.extent}, stride {digit.weight}, slice step {digit.place}",
                expected="powers of two",
                nearest=f"pad {place.axis} to a power of two",
            )


def _encode(place: _Placement, coordinate: int) -> int:
    """The slice-id bits that hold the Slice parts of a coordinate."""
    return sum(coordinate // d.weight % d.extent * d.place for d in place.slice)


def _mask(place: _Placement) -> int:
    return sum((d.extent - 1) * d.place for d in place.slice)


def _slice_major(place: _Placement, time: Mapping) -> TimeFilter:
    spacing = min(d.weight for d in place.slice)
    boundary = place.size // spacing * spacing
    return TimeFilter(
        place.axis,
        _sequencer(time, place.axis),
        _mask(place),
        _encode(place, boundary),
        place.size - boundary,
        SLICE_MAJOR,
        (("partial_slice_contribution", boundary),),
    )


def _time_major(place: _Placement, time: Mapping, unit: int) -> TimeFilter:
    slice_span = int(np.prod([d.extent for d in place.slice]))
    time_span = int(np.prod([d.extent for d in place.time]))
    over_padding = slice_span * time_span - place.size // unit
    if over_padding > slice_span:
        raise RuleViolation(
            "VCG-010",
            f"{place.axis} is padded by {over_padding} positions",
            expected=f"at most {slice_span}, the positions of one time step",
            got=over_padding,
            nearest=f"pad {place.axis} to {-(-place.size // (slice_span * unit)) * slice_span * unit}",
        )
    return TimeFilter(
        place.axis,
        _sequencer(time, place.axis, slice_span * unit),
        _mask(place),
        _encode(place, (slice_span - over_padding) * unit),
        time_span - 1,
        TIME_MAJOR,
        (("slice_span", slice_span), ("time_span", time_span), ("over_padding", over_padding)),
    )


def _require_entries(owner: str, sequencer: Sequencer, hw: Hardware) -> None:
    merged: list[tuple[int, int]] = []
    for size, stride in sequencer:
        if merged and merged[-1][1] == size * stride:
            merged[-1] = (merged[-1][0] * size, stride)
        else:
            merged.append((size, stride))
    if len(merged) > hw.valid_count_sequencer_entries:
        raise RuleViolation(
            "VCG-019",
            f"the sequencer of {owner} has {len(merged)} entries",
            expected=f"at most {hw.valid_count_sequencer_entries}",
            got=len(merged),
        )

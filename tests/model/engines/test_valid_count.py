"""Valid Count Generator: derived configurations count exactly the real elements; what cannot be expressed is refused with its reason."""

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from tcptune.errors import RuleViolation
from tcptune.exec.conformance.kinds.vcg import demanded_counts
from tcptune.ir.mappings.axes import Axes
from tcptune.model.engines.valid_count import SLICE_MAJOR, TIME_MAJOR, concat_counts, derive, pad_counts, split_counts, trim_counts
from tcptune.model.hardware import RNGD


def configured(sizes, slice_, time, packet, *tracked):
    axes = Axes(sizes)
    levels = [axes.mapping(text) for text in (slice_, time, packet)]
    return derive(*levels, {axis: sizes[axis] for axis in tracked}, RNGD), levels


def refusal(sizes, slice_, time, packet, *tracked):
    with pytest.raises(RuleViolation) as caught:
        configured(sizes, slice_, time, packet, *tracked)
    return caught.value.rule


@pytest.mark.parametrize(
    ("sizes", "slice_", "time", "packet"),
    [
        ({"R": 12, "X": 128}, "X", "R # 16", "1 # 8"),
        ({"R": 10, "A": 3, "X": 64}, "X", "[R # 12 / 4, A, R # 12 % 4]", "1 # 8"),
        ({"R": 11, "X": 64}, "[R # 16 / 8, X, R # 16 / 4 % 2]", "[R # 16 % 2, R # 16 / 2 % 2]", "1 # 8"),
        ({"R": 8, "X": 64}, "[X, R # 16 / 4]", "R # 16 % 4", "1 # 8"),
        ({"R": 12, "X": 64}, "[X, R # 16 / 4]", "R # 16 % 4", "1 # 8"),
        ({"R": 13, "X": 64}, "[R # 16 / 2 % 2, X, R # 16 % 2]", "[R # 16 / 4 % 2, R # 16 / 8]", "1 # 8"),
        ({"R": 10, "X": 64}, "X", "R # 16 / 4", "R # 16 % 4 # 8"),
        ({"R": 27, "A": 2, "X": 64}, "X", "[R # 32 / 8 % 2, A, R # 32 / 16]", "R # 32 % 8"),
        ({"R": 40, "X": 16}, "[X, R # 64 / 8 % 4]", "R # 64 / 32", "R # 64 % 8"),
        ({"R": 56, "X": 16}, "[X, R # 64 / 8 % 4]", "R # 64 / 32", "R # 64 % 8"),
        ({"R": 5, "X": 64}, "X", "R # 8 # 16", "1 # 8"),
        ({"R": 5, "X": 64}, "X", "[R # 8, 1 # 4]", "1 # 8"),
    ],
)
def test_the_counts_are_the_real_elements(sizes, slice_, time, packet):
    config, levels = configured(sizes, slice_, time, packet, "R")
    got = config.valid_sizes(levels[0].size, levels[1].size)
    need = demanded_counts(*levels, ["R"])
    compared = np.flatnonzero(_is_no_padding_of_others(levels[1], "R"))
    assert (got[:, compared] == need[:, compared]).all()


def _is_no_padding_of_others(time, axis):
    """Steps that are no dummy steps (their counts are nobody's business)."""
    table = time.table()
    return table.live | (table.kind == 1) & ("1 # 4" not in str(time))


def test_the_mode_follows_which_level_holds_the_larger_strides():
    major, _ = configured({"R": 11, "X": 64}, "[X, R # 16 / 4]", "R # 16 % 4", "1 # 8", "R")
    minor, _ = configured({"R": 13, "X": 64}, "[X, R # 16 % 4]", "R # 16 / 4", "1 # 8", "R")
    assert (major.time_filters[0].mode, minor.time_filters[0].mode) == (SLICE_MAJOR, TIME_MAJOR)


@pytest.mark.parametrize(
    ("sizes", "slice_", "time", "packet", "rule"),
    [
        ({"R": 13, "X": 32}, "[X, R # 16 / 2 % 4, R # 16 / 8]", "R # 16 % 2", "1 # 8", "VCG-006"),
        ({"R": 13, "X": 64}, "[R # 16 % 2, X, R # 16 / 2 % 2]", "R # 16 / 4", "1 # 8", "VCG-006"),
        ({"R": 10, "X": 64}, "[X, R # 12 / 4]", "R # 12 % 4", "1 # 8", "VCG-007"),
        ({"R": 11, "X": 64}, "[X, R # 12 / 3]", "R # 12 % 3", "1 # 8", "VCG-007"),
        ({"R": 11, "X": 3}, "[R # 16 / 4, X]", "R # 16 % 4", "1 # 8", "VCG-007"),
        ({"R": 11, "X": 64}, "[X, R # 16 % 4]", "R # 16 / 4", "1 # 8", "VCG-010"),
        ({"R": 33, "X": 16}, "[X, R # 64 / 8 % 4]", "R # 64 / 32", "R # 64 % 8", "VCG-016"),
        ({"R": 13, "X": 64}, "[X, R # 16 / 2 % 4]", "[R # 16 / 8, R # 16 % 2]", "1 # 8", "VCG-011"),
        ({"R": 19, "X": 64}, "X", "R # 24 % 8", "R # 24 / 8 # 8", "VCG-013"),
        ({"R": 19, "X": 64}, "X", "R # 24 / 4", "[R # 24 % 4, 1 # 2]", "VCG-013"),
        ({"R": 19, "A": 4, "X": 64}, "X", "R # 24 / 2", "[R # 24 % 2, A]", "VCG-014"),
        ({"R": 19, "X": 64}, "X", "R # 24 / 8", "[R # 24 % 2, R # 24 / 2 % 4]", "VCG-015"),
        ({"R": 13, "X": 64}, "X", "[R # 16 / 8, R # 16 % 4]", "1 # 8", "VCG-002"),
        ({"R": 13, "X": 64}, "X", "[R # 16 % 4 # 8, R # 16 / 4]", "1 # 8", "VCG-002"),
    ],
)
def test_placements_that_one_filter_cannot_express_are_refused(sizes, slice_, time, packet, rule):
    assert refusal(sizes, slice_, time, packet, "R") == rule


def test_a_padded_axis_must_not_lie_in_another_level():
    axes = Axes(R=13, X=64)
    m = axes.mapping
    with pytest.raises(RuleViolation) as caught:
        derive(m("X"), m("R # 16 % 8"), m("1 # 8"), {"R": 13}, RNGD, elsewhere=[m("R # 16 / 8")])
    assert caught.value.rule == "VCG-002"


def test_an_unpadded_axis_takes_no_filter_wherever_it_lies():
    for slice_, time, packet in [("X", "R", "1 # 8"), ("[X, R % 4]", "R / 4", "1 # 8"), ("[X, R / 4 % 2]", "[R / 8, R % 4]", "1 # 8")]:
        config, levels = configured({"R": 16, "X": 64}, slice_, time, packet, "R")
        assert config.time_filters == ()
        assert (config.valid_sizes(levels[0].size, levels[1].size) == 8).all()


def test_three_filters_and_one_clipper_are_all_there_is():
    sizes = {"W": 19, "C": 5, "H": 5, "K": 3, "L": 3}
    slice_, time, packet = "[K # 4, H # 8 / 2, C # 8 / 2]", "[H # 8 % 2, C # 8 % 2, W # 24 / 8]", "W # 24 % 8"
    config, levels = configured(sizes, slice_, time, packet, "W", "C", "H", "K")
    assert (config.valid_sizes(64, 12) == demanded_counts(*levels, ["W", "C", "H", "K"])).all()
    assert refusal(sizes, f"[L # 4, {slice_[1:]}", time, packet, "W", "C", "H", "K", "L") == "VCG-018"


def test_a_sequencer_has_eight_entries_after_neighbours_merge():
    sizes = {"R": 500, "A": 2, "B": 2, "C": 2, "D": 2, "X": 64}
    alternating = (
        "[R # 512 % 2, A, R # 512 / 4 % 2, B, R # 512 / 16 % 2, C, R # 512 / 64, D, R # 512 / 2 % 2, R # 512 / 8 % 2, R # 512 / 32 % 2]"
    )
    assert refusal(sizes, "X", alternating, "1 # 8", "R") == "VCG-019"
    merging = (
        "[R # 512 / 256, R # 512 / 128 % 2, R # 512 / 64 % 2, R # 512 / 32 % 2, R # 512 / 16 % 2, R # 512 / 8 % 2, A, B, C, D, R # 512 % 8]"
    )
    assert len(configured(sizes, "X", merging, "1 # 8", "R")[0].time_filters[0].sequencer) == 11


def test_the_heat_map_of_h_c_and_w_cell_by_cell():
    """16 slices by 12 flits; the expected cell is the number of real (h, c, w) it holds, counted by coordinates."""
    sizes = {"W": 19, "C": 5, "H": 5}
    config, _ = configured(sizes, "[H # 8 / 2, C # 8 / 2]", "[H # 8 % 2, C # 8 % 2, W # 24 / 8]", "W # 24 % 8", "W", "C", "H")
    counts = config.valid_sizes(16, 12)
    for slice_id in range(16):
        for t in range(12):
            h = slice_id // 4 * 2 + t // 6
            c = slice_id % 4 * 2 + t // 3 % 2
            real = [w for w in range(t % 3 * 8, t % 3 * 8 + 8) if w < 19]
            assert counts[slice_id, t] == (len(real) if h < 5 and c < 5 else 0)
    assert (int(counts.sum()), int(np.count_nonzero(counts))) == (475, 75)


def test_counts_behind_narrow_and_widen():
    v = np.arange(9)
    halves = split_counts(v, 4)
    assert halves[:, 0].tolist() == [0, 1, 2, 3, 4, 4, 4, 4, 4]
    assert halves[:, 1].tolist() == [0, 0, 0, 0, 0, 1, 2, 3, 4]
    assert (concat_counts(halves) == v).all()
    assert pad_counts(trim_counts(v, 4)).tolist() == [0, 1, 2, 3, 4, 4, 4, 4, 4]


# --- any placement ----------------------------------------------------------------------------------------------------


@st.composite
def placements(draw):
    """An axis of random size, cut into parts that are dealt to Slice, Time and (the minor one) Packet, between other axes."""
    extents = draw(st.lists(st.sampled_from([2, 2, 2, 3, 4]), min_size=1, max_size=4))
    padded = int(np.prod(extents))
    size = draw(st.integers(1, padded))
    parts, weight = [], 1
    for extent in extents:
        top = weight * extent == padded
        parts.append(f"R # {padded}" + (f" / {weight}" if weight > 1 else "") + ("" if top else f" % {extent}"))
        weight *= extent
    packet = "1 # 8"
    if draw(st.booleans()):
        packet, parts = f"{parts[0]} # 8", parts[1:]
    slice_parts, time_parts = ["X"], []
    for part in draw(st.permutations(parts)):
        (slice_parts if draw(st.booleans()) else time_parts).append(part)
    if draw(st.booleans()):
        time_parts.insert(draw(st.integers(0, len(time_parts))), "A")
    slice_parts = draw(st.permutations(slice_parts))
    return {"R": size, "A": 3, "X": 4}, f"[{', '.join(slice_parts)}]", f"[{', '.join(time_parts)}]" if time_parts else "1", packet


@given(placements())
@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.filter_too_much])
def test_an_accepted_placement_counts_exactly_the_real_elements(placement):
    try:
        config, levels = configured(*placement, "R")
    except RuleViolation:
        assume(False)
    got = config.valid_sizes(levels[0].size, levels[1].size)
    need = demanded_counts(*levels, ["R"])
    if not config.packet_clipper.enabled:
        assert (got == need).all()
    else:
        assert (np.minimum(got, config.packet_clipper.packet_span) == need).all()

"""Rules of the Valid Count Generator (VCG)."""

from tcptune.model.hardware import RNGD
from tcptune.model.rules.rule import Rule

_FILTERS, _ENTRIES = RNGD.valid_count_time_filters, RNGD.valid_count_sequencer_entries
_FORM = "Valid Count Generator"

RULES = (
    Rule(
        "VCG-001",
        "What it does",
        "Gives every 8-element flit (slice, time step) a count from 0 to 8: that many elements at the front are real, the rest is left "
        "out of the "
        "reduction. It is set up from the mapping at vector_init, before any narrowing.",
        "expecting counts of the narrowed packet",
        "see VCG-022 for what narrowing does to a count",
        f"{_FORM} / Architecture",
    ),
    Rule(
        "VCG-002",
        "Form of the mapping",
        "The axis is padded to a size P and split into parts R # P / n % m (step n, m positions), each in Slice, Time or Packet, that "
        "together cover P. "
        "Slice and Time parts drive a time filter, a Packet part the clipper.",
        "a padded axis with a part in Cluster",
        "keep all parts of a padded axis in Slice, Time and Packet",
        _FORM,
    ),
    Rule(
        "VCG-003",
        "Composition",
        "The count is the clipper's if all three time filters report valid, else 0.",
        "adding up the counts of two axes",
        "filters only open and close",
        f"{_FORM} / Architecture",
    ),
    Rule(
        "VCG-004",
        "Time filter",
        "With index i of the sequencer and v = slice id & slice_mask: v below slice_thres is valid; v above it is invalid in "
        "SliceMajor; otherwise valid "
        "while i < time_thres.",
        "comparing the whole slice id",
        "the mask selects the bits of the axis",
        f"{_FORM} / Time Filter",
    ),
    Rule(
        "VCG-005",
        "Disabled filter",
        "slice_mask 0 with slice_thres 1 is always valid; used where the axis has no part in Slice or Time.",
        "slice_thres 0 with mask 0: that compares time only",
        "a positive threshold",
        f"{_FORM} / Time Filter",
    ),
    Rule(
        "VCG-006",
        "Order in Slice",
        "Several Slice parts of an axis stand in descending stride, the largest outermost.",
        "Slice [X, R # 16 / 2 % 4, R # 16 / 8]",
        "[R # 16 / 8, X, R # 16 / 2 % 4]",
        f"{_FORM} / R in Slice and Time; Inexpressible Patterns",
    ),
    Rule(
        "VCG-007",
        "Powers of two in Slice",
        "Size, stride and place of every Slice part are powers of two, so that it fills a run of mask bits. Time has no such limit.",
        "Slice part R # 12 / 4 (size 3)",
        "pad the axis to a power of two",
        f"{_FORM} / R in Slice and Time",
    ),
    Rule(
        "VCG-008",
        "Axis in Time only",
        "mask 0, slice_thres 0, time_thres the axis size; the sequencer has one entry a Time factor, stride 0 for factors of other "
        "axes. Any order works.",
        "counting the other axes' steps",
        "give them stride 0",
        f"{_FORM} / R as Time, R in Time",
    ),
    Rule(
        "VCG-009",
        "SliceMajor",
        "Slice strides above all Time strides. The boundary is the axis size rounded down to the smallest Slice stride: slices below "
        "it are full, the one at "
        "it has size - boundary steps, those above none. Over-padding has no limit.",
        "R = 11 as R # 16: slice 8 has three of four steps",
        "nothing to do",
        f"{_FORM} / R in Slice and Time",
    ),
    Rule(
        "VCG-010",
        "Over-padding in TimeMajor",
        "With Time strides above the Slice strides, P - size is at most the number of Slice positions: only the last time step can be "
        "partial.",
        "R = 14 padded to 20 over four slices",
        "pad to 16",
        f"{_FORM} / R in Time and Slice; Inexpressible Patterns",
    ),
    Rule(
        "VCG-011",
        "No interleaving",
        "Slice strides lie all above or all below the Time strides.",
        "Slice R # 16 / 2 % 4 between Time R # 16 / 8 and R # 16 % 2",
        "swap two parts",
        f"{_FORM} / Inexpressible Patterns",
    ),
    Rule(
        "VCG-012",
        "TimeMajor",
        "Time strides above the Slice strides: sequencer strides are divided by the slice span, slice_thres is the slice span less the "
        "over-padding, "
        "time_thres the time span less 1. Slices below the threshold have all steps, the others all but the last.",
        "expecting an empty slice",
        "TimeMajor has none",
        f"{_FORM} / R in Time and Slice",
    ),
    Rule(
        "VCG-013",
        "Packet holds the minor part",
        "The Packet part is R # P % span, from step 1.",
        "packet R # 24 / 8",
        "R # 24 % 8 in Packet, R # 24 / 8 in Time",
        f"{_FORM} / Packet Clipper; Inexpressible Patterns",
    ),
    Rule(
        "VCG-014",
        "Alone in the packet",
        "No other axis lies in Packet beside a padded one: its elements would be counted as padding.",
        "packet [R # 24 % 2, A]",
        "move A to Time",
        f"{_FORM} / Packet Clipper; Inexpressible Patterns",
    ),
    Rule(
        "VCG-015",
        "One part in the packet",
        "A padded axis has one part in Packet, or real elements would no longer come first.",
        "packet [R # 24 % 2, R # 24 / 2 % 4]",
        "R # 24 % 8",
        f"{_FORM} / Packet Clipper",
    ),
    Rule(
        "VCG-016",
        "Slice and Packet together",
        "The clipper is the same for all slices, so an axis in Slice and Packet is expressible only if the packet span divides its size.",
        "R = 2045 as R # 2048 / 8 over 256 slices: the last one needs 5, the others 8",
        "R = 2040, or another placement",
        f"{_FORM} / Inexpressible Patterns / R in Slice and Packet",
    ),
    Rule(
        "VCG-017",
        "Packet clipper",
        "Count = clamp(axis size - index, 0, span), the same for all slices. Disabled: no sequencer, 8 of 8.",
        "R = 3 as the whole packet counts 3",
        "nothing to do",
        f"{_FORM} / Packet Clipper",
    ),
    Rule(
        "VCG-018",
        "Capacity",
        f"One clipper and {_FILTERS} time filters: at most {_FILTERS + 1} padded axes a call.",
        "five padded axes",
        "remove padding from one of them",
        f"{_FORM} / Constraints",
    ),
    Rule(
        "VCG-019",
        "Sequencer entries",
        f"At most {_ENTRIES} entries a filter and clipper, neighbours merged where the outer stride is the inner size times the inner "
        "stride.",
        "13 Time factors that do not merge",
        "order Time so that factors of the axis adjoin",
        f"{_FORM} / Constraints",
    ),
    Rule(
        "VCG-020",
        "Worked example H, C, W",
        "Sizes 5, 5, 19 padded to 8, 8, 24 over 16 slices and 12 flits: clipper 19 of span 8 over [3 : 8], C filter mask 3, H filter "
        "mask 12, both SliceMajor; "
        "75 of 192 flits hold 475 real elements.",
        "reading the C filter as TimeMajor",
        "its Slice stride 2 is above its Time stride 1",
        f"{_FORM} / Putting It All Together",
    ),
    Rule(
        "VCG-021",
        "Time and Packet together",
        "The clipper's sequencer runs over the Time parts with their true strides; no time filter is needed.",
        "R = 10 as R # 16 / 4 by R # 16 % 4: counts 4, 4, 2, 0",
        "nothing to do",
        f"{_FORM} / R in Time and Packet",
    ),
    Rule(
        "VCG-022",
        "Counts behind Narrow and Widen",
        "split: min(v, 4) and max(v - 4, 0); trim: min(v, 4); concat: the sum; pad: unchanged.",
        "a count of 6 after a trim",
        "split instead",
        f"{_FORM} / Downstream 4-Way Operations",
    ),
    Rule(
        "VCG-023",
        "Trim needs counts up to 4",
        "The mapping must guarantee that no element of the back half is real.",
        "trim of packet R # 2048 % 8",
        "vector_narrow_split",
        f"{_FORM} / Downstream 4-Way Operations",
    ),
    Rule(
        "VCG-024",
        "Unpadded axes",
        "Need no filter. A call has one reduce axis; further tracked axes are padded axes that are not reduced.",
        "tracking an axis without padding",
        "track the reduce axis",
        f"{_FORM} / Constraints",
    ),
)

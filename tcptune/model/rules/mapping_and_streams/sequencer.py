"""Rules of the Sequencer (SEQ-001 to SEQ-021)."""

from tcptune.model.mappings.dimensions import SEQUENCER_USERS
from tcptune.model.rules.rule import Rule

_S = "Sequencer"

RULES = (
    Rule(
        "SEQ-001",
        "Form of a configuration",
        "Nested loops `size : stride`, outermost first, and a packet size, all in elements. The sizes multiply to Time times Packet, "
        "padding included.",
        "`[8:512, 16:32] : 32` for 4,096 elements: the loops cover 128",
        "add the loop over the packet, `32:1`",
        f"{_S} / Architecture",
    ),
    Rule(
        "SEQ-002",
        "Reading and writing",
        "Reading turns a buffer into packets and may repeat elements; writing does the reverse and may not. Many choices of Time and "
        "Packet fit one buffer.",
        "writing a stream with an axis the buffer does not have",
        "reduce or drop the axis first",
        f"{_S} / Interface",
    ),
    Rule(
        "SEQ-003",
        "One term, one loop",
        "The terms of Time and Packet are taken in order; each becomes a loop of its size whose stride is the distance of its "
        "neighbours in the buffer. Terms of size 1 give no loop. At every live position the loops add up to the address of the element.",
        "Buf `A, B` (8, 512), Time `A, B / 32`, Packet `B % 32` gives [8:512, 16:32, 32:1]",
        "nothing to fix: `tcptune map` shows the loops of any pair",
        f"{_S} / How it works",
    ),
    Rule(
        "SEQ-004",
        "Strides come from what lies behind",
        "The stride of a term is the product of the sizes of everything minor to it in the buffer. Its place then becomes a hole of the"
        " same size, so later strides stay.",
        "taking 8 for the stride of A in `A, B, C # 32`: padding counts, it is 256",
        "multiply padded sizes",
        f"{_S} / Transposing axes",
    ),
    Rule(
        "SEQ-005",
        "Padded terms read on",
        "A padded term loops over its padded size at the stride of its live part; what it reads there does not matter. A padded group "
        "is one loop when its live part is one run of the buffer.",
        "Packet `[A, B] # 16` where A and B are apart in the buffer",
        "pad the innermost axis only",
        f"{_S} / Transposing axes; Fetch Engine / Packet padding",
    ),
    Rule(
        "SEQ-006",
        "Split axes",
        "`A % n` and `A / n` become loops of their own: with Buf `A, B, C # 8` (8, 8, 4) `A % 2` is 2:64 and `A / 2` is 4:128.",
        "expecting one loop for `A % 2, A / 2`: their order differs from the buffer's",
        "`A / 2, A % 2`, which merges",
        f"{_S} / Splitting axes",
    ),
    Rule(
        "SEQ-007",
        "Slices of an axis",
        "`= n` shortens a loop to n iterations; the stride stays. `A % 4 = 3` of Buf `A, B, C` (16, 8, 8) is 3:64.",
        "`A % 3` for three of sixteen",
        "`A % 4 = 3`",
        f"{_S} / Slicing axes",
    ),
    Rule(
        "SEQ-008",
        "What the buffer lacks repeats",
        "A term, or a digit of an axis, that the buffer does not carry gets stride 0: in Time it repeats packets, in a packet it fills "
        "it. Only reads may do this.",
        "writing Time `T, A` into Buf `A`",
        "SEQ-018: a buffer that carries T",
        f"{_S} / Broadcasting axes",
    ),
    Rule(
        "SEQ-009",
        "Neighbouring loops merge",
        "(n1 : s1) outside (n2 : s2) become (n1 * n2 : s2) when s1 = n2 * s2, also across Time and Packet, but never past 65,536 "
        "iterations.",
        "4:64 outside 4:32: 64 is not 128",
        "order the terms as they lie in the buffer",
        f"{_S} / Merging entries",
    ),
    Rule(
        "SEQ-010",
        "At most 8 loops",
        "A configuration has at most 8 entries after merging.",
        "the reversal of nine axes",
        "keep neighbouring axes of the buffer together, or move in two steps",
        f"{_S} / Merging entries; Constraints",
    ),
    Rule(
        "SEQ-011",
        "At most 65,536 iterations a loop",
        "No entry may be longer than 65,536.",
        "`A` with A = 65,537 in Time",
        "split the axis in the mapping: `A / 2, A % 2`",
        f"{_S} / Constraints",
    ),
    Rule(
        "SEQ-012",
        "Contiguous run",
        "From the innermost loop outwards sizes multiply as long as each stride continues the loop inside it: [4:192, 3:64, 8:8, 8:1] "
        "runs 768 elements.",
        "`B # 16` with B = 8 in the buffer: the run is 8",
        "packets over axes without gaps",
        f"{_S} / Access size",
    ),
    Rule(
        "SEQ-013",
        "Largest access",
        "gcd(Packet size, contiguous run) elements.",
        "Packet of 128 over runs of 32: four accesses of 32",
        "make the packet follow the buffer",
        f"{_S} / Access size",
    ),
    Rule(
        "SEQ-014",
        "Packets with gaps",
        "A packet that skips cells of the buffer takes one access for each contiguous piece: Packet `A, B` (4, 8) into `A, B # 16` "
        "takes 4.",
        "Packet `N, H, W` of Buf `N, C, H, W`",
        "Packet `H, W`, or a buffer without the gap",
        f"{_S} / Non-contiguous packets",
    ),
    Rule(
        "SEQ-015",
        "Bytes of one access",
        "One access moves 1, 2, 4, 8, 16 or 32 bytes. Larger packets are made of several.",
        "a packet of one i4: half a byte",
        "a packet of at least two i4",
        f"{_S} / Constraints",
    ),
    Rule(
        "SEQ-016",
        "The innermost loop",
        "With stride 0 or 1 the access divides the loop; with any other stride elements are moved one by one, and one element must be "
        "whole bytes.",
        "Packet `A` of Buf `A, B`: eight accesses of one element; impossible for i4",
        "an innermost axis that is contiguous in the buffer",
        f"{_S} / Constraints",
    ),
    Rule(
        "SEQ-017",
        "Axes are cut compatibly",
        "Buffer and stream must cut an axis so that a common refinement exists; then a term may take several loops (Buf `A % 4, A / 4`,"
        " stream `A`: 4:2 and 2:1). Every live position of the stream must find its element in the buffer.",
        "Buf `A % 5, A / 5` and stream `A % 3, A / 3` with A = 15",
        "cut both at sizes of which one divides the other",
        f"{_S} / Compatible axis decompositions",
    ),
    Rule(
        "SEQ-018",
        "A written slot has exactly one source",
        "Every live slot of the buffer gets exactly one position of the stream: no repetition, nothing left out, and padding of the "
        "stream does not land on live slots. Padding slots need no source.",
        "stream `M, K, L` into Element `K, L`",
        "an Element with the axes of the stream",
        f"{_S} / Interface; Examples",
    ),
    Rule(
        "SEQ-019",
        "Order of execution",
        "The loops run like an odometer; the address is the sum of index times stride: `W, H, C, N` of Buf `N, C, H, W` (4, 3, 8, 8) "
        "visits w + 8 h + 64 c + 192 n.",
        "expecting rows first",
        "list the loops in the order wanted",
        f"{_S} / How it works",
    ),
    Rule(
        "SEQ-020",
        "Who has Sequencers",
        "; ".join(f"{u.engine} has {u.sequencers}, addressing {u.memory}" for u in SEQUENCER_USERS)
        + ". Those of Fetch and Commit are one a slice and independent; DMA couples its two without a buffer between.",
        "expecting a slice to read another slice's DM",
        "the Switch Engine, or DMA",
        f"{_S} (introduction)",
    ),
    Rule(
        "SEQ-021",
        "Larger packets use more bandwidth",
        "Among legal choices a larger packet needs fewer accesses: an i4 tensor (4, 3, 4, 16) takes 48 cycles in packets `W` and 12 in "
        "packets `H, W`.",
        "packets of 8 bytes where 32 are contiguous",
        "move axes from the end of Time into the packet",
        f"{_S} / Interface",
    ),
)

"""Rules of the Packet Reducer (PACKETRED), the Time Reducer (TIMERED) and the Lane Folder (LANE)."""

from tcptune.model.rules.rule import Rule

_PACKET = "Contraction Engine / Packet Reducer"
_TIME = "Contraction Engine / Time Reducer"
_LANE = "Contraction Engine / Lane Folder"

PACKET_RULES = (
    Rule(
        "PACKETRED-001",
        "What the Packet Reducer does",
        "contract_packet sums inside one packet: out[i] = sum over j of in[i, j] with i the surviving and j the inner positions. "
        "Each lane has a tree of its own.",
        "Packet `P, Q` to `P`: q is summed for each p",
        "nothing to fix: this defines the meaning",
        f"{_PACKET} / Interface",
    ),
    Rule(
        "PACKETRED-002",
        "Width of the input",
        "The tree takes 32 or 64 bytes of i4, i8, f8 or bf16 elements (also i5, i9), counted in the storage type although the "
        "values are widened.",
        "a packet of 16 bytes",
        "OutPacket of contract_outer has 32 or 64 bytes (OUTER-004)",
        f"{_PACKET} / Interface",
    ),
    Rule(
        "PACKETRED-003",
        "Tree depth",
        "Depth d sums the innermost 2^d positions, 0 <= d <= log2 of the packet; depth 0 passes through. The depth is the "
        "smallest whose remainder Packet / 2^d equals the declared OutPacket, outer padding aside; so the top padding of `1 # 16` "
        "never enters a sum.",
        "Packet `K` of 32 to `1`: depth 5; Packet `1 # 16` to `1`: depth 0",
        "declare what is left after summing 1, 2, 4, … inner positions",
        f"{_PACKET} / Architecture",
    ),
    Rule(
        "PACKETRED-004",
        "Greatest depth",
        "log2 of the elements in 64 bytes: 7 for 4-bit, 6 for 8-bit, 5 for bf16, and one less with PackSize 1.",
        "128 i4 products summed into one: depth 7",
        "sum the rest over Time",
        f"{_PACKET} / Architecture, Performance",
    ),
    Rule(
        "PACKETRED-005",
        "At most 32 columns, a power of two",
        "The accumulator has 32 columns a lane and the Lane Folder takes 1, 2, 4, 8, 16 or 32, so OutPacket has one of these sizes.",
        "OutPacket `A` with A = 3",
        "keep padding up to a power of two: `A # 4`",
        f"{_PACKET} / Architecture; Lane Folder / Interface",
    ),
    Rule(
        "PACKETRED-006",
        "Cut to 32 columns",
        "When more than 32 columns are left the outer ones are cut and the inner 32 survive. The model refuses this when a cut "
        "column is live, since its products would be lost silently.",
        "128 live i4 columns to `K % 32`",
        "sum more levels in the tree, or keep live columns within the inner 32",
        f"{_PACKET} / Architecture",
    ),
    Rule(
        "PACKETRED-007",
        "Outer padding may be dropped",
        "Padding at the outer end of the result can be declared (`A # 16`) or not (`A`): both name the same columns. The declared "
        "size decides slots and drain cycles.",
        "`A # 16` with A = 4 drains 16 columns instead of 4",
        "declare the packet without its padding",
        f"{_PACKET} / Architecture",
    ),
    Rule(
        "PACKETRED-008",
        "Only inner positions, order kept",
        "The tree sums exactly the innermost 2^d positions; what remains keeps its order. Outer, middle or permuted sums and axes "
        "that the packet does not have are impossible.",
        "Packet `A, B, D` to `A, D`",
        "order the stored element so that the contracted axis is innermost",
        f"{_PACKET} (opening, Architecture)",
    ),
    Rule(
        "PACKETRED-009",
        "Latency of the tree",
        "The first output comes after 7 (4-bit), 6 (8-bit) or 5 (bf16) cycles, whatever depth is used; then one packet in and one "
        "result out a cycle.",
        "bf16: 5 cycles once a pass",
        "nothing to fix",
        f"{_PACKET} / Performance",
    ),
    Rule(
        "PACKETRED-010",
        "Idle lanes",
        "With fewer than 8 lanes the other trees idle: throughput is SIZE(Lane) / 8.",
        "Lane of 2: a quarter of the throughput",
        "spread an output axis over 8 lanes",
        f"{_PACKET} / Performance",
    ),
    Rule(
        "PACKETRED-011",
        "Worked example of a full sum",
        "A = 32, B = 32, C = 8 in bf16: Outer `A` | `B`, packet `1` sums 32 products at depth 5 and leaves one f32 for each A and lane.",
        "expecting bf16 behind the tree: it delivers accumulators",
        "cast at the end of the pass",
        f"{_PACKET} / Interface",
    ),
)

TIME_RULES = (
    Rule(
        "TIMERED-001",
        "What the Time Reducer does",
        "contract_time accumulates the grids of lanes and columns over Time; factors of Time that OutTime leaves out are summed.",
        "Time `B / 16, A % 8` to `A % 8`: sums over B / 16",
        "nothing to fix: this defines the meaning",
        f"{_TIME} / Interface",
    ),
    Rule(
        "TIMERED-002",
        "OutTime is an ordered part of Time",
        "OutTime holds factors of Time in unchanged order; digits of one axis may be kept or dropped separately. Nothing new may appear.",
        "Time `A, B` to `B, A`",
        "keep the order, and reorder in the commit",
        f"{_TIME} / Architecture",
    ),
    Rule(
        "TIMERED-003",
        "Survivors keep their padding",
        "A surviving factor keeps its padded extent; its slots are counted with it. (The manual states only the order; this is "
        "the recommended reading.)",
        "Time `R, A # 8` to `A`",
        "OutTime `A # 8`",
        f"{_TIME} / Architecture",
    ),
    Rule(
        "TIMERED-004",
        "InnerTime",
        "InnerTime is what survives inside the outermost summed factor: these results are open at the same time. Survivors "
        "outside it do not count; without a sum it is 1.",
        "Time `R, M, T, Q` to `M, Q`: InnerTime M x Q",
        "put the summed factor further inside",
        f"{_TIME} / Architecture",
    ),
    Rule(
        "TIMERED-005",
        "One slot for each InnerTime value",
        "Packets with the same InnerTime value add into the same slot of lanes and columns; when the sum is complete the buffer "
        "goes to the Lane Folder.",
        "`B / 16, A % 8` with A % 8 surviving: flit f goes to slot f mod 8",
        "nothing to fix",
        f"{_TIME} / Architecture",
    ),
    Rule(
        "TIMERED-006",
        "Slot capacity",
        "The buffer has 1,024 cells. Interleaved pays for 8 lanes: 128 / SIZE(Packet) slots. Sequential pays for 32 columns: 32 / "
        "SIZE(Lane) slots. SIZE(InnerTime) has to fit.",
        "Interleaved, packet 32, InnerTime 8: only 4 slots",
        "move the summed factor inwards, or change the lane mode",
        f"{_TIME} / Constraints",
    ),
    Rule(
        "TIMERED-007",
        "Ways out of full slots",
        "Put the summed factor further inside (split it if needed) so that InnerTime shrinks, or change the lane mode: Sequential "
        "suits few lanes, Interleaved narrow packets.",
        "Lane 1, packet 32, InnerTime 16: Interleaved has 4 slots, Sequential 32",
        "Sequential",
        f"{_TIME} / Constraints",
    ),
    Rule(
        "TIMERED-008",
        "Where capacity is checked",
        "Capacity depends on Time before and after the sum, Packet, Lane and the mode; only contract_lane knows all of them, so "
        "the violation shows there.",
        "contract_time accepts what contract_lane then refuses",
        "look at the mode as well as at the sum",
        f"{_TIME} / Constraints; Lane Folder / Interface",
    ),
    Rule(
        "TIMERED-009",
        "Throughput",
        "One packet in a cycle; a sum of N gives one output for N inputs.",
        "N = 8: 0.125 outputs an input",
        "nothing to fix",
        f"{_TIME} / Performance",
    ),
    Rule(
        "TIMERED-010",
        "Latency",
        "About N cycles for a sum of N.",
        "N = 32: about 32 cycles to the first result",
        "sum in the packet where possible",
        f"{_TIME} / Performance",
    ),
    Rule(
        "TIMERED-011",
        "Caps of the input",
        "At most 8 lanes and 32 columns arrive; the stages before see to it.",
        "a packet of 64 columns",
        "sum at least one level in the tree (PACKETRED-005)",
        f"{_TIME} / Architecture",
    ),
    Rule(
        "TIMERED-012",
        "Worked example reduce_b",
        "A = 2,048, B = 32 in bf16: 16 flits `B / 16, A % 8` of `B % 16`, tree depth 4, then B / 16 summed over Time into 8 of 32 "
        "slots, Sequential.",
        "flit 15 completes all 8 results at once",
        "nothing to fix",
        f"{_TIME} / Interface, Architecture, Constraints",
    ),
)

LANE_RULES = (
    Rule(
        "LANE-001",
        "Lanes are moved, never summed",
        "contract_lane takes Lane out of the mapping by moving its values into OutPacket (Interleaved) or OutTime (Sequential).",
        "Lane `N`, OutPacket `1 # 8`: the lanes would vanish",
        "name Lane in OutPacket or OutTime",
        _LANE,
    ),
    Rule(
        "LANE-002",
        "Bus and input",
        "The buffer drains over a bus of 8 elements, one flit a cycle; a lane brings 1, 2, 4, 8, 16 or 32 columns.",
        "a packet of 3 columns",
        "pad it to a power of two in contract_packet",
        f"{_LANE} / Interface",
    ),
    Rule(
        "LANE-003",
        "Interleaved",
        "Each cycle reads one column of all lanes: OutTime = [Time, Packet], OutPacket = [Lane # 8].",
        "Lane `N`, Packet `P`, OutTime `P, M`",
        "OutTime `M, P`, OutPacket `N # 8`",
        f"{_LANE} / Interleaved",
    ),
    Rule(
        "LANE-004",
        "Sequential",
        "Each cycle reads 8 columns of one lane. With the packet padded to a multiple of 8: OutTime = [Time, Lane, Packet / 8], "
        "OutPacket = [Packet % 8].",
        "Packet `P` of 16, OutTime `M, N`",
        "OutTime `M, N, P / 8`, OutPacket `P % 8`",
        f"{_LANE} / Sequential",
    ),
    Rule(
        "LANE-005",
        "The output is one flit",
        "OutPacket has exactly 8 elements, 32 bytes of i32 or f32.",
        "four lanes as OutPacket `N`",
        "`N # 8`",
        f"{_LANE} / Interleaved, Sequential; Collect Engine",
    ),
    Rule(
        "LANE-006",
        "No limit of its own",
        "The Lane Folder adds no constraint; its mode fixes the slot capacity of the Time Reducer (TIMERED-006).",
        "Interleaved with packet 32 has 4 slots, Sequential with one lane 32",
        "choose the mode whose capacity fits",
        f"{_LANE} / Constraints",
    ),
    Rule(
        "LANE-007",
        "Throughput when interleaved",
        "With fewer than 8 lanes bus positions stay empty: throughput is SIZE(Lane) / 8.",
        "four lanes: half of the bus",
        "use 8 lanes, or Sequential",
        f"{_LANE} / Performance",
    ),
    Rule(
        "LANE-008",
        "Narrow packets in sequence",
        "With fewer than 8 columns a cycle carries just these.",
        "packet 4: 4 values a cycle",
        "Interleaved, when there are 8 lanes",
        f"{_LANE} / Performance",
    ),
    Rule(
        "LANE-009",
        "Latency",
        "Nothing beyond draining the buffer.",
        "64 flits drain in 64 cycles",
        "nothing to fix",
        f"{_LANE} / Performance",
    ),
    Rule(
        "LANE-010",
        "Drain cycles",
        "One cycle a flit: SIZE(Time) x SIZE(Packet) interleaved; SIZE(Time) x SIZE(Lane) x ceil(SIZE(Packet) / 8) in sequence.",
        "Time 32, 8 lanes, packet 1: 32 flits interleaved, 256 in sequence",
        "choose the mode that drains less",
        f"{_LANE} / Interface, Performance",
    ),
    Rule(
        "LANE-011",
        "Worked examples of folding",
        "N = 8, M = 4, P = 16: Interleaved gives `M, P` | `N`, Sequential gives `M, N, P / 8` | `P % 8`, 64 flits each.",
        "mixing the two forms",
        "the mode and the mappings go together",
        f"{_LANE} / Interleaved, Sequential",
    ),
)

RULES = (*PACKET_RULES, *TIME_RULES, *LANE_RULES)

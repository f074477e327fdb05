"""Rules of the Contraction Engine as a whole (CE)."""

from tcptune.model.rules.rule import Rule

_ARCHITECTURE = "Contraction Engine / Architecture"
_MATMUL = "Contraction Engine / Example: Batched MatMul"

RULES = (
    Rule(
        "CE-001",
        "A contraction is four stages in order",
        "Every contraction is written as contract_outer, contract_packet, contract_time, contract_lane, all four and in this "
        "order; a stage with nothing to do is written with an unchanged mapping. Outer multiplies, the Packet Reducer sums inside "
        "a packet, the Time Reducer over Time, the Lane Folder moves Lane into the stream.",
        "contract_outer(…).contract_time(…): the Packet Reducer is missing",
        "write the missing stage, for instance .contract_packet(1) for a full sum or the unchanged packet for none",
        f"{_ARCHITECTURE}; Packet Reducer, Time Reducer, Lane Folder / Interface",
    ),
    Rule(
        "CE-002",
        "Contractions run in the main context",
        "The Contraction Engine belongs to the main context. The stationary operand is brought into the TRF before, by a "
        "sub-context pass that ends in to_trf.",
        "sub.begin(x).fetch(…).collect(…).contract_outer(…)",
        "run the contraction on main; use sub for staging the TRF",
        "Contraction Engine (opening); Tensor Unit / Execution contexts",
    ),
    Rule(
        "CE-003",
        "Both operands share Chip, Cluster and Slice",
        "The stream and the TRF tensor carry equal Chip, Cluster and Slice mappings and the result keeps them. An operand that "
        "does not depend on an axis placed there was replicated when it was stored.",
        "stream with Slice `V % 16 # 256`, TRF with Slice `M % 16 # 256`",
        "stage the weights with the spatial mappings of the stream",
        "Outer / Interface",
    ),
    Rule(
        "CE-004",
        "Envelope of the datapath",
        "At the multipliers Lane has at most 8 positions and Packet at most 64 bytes of the storage type; behind the Packet "
        "Reducer a lane holds at most 32 elements.",
        "a TRF Lane of 16, or an OutPacket of 128 bytes",
        "move the excess factor into Time",
        f"{_ARCHITECTURE}; Time Reducer / Architecture",
    ),
    Rule(
        "CE-005",
        "What a contraction computes",
        "Broadcast, multiply, sum: a result element is the sum of stream times weight over the packet elements that the tree "
        "consumes and the Time factors that OutTime leaves out. Lanes are never summed; parts of a contracted axis on Slice or "
        "Chip stay partial sums for the Vector Engine.",
        "K spread over Slice: each slice holds only its own part of the sum",
        "keep the contracted axis in Packet and Time, or add an inter-slice reduce",
        "Contraction Engine (opening), Architecture, Example: Batched MatMul",
    ),
    Rule(
        "CE-006",
        "Type and shape of the result",
        "The result holds accumulators, i32 or f32, in packets of exactly 8 elements (32 bytes). Vector Engine, Cast Engine and "
        "commit_trim can follow.",
        "expecting bf16 directly from contract_lane",
        "add .cast(bf16, …) or .commit_cast(bf16)",
        f"{_ARCHITECTURE}; Lane Folder; Transpose Engine / Parameters",
    ),
    Rule(
        "CE-007",
        "512 spatial cells a chip",
        "Cluster times Slice offers 2 x 256 = 512 places on a chip. Work that wants more puts the excess factor into Time.",
        "V x M = 32 x 32 = 1,024 places on one chip",
        "take ceil(1,024 / 512) = 2 into Time, for instance V / 16",
        f"{_MATMUL} / K placed in Time",
    ),
    Rule(
        "CE-008",
        "Placement with K in Time",
        "With the contracted axis in Time and a packet `1 # 16` (bf16) the tree has depth 0 and sums build up one cycle at a "
        "time: one of 32 multipliers of a lane works. Legal, and the slowest of the placements.",
        "Time `V / 16, K`, Packet `1 # 16`: MAC utilisation 1/32",
        "put K into Packet (CE-009)",
        f"{_MATMUL} / K placed in Time",
    ),
    Rule(
        "CE-009",
        "Placement with M in Time",
        "Batch on Cluster and Slice, N on Lane, K in Packet, M in Time: the tree sums 32 bf16 products a cycle on each of 8 "
        "lanes. It needs enough slices for the batch, N at most 8 and K in one packet.",
        "K = 128 bf16 does not fit one packet of 64 bytes",
        "split K as in CE-011",
        f"{_MATMUL} / M placed in Time",
    ),
    Rule(
        "CE-010",
        "Placement with V in Time",
        "M on Cluster and Slice, N on Lane, K in Packet, the batch axis in Time: for workloads whose batch dominates. Cost as CE-009.",
        "M larger than the 512 places that Cluster and Slice offer",
        "move a factor of M into Time as well",
        f"{_MATMUL} / V placed in Time",
    ),
    Rule(
        "CE-011",
        "Where the contracted axis belongs",
        "Keep it in Packet, where the tree sums in parallel; of a longer axis the inner 64 bytes (32 bf16, 64 8-bit, 128 4-bit "
        "elements) stay in Packet and the rest goes to Time. One axis may be split over several levels.",
        "K = 128 bf16 all in Time",
        "K % 32 in Packet, K / 32 in Time",
        f"{_MATMUL} (text between the variants)",
    ),
    Rule(
        "CE-012",
        "Multipliers and their use",
        "A lane has 512 / bits multipliers: 32 for bf16, 64 for 8-bit, 128 for 4-bit types; a slice has 8 lanes. Utilisation is "
        "the live share of the 64-byte packet times the live share of the lanes.",
        "16 bf16 elements on 8 lanes: 16/32 x 8/8 = 0.5",
        "fill 64 bytes (PackSize 2) and all 8 lanes",
        f"{_MATMUL} / K placed in Time; Stream Adapter / Performance; Packet Reducer / Performance",
    ),
    Rule(
        "CE-013",
        "Numerics of a contraction",
        "Operands are widened to the accumulator type (i4, i5, i8, i9 to i32; f8, bf16 to f32) before they are multiplied, and "
        "everything behind stays in it. The manual leaves the order open; the model adds a balanced tree over neighbours inside a "
        "packet, then packets in the order of Time from zero, and i32 wraps. Certainly without overflow: 33,554,431 products of "
        "i4, 131,071 of i8, 33,025 of i9.",
        "2^17 products of i8 -128 x -128 may exceed i32",
        "split the sum over several passes, or scale the data",
        "Outer / Multiplier; Packet Reducer / Architecture",
    ),
    Rule(
        "CE-014",
        "Types without a multiplier",
        "i16, i32, f32 and f4e2m1 cannot enter contract_outer. Such a product is computed in the Vector Engine (multiply, then "
        "intra-slice reduce).",
        "contract_outer on an f32 stream",
        "cast to bf16 on the way in, or use the Vector Engine",
        "Outer / Multiplier / Operand types",
    ),
)

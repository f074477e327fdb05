"""Rules of the outer product: Stream Adapter, TRF Sequencer and multipliers (OUTER)."""

from tcptune.model.rules.rule import Rule

_ADAPTER = "Contraction Engine / Outer / Stream Adapter"
_SEQUENCER = "Contraction Engine / Outer / TRF Sequencer"
_MULTIPLIER = "Contraction Engine / Outer / Multiplier"

RULES = (
    Rule(
        "OUTER-001",
        "What contract_outer takes and infers",
        "The writer gives OutTime, OutPacket and the TRF tensor; Lane, Element and weight type are the tensor's. PackSize, lane "
        "broadcast and time broadcast follow from the mappings.",
        "naming an operand that is not a TRF tensor",
        "stage the operand with to_trf and name that tensor",
        "Outer / Interface; Stream Adapter",
    ),
    Rule(
        "OUTER-002",
        "Joint mapping of the products",
        "The result has the levels Chip, Cluster, Slice, Lane, OutTime, OutPacket; an element is the widened stream value times "
        "the widened weight at the same indices. Each step of OutTime delivers one whole packet on all lanes.",
        "Lane `N`, OutTime `M, B`, OutPacket `L, K`: p[n, m, b, l, k] = x[m, l, k] * w[n, b, l, k]",
        "nothing to fix: this defines the meaning",
        "Outer; Outer / Multiplier",
    ),
    Rule(
        "OUTER-003",
        "PackSize",
        "PackSize = bytes of OutPacket / 32, in the stream's storage type, and is 1 or 2. It is 2 exactly when a factor of size 2 "
        "at the inner end of Time has moved into OutPacket.",
        "OutPacket of 96 bytes asks for PackSize 3",
        "declare an OutPacket of 32 or 64 bytes",
        f"{_ADAPTER} / Packing, Constraints",
    ),
    Rule(
        "OUTER-004",
        "OutPacket has 32 or 64 bytes",
        "OutPacket counts bytes of the storage type before widening: 64 or 128 elements of 4-bit, 32 or 64 of 8-bit, 16 or 32 of "
        "bf16 (i5 counts as 4 and i9 as 8 bits).",
        "8 bf16 elements (16 bytes, although they would be 32 bytes of f32)",
        "pad the packet to 32 bytes or pack two flits",
        f"{_ADAPTER} / Constraints",
    ),
    Rule(
        "OUTER-005",
        "The flit stays innermost",
        "The inner flit of OutPacket is the collected Packet unchanged, padding included.",
        "Packet `K`, OutPacket `K, L`",
        "OutPacket `L, K`",
        f"{_ADAPTER} (mapping equations)",
    ),
    Rule(
        "OUTER-006",
        "What packing may absorb",
        "Above the flit OutPacket holds exactly the innermost PackSize positions of Time, so Time has to split there. A padded "
        "packed cell comes from padding of Time.",
        "Time `L, M` with OutPacket `L, K`: L is outermost",
        "order the fetch so that the packed factor is innermost: Time `M, L`",
        f"{_ADAPTER} / Packing",
    ),
    Rule(
        "OUTER-007",
        "OutTime is the rest of Time, then broadcasts",
        "OutTime begins with the Time that packing left over, all of it and in its order; axes that repeat the packet come after "
        "it, innermost, in any order among themselves. SIZE(time broadcast) = SIZE(OutTime) * PackSize / SIZE(Time).",
        "Time `A`, OutTime `T, A`",
        "OutTime `A, T`",
        f"{_ADAPTER} / Broadcast",
    ),
    Rule(
        "OUTER-008",
        "Lane has 1, 2, 4 or 8 positions",
        "The Lane of the TRF tensor (padding counted) has 1, 2, 4 or 8 positions; each lane receives the same stream packet.",
        "a TRF tensor with Lane of 3",
        "pad it when it is stored: `R # 4`",
        f"{_ADAPTER} / Broadcast, Constraints",
    ),
    Rule(
        "OUTER-009",
        "Sources of broadcast axes",
        "A broadcast factor of OutTime is one that the TRF stores and Time lacks, or a pure output axis that neither operand has. "
        "The TRF entry of the latter has stride 0.",
        "einsum AB, BC -> ABCD: D comes from neither operand",
        "nothing to fix: put such axes innermost in OutTime",
        f"Outer / Interface; {_ADAPTER} / Broadcast",
    ),
    Rule(
        "OUTER-010",
        "The datapath always moves 64 bytes",
        "With PackSize 1 the upper 32 bytes are zeros that belong to no mapping; later stages see only PackSize x 32 bytes and "
        "pay nothing for them.",
        "OutPacket `1 # 16` of bf16: 32 bytes named, 64 moved",
        "nothing to fix",
        f"{_ADAPTER} / Packing",
    ),
    Rule(
        "OUTER-011",
        "PackSize 1 leaves half the multipliers idle",
        "PackSize 2 fills the 64 bytes; with PackSize 1 half of the multipliers multiply zeros.",
        "OutPacket `K` of 16 bf16: utilisation at most 0.5",
        "pack two flits: put a factor of 2 at the inner end of Time into OutPacket",
        f"{_ADAPTER} / Performance",
    ),
    Rule(
        "OUTER-012",
        "Packing rate",
        "A packet of PackSize 2 needs two flits, one every 2 cycles; with PackSize 1 there is one a cycle. Supplying a pass takes "
        "SIZE(Time) cycles.",
        "64 flits with PackSize 2: 32 packets in 64 cycles",
        "nothing to fix: flits arrive one a cycle in either case",
        f"{_ADAPTER} / Performance",
    ),
    Rule(
        "OUTER-013",
        "Time broadcast costs no fetch",
        "A packet is sent again for every value of the broadcast axes before Time advances: fetched flits = SIZE(Time), emitted "
        "packets = SIZE(OutTime).",
        "32 packed steps, PackSize 2, broadcast 5: 64 flits fetched, 160 packets sent",
        "nothing to fix: use it to save fetch bandwidth",
        f"{_ADAPTER} / Performance",
    ),
    Rule(
        "OUTER-014",
        "Fetch bounds the stream",
        "The Fetch Engine delivers at most 32 bytes a cycle, and that bounds the Stream Adapter.",
        "a pass that fetches 512 flits takes at least 512 cycles",
        "interleave the fetch over slices, and reuse packets through time broadcast",
        f"{_ADAPTER} / Performance",
    ),
    Rule(
        "OUTER-015",
        "Shape of the TRF operand",
        "OutTime walks over Element / ReadSize by nested loops with broadcasts, OutPacket = [packet broadcast, Element % "
        "ReadSize]: one read a cycle fills one OutPacket.",
        "Element `O, K`, OutPacket `L, K`: each cycle reads K once and repeats it for L",
        "nothing to fix: this defines the meaning",
        _SEQUENCER,
    ),
    Rule(
        "OUTER-016",
        "ReadSize",
        "The largest r that divides Element and OutPacket, with Element % r equal to OutPacket % r and at most 64 bytes (the TRF "
        "type's nominal width: i5 counts 4, i9 counts 8 bits).",
        "Element `K, O` and OutPacket `L, K`: only r = 1 is left",
        "store the part that a packet needs innermost in Element",
        f"{_SEQUENCER}; Examples",
    ),
    Rule(
        "OUTER-017",
        "Packet broadcast repeats, it does not read",
        "What OutPacket holds above ReadSize repeats the same read inside a cycle, so it may be padding or axes foreign to the "
        "TRF, never a factor that Element stores.",
        "Element `A, C` with A = 3, OutPacket `A # 16, C`: A would have to be repeated",
        "store `A # 4, C`, so that a read covers A",
        f"{_SEQUENCER} / Examples, Architecture",
    ),
    Rule(
        "OUTER-018",
        "Read width and banks",
        "A read of more than 32 bytes a lane takes both banks (640 bits), a read of at most 32 bytes one bank (320 bits).",
        "ReadSize 32 of bf16 is 64 bytes: both banks",
        "nothing to fix; a narrow read leaves a bank for concurrent stores",
        f"{_SEQUENCER} / Performance; Register File / To the Contraction Engine",
    ),
    Rule(
        "OUTER-019",
        "Every stored factor is read",
        "Each factor of OutTime is a factor of Element / ReadSize, with its stride, or a broadcast with stride 0, and no stored "
        "factor may be left out of OutTime and OutPacket: nothing would ever read it.",
        "Element `O, K` with OutTime `M` and OutPacket `K`: O is never read",
        "add O to OutTime, or stage only the part that is used",
        f"{_SEQUENCER}; Architecture",
    ),
    Rule(
        "OUTER-020",
        "Wide reads are aligned",
        "When a read takes the full 64 bytes, its base address and all its strides are multiples of 64 bytes.",
        "a 64-byte read at base address 32",
        "store the tensor at a multiple of 64 bytes",
        f"{_SEQUENCER} / Constraints",
    ),
    Rule(
        "OUTER-021",
        "Spatial sizes are the hardware's",
        "Chip, Cluster and Slice have the sizes of the device, as for every sequencer.",
        "Slice of 128 on a device configured with 256",
        "pad it: `… # 256`",
        f"{_SEQUENCER} / Constraints",
    ),
    Rule(
        "OUTER-022",
        "TRF throughput",
        "One whole OutPacket a lane and cycle. A read cache and alternating banks keep stores of the sub context going while a "
        "packet is reused or read narrowly.",
        "a wide read takes 640 bits, a narrow one 320 bits a lane and cycle",
        "nothing to fix",
        f"{_SEQUENCER} / Performance",
    ),
    Rule(
        "OUTER-023",
        "Operand pairs",
        "Eleven pairs: i4 or i5 with i4 or i5, i8 or i9 with i8 or i9 (accumulated in i32); f8e4m3, f8e5m2 and bf16 each with "
        "itself (in f32). No mixing across these families.",
        "stream i4 with weights i8",
        "store the weights in the stream's family",
        f"{_MULTIPLIER} / Operand types",
    ),
    Rule(
        "OUTER-024",
        "Operands are widened first",
        "Both operands become the accumulator type before the product: i32 for integers, f32 for floats.",
        "i8 100 x 100 = 10,000 does not wrap at 8 bits",
        "nothing to fix",
        f"Outer; {_MULTIPLIER}",
    ),
    Rule(
        "OUTER-025",
        "Only collected flits are contracted",
        "contract_outer exists on a collected stream (packets of one 32-byte flit) and nowhere else.",
        "fetch(…).contract_outer(…) without collect",
        "insert .collect(time, packet)",
        "Outer / Interface",
    ),
    Rule(
        "OUTER-026",
        "TRF bandwidth of a slice",
        "Eight lanes together read 320 bytes a cycle narrow and 640 bytes a cycle wide.",
        "8 x 640 bits = 640 bytes",
        "nothing to fix",
        "Register File / To the Contraction Engine",
    ),
    Rule(
        "OUTER-027",
        "Worked examples of the outer product",
        "bf16: Time `M, L`, Packet `K`, Element `B, L, K`, OutTime `M, B`, OutPacket `L, K` has PackSize 2, broadcast 5, ReadSize "
        "32; Element `O, K` with OutTime `O, M`, OutPacket `L, K` has ReadSize 16 and packet broadcast 2.",
        "expecting ReadSize 32 for Element `O, K` with K = 16",
        "ReadSize is bounded by what Element and OutPacket share at their inner ends",
        f"{_ADAPTER} / Examples; {_SEQUENCER} / Examples",
    ),
)

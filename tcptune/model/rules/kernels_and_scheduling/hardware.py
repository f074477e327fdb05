"""Capacities and bandwidths of the device (HW)."""

from tcptune.model.rules.rule import Rule

_START = "Quick Start"
_MEMORY = "Memory performance"
_MAPPING = "Mapping expressions: spatial dimensions"
_REGISTERS = "Register files"

RULES = (
    Rule(
        "HW-001",
        "Spatial hierarchy",
        "A chip has 2 clusters of 256 slices; a slice is one Tensor Unit with 8 lanes, the rows of its multiplier array, of which 1, "
        "2, 4 or 8 are used. In bf16 a slice multiplies up to 256 pairs a cycle.",
        "a Lane mapping of 16 positions",
        "use 1, 2, 4 or 8 lanes and put the rest of the axis into Element",
        _START,
    ),
    Rule(
        "HW-002",
        "HBM",
        "48 GB in the package, 1.5 TB/s a chip over 32 channels; every engine that touches it shares this rate.",
        "n aligned bytes in less than n / 1.5 TB/s",
        "keep operands that are read again in DM",
        _MEMORY,
    ),
    Rule(
        "HW-003",
        "DM capacity",
        "Data memory is 512 KB (524,288 B) a slice, 256 MB a chip. The Element bytes of a tensor, padding included, must fit a slice.",
        "20 groups of 52,429 bytes a slice",
        "split the tensor over more slices, or load it in tiles",
        _START,
    ),
    Rule(
        "HW-004",
        "TRF capacity",
        "The tensor register file holds 65,536 B a slice in native rows: 8 KB a lane with 8 lanes, more with fewer: lanes times bytes "
        "a lane count.",
        "8 lanes of 16,384 B",
        "stage fewer columns a pass, or use fewer lanes",
        _REGISTERS,
    ),
    Rule(
        "HW-005",
        "VRF capacity",
        "The vector register file holds 8,192 B a slice for all operands that are live together.",
        "a VRF tensor of 4,096 f32 values a slice",
        "stage the operand in parts, or stream it interleaved",
        _START,
    ),
    Rule(
        "HW-006",
        "Cluster size",
        "On a full chip Cluster has exactly 2 positions. One active cluster is written as padding.",
        "Cluster `A # 3`",
        "write `1 # 2` for one cluster, or an axis of size 2",
        _MAPPING,
    ),
    Rule(
        "HW-007",
        "Slice size",
        "On a full chip Slice has exactly 256 positions; fewer active slices are padded.",
        "Slice `Tok % 8` of 8 positions",
        "pad it: `Tok % 8 # 256`",
        _MAPPING,
    ),
    Rule(
        "HW-008",
        "Chip size",
        "Chip has as many positions as the system has chips; a device function declares the number.",
        "Chip `A` of 4 positions in a kernel for one chip",
        "declare `chips 4`, or map the axis elsewhere",
        _MAPPING,
    ),
    Rule(
        "HW-009",
        "DM address bits",
        "Bits 0 to 2 of an address in a slice are the byte, 3 to 6 the bank, 7 to 18 the row: 128 consecutive bytes touch each of the "
        "16 banks once.",
        "a stride of 128 B stays in one bank",
        "walk memory in order, or pad rows to an odd number of 8 B words",
        _MEMORY,
    ),
    Rule(
        "HW-010",
        "DM bandwidth",
        "A slice and a DMN pass 128 B a cycle each, a pair of DMNs that alternate 256 B, a chip 2 TB/s.",
        "a transfer that keeps to one DMN of a pair runs at half speed",
        "spread transfers over at least 64 slices",
        _MEMORY,
    ),
    Rule(
        "HW-011",
        "DM interleaving and queues",
        "A slice queues 2 DMA requests. Spread over M slices, each needs 1/M of the rate, so that one slow slice does not stop the stream.",
        "all requests to one slice",
        "spread the tensor over the 32 slices of a DMN",
        _MEMORY,
    ),
    Rule(
        "HW-012",
        "HBM geometry",
        "2 stacks of 16 channels, each with 3 slices, 4 bank groups, 4 banks a group, 16K rows of 2 KB. The channel is the XOR of "
        "address bits 9 to 12 with the four groups of 4 bits above; bit 8 is the stack.",
        "a stride of 512 B never changes the stack",
        "let neighbouring 256 B blocks alternate bit 8",
        _MEMORY,
    ),
    Rule(
        "HW-013",
        "DMA engines",
        "8 engines a chip, one a pair of DMNs, 256 B a cycle each; about 500 cycles to start a command; packets up to 4,096 B in "
        "requests of 256 B. Between HBM and DM addresses and packets are multiples of 8 B.",
        "a row of 20 B loaded into DM",
        "pad rows to a multiple of 8 B",
        "DMA engine",
    ),
    Rule(
        "HW-014",
        "Stream widths",
        "A flit is 32 B, a contraction packet 32 or 64 B. Main fetches up to 32 B and commits one trimmed packet a cycle, Sub 8 B each.",
        "a Collect packet of 64 B",
        "cut packets into flits; the outer part joins Time",
        _START,
    ),
    Rule(
        "HW-015",
        "Time Reducer buffer",
        "1,024 cells a slice, 32 columns a lane: 128 / Packet slots in Interleaved mode, 32 / Lane in Sequential.",
        "200 surviving inner time steps",
        "reduce the inner time, or move it outside the reduced axis",
        "Contraction engine: time reducer",
    ),
    Rule(
        "HW-016",
        "Sequencer limits",
        "At most 8 entries of at most 65,536 iterations; an access is 1, 2, 4, 8, 16 or 32 B.",
        "a stream of nine loops that do not merge",
        "choose an order in which neighbouring digits merge",
        "Sequencer",
    ),
    Rule(
        "HW-017",
        "NoC timeout",
        "A DMA, DRAM or DMN port that is not answered within 4,096 cycles is declared dead and its cluster domain is reset with all "
        "state lost. Hence fewer than 64 accesses in a row to one bank while DMA runs.",
        "64 accesses: 2 * 64 * 32 = 4,096 cycles",
        "stay below 64, or keep DMA away",
        _MEMORY,
    ),
    Rule(
        "HW-018",
        "DM request priority",
        "Main fetch, main commit, sub fetch, sub commit, DMA, highest first: the lower one starves.",
        "a main pass that holds a bank delays a sub store",
        "spread accesses over banks",
        _MEMORY,
    ),
    Rule(
        "HW-019",
        "TRF halves",
        "A register tensor lies in the full file or in one half of 32,768 native bytes a slice. One half is read while the other is "
        "filled, and they swap; the scheduler chooses the half.",
        "a TRF tensor of 40,000 B a slice cannot be double buffered",
        "stage at most 32 KB a slice at a time",
        _REGISTERS,
    ),
    Rule(
        "HW-020",
        "TRF read cache",
        "Direct mapped, 4 rows a bank and lane, 2.5 KB in all. A hit leaves the bank to a store in that cycle.",
        "a read that misses keeps the store waiting",
        "order reads so that rows repeat soon",
        _REGISTERS,
    ),
    Rule(
        "HW-021",
        "TRF bank contention",
        "Both halves share two banks a lane; on a conflict the read wins. Reads of at most 32 B take one bank, wide reads both.",
        "wide reads block a store at each cache miss",
        "use narrow reads where a store runs beside them",
        _REGISTERS,
    ),
    Rule(
        "HW-022",
        "TRF row packing",
        "A row of 320 bits holds 64 values of 5 bits, 32 of 9 or 8 bits, or 16 of bf16.",
        "33 i8 values take two rows",
        "fill rows of 32 B",
        _REGISTERS,
    ),
    Rule(
        "HW-023",
        "PE topologies",
        "A chip has 8 PEs. 1, 2 or 4 PEs are one cluster of 64, 128 or 256 slices, 8 PEs two clusters of 256; mappings follow the "
        "declared topology.",
        "64 slices on 8 PEs",
        "pad Slice to 256, or declare fewer PEs",
        "Moving tensors",
    ),
    Rule(
        "HW-024",
        "HBM penalties",
        "A read over a 256 B border costs twice, a partial write a read-modify-write of about 50 times, a row switch 60 to 75 cycles "
        "of 1.5 GHz; a stream that never changes the stack uses half the channels.",
        "storing 2 B from each of 256 slices",
        "gather results into pieces of at least 256 B",
        _MEMORY,
    ),
    Rule(
        "HW-025",
        "Transpose buffers",
        "Two buffers of 16 columns; with at most 16 columns one is filled while the other drains.",
        "32 columns are not double buffered",
        "keep to 16 columns",
        "Transpose engine",
    ),
    Rule(
        "HW-026",
        "Vector Engine widths",
        "8 elements a cycle in the logic, fixed-point and clip clusters, 4 in the float cluster, one more cycle of latency an ALU. A "
        "stash reserves 1,024 B of the VRF; at most 4 padded axes are tracked a call.",
        "7,200 B of operands beside a stash",
        "leave 1,024 B of the VRF free",
        "Vector engine",
    ),
    Rule(
        "HW-027",
        "Packet Reducer depth",
        "The tree takes 7 cycles for i4, 6 for i8 and f8, 5 for bf16, and then a packet a cycle.",
        "a bf16 packet of 32 values is summed in 5 cycles",
        "nothing to fix: the depth is paid once a pass",
        "Contraction engine: packet reducer",
    ),
    Rule(
        "HW-028",
        "Other rates",
        "Cast one flit a cycle; Switch ring size * Time * flits; inter-slice reduction linear in the slices of a group; fetch cast 1 "
        "or 2 cycles more; lane bus 8 elements a cycle.",
        "a broadcast over 256 slices takes 256 cycles a flit",
        "use short rings",
        "the engine chapters",
    ),
)

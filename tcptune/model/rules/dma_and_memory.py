"""Rules of the DMA Engine and of PCIe DMA (DMA-001 to DMA-043, PCIE-001 to PCIE-004)."""

from tcptune.model.rules.rule import Rule

_INTERFACE = "DMA Engine > Interface"
_ARCHITECTURE = "DMA Engine > Architecture"
_CONSTRAINTS = "DMA Engine > Constraints"
_BANDWIDTH = "DMA Engine > Optimization > Memory bandwidth"
_PACKETS = "DMA Engine > Optimization > Startup latency and packet splitting"
_INTERLEAVING = "DMA Engine > Optimization > Channel and DMN interleaving"
_EXAMPLES = "DMA Engine > Detailed examples"
_PCIE = "PCIe DMA"

RULES = (
    Rule(
        "DMA-001",
        "What the DMA Engine connects",
        "DMA copies a whole tensor HBM to HBM, HBM to DM, DM to HBM or DM to DM, without the Tensor Unit. A read sequencer on the "
        "source and a write sequencer on the destination run in step. No other pair of memories has a method.",
        "a DMA from TRF to HBM",
        "commit the register file's data to DM first, then store it",
        "DMA Engine (introduction)",
    ),
    Rule(
        "DMA-002",
        "A transfer keeps the tensor",
        "Every live destination cell takes the source cell with the same coordinates; the element type stays. Axes that only the "
        "destination names repeat the data on a load, a store repeats nothing. No live source cell may be left behind: a move neither "
        "sums nor drops.",
        "source [A, K], destination [A]: the values with K > 0 have nowhere to go",
        "name every axis of the source, or tile it first",
        "DMA Engine (introduction)",
    ),
    Rule(
        "DMA-003",
        "Which context drives a transfer",
        "Transfers between HBM and DM run on tdma, transfers between host and HBM on pdma, HBM to HBM on either. A context runs its "
        "transfers one after another.",
        "to_dm with pdma; an upload from the host with tdma",
        "use tdma on the chip and pdma for the host",
        _INTERFACE,
    ),
    Rule(
        "DMA-004",
        "Levels that a destination names",
        "HBM to DM keeps the source's Chip and names Cluster, Slice and Element. DM to DM names all four. Any HBM destination names "
        "Chip and Element. A DM place is named by chip, cluster and slice together.",
        "an HBM tensor with Chip `A` loaded to a DM tensor with Chip `1`",
        "keep Chip on the load, change it DM to DM or HBM to HBM",
        _INTERFACE,
    ),
    Rule(
        "DMA-005",
        "Layout check of transfers into DM",
        "The longest innermost run of the destination that reads consecutive source elements, with the destination's own padding "
        "behind it, must be a multiple of 8 bytes, and so must every destination stride at or beyond it.",
        "4 i8 elements a slice from consecutive source bytes: the run is 4 bytes",
        "move at least 8 bytes a run: more elements a slice, or rows padded alike on both sides",
        _INTERFACE,
    ),
    Rule(
        "DMA-006",
        "Reshape relabels, it moves nothing",
        "reshape gives the same bytes new mappings. The sizes of Chip, Cluster, Slice and Element stay, and old and new mapping must "
        "list the elements in the same order: axes may merge and split, not swap. The old name is used up.",
        "reshape of [A = 4, B = 2] to [A]: the size changes from 8 to 4",
        "keep every level's size; use a transfer to permute",
        _INTERFACE,
    ),
    Rule(
        "DMA-007",
        "The destination mapping is the layout change",
        "Order of axes, distribution over clusters and slices, and repetition all come from the destination mapping. The manual's "
        "transpose [A, B, C] to [C, A, B] goes through [A, C, B]; a direct transfer is as legal.",
        "[A, B, C] to [A, C, B] in f32 moves single elements of 4 bytes",
        "choose layouts whose common run is 256 bytes or more",
        _INTERFACE,
    ),
    Rule(
        "DMA-008",
        "Distributing a vector over slices",
        "A vector A = 2048 of i8 with Slice `A / 8`, Element `A % 8` and Cluster `1 # 2` fills 256 slices of one cluster with 8 bytes "
        "each, the least that a run may have. `1 # 2` is one live cluster and one that holds nothing.",
        "reading the second cluster of `1 # 2` as a copy",
        "write `2` where both clusters shall hold the data",
        _INTERFACE,
    ),
    Rule(
        "DMA-009",
        "Eight engines, one per DMN pair",
        "A chip has 8 DMA engines. Slice s of cluster c belongs to engine 4 c + s div 64. Eight transfers at most run at once.",
        "all data in slices 0 to 63 of one cluster keep one engine busy and seven idle",
        "spread a transfer over all slices of both clusters",
        _ARCHITECTURE,
    ),
    Rule(
        "DMA-010",
        "Paired sequencers",
        "One engine runs a read and a write sequencer with the same loop counts; strides and base addresses differ. A loop is written "
        "`count : (read stride, write stride)`.",
        "a read loop of 8 against a write loop of 16 cannot be written down",
        "split the larger loop so that both sides have the same counts",
        _ARCHITECTURE,
    ),
    Rule(
        "DMA-011",
        "Address generation",
        "The last loop runs fastest. An address is the base plus the sum of counter times stride, on either side.",
        "with loops A 256:(65536, 256), B 256:(256, 65536), C 256:(1, 1) step 256 reads byte 256 and writes byte 65,536",
        "derive the strides from the mappings instead of writing them",
        _ARCHITECTURE,
    ),
    Rule(
        "DMA-012",
        "stride0 is the packet",
        "The number behind the colon of a sequencer is the packet size in bytes: the hardware moves that many bytes a step, so the "
        "innermost loop over the packet is one step.",
        "stride0 256 turns 256 counts of C into one step",
        "make the packet a multiple of 256 bytes",
        _ARCHITECTURE,
    ),
    Rule(
        "DMA-013",
        "Strides follow from the mappings",
        "Each side projects its mapping on the stream (time, then packet): the stride of a term is the size of everything inside it "
        "in that mapping. A term that a mapping cannot give as one loop is refused.",
        "for [A, B, C] to [B, A, C] with sizes 256: A reads with 65,536 and writes with 256",
        "split axes alike on both sides",
        _ARCHITECTURE,
    ),
    Rule(
        "DMA-014",
        "Packet size",
        "The packet is cut from the run that both sides access consecutively: the largest divisor up to 4,096 bytes; any multiple of "
        "256 gives as many requests.",
        "[A, B, C] to [A, C, B] in f32 shares runs of 4 bytes: every packet is 4 bytes",
        "keep the innermost axis the same on both sides",
        _ARCHITECTURE,
    ),
    Rule(
        "DMA-015",
        "Which engine works",
        "A move is split by chip, cluster and slice, and each part goes to one engine: by default the one beside the source DM, for "
        "an HBM source the one beside the destination. Any engine could do any part.",
        "a DM to DM move whose source fills 64 slices runs on one engine",
        "spread the source over more slices",
        _ARCHITECTURE,
    ),
    Rule(
        "DMA-016",
        "Homogeneous aggregate",
        "Where the shape divides evenly over the engines, all of them run the same command and differ in base addresses only; they "
        "start in parallel.",
        "A = 15 over four groups of 4 rows is not even",
        "pad or choose axes so that every engine gets the same share",
        _ARCHITECTURE,
    ),
    Rule(
        "DMA-017",
        "Heterogeneous aggregate",
        "Otherwise every engine has commands of its own; at a ragged edge the part falls into several, so that nothing beyond the "
        "live region is written. Each command pays its own startup.",
        "3 rows left of a group of 2 x 2 become 2 rows and 1 row: two commands, 1,000 cycles of startup",
        "let the ragged axis be one that no engine boundary cuts",
        _ARCHITECTURE,
    ),
    Rule(
        "DMA-018",
        "One pair of memories per aggregate",
        "All engines of one transfer use the same source memory and the same destination memory, under one source and one destination "
        "mapping.",
        "one engine reading HBM beside another reading DM in the same transfer",
        "make it two transfers",
        _ARCHITECTURE,
    ),
    Rule(
        "DMA-019",
        "Address alignment",
        "Reads may start at any byte in HBM and DM, writes to HBM too. Writes to DM go in whole 8-byte bank words.",
        "a destination stride of 20 bytes in DM",
        "pad rows to a multiple of 8 bytes",
        _CONSTRAINTS,
    ),
    Rule(
        "DMA-020",
        "Between HBM and DM everything counts in 8 bytes",
        "Loads need read address, write address and packet in multiples of 8 bytes, so source strides too. Stores of shorter runs are "
        "accepted and pay for partial writes.",
        "dense source rows of 20 bytes loaded one a slice",
        "let the host pad rows to a multiple of 8 bytes",
        _CONSTRAINTS,
    ),
    Rule(
        "DMA-021",
        "Unaligned DM writes",
        "A write to DM that is no whole 8-byte word becomes read-modify-write: three times as long, and the bank is blocked meanwhile.",
        "a 4-byte write: 3 cycles instead of 1",
        "DMA-005 excludes such layouts",
        _CONSTRAINTS,
    ),
    Rule(
        "DMA-022",
        "Packet limit",
        "One packet is one AXI transaction: at most 256 beats of 16 bytes, 4,096 bytes. Longer runs loop over packets; a length "
        "without a usable factor needs several commands.",
        "a packet of 4,104 bytes; 4,099 bytes (prime) take two commands",
        "choose lengths with a factor that is a multiple of 256",
        _CONSTRAINTS,
    ),
    Rule(
        "DMA-023",
        "Peak bandwidths",
        "HBM 1.5 TB/s a chip (32 channels of 48 GB/s), DM 128 bytes a cycle and DMN, so 256 with both DMNs of a pair, PCIe 30 bytes a "
        "cycle. The slowest part on the way decides.",
        "a load from one half of the slices runs at 128 bytes a cycle and engine",
        "use both DMNs of every pair and all engines",
        _BANDWIDTH,
    ),
    Rule(
        "DMA-024",
        "Engine rate and shared HBM",
        "An engine moves at most 256 bytes a cycle. All engines share the HBM: six of them saturate it, and one needs six channels to "
        "run at full rate.",
        "8 engines do not get 8 x 256 bytes a cycle from HBM",
        "count HBM time for all engines together",
        _BANDWIDTH,
    ),
    Rule(
        "DMA-025",
        "Reads and writes: added or overlapped",
        "DM to DM inside one cluster adds the time of reads and writes, because both need the same banks; HBM to HBM adds them too. "
        "Transfers between tiers overlap them. Across clusters the manual is silent; they are taken as overlapping.",
        "65,536 requests DM to DM take 131,072 cycles, HBM to DM 65,536",
        "move across clusters or through the Tensor Unit where it matters",
        _BANDWIDTH,
    ),
    Rule(
        "DMA-026",
        "Startup of a command",
        "About 500 cycles pass before a command moves data. Commands of one engine pay one after another, engines in parallel.",
        "two commands on one engine: 1,000 cycles",
        "few large commands instead of many small ones",
        _PACKETS,
    ),
    Rule(
        "DMA-027",
        "Requests of a packet",
        "A packet of n bytes becomes ceil(n / 256) requests, each a cycle of the engine.",
        "257 bytes: 2 requests; 2,800 bytes: 11, the last with 240 bytes",
        "packets in multiples of 256 bytes",
        _PACKETS,
    ),
    Rule(
        "DMA-028",
        "Packets that are no multiple of 256",
        "They pay a whole request for the rest. HBM writes also read, change and write back the block; HBM reads pay only the "
        "rounding, DM hardly notices.",
        "a store of 2,800 bytes writes ten blocks and one read-modify-write",
        "pad the stored rows to 256 bytes",
        _PACKETS,
    ),
    Rule(
        "DMA-029",
        "HBM interleaving",
        "Bit 8 of the address selects the stack, bits 9 to 28 the channel. A pattern that never toggles bit 8 uses 16 of 32 channels; "
        "one that keeps changing rows in a bank pays about 40 cycles a request.",
        "requests 512 bytes apart: half the bandwidth",
        "walk memory in consecutive 256-byte blocks",
        _INTERLEAVING,
    ),
    Rule(
        "DMA-030",
        "DMN interleaving",
        "Full DM bandwidth needs consecutive requests to alternate between the two DMNs of a pair. Staying on one takes 2 cycles a "
        "request.",
        "65,536 requests on one DMN: 131,072 cycles instead of 65,536",
        "put the loop over the two DMNs innermost",
        _INTERLEAVING,
    ),
    Rule(
        "DMA-031",
        "DMA comes last at a DM bank",
        "Fetch and Commit go first. If they hold one bank for 64 accesses in a row, DMA starves until the NoC gives up.",
        "a fetch that reads one bank 64 times in a row beside a running DMA",
        "change the fetch order or the row length so that banks alternate",
        _PACKETS,
    ),
    Rule(
        "DMA-032",
        "DM to DM: DMA or Tensor Unit",
        "A pass of the Tensor Unit is often faster for moves inside DM, since DMA may not fill the slices' bandwidth. Between HBM and "
        "DM it rarely matters.",
        "replicating a vector DM to DM by DMA at about 76 bytes a cycle",
        "broadcast over the Switch Engine",
        _ARCHITECTURE,
    ),
    Rule(
        "DMA-033",
        "Address symbols",
        "slice_stride is the virtual span of a slice, 4 MB (the slice itself has 512 KiB); DMN_stride is the distance of the two DMNs "
        "of a pair. tcptune lays slices back to back: 32 x 4 MB.",
        "a descriptor with `A / 128 2 : (32768, DMN_stride)`",
        "keep the symbols symbolic when comparing descriptors",
        _EXAMPLES,
    ),
    Rule(
        "DMA-034",
        "The manual's cost model",
        "A side takes a cycle a request, DM two where requests stay on one DMN. A command takes the larger side, or the sum where "
        "both sides are the same tier. An engine adds 500 a command. The HBM needs 16/3 cycles a request of the busiest channel, 40 "
        "on a row switch. The total is the slowest engine or the HBM.",
        "example 2: max(65,536, 65,536) + 500 = 66,036",
        "`--profile manual` prices by these numbers",
        _EXAMPLES,
    ),
    Rule(
        "DMA-035",
        "Example 1: HBM to HBM",
        "A = B = 8, C = 256 i8, [A, B, C] to [B, A, C]: 64 requests each way, two a channel, no row switch. Reads and writes add up: "
        "64 + 64 + 500 = 628.",
        "628 cycles",
        "the strides 256 and 2,048 toggle stack and channel bits, so the HBM is not the limit",
        f"{_EXAMPLES} > Example 1",
    ),
    Rule(
        "DMA-036",
        "Example 2: HBM to DM at full rate",
        "256 x 256 x 256 i8 from [B, A, C] to Slice `A / 4`, Element `A % 4, B, C` on one engine: 65,536 requests a side, the DMN "
        "alternating innermost: 65,536 + 500 = 66,036.",
        "66,036 cycles",
        "the loop over `A / 128` innermost makes the DMNs take turns",
        f"{_EXAMPLES} > Example 2",
    ),
    Rule(
        "DMA-037",
        "Example 3: DM to DM in a cluster",
        "The same tensor from Element `A % 4, B, C` to `B, A % 4, C` in the same slices: reads and writes add up, 131,072 + 500 = "
        "131,572. Both tensors together fill the slice.",
        "131,572 cycles",
        "let a Tensor Unit pass permute it",
        f"{_EXAMPLES} > Example 3",
    ),
    Rule(
        "DMA-038",
        "Example 4: row conflicts",
        "Strides of 2^21 and 2^26 toggle row bits: 99.8 % of 524,288 requests switch the row of their bank, 16,384 a channel at 40 "
        "cycles, 655,860 in all, ten times the well-ordered transfer.",
        "655,860 cycles",
        "order the loops so that consecutive requests stay in a row",
        f"{_EXAMPLES} > Example 4",
    ),
    Rule(
        "DMA-039",
        "Example 5: the stack bit never toggles",
        "512-byte steps with 256-byte packets leave bit 8 at 0: 16 channels with 256 requests each, 1,365 + 500 cycles (the manual "
        "rounds to 1,857).",
        "1,865 cycles where 1,183 would do",
        "read both halves of each 512-byte block",
        f"{_EXAMPLES} > Example 5",
    ),
    Rule(
        "DMA-040",
        "Example 6: heterogeneous split",
        "A = 15 padded to 16 over four engines: three run one command of 128 requests, the last one 64 and 32 requests on one DMN "
        "each, 192 cycles and two startups: 1,192.",
        "1,192 cycles, set by the engine with the ragged edge",
        "A = 16 costs 671",
        f"{_EXAMPLES} > Example 6",
    ),
    Rule(
        "DMA-041",
        "The 256^3 transfer of the introduction",
        "HBM to HBM, 65,536 packets each way. The manual prints 66,036, counting one direction; by example 1's rule it is 131,572. "
        "Its write order switches rows on 64,512 requests.",
        "131,572 cycles by the rule of example 1",
        "do not rely on this total",
        f"{_ARCHITECTURE} > Dynamic behaviour",
    ),
    Rule(
        "DMA-042",
        "Keep packets at multiples of 256",
        "A packet of 256 n + r bytes needs n + 1 requests although it moves little more.",
        "264 bytes a packet: twice the requests of 256",
        "pad or split rows to multiples of 256 bytes",
        f"{_EXAMPLES} > Example 3 (note)",
    ),
    Rule(
        "DMA-043",
        "HBM-HBM engines share the HBM",
        "Reads of HBM to HBM traffic get half of 1.5 TB/s. Four engines get 0.1875 TB/s each, 1.365 cycles a request; up to two still "
        "reach a request a cycle.",
        "6 engines: 2.048 cycles a request",
        "two engines are enough for HBM to HBM",
        f"{_EXAMPLES} > Example 1",
    ),
    Rule(
        "PCIE-001",
        "PCIe DMA",
        "Host memory and HBM exchange data through an engine of its own, driven by pdma. Nothing else reaches the host.",
        "uploading a host tensor with tdma",
        "use pdma",
        _PCIE,
    ),
    Rule(
        "PCIE-002",
        "Upload and download",
        "to_hbm on a host tensor uploads, to_host on an HBM tensor downloads; both are asynchronous and awaited.",
        "to_host from a DM tensor",
        "store to HBM first",
        _PCIE,
    ),
    Rule(
        "PCIE-003",
        "Layout of host transfers",
        "A host tensor has only Element. An upload names Chip and Element of the HBM tensor, so it may lay the data out anew.",
        "host [A = 8, B = 512] to Chip `A`, Element `B`: chip a holds row a",
        "let the upload do the relayout",
        _PCIE,
    ),
    Rule(
        "PCIE-004",
        "PCIe bandwidth",
        "30 bytes a cycle each way, against 256 of a DMA engine: ceil(bytes / 30) cycles of data. The manual gives no startup.",
        "1 MiB takes 34,953 cycles",
        "upload once and reuse on the chip",
        _PCIE,
    ),
)

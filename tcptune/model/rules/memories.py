"""Rules of Data Memory and HBM (DM-001 to DM-012, HBM-001 to HBM-015)."""

from tcptune.model.rules.rule import Rule

_BANKS = "Memory performance > Bank structure in a slice"
_DMN = "Memory performance > DMN and slice interleaving"
_STARVATION = "Memory performance > Bank starvation"
_HBM = "Memory performance > High-bandwidth memory (HBM)"
_SPACE = f"{_HBM} > Address space in a chip"
_CONFLICT = f"{_HBM} > Bank conflict"

RULES = (
    Rule(
        "DM-001",
        "Geometry of Data Memory",
        "A chip has 2 clusters of 8 DMNs, a DMN 32 slices, a slice 16 banks of 4,096 rows of 8 bytes: 512 KiB a slice, 128 MiB a cluster.",
        "a tensor of 600 KiB a slice",
        "spread it over more slices or both clusters",
        "Memory performance > Data Memory (DM)",
    ),
    Rule(
        "DM-002",
        "Peak of Data Memory",
        "16 DMNs of 128 bytes a cycle: about 2 TB/s a chip.",
        "one busy DMN delivers a sixteenth of it",
        "use all DMNs",
        "Memory performance",
    ),
    Rule(
        "DM-003",
        "A slice holds 512 KiB",
        "Every slice has its own 524,288 bytes in 16 banks of 8 bytes width. Accesses to one bank are serial.",
        "Element `B, C` with 1,024 x 513 bytes: 525,312",
        "tile the tensor, or put more of it on Slice and Cluster",
        _BANKS,
    ),
    Rule(
        "DM-004",
        "Address bits of a slice",
        "Bits 0 to 2 are the byte, 3 to 6 the bank, 7 to 18 the row. 128 bytes in a row touch every bank once.",
        "a stride of 128 bytes always meets the same bank",
        "walk addresses in order, or use strides that are odd multiples of 8 bytes",
        _BANKS,
    ),
    Rule(
        "DM-005",
        "DMN port and ring",
        "The 32 slices of a DMN share 128 bytes a cycle. Routers link them in rings: slices 0 to 31 and 32 to 63 of a pair.",
        "256 bytes on one DMN take 2 cycles",
        "alternate between the DMNs of a pair",
        _DMN,
    ),
    Rule(
        "DM-006",
        "DMN interleaving",
        "Request r runs on DMN r mod 2 in cycles r and r + 1. N requests that alternate take N + 1 cycles, on one DMN 2 N.",
        "64 requests on one DMN: 128 cycles instead of 65",
        "make the DMN the innermost loop",
        _DMN,
    ),
    Rule(
        "DM-007",
        "Slice interleaving",
        "DMA, Fetch and Commit share the slices, and a slice queues two DMA requests. Requests over many slices keep single delays "
        "from stopping the stream.",
        "a long run of requests into one slice",
        "spread over all 32 slices of a DMN",
        _DMN,
    ),
    Rule(
        "DM-008",
        "Who gets a bank",
        "Main fetch, main commit, sub fetch, sub commit, then DMA.",
        "a DMA waits while a main pass reads its bank",
        "keep other banks free, or move the DMA beside other work",
        _STARVATION,
    ),
    Rule(
        "DM-009",
        "NoC timeout",
        "DMA talks to DRAM and DMN through a NoC hub. A port that does not answer within 4,096 cycles is declared dead; only a reset "
        "of the whole cluster helps, and all state is lost.",
        "a bank held long enough by fetches",
        "keep to DM-010",
        _STARVATION,
    ),
    Rule(
        "DM-010",
        "Fewer than 64 accesses in a row to one bank",
        "While DMA runs, Fetch and Commit must not hold one bank for 64 or more accesses in a row. The count adds up over engines.",
        "66 consecutive reads of one bank",
        "reorder the loop, pad rows by 8 bytes, or keep DMA away meanwhile",
        _STARVATION,
    ),
    Rule(
        "DM-011",
        "Where the 64 comes from",
        "A request waits (256 / 128) x N x 32 cycles, and 64 N must stay below 4,096: N at most 63.",
        "N = 64 gives 4,096 cycles",
        "N = 63 gives 4,032",
        _STARVATION,
    ),
    Rule(
        "DM-012",
        "A DMA request touches every bank",
        "256 bytes are two rows of all 16 banks, so one busy bank holds up the whole request.",
        "8 bytes at offset 4 touch two banks",
        "align accesses to 8 bytes, requests to 256",
        _STARVATION,
    ),
    Rule(
        "HBM-001",
        "Geometry of HBM",
        "2 stacks of 16 channels; a channel has 3 slices of 4 bank groups of 4 banks; a bank has 16,384 rows of 2 KiB. 32 channels, "
        "48 GiB a chip.",
        "32 MiB behind one bank are served one row at a time",
        "spread accesses over channels and banks",
        _HBM,
    ),
    Rule(
        "HBM-002",
        "HBM capacity",
        "48 GiB a chip, contiguous from address 0.",
        "an address of 48 GiB or more",
        "split the tensor over chips",
        _SPACE,
    ),
    Rule(
        "HBM-003",
        "HBM bandwidth",
        "A channel controller moves 64 bytes a 0.75 GHz cycle, 48 GB/s; 32 of them 1,536 GB/s, stated as 1.5 TB/s. A DMA engine takes "
        "256 GB/s.",
        "8 engines ask for 2 TB/s",
        "six engines are enough",
        f"{_HBM} > Peak bandwidth",
    ),
    Rule(
        "HBM-004",
        "Unit of transfer",
        "256 bytes, 4 controller cycles of one channel (5.33 ns). A controller queues 64 commands and interleaves them.",
        "8-byte reads pay for 256",
        "read whole aligned blocks over all channels",
        f"{_HBM} > Peak bandwidth",
    ),
    Rule(
        "HBM-005",
        "Address bits of HBM",
        "Bits 0 to 7 and 14 to 16 are the byte in the row, 8 the stack, 9 to 12 the channel, 13 and 19 the bank group, 17 and 18 the "
        "bank, 20 and 34 the slice, 21 to 33 and 35 the row.",
        "a stride of 2 MiB changes nothing but row and channel",
        "let consecutive requests differ in bits 8 to 12",
        _SPACE,
    ),
    Rule(
        "HBM-006",
        "Channel XOR",
        "Channel bit j is the exclusive or of address bits 9 + j, 13 + j, 17 + j, 21 + j and 25 + j, so large strides spread too. The "
        "manual's example leaves out bit 17, its table has it.",
        "addresses 0 and 0x2200 share a channel: bits 9 and 13 cancel",
        "check strides that toggle two bits of the same group",
        _SPACE,
    ),
    Rule(
        "HBM-007",
        "Three slices in two bits",
        "Bit 34 clear: slice is bit 20. Bit 34 set: slice 2, and bit 20 is the top row bit. Bits 34 and 35 are never both 1, which "
        "makes the 48 GiB contiguous.",
        "address 0xc00000000",
        "stay below 48 GiB",
        _SPACE,
    ),
    Rule(
        "HBM-008",
        "Interleaving of neighbours",
        "Neighbouring blocks go to different channels by themselves. The stack depends on bit 8 alone and must be toggled on purpose. "
        "HBM time is that of the busiest channel.",
        "a pattern of 512-byte steps uses one stack",
        "read consecutive blocks",
        _CONFLICT,
    ),
    Rule(
        "HBM-009",
        "Unaligned reads",
        "A read that crosses a 256-byte border takes two transfers.",
        "256 bytes at offset 128: half the bandwidth",
        "align starts to 256 bytes",
        f"{_HBM} > Misaligned access",
    ),
    Rule(
        "HBM-010",
        "Partial writes",
        "A block that is written in part is read, changed and written back, about 50 times an aligned write.",
        "2,800 bytes: ten whole blocks and one partial one, 60 units instead of 11",
        "gather results into whole 256-byte blocks before the store",
        f"{_HBM} > Misaligned access",
    ),
    Rule(
        "HBM-011",
        "Row switches",
        "A bank keeps one row open. Another row costs 40 to 50 ns, 30 to 40 times an access to the open one, about 40 cycles a "
        "request. tcptune, as the manual's examples, does not charge the first opening.",
        "a stride of 2^29 bytes switches the row on every access",
        "finish a row before the next one of the same bank",
        _CONFLICT,
    ),
    Rule(
        "HBM-012",
        "The controller reorders",
        "A channel keeps transferring from other banks while one switches rows, and serves hits first (FR-FCFS). Patterns that keep "
        "switching rows of one bank stay slow.",
        "two rows of one bank in turns",
        "estimate row switches and avoid them",
        _CONFLICT,
    ),
    Rule(
        "HBM-013",
        "Column delay",
        "Commands on one channel keep a distance in 1.5 GHz cycles: 2 across bank groups, 3 across slices, 4 within a bank group. A "
        "command moves 64 bytes, so that is 48, 32 or 24 GB/s.",
        "four commands to one bank: 10.67 ns a block",
        "let bank groups take turns",
        f"{_HBM} > Column-to-column delay",
    ),
    Rule(
        "HBM-014",
        "When the column delay matters",
        "Bank conflicts and channel interleaving usually dominate. tcptune reports the delay between requests and does not charge it.",
        "a pattern that toggles slices mostly brings row switches with it",
        "look at channels and rows first",
        f"{_HBM} > Column-to-column delay",
    ),
    Rule(
        "HBM-015",
        "Using the table of penalties",
        "Compare schedules first; then pick alignment, interleaving and packet size from the table; use the details to diagnose.",
        "DM bank starvation resets the cluster, an unaligned HBM write costs about 50 times",
        "start with the rows that cost most",
        "Memory performance (table)",
    ),
)

"""Rules of the vendor's static timing (VT): what one operation costs in the compiler's own schedules, and how whole kernels add up.

Source: published schedule dumps of the vendor compiler (1 GHz static schedule). The constants themselves are in `model.timing.calibration`.
"""

from tcptune.model.rules.rule import Rule

_SCHEDULES = "published vendor schedules (not the manual)"


def _cost(rule_id: str, title: str, text: str, shows: str, advice: str) -> Rule:
    """A cost rule: nothing breaks it, so the example shows its effect and the fix says how to pay less."""
    return Rule(rule_id, title, text, shows, advice, _SCHEDULES)


RULES = (
    _cost(
        "VT-001",
        "Staging a register file on Sub",
        "A StoTrf or StoVrf pass on the sub context takes 263 cycles plus the larger of the fetched bytes per slice "
        "over 8 and, with a switch in the "
        "pass, ring size times Time times flits per packet; a ring of 256 adds 512.",
        "staging 4,096 B a slice without a switch takes 263 + 512 = 775 cycles",
        "stage the smaller operand, and only the part a slice needs",
    ),
    _cost(
        "VT-002",
        "Contraction pass on Main",
        "A contraction takes 265 cycles plus the largest of the flits fetched, the packets left after packing and time "
        "broadcast, and the flits that "
        "the lane folder drains. Vector operations after it and a transpose that keeps pace are free.",
        "512 fetched flits take 777 cycles, whatever the number of lanes",
        "use all 8 lanes so that fewer flits stream",
    ),
    _cost(
        "VT-003",
        "Table lookup in a Main pass",
        "263 cycles plus the elements of a slice over 12.8 (f4 to f8) or over 6.4 (f8 to bf16).",
        "640 f8 elements a slice looked up to bf16 take 363 cycles",
        "look up inside the pass that consumes the values",
    ),
    _cost(
        "VT-004",
        "Copy pass on Main",
        "A pass that only moves data takes 264 cycles plus its flits.",
        "16 flits take 280 cycles",
        "let the consumer read the layout its producer writes",
    ),
    _cost(
        "VT-005",
        "Vector pass on Main",
        "281 cycles plus its steps: 4 elements a step as soon as a float stage is used, 8 otherwise. The number of "
        "operations and of VRF operands does not matter.",
        "1,024 f32 elements a slice take 281 + 256 = 537 cycles",
        "fuse vector work into one pass: another operation costs nothing, another pass 281 cycles",
    ),
    _cost(
        "VT-006",
        "Main pass that ends in the VRF",
        "280 cycles plus steps with vector operations, 263 plus flits without; it books Main and Sub.",
        "one step with vector operations takes 281 cycles and keeps Sub waiting",
        "stage on Sub while Main computes, unless the value comes from Main anyway",
    ),
    _cost(
        "VT-007",
        "Sub pass with vector work into the VRF",
        "281 cycles plus bytes over 8.",
        "480 B take 341 cycles",
        "keep the operand small",
    ),
    _cost(
        "VT-008",
        "Cast and commit on Sub",
        "264 cycles plus 2 per packet of 8 elements; on Main 264 plus 1 per packet.",
        "900 packets on Sub take 2,064 cycles",
        "cast on Main when Main is free",
    ),
    _cost(
        "VT-009",
        "Inter-slice reduce",
        "The whole pass takes 270 cycles plus the larger of 5 and its steps or flits, plus 9 per slice of the reduce group.",
        "a group of 256 slices costs at least 270 + 5 + 2,304 = 2,579 cycles",
        "gather over a short ring and sum locally, or reduce over few slices",
    ),
    _cost(
        "VT-010",
        "Switch pass",
        "263 cycles plus ring size times Time times flits per packet; a ring of 256 adds 512. Packets narrower than a "
        "flit or trimmed output add up to 2.",
        "a ring of 256 with Time 16 takes 263 + 4,096 + 512 = 4,871 cycles",
        "use the shortest ring that reaches the slices",
    ),
    _cost(
        "VT-011",
        "Switch fused with vector work",
        "281 cycles plus the larger of the vector steps and ring size times flits.",
        "ring 8, 2 flits and 16 steps take 297 cycles",
        "fuse the switch into the vector pass",
    ),
    _cost(
        "VT-012",
        "Transpose pass",
        "266 cycles plus the rows written where they exceed the fetch or switch time of the pass; in a vector pass its "
        "steps and the rows add.",
        "256 rows take 522 cycles; 2 steps and 8 rows in a vector pass 291",
        "transpose inside a pass whose fetch is as long",
    ),
    _cost(
        "VT-013",
        "Lookup table staging",
        "A change of table costs a DMA of 838 cycles for its 4 KB and a store of 1,293 cycles on Sub.",
        "two tables in one kernel cost 4,262 cycles unless hidden",
        "use one table, staged beside a load",
    ),
    _cost(
        "VT-014",
        "CustomBroadcast bitmap",
        "A custom switch configuration is loaded by one DMA of 719 cycles (16 KB) before its pass.",
        "a custom ring of 8 that saves 100 cycles loses 619",
        "use a canonical switch configuration where one expresses the move",
    ),
    _cost(
        "VT-020",
        "Load of distinct data",
        "As a class fit, one cluster: 499 cycles, 2.2 per slice, and bytes over 868. The engine model of the transfer "
        "prices the actual requests.",
        "4 KB to each of 256 slices takes about 2,277 cycles",
        "load over both clusters",
    ),
    _cost(
        "VT-021",
        "Load of distinct data to both clusters",
        "As a class fit: 548 cycles plus bytes over 1,225 for pieces of at least 256 B; extra short or unaligned "
        "pieces cost 0.2 to 0.34 each.",
        "15,360 B to each of 512 slices take about 7,030 cycles",
        "keep rows 256 B aligned",
    ),
    _cost(
        "VT-022",
        "Load replicated to every slice",
        "As a class fit: 547 cycles plus delivered bytes over 110 for one cluster, over 220 for two, because one HBM "
        "line is read by many slices in a row.",
        "2 KB to 256 slices take 5,308 cycles",
        "load distinct parts and broadcast over a short switch ring, or keep several copies in HBM",
    ),
    _cost(
        "VT-023",
        "Load replicated over part of the slices",
        "16 blocks of 4 KB, each to 16 slices: 3,118 cycles along the outer digit of Slice, 3,020 along the inner one.",
        "the operand blocks of the manual's GEMM template",
        "fewer replicas per line, or distinct loads and a switch",
    ),
    _cost(
        "VT-024",
        "Small loads",
        "From 447 cycles (32 B to one slice) over 620 (32 slices) to 792 (16 B to each of 256 slices).",
        "a bias of 16 B a slice takes 792 cycles",
        "load small operands first, beside other work",
    ),
    _cost(
        "VT-025",
        "Rows whose pitch is not a multiple of 256 B",
        "8 to 15 % more for distinct loads, 29 % more for replicated ones, because pieces touch more HBM lines.",
        "2,000 B rows against 2,048 B rows",
        "pad rows to multiples of 256 B",
    ),
    _cost(
        "VT-026",
        "Store of aligned pieces",
        "Pieces of at least 256 B, aligned, cost about what a load costs.",
        "2,048 B from each of 256 slices take 1,563 cycles",
        "gather results into 256 B pieces before the store",
    ),
    _cost(
        "VT-027",
        "Store of pieces under 256 B",
        "Each piece is a read-modify-write: 8.8 cycles at 64 B, 33.7 at 16 B, up to 364 at 2 B.",
        "256 pieces of 2 B take 93,634 cycles",
        "gather the result over a switch ring, transpose it, and store few long pieces",
    ),
    _cost(
        "VT-028",
        "Reported utilisation",
        "The dump reports ceil(bytes / 1,360) over the duration.",
        "1 MiB in 2,277 cycles is reported as 33.9 %",
        "compare durations, not utilisations",
    ),
    _cost(
        "VT-029",
        "HBM read after a write",
        "A load that reads what the same kernel stored starts 600 cycles (sync) plus 1,000 after the store's end; an "
        "indexed DMA waits 300.",
        "a round trip through HBM costs 1,600 cycles besides both transfers",
        "keep intermediates in DM",
    ),
    _cost(
        "VT-030",
        "DM to DM replication",
        "About 76 B a cycle, from few data. HBM to HBM has no price in the vendor's schedules.",
        "replicating 64 KB takes about 860 cycles",
        "broadcast over the switch, or through HBM copies made by the host",
    ),
    _cost(
        "VT-040",
        "Start and end of a kernel",
        "Core operations start at cycle 1,000 and the first DMA at 1,003; a sync of 600 at the end counts in the makespan.",
        "an empty kernel costs 1,600 cycles",
        "do more work per kernel",
    ),
    _cost(
        "VT-041",
        "Contexts an operation books",
        "A contraction with a cast or a vector operation books Main and the Vector Engine, without them Main alone; "
        "copy, switch and transpose Main; "
        "register staging Sub; vector work on Sub also the Vector Engine; a Main pass that writes the VRF Main and "
        "Sub; every DMA the DMA engine.",
        "a Sub pass with vector work cannot run beside a Main pass with a cast",
        "use the commit cast instead of the cast engine to keep the Vector Engine free",
    ),
    _cost(
        "VT-042",
        "When an operation starts",
        "At the later of the end of its producers and the time its contexts are free; operations touch without gap; "
        "one DMA runs at a time.",
        "two loads never overlap in the static schedule",
        "order the loads so that compute can begin early",
    ),
    _cost(
        "VT-043",
        "Order of operations",
        "The vendor's scheduler reorders independent operations by beam search; source order has no effect. On ties a "
        "Tensor Unit operation goes before a DMA.",
        "two sources that differ only in order have one makespan",
        "change dependences or sizes, not the order of lines",
    ),
    _cost(
        "VT-044",
        "Lifetimes and addresses",
        "A tensor lives from its producer's begin to its last reader's end; DM addresses are multiples of 256 B a "
        "slice; a TRF tensor takes one half of the "
        "file (32 KB a slice) whatever its size, and successive ones alternate.",
        "a third live TRF tensor does not fit",
        "read a TRF tensor before staging the next but one",
    ),
    _cost(
        "VT-045",
        "Tile views",
        "A tile view costs 10 cycles of Core at the kernel's start and 6 per bind or merge.",
        "40 tile views add 400 cycles of Core before the first of them is used",
        "fewer, larger tiles",
    ),
    _cost(
        "VT-046",
        "Loops",
        "Inside a rolled loop a pass pays 115 cycles instead of 263 before its data and each iteration costs 256 more; "
        "unrolled code pays 263 per pass and "
        "nothing per iteration. A hypothesis that fits the manual's three loop kernels.",
        "20 iterations of staging and contraction: 19,206 rolled, 14,895 unrolled",
        "unroll, or pipeline two stages by hand",
    ),
)

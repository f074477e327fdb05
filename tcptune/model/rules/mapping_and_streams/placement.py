"""Rules of placement, tensor semantics and moves (MAP-030 to MAP-038, SEM, MOVE)."""

from tcptune.model.mappings.dimensions import AXIS_ROUTES, DIMENSIONS, MOVES
from tcptune.model.rules.rule import Rule

_S = "Spatial dimensions"
_T = "Tensor Semantics"
_MOVE = "Tuning movement"
_COPY = "Copyable end-to-end transfer"

RULES = (
    Rule(
        "MAP-030",
        "Dimensions and who reduces them",
        "; ".join(f"{d.name} is {d.kind}, in {', '.join(d.defined_in)}, reduced by {d.reduced_by}" for d in DIMENSIONS)
        + ". Chip and Cluster are first redistributed by DMA and then reduced in the Vector Engine. A placement holds for one stage only.",
        "reducing over Chip in one Tensor Unit pass",
        "bring the partial results together by DMA, then reduce them over Time",
        "Mapping Tensors / Dimension placement and reduction",
    ),
    Rule(
        "MAP-031",
        "Spatial sizes are the hardware's counts",
        "A chip has 2 clusters, a cluster 256 slices; mappings of Chip, Cluster and Slice have exactly as many positions as there are "
        "units. The engines also accept 1 cluster and 64 or 128 slices (MOVE-007).",
        "Slice `C / 2` with 32 positions",
        "`C / 2 # 256`",
        f"{_S} / Constraints",
    ),
    Rule(
        "MAP-032",
        "Units that are not needed are padded",
        "`1 # 2` is one active and one idle cluster, `X / N # 256` leaves slices idle. The whole chip belongs to the kernel: idle units"
        " cannot serve another one.",
        "Cluster `1` on a device opened with two clusters",
        "`1 # 2`, or `2` if both clusters shall hold the same data",
        f"{_S} / Constraints",
    ),
    Rule(
        "MAP-033",
        "Capacity of a unit",
        "A DM tensor takes at most 524,288 bytes of a slice, a VRF tensor at most 8,192 bytes of a slice, a TRF tensor has at most 8 "
        "lanes and takes at most 65,536 bytes of a slice over all lanes, 8,192 a lane with eight. Padding counts.",
        "Element of 262,145 bf16 in DM",
        "spread the axis over more slices, or tile it in an outer loop",
        f"{_S} / Constraints",
    ),
    Rule(
        "MAP-034",
        "Alignment is each memory's own",
        "The mapping fixes the layout, the storage owns the address. HBM tensors have addresses of their own; DM, TRF and VRF addresses"
        " come from the backend. Each constructor checks its own alignment.",
        "using the DMA alignment of HBM for a VRF tensor",
        "look up the rule of the memory: DMA-005 for DMA, COMMIT-005 for commits, TRF and VRF for register files",
        f"{_S} / Constraints",
    ),
    Rule(
        "MAP-035",
        "Time and Packet of a stream",
        "A stream keeps Chip, Cluster and Slice; each step of Time brings one Packet to every slice. Time has no limit of its own, "
        "Packet limits are rules of the engines. Slice `C / 2` (32) and Packet `C % 2` move 64 channels a step.",
        "a Packet of 24 elements where an engine takes one flit",
        "the limit of the engine: SEQ-015, COLLECT-002, COMMIT-006",
        "Temporal dimension",
    ),
    Rule(
        "MAP-036",
        "Positions of a stream",
        "Begin, Fetch, Switch, Collect, Contraction, Reduce, Cast and Transpose are typed stages; the Vector Engine has its own; Commit"
        " ends the stream in a DM tensor. A stream belongs to the context it runs in.",
        "collect on a stream that was collected",
        "the order of TU-011",
        "Temporal dimension",
    ),
    Rule(
        "MAP-037",
        "Ways between Time and space",
        "; ".join(f"{r.name}: {r.moves} (when {r.available}; cost: {r.cost})" for r in AXIS_ROUTES) + ".",
        "lifting into a Slice without a broadcast",
        "InterTranspose for Slice, DMA for Chip and Cluster",
        "Mapping Tensors / Distribution over space and time",
    ),
    Rule(
        "MAP-038",
        "A host tensor is a flat buffer",
        "A host tensor of mapping E has |E| elements in the order of E, padding counted.",
        "4,000 values for `A, B` with A = 8 and B = 512",
        "4,096 values",
        "Mapping Expressions / Host tensor usage",
    ),
    Rule(
        "SEM-001",
        "A host tensor holds T",
        "Element i equals T at the index of position i wherever that is live; Zero padding is zero, other padding anything.",
        "a result compared in its padding cells",
        "compare live cells",
        f"{_T} / Holding",
    ),
    Rule(
        "SEM-002",
        "An HBM tensor holds T",
        "Element j of chip i equals T at the sum of the chip's index i and the element's index j. The two mappings take different "
        "digits, which may be digits of one axis.",
        "Chip `A`, Element `A, B`: A would be added to itself",
        "Chip `A`, Element `B`",
        f"{_T} / Holding",
    ),
    Rule(
        "SEM-003",
        "All levels add up",
        "The element at one position of each level equals T at the sum of the levels' indices, in the order Chip, Cluster, Slice, Lane,"
        " Time, Packet or Element. Digits of one operand that are spread over levels are added before the operand is decoded.",
        "decoding Slice `R # 48 / 8` and Element `R # 48 % 8` apart",
        "decode the pair of all levels",
        f"{_T} / Holding",
    ),
    Rule(
        "SEM-004",
        "Linear combinations",
        "`$(e1:n1, …)` gives each mapping its own stride; its size is 1 + sum((|e| - 1) * n). A position relates to every index whose "
        "parts lie at positions that add up to it, with their strides. N = 5 at stride 1 and F = 3 at stride 2: size 9.",
        "`$(N:0)`",
        "strides of at least 1",
        f"{_T} / Linear combination",
    ),
    Rule(
        "SEM-005",
        "A pair is a linear combination",
        "`e1, e2` is `$(e1:|e2|, e2:1)`. Prefer the pair: its strides follow when sizes change.",
        "`$(A:4, B:1)` with B = 8: rows overlap",
        "`A, B`",
        f"{_T} / Linear combination",
    ),
    Rule(
        "SEM-006",
        "Sliding windows are not one-to-one",
        "Windows make several indices meet: position 4 of `$(N:1, F:2)` (5 and 3) is N = 4, N = 2 with F = 1, and F = 2. Wide strides "
        "leave positions that hold nothing.",
        "writing through a sliding window",
        "read through it; write through a one-to-one mapping",
        f"{_T} / Linear combination",
    ),
    Rule(
        "SEM-007",
        "What a function means",
        "A function is right when its result holds f of what its inputs hold, for all tensors. Layout and memory do not matter to that.",
        "an oracle that compares buffers of two layouts",
        "compare by coordinates",
        f"{_T} / Function specification",
    ),
    Rule(
        "SEM-008",
        "A move is the identity",
        "DMA, fetch and commit keep the mathematical tensor and change its representation only.",
        "a fetch that shall also scale",
        "an engine that computes",
        f"{_T} / Function specification; {_MOVE}",
    ),
    Rule(
        "SEM-009",
        "An index is traced through every representation",
        "N = 1, C = 17, H = 3, W = 5 of (4, 64, 32, 32) is element 17,509 of chip 1 in HBM `N | C, H, W`, element 2,251 of slice 8 in "
        "DM `C / 2 | N, H, W, C % 2`, and step 1,125, packet element 1 of slice 8 in the stream.",
        "looking for it at element 17,509 of a slice",
        "add the indices of all levels",
        "NCHW representation trace",
    ),
    Rule(
        "MOVE-001",
        "Which call moves what",
        "; ".join(f"{m.source} to {m.destination}: {m.operation} on {m.contexts}" for m in MOVES) + ".",
        "to_dm from a host tensor",
        "to_hbm first, then to_dm",
        "Choosing a movement route",
    ),
    Rule(
        "MOVE-002",
        "Four contexts",
        "main and sub run Tensor Unit passes, tdma the kernel's DMA, pdma transfers with the host. They are independent, and each "
        "operation takes its own.",
        "to_dm on pdma",
        "to_dm on tdma",
        "Keeping transfer order",
    ),
    Rule(
        "MOVE-003",
        "Lifetime and order",
        "A stream does not outlive the view it reads. Read a destination after its transfer or commit is done, and do not let writes "
        "through two views of one tensor overlap without an order.",
        "two commits into overlapping tiles in one loop body",
        "disjoint tiles, or one after the other",
        "Keeping transfer order",
    ),
    Rule(
        "MOVE-004",
        "Host transfers are asynchronous",
        "to_hbm from the host and to_host must be awaited; to_dm, to_hbm, fetch and commit of a kernel only enqueue commands.",
        "reading the host buffer before to_host was awaited",
        "await it",
        "Keeping transfer order",
    ),
    Rule(
        "MOVE-005",
        "What the engines connect",
        "Fetch reads and Commit writes DM, one Sequencer a slice; DMA couples a read and a write Sequencer between HBM and DM in any "
        "combination. Unscaled gather takes raw row positions from DM, unscaled scatter does not exist, SPM has no tensor type.",
        "dma_scatter_unscaled",
        "scaled scatter",
        "Engine boundaries",
    ),
    Rule(
        "MOVE-006",
        "Strides follow from the mappings",
        "A move names mappings only; all strides are derived from the two of them, and the source is left as it is.",
        "a pair of mappings that cut an axis incompatibly",
        "a common refinement (SEQ-017)",
        f"{_MOVE}; {_COPY}",
    ),
    Rule(
        "MOVE-007",
        "Sizes checked before anything runs",
        "A DM tensor has 1 or 2 clusters and 64, 128 or 256 slices; the tail of a DMA packet meets its element alignment.",
        "Slice of 32 positions, Cluster of 3",
        "pad Slice: `C / 2 # 64`",
        _MOVE,
    ),
    Rule(
        "MOVE-008",
        "Spread traffic",
        "Contiguous packets and mappings that use all clusters, slices, banks and channels are fast; small or strided packets cost "
        "accesses; conflicting bank patterns starve DMA.",
        "a packet of 2 bytes",
        "a larger contiguous packet",
        _MOVE,
    ),
    Rule(
        "MOVE-009",
        "The end-to-end transfer",
        "A = 4096, B = 8 of i8 go to DM with Slice `A / 16` and Element `A / 8 % 2, A % 8, B`, are fetched in packets of 64, cast to "
        "i32, collected as 16 flits, committed and sent to HBM as `B, A`. The fetch runs [2:64, 8:8, 8:1] and takes 16 cycles, for the "
        "cast bounds reads to 8 elements; the commit takes 16.",
        "expecting 4 cycles from 32-byte reads",
        "count the reads after the cast (FETCH-006)",
        _COPY,
    ),
    Rule(
        "MOVE-010",
        "Its expected values",
        "The input counts up and wraps to i8; the output at (b, a) is that value widened: i32(i8(8 a + b)), b-major.",
        "values above 127 in the output",
        "wrap to i8 before widening",
        f"{_COPY}; Case study: Tensor Unit I/O",
    ),
    Rule(
        "MOVE-011",
        "The DMA tail holds the innermost axis",
        "The innermost axis of the DM Element is that of the source, so that a DMA packet ends on all of B: 8 bytes, the least alignment.",
        "Element `…, B, A % 8`",
        "keep B innermost",
        _COPY,
    ),
    Rule(
        "MOVE-012",
        "The last DMA transposes",
        "Stream and DM keep the order A, B; the destination mapping `B, A` of the last DMA makes the transposition.",
        "looking for a transposing stream in the kernel",
        "nothing to fix",
        "Case study: Tensor Unit I/O",
    ),
)

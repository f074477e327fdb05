"""Rules of redistribution, gather and scatter, and collectives (REDIST-001 to 021, GATHER-001 to 007, COLL-001 to 017)."""

from tcptune.model.rules.rule import Rule

_OPERATIONS = "DMA Engine > Redistribution operations"
_SUMMARY = f"{_OPERATIONS} > Interface summary"
_SEMANTICS = f"{_OPERATIONS} > Tensor DMA semantics"
_COMBINING = f"{_OPERATIONS} > Combining stages"
_LIMITS = f"{_OPERATIONS} > Redistribution constraints"
_INDIRECT = "DMA Engine > Scatter and gather"
_CASE = "Case study: chip and cluster reduction"
_SYNC = f"{_CASE} > Synchronization"
_CHIPS = f"{_CASE} > Chip examples"
_CLUSTERS = f"{_CASE} > Cluster examples"

RULES = (
    Rule(
        "REDIST-001",
        "A plan runs at its end",
        "A redistribution starts from a DM tensor or view, collects stages and runs as one DMA at to_dm or to_dm_view.",
        "a chip shuffle without to_dm does nothing",
        "end the plan with to_dm or to_dm_view",
        _OPERATIONS,
    ),
    Rule(
        "REDIST-002",
        "The seven operations",
        "chip_shuffle and cluster_swap choose the source place, chip_slice and cluster_slice one coordinate per target; the "
        "asymmetric slices run at once on the sub context, hbm_chip_shuffle at once as an HBM DMA.",
        "chip_slice on an HBM tensor",
        "shuffle chips in HBM, slice in DM",
        _SUMMARY,
    ),
    Rule(
        "REDIST-003",
        "What may be redistributed",
        "A tensor, or a DM view that tiles Element. Tiles of Chip or Cluster are not taken.",
        "a plan on a chip tile",
        "redistribute the whole tensor, then tile",
        _SUMMARY,
    ),
    Rule(
        "REDIST-004",
        "Chip shuffle",
        "Target chip t reads chip sources[t], every cluster and element its own. The shape stays; a ChipSync is inserted if any chip "
        "reads another.",
        "sources [1, 2, 3] for four chips",
        "give one source for every chip position",
        f"{_SEMANTICS} > Chip shuffle",
    ),
    Rule(
        "REDIST-005",
        "HBM chip shuffle",
        "Returns a new HBM tensor whose chip t holds what chip sources[t] held; sources is a permutation, tdma and pdma both do it, "
        "at once.",
        "sources [0, 0, 2, 3]",
        "use every chip once",
        f"{_SEMANTICS} > HBM chip shuffle",
    ),
    Rule(
        "REDIST-006",
        "Cluster swap",
        "Cluster k of every chip reads cluster 1 - k of the same chip; one ClusterSync.",
        "a swap where one cluster is padding",
        "fill both clusters first",
        f"{_SEMANTICS} > Cluster swap",
    ),
    Rule(
        "REDIST-007",
        "Chip slice",
        "Target chip t keeps coordinate indices[t] of Axis; Output is Element without Axis, the rest in order.",
        "Output `B, C` for Axis B of `B, C, D`",
        "leave exactly the axis out",
        f"{_SEMANTICS} > Chip slice",
    ),
    Rule(
        "REDIST-008",
        "Cluster slice",
        "Target cluster k keeps coordinate indices[k] of Axis; otherwise as the chip slice.",
        "three indices for two clusters",
        "give one index per cluster",
        f"{_SEMANTICS} > Cluster slice",
    ),
    Rule(
        "REDIST-009",
        "Order of stages",
        "At most one chip shuffle, then at most one cluster swap, then chip slices, then cluster slices.",
        "cluster_swap before chip_shuffle",
        "reorder the stages; the meaning of slices is by target, so it does not change",
        _COMBINING,
    ),
    Rule(
        "REDIST-010",
        "Meaning of a full plan",
        "out[t, k, rest] = in[sources[t], swap ? 1 - k : k, a = u[t], b = v[k], rest]. Slice indices are looked up by the target, "
        "also behind a shuffle or swap.",
        "a local slice [1, 0] followed by a swap equals swap with slice [0, 1]",
        "think of indices as belonging to the target",
        _COMBINING,
    ),
    Rule(
        "REDIST-011",
        "Terminals",
        "to_dm makes a new tensor, to_dm_view writes into a view and leaves cells outside it alone. The destination Element may "
        "permute axes.",
        "a destination that lacks an axis of the plan's result",
        "lay out exactly the plan's result",
        _COMBINING,
    ),
    Rule(
        "REDIST-012",
        "The type does not say where values came from",
        "The result's mapping describes its layout only: a Chip axis at position t may hold data of another chip.",
        "reading chip axis position 0 as data of chip 0 after a shuffle",
        "follow the plan, not the axis name",
        _SUMMARY,
    ),
    Rule(
        "REDIST-013",
        "Slices on the sub context",
        "asymmetric_chip_slice and asymmetric_cluster_slice keep a coordinate of one local axis per chip or cluster, at once, by a "
        "local copy. No data crosses, nothing synchronises.",
        "an index outside the axis",
        "use it for a single local axis; chain deferred slices for more",
        f"{_OPERATIONS} > Sub-context chip and cluster slice",
    ),
    Rule(
        "REDIST-014",
        "A swap needs two clusters",
        "Cluster must have exactly two positions, both live.",
        "Cluster `1 # 2`: the live target would read padding",
        "use `2` or an axis of size 2",
        _LIMITS,
    ),
    Rule(
        "REDIST-015",
        "Sources are a permutation of live places",
        "One source per position, each position once, and a live target reads a live source.",
        "sources [0, 0, 1, 2]",
        "use every position once",
        _LIMITS,
    ),
    Rule(
        "REDIST-016",
        "Slice indices",
        "One index per target chip or cluster, each a live position of Axis.",
        "index 4 into an axis of 4; an index into padding",
        "index live positions only",
        _LIMITS,
    ),
    Rule(
        "REDIST-017",
        "Uniform routing",
        "Both clusters of a target chip read the same source chip, and a target cluster reads the same source cluster in every chip: "
        "only such routings have a protocol.",
        "cluster 0 of chip 0 reads chip 0, cluster 1 of it chip 1",
        "split the routing into two plans",
        _LIMITS,
    ),
    Rule(
        "REDIST-018",
        "Joined axes",
        "Slicing by `B, C` takes them as one axis with index b x |C| + c; they must be neighbours in Element.",
        "slicing `B, D` out of `B, C, D`",
        "chain one slice per axis",
        _LIMITS,
    ),
    Rule(
        "REDIST-019",
        "Synchronisation",
        "A changed source chip inserts a ChipSync, a changed source cluster a ClusterSync, both both; local slices none. It counts "
        "per plan.",
        "an identity shuffle inserts nothing",
        "fuse stages into one plan to synchronise once",
        _SUMMARY,
    ),
    Rule(
        "REDIST-020",
        "Alignment of redistribution",
        "The DMA's rules on runs, strides and packets hold.",
        "slicing away the innermost i32 axis leaves runs of 4 bytes",
        "slice an outer axis, or move longer elements",
        f"{_OPERATIONS} > Performance",
    ),
    Rule(
        "REDIST-021",
        "Which slice to use",
        "One local axis: a slice on the sub context. Fused with a shuffle, or several axes: the deferred chain.",
        "a DMA for a slice that stays on its chip",
        "use the asymmetric slice",
        f"{_OPERATIONS} > Performance",
    ),
    Rule(
        "GATHER-001",
        "Indirect transfers",
        "An i32 index tensor gives the addresses. dma_scatter and dma_gather_scaled take it in HBM as byte offsets, "
        "dma_gather_unscaled in DM as row positions.",
        "a scaled gather with an index in DM",
        "keep the index where the call wants it",
        _INDIRECT,
    ),
    Rule(
        "GATHER-002",
        "Scaled index",
        "Row = index / row bytes, with row bytes = elements of a row times element bytes. out[g] = table[index[g] / row bytes]. The "
        "gather axis is the one the result lacks.",
        "row numbers passed as they are: only row 0 is met below one row's bytes",
        "multiply row numbers by the row bytes",
        _INDIRECT,
    ),
    Rule(
        "GATHER-003",
        "Unscaled index",
        "out[g] = table[index[g]] with the index in DM, meant for indices computed on the chip. The list takes 4 KiB at most.",
        "an index in HBM; a list of 2,048 entries",
        "load the index with to_dm, 512 entries at a time",
        _INDIRECT,
    ),
    Rule(
        "GATHER-004",
        "Scatter",
        "output[index[k] / row bytes] = data[k], in place; rows that no index names keep their values. Key is an axis of the DM "
        "source in Slice and Element.",
        "a Key that the source lacks",
        "name the scattered axis of the source",
        _INDIRECT,
    ),
    Rule(
        "GATHER-005",
        "Placing the gather axis",
        "It is split over Slice and Element with the payload in Element; the slices number 64, 128 or 256. "
        "A gather writes one copy of a row: where the destination is a broadcast, the other copies would hold garbage.",
        "612 rows over 306 slices",
        "pad the rows so that 64, 128 or 256 slices share them",
        _INDIRECT,
    ),
    Rule(
        "GATHER-006",
        "Repeated indices",
        "A gather may repeat rows. Repeated targets of a scatter are not specified.",
        "two data rows scattered to one output row",
        "make scatter targets unique",
        _INDIRECT,
    ),
    Rule(
        "GATHER-007",
        "No unscaled scatter",
        "A scatter by row positions is not implemented.",
        "dma_scatter_unscaled",
        "scale the index and use dma_scatter",
        "Moving tensors > Engine boundaries",
    ),
    Rule(
        "COLL-001",
        "Shapes of collectives",
        "ReduceScatter [R], [P, S, Q] to [S], [P, Q]; AllGather [S], [P, Q] to [Broadcast(N)], [P, S, Q]; AllReduce [R], [P] to "
        "[Broadcast(N)], [P]. Chips and clusters alike.",
        "an AllGather that leaves the shard on Chip",
        "give Chip the broadcast and Element the shards",
        f"{_CASE} > Shape transformations",
    ),
    Rule(
        "COLL-002",
        "Shards equal places",
        "ReduceScatter and AllGather need as many shards as places.",
        "4 chips and an axis of 8",
        "split the axis into 4 and 2 and shard the outer part",
        f"{_CASE} > Shape transformations",
    ),
    Rule(
        "COLL-003",
        "Broadcast means the same logical value",
        "Broadcast(N) promises that all places hold the same value, not that floating-point copies agree in every bit.",
        "comparing replicas of a float AllReduce bit by bit",
        "compare with a tolerance, or gather a ReduceScatter",
        f"{_CASE} > Shape transformations",
    ),
    Rule(
        "COLL-004",
        "Order of floating-point sums",
        "The cyclic AllReduce adds in rotated orders, so replicas may differ. ReduceScatter with AllGather computes each shard once; "
        "a butterfly evaluates one tree. Integers do not care.",
        "1e8 + 1 - 1e8 + 1: replicas 1, 0, 1, 0",
        "use ReduceScatter then AllGather where replicas must agree",
        f"{_CASE} > Floating-point reduction order",
    ),
    Rule(
        "COLL-005",
        "Synchronisation counts",
        "Over N chips: cyclic ReduceScatter and AllReduce N - 1, AllGather 1, butterfly log2 N. Clusters: 1 each. HBM transfers and "
        "local work add none.",
        "4 chips: ReduceScatter then AllGather synchronises 4 times",
        "prefer the butterfly for AllReduce",
        _SYNC,
    ),
    Rule(
        "COLL-006",
        "Protocol",
        "A sync before a remote DMA says that the destination is ready, one after it that the data came. A place that reads itself "
        "takes no part; a plan that changes both levels gets both protocols.",
        "round 0 of a ReduceScatter reads itself: no sync",
        "order rounds so that the local one is free",
        _SYNC,
    ),
    Rule(
        "COLL-007",
        "Local addition",
        "The examples add two tensors with the Vector Engine: interleaved fetch over an axis of 2, unzip into two groups, zip with an "
        "addition, commit.",
        "8 steps of one packet for a payload of 8 x 8 i32",
        "see the vector engine's pair mode",
        _CHIPS,
    ),
    Rule(
        "COLL-008",
        "Chip ReduceScatter",
        "Round r: sources (t + r) mod N, chip slice by the own index; N - 1 additions. Chip s ends with the sum of shard s.",
        "3 ChipSync for 4 chips",
        "keep the payload of a shard at 256 bytes or more",
        f"{_CHIPS} > ReduceScatter",
    ),
    Rule(
        "COLL-009",
        "Chip AllGather",
        "One to_dm from Chip `A` to Chip `4`, Element `A, C, D`: every chip holds all shards.",
        "1 ChipSync",
        "gather once, after all local work",
        f"{_CHIPS} > AllGather",
    ),
    Rule(
        "COLL-010",
        "AllGather after ReduceScatter",
        "The result on Chip `A` is relabelled to Chip `B` by a reshape, for chip b owns coordinate b, and gathered.",
        "4 ChipSync for 4 chips",
        "an AllReduce whose replicas agree",
        f"{_CHIPS} > AllGather after ReduceScatter",
    ),
    Rule(
        "COLL-011",
        "Cyclic AllReduce",
        "N - 1 shuffles by rotation, each followed by an addition; every chip holds the sum.",
        "3 ChipSync for 4 chips",
        "the butterfly needs 2",
        f"{_CHIPS} > AllReduce",
    ),
    Rule(
        "COLL-012",
        "Butterfly AllReduce",
        "Round r exchanges with chip t xor 2^r and adds (received, own). N must be a power of two.",
        "a butterfly over 6 chips",
        "use the cyclic form for other counts",
        f"{_CHIPS} > Butterfly AllReduce",
    ),
    Rule(
        "COLL-013",
        "Cluster ReduceScatter",
        "Each cluster keeps its own shard by a local slice and sends the other one across by slice [1, 0] and a swap; one addition.",
        "1 ClusterSync",
        "slice before the swap: half the data crosses",
        f"{_CLUSTERS} > ReduceScatter",
    ),
    Rule(
        "COLL-014",
        "Cluster AllGather",
        "One to_dm moves Cluster to Element: both clusters hold both shards.",
        "1 ClusterSync",
        "one DMA for all shards",
        f"{_CLUSTERS} > AllGather",
    ),
    Rule(
        "COLL-015",
        "Cluster AllGather after ReduceScatter",
        "As for chips, with Cluster relabelled.",
        "2 ClusterSync",
        "an AllReduce by one swap synchronises once",
        f"{_CLUSTERS} > AllGather after ReduceScatter",
    ),
    Rule(
        "COLL-016",
        "Cluster AllReduce",
        "One swap exchanges the partial sums, one addition leaves the whole sum in both clusters.",
        "1 ClusterSync",
        "the cheapest way to sum over clusters",
        f"{_CLUSTERS} > AllReduce",
    ),
    Rule(
        "COLL-017",
        "Layout of the payload",
        "The examples move [C, D] of 8 x 8 i32: 256 consecutive bytes, one full request.",
        "shorter runs take as many requests for less data",
        "keep payload runs at multiples of 256 bytes",
        f"{_CASE} > DMA layout requirements",
    ),
)

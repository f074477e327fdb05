"""Rules of the intra-slice reduction and of the Inter-Slice Reducer (ISR, XSR)."""

from tcptune.model.hardware import RNGD
from tcptune.model.rules.rule import Rule

INTRA_RULES = (
    Rule(
        "ISR-001",
        "What it does",
        "vector_intra_slice_reduce folds one axis over the Time and Packet of every slice, 4-way. Chip, Cluster and Slice pass unchanged.",
        "reducing an axis that lies in Slice only",
        "vector_inter_slice_reduce for the Slice part",
        "Intra-Slice Reduce",
    ),
    Rule(
        "ISR-002",
        "Label and output shape",
        "Every factor of Time and Packet that carries the named axis disappears; everything else stays, in order. No other axis may go "
        "and the label may "
        "not survive.",
        "time R reduced to R / 4; [R, S, U] to [U, S]",
        "name exactly Time and Packet without the axis",
        "Intra-Slice Reduce / Examples",
    ),
    Rule(
        "ISR-003",
        "Functions and identities",
        "i32: AddSat (0), Max (i32::MIN), Min (i32::MAX). f32: Add (0.0), Max (-inf), Min (+inf).",
        "Add on i32; Mul on f32",
        "AddSat on i32",
        "Intra-Slice Reduce",
    ),
    Rule(
        "ISR-004",
        "Accumulator slots",
        f"The temporal accumulator has {RNGD.reduce_slots} slots: the surviving Time factors inside the outermost reduced one have at "
        "most that many steps. "
        "Factors outside it need no slot.",
        "Time [R, A % 3, B % 4]: 12 slots",
        "move an axis outside R, or into Packet",
        "Intra-Slice Reduce / Architecture / Reduction in Time",
    ),
    Rule(
        "ISR-005",
        "Packet paths",
        "Either the packet passes (four lanes, each accumulated on its own) or all lanes collapse to 1 # 4. Nothing in between.",
        "packet R % 4 reduced to 1 # 2; packet [R % 2, A]",
        "put R alone into the packet, or not at all",
        "Intra-Slice Reduce / Architecture / Reduction in Packet",
    ),
    Rule(
        "ISR-006",
        "Tree",
        "Four lanes collapse as op(op(a, b), op(c, d)), fully pipelined.",
        "expecting ((a + b) + c) + d from saturating adds",
        "the tree's order is visible where the function is not associative",
        "Intra-Slice Reduce / Architecture / Reduction in Packet",
    ),
    Rule(
        "ISR-007",
        "Axis partly in Slice",
        "The Slice part of the axis stays in the output; every slice folds its own real elements.",
        "expecting a global sum",
        "vector_inter_slice_reduce after the widen",
        "Intra-Slice Reduce / Examples / Per-Slice Reduction",
    ),
    Rule(
        "ISR-008",
        "Padded reduce axis",
        "Padding holds arbitrary data. The Valid Count Generator leaves it out where it can express the placement; otherwise padding "
        "must hold the "
        "identity before the chain, which no function behind a transform like exp can repair.",
        "sum of exp(x) over zero-padded x",
        "a placement that the generator can express",
        "Intra-Slice Reduce / Architecture",
    ),
    Rule(
        "ISR-009",
        "Performance",
        "One flit a cycle. The first result comes after as many flits as the reduced axis has time steps, times the accumulator slots "
        "in use.",
        "R = 16 in Time: the consumer waits 16 flits",
        "put part of R into Packet or Slice",
        "Intra-Slice Reduce / Performance",
    ),
    Rule(
        "ISR-010",
        "Not in pair mode",
        "See PAIR-012.",
        "vector_intra_slice_reduce after unzip",
        "reduce in another call",
        "Intra-Slice Reduce / Examples",
    ),
    Rule(
        "ISR-011",
        "Order of evaluation",
        "A tree per flit, then the flits in time order, saturating at every node. f32 sums are compared with a tolerance.",
        "bit-equal f32 sums against numpy",
        "compare with a tolerance, or use i32",
        "Intra-Slice Reduce / Architecture",
    ),
)

INTER_RULES = (
    Rule(
        "XSR-001",
        "Reduced from the innermost factors",
        "The reduced part of Slice is its innermost factors, contiguous; r, the slices of a group, is at least 2. Kept factors stay "
        "outermost and in place.",
        "Slice [R, W] to [1 # 4, W]",
        "place the axis to reduce innermost in Slice",
        "Inter-Slice Reducer / Constraints (rule 1)",
    ),
    Rule(
        "XSR-002",
        "What fills the freed places",
        "A dummy 1 # n (position 0 holds the value), a broadcast over a fresh axis, or a factor promoted from Time.",
        "filling with an axis of Packet",
        "1 # r, or a factor of Time",
        "Inter-Slice Reducer / Constraints (rule 2), Examples",
    ),
    Rule(
        "XSR-003",
        "Kinds mix",
        "Dummy, broadcast and promotion may stand together in the output Slice, in any order.",
        "one call a kind",
        "[W, X, V, 1 # 4] is legal",
        "Inter-Slice Reducer / Constraints (rule 3)",
    ),
    Rule(
        "XSR-004",
        "Order",
        "Factors that stay in Time keep their order. Where a promoted factor lands in Slice is free.",
        "Time [S, V] to [V, S]",
        "keep the order, reorder with the Transpose Engine or at commit",
        "Inter-Slice Reducer / Constraints (rule 4)",
    ),
    Rule(
        "XSR-005",
        "What is preserved",
        "Chip, Cluster and Packet stay, Slice and Time become what the call names; the output is always 8-way.",
        "reducing over Cluster",
        "Inter-cluster sums go through DMA",
        "Inter-Slice Reducer",
    ),
    Rule(
        "XSR-006",
        "Functions",
        "i32: Add (wrapping), AddSat, Max, Min. f32: Add, Max, Min, Mul.",
        "Mul on i32; AddSat on f32",
        "one of the functions of the type",
        "Inter-Slice Reducer / Interface",
    ),
    Rule(
        "XSR-007",
        "Performance",
        "The latency is about r cycles, one traversal of the group's ring: total = streaming time + r. It shows for large groups and "
        "small tensors.",
        "reducing 256 slices of one flit each",
        "gather over a ring of 16 and sum locally",
        "Inter-Slice Reducer / Performance",
    ),
    Rule(
        "XSR-008",
        "Size of the output Slice",
        "Kept size times fill size is the input's Slice size, so the fill has r positions.",
        "Slice [W, R] to W",
        "[W, 1 # r]",
        "Inter-Slice Reducer / Constraints",
    ),
    Rule(
        "XSR-009",
        "Where it can start",
        "Right after vector_init, or from the chain stages of VE-013, in the same call.",
        "after vector_fp_div without a widen",
        "widen first",
        "Inter-Slice Reducer / Interface",
    ),
    Rule(
        "XSR-010",
        "Time is kept or promoted",
        "The output Time is Time without the promoted factors. Time is never reduced here, and a promoted factor does not stay.",
        "Time [S, V] to S without promoting V",
        "vector_intra_slice_reduce for Time",
        "Inter-Slice Reducer / Constraints (rules 2, 4)",
    ),
    Rule(
        "XSR-011",
        "Reading a call as einsum",
        "An axis on the input side only is reduced, one on the output side only is broadcast: AR -> A (dummy), PRW -> PWX, PRSUVW -> "
        "PSUVW.",
        "reading 1 # 4 as four copies",
        "name a fresh axis for copies",
        "Inter-Slice Reducer / Examples",
    ),
)

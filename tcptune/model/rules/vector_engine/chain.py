"""Rules of the Vector Engine's entry, stages, way changes, conversions and chain costs (VE-001 to VE-024, VE-040 to VE-043)."""

from tcptune.model.hardware import RNGD
from tcptune.model.rules.rule import Rule

_WIDE, _NARROW = RNGD.vector_ways

RULES = (
    Rule(
        "VE-001",
        "Element types",
        "The engine computes on i32 and f32 only. A contraction delivers one of them already (bf16 products add up in f32, i8 products "
        "in i32); "
        "a stream that skips the contraction is widened by fetch_cast.",
        "vector_init on a bf16 stream",
        "fetch_cast to f32 or i32 before collect",
        "Vector Engine",
    ),
    Rule(
        "VE-002",
        "Where the engine is entered",
        "vector_init takes a collected stream or the result of a contraction. What it returns has no stage: the next call chooses the "
        "first block.",
        "vector_init on a fetched stream, or after cast",
        "call it after collect or after contract_lane, before cast",
        "Vector Engine / Interface",
    ),
    Rule(
        "VE-003",
        "One flit a step",
        f"In the 8-way part a packet is one flit: {_WIDE} elements of {RNGD.vector_element_bytes} bytes. In the 4-way part it has "
        f"{_NARROW} elements.",
        "vector_init on packet A % 2 # 16",
        "collect to one flit (# 8)",
        "Intra-Slice Chain / Stages, Narrow and Widen",
    ),
    Rule(
        "VE-004",
        "Two blocks, each once",
        "Between init and final run the Intra-Slice Chain, the Inter-Slice Reducer, or both, each at most once. The block entered "
        "first fixes the "
        "order for the call: IntraFirst (chain, then reducer) or InterFirst.",
        "two vector_inter_slice_reduce in one call; a second tag after an IntraFirst reduction",
        "put the second reduction into another Tensor Unit call",
        "Vector Engine / Interface",
    ),
    Rule(
        "VE-005",
        "Entry methods",
        "After vector_init comes vector_intra_slice_tag, vector_intra_slice_unzip or vector_inter_slice_reduce; after an InterFirst "
        "reduction "
        "vector_intra_slice_tag. Every chain method needs one of the two chain entries before it, and the chain is entered once.",
        "vector_clip directly after vector_init; vector_final directly after vector_init",
        "insert vector_intra_slice_tag(TagMode::Zero)",
        "Vector Engine / Interface; Intra-Slice Chain / Pipeline",
    ),
    Rule(
        "VE-006",
        "What a method may change",
        "Chip and Cluster always stay. Slice changes in the Inter-Slice Reducer only; Time in unzip, split, concat and both reducers; "
        "Packet in the "
        "four narrow and widen methods and in the intra-slice reduction; the element type in the conversions and in reinterpret.",
        "expecting vector_clip to transpose Time",
        "move data with the Switch, the Transpose Engine or a DMA",
        "Vector Engine / Interface",
    ),
    Rule(
        "VE-010",
        "The twelve stages",
        "Entry, Logic, Fxp, FxpToFp, Narrow, Float, IntraSliceReduce, FpDiv, Widen, FpToFxp, Clip, Filter stand in this order. A call "
        "uses the ones "
        "it needs and skips the rest; vector_reinterpret is no stage.",
        "looking for a second Float stage after FpDiv",
        "plan one pass through the stages, or use a second call",
        "Intra-Slice Chain / Pipeline",
    ),
    Rule(
        "VE-011",
        "Stage order",
        "A method is callable while the current stage is earlier than its own. Only Logic, Fxp, Float and Clip may repeat, each "
        "operation on its own "
        "ALU. So a call narrows once, widens once, converts once in each direction, reduces once and divides once.",
        "vector_fxp followed by vector_logic; narrow, widen, narrow",
        "reorder the operations, or split them over two calls",
        "Intra-Slice Chain / Pipeline, Stages",
    ),
    Rule(
        "VE-012",
        "Way of each stage",
        "Float, IntraSliceReduce and FpDiv work 4-way, everything else and both exits 8-way. A chain enters 8-way; Narrow switches to "
        "4-way, Widen back.",
        "vector_fp_unary(Exp) right after the tag",
        "vector_narrow_split or _trim before a Float operation, vector_widen_concat or _pad after it",
        "Intra-Slice Chain / Pipeline",
    ),
    Rule(
        "VE-013",
        "Exits",
        "vector_final leaves from any 8-way stage. vector_inter_slice_reduce follows Logic, Fxp, FxpToFp, Widen, FpToFxp and Clip; not "
        "Entry (reduce on "
        "vector_init instead), not Filter, and no 4-way stage.",
        "vector_final after vector_fp_unary without a widen; tag directly followed by vector_inter_slice_reduce",
        "widen first; or call the reducer right after vector_init",
        "Intra-Slice Chain / Pipeline",
    ),
    Rule(
        "VE-014",
        "Filter",
        "vector_filter masks outgoing flits by a tag guard. It is 8-way, for single streams only, the last stage of the chain, and "
        "also offered on the "
        "output of the reducer. How a filtered stream maps to a shorter Time is not stated; this model leaves masked elements undefined.",
        "vector_filter in the 4-way part, or followed by vector_clip",
        "widen first, and put the filter last",
        "Intra-Slice Chain / Stages / Filter",
    ),
    Rule(
        "VE-015",
        "Element type of each stage",
        "Fxp and FxpToFp take i32; Float, FpDiv and FpToFxp take f32; all other stages take both. The conversions change the type, "
        "reinterpret rereads it.",
        "vector_fxp on an f32 stream",
        "vector_reinterpret or a conversion before it",
        "Intra-Slice Chain / Stages",
    ),
    Rule(
        "VE-016",
        "vector_narrow_split",
        "8-way to 4-way, keeping all data: the half index becomes the innermost factor of Time (front half first), the packet its "
        "inner four elements. "
        "Time doubles.",
        "time [A / 4 % 2, S] for a split of A % 8 with Time S",
        "time [S, A / 4 % 2], packet A % 4",
        "Intra-Slice Chain / Stages / Narrow",
    ),
    Rule(
        "VE-017",
        "vector_narrow_trim",
        "8-way to 4-way without moving data: the front four lanes stay, Time stays. Legal only where the back four lanes are padding.",
        "trim of packet A % 8",
        "vector_narrow_split where both halves hold data",
        "Intra-Slice Chain / Stages / Narrow",
    ),
    Rule(
        "VE-018",
        "vector_widen_concat",
        "4-way to 8-way, undoing a split: the innermost two steps of Time become the outer half of the packet. Time halves.",
        "concat after a trim, with one time step",
        "vector_widen_pad after a trim",
        "Intra-Slice Chain / Stages / Widen",
    ),
    Rule(
        "VE-019",
        "vector_widen_pad",
        "4-way to 8-way, undoing a trim: four lanes of padding are appended, Time stays. The added lanes hold nothing known.",
        "packet A % 8 after a pad of A % 4",
        "packet A % 4 # 8",
        "Intra-Slice Chain / Stages / Widen",
    ),
    Rule(
        "VE-020",
        "vector_fxp_to_fp",
        "i32 to f32: x * 2^(int_width - 31), rounded to nearest even. int_width, the number of integer bits, lies in 0 to 31; 31 is "
        "the plain conversion.",
        "int_width = 32",
        "int_width between 0 and 31",
        "Intra-Slice Chain / Stages / FxpToFp Conversion",
    ),
    Rule(
        "VE-021",
        "vector_fp_to_fxp",
        "f32 to i32: x * 2^(31 - int_width), ties away from zero, clamped to the i32 range; NaN gives the extreme of its sign. "
        "int_width lies in 0 to 31.",
        "int_width = 32",
        "int_width between 0 and 31",
        "Intra-Slice Chain / Stages / FpToFxp Conversion",
    ),
    Rule(
        "VE-022",
        "vector_reinterpret",
        "Rereads the 32 bits as i32 or f32 without changing them: 1.0 becomes 0x3f800000. It keeps stage, way and mapping, may stand "
        "anywhere in the "
        "chain any number of times, costs nothing, and decides what a following stash holds.",
        "vector_reinterpret to bf16",
        "i32 or f32; use the Cast Engine for other types",
        "Intra-Slice Chain / Reinterpret",
    ),
    Rule(
        "VE-023",
        "Divider",
        "vector_fp_div divides f32 on a unit of its own, once a call, 4-way, with the argument modes of a binary operation. DivF in "
        "the Float stage runs "
        "on FpFpu; both fit in one call.",
        "two vector_fp_div",
        "DivF in the Float stage for the second division",
        "Intra-Slice Chain / Stages / FpDiv",
    ),
    Rule(
        "VE-024",
        "Output",
        "vector_final hands the stream to the Cast Engine, the Transpose Engine, the Commit Adapter, or to_vrf.",
        "contract_outer after vector_final",
        "commit the result and start another pass",
        "Intra-Slice Chain / Stages / Output",
    ),
)

COST_RULES = (
    Rule(
        "VE-040",
        "Throughput",
        f"Logic, Fxp and Clip process {_WIDE} elements a cycle and slice. The 4-way part processes {_NARROW}, so one Float operation "
        "halves a chain.",
        "expecting Exp to run at 8 elements a cycle",
        "keep to 8-way stages where they suffice (Clip for max, min and add)",
        "Intra-Slice Chain / Performance",
    ),
    Rule(
        "VE-041",
        "Latency",
        "Every ALU in use adds one cycle of latency, the reduce tree and the divider one each. Conversions, Narrow, Widen and "
        "reinterpret add none.",
        "counting the two reinterprets of a bitwise abs: it costs one cycle",
        "count the ALUs",
        "Intra-Slice Chain / Performance",
    ),
    Rule(
        "VE-042",
        "Cost of narrowing",
        "A 4-way packet carries four elements instead of eight, so a split stream has twice as many packets.",
        "1,024 flits split into 1,024 packets",
        "expect 2,048 steps; trim where the back half is padding anyway",
        "Intra-Slice Chain / Stages / Narrow",
    ),
    Rule(
        "VE-043",
        "Worked examples",
        "ReLU, ReLU then reduce, reduce then bias, full sum, pair add, sigmoid, 7 - x, bitwise abs and the stash examples are complete "
        "chains; the "
        "corpus holds each with its formula.",
        "a ReLU written as vector_fp_unary",
        "vector_clip(Max, 0)",
        "Vector Engine / Examples; Intra-Slice Chain / Examples",
    ),
)

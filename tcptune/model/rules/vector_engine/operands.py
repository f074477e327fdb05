"""Rules of the Vector Engine's operands and of its stash (VE-030 to VE-037, STASH)."""

from tcptune.model.hardware import RNGD
from tcptune.model.rules.rule import Rule

_FILE = f"{RNGD.vrf_bytes_per_slice:,}"
_STASH = f"{RNGD.vrf_stash_bytes_per_slice:,}"
_ROOM = f"{RNGD.vrf_bytes_per_slice - RNGD.vrf_stash_bytes_per_slice:,}"

OPERAND_RULES = (
    Rule(
        "VE-030",
        "Operand sources",
        "A binary operation has the stream and one operand: a constant of the stream's type, a tensor in the VRF of the same type, or "
        "the stash. FmaF "
        "takes a pair, whose second member is an f32 constant. Only Logic, Fxp, Float (binary, ternary), FpDiv and Clip take operands.",
        "AddFxp with 1.5; an f32 register tensor on an i32 stream",
        "give the operand the element type of the stream",
        "Intra-Slice Chain / Operands",
    ),
    Rule(
        "VE-031",
        "Register operand: same partition",
        "Slice s reads what slice s holds, so Chip, Cluster and Slice of the operand equal those of the stream. A partition that means "
        "the same slices "
        "under other names is re-described with reshape.",
        "operand spread over cluster 1 # 2, stream over B",
        "VrfTensor::reshape to the stream's partition, or load it that way",
        "Intra-Slice Chain / Operands (first indexer rule)",
    ),
    Rule(
        "VE-032",
        "Register operand: one access",
        "One access serves one packet: either one cell for all lanes, or as many consecutive cells as the packet has. So the packet's "
        "axes are the "
        "innermost contiguous ones of the operand, or absent from it.",
        "operand [A % 8, N] under packet A % 8; operand Q under packet [P, Q]",
        "store the operand as [N, A % 8]",
        "Intra-Slice Chain / Operands (second indexer rule)",
    ),
    Rule(
        "VE-033",
        "Register operand: axes",
        "An axis of the stream that the operand lacks is a broadcast. An axis of the operand that the stream lacks is an error: its "
        "cells would never be read.",
        "operand [N, A % 8] on a stream without N",
        "take a tile of the operand, or give the stream the axis",
        "Intra-Slice Chain / Operands (third indexer rule)",
    ),
    Rule(
        "VE-034",
        "Room for register operands",
        f"All register operands of a call share the {_FILE} bytes of the register file a slice, less what the stash reserves.",
        "an operand of 4,096 elements (16,384 bytes)",
        f"at most {_FILE} bytes together",
        "Intra-Slice Chain / Operands; Register Files",
    ),
    Rule(
        "VE-035",
        "Argument modes of binary operations",
        "Mode00, Mode01 (default), Mode10 and Mode11 say what fills the two slots: 0 is the stream, 1 the operand. SubFxp with Mode10 "
        "computes operand - stream.",
        "Mode02",
        "one of the four modes",
        "Intra-Slice Chain / Operands",
    ),
    Rule(
        "VE-036",
        "Argument modes of FmaF",
        "Seven modes exist: 012 (default), 002, 102, 112, 020, 021, 120; 0 is the stream, 1 and 2 the operands. Both operands are "
        "always given.",
        "Mode210; FmaF with one operand",
        "one of the seven modes, and a pair of operands",
        "Intra-Slice Chain / Operands",
    ),
    Rule(
        "VE-037",
        "Unary operations have no mode",
        "A unary operation computes op(stream).",
        "vector_fp_unary_with_mode",
        "vector_fp_unary",
        "Intra-Slice Chain / Operands",
    ),
)

STASH_RULES = (
    Rule(
        "STASH-001",
        "What the stash is",
        "vector_stash takes a snapshot of the stream; one later binary or ternary operation reads it as operand Stash (operand0 of "
        "FmaF). It lies in the "
        "VRF and leaves stream, stage and way as they are.",
        "keeping x for max(f(x), x) in a second pass",
        "vector_stash before f, Stash as operand of the max",
        "Intra-Slice Chain / Operands",
    ),
    Rule(
        "STASH-002",
        "Where a stash can be taken",
        "At the seven stages with a register-file write port: Entry, Logic, Fxp, Narrow, Float, FpDiv, Clip.",
        "vector_stash after vector_widen_pad",
        "run a Clip operation first and stash there",
        "Intra-Slice Chain / Operands",
    ),
    Rule(
        "STASH-003",
        "Written once",
        "A call takes at most one snapshot, also after the first one has been read.",
        "two vector_stash",
        "load the second value into the VRF beforehand",
        "Intra-Slice Chain / Operands",
    ),
    Rule(
        "STASH-004",
        "Read once",
        "Exactly one later operation may read the snapshot, and it must have been taken before.",
        "Stash as operand of AddFxp and of Max",
        "a value that is needed more often belongs in the VRF",
        "Intra-Slice Chain / Operands",
    ),
    Rule(
        "STASH-005",
        "Typed",
        "The snapshot keeps the element type the stream had; only an operation of that type reads it.",
        "stash on i32, vector_fxp_to_fp, then Max with Stash",
        "convert or reinterpret back before the read",
        "Intra-Slice Chain / Operands; Reinterpret",
    ),
    Rule(
        "STASH-006",
        "Same way",
        "A snapshot taken in 8-way is read in 8-way, one taken in 4-way in 4-way.",
        "stash at the entry, read by AddF",
        "stash after Narrow, or read it in Clip",
        "Intra-Slice Chain / Operands",
    ),
    Rule(
        "STASH-007",
        "Reservation",
        f"A call with a stash reserves {_STASH} bytes of the register file a slice, whatever it holds; {_ROOM} bytes are left for "
        "operands.",
        "a stash beside an operand of 7,200 bytes",
        f"operands of at most {_ROOM} bytes",
        "Intra-Slice Chain / Operands",
    ),
    Rule(
        "STASH-008",
        "Not in pair mode",
        "Neither written nor read while two groups run, nor after they are merged.",
        "vector_stash after vector_intra_slice_unzip",
        "split the work into a pair call and a single-stream call",
        "Intra-Slice Chain / Operands, Pair Mode",
    ),
    Rule(
        "STASH-009",
        "Dropped by the reducer",
        "Going from the chain to the Inter-Slice Reducer discards the snapshot.",
        "reading Stash after vector_inter_slice_reduce",
        "read it before the reducer",
        "Intra-Slice Chain / Operands",
    ),
    Rule(
        "STASH-010",
        "Mapping follows the stream",
        "The snapshot is laid out anew for its reader, so one from before Narrow serves after Widen.",
        "assuming the reader must have the writer's Time",
        "nothing to do",
        "Intra-Slice Chain / Operands",
    ),
    Rule(
        "STASH-011",
        "Keeping a 4-way result",
        "Widen has no write port: to keep a value of the 4-way part for an 8-way reader, widen, run a Clip operation, stash, and read "
        "it in a later one.",
        "vector_stash after Exp, read by Max in Clip",
        "widen, clip, stash, clip",
        "Intra-Slice Chain / Operands",
    ),
)

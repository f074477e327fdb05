"""Rules of the Vector Engine's pair mode, tags, guards and branched operands (PAIR, TAG)."""

from tcptune.model.hardware import RNGD
from tcptune.model.rules.rule import Rule

RULES = (
    Rule(
        "PAIR-001",
        "Entry of a pair",
        "vector_intra_slice_unzip directly follows vector_init, on a stream whose Time carries a grouping axis of size 2. SplitTime is "
        "Time without that "
        "axis; group k is its position k.",
        "a grouping axis of size 4, or one that lies in Packet",
        "begin_interleaved two tensors, so that the axis is in Time",
        "Intra-Slice Chain / Pair Mode",
    ),
    Rule(
        "PAIR-002",
        "GroupId",
        "The position along the grouping axis sets the GroupId (tag bit 3); no tag mode does. The tag itself stays 0.",
        "AxisToggle to split groups",
        "vector_intra_slice_unzip",
        "Intra-Slice Chain / Pair Mode",
    ),
    Rule(
        "PAIR-003",
        "Phases",
        "Unzip, paired phase in lock step, one zip, merged phase as an ordinary stream. A pair cannot leave the engine before the zip.",
        "vector_final on a pair",
        "merge with a _zip operation first",
        "Intra-Slice Chain / Pair Mode",
    ),
    Rule(
        "PAIR-004",
        "Common methods",
        "Both conversions, split, concat and reinterpret act on both groups alike.",
        "converting one group only",
        "convert both",
        "Intra-Slice Chain / Pair Mode",
    ),
    Rule(
        "PAIR-005",
        "No trim and no pad on a pair",
        "vector_narrow_trim and vector_widen_pad are offered on single and merged streams only.",
        "vector_narrow_trim after unzip",
        "vector_narrow_split to Time [..., 1 # 2], vector_widen_concat back",
        "Intra-Slice Chain / Pair Mode",
    ),
    Rule(
        "PAIR-006",
        "Operands a group",
        "Binary and ternary operations on a pair name an operand a group: a constant or a register tensor, or nothing to skip the "
        "group. No stash, no "
        "branched layouts. On a merged stream they take one bare operand again.",
        "vector_fxp(AddFxp, 1) on a pair",
        "vector_fxp(AddFxp, 1, 1), or () for the group that stays",
        "Intra-Slice Chain / Pair Mode",
    ),
    Rule(
        "PAIR-007",
        "Flags of unary operations",
        "A unary operation on a pair says for each group whether it applies.",
        "vector_fp_unary(Exp) without flags on a pair",
        "vector_fp_unary(Exp, true, false)",
        "Intra-Slice Chain / Pair Mode",
    ),
    Rule(
        "PAIR-008",
        "Argument mode inside a group",
        "In an operation a group, slot 0 is that group's stream and slot 1 that group's operand.",
        "expecting Mode10 to swap the groups",
        "the modes of a zip do that",
        "Intra-Slice Chain / Pair Mode",
    ),
    Rule(
        "PAIR-009",
        "Argument mode of a zip",
        "The two slots of a zip are the groups: Mode01 (default) is op(group0, group1), Mode10 the other way round, Mode00 and Mode11 "
        "use one group only.",
        "Mode012 on a zip",
        "one of the four binary modes",
        "Intra-Slice Chain / Pair Mode",
    ),
    Rule(
        "PAIR-010",
        "Zip operations",
        "vector_logic_zip, vector_fxp_zip and vector_clip_zip (8-way) and vector_fp_zip (4-way), each with a mode form, take stage, "
        "way, type and ALU of "
        "their cluster. A call zips exactly once; FpDiv has no zip.",
        "a second zip; a zip on a single stream",
        "one zip, after unzip",
        "Intra-Slice Chain / Pair Mode",
    ),
    Rule(
        "PAIR-011",
        "No stash and no filter",
        "Unavailable for the whole call, also after the zip.",
        "vector_stash on the merged stream",
        "a second call",
        "Intra-Slice Chain / Pair Mode",
    ),
    Rule(
        "PAIR-012",
        "No intra-slice reduction",
        "Unavailable for the whole call: the reducer takes no group condition.",
        "vector_intra_slice_reduce on a pair",
        "reduce in another call",
        "Intra-Slice Chain / Pair Mode; Intra-Slice Reduce",
    ),
    Rule(
        "PAIR-013",
        "Inter-slice reduction after the zip",
        "The reducer is offered on the merged stream, from the stages that lead to it.",
        "vector_inter_slice_reduce on a pair",
        "zip first",
        "Intra-Slice Chain / Pair Mode",
    ),
    Rule(
        "PAIR-014",
        "Shared ALUs",
        "Both groups and the zip share one set of ALUs (ALU-060).",
        "MulInt on group 0, then a MulFxp zip",
        "a zip on another ALU",
        "Intra-Slice Chain / Pair Mode",
    ),
    Rule(
        "PAIR-015",
        "Float path of a pair",
        "With packet A % 2 # 8 the split gives Time 1 # 2 and packet A % 2 # 4: the padded back half becomes a padded time step.",
        "trimming the pair instead",
        "split and concat around the Float operations",
        "Intra-Slice Chain / Examples / Pair Float Pipeline with Zip",
    ),
    Rule(
        "TAG-001",
        "Tags",
        "The entry gives every element a 4-bit tag. Bit 3 is the GroupId, bits 0 to 2 are free flags.",
        "a guard on bit 4",
        "bits 0 to 3",
        "Intra-Slice Chain / Stages / Tag",
    ),
    Rule(
        "TAG-002",
        "Tag modes",
        "Zero and Comparison can be used. AxisToggle is declared but not lowered, ValidCount and Vrf are withheld.",
        "TagMode::Vrf",
        "TagMode::Comparison, or unzip for groups",
        "Intra-Slice Chain / Stages / Tag",
    ),
    Rule(
        "TAG-003",
        "Comparison",
        "Exactly four tests; bit i is set where test i holds. Equal, Less, Greater compare values, LessUnsigned and GreaterUnsigned "
        "raw bit patterns, all "
        "strictly; True and False take no boundary. Boundaries have the stream's type.",
        "three tests; boundary 0.0 on an i32 stream",
        "fill up with False, and write 0",
        "Intra-Slice Chain / Stages / Tag",
    ),
    Rule(
        "TAG-004",
        "Worked tag",
        "[Less(0), Equal(5), Greater(100), True] gives x = 7 the bits 0, 0, 0, 1 (least significant first): tag 8.",
        "reading the bits most significant first",
        "bit 0 is the first test",
        "Intra-Slice Chain / Stages / Tag",
    ),
    Rule(
        "TAG-005",
        "AxisToggle",
        "Would set bit 3 to the axis index modulo 2. It runs on the host only and is refused when a kernel is lowered.",
        "AxisToggle in a kernel",
        "vector_intra_slice_unzip",
        "Intra-Slice Chain / Stages / Tag",
    ),
    Rule(
        "TAG-006",
        "Guards",
        "all, group(k), matches and not_matches with four demands One, Zero or Ignore, least significant bit first. A guard looks at "
        "the bits, whatever "
        "mode filled them.",
        "a pattern of three bits",
        "four bits",
        "Intra-Slice Chain / Stages / Tag",
    ),
    Rule(
        "TAG-007",
        "Canonical guards",
        "matches of four Ignores is all; not_matches of bit 3 alone is the other group. Guards that admit the same tags are the same "
        "guard.",
        "treating matches([Ignore; 4]) as a condition",
        "it is unconditional",
        "Intra-Slice Chain / Stages / Tag",
    ),
    Rule(
        "TAG-008",
        "Operand slots",
        f"A pass has {RNGD.operand_immediates} immediates and {RNGD.operand_register_ports} register-file port (a VRF tensor or the "
        "stash). A branched operand "
        "is up to three imm, then at most one rf, which is last.",
        "four imm; imm after rf; a register tensor in an imm slot",
        "three imm, then rf",
        "Intra-Slice Chain / Stages / Tag",
    ),
    Rule(
        "TAG-009",
        "Slot priority",
        "An element takes the first slot whose guard admits its tag, in call order, and only that one. An unconditional slot is the "
        "else branch; an "
        "element that no slot admits passes unchanged.",
        "the narrower guard after the wider one: it never fires",
        "narrow guards first",
        "Intra-Slice Chain / Stages / Tag",
    ),
    Rule(
        "TAG-010",
        "Dead slots",
        "Refused: a slot guarded by not_matches of four Ignores, and any slot after an unconditional one.",
        "imm(all, 1).imm(matches([One, ...]), 2)",
        "put the unconditional slot last",
        "Intra-Slice Chain / Stages / Tag",
    ),
    Rule(
        "TAG-011",
        "The builder counts slots",
        "The number of filled slots is part of the layout's type: code may vary guard or payload, not whether a slot is filled.",
        "an if around .imm(...)",
        "fill the slot with a guard that decides",
        "Intra-Slice Chain / Stages / Tag",
    ),
    Rule(
        "TAG-012",
        "Slots of FmaF",
        "Every slot carries its own (operand0, operand1); the port carries a register or the stash, and operand1.",
        "one operand1 for all slots",
        "a pair in every slot",
        "Intra-Slice Chain / Stages / Tag",
    ),
)

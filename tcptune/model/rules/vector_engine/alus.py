"""Rules of the Vector Engine's ALUs and of their arithmetic (ALU)."""

from tcptune.model.engines.vector.alus import POOLS
from tcptune.model.rules.rule import Rule

_COUNTS = ", ".join(f"{cluster} {len(units)}" for cluster, units in POOLS.items())

RULES = (
    Rule(
        "ALU-001",
        "One use a call",
        "Every ALU runs at most once in a Tensor Unit call. Two functions of the same ALU exclude each other even if they differ, as "
        "AddFxp and SubFxp "
        "(FxpAdd) or Sqrt and Tanh (FpFpu) do.",
        "vector_fxp(AddFxp) and vector_fxp(SubFxp) in one call",
        "use another cluster (AddFxp also exists in Clip), or a second call",
        "Intra-Slice Chain / Stages; Fxp Cluster",
    ),
    Rule(
        "ALU-002",
        "ALU pools",
        f"ALUs a cluster: {_COUNTS}. That many operations a stage and call at most; the reduce tree and the divider are dedicated and "
        "not selected.",
        "six Float operations in one call",
        "at most one operation an ALU",
        "Intra-Slice Chain / Stages",
    ),
    Rule(
        "ALU-010",
        "Logic on i32",
        "BitAnd, BitOr, BitXor, LeftShift, LogicRightShift and ArithRightShift; the two right shifts share LogicRshift.",
        "vector_logic(Not)",
        "BitXor with -1",
        "Intra-Slice Chain / Stages / Logic Cluster",
    ),
    Rule(
        "ALU-011",
        "Logic on f32",
        "Only BitAnd, BitOr and BitXor, on the raw bit patterns.",
        "vector_logic(LeftShift) on f32",
        "vector_reinterpret to i32 first",
        "Intra-Slice Chain / Stages / Logic Cluster",
    ),
    Rule(
        "ALU-020",
        "Fxp functions",
        "Eleven functions on i32 over four ALUs: AddFxp, AddFxpSat, SubFxp, SubFxpSat on FxpAdd; LeftShift, LeftShiftSat on FxpLshift; "
        "MulFxp, MulInt "
        "on FxpMul; LogicRightShift, ArithRightShift, ArithRightShiftRound on FxpRshift.",
        "vector_fxp(DivInt)",
        "convert to f32 and divide there",
        "Intra-Slice Chain / Stages / Fxp Cluster",
    ),
    Rule(
        "ALU-021",
        "Add and subtract",
        "AddFxp and SubFxp wrap modulo 2^32; the Sat forms clamp to the i32 range.",
        "expecting AddFxp of MAX and 1 to stay MAX",
        "AddFxpSat",
        "Intra-Slice Chain / Stages / Fxp Cluster",
    ),
    Rule(
        "ALU-022",
        "Shifts",
        "LeftShift drops bits at the top, LeftShiftSat clamps a * 2^b, LogicRightShift fills with zeros, ArithRightShift with the sign, "
        "ArithRightShiftRound rounds (this model: ties up). Counts are defined for 0 to 31: constants outside are refused, "
        "data-dependent ones "
        "give an undefined element.",
        "a constant shift count of 32",
        "a count between 0 and 31",
        "Intra-Slice Chain / Stages / Fxp and Logic Cluster",
    ),
    Rule(
        "ALU-023",
        "Multiplications",
        "MulInt gives the low 32 bits of the product. MulFxp treats both operands as Q31: round(a * b / 2^31), ties up, and MIN * MIN "
        "gives MAX.",
        "MulFxp of 3 and 4 expected to give 12 (it gives 0)",
        "MulInt for integers",
        "Intra-Slice Chain / Stages / Fxp Cluster",
    ),
    Rule(
        "ALU-030",
        "Float unary functions",
        "Exp and NegExp = exp(-x) run on FpExp; Sqrt, Tanh, Sigmoid, Erf, Log (natural), Sin and Cos on FpFpu. So a call has at most "
        "one of each group.",
        "Sqrt and Tanh in one call",
        "Sqrt and Exp fit together; otherwise a second call",
        "Intra-Slice Chain / Stages / Float Cluster",
    ),
    Rule(
        "ALU-031",
        "Float binary functions",
        "AddF and SubF run on FpFma, DivF on FpFpu. MulF runs where the call says: Mul0, Mul1 or Fma, so three multiplications fit in "
        "one call.",
        "MulF without a multiplier; AddF after MulF on Fma",
        "name Mul0 or Mul1 for MulF",
        "Intra-Slice Chain / Stages / Float Cluster",
    ),
    Rule(
        "ALU-032",
        "Fused multiply-add",
        "FmaF computes slot0 * slot1 + slot2 with one rounding, on FpFma.",
        "FmaF and AddF in one call",
        "MulF on Mul0 and AddF on FpFma, at the price of a second rounding",
        "Intra-Slice Chain / Stages / Float Cluster",
    ),
    Rule(
        "ALU-033",
        "Planning example",
        "exp(sqrt(((x + 1) * 2) * 3)) takes AddF on FpFma, MulF on Mul0 and on Mul1, Sqrt on FpFpu and Exp on FpExp: all five Float "
        "ALUs, five cycles.",
        "the same with MulF on Fma: FpFma is taken by AddF",
        "give every multiplication its own multiplier",
        "Intra-Slice Chain / Stages / Float Cluster",
    ),
    Rule(
        "ALU-040",
        "Reduce unit",
        "The intra-slice reduction has one accumulator tree, used once a call.",
        "two vector_intra_slice_reduce",
        "reduce the second axis in another call",
        "Intra-Slice Chain / Stages / IntraSliceReduce",
    ),
    Rule(
        "ALU-041",
        "Divider",
        "FpDiv has one divider of its own, independent of FpFpu, used once a call.",
        "two vector_fp_div",
        "DivF in the Float stage",
        "Intra-Slice Chain / Stages / FpDiv",
    ),
    Rule(
        "ALU-050",
        "Clip on i32",
        "Min and AbsMin on ClipMin, Max and AbsMax on ClipMax, AddFxp (wrapping) and AddFxpSat on ClipAdd. The Abs forms return the "
        "operand of smaller "
        "or larger magnitude with its sign, the second slot on a tie.",
        "vector_clip(Add) on i32",
        "AddFxp or AddFxpSat",
        "Intra-Slice Chain / Stages / Clip Cluster",
    ),
    Rule(
        "ALU-051",
        "Clip on f32",
        "Min and AbsMin on ClipMin, Max and AbsMax on ClipMax, Add on ClipAdd. A NaN operand of Min or Max is ignored.",
        "vector_clip(AddFxp) on f32",
        "Add",
        "Intra-Slice Chain / Stages / Clip Cluster",
    ),
    Rule(
        "ALU-060",
        "Pairs share the ALUs",
        "An ALU used for one group counts as used for the other and for the zip that follows.",
        "AddFxp on group 0 and SubFxp on group 1",
        "one call with an operand for each group",
        "Intra-Slice Chain / Pair Mode",
    ),
)

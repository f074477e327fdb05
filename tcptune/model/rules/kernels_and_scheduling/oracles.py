"""Oracles: how results are verified (ORACLE)."""

from tcptune.model.rules.rule import Rule

_HOST = "Quick Start: host programs and oracles"
_CHECK = "Quick Start: kernel verification"

RULES = (
    Rule(
        "ORACLE-001",
        "Protocol",
        "Inputs are drawn in argument order from one generator with seed 42, the reference is computed on the host, every element is "
        "compared.",
        "comparing the first element only",
        "compare all live cells and name the first that differs",
        _HOST,
    ),
    Rule("ORACLE-002", "Constant addition", "Exact, wrapping in i32.", "i32 maximum + 1 is the minimum", "wrap the reference too", _HOST),
    Rule("ORACLE-003", "Elementwise product", "Exact: the low 32 bits of the product.", "65,537 * 65,537", "wrap the reference too", _HOST),
    Rule("ORACLE-004", "Dot product", "An f32 sum rounded to bf16, within max(2 %, 0.5).", "an error of 0.6 at 10", "sum in f32", _HOST),
    Rule("ORACLE-005", "GEMV", "As the dot product, a row at a time: within max(2 %, 0.5).", "an error of 3 % at 100", "sum in f32", _HOST),
    Rule("ORACLE-006", "GEMM", "As the dot product, a cell at a time: within max(5 %, 1).", "an error of 2 at 10", "sum in f32", _HOST),
    Rule(
        "ORACLE-007",
        "fetch_commit_simple",
        "Exact: sign-extended and transposed.",
        "200 stored as i8 is -56",
        "extend the sign",
        "Case study: Tensor Unit I/O",
    ),
    Rule(
        "ORACLE-008",
        "Double-buffer kernels",
        "The contraction in f32 rounded to bf16, within GEMM's tolerance; the three loop forms agree bit for bit.",
        "an unrolled form that differs in one bit",
        "look for an operation that changed order",
        "Tuning: double buffering",
    ),
    Rule(
        "ORACLE-009",
        "Two tolerance forms",
        "The quick start allows max(rel |e|, abs), the transformer abs + rel |e|.",
        "10 with rel 0.02 and abs 0.5: 0.5 against 0.7",
        "say which form a kernel uses",
        _HOST,
    ),
    Rule(
        "ORACLE-010",
        "Four kinds of evidence",
        "Compilation checks mappings and runs nothing; a CPU run compares values; an NPU run is hardware; a schedule is a static plan "
        "and no throughput.",
        "calling a makespan a throughput",
        "report each kind as what it is",
        _CHECK,
    ),
    Rule(
        "ORACLE-011",
        "Record of a comparison",
        "Source, backend, shapes, mappings, oracle result and schedule belong to it.",
        "a makespan without its mappings",
        "keep the result folder",
        _CHECK,
    ),
    Rule(
        "ORACLE-012",
        "Padding is not compared",
        "Only live cells are part of the contract.",
        "comparing the 3,712 padded logits",
        "compare the first 151,936",
        "Case study: transformer",
    ),
)

"""The transformer case study: a decoder step of Qwen3-0.6B (XFMR)."""

from tcptune.model.rules.rule import Rule

_CASE = "Case study: transformer"


def _fact(rule_id: str, title: str, text: str, shows: str, advice: str) -> Rule:
    return Rule(rule_id, title, text, shows, advice, _CASE)


RULES = (
    _fact(
        "XFMR-001",
        "Model",
        "28 layers, hidden 1,024, 16 query and 8 key/value heads of 128, intermediate 3,072, RoPE theta 1,000,000, vocabulary 151,936. "
        "One token of decode.",
        "two query heads share one key/value head",
        "take the sizes from the case",
    ),
    _fact(
        "XFMR-002",
        "Parameter counts",
        "6,291,456 attention and 9,437,184 MLP weights a layer; 596,049,920 in all.",
        "2,048 * 1,024 + 2 * 1,024 * 1,024 + 1,024 * 2,048",
        "count tied weights once",
    ),
    _fact(
        "XFMR-003",
        "Axes",
        "H 1,024, Q 2,048, P 1,024, N 8, G 2, D 128, L 3,072, T 512, W 151,936, padded to 155,648 = 19 * 8,192.",
        "3,712 padded rows",
        "pad the vocabulary to whole tiles",
    ),
    _fact(
        "XFMR-004",
        "Flow and boundaries",
        "Embedding, 28 layers of projection, attention chunks and decoder, final layer; every boundary is a typed HBM interface.",
        "a boundary kept in DM",
        "keep the boundaries when adapting the case",
    ),
    _fact(
        "XFMR-005",
        "Embedding",
        "Copies the row the host prepared from HBM to HBM; it looks nothing up.",
        "a token id as input",
        "prepare the row on the host",
    ),
    _fact(
        "XFMR-006",
        "Projection",
        "RMS norm, Q, K and V projections, norm of Q and K a head, RoPE, the rows of the caches, Q to HBM.",
        "writing K before its RoPE",
        "keep the order",
    ),
    _fact(
        "XFMR-007",
        "Attention chunks",
        "One online-softmax chunk a launch: running maximum and sum rescale the output so far; the decoder divides by the sum.",
        "dividing inside a chunk",
        "divide once at the end",
    ),
    _fact(
        "XFMR-008",
        "RoPE convention",
        "y = q cos + swap(q) sin, halves of 64 exchanged without a sign; the caller negates the first half of sin. Head h uses "
        "key/value head h / 2.",
        "negating twice",
        "negate in the sine table",
    ),
    _fact(
        "XFMR-009",
        "Rounding points",
        "f32 inside a pass, bf16 between passes; epsilon 6.25e-8; scale 1 / 11.313708.",
        "an oracle that never rounds",
        "round where the passes end",
    ),
    _fact(
        "XFMR-010",
        "Decoder",
        "Normalise, project, residual, RMS norm, SwiGLU, residual, written back in place.",
        "a second residual buffer",
        "write in place",
    ),
    _fact(
        "XFMR-011",
        "Final layer",
        "RMS norm and LM head on the padded vocabulary: 19 tiles of 8,192 rows over both clusters, 16 rows a slice.",
        "reading padded logits",
        "use the first 151,936",
    ),
    _fact(
        "XFMR-012",
        "Contractions",
        "Ten: q, k, v, qk, pv, o, up, gate, down and the LM head, all bf16 with f32 sums.",
        "the LM head has 159 million products",
        "tune each as a workload of its own",
    ),
    _fact(
        "XFMR-013",
        "Reference placement",
        "The example keeps weights in the TRF: 1,583,104 cycles of register stores a token against 34,368 of contraction.",
        "8,192 cycles of staging for 128 of contraction",
        "stream the weight and stage the activation",
    ),
    _fact(
        "XFMR-014",
        "Checks",
        "Small seeded fixtures, each boundary against host equations; with zero weights the residual comes back unchanged.",
        "testing the whole model only",
        "test each boundary",
    ),
    _fact(
        "XFMR-015",
        "Discipline",
        "Oracle first, baseline schedule, one change, the same artifact compared.",
        "tuning without an oracle",
        "write the oracle first",
    ),
    _fact(
        "XFMR-016",
        "Starting point",
        "Begin with a quick-start pattern wherever it can express the need.",
        "a decoder for one product",
        "use GEMV",
    ),
)

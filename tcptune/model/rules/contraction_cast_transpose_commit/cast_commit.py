"""Rules of the Cast Engine (CAST) and of the Commit Adapter (CADAPT)."""

from tcptune.model.rules.rule import Rule

_CAST = "Cast Engine"
_COMMIT = "Commit Adapter"

CAST_RULES = (
    Rule(
        "CAST-001",
        "Where a cast may stand",
        "cast follows Collect, the contraction or the Vector Engine, once; behind it come transpose or commit_trim.",
        "transpose(…).cast(…)",
        "cast before transposing",
        f"{_CAST} / Interface; Transpose Engine / Parameters",
    ),
    Rule(
        "CAST-002",
        "The input is one flit",
        "A packet of exactly 32 bytes, 8 elements of i32 or f32; padding counts (`A # 8`).",
        "a packet of 4 i32",
        "collect to `A # 8`",
        f"{_CAST} / Supported casts",
    ),
    Rule(
        "CAST-003",
        "Supported casts",
        "i32 to i4, i8, i16; f32 to f8e5m2, f8e4m3, bf16. Nothing else: no identity, no integer to float, no f4e2m1.",
        "i32 to bf16",
        "convert to f32 in the Vector Engine first",
        f"{_CAST} / Supported casts",
    ),
    Rule(
        "CAST-004",
        "The output is padded to a flit",
        "OutPacket is the input packet with top padding up to 32 bytes of the new type: 64 i4, 32 8-bit, 16 16-bit elements.",
        "i32 `A` to i8 `A`",
        "`A # 32`",
        f"{_CAST} / Interface",
    ),
    Rule(
        "CAST-005",
        "Everything else passes",
        "Chip, Cluster, Slice and Time are unchanged; flits are neither merged nor reordered.",
        "Time `B`, packet `A` to packet `B, A`",
        "gather in the commit instead",
        f"{_CAST} / Interface",
    ),
    Rule(
        "CAST-006",
        "Throughput",
        "One flit a cycle whatever part of it is live; the Commit Engine gathers sparse flits before they reach DM. A pass costs "
        "SIZE(Time) cycles.",
        "100 flits: 100 cycles",
        "nothing to fix",
        f"{_CAST} / Performance",
    ),
    Rule(
        "CAST-007",
        "A cast occupies the Vector Engine",
        "The Cast Engine sits on the Vector Engine, so a cast in the main context keeps the sub context from vector work.",
        "main casts f32 to bf16 while sub waits for the Vector Engine",
        "commit_cast(bf16) leaves it free (CADAPT-009)",
        f"{_COMMIT} / Type casting",
    ),
    Rule(
        "CAST-008",
        "Numerics of casts",
        "The manual says only that elements are converted. The model: f32 to bf16 nearest even, subnormal inputs to signed zero, "
        "NaN 0x7fc0; f32 to f8e4m3 nearest even, saturating at 448, NaN 0x7f; f32 to f8e5m2 halves away from zero, overflow to "
        "infinity, NaN 0x7e; i32 to i16, i8, i4 keeps the low bits.",
        "i32 128 to i8 gives -128",
        "clip in the Vector Engine before a narrowing cast",
        f"{_CAST} / Interface; Quick Start oracles",
    ),
    Rule(
        "CAST-009",
        "Inputs are i32 and f32",
        "Only the two types of the Vector Engine can be cast here.",
        "bf16 to f8e4m3",
        "widen it first with fetch_cast",
        f"{_CAST} / Interface, Supported casts",
    ),
    Rule(
        "CAST-010",
        "Worked examples of casting",
        "i32 `B` | `A` with A = 8 becomes i8 `B` | `A # 32`: 8 live bytes of 32. i32 `A # 8` with A = 4 becomes i8 `A # 32`.",
        "expecting 32 live bytes",
        "the number of live elements does not change",
        f"{_CAST} / Interface",
    ),
)

COMMIT_RULES = (
    Rule(
        "CADAPT-001",
        "Role of the Commit Adapter",
        "Element-wise steps just before a stream is written: commit_trim, then at most one of commit_cast and commit_cast_relu, "
        "then commit or commit_view.",
        "a chain that stops behind commit_cast",
        "end it with commit",
        _COMMIT,
    ),
    Rule(
        "CADAPT-002",
        "Contexts",
        "Trimming works on main and sub, casting on main only, generating constants (memset) on sub only.",
        "sub: commit_trim(…).commit_cast(bf16)",
        "cast on main, or with the Cast Engine",
        f"{_COMMIT} (table)",
    ),
    Rule(
        "CADAPT-003",
        "Trimming comes first, always",
        "commit exists only behind commit_trim, also when nothing is cut. commit_trim follows Collect, the contraction, the "
        "Vector Engine, Cast or Transpose, once.",
        "cast(…).commit(…)",
        "cast(…).commit_trim(packet).commit(…)",
        f"{_COMMIT} / Trimming",
    ),
    Rule(
        "CADAPT-004",
        "Size of a trimmed packet",
        "It has 8, 16, 24 or 32 bytes of the type at the trim: 16, 32, 48, 64 elements of 4-bit; 8, 16, 24, 32 of 8-bit; 4, 8, "
        "12, 16 of 16-bit; 2, 4, 6, 8 of 32-bit types.",
        "12 i8 elements",
        "keep padding up to 16: `X # 16`",
        f"{_COMMIT} / Trimming",
    ),
    Rule(
        "CADAPT-005",
        "A trim keeps a prefix",
        "The declared packet is the first cells of the stream's packet in their order; it may keep part of the padding.",
        "packet `X` to `X / 2`",
        "`X = 4` or `X % 4`",
        f"{_COMMIT} / Trimming",
    ),
    Rule(
        "CADAPT-006",
        "A trim takes no time",
        "Its latency is nearly zero and the model charges nothing.",
        "any trim: 0 cycles",
        "nothing to fix",
        f"{_COMMIT} / Trimming",
    ),
    Rule(
        "CADAPT-007",
        "A full flit is trimmed too",
        "At 32 bytes nothing is cut, but commit_trim has to be written.",
        "commit straight after a cast to a full flit",
        "commit_trim with the packet unchanged",
        f"{_COMMIT} / Trimming",
    ),
    Rule(
        "CADAPT-008",
        "i5 and i9 cannot be committed",
        "They exist only between zero-point subtraction and contraction.",
        "fetch_zero_point_sub(i9, 3).collect(…).commit_trim(…)",
        "contract the stream",
        f"{_COMMIT} / Trimming; Fetch Adapter / Contraction-only staging",
    ),
    Rule(
        "CADAPT-009",
        "The commit cast is f32 to bf16",
        "No other pair of types.",
        "commit_cast(i8) of an i32 stream",
        "use the Cast Engine",
        f"{_COMMIT} / Type casting",
    ),
    Rule(
        "CADAPT-010",
        "ReLU is fused into the cast",
        "commit_cast_relu converts f32 to bf16 and sets negatives to zero; there is no ReLU by itself.",
        "commit_cast(bf16).commit_cast_relu(bf16)",
        "commit_cast_relu(bf16) alone",
        f"{_COMMIT} / Type casting",
    ),
    Rule(
        "CADAPT-011",
        "Order of the steps",
        "Trim, then one cast, then commit. No cast before the trim, no second cast, no trim or Cast Engine after it.",
        "contract_lane(…).commit_cast(bf16)",
        "insert commit_trim before the cast",
        f"{_COMMIT} (pipelines), Trimming",
    ),
    Rule(
        "CADAPT-012",
        "Shape of the cast",
        "Time and Packet stay, the bytes halve: 8 f32 (32 bytes) become 8 bf16 (16 bytes). Unlike the Cast Engine nothing is padded.",
        "expecting `W # 16` behind commit_cast",
        "the packet stays `W`",
        f"{_COMMIT} / Type casting",
    ),
    Rule(
        "CADAPT-013",
        "Why it exists",
        "It converts a main-context contraction to bf16 without the Vector Engine, so that the sub context can do vector work meanwhile.",
        "the Cast Engine would book the Vector Engine",
        "commit_cast where the overlap matters",
        f"{_COMMIT} / Type casting",
    ),
    Rule(
        "CADAPT-014",
        "Generate mode",
        "The internal path of memset: the sub context writes a constant without a stream. It cannot be chained to one.",
        "memset in the main context",
        "memset on sub",
        _COMMIT,
    ),
    Rule(
        "CADAPT-015",
        "Width behind the cast",
        "The bf16 packet that is written has again 8, 16, 24 or 32 bytes, so the f32 packet has 16 or 32 (4 or 8 elements). "
        "Recommended reading.",
        "commit_trim(`W = 2`).commit_cast(bf16): 4 bytes",
        "keep 4 or 8 elements",
        "Commit Engine / Constraints",
    ),
    Rule(
        "CADAPT-016",
        "Trim and commit are separate",
        "commit_trim declares the packet, commit writes the stream; Time is reordered by the commit's Element, not by the adapter.",
        "expecting commit_trim to permute",
        "permute in commit(Element)",
        f"{_COMMIT} / Trimming; Commit Engine / Interface",
    ),
    Rule(
        "CADAPT-017",
        "Numerics of the commit cast",
        "As f32 to bf16 in CAST-008. With ReLU NaN stays NaN (0x7fc0) and everything else with the sign bit set, -0 included, "
        "becomes +0. Recommended reading.",
        "3.7 becomes 3.703125; -0.1 with ReLU becomes 0",
        "nothing to fix",
        f"{_COMMIT} / Type casting",
    ),
)

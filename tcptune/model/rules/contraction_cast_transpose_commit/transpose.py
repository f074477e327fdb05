"""Rules of the Transpose Engine (TRANSPOSE)."""

from tcptune.model.rules.rule import Rule

_ENGINE = "Transpose Engine"
_PARAMETERS = "Transpose Engine / Parameters"

RULES = (
    Rule(
        "TRANSPOSE-001",
        "Where a transpose may stand",
        "transpose follows Collect, the Vector Engine or Cast (the model also allows it straight after a contraction), once; only "
        "commit_trim comes after it.",
        "transpose(…).transpose(…)",
        "do both permutations in one transpose and the commit",
        f"{_ENGINE} / Interface, Parameters",
    ),
    Rule(
        "TRANSPOSE-002",
        "What a transpose does",
        "It exchanges a part of Time with the Packet inside each slice: unpack, gather, transpose, trim, align. No value changes.",
        "Time `B, C, D`, Packet `E # 32` becomes Time `B, D, E`, Packet `C # 32`",
        "nothing to fix: this defines the meaning",
        f"{_ENGINE}; Architecture",
    ),
    Rule(
        "TRANSPOSE-003",
        "Table of parameters",
        "By element width: 4 bits: 16 elements a flit, at most 16 rows, 16 or 32 columns. 8 bits: 8 (dual 16), 8 rows. 16 bits: 8 "
        "(dual 16), 4 rows. 32 bits: 8, 2 rows. Columns of the last three: 8, 16, 32.",
        "8 rows of bf16",
        "4 rows of bf16; put the rest of the axis into the outer Time",
        _PARAMETERS,
    ),
    Rule(
        "TRANSPOSE-004",
        "Elements read a flit",
        "The live prefix of Packet fits the width's valid_size. 8- and 16-bit types with 9 to 16 live elements use dual packing "
        "(valid_size 16); 4- and 32-bit types have no dual form. What lies beyond is padding.",
        "24 live i8 elements in a flit",
        "collect 8 or 16 elements a packet",
        f"{_PARAMETERS}, Unpack",
    ),
    Rule(
        "TRANSPOSE-005",
        "Unpack",
        "The first valid_size elements of each flit are kept while reading; it costs no pass.",
        "`E # 32` of i8 becomes the 8 elements of E",
        "nothing to fix",
        f"{_ENGINE} / Unpack, Gather",
    ),
    Rule(
        "TRANSPOSE-006",
        "Gather and columns",
        "The innermost Time steps below the rows form one row together: columns = packets x valid_size, and only the values of "
        "TRANSPOSE-003 exist, so 1, 2 or 4 packets of 8 or 1 or 2 of 16.",
        "three packets of 8: 24 columns",
        "gather 1, 2 or 4 packets: pad the factor, or move it outside the rows",
        f"{_ENGINE} / Gather, Parameters",
    ),
    Rule(
        "TRANSPOSE-007",
        "Rows",
        "The live prefix of OutPacket are the rows, the part of Time just above the gathered packets; at most 8 bytes of "
        "elements: 16, 8, 4, 2 by width. Any number from 1 up.",
        "16 rows of i8",
        "transpose 8 rows and keep the rest outside: `C / 8` in Time, `C % 8` in OutPacket",
        f"{_ENGINE} / Parameters, Gather",
    ),
    Rule(
        "TRANSPOSE-008",
        "The transposition",
        "Rows x columns become columns x rows; the order of the columns stays: gathered factor outside, packet element inside.",
        "OutTime `B, E, D` for gathered `D` and packet `E`",
        "OutTime `B, D, E`",
        f"{_ENGINE} / Transpose",
    ),
    Rule(
        "TRANSPOSE-009",
        "Trim",
        "Output rows that come from padding of the packet may be dropped, live ones may not. Keeping padded rows is allowed.",
        "OutTime `B, E = 4` for a packet of 8 live elements",
        "OutTime `B, E`",
        f"{_ENGINE} / Trim; Small matrix",
    ),
    Rule(
        "TRANSPOSE-010",
        "Align",
        "Each output row is padded to a flit: OutPacket = rows # elements of 32 bytes.",
        "OutPacket `C # 16` of i8",
        "`C # 32`",
        f"{_ENGINE} / Align",
    ),
    Rule(
        "TRANSPOSE-011",
        "Burst parameters",
        "Iterations n = SIZE(OutTime) / output rows; flits read an iteration = rows x columns / valid_size; flits written = output rows.",
        "8 rows x 16 columns of i8: 16 flits in, 16 out",
        "nothing to fix",
        f"{_ENGINE} / Performance",
    ),
    Rule(
        "TRANSPOSE-012",
        "Buffering",
        "Two buffers of 16 columns: up to 16 columns reading and writing overlap (double), 32 columns take both (single).",
        "32 columns: 2 x (32 + 32) = 128 cycles for two iterations",
        "gather at most 16 columns",
        f"{_ENGINE} / Buffering modes",
    ),
    Rule(
        "TRANSPOSE-013",
        "Cycles with single buffering",
        "n x (flits in + output rows): reading and writing alternate.",
        "n = 2, 32 in, 32 out: 128",
        "use at most 16 columns",
        f"{_ENGINE} / Single-buffering latency",
    ),
    Rule(
        "TRANSPOSE-014",
        "Cycles with double buffering",
        "flits in + (n - 1) x max(flits in, output rows) + output rows: fill, overlap, drain.",
        "n = 2, 16 in, 16 out: 48",
        "balance flits in and rows out",
        f"{_ENGINE} / Double-buffering latency",
    ),
    Rule(
        "TRANSPOSE-015",
        "Element types",
        "Types of 4, 8, 16 or 32 bits; the residual types i5 and i9 are excluded.",
        "transpose of an i9 stream",
        "contract it instead",
        f"{_ENGINE} / Interface; Fetch Adapter / Contraction-only staging",
    ),
    Rule(
        "TRANSPOSE-016",
        "Packets are flits",
        "Input and output packets have exactly 32 bytes.",
        "OutPacket `C` with 8 i8 elements",
        "`C # 32`",
        f"{_PARAMETERS}, Align",
    ),
    Rule(
        "TRANSPOSE-017",
        "Mapping equation",
        "With Time = [Outer, Rows, Gather]: OutPacket = Rows # flit, OutTime = [Outer, Gather, Packet % valid_size], trimmed. "
        "Outer keeps its order.",
        "Time `A, B, C` with OutTime `B, A, E`",
        "OutTime `A, B, E`",
        f"{_ENGINE} / Architecture, Interface",
    ),
    Rule(
        "TRANSPOSE-018",
        "How parameters are found",
        "valid_size from the live prefix of Packet, rows from that of OutPacket; then 1, 2, 4, … gathered packets are tried until "
        "Time splits into Outer, Rows and Gather; output rows are what OutTime has inside Outer.",
        "rows that are no digit of Time",
        "make the rows a factor of Time just above the gathered packets",
        _PARAMETERS,
    ),
    Rule(
        "TRANSPOSE-019",
        "Worked examples of transposing",
        "i8 `B, C, D` | `E # 32` with B2 C8 D2 E8: 48 cycles; D4: 128; bf16 `C, D` | `E # 16` with C8 D4 E8: 68; i4 `B, C` | `E # "
        "64` with B4 C16 E16: 80; f32 `B, D` | `E` with B4 D2 E8: 34; i8 `A` | `B # 32` with A4 B2: 6.",
        "expecting a transpose to be free",
        "compare with the fetch time of the pass: only the excess costs (VT-012)",
        f"{_ENGINE} / Latency, Examples",
    ),
    Rule(
        "TRANSPOSE-020",
        "What producers deliver",
        "A contraction only delivers 8 elements of 32 bits a flit; the Vector Engine and Fetch deliver every combination of TRANSPOSE-003.",
        "expecting bf16 rows straight from contract_lane",
        "cast before the transpose",
        _PARAMETERS,
    ),
)

"""Rules of the Tensor Unit as a whole (TU) and of the Fetch Adapter (FA).

The Switch Engine's rules are in `rules.switch`, those of the Collect Engine and the register files in `rules.registers`.
"""

from tcptune.model.rules.rule import Rule
from tcptune.model.tensor_unit import CONTEXTS, ENGINES, ROUTES

_PIPELINE = ", ".join(engine.name for engine in ENGINES)
_DEMANDS = "; ".join(f"{engine.name}: {engine.demands}" for engine in ENGINES)
_CONTEXTS = "; ".join(f"{context.name} ({context.handle}) drives {context.drives}" for context in CONTEXTS)
_ROUTES = "; ".join(f"{route.need}: {', '.join(route.engines)}" for route in ROUTES)

RULES = (
    Rule(
        "TU-001",
        "Pipeline of ten engines",
        f"One Tensor Unit command reads a DM tensor and passes it through {_PIPELINE}, back into DM. Engines may be skipped, never "
        "reordered; Collect may divert its stream into the TRF or VRF instead.",
        "transpose before cast in one chain",
        "keep the engines in pipeline order, or use a second command",
        "Computing tensors; Tensor Unit",
    ),
    Rule(
        "TU-002",
        "Stream dimensions",
        "Every stream has Chip, Cluster, Slice, Time and Packet. The first three are spatial: each slice runs its own copy of the "
        "pipeline. Time and Packet order what one slice sees: one packet a cycle.",
        "a stream without Packet cannot be written",
        "give all five mappings; write 1 # n for unused units and 1 for no time steps",
        "Tensor Unit",
    ),
    Rule(
        "TU-003",
        "Who may change spatial dimensions",
        "Chip, Cluster and Slice pass through every engine unchanged except three: the Switch moves data between slices, axis "
        "lifting at Fetch turns a broadcast in space into an axis of Time by read offsets, and the Inter-Slice Reducer combines the "
        "256 slices of a cluster.",
        "a collect that names another Slice mapping than its input",
        "move the data with the Switch or a DMA first",
        "Tensor Unit; Fetch Engine / axis lifting",
    ),
    Rule(
        "TU-004",
        "Key constraint of each engine",
        f"What each engine demands. {_DEMANDS}. The alignment is checked on the packet that enters Switch or Collect, in the element "
        "type after the Fetch Adapter.",
        "a 12-byte packet (K = 12, i8) handed to the Switch; a bf16 stream handed to vector_init",
        "pad the packet at fetch (K # 16), or widen the elements with fetch_cast",
        "Tensor Unit (engine table)",
    ),
    Rule(
        "TU-005",
        "Only flits after Collect",
        "Contraction, Vector, Cast, Transpose and the Commit Adapter consume 32-byte flits, so a stream passes Collect before any of them.",
        "fetch followed by commit_trim",
        "put a collect before it, even where the packet already is one flit",
        "Tensor Unit; Collect Engine",
    ),
    Rule(
        "TU-006",
        "Two-operand engines",
        "Contraction and Vector take one operand from the stream and the other from the register file of the same slice: the TRF "
        "for Contraction, the VRF for Vector. The files are filled by to_trf and to_vrf.",
        "contract_outer with an operand stored in the VRF",
        "store the stationary operand with to_trf first",
        "Computing tensors; Tensor Unit",
    ),
    Rule(
        "TU-007",
        "Spatial sizes",
        "A chip has 2 clusters of 256 slices. Cluster has 1 or 2 positions and Slice 64, 128 or 256; units that hold nothing are "
        "written as padding.",
        "slice = A with A = 32",
        "pad the mapping: A # 64, or A # 256 for a whole cluster",
        "Spatial and temporal dimensions",
    ),
    Rule(
        "TU-008",
        "Execution contexts",
        f"Three contexts issue operations, each in its own order: {_CONTEXTS}.",
        "two passes of one context never overlap",
        "put independent preloads on Sub and transfers on the DMA context so that they overlap",
        "Execution contexts",
    ),
    Rule(
        "TU-009",
        "What Sub lacks",
        "Sub may not use the Contraction Engine nor the table lookup of the Fetch Adapter, and always reads 8 bytes at a time. The "
        "rest behaves as on Main.",
        "contract_outer in a sub-context pass",
        "contract on Main; let Sub only fill the register file",
        "Execution contexts; Fetch Adapter / table lookup",
    ),
    Rule(
        "TU-010",
        "Choosing a compute route",
        f"{_ROUTES}. Guidance, not a check.",
        "reducing over slices with the Contraction Engine leaves one partial sum a slice",
        "finish such a sum with the Inter-Slice Reducer",
        "Computing tensors / selecting a route",
    ),
    Rule(
        "TU-011",
        "Legal next steps",
        "Each position of a chain offers certain operations only. Fetch side: lifts (chip, cluster, slice), then table lookup, "
        "cast, zero point, then switch or collect; Switch: collect; Collect: to_trf, to_vrf, contract_outer, vector_init, cast, "
        "transpose, commit_trim.",
        "a second switch after a switch, a switch after collect, contract_outer before collect",
        "follow the order; a second redistribution needs a second command",
        "Tensor Unit flowchart; interfaces of the engines",
    ),
    Rule(
        "FA-001",
        "Stages of the Fetch Adapter",
        "Three optional stages act element by element between Fetch and Switch, each at most once and in this order: table lookup, "
        "type cast, zero-point subtraction.",
        "fetch_table_lookup after fetch_cast, or two lookups in a row",
        "reorder the calls; a second lookup needs a second pass",
        "Fetch Adapter (introduction)",
    ),
    Rule(
        "FA-002",
        "Table-lookup conversions",
        "The lookup converts f4e2m1 to f8e4m3 or f8e5m2, and f8e4m3 or f8e5m2 to bf16. Input type and output type select a fixed "
        "table; there is no table argument.",
        "fetch_table_lookup from f4e2m1 to bf16",
        "go through f8: look up to f8e4m3, then fetch_cast to f32",
        "Fetch Adapter / table lookup",
    ),
    Rule(
        "FA-003",
        "Table lookup is main-only",
        "The table register exists in the main fetch unit only. A packed weight for the TRF is decoded by a main pass that commits "
        "to DM, and a plain sub pass then stages the decoded tensor.",
        "fetch_table_lookup in the sub context",
        "decode on Main, commit, then store from DM on Sub",
        "Fetch Adapter / table lookup (interface)",
    ),
    Rule(
        "FA-004",
        "The e2m1 table is static",
        "The 16 codes of f4e2m1 decode to 0, 0.5, 1, 1.5, 2, 3, 4, 6 and their negatives; the table is a compile-time constant that "
        "knows no block scale, and every value is exact in both 8-bit float types.",
        "expecting the lookup to apply an MXFP4 scale",
        "multiply by the scale later, in the Vector or Contraction Engine",
        "Fetch Adapter / table lookup",
    ),
    Rule(
        "FA-005",
        "Key width and pairing",
        "Table keys are 1 or 2 bytes. A 4-bit key therefore uses a 256-entry table over a byte with two nibbles, one lookup giving "
        "two elements (low nibble first). Mappings count elements, not bytes.",
        "byte 0x21 decodes to the elements 0.5, 1.0",
        "nothing to do: keep even element counts in f4 packets",
        "Fetch Adapter / table lookup",
    ),
    Rule(
        "FA-006",
        "The adapter keeps mappings",
        "Every stage of the adapter keeps Chip, Cluster, Slice, Time and Packet; only element type and values change.",
        "a packet of 8 i8 elements is 8 i32 elements, 32 bytes, after fetch_cast",
        "re-split packets with collect",
        "Fetch Adapter / type casting, zero-point subtraction",
    ),
    Rule(
        "FA-007",
        "Type-cast conversions",
        "fetch_cast converts i4, i8 or i16 to i32, f8e4m3, f8e5m2 or bf16 to f32, and f32 to bf16. Nothing else.",
        "fetch_cast from i8 to f32",
        "cast i8 to i32 and convert in the Vector Engine (vector_fxp_to_fp)",
        "Fetch Adapter / type casting",
    ),
    Rule(
        "FA-008",
        "What fetch_cast never does",
        "8-bit floats reach bf16 by table lookup, f32 reaches 8-bit floats in the Cast Engine, and i5 or i9 come from zero-point "
        "subtraction only.",
        "fetch_cast from f8e4m3 to bf16",
        "use fetch_table_lookup, cast or fetch_zero_point_sub",
        "Fetch Adapter / type casting",
    ),
    Rule(
        "FA-009",
        "Cast latency",
        "A type cast adds 1 to 2 cycles of latency once a stream and costs no throughput.",
        "a pass with fetch_cast starts up to 2 cycles later",
        "nothing to do",
        "Fetch Adapter / type casting",
    ),
    Rule(
        "FA-010",
        "Cast output of one read fits a flit",
        "With an adapter conversion, read size times bytes of the output element is at most 32. This caps the derived read size (8 "
        "elements for every cast), not the packet: a longer packet takes several reads.",
        "i8 to i32 with 16 elements a read gives 64 bytes",
        "nothing to write: the read size is derived; expect Packet / 8 reads a packet",
        "Fetch Adapter / type casting; Fetch Engine / multi-read packets",
    ),
    Rule(
        "FA-011",
        "Zero-point conversions",
        "fetch_zero_point_sub subtracts one integer from every element and widens i4 to i5 or i8 to i9. It is the only source of "
        "these types.",
        "fetch_zero_point_sub from i8 to i16",
        "subtract from i4 or i8; for other types subtract in the Vector Engine",
        "Fetch Adapter / zero-point subtraction",
    ),
    Rule(
        "FA-012",
        "Zero-point range",
        "The zero point lies in the range of the source type: -8 to 7 for i4, -128 to 127 for i8.",
        "zero_point = 8 for i4",
        "use a zero point inside the range; unsigned zero points are shifted by half the range first",
        "Fetch Adapter / zero-point subtraction (interface)",
    ),
    Rule(
        "FA-013",
        "Why one extra bit suffices",
        "With an in-range zero point, i4 residuals lie in -15 to 15 (i5 holds -16 to 15) and i8 residuals in -255 to 255 (i9 holds "
        "-256 to 255), so they never wrap.",
        "-8 - 7 = -15 still fits i5",
        "nothing to do",
        "Fetch Adapter / extra bit",
    ),
    Rule(
        "FA-014",
        "i5 and i9 are contraction-only",
        "A stream of i5 or i9 may pass Switch and Collect and is then consumed by contract_outer. Commit, to_trf, to_vrf, "
        "Transpose, Cast and the Vector Engine refuse it.",
        "to_trf on an i9 stream",
        "subtract the zero point on the streaming side only; store the other operand as i4 or i8",
        "Fetch Adapter / contraction-only staging",
    ),
    Rule(
        "FA-015",
        "What table lookup is meant for",
        "The manual names functions that are hard to compute (sigmoid, GELU) and packed encodings (MXFP4, NVFP4); the interface "
        "offers only the four conversions of FA-002. Activations are computed in the Vector Engine.",
        "asking fetch_table_lookup for a sigmoid table",
        "use vector_fp_unary(Sigmoid)",
        "Fetch Adapter / table lookup",
    ),
)

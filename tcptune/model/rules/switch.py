"""Rules of the Switch Engine (SWITCH): the ring that moves data between slices."""

from tcptune.model.rules.rule import Rule

RULES = (
    Rule(
        "SWITCH-001",
        "What the switch keeps",
        "Chip, Cluster, Packet, element type and all values stay; only Slice and Time change, to the mappings the call gives. "
        "Nothing is padded here.",
        "expecting the switch to pad a 24-byte packet to a flit",
        "leave padding to collect",
        "Switch Engine / interface",
    ),
    Rule(
        "SWITCH-002",
        "Slice count preserved",
        "The output Slice has as many positions as the input Slice.",
        "slice A (256) to A / 4, X, Y with X = 4, Y = 2: 512 positions",
        "size the new axes so that the product stays the same",
        "Switch Engine / interface",
    ),
    Rule(
        "SWITCH-003",
        "Split into slice2, slice1, slice0",
        "All sizes of a configuration are positive and slice1 * slice0 divides the Slice size. The split is by position: slice0 is "
        "the innermost part, whatever axes it comes from; slice2 is what is left, Slice / (slice1 * slice0).",
        "slice1 = 3, slice0 = 2 on 256 slices",
        "use powers of two whose product divides the Slice size",
        "Canonical configurations",
    ),
    Rule(
        "SWITCH-004",
        "Sub-rings",
        "The 256 slices form 256 / ring_size parallel sub-rings of consecutive slices, and data never leaves its sub-ring. "
        "ring_size is slice1 * slice0 for canonical configurations, 1 when forwarding, and given by the author for CustomBroadcast.",
        "Broadcast01 with slice1 = slice0 = 2 has 64 sub-rings of 4 slices",
        "keep the slices that exchange data close together: small rings are cheap",
        "Canonical configurations; architecture",
    ),
    Rule(
        "SWITCH-005",
        "New axes must be new",
        "The axes that fill vacated slice positions in Broadcast01, Broadcast1 and TransposedBroadcast1 must not occur in the input "
        "Slice or Time.",
        "filling the slot of slice1 with B % 4 where B is in Time",
        "declare a fresh axis, or write an unnamed broadcast n or padding 1 # n",
        "Canonical configurations",
    ),
    Rule(
        "SWITCH-006",
        "Forwarding",
        "Without a switch call every slice keeps its own data: Slice and Time are unchanged and the ring size is 1. There is no "
        "configuration for it.",
        "writing a switch call that moves nothing",
        "omit the call and collect the fetched stream",
        "Forwarding",
    ),
    Rule(
        "SWITCH-007",
        "Broadcast01",
        "slice1 and slice0 both move to Time with the inner time0 steps between them: output Slice slice2, X, Y and output Time "
        "time1, slice1, time0, slice0, where X and Y are new and as large as slice1 and slice0.",
        "slice A / 4, X, Y with time B, A / 2 % 2, A % 2 and time0 = 4",
        "write the time as time1, slice1, time0, slice0 (here B / 4, A / 2 % 2, B % 4, A % 2)",
        "Broadcast01",
    ),
    Rule(
        "SWITCH-008",
        "Broadcast01 time split",
        "time0 divides the number of input time steps. time0 = 1 puts both moved parts innermost; time0 = all steps puts slice1 outermost.",
        "time0 = 3 with 64 time steps",
        "use a divisor of the time steps",
        "Broadcast01",
    ),
    Rule(
        "SWITCH-009",
        "Broadcast1",
        "slice1 moves to the innermost end of Time and a new axis of the same size takes its slice position: output Slice slice2, "
        "X, slice0 and output Time Time, slice1. The whole dimension moves, padding included.",
        "slice A / 32, X, A % 8 with time A / 8 % 4, B",
        "append the moved part to the time: B, A / 8 % 4",
        "Broadcast1",
    ),
    Rule(
        "SWITCH-010",
        "Transpose",
        "slice1 and slice0 trade places in Slice: output Slice slice2, slice0, slice1.",
        "slice1 = 32, slice0 = 2 with an unchanged Slice mapping",
        "write slice2, slice0, slice1 (A / 64, A % 2, A / 2 % 32)",
        "Transpose",
    ),
    Rule(
        "SWITCH-011",
        "Transpose keeps Time",
        "The output Time equals the input Time: B / 8, B % 8 is B, another axis of the same size is not.",
        "time D instead of B",
        "repeat the input Time",
        "Transpose",
    ),
    Rule(
        "SWITCH-012",
        "InterTranspose",
        "slice1 and time1 trade places: output Slice slice2, time1, slice0 and output Time time2, time0, slice1, so slice1 lands "
        "innermost in Time.",
        "slice A / 32, B % 2, A % 16 with time0 = 2, where time1 is B / 2 % 2",
        "put the digit of Time that lies just outside time0 into the slot of slice1",
        "InterTranspose",
    ),
    Rule(
        "SWITCH-013",
        "InterTranspose needs all 256 slices",
        "slice2 * slice1 * slice0 is 256.",
        "InterTranspose on a Slice of 128 positions",
        "pad Slice to 256",
        "InterTranspose (first size constraint)",
    ),
    Rule(
        "SWITCH-014",
        "InterTranspose swap sizes agree",
        "The part of Time that moves has the size of slice1.",
        "slice1 = 2 with a time1 of 4 steps",
        "choose slice1 and time0 so that the swapped parts are equally large",
        "InterTranspose (second size constraint)",
    ),
    Rule(
        "SWITCH-015",
        "InterTranspose time divisibility",
        "slice1 * time0 divides the number of input time steps.",
        "slice1 = 4 with 6 time steps",
        "pad or re-split the time",
        "InterTranspose (third size constraint)",
    ),
    Rule(
        "SWITCH-016",
        "TransposedBroadcast1",
        "slice0 moves to the innermost end of Time, slice1 becomes the innermost part of Slice, and a new axis as large as slice0 "
        "takes the middle: output Slice slice2, Y, slice1 and output Time Time, slice0.",
        "slice A / 64, A / 8 % 8, Y with slice1 = slice0 = 8",
        "write slice2, Y, slice1 (A / 64, Y, A / 8 % 8)",
        "TransposedBroadcast1",
    ),
    Rule(
        "SWITCH-017",
        "TransposedBroadcast1 as a composition",
        "TransposedBroadcast1(slice1 = p, slice0 = q) gives what Transpose(p, q) followed by Broadcast1(slice1 = q, slice0 = p) "
        "gives; one pass holds one switch, so this is an equality of results.",
        "two switches in one chain",
        "use the combined configuration",
        "TransposedBroadcast1",
    ),
    Rule(
        "SWITCH-018",
        "Switch cost",
        "About ring_size * input time steps * flits per packet cycles, with flits per packet rounded up. All sub-rings run in parallel.",
        "ring of 4, 64 steps, packets of 8 flits: 2,048 cycles",
        "make the ring smaller by moving data between close slices",
        "Performance",
    ),
    Rule(
        "SWITCH-019",
        "Ring hardware",
        "One router a slice on one ring, with links in both directions that wrap around inside a sub-ring. A router buffers one "
        "packet and at once emits it or passes it on; it cannot reorder.",
        "asking for moved digits in another order than they have in Slice",
        "reorder with a DMA or with another command",
        "Architecture; order preservation",
    ),
    Rule(
        "SWITCH-020",
        "CustomBroadcast and its snoop bitmap",
        "Only ring_size is given; for every output slice the set of input slices it listens to follows from the four mappings. "
        "Every live output cell has exactly one source, and an input digit has one home, in the output Slice or in the output Time.",
        "slice A / 4, A % 4 with time B, A % 4: A % 4 appears twice",
        "give each input digit one place; fill other slots with new axes or padding",
        "Custom configurations",
    ),
    Rule(
        "SWITCH-021",
        "What only CustomBroadcast can do",
        "Any permutation of slice digits together with broadcasts, also of digits that are not adjacent, and extraction of only the "
        "valid part of a padded dimension.",
        "Broadcast1 with C % 4 padded (C # 4) asked to move only C = 3",
        "use CustomBroadcast with the derived ring size",
        "Supported transformation patterns; examples 1 to 3",
    ),
    Rule(
        "SWITCH-022",
        "Loading a custom bitmap",
        "The bitmap is written into the switch's special function registers, which holds the DMA Engine and the sub context until "
        "done. No fixed stall is stated; the cost is lost overlap.",
        "changing the custom configuration inside a loop",
        "prefer a canonical configuration, or keep one custom configuration",
        "Configuration overhead",
    ),
    Rule(
        "SWITCH-023",
        "Custom 1: broadcast axes are new",
        "An axis added to the output Slice must not occur in the input Slice or Time.",
        "slice A / 8, B / 32, A % 4 where B is the input Time",
        "add a fresh axis or an unnamed broadcast",
        "Constraints (1)",
    ),
    Rule(
        "SWITCH-024",
        "Custom 2: a new axis is used once",
        "Each added axis fills one slot of the output Slice. Two different digits of one new symbol in two slots are two axes; the "
        "same or overlapping digits are not.",
        "slice A / 4, X, X",
        "use a second axis for the second slot",
        "Constraints (2)",
    ),
    Rule(
        "SWITCH-025",
        "Custom 3: a new axis is not padded",
        "An added axis carries no padding.",
        "slice A / 8, X # 4, Y with X = 3",
        "use an axis that fills its slot, or pure padding 1 # n",
        "Constraints (3)",
    ),
    Rule(
        "SWITCH-026",
        "Custom 4: order kept",
        "Slice digits that move to Time keep their order: from outermost to innermost their strides in the input Slice decrease.",
        "time C, B % 2, B / 2 % 2",
        "write them as in Slice: C, B / 2 % 2, B % 2",
        "Constraints (4)",
    ),
    Rule(
        "SWITCH-027",
        "Custom 5: moved digits are innermost in Time",
        "The digits that move form the innermost part of the output Time; no digit of the input Time lies inside them.",
        "time A % 2, C, B % 2 for the input time C",
        "append the moved digits: C, A % 2, B % 2; Broadcast01 can put time0 between them",
        "Constraints (5)",
    ),
    Rule(
        "SWITCH-028",
        "Custom 6: only padding may be dropped",
        "Every live cell of the input Slice is read by some output cell. Taking 3 of C # 4 with C = 3 is legal, taking 3 of a full "
        "4 is not.",
        "slice A, B / 4, X with time C: B % 4 goes nowhere",
        "move the replaced digit to Time",
        "Constraints (6)",
    ),
    Rule(
        "SWITCH-029",
        "Custom 7a: power of two",
        "ring_size is a power of two.",
        "ring_size = 24",
        "use the derived ring size",
        "Constraints (7)",
    ),
    Rule(
        "SWITCH-030",
        "Custom 7b: derived ring size",
        "ring_size equals the smallest power of two r for which input Slice / r and output Slice / r are the same mapping: the ring "
        "starts at the outermost position where the output is not the input carried over.",
        "ring_size = 256 for slice A / 2, X, B / 2, Y from A, B (16 each): the ring is 32",
        "use the derived value; a larger power of two is refused too",
        "Constraints (7); examples 1 to 3",
    ),
    Rule(
        "SWITCH-031",
        "Axis lifting instead of InterTranspose",
        "If every target slice already holds the source region, a slice lift at fetch moves an axis from Time to Slice by read "
        "offsets, without a ring traversal.",
        "InterTranspose over slices that hold copies pays the ring for nothing",
        "use fetch_slice_lift where the Slice mapping contains a broadcast",
        "InterTranspose (note)",
    ),
    Rule(
        "SWITCH-032",
        "Structural match",
        "The output mappings of a canonical configuration equal, cell by cell, the layout rebuilt from its sizes and the input; "
        "otherwise the call is refused under the rule of that configuration.",
        "Broadcast1 sizes of 4 and 8 with a Slice written for 4 and 16",
        "take the layout that the refusal prints",
        "Switch Engine / interface",
    ),
    Rule(
        "SWITCH-033",
        "Custom: input Time is carried over",
        "The output Time is the input Time followed by the moved digits; the input Time is neither reordered nor shortened.",
        "time F, C, B % 4 for the input time C, F",
        "start the output time with the input time",
        "follows from constraints (4) and (5)",
    ),
    Rule(
        "SWITCH-034",
        "Names of configurations",
        "The digits in a name list the slice parts that leave Slice: Broadcast01 moves slice0 and slice1, Broadcast1 moves slice1. "
        "Besides forwarding there are five canonical configurations and CustomBroadcast.",
        "a configuration called Forwarding",
        "use Broadcast01, Broadcast1, Transpose, InterTranspose, TransposedBroadcast1 or CustomBroadcast",
        "Switch Engine / interface; canonical configurations",
    ),
    Rule(
        "SWITCH-035",
        "Entry",
        "Any fetch-side position (Fetch, a lift, an adapter stage; i5 and i9 included) of either context may enter the switch. Only "
        "collect follows it.",
        "switch after collect, or after another switch",
        "switch before collect, once a command",
        "Switch Engine / interface",
    ),
    Rule(
        "SWITCH-036",
        "What may fill a vacated slot",
        "The slot of a canonical configuration is exactly as large as slice1 (X) or slice0 (Y). New named axes, an axis covering "
        "both adjacent slots, an unnamed broadcast, padding 1 # n, or a mix may fill it.",
        "an axis of 2 in a slot of 4",
        "size the filling to the slot, for instance with padding: W, 1 # 2",
        "Canonical configurations; published kernels",
    ),
)

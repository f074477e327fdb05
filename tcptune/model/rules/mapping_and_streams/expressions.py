"""Rules of mapping expressions: constructors, cells, grammar, identities, tiles (MAP-001 to MAP-029, MAP-039)."""

from tcptune.model.rules.rule import Rule

_M = "Mapping Expressions"

RULES = (
    Rule(
        "MAP-001",
        "A mapping is a size and a cell for every position",
        "Every position below the size is a live index (coordinates of zero or more axes) or padding of a kind; every position from the"
        " size on is out of bounds. Look at the kind of cell first: only a live index has coordinates. The model accepts sizes up to "
        "2^62.",
        "reading the coordinates of position 8 of `A` with A = 8",
        "test the cell before using its coordinates, or resize and pad the mapping so that the position exists",
        "Mapping Tensors / Position Cell Summary; Mapping Expressions / Position Results",
    ),
    Rule(
        "MAP-002",
        "An axis name maps a position to its coordinate",
        "`A` has as many positions as the axis A; position i holds coordinate i. Coordinate 0 of an axis and an axis that is not "
        "mentioned are the same.",
        "taking `A: 0` and the empty index for two different cells",
        "compare indices axis by axis, a missing axis counting as 0",
        f"{_M} / Symbol",
    ),
    Rule(
        "MAP-003",
        "Axes are declared before they are used",
        "A mapping may name declared axes only. A name starts with an upper-case letter and goes on with letters, digits and "
        "underscores; a size is a positive whole number; a name is declared once.",
        "`A, q` with A = 8: q is lower case and not declared",
        "declare the axis with its size, or correct the name",
        f"{_M} / Axis Sizes; Symbol",
    ),
    Rule(
        "MAP-004",
        "A pair puts its left side outside",
        "`L, R` has the product of both sizes; position i takes position i / |R| of L and i mod |R| of R, and coordinates add up axis "
        "by axis. Longer lists nest to the right. With A = 8 and B = 512, position 519 of `A, B` is A = 1, B = 7.",
        "expecting position 1 of `A, B` to be A = 1",
        "write the axis that shall vary fastest last",
        f"{_M} / Pair",
    ),
    Rule(
        "MAP-005",
        "A number repeats, one is the identity",
        "`n` stands for n positions that all hold the empty index: the data repeats. `1` changes nothing on either side of a pair.",
        "`0`: there is no mapping without positions",
        "`1` where nothing is meant, `1 # n` where n - 1 positions are to be idle",
        f"{_M} / Identity",
    ),
    Rule(
        "MAP-006",
        "Padding adds cells at the end",
        "`L # m` has m positions: those of L, then padding up to m. Padding around padding keeps the kind of each ring. `C, D # 64` "
        "with C = 13 and D = 61 gives every row three padding cells and a pitch of 64.",
        "`[C, D] # 64` for a row pitch of 64: that pads the whole group once",
        "pad the innermost factor, `C, D # 64`",
        f"{_M} / Padding",
    ),
    Rule(
        "MAP-007",
        "Three kinds of padding",
        "`#` (or `#{*}`) is Top: accessible, contents arbitrary. `#{0}` is Zero: accessible and known to be zero, which the expression "
        "records but does not bring about. `#{!}` is Bottom: neither read nor written. Mappings that differ in the kind of an existing "
        "cell are not equivalent.",
        "reading a cell of `B = 2 #{!} 512` behind the second",
        "use Top holes for views that are read, Bottom holes for views that are written",
        f"{_M} / Padding",
    ),
    Rule(
        "MAP-008",
        "The most major padding decides",
        "In a pair an out-of-bounds or padding cell of the major side decides whatever the minor side holds; only a live major cell "
        "lets the minor side decide. Swapping the sides can change the kind.",
        "`A # 4, B #{0} 4` with A = B = 3: the cell A = 3, B = 3 is Top, not Zero",
        "put the factor whose padding shall decide first",
        f"{_M} / Position Results; Pair",
    ),
    Rule(
        "MAP-009",
        "Resize keeps the first positions",
        "`L = n` has n positions and drops the rest of L from view. It also cuts padding off: with R = 12, `R # 16 = 14` is `R # 14`.",
        "reading coordinate 2 of D through `D = 2`",
        "resize last, or split with `/` and `%` where the rest must stay reachable",
        f"{_M} / Resize",
    ),
    Rule(
        "MAP-010",
        "Stride takes every n-th position",
        "`L / n` is the block number when L is cut in blocks of n: position i is position i * n of L. n must divide the size of L, and "
        "the padded size counts: with R = 12, `R # 16 / 8` is fine and `R / 8` is not.",
        "`A / 3` with A = 8",
        "a divisor of the size, or padding first: `A # 9 / 3`",
        f"{_M} / Stride and Modulo",
    ),
    Rule(
        "MAP-011",
        "Modulo takes the place in a block",
        "`L % n` has n positions, those of the first block of L. n must divide the size of L (padded size).",
        "`D % 2` with D = 3",
        "`D = 2` if the rest shall be dropped, `D # 4 % 2` if it is to be split",
        f"{_M} / Stride and Modulo",
    ),
    Rule(
        "MAP-012",
        "Modulo is a digit, resize is a cut",
        "`A % n` and `A = n` have the same cells. Modulo says that the other blocks exist and are named elsewhere (`A / n`) and "
        "therefore needs divisibility; resize says that they are gone.",
        "`D % 2` with D = 3, although `D = 2` is accepted",
        "`%` beside `/` for a split, `=` for a tile or a slice",
        f"{_M} / Stride and Modulo; Kernel Design / Mapping and memory per pattern",
    ),
    Rule(
        "MAP-013",
        "Digits of an axis",
        "`/` and `%` nest: `X / s % m` is the digit (x / s) mod m with weight s, and `X % m / s` is `X / s % (m / s)`. Listing the "
        "digits of one axis in another order permutes the bits of its address: `B / 64, B % 32, B / 32 % 2` with B = 512 holds B = 97 "
        "at position 67.",
        "`B / 32 % 3` with B = 512: sixteen blocks are not divisible by three",
        "cut at sizes that divide what is left",
        f"{_M} / Stride and Modulo",
    ),
    Rule(
        "MAP-014",
        "Operands of / and % are decoded whole",
        "Any expression may be split: a padded axis, a group, a resized axis. All digits of the same operand, wherever they stand, "
        "first add up to a position of the operand; only then the operand is read at that position. So digits may cut a group anywhere:"
        " `[A, B] / 6, [A, B] % 6` with A = 3 and B = 4 holds A = 2, B = 0 at position 8.",
        "decoding `[A, B] % 6` by itself: it would give B = 4, which does not exist",
        "look at the whole mapping (`tcptune map`), not at one digit",
        f"{_M} / Position Results; Equivalent Mappings",
    ),
    Rule(
        "MAP-015",
        "Overshoot is padding",
        "When the digits are added up, a position in the padding of an operand is padding of that kind, and a position or coordinate at"
        " or beyond its size is Top padding. `R # 12 / 4, A, R # 12 % 4` with R = 10 is live exactly where 4 * hi + lo < 10. A position"
        " beyond the mapping reads as Top and writes as Bottom.",
        "taking position 11 of `R # 12 / 4, R # 12 % 4` for R = 11",
        "test the finalised cell",
        f"{_M} / Position Results; Host tensor usage",
    ),
    Rule(
        "MAP-016",
        "Index literals add up in written order",
        "A literal lists `expression: value`; each gives its cell at the value, and the cells combine from left (major) to right. `B / "
        "64: 2, B % 64: 2` is `B: 130`.",
        "`B / 64: 9` with B = 512: the digit has eight values",
        "keep values below the size of their expression",
        f"{_M} / Position Results",
    ),
    Rule(
        "MAP-017",
        "Braces splice a named mapping",
        "`{name}` stands for the mapping of that name in brackets; after an operator it may stand for a number.",
        "`{Tile}, B` where nothing is named Tile",
        "define the name, or write the mapping out",
        f"{_M} / Escape",
    ),
    Rule(
        "MAP-018",
        "Grammar",
        "Comma binds loosest; the operators `/ % = #` bind alike and apply from left to right, so `R # 24 / 8 # 8` is `((R # 24) / 8) #"
        " 8` and `A, B # 8` pads B only. After an operator stands a number. Brackets may be nested 256 deep, texts may have 65,536 "
        "characters and numbers 18 digits.",
        "`A / B`, `A, , B`, `A #{1} 8`, `[A`",
        "a number after the operator, one of `#`, `#{*}`, `#{0}`, `#{!}`, and balanced brackets: `[A, B] # 8` pads the pair",
        f"{_M} (by example)",
    ),
    Rule(
        "MAP-019",
        "Canonical text",
        "One blank around operators, pairs as a flat comma list, square brackets only around a pair that an operator takes. Reading the"
        " text gives the same tree up to the nesting of pairs.",
        "`( A,B )#16` is printed `[A, B] # 16`",
        "nothing to fix: any spelling is read",
        "none (ours)",
    ),
    Rule(
        "MAP-020",
        "Equivalence",
        "Two mappings are equivalent when they have the same size and the same finalised cell at every position. Rules that ask for "
        "equality ask for this, never for equal text. The model decides it by case splitting over digits, without looking at positions.",
        "`B, A` where `A, B` is asked for",
        "`tcptune map EXPR OTHER` shows where two mappings part",
        "Equivalent Mappings",
    ),
    Rule(
        "MAP-021",
        "Identities",
        "E is equal to `E, 1`, to `1, E`, to `E / n, E % n`, to `E / 1`, `E # |E|` and `E = |E|`; `[A, B] / |B|` is A and `[A, B] % "
        "|B|` is B; pairs are associative; `E % 1` is 1. Padding that adds no cell has no kind.",
        "`A # 8` and `A #{0} 8` with A = 8 are equal: there is no padding cell",
        "rewrite freely with these",
        "Equivalent Mappings",
    ),
    Rule(
        "MAP-022",
        "What normalisation promises",
        "Simplifying twice gives the same as simplifying once and keeps every cell. Equivalent mappings may have different simplified "
        "texts.",
        "comparing `str(a) == str(b)` to test equality",
        "`a.equivalent(b)`",
        "Equivalent Mappings",
    ),
    Rule(
        "MAP-023",
        "A tile keeps its footprint",
        "A tile of LEN positions of an index mapping I is a view in which I is replaced by `I = LEN` padded back to the size of I; "
        "nothing is copied and the view has the size of the source. I must be a part of the source. With E = `A, B` (8, 512), I = B, "
        "LEN = 2 the view is `A, B = 2 # 512`.",
        "`A, B = 2` as the view: the footprint is gone",
        "`A, B = 2 # 512`",
        f"{_M} / Tiling",
    ),
    Rule(
        "MAP-024",
        "Holes of a tile: Top for reading, Bottom for writing",
        "The cells of a view outside its tile are Top padding when it is read and must be Bottom when it is written, so that nothing "
        "leaves the tile.",
        "`A, B = 2 # 512` as a mutable view",
        "`A, B = 2 #{!} 512`",
        f"{_M} / Tiling",
    ),
    Rule(
        "MAP-025",
        "A tile starts at a coordinate and stays inside",
        "start is a coordinate of the index mapping, not the number of a tile, and tiles may overlap. With sixteen blocks `B / 32` and "
        "LEN = 2 the starts are 0 to 14. A start at or beyond the size, or a tile that runs past it, is refused.",
        "start 15 with LEN = 2 and sixteen blocks",
        "start at most 16 - LEN",
        f"{_M} / Tiling",
    ),
    Rule(
        "MAP-026",
        "A tile of one position is the identity in its footprint",
        "With LEN = 1 the shortened index is `1`, so the view is written `A, 1 # 16, B % 32`; for a whole axis `1 # |I|`.",
        "`A, 1, B % 32`: fifteen blocks of footprint are missing",
        "`A, 1 # 16, B % 32`",
        f"{_M} / Stride and Modulo",
    ),
    Rule(
        "MAP-027",
        "Order decides locality",
        "The last dimension is contiguous, the first has the widest steps: `H, W` makes scans along W contiguous, `W, H` those along H,"
        " and `H / 2, W / 2, H % 2, W % 2` keeps 2 x 2 tiles together and neither direction contiguous. Changing the order later means "
        "a copy.",
        "scanning H over `H, W`: one element of every row",
        "put the axis that is scanned most last when the tensor is made",
        "Mapping Tensors / Mapping order and performance",
    ),
    Rule(
        "MAP-028",
        "Rows for DMA start on 64 bytes",
        "The padding chapter names 64 bytes as the boundary that a DMA row starts on: 61 one-byte elements a row miss it, `# 64` meets "
        "it. The exact check is DMA's (DMA-005, DMA-019).",
        "`C, D` with D = 61 of i8",
        "`C, D # 64`",
        f"{_M} / Padding",
    ),
    Rule(
        "MAP-029",
        "Unaligned DM access is slow",
        "An access that is not aligned may need a read, a change and a write; about 50 times slower accesses were observed.",
        "rows of 61 bytes written one by one",
        "pad rows to whole 8-byte words",
        "Mapping Tensors / Mapping order and performance",
    ),
    Rule(
        "MAP-039",
        "Padding does not shrink, resize does not grow",
        "`L # m` needs m of at least the size of L, `L = n` an n of at most that size. The text describes padding as growth and resize "
        "as shrinking.",
        "`A # 4` and `A = 12` with A = 8",
        "`A = 4` to shorten, `A # 12` to lengthen",
        f"{_M} / Padding; Resize",
    ),
)

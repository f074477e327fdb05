"""Rules of the Rust subset that kernels are written in (RUST): what `tcptune run kernel.rs` can read."""

from tcptune.model.rules.rule import Rule

_SYNTAX = "Quick Start, kernel design; Setup and tooling, generated project"

RULES = (
    Rule(
        "RUST-001",
        "The text is Rust",
        "A kernel file must parse as Rust. The position is that of the first bracket without a partner, or of the first token "
        "that fits nowhere.",
        "`.fetch::<m![1], m![A]>(` without its closing bracket",
        "close the bracket, or complete the statement with `;`",
        _SYNTAX,
    ),
    Rule(
        "RUST-002",
        "A method of the kernel API",
        "Only the calls of the kernel API are known: memory moves, views, redistributions, and the stages of a Tensor Unit chain. "
        "Each exists on one kind of value: `fetch` on what `begin` returns, `to_dm` on a tensor or a redistribution plan, `tile` "
        "on a view.",
        "`.fetchh::<m![1], m![A]>()`, or `.collect` on a DM tensor",
        "take the name the message proposes, or call the method on the value that has it",
        _SYNTAX,
    ),
    Rule(
        "RUST-003",
        "Number of type arguments",
        "Each method takes a fixed number of type arguments between `::<` and `>`; places that the compiler infers are written `_`.",
        "`.fetch::<m![A]>()`: fetch takes Time and Packet",
        "give all type arguments in the order of the signature that the message prints",
        _SYNTAX,
    ),
    Rule(
        "RUST-004",
        "Types that nothing determines",
        "A mapping that is not written as a type argument must follow from the annotation of the `let`, from the function's "
        "return type, or from the parameter of the function that the value is passed to.",
        "`let x = y.to_trf();`: neither Lane nor Element is known",
        "annotate the `let` with the tensor type, or write the type arguments",
        _SYNTAX,
    ),
    Rule(
        "RUST-005",
        "Names are declared",
        "Every variable, type alias, constant, axis and function that a kernel uses must be declared in the file: axes by "
        "`axes![…]`, mappings by `type`, tensors by `let` or as a parameter.",
        "`m![{ Slise }]` where only `Slice` is declared",
        "declare the name, or take the declared one that the message proposes",
        "Mapping Expressions, escape; Quick Start kernels",
    ),
    Rule(
        "RUST-006",
        "Arguments of a call",
        "A call takes the arguments of its signature: the context that runs it (`&mut device.tdma`), the tensors it reads, and "
        "constants of the enumerations.",
        "`.contract_lane::<m![1], m![J]>()` without its LaneMode",
        "give the arguments that the message names",
        _SYNTAX,
    ),
    Rule(
        "RUST-007",
        "Indices are linear in loop variables",
        "Loop bounds and tile starts are known when the kernel is read: integers, axis sizes (`Group::SIZE`), constants, and sums "
        "of loop variables times constants.",
        "`for g in 0..x * y`",
        "write the bound as a constant; compute starts as `2 * pair + 1`",
        "Tuning, loop unrolling",
    ),
    Rule(
        "RUST-008",
        "Statements of the subset",
        "The body of a device function consists of `let` bindings, calls, `for` loops over constant ranges, and a final "
        "expression. Branches, closures, `while` and arithmetic on tensors are not part of it.",
        "`if ready { … }` in a device function",
        "unroll the decision by hand, or move it into the host program",
        _SYNTAX,
    ),
    Rule(
        "RUST-009",
        "Annotations agree with values",
        "Where a type is written although it follows from the value, both must agree: element type, tier, and every mapping up to "
        "equivalence.",
        "`let x: DmTensor<f32, …> = y.to_dm(…)` where `y` holds bf16",
        "correct the annotation",
        "Quick Start kernels; Mapping Expressions, equivalent mappings",
    ),
    Rule(
        "RUST-010",
        "One device function",
        "A file is read as one kernel: the function with `#[device(chip = N)]`, whose first parameter is the device and whose "
        "others are tensor references. Where a file has several, one must be named.",
        "a file without `#[device]`, or with `rolled` and `unrolled` and no name given",
        "mark the function with `#[device(chip = 1)]`, or name the one to read",
        _SYNTAX,
    ),
)

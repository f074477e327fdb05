"""Diagnosis and tuning (TUNE)."""

from tcptune.model.rules.rule import Rule

_DIAGNOSIS = "Diagnosis"
_CONTROL = "Tuning: control the experiment"
_UNROLL = "Tuning: loop unrolling"
_BUFFER = "Tuning: double buffering"

RULES = (
    Rule(
        "TUNE-001",
        "The loop",
        "Schedule, diagnose, tune: one change, the same metric, keep or restore.",
        "changing mapping and unrolling at once",
        "change one thing",
        "Scheduling and tuning",
    ),
    Rule(
        "TUNE-002",
        "Diagnosis",
        "A schedule view becomes one testable hypothesis; data dependences and resource waits are kept apart.",
        "calling a resource wait a dependence",
        "read the cause of each wait",
        _DIAGNOSIS,
    ),
    Rule(
        "TUNE-003",
        "Reading the timeline",
        "Take the interval that reaches the last cycle, classify what it waited for, compare lanes, name one change.",
        "optimising an operation that hides behind a load",
        "follow the critical path back from the end",
        _DIAGNOSIS,
    ),
    Rule(
        "TUNE-004",
        "Valid comparisons",
        "Between candidates only the chosen decision changes; sources, profile, shapes, types and mappings are recorded and equal.",
        "comparing two shapes",
        "start a new baseline",
        _DIAGNOSIS,
    ),
    Rule(
        "TUNE-005",
        "Protocol",
        "Type check, oracle test, baseline, one lever, the same checks again, keep only what is right and faster.",
        "a faster kernel that failed its oracle",
        "restore the baseline",
        _CONTROL,
    ),
    Rule(
        "TUNE-006",
        "Metric",
        "The makespan of the schedule is the static metric; a gain is reported with the schedules that show it.",
        "a throughput derived from a makespan",
        "report cycles of the static schedule",
        _CONTROL,
    ),
    Rule(
        "TUNE-007",
        "Levers",
        "A busy resource asks for another engine path, serial work for another tile or split, movement for another mapping, padding or "
        "transfer border.",
        "unrolling a kernel that waits for its store",
        "name the limiting resource first",
        "Tuning: choose one lever",
    ),
    Rule(
        "TUNE-008",
        "Unrolling",
        "A mark on a small static loop shows all iterations to the scheduler; every level of a nest needs its own mark.",
        "an inner loop left rolled",
        "mark it too",
        _UNROLL,
    ),
    Rule(
        "TUNE-009",
        "Trip count",
        "The count of a loop is a compile-time constant.",
        "`for g in runtime n`",
        "make the count a number",
        _UNROLL,
    ),
    Rule(
        "TUNE-010",
        "Register-file reuse",
        "It is enabled only if no loop is left anywhere in the kernel.",
        "one kept loop turns it off",
        "unroll every loop, or none",
        _UNROLL,
    ),
    Rule(
        "TUNE-011",
        "Double buffering",
        "The staging of the next group overlaps the contraction of the current one if one scheduling unit shows both; each TRF half "
        "holds one group, so the store of group i + 2 waits for contraction i.",
        "a rolled loop never overlaps",
        "unroll, or handle two groups an iteration",
        _BUFFER,
    ),
    Rule(
        "TUNE-012",
        "Published makespans",
        "20 groups: 19,106 rolled, 15,477 in two stages, 15,086 unrolled.",
        "a cost model that puts them in another order",
        "check the order of the three",
        _BUFFER,
    ),
    Rule(
        "TUNE-013",
        "Cost of a rolled loop",
        "n times (store + contract), one schedule repeated.",
        "20 * (383 + 264) = 12,940",
        "show more groups a unit",
        _BUFFER,
    ),
    Rule(
        "TUNE-014",
        "Cost of two stages",
        "n / 2 times (store + max(store, contract) + contract).",
        "10 * (383 + 383 + 264) = 10,300",
        "unroll fully",
        _BUFFER,
    ),
    Rule(
        "TUNE-015",
        "Cost of a full unroll",
        "store + (n - 1) max(store, contract) + contract.",
        "383 + 19 * 383 + 264 = 7,924",
        "balance store and contraction",
        _BUFFER,
    ),
    Rule(
        "TUNE-016",
        "Window of the double-buffering pictures",
        "The schedule pictures of the three double-buffering kernels show cycles 4,000 to 8,000 only, not whole kernels.",
        "reading a makespan off such a picture",
        "take makespans from the schedule: 19,106 rolled, 15,477 pipelined, 15,086 unrolled (TUNE-012)",
        _BUFFER,
    ),
    Rule(
        "TUNE-017",
        "Overlap model",
        "With k groups a unit: n / k times (s + (k - 1) max(s, c) + c).",
        "no single pair (s, c) gives all three published figures",
        "use it for comparisons only",
        _BUFFER,
    ),
    Rule(
        "TUNE-018",
        "Cost of a register store",
        "Sub moves 8 B a cycle: b bytes a slice stream b / 8 cycles, plus the command's fixed cost.",
        "65,536 B take 8,192 cycles",
        "keep the smaller operand in the register file",
        "Register files",
    ),
)

"""The vendor's command line, language server and schedule viewer, as far as tcptune speaks their language (CLI, LSP, VIEWER).

tcptune writes kernels that this tool chain compiles and schedules that its viewer opens, so it keeps their names and rules.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

WRAPPER, DIRECT_COMMAND = "cargo furiosa-opt", "compile"
"""The wrapper of cargo, and its own command that compiles device functions directly (CLI-001)."""

BUILDING_COMMANDS = ("build", "check", "test", "run", "bench", "doc")
"""Cargo commands before which the wrapper compiles device functions (CLI-005)."""

HELP_FLAGS = ("-h", "--help")

PRE_STEP_SELECTION = {
    "kernel unchanged since the last run": "nothing",
    "command has runnable targets": "device functions reachable from the targets",
    "otherwise": "every kernel of the packages",
}
"""What the step before a cargo command compiles, by situation; the first that holds decides (CLI-006)."""

STAGES = ("MIR", "vISA", "LIR", "EDF")
"""Forms of a kernel on its way through the compiler; stage n leads from entry n - 1 to entry n (CLI-009)."""


@dataclass(frozen=True, slots=True)
class DumpOption:
    """An option that writes one artifact of a stage; all of them are for exactly one kernel (CLI-010, CLI-011)."""

    option: str
    argument: str
    stage: int


DUMP_OPTIONS = (
    DumpOption("--dump-visa", "file", 1),
    DumpOption("--dump-dfg", "file", 1),
    DumpOption("--dump-ir", "file", 2),
    DumpOption("--dump-graph", "file", 2),
    DumpOption("--dump-summary", "directory", 3),
    DumpOption("--dump-schedule", "file", 3),
)

REPEATABLE_OPTIONS = {"[FILTER]...": True, "-p, --package <name>": True, "--message-format <format>": False}
"""Options of direct compilation and whether they may be repeated (CLI-007, CLI-008, CLI-012)."""

ENVIRONMENT = {
    "FURIOSA_OPT_OUT_DIR": "cargo furiosa-opt",
    "FURIOSA_RUST_ANALYZER_PROXY_UPSTREAM": "furiosa-rust-analyzer-proxy",
}
"""Environment variables and the tool that reads them (CLI-013, LSP-004)."""

PACKAGE_MARKER = ("Cargo.toml", "[package.metadata.furiosa-opt]")
"""File and key that make a crate a kernel package (CLI-004)."""

HOST_TRIPLE, TOOLCHAIN = "x86_64-unknown-linux-gnu", "nightly-2026-05-01"
NEEDED_GLIBC, UBUNTU_20_GLIBC = "GLIBC_2.34", "2.31"
BUILD_PACKAGES, NPU_PACKAGES = ("build-essential", "libclang-dev"), ("gcc-aarch64-linux-gnu",)
HOST_TOOLS = ("cargo-binstall", "cargo-furiosa-opt", "cargo-generate")
"""What a machine needs to compile (CLI-014 to CLI-016)."""

TEMPLATE_PATHS = (
    "Cargo.toml",
    "rust-toolchain.toml",
    "src/lib.rs",
    "src/kernel/mod.rs",
    "src/kernel/<name>_kernel.rs",
    "src/<name>.rs",
)
"""Files of a generated project (CLI-017)."""

EDITOR_SETTINGS: dict[str, object] = {"rust-analyzer.inlayHints.maxLength": None}
"""Editor settings with one right value (LSP-005)."""

REWRITTEN_FEATURES = (
    "call hierarchy",
    "code actions",
    "code completion",
    "diagnostics",
    "hover",
    "inlay hints",
    "signature help",
)
"""Editor features whose text the language server rewrites (LSP-003)."""

VIEWER_ACTIONS = {
    "choose a JSON file in the drop zone": "schedule is drawn",
    "drag a JSON file onto the page": "schedule is drawn",
    "click a node": "sidebar shows its name, lifetime and context",
    "hover an operator": "its input and output tensors are highlighted",
    "hover a tensor": "operators connected to it are highlighted",
    "drag across the timeline": "cycle range only",
    "fill the Cycle Range inputs": "cycle range only",
    "enable brush, drag across the schedule": "cycle range and memory address range together",
    "click the background": "full view restored",
    "click Reset": "full view restored",
}
"""What the schedule viewer does at each action (VIEWER-004 to VIEWER-008)."""

VIEWER_HOST, VIEWER_PORT = "127.0.0.1", 9254
VIEWER_BINARY, VIEWER_OPTIONS = "furiosa-schedule-viewer", ("--host", "--port")
"""Where the schedule viewer listens by default (VIEWER-002)."""

SCHEDULE_FIELDS = (
    "instructions[]",
    "instructions[].tpe",
    "instructions[].contexts",
    "instructions[].lifetime.begin",
    "instructions[].lifetime.end",
    "instructions[].util.total_util",
    "instructions[].description",
    "tensors[]",
    "tensors[].buffer_type",
    "tensors[].address",
    "tensors[].size",
    "tensors[].shape",
)
"""Fields of the schedule document that a viewer needs (VIEWER-010)."""


def selected(functions: Sequence[str], filters: Sequence[str]) -> list[str]:
    """Device functions that direct compilation takes: any filter is a substring of the full path; no filter takes all (CLI-007)."""
    return [f for f in functions if not filters or any(part in f for part in filters)]


def runs_pre_step(arguments: Sequence[str]) -> bool:
    """Whether the wrapper compiles kernels before this cargo command (CLI-005)."""
    return bool(arguments) and arguments[0] in BUILDING_COMMANDS and not any(flag in arguments for flag in HELP_FLAGS)


def type_display(text: str) -> str:
    """A mapping type as the language server shows it: ``Stride<Symbol<A>, 8>`` becomes ``m![A / 8]`` (LSP-002).

    A user's own type of one of these names is shown the same way (LSP-006).

    Raises:
        ValueError: not a mapping type.
    """
    expression, rest = _display(text.strip())
    if rest.strip():
        raise ValueError(f"unexpected {rest!r} after a mapping type")
    return f"m![{expression}]"


_PADDING_MARKS = {"Top": "#", "Zero": "#{0}", "Bottom": "#{!}"}
_OPERATORS = {"Stride": "/", "Modulo": "%", "Resize": "="}


def _display(text: str) -> tuple[str, str]:
    """Expression of the type at the start of `text`, and what follows it."""
    name, _, rest = (
        text.partition("<") if "<" in text.split(",")[0].split(">")[0] else (_identifier(text), "", text[len(_identifier(text)) :])
    )
    name = name.strip()
    if name == "Identity":
        return "1", rest
    if name in ("Symbol", "Broadcast"):
        inner, _, rest = rest.partition(">")
        return inner.strip(), rest
    if name == "Pair":
        left, rest = _display(rest.strip())
        right, rest = _display(rest.strip().removeprefix(",").strip())
        return f"{left}, {right}", rest.strip().removeprefix(">")
    if name in (*_OPERATORS, "Padding"):
        inner, rest = _display(rest.strip())
        arguments, _, rest = rest.strip().removeprefix(",").partition(">")
        size, _, kind = arguments.partition(",")
        mark = _OPERATORS.get(name) or _PADDING_MARKS[kind.strip(" {}").rpartition("::")[2] or "Top"]
        inner = f"[{inner}]" if ", " in inner else inner
        return f"{inner} {mark} {size.strip()}", rest
    raise ValueError(f"{name!r} is no mapping type")


def _identifier(text: str) -> str:
    end = 0
    while end < len(text) and (text[end].isalnum() or text[end] in "_:"):
        end += 1
    return text[:end]

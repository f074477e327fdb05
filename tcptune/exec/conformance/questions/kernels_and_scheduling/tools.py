"""Tables of the vendor's tools: command line, set-up, language server, schedule viewer; and the transformer's tests."""

from __future__ import annotations

import re

from tcptune.exec.conformance.kinds.compare import expect_derived
from tcptune.exec.conformance.questions.kernels_and_scheduling.devices import expect_facts
from tcptune.exec.conformance.questions.kernels_and_scheduling.wording import spoken_of
from tcptune.exec.conformance.registry import Case, Mismatch, cost, expect_equal, table
from tcptune.exec.library import decoder_step
from tcptune.exec.scheduling.schedule_json import LANES, MEMORY_LANES
from tcptune.model import vendor_tools as tools
from tcptune.model.tensor_unit import ENGINES


@cost("cli_filter")
def check_filter(case: Case) -> None:
    expect_derived(case, {"selected": tools.selected(case["params"]["functions"], case["params"].get("filters", ()))}, ignore=("note",))


@table("cli_pre_step")
def check_pre_step(case: Case) -> None:
    for row in case["rows"]:
        expect_equal(" ".join(row["arguments"]), tools.runs_pre_step(row["arguments"]), row["runs_pre_step"])


@table("cli_compilation_stages")
def check_stages(case: Case) -> None:
    pairs = zip(tools.STAGES, tools.STAGES[1:], strict=False)
    expect_facts(case, [{"stage": n, "from": a, "to": b} for n, (a, b) in enumerate(pairs, 1)])


@table("cli_dump_options")
def check_dumps(case: Case) -> None:
    rows = [{"option": d.option, "argument": d.argument, "stage": d.stage, "single_kernel_only": True} for d in tools.DUMP_OPTIONS]
    expect_facts(case, rows)


@table("cli_options")
def check_options(case: Case) -> None:
    expect_facts(case, [{"option": name, "repeatable": many} for name, many in tools.REPEATABLE_OPTIONS.items()])


@table("environment_variables")
def check_environment(case: Case) -> None:
    expect_facts(case, [{"variable": name, "tool": tool} for name, tool in tools.ENVIRONMENT.items()])


@table("cli_package_marker")
def check_marker(case: Case) -> None:
    file, key = tools.PACKAGE_MARKER
    expect_facts(case, [{"file": file, "key": key}])


@table("setup_requirements")
def check_setup(case: Case) -> None:
    facts: dict[str, object] = {
        "host triple": tools.HOST_TRIPLE,
        "glibc needed": tools.NEEDED_GLIBC,
        "glibc in 20.04": tools.UBUNTU_20_GLIBC,
        "packages for every build": list(tools.BUILD_PACKAGES),
        "package for the NPU build": list(tools.NPU_PACKAGES),
        "toolchain": tools.TOOLCHAIN,
        "host tools": list(tools.HOST_TOOLS),
    }
    for row in case["rows"]:
        if row["item"] in facts:
            expect_equal(row["item"], facts[row["item"]], row["value"])


@table("template_layout")
def check_template(case: Case) -> None:
    expect_facts(case, [{"path": path} for path in tools.TEMPLATE_PATHS])


@table("cli_forms")
def check_forms(case: Case) -> None:
    """A form is the wrapper before any command, its own command, or plain cargo with commands that build."""
    for row in case["rows"]:
        form = row["form"]
        head = form.split(" [")[0].split(" <")[0]
        if head in (tools.WRAPPER, f"{tools.WRAPPER} {tools.DIRECT_COMMAND}"):
            continue
        commands = form.removeprefix("cargo ").split(" | ")
        if not all(tools.runs_pre_step([command]) for command in commands):
            raise Mismatch(f"{form!r} names a command that builds nothing")


@table("cli_first_commands")
def check_first_commands(case: Case) -> None:
    """Every command is one of the two forms, and its options are known."""
    known = {d.option for d in tools.DUMP_OPTIONS} | {"--release", "--bin", "--test"}
    for row in case["rows"]:
        words = row["command"].split(" ")
        rest = words[2:] if row["command"].startswith(tools.WRAPPER) else words[1:]
        if rest[0] != tools.DIRECT_COMMAND and rest[0] not in tools.BUILDING_COMMANDS:
            raise Mismatch(f"unknown command {row['command']!r}")
        unknown = [w for w in rest if w.startswith("-") and w not in known]
        if unknown:
            raise Mismatch(f"unknown option {unknown[0]!r} in {row['command']!r}")


@table("cli_pre_step_selection")
def check_selection(case: Case) -> None:
    _check_effects(case, ("situation", "compiled"), tools.PRE_STEP_SELECTION)


def _check_effects(case: Case, columns: tuple[str, str], effects: dict[str, str]) -> None:
    """Every row speaks of one entry of `effects` in its first column, of each but once, and of its effect in the second.

    Raises:
        Mismatch: a row speaks of none, of one that an earlier row has, or of another effect.
    """
    first, second = columns
    left = dict(effects)
    for row in case["rows"]:
        cause = spoken_of(row[first], effects)
        if cause not in left:
            raise Mismatch(f"{row[first]!r} names {cause!r} once more")
        expect_equal(f"{row[first]}: {second}", spoken_of(row[second], dict.fromkeys(effects.values())), left.pop(cause))


@table("lsp_type_display")
def check_display(case: Case) -> None:
    for row in case["rows"]:
        expect_equal(row["type"], tools.type_display(row["type"]), row["display"])


@table("lsp_caveat")
def check_caveat(case: Case) -> None:
    for row in case["rows"]:
        expect_equal(row["user_type"], tools.type_display(row["user_type"]), row["wrong_display"])


@table("lsp_features")
def check_features(case: Case) -> None:
    expect_facts(case, [{"feature": name} for name in tools.REWRITTEN_FEATURES])


@table("lsp_editor_settings")
def check_settings(case: Case) -> None:
    for row in case["rows"]:
        if row["key"] in tools.EDITOR_SETTINGS:
            expect_equal(row["key"], tools.EDITOR_SETTINGS[row["key"]], row["value"])


@table("viewer_server")
def check_server(case: Case) -> None:
    row = {
        "binary": tools.VIEWER_BINARY,
        "install": f"cargo install {tools.VIEWER_BINARY}",
        "opens_default_browser": True,
        "default_host": tools.VIEWER_HOST,
        "default_port": tools.VIEWER_PORT,
        "options": list(tools.VIEWER_OPTIONS),
    }
    expect_facts(case, [row])


@table("viewer_behaviours")
def check_behaviours(case: Case) -> None:
    _check_effects(case, ("action", "effect"), tools.VIEWER_ACTIONS)


@table("viewer_lanes")
def check_lanes(case: Case) -> None:
    expect_facts(case, [{"order": n, "lane": lane} for n, lane in enumerate((*MEMORY_LANES, *LANES.values()), 1)])


@table("schedule_json_fields")
def check_fields(case: Case) -> None:
    expect_facts(case, [{"path": path} for path in tools.SCHEDULE_FIELDS])


@table("oracle_tests")
def check_oracle_tests(case: Case) -> None:
    """The tolerance of a boundary, in its columns and in the formula that the row writes out."""
    for row in case["rows"]:
        written = _TOLERANCE.search(row.get("compare", ""))
        if "abs" not in row and written is None:
            continue
        if row["boundary"] not in decoder_step.TOLERANCES:
            raise Mismatch(f"no tolerance of {row['boundary']!r} is known")
        expect_equal(row["boundary"], decoder_step.TOLERANCES[row["boundary"]], (row["abs"], row["rel"]))
        if written is not None:
            expect_equal(f"{row['boundary']}: {row['compare']}", tuple(map(float, written.groups())), (row["abs"], row["rel"]))


_TOLERANCE = re.compile(r"abs diff <= ([\d.]+) \+ ([\d.]+)\*")


@table("named_tests")
def check_named_tests(case: Case) -> None:
    expect_facts(case, [{"test": name} for name in decoder_step.NAMED_TESTS])


@table("engine_choice")
def check_engine_choice(case: Case) -> None:
    """The engine that offers what the work needs; transfers are the movers' and take the engines at both ends of the pipeline."""
    for row in case["rows"]:
        operation = _WORK[spoken_of(row["work"], _WORK)]
        engines = [engine.name for engine in ENGINES if operation in engine.operations]
        named = f"{engines[0]} Engine" if engines else f"DMA, and {ENGINES[0].name}/{ENGINES[-1].name}"
        expect_equal(f"engine of {row['work']}", named, row["engine"])


_WORK = {
    "projection and head contraction": "contract_outer",
    "elementwise, norm, reduction": "vector_init",
    "transfer": "to_dm",
    "type cast": "cast",
    "transpose": "transpose",
}
"""Operations that kinds of work need (XFMR-013)."""

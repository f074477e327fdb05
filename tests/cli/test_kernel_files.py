"""A kernel file that breaks a rule: file, line, operation and column of the break, in every form of the file."""

import json

import pytest

from tcptune.ir.kernels.kernel import Kernel
from tests.cli.in_process import tcptune

COPY = """kernel copy
axes A=2048
chips 1
input x: Hbm bf16 chip=[1] element=[A]
x_dm = to_dm(x, cluster=[1 # 2], slice=[A / 32 # 256], element=[A % 32])
for g in 2 unroll:
  y = main.begin(x_dm)
    .fetch(time=[A % 32 / 16], packet=[A % 16])
    .collect(time=[A % 32 / 16], packet=[A % 16])
    .commit_trim(packet=[A % 16])
    .commit(element=[A % 32])
out = to_hbm(x_dm, chip=[1], element=[A])
output out
"""

BREAKS = {
    "a mapping inside a line": ("slice=[A / 32 # 256]", "slice=[A / 48 # 256]", "MAP-010", 5, "/ 48"),
    "a mapping that shrinks": ("slice=[A / 32 # 256]", "slice=[A / 32 # 7]", "MAP-039", 5, "# 7"),
    "a level of the wrong size": ("slice=[A / 32 # 256]", "slice=[A / 32]", "HW-007", 5, "x_dm = "),
    "an operation of a pass in a loop": (
        "collect(time=[A % 32 / 16], packet=[A % 16])",
        "collect(time=[1], packet=[A % 32])",
        "COLLECT-002",
        9,
        ".collect",
    ),
    "an input": ("chip=[1] element=[A]\nx_dm", "chip=[1 # 3] element=[A]\nx_dm", "HW-008", 4, "input x"),
}


@pytest.mark.parametrize(("old", "new", "rule", "line", "at"), BREAKS.values(), ids=BREAKS.keys())
def test_a_broken_rule_is_shown_at_its_line_and_column(old, new, rule, line, at, tmp_path):
    assert COPY.count(old) == 1
    text = COPY.replace(old, new)
    (tmp_path / "k.visa").write_text(text)
    run = tcptune("run", tmp_path / "k.visa")
    assert run.status == 2
    first, excerpt, caret, *_ = run.err.splitlines()
    assert first.startswith(f"error[{rule}]: {tmp_path / 'k.visa'}: line {line}: ")
    assert excerpt[caret.index("^") :].startswith(at)
    assert f"(column {text.splitlines()[line - 1].index(at) + 1})" in first


def test_an_unknown_tensor_is_shown_at_its_line_with_the_known_ones(tmp_path):
    (tmp_path / "k.visa").write_text(COPY.replace("begin(x_dm)", "begin(x_dn)"))
    run = tcptune("run", tmp_path / "k.visa")
    assert run.status == 2
    assert "line 7: no tensor is called 'x_dn' here" in run.err
    assert "known: x, x_dm" in run.err


@pytest.mark.parametrize(
    ("old", "new", "hint"),
    [
        (".collect(", ".colect(", "did you mean collect?"),
        ("to_hbm(x_dm", "to_hmb(x_dm", "did you mean to_hbm?"),
        ("packet=[A % 16])\n    .commit_trim", "paket=[A % 16])\n    .commit_trim", "did you mean packet? fields: time, packet"),
        ("slice=[A / 32 # 256]", "slise=[A / 32 # 256]", "did you mean slice?"),
    ],
)
def test_a_misspelt_name_is_answered_by_its_neighbour(old, new, hint, tmp_path):
    assert COPY.count(old) == 1
    (tmp_path / "k.visa").write_text(COPY.replace(old, new))
    run = tcptune("run", tmp_path / "k.visa")
    assert run.status == 2
    assert hint in run.err


@pytest.mark.parametrize(
    ("old", "new", "line", "words"),
    [
        ("chips 1", "chip 1", 3, ["no line of a kernel begins with 'chip'", "did you mean chips?"]),
        ("output out", "output outt", 13, ["no tensor is called 'outt'", "known: "]),
        ("output out", 'output out\noracle "einsum a->a | rellu"', 14, ["unknown epilogue 'rellu'", "relu, gelu, silu"]),
        ("output out", 'output out\noracle "einsum q->q"', 14, ["label 'q' is no axis", "axes: A"]),
        ("output out", 'output out\noracle "einsum a->a; einsum a->a"', 14, ["2 forms"]),
    ],
)
def test_a_line_about_the_kernel_as_a_whole_is_shown_with_its_number(old, new, line, words, tmp_path):
    (tmp_path / "k.visa").write_text(COPY.replace(old, new))
    run = tcptune("run", tmp_path / "k.visa")
    assert run.status == 2
    assert f"{tmp_path / 'k.visa'}: line {line}: " in run.err
    assert all(word in run.err for word in words)


def test_an_oracle_of_a_document_is_named_with_its_file(tmp_path):
    document = Kernel.from_text(COPY).to_json() | {"oracle": "einsum a->a | rellu"}
    (tmp_path / "k.json").write_text(json.dumps(document))
    run = tcptune("run", tmp_path / "k.json")
    assert run.status == 2
    assert f"{tmp_path / 'k.json'}: the oracle: unknown epilogue 'rellu'" in run.err


def test_blanks_before_an_equals_sign_are_free(tmp_path):
    (tmp_path / "k.visa").write_text(COPY.replace("x_dm = ", "x_dm   = ").replace("out = ", "out  = "))
    assert tcptune("run", tmp_path / "k.visa").status == 0


def test_a_document_names_the_step_and_the_operation(tmp_path):
    document = Kernel.from_text(COPY).to_json()
    document["steps"][1]["body"][0]["ops"][1]["packet"] = "A % 32"
    (tmp_path / "k.json").write_text(json.dumps(document))
    run = tcptune("run", tmp_path / "k.json")
    assert run.status == 2
    assert f"{tmp_path / 'k.json'}: step 2.1, .collect: " in run.err


def test_a_device_function_is_chosen_in_rust_files_only(tmp_path):
    (tmp_path / "k.visa").write_text(COPY)
    assert tcptune("run", tmp_path / "k.visa", "--function", "copy").status == 2
    assert tcptune("run", tmp_path / "k.visa").status == 0

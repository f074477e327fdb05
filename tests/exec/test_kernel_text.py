"""The text form of kernels: what it looks like, that it loses nothing, and where its errors point."""

import json
from pathlib import Path

import pytest

from tcptune.errors import InputError, ParseError, RuleViolation
from tcptune.exec.library import double_buffer, patterns, perceptron, vector_rows
from tcptune.ir.kernels.kernel import Kernel, Loop, TensorUnit

CORPUS = Path(__file__).parents[1] / "conformance" / "data"
BUILDERS = (
    patterns.constant_add,
    patterns.gemm,
    patterns.fetch_commit,
    double_buffer.rolled,
    double_buffer.unrolled,
    double_buffer.software_pipelined,
    vector_rows.add,
    vector_rows.softmax,
    vector_rows.rmsnorm,
    perceptron.mnist,
)

DOT = """
kernel dot
axes A=64
chips 1
input x: Hbm bf16 element=[A]       # the streamed vector
input y: Hbm bf16 element=[A] fill="A % 5 - 1"

y_dm = to_dm(y, cluster=[1 # 2], slice=[1 # 256], element=[A])
y_trf = sub.begin(y_dm)
  .fetch(time=[1], packet=[A])
  .collect(time=[A / 16], packet=[A % 16])
  .to_trf(lane=[1], element=[A])
for g in 2 unroll:
  part = tile(y_dm, axis=A, len=32, start="32*g", element=[A = 32 # 64])
output y_trf
tolerance form=max rel=0.02 abs=0.5
"""


@pytest.mark.parametrize("build", BUILDERS, ids=lambda b: b.__name__)
def test_a_library_kernel_survives_text_and_json(build):
    kernel = build()
    assert Kernel.from_text(kernel.to_text()) == kernel
    assert Kernel.from_json(json.loads(json.dumps(kernel.to_json()))) == kernel


def _corpus_kernels():
    for file in sorted(CORPUS.glob("*.json")):
        for case in json.loads(file.read_text())["cases"]:
            if case["kind"] == "kernel" and case["expect"]["verdict"] == "accept":
                yield pytest.param(case, id=case["id"])


@pytest.mark.parametrize("case", list(_corpus_kernels()))
def test_a_kernel_of_the_corpus_survives_text(case):
    kernel = Kernel.from_json(case)
    assert Kernel.from_text(kernel.to_text()) == kernel


def test_the_text_is_read_as_written():
    kernel = Kernel.from_text(DOT)
    assert kernel.name == "dot"
    assert [i.name for i in kernel.inputs] == ["x", "y"]
    assert kernel.inputs[1].fill == "A % 5 - 1"
    unit, loop = kernel.steps[1], kernel.steps[2]
    assert isinstance(unit, TensorUnit)
    assert [op.NAME for op in unit.ops] == ["fetch", "collect", "to_trf"]
    assert isinstance(loop, Loop)
    assert loop.unroll and loop.count == 2
    assert loop.body[0].start == "32*g"


def test_one_operation_stands_on_one_line():
    text = patterns.gemm().to_text()
    operations = sum(len(s.ops) for s in patterns.gemm().steps if isinstance(s, TensorUnit))
    assert sum(line.startswith("  .") for line in text.splitlines()) == operations


@pytest.mark.parametrize(
    ("broken", "fixed", "line", "column"),
    [
        ("packet=[A]", "packet=[A", 10, 26),
        ("time=[A / 16]", "time=[A / ]", 11, None),
        ("element=[A])\ny_trf", "element=[A)\ny_trf", 8, None),
        ("to_dm(y,", "to_dm(y cluster", 8, None),
        ("for g in 2 unroll:", "for g in two:", 13, 9),
        ("sub.begin(y_dm)", "sub.start(y_dm)", 9, None),
    ],
)
def test_a_mistake_is_reported_with_line_and_column(broken, fixed, line, column):
    with pytest.raises(ParseError) as caught:
        Kernel.from_text(DOT.replace(broken, fixed, 1))
    assert f"line {line}" in caught.value.message
    if column is not None:
        assert caught.value.column == column


def test_an_unknown_step_and_an_unknown_field_are_refused_by_name():
    with pytest.raises(ParseError, match="unknown step 'to_moon'"):
        Kernel.from_text(DOT.replace("to_dm(y", "to_moon(y"))
    with pytest.raises(ParseError, match="has no field 'speed'"):
        Kernel.from_text(DOT.replace("slice=[1 # 256]", "slice=[1 # 256], speed=[1]"))


def test_a_mapping_that_breaks_a_rule_names_rule_and_line():
    with pytest.raises(RuleViolation) as caught:
        Kernel.from_text(DOT.replace("time=[A / 16]", "time=[A / 7]"))
    assert caught.value.rule == "MAP-010"
    assert "line 11" in caught.value.message


@pytest.mark.parametrize(
    "text",
    [
        "axes A=" + "9" * 5000,
        "y = to_dm(x, a=" + "(" * 5000,
        "".join("  " * i + f"for g{i} in 2:\n" for i in range(2000)),
        "chips " + "9" * 50,
        "x" * 100_000,
        "kernel x\n  y = z",
        "\t\tx",
    ],
)
def test_garbage_is_refused_without_a_traceback(text):
    with pytest.raises(InputError):
        Kernel.from_text(text)


def test_empty_text_and_a_kernel_without_output_are_refused():
    with pytest.raises(InputError):
        Kernel.from_text("  \n")
    with pytest.raises(InputError, match="no output"):
        Kernel.from_text("kernel x\naxes A=8\n")


@pytest.mark.parametrize(
    "document",
    [
        {},
        {"axes": [], "inputs": {}, "steps": [], "output": "x"},
        {"axes": {"A": 8}, "inputs": {}, "steps": 5, "output": "x"},
        {"axes": {"A": 8}, "inputs": {"x": {"type": "Trf"}}, "steps": [], "output": "x"},
        {"axes": {"A": 8}, "inputs": {}, "steps": [{"op": 3}], "output": "x"},
        {"axes": {"A": 8}, "inputs": {}, "steps": [], "output": "x", "tolerance": {"form": "about"}},
        {"axes": {"A": True}, "inputs": {}, "steps": [], "output": "x"},
    ],
)
def test_a_document_of_the_wrong_kind_is_an_input_error(document):
    with pytest.raises(InputError):
        Kernel.from_json(document)

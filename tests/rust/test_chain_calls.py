"""Every operation of the corpus's chains, printed as a Rust call and read back, is the same operation."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tcptune.errors import TcptuneError
from tcptune.exec.rust.stream_calls import CallReader, stream_op
from tcptune.exec.rust.syntax.calls import chain_of, referent
from tcptune.exec.rust.syntax.module import Module
from tcptune.exec.rust.syntax.signatures import STREAM_METHODS
from tcptune.exec.rust.syntax.source import Source
from tcptune.exec.rust.syntax.types import TypeReader
from tcptune.ir.kernels.ops import CommitView, Op, op_from_json
from tcptune.ir.kernels.vector_operands import (
    Branched,
    Comparison,
    Constant,
    Slot,
    StashOperand,
    TagGuard,
    TagMode,
    TernaryOperand,
    VrfOperand,
)
from tcptune.ir.kernels.vector_ops import VectorClip, VectorFilter, VectorFpTernary, VectorFpUnary, VectorFxp, VectorIntraSliceTag
from tcptune.ir.mappings.axes import Axes
from tcptune.ir.types import DType, dtype
from tcptune.reports.rust.chain import ChainWriter
from tcptune.reports.rust.layout import Chain, statement
from tcptune.reports.rust.names import Aliases

CORPUS = Path(__file__).parents[1] / "conformance" / "data"
SKIPPED = ("begin_interleaved",)


def _chains() -> dict[str, tuple[Axes, DType, tuple[Op, ...]]]:
    found = {}
    for file in sorted(CORPUS.glob("*.json")):
        for case in json.loads(file.read_text())["cases"]:
            if case["kind"] != "chain":
                continue
            try:
                axes = Axes(case["axes"])
                ops = tuple(op_from_json(raw, axes) for raw in case["ops"] if raw["op"] not in SKIPPED)
            except TcptuneError:
                continue  # a case whose mapping or operation does not exist
            if not any(isinstance(op, CommitView) for op in ops):
                found[case["id"]] = (axes, dtype(case["start"].get("dtype", "bf16")), ops)
    return found


CHAINS = _chains()


def _round_trip(axes: Axes, element: DType | None, ops: tuple[Op, ...]) -> tuple[Op, ...]:
    aliases = Aliases(set(axes))
    writer = ChainWriter(aliases, lambda name: name, str, lambda name: Chain(name, ()))
    chain = Chain("stream", writer.calls(ops, element))
    names = [f"type {name} = m![{text}];" for text, name in aliases.by_text.items()]
    source = Source("\n".join([*names, "fn f() {", *statement(chain, 4), "}"]))
    module = Module(source, axes)
    for item in source.root.children:
        if item.type == "type_item":
            module.aliases.add(source.text_of(item.child_by_field_name("name")), item, item)
    body = source.root.children[-1].child_by_field_name("body")
    root, links = chain_of(source, body.named_children[0].named_children[0])
    assert source.text_of(root) == "stream"
    reader = CallReader(
        TypeReader(module),
        tensor=lambda node: source.text_of(referent(node)),
        is_sub=lambda node: source.text_of(node) == "&mut device.sub",
        view=lambda node: CommitView(source.text_of(node)),
    )
    return tuple(stream_op(reader, link, None, None) for link in links)


@pytest.mark.parametrize("case", CHAINS)
def test_the_operations_of_a_corpus_chain_survive(case: str) -> None:
    axes, element, ops = CHAINS[case]
    assert [op.to_json() for op in _round_trip(axes, element, ops)] == [op.to_json() for op in ops]


def test_the_corpus_covers_almost_every_method() -> None:
    seen = {op.NAME for _, _, ops in CHAINS.values() for op in ops}
    assert len(STREAM_METHODS.keys() - seen) < 15


ONE_IGNORED = ("One", "Ignore", "Ignore", "Ignore")
OPERATIONS = [
    VectorFxp(fn="AddFxp", operand=Constant(-(2**31))),
    VectorClip(fn="Max", operand=Constant(0.1)),
    VectorClip(fn="Min", operand=Constant(float("-inf"))),
    VectorClip(fn="Max", operand=Constant(1e-08)),
    VectorClip(fn="Max", operand=StashOperand()),
    VectorFxp(fn="MulInt", group0=Constant(10), group1=None),
    VectorFxp(fn="MulInt", group0=None, group1=VrfOperand("w")),
    VectorFpTernary(fn="FmaF", operand=TernaryOperand(Constant(2.0), Constant(-3.5))),
    VectorFpUnary(fn="Exp", group0_apply=True, group1_apply=False),
    VectorFilter(guard=TagGuard.group(1)),
    VectorFilter(guard=TagGuard(ONE_IGNORED, negated=True)),
    VectorIntraSliceTag(
        mode=TagMode("Comparison", (Comparison("Less", 0), Comparison("Equal", 5), Comparison("True"), Comparison("False")))
    ),
    VectorIntraSliceTag(mode=TagMode("AxisToggle", axis="A")),
    VectorFxp(
        fn="AddFxp",
        operand=Branched(
            (
                Slot("imm", TagGuard(ONE_IGNORED), Constant(1000)),
                Slot("imm", TagGuard.group(0), Constant(-7)),
                Slot("rf", TagGuard(), VrfOperand("w")),
            )
        ),
    ),
]


@pytest.mark.parametrize("op", OPERATIONS, ids=lambda op: op.NAME)
def test_an_operation_with_its_operands_survives(op: Op) -> None:
    element = dtype("f32" if "Fp" in type(op).__name__ or isinstance(op, VectorClip) else "i32")
    assert _round_trip(Axes(A=8), element, (op,)) == (op,)

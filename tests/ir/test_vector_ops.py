"""Vector operations read and write the vocabulary of the corpus."""

import json
from pathlib import Path

import pytest

from tcptune.errors import InputError
from tcptune.ir.kernels.ops import OPS, op_from_json
from tcptune.ir.mappings.axes import Axes

CORPUS = Path(__file__).parents[1] / "conformance" / "data" / "vector_engine.json"
CHAINS = [c for c in json.loads(CORPUS.read_text())["cases"] if c["kind"] == "chain"]


def test_every_operation_of_the_corpus_survives_a_round_trip():
    for case in CHAINS:
        axes = Axes(case["axes"])
        for raw in case["ops"]:
            op = op_from_json(raw, axes)
            assert op_from_json(json.loads(json.dumps(op.to_json())), axes) == op


def test_all_methods_of_the_vocabulary_exist():
    names = {f"vector_{n}" for n in ("logic", "fxp", "fp_unary", "fp_binary", "fp_ternary", "fp_div", "clip")}
    zips = {f"vector_{n}_zip" for n in ("logic", "fxp", "fp", "clip")}
    assert {*names, *(f"{n}_with_mode" for n in names), *zips, *(f"{n}_with_mode" for n in zips)} <= set(OPS)


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        ({"op": "vector_clip", "fn": "Max", "operands": 1}, "no field 'operands'"),
        ({"op": "vector_clip", "operand": 1}, "misses the field 'fn'"),
        ({"op": "vector_filter", "guard": "some"}, "no tag guard"),
        ({"op": "vector_filter", "guard": {"matches": "One"}}, "no tag guard"),
        ({"op": "vector_intra_slice_tag", "mode": 3}, "no tag mode"),
        ({"op": "vector_intra_slice_tag", "mode": {"Comparison": [3]}}, "no comparison"),
        ({"op": "vector_intra_slice_tag", "mode": {"Comparison": [["Less", "x"]]}}, "no comparison"),
        ({"op": "vector_fxp", "fn": 3, "operand": 1}, "no name"),
        ({"op": "vector_fxp_to_fp", "int_width": "31"}, "no whole number"),
        ({"op": "vector_fxp", "fn": "AddFxp", "operand": {"branched": 3}}, "no operand"),
        ({"op": "vector_fxp", "fn": "AddFxp", "operand": [1]}, "no operand"),
        ({"op": "vector_fxp", "fn": "AddFxp", "operand": {"branched": [{"slot": "imm"}]}}, "misses the field 'guard'"),
    ],
)
def test_garbage_is_refused_by_name(raw, text):
    with pytest.raises(InputError, match=text):
        op_from_json(raw, Axes(A=8))

"""Random vector chains: every operation is accepted or refused by a rule, and what is accepted computes what the reference computes."""

import json

import numpy as np
import pytest

from tcptune.errors import RuleViolation
from tcptune.exec.conformance.kinds.chain import stream_type, tensor_type
from tcptune.exec.conformance.kinds.chain_values import cells_of, contents
from tcptune.ir.kernels.ops import op_from_json
from tcptune.ir.mappings.axes import Axes
from tcptune.model.mappings.movement import carried_digits
from tcptune.model.pipeline import apply_chain, check_chain
from tcptune.model.rules import all_rules
from tcptune.model.stage import ChainEnv
from tests.model.engines.vector.test_reference import drawn
from tests.reference.vector import VectorReference, project

AXES = {"A": 8, "I": 2, "R": 5, "S": 3, "W": 32}
STARTS = [
    ("[W, R # 8]", "[S, I]", "A"),
    ("[W, S # 8]", "[R # 8, I]", "A % 4 # 8"),
    ("[W, 1 # 8]", "[I, S]", "R # 8"),
    ("[W, 1 # 8]", "R", "A"),
]
GUARDS = ["all", {"group": 0}, {"matches": ["One", "Ignore", "Ignore", "Ignore"]}, {"not_matches": ["Ignore", "One", "Ignore", "Ignore"]}]
FUNCTIONS = {
    "vector_logic": ["BitAnd", "BitOr", "BitXor", "LeftShift", "ArithRightShift"],
    "vector_fxp": ["AddFxp", "SubFxpSat", "MulInt", "MulFxp", "LogicRightShift", "ArithRightShiftRound"],
    "vector_fp_binary": ["AddF", "SubF", "MulF", "DivF"],
    "vector_fp_ternary": ["FmaF"],
    "vector_clip": ["Min", "Max", "AbsMin", "AbsMax", "Add", "AddFxp", "AddFxpSat"],
}


class Fuzzer:
    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)
        self.axes = Axes(AXES)
        slice_, time, packet = STARTS[seed % len(STARTS)]
        self.dtype = self.pick(["i32", "f32"])
        self.case = {
            "axes": AXES,
            "start": {
                "position": "Collect",
                "dtype": self.dtype,
                "chip": "1",
                "cluster": "1 # 2",
                "slice": slice_,
                "time": time,
                "packet": packet,
            },
            "ops": [],
        }
        raw = {"type": "Vrf", "dtype": self.dtype, "chip": "1", "cluster": "1 # 2", "slice": slice_, "element": packet.replace(" # 8", "")}
        self.operands = {"w": tensor_type(raw, self.axes)}
        self.env = ChainEnv("main", self.axes, self.operands)
        self.start = stream_type(self.case["start"], self.axes)
        self.stream = self.start

    def pick(self, choices):
        return choices[self.rng.integers(len(choices))]

    def constant(self):
        is_float = self.stream.dtype.is_float if hasattr(self, "stream") else self.dtype == "f32"
        return float(self.rng.integers(-4, 5)) if is_float else int(self.rng.integers(0, 9))

    def operand(self, ternary):
        kind = self.rng.integers(6)
        base = "w" if kind == 0 else "Stash" if kind == 1 else self.constant()
        value = [base, self.constant()] if ternary else base
        if kind == 5:
            slots = [{"slot": "imm", "guard": self.pick(GUARDS), "value": [1.0, 2.0] if ternary else self.constant()} for _ in range(2)]
            return {"branched": slots}
        return value

    def operation(self):
        name = self.pick([*FUNCTIONS, *FUNCTIONS, "entry", "entry", "shape", "shape", "unary", "convert", "other", "reduce", "zip"])
        if name in FUNCTIONS:
            op = {"op": name, "fn": self.pick(FUNCTIONS[name])}
            if op["fn"] == "MulF":
                op["alu"] = self.pick(["Mul0", "Mul1", "Fma"])
            ternary = name == "vector_fp_ternary"
            if getattr(self.stream.details, "pair", "") == "paired":
                value = [2.0, 3.0] if ternary else self.constant()
                return {**op, "group0": value, "group1": self.pick([None, value])}
            return {**op, "operand": self.operand(ternary)}
        if name == "entry":
            tests = [["Less", self.constant()], ["Equal", self.constant()], ["True"], ["False"]]
            unzip = {"op": "vector_intra_slice_unzip", "axis": "I", "time": str(self.pick(["S", "R # 8", "1"]))}
            return self.pick([{"op": "vector_intra_slice_tag", "mode": self.pick(["Zero", {"Comparison": tests}])}, unzip])
        if name == "shape":
            return self.shape()
        if name == "unary":
            flags = {"group0_apply": True, "group1_apply": False} if getattr(self.stream.details, "pair", "") == "paired" else {}
            return {"op": "vector_fp_unary", "fn": self.pick(["Exp", "Tanh", "Sigmoid", "Erf", "Sin"]), **flags}
        if name == "convert":
            return self.pick(
                [
                    {"op": "vector_fxp_to_fp", "int_width": 31},
                    {"op": "vector_fp_to_fxp", "int_width": 28},
                    {"op": "vector_reinterpret", "to": self.pick(["i32", "f32"])},
                ]
            )
        if name == "zip":
            return self.pick(
                [{"op": "vector_logic_zip", "fn": "BitXor"}, {"op": "vector_clip_zip", "fn": "Max"}, {"op": "vector_fp_zip", "fn": "SubF"}]
            )
        if name == "other":
            return self.pick([{"op": "vector_stash"}, {"op": "vector_final"}, {"op": "vector_fp_div", "operand": 2.0}])
        return self.pick(
            [
                {"op": "vector_intra_slice_reduce", "axis": a, "time": t, "packet": p, "fn": self.pick(["Max", "Min"])}
                for a, t, p in [("R", "I", "A % 4"), ("R", "1", "A % 4"), ("S", "I", "A % 4"), ("I", "S", "A % 4")]
            ]
            + [{"op": "vector_inter_slice_reduce", "slice": "[W, 1 # 8]", "time": str(self.stream.time), "fn": "Max"}]
        )

    def shape(self):
        joint = f"[{self.stream.time}, {self.stream.packet}]"
        size = self.stream.time.size * self.stream.packet.size
        kind = self.rng.integers(4)
        if kind == 0:
            return (
                {"op": "vector_narrow_trim", "packet": f"[{self.stream.packet}] = 4"}
                if self.stream.packet.size > 4
                else {"op": "vector_stash"}
            )
        if kind == 1:
            return {"op": "vector_widen_pad", "packet": f"[{self.stream.packet}] # 8"}
        lanes = 4 if kind == 2 else 8
        if size % lanes:
            return {"op": "vector_stash"}
        return {
            "op": "vector_narrow_split" if kind == 2 else "vector_widen_concat",
            "time": f"{joint} / {lanes}",
            "packet": f"{joint} % {lanes}",
        }

    def grow(self, attempts=60):
        """Adds random operations; the refused ones must name a rule."""
        self.add({"op": "vector_init"})
        for _ in range(attempts):
            if self.stream.position == "VectorFinal":
                break
            op = self.operation()
            try:
                self.add(op)
            except RuleViolation as refusal:
                assert refusal.rule in all_rules(), refusal.rule
                assert refusal.render()
        return self

    def add(self, op):
        after = check_chain(self.stream, [op_from_json(json.loads(json.dumps(op)), self.axes)], self.env).final
        self.case["ops"].append(op)
        self.stream = after


@pytest.mark.parametrize("block", range(6))
def test_random_chains_are_refused_by_rule_or_compute_what_the_reference_computes(block):
    compared = 0
    for seed in range(60 * block, 60 * (block + 1)):
        compared += compare(Fuzzer(seed).grow(), seed)
    assert compared > 100


def compare(fuzzer, seed):
    """Executes the grown chain; returns how many cells were compared."""
    rng = np.random.default_rng(seed)
    case = {**fuzzer.case, "operands": {}}
    if fuzzer.stream.position == "Vector" and fuzzer.stream.details.pair == "paired":
        return 0
    reference = VectorReference(case, None, None)
    numbers = {"i32": rng.integers(-20, 20, 61).astype(np.int32), "f32": rng.integers(-6, 7, 61).astype(np.float32) / 2}[fuzzer.dtype]
    field = drawn(reference.axes, reference.carried[0], numbers)
    register = fuzzer.operands["w"]
    digits = carried_digits(tuple(m for _, m in register.levels))
    held = drawn(reference.axes, digits, numbers[::-1].copy())

    def scalar(number):
        return np.float32(number) if isinstance(number, np.floating) else int(number)

    reference.start = lambda coords: scalar(field(coords))
    reference.registers = lambda name, coords: scalar(held({n: project(coords.get(n, 0), d) for n, d in digits.items()}))
    ops = [op_from_json(raw, fuzzer.axes) for raw in case["ops"]]
    chain = check_chain(fuzzer.start, ops, fuzzer.env)
    result = apply_chain(chain, contents(fuzzer.start, field), {"w": contents(register, held)})
    cells = cells_of(chain.final)
    live = np.argwhere(cells.live & result.defined)
    chosen = live[rng.choice(len(live), min(12, len(live)), replace=False)] if len(live) else []
    with np.errstate(all="ignore"):
        for place in (tuple(p) for p in chosen):
            coords = {n: int(c[place]) for n, c in cells.coords.items()}
            reference.met_nan = False
            want, got = reference.final(coords), result.data[place]
            assert agrees(got, want) or reference.met_nan, (case["ops"], coords, got, want)
    return len(chosen)


def agrees(got, want):
    if isinstance(want, int):
        return int(got) == want
    if np.isnan(want) or np.isnan(got):
        return bool(np.isnan(want) and np.isnan(got))
    return got == want or abs(float(got) - float(want)) <= 4 * float(np.spacing(np.abs(np.float32(want)))) + 1e-6

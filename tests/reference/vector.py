"""Reference for Vector Engine chains: one cell at a time, by coordinates, in Python numbers.

A stream is a function of axis coordinates. Every operation is read from its JSON form and computed for one cell from the cells it needs
of the stream before it; nothing knows flits, lanes, slots or ways. Integers are Python integers, floats are numpy float32 scalars.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from tcptune.ir.mappings.axes import Axes
from tcptune.model.mappings.movement import carried_digits

Coords = dict[str, int]
Number = Any

I32_MIN, I32_MAX = -(2**31), 2**31 - 1
BITWISE = {"BitAnd": lambda a, b: a & b, "BitOr": lambda a, b: a | b, "BitXor": lambda a, b: a ^ b}


def wrap(n: int) -> int:
    return (n + 2**31) % 2**32 - 2**31


def clamp(n: int) -> int:
    return min(max(n, I32_MIN), I32_MAX)


def bits_of(x: Number) -> int:
    return int(np.float32(x).view(np.int32)) if isinstance(x, np.float32) else x


def float_of(bits: int) -> np.float32:
    return np.int32(wrap(bits)).view(np.float32)


def on_bits(function: Callable[[int, int], int]) -> Callable[[Number, Number], Number]:
    return lambda a, b: float_of(function(bits_of(a), bits_of(b)))


def nearest_q31(a: int, b: int) -> int:
    return clamp((a * b + 2**30) // 2**31)


INTEGER: dict[str, Callable[[int, int], int]] = {
    **BITWISE,
    "LeftShift": lambda a, b: wrap(a << b),
    "LogicRightShift": lambda a, b: wrap((a % 2**32) >> b),
    "ArithRightShift": lambda a, b: a >> b,
    "ArithRightShiftRound": lambda a, b: (a + 2 ** (b - 1)) >> b if b else a,
    "LeftShiftSat": lambda a, b: clamp(a << b),
    "AddFxp": lambda a, b: wrap(a + b),
    "AddFxpSat": lambda a, b: clamp(a + b),
    "SubFxp": lambda a, b: wrap(a - b),
    "SubFxpSat": lambda a, b: clamp(a - b),
    "MulInt": lambda a, b: wrap(a * b),
    "MulFxp": nearest_q31,
    "Min": min,
    "Max": max,
    "AbsMin": lambda a, b: a if abs(a) < abs(b) else b,
    "AbsMax": lambda a, b: a if abs(a) > abs(b) else b,
    "Add": lambda a, b: wrap(a + b),
    "AddSat": lambda a, b: clamp(a + b),
}

F = np.float32


def guarded(function: Callable[[float], float]) -> Callable[[Number], np.float32]:
    def compute(x: Number) -> np.float32:
        try:
            return F(function(float(x)))
        except OverflowError:
            return F(math.inf)
        except ValueError:
            return F(math.nan)

    return compute


UNARY: dict[str, Callable[[Number], np.float32]] = {
    "Exp": guarded(math.exp),
    "NegExp": guarded(lambda x: math.exp(-x)),
    "Sqrt": guarded(math.sqrt),
    "Tanh": guarded(math.tanh),
    "Sigmoid": guarded(lambda x: 0.0 if x < -700 else 1 / (1 + math.exp(-x))),
    "Erf": guarded(math.erf),
    "Log": guarded(lambda x: math.log(x) if x != 0 else -math.inf),
    "Sin": guarded(math.sin),
    "Cos": guarded(math.cos),
}


def ignoring_nan(function: Callable[[Number, Number], Number]) -> Callable[[Number, Number], Number]:
    return lambda a, b: b if math.isnan(a) else a if math.isnan(b) else function(a, b)


def with_zero_sign(x: Number) -> tuple[Number, float]:
    return x, math.copysign(1, x)


def divide(a: Number, b: Number) -> np.float32:
    with np.errstate(all="ignore"):
        return F(a) / F(b)


FLOATING: dict[str, Callable[..., Number]] = {
    **{name: on_bits(function) for name, function in BITWISE.items()},
    "AddF": lambda a, b: F(a) + F(b),
    "SubF": lambda a, b: F(a) - F(b),
    "MulF": lambda a, b: F(a) * F(b),
    "DivF": divide,
    "FmaF": lambda a, b, c: F(np.longdouble(a) * np.longdouble(b) + np.longdouble(c)),
    "Min": ignoring_nan(lambda a, b: min(a, b, key=with_zero_sign)),
    "Max": ignoring_nan(lambda a, b: max(a, b, key=with_zero_sign)),
    "AbsMin": ignoring_nan(lambda a, b: a if abs(a) < abs(b) else b),
    "AbsMax": ignoring_nan(lambda a, b: a if abs(a) > abs(b) else b),
    "Add": lambda a, b: F(a) + F(b),
    "Mul": lambda a, b: F(a) * F(b),
}

IDENTITY: dict[tuple[str, str], Number] = {
    **{("i32", fn): identity for fn, identity in (("Add", 0), ("AddSat", 0), ("Max", I32_MIN), ("Min", I32_MAX))},
    **{("f32", fn): F(identity) for fn, identity in (("Add", 0), ("Max", -math.inf), ("Min", math.inf), ("Mul", 1))},
}

STREAM_MODES = {"0": "stream", "1": "operand", "2": "operand1"}


def project(coordinate: int, digits: tuple[tuple[int, int], ...]) -> int:
    return sum(coordinate // weight % extent * weight for weight, extent in digits)


class VectorReference:
    """Cells of a chain's stages.

    Args:
        case: a chain case: ``start``, ``operands``, ``ops``, ``axes``.
        start: value of a start cell by its coordinates.
        registers: value of a register tensor's cell by name and coordinates.

    Attributes:
        met_nan: whether some cell on the way was NaN, whose sign and payload no rule fixes.
    """

    def __init__(self, case: dict[str, Any], start: Callable[[Coords], Number], registers: Callable[[str, Coords], Number]) -> None:
        self.axes = Axes(case["axes"])
        self.ops = case["ops"]
        self.start = start
        self.met_nan = False
        self.registers = registers
        levels = [self.axes.mapping(case["start"][n]) for n in ("chip", "cluster", "slice", "time", "packet")]
        self.carried = [carried_digits(tuple(levels))]
        self.dtypes = [case["start"]["dtype"]]
        for op in self.ops:
            for name in ("slice", "time", "packet"):
                if name in op:
                    levels[2 + ("slice", "time", "packet").index(name)] = self.axes.mapping(op[name])
            self.carried.append(carried_digits(tuple(levels)))
            after = {"vector_fxp_to_fp": "f32", "vector_fp_to_fxp": "i32", "vector_reinterpret": op.get("to")}.get(op["op"])
            self.dtypes.append(after or self.dtypes[-1])

    def final(self, coords: Coords) -> Number:
        """The result's cell."""
        return self.at(len(self.ops), coords, None)

    def at(self, k: int, coords: Coords, group: int | None) -> Number:
        """The cell after the first `k` operations; of one group where the stream is a pair."""
        value = self._at(k, coords, group)
        self.met_nan = self.met_nan or (isinstance(value, np.floating) and bool(np.isnan(value)))
        return value

    def _at(self, k: int, coords: Coords, group: int | None) -> Number:
        digits = self.carried[k]
        if k == 0:
            return self.start({n: project(c, digits[n]) for n, c in coords.items() if n in digits})
        op, name = self.ops[k - 1], self.ops[k - 1]["op"]
        if name == "vector_intra_slice_unzip":
            return self.at(k - 1, {**coords, op["axis"]: group or 0}, None)
        if "_zip" in name:
            return self._zip(k, op, coords)
        if name in ("vector_intra_slice_reduce", "vector_inter_slice_reduce"):
            return self._reduce(k, op, coords)
        before = self.at(k - 1, coords, group)
        if name == "vector_fxp_to_fp":
            return F(before * 2.0 ** (op["int_width"] - 31))
        if name == "vector_fp_to_fxp":
            scaled = float(before) * 2.0 ** (31 - op["int_width"])
            if not math.isfinite(scaled):
                return I32_MAX if math.copysign(1, scaled) > 0 else I32_MIN
            return clamp(int(math.copysign(math.floor(abs(scaled) + 0.5), scaled)))
        if name == "vector_reinterpret":
            return bits_of(before) if op["to"] == "i32" else (before if isinstance(before, np.float32) else float_of(before))
        if "fn" not in op and not name.startswith("vector_fp_div"):
            return before
        return self._compute(k, op, coords, group, before)

    def _function(self, k: int, fn: str) -> Callable[..., Number]:
        return (INTEGER if self.dtypes[k - 1] == "i32" else FLOATING)[fn]

    def _compute(self, k: int, op: dict[str, Any], coords: Coords, group: int | None, stream: Number) -> Number:
        name = op["op"]
        if name.startswith("vector_fp_unary"):
            return UNARY[op["fn"]](stream) if group is None or op[f"group{group}_apply"] else stream
        operand = op["operand"] if group is None else op.get(f"group{group}")
        if operand is None:
            return stream
        if isinstance(operand, dict):
            operand = self._slot(k, operand["branched"], coords)
            if operand is None:
                return stream
        first, second = operand if isinstance(operand, list) else (operand, None)
        values = {"stream": stream, "operand": self._operand(k, first, coords), "operand1": self._operand(k, second, coords)}
        mode = op.get("mode", "Mode012" if second is not None else "Mode01").removeprefix("Mode")
        return self._function(k, op.get("fn", "DivF"))(*(values[STREAM_MODES[digit]] for digit in mode))

    def _slot(self, k: int, slots: list[dict[str, Any]], coords: Coords) -> Any:
        tag = self._tag(k, coords)
        bits = [tag >> i & 1 for i in range(4)]
        for slot in slots:
            guard = slot["guard"]
            if guard == "all":
                return slot["value"]
            ((kind, pattern),) = guard.items()
            if kind == "group":
                admits = bits[3] == pattern
            else:
                admits = all(p == "Ignore" or bit == (p == "One") for p, bit in zip(pattern, bits, strict=True)) == (kind == "matches")
            if admits:
                return slot["value"]
        return None

    def _tag(self, k: int, coords: Coords) -> int:
        entry = max((i for i in range(k) if self.ops[i]["op"] == "vector_intra_slice_tag"), default=None)
        mode = "Zero" if entry is None else self.ops[entry]["mode"]
        if mode == "Zero":
            return 0
        x = self.at(entry, coords, None)
        tag = 0
        for bit, (test, *boundary) in enumerate(mode["Comparison"]):
            b = boundary[0] if boundary else 0
            holds = {
                "Equal": x == b,
                "Less": x < b,
                "Greater": x > b,
                "LessUnsigned": bits_of(x) % 2**32 < bits_of(b if isinstance(b, int) else F(b)) % 2**32,
                "GreaterUnsigned": bits_of(x) % 2**32 > bits_of(b if isinstance(b, int) else F(b)) % 2**32,
                "True": True,
                "False": False,
            }[test]
            tag |= holds << bit
        return tag

    def _operand(self, k: int, operand: Any, coords: Coords) -> Number:
        if operand is None or isinstance(operand, int):
            return operand
        if isinstance(operand, float):
            return F(operand)
        if operand == "Stash":
            return self.at(max(i for i in range(k) if self.ops[i]["op"] == "vector_stash"), coords, None)
        return self.registers(operand, coords)

    def _zip(self, k: int, op: dict[str, Any], coords: Coords) -> Number:
        groups = [self.at(k - 1, coords, g) for g in (0, 1)]
        mode = op.get("mode", "Mode01").removeprefix("Mode")
        return self._function(k, op["fn"])(*(groups[int(digit)] for digit in mode))

    def _reduce(self, k: int, op: dict[str, Any], coords: Coords) -> Number:
        """Folds over every coordinate whose digits agree with the result's cell; order does not matter for the values that tests use."""
        before, after = self.carried[k - 1], self.carried[k]
        gone = [n for n, digits in before.items() if after.get(n) != digits]
        total = IDENTITY[self.dtypes[k - 1], op["fn"]]
        for point in itertools.product(*(range(self.axes[n]) for n in gone)):
            cell = dict(zip(gone, point, strict=True))
            if any(project(c, after.get(n, ())) != project(coords.get(n, 0), after.get(n, ())) for n, c in cell.items()):
                continue
            if any(project(c, before[n]) != c for n, c in cell.items()):
                continue
            value = self.at(k - 1, {**coords, **cell}, None)
            total = self._function(k, op["fn"])(total, value)
        return total

"""Constant expressions: what Rust computes while it compiles a kernel, in integers, `f32` and booleans.

Literals, `const` items, `NAME::SIZE`, `f32::…`, arithmetic, comparisons, casts, methods of numbers, `if` and calls of small `const fn`.
Arithmetic on floating-point numbers rounds to `f32` after every operation, as the compiler does, unless an `f64` takes part.
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable
from collections.abc import Mapping as Dict
from dataclasses import dataclass, replace

import numpy as np
from tree_sitter import Node

from tcptune.exec.rust.syntax.calls import arguments_of, callee, path_of, referent
from tcptune.exec.rust.syntax.module import Module, integer_literal
from tcptune.exec.rust.syntax.source import Source

Number = int | float | bool

_FLOAT = re.compile(r"([0-9][0-9_]*(?:\.[0-9_]*)?(?:[eE][+-]?[0-9_]+)?)_?(f32|f64)?\Z")
FLOAT_CONSTANTS = {
    "INFINITY": float("inf"),
    "NEG_INFINITY": float("-inf"),
    "NAN": float("nan"),
    "MAX": 3.4028234663852886e38,
    "MIN": -3.4028234663852886e38,
    "MIN_POSITIVE": 1.1754943508222875e-38,
    "EPSILON": 1.1920928955078125e-07,
}
"""Associated constants of `f32`."""

NAMED_FLOATS = {
    "PI": math.pi,
    "TAU": math.tau,
    "E": math.e,
    "LN_2": math.log(2),
    "LN_10": math.log(10),
    "LOG2_E": math.log2(math.e),
    "LOG10_E": math.log10(math.e),
    "SQRT_2": math.sqrt(2),
    "FRAC_1_SQRT_2": math.sqrt(0.5),
    "FRAC_1_PI": 1 / math.pi,
    "FRAC_2_PI": 2 / math.pi,
    "FRAC_2_SQRT_PI": 2 / math.sqrt(math.pi),
    "FRAC_PI_2": math.pi / 2,
}
"""Constants of `std::f32::consts`."""

INTEGER_CONSTANTS = {"i32": {"MAX": 2**31 - 1, "MIN": -(2**31)}, "u32": {"MAX": 2**32 - 1, "MIN": 0}}
"""Associated constants of the integer types that operands have."""

LARGEST_INTEGER = 2**64
"""No integer type that a kernel uses reaches further; larger results are no constants."""

_INTEGER_TYPES = ("usize", "isize", "u8", "u16", "u32", "u64", "i8", "i16", "i32", "i64")
_COMPARISONS: Dict[str, Callable[[Number, Number], bool]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_INTEGER_OPERATORS: Dict[str, Callable[[int, int], int | None]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": lambda a, b: None if b == 0 else abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1),
    "%": lambda a, b: None if b == 0 else abs(a) % abs(b) * (-1 if a < 0 else 1),
    "<<": lambda a, b: a << b if 0 <= b < 64 else None,
    ">>": lambda a, b: a >> b if 0 <= b < 64 else None,
    "&": operator.and_,
    "|": operator.or_,
    "^": operator.xor,
}
_FLOAT_OPERATORS: Dict[str, Callable[[np.floating, np.floating], np.floating]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "%": np.fmod,
}
_FLOAT_METHODS: Dict[str, Callable[..., np.floating]] = {
    "sqrt": np.sqrt,
    "recip": lambda a: type(a)(1) / a,
    "abs": np.abs,
    "exp": np.exp,
    "exp2": np.exp2,
    "ln": np.log,
    "log2": np.log2,
    "log10": np.log10,
    "floor": np.floor,
    "ceil": np.ceil,
    "powi": np.power,
    "powf": np.power,
    "min": np.minimum,
    "max": np.maximum,
}
_INTEGER_METHODS: Dict[str, Callable[..., Number | None]] = {
    "pow": lambda a, b: a**b if 0 <= b <= 64 else None,
    "min": min,
    "max": max,
    "abs": abs,
    "div_ceil": lambda a, b: None if b == 0 else -(-a // b),
    "next_multiple_of": lambda a, b: None if b == 0 else -(-a // b) * b,
    "next_power_of_two": lambda a: 1 << max(a - 1, 0).bit_length(),
    "is_power_of_two": lambda a: a > 0 and a & (a - 1) == 0,
    "ilog2": lambda a: a.bit_length() - 1 if a > 0 else None,
    "trailing_zeros": lambda a: (a & -a).bit_length() - 1 if a > 0 else None,
}


def _nothing(_: str) -> Number | None:
    return None


@dataclass(frozen=True)
class Constants:
    """Reads constant expressions at a place of a file.

    Attributes:
        size_of: the number `NAME::SIZE` at a byte offset, None where NAME is neither axis nor mapping.
        variable: the value of a variable whose value is known, None for others.
        double: whether numbers without a suffix are `f64`.
        open_names: constants and functions that are being evaluated; one that needs itself has no value.
    """

    module: Module
    size_of: Callable[[str, int], int | None]
    variable: Callable[[str], Number | None] = _nothing
    double: bool = False
    open_names: tuple[str, ...] = ()

    @property
    def source(self) -> Source:
        return self.module.source

    def value(self, node: Node) -> Number | None:
        """Value of an expression; None if it is not constant."""
        node = referent(node)
        found = self._value(node)
        return None if isinstance(found, int) and abs(found) > LARGEST_INTEGER else found

    def _value(self, node: Node) -> Number | None:
        if node.type in ("integer_literal", "float_literal"):
            return _literal(self.source.text_of(node))
        if node.type == "boolean_literal":
            return self.source.text_of(node) == "true"
        if node.type == "unary_expression":
            return self._unary(node)
        if node.type == "binary_expression":
            return self._binary(node)
        if node.type == "type_cast_expression":
            return self._cast(node)
        if node.type == "if_expression":
            return self._if(node)
        if node.type in ("block", "const_block", "else_clause"):
            inner = [c for c in node.named_children if c.type not in ("line_comment", "block_comment")]
            return self.value(inner[0]) if len(inner) == 1 else None
        if node.type == "call_expression":
            return self._call(node)
        return self._named(node)

    def _named(self, node: Node) -> Number | None:
        path = path_of(self.source, node)
        if len(path) == 1:
            known = self.variable(path[0])
            return self.item(path[0], node.start_byte) if known is None else known
        if len(path) < 2:
            return None
        head, name = path[-2:]
        if name == "SIZE" and len(path) == 2:
            return self.size_of(head, node.start_byte)
        if head == "consts":
            return NAMED_FLOATS.get(name)
        if head == "f32":
            return FLOAT_CONSTANTS.get(name)
        if head in INTEGER_CONSTANTS:
            return INTEGER_CONSTANTS[head].get(name)
        return self.item(name, node.start_byte)

    def item(self, name: str, at: int) -> Number | None:
        """Value of the `const` item that `name` means at a byte offset."""
        node = self.module.constants.find(name, at)
        value = node.child_by_field_name("value") if node is not None else None
        if node is None or value is None or name in self.open_names:
            return None
        kind = node.child_by_field_name("type")
        double = kind is not None and self.source.text_of(kind) == "f64"
        return replace(self, variable=_nothing, double=double, open_names=(*self.open_names, name)).value(value)

    def _unary(self, node: Node) -> Number | None:
        inner = self.value(node.named_children[-1])
        sign = self.source.text_of(node)[0]
        if sign == "!" and isinstance(inner, bool):
            return not inner
        return -inner if sign == "-" and inner is not None and not isinstance(inner, bool) else None

    def _binary(self, node: Node) -> Number | None:
        left_node, right_node, sign_node = (node.child_by_field_name(f) for f in ("left", "right", "operator"))
        if left_node is None or right_node is None or sign_node is None:
            return None
        left, sign = self.value(left_node), self.source.text_of(sign_node)
        if left is None:
            return None
        if sign in ("&&", "||") and isinstance(left, bool):
            return self.value(right_node) if left == (sign == "&&") else left
        right = self.value(right_node)
        if right is None or isinstance(left, bool) != isinstance(right, bool):
            return None
        if sign in _COMPARISONS:
            return _COMPARISONS[sign](left, right)
        if isinstance(left, bool):
            return None
        if isinstance(left, int) and isinstance(right, int):
            compute = _INTEGER_OPERATORS.get(sign)
            return None if compute is None else compute(left, right)
        if isinstance(left, int) or isinstance(right, int) or sign not in _FLOAT_OPERATORS:
            return None
        return self._rounded(_FLOAT_OPERATORS[sign], node, left, right)

    def _rounded(self, compute: Callable[..., np.floating], node: Node, *operands: float) -> float:
        kind = np.float64 if self.double or "f64" in self.source.text_of(node) else np.float32
        with np.errstate(all="ignore"):
            return float(compute(*(kind(operand) for operand in operands)))

    def _cast(self, node: Node) -> Number | None:
        value_node, type_node = node.child_by_field_name("value"), node.child_by_field_name("type")
        value = self.value(value_node) if value_node is not None else None
        kind = self.source.text_of(type_node) if type_node is not None else ""
        if value is None:
            return None
        if kind in _INTEGER_TYPES:
            return int(value) if isinstance(value, int) or math.isfinite(value) else None
        return float(np.float32(value)) if kind == "f32" else float(value) if kind == "f64" else None

    def _if(self, node: Node) -> Number | None:
        branch = self.branch(node)
        return None if branch is None else self.value(branch)

    def branch(self, node: Node) -> Node | None:
        """The branch of an `if` that is taken (an `else` clause, or the block); None if that is not constant or nothing is taken."""
        condition, consequence, otherwise = (node.child_by_field_name(f) for f in ("condition", "consequence", "alternative"))
        truth = self.value(condition) if condition is not None else None
        return None if not isinstance(truth, bool) else consequence if truth else otherwise

    def _call(self, node: Node) -> Number | None:
        function, _ = callee(node)
        if function is None:
            return None
        if function.type == "field_expression":
            return self._method(node, function)
        path = path_of(self.source, function)
        values = [self.value(argument) for argument in arguments_of(node)]
        if len(path) == 2 and path == ("f32", "from_bits") and len(values) == 1 and isinstance(values[0], int):
            return float(np.uint32(values[0] % 2**32).view(np.float32))
        if not path or None in values or path[-1] in self.open_names:
            return None
        declared = self.module.functions.find(path[-1], node.start_byte)
        body = declared.node.child_by_field_name("body") if declared is not None else None
        names = declared.node.child_by_field_name("parameters") if declared is not None else None
        if body is None or names is None:
            return None
        patterns = [p.child_by_field_name("pattern") for p in names.named_children if p.type == "parameter"]
        bound = {self.source.text_of(p): v for p, v in zip(patterns, values, strict=False) if p is not None}
        if len(bound) != len(values):
            return None
        return replace(self, variable=bound.get, open_names=(*self.open_names, path[-1])).value(body)

    def _method(self, node: Node, function: Node) -> Number | None:
        receiver, field = function.child_by_field_name("value"), function.child_by_field_name("field")
        value = self.value(receiver) if receiver is not None else None
        name = self.source.text_of(field) if field is not None else ""
        values = [self.value(argument) for argument in arguments_of(node)]
        if value is None or None in values or isinstance(value, bool):
            return None
        operands = [value, *(v for v in values if v is not None)]
        try:
            if isinstance(value, int):
                compute = _INTEGER_METHODS.get(name)
                return None if compute is None or not all(isinstance(o, int) for o in operands) else compute(*operands)
            method = _FLOAT_METHODS.get(name)
            return None if method is None else self._rounded(method, node, *operands)
        except TypeError:  # the wrong number of arguments
            return None


def _literal(text: str) -> Number | None:
    number = integer_literal(text)
    if number is not None:
        return number
    match = _FLOAT.match(text)
    return None if match is None else float(match[1].replace("_", ""))

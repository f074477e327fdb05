"""Arithmetic of the Vector Engine against Python integers, exact fractions and the mathematical functions."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tcptune.errors import RuleViolation
from tcptune.ir.types import dtype
from tcptune.model.engines.vector.alus import FUNCTIONS, POOLS, find_function
from tcptune.model.numerics import vector as nv
from tests.reference.vector import INTEGER

I32 = st.integers(-(2**31), 2**31 - 1)
F32 = st.floats(width=32, allow_nan=False, allow_infinity=False)
BINARY_I32 = [f for f in FUNCTIONS.values() if f.dtype == "i32" and f.arity == 2]


def one(value, dt=np.int32):
    return np.array([value], dt)


@pytest.mark.parametrize("function", BINARY_I32, ids=[f"{f.cluster}.{f.name}" for f in BINARY_I32])
@given(a=I32, b=I32)
def test_integer_functions_follow_integer_arithmetic(function, a, b):
    b = b % 32 if function.is_shift else b
    assert function.compute(one(a), one(b))[0] == INTEGER[function.name](a, b)


def test_the_extremes_of_fixed_point_multiplication_and_magnitude():
    low, high = -(2**31), 2**31 - 1
    assert nv.multiply_q31(one(low), one(low))[0] == high
    assert nv.multiply_q31(one(2**30), one(3))[0] == 2
    assert nv.larger_magnitude_i32(one(low), one(high))[0] == low
    assert nv.smaller_magnitude_i32(one(3), one(-3))[0] == -3


def nearest_f32(exact: Fraction) -> np.float32:
    with np.errstate(over="ignore"):
        guess = np.float32(float(exact))
    with np.errstate(over="ignore"):
        near = [np.nextafter(guess, np.float32(-np.inf)), guess, np.nextafter(guess, np.float32(np.inf))]
    finite = [x for x in near if np.isfinite(x)]
    return min(finite, key=lambda x: (abs(Fraction(float(x)) - exact), int(np.float32(x).view(np.uint32)) & 1))


@given(a=F32, b=F32, c=F32)
def test_fused_multiply_add_rounds_once(a, b, c):
    exact = Fraction(a) * Fraction(b) + Fraction(c)
    got = nv.fused_multiply_add(one(a, np.float32), one(b, np.float32), one(c, np.float32))[0]
    if abs(exact) > Fraction(float(np.finfo(np.float32).max)):
        assert abs(got) >= np.finfo(np.float32).max
    else:
        assert got == nearest_f32(exact)


def test_fused_multiply_add_where_two_roundings_would_differ():
    a, b = np.float32(1 + 2**-23), np.float32(1 + 2**-23)
    c = np.float32(-1 - 2**-22)
    assert nv.fused_multiply_add(one(a, np.float32), one(b, np.float32), one(c, np.float32))[0] == np.float32(2**-46)


EXACT = {
    "Exp": math.exp,
    "NegExp": lambda x: math.exp(-x),
    "Sqrt": math.sqrt,
    "Tanh": math.tanh,
    "Sigmoid": lambda x: 1 / (1 + math.exp(-x)),
    "Erf": math.erf,
    "Log": math.log,
    "Sin": math.sin,
    "Cos": math.cos,
}


@pytest.mark.parametrize("name", EXACT)
@given(x=st.floats(-80, 80, width=32))
def test_transcendental_functions_are_within_one_unit_in_the_last_place(name, x):
    if name in ("Sqrt", "Log") and x <= 0:
        x = abs(x) + 1e-3
    x = float(np.float32(x))
    got = FUNCTIONS["Float", "f32", name].compute(one(x, np.float32))[0]
    want = np.float32(EXACT[name](x))
    assert abs(float(got) - float(want)) <= float(np.spacing(np.abs(want)))


@pytest.mark.parametrize(
    ("name", "x", "want"),
    [
        ("Exp", 1e4, np.inf),
        ("Exp", -1e4, 0.0),
        ("Sigmoid", -1e4, 0.0),
        ("Sigmoid", 1e4, 1.0),
        ("Log", 0.0, -np.inf),
        ("Log", -1.0, np.nan),
        ("Sqrt", -1.0, np.nan),
        ("Tanh", np.inf, 1.0),
    ],
)
def test_functions_at_the_ends_of_their_range(name, x, want):
    got = FUNCTIONS["Float", "f32", name].compute(one(x, np.float32))[0]
    assert got == want or (np.isnan(got) and np.isnan(want))


@given(a=F32, b=F32)
def test_minimum_and_maximum_of_floats(a, b):
    a32, b32 = one(a, np.float32), one(b, np.float32)
    assert nv.minimum_f32(a32, b32)[0] == min(a32[0], b32[0])
    assert nv.maximum_f32(a32, b32)[0] == max(a32[0], b32[0])
    assert nv.maximum_f32(one(np.nan, np.float32), b32)[0] == b32[0]
    assert nv.minimum_f32(a32, one(np.nan, np.float32))[0] == a32[0]


def test_zero_signs_are_ordered():
    zeros = np.array([0.0, -0.0], np.float32)
    assert not np.signbit(nv.maximum_f32(zeros, zeros[::-1])).any()
    assert np.signbit(nv.minimum_f32(zeros, zeros[::-1])).all()


@given(x=I32, width=st.integers(0, 31))
def test_fixed_to_float_is_the_nearest_float(x, width):
    assert nv.fixed_to_float(one(x), width)[0] == nearest_f32(Fraction(x) * Fraction(2) ** (width - 31))


@given(x=F32, width=st.integers(0, 31))
def test_float_to_fixed_is_the_nearest_integer_with_ties_away_from_zero(x, width):
    scaled = Fraction(x) * 2 ** (31 - width)
    away = math.floor(abs(scaled) + Fraction(1, 2)) * (1 if scaled >= 0 else -1)
    assert nv.float_to_fixed(one(x, np.float32), width)[0] == min(max(away, -(2**31)), 2**31 - 1)


def test_every_function_runs_on_an_alu_of_its_cluster():
    assert all(f.alu in POOLS[f.cluster] for f in FUNCTIONS.values())
    assert {f.alu for f in FUNCTIONS.values()} == {a for cluster, pool in POOLS.items() if cluster != "IntraSliceReduce" for a in pool}


@pytest.mark.parametrize(
    ("cluster", "dt", "name", "arity", "rule"),
    [
        ("Logic", "i32", "Not", 2, "ALU-010"),
        ("Logic", "f32", "LeftShift", 2, "ALU-011"),
        ("Fxp", "i32", "DivInt", 2, "ALU-020"),
        ("Float", "f32", "Gelu", 1, "ALU-030"),
        ("Float", "f32", "MulF", 2, "ALU-031"),
        ("Float", "f32", "Exp", 2, "ALU-031"),
        ("Float", "f32", "AddF", 3, "ALU-032"),
        ("Clip", "i32", "Add", 2, "ALU-050"),
        ("Clip", "f32", "AddFxp", 2, "ALU-051"),
    ],
)
def test_a_function_that_the_cluster_lacks_is_refused_with_those_it_has(cluster, dt, name, arity, rule):
    with pytest.raises(RuleViolation) as caught:
        find_function(cluster, dtype(dt), name, arity)
    assert caught.value.rule == rule
    assert "," in caught.value.expected or arity == 3


@pytest.mark.parametrize("multiplier", ["Mul2", "Fma)"])
def test_only_mulf_takes_a_multiplier_and_only_an_existing_one(multiplier):
    with pytest.raises(RuleViolation, match="no binary function"):
        find_function("Float", dtype("f32"), "MulF", 2, multiplier)
    with pytest.raises(RuleViolation, match="no binary function"):
        find_function("Float", dtype("f32"), "AddF", 2, "Mul0")

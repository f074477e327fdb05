"""The Fetch Adapter: which conversions exist, and their values by the formats' definitions."""

import math

import ml_dtypes
import numpy as np
import pytest

from tcptune.ir.mappings.axes import Axes
from tcptune.ir.types import dtype
from tcptune.model.engines import fetch_adapter
from tcptune.model.pipeline import apply_chain
from tcptune.model.values import Values
from tests.model.chains import refused, run, stream

AX = Axes(A=16)
NAMES = ("i4", "i8", "i16", "i32", "f4e2m1", "f8e4m3", "f8e5m2", "bf16", "f32")
LOOKUPS = {("f4e2m1", "f8e4m3"), ("f4e2m1", "f8e5m2"), ("f8e4m3", "bf16"), ("f8e5m2", "bf16")}
CASTS = {("i4", "i32"), ("i8", "i32"), ("i16", "i32"), ("f8e4m3", "f32"), ("f8e5m2", "f32"), ("bf16", "f32"), ("f32", "bf16")}
ZERO_POINTS = {("i4", "i5"), ("i8", "i9")}


def one_op(name, source, target, **more):
    return stream(AX, source, slice="1 # 64", packet="A"), {"op": name, "dtype": target, **more}


@pytest.mark.parametrize("source", NAMES)
@pytest.mark.parametrize("target", (*NAMES, "i5", "i9"))
def test_exactly_the_listed_conversions_exist(source, target):
    for name, legal, more in (
        ("fetch_table_lookup", LOOKUPS, {}),
        ("fetch_cast", CASTS, {}),
        ("fetch_zero_point_sub", ZERO_POINTS, {"zero_point": 0}),
    ):
        start, op = one_op(name, source, target, **more)
        if (source, target) in legal:
            final = run(start, AX, op).final
            assert (final.dtype.name, final.packet) == (target, start.packet)
        else:
            assert refused(start, AX, op).rule in ("FA-002", "FA-007", "FA-008", "FA-011")


def test_a_cast_that_belongs_to_another_engine_names_it():
    assert refused(*with_axes("fetch_cast", "f8e4m3", "bf16")).nearest == "fetch_table_lookup"
    assert "Cast" in refused(*with_axes("fetch_cast", "f32", "f8e4m3")).nearest
    assert refused(*with_axes("fetch_cast", "i8", "i9")).nearest == "fetch_zero_point_sub"


def with_axes(name, source, target):
    start, op = one_op(name, source, target)
    return start, AX, op


def test_lookup_is_refused_on_sub_and_named_by_its_rule():
    start, op = one_op("fetch_table_lookup", "f4e2m1", "f8e4m3")
    assert refused(start, AX, op, context="sub").rule == "FA-003"


@pytest.mark.parametrize(
    ("ops", "accepted"),
    [
        (["fetch_table_lookup:f8e4m3", "fetch_cast:f32"], True),
        (["fetch_cast:f32", "fetch_table_lookup:bf16"], False),
        (["fetch_table_lookup:f8e4m3", "fetch_table_lookup:bf16"], False),
    ],
)
def test_stages_come_in_hardware_order_and_at_most_once(ops, accepted):
    source = "f4e2m1" if ops[0].startswith("fetch_table") else "f8e4m3"
    start = stream(AX, source, slice="1 # 64", packet="A")
    raw = [{"op": name, "dtype": target} for name, target in (op.split(":") for op in ops)]
    if accepted:
        assert run(start, AX, *raw).final.dtype.name == "f32"
    else:
        assert refused(start, AX, *raw).rule == "FA-001"


@pytest.mark.parametrize(("source", "low", "high"), [("i4", -8, 7), ("i8", -128, 127)])
def test_zero_points_lie_in_the_range_of_their_type(source, low, high):
    target = dict(ZERO_POINTS)[source]
    for zero_point, legal in ((low, True), (high, True), (low - 1, False), (high + 1, False)):
        start, op = one_op("fetch_zero_point_sub", source, target, zero_point=zero_point)
        if legal:
            run(start, AX, op)
        else:
            error = refused(start, AX, op)
            assert (error.rule, error.nearest) == ("FA-012", min(max(zero_point, low), high))


def test_every_residual_fits_the_extra_bit():
    for source, bits in (("i4", 5), ("i8", 9)):
        low, high = fetch_adapter.residual_range(dtype(source))
        assert -(2 ** (bits - 1)) <= low
        assert high < 2 ** (bits - 1)


def e2m1(code: int) -> float:
    """Format definition: sign, two exponent bits (bias 1), one mantissa bit."""
    exponent, mantissa = code >> 1 & 3, code & 1
    magnitude = mantissa / 2 if exponent == 0 else 2.0 ** (exponent - 1) * (1 + mantissa / 2)
    return math.copysign(magnitude, -1 if code >> 3 else 1)


@pytest.mark.parametrize(("target", "storage"), [("f8e4m3", ml_dtypes.float8_e4m3fn), ("f8e5m2", ml_dtypes.float8_e5m2)])
def test_the_16_codes_of_e2m1_decode_to_the_formats_values(target, storage):
    start, op = one_op("fetch_table_lookup", "f4e2m1", target)
    codes = np.arange(16, dtype=np.uint8).view(ml_dtypes.float4_e2m1fn)
    data = np.broadcast_to(codes, (1, 2, 64, 1, 16)).copy()
    out = apply_chain(run(start, AX, op), Values(data, np.ones(data.shape, bool))).data[0, 0, 0, 0]
    expected = np.array([e2m1(c) for c in range(16)])
    assert out.dtype == storage
    assert np.array_equal(out.astype(np.float64), expected)
    assert np.array_equal(np.signbit(out.astype(np.float64)), np.signbit(expected))


def test_a_byte_of_two_codes_decodes_low_nibble_first():
    for byte in range(256):
        low, high = fetch_adapter.paired_entry(byte, dtype("f4e2m1"), dtype("f8e4m3"))
        pair = np.array([low, high], np.uint8).view(ml_dtypes.float8_e4m3fn).astype(np.float64)
        assert list(pair) == [e2m1(byte & 15), e2m1(byte >> 4)]
    assert fetch_adapter.lookup_table(dtype("f4e2m1")).entries == 256


def test_subtracting_a_zero_point_is_plain_subtraction():
    for source, target, storage in (("i4", "i5", np.int8), ("i8", "i9", np.int8)):
        low, high = (-8, 7) if source == "i4" else (-128, 127)
        values = np.arange(low, low + 16, dtype=storage)
        for zero_point in (low, 0, high):
            start, op = one_op("fetch_zero_point_sub", source, target, zero_point=zero_point)
            data = np.broadcast_to(values, (1, 2, 64, 1, 16)).copy()
            out = apply_chain(run(start, AX, op), Values(data, np.ones(data.shape, bool)))
            assert list(out.data[0, 0, 0, 0].astype(int)) == [int(v) - zero_point for v in values]


def test_undefined_elements_stay_undefined():
    start, op = one_op("fetch_cast", "i8", "i32")
    data = np.zeros((1, 2, 64, 1, 16), np.int8)
    defined = np.zeros(data.shape, bool)
    defined[..., :5] = True
    assert np.array_equal(apply_chain(run(start, AX, op), Values(data, defined)).defined, defined)


def test_a_cast_costs_latency_but_no_cycles():
    start, op = one_op("fetch_cast", "bf16", "f32")
    cost = run(start, AX, op).steps[0].cost
    assert (cost.cycles, cost.latency_cycles) == (0, 2)


def test_a_read_is_short_enough_that_its_output_fits_a_flit():
    axes = Axes(A=8, K=64)
    fetch = {"op": "fetch", "time": "A", "packet": "K"}
    for source, op, read in (
        ("i8", {"op": "fetch_cast", "dtype": "i32"}, 8),
        ("f32", {"op": "fetch_cast", "dtype": "bf16"}, 8),
        ("f4e2m1", {"op": "fetch_table_lookup", "dtype": "f8e4m3"}, 32),
        ("i8", {"op": "fetch_zero_point_sub", "dtype": "i9", "zero_point": 1}, 32),
    ):
        start = stream(axes, source, "Begin", packet="A, K")
        derived = run(start, axes, fetch, op).derived
        assert (derived["read_size"], derived["reads_per_packet"], derived["cycles"]) == (read, 64 // read, 8 * 64 // read)


def test_sub_reads_8_bytes_so_i4_cannot_become_i32_there():
    axes = Axes(K=64)
    start = stream(axes, "i4", slice="1 # 64", packet="K")
    assert refused(start, axes, {"op": "fetch_cast", "dtype": "i32"}, context="sub").rule == "FA-010"
    run(stream(axes, "i8", slice="1 # 64", packet="K"), axes, {"op": "fetch_cast", "dtype": "i32"}, context="sub")

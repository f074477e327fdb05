"""Stores into the register files: layouts, capacities and the contexts they hold."""

import numpy as np
import pytest

from tcptune.ir.mappings.axes import Axes
from tcptune.ir.types import dtype
from tcptune.model.engines import register_files as files
from tcptune.model.hardware import RNGD
from tcptune.model.pipeline import apply_chain
from tcptune.model.values import Values
from tests.model.chains import refused, run, stream


def to_trf(lane, element):
    return {"op": "to_trf", "lane": lane, "element": element}


def to_vrf(element, sub_arg=False):
    return {"op": "to_vrf", "element": element, "sub_arg": sub_arg}


def test_a_lane_takes_consecutive_flits_of_time():
    axes = Axes(H=16, Q=64)
    start = stream(axes, "bf16", "Collect", slice="1 # 64", time="H, Q / 16", packet="Q % 16")
    chain = run(start, axes, to_trf("H / 4", "H % 4, Q"), context="sub")
    assert chain.final.tier == "Trf"
    assert chain.derived == {"flits_per_lane": 16, "element_bytes_per_lane": 512, "rows_per_lane": 16}
    data = np.arange(2 * 64 * 64 * 16).reshape(1, 2, 64, 64, 16).astype(np.float32)
    stored = apply_chain(chain, Values(data, np.ones(data.shape, bool))).data
    assert stored.shape == (1, 2, 64, 4, 256)
    for lane, row, column in [(0, 0, 0), (1, 3, 7), (3, 15, 15)]:
        assert stored[0, 1, 9, lane, 16 * row + column] == data[0, 1, 9, 16 * lane + row, column]


@pytest.mark.parametrize(
    ("sizes", "time", "lane", "element", "rule"),
    [
        ({"N": 3, "K": 32}, "N", "N", "K", "TRF-003"),
        ({"N": 16, "K": 32}, "N", "N", "K", "TRF-003"),
        ({"N": 8, "M": 12, "K": 32}, "M", "N", "K", "TRF-004"),
        ({"N": 8, "M": 4, "K": 32}, "M, N", "N", "M, K", "TRF-002"),
        ({"N": 8, "M": 4, "K": 32}, "N, M", "N", "K, M", "TRF-005"),
        ({"N": 8, "M": 4, "K": 32}, "N, M", "N", "K", "TRF-005"),
        ({"N": 8, "M": 257, "K": 32}, "N, M", "N", "M, K", "TRF-006"),
    ],
)
def test_a_trf_store_is_refused_by_its_rule(sizes, time, lane, element, rule):
    axes = Axes(sizes)
    error = refused(stream(axes, "i8", "Collect", time=time, packet="K"), axes, to_trf(lane, element), context="sub")
    assert error.rule == rule


def test_four_lanes_may_be_twice_as_long_as_eight():
    axes = Axes(N=4, M=512, K=32)
    chain = run(stream(axes, "i8", "Collect", time="N, M", packet="K"), axes, to_trf("N", "M, K"), context="sub")
    assert chain.steps[0].config.bytes_per_slice == 65_536
    assert not chain.steps[0].config.fits_half(RNGD)


def test_a_half_of_the_file_allows_double_buffering():
    axes = Axes(N=8, M=128, K=32)
    chain = run(stream(axes, "i8", "Collect", time="N, M", packet="K"), axes, to_trf("N", "M, K"), context="sub")
    assert chain.steps[0].config.fits_half(RNGD)


@pytest.mark.parametrize(("context", "sub_arg", "contexts"), [("sub", False, ("sub",)), ("main", True, ("main", "sub"))])
def test_a_vrf_store_holds_its_contexts(context, sub_arg, contexts):
    axes = Axes(B=64)
    chain = run(stream(axes, "f32", "Collect", time="B / 8", packet="B % 8"), axes, to_vrf("B", sub_arg), context=context)
    assert chain.derived == {"contexts": contexts, "bytes_per_slice": 256}


@pytest.mark.parametrize(
    ("dt", "sizes", "time", "packet", "element", "rule"),
    [
        ("bf16", {"A": 4, "B": 16}, "A", "B", "A, B", "VRF-003"),
        ("i32", {"A": 4, "B": 8}, "A", "B", "B, A", "VRF-002"),
        ("i32", {"A": 257, "B": 8}, "A", "B", "A, B", "VRF-004"),
        ("i9", {"A": 4, "B": 32}, "A", "B", "A, B", "FA-014"),
    ],
)
def test_a_vrf_store_is_refused_by_its_rule(dt, sizes, time, packet, element, rule):
    axes = Axes(sizes)
    error = refused(stream(axes, dt, "Collect", time=time, packet=packet), axes, to_vrf(element), context="sub")
    assert rule in (error.rule, *error.also)


def test_a_store_from_main_needs_the_sub_context():
    axes = Axes(B=64)
    error = refused(stream(axes, "f32", "Collect", time="B / 8", packet="B % 8"), axes, to_vrf("B"))
    assert error.rule == "VRF-005"


def test_one_flit_of_every_type_fills_one_row():
    for name, elements in {"i4": 64, "i8": 32, "f8e4m3": 32, "f8e5m2": 32, "bf16": 16}.items():
        packing = files.row_packing(dtype(name), RNGD)
        assert (packing.elements, packing.slack_bits) == (elements, 320 - 256)
    assert files.row_packing(dtype("i4"), RNGD, promoted=True).slack_bits == 0
    assert files.row_packing(dtype("i8"), RNGD, promoted=True).slack_bits == 32


def test_rows_and_bytes_of_the_file():
    assert [files.rows_per_bank(n, RNGD) for n in (8, 4, 2, 1)] == [128, 256, 512, 1024]
    assert files.physical_bytes(128, RNGD) == 80 * 1024
    assert [files.native_bytes(m, RNGD) for m in files.address_modes(RNGD)] == [65_536, 32_768, 32_768]


def test_a_store_waits_for_reads_that_take_its_bank():
    assert files.store_proceeds(read_is_wide=True, cache_hit=True, same_bank=True)
    assert files.store_proceeds(read_is_wide=False, cache_hit=False, same_bank=False)
    assert not files.store_proceeds(read_is_wide=False, cache_hit=False, same_bank=True)
    assert not files.store_proceeds(read_is_wide=True, cache_hit=False, same_bank=False)


def test_a_short_store_needs_the_dm_order():
    axes = Axes(N=8, K=64)
    start = stream(axes, "bf16", "Collect", time="N, K / 16", packet="K % 16")
    target = run(start, axes, to_trf("N", "K"), context="sub").final
    assert files.is_short_store(axes.mapping("N, K"), target)
    assert not files.is_short_store(axes.mapping("K, N"), target)
    assert not files.is_short_store(axes.mapping("N, K # 80"), target)

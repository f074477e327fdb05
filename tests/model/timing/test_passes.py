"""Durations of passes against the vendor's published rows (cycles in the test names' tables are theirs) and the manual's formulas."""

from __future__ import annotations

import pytest

from tcptune.errors import InputError
from tcptune.ir.mappings.axes import Axes
from tcptune.model.pipeline import Chain
from tcptune.model.timing.calibration import VENDOR_PASS
from tcptune.model.timing.passes import pass_cycles, pass_timing
from tests.model.chains import collect, outer, reduced, run, stream, switch, trf

AX = Axes(N=8, K=2048, R=512, E=8, V=250, W=256, G=4, P=16, H=8, S=256, Q=32, T=900)


def fetch(time: str, packet: str) -> dict:
    return {"op": "fetch", "time": time, "packet": packet}


def begin(dt: str, element: str, **levels: str):
    return stream(AX, dt, "Begin", packet=element, **levels)


def staged(dt: str, element: str, time: str, packet: str, lane: str, row: str) -> Chain:
    store = {"op": "to_trf", "lane": lane, "element": row}
    return run(begin(dt, element), AX, fetch(time, packet), collect(time, packet), store, context="sub")


@pytest.mark.parametrize(
    ("element", "time", "cycles"),
    [("K", "K / 16", 775), ("K = 800", "[K = 800] / 16", 463), ("K = 256", "[K = 256] / 16", 327), ("K = 16", "1", 267)],
)
def test_staging_on_sub_fetches_eight_bytes_a_cycle(element: str, time: str, cycles: int) -> None:
    packet = "K % 16" if element == "K" else f"[{element}] % 16"
    chain = staged("bf16", element, time, packet, "1", element)
    timing = pass_timing(chain, "sub")
    assert (timing.cycles, timing.base, timing.bound) == (cycles, "VT-001", "bytes fetched")


def contraction(flits: int, *more: dict) -> Chain:
    axes = Axes(M=flits // 2, N=8, K=32)
    start = stream(axes, "bf16", "Collect", time="M, K / 16", packet="K % 16")
    ops = (outer("M", "K"), *reduced("1", "1", "1", "N"), *more)
    return run(start, axes, *ops, operands={"w": trf(axes, "bf16", "N", "K")})


@pytest.mark.parametrize(("flits", "cycles"), [(16, 281), (50, 315), (128, 393), (450, 715), (512, 777), (960, 1225)])
def test_a_contraction_is_bound_by_its_flits(flits: int, cycles: int) -> None:
    timing = pass_timing(contraction(flits), "main")
    assert (timing.cycles, timing.base, timing.bound) == (cycles, "VT-002", "flits")


def test_a_cast_behind_a_contraction_is_free() -> None:
    cast = {"op": "cast", "dtype": "bf16", "packet": "N # 16"}
    assert pass_cycles(contraction(512, cast), "main") == 777


def test_packets_sent_again_and_flits_drained_can_bind_a_contraction() -> None:
    axes = Axes(M=8, N=8, K=16, B=5, P=16)
    operands = {"w": trf(axes, "bf16", "N", "B, K")}
    start = stream(axes, "bf16", "Collect", time="M", packet="K")
    repeated = run(start, axes, outer("M, B", "K"), *reduced("1", "M", "M", "N"), operands=operands)
    assert (pass_timing(repeated, "main").bound, pass_cycles(repeated, "main")) == ("packets multiplied", 265 + 40)
    wide = run(start, axes, outer("M", "K"), *reduced("K", "M", "M, K", "N"), operands={"w": trf(axes, "bf16", "N", "K")})
    assert (pass_timing(wide, "main").bound, pass_cycles(wide, "main")) == ("flits drained", 265 + 128)


@pytest.mark.parametrize(("steps", "cycles"), [(1, 265), (8, 272), (16, 280), (32, 296)])
def test_a_copy_takes_a_cycle_a_flit(steps: int, cycles: int) -> None:
    axes = Axes(M=steps, E=32)
    chain = run(
        stream(axes, "i8", "Collect", time="M", packet="E"), axes, {"op": "commit_trim", "packet": "E"}, {"op": "commit", "element": "M, E"}
    )
    assert pass_cycles(chain, "main") == cycles


TAG = {"op": "vector_intra_slice_tag", "mode": "Zero"}
ADD = {"op": "vector_fxp", "fn": "AddFxp", "operand": 1}
SIGMOID = {"op": "vector_fp_unary", "fn": "Sigmoid"}
INIT, FINAL = {"op": "vector_init"}, {"op": "vector_final"}


def test_a_vector_pass_takes_a_step_a_flit() -> None:
    start = stream(AX, "i32", "Collect", time="V", packet="E")
    assert pass_cycles(run(start, AX, INIT, TAG, ADD, FINAL), "main") == 531


def test_float_work_takes_two_steps_a_flit() -> None:
    start = stream(AX, "f32", "Collect", time="V", packet="E")
    narrow = {"op": "vector_narrow_split", "time": "V, E / 4", "packet": "E % 4"}
    wide = {"op": "vector_widen_concat", "time": "V", "packet": "E"}
    timing = pass_timing(run(start, AX, INIT, TAG, narrow, SIGMOID, wide, FINAL), "main")
    assert (timing.cycles, timing.bound) == (281 + 500, "vector steps")


@pytest.mark.parametrize(("slices", "slice_", "after", "cycles"), [(8, "S / 8, S % 8", "S / 8, 1 # 8", 347), (256, "S", "1 # 256", 2579)])
def test_an_inter_slice_reduce_pays_for_every_slice_of_the_group(slices: int, slice_: str, after: str, cycles: int) -> None:
    start = stream(AX, "i32", "Collect", time="1", packet="E", slice=slice_)
    reduce_ = {"op": "vector_inter_slice_reduce", "slice": after, "time": "1", "fn": "AddSat"}
    timing = pass_timing(run(start, AX, INIT, reduce_, FINAL), "main")
    assert (timing.cycles, timing.base) == (cycles, "VT-009")
    assert timing.terms["+slices reduced"] == 9 * slices


def test_a_switch_turns_its_ring_once_a_flit() -> None:
    start = stream(AX, "bf16", "Fetch", time="P", packet="E", slice="W / 16, W % 16")
    chain = run(start, AX, switch("W / 16, P", "W % 16", "InterTranspose", slice1=16, slice0=1, time0=1), collect("W % 16", "E # 16"))
    assert pass_cycles(chain, "main") == 263 + chain.steps[0].derived["ring_size"] * 16


def test_a_ring_over_all_slices_pays_once_more() -> None:
    start = stream(AX, "bf16", "Fetch", time="1", packet="E", slice="W")
    chain = run(start, AX, switch("256", "W", "Broadcast1", slice1=256, slice0=1), collect("W", "E # 16"))
    assert pass_cycles(chain, "main") == 1031


@pytest.mark.parametrize(("rows", "cycles"), [(8, 274), (128, 394), (256, 522)])
def test_a_transpose_pays_for_rows_beyond_its_flits(rows: int, cycles: int) -> None:
    axes = Axes(M=rows // 8, E=8)
    start = stream(axes, "bf16", "Collect", time="M", packet="E # 16")
    chain = run(start, axes, {"op": "transpose", "time": "M, E", "packet": "1 # 16"})
    timing = pass_timing(chain, "main")
    assert (timing.cycles, timing.base, timing.bound) == (cycles, "VT-012", "rows written")


def test_rows_add_to_the_steps_of_a_vector_pass() -> None:
    start = stream(AX, "f32", "Collect", time="1", packet="E")
    narrow = {"op": "vector_narrow_split", "time": "E / 4", "packet": "E % 4"}
    wide = {"op": "vector_widen_concat", "time": "1", "packet": "E"}
    ops = (INIT, TAG, narrow, SIGMOID, wide, FINAL, {"op": "transpose", "time": "E", "packet": "1 # 8"})
    assert pass_cycles(run(start, AX, *ops), "main") == 291


@pytest.mark.parametrize(("dt", "to", "packed", "flit", "cycles"), [("f4e2m1", "f8e4m3", 64, 32, 160), ("f8e4m3", "bf16", 32, 16, 320)])
def test_lookups_run_at_the_rate_of_their_table(dt: str, to: str, packed: int, flit: int, cycles: int) -> None:
    start = stream(AX, dt, "Fetch", time=f"K / {packed}", packet=f"K % {packed}")
    chain = run(start, AX, {"op": "fetch_table_lookup", "dtype": to}, collect(f"K / {flit}", f"K % {flit}"))
    assert pass_cycles(chain, "main") == 263 + cycles


@pytest.mark.parametrize(("context", "cycles"), [("main", 1164), ("sub", 2064)])
def test_cast_and_commit(context: str, cycles: int) -> None:
    start = stream(AX, "f32", "Fetch", time="T", packet="E")
    narrow = {"op": "cast", "dtype": "bf16", "packet": "E # 16"}
    ops = (collect("T", "E"), narrow, {"op": "commit_trim", "packet": "E"}, {"op": "commit", "element": "T, E"})
    bf16 = stream(AX, "bf16", "Fetch", time="T", packet="E")
    widened = run(bf16, AX, {"op": "fetch_cast", "dtype": "f32"}, *ops, context=context)
    assert pass_cycles(widened, context) == cycles
    assert pass_cycles(run(start, AX, *ops, context=context), context) >= cycles


def test_the_manuals_profile_adds_latencies_to_the_busiest_stage() -> None:
    chain = contraction(128)
    timing = pass_timing(chain, "main", "manual")
    busiest = max(step.cost.cycles for step in chain.steps)
    latencies = sum(step.cost.latency_cycles for step in chain.steps)
    assert (timing.cycles, timing.base) == (busiest + latencies, "manual")
    assert busiest == 128 and latencies == 5 + 64


def test_an_unknown_profile_is_unusable_input() -> None:
    with pytest.raises(InputError, match="profile"):
        pass_cycles(contraction(16), "main", "guess")


def test_every_constant_has_its_evidence() -> None:
    for name in VENDOR_PASS.__dataclass_fields__:
        constant = getattr(VENDOR_PASS, name)
        assert constant.evidence and constant.unit and constant.error

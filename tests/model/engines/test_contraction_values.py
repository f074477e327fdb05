"""Values of contractions: hardware order bit for bit, matrix products within their bound, nothing materialised, undefined cells tracked."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

from tcptune.ir.mappings.axes import Axes
from tcptune.ir.types import StreamType, TensorType
from tcptune.model.engines.contraction.values import PendingProducts, contract_fused
from tcptune.model.numerics.elements import numpy_dtype
from tcptune.model.pipeline import Chain, apply_chain
from tcptune.model.values import Values
from tests.model.chains import outer, reduced, run, stream, trf
from tests.reference.cells import Contents, differences, random_values
from tests.reference.chains import run as run_by_cells
from tests.reference.numbers import wrapped

AX = Axes(M=3, N=8, K=32, L=2, B=5, O=2, Q=4, T=2, R=2, C=12, S=4, H=16, I=64)


def chain(dt: str, time: str, packet: str, lane: str, element: str, *ops: dict, slice_: str = "1 # 256", axes: Axes = AX) -> Chain:
    start = stream(axes, dt, "Collect", time=time, packet=packet, slice=slice_)
    return run(start, axes, *ops, operands={"w": trf(axes, dt, lane, element, slice=slice_)})


CHAINS = {
    "full sum": chain("bf16", "M, K / 16", "K % 16", "N", "K", outer("M", "K"), *reduced("1", "M", "M", "N")),
    "sum over time": chain("bf16", "M, K / 16", "K % 16", "N", "K", outer("M, K / 16", "K % 16"), *reduced("1", "M", "M", "N")),
    "sum over outer time": chain(
        "bf16", "K / 16, M", "K % 16", "T", "K", outer("K / 16, M", "K % 16"), *reduced("1", "M", "M, T", "1 # 8", "Sequential")
    ),
    "one element a packet": chain("bf16", "M, Q", "1 # 16", "N", "Q", outer("M, Q", "1 # 16"), *reduced("1", "M", "M", "N")),
    "broadcast over time": chain("bf16", "M", "H", "N", "B, H", outer("M, B", "H"), *reduced("1", "M, B", "M, B", "N")),
    "axis of neither operand": chain("bf16", "M", "H", "Q", "H", outer("M, O", "H"), *reduced("1", "M, O", "M, O", "Q # 8")),
    "broadcast that is summed": chain("bf16", "M", "H", "Q", "B, H", outer("M, B", "H"), *reduced("1", "M", "M", "Q # 8")),
    "repeated axis that is summed": chain("bf16", "M", "H", "1", "H", outer("M, O", "H"), *reduced("1", "M", "M", "1 # 8")),
    "stream axis that is summed": chain("bf16", "M, Q", "H", "1", "H", outer("M, Q", "H"), *reduced("1", "M", "M", "1 # 8")),
    "read repeated in the packet": chain("bf16", "O, M, L", "H", "N", "O, H", outer("O, M", "L, H"), *reduced("L", "O, M", "O, M, L", "N")),
    "columns in the packet": chain(
        "i8", "M, K / 32", "K", "Q", "K", outer("M", "K"), *reduced("K / 4", "M", "M, Q", "K / 4", "Sequential")
    ),
    "narrow columns": chain("bf16", "M", "Q, S", "T", "Q, S", outer("M", "Q, S"), *reduced("Q", "M", "M, T", "Q # 8", "Sequential")),
    "padded columns": chain("i8", "M, 1 # 2", "Q # 8, S", "N", "Q, S", outer("M", "Q # 16, S"), *reduced("Q # 16", "M", "M, Q # 16", "N")),
    "slices with work": chain(
        "bf16", "M", "H", "T", "H", outer("M", "H"), *reduced("1", "M", "M", "T # 8"), slice_="Q # 256"
    ),
    "crossing digits": chain(
        "bf16", "C", "H", "T", "C % 3, C / 3, H", outer("C", "H"), *reduced("1", "C / 2", "C / 2", "T # 8")
    ),
    "i4": chain("i4", "M", "I", "T", "I", outer("M", "I"), *reduced("1", "M", "M", "T # 8")),
    "i9 with wrap": chain("i9", "M, R", "K", "T", "R, K", outer("M, R", "K"), *reduced("1", "M", "M", "T # 8")),
    "f8e4m3": chain("f8e4m3", "M", "K", "T", "K", outer("M", "K"), *reduced("1", "M", "M", "T # 8")),
    "f8e5m2": chain("f8e5m2", "M", "K", "T", "K", outer("M", "K"), *reduced("1", "M", "M", "T # 8")),
}  # fmt: skip


def inputs(work: Chain, seed: int = 0) -> tuple[Values, dict[str, Values]]:
    rng = np.random.default_rng(seed)
    return random_values(work.start, rng), {n: random_values(t, rng) for n, t in work.env.operands.items()}


def by_cells(work: Chain, start: Values, operands: dict[str, Values]) -> Contents:
    return run_by_cells(work, Contents.of(work.start, start), {n: Contents.of(work.env.operands[n], v) for n, v in operands.items()})


@pytest.mark.parametrize("name", CHAINS)
def test_exact_mode_gives_the_bits_of_the_cell_by_cell_path(name: str) -> None:
    work = CHAINS[name]
    start, operands = inputs(work)
    expected = by_cells(work, start, operands)
    assert expected.cells
    assert differences(work.final, expected, apply_chain(work, start, operands)) == []


@pytest.mark.parametrize("name", CHAINS)
def test_stages_one_by_one_give_the_same_bits_as_the_fused_run(name: str) -> None:
    work = CHAINS[name]
    start, operands = inputs(work)
    products = contract_fused(start, operands["w"], work.steps[:1])
    staged = apply_chain(Chain(work.start, work.steps[1:], work.env), Values(products.data, products.defined), operands)
    fused = apply_chain(work, start, operands)
    assert (staged.defined == fused.defined).all()
    assert (staged.data[fused.defined] == fused.data[fused.defined]).all()


@pytest.mark.parametrize("name", CHAINS)
def test_fast_mode_is_within_its_bound(name: str) -> None:
    work = CHAINS[name]
    start, operands = inputs(work)
    exact = contract_fused(start, operands["w"], work.steps)
    fast = contract_fused(start, operands["w"], work.steps, mode="fast")
    assert (exact.defined == fast.defined).all()
    known = exact.defined
    if not work.final.dtype.is_float:
        assert (exact.data[known] == fast.data[known]).all()
        return
    magnitudes = contract_fused(positive(start), positive(operands["w"]), work.steps, mode="fast")
    terms = work.steps[0].after.shape[-1] * work.steps[0].after.shape[-2]
    error = np.abs(exact.data[known].astype(np.float64) - fast.data[known])
    assert (error <= terms * 2.0**-24 * magnitudes.data[known]).all()


def positive(values: Values) -> Values:
    return Values(np.abs(values.data), values.defined)


def test_a_time_sum_adds_packets_in_order() -> None:
    work = CHAINS["sum over time"]
    start, operands = inputs(work)
    a = np.zeros(work.start.shape, np.float32)
    a[0, 0, 0, :2, 0] = (2.0**24, 1)
    a[0, 0, 0, 2:4, 0] = (1, 2.0**24)
    ones = Values(np.ones_like(operands["w"].data), operands["w"].defined)
    got = apply_chain(work, Values(a.astype(start.data.dtype), start.defined), {"w": ones})
    assert got.data[0, 0, 0, :2, 0].tolist() == [2.0**24, 2.0**24]


def full(kind: StreamType | TensorType, number: float) -> Values:
    """The same number everywhere."""
    return Values(np.full(kind.shape, number).astype(numpy_dtype(kind.dtype)), np.ones(kind.shape, bool))


@pytest.mark.parametrize("mode", ["exact", "fast"])
def test_integer_sums_wrap(mode: str) -> None:
    axes = Axes(A=1024, E=64)
    work = chain("i9", "A, E / 32", "E % 32", "1", "E", outer("A", "E"), *reduced("1", "1", "1", "1 # 8"), axes=axes)
    got = contract_fused(full(work.start, 255), full(work.env.operands["w"], 255), work.steps, mode=mode)  # type: ignore[arg-type]
    assert (got.data[..., 0] == wrapped(1024 * 64 * 255 * 255, 32)).all()


def test_a_sum_with_an_undefined_term_is_undefined() -> None:
    work = CHAINS["full sum"]
    start, operands = inputs(work)
    holes = start.defined.copy()
    holes[0, 0, 0, 2, 7] = False
    got = apply_chain(work, Values(start.data, holes), operands)
    assert got.defined[0, 0, 0].tolist() == [[True] * 8, [False] * 8, [True] * 8]


def test_idle_slices_stay_undefined() -> None:
    work = CHAINS["slices with work"]
    got = apply_chain(work, *inputs(work))
    assert got.defined[0, 0, :4].any(axis=(1, 2)).all()
    assert not got.defined[0, 0, 4:].any()
    assert not got.defined[0, 1].any()


def test_unused_bus_positions_are_undefined() -> None:
    work = CHAINS["narrow columns"]
    got = apply_chain(work, *inputs(work))
    assert got.defined[0, 0, 0, 0].tolist() == [True] * 4 + [False] * 4


def test_products_that_nobody_looks_at_are_never_held() -> None:
    axes = Axes(M=512, N=8, K=512)
    work = chain("bf16", "M, K / 16", "K % 16", "N", "K", outer("M, K / 32", "K % 32"), *reduced("1", "M", "M", "N"), axes=axes)
    start, operands = inputs_in_slice_zero(work)
    tracemalloc.start()
    got = apply_chain(work, start, operands)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    products_of_one_slice = 512 * 8 * 512 * 4
    assert peak < products_of_one_slice + 2 * got.data.nbytes


def inputs_in_slice_zero(work: Chain) -> tuple[Values, dict[str, Values]]:
    """Ones in the first slice, nothing known elsewhere."""
    made = []
    for kind in (work.start, work.env.operands["w"]):
        values = full(kind, 1)
        known = np.zeros_like(values.defined)
        known[0, 0, 0] = True
        made.append(Values(values.data, known))
    return made[0], {"w": made[1]}


def test_looking_at_the_products_computes_them() -> None:
    work = CHAINS["full sum"]
    start, operands = inputs(work)
    pending = apply_chain(Chain(work.start, work.steps[:1], work.env), start, operands)
    assert isinstance(pending, PendingProducts)
    assert pending.data.shape == work.steps[0].after.shape
    x, w = start.data[0, 0, 0].astype(np.float32).reshape(3, 32), operands["w"].data[0, 0, 0].astype(np.float32)
    assert (pending.data[0, 0, 0] == x[None] * w[:, None]).all()


def test_nothing_is_known_of_sums_over_padding_that_neither_operand_holds() -> None:
    kept = chain("bf16", "M", "H", "Q", "H", outer("M, O # 3", "H"), *reduced("1", "M, O # 3", "M, O # 3", "Q # 8"))
    got = apply_chain(kept, *inputs(kept))
    assert got.defined[0, 0, 0, :, 0].tolist() == [True, True, False] * 3
    summed = chain("bf16", "M", "H", "Q", "H", outer("M, O # 3", "H"), *reduced("1", "M", "M", "Q # 8"))
    assert not apply_chain(summed, *inputs(summed)).defined.any()

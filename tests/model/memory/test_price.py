"""Prices of transfers: the manual's worked examples, published durations, and the straight simulation of every packet."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tcptune.errors import InputError
from tcptune.ir.mappings.axes import Axes
from tcptune.ir.types import TensorType
from tcptune.model.memory.price import Unpriced, price_transfer, stream_cycles
from tcptune.model.memory.requests import Loop, RequestStream
from tcptune.model.memory.streams import request_streams
from tcptune.model.memory.transfer import prove_move
from tcptune.model.timing.calibration import MANUAL_DMA, VENDOR_DMA, DmaTiming
from tests.model.memory.tensors import dm, hbm
from tests.reference import dma as reference

CUBE = Axes(A=256, B=256, C=256)
CONFLICT = Axes(A=64, B=2048, C=1024)
STACK = Axes(A=8, B=64, C=8, D=512)
RAGGED = Axes(A=15, B=32, C=256, D=8)
BLOCK = Axes(A=8, B=8, C=256)
GEMM = Axes(M=512, N=512, K=64)
ROWS = Axes(M=256, N=2048, P=1000, Q=1024)

EXAMPLES = {
    "1 HBM to HBM": (hbm(BLOCK, "A, B, C"), hbm(BLOCK, "B, A, C"), 628),
    "2 HBM to DM": (hbm(CUBE, "B, A, C"), dm(CUBE, "A / 4 # 256", "A % 4, B, C"), 66_036),
    "3 DM to DM": (dm(CUBE, "A / 4 # 256", "A % 4, B, C"), dm(CUBE, "A / 4 # 256", "B, A % 4, C"), 131_572),
    "4 row conflicts": (hbm(CONFLICT, "A, B, C"), dm(CONFLICT, "B / 256 % 4, A", "B % 256, C", cluster="B / 1024"), 655_860),
    "5 no stack bit": (hbm(STACK, "A, B, C, D = 256 # 512"), dm(STACK, "A % 4, B", "C, D = 256", cluster="A / 4"), 1_857),
    "6 heterogeneous": (
        dm(RAGGED, "A # 16 / 4, A # 16 / 2 % 2, B", "A # 16 % 2, C", cluster="D % 2", chip="D / 2"),
        hbm(RAGGED, "D % 2, B, A, C", chip="D / 2"),
        1_192,
    ),
}


@pytest.mark.parametrize("example", EXAMPLES)
def test_the_manuals_examples_cost_what_it_prints(example: str) -> None:
    source, dest, printed = EXAMPLES[example]
    assert price_transfer(source, dest, "manual").cycles == pytest.approx(printed, rel=0.01)


PUBLISHED = {
    "GEMM operand, block = slice mod 16": (hbm(GEMM, "M, K", "bf16"), dm(GEMM, "N / 32, M / 32", "M % 32, K", "bf16"), 3_118),
    "GEMM operand, block = slice div 16": (hbm(GEMM, "M, K", "bf16"), dm(GEMM, "M / 32, N / 32", "M % 32, K", "bf16"), 3_020),
    "GEMM result, 8,192 pieces of 64 B": (dm(GEMM, "M / 32, N / 32", "M % 32, N % 32", "bf16"), hbm(GEMM, "M, N", "bf16"), 72_731),
    "vector to every slice": (hbm(ROWS, "N", "bf16"), dm(ROWS, "256", "N", "bf16"), 10_069),
    "matrix, a row a slice": (hbm(ROWS, "M, N", "bf16"), dm(ROWS, "M", "N", "bf16"), 2_277),
    "rows of 2,000 B": (hbm(ROWS, "M, P", "bf16"), dm(ROWS, "M", "P", "bf16"), 1_905),
    "rows of 2,048 B": (hbm(ROWS, "M, Q", "bf16"), dm(ROWS, "M", "Q", "bf16"), 1_673),
    "store of 2,000 B rows": (dm(ROWS, "M", "P", "bf16"), hbm(ROWS, "M, P", "bf16"), 18_204),
    "store of 2,048 B rows": (dm(ROWS, "M", "Q", "bf16"), hbm(ROWS, "M, Q", "bf16"), 1_563),
    "store of 2 B a slice": (dm(ROWS, "M", "1 # 4", "bf16"), hbm(ROWS, "M", "bf16"), 93_634),
    "vector of 16 B a slice": (hbm(ROWS, "N", "bf16"), dm(ROWS, "N / 8", "N % 8", "bf16"), 792),
    "row to one slice": (hbm(ROWS, "N", "bf16"), dm(ROWS, "1 # 256", "N", "bf16"), 499),
}


@pytest.mark.parametrize("kernel", PUBLISHED)
def test_published_transfers_cost_within_eight_percent(kernel: str) -> None:
    source, dest, published = PUBLISHED[kernel]
    assert price_transfer(source, dest).cycles == pytest.approx(published, rel=0.08)


def test_a_price_explains_itself() -> None:
    source, dest, _ = PUBLISHED["matrix, a row a slice"]
    price = price_transfer(source, dest)
    assert price.delivered_bytes == 256 * 4096
    assert (price.pieces, price.run_bytes, price.packets, price.descriptors) == (256, 4096, 4096, 4)
    assert sum(cycles for _, cycles in price.terms) == pytest.approx(price.cycles, abs=1)
    assert price.utilisation == pytest.approx(-(-price.delivered_bytes // 1360) / price.cycles)


def test_hbm_to_hbm_has_no_vendor_price() -> None:
    with pytest.raises(Unpriced, match="no price for HBM to HBM"):
        price_transfer(hbm(BLOCK, "A, B, C"), hbm(BLOCK, "B, A, C"))


def test_an_unknown_profile_is_refused() -> None:
    with pytest.raises(InputError, match="silicon"):
        price_transfer(hbm(BLOCK, "A, B, C"), hbm(BLOCK, "B, A, C"), "silicon")


def test_the_host_link_moves_30_bytes_a_cycle() -> None:
    host = TensorType("Host", hbm(BLOCK, "A").dtype, BLOCK.mapping("A, B"))
    assert price_transfer(host, hbm(BLOCK, "A, B")).cycles == 3


def test_the_base_address_of_the_hbm_side_counts() -> None:
    source, dest, _ = PUBLISHED["matrix, a row a slice"]
    assert price_transfer(source, dest, hbm_base=8).cycles > price_transfer(source, dest).cycles


# --- against the straight simulation -------------------------------------------------------------------------------------------------
def pieces_of(stream: RequestStream) -> reference.Pieces:
    offsets = stream.offsets(np.arange(stream.pieces_per_place))
    places = zip(stream.clusters.tolist(), stream.slices.tolist(), stream.bases.tolist(), strict=True)
    return {(c, s): [(base + int(o), stream.run_bytes) for o in offsets] for c, s, base in places}


@pytest.mark.parametrize("timing", [VENDOR_DMA], ids=["vendor"])
@pytest.mark.parametrize("kernel", PUBLISHED)
def test_a_price_is_that_of_every_packet_simulated(kernel: str, timing: DmaTiming) -> None:
    source, dest, _ = PUBLISHED[kernel]
    store = dest.tier == "Hbm"
    (streams,) = request_streams(prove_move(source, dest))
    simulated = sum(reference.transfer_cycles(pieces_of(s), timing, store) for s in streams)
    assert stream_cycles(streams, timing, store)[0] == pytest.approx(simulated, rel=0.005)


@settings(max_examples=40, deadline=None)
@given(
    st.sampled_from([8, 24, 64, 120, 256, 480, 960, 1024, 2000, 4096]),
    st.integers(1, 30),
    st.sampled_from([1, 2, 16, 64]),
    st.sampled_from(["distinct", "div", "mod", "same"]),
    st.booleans(),
)
def test_sampling_long_transfers_is_within_six_percent(run: int, pieces: int, slices: int, source: str, store: bool) -> None:
    index = np.arange(slices, dtype=np.int64)
    block = {"distinct": index, "div": index // 4, "mod": index % 4, "same": index * 0}[source]
    stream = RequestStream(index * 0, index, block * run * pieces, (Loop(pieces, run),), run)
    simulated = reference.transfer_cycles(pieces_of(stream), VENDOR_DMA, store)
    assert stream_cycles((stream,), VENDOR_DMA, store)[0] == pytest.approx(simulated, rel=0.06)


def test_the_manual_profile_charges_the_busiest_channel() -> None:
    slices = np.arange(32, dtype=np.int64)
    one_bank = RequestStream(slices * 0, slices, slices * 2**29, (), 256)
    cycles, terms, _ = stream_cycles((one_bank,), MANUAL_DMA, store=False)
    assert cycles == pytest.approx(500 + 16 / 3 + 31 * 40)
    assert any("HBM channel" in name for name, _ in terms)

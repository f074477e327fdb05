"""What the DMA Engine accepts: contexts, levels, alignment, and the commands that a transfer becomes."""

from __future__ import annotations

import pytest

from tcptune.errors import RuleViolation
from tcptune.ir.mappings.axes import Axes
from tcptune.ir.types import TensorType
from tcptune.model.engines.dma import check_tile_starts, check_transfer
from tcptune.model.memory.command_model import DMN_STRIDE, SLICE_STRIDE
from tcptune.model.memory.descriptors import EngineKey
from tests.model.memory.tensors import dm, hbm

VECTOR = Axes(A=2048, B=8, N=4)
EXAMPLE_6 = Axes(A=15, B=32, C=256, D=8)


def refused(source: TensorType, dest: TensorType, context: str = "tdma") -> RuleViolation:
    with pytest.raises(RuleViolation) as refusal:
        check_transfer(source, dest, context)
    return refusal.value


def test_only_pdma_reaches_the_host() -> None:
    host = TensorType("Host", hbm(VECTOR, "A").dtype, VECTOR.mapping("A"))
    check_transfer(host, hbm(VECTOR, "A"), "pdma")
    assert refused(host, hbm(VECTOR, "A")).rule == "DMA-003"
    assert refused(host, dm(VECTOR, "A / 8", "A % 8")).rule == "DMA-001"


def test_a_load_keeps_chip() -> None:
    assert refused(hbm(VECTOR, "A", chip="N"), dm(VECTOR, "A / 8", "N, A % 8")).rule == "DMA-004"


def test_eight_bytes_a_run_are_the_least() -> None:
    assert check_transfer(hbm(VECTOR, "A"), dm(VECTOR, "A / 8", "A % 8")).tail_bytes == 8
    refusal = refused(hbm(VECTOR, "A = 1024"), dm(VECTOR, "A = 1024 / 4", "A = 1024 % 4"))
    assert (refusal.rule, refusal.got) == ("DMA-005", "4 bytes")


def test_a_transposed_run_is_one_element() -> None:
    assert refused(hbm(VECTOR, "A, B"), dm(VECTOR, "A / 8", "B, A % 8")).rule == "DMA-005"


def test_dense_source_rows_of_20_bytes_cannot_be_loaded_one_a_slice() -> None:
    rows = Axes(P=256, Q=5)
    assert check_transfer(hbm(rows, "P, Q # 8", "i32"), dm(rows, "P", "Q # 8", "i32")).tail_bytes == 32
    assert refused(hbm(rows, "P, Q", "i32"), dm(rows, "P", "Q # 8", "i32")).rule == "DMA-020"
    assert refused(hbm(rows, "P, Q", "i32"), dm(rows, "P", "Q", "i32")).rule == "DMA-005"


def test_an_unaligned_hbm_start_cannot_be_loaded() -> None:
    with pytest.raises(RuleViolation) as refusal:
        check_transfer(hbm(VECTOR, "A"), dm(VECTOR, "A / 8", "A % 8"), hbm_base=4)
    assert refusal.value.rule == "DMA-020"


def test_a_store_may_have_short_runs() -> None:
    plan = check_transfer(dm(VECTOR, "A / 8", "A % 8, B", "i32"), hbm(VECTOR, "B, A", "i32"))
    assert plan.common_run_bytes == 4


def test_a_store_along_an_axis_that_only_the_destination_names_is_refused() -> None:
    refusal = refused(dm(VECTOR, "A / 8", "A % 8"), hbm(VECTOR, "N, A"))
    assert refusal.rule == "DMA-002"
    assert "N = 1 would stay undefined" in refusal.message


def test_a_load_along_such_an_axis_repeats_the_data() -> None:
    check_transfer(hbm(VECTOR, "A"), dm(VECTOR, "N, A / 32", "A % 32"))


def test_a_tensor_larger_than_a_slice_is_refused() -> None:
    large = Axes(A=256, B=1024, C=513)
    assert refused(hbm(large, "A, B, C"), dm(large, "A", "B, C")).rule == "DM-003"


def test_a_ragged_edge_gets_several_commands() -> None:
    plan = check_transfer(
        dm(EXAMPLE_6, "A # 16 / 4, A # 16 / 2 % 2, B", "A # 16 % 2, C", cluster="D % 2", chip="D / 2"),
        hbm(EXAMPLE_6, "D % 2, B, A, C", chip="D / 2"),
    )
    counts = [[c.counts for c in plan.commands[EngineKey(0, 0, k)]] for k in range(4)]
    assert counts == [[(2, 32, 2)]] * 3 + [[(2, 32), (32,)]]
    first = plan.commands[EngineKey(0, 1, 2)][0]
    assert first.read.strides == (256, SLICE_STRIDE, DMN_STRIDE)
    assert first.write.strides == (256, 3840, 512)
    assert first.write.base == 122_880 + 2 * 1_024


def test_every_byte_of_a_plan_is_moved_once() -> None:
    ragged = Axes(A=1000, Q=24)
    plan = check_transfer(hbm(ragged, "A, Q"), dm(ragged, "A # 1024 / 4", "A # 1024 % 4, Q"))
    written: set[int] = set()
    moved = 0
    for key, commands in plan.commands.items():
        for command in commands:
            for address in command.addresses(command.write):
                place = key.cluster * 2**40 + int(address)
                written.update(range(place, place + command.packet_bytes))
                moved += command.packet_bytes
    assert moved == len(written) == 1000 * 24


def test_tiles_start_on_bank_words() -> None:
    source, dest = hbm(VECTOR, "A", "bf16"), dm(VECTOR, "A / 8", "A % 8", "bf16")
    check_tile_starts(source, dest, source_starts=(0, 4, 8), dest_starts=(4,))
    with pytest.raises(RuleViolation) as refusal:
        check_tile_starts(source, dest, source_starts=(0, 2), dest_starts=())
    assert (refusal.value.rule, refusal.value.got) == ("DMA-020", "4 bytes")
    with pytest.raises(RuleViolation) as refusal:
        check_tile_starts(dest, dest, source_starts=(2,), dest_starts=(2,))
    assert refusal.value.rule == "DMA-005"

"""From kernels to instructions: contexts, durations, and the work a compiler inserts."""

import pytest

from tcptune.errors import WorkError
from tcptune.exec.compile import compile_kernel
from tcptune.exec.library import double_buffer, patterns, perceptron, vector_rows
from tcptune.exec.program.build import KernelBuilder
from tcptune.exec.scheduling.check_schedule import check_schedule
from tcptune.ir.schedule import CORE, DMA, MAIN, SUB, VECTOR

PLACE = {"cluster": "1 # 2", "slice": "A / 8 # 256", "element": "A % 8"}
EVERY = (
    patterns.constant_add,
    patterns.dot,
    patterns.gemv,
    patterns.gemm,
    patterns.batched_matmul,
    double_buffer.rolled,
    double_buffer.unrolled,
    double_buffer.software_pipelined,
    vector_rows.add,
    vector_rows.reduce_sum,
    vector_rows.softmax,
    vector_rows.rmsnorm,
    perceptron.mnist,
)


def instructions(kernel):
    return {i.id: i for i in compile_kernel(kernel).instructions}


@pytest.mark.parametrize("build", EVERY, ids=lambda b: b.__name__)
def test_the_schedule_of_a_library_kernel_is_legal(build):
    compiled = compile_kernel(build())
    check_schedule(compiled.program, compiled.schedule)
    assert compiled.makespan == max(o.end for o in compiled.schedule.operations)


class TestContexts:
    def test_a_contraction_with_a_cast_books_the_vector_engine(self):
        assert instructions(patterns.gemm())["result"].contexts == (MAIN, VECTOR)

    def test_a_register_store_books_sub_alone(self):
        assert instructions(patterns.gemm())["b_trf"].contexts == (SUB,)
        assert instructions(vector_rows.mul())["y_vrf"].contexts == (SUB,)

    def test_a_switch_with_a_transpose_books_main_alone(self):
        assert instructions(perceptron.mnist())["fc2_bias_spread"].contexts == (MAIN,)

    def test_a_main_pass_into_the_vrf_books_sub_too(self):
        assert set(instructions(vector_rows.rmsnorm())["inverse_rms"].contexts) == {MAIN, SUB, VECTOR}

    def test_a_commit_cast_leaves_the_vector_engine_free(self):
        b = KernelBuilder("k", {"A": 2048})
        x = b.input("x", "Hbm", "bf16", element="A").to_dm(**PLACE)
        s = b.main.begin(x).fetch("1", "A % 8").fetch_cast("f32").collect("1", "A % 8").commit_trim("A % 8")
        out = s.commit_cast("bf16").commit("A % 8", let="y").to_hbm(element="A")
        assert instructions(b.build(out))["y"].contexts == (MAIN,)

    def test_transfers_book_the_dma_engine(self):
        found = instructions(patterns.gemm())
        assert found["a_dm"].contexts == found["out"].contexts == (DMA,)
        assert (found["a_dm"].kind, found["out"].kind) == ("DmaLoad", "DmaStore")


class TestDurations:
    """The published figures of the template patterns (VT-001, VT-002, VT-005, VT-009)."""

    @pytest.mark.parametrize(
        ("build", "step", "cycles"),
        [
            (patterns.gemm, "b_trf", 775),
            (patterns.gemm, "result", 777),
            (patterns.gemv, "result", 393),
            (vector_rows.add, "sum", 283),
            (vector_rows.softmax, "largest", 531),
            (vector_rows.reduce_sum, "sum", 2582),
            (perceptron.mnist, "fc2_bias_spread", 4871),
        ],
    )
    def test_a_pass_costs_what_the_vendor_charges(self, build, step, cycles):
        assert abs(instructions(build())[step].duration_cycles - cycles) <= 2


class TestInsertedWork:
    def test_a_lookup_table_is_loaded_and_stored_once(self):
        b = KernelBuilder("k", {"A": 4096})
        x = b.input("x", "Hbm", "f8e4m3", element="A").to_dm(cluster="1 # 2", slice="A / 16", element="A % 16")
        results = []
        for name in ("y", "z"):
            s = b.main.begin(x).fetch("1", "A % 16").fetch_table_lookup("bf16").collect("1", "A % 16").commit_trim("A % 16")
            results.append(s.commit("A % 16", let=name))
        found = compile_kernel(b.build(*results)).instructions
        inserted = [(i.kind, i.duration_cycles) for i in found if "f8e4m3_bf16" in i.id]
        assert inserted == [("DmaLoad", 838), ("Sub", 1293)]

    def test_a_kept_loop_loads_its_table_before_it_starts(self):
        b = KernelBuilder("k", {"A": 4096, "G": 4})
        x = b.input("x", "Hbm", "f8e4m3", element="G, A").to_dm(cluster="1 # 2", slice="A / 16", element="G, A % 16")
        out = b.new_dm("bf16", cluster="1 # 2", slice="A / 16", element="G, A % 16", let="out")
        with b.loop(4, var="g") as g:
            s = b.main.begin(x.tile("G", 1, g, "1 # 4, A % 16")).fetch("1", "A % 16").fetch_table_lookup("bf16")
            tile = {"axis": "G", "len": 1, "start": g, "element": "1 #{!} 4, A % 16", "mutable": True}
            s.collect("1", "A % 16").commit_trim("A % 16").commit_view(out, tile)
        compiled = compile_kernel(b.build(out))
        check_schedule(compiled.program, compiled.schedule)
        assert sum("f8e4m3_bf16" in o.id for o in compiled.schedule.operations) == 2

    def test_arguments_in_dm_are_there_from_the_start_and_results_to_the_end(self):
        b = KernelBuilder("k", {"A": 2048})
        x = b.input("x", "Dm", "i32", chip="1", **PLACE)
        s = b.main.begin(x).fetch("1", "A % 8").collect("1", "A % 8").commit_trim("A % 8").commit("A % 8", let="y")
        lives = {entry.buffer.name: entry for entry in compile_kernel(b.build(s)).schedule.lifetimes}
        assert lives["x"].begin == 1003
        assert lives["y"].address != lives["x"].address

    def test_a_custom_broadcast_loads_its_bitmap(self):
        b = KernelBuilder("k", {"A": 256, "K": 16})
        x = b.input("x", "Hbm", "bf16", element="A, K").to_dm(cluster="1 # 2", slice="A", element="K")
        s = b.main.begin(x).fetch("1", "K").switch("A / 4, 4", "A % 4", {"CustomBroadcast": {"ring_size": 4}}).collect("A % 4", "K")
        found = compile_kernel(b.build(s.commit_trim("K").commit("A % 4, K", let="y"))).instructions
        assert [(i.kind, i.duration_cycles) for i in found if i.id == "load bitmap"] == [("DmaLoad", 719)]

    def test_a_read_of_hbm_after_a_write_waits_for_sync_and_a_thousand_cycles(self):
        b = KernelBuilder("k", {"A": 2048})
        there = b.input("x", "Hbm", "bf16", element="A").to_dm(**PLACE, let="there").to_hbm(element="A", let="stored")
        back = there.to_dm(**PLACE, let="back")
        times = {o.id: o for o in compile_kernel(b.build(back)).schedule.operations}
        assert times["sync of stored"].duration_cycles == 600
        assert times["sync of stored"].contexts == (CORE,)
        assert times["back"].begin == times["sync of stored"].end + 1000 == times["stored"].end + 1600

    def test_overwriting_an_hbm_buffer_in_place_is_guarded(self):
        b = KernelBuilder("k", {"A": 2048})
        x = b.input("x", "Hbm", "bf16", element="A")
        x.to_dm(**PLACE, let="dm").to_hbm_view(x)
        found = {i.id: i for i in compile_kernel(b.build(x)).instructions}
        assert found["reuse of x"].duration_cycles == 600

    def test_tile_views_cost_core_work_outside_kept_loops_only(self):
        unrolled = [i for i in compile_kernel(double_buffer.unrolled()).instructions if i.kind == "Core"]
        assert sorted(i.duration_cycles for i in unrolled) == [6] * 40 + [10] * 20
        rolled = [i for i in compile_kernel(double_buffer.rolled()).instructions if i.kind == "Core"]
        assert not rolled

    def test_views_are_addressed_from_cycle_1000_on(self):
        operations = compile_kernel(double_buffer.unrolled()).schedule.operations
        addresses = sorted(o.begin for o in operations if o.id.startswith("address"))
        assert addresses == [1000 + 10 * n for n in range(20)]


def test_a_pass_that_holds_a_bank_too_long_keeps_dma_away():
    b = KernelBuilder("k", {"A": 128, "B": 8, "C": 8})
    x = b.input("x", "Hbm", "bf16", element="A, B, C").to_dm(cluster="1 # 2", slice="1 # 256", element="A, B, C")
    s = b.main.begin(x).fetch("B, A", "C").collect("B, A", "C # 16").commit_trim("C").commit("A, B, C", let="y")
    found = {i.id: i for i in compile_kernel(b.build(s)).instructions}
    assert found["y"].bank_accesses >= 64
    assert DMA in found["y"].contexts


def test_what_no_data_prices_says_so():
    b = KernelBuilder("k", {"A": 2048})
    x = b.input("x", "Hbm", "bf16", element="A")
    with pytest.raises(WorkError, match="no price for HBM to HBM"):
        compile_kernel(b.build(x.to_hbm(element="A")))


def test_the_manual_profile_starts_at_zero_and_has_no_syncs():
    schedule = compile_kernel(patterns.gemv(), "manual").schedule
    assert min(o.begin for o in schedule.operations) == 0
    assert schedule.operations[-1].duration_cycles == 0


def test_the_same_kernel_compiles_to_the_same_schedule():
    assert compile_kernel(perceptron.mnist()).schedule == compile_kernel(perceptron.mnist()).schedule

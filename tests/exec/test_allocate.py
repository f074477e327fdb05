"""Memory planning: granules, halves, reuse, and what a refusal names."""

from dataclasses import replace

import pytest

from tcptune.errors import RuleViolation
from tcptune.exec.scheduling.allocate import lifetimes, plan_memory
from tcptune.exec.scheduling.check_schedule import check_schedule
from tcptune.exec.scheduling.schedule import schedule_program
from tcptune.ir.schedule import Buffer, Repeat
from tests.exec.programs import begins, op, program


def compiled(p):
    plan = plan_memory(p)
    schedule = schedule_program(plan.program)
    schedule = replace(schedule, lifetimes=lifetimes(plan, schedule))
    check_schedule(plan.program, schedule)
    return plan, schedule


def chain(*sizes, tier="Sram"):
    """Each buffer is written, then read before the next one is written."""
    parts = []
    for i, _ in enumerate(sizes):
        parts += [op(f"w{i}", "dma", 10, writes=[f"b{i}"]), op(f"r{i}", "main", 100, reads=[f"b{i}"])]
    return program(*parts, buffers=[Buffer(f"b{i}", tier, size) for i, size in enumerate(sizes)])


def test_dm_addresses_are_multiples_of_256_bytes_a_slice():
    plan, _ = compiled(chain(16, 300, 4096))
    assert plan.addresses == {"b0": 0, "b1": 256, "b2": 768}


def test_fresh_space_is_used_first_so_that_loads_run_ahead():
    _, schedule = compiled(chain(1000, 1000, 1000))
    assert [begins(schedule)[f"w{i}"] for i in range(3)] == [0, 10, 20]


def test_a_full_dm_reuses_the_place_of_dead_tensors_and_waits_for_their_readers():
    plan, schedule = compiled(chain(300_000, 200_000, 300_000))
    assert plan.addresses["b2"] == 0
    assert begins(schedule)["w2"] >= begins(schedule)["r0"] + 100


def test_tensors_that_do_not_fit_together_are_named():
    parts = [op("wa", "dma", 1, writes=["a"]), op("wb", "dma", 1, writes=["b"]), op("use", "main", 1, reads=["a", "b"])]
    with pytest.raises(RuleViolation) as caught:
        plan_memory(program(*parts, buffers=[Buffer("a", "Sram", 400_000), Buffer("b", "Sram", 200_000)]))
    assert caught.value.rule == "DM-003"
    assert "b needs" in caught.value.message
    assert "a (400,128 B)" in caught.value.message


def test_trf_tensors_take_halves_and_alternate():
    plan, schedule = compiled(chain(1024, 4096, 16, tier="Trf"))
    assert [plan.addresses[f"b{i}"] for i in range(3)] == [0, 32_768, 0]
    assert begins(schedule)["w1"] < begins(schedule)["r0"] + 100
    assert begins(schedule)["w2"] >= begins(schedule)["r0"] + 100


def test_a_tensor_larger_than_a_half_takes_the_whole_trf():
    plan, _ = compiled(chain(40_000, 1024, tier="Trf"))
    assert plan.addresses == {"b0": 0, "b1": 0}


def test_three_live_trf_tensors_do_not_fit():
    parts = [op(f"w{i}", "sub", 1, writes=[f"t{i}"]) for i in range(3)] + [op("use", "main", 1, reads=["t0", "t1", "t2"])]
    with pytest.raises(RuleViolation) as caught:
        plan_memory(program(*parts, buffers=[Buffer(f"t{i}", "Trf", 64) for i in range(3)]))
    assert caught.value.rule == "TRF-006"


def test_live_vrf_tensors_share_eight_kilobytes():
    parts = [op(f"w{i}", "sub", 1, writes=[f"v{i}"]) for i in range(3)] + [op("use", "main", 1, reads=["v0", "v1", "v2"])]
    plan, _ = compiled(program(*parts, buffers=[Buffer(f"v{i}", "Vrf", 2720) for i in range(3)]))
    assert sorted(plan.addresses.values()) == [0, 2720, 5440]
    with pytest.raises(RuleViolation) as caught:
        plan_memory(program(*parts, buffers=[Buffer(f"v{i}", "Vrf", 2752) for i in range(3)]))
    assert caught.value.rule == "VRF-004"


def test_a_tensor_lives_from_its_producers_begin_to_its_last_readers_end():
    _, schedule = compiled(chain(64, 64))
    life = next(entry for entry in schedule.lifetimes if entry.buffer.name == "b0")
    assert (life.begin, life.end) == (begins(schedule)["w0"], begins(schedule)["r0"] + 100)


def test_a_tensor_of_a_loop_body_lives_once_an_iteration():
    body = (op("w", "sub", 5, writes=["t"]), op("r", "main", 7, reads=["t", "x"]))
    buffers = [Buffer("t", "Trf", 64), Buffer("x", "Sram", 64)]
    _, schedule = compiled(program(op("load", "dma", 3, writes=["x"]), Repeat(3, body), buffers=buffers))
    assert [entry.buffer.name for entry in schedule.lifetimes] == ["x", "t@0", "t@1", "t@2"]
    assert schedule.lifetimes[0].end == 3 + 3 * 12


def test_reused_space_is_that_which_was_freed_longest_ago():
    """Three buffers fill the memory; the next ones take their places in turn, and each waits for the users of that place alone."""
    plan, _ = compiled(chain(*[160 << 10] * 6))
    places = [plan.addresses[f"b{i}"] for i in range(6)]
    assert places[3:] == places[:3]
    loads = {part.id: part for part in plan.program.instructions()}
    assert {lag.after for lag in loads["w4"].waits} == {"w1", "r1"}

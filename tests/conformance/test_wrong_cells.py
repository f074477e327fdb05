"""A table with one wrong cell does not pass: what the corpus asks is derived, not believed."""

from copy import deepcopy
from pathlib import Path

import pytest

from tcptune.exec.conformance.runner import load_cases, run_case

FILE = Path(__file__).parent / "data" / "kernels_and_scheduling.json"
CASES = {case["id"]: case for case in load_cases(FILE)}

WRONG = [
    ("cli.pre_step_selection", (0, "compiled"), "nothing, cached per kernel"),
    ("cli.pre_step_selection", (1, "compiled"), "device functions reachable from each target"),
    ("cli.pre_step_selection", (2, "situation"), "otherwise"),
    ("viewer.behaviours", (5, "effect"), "cycle range and memory address range together"),
    ("viewer.behaviours", (9, "effect"), "cycle range only"),
    ("viewer.behaviours", (3, "effect"), "operators connected to it are highlighted"),
    ("viewer.behaviours", (9, "action"), "click the timeline background"),
    ("xfmr.engine_choice", (0, "engine"), "Vector Engine"),
    ("xfmr.engine_choice", (1, "engine"), "Contraction Engine"),
    ("xfmr.engine_choice", (2, "engine"), "DMA, and Fetch/Cast"),
    ("xfmr.boundaries", (0, "launches_per_token"), 28),
    ("xfmr.boundaries", (1, "tensors", 1, "element"), "H, Q"),
    ("xfmr.boundaries", (1, "tensors", 1, "dtype"), "f32"),
    ("xfmr.boundaries", (1, "tensors", 2, "name"), "key_weight"),
    ("xfmr.boundaries", (1, "tensors", 12, "direction"), "in"),
    ("xfmr.boundaries", (3, "tensors", 4, "dtype"), "bf16"),
    ("xfmr.boundaries", (3, "tensors", 5, "element"), "N"),
    ("xfmr.boundaries", (2, "tensors", 0, "direction"), "sideways"),
    ("xfmr.contractions", (3, "einsum"), "NGD, TND -> NG"),
    ("xfmr.contractions", (5, "kernel"), "projection"),
    ("xfmr.contractions", (5, "weight", "axes"), "QH"),
    ("xfmr.contractions", (0, "launches_per_token"), 1),
    ("xfmr.model", (0, "value"), "Qwen3-1.7B"),
    ("xfmr.model", (13, "value"), True),
    ("xfmr.oracle_tests", (1, "compare"), "abs diff <= 0.08 + 0.8*|expected|"),
    ("xfmr.oracle_tests", (1, "boundary"), "prefill"),
    ("sched.mnist_workload", (0, "bias"), "X"),
    ("tune.protocol", (2, "do"), "change one lever only"),
    ("tune.protocol", (5, "step"), 7),
    ("tune.diagnosis_steps", (0, "do"), "compare context lanes for possible overlap"),
    ("kernel.contraction_definitions", (1, "multiply"), "A_ij x_i"),
    ("kernel.contraction_definitions", (2, "reduce"), "C_ik = sum_j A_ik B_kj"),
    ("kernel.contraction_definitions", (2, "broadcast"), "A over K and B over I"),
    ("kernel.tensor_examples", (2, "named_shape", "J"), 5),
    ("kernel.mapping_operators", (0, "size"), "SIZE, n must divide SIZE"),
]


@pytest.mark.parametrize("case_id", sorted({case_id for case_id, _, _ in WRONG}))
def test_the_table_as_it_is_passes(case_id):
    assert run_case(CASES[case_id]).outcome == "passed"


@pytest.mark.parametrize(("case_id", "path", "value"), WRONG)
def test_a_wrong_cell_fails(case_id, path, value):
    case = deepcopy(CASES[case_id])
    cell = case["rows"]
    for key in path[:-1]:
        cell = cell[key]
    assert cell[path[-1]] != value
    cell[path[-1]] = value
    result = run_case(case)
    assert result.outcome == "failed"
    assert "crash" not in result.why


@pytest.mark.parametrize(("case_id", "wrong"), [("sequencer.nine-entries", 8), ("sequencer.iteration-65537", [[65537, 16], [32, 1]])])
def test_the_entries_of_a_refused_configuration_are_compared(case_id, wrong):
    cases = {case["id"]: case for case in load_cases(FILE.with_name("mapping_and_streams.json"))}
    case = deepcopy(cases[case_id])
    assert run_case(case).outcome == "passed"
    case["expect"]["entries"] = wrong
    assert run_case(case).outcome == "failed"


@pytest.mark.parametrize("wrong", [{"dma.ex2": 1.5}, {"dma.no_such_transfer": 1.9924}])
def test_a_slowdown_is_derived_from_both_transfers(wrong):
    cases = {case["id"]: case for case in load_cases(FILE.with_name("dma_and_memory.json"))}
    case = deepcopy(cases["dma.ex2_single_dmn"])
    assert run_case(case).outcome == "passed"
    case["expect"]["slowdown_vs"] = wrong
    assert run_case(case).outcome == "failed"

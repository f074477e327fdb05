"""Random pipelines never crash the checker: each is accepted and executes, or is refused with the id of a rule that exists."""

import copy
import os
from random import Random

import numpy as np
import pytest

from tcptune.errors import RuleViolation, TcptuneError
from tcptune.exec.conformance.kinds.chain import build
from tcptune.exec.conformance.kinds.chain_values import cells_of, contents
from tcptune.exec.conformance.runner import corpus_files, load_cases
from tcptune.model.numerics.elements import from_bits, to_bits
from tcptune.model.pipeline import Chain, apply_chain, check_chain
from tcptune.model.rules import all_rules
from tcptune.model.stage import ChainEnv
from tcptune.model.values import Values
from tests.properties.pipelines import AXES, Pipeline, legal_pipeline, mutated
from tests.reference.pull import RULES, reader, sampled_positions

PIPELINES = int(os.environ.get("TCPTUNE_FUZZ_PIPELINES", "300"))


def check(pipeline: Pipeline) -> Chain:
    return check_chain(pipeline.start, pipeline.ops, ChainEnv(pipeline.context, AXES, pipeline.operands))


def execute(chain: Chain, seed: int) -> None:
    """Runs a chain on small random numbers; the result has the shape of its type."""
    rng = np.random.default_rng(seed)

    def numbers(coords: dict[str, np.ndarray]) -> np.ndarray:
        return rng.integers(-2, 3, size=next((c.shape for c in coords.values()), ()))

    start = contents(chain.start, numbers)
    operands = {name: contents(kind, numbers) for name, kind in chain.env.operands.items()}
    result = apply_chain(chain, start, operands)
    assert result.data.shape == chain.final.shape


def agrees_with_the_reference(chain: Chain, seed: int) -> None:
    """Sampled cells of the result, from random bit patterns, are those of the cell-by-cell path."""
    rng = np.random.default_rng(seed)
    live = cells_of(chain.start).live
    start = Values(from_bits(rng.integers(0, 1 << chain.start.dtype.bits, live.shape, dtype=np.uint64), chain.start.dtype), np.array(live))
    result = apply_chain(chain, start)
    bits, read, filled = to_bits(result.data, chain.final.dtype), reader(chain, start), cells_of(chain.final).live
    for position in sampled_positions(chain.final.shape, 30, rng):
        expected = read(position) if filled[position] else None
        assert (expected is not None) == bool(result.defined[position]), (seed, position)
        assert expected is None or int(bits[position]) == expected, (seed, position)


@pytest.mark.parametrize("block", range(10))
def test_legal_pipelines_are_accepted_and_execute(block):
    for seed in range(block * PIPELINES // 10, (block + 1) * PIPELINES // 10):
        pipeline = legal_pipeline(Random(seed))
        try:
            chain = check(pipeline)
        except RuleViolation as refusal:
            pytest.fail(f"seed {seed}: {[op.to_json() for op in pipeline.ops]} from {pipeline.start.to_json()}: {refusal.render()}")
        if seed % 10 == 0:
            execute(chain, seed)
        if seed % 5 == 0 and {type(op) for op in pipeline.ops} <= set(RULES):
            agrees_with_the_reference(chain, seed)


@pytest.mark.parametrize("block", range(10))
def test_mutated_pipelines_are_accepted_or_refused_by_a_rule(block):
    accepted = 0
    for seed in range(block * PIPELINES // 10, (block + 1) * PIPELINES // 10):
        rng = Random(seed)
        pipeline = mutated(legal_pipeline(rng), rng)
        try:
            chain = check(pipeline)
        except RuleViolation as refusal:
            assert refusal.rule in all_rules(), refusal.render()
            continue
        accepted += 1
        if chain.start.shape[2] <= 64 or seed % 20 == 0:
            execute(chain, seed)
    assert accepted, "mutations are mild enough that some pipelines stay legal"


GARBAGE = (
    None,
    -1,
    0,
    "",
    [],
    {},
    "A B",
    "A /",
    "Z9",
    1e9,
    True,
    "1 # 3",
    "[A",
    "x" * 300,
    10**30,
    {"Broadcast1": None},
    {"Nope": {"slice1": 2}},
)
CHAIN_CASES = [case for file in corpus_files() for case in load_cases(file) if case["kind"] == "chain"]


def test_garbage_in_a_chains_json_is_an_error_with_a_message():
    rng = Random(0)
    for _ in range(PIPELINES):
        case = copy.deepcopy(rng.choice(CHAIN_CASES))
        op = rng.choice(case["ops"])
        key = rng.choice([*op, "surplus"])
        if rng.random() < 0.2:
            op.pop(key, None)
        else:
            op[key] = rng.choice(GARBAGE)
        try:
            build(case)
        except TcptuneError as error:
            assert error.render().startswith("error"), (op, error)

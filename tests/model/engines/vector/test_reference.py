"""Every accepted chain of the corpus, executed and compared with the cell-by-cell reference."""

import json
from pathlib import Path

import numpy as np
import pytest

from tcptune.exec.conformance.kinds.chain import build
from tcptune.exec.conformance.kinds.chain_values import cells_of, contents
from tcptune.model.mappings.movement import carried_digits
from tcptune.model.pipeline import apply_chain
from tests.reference.vector import VectorReference, project

CORPUS = Path(__file__).parents[3] / "conformance" / "data" / "vector_engine.json"
CASES = [c for c in json.loads(CORPUS.read_text())["cases"] if c["kind"] == "chain" and c["expect"]["verdict"] == "accept"]
REDUCING = ("vector_intra_slice_reduce", "vector_inter_slice_reduce")
COMPARED_CELLS = 60


def table_of_numbers(case, dtype, rng, size):
    """Numbers to draw cells from: small where a chain reduces (so that order cannot matter), else with extremes."""
    names = {op["op"] for op in case["ops"]}
    product = any(op.get("fn") == "Mul" for op in case["ops"])
    if dtype == "i32":
        if names & set(REDUCING):
            return rng.integers(-9, 10, size).astype(np.int32)
        extremes = np.array([-(2**31), 2**31 - 1, -1, 0, 1, 5, 101, 16_777_217], np.int32)
        return rng.permutation(np.concatenate([extremes, rng.integers(-300, 300, size - len(extremes)).astype(np.int32)]))
    if names & set(REDUCING):
        return (rng.choice([1.0, -1.0], size) if product else rng.integers(-9, 10, size)).astype(np.float32)
    extremes = np.array([0.0, 1.0, -1.0, 0.5, 80.0, -80.0, 1e-3, 3e4], np.float32)
    return rng.permutation(np.concatenate([extremes, rng.normal(0, 3, size - len(extremes)).astype(np.float32)]))


def drawn(axes, digits, numbers):
    """A function of coordinates that depends on every digit its owner carries."""

    def value(coords):
        key = np.zeros((), np.int64)
        for name, kept in digits.items():
            c = np.asarray(coords.get(name, 0))
            kept_part = sum((c // w % e * w for w, e in kept), np.zeros((), np.int64))
            key = key * (axes[name] + 1) + kept_part
        return numbers[(key * 2_654_435_761) % (2**32) % len(numbers)]

    return value


@pytest.mark.parametrize("case", CASES, ids=[c["id"] for c in CASES])
def test_an_accepted_chain_computes_what_the_reference_computes(case):
    chain = build(case)
    rng = np.random.default_rng(len(case["id"]))
    reference = VectorReference(case, None, None)
    start = drawn(reference.axes, reference.carried[0], table_of_numbers(case, chain.start.dtype.name, rng, 97))
    operands, registers = {}, {}
    for name, kind in chain.env.operands.items():
        digits = carried_digits(tuple(m for _, m in kind.levels))
        operands[name] = (drawn(reference.axes, digits, table_of_numbers(case, kind.dtype.name, rng, 89)), digits)
        registers[name] = contents(kind, operands[name][0])

    def scalar(number):
        return np.float32(number) if isinstance(number, np.floating) else int(number)

    reference.start = lambda coords: scalar(start(coords))
    reference.registers = lambda name, coords: scalar(
        operands[name][0]({n: project(coords.get(n, 0), d) for n, d in operands[name][1].items()})
    )
    result = apply_chain(chain, contents(chain.start, start), registers)

    final = chain.final
    assert result.data.shape == final.shape
    cells = cells_of(final)
    live = np.argwhere(cells.live)
    chosen = live[rng.choice(len(live), min(COMPARED_CELLS, len(live)), replace=False)]
    with np.errstate(all="ignore"):
        for place in (tuple(p) for p in chosen):
            coords = {n: int(c[place]) for n, c in cells.coords.items()}
            want = reference.final(coords)
            got = result.data[place]
            assert result.defined[place], coords
            same = got == want or (np.isnan(got) and np.isnan(want)) if final.dtype.is_float else int(got) == want
            assert same or (final.dtype.is_float and abs(got - want) <= np.spacing(np.abs(np.float32(want)))), (coords, got, want)

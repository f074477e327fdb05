"""The interpreter of a chain agrees bit for bit with the cell-by-cell reference path on every accepted chain of the corpus."""

import zlib

import numpy as np
import pytest

from tcptune.exec.conformance.kinds.chain import build
from tcptune.exec.conformance.kinds.chain_values import cells_of
from tcptune.exec.conformance.runner import corpus_files, load_cases
from tcptune.model.numerics.elements import from_bits, to_bits
from tcptune.model.pipeline import apply_chain
from tcptune.model.values import Values
from tests.reference.pull import RULES, reader, sampled_positions

CHAINS = [
    case
    for file in corpus_files()
    for case in load_cases(file)
    if case["kind"] == "chain" and case["expect"]["verdict"] == "accept" and {op["op"] for op in case["ops"]} <= {r.NAME for r in RULES}
]
SAMPLES = 300


def random_start(chain, seed):
    """Random bit patterns in the live cells of the start, NaN and all."""
    rng = np.random.default_rng(seed)
    live = cells_of(chain.start).live
    bits = rng.integers(0, 1 << chain.start.dtype.bits, live.shape, dtype=np.uint64)
    return Values(from_bits(bits, chain.start.dtype), np.array(live))


@pytest.mark.parametrize("case", CHAINS, ids=[c["id"] for c in CHAINS])
def test_sampled_cells_agree_bit_for_bit(case):
    chain = build(case)
    seed = zlib.crc32(case["id"].encode())
    start = random_start(chain, seed)
    result = apply_chain(chain, start)
    bits = to_bits(result.data, chain.final.dtype)
    read = reader(chain, start)
    live = cells_of(chain.final).live
    for position in sampled_positions(chain.final.shape, SAMPLES, np.random.default_rng(seed)):
        if not live[position]:
            continue
        expected = read(position)
        assert bool(result.defined[position]) == (expected is not None), position
        if expected is not None:
            assert int(bits[position]) == expected, position

"""Every accepted chain of the corpus that the cell-by-cell path knows: the interpreter gives the same bits on random data."""

from __future__ import annotations

import zlib

import numpy as np
import pytest

from tcptune.exec.conformance.kinds.chain import build
from tcptune.exec.conformance.runner import corpus_files, load_cases
from tcptune.model.pipeline import Chain, apply_chain
from tests.reference.cells import Contents, differences, random_values
from tests.reference.chains import REFERENCES, run

SLICES = frozenset({0, 1, 5, 255})
"""The reference computes these slices; the interpreter all of them."""
MOST_PRODUCTS = 20_000


def accepted_chains() -> dict[str, Chain]:
    """Chains of the contraction chapter that are small enough for plain Python."""
    file = next(f for f in corpus_files() if f.stem == "contraction_cast_transpose_commit")
    found = {}
    for case in load_cases(file):
        if case["kind"] == "chain" and case["expect"]["verdict"] == "accept" and all(op["op"] in REFERENCES for op in case["ops"]):
            chain = build(case)
            if products(chain) <= MOST_PRODUCTS:
                found[case["id"]] = chain
    return found


def products(chain: Chain) -> int:
    """Products in the slices that the reference looks at."""
    outer = next((s.after for s in chain.steps if s.op.NAME == "contract_outer"), None)
    if outer is None:
        return 0
    live = outer.slice.live_size * outer.cluster.live_size  # type: ignore[union-attr]
    return min(live, 2 * len(SLICES)) * outer.shape[3] * outer.shape[4] * outer.shape[5]


CHAINS = accepted_chains()


@pytest.mark.parametrize("case", CHAINS)
def test_the_interpreter_gives_the_bits_of_the_cell_by_cell_path(case: str) -> None:
    chain = CHAINS[case]
    rng = np.random.default_rng(zlib.crc32(case.encode()))
    start = random_values(chain.start, rng)
    operands = {name: random_values(kind, rng) for name, kind in chain.env.operands.items()}
    known = {name: Contents.of(chain.env.operands[name], values, SLICES) for name, values in operands.items()}
    expected = run(chain, Contents.of(chain.start, start, SLICES), known)
    assert expected.cells
    assert differences(chain.final, expected, apply_chain(chain, start, operands)) == []


def test_most_of_the_chapter_is_compared() -> None:
    assert len(CHAINS) >= 80

"""Random contractions: the legal ones are accepted and have the bits of the cell-by-cell path; mutated ones never crash."""

from __future__ import annotations

import re
from random import Random

import numpy as np
import pytest

from tcptune.errors import InputError, RuleViolation
from tcptune.ir.kernels.ops import Op, op_from_json
from tcptune.model.engines.contraction.values import contract_fused
from tcptune.model.pipeline import apply_chain
from tests.properties.contractions import Drawn, draw
from tests.reference.cells import Contents, differences, random_values
from tests.reference.chains import run

CAPACITY = {"TIMERED-006"}
"""What a contraction that is legal by construction may still be refused for."""
MOST_PRODUCTS = 4_000


@pytest.mark.parametrize("seed", range(60))
def test_legal_contractions_are_accepted_and_exact(seed: int) -> None:
    drawn = draw(Random(seed))
    try:
        chain = drawn.check()
    except RuleViolation as refusal:
        assert refusal.rule in CAPACITY, refusal.render()
        return
    if np.prod(chain.steps[0].after.shape[3:]) > MOST_PRODUCTS:
        return
    rng = np.random.default_rng(seed)
    start, weight = random_values(chain.start, rng), random_values(drawn.weight, rng)
    expected = run(chain, Contents.of(chain.start, start), {"w": Contents.of(drawn.weight, weight)})
    got = apply_chain(chain, start, {"w": weight})
    assert differences(chain.final, expected, got) == []
    fast = contract_fused(start, weight, chain.steps, mode="fast")
    assert (fast.defined == got.defined).all()


def mutated(drawn: Drawn, rng: Random) -> tuple[Op, ...]:
    """The operations with one mapping text changed: factors swapped, dropped or doubled, a number or a mark replaced."""
    raw = [op.to_json() for op in drawn.ops]
    chosen = rng.choice(raw)
    field = rng.choice([k for k in ("time", "packet") if k in chosen])
    parts = chosen[field].split(", ")
    place = rng.randrange(len(parts))
    change = rng.randrange(5)
    if change == 0:
        rng.shuffle(parts)
    elif change == 1:
        del parts[place]
    elif change == 2:
        parts.insert(place, parts[rng.randrange(len(parts))])
    elif change == 3:
        parts[place] = re.sub(r"\b\d+", lambda m: str(rng.choice((1, 2, 3, 4, 8, 16, 33, int(m.group()) * 2))), parts[place], count=1)
    else:
        parts[place] += rng.choice((" # 8", " # 64", " / 2", " % 2", " = 1", " #{0} 16"))
    chosen[field] = ", ".join(parts) or "1"
    if rng.random() < 0.1:
        rng.shuffle(raw)
    return tuple(op_from_json(op, drawn.axes) for op in raw)


def test_mutated_contractions_are_accepted_and_run_or_refused_by_a_rule() -> None:
    accepted = refused = 0
    for seed in range(500):
        rng = Random(seed)
        drawn = draw(rng)
        try:
            chain = Drawn(drawn.axes, drawn.start, drawn.weight, mutated(drawn, rng)).check()
        except RuleViolation as refusal:
            assert re.fullmatch(r"[A-Z]+-\d{3}", refusal.rule)
            refused += 1
            continue
        except InputError as error:
            assert error.message
            continue
        accepted += 1
        if np.prod(chain.steps[0].after.shape[3:]) <= MOST_PRODUCTS:
            values = np.random.default_rng(seed)
            got = apply_chain(chain, random_values(chain.start, values), {"w": random_values(drawn.weight, values)})
            assert got.data.shape == chain.final.shape
    assert accepted > 20 and refused > 100

"""Random transposes: the legal ones are accepted and move the right elements; changed ones are refused by a rule or still right."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from tcptune.errors import RuleViolation
from tcptune.ir.kernels.ops import op_from_json
from tcptune.ir.mappings.axes import Axes
from tcptune.ir.types import StreamType, dtype
from tcptune.model.pipeline import Chain, apply_chain, check_chain
from tcptune.model.stage import ChainEnv
from tests.reference.cells import Contents, differences, random_values
from tests.reference.chains import run

DTYPES = ("i4", "i8", "i16", "i32", "f4e2m1", "f8e4m3", "bf16", "f32")


def drawn(rng: Random) -> tuple[Axes, StreamType, dict[str, str]]:
    """A stream and a transpose that fits it: Time = [Outer, Rows, Gather], dual packing where a width has it, padded rows kept or not."""
    element = dtype(rng.choice(DTYPES))
    flit, most_rows = 256 // element.bits, 64 // element.bits
    single = 16 if element.bits == 4 else 8
    dual = 16 if element.bits in (8, 16) else single
    live, rows = rng.randint(1, dual), rng.randint(1, most_rows)
    gathered = rng.choice((1, 2, 4) if live <= single and element.bits != 4 else (1, 2))
    sizes = {"E": live, "R": rows, "G": gathered, "A": rng.choice((1, 2, 3)), "B": rng.choice((1, 2))}
    axes = Axes(sizes)
    valid = single if live <= single else dual
    columns = rng.choice(("E", f"E # {valid}"))
    spatial = {"chip": axes.mapping("1"), "cluster": axes.mapping("1 # 2"), "slice": axes.mapping("1 # 64")}
    start = StreamType("Collect", element, time=axes.mapping("A, B, R, G"), packet=axes.mapping(f"E # {flit}"), **spatial)
    return axes, start, {"op": "transpose", "time": f"A, B, G, {columns}", "packet": f"R # {flit}"}


def checked(axes: Axes, start: StreamType, op: dict[str, str]) -> Chain:
    return check_chain(start, [op_from_json(op, axes)], ChainEnv("main", axes))


def expect_right_elements(chain: Chain, seed: int) -> None:
    values = random_values(chain.start, np.random.default_rng(seed))
    expected = run(chain, Contents.of(chain.start, values), {})
    assert expected.cells
    assert differences(chain.final, expected, apply_chain(chain, values)) == []


@pytest.mark.parametrize("seed", range(80))
def test_legal_transposes_are_accepted_and_move_the_right_elements(seed: int) -> None:
    expect_right_elements(checked(*drawn(Random(seed))), seed)


def test_changed_transposes_are_refused_or_right() -> None:
    accepted = refused = 0
    for seed in range(400):
        rng = Random(seed)
        axes, start, op = drawn(rng)
        parts = op["time"].split(", ")
        change = rng.randrange(4)
        if change == 0:
            rng.shuffle(parts)
        elif change == 1:
            del parts[rng.randrange(len(parts))]
        elif change == 2:
            parts[-1] += rng.choice((" = 2", " / 2", " % 2", " # 16", " #{0} 32"))
        else:
            op["packet"] = rng.choice((str(start.packet), op["packet"] + " = 8", op["packet"].replace("R", "[B, R]")))
        op["time"] = ", ".join(parts)
        try:
            chain = checked(axes, start, op)
        except RuleViolation:
            refused += 1
            continue
        accepted += 1
        expect_right_elements(chain, seed)
    assert accepted > 40 and refused > 100

"""Cutting axes against positions: every cell of a mapping keeps its index, spelled in two digits."""

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tcptune.errors import InputError
from tcptune.ir.kernels.cut import cut_axes, minor_names
from tcptune.ir.kernels.kernel import Kernel
from tcptune.ir.mappings.axes import Axes

BELOW = 8


def kernel(element: str, **axes: int) -> Kernel:
    """A kernel of one input and one step with the same mapping."""
    return Kernel.from_json(
        {
            "axes": axes,
            "inputs": {"a": {"type": "Hbm", "dtype": "bf16", "chip": "1", "element": element}},
            "steps": [{"let": "d", "op": "to_dm", "from": "a", "cluster": "1 # 2", "slice": "1 # 256", "element": element}],
            "output": "d",
        }
    )


@st.composite
def elements(draw: st.DrawFn) -> str:
    """Digits of J = 48, padded or not, in any order with another axis between them."""
    stored = draw(st.sampled_from([48, 64, 96]))
    weights = sorted(draw(st.sets(st.sampled_from([2, 4, 8, 16]), max_size=3)))
    bounds = [1, *weights, stored]
    whole = "J" if stored == 48 else f"J # {stored}"
    digits = [f"{whole} / {low} % {high // low}" for low, high in itertools.pairwise(bounds)]
    return ", ".join(draw(st.permutations([*digits, "K"])))


@given(elements())
@settings(max_examples=60, deadline=None)
def test_a_cut_axis_keeps_every_cell(element):
    before = kernel(element, J=48, K=3)
    after = cut_axes(before, {"J": (("X", BELOW),)})
    assert dict(after.axes.items()) == {"J": 48 // BELOW, "X": BELOW, "K": 3}
    for old, new in zip(
        (before.inputs[0].type.element, before.steps[0].element), (after.inputs[0].type.element, after.steps[0].element), strict=True
    ):
        assert new.size == old.size
        assert new.axes == {name: size for name, size in {"J": 6, "X": 8, "K": 3}.items() if name in new.axes}
        for position in range(old.size):
            was, now = old.cell(position).to_json(), new.cell(position).to_json()
            if isinstance(was, dict):
                assert now == {"J": was["J"] // BELOW, "X": was["J"] % BELOW, "K": was["K"]}
            else:
                assert now == was


def test_parts_that_end_at_the_cut_have_their_own_names():
    cut = cut_axes(kernel("J # 64 / 8, K, J # 64 % 8", J=48, K=3), {"J": (("X", 8),)})
    assert str(cut.steps[0].element) == "J # 8, K, X"


def test_mappings_without_the_axis_are_left_as_written():
    cut = cut_axes(kernel("K / 2, K % 2", J=48, K=4), {"J": (("X", 8),)})
    assert str(cut.steps[0].element) == "K / 2, K % 2"


def test_a_part_that_does_not_divide_the_axis_is_refused():
    with pytest.raises(InputError, match="5 positions do not divide axis J of 48"):
        cut_axes(kernel("J", J=48), {"J": (("X", 5),)})


def test_names_of_minor_parts_are_free_letters():
    assert minor_names(Axes(A=2, C=2), 2) == ["B", "D"]
    with pytest.raises(InputError, match="no letter is free"):
        minor_names({chr(65 + n): 1 for n in range(26)}, 1)

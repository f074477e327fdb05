"""Workloads: roles, layouts, and one clear error for every kind of bad input."""

import pytest

from tcptune.errors import InputError
from tcptune.ir.workload import EpilogueOp, einsum


@pytest.mark.parametrize(
    ("text", "sizes", "kind"),
    [
        ("i,i->", {"i": 8}, "dot"),
        ("ij,j->i", {"i": 4, "j": 8}, "gemv"),
        ("ik,jk->ij", {"i": 4, "j": 4, "k": 8}, "gemm"),
        ("vmk,kn->vmn", {"v": 2, "m": 3, "k": 4, "n": 5}, "bmm"),
        ("bhqd,bhkd->bhqk", {"b": 2, "h": 2, "q": 4, "k": 4, "d": 8}, "bmm"),
        ("i,i->i", {"i": 8}, "product"),
        ("i,j->ij", {"i": 8, "j": 4}, "product"),
        ("ij->i", {"i": 8, "j": 4}, "reduction"),
    ],
)
def test_the_kind_follows_from_where_axes_occur(text, sizes, kind):
    assert einsum(text, sizes=sizes).kind() == kind


def test_axes_have_the_role_of_the_operands_they_occur_in():
    roles = einsum("bmk,bkn->bmn", b=2, m=3, k=4, n=5).roles()
    assert roles == {"b": "batch", "m": "m", "k": "k", "n": "n"}


@pytest.mark.parametrize(
    ("text", "sizes", "words"),
    [
        ("ik,jk", {"i": 2, "j": 2, "k": 2}, "exactly one '->'"),
        ("ik->jk->ij", {"i": 2}, "exactly one '->'"),
        ("iK,jk->ij", {"i": 2}, "is not an axis"),
        ("i1,jk->ij", {"i": 2}, "is not an axis"),
        ("ik,jk,kl->il", {"i": 2}, "3 inputs"),
        (",k->k", {"k": 2}, "an input has no axes"),
        ("ii,ij->ij", {"i": 2, "j": 2}, "repeated in input 1"),
        ("ik,jk->ijj", {"i": 2, "j": 2, "k": 2}, "repeated in the result"),
        ("ik,jk->ijz", {"i": 2, "j": 2, "k": 2}, "occurs in no input"),
        ("ikx,jk->ij", {"i": 2, "j": 2, "k": 2, "x": 2}, "input 1 only"),
        ("ik,jk->ij", {"i": 2, "j": 2}, "no size given for axis 'k'"),
        ("ik,jk->ij", {"i": 2, "j": 2, "k": 2, "q": 3}, "unknown axis 'q'"),
        ("ik,jk->ij", {"i": 0, "j": 2, "k": 2}, "at least 1"),
        ("ik,jk->ij", {"i": -4, "j": 2, "k": 2}, "at least 1"),
        ("ik,jk->ij", {"i": 2.5, "j": 2, "k": 2}, "must be an integer"),
        ("ik,jk->ij", {"i": True, "j": 2, "k": 2}, "must be an integer"),
        ("i->i", {"i": 4}, "computes nothing"),
    ],
)
def test_bad_einsums_and_sizes_are_named(text, sizes, words):
    with pytest.raises(InputError, match=words.replace("(", r"\(")) as caught:
        einsum(text, sizes=sizes)
    assert caught.value.exit_status == 2
    assert len(caught.value.render().splitlines()) <= 2


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"dtype": "f16"}, "not supported"),
        ({"dtype": "float"}, "unknown element type"),
        ({"dtype": "i32"}, "has no contraction"),
        ({"dtype": "i8", "out_dtype": "bf16"}, "result of type bf16"),
        ({"layout": "blocked"}, "unknown layout"),
        ({"reduce": "max"}, "a contraction sums"),
        ({"reduce": "median"}, "unknown reduction"),
        ({"epilogue": "tanh"}, "unknown epilogue"),
        ({"epilogue": "bias:b(z)"}, "which the result lacks"),
        ({"epilogue": "bias:b(j), residual:b(ij)"}, "named twice"),
    ],
)
def test_bad_options_are_named(options, words):
    with pytest.raises(InputError, match=words):
        einsum("ik,jk->ij", i=4, j=4, k=8, **options)


def test_result_types_default_to_the_input_type_or_its_accumulator():
    sizes = {"i": 4, "j": 4, "k": 8}
    defaults = {d: einsum("ik,jk->ij", sizes=sizes, dtype=d).out_dtype.name for d in ("bf16", "i8", "f8e4m3", "f8e5m2", "f32")}
    assert defaults == {"bf16": "bf16", "i8": "i32", "f8e4m3": "bf16", "f8e5m2": "bf16", "f32": "f32"}


@pytest.mark.parametrize(
    ("size", "dtype", "stored"),
    [
        (1999, "bf16", 2000),
        (2000, "bf16", 2000),
        (1, "bf16", 16),
        (4, "bf16", 4),
        (5, "bf16", 16),
        (43, "bf16", 48),
        (8, "i8", 8),
        (9, "i8", 32),
    ],
)
def test_rows_that_break_eight_byte_strides_are_padded_to_32_bytes(size, dtype, stored):
    w = einsum("ik,jk->ij", i=4, j=4, k=size, dtype=dtype)
    assert w.row_elements(("i", "k"), w.dtype) == stored


def test_the_dense_layout_pads_nothing():
    w = einsum("ik,jk->ij", i=4, j=4, k=43, layout="dense")
    assert w.row_elements(("i", "k"), w.dtype) == 43


def test_an_epilogue_is_a_list_of_steps():
    w = einsum("ik,jk->ij", i=4, j=4, k=8, epilogue="bias:b(j), mul 0.5, relu")
    assert w.epilogue == (EpilogueOp("bias", operand="b", axes=("j",)), EpilogueOp("mul", constant=0.5), EpilogueOp("relu"))
    assert w.to_json()["epilogue"] == "bias:b(j), mul 0.5, relu"


@pytest.mark.parametrize("written", ["residual:r(ij)", "residual:r(i,j)", "residual:r(i j)", "residual : r( i , j )"])
def test_the_axes_of_an_operand_may_be_parted_by_commas_or_blanks(written):
    w = einsum("ik,jk->ij", i=4, j=4, k=8, epilogue=f"mul 2, {written}, relu")
    assert [str(step) for step in w.epilogue] == ["mul 2", "residual:r(ij)", "relu"]


@pytest.mark.parametrize("written", ["residual:r(i", "bias:r i", "residual(ij)", "bias", "residual:r(i,,j)"])
def test_the_hint_of_an_operand_is_the_form_it_is_written_in(written):
    with pytest.raises(InputError, match="unknown epilogue") as caught:
        einsum("ik,jk->ij", i=4, j=4, k=8, epilogue=written)
    assert f"{'bias' if 'bias' in written else 'residual'}:r(ij)" in caught.value.hint


@pytest.mark.parametrize("epilogue", ["add 1.5", "mul 0.5", "add 99999999999", "add 2147483648", "mul -2147483649", "gelu", "relu, silu"])
@pytest.mark.parametrize(("text", "dtype"), [("i->i", "i32"), ("ik,k->i", "i8")])
def test_what_integers_do_not_compute_is_refused_as_input(text, dtype, epilogue):
    with pytest.raises(InputError, match="integers") as caught:
        einsum(text, sizes=dict.fromkeys(set(text) & set("ik"), 8), dtype=dtype, epilogue=epilogue)
    assert caught.value.exit_status == 2


@pytest.mark.parametrize("epilogue", ["add 2147483647", "mul -2147483648", "add 2.0, relu"])
def test_whole_constants_of_i32_are_taken(epilogue):
    assert einsum("i->i", i=8, dtype="i32", epilogue=epilogue).epilogue


@pytest.mark.parametrize("given", ["fp16", "f16", "i4", "float", "int8"])
def test_the_types_that_a_search_supports_are_listed_whatever_is_wrong_with_the_given_one(given):
    with pytest.raises(InputError) as caught:
        einsum("ik,jk->ij", i=4, j=4, k=8, dtype=given)
    assert "supported: bf16, f8e4m3, f8e5m2, i8, f32" in caught.value.hint
    with pytest.raises(InputError) as caught:
        einsum("ik,jk->ij", i=4, j=4, k=8, dtype="i8", out_dtype=given)
    assert "i32, i16, i8" in caught.value.hint


@pytest.mark.parametrize("written", ["add 1.23456789", "mul 1234567", "add -16777217", "mul 0.1", "add 1e-30", "add 2", "mul -0.5"])
def test_a_constant_is_written_as_precisely_as_it_was_read(written):
    (step,) = einsum("i->i", i=8, epilogue=written).epilogue
    assert str(step) == written
    assert einsum("i->i", i=8, epilogue=str(step)).epilogue == (step,)


@pytest.mark.parametrize("constant", ["1e39", "-1e39", "1e400"])
def test_a_constant_beyond_f32_is_refused(constant):
    with pytest.raises(InputError, match="beyond the range of f32"):
        einsum("i->i", i=8, epilogue=f"add {constant}")

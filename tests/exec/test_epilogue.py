"""Epilogues: where each step runs, how many passes a sequence takes, and that fused and separate kernels both compute it."""

import pytest

from tcptune.errors import RuleViolation
from tcptune.exec.lowering.epilogue import plan_epilogue
from tcptune.exec.lowering.lower import lower
from tcptune.exec.program.check import check_kernel
from tcptune.exec.running.oracle import verify
from tcptune.ir.types import dtype
from tcptune.ir.workload import einsum
from tcptune.search.template import template

SIZES = {"i": 64, "j": 64, "k": 64}


def workload(epilogue, *, fuse=True, element="bf16", text="ik,jk->ij"):
    return einsum(text, sizes=SIZES, dtype=element, epilogue=epilogue, fuse=fuse)


def alus(epilogue, element="f32"):
    return [[c.alu for c in p.calls if c.alu] for p in plan_epilogue(workload(epilogue).epilogue, dtype(element))]


@pytest.mark.parametrize(
    ("epilogue", "want"),
    [
        ("bias:c(j), relu", [["ClipAdd", "ClipMax"]]),
        ("mul 2, add 1, relu", [["FpMul0", "ClipAdd", "ClipMax"]]),
        ("bias:c(j), residual:d(ij), relu", [["FpFma", "ClipAdd", "ClipMax"]]),
        ("mul 2, mul 3, mul 5", [["FpMul0", "FpMul1", "FpFma"]]),
        ("mul 2, mul 3, mul 5, mul 7", [["FpMul0", "FpMul1", "FpFma"], ["FpMul0"]]),
        ("silu, relu", [["FpFpu", "FpMul0", "ClipMax"]]),
        ("relu, mul 2", [["ClipMax"], ["FpMul0"]]),
        ("relu, relu", [["ClipMax"], ["ClipMax"]]),
    ],
)
def test_every_alu_is_used_once_a_pass_and_stages_keep_their_order(epilogue, want):
    assert alus(epilogue) == want


def test_an_addition_before_a_gelu_takes_the_clip_of_an_earlier_pass_since_gelu_needs_the_only_adder():
    first, second = plan_epilogue(workload("bias:c(j), gelu").epilogue, dtype("f32"))
    assert [c.alu for c in first.calls] == ["ClipAdd"]
    assert "vector_stash" in [c.raw["op"] for c in second.calls]
    assert {c.alu for c in second.calls} >= {"FpFpu", "FpFma"}


def test_an_eight_way_assignment_is_preferred():
    (plan,) = plan_epilogue(workload("bias:c(j), relu").epilogue, dtype("f32"))
    assert not plan.narrows


def test_integers_add_multiply_and_clip_and_have_no_gates():
    assert alus("add 3, relu", "i32") == [["ClipAdd", "ClipMax"]]
    assert alus("mul 3, add 2, relu", "i32") == [["FxpMul", "ClipAdd", "ClipMax"]]
    with pytest.raises(RuleViolation, match="no function on i32"):
        alus("silu", "i32")
    with pytest.raises(RuleViolation, match="whole number"):
        alus("add 1.5", "i32")


@pytest.mark.parametrize("fuse", [True, False])
@pytest.mark.parametrize(
    "epilogue",
    [
        "bias:b(j), relu",
        "bias:c(i)",
        "mul 0.5, add 2",
        "residual:x(ij), relu",
        "silu",
        "bias:c(j), gelu",
        "bias:c(j), silu, residual:x(ij)",
        "relu, mul 2",
    ],
)
def test_a_lowered_epilogue_passes_its_oracle_fused_and_in_passes_of_its_own(epilogue, fuse):
    kernel = lower(template(workload(epilogue, fuse=fuse)))
    passes = sum(step.context == "main" for step in kernel.steps if hasattr(step, "context") and hasattr(step, "ops"))
    assert passes >= (1 if fuse else 2)
    verify(check_kernel(kernel), seeds=(42,)).require()


def test_an_integer_epilogue_is_exact():
    kernel = lower(template(workload("bias:c(j), relu", element="i8")))
    verify(check_kernel(kernel), seeds=(42,)).require()


def test_operand_names_do_not_clash_with_those_of_the_contraction():
    kernel = lower(template(workload("bias:b(j), residual:a(ij)")))
    assert [i.name for i in kernel.inputs] == ["a", "b", "bias_b", "residual_a"]


@pytest.mark.parametrize("epilogue", ["bias:c()", "residual:c(), relu"])
def test_an_operand_without_axes_is_one_value_for_every_element(epilogue):
    verify(check_kernel(lower(template(workload(epilogue))))).require()


@pytest.mark.parametrize(("epilogue", "element"), [("add 1.23456789", "bf16"), ("add 16777217", "i8")])
def test_the_oracle_computes_with_the_constant_of_the_kernel(epilogue, element):
    verify(check_kernel(lower(template(workload(epilogue, element=element))))).require()

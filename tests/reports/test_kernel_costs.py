"""What steps cost: pieces counted by hand, and the durations are those of the schedule."""

import pytest

from tcptune.exec.compile import compile_checked
from tcptune.exec.library import patterns
from tcptune.exec.program.check import check_kernel
from tcptune.ir.kernels.kernel import Kernel
from tcptune.reports.kernel_costs import kernel_costs

LOAD = """kernel load
axes A=65536
chips 1
input x: Hbm i32 chip=[1] element=[A]
x_dm = to_dm(x, cluster=[1 # 2], slice=[SLICE], element=[ELEMENT])
output x_dm
"""


@pytest.mark.parametrize(
    ("slices", "element", "pieces", "run_bytes"),
    [
        ("A / 256", "A % 256", 256, 1024),  # a slice takes one run of 256 numbers
        ("A / 8 % 256", "A / 2048, A % 8", 65_536 // 8, 32),  # eight numbers a piece
    ],
)
def test_pieces_of_a_load_are_counted(slices, element, pieces, run_bytes):
    kernel = Kernel.from_text(LOAD.replace("SLICE", slices).replace("ELEMENT", element))
    (cost,) = kernel_costs(check_kernel(kernel))
    assert (cost.facts["pieces"], cost.facts["run_bytes"], cost.facts["bytes"]) == (pieces, run_bytes, 65_536 * 4)
    assert cost.cycles == round(sum(cycles for _, cycles in cost.terms)) or abs(cost.cycles - sum(c for _, c in cost.terms)) < 1


@pytest.mark.parametrize("build", [patterns.gemm, patterns.gemv, patterns.dot, patterns.constant_add], ids=lambda f: f.__name__)
@pytest.mark.parametrize("profile", ["vendor", "manual"])
def test_costs_are_the_durations_of_the_schedule(build, profile):
    checked = check_kernel(build())
    durations = {o.id: o.duration_cycles for o in compile_checked(checked, profile).schedule.operations}
    costs = kernel_costs(checked, profile)
    assert {c.step: c.cycles for c in costs} == {step: durations[step] for step in (c.step for c in costs)}
    busy = [o for o in durations.values() if o]
    assert len(costs) >= len(busy) - 1  # the closing sync is no step


def test_a_pass_shows_its_stages_and_a_loop_its_count():
    gemm = {c.step: c for c in kernel_costs(check_kernel(patterns.gemm()))}
    stages = [op for op, _, _ in gemm["result"].stages]
    assert stages[0] == "fetch"
    assert stages[-1] == "commit"
    looped = "for g in 3 unroll:\n  y = to_dm(x, cluster=[1 # 2], slice=[A / 256], element=[A % 256])\n"
    text = LOAD.replace("SLICE", "A / 256").replace("ELEMENT", "A % 256").replace("output", looped + "output")
    assert [(c.step, c.times) for c in kernel_costs(check_kernel(Kernel.from_text(text)))] == [("x_dm", 1), ("y", 3)]

"""Runs `kernel` cases: a whole program is checked (verdict and rule) and, where it is legal, executed: values, samples, oracle, numbers."""

from __future__ import annotations

from collections.abc import Mapping as Dict
from typing import Any

import numpy as np

from tcptune.errors import ParseError, RuleViolation
from tcptune.exec.conformance.kinds.compare import expect_refusal
from tcptune.exec.conformance.kinds.kernel_facts import compare_facts
from tcptune.exec.conformance.registry import Case, Mismatch
from tcptune.exec.program.check import check_kernel
from tcptune.exec.program.checked import CheckedKernel
from tcptune.exec.running.differences import within
from tcptune.exec.running.fill import cells_of, declared_inputs
from tcptune.exec.running.interpret import RunResult, run_kernel
from tcptune.exec.running.oracle import compare_with_oracle, has_oracle
from tcptune.ir.kernels.kernel import Kernel, Tolerance
from tcptune.ir.types import TensorType
from tcptune.model.values import Values

POSITION_LEVELS = {"chip": "chip", "cluster": "cluster", "slice": "slice", "element position": "element"}


def run(case: Case) -> None:
    """Checks one case of kind `kernel`.

    Raises:
        Mismatch: verdict, rule, derived number or value disagrees.
    """
    expect = case["expect"]
    try:
        kernel = Kernel.from_json(case)
        checked = check_kernel(kernel)
    except (RuleViolation, ParseError) as refusal:
        expect_refusal(refusal, expect)
        return
    if expect.get("verdict", "accept") != "accept":
        raise Mismatch(f"accepted; expected a refusal by {expect.get('rule')}")
    compare_facts(checked, expect)
    if "values" in expect or "samples" in expect or has_oracle(kernel):
        _compare_values(checked, expect)


def _compare_values(checked: CheckedKernel, expect: Dict[str, Any]) -> None:
    kernel = checked.kernel
    inputs = declared_inputs(kernel)
    result = run_kernel(checked, inputs)
    if result.undefined:
        raise Mismatch(str(result.undefined[0]))
    name = kernel.outputs[0]
    type_, values = result.types[name], result.outputs[name]
    tolerance = kernel.tolerance or Tolerance()
    if "values" in expect:
        _compare_list(type_, values, expect["values"]["data"], tolerance)
    if "samples" in expect:
        _compare_samples(type_, values, expect["samples"], tolerance)
    if has_oracle(kernel):
        _compare_oracle(kernel, inputs, result)


def _compare_oracle(kernel: Kernel, inputs: dict[str, Values], result: RunResult) -> None:
    report = compare_with_oracle(kernel, inputs, result)
    if not report.passed:
        raise Mismatch(f"oracle: {report}")


def _compare_list(type_: TensorType, values: Values, data: list[float], tolerance: Tolerance) -> None:
    """`data` over the live positions in storage order."""
    got = values.data[cells_of(type_).live].astype(np.float64)
    want = np.asarray(data, dtype=np.float64)
    if got.shape != want.shape:
        raise Mismatch(f"values: {got.size} live positions, expected {want.size}")
    wrong = np.flatnonzero(~within(got, want, tolerance))
    if wrong.size:
        at = int(wrong[0])
        raise Mismatch(f"values: {wrong.size} differ, first at live position {at}: got {got[at]}, expected {want[at]}")


def _compare_samples(type_: TensorType, values: Values, samples: Dict[str, Any], tolerance: Tolerance) -> None:
    """Samples at axis coordinates (every live cell with them) or storage positions."""
    cells = cells_of(type_)
    names = samples["at"]
    levels = [level for level, _ in type_.levels]
    for place, want in samples["data"]:
        given = {POSITION_LEVELS[n]: at for n, at in zip(names, place, strict=True) if n in POSITION_LEVELS}
        only_levels = bool(given) and len(given) == len(names)
        chosen = np.zeros(type_.shape, dtype=np.bool_)
        chosen[tuple(given.get(level, 0 if only_levels else slice(None)) for level in levels)] = True
        for name, at in zip(names, place, strict=True):
            if name not in POSITION_LEVELS:
                chosen &= cells.live & (cells.coords[name] == at)
        got = values.data[chosen].astype(np.float64)
        if not got.size:
            raise Mismatch(f"sample {dict(zip(names, place, strict=True))}: no such live cell")
        if not within(got, np.full(got.shape, float(want)), tolerance).all():
            raise Mismatch(f"sample {dict(zip(names, place, strict=True))}: got {sorted(set(got.tolist()))[:4]}, expected {want}")

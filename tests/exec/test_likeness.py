"""Two different kernels are told apart from one kernel that is scheduled in another way."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tcptune.exec.compile import Compiled, compile_kernel
from tcptune.exec.likeness import Likeness, likeness
from tcptune.exec.scheduling.impose import match
from tcptune.exec.scheduling.schedule_json import from_json, to_json
from tcptune.exec.validate import KERNELS, LOOPS
from tests.cli.in_process import tcptune

NAMES = ("add", "dot", "gemv", "gemm", "reduce_sum", "softmax", "rmsnorm", "mnist", "rolled", "unrolled")


@cache
def compiled(name: str) -> Compiled:
    return compile_kernel({**KERNELS, **LOOPS}[name]())


def anonymous(name: str) -> dict[str, Any]:
    """The schedule of a kernel as another compiler could write it: places in a source file, no names, transfers without a line."""
    document = to_json(compiled(name).schedule)
    for number, instruction in enumerate(document["instructions"]):
        instruction["description"] = f"--> src/kernel.rs:{number}:9"
    for tensor in document["tensors"]:
        tensor["name"] = f"vISA(T{tensor['index']})_24"
    return document


def compare(kernel: str, document: dict[str, Any]) -> Likeness:
    program, schedule = compiled(kernel).program, from_json(document)
    return likeness(schedule, program, match(schedule, program))


@pytest.mark.parametrize("kernel", NAMES)
def test_a_kernel_is_like_its_own_schedule(kernel: str) -> None:
    found = compare(kernel, to_json(compiled(kernel).schedule))
    assert found == Likeness((), (), ())
    assert found.to_lines() == ()


@pytest.mark.parametrize("kernel", NAMES[:8])
def test_no_name_is_needed(kernel: str) -> None:
    assert compare(kernel, anonymous(kernel)) == Likeness((), (), ())


@pytest.mark.parametrize("kernel", NAMES[:8])
def test_every_other_kernel_is_told(kernel: str) -> None:
    for other in NAMES:
        if other != kernel:
            assert compare(kernel, anonymous(other)).reasons, other


def test_a_slower_machine_of_the_same_kernel_is_no_other_kernel() -> None:
    """Transfers that take twice as long move the same bytes, and spill traffic is the compiler's own."""
    document = anonymous("gemm")
    for instruction in document["instructions"]:
        life = instruction["lifetime"]
        if instruction["tpe"].startswith("Dma"):
            life["end"] += life["end"] - life["begin"]
            instruction["util"] = {key: share / 2 for key, share in instruction["util"].items()}
    spill = {"tpe": "DmaStore", "lifetime": {"begin": 0, "end": 500}, "description": "Spilly", "contexts": ["DmaEngine"]}
    document["instructions"].append(spill)
    assert compare("gemm", document) == Likeness((), (), ())


def test_one_more_pass_is_named_and_no_other_kernel() -> None:
    document = anonymous("gemm")
    document["instructions"].append({"tpe": "Main", "lifetime": {"begin": 90_000, "end": 90_300}, "contexts": ["MainContext"]})
    assert compare("gemm", document) == Likeness((("Main", 1),), (), ())


def test_the_same_operations_on_other_sizes_are_another_kernel() -> None:
    """A store of 512 B is matched with one of 512 KiB by its kind; the bytes tell them apart."""
    (reason, *_) = compare("gemm", anonymous("gemv")).reasons
    assert "passes take another time" in reason or "move other bytes" in reason


def test_the_command_says_it(tmp_path: Path) -> None:
    (tmp_path / "gemm.visa").write_text(KERNELS["gemm"]().to_text())
    for name in ("gemm", "softmax"):
        (tmp_path / f"{name}.json").write_text(json.dumps(to_json(compiled(name).schedule)))
    (tmp_path / "both.json").write_text(json.dumps({n: to_json(compiled(n).schedule) for n in ("softmax", "gemm")}))
    for file, alike in (("gemm.json", True), ("both.json", True), ("softmax.json", False)):
        run = tcptune("validate", tmp_path / "gemm.visa", "--schedule", tmp_path / file)
        assert run.status == 0, run.err
        assert ("warning: these are two different kernels" in run.err) is not alike
        document = json.loads(tcptune("validate", tmp_path / "gemm.visa", "--schedule", tmp_path / file, "--json").out)
        assert document["likeness"]["alike"] is alike

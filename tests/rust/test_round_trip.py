"""Export and read back: equal kernels, equal makespans, equal output bits; the text is Rust and rustfmt leaves it alone."""

from __future__ import annotations

import json
import random
import shutil
import subprocess
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from tcptune.errors import InputError, RuleViolation, WorkError
from tcptune.exec import validate
from tcptune.exec.compile import compile_kernel
from tcptune.exec.library import transformer
from tcptune.exec.library.patterns import batched_matmul, constant_add, elementwise_mul, fetch_commit
from tcptune.exec.lowering.lower import lower
from tcptune.exec.program.check import check_kernel
from tcptune.exec.running.fill import drawn_inputs
from tcptune.exec.running.interpret import run_kernel
from tcptune.exec.rust import read_kernel, read_rust
from tcptune.exec.rust.syntax.source import Source
from tcptune.ir.candidate import Candidate
from tcptune.ir.kernels.kernel import Kernel
from tcptune.ir.workload import einsum
from tcptune.reports.rust import kernel_to_rust, project_files
from tcptune.search.space import Space
from tests.rust.same import explicit

PATTERNS = (constant_add, elementwise_mul, fetch_commit, batched_matmul)
LIBRARY = {**validate.KERNELS, **validate.LOOPS, **transformer.KERNELS, **{f.__name__: f for f in PATTERNS}}
CORPUS = Path(__file__).parents[1] / "conformance" / "data"
EDITIONS = ("2021", "2024")
RUSTFMT = shutil.which("rustfmt")
NOT_IN_A_DEVICE_FUNCTION = ("pcie.",)


def _accepted_cases() -> dict[str, dict]:
    cases = [c for file in sorted(CORPUS.glob("*.json")) for c in json.loads(file.read_text())["cases"]]
    return {c["id"]: c for c in cases if c["kind"] == "kernel" and c["expect"].get("verdict") == "accept"}


CASES = _accepted_cases()


def _assert_same(kernel: Kernel, read: Kernel) -> None:
    assert [s.to_json() for s in explicit(read)] == [s.to_json() for s in explicit(kernel)]
    assert [i.to_json() for i in read.inputs] == [i.to_json() for i in kernel.inputs]
    assert (read.axes, read.chips, read.outputs, read.name) == (kernel.axes, kernel.chips, kernel.outputs, kernel.name)
    assert (read.oracle, read.tolerance) == (kernel.oracle and kernel.oracle.strip(), kernel.tolerance)


def _makespan(kernel: Kernel) -> int | None:
    try:
        return compile_kernel(kernel).makespan
    except WorkError:  # some moves have no published price
        return None


def _bits(kernel: Kernel) -> list[bytes]:
    result = run_kernel(check_kernel(kernel), drawn_inputs(kernel, "random", 11))
    return [np.where(v.defined, v.data, np.zeros((), v.data.dtype)).tobytes() for v in result.outputs.values()]


@pytest.mark.parametrize("case", [c for c in CASES if not c.startswith(NOT_IN_A_DEVICE_FUNCTION)])
def test_a_corpus_kernel_survives_the_round_trip(case: str) -> None:
    kernel = Kernel.from_json(CASES[case])
    _assert_same(kernel, read_kernel(kernel_to_rust(kernel).text))


@pytest.mark.parametrize("name", LIBRARY)
def test_a_library_kernel_survives_the_round_trip(name: str) -> None:
    kernel = LIBRARY[name]()
    read = read_kernel(kernel_to_rust(kernel).text)
    _assert_same(kernel, read)
    assert _makespan(read) == _makespan(kernel)
    assert _bits(read) == _bits(kernel)


def test_a_host_transfer_has_no_place_in_a_device_function() -> None:
    with pytest.raises(InputError, match="host"):
        kernel_to_rust(Kernel.from_json(CASES["pcie.round_trip"]))


WORKLOADS = [
    ("ik,jk->ij", {"i": 64, "j": 128, "k": 64}, "bf16"),
    ("ik,kj->ij", {"i": 48, "j": 96, "k": 128}, "i8"),
    ("ij,j->i", {"i": 64, "j": 512}, "bf16"),
    ("i,i->", {"i": 2048}, "bf16"),
    ("vmk,kn->vmn", {"v": 8, "m": 16, "k": 32, "n": 8}, "bf16"),
    ("ij,j->i", {"i": 60, "j": 250}, "bf16"),
]


@cache
def _candidates(count: int, seed: int) -> list[Kernel]:
    """Kernels of random candidates, the same for the same seed; those that a rule refuses are left out."""
    draw = random.Random(seed)
    kernels: list[Kernel] = []
    spaces = [Space(einsum(text, **sizes, dtype=dtype)) for text, sizes, dtype in WORKLOADS]
    while len(kernels) < count:
        space = draw.choice(spaces)
        entry = draw.randrange(min(space.entries, 4_000))
        priced = space.ranked(entry, 10**9, 6)
        if not priced:
            continue
        candidate = Candidate(space.workload, space.placement(entry), draw.choice(priced).knobs)
        try:
            kernel = lower(candidate, f"candidate_{len(kernels)}")
            check_kernel(kernel)
        except RuleViolation:
            continue
        kernels.append(kernel)
    return kernels


@pytest.mark.parametrize("which", range(16))
def test_a_random_candidate_survives_the_round_trip(which: int) -> None:
    kernel = _candidates(16, seed=1)[which]
    read = read_kernel(kernel_to_rust(kernel).text)
    _assert_same(kernel, read)
    assert _makespan(read) == _makespan(kernel)
    assert _bits(read) == _bits(kernel)


@pytest.mark.slow
def test_two_hundred_random_candidates_survive_the_round_trip() -> None:
    for kernel in _candidates(200, seed=2):
        read = read_kernel(kernel_to_rust(kernel).text)
        _assert_same(kernel, read)
        assert _makespan(read) == _makespan(kernel)
        assert _bits(read) == _bits(kernel)


PROJECTS = ("kernel.gemm", "kernel.rolled", "kernel.elementwise_mul", "coll.chip_all_reduce", "kernel.reduce-b", *range(6))


@cache
def _rust_files(which: str | int) -> dict[str, str]:
    """Every Rust file of the project of a corpus kernel or of a random candidate."""
    kernel = Kernel.from_json(CASES[which]) if isinstance(which, str) else _candidates(6, seed=3)[which]
    return {path: text for path, text in project_files(kernel, "project").items() if path.endswith(".rs")}


@pytest.mark.parametrize("which", PROJECTS)
def test_every_file_is_rust_syntax(which: str | int) -> None:
    for text in _rust_files(which).values():
        assert not Source(text).root.has_error


@pytest.mark.skipif(RUSTFMT is None, reason="rustfmt is not installed")
@pytest.mark.parametrize("which", PROJECTS)
def test_rustfmt_changes_nothing(which: str | int) -> None:
    for path, text in _rust_files(which).items():
        for edition in EDITIONS:
            done = subprocess.run([RUSTFMT, "--check", "--edition", edition], input=text, capture_output=True, text=True, check=False)
            if "edition" in done.stderr:
                continue  # an old rustfmt does not know this edition
            assert done.returncode == 0 and not done.stdout, f"{path}\n{done.stdout}"


def test_the_line_of_every_step_is_known() -> None:
    kernel = Kernel.from_json(CASES["kernel.rolled"])
    rust = kernel_to_rust(kernel)
    read = read_rust(rust.text)
    assert {path: span.place.line for path, span in read.spans.items()}.keys() == rust.lines.keys()
    lines = rust.text.split("\n")
    assert lines[rust.lines[(3,)] - 1].strip() == "for g in 0..Group::SIZE {"
    assert lines[rust.lines[(3, 1)] - 1].strip() == "let trf_group = device"

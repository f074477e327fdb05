"""The host program: its reference computes the kernel's oracle (compiled where rustc is installed), its inputs have the layout of HBM."""

from __future__ import annotations

import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tcptune.errors import InputError
from tcptune.exec.lowering.lower import lower
from tcptune.exec.program.check import check_kernel
from tcptune.exec.running.fill import drawn_inputs
from tcptune.exec.running.oracle import dense, reference
from tcptune.exec.rust import read_kernel
from tcptune.ir.kernels.kernel import Kernel
from tcptune.ir.workload import einsum
from tcptune.reports.rust import project_files
from tcptune.reports.rust.host import host_program
from tcptune.search.template import template
from tests.rust.programs import DOT

RUSTC = shutil.which("rustc")
RUSTFMT = shutil.which("rustfmt")


def _kernel(text: str, sizes: dict[str, int], dtype: str, oracle: str | None = None) -> Kernel:
    candidate = template(einsum(text, **sizes, dtype=dtype))
    assert candidate is not None
    kernel = lower(candidate, "case")
    return kernel if oracle is None else replace(kernel, oracle=oracle)


def _host(kernel: Kernel) -> str:
    return host_program(kernel, check_kernel(kernel).outputs[0].type, "project")


def _function(text: str, name: str) -> str:
    found = re.search(rf"^fn {name}\b.*?^}}$", text, re.DOTALL | re.MULTILINE)
    assert found is not None
    return found[0]


def _run_reference(kernel: Kernel, folder: Path) -> np.ndarray:
    """Values of the Rust reference on seeded inputs; the vendor's types are replaced by f32 and i32."""
    inputs = drawn_inputs(kernel, "random", 5)
    arrays = {}
    for entry in kernel.inputs:
        axes = tuple(dict.fromkeys(a for _, m in entry.type.levels for a in m.axes))
        arrays[entry.name] = dense(entry.type, inputs[entry.name], axes).reshape(-1)
    floats = kernel.inputs[0].type.dtype.is_float
    shims = "type bf16 = f32;" if floats else ""
    axes_text = "\n".join(f"struct {n};\nimpl {n} {{ const SIZE: usize = {s}; }}" for n, s in kernel.axes.items())
    literal = (lambda v: f"{float(v)!r}f32") if floats else (lambda v: str(int(v)))
    values = [f"let {n}: Vec<{'f32' if floats else 'i8'}> = vec![{', '.join(map(literal, a))}];" for n, a in arrays.items()]
    call = f"reference({', '.join(f'&{n}' for n in arrays)})"
    show = 'println!("{:e}", v.0)' if floats else 'println!("{}", v)'
    main = f"fn main() {{ {' '.join(values)} for v in {call} {{ {show}; }} }}"
    text = _host(kernel)
    source = folder / "reference.rs"
    source.write_text(
        "\n".join(
            [
                "#![allow(non_camel_case_types)]",
                shims,
                axes_text,
                *(_function(text, n) for n in ("reference", "erf") if f"fn {n}(" in text),
                main,
            ]
        )
    )
    subprocess.run([RUSTC, "-o", folder / "reference", source], check=True, capture_output=True)
    done = subprocess.run([folder / "reference"], check=True, capture_output=True, text=True)
    return np.array([float(line) for line in done.stdout.split()])


CASES = {
    "contraction": ("ik,jk->ij", {"i": 4, "j": 8, "k": 32}, "bf16", None),
    "batched": ("vmk,kn->vmn", {"v": 2, "m": 4, "k": 32, "n": 8}, "bf16", None),
    "dot": ("i,i->", {"i": 64}, "bf16", None),
    "integers": ("ik,jk->ij", {"i": 4, "j": 8, "k": 64}, "i8", None),
    "relu": ("ik,jk->ij", {"i": 4, "j": 8, "k": 32}, "bf16", "einsum ik, jk -> ij | relu"),
    "gelu and scale": ("ik,jk->ij", {"i": 4, "j": 8, "k": 32}, "bf16", "einsum ik, jk -> ij | gelu | mul 0.5 | add 1"),
    "silu": ("ik,jk->ij", {"i": 4, "j": 8, "k": 32}, "bf16", "einsum ik, jk -> ij | silu"),
}


@pytest.mark.skipif(RUSTC is None, reason="rustc is not installed")
@pytest.mark.parametrize("case", CASES)
def test_the_rust_reference_computes_the_oracle(case: str, tmp_path: Path) -> None:
    kernel = _kernel(*CASES[case])
    got = _run_reference(kernel, tmp_path)
    want = reference(kernel, drawn_inputs(kernel, "random", 5)).values.reshape(-1)
    assert np.allclose(got, want, rtol=1e-6, atol=1e-30 if "gelu" not in case else 1e-6 * np.abs(want).max())


@pytest.mark.skipif(RUSTFMT is None, reason="rustfmt is not installed")
@pytest.mark.parametrize("case", CASES)
def test_rustfmt_leaves_the_host_program_alone(case: str) -> None:
    done = subprocess.run(
        [RUSTFMT, "--check", "--edition", "2021"], input=_host(_kernel(*CASES[case])), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0 and not done.stdout, done.stdout


def test_padded_rows_are_filled_with_zeros_on_the_host() -> None:
    kernel = _kernel("ij,j->i", {"i": 16, "j": 250}, "bf16")
    element = str(kernel.inputs[0].type.element)
    assert element == "I, J #{0} 256"
    text = _host(kernel)
    assert "pad_rows(&a_values, J::SIZE, 256)" in text
    assert "HostTensor::<bf16, m![I, J]>::rand(&mut rng)" in text
    assert "HostTensor::<bf16, m![I, J #{0} 256]>::from_vec" in text


def test_a_kernel_without_oracle_is_only_run() -> None:
    text = _host(replace(read_kernel(DOT), oracle=None))
    assert "async fn runs()" in text and "fn reference" not in text


def test_the_tolerance_of_the_kernel_is_used() -> None:
    kernel = replace(_kernel("ik,jk->ij", {"i": 4, "j": 8, "k": 32}, "bf16"))
    wide = replace(kernel, tolerance=replace(kernel.tolerance, form="max", rel=0.05, abs=1.0))
    assert "arithmetic.max(0.05 * e.abs()).max(1.0)" in _host(wide)
    assert "2f32.powi(-8) * e.abs()" in _host(kernel)


def test_a_project_has_the_layout_of_the_starter() -> None:
    files = project_files(read_kernel(DOT), "My Kernels")
    assert list(files) == [
        "Cargo.toml",
        "rust-toolchain.toml",
        "src/lib.rs",
        "src/kernel/mod.rs",
        "src/kernel/dot_kernel.rs",
        "src/dot.rs",
    ]
    assert 'name = "my-kernels"' in files["Cargo.toml"] and "[package.metadata.furiosa-opt]" in files["Cargo.toml"]
    assert 'path = "src/dot.rs"' in files["Cargo.toml"]
    assert files["src/kernel/mod.rs"] == "pub mod dot_kernel;\n"
    assert "use my_kernels::kernel::dot_kernel::*;" in files["src/dot.rs"]


def test_a_kernel_on_dm_tensors_is_no_project() -> None:
    text = DOT.replace("-> HbmTensor<bf16, Chip, m![1]>", "-> DmTensor<bf16, Chip, Cluster, Slice, m![1 # 8]>")
    with pytest.raises(InputError, match="HBM"):
        project_files(read_kernel(text.replace("    result.to_hbm(&mut device.tdma)", "    result")), "p")

"""Writes a kernel as a project in the layout of the vendor's starter: kernel module, host program with its test, Cargo.toml (CLI-017)."""

from __future__ import annotations

import re
from pathlib import Path

from tcptune.errors import InputError
from tcptune.exec.program.check import check_kernel
from tcptune.exec.rust.reader import SUFFIX
from tcptune.ir.files import write_text
from tcptune.ir.kernels.kernel import Kernel
from tcptune.model.hardware import RNGD, Hardware
from tcptune.model.timing.calibration import VENDOR
from tcptune.reports.rust.device import function_name, kernel_to_rust
from tcptune.reports.rust.host import host_program

TOOLCHAIN = "nightly-2026-05-01"
"""Channel that the vendor's rustc driver is bound to (CLI-015)."""

_TOOLCHAIN_FILE = f'[toolchain]\nchannel = "{TOOLCHAIN}"\n'
_LIB = """\
#![allow(incomplete_features)]
#![feature(
    adt_const_params,
    proc_macro_hygiene,
    register_tool,
    stmt_expr_attributes
)]
#![register_tool(furiosa_opt)]

pub mod kernel;
"""


def write_project(kernel: Kernel, folder: Path, hw: Hardware = RNGD, *, profile: str = VENDOR.name) -> dict[str, str]:
    """Writes the project into `folder` and returns the path of every file relative to it, by what it is.

    Raises:
        InputError: a step has no place in a device function; the folder cannot be written.
        RuleViolation: the kernel breaks a rule of the machine.
    """
    files = project_files(kernel, folder.name, hw, profile=profile)
    for path, text in files.items():
        write_text(folder / path, text)
    names = ("manifest", "toolchain", "library", "modules", "kernel", "host")
    return dict(zip(names, files, strict=True))


def project_files(kernel: Kernel, name: str, hw: Hardware = RNGD, *, profile: str = VENDOR.name) -> dict[str, str]:
    """The files of a project called `name`, by path; the kernel's file records the profile of its timing."""
    checked = check_kernel(kernel, hw)
    for bound in (*checked.inputs, *checked.outputs):
        if bound.type.tier != "Hbm":
            raise InputError(
                f"{bound.name} is in {bound.type.tier}; a device function takes and returns HBM tensors", hint="see KERNEL-002"
            )
    function = function_name(kernel)
    binary = function.removesuffix(SUFFIX)
    package = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-") or "kernel"
    if package[0].isdigit():
        package = f"kernel-{package}"
    crate = package.replace("-", "_")
    return {
        "Cargo.toml": _cargo(package, crate, binary),
        "rust-toolchain.toml": _TOOLCHAIN_FILE,
        "src/lib.rs": _LIB,
        "src/kernel/mod.rs": f"pub mod {function};\n",
        f"src/kernel/{function}.rs": kernel_to_rust(kernel, hw, checked=checked, profile=profile).text,
        f"src/{binary}.rs": host_program(kernel, checked.outputs[0].type, crate),
    }


def _cargo(package: str, crate: str, binary: str) -> str:
    """The manifest: a kernel package, one explicit binary for the host program."""
    return f"""\
[package]
name = "{package}"
version = "0.1.0"
edition = "2024"
publish = false

[package.metadata.furiosa-opt]

[lib]
name = "{crate}"
path = "src/lib.rs"

[[bin]]
name = "{binary}"
path = "src/{binary}.rs"

[dependencies]
furiosa-opt-std = "*"
rand = {{ version = "*", features = ["small_rng"] }}
tokio = {{ version = "1", features = ["macros", "rt-multi-thread"] }}
"""

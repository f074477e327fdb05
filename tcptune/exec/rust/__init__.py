"""Kernels in the vendor's Rust: the reader of ``#[device]`` functions (`read_kernel`) and the table of methods the exporter shares."""

from tcptune.exec.rust.reader import RustKernel, read_kernel, read_rust
from tcptune.exec.rust.syntax.source import LocatedViolation, Place, RustError

__all__ = ["LocatedViolation", "Place", "RustError", "RustKernel", "read_kernel", "read_rust"]

"""Kernels as vendor Rust: the device function (`kernel_to_rust`) and the starter project around it (`write_project`)."""

from tcptune.reports.rust.device import RustText, function_name, kernel_to_rust
from tcptune.reports.rust.project import project_files, write_project

__all__ = ["RustText", "function_name", "kernel_to_rust", "project_files", "write_project"]

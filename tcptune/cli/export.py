"""`tcptune export KERNEL --rust DIR`: the kernel as a project for the vendor's Rust toolchain."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tcptune.cli.output import print_document
from tcptune.exec.kernel_file import load_checked, recorded_profile
from tcptune.reports.rust.project import write_project


def command(
    kernel: Annotated[Path, typer.Argument(metavar="KERNEL", help="a .visa, .rs or .json kernel file")],
    rust: Annotated[Path, typer.Option(help="folder of the Rust project")],
    function: Annotated[str | None, typer.Option(help="device function of a .rs file that holds several")] = None,
    json: Annotated[bool, typer.Option("--json", help="one JSON document on standard output")] = False,
) -> None:
    """Write device function, host program with oracle test and project files."""
    files = write_project(load_checked(kernel, function).kernel, rust, profile=recorded_profile(kernel))
    if json:
        print_document({"schema": "tcptune/export/1", "files": files})
    else:
        for path in files.values():
            print(rust / path)

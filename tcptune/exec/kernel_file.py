"""Reads and checks a kernel from a file: `.visa` text, `.rs` vendor Rust, or a `.json` kernel document."""

from __future__ import annotations

import re
from pathlib import Path

from tcptune.errors import InputError, ParseError, RuleViolation, TcptuneError
from tcptune.exec.program.check import check_kernel
from tcptune.exec.program.checked import CheckedKernel
from tcptune.exec.program.locate import FailingPlace, failing_place
from tcptune.exec.rust.check import check_rust, statement_lines
from tcptune.exec.rust.reader import read_rust_file
from tcptune.exec.scheduling.impose import SourceLines
from tcptune.ir.files import is_folder, read_json, read_text
from tcptune.ir.kernels.kernel import Kernel
from tcptune.ir.kernels.kernel_text import KernelLines, parse_with_lines
from tcptune.model.timing.calibration import VENDOR
from tcptune.model.timing.calibration import profile as profile_of

_TEXT_PROFILE = re.compile(r"^# profile (\w+)\s*$", re.MULTILINE)
_RUST_PROFILE = re.compile(r"^//! tcptune profile: (\w+)\s*$", re.MULTILINE)


def load_checked(path: Path, function: str | None = None) -> CheckedKernel:
    """The checked kernel in `path`; the ending decides the form (anything but .rs and .json is read as .visa text).

    Raises:
        InputError: the file cannot be read.
        ParseError, RuleViolation: its text is wrong or breaks a rule of the machine, with file, line and operation (in a .json document
            the number of the step).
    """
    if function is not None and path.suffix != ".rs":
        raise InputError(f"--function chooses a device function of a .rs file; {path} holds one kernel")
    if path.suffix == ".rs":
        return check_rust(read_rust_file(path, function))
    if is_folder(path):
        raise InputError(f"{path} is a folder", hint=_kernel_beside(path))
    lines: KernelLines | None = None
    try:
        if path.suffix == ".json":
            document = read_json(path)
            _require_kernel(document, path)
            kernel = Kernel.from_json(document)
        else:
            kernel, lines = parse_with_lines(read_text(path))
    except TcptuneError as error:
        if str(path) not in error.message:
            error.message = f"{path}: {error.message}"
        raise
    try:
        return check_kernel(kernel)
    except (RuleViolation, InputError) as error:
        raise _located(error, path, lines, failing_place(kernel)) from error


def source_lines(path: Path, function: str | None = None) -> dict[str, SourceLines]:
    """Where the statements of a `.rs` kernel stand, by the names of its steps, to match a schedule with; nothing for other files."""
    if path.suffix != ".rs":
        return {}
    rust = read_rust_file(path, function)
    return statement_lines(rust, check_rust(rust))


def _require_kernel(document: object, path: Path) -> None:
    """Refuses the other documents that a search writes, with the place of its kernel."""
    if not isinstance(document, dict) or "steps" in document:
        return
    if "instructions" in document:
        raise InputError("this is a schedule, not a kernel", hint=f"tcptune analyse {path}, or {_kernel_beside(path.parent)}")
    if str(document.get("schema", "")).startswith("tcptune/search-result/"):
        raise InputError("this is the result of a search, not a kernel", hint=_kernel_beside(path.parent))


def _kernel_beside(folder: Path) -> str:
    """What to give instead: the kernel in the folder of a search, if it is there."""
    kernel = folder / "kernel.visa"
    return f"give the kernel: {kernel}" if kernel.is_file() else "give the kernel's file, kernel.visa where a search wrote it"


def _located(error: RuleViolation | InputError, path: Path, lines: KernelLines | None, place: FailingPlace) -> RuleViolation | InputError:
    """The refusal with file and line, or with the number of the step where there are no lines."""
    at = None if lines is None else _line(lines, place)
    return _placed(error, path, at, place.words())


def in_oracle(error: InputError, path: Path) -> RuleViolation | InputError:
    """Why the oracle of the kernel in `path` cannot be computed, with the file and, where it is text, the line of the oracle."""
    lines = None if path.suffix in (".rs", ".json") else parse_with_lines(read_text(path))[1]
    return _placed(error, path, None if lines is None else lines.headers.get("oracle"), "the oracle")


def _placed(error: RuleViolation | InputError, path: Path, at: tuple[int, str] | None, words: str) -> RuleViolation | InputError:
    """The refusal under file, line and column, or under the place in words."""
    if at is None:
        error.message = f"{path}: {words}: {error.message}"
        return error
    number, text = at
    message = f"{path}: line {number}: {error.message}"
    column = len(text) - len(text.lstrip())
    if isinstance(error, RuleViolation):
        error.message, error.place = message, (text, column)
        return error
    return ParseError(text, column, message, hint=error.hint)


def _line(lines: KernelLines, place: FailingPlace) -> tuple[int, str] | None:
    if place.input:
        return lines.inputs.get(place.input)
    if place.path is None:
        return lines.headers.get("output")
    ops = lines.ops.get(place.path, [])
    return ops[place.op] if place.op is not None and place.op < len(ops) else lines.steps.get(place.path)


def with_profile(text: str, profile: str) -> str:
    """A kernel's text under a comment that names the timing constants it was found with, where those are not the default."""
    return text if profile == VENDOR.name else f"# profile {profile}\n{text}"


def recorded_profile(path: Path) -> str:
    """The profile that a kernel's file records, else the default one.

    Text has it in a comment, ``# profile manual``; Rust in its header, ``//! tcptune profile: manual``; documents record none.

    Raises:
        InputError: the file cannot be read, or records a profile that there is not.
    """
    if path.suffix == ".json":
        return VENDOR.name
    found = (_RUST_PROFILE if path.suffix == ".rs" else _TEXT_PROFILE).search(read_text(path))
    if found is None:
        return VENDOR.name
    try:
        return profile_of(found[1]).name
    except InputError as error:
        raise InputError(f"{path} records a profile that there is not: {error.message}", hint=error.hint) from None

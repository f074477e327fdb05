"""The host program of a kernel: makes the inputs, launches, and in its test compares with the host oracle at the kernel's tolerance."""

from __future__ import annotations

from tcptune.exec.running.fill import SEED
from tcptune.exec.running.oracle import FLUSHED, RESULT_EPSILON, axes_of
from tcptune.ir.kernels.kernel import Kernel, KernelInput, Tolerance
from tcptune.ir.mappings.mapping import IDENTITY, Mapping, Padding, PadKind, Symbol
from tcptune.ir.types import DType, TensorType
from tcptune.reports.rust.device import function_name
from tcptune.reports.rust.layout import Call, Chain, Sequence, binding, statement
from tcptune.reports.rust.names import Identifiers
from tcptune.reports.rust.reference import ERROR_FUNCTION, formula_of, power_of_two, reference_lines


def host_program(kernel: Kernel, output: TensorType, crate: str) -> str:
    """Text of ``src/<name>.rs``.

    Args:
        output: type of the kernel's result.
        crate: name of the crate that holds the kernel module.
    """
    return _Host(kernel, output, crate).text()


class _Host:
    def __init__(self, kernel: Kernel, output: TensorType, crate: str) -> None:
        self.kernel = kernel
        self.output = output
        self.crate = crate
        self.function = function_name(kernel)
        names = Identifiers()
        self.names = {entry.name: names(entry.name) for entry in kernel.inputs}
        comparable = output.dtype.is_float or output.dtype.name == "i32"
        self.formula = formula_of(kernel, output) if comparable else None
        self.pads_rows = any(padded_row(entry.type) is not None for entry in kernel.inputs)

    def text(self) -> str:
        lines = [f"//! Host program and oracle test of `{self.function}`, written by tcptune.", ""]
        lines += sorted(["use furiosa_opt_std::prelude::*;", f"use {self.crate}::kernel::{self.function}::*;", "use rand::SeedableRng;"])
        lines.append("")
        lines += self._main()
        if self.pads_rows:
            lines += ["", *_PAD_ROWS]
        if self.formula is not None:
            lines += ["", *_for_tests(reference_lines(self.formula, self.kernel, self.names))]
            if any(stage.kind == "gelu" for stage in self.formula.stages):
                lines += ["", *_for_tests(ERROR_FUNCTION)]
        return "\n".join([*lines, "", *self._tests(), ""])

    def _main(self) -> list[str]:
        body = [
            f"let mut device = Device::new({self.function}.topology())?;",
            f"let mut rng = rand::rngs::SmallRng::seed_from_u64({SEED});",
        ]
        lines = [f"    {line}" for line in body]
        for entry in self.kernel.inputs:
            lines += self._upload(entry, 4, "?", keep=False)
        lines += self._launch(4, "?", used=False)
        lines += [f'    println!("{self.kernel.name}: kernel ran");', "    Ok(())"]
        return ["#[tokio::main]", "async fn main() -> Result<(), Error> {", *lines, "}"]

    def _upload(self, entry: KernelInput, indent: int, failure: str, *, keep: bool) -> list[str]:
        """Random contents of an input, its rows zero-padded where HBM holds them so, and the transfer to HBM."""
        name, type_ = self.names[entry.name], entry.type
        logical = host_mapping(type_)
        row = padded_row(type_)
        source = f"HostTensor::<{type_.dtype}, m![{logical}]>"
        lines = binding(name, None, Chain(source, (Call(":rand", (), ("&mut rng",)),)), indent)
        lines = [line.replace(".:rand", "::rand") for line in lines]
        take = f"{' ' * indent}let {name}_values: Vec<{type_.dtype}> = {name}.into_vec();"
        if row is not None:
            axis, stored = row
            padded = f"pad_rows(&{name}_values, {axis}::SIZE, {stored})"
            lines += [take, *binding(name, None, f"HostTensor::<{type_.dtype}, m![{type_.element}]>::from_vec({padded})", indent)]
        upload = Call("to_hbm", (f"m![{type_.chip}]", f"m![{type_.element}]"), ("&mut device.pdma",))
        lines += binding(f"{name}_hbm", None, Chain(name, (upload, *_awaited(failure))), indent)
        return [*lines, take] if keep and row is None else lines

    def _launch(self, indent: int, failure: str, *, used: bool) -> list[str]:
        arguments = ["&mut device", *(f"&{n}_hbm" for n in self.names.values())]
        call = Sequence((self.function, Sequence(tuple(arguments), "", "()")), "launch", "()")
        return binding("out_hbm" if used else "_out_hbm", None, Chain(call, _awaited(failure)), indent)

    def _tests(self) -> list[str]:
        lines = ["#[cfg(test)]", "mod tests {", "    use super::*;", "", "    #[tokio::test]"]
        lines.append("    async fn matches_reference() {" if self.formula is not None else "    async fn runs() {")
        lines.append(f"        let mut device = Device::new({self.function}.topology()).unwrap();")
        lines.append(f"        let mut rng = rand::rngs::SmallRng::seed_from_u64({SEED});")
        for entry in self.kernel.inputs:
            lines += self._upload(entry, 8, ".unwrap()", keep=self.formula is not None)
        if self.formula is None:
            lines.append("        // The kernel has no oracle that can be written here: this test only runs it.")
            lines += self._launch(8, ".unwrap()", used=False)
        else:
            lines += ["", *self._launch(8, ".unwrap()", used=True), *self._compare()]
        return [*lines, "    }", "}"]

    def _compare(self) -> list[str]:
        """Fetches the result and compares it with the reference."""
        element = self.output.dtype
        download = Call("to_host", (f"m![{host_mapping(self.output)}]",), ("&mut device.pdma",))
        values = ", ".join(f"&{n}_values" for n in self.names.values())
        lines = binding("expected", None, f"reference({values})", 8)
        lines += statement(Chain(f"let actual: Vec<{element}> = out_hbm", (download, *_awaited(".unwrap()"), Call("into_vec"))), 8)
        return [*lines, *_comparison(element, self.kernel.tolerance or Tolerance())]


def _awaited(failure: str) -> tuple[Call, ...]:
    """``.await?`` or ``.await.unwrap()``."""
    return (Call("await?", (), None),) if failure == "?" else (Call("await", (), None), Call("unwrap"))


def _comparison(element: DType, tolerance: Tolerance) -> list[str]:
    """The loop that compares every result with the reference, at the tolerance of the kernel's oracle."""
    if not element.is_float:
        check = ['            assert_eq!(e, a, "mismatch at {at}");']
        return ["        for (at, (&e, &a)) in expected.iter().zip(&actual).enumerate() {", *check, "        }"]
    found = "a" if element.name == "f32" else "f32::from(a)"
    rounding = power_of_two(RESULT_EPSILON.get(element.name, 0.0), "f32")
    stated = {
        "max": f".max({tolerance.rel!r} * e.abs()).max({tolerance.abs!r})",
        "sum": f".max({tolerance.abs!r} + {tolerance.rel!r} * e.abs())",
    }.get(tolerance.form, "")
    if max(tolerance.rel, tolerance.abs) <= FLUSHED:
        stated = ""  # the arithmetic alone allows more
    return [
        "        for (at, (&(e, bound), &a)) in expected.iter().zip(&actual).enumerate() {",
        f"            let a = {found};",
        f"            let arithmetic = bound + {rounding} * e.abs() + f32::MIN_POSITIVE;",
        f"            let tolerance = arithmetic{stated};",
        "            assert!(",
        "                (a - e).abs() <= tolerance,",
        '                "mismatch at {at}: expected {e}, actual {a}"',
        "            );",
        "        }",
    ]


def host_mapping(type_: TensorType) -> str:
    """The logical row-major mapping on the host: the tensor's axes in storage order, without padding."""
    return ", ".join(axes_of(type_)) or "1"


def padded_row(type_: TensorType) -> tuple[str, int] | None:
    """(axis, stored elements) of a row-major tensor whose rows the host pads with zeros (``K #{0} 32``), else None."""
    if type_.tier != "Hbm" or type_.chip is not IDENTITY:
        return None
    *outer, last = type_.element.terms() or [IDENTITY]
    if not _is_zero_padded_axis(last) or not all(isinstance(term, Symbol) for term in outer):
        return None
    return next(iter(last.axes)), last.size


def _is_zero_padded_axis(term: Mapping) -> bool:
    return isinstance(term, Padding) and term.kind is PadKind.ZERO and isinstance(term.inner, Symbol)


def _for_tests(lines: list[str]) -> list[str]:
    """A function that only the tests call."""
    return [lines[0], "#[cfg(test)]", *lines[1:]]


_PAD_ROWS = [
    "/// Rows of `live` elements, each followed by zeros up to `stored`.",
    "fn pad_rows<T: Copy + Default>(values: &[T], live: usize, stored: usize) -> Vec<T> {",
    "    let mut padded = Vec::with_capacity(values.len() / live * stored);",
    "    for row in values.chunks(live) {",
    "        padded.extend_from_slice(row);",
    "        padded.resize(padded.len() + stored - live, T::default());",
    "    }",
    "    padded",
    "}",
]

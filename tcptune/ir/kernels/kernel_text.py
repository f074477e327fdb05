"""The `.visa` text form of a kernel: readable, diffable, one operation a line, lossless.

Example::

    kernel dot
    axes A=2048
    chips 1
    input lhs: Hbm bf16 chip=[1] element=[A]
    input rhs: Hbm bf16 chip=[1] element=[A]
    rhs_dm = to_dm(rhs, cluster=[1 # 2], slice=[1 # 256], element=[A])
    rhs_trf = sub.begin(rhs_dm)
      .fetch(time=[1], packet=[A])
      .to_trf(lane=[1], element=[A])
    for g in 20 unroll:
      part = tile(rhs_dm, axis=A, len=64, start="64*g", element=[…])
    output out
    oracle "einsum a,a->"
    tolerance form=max rel=0.02 abs=0.5

Values: ``[mapping]``, a bare word, a number, ``"text"``, ``(a, b)`` for lists and ``{k: v}`` for objects. ``#`` begins a comment outside
brackets and quotes. Indentation (two spaces a level) marks loop bodies; the operations of a Tensor Unit pass begin with a dot.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NoReturn, TypeVar

from tcptune.errors import InputError, ParseError, RuleViolation
from tcptune.ir.fields import did_you_mean
from tcptune.ir.kernels.kernel import Kernel, KernelInput, Tolerance
from tcptune.ir.kernels.steps import MAX_LOOP_DEPTH, KernelStep, Loop, RuntimeCount, TensorUnit, step_from_json
from tcptune.ir.mappings.axes import Axes

_MAPPING_KEYS = frozenset({"time", "packet", "element", "slice", "cluster", "chip", "lane", "output", "key"})
_WORD = re.compile(r"[A-Za-z_][A-Za-z_0-9.:\-]*")
_NAME = re.compile(r"[A-Za-z_]\w*")
_NUMBER = re.compile(r"-?\d+(\.\d+)?([eE][-+]?\d+)?")
_RESERVED = frozenset({"true", "false", "null"})
_INDENT = "  "
_MAX_DIGITS, _MAX_DEPTH = 40, 32
_Result = TypeVar("_Result")


# printing


def print_kernel(kernel: Kernel) -> str:
    """Text of `kernel`; `parse_kernel` reads it back to an equal kernel."""
    lines = [f"kernel {_print_value('', kernel.name)}"]
    lines.append("axes " + " ".join(f"{name}={size}" for name, size in kernel.axes.items()))
    lines.append(f"chips {kernel.chips}")
    for entry in kernel.inputs:
        raw = entry.to_json()
        tier, element = raw.pop("type"), raw.pop("dtype")
        lines.append(f"input {entry.name}: {tier} {element} " + " ".join(f"{k}={_print_value(k, v)}" for k, v in raw.items()))
    for step in kernel.steps:
        lines.extend(_print_step(step, 0))
    lines.append("output " + ", ".join(kernel.outputs))
    if kernel.oracle is not None:
        lines.append(f"oracle {json.dumps(kernel.oracle, ensure_ascii=False)}")
    if kernel.tolerance is not None:
        t = kernel.tolerance
        lines.append(f"tolerance form={t.form} rel={t.rel!r} abs={t.abs!r}")
    return "\n".join(lines) + "\n"


def _print_step(step: KernelStep, depth: int) -> list[str]:
    pad = _INDENT * depth
    if isinstance(step, Loop):
        count = f"runtime {step.count.name}" if isinstance(step.count, RuntimeCount) else str(step.count)
        head = f"{pad}for {step.var} in {count}{' unroll' if step.unroll else ''}:"
        return [head, *(line for inner in step.body for line in _print_step(inner, depth + 1))]
    raw = step.to_json()
    let = raw.pop("let", None)
    bind = f"{pad}{let} = " if let is not None else pad
    if isinstance(step, TensorUnit):
        pair = raw.get("begin_interleaved")
        begin = f"begin({raw['begin']})" if pair is None else f"begin_interleaved({_print_fields(pair)})"
        return [f"{bind}{step.context}.{begin}", *(f"{pad}{_INDENT}.{_print_call(op)}" for op in raw["ops"])]
    return [bind + _print_call(raw)]


def _print_call(raw: dict[str, Any]) -> str:
    fields = {k: v for k, v in raw.items() if k not in ("op", "from")}
    first = [raw["from"]] if "from" in raw else []
    return f"{raw['op']}({', '.join([*first, *([_print_fields(fields)] if fields else [])])})"


def _print_fields(fields: dict[str, Any]) -> str:
    return ", ".join(f"{key}={_print_value(key, value)}" for key, value in fields.items())


def _print_value(key: str, value: Any) -> str:
    if isinstance(value, str):
        if key in _MAPPING_KEYS:
            return f"[{value}]"
        return value if _WORD.fullmatch(value) and value not in _RESERVED else json.dumps(value, ensure_ascii=False)
    if isinstance(value, dict):
        return "{" + ", ".join(f"{k}: {_print_value(k, v)}" for k, v in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "(" + ", ".join(_print_value("", v) for v in value) + ")"
    return json.dumps(value)


# reading


@dataclass
class _Line:
    """One logical line: its text, number (from 1), depth, and where each string value stood."""

    text: str
    number: int
    depth: int
    at: int
    columns: dict[str, int] = field(default_factory=dict)

    def fail(self, message: str, column: int | None = None, hint: str | None = None) -> NoReturn:
        raise ParseError(self.text, self.at if column is None else column, f"line {self.number}: {message}", hint=hint)

    def skip(self) -> None:
        while self.at < len(self.text) and self.text[self.at] in " \t":
            self.at += 1

    def peek(self, token: str) -> bool:
        self.skip()
        return self.text.startswith(token, self.at)

    def take(self, token: str) -> bool:
        if self.peek(token):
            self.at += len(token)
            return True
        return False

    def need(self, token: str) -> None:
        if not self.take(token):
            self.fail(f"expected {token!r}")

    def match(self, pattern: re.Pattern[str], what: str) -> str:
        self.skip()
        found = pattern.match(self.text, self.at)
        if not found:
            self.fail(f"expected {what}")
        self.at = found.end()
        return found.group()

    def done(self) -> None:
        self.skip()
        if self.at < len(self.text):
            self.fail(f"unexpected {self.text[self.at :]!r}")

    def value(self, depth: int = 0) -> Any:
        """One value at the cursor, as in JSON; mappings come out as strings."""
        if depth > _MAX_DEPTH:
            self.fail("values are nested too deep")
        self.skip()
        if self.at >= len(self.text):
            self.fail("expected a value")
        first = self.text[self.at]
        if first == "[":
            return self._mapping()
        if first == '"':
            return self._quoted()
        if self.take("("):
            return self._list(depth)
        if self.take("{"):
            return self._object(depth)
        number = _NUMBER.match(self.text, self.at)
        if number:
            if len(number.group()) > _MAX_DIGITS:
                self.fail("the number is too long")
            self.at = number.end()
            return float(number.group()) if number.group(1) or number.group(2) else int(number.group())
        start = self.at
        word = self.match(_WORD, "a value")
        if word in _RESERVED:
            return json.loads(word)
        self.columns.setdefault(word, start)
        return word

    def _mapping(self) -> str:
        start, depth, end = self.at, 0, -1
        for i in range(start, len(self.text)):
            depth += {"[": 1, "]": -1}.get(self.text[i], 0)
            if depth == 0:
                end = i
                break
        if end < 0:
            self.fail("this bracket is not closed", start)
        self.at = end + 1
        inner = self.text[start + 1 : end]
        self.columns.setdefault(inner, start + 1)
        return inner

    def _quoted(self) -> str:
        try:
            found, end = json.JSONDecoder().raw_decode(self.text, self.at)
        except json.JSONDecodeError as error:
            self.fail(f"bad text: {error.msg}", error.pos)
        self.columns.setdefault(found, self.at + 1)
        self.at = end
        return str(found)

    def _list(self, depth: int) -> list[Any]:
        items: list[Any] = []
        while not self.take(")"):
            if items:
                self.need(",")
            items.append(self.value(depth + 1))
        return items

    def _object(self, depth: int) -> dict[str, Any]:
        found: dict[str, Any] = {}
        while not self.take("}"):
            if found:
                self.need(",")
            key = self.match(_NAME, "a field name")
            self.need(":")
            found[key] = self.value(depth + 1)
        return found

    def call(self) -> dict[str, Any]:
        """``name(source, field=value, …)`` as a JSON object with ``op`` and, if present, ``from``."""
        raw: dict[str, Any] = {"op": self.match(_NAME, "an operation")}
        raw.update(self.arguments())
        return raw

    def arguments(self) -> dict[str, Any]:
        self.need("(")
        raw: dict[str, Any] = {}
        while not self.take(")"):
            if raw:
                self.need(",")
            self.skip()
            start = self.at
            key = self.match(_WORD, "a field name")
            if self.take("="):
                if key in raw:
                    self.fail(f"the field {key!r} is given twice", start)
                raw[key] = self.value()
            elif not raw:
                raw["from"] = key
            else:
                self.fail("expected '=' after the field name")
        return raw

    def _column(self, part: str, column: int) -> int:
        """Column in the line of a column in one of its values."""
        return self.columns.get(part, max(self.text.find(part), 0)) + column

    def blame(self, build: Callable[[], _Result]) -> _Result:
        """Runs `build` and ties its errors to this line and, for a mapping, to its column."""
        try:
            return build()
        except ParseError as error:
            message = f"line {self.number}: {error.message}"
            raise ParseError(self.text, self._column(error.text, error.column), message, rule=error.rule, hint=error.hint) from None
        except RuleViolation as error:
            error.message = f"line {self.number}: {error.message}"
            if error.place is not None:
                error.place = (self.text, self._column(*error.place))
            raise
        except InputError as error:
            column = len(self.text) - len(self.text.lstrip())
            raise ParseError(self.text, column, f"line {self.number}: {error.message}", hint=error.hint) from None


def _without_comment(text: str) -> str:
    """Drops a comment: ``#`` at the line's start, or after two spaces outside brackets and quotes."""
    depth, quoted = 0, False
    for i, c in enumerate(text):
        if c == '"' and (i == 0 or text[i - 1] != "\\"):
            quoted = not quoted
        elif not quoted:
            depth += {"[": 1, "]": -1}.get(c, 0)
            if c == "#" and depth == 0:
                return text[:i]
    return text


def _lines(text: str) -> list[_Line]:
    lines = []
    for number, raw in enumerate(text.splitlines(), 1):
        content = _without_comment(raw).rstrip()
        if content.strip():
            spaces = len(content) - len(content.lstrip(" "))
            lines.append(_Line(content, number, spaces // len(_INDENT), spaces))
            if spaces % len(_INDENT) or content.lstrip(" ").startswith("\t"):
                lines[-1].fail("indent by two spaces a level")
    return lines


@dataclass
class KernelLines:
    """Where the parts of a kernel stand in its text: (line from 1, text of the line) of each.

    Attributes:
        steps: by the step's path, its index, within loops the indices of the loops around it first.
        ops: operations of the Tensor Unit step with this path.
        headers: by the word that begins them, the lines about the kernel as a whole (``output``, ``oracle`` …); the last one counts.
    """

    inputs: dict[str, tuple[int, str]] = field(default_factory=dict)
    steps: dict[tuple[int, ...], tuple[int, str]] = field(default_factory=dict)
    ops: dict[tuple[int, ...], list[tuple[int, str]]] = field(default_factory=dict)
    headers: dict[str, tuple[int, str]] = field(default_factory=dict)


_HEADERS = ("kernel", "axes", "chips", "input", "output", "oracle", "tolerance")


class _Reader:
    """Reads the logical lines of one kernel; `where` says afterwards on which line each part stood."""

    def __init__(self, text: str) -> None:
        self.lines = _lines(text)
        self.next = 0
        self.where = KernelLines()
        self.name = "kernel"
        self.axes = Axes({})
        self.chips = 1
        self.inputs: list[KernelInput] = []
        self.outputs: tuple[str, ...] = ()
        self.oracle: str | None = None
        self.tolerance: Tolerance | None = None

    def read(self) -> Kernel:
        steps: list[KernelStep] = []
        while self.next < len(self.lines):
            line = self.lines[self.next]
            if line.depth:
                line.fail("nothing above opens this indented block")
            if not self._header(line):
                steps.append(self._step((len(steps),)))
        if not self.outputs:
            raise InputError("the kernel names no output", hint="end it with a line like: output out")
        return Kernel(self.name, self.axes, tuple(self.inputs), tuple(steps), self.outputs, self.chips, self.oracle, self.tolerance)

    def _header(self, line: _Line) -> bool:
        found = re.match(r"(\w+)\s+(?![\s=(.])", line.text)
        if not found or found.group(1) == "for":
            return False
        if found.group(1) not in _HEADERS:
            line.fail(f"no line of a kernel begins with {found.group(1)!r}", 0, hint=did_you_mean(found.group(1), _HEADERS, "words"))
        line.at = found.end()
        self.next += 1
        self.where.headers[found.group(1)] = (line.number, line.text)
        getattr(self, f"_read_{found.group(1)}")(line)
        line.done()
        return True

    def _read_kernel(self, line: _Line) -> None:
        self.name = str(line.value())

    def _read_axes(self, line: _Line) -> None:
        sizes = _pairs(line)
        for name, size in sizes.items():
            if not isinstance(size, int):
                line.fail(f"axis {name} needs an integer size")
        self.axes = line.blame(lambda: Axes(sizes))

    def _read_chips(self, line: _Line) -> None:
        self.chips = int(line.match(re.compile(r"\d{1,15}"), "a number of chips"))

    def _read_input(self, line: _Line) -> None:
        name = line.match(_NAME, "the name of the input")
        self.where.inputs[name] = (line.number, line.text)
        line.need(":")
        raw = {"type": line.match(_NAME, "a tier"), "dtype": line.match(_NAME, "an element type")}
        raw.update(_pairs(line))
        self.inputs.append(line.blame(lambda: KernelInput.from_json(name, raw, self.axes)))

    def _read_output(self, line: _Line) -> None:
        names = [line.match(_NAME, "the name of an output")]
        while line.take(","):
            names.append(line.match(_NAME, "the name of an output"))
        self.outputs = tuple(names)

    def _read_oracle(self, line: _Line) -> None:
        self.oracle = str(line.value())

    def _read_tolerance(self, line: _Line) -> None:
        raw = _pairs(line)
        self.tolerance = line.blame(lambda: Tolerance.from_json(raw))

    def _step(self, path: tuple[int, ...]) -> KernelStep:
        line = self.lines[self.next]
        self.where.steps[path] = (line.number, line.text)
        self.next += 1
        if re.match(r"for\s", line.text[line.at :]):
            return self._loop(line, path)
        let = None
        bound = re.match(r"([A-Za-z_]\w*)\s*=(?!=)", line.text[line.at :])
        if bound:
            let = bound.group(1)
            line.at += bound.end()
        line.skip()
        if re.match(r"\w+\s*\.", line.text[line.at :]):
            return self._pass(line, let, path)
        raw = line.call()
        line.done()
        if let is not None:
            raw = {"let": let, **raw}
        return line.blame(lambda: step_from_json(raw, self.axes))

    def _pass(self, line: _Line, let: str | None, path: tuple[int, ...]) -> KernelStep:
        raw: dict[str, Any] = {} if let is None else {"let": let}
        raw["context"] = line.match(_NAME, "a context")
        line.need(".")
        kind = line.match(_NAME, "begin")
        if kind not in ("begin", "begin_interleaved"):
            line.fail(f"a pass starts with begin or begin_interleaved, not {kind!r}")
        arguments = line.arguments()
        line.done()
        raw[kind] = arguments if kind == "begin_interleaved" else arguments.get("from")
        ops: list[dict[str, Any]] = []
        raw["ops"] = ops
        unit = line.blame(lambda: TensorUnit.from_json(raw, self.axes))
        parsed = []
        while self.next < len(self.lines) and self.lines[self.next].peek("."):
            op_line = self.lines[self.next]
            if op_line.depth != len(path):
                op_line.fail("indent the operations of a pass one level below its first line")
            self.next += 1
            self.where.ops.setdefault(path, []).append((op_line.number, op_line.text))
            op_line.need(".")
            op = op_line.call()
            op_line.done()
            one = {**raw, "ops": [op]}
            parsed.append(op_line.blame(lambda one=one: TensorUnit.from_json(one, self.axes)).ops[0])  # type: ignore[misc]  # mypy cannot infer a lambda that binds its loop variable by default
        return TensorUnit(unit.context, unit.begin, tuple(parsed), unit.let)

    def _loop(self, line: _Line, path: tuple[int, ...]) -> KernelStep:
        depth = len(path) - 1
        if depth >= MAX_LOOP_DEPTH:
            line.fail(f"loops are nested deeper than {MAX_LOOP_DEPTH}")
        line.match(re.compile("for"), "for")
        var = line.match(_NAME, "a loop variable")
        line.match(re.compile(r"in\b"), "in")
        count: int | RuntimeCount
        if line.take("runtime "):
            count = RuntimeCount(line.match(_NAME, "the name of the trip count"))
        else:
            count = int(line.match(re.compile(r"\d{1,15}"), "a trip count"))
        unroll = line.take("unroll")
        line.need(":")
        line.done()
        body: list[KernelStep] = []
        while self.next < len(self.lines) and self.lines[self.next].depth > depth:
            if self.lines[self.next].depth != depth + 1:
                self.lines[self.next].fail("indented too deep")
            body.append(self._step((*path, len(body))))
        if not body:
            line.fail("the loop has no body")
        return Loop(var, count, tuple(body), unroll)


def _pairs(line: _Line) -> dict[str, Any]:
    found: dict[str, Any] = {}
    line.skip()
    while line.at < len(line.text):
        key = line.match(_NAME, "a field name")
        line.need("=")
        found[key] = line.value()
        line.skip()
    return found


def parse_kernel(text: str) -> Kernel:
    """Reads the text form.

    Raises:
        ParseError: the text is wrong; message has the line, the error points at the column.
        RuleViolation: a mapping in it breaks a rule; the message has the line.
    """
    return parse_with_lines(text)[0]


def parse_with_lines(text: str) -> tuple[Kernel, KernelLines]:
    """As `parse_kernel`, with the line of every part, for whoever checks the kernel afterwards."""
    if not text.strip():
        raise InputError("the kernel text is empty", hint="it begins with a line like: kernel gemm")
    reader = _Reader(text)
    return reader.read(), reader.where

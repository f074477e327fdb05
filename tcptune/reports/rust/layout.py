"""Lays out Rust expressions as rustfmt does by default: 100 columns, chains and argument lists up to 60, struct literals up to 18.

An expression is a text, a chain of calls on a root, a struct literal or a list; `statement` breaks it over lines the way rustfmt would.
"""

from __future__ import annotations

from dataclasses import dataclass

MAX_WIDTH = 100
CHAIN_WIDTH = 60
CALL_WIDTH = 60
LIST_WIDTH = 60
STRUCT_WIDTH = 18
_LONG_OVERFLOW = 5
INDENT = 4


@dataclass(frozen=True)
class Call:
    """One link of a chain: a field (`arguments` is None) or a method call with its type arguments."""

    name: str
    types: tuple[str, ...] = ()
    arguments: tuple[Expr, ...] | None = ()

    @property
    def head(self) -> str:
        """The link up to its opening bracket."""
        turbofish = f"::<{', '.join(self.types)}>" if self.types else ""
        return f".{self.name}{turbofish}"


@dataclass(frozen=True)
class Chain:
    """``root.a.b::<T>(x)``."""

    root: Expr
    calls: tuple[Call, ...]


@dataclass(frozen=True)
class Struct:
    """``Head { field: value, … }``."""

    head: str
    fields: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Sequence:
    """Items between brackets, behind an optional head: ``[a, b]``, ``(a, b)``, ``Head(a)``."""

    items: tuple[Expr, ...]
    head: str = ""
    brackets: str = "[]"


@dataclass(frozen=True)
class Block:
    """``unsafe { value }``."""

    head: str
    value: Expr


Expr = str | Chain | Struct | Sequence | Block


def one_line(expr: Expr) -> str:
    """The expression without line breaks."""
    if isinstance(expr, str):
        return expr
    if isinstance(expr, Block):
        return f"{expr.head} {{ {one_line(expr.value)} }}"
    if isinstance(expr, Struct):
        return f"{expr.head} {{ {', '.join(f'{n}: {v}' for n, v in expr.fields)} }}"
    if isinstance(expr, Sequence):
        return f"{expr.head}{expr.brackets[0]}{', '.join(map(one_line, expr.items))}{expr.brackets[1]}"
    return one_line(expr.root) + "".join(_link(call) for call in expr.calls)


def _link(call: Call) -> str:
    return call.head if call.arguments is None else f"{call.head}({', '.join(map(one_line, call.arguments))})"


def fits(expr: Expr, room: int) -> bool:
    """Whether rustfmt keeps the expression on one line of `room` columns."""
    if len(one_line(expr)) > room:
        return False
    if isinstance(expr, Block):
        return fits(expr.value, room)
    if isinstance(expr, Struct):
        return len(one_line(expr)) - len(expr.head) - len(" {  }") <= STRUCT_WIDTH
    if isinstance(expr, Sequence):
        width = len(one_line(expr)) - len(expr.head) - 2
        return width <= LIST_WIDTH and all(fits(item, room) for item in expr.items)
    if isinstance(expr, Chain):
        if len(expr.calls) > 1 and len(one_line(expr)) > CHAIN_WIDTH:
            return False
        return fits(expr.root, room) and all(_arguments_fit(call, room) for call in expr.calls)
    return True


def _arguments_fit(call: Call, room: int) -> bool:
    arguments = call.arguments or ()
    return sum(len(one_line(a)) for a in arguments) + 2 * max(0, len(arguments) - 1) <= CALL_WIDTH and all(fits(a, room) for a in arguments)


def layout(expr: Expr, indent: int, offset: int = 0, suffix: int = 0, *, value: bool = False) -> list[str]:
    """Lines of an expression whose first line already holds `offset` characters after `indent`; `suffix` characters follow the last.

    The first calls on a short root join it, except where the expression is the `value` of a binding.
    """
    if fits(expr, MAX_WIDTH - indent - offset - suffix) or isinstance(expr, str):
        return [one_line(expr)]
    if isinstance(expr, Chain):
        return _chain(expr, indent, offset, suffix, value)
    if isinstance(expr, Block):
        inner = layout(expr.value, indent + INDENT)
        return [f"{expr.head} {{", " " * (indent + INDENT) + inner[0], *inner[1:], " " * indent + "}"]
    return _broken(expr, indent)


def _broken(expr: Struct | Sequence, indent: int) -> list[str]:
    """A literal or list over several lines; of nested ones with a single item the innermost breaks."""
    pad = " " * indent
    if isinstance(expr, Struct):
        inner = [f"{pad}{' ' * INDENT}{name}: {value}," for name, value in expr.fields]
        return [f"{expr.head} {{", *inner, f"{pad}}}"]
    opening, closing = expr.brackets[0], expr.brackets[1]
    if len(expr.items) == 1 and isinstance(expr.items[0], Sequence | Struct):
        lines = _broken(expr.items[0], indent)
        lines[0] = f"{expr.head}{opening}{lines[0]}"
        lines[-1] += closing
        return lines
    return [f"{expr.head}{opening}", *_vertical(expr.items, indent + INDENT), f"{pad}{closing}"]


def _vertical(items: tuple[Expr, ...], indent: int) -> list[str]:
    """One item after the other on lines of their own, each with a comma."""
    lines: list[str] = []
    for item in items:
        block = layout(item, indent, 0, 1)
        block[0] = " " * indent + block[0]
        block[-1] += ","
        lines.extend(block)
    return lines


def _chain(chain: Chain, indent: int, offset: int, suffix: int, value: bool) -> list[str]:
    root, calls = layout(chain.root, indent, offset), list(chain.calls)
    while not value and offset == 0 and len(calls) > 1 and len(root) == 1 and len(root[0]) <= INDENT:
        root[0] += _link(calls.pop(0))
    deeper = indent if len(root) > 1 else indent + INDENT
    last = _call(calls[-1], deeper, 0, suffix) if calls else []
    if len(root) == 1:
        joined = _joined(root[0], calls, indent, offset, suffix, len(last))
        if joined is not None:
            return joined
    blocks = [*(_call(call, deeper, 0) for call in calls[:-1]), last]
    return [*root, *(line for block in blocks for line in (" " * deeper + block[0], *block[1:]))]


def _joined(root: str, calls: list[Call], indent: int, offset: int, suffix: int, last_lines: int) -> list[str] | None:
    """The chain with all but the arguments of its last call on one line, None where rustfmt prefers one call a line.

    It joins if the first line fits (60 columns where there are several calls) and the last call on a line of its own would need no
    fewer lines, or if the joined form has at least `_LONG_OVERFLOW` lines.
    """
    if not calls:
        return [root]
    prefix = root + "".join(map(_link, calls[:-1]))
    room = MAX_WIDTH - indent - offset if len(calls) == 1 else min(CHAIN_WIDTH, MAX_WIDTH - indent - offset)
    tail = _call(calls[-1], indent, len(prefix) + offset, suffix)
    if not all(_arguments_fit(call, MAX_WIDTH) for call in calls[:-1]) or len(prefix) + len(tail[0]) > room:
        return None
    if len(tail) < _LONG_OVERFLOW and last_lines < len(tail):
        return None
    return [prefix + tail[0], *tail[1:]]


def _call(call: Call, indent: int, offset: int, suffix: int = 0) -> list[str]:
    """Lines of one link; the first is given without its indentation."""
    if call.arguments is None:
        return [call.head]
    text = _link(call)
    if _arguments_fit(call, MAX_WIDTH) and indent + offset + len(text) + suffix <= MAX_WIDTH:
        return [text]
    pad = " " * indent
    single = call.arguments[0] if len(call.arguments) == 1 else None
    if isinstance(single, Struct | Sequence) and not _is_tuple(single):
        lines = _broken(single, indent)
        first = f"{call.head}({lines[0]}"
        if indent + offset + len(first) < MAX_WIDTH:
            return [first, *lines[1:-1], f"{lines[-1]})"]
    return [f"{call.head}(", *_vertical(call.arguments, indent + INDENT), f"{pad})"]


def _is_tuple(expr: Expr) -> bool:
    return isinstance(expr, Sequence) and expr.brackets == "()" and not expr.head


def statement(expr: Expr, indent: int, end: str = ";") -> list[str]:
    """Lines of an expression as a statement (or, with an empty `end`, as the value of a block)."""
    lines = layout(expr, indent, 0, len(end))
    lines[0] = " " * indent + lines[0]
    lines[-1] += end
    return lines


def binding(name: str, annotation: tuple[str, tuple[str, ...]] | None, expr: Expr, indent: int, *, mutable: bool = False) -> list[str]:
    """Lines of ``let name: Head<arguments> = expr;``."""
    pad = " " * indent
    pattern = f"let {'mut ' if mutable else ''}{name}"
    if annotation is not None:
        head, arguments = annotation
        flat = f"{pattern}: {head}<{', '.join(arguments)}> ="
        if indent + len(flat) > MAX_WIDTH:
            inner = [f"{pad}{' ' * INDENT}{argument}," for argument in arguments]
            first, *rest = layout(expr, indent, len("> = "), 1)
            return _ended([f"{pad}{pattern}: {head}<", *inner, f"{pad}> = {first}", *rest])
        pattern = flat.removesuffix(" =")
    lead = f"{pattern} = "
    same, below = layout(expr, indent, len(lead), 1, value=True), layout(expr, indent + INDENT, 0, 1, value=True)
    if len(same) > 1 and _prefers_next_line(same, below):
        return _ended([f"{pad}{pattern} =", f"{pad}{' ' * INDENT}{below[0]}", *below[1:]])
    if len(same) == 1 and indent + len(lead) + len(same[0]) >= MAX_WIDTH:  # a text that cannot be broken
        return [f"{pad}{pattern} =", f"{pad}{' ' * INDENT}{same[0]};"]
    return _ended([f"{pad}{lead}{same[0]}", *same[1:]])


def _prefers_next_line(same: list[str], below: list[str]) -> bool:
    """Whether a value that breaks goes to the next line (rustfmt's `prefer_next_line`)."""
    opens = [same[0].endswith(bracket) and not below[0].endswith(bracket) for bracket in "({["]
    return len(below) == 1 or len(same) > len(below) + 1 or any(opens)


def _ended(lines: list[str]) -> list[str]:
    return [*lines[:-1], lines[-1] + ";"]


def bracket_list(head: str, items: list[str], indent: int = 0) -> list[str]:
    """Lines of ``head[a, b];`` as rustfmt lays out a macro call whose items are expressions."""
    body = ", ".join(items)
    if len(body) <= LIST_WIDTH or any("#" in item for item in items):
        return [f"{' ' * indent}{head}[{body}];"]
    inner = [f"{' ' * (indent + INDENT)}{item}," for item in items]
    inner[-1] = inner[-1].removesuffix(",")
    return [f"{' ' * indent}{head}[", *inner, f"{' ' * indent}];"]

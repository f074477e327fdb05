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


Expr = str | Chain | Struct | Sequence


def one_line(expr: Expr) -> str:
    """The expression without line breaks."""
    if isinstance(expr, str):
        return expr
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


def layout(expr: Expr, indent: int, offset: int = 0, suffix: int = 0) -> list[str]:
    """Lines of an expression whose first line already holds `offset` characters after `indent`; `suffix` characters follow the last."""
    if fits(expr, MAX_WIDTH - indent - offset - suffix) or isinstance(expr, str):
        return [one_line(expr)]
    if isinstance(expr, Chain):
        return _chain(expr, indent, offset, suffix)
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


def _chain(chain: Chain, indent: int, offset: int, suffix: int) -> list[str]:
    root, calls = layout(chain.root, indent, offset), list(chain.calls)
    while offset == 0 and calls and len(root) == 1 and len(root[0]) <= INDENT:
        root[0] += _link(calls.pop(0))
    if (
        len(calls) == 1
        and len(root) == 1
        and len(root[0]) + len(_link(calls[0])) + indent + offset + suffix <= MAX_WIDTH
        and _arguments_fit(calls[0], MAX_WIDTH)
    ):
        return [root[0] + _link(calls[0])]
    if len(calls) <= 1 and len(root) == 1:
        tail = _call(calls[0], indent, len(root[0]) + offset) if calls else [""]
        return [root[0] + tail[0], *tail[1:]]
    lines = root
    deeper = indent if len(root) > 1 else indent + INDENT
    for position, call in enumerate(calls):
        block = _call(call, deeper, 0, suffix if position == len(calls) - 1 else 0)
        lines += [" " * deeper + block[0], *block[1:]]
    return lines


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
    single = one_line(expr)
    if not fits(expr, MAX_WIDTH - indent - len(lead) - 1) and fits(expr, MAX_WIDTH - indent - INDENT - 1):
        return [f"{pad}{pattern} =", f"{pad}{' ' * INDENT}{single};"]
    first, *rest = layout(expr, indent, len(lead), 1)
    return _ended([f"{pad}{lead}{first}", *rest])


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

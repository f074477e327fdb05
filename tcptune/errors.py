"""The few errors of tcptune: what a user sees when input, a rule of the machine, or the work itself fails."""

from __future__ import annotations


class TcptuneError(Exception):
    """Base of every error that is shown to a user without a traceback."""

    exit_status = 1

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def render(self) -> str:
        """The text for standard error: what is wrong, and what would be right."""
        lines = [f"error: {self.message}"]
        if self.hint:
            lines.append(f"  {self.hint}")
        return "\n".join(lines)


class InputError(TcptuneError):
    """Input that cannot be used (exit status 2)."""

    exit_status = 2


_EXCERPT_CHARACTERS = 60


def excerpt(text: str, column: int) -> list[str]:
    """The part of `text` around `column` and a caret below the place; both indented by two spaces.

    >>> excerpt("A / 3", 2)
    ['  A / 3', '    ^']
    """
    first = max(0, column - _EXCERPT_CHARACTERS // 2)
    shown = "".join(c if c.isprintable() else " " for c in text[first : first + _EXCERPT_CHARACTERS])
    return [f"  {shown}", "  " + " " * (column - first) + "^"]


class ParseError(InputError):
    """Text that does not follow its grammar; points at the column.

    Args:
        text: the whole text that was read.
        column: zero-based offset of the offence in `text`.
        rule: the rule of the grammar (MAP-018 and the like), if it has one.
    """

    def __init__(self, text: str, column: int, message: str, *, rule: str | None = None, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.text = text
        self.column = column
        self.rule = rule

    def render(self) -> str:
        tag = f"[{self.rule}]" if self.rule else ""
        lines = [f"error{tag}: {self.message} (column {self.column + 1})", *excerpt(self.text, self.column)]
        if self.hint:
            lines.append(f"  {self.hint}")
        return "\n".join(lines)


class RuleViolation(TcptuneError):
    """A rule of the machine is broken.

    Args:
        rule: id in the catalogue, e.g. ``SWITCH-011``; ``tcptune explain`` knows it.
        message: what is wrong, with the offending values.
        expected: what the rule demands, where it can be computed.
        got: what was given.
        nearest: the nearest legal choice, where the rule allows computing it.
        also: ids of rules that are equally right diagnoses.

    `place` is the text that was read and the zero-based column of the offence in it, where the violation came from a text.
    """

    exit_status = 2
    place: tuple[str, int] | None = None

    def __init__(
        self,
        rule: str,
        message: str,
        *,
        expected: object = None,
        got: object = None,
        nearest: object = None,
        also: tuple[str, ...] = (),
    ) -> None:
        super().__init__(message)
        self.rule = rule
        self.expected = expected
        self.got = got
        self.nearest = nearest
        self.also = also

    def render(self) -> str:
        if self.place is None:
            lines = [f"error[{self.rule}]: {self.message}"]
        else:
            lines = [f"error[{self.rule}]: {self.message} (column {self.place[1] + 1})", *excerpt(*self.place)]
        if self.got is not None:
            lines.append(f"  got       {self.got}")
        if self.expected is not None:
            lines.append(f"  expected  {self.expected}")
        if self.nearest is not None:
            lines.append(f"  try       {self.nearest}")
        lines.append(f"  see: tcptune explain {self.rule}")
        return "\n".join(lines)


class WorkError(TcptuneError):
    """Work that cannot be done: no legal placement, too large, oracle mismatch (exit status 1)."""

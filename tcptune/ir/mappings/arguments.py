"""Checks of the arguments of mapping constructors: positive whole numbers, divisors, and short words for what was given."""

from __future__ import annotations

import operator

from tcptune.errors import RuleViolation

_SHOWN_CHARACTERS = 60
_DIVISOR_SEARCH = 4096


def shown(value: object) -> str:
    """A wrong argument as messages show it, short."""
    text = repr(value)
    return text if len(text) <= _SHOWN_CHARACTERS else text[:_SHOWN_CHARACTERS] + "…"


def is_whole_number(value: object) -> bool:
    """Whether `value` is an integer of Python or numpy; truth values are none."""
    return not isinstance(value, bool) and hasattr(value, "__index__")


def positive(n: int, rule: str, what: str) -> int:
    """`n` as a Python integer of 1 or more.

    Checked before nodes are looked up, where ``True`` and ``1.0`` would equal ``1``.

    Raises:
        RuleViolation: `rule`, if it is anything else.
    """
    if type(n) is not int and is_whole_number(n):
        n = operator.index(n)
    if type(n) is not int or n < 1:
        raise RuleViolation(rule, f"{what} must be a positive whole number", got=shown(n))
    return n


def close_divisor(size: int, n: int) -> int | None:
    """The smallest divisor of `size` above `n`, if it is at most an eighth larger: no more blocks than the `n` asked for would give.

    >>> close_divisor(65536, 240), close_divisor(96, 7)
    (256, None)
    """
    most = min(n // 8, _DIVISOR_SEARCH)
    return next((d for d in range(n, n + most + 1) if size % d == 0), None)


def near_divisors(size: int, n: int) -> str:
    """The divisors of `size` next to `n`, in words; those within a few thousand of it.

    >>> near_divisors(96, 7)
    ', such as 6 or 8'
    """
    below = range(min(n, size), max(n - _DIVISOR_SEARCH, 0), -1)
    above = range(n, min(n + _DIVISOR_SEARCH, size) + 1)
    near = [next((d for d in places if size % d == 0), None) for places in (below, above)]
    words = " or ".join(str(d) for d in dict.fromkeys(near) if d is not None)
    return f", such as {words}" if words else ""

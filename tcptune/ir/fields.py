"""Readers of JSON fields: each refuses what has the wrong kind, naming the field and what was given."""

from __future__ import annotations

from collections.abc import Iterable
from collections.abc import Mapping as Dict
from difflib import get_close_matches
from typing import Any

from tcptune.errors import InputError
from tcptune.ir.mappings.arguments import shown

_LISTED = 12
LARGEST_BITS = 63
"""Whole numbers have fewer bits than this."""


def record(raw: Any, where: str) -> Dict[str, Any]:
    """`raw` as an object with named fields."""
    if not isinstance(raw, dict):
        raise InputError(f"{where} must be an object, got {shown(raw)}")
    return raw


def items(raw: Any, where: str) -> list[Any]:
    """`raw` as a list."""
    if not isinstance(raw, list | tuple):
        raise InputError(f"{where} must be a list, got {shown(raw)}")
    return list(raw)


def number(raw: Any, where: str) -> int | float:
    """`raw` as a number."""
    if isinstance(raw, bool) or not isinstance(raw, int | float):
        raise InputError(f"{where} must be a number, got {shown(raw)}")
    return raw


def need(raw: Any, key: str, where: str) -> Any:
    """The field `key` of an object."""
    record(raw, where)
    if key not in raw:
        raise InputError(f"{where} misses the field {key!r}")
    return raw[key]


def integer(value: Any, where: str) -> int:
    """`value` as a whole number."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise InputError(f"{where} must be an integer, got {shown(value)}")
    if value.bit_length() >= LARGEST_BITS:
        raise InputError(f"{where} is too large")
    return value


def integers(value: Any, where: str) -> tuple[int, ...]:
    """`value` as a list of whole numbers."""
    if not isinstance(value, list | tuple):
        raise InputError(f"{where} must be a list of integers, got {shown(value)}")
    return tuple(integer(v, where) for v in value)


def text_of(value: Any, where: str) -> str:
    """`value` as a text that is not empty."""
    if not isinstance(value, str) or not value:
        raise InputError(f"{where} must be a name, got {shown(value)}")
    return value


def flag(value: Any, where: str) -> bool:
    """`value` as true or false."""
    if not isinstance(value, bool):
        raise InputError(f"{where} must be true or false, got {shown(value)}")
    return value


def start(value: Any, where: str) -> int | str:
    """`value` as the start of a tile: a number or a formula."""
    return value if isinstance(value, str) else integer(value, where)


def no_others(raw: Dict[str, Any], known: tuple[str, ...], where: str) -> None:
    """Refuses fields that are not known."""
    for key in raw:
        if key not in known:
            raise InputError(f"{where} has no field {shown(key)}", hint=did_you_mean(key, known, "fields"))


def did_you_mean(given: object, known: Iterable[str], what: str = "known") -> str:
    """The hint for a name that is not known: the known one that is most like it, and all of them unless they are many."""
    names = list(known)
    near = get_close_matches(str(given), names, n=1)
    listed = f"{what}: {', '.join(names) or 'none'}"
    if near:
        return f"did you mean {near[0]}? {listed}" if len(names) <= _LISTED else f"did you mean {near[0]}?"
    return listed

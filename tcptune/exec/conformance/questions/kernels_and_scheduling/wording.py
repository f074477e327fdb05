"""Which of several named things a cell in words speaks of: the one whose name it repeats most of."""

from __future__ import annotations

import re
from collections.abc import Iterable

from tcptune.exec.conformance.registry import Mismatch

_WORD = re.compile(r"[a-z]+")


def words(text: str) -> set[str]:
    """Words of `text` in lower case, a plural's last letter dropped."""
    return {word if len(word) < 4 else word.rstrip("s") for word in _WORD.findall(text.lower())}


def share_named(text: str, name: str) -> float:
    """Share of the words of `name` that `text` repeats."""
    named = words(name)
    return len(named & words(text)) / len(named)


def spoken_of(text: str, names: Iterable[str]) -> str:
    """The name that `text` repeats most of.

    Raises:
        Mismatch: it repeats no word of any, or as much of several.
    """
    shares = {name: share_named(text, name) for name in names}
    best = max(shares.values(), default=0)
    found = [name for name, share in shares.items() if share == best]
    if not best or len(found) > 1:
        raise Mismatch(f"{text!r} names none of {', '.join(shares)}")
    return found[0]

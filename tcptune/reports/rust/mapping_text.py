"""Pieces of mapping texts."""

from __future__ import annotations


def split_list(text: str) -> list[str]:
    """The members of a mapping's top-level list.

    >>> split_list("A / 8, [B, C] % 4")
    ['A / 8', '[B, C] % 4']
    """
    parts, depth, start = [], 0, 0
    for position, character in enumerate(text):
        depth += (character in "[({") - (character in "])}")
        if character == "," and depth == 0:
            parts.append(text[start:position].strip())
            start = position + 1
    return [*parts, text[start:].strip()]

"""Rust names for the tensors and mappings of a kernel: valid identifiers, and type aliases for what repeats or is long."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from tcptune.ir.mappings.mapping import IDENTITY, Mapping

# fmt: off
_KEYWORDS = frozenset((
    "as", "async", "await", "break", "const", "continue", "crate", "dyn", "else", "enum", "extern", "false", "fn", "for", "gen",
    "if", "impl", "in", "let", "loop", "match", "mod", "move", "mut", "pub", "ref", "return", "self", "static", "struct",
    "super", "trait", "true", "try", "type", "unsafe", "use", "where", "while", "abstract", "become", "box", "do", "final",
    "macro", "override", "priv", "typeof", "unsized", "virtual", "yield", "device",
))
# fmt: on
LONG_MAPPING = 44
"""Mapping texts longer than this get an alias, so that lines stay within rustfmt's width."""

_RESERVED_TYPES = frozenset(
    {"Device", "Branched", "Cmp", "TagMode", "TagGuard", "BitReq", "LaneMode", "SwitchConfig", "Stash", "Error", "Tu", "Dma"}
)


def identifier(name: str) -> str:
    """A valid snake-case-compatible Rust identifier close to `name`."""
    if re.fullmatch(r"[A-Za-z_]\w*", name, re.ASCII) and name not in _KEYWORDS and name.strip("_"):
        return name
    text = re.sub(r"\W+", "_", name, flags=re.ASCII).strip("_") or "x"
    if text[0].isdigit():
        text = f"x{text}"
    return f"{text}_" if text in _KEYWORDS else text


class Identifiers:
    """Assigns every tensor name of a kernel an identifier of its own."""

    def __init__(self) -> None:
        self._by_name: dict[str, str] = {}
        self._taken: set[str] = set()

    def __call__(self, name: str) -> str:
        """The identifier of a tensor; the same for every use."""
        known = self._by_name.get(name)
        if known is not None:
            return known
        base = text = identifier(name)
        number = 1
        while text in self._taken:
            number += 1
            text = f"{base}_{number}"
        self._taken.add(text)
        self._by_name[name] = text
        return text


@dataclass
class Aliases:
    """Type aliases for mappings; `mapping` gives the text to write for one."""

    taken: set[str]
    by_text: dict[str, str] = field(default_factory=dict)

    @classmethod
    def for_levels(cls, axes: Iterable[str], levels: dict[str, list[Mapping]]) -> Aliases:
        """Aliases ``Chip``, ``Cluster`` and ``Slice`` for the mapping that each level has most often."""
        aliases = cls({*axes, *_RESERVED_TYPES})
        for level in ("chip", "cluster", "slice"):
            counts = Counter(str(m) for m in levels.get(level, []))
            common = [(text, count) for text, count in counts.most_common() if count > 1]
            if common and common[0][0] not in aliases.by_text:
                aliases._add(level.capitalize(), common[0][0])
        return aliases

    def _add(self, name: str, text: str) -> str:
        base, number = name, 1
        while name in self.taken:
            number += 1
            name = f"{base}{number}"
        self.taken.add(name)
        self.by_text[text] = name
        return name

    def level(self, mapping: Mapping) -> str:
        """The text of a mapping at a level of a tensor: its alias, if it has one."""
        text = str(mapping)
        return self.by_text.get(text) or self.mapping(mapping, "Layout")

    def mapping(self, mapping: Mapping, role: str) -> str:
        """``m![…]``, or the alias of a long mapping, named after its `role`."""
        text = str(mapping)
        if len(text) <= LONG_MAPPING or mapping is IDENTITY:
            return f"m![{text}]"
        return self.by_text.get(text) or self._add(role, text)

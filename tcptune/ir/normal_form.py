"""Normal form of mappings (symbolic view): digits of the position, major first."""

from __future__ import annotations

from dataclasses import dataclass

from tcptune.ir.mapping import Mapping


@dataclass(frozen=True)
class NormalForm:
    """Digits of the position, major first."""

    digits: tuple[Mapping, ...]


def normal_form(m: Mapping) -> NormalForm:
    """Normal form of `m`."""
    return NormalForm(tuple(m.terms()))

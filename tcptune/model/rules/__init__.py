"""Every rule of the machine once: id, title, explanation, what breaks it and the fix. `tcptune explain` prints these."""

from __future__ import annotations

import difflib
import importlib
import pkgutil
import re
from collections.abc import Iterable
from functools import cache

from tcptune.errors import InputError
from tcptune.model.rules.kernels_and_scheduling import OWNERS
from tcptune.model.rules.rule import Rule

__all__ = ["Rule", "all_rules", "group_of", "rule", "rules_about", "same_diagnosis"]

_NUMBERED = re.compile(r"([A-Z]+)[-_ ]?([1-9]\d*)\Z")


@cache
def all_rules() -> dict[str, Rule]:
    """Every rule by id, in the order of the pages; each page is a module of this package with a tuple ``RULES``.

    Raises:
        ValueError: an id is defined twice.
    """
    found: dict[str, Rule] = {}
    for info in sorted(pkgutil.iter_modules(__path__), key=lambda m: m.name):
        if info.name in ("groups", "rule"):
            continue
        for entry in importlib.import_module(f"{__name__}.{info.name}").RULES:
            if entry.id in found:
                raise ValueError(f"rule {entry.id} is defined twice")
            found[entry.id] = entry
    return found


def rule(rule_id: str) -> Rule:
    """The rule with this id (case does not matter).

    Raises:
        InputError: no such rule; the hint names those of the same group, or ids that look like it.
    """
    rules = all_rules()
    key = rule_id.strip().upper()
    if key in rules:
        return rules[key]
    group = group_of(key)
    near = sorted(r for r in rules if group_of(r) == group)
    groups = sorted({group_of(r) for r in rules})
    if near:
        hint = f"{group} has {near[0]} to {near[-1]}"
    elif alike := difflib.get_close_matches(key, [*rules, *groups], n=3):
        hint = f"did you mean {' or '.join(alike)}?"
    else:
        hint = f"groups: {', '.join(groups)}"
    raise InputError(f"there is no rule {rule_id[:60]!r}", hint=hint)


def group_of(rule_id: str) -> str:
    """The letters before the number: ``SWITCH`` of ``SWITCH-011``."""
    return rule_id.split("-")[0]


def rules_about(text: str) -> list[Rule]:
    """The rules that a text asks for, in whatever case: an id (``SWITCH-011``, ``switch 11``), a group (``SWITCH``), the beginning of ids
    or groups (``SWITCH-01``, ``SW``), or words that are in the title or the explanation. Empty if there are none.
    """
    rules = all_rules()
    key = " ".join(text.upper().split())
    if numbered := _NUMBERED.match(key):
        key = f"{numbered.group(1)}-{int(numbered.group(2)[:9]):03d}"
    if key in rules:
        return [rules[key]]
    if not key or (numbered and any(group_of(r) == numbered.group(1) for r in rules)):
        return []
    words = [word for word in key.split() if len(word) > 1 and any(c.isalpha() for c in word)]
    for chosen in (
        sorted((r for r in rules.values() if r.group == key), key=lambda r: r.id),
        [r for r in rules.values() if r.id.startswith(key)],
        [r for r in rules.values() if words and all(word in f"{r.title} {r.text} {r.fix}".upper() for word in words)],
    ):
        if chosen:
            return chosen
    return []


def same_diagnosis(rule_ids: Iterable[str]) -> set[str]:
    """These rules, the ones they restate, and the ones that restate them."""
    given = set(rule_ids)
    found = set(given)
    for restated, owners in OWNERS.items():
        if restated in given:
            found.update(owners)
        if given.intersection(owners):
            found.add(restated)
    return found

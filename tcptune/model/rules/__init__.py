"""Every rule of the machine once: id, title, explanation, what breaks it and the fix. `tcptune explain` prints these."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterable
from functools import cache

from tcptune.errors import InputError
from tcptune.model.rules.kernels_and_scheduling import OWNERS
from tcptune.model.rules.rule import Rule

__all__ = ["Rule", "all_rules", "rule", "same_diagnosis"]


@cache
def all_rules() -> dict[str, Rule]:
    """Every rule by id, in the order of the pages; each page is a module of this package with a tuple ``RULES``.

    Raises:
        ValueError: an id is defined twice.
    """
    found: dict[str, Rule] = {}
    for info in sorted(pkgutil.iter_modules(__path__), key=lambda m: m.name):
        if info.name == "rule":
            continue
        for entry in importlib.import_module(f"{__name__}.{info.name}").RULES:
            if entry.id in found:
                raise ValueError(f"rule {entry.id} is defined twice")
            found[entry.id] = entry
    return found


def rule(rule_id: str) -> Rule:
    """The rule with this id (case does not matter).

    Raises:
        InputError: no such rule; the hint names those of the same group.
    """
    rules = all_rules()
    key = rule_id.strip().upper()
    if key in rules:
        return rules[key]
    group = key.split("-")[0]
    near = [r for r in rules if r.split("-")[0] == group]
    groups = sorted({r.split("-")[0] for r in rules})
    hint = f"{group} has {near[0]} to {near[-1]}" if near else f"groups: {', '.join(groups)}"
    raise InputError(f"there is no rule {rule_id!r}", hint=hint)


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

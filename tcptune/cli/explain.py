"""`tcptune explain RULE`: what a rule demands, an example that breaks it, and the fix."""

from __future__ import annotations

from typing import Annotated

import typer

from tcptune.cli.output import print_document
from tcptune.model.rules import all_rules, rule
from tcptune.model.rules.rule import Rule

_NO_FIX = "nothing to "
_OF_COSTS = ("VT", "TUNE")
"""Groups whose rules say what something costs."""


def command(
    rule_id: Annotated[str | None, typer.Argument(metavar="RULE", help="e.g. SWITCH-011; a group (SWITCH) or nothing lists titles")] = None,
    json: Annotated[bool, typer.Option("--json", help="one JSON document on standard output")] = False,
) -> None:
    """Explain a rule of the machine."""
    rules = all_rules()
    group = [r for r in rules.values() if rule_id is None or r.id.split("-")[0] == rule_id.strip().upper()]
    if group:
        listing(group, json)
        return
    found = rule(rule_id or "")
    if json:
        print_document(document(found))
    else:
        print(text(found))


def document(found: Rule) -> dict[str, str]:
    """The explain/1 document of one rule."""
    return {
        "schema": "tcptune/explain/1",
        "rule": found.id,
        "title": found.title,
        "text": found.text,
        "breaks": found.breaks,
        "fix": found.fix,
        "manual": found.manual,
    }


def text(found: Rule) -> str:
    """The rule as a person reads it. A rule that nothing can break has an example of its effect."""
    effect = found.fix.startswith(_NO_FIX) or found.id.split("-")[0] in _OF_COSTS
    return "\n".join(
        [
            f"{found.id}  {found.title}",
            "",
            found.text,
            "",
            f"{'example:' if effect else 'breaks it:':<12}{found.breaks}",
            *([] if found.fix.startswith(_NO_FIX) else [f"{'advice:' if effect else 'fix:':<12}{found.fix}"]),
            f"{'manual:':<12}{found.manual}",
        ]
    )


def listing(rules: list[Rule], json: bool) -> None:
    """Prints ids and titles."""
    if json:
        print_document({"schema": "tcptune/explain/1", "rules": [{"rule": r.id, "title": r.title} for r in rules]})
        return
    for r in rules:
        print(f"{r.id:<16} {r.title}")

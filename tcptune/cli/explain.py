"""`tcptune explain RULE`: what a rule demands, an example that breaks it, and the fix; also lists rules by group or by words."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from tcptune.cli.output import print_document
from tcptune.errors import InputError
from tcptune.model.practice import points
from tcptune.model.rules import all_rules, rule, rules_about
from tcptune.model.rules.rule import Rule


def command(
    asked: Annotated[
        list[str] | None,
        typer.Argument(metavar="RULE", help="a rule (SWITCH-011), a group (SWITCH) or words (slice padding); nothing lists all titles"),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="one JSON document on standard output")] = False,
) -> None:
    """Explain a rule of the machine, or list the rules of a group or about some words."""
    words = " ".join(asked or ())
    if not words.strip() and asked:
        raise InputError("name a rule, a group or words", hint="for example SWITCH-011, SWITCH, slice padding")
    found = rules_about(words) if asked else list(all_rules().values())
    if not found:
        found = [rule(words)]  # refuses, with what is like it
    whole_group = asked is not None and words.strip().upper() == found[0].group
    if len(found) > 1 or whole_group or not asked:
        listing(words, found, json)
    elif json:
        print_document(document(found[0]))
    else:
        print(text(found[0]))


def document(found: Rule) -> dict[str, Any]:
    """The explain/1 document of one rule; `points` is what the manual's practice lists under it."""
    return {
        "schema": "tcptune/explain/1",
        "rule": found.id,
        "title": found.title,
        "text": found.text,
        "breaks": found.breaks,
        "fix": found.fix,
        "manual": found.manual,
        "points": list(points(found.id)),
    }


def text(found: Rule) -> str:
    """The rule as a person reads it. A rule that nothing can break has an example of its effect."""
    return "\n".join(
        [
            f"{found.id}  {found.title}",
            "",
            found.text,
            *(f"  {number}. {point}" for number, point in enumerate(points(found.id), 1)),
            "",
            f"{'example:' if found.is_advice else 'breaks it:':<12}{found.breaks}",
            *([] if found.needs_no_fix else [f"{'advice:' if found.is_advice else 'fix:':<12}{found.fix}"]),
            f"{'manual:':<12}{found.manual}",
        ]
    )


def listing(asked: str, rules: list[Rule], json: bool) -> None:
    """Prints ids and titles (the explain-list/1 document)."""
    if json:
        print_document({"schema": "tcptune/explain-list/1", "asked": asked, "rules": [{"rule": r.id, "title": r.title} for r in rules]})
        return
    for r in rules:
        print(f"{r.id:<16} {r.title}")

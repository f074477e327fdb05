"""The pages of the rules are current, whole, and link to themselves."""

import re

from tcptune.model.rules import all_rules, group_of
from tcptune.model.rules.groups import GROUPS
from tcptune.reports import rule_pages


def test_the_pages_are_current():
    assert rule_pages.stale() == [], "run python -m tcptune.reports.rule_pages --update"


def test_every_rule_is_on_the_page_of_its_group_once():
    pages = rule_pages.pages()
    assert set(GROUPS) == {group_of(rule) for rule in all_rules()}
    for rule in all_rules().values():
        page = pages[f"{group_of(rule.id).lower()}.md"]
        assert len(re.findall(rf"^## {rule.id}$", page, re.M)) == 1
    assert sum(page.count("\n## ") for page in pages.values()) == len(all_rules())


def test_links_of_the_index_and_of_the_pages_lead_somewhere():
    pages = rule_pages.pages()
    assert set(re.findall(r"\]\(([a-z]+\.md)\)", pages["README.md"])) == set(pages) - {"README.md"}
    for name, page in pages.items():
        for anchor in re.findall(r"\]\(#([a-z0-9-]+)\)", page):
            assert re.search(rf"^## {anchor.upper()}$", page, re.M), (name, anchor)


def test_an_update_writes_what_differs_and_removes_what_has_no_group(tmp_path):
    assert len(rule_pages.update(tmp_path)) == len(GROUPS) + 1
    (tmp_path / "switch.md").write_text("old")
    (tmp_path / "gone.md").write_text("old")
    assert rule_pages.stale(tmp_path) == ["gone.md", "switch.md"]
    assert sorted(rule_pages.update(tmp_path)) == ["gone.md", "switch.md"]
    assert rule_pages.stale(tmp_path) == []

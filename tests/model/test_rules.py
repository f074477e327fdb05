"""The registry of rules answers ids in any writing, groups, beginnings and words, and lists what the practice says under a rule."""

import pytest

from tcptune.errors import InputError
from tcptune.model.practice import LEVERS, PROTOCOL, points
from tcptune.model.rules import all_rules, rule, rules_about


def ids(text):
    return [r.id for r in rules_about(text)]


@pytest.mark.parametrize("text", ["SWITCH-011", "switch-011", " Switch-11 ", "switch 11", "switch_11", "SWITCH11"])
def test_an_id_is_found_in_any_writing(text):
    assert ids(text) == ["SWITCH-011"]


def test_a_group_lists_its_rules_in_order():
    assert ids("switch") == [f"SWITCH-{n:03d}" for n in range(1, 37)]
    assert ids("MAP") == [f"MAP-{n:03d}" for n in range(1, 40)]


def test_a_beginning_lists_what_begins_so():
    assert ids("SWITCH-01") == [f"SWITCH-{n:03d}" for n in range(10, 20)]
    assert {r.split("-")[0] for r in ids("COLL-")} == {"COLL"}
    assert {r.split("-")[0] for r in ids("SW")} == {"SWITCH"}


def test_words_find_the_rules_that_speak_of_them():
    found = rules_about("snoop bitmap")
    assert found
    assert all("SNOOP" in f"{r.title} {r.text} {r.fix}".upper() and "BITMAP" in f"{r.title} {r.text} {r.fix}".upper() for r in found)


@pytest.mark.parametrize("text", ["SWITCH-999", "switch 37", "SWICTH-011", "no such words here", "", "(", "-1"])
def test_what_no_rule_is_about_finds_nothing(text):
    assert ids(text) == []


def test_an_unknown_id_is_refused_with_what_is_near():
    hints = {}
    for text in ("SWITCH-999", "SWICTH-011", "qqq"):
        with pytest.raises(InputError) as refusal:
            rule(text)
        hints[text] = refusal.value.hint
    assert hints["SWITCH-999"] == "SWITCH has SWITCH-001 to SWITCH-036"
    assert "SWITCH-011" in hints["SWICTH-011"]
    assert hints["qqq"].startswith("groups: ALU, ")


def test_the_practice_is_listed_under_rules_that_exist():
    assert points("TUNE-005") == PROTOCOL
    assert [line.split(": ")[0] for line in points("TUNE-007")] == list(LEVERS)
    listed = [rule_id for rule_id in all_rules() if points(rule_id)]
    assert listed == sorted(listed, key=list(all_rules()).index)
    assert {"ORACLE-010", "TUNE-003", "TUNE-004", "TUNE-005", "TUNE-007", "KERNEL-019", "SCHED-001"} == set(listed)

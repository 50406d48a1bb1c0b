"""Findings that are accepted for a time: with a reason, a day, and every mistake named at once."""

from datetime import date
from typing import Any

import pytest

from rebalance_core.audit.accepted_findings import accept, read_accepted, write_accepted
from rebalance_core.model.errors import UsageError

TODAY = date(2026, 11, 21)
RULES = ["IDLE_MEMBER", "ORPHAN_QUEUES"]
NEVER = ["COLLECTION_INCOMPLETE"]
GOOD = """
[[accepted]]
rule_id = "IDLE_MEMBER"
consumer_group = "audit-*"
reason = "a spare"
expires = 2026-11-21

[[accepted]]
rule_id = "ORPHAN_QUEUES"
topic = "T"
reason = "nobody minds"
expires = 2026-11-20
"""


def finding(rule_id: str, **where: Any) -> Any:
    names = ("consumer_group", "topic", "broker_name", "client_id", "accepted")
    return dict.fromkeys(names) | {"rule_id": rule_id} | where


def test_an_entry_holds_through_its_day_and_no_longer() -> None:
    holding, expired = read_accepted(GOOD, "f", RULES, NEVER, TODAY)
    assert [one.rule_id for one in holding] == ["IDLE_MEMBER"]
    assert [one.rule_id for one in expired] == ["ORPHAN_QUEUES"]


def test_it_covers_what_its_globs_name() -> None:
    holding, _ = read_accepted(GOOD, "f", RULES, NEVER, TODAY)
    assert (
        accept(finding("IDLE_MEMBER", consumer_group="audit-x"), holding)["accepted"] == "a spare"
    )
    assert accept(finding("IDLE_MEMBER", consumer_group="pay"), holding)["accepted"] is None
    assert accept(finding("IDLE_MEMBER"), holding)["accepted"] is None
    assert accept(finding("ORPHAN_QUEUES", topic="T"), holding)["accepted"] is None


def test_every_mistake_is_named_with_its_line() -> None:
    text = """[[accepted]]
rule_id = "IDLE_MEMBERS"
reason = " "
expires = "soon"

[[accepted]]
rule_id = "COLLECTION_INCOMPLETE"
group = "x"
reason = "r"
expires = 2026-12-01

[other]
"""
    with pytest.raises(UsageError) as caught:
        read_accepted(text, "known.toml", RULES, NEVER, TODAY)
    lines = str(caught.value).splitlines()
    assert lines[0].startswith("known.toml: unknown key other")
    assert any(
        line.startswith("known.toml:1: rule_id") and "IDLE_MEMBER?" in line for line in lines
    )
    assert sum(line.startswith("known.toml:1: ") for line in lines) == 3
    assert sum(line.startswith("known.toml:6: ") for line in lines) == 2


def test_what_the_first_run_writes_is_read_again_and_covers_it() -> None:
    found = [
        finding("IDLE_MEMBER", consumer_group='we"ird*[1]\u20ac'),
        finding("IDLE_MEMBER", consumer_group="g", topic="T"),
        finding("IDLE_MEMBER", consumer_group="g", topic="U"),
        finding("ORPHAN_QUEUES", broker_name="b", client_id="c\\d"),
    ]
    text = write_accepted(found, TODAY)
    assert text.count("[[accepted]]") == 3
    holding, expired = read_accepted(text, "f", RULES, NEVER, TODAY)
    assert expired == ()
    assert all(accept(one, holding)["accepted"] for one in found)
    assert accept(finding("IDLE_MEMBER", consumer_group="other"), holding)["accepted"] is None

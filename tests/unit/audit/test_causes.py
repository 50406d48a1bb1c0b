"""Which finding follows from which: by the rules, the subject, the evidence and the time."""

from typing import Any

import pytest

from rebalance_core.audit.causes import LINKS, with_causes
from rebalance_core.audit.counted_findings import count_causes
from rebalance_core.audit.registry import MEANINGS

TWICE = {"reason": "a client id appears twice in the member list"}
PART = {"reason": "a counted member does not subscribe to the topic"}


def finding(rule_id: str, evidence: dict[str, str] | None = None, **more: Any) -> Any:
    row = {
        "cluster": "c",
        "rule_id": rule_id,
        "severity": "ERROR",
        "consumer_group": "g",
        "topic": None,
        "client_id": None,
        "first_ms": 100,
        "last_ms": None,
        "summary": "",
        "evidence": evidence or {},
        "accepted": None,
    } | more
    row["fingerprint"] = f"{row['rule_id']} {row['consumer_group']} {row['topic']}"
    return row


TWINS = finding("DUPLICATE_CLIENT_ID", client_id="ip@1")
LOST = finding("ORPHAN_QUEUES", TWICE, topic="t")
SPLIT = finding("INCONSISTENT_SUBSCRIPTION")
LEFT = finding("UNSUBSCRIBED_SHARE", topic="t", client_id="ip@2")


def cause_of(row: Any, *others: Any) -> str | None:
    """What a finding is caused by, in any order of the rows."""
    found = [
        next(r["caused_by"] for r in with_causes(rows) if r["fingerprint"] == row["fingerprint"])
        for rows in ([row, *others], [*reversed(others), row])
    ]
    assert found[0] == found[1]
    one: str | None = found[0]
    return one


@pytest.mark.parametrize(
    ("row", "cause"),
    [
        (LOST, TWINS),
        (finding("DOUBLE_OWNER", {"clients": "ip@1 (2 processes)"}, topic="t"), TWINS),
        (finding("ORPHAN_QUEUES", PART, topic="t"), SPLIT),
        (finding("ORPHAN_QUEUES", PART, topic="t"), LEFT),
        (
            finding("REBALANCE_STORM", {"causes": "members subscribe to different topics, x"}),
            SPLIT,
        ),
        (finding("REBALANCE_STORM", {"causes": "ip@2 unsubscribed t, which others read"}), LEFT),
        (
            finding("DOUBLE_OWNER", {"clients": "ip@1, ip@2"}, topic="t"),
            finding("MIXED_STRATEGIES"),
        ),
        (
            finding("QUEUES_NOT_READ", {"queues": "a:0-1"}, topic="t"),
            finding("OWNERSHIP_DIFFERS_STALE_VIEW", {"unheld": "a:0-1"}, topic="t"),
        ),
    ],
)
def test_what_the_evidence_names_is_the_cause(row: dict[str, Any], cause: dict[str, Any]) -> None:
    assert cause_of(row, cause) == cause["fingerprint"]
    assert cause_of(cause, row) is None


@pytest.mark.parametrize(
    ("row", "other"),
    [
        (LOST | {"consumer_group": "h"}, TWINS),
        (LOST | {"cluster": "d"}, TWINS),
        (finding("ORPHAN_QUEUES", {"reason": "unknown"}, topic="t"), TWINS),
        (finding("ORPHAN_QUEUES", {}, topic="t"), TWINS),
        (LOST, TWINS | {"last_ms": 99}),
        (LOST | {"last_ms": 99, "first_ms": 1}, TWINS),
        (LOST, TWINS | {"severity": "INFO"}),
        (finding("ORPHAN_QUEUES", PART, topic="u"), LEFT),
        (finding("DOUBLE_OWNER", {"clients": "ip@1 (2 processes), ip@3"}), TWINS),
        (finding("DOUBLE_OWNER", {"clients": "ip@11 (2 processes)"}), TWINS),
        (finding("REBALANCE_STORM", {"causes": "ip@3 unsubscribed t"}), LEFT),
        (finding("QUEUES_NOT_READ", {"queues": "a:0"}), finding("OWNERSHIP_DIFFERS_STALE_VIEW")),
    ],
)
def test_what_it_does_not_name_is_not(row: dict[str, Any], other: dict[str, Any]) -> None:
    assert cause_of(row, other) is None


def test_of_several_causes_that_fit_none_is_named() -> None:
    assert cause_of(finding("ORPHAN_QUEUES", PART, topic="t"), SPLIT, LEFT) is None
    both = {"causes": "members subscribe to different topics, ip@2 unsubscribed t"}
    assert cause_of(finding("REBALANCE_STORM", both), SPLIT, LEFT) is None


def test_how_a_topic_is_set_up_is_one_thing_for_all_its_groups() -> None:
    stated = {"queues": "a:2-3", "numbers": "a read 2 / write 4"}
    rows = [
        finding("READ_FEWER_THAN_WRITTEN", stated, consumer_group=name, topic="t")
        for name in ("z", "b", "a")
    ]
    rows[2]["accepted"] = "known"
    rows += [finding("READ_FEWER_THAN_WRITTEN", {**stated, "queues": "a:3"}, topic="t")]
    causes = {row["consumer_group"]: row["caused_by"] for row in with_causes(rows)}
    assert causes == {
        "b": None,
        "z": "READ_FEWER_THAN_WRITTEN b t",
        "a": "READ_FEWER_THAN_WRITTEN b t",
        "g": None,
    }
    assert count_causes(with_causes(rows)) == {"ERROR": 2}


def test_causes_are_counted_by_the_gravest_that_follows() -> None:
    suspended = finding("MEMBER_SUSPENDED", severity="WARNING")
    lost = finding("ORPHAN_QUEUES", {"reason": "a suspended member does not take its share"})
    alone = finding("IDLE_MEMBER", severity="WARNING")
    assert count_causes(with_causes([suspended, lost, alone])) == {"ERROR": 1, "WARNING": 1}
    accepted = suspended | {"accepted": "on purpose"}
    assert count_causes(with_causes([accepted, lost])) == {"ERROR": 1}


def test_the_links_name_rules_that_there_are() -> None:
    assert {rule for link in LINKS for rule in (link.cause, link.consequence)} <= MEANINGS.keys()


def test_the_reasons_of_links_are_those_that_orphans_give() -> None:
    """A reason that is worded anew there would silently link nothing."""
    from inspect import getsource

    from rebalance_core.audit import orphans
    from rebalance_core.audit.rules import rebalance_storm

    source = getsource(orphans.reason)
    reasons = [TWICE, PART, {"reason": "members use different strategies"},
               {"reason": "the allocation failed (FROZEN)"},
               {"reason": "a suspended member does not take its share"}]  # fmt: skip
    for one in reasons:
        assert one["reason"] in source
        lost = finding("ORPHAN_QUEUES", one)
        links = [link for link in LINKS if link.consequence == lost["rule_id"]]
        assert any(link.condition(SPLIT, lost) for link in links), one
    storm = getsource(rebalance_storm._causes)
    assert "members subscribe to different topics" in storm
    assert "{member.client_id} unsubscribed {member.topic}" in storm

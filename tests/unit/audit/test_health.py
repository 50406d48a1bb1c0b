"""One word on a group: what its findings, its verdict and its progress make of it."""

from typing import Any

import pytest

from rebalance_core.audit.findings import run_rules
from rebalance_core.audit.health import _BY_RULES, health_of
from rebalance_core.audit.rules import rules_by_id
from rebalance_core.model.verdicts import HEALTH, Health, Progress, Verdict
from tests.unit.audit.snapshots import commit, end, join, leave, snapshot_of, topic


def finding(rule_id: str, severity: str = "WARNING") -> Any:
    return {"rule_id": rule_id, "severity": severity, "evidence": {}}


@pytest.mark.parametrize(
    ("verdict", "progress", "rules", "health"),
    [
        ("EQUAL", "MOVES", (), "OK"),
        ("SHARED", "IDLE", (), "IDLE"),
        ("DIFFERS", "MOVES", ("OWNERSHIP_DIFFERS_STALE_VIEW",), "OK"),
        ("EQUAL", "MOVES", ("FALLS_BEHIND", "ORPHAN_QUEUES", "DOUBLE_OWNER"), "UNREAD"),
        ("EQUAL", "MOVES", ("FALLS_BEHIND", "DOUBLE_OWNER"), "TWICE"),
        ("EQUAL", "MOVES", ("FALLS_BEHIND", "GROUP_DISABLED"), "STALLED"),
        ("EQUAL", "FALLS_BEHIND", (), "BEHIND"),
        ("UNKNOWN", "STANDS_STILL", (), "STALLED"),
        ("UNKNOWN", "MOVES", (), "UNKNOWN"),
        ("EQUAL", "UNKNOWN", (), "UNKNOWN"),
        ("OFFLINE", "STANDS_STILL", ("OFFLINE_WITH_LAG",), "OFFLINE"),
        ("OFFLINE", "STANDS_STILL", ("RUNNING_NOT_LISTED",), "UNKNOWN"),
    ],
)
def test_the_gravest_word_counts(
    verdict: Verdict, progress: Progress, rules: tuple[str, ...], health: Health
) -> None:
    assert health_of(verdict, progress, map(finding, rules)) == health


def test_what_is_only_possible_does_not_count() -> None:
    assert health_of("EQUAL", "MOVES", [finding("ORPHAN_QUEUES", "INFO")]) == "OK"


@pytest.mark.parametrize("progress", ["MOVES", "IDLE"])
def test_what_only_missing_evidence_makes_info_leaves_it_unknown(progress: Progress) -> None:
    unsure = {"evidence": {"not_covered": "NOT_COVERED"}}
    assert health_of("EQUAL", progress, [finding("ORPHAN_QUEUES", "INFO") | unsure]) == "UNKNOWN"
    assert health_of("EQUAL", progress, [finding("IDLE_MEMBER", "INFO") | unsure]) != "UNKNOWN"


@pytest.mark.parametrize(
    ("evidence", "health"),
    [
        ({"behind": "0"}, "UNREAD"),
        ({"behind": "7", "planned": "true"}, "UNREAD"),
        ({"behind": "unknown", "planned": "true"}, "UNKNOWN"),
        ({"behind": "0", "planned": "true"}, "OK"),
    ],
)
def test_a_broker_that_was_taken_out_is_ok_only_if_nothing_waits_there(
    evidence: dict[str, str], health: Health
) -> None:
    down = finding("BROKER_DOWN", "INFO") | {"evidence": evidence}
    assert health_of("EQUAL", "MOVES", [down]) == health
    worst = "UNREAD" if health == "UNREAD" else "STALLED"
    assert health_of("EQUAL", "MOVES", [down, finding("COMMIT_STANDS_STILL")]) == worst


def test_every_rule_that_counts_exists() -> None:
    named = set[str]().union(*(rules for _, rules in _BY_RULES))
    assert named <= rules_by_id().keys() | {"QUEUES_NOT_READ"}
    assert {word for word, _ in _BY_RULES} < HEALTH.keys()


def test_a_group_s_row_has_its_health() -> None:
    def health(*more: Any) -> str:
        commits, ends = [commit(0, 5, at=100)], [end(0, 5, at=100)]
        group = snapshot_of(topic(), join("x"), *more, commits=commits, ends=ends)
        (row,) = run_rules(group)["group_verdicts"]
        return row["health"]

    assert health() == "UNKNOWN", "no dump shows who holds its queues"
    assert health(leave("x", 200)) == "OFFLINE"
    # one share is read twice, the other by no member
    assert health(join("x", at=100, channel="other")) == "UNREAD"

"""Audit a group as rows: a rule or comparison that fails costs only the answer of its group."""

import dataclasses
from collections.abc import Iterable
from typing import Any

import pytest

from rebalance_core.audit import findings as rule_runs
from rebalance_core.audit.findings import run_rules
from rebalance_core.audit.group_snapshot import Finding, GroupSnapshot
from rebalance_core.audit.incomplete_groups import missing_reason
from rebalance_core.audit.rules import RULES
from rebalance_core.model.verdicts import REASONS
from tests.unit.audit.group_rows import DUMPED_MS, A, B, member, snapshot, status
from tests.unit.audit.snapshots import join, leave, of_unknown_strategy, snapshot_of, topic


def fails(_case: GroupSnapshot) -> list[Finding]:
    raise KeyError(A)


@pytest.fixture
def group() -> GroupSnapshot:
    """A healthy group but for its two strategies."""
    mixed = [member(A, 0), member(B, 1_000_000) | {"strategy": "AVG_BY_CIRCLE"}]
    return snapshot(*status(A, DUMPED_MS, 0, 1), *status(B, DUMPED_MS, 2, 3), memberships=mixed)


def rules_of(rows: Iterable[Any]) -> set[object]:
    return {row["rule_id"] for row in rows}


def test_a_comparison_that_fails_is_a_finding_and_the_rules_go_on(
    group: GroupSnapshot, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rule_runs, "compare", fails)
    made = run_rules(group)
    (verdict,) = made["group_verdicts"]
    assert (verdict["verdict"], verdict["reason"]) == ("UNKNOWN", "COMPARISON_FAILED")
    assert verdict["reason"] in REASONS
    assert missing_reason(verdict) is None  # nothing is missing of the collection
    (failed,) = (row for row in made["findings"] if row["rule_id"] == "RULE_FAILED")
    assert failed["summary"] == f"The comparison failed on g: KeyError: '{A}'"
    assert failed["severity"] == "ERROR"
    assert failed["evidence"]["where"].startswith("fails:")
    assert "MIXED_STRATEGIES" in rules_of(made["findings"])


def test_findings_of_the_comparison_that_fail_are_caught_too(
    group: GroupSnapshot, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rule_runs, "comparison_findings", lambda group, result: fails(group))
    made = run_rules(group)
    assert made["group_verdicts"][0]["reason"] == "COMPARISON_FAILED"
    assert "RULE_FAILED" in rules_of(made["findings"])


def test_a_rule_that_fails_is_a_finding_and_the_others_go_on(
    group: GroupSnapshot, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = [
        dataclasses.replace(rule, find=fails) if rule.rule_id == "IDLE_MEMBER" else rule
        for rule in RULES
    ]
    monkeypatch.setattr(rule_runs, "RULES", broken)
    made = run_rules(group)
    assert made["group_verdicts"][0]["verdict"] == "EQUAL"
    (failed,) = (row for row in made["findings"] if row["rule_id"] == "RULE_FAILED")
    assert failed["summary"].startswith("IDLE_MEMBER failed on g")
    assert "MIXED_STRATEGIES" in rules_of(made["findings"])


def test_who_should_own_what_is_not_judged_where_the_strategy_is_not_known() -> None:
    """Of a twin id, an idle member and queues without an owner only the twin is a fact."""
    found = snapshot_of(
        topic(read=2),
        join("x"),
        join("x", channel="other"),
        join("y"),
        join("z"),
        join("w"),
        leave("w", at=60),
    )
    by_owners = {rule.rule_id for rule in RULES if rule.by_owners} | {"DOUBLE_OWNER"}
    known = rules_of(run_rules(found)["findings"])
    assert known & by_owners >= {"ORPHAN_QUEUES", "IDLE_MEMBER", "DOUBLE_OWNER"}
    unknown = rules_of(run_rules(of_unknown_strategy(found))["findings"])
    assert unknown - {"INGEST_STRATEGY_UNKNOWN", "OWNERSHIP_UNKNOWN"} <= known - by_owners
    assert "DUPLICATE_CLIENT_ID" in unknown

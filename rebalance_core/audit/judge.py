"""The cluster and each group judged, as rows of ``findings`` and of ``group_verdicts``."""

from __future__ import annotations

import traceback
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from rebalance_core.audit.accepted import Acceptance, accept
from rebalance_core.audit.case import AuditRun, GroupCase
from rebalance_core.audit.comparison.compare import ComparisonResult, compare
from rebalance_core.audit.comparison.findings import COMPARISON_RULES, comparison_findings
from rebalance_core.audit.completeness import audit_run_of
from rebalance_core.audit.evidence.configurations.topic_configs import is_system_group
from rebalance_core.audit.evidence.strategy import strategy_is_known
from rebalance_core.audit.finding import Finding, Rule
from rebalance_core.audit.known.matching import of_cluster, of_group, of_java_clients, with_known
from rebalance_core.audit.missing_files import (
    COLLECTION_INCOMPLETE,
    UNASKED,
    incomplete_groups,
)
from rebalance_core.audit.rules import RULES
from rebalance_core.audit.rules.cluster import (
    BROKER_FLAPS,
    NAME_SERVERS_DIFFER,
    SLAVE_NOT_READABLE,
    broker_flaps,
    down_brokers,
    master_outages,
    name_servers_differ,
    slaves_not_readable,
)
from rebalance_core.audit.rules.starved_timers import RULE as STARVED_TIMERS
from rebalance_core.audit.rules.starved_timers import starved_timers
from rebalance_core.ingest.rows import FINDING_IDS
from rebalance_core.model.events import BROKER_EVENTS
from rebalance_core.model.statuses import ERROR
from rebalance_core.model.verdicts import (
    COMPARISON_FAILED,
    LOG_ENDED,
    NO_DUMP,
    STALE_DUMP,
    SYSTEM,
    UNKNOWN,
)

RULE_FAILED = Rule(
    "RULE_FAILED",
    ERROR,
    "A rule, or the comparison with live ownership, failed on a group: a bug of the audit, or rows "
    "that nobody thought of. The other rules went on; what this one would have found is unknown.",
    "the rule itself",
    "Report it with the evidence; accept it for the group until it is mended.",
)

ALL_RULES: tuple[Rule, ...] = (
    COLLECTION_INCOMPLETE,
    *COMPARISON_RULES.values(),
    *RULES,
    NAME_SERVERS_DIFFER,
    BROKER_FLAPS,
    STARVED_TIMERS,
    SLAVE_NOT_READABLE,
    RULE_FAILED,
)
"""Every rule of the audit; those of `ingest` are in docs/ingest.md."""

MEANINGS = FINDING_IDS | {rule.rule_id: rule.meaning for rule in ALL_RULES}
"""What each finding means, those of `ingest` too."""

Row = dict[str, Any]
Findings = list[tuple[Rule, Finding]]


def judge(case: GroupCase, accepted: Iterable[Acceptance] = ()) -> dict[str, list[Row]]:
    """Rows of ``findings`` (ingest's too) and ``group_verdicts`` of one group, without cluster.

    Of a system group ingest's findings alone.
    """
    result, findings = _compared(case)
    known = strategy_is_known(case)
    for rule in RULES if not is_system_group(case.consumer_group) else ():
        findings += _by_rule(rule, case) if known or not rule.by_owners else []
    rows = [finding_row(rule, one, case.consumer_group) for rule, one in findings]
    rows = with_known(rows, of_group(case)) if rows else rows
    rows += [dict(row) for row in case.rows("findings")]
    return {
        "findings": [accept(row, accepted) for row in rows],
        "group_verdicts": [_verdict_row(case, result)],
    }


def judge_cluster(
    facts: Iterable[Mapping[str, Any]],
    dumps: Iterable[Mapping[str, Any]],
    broker_events: Iterable[Mapping[str, Any]],
    stale_hours: float,
    not_before_ms: int | None = None,
) -> tuple[AuditRun, list[Row]]:
    """The audit run's view of the cluster, and the findings on the cluster as a whole.

    Args:
        facts: observed facts of `collection.CLUSTER_KINDS`.
        dumps: DUMP facts, or the newest by command and broker.
        broker_events: BROKER_UP and BROKER_DOWN, MASTER_UP and MASTER_DOWN of cluster_events.
        stale_hours: what is older at the end says nothing about the present.
        not_before_ms: a collection that ends before is old as a whole.
    """
    facts, given = list(facts), list(broker_events)
    events = [row for row in given if row["event_type"] in BROKER_EVENTS]
    run, missing = audit_run_of(facts, dumps, down_brokers(events), stale_hours, not_before_ms)
    rows = [finding_row(COLLECTION_INCOMPLETE, one) for one in missing]
    rows += [finding_row(NAME_SERVERS_DIFFER, one) for one in name_servers_differ(facts)]
    rows += [finding_row(BROKER_FLAPS, one) for one in broker_flaps(events, facts)]
    starved = [finding_row(STARVED_TIMERS, one) for one in starved_timers(facts, given)]
    masters = master_outages(given)
    rows += [finding_row(SLAVE_NOT_READABLE, one) for one in slaves_not_readable(facts, masters)]
    run = replace(run, masters=masters)
    known = with_known(rows, of_cluster(run)) + with_known(starved, of_java_clients(run))
    return run, known


def missing_of_groups(unknown: Mapping[str, tuple[int, list[str]]], compared: int) -> list[Row]:
    """Findings for groups of which something is missing that others have.

    Args:
        unknown: by reason (`missing_reason`) how many groups, and the first names.
        compared: groups that were compared; with none the whole kind of dump is missing, which is
            a finding already.
    """
    return [
        finding_row(COLLECTION_INCOMPLETE, incomplete_groups(reason, *unknown[reason]))
        for reason in (NO_DUMP, STALE_DUMP, LOG_ENDED, UNASKED)
        if reason in unknown and (compared or reason in (LOG_ENDED, UNASKED))
    ]


def missing_reason(verdict: Mapping[str, Any]) -> str | None:
    """Under which reason of `missing_of_groups` a row of ``group_verdicts`` counts; None: none."""
    if verdict["verdict"] == UNKNOWN and verdict["reason"] in (NO_DUMP, STALE_DUMP, LOG_ENDED):
        return str(verdict["reason"])
    return UNASKED if verdict["unasked"] else None


def finding_row(rule: Rule, finding: Finding, consumer_group: str | None = None) -> Row:
    """A row of ``findings`` without the cluster."""
    return {
        "rule_id": rule.rule_id,
        "severity": finding.severity or rule.severity,
        "consumer_group": consumer_group,
        "topic": finding.topic,
        "broker_name": finding.broker_name,
        "queue_id": finding.queue_id,
        "client_id": finding.client_id,
        "first_ms": finding.first_ms,
        "last_ms": finding.last_ms,
        "summary": finding.summary,
        "evidence": {name: str(value) for name, value in finding.evidence.items()},
        "remedy": finding.remedy or rule.remedy,
        "accepted": None,
    }


def _compared(case: GroupCase) -> tuple[ComparisonResult, Findings]:
    try:
        result = compare(case)
        known = result.reason == SYSTEM
        return result, [] if known else list(comparison_findings(case, result))
    except Exception as error:  # one group must not cost the audit of 10,000 groups
        return ComparisonResult(UNKNOWN, COMPARISON_FAILED), [
            _failed("The comparison", case, error)
        ]


def _by_rule(rule: Rule, case: GroupCase) -> Findings:
    if rule.find is None:
        return []
    try:
        return [(rule, one) for one in rule.find(case)]
    except Exception as error:  # as above
        return [_failed(rule.rule_id, case, error)]


def _failed(what: str, case: GroupCase, error: Exception) -> tuple[Rule, Finding]:
    where = traceback.extract_tb(error.__traceback__)[-1]
    return RULE_FAILED, Finding(
        f"{what} failed on {case.consumer_group}: {type(error).__name__}: {error}",
        {"failed": what, "where": f"{where.name}:{where.lineno}"},
    )


def _verdict_row(case: GroupCase, result: ComparisonResult) -> Row:
    return {
        "consumer_group": case.consumer_group,
        "verdict": result.verdict,
        "reason": result.reason,
        "looks": result.observations,
        "differences": len({one.queue for one in result.differences}),
        "members": len(case.members),
        "dumped_ms": result.dumped_ms,
        "unasked": list(result.unasked),
    }

"""What the page of an audit shows, from the tables as they were written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pyspark.sql import DataFrame

from rebalance_core.audit.judge import ALL_RULES
from rebalance_core.audit.redact import Redaction
from rebalance_core.ingest.rows import FINDING_IDS
from rebalance_core.model.group_settings import BROADCASTING
from rebalance_core.model.ordering import sort_client_ids
from rebalance_core.model.queue import MessageQueue, queue_sort_key
from rebalance_core.model.verdicts import DIFFERS, EQUAL, OFFLINE, UNKNOWN, UNSTABLE
from rebalance_core.report.audit_report import (
    AuditReport,
    Cause,
    GroupBalance,
    GroupCounts,
    GroupTimeline,
    Previous,
    QueueHistory,
    ShownFinding,
    Stretch,
)
from rebalance_core.spark.audit.outcome import AuditOutcome
from rebalance_core.spark.audit.queries import of_groups, worst_first
from rebalance_core.version import LIBRARY_VERSION

FINDINGS_ON_PAGE = 500
ROWS_OF_A_TIMELINE = 50_000

Row = Mapping[str, Any]


def audit_report(
    outcome: AuditOutcome,
    tables: Mapping[str, DataFrame],
    worst: Sequence[tuple[str, str]],
    previous: Previous | None,
    notes: Sequence[str],
    finished_ms: int,
) -> AuditReport:
    """What the page shows.

    Args:
        outcome: the verdict and the counts.
        tables: findings and the ledger, as written.
        worst: (cluster, group) of the groups that get a timeline.
        previous: what changed since the previous audit.
        notes: what the reader has to know.
        finished_ms: when the audit ended, epoch ms UTC.
    """
    shown = shown_findings(tables["findings"], FINDINGS_ON_PAGE)
    on_page: dict[str, int] = {}
    for one in shown:
        on_page[one.rule_id] = on_page.get(one.rule_id, 0) + 1
    totals: dict[str, int] = {}
    severities: dict[str, int] = {}
    for count in outcome.counts:
        totals[count.rule_id] = totals.get(count.rule_id, 0) + count.findings
        if not count.accepted:
            severities[count.severity] = severities.get(count.severity, 0) + count.findings
    more = {rule: total - on_page.get(rule, 0) for rule, total in totals.items()}
    rows = {
        name: _by_group(of_groups(tables[name], worst, ROWS_OF_A_TIMELINE))
        for name in ("ownership", "epochs", "consumer_load", "group_metrics", "memberships")
    }
    return AuditReport(
        cluster=outcome.cluster,
        verdict=outcome.verdict,
        fail_on=outcome.fail_on,
        from_ms=outcome.start_ms,
        to_ms=outcome.end_ms,
        generated_ms=finished_ms,
        library_version=LIBRARY_VERSION,
        counts=severities,
        groups=GroupCounts(
            total=sum(outcome.groups.values()),
            equal=outcome.groups.get(EQUAL, 0),
            differing=outcome.groups.get(DIFFERS, 0),
            unstable=outcome.groups.get(UNSTABLE, 0),
            unknown=outcome.groups.get(UNKNOWN, 0),
            offline=outcome.groups.get(OFFLINE, 0),
        ),
        findings=tuple(shown),
        rules=FINDING_IDS | {rule.rule_id: rule.meaning for rule in ALL_RULES},
        more={rule: count for rule, count in sorted(more.items()) if count > 0},
        previous=previous,
        timelines=tuple(
            _timeline(group, rows["ownership"].get(group, []), rows["epochs"].get(group, []))
            for _, group in worst
            if not _broadcasting(rows["memberships"].get(group, []))
        ),
        balance=tuple(
            _balance(
                group, rows["consumer_load"].get(group, []), rows["group_metrics"].get(group, [])
            )
            for _, group in worst
        ),
        notes=tuple(notes),
    )


def shown_findings(
    findings: DataFrame, limit: int, redaction: Redaction | None = None
) -> list[ShownFinding]:
    """The worst findings, open ones first."""
    names = (
        "rule_id",
        "consumer_group",
        "topic",
        "broker_name",
        "queue_id",
        "client_id",
        "summary",
    )
    ordered = findings.orderBy(*worst_first(), *names).limit(limit)
    rows = [row.asDict(recursive=True) for row in ordered.collect()]
    return [_shown(redaction.finding(row) if redaction else row) for row in rows]


def _shown(row: Row) -> ShownFinding:
    evidence = dict(sorted((row["evidence"] or {}).items()))
    return ShownFinding(**{k: v for k, v in row.items() if k not in ("cluster", "evidence")},
                        evidence=evidence)  # fmt: skip


def _broadcasting(memberships: Sequence[Row]) -> bool:
    """True if every member reads every queue: nothing to draw."""
    return any(row["message_model"] == BROADCASTING for row in memberships)


def _by_group(rows: Sequence[Row]) -> dict[str, list[Row]]:
    groups: dict[str, list[Row]] = {}
    for row in rows:
        groups.setdefault(row["consumer_group"], []).append(row)
    return groups


def _timeline(group: str, ownership: Sequence[Row], epochs: Sequence[Row]) -> GroupTimeline:
    queues: dict[MessageQueue, list[Stretch]] = {}
    for row in sorted(ownership, key=lambda row: row["from_ms"]):
        queue = MessageQueue(row["topic"], row["broker_name"], row["queue_id"])
        stretch = Stretch(row["from_ms"], row["to_ms"], row["client_id"], row["holders"])
        queues.setdefault(queue, []).append(stretch)
    causes = [Cause(row["from_ms"], ", ".join(row["causes"])) for row in epochs]
    return GroupTimeline(
        group,
        tuple(
            QueueHistory(*queue, tuple(queues[queue]))
            for queue in sorted(queues, key=queue_sort_key)
        ),
        tuple(sorted(causes, key=lambda cause: cause.time_ms)),
    )


def _balance(group: str, loads: Sequence[Row], metrics: Sequence[Row]) -> GroupBalance:
    now = {row["client_id"]: row["queues"] for row in loads if row["to_ms"] is None}
    clients = sort_client_ids(now)
    whole = sorted((row for row in metrics if row["topic"] is None), key=lambda row: row["epoch"])
    last: Row = whole[-1] if whole else {"peak_ratio": None, "idle_members": 0}
    return GroupBalance(
        group,
        tuple(clients),
        tuple(now[client] for client in clients),
        tuple(row["moved"] for row in whole),
        last["peak_ratio"],
        last["idle_members"],
    )

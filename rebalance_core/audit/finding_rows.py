"""Converts findings to rows of ``findings``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rebalance_core.audit.group_snapshot import Finding, Rule

if TYPE_CHECKING:
    from rebalance_core.contracts.rows import FindingsBegun, FindingsRow


def finding_row(rule: Rule, finding: Finding, consumer_group: str | None = None) -> FindingsBegun:
    """Return a row of ``findings`` without the cluster."""
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


def of_cluster_row(cluster: str, row: FindingsBegun) -> FindingsRow:
    """Return the row with its cluster; fingerprint and cause are added once all findings exist."""
    return {**row, "cluster": cluster, "fingerprint": None, "caused_by": None}

"""Every cluster judged as a whole, from the few rows that concern it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from rebalance_core.audit.accepted import Acceptance, accept
from rebalance_core.audit.case import AuditRun
from rebalance_core.audit.evidence.formatting import LISTED
from rebalance_core.audit.judge import judge_cluster, missing_of_groups, missing_reason
from rebalance_core.audit.missing_files import COLLECTION_INCOMPLETE
from rebalance_core.audit.redact import Redaction

Row = dict[str, Any]

BROKER_EVENT_COLUMNS = ("cluster", "event_ms", "sequence", "event_type", "broker_name", "detail")


@dataclass(frozen=True)
class ClusterRows:
    """What is to be known of one cluster; grows with brokers, not with groups.

    Attributes:
        facts: observed facts of the kinds asked for; what the events span is a COLLECTED one.
        dumps: the newest dump by command and broker.
        broker_events: BROKER_UP and BROKER_DOWN, MASTER_UP and MASTER_DOWN.
    """

    facts: list[Row] = field(default_factory=list)
    dumps: list[Row] = field(default_factory=list)
    broker_events: list[Row] = field(default_factory=list)


def cluster_rows(
    spans: Iterable[Row], facts: Iterable[Row], dumps: Iterable[Row], broker_events: Iterable[Row]
) -> dict[str, ClusterRows]:
    """The rows by cluster.

    Args:
        spans: cluster, and first_ms and last_ms of its events.
        facts: observed facts of `completeness.CLUSTER_KINDS`.
        dumps: cluster, broker_name, command, first_ms and last_ms of the newest dumps.
        broker_events: `BROKER_EVENT_COLUMNS` of clusters that have a span.
    """
    clusters = {
        row["cluster"]: ClusterRows([row | {"kind": "COLLECTED", "broker_name": None}])
        for row in spans
    }
    for row in facts:
        clusters.setdefault(row["cluster"], ClusterRows()).facts.append(row)
    for row in dumps:
        dump = row | {"details": {"command": row["command"]}}
        clusters.setdefault(row["cluster"], ClusterRows()).dumps.append(dump)
    for row in broker_events:
        clusters[row["cluster"]].broker_events.append(row)
    return clusters


@dataclass(frozen=True)
class JudgedClusters:
    """What is known and found of the clusters as such.

    Attributes:
        runs: by cluster, what the judge of its groups has to know.
        findings: on clusters.
        brokers: names that no redaction takes for a client's.
        incomplete: clusters of which something was not collected.
    """

    runs: Mapping[str, AuditRun]
    findings: list[Row]
    brokers: frozenset[str]
    incomplete: frozenset[str] = frozenset()

    def all_findings(
        self,
        of_ingest: Iterable[Row],
        unknown: Mapping[str, tuple[list[Row], int]],
        accepted: tuple[Acceptance, ...],
        redact_salt: str | None,
    ) -> list[Row]:
        """Every finding that is none on a group, accepted and redacted.

        Args:
            of_ingest: what `ingest` found beside groups.
            unknown: by cluster its groups with something missing, and how many were compared. A row
                has verdict, reason, unasked, groups (how many) and names, the first of them.
            accepted: acceptances that hold.
            redact_salt: of the names for client ids; None: they are shown.
        """
        rows = [*self.findings, *of_ingest]
        for cluster, (missing, compared) in unknown.items():
            found = missing_of_groups(_by_reason(missing), compared)
            rows += [{"cluster": cluster} | row for row in found]
        rows = [accept(row, accepted) for row in rows]
        if redact_salt is None:
            return rows
        return list(map(Redaction(redact_salt, brokers=self.brokers).finding, rows))


def judge_clusters(
    clusters: Mapping[str, ClusterRows], stale_hours: float, not_before_ms: int | None
) -> JudgedClusters:
    """Judge each cluster; arguments as of `judge_cluster`."""
    runs: dict[str, AuditRun] = {}
    findings: list[Row] = []
    brokers: set[str | None] = set()
    for cluster, known in clusters.items():
        runs[cluster], found = judge_cluster(
            known.facts, known.dumps, known.broker_events, stale_hours, not_before_ms
        )
        brokers |= {row["broker_name"] for row in (*known.facts, *known.broker_events)}
        findings += [{"cluster": cluster} | row for row in found]
    incomplete = frozenset(
        row["cluster"] for row in findings if row["rule_id"] == COLLECTION_INCOMPLETE.rule_id
    )
    names = frozenset(name for name in brokers if name is not None)
    return JudgedClusters(runs, findings, names, incomplete)


def _by_reason(unknown: Iterable[Row]) -> dict[str, tuple[int, list[str]]]:
    """How many groups something is missing of, and the first names, by `missing_reason`."""
    by_reason: dict[str, tuple[int, list[str]]] = {}
    for row in unknown:
        reason = missing_reason(row)
        if reason is not None:
            groups, names = by_reason.get(reason, (0, []))
            by_reason[reason] = (groups + row["groups"], sorted([*names, *row["names"]])[:LISTED])
    return by_reason

"""Judges the cluster as a whole: missing files, and the rules about the cluster."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rebalance_core.audit.accepted_findings import Acceptance, accept
from rebalance_core.audit.cluster_snapshot import ClusterRows, cluster_snapshot
from rebalance_core.audit.completeness import (
    COLLECTION_INCOMPLETE,
    in_one_line,
    unsure_findings,
)
from rebalance_core.audit.confidence import borne_out_in_cluster
from rebalance_core.audit.finding_rows import finding_row, of_cluster_row
from rebalance_core.audit.group_snapshot import AuditRun, ClusterSnapshot, facts_by_kind, grouped
from rebalance_core.audit.incomplete_groups import MissingGroups, by_reason, missing_of_groups
from rebalance_core.audit.known_issues import of_cluster, of_java_clients, with_known
from rebalance_core.audit.night import NIGHT, NightBegin, within_night
from rebalance_core.audit.redact import Redaction
from rebalance_core.audit.rules import CLUSTER_RULES
from rebalance_core.audit.rules.brokers_down import DOWN, find_down
from rebalance_core.audit.rules.starved_timers import STARVED_TIMERS
from rebalance_core.model import verdicts

if TYPE_CHECKING:
    from rebalance_core.contracts.rows import FindingsBegun, FindingsRow


def run_cluster_rules(group: ClusterSnapshot) -> list[FindingsBegun]:
    """Return the findings about a cluster as a whole, as rows without the cluster."""
    rows: list[FindingsBegun] = []
    for rule in CLUSTER_RULES:
        findings = rule.find_in_cluster(group) if rule.find_in_cluster else ()
        of_rule = [finding_row(rule, finding) for finding in borne_out_in_cluster(rule, findings)]
        whom = of_java_clients(group.run) if rule is STARVED_TIMERS else of_cluster(group.run)
        rows += with_known(of_rule, whom)
    return rows


@dataclass(frozen=True)
class ClusterFindings:
    """Facts and findings about the clusters themselves.

    Attributes:
        runs: the audit run of each cluster, which its groups' rules need.
        findings: findings about clusters.
        brokers: names that redaction must not mistake for clients.
        incomplete: clusters with an incomplete collection.
    """

    runs: Mapping[str, AuditRun]
    findings: list[FindingsRow]
    brokers: frozenset[str]
    incomplete: frozenset[str] = frozenset()

    def all_findings(
        self,
        of_ingest: Iterable[FindingsRow],
        of_groups: Iterable[FindingsRow],
        unknown: Mapping[str, tuple[list[MissingGroups], int]],
        accepted: tuple[Acceptance, ...],
        redact_salt: str | None,
    ) -> list[FindingsRow]:
        """Return every finding that does not concern a group, with acceptances and redaction
        applied.

        Args:
            of_ingest: findings of `ingest` that concern no group.
            of_groups: findings about groups.
            unknown: the groups with missing evidence in each cluster, and the number compared. A
                row has verdict, reason, unasked, groups (their number) and the first names.
            accepted: valid acceptances.
            redact_salt: the salt for the names that replace client ids; None shows the ids.
        """
        rows = [*self.findings, *of_ingest]
        groups = grouped(of_groups, lambda row: row["cluster"])
        for cluster, run in self.runs.items():
            down = find_down(run.outages, groups.get(cluster, ()))
            rows += [of_cluster_row(cluster, finding_row(DOWN, finding)) for finding in down]
        for cluster, (missing, compared) in unknown.items():
            reported = compared > 0 or cluster in self.incomplete
            if not reported:
                missing = [
                    row for row in missing if row["reason"] != verdicts.NO_DUMP or not row["dumps"]
                ]
            lacking = missing_of_groups(by_reason(missing), compared, reported=reported)
            rows += [of_cluster_row(cluster, row) for row in lacking]
        rows = [accept(within_night(row, self.runs.get(row["cluster"])), accepted) for row in rows]
        of_clusters = grouped(rows, lambda row: row["cluster"])
        rows = []
        for cluster in sorted(groups.keys() | of_clusters.keys()):
            judged = groups.get(cluster, [])
            of_cluster_itself = in_one_line(of_clusters.get(cluster, []), judged)
            unsure = (
                finding_row(COLLECTION_INCOMPLETE, finding)
                for finding in unsure_findings([*of_cluster_itself, *judged])
            )
            rows += of_cluster_itself
            rows += [accept(of_cluster_row(cluster, row), accepted) for row in unsure]
        if redact_salt is None:
            return rows
        return list(map(Redaction(redact_salt, brokers=self.brokers).finding, rows))


def cluster_findings(
    clusters: Mapping[str, ClusterRows],
    stale_hours: float,
    not_before_ms: int | None,
    night: NightBegin = NIGHT,
    lost_kinds: tuple[str, ...] = (),
) -> ClusterFindings:
    """Judge each cluster for its night; the other arguments are those of `cluster_snapshot`."""
    runs: dict[str, AuditRun] = {}
    findings: list[FindingsRow] = []
    brokers: set[str | None] = set()
    for cluster, rows in clusters.items():
        group = cluster_snapshot(
            facts_by_kind(rows.facts),
            rows.dumps,
            rows.broker_events,
            rows.coverage,
            stale_hours=stale_hours,
            not_before_ms=not_before_ms,
            lost_kinds=lost_kinds,
        )
        runs[cluster] = group.run
        brokers |= {row["broker_name"] for row in (*rows.facts, *rows.broker_events)}
        findings += [of_cluster_row(cluster, row) for row in run_cluster_rules(group)]
    incomplete = frozenset(
        row["cluster"] for row in findings if row["rule_id"] == COLLECTION_INCOMPLETE.rule_id
    )
    names = frozenset(name for name in brokers if name is not None)
    return ClusterFindings(night.of_runs(runs), findings, names, incomplete)
